//! Model drives and the real extents of a file system in use.

use std::fmt::Write;
use std::io::Read as _;

use anyhow::{Context, Result, bail};
use hoistway_drive::{Drive, Profile};
use hoistway_order::model::{Reader, Taken, take};
use hoistway_order::plan::{Distance, Laid, Plan, Reading, as_listed, as_tar, in_passes, text};
use hoistway_order::{Id, Kind};

use super::Part;
use crate::goals::Goal;
use crate::repository;

/// Where the image's files lay once; a test has the same.
const LAID: &str = "crates/order/testdata/aged.laid.xz";
pub const DRIVES: [&str; 2] = ["sata-7200-2006", "cmr-8tb"];
/// The longest request that the host puts together.
const LONGEST: u64 = 1 << 20;
/// Gaps up to this are read through.
const GAP: u64 = 128 << 10;
/// Files that are under way at once, in a table of their own.
const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// From an answer to the next request, in ms.
const TURNAROUNDS_MS: [f64; 4] = [0.0, 0.1, 0.2, 0.3];

/// What is asked for in each order.
pub struct Plans {
    pub tar: Plan,
    directory_inodes: Plan,
    inodes: Plan,
    pub metadata: Plan,
    pub data: Plan,
    /// GNU tar with a list of files in the order of blocks.
    pub listed: Plan,
    single: Plan,
}

impl Plans {
    pub fn of(laid: &Laid) -> Plans {
        let tree = &laid.tree;
        let inodes = by(laid, |id| tree.entry(id).inode);
        let blocks = by(laid, |id| laid.extents(id).first().map(|extent| extent.physical));
        let passes = in_passes(tree, blocks.iter().copied());
        let bytes = laid.files().map(|id| laid.bytes(id)).sum();
        Plans {
            tar: laid.plan(&as_tar(tree, false), Reading::GNU_TAR),
            directory_inodes: laid.plan(&as_tar(tree, true), Reading::GNU_TAR),
            inodes: laid.plan(&as_listed(tree, inodes), Reading::GNU_TAR),
            metadata: laid.plan(&passes.metadata, Reading::LARGE),
            data: laid.plan(&passes.data, Reading::LARGE),
            listed: laid.plan(&as_listed(tree, blocks), Reading::GNU_TAR),
            single: Plan::contiguous(laid.lowest(), bytes),
        }
    }
}

fn by<K: Ord>(laid: &Laid, key: impl Fn(Id) -> K) -> Vec<Id> {
    let mut files: Vec<Id> = laid.files().collect();
    files.sort_by_key(|id| key(*id));
    files
}

/// What a drive takes for plans one after the other, each with so many steps under way.
pub fn taken(drive: &str, plans: &[(&Plan, usize)], turnaround_ns: u64) -> Result<Taken> {
    let profile = Profile::builtin(drive).with_context(|| format!("no drive {drive}"))?;
    let mut drive = Drive::new(&profile);
    let mut sum = Taken::default();
    for (plan, depth) in plans {
        sum += take(&mut drive, sum.ns, plan, &Reader { depth: *depth, turnaround_ns, longest: LONGEST })?;
    }
    Ok(sum)
}

/// A row of the table: what is done, and its reads.
struct Row<'p> {
    name: &'static str,
    plans: Vec<(&'p Plan, usize)>,
}

/// All of them, from the stored list.
pub fn measure() -> Result<Part> {
    let laid = stored()?;
    let plans = Plans::of(&laid);
    let sweep = plans.tar.sweep();
    let through = plans.data.read_through(LONGEST, GAP);
    let Plans { tar, directory_inodes, inodes, metadata, data, single, .. } = &plans;
    let rows = [
        Row { name: "`tar -c`: as directories have them", plans: vec![(tar, 1)] },
        Row { name: "`tar -c --sort=inode`: inodes, a directory at a time", plans: vec![(directory_inodes, 1)] },
        Row { name: "`tar -T`, files by inode number", plans: vec![(inodes, 1)] },
        Row { name: "two passes, inodes and first blocks, one file at a time", plans: vec![(metadata, 1), (data, 1)] },
        Row { name: "all that tar reads in one sweep", plans: vec![(&sweep, 1)] },
        Row { name: "two passes, 8 files at a time", plans: vec![(metadata, 1), (data, 8)] },
        Row { name: "two passes, gaps of up to 128 KiB read through", plans: vec![(metadata, 1), (&through, 1)] },
        Row { name: "one file in one piece, as long as all", plans: vec![(single, 1)] },
    ];
    let mut text = heading(&laid);
    let mut goals = Vec::new();
    for drive in DRIVES {
        let seconds = table(&mut text, drive, &rows)?;
        goals.extend(wanted(drive, &seconds)?);
    }
    depths(&mut text, metadata, data)?;
    distances(&mut text, &laid);
    Ok(Part { text, goals })
}

