//! The published results on eight competing readers (J. Axboe, "CFQ IO Scheduler", slides, 2006), with one drive and
//! one machine for all of them and nothing fitted to them but the drive's rate, which is the published single stream's.
//!
//! What is published for the anticipatory elevator's share and unfairness, and for deadline's greatest latency, is not
//! reproduced: the tests at the end say what comes out instead, and what deadline's share hangs on.

mod common;

use std::sync::OnceLock;

use common::{request, run};
use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, Comparison, HostConfig, Run};

const JOBS: &str = include_str!("../../../examples/competing-readers.fio");
const SEEDS: u64 = 5;

/// The same comparison with several seeds: each has a drive whose spindle is a little different.
fn comparisons() -> &'static [Comparison] {
    static RUNS: OnceLock<Vec<Comparison>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let kinds = [Kind::CfqV3, Kind::Anticipatory, Kind::Deadline];
        let of_seed = |seed| run(&CompareRequest { seed, ..request(JOBS, &kinds) }).expect("runs");
        (1..=SEEDS).map(of_seed).collect()
    })
}

/// The mean over the seeds.
fn mean(elevator: &str, of: impl Fn(&Run) -> f64) -> f64 {
    let values = comparisons().iter().map(|comparison| {
        of(comparison.runs.iter().find(|run| run.elevator == elevator).expect("the elevator was compared"))
    });
    values.sum::<f64>() / SEEDS as f64
}

fn near(what: &str, value: f64, published: f64, tolerance: f64) {
    assert!((value - published).abs() <= tolerance, "{what}: {value:.3}, published {published} +- {tolerance}");
}

#[test]
fn the_single_stream_runs_at_the_drive_s_rate() {
    for comparison in comparisons() {
        let rate = comparison.single_stream_bytes_per_s / 1e6;
        near("single stream, MB/s", rate, 63.5, 0.635);
    }
}

#[test]
fn shares_of_the_single_stream_are_as_published_and_in_the_published_order() {
    let percent = |elevator| mean(elevator, |run| run.of_single_stream * 100.0);
    near("cfq", percent("cfq-v3"), 94.9, 1.5);
    near("deadline", percent("deadline"), 31.0, 5.0);
    for comparison in comparisons() {
        let share = |index: usize| comparison.runs[index].of_single_stream;
        assert!(
            share(0) > share(1) && share(1) > share(2),
            "seed {}: {} {} {}",
            comparison.seed,
            share(0),
            share(1),
            share(2)
        );
    }
}

#[test]
fn cfq_moves_the_arm_once_a_slice_and_deadline_once_for_two_windows_of_read_ahead() {
    let bytes = |run: &Run| run.processes.iter().map(|process| process.bytes).sum::<u64>() as f64;
    // A slice of 100 ms ends between two requests.
    near("cfq, ms a turn", mean("cfq-v3", |run| run.runtime_ns as f64 / 1e6 / run.turns as f64), 101.0, 3.0);
    // Two windows of 128 KiB, merged; the first ones of a file are shorter.
    near("deadline, KiB a turn", mean("deadline", |run| bytes(run) / 1024.0 / run.turns as f64), 256.0, 3.0);
}

#[test]
fn spreads_and_runtimes_of_cfq_and_deadline_are_as_published() {
    let spread = |elevator| mean(elevator, |run| run.process_bytes_per_s.max / run.process_bytes_per_s.min);
    near("cfq, greatest by least", spread("cfq-v3"), 1.025, 0.02);
    near("deadline, greatest by least", spread("deadline"), 1.011, 0.02);
    near("cfq, runtime in s", mean("cfq-v3", |run| run.runtime_ns as f64 / 1e9), 17.8, 0.89);
    near("as, runtime in s", mean("anticipatory", |run| run.runtime_ns as f64 / 1e9), 18.5, 0.93);
}

#[test]
fn latencies_have_the_published_fingerprint() {
    // Published without a digit after the point; the tolerance is a fifth.
    let deviation_ms = |elevator| mean(elevator, |run| run.latency_ns.stddev / 1e6);
    near("cfq, deviation in ms", deviation_ms("cfq-v3"), 19.0, 3.8);
    near("as, deviation in ms", deviation_ms("anticipatory"), 17.0, 3.4);
    near("deadline, deviation in ms", deviation_ms("deadline"), 13.0, 2.6);
    let max_ms = |elevator| mean(elevator, |run| run.latency_ns.max as f64 / 1e6);
    near("cfq, greatest in ms", max_ms("cfq-v3"), 746.0, 112.0);
    near("as, greatest in ms", max_ms("anticipatory"), 890.0, 134.0);
}

#[test]
fn bandwidth_over_time_is_flat_under_cfq_and_noisier_under_the_anticipatory_elevator() {
    // Samples of at least 500 ms, taken when a request completes, after the first second: each spans a round of turns.
    let noise = |run: &Run| {
        let of_process = run.processes.iter().map(|process| {
            let late = process.samples.iter().filter(|sample| sample.at_ns > 2_000_000_000);
            let rates: Vec<f64> = late.map(|sample| sample.bytes_per_s as f64).collect();
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64).sqrt() / mean
        });
        of_process.sum::<f64>() / 8.0
    };
    let (cfq, anticipatory) = (mean("cfq-v3", noise), mean("anticipatory", noise));
    assert!(cfq <= 0.1, "cfq: {cfq}");
    assert!(anticipatory > 2.0 * cfq, "as: {anticipatory}, cfq: {cfq}");
}

#[test]
fn the_anticipatory_elevator_loses_less_and_is_fairer_than_published() {
    // Published: 91.2 % and 1.305. Turns end when a waiting request's time is over, every 125 ms, and hardly ever
    // before.
    near("as, percent", mean("anticipatory", |run| run.of_single_stream * 100.0), 94.7, 1.5);
    near(
        "as, greatest by least",
        mean("anticipatory", |run| run.process_bytes_per_s.max / run.process_bytes_per_s.min),
        1.08,
        0.06,
    );
}

#[test]
fn deadline_s_greatest_latency_is_a_round_of_eight_turns() {
    // Published: 240 ms, two rounds and a quarter. Nothing here makes a reader miss its turn.
    let rounds = |run: &Run| run.latency_ns.max as f64 / (8.0 * run.runtime_ns as f64 / run.turns as f64);
    near("deadline, rounds", mean("deadline", rounds), 1.05, 0.1);
}

#[test]
fn deadline_s_share_hangs_on_the_angle_between_files_and_cfq_s_does_not() {
    // Deadline's turns are all alike, so that the head comes to the next file at the same angle every time: side by
    // side, files of 128 MiB cost nearly a revolution. With up to 1 MiB between files it is half of one on average, and
    // the share rises.
    let host = HostConfig { file_gap_kib: 1024, ..HostConfig::default() };
    let kinds = [Kind::CfqV3, Kind::Deadline];
    let of_seed = |seed| run(&CompareRequest { seed, host: host.clone(), ..request(JOBS, &kinds) }).expect("runs");
    let apart: Vec<Comparison> = (1..=SEEDS).map(of_seed).collect();
    let share = |index: usize| {
        apart.iter().map(|comparison| comparison.runs[index].of_single_stream * 100.0).sum::<f64>() / SEEDS as f64
    };
    near("cfq", share(0), mean("cfq-v3", |run| run.of_single_stream * 100.0), 1.0);
    near("deadline", share(1), 43.0, 4.0);
}
