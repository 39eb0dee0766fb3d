//! Parses the values of `hoistway_tree`, `hoistway_walk` and `hoistway_journal`.

use crate::{
    tree::{FileSystemKind, TreeSpec, Walk},
    units::KbBase,
    values::{Fault, count, one_of},
};

/// A tree like that of Linux 2.6.26: as many files, with sizes that add up to about 330 MB.
const LINUX: TreeSpec = TreeSpec {
    files: 22_500,
    directories: 1_400,
    median_bytes: 5_000,
    mean_bytes: 14_500,
    rounds: 0,
    full_percent: 0,
    own: false,
    kind: None,
};
/// Most files: each takes some 600 bytes of memory in a walk.
const MAX_FILES: u64 = 1_000_000;
/// Most files times rounds: each takes some microseconds to lay out.
const MAX_WRITTEN: u64 = 4_000_000;
const KEYS: &[&str] = &["linux", "files", "dirs", "median", "mean", "age", "full", "fs", "own"];
const HELP: &str =
    "hoistway_tree=linux, or as in hoistway_tree=files=1000,dirs=50,median=4k,mean=16k,age=3,full=80,fs=ext3";

/// Parses a list of `linux` and `key=value` parts, separated by commas.
pub(crate) fn tree(value: &str, base: KbBase) -> Result<TreeSpec, Fault> {
    let mut spec = LINUX;
    let mut full = None;
    for part in value.split(',').map(str::trim) {
        let Some((key, value)) = part.split_once('=') else {
            match part {
                "linux" => continue,
                "own" => {
                    spec.own = true;
                    continue;
                }
                other if KEYS.contains(&other) => {
                    return Err(Fault::with_help(format!("`{other}` has no value"), HELP));
                }
                other => return Err(one_of(other, KEYS)),
            }
        };
        let number = |least: u64, most: u64| {
            count(value.trim(), base, least..=most)
                .map_err(|fault| Fault { message: format!("{}: {}", key.trim(), fault.message), ..fault })
        };
        match key.trim() {
            "files" => spec.files = number(1, MAX_FILES)? as u32,
            "dirs" => spec.directories = number(1, 1_000_000)? as u32,
            "median" => spec.median_bytes = number(1, 1 << 30)?,
            "mean" => spec.mean_bytes = number(1, 1 << 30)?,
            "age" => spec.rounds = number(0, 100)? as u32,
            "full" => full = Some(number(0, 95)? as u8),
            "fs" => spec.kind = Some(file_system(value.trim())?),
            other => return Err(one_of(other, KEYS)),
        }
    }
    if spec.mean_bytes < spec.median_bytes {
        let message = format!("the mean of {} bytes is below the median of {}", spec.mean_bytes, spec.median_bytes);
        return Err(Fault::with_help(message, "a lognormal law has its mean above its median: give mean= too"));
    }
    let written = u64::from(spec.files) * (u64::from(spec.rounds) + 1);
    if written > MAX_WRITTEN {
        let message = format!("{} files in {} rounds of ageing are too much to lay out", spec.files, spec.rounds);
        let most = (MAX_WRITTEN / u64::from(spec.files)).saturating_sub(1);
        return Err(Fault::with_help(message, format!("so many files take age={most} at most")));
    }
    spec.full_percent = full.unwrap_or(if spec.rounds > 0 { 80 } else { 0 });
    Ok(spec)
}

/// Parses a kind of file system.
pub(crate) fn file_system(value: &str) -> Result<FileSystemKind, Fault> {
    match value {
        "ext2" => Ok(FileSystemKind::Ext2),
        "ext3" => Ok(FileSystemKind::Ext3),
        "ext4" => Ok(FileSystemKind::Ext4),
        other => Err(one_of(other, &["ext2", "ext3", "ext4"])),
    }
}

/// Parses a kind of journal.
pub(crate) fn journal(value: &str) -> Result<FileSystemKind, Fault> {
    match value {
        "ext3" => Ok(FileSystemKind::Ext3),
        "ext4" => Ok(FileSystemKind::Ext4),
        other => Err(one_of(other, &["ext3", "ext4"])),
    }
}

/// Parses the order of a walk.
pub(crate) fn walk(value: &str) -> Result<Walk, Fault> {
    const NAMES: &[(&str, Walk)] = &[
        ("readdir", Walk::Readdir),
        ("archive", Walk::Archive),
        ("name", Walk::Name),
        ("find", Walk::Find),
        ("inode", Walk::Inode),
        ("block", Walk::Block),
        ("sweep", Walk::Sweep),
        ("single", Walk::Single),
        ("random", Walk::Random),
    ];
    let known = NAMES.iter().find(|(name, _)| *name == value);
    known.map(|(_, walk)| *walk).ok_or_else(|| one_of(value, &NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>()))
}
