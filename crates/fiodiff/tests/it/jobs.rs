//! A fixed number of generated jobs. Without fio, the test is skipped with a message.

use hoistway_fiodiff::{Extent, run, version};

/// The jobs of each test run have the seeds 1 to this.
const JOBS: u64 = 200;

const NORMAL: &str = "the spread of `random_distribution=normal`";
const PASSES: &str = "`loops` of passes that end within a file, and their syncs";
const TRIMS: &str = "`trimwrite` and `randtrimwrite` with several files, an alignment or loops";
const OPEN_FILES: &str = "the turns of files with `openfiles`";
const RUNS: &str =
    "runs at random offsets (`randwrite:4`) of mixed jobs and on several files, and at the end of a file";
const MIXED_FILES: &str = "the turns of files with `rw=rw`";
const STEPS: &str = "steps (`read:-16k`) with an offset, and steps of trims";
const ZONED: &str = "`random_distribution=zoned` and `zoned_abs` on several files, and with trims";
const WEIGHTS: &str = "files drawn by zipf and pareto";
const REPORTED_SYNCS: &str = "the syncs that fio reports with `verify` and with `fsync_on_close`";
const FREE_BLOCKS: &str = "the bytes of random requests whose sizes are no multiples of the smallest (`bsrange=2k-3k`)";

/// Seeds whose jobs are known to differ, and in what. docs/job-files.md states the same.
const KNOWN: &[(u64, &str)] = &[
    (29, NORMAL),
    (45, PASSES),
    (47, TRIMS),
    (52, TRIMS),
    (54, TRIMS),
    (67, OPEN_FILES),
    (79, RUNS),
    (80, REPORTED_SYNCS),
    (87, STEPS),
    (102, STEPS),
    (110, PASSES),
    (111, FREE_BLOCKS),
    (121, ZONED),
    (126, RUNS),
    (127, WEIGHTS),
    (129, ZONED),
    (150, REPORTED_SYNCS),
    (159, WEIGHTS),
    (161, MIXED_FILES),
    (167, RUNS),
    (168, REPORTED_SYNCS),
    (171, TRIMS),
    (175, RUNS),
    (180, PASSES),
    (182, WEIGHTS),
    (189, FREE_BLOCKS),
    (192, REPORTED_SYNCS),
];

#[test]
fn generated_jobs_mean_the_same_to_fio_and_to_hoistway() {
    if version().is_none() {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
        return;
    }
    let left_out = KNOWN.iter().map(|(seed, _)| *seed).collect();
    let extent = Extent { seed: 1, count: JOBS, left_out, time: None, keep: None };
    let outcome = run(&extent, &mut |_| {}).expect("fio runs");
    let shown: Vec<String> =
        outcome.differences.iter().map(|one| format!("{}: {}\n{}", one.seed, one.text, one.job)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    let jobs = JOBS - KNOWN.len() as u64;
    assert!(outcome.compared >= jobs * 4 / 5, "{} compared: {outcome:?}", outcome.compared);
}