fn stored() -> Result<Laid> {
    let path = repository::root().join(LAID);
    let file = std::fs::File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut told = String::new();
    liblzma::read::XzDecoder::new(file).read_to_string(&mut told).with_context(|| format!("cannot read {LAID}"))?;
    text::from_text(&told).with_context(|| LAID.to_owned())
}

fn heading(laid: &Laid) -> String {
    let files = laid.files().count();
    let bytes: u64 = laid.files().map(|id| laid.bytes(id)).sum();
    let folders = laid.tree.ids().filter(|id| laid.tree.entry(*id).kind == Kind::Directory).count();
    format!(
        "```console\n$ cargo xtask bench-order --only simulated\n```\n\n{files} files in {folders} directories, {:.0} MB; no pauses between an answer and the next request.\n",
        bytes as f64 / 1e6
    )
}

/// Writes the table of a drive, and answers its seconds.
fn table(text: &mut String, drive: &str, rows: &[Row<'_>]) -> Result<Vec<f64>> {
    let taken: Vec<Taken> = rows.iter().map(|row| taken(drive, &row.plans, 0)).collect::<Result<_>>()?;
    let [Some(first), Some(last)] = [taken.first(), taken.last()].map(|taken| taken.map(|taken| taken.ns as f64))
    else {
        bail!("a table without rows");
    };
    let _ = writeln!(
        text,
        "\n### {drive}\n\n| read | s | tar's time : this | this : one file | commands | from the drive's buffer | seek s | rotation s | transfer s |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (row, taken) in rows.iter().zip(&taken) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.2} | {} | {} | {:.1} | {:.1} | {:.1} |",
            row.name,
            seconds(taken.ns),
            first / taken.ns as f64,
            taken.ns as f64 / last,
            taken.commands,
            taken.from_buffer,
            seconds(taken.phases.seek_ns),
            seconds(taken.phases.rotation_ns),
            seconds(taken.phases.transfer_ns)
        );
    }
    Ok(taken.iter().map(|taken| taken.ns as f64 / 1e9).collect())
}

/// What is wanted of a drive's table.
fn wanted(drive: &str, seconds: &[f64]) -> Result<Vec<Goal>> {
    let [tar, _, _, blocks, sweep, deep, through, single] = *seconds else { bail!("another number of rows") };
    let order = format!("{single:.2} < {sweep:.2} < {blocks:.2} < {tar:.2} s");
    let nearest = deep.min(through) / single;
    Ok(vec![
        Goal::found(
            &format!("{drive}: one file < one sweep < two passes < tar"),
            order,
            single < sweep && sweep < blocks && blocks < tar,
        ),
        Goal::found(
            &format!("{drive}: two passes, one file at a time, are 3 to 6 times as fast as tar"),
            format!("{:.2}", tar / blocks),
            (3.0..=6.0).contains(&(tar / blocks)),
        ),
        Goal::found(
            &format!("{drive}: nearer to the one file than two passes come, one file at a time"),
            format!("{nearest:.2} : {:.2} times its time", blocks / single),
            nearest < blocks / single,
        ),
    ])
}

/// How many files are under way, and how long the reader thinks.
fn depths(text: &mut String, metadata: &Plan, data: &Plan) -> Result<()> {
    text.push_str(
        "\n### Files at a time, and pauses\n\nTwo passes, in s, by the files under way at once in the second one and by the time from the drive's answer to the next request:\n",
    );
    for drive in DRIVES {
        let _ = write!(text, "\n| {drive}: pause |");
        DEPTHS.iter().for_each(|depth| {
            let _ = write!(text, " {depth} |");
        });
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(DEPTHS.len()));
        for pause_ms in TURNAROUNDS_MS {
            let _ = write!(text, "| {pause_ms} ms |");
            for depth in DEPTHS {
                let taken = taken(drive, &[(metadata, 1), (data, depth)], (pause_ms * 1e6) as u64)?;
                let _ = write!(text, " {:.2} |", taken.ns as f64 / 1e9);
            }
            text.push('\n');
        }
    }
    Ok(())
}

fn distances(text: &mut String, laid: &Laid) {
    let distance = |files: Vec<Id>| {
        let steps: Vec<_> = files.into_iter().map(hoistway_order::plan::Step::Data).collect();
        laid.plan(&steps, Reading::LARGE).distance()
    };
    let rows = [
        ("as directories have them", distance(laid.files().collect())),
        ("inode numbers", distance(by(laid, |id| laid.tree.entry(id).inode))),
        ("first blocks", distance(by(laid, |id| laid.extents(id).first().map(|extent| extent.physical)))),
    ];
    text.push_str("\n### How far the head goes\n\n| files in the order of | GB between reads | seeks | of them back |\n|---|---|---|---|\n");
    for (name, Distance { bytes, seeks, backward }) in rows {
        let _ = writeln!(text, "| {name} | {:.2} | {seeks} | {backward} |", bytes as f64 / 1e9);
    }
}
