//! Archiving of many small files in disk order.

use hoistway_drive::describe;
use hoistway_fio::Walk;
use hoistway_sim::file_tree::{FileTree, FileTreeParameters, WalkRead};
use hoistway_sim::{FileSystemConfig, Run};

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::processes;
use crate::runner::{Experiment, Runner};
use crate::verdict::Measured;

/// The jobs of `examples/archive.fio`, one per reading order.
const ORDERS: [&str; 5] = ["tar", "inodes", "qtar", "sweep", "single"];
/// Ageing rounds of a used file system, as in the example.
const ROUNDS: u32 = 3;
/// Size of a read by qtar, in bytes.
const READ_BYTES: u64 = 128 << 10;

/// The time of each reading order, in s.
pub fn orders(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let seconds = seconds(runner, Experiment::of(row, "cfq-tree")?, row.seeds)?;
    let [rotation, reads] = runner.means(only(Experiment::of(row, "cfq-tree")?, "tar"), row.seeds, |run, _| {
        [run.drive_ns.rotation as f64 / 1e6 / run.drive_requests as f64, run.drive_requests as f64]
    })?;
    let measured = Measured::default().with_all(ORDERS.into_iter().zip(seconds));
    let measured = measured.with("tar by qtar", seconds[0] / seconds[2]).with("tar, reads", reads);
    Ok(measured.with("tar, rotation a read", rotation))
}

/// The times on an aged file system over those on a fresh one.
pub fn ageing(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let fresh = Experiment::of(row, "cfq-tree")?;
    let aged = fresh.clone().with_text("hoistway_tree=linux", &format!("hoistway_tree=linux,age={ROUNDS}"));
    let (fresh, aged) = (seconds(runner, fresh, row.seeds)?, seconds(runner, aged, row.seeds)?);
    Ok(Measured::default()
        .with("tar, aged by fresh", aged[0] / fresh[0])
        .with("qtar, aged by fresh", aged[2] / fresh[2])
        .with("tar by qtar, aged", aged[0] / aged[2]))
}

/// The time of tar under several elevators in s, and the difference between the slowest and the
/// fastest in percent.
pub fn schedulers(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
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

/// The reads of qtar on a fresh and on an aged ext4: violations of its order, and the longest read
/// in KiB.
pub fn algorithm(row: &Row) -> Result<Measured, ReproduceError> {
    let (mut late, mut down, mut longest, mut sweeps) = (0, 0, 0, 0);
    for rounds in [0, ROUNDS] {
        let tree = file_tree(row, FileSystemConfig::ext4(), rounds)?;
        let (mut reading, mut last) = (false, 0);
        let mut metadata = 0;
        for read in tree.walk(Walk::Block, READ_BYTES) {
            match read {
                WalkRead::Metadata { block } => {
                    late += u32::from(reading);
                    sweeps += u32::from(!reading && block < metadata);
                    metadata = block;
                }
                WalkRead::Data { offset, bytes, first_sector, .. } => {
                    reading = true;
                    longest = longest.max(bytes);
                    down += u32::from(offset == 0 && first_sector < last);
                    last = first_sector;
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

/// Pairs of consecutive inodes of a tree whose blocks are in reverse order, on ext3 and ext4, fresh
/// and aged.
pub fn inodes(row: &Row) -> Result<Measured, ReproduceError> {
    let (mut wrong, mut pairs) = (0, 0);
    for config in [FileSystemConfig::ext3(), FileSystemConfig::ext4()] {
        for rounds in [0, ROUNDS] {
            let blocks = file_tree(row, config, rounds)?.inode_blocks();
            wrong += blocks.windows(2).filter(|pair| pair[1] < pair[0]).count();
            pairs += blocks.len() - 1;
        }
    }
    Ok(Measured::default().with("wrong", wrong as f64).with("pairs", pairs as f64))
}

/// A tree like the sources of Linux on the drive of the row.
fn file_tree(row: &Row, file_system: FileSystemConfig, ageing_rounds: u32) -> Result<FileTree, ReproduceError> {
    let name = row.drive.clone().unwrap_or_default();
    let parameters = FileTreeParameters {
        file_system,
        capacity_sectors: describe(&row.profile()?).capacity_sectors,
        files: 22_500,
        directories: 1400,
        median_bytes: 5000,
        mean_bytes: 14_500,
        ageing_rounds,
        seed: 1,
    };
    let too_small = || ReproduceError::NoInput { id: row.id.clone(), what: "room on the drive", name };
    FileTree::create(&parameters).ok_or_else(too_small)
}

/// The time of each reading order, in s.
fn seconds(runner: &mut Runner<'_>, experiment: Experiment, seeds: u64) -> Result<[f64; 5], ReproduceError> {
    runner.means(experiment, seeds, |run, _| ORDERS.map(|name| runtime_s(run, name)))
}

fn runtime_s(run: &Run, job: &str) -> f64 {
    processes(run, job).map(|process| process.runtime_ns as f64 / 1e9).sum()
}

/// The experiment with one of its jobs alone.
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
