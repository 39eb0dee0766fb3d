//! Model drives and the real extents of a file system in use.

use std::fmt::Write;
use std::io::Read as _;

use anyhow::{Context, Result, bail};
use hoistway_drive::{Drive, Profile};
use hoistway_order::read_plan::{
    Distance, ReadPattern, ReadPlan, TreeLayout, listed_steps, tar_steps, text, two_pass_steps,
};
use hoistway_order::read_time::{ReadTime, ReaderModel, simulate};
use hoistway_order::{EntryId, FileKind};
use hoistway_workspace::repository;

use super::Section;
use crate::goals::Goal;

/// The stored layout of the image's files; a test uses the same.
const STORED_LAYOUT: &str = "crates/order/testdata/aged.laid.xz";
pub const DRIVES: [&str; 2] = ["sata-7200-2006", "cmr-8tb"];
/// The largest merged request of the host, in bytes.
const REQUEST_BYTES_MAX: u64 = 1 << 20;
/// Gaps up to this size in bytes are read through.
const GAP_BYTES_MAX: u64 = 128 << 10;
/// The numbers of parallel files in the table of depths.
const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The pauses from a completion to the next request, in ms.
const TURNAROUNDS_MS: [f64; 4] = [0.0, 0.1, 0.2, 0.3];

/// The reads in each order.
pub struct Plans {
    pub tar: ReadPlan,
    directory_inodes: ReadPlan,
    inodes: ReadPlan,
    pub metadata: ReadPlan,
    pub data: ReadPlan,
    /// GNU tar with a list of files in the order of blocks.
    pub listed: ReadPlan,
    single: ReadPlan,
}

impl Plans {
    pub fn of(layout: &TreeLayout) -> Plans {
        let tree = &layout.tree;
        let inodes = by(layout, |id| tree.entry(id).inode);
        let blocks = by(layout, |id| layout.extents(id).first().map(|extent| extent.physical));
        let passes = two_pass_steps(tree, blocks.iter().copied());
        let bytes = layout.files().map(|id| layout.bytes(id)).sum();
        Plans {
            tar: layout.plan(&tar_steps(tree, false), ReadPattern::GNU_TAR),
            directory_inodes: layout.plan(&tar_steps(tree, true), ReadPattern::GNU_TAR),
            inodes: layout.plan(&listed_steps(tree, inodes), ReadPattern::GNU_TAR),
            metadata: layout.plan(&passes.metadata, ReadPattern::LARGE),
            data: layout.plan(&passes.data, ReadPattern::LARGE),
            listed: layout.plan(&listed_steps(tree, blocks), ReadPattern::GNU_TAR),
            single: ReadPlan::contiguous(layout.lowest(), bytes),
        }
    }
}

fn by<K: Ord>(layout: &TreeLayout, key: impl Fn(EntryId) -> K) -> Vec<EntryId> {
    let mut files: Vec<EntryId> = layout.files().collect();
    files.sort_by_key(|id| key(*id));
    files
}

/// Simulates consecutive plans, each with its number of parallel steps, and returns the read time.
pub fn taken(drive: &str, plans: &[(&ReadPlan, usize)], turnaround_ns: u64) -> Result<ReadTime> {
    let profile = Profile::builtin(drive).with_context(|| format!("no drive {drive}"))?;
    let mut drive = Drive::new(&profile);
    let mut sum = ReadTime::default();
    for (plan, depth) in plans {
        sum += simulate(
            &mut drive,
            sum.ns,
            plan,
            &ReaderModel { depth: *depth, turnaround_ns, longest: REQUEST_BYTES_MAX },
        )?;
    }
    Ok(sum)
}

/// A row of the table: its name and its reads.
struct Row<'p> {
    name: &'static str,
    plans: Vec<(&'p ReadPlan, usize)>,
}

