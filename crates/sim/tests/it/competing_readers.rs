//! The shares of eight competing readers, and the conditions on which they depend. The published
//! figures are rows S1-06 to S1-13 of `hoistway reproduce`.

use crate::common::{request, run};
use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, HostConfig};

const JOBS: &str = include_str!("../../../../examples/competing-readers.fio");
const SEEDS: u64 = 5;

/// The rate of the readers in percent of a single stream, under cfq-v3 and under deadline, with
/// gaps of up to `gap_kib` KiB between files.
fn shares(file_gap_kib: u64) -> [f64; 2] {
    let host = HostConfig { file_gap_kib, ..HostConfig::default() };
    let of_seed = |seed| {
        let request = request(JOBS, &[Kind::CfqV3, Kind::Deadline]);
        run(&CompareRequest { seed, host: host.clone(), ..request }).expect("runs")
    };
    let comparisons: Vec<_> = (1..=SEEDS).map(of_seed).collect();
    [0, 1].map(|index| {
        let shares = comparisons.iter().map(|comparison| comparison.runs[index].of_single_stream * 100.0);
        shares.sum::<f64>() / SEEDS as f64
    })
}

#[test]
fn the_share_of_deadline_depends_on_the_angle_between_files_and_that_of_cfq_does_not() {
    // Deadline's turns are all alike, so that the head comes to the next file at the same angle
    // every time: side by side, files of 128 MiB cost nearly a revolution. With up to 1 MiB between
    // files it is half of one on average, and the share rises.
    let ([cfq, deadline], [cfq_apart, deadline_apart]) = (shares(0), shares(1024));
    assert!((cfq - cfq_apart).abs() < 1.0, "cfq: {cfq} and {cfq_apart} %");
    assert!((39.0..47.0).contains(&deadline_apart), "deadline, apart: {deadline_apart} %");
    assert!(deadline_apart > deadline + 5.0, "deadline: {deadline} and {deadline_apart} %");
}
