//! Selection of the inputs that the repository keeps.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hoistway_units::figures;

use super::{Fuzzers, run_logged, seeds, side_by_side};

/// The maximum number of bytes of inputs of a target in the repository. Smaller inputs are
/// preferred.
const SEED_BYTES_MAX: u64 = 96 << 10;

/// Minimises the inputs of all targets and prints a table.
pub fn all(fuzzers: &Fuzzers, targets: &[String], jobs: usize) -> Result<()> {
    let results = side_by_side(targets, jobs, |target| one(fuzzers, target));
    println!("| target | inputs | bytes | left out for their size |\n|---|---|---|---|");
    for (target, result) in targets.iter().zip(results) {
        let Kept { inputs, bytes, left_out } = result.with_context(|| target.clone())?;
        println!("| `{target}` | {inputs} | {} | {left_out} |", figures::grouped(bytes));
    }
    Ok(())
}

/// The inputs of a target in the repository.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    inputs: usize,
    bytes: u64,
    left_out: usize,
}

/// Selects inputs that cover all edges that the inputs of a target cover, and writes them to the
/// repository in place of those that are there.
fn one(fuzzers: &Fuzzers, target: &str) -> Result<Kept> {
    let (chosen, log) = (fuzzers.directory.join("minimised").join(target), fuzzers.log(&format!("{target}-minimise")));
    remove_directory(&chosen)?;
    fs::create_dir_all(&chosen)?;
    fs::create_dir_all(fuzzers.logs())?;
    let seeds = seeds(target);
    let from: Vec<PathBuf> = [seeds.clone(), fuzzers.corpus(target)].into_iter().filter(|path| path.is_dir()).collect();
    if from.is_empty() {
        bail!("there are no inputs: run cargo xtask fuzz --targets {target}");
    }
    let mut command = fuzzers.command(target);
    // A set of inputs that covers all edges is much smaller than one that also has each number of
    // passes over an edge.
    command.args(["-set_cover_merge=1", "-use_counters=0"]).arg(&chosen).args(from);
    let (status, _) = run_logged(&mut command, &log)?;
    if !status.success() {
        bail!("{status}; its output: {}", log.display());
    }
    remove_directory(&seeds)?;
    fs::create_dir_all(&seeds)?;
    copy_smallest(&chosen, &seeds, SEED_BYTES_MAX)
}

/// Copies the smallest files of a directory up to a number of bytes.
fn copy_smallest(from: &Path, to: &Path, bytes_max: u64) -> Result<Kept> {
    let mut files = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.file_name()));
    }
    files.sort();
    let mut kept = Kept { inputs: 0, bytes: 0, left_out: 0 };
    for (bytes, name) in files {
        if kept.bytes + bytes > bytes_max {
            kept.left_out += 1;
            continue;
        }
        fs::copy(from.join(&name), to.join(&name))?;
        kept.inputs += 1;
        kept.bytes += bytes;
    }
    Ok(kept)
}

/// Removes a directory if it exists.
fn remove_directory(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_inputs_are_kept_up_to_the_limit() {
        let directory = std::env::temp_dir().join(format!("hoistway-minimise-{}", std::process::id()));
        let (from, to) = (directory.join("from"), directory.join("to"));
        fs::create_dir_all(&from).expect("a directory");
        fs::create_dir_all(&to).expect("a directory");
        for (name, bytes) in [("a", 50), ("b", 10), ("c", 30)] {
            fs::write(from.join(name), vec![0; bytes]).expect("a file");
        }
        let kept = copy_smallest(&from, &to, 45).expect("copied");
        let is_there = ["a", "b", "c"].map(|name| to.join(name).exists());
        fs::remove_dir_all(&directory).expect("it is removed");
        assert_eq!(kept, Kept { inputs: 2, bytes: 40, left_out: 1 });
        assert_eq!(is_there, [false, true, true]);
    }
}
