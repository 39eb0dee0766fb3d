//! Many small files in the order of the disk.

use std::sync::Arc;

use hoistway_drive::{Profile, describe};
use hoistway_fio::Walk;
use rand_pcg::Pcg64;

use crate::compare::Run;
use crate::host::files::File;
use crate::host::fs::config::FileSystemConfig;
use crate::host::fs::tree::{Node, Tree};
use crate::host::fs::{Ageing, FileSystem, SizeLaw, TreeParameters};
use crate::published::PublishedError;
use crate::published::expectation::Row;
use crate::published::runner::{Experiment, Runner};
use crate::published::verdict::Measured;
use crate::workload::walk::{Step, Walker};

/// The jobs of `examples/archive.fio`.
const ORDERS: [&str; 5] = ["tar", "inodes", "qtar", "sweep", "single"];
/// Rounds of use of an aged file system, as in the example.
const ROUNDS: u32 = 3;
/// qtar's reads, in bytes.
const READ_BYTES: u64 = 128 << 10;
/// What is neither a tree's file nor one of its blocks.
const DISK: u32 = u32::MAX;

/// How long each order takes.
pub fn orders(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let seconds = seconds(runner, Experiment::of(row, "cfq-tree")?, row.seeds)?;
    let [rotation, reads] = runner.means(only(Experiment::of(row, "cfq-tree")?, "tar"), row.seeds, |run, _| {
        [run.drive_ns.rotation as f64 / 1e6 / run.drive_requests as f64, run.drive_requests as f64]
    })?;
    let measured = Measured::default().with_all(ORDERS.into_iter().zip(seconds));
    let measured = measured.with("tar by qtar", seconds[0] / seconds[2]).with("tar, reads", reads);
    Ok(measured.with("tar, rotation a read", rotation))
}

/// The same on a file system in use.
pub fn ageing(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let fresh = Experiment::of(row, "cfq-tree")?;
    let aged = fresh.clone().with_text("hoistway_tree=linux", &format!("hoistway_tree=linux,age={ROUNDS}"));
    let (fresh, aged) = (seconds(runner, fresh, row.seeds)?, seconds(runner, aged, row.seeds)?);
    Ok(Measured::default()
        .with("tar, aged by fresh", aged[0] / fresh[0])
        .with("qtar, aged by fresh", aged[2] / fresh[2])
        .with("tar by qtar, aged", aged[0] / aged[2]))
}

/// tar under several elevators: how far the slowest is behind the quickest.
pub fn schedulers(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for elevator in &row.elevators {
        let experiment = only(Experiment::of(row, elevator)?, "tar");
        let [seconds] = runner.means(experiment, row.seeds, |run, _| [runtime_s(run, "tar")])?;
        measured = measured.with(elevator.clone(), seconds);
        (least, most) = (least.min(seconds), most.max(seconds));
    }
    Ok(measured.with("apart", (most / least - 1.0) * 100.0))
}

/// What qtar does, read by read, on a fresh ext4 and on an aged one.
pub fn algorithm(row: &Row) -> Result<Measured, PublishedError> {
    let (mut late, mut down, mut longest, mut sweeps) = (0, 0, 0, 0);
    for rounds in [0, ROUNDS] {
        let (tree, files) = grown(row, FileSystemConfig::ext4(), rounds)?;
        let mut walker = Walker::new(Arc::new(tree), Walk::Block, READ_BYTES, READ_BYTES / 4096, DISK, 1);
        walker.begin_pass();
        let (mut reading, mut last) = (false, 0);
        let mut metadata = 0;
        while let Some(step) = walker.next(&files) {
            match step {
                Step::Metadata(read) => {
                    late += u32::from(reading);
                    sweeps += u32::from(!reading && read.first < metadata);
                    metadata = read.first;
                }
                Step::Read { file, offset, bytes, .. } => {
                    reading = true;
                    longest = longest.max(bytes);
                    let first = files.get(file as usize).and_then(first_sector).unwrap_or(0);
                    down += u32::from(offset == 0 && first < last);
                    last = first;
                }
            }
        }
    }
    Ok(Measured::default()
        .with("metadata after data", f64::from(late))
        .with("files out of order", f64::from(down))
        .with("longest read", longest as f64 / 1024.0)
        .with("returns in the first pass", f64::from(sweeps)))
}

/// Pairs of neighbouring inodes of a tree whose blocks are the other way round, on ext3 and ext4,
/// fresh and aged.
pub fn inodes(row: &Row) -> Result<Measured, PublishedError> {
    let (mut wrong, mut pairs) = (0, 0);
    for config in [FileSystemConfig::ext3(), FileSystemConfig::ext4()] {
        for rounds in [0, ROUNDS] {
            let (tree, _) = grown(row, config, rounds)?;
            let files = (0..tree.files.len() as u32).map(Node::File);
            let directories = (0..tree.directories.len() as u32).map(Node::Directory);
            let mut inodes: Vec<_> = files.chain(directories).map(|node| tree.inode(node)).collect();
            inodes.sort_unstable();
            let blocks: Vec<u64> = inodes.iter().map(|inode| tree.stat(*inode).first).collect();
            wrong += blocks.windows(2).filter(|pair| pair[1] < pair[0]).count();
            pairs += blocks.len() - 1;
        }
    }
    Ok(Measured::default().with("wrong", wrong as f64).with("pairs", pairs as f64))
}

/// A tree like the sources of Linux on the row's drive.
fn grown(row: &Row, config: FileSystemConfig, rounds: u32) -> Result<(Tree, Vec<File>), PublishedError> {
    let name = row.drive.clone().unwrap_or_default();
    let lacks = |what| PublishedError::NoInput { id: row.id.clone(), what, name: name.clone() };
    let capacity = describe(&Profile::builtin(&name).ok_or_else(|| lacks("drive"))?).capacity_sectors;
    let ageing = (rounds > 0).then_some(Ageing { rounds, full_percent: 80 });
    let fs = FileSystem::new(config, capacity, ageing, 1, Pcg64::new(1, 1));
    let sizes = SizeLaw { median_bytes: 5000, mean_bytes: 14_500 };
    let growth = TreeParameters { files: 22_500, directories: 1400, sizes, rounds, single: false };
    fs.and_then(|mut fs| fs.grow(&growth)).ok_or_else(|| lacks("room on the drive"))
}

fn first_sector(file: &File) -> Option<u64> {
    file.runs().next().map(|(sector, _)| sector)
}

/// How long each order takes, in s.
fn seconds(runner: &mut Runner<'_>, experiment: Experiment, seeds: u64) -> Result<[f64; 5], PublishedError> {
    runner.means(experiment, seeds, |run, _| ORDERS.map(|name| runtime_s(run, name)))
}

fn runtime_s(run: &Run, job: &str) -> f64 {
    run.processes.iter().filter(|process| process.name == job).map(|process| process.runtime_ns as f64 / 1e9).sum()
}

/// The first of the jobs alone.
fn only(experiment: Experiment, job: &str) -> Experiment {
    let global =
        experiment.job.split_once(&format!("[{job}]")).map(|(global, rest)| (global.to_owned(), rest.to_owned()));
    match global {
        Some((global, rest)) => {
            let rest = rest.split_once("\n[").map_or(rest.as_str(), |(first, _)| first).to_owned();
            Experiment { job: format!("{global}[{job}]{rest}\n"), ..experiment }
        }
        None => experiment,
    }
}
