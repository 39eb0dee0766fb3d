//! A fixed number of generated jobs. Without fio, the test is skipped with a message.

use hoistway_fiodiff::{Extent, run, version};

/// The jobs of each test run have the seeds 1 to this.
const JOBS: u64 = 200;

const NORMAL: &str = "the spread of `random_distribution=normal`";
const PASSES: &str = "`loops` of passes that end within a file, and their syncs";
const TRIMS: &str = "`trimwrite` and `randtrimwrite` on several files";
const OPEN_FILES: &str = "the turns of files with `openfiles`";
const RUNS: &str =
    "runs at random offsets (`randwrite:4`) of mixed jobs and on several files, and at the end of a file";
const VERIFICATION: &str = "the order of `verify` in a file of unknown size";
const STEPS: &str = "steps (`read:-16k`) with an offset, and steps of trims";
const ZONED: &str = "`random_distribution=zoned` and `zoned_abs` on several files, and with trims";
const WEIGHTS: &str = "files drawn by zipf and pareto";
const LAST_SYNC: &str = "a sync after the last write of a verified job";
const FREE_BLOCKS: &str = "random requests of different sizes at the end of a file";

/// Seeds whose jobs are known to differ, and in what. docs/job-files.md states the same.
const KNOWN: &[(u64, &str)] = &[
    (29, NORMAL),
    (45, PASSES),
    (47, TRIMS),
    (52, TRIMS),
    (54, TRIMS),
    (67, OPEN_FILES),
    (79, RUNS),
    (80, VERIFICATION),
    (87, STEPS),
    (102, STEPS),
    (110, PASSES),
    (111, PASSES),
    (121, ZONED),
    (126, RUNS),
    (127, WEIGHTS),
    (129, ZONED),
    (150, LAST_SYNC),
    (159, WEIGHTS),
    (161, PASSES),
    (167, RUNS),
    (168, LAST_SYNC),
    (171, TRIMS),
    (175, RUNS),
    (180, PASSES),
    (182, WEIGHTS),
    (189, FREE_BLOCKS),
    (192, LAST_SYNC),
];

#[test]
fn generated_jobs_mean_the_same_to_fio_and_to_hoistway() {
    if version().is_none() {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
        return;
    }
    let (mut compared, mut shown) = (0, Vec::new());
    let mut first = 1;
    for next in KNOWN.iter().map(|(seed, _)| *seed).chain([JOBS + 1]) {
        let extent = Extent { seed: first, count: next - first, time: None, keep: None };
        let outcome = run(&extent, &mut |_| {}).expect("fio runs");
        compared += outcome.compared;
        shown.extend(outcome.differences.iter().map(|one| format!("{}: {}\n{}", one.seed, one.text, one.job)));
        first = next + 1;
    }
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    assert!(compared >= (JOBS - KNOWN.len() as u64) * 4 / 5, "{compared} compared");
}