/// Measures all rows, from the stored layout.
pub fn measure() -> Result<Section> {
    let layout = stored()?;
    let plans = Plans::of(&layout);
    let sweep = plans.tar.sweep();
    let through = plans.data.read_through(REQUEST_BYTES_MAX, GAP_BYTES_MAX);
    let Plans { tar, directory_inodes, inodes, metadata, data, single, .. } = &plans;
    let rows = [
        Row { name: "`tar -c`: directory order", plans: vec![(tar, 1)] },
        Row { name: "`tar -c --sort=inode`: inode order within each directory", plans: vec![(directory_inodes, 1)] },
        Row { name: "`tar -T`, files by inode number", plans: vec![(inodes, 1)] },
        Row { name: "two passes, inodes and first blocks, one file at a time", plans: vec![(metadata, 1), (data, 1)] },
        Row { name: "all reads of tar in one sweep", plans: vec![(&sweep, 1)] },
        Row { name: "two passes, 8 files at a time", plans: vec![(metadata, 1), (data, 8)] },
        Row { name: "two passes, gaps of up to 128 KiB read through", plans: vec![(metadata, 1), (&through, 1)] },
        Row { name: "one contiguous file of the same size", plans: vec![(single, 1)] },
    ];
    let mut text = heading(&layout);
    let mut goals = Vec::new();
    for drive in DRIVES {
        let seconds = table(&mut text, drive, &rows)?;
        goals.extend(wanted(drive, &seconds)?);
    }
    depths(&mut text, metadata, data)?;
    distances(&mut text, &layout);
    Ok(Section { text, goals })
}

fn stored() -> Result<TreeLayout> {
    let path = repository::root().join(STORED_LAYOUT);
    let file = std::fs::File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut listed = String::new();
    liblzma::read::XzDecoder::new(file)
        .read_to_string(&mut listed)
        .with_context(|| format!("cannot read {STORED_LAYOUT}"))?;
    text::from_text(&listed).with_context(|| STORED_LAYOUT.to_owned())
}

fn heading(layout: &TreeLayout) -> String {
    let files = layout.files().count();
    let bytes: u64 = layout.files().map(|id| layout.bytes(id)).sum();
    let folders = layout.tree.ids().filter(|id| layout.tree.entry(*id).kind == FileKind::Directory).count();
    format!(
        "```console\n$ cargo xtask bench-order --only simulated\n```\n\n{files} files in {folders} directories, {:.0} MB; no pause between a completion and the next request.\n",
        bytes as f64 / 1e6
    )
}

/// Writes the table of a drive and returns the seconds of its rows.
fn table(text: &mut String, drive: &str, rows: &[Row<'_>]) -> Result<Vec<f64>> {
    let taken: Vec<ReadTime> = rows.iter().map(|row| taken(drive, &row.plans, 0)).collect::<Result<_>>()?;
    let [Some(first), Some(last)] = [taken.first(), taken.last()].map(|taken| taken.map(|taken| taken.ns as f64))
    else {
        bail!("a table without rows");
    };
    let _ = writeln!(
        text,
        "\n### {drive}\n\n| read | s | speedup over tar | time relative to one file | commands | from the drive's buffer | seek s | rotation s | transfer s |\n|---|---|---|---|---|---|---|---|---|"
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

/// The goals for the table of a drive.
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
            &format!("{drive}: reading through gaps is closer to one file than two passes with one file at a time"),
            format!("{nearest:.2} : {:.2} times its time", blocks / single),
            nearest < blocks / single,
        ),
    ])
}

/// Writes the table of parallel files and pauses.
fn depths(text: &mut String, metadata: &ReadPlan, data: &ReadPlan) -> Result<()> {
    text.push_str(
        "\n### Parallel files and pauses\n\nTwo passes, in s, by the number of parallel files in the second pass and by the pause from a completion to the next request:\n",
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

fn distances(text: &mut String, layout: &TreeLayout) {
    let distance = |files: Vec<EntryId>| {
        let steps: Vec<_> = files.into_iter().map(hoistway_order::read_plan::ReadStep::Data).collect();
        layout.plan(&steps, ReadPattern::LARGE).distance()
    };
    let rows = [
        ("directory order", distance(layout.files().collect())),
        ("inode numbers", distance(by(layout, |id| layout.tree.entry(id).inode))),
        ("first blocks", distance(by(layout, |id| layout.extents(id).first().map(|extent| extent.physical)))),
    ];
    text.push_str(
        "\n### Seek distance\n\n| file order | seek distance, GB | seeks | backward seeks |\n|---|---|---|---|\n",
    );
    for (name, Distance { bytes, seeks, backward }) in rows {
        let _ = writeln!(text, "| {name} | {:.2} | {seeks} | {backward} |", bytes as f64 / 1e9);
    }
}
