//! The memory and time that this many names take: `cargo run --release --example many_names --
//! 10000000`. The tree is made, not walked: 200 files a
//! directory, names of 16 letters, places at random.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::time::Instant;

use hoistway_order::{EntryId, FileKind, Placement, SortKey, Tree, TreeFull, sort};

/// What the peak may be, in bytes.
const PEAK_MAX: u64 = 2 << 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: usize = std::env::args().nth(1).map_or(Ok(10_000_000), |text| text.parse())?;
    let begun = Instant::now();
    let tree = made(names)?;
    let (made, sorting) = (begun.elapsed(), Instant::now());
    let sorted = sort(&tree, SortKey::Auto);
    let (sorted_in, writing) = (sorting.elapsed(), Instant::now());
    write(&tree, &sorted)?;
    let peak = peak_bytes()?;
    println!(
        "{} names: {:.1} bytes each in the tree, peak {:.0} MB; made in {:.2} s, sorted in {:.2} s, written in {:.2} s",
        tree.len(),
        tree.memory_bytes() as f64 / tree.len() as f64,
        peak as f64 / 1e6,
        made.as_secs_f64(),
        sorted_in.as_secs_f64(),
        writing.elapsed().as_secs_f64()
    );
    if names <= 10_000_000 && peak >= PEAK_MAX {
        return Err(format!("more than {PEAK_MAX} bytes").into());
    }
    Ok(())
}

fn made(names: usize) -> Result<Tree, TreeFull> {
    let mut tree = Tree::new();
    let top = tree.add(None, OsStr::new("mail"), FileKind::Directory, 2, 1)?;
    let mut directory = top;
    // A generator of Marsaglia's, "Xorshift RNGs" (2003).
    let mut random = 88_172_645_463_325_252u64;
    for number in 0..names {
        if number % 200 == 0 {
            directory =
                tree.add(Some(top), OsStr::new(&format!("folder-{number:09}")), FileKind::Directory, random >> 40, 1)?;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let id =
            tree.add(Some(directory), OsStr::new(&format!("message-{number:08}")), FileKind::File, random >> 34, 1)?;
        tree.set_placement(id, Placement::Offset((random >> 24) << 12));
    }
    Ok(tree)
}

fn write(tree: &Tree, sorted: &[EntryId]) -> io::Result<()> {
    let mut nowhere = BufWriter::new(io::sink());
    let mut path = Vec::new();
    for id in sorted {
        tree.path_into(*id, &mut path);
        path.push(0);
        nowhere.write_all(&path)?;
    }
    nowhere.flush()
}

/// The most memory that this process has had, as Linux counts it.
fn peak_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}
