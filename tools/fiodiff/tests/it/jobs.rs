//! A fixed number of generated jobs. Without fio, the test is skipped with a message.

use hoistway_fiodiff::{Extent, run, version};

/// The jobs of each test run have the seeds 1 to this. Those with pauses, rates and times are left
/// to `cargo xtask fio-diff`.
const JOBS: u64 = 200;

#[test]
fn generated_jobs_without_a_clock_mean_the_same_to_fio_and_to_hoistway() {
    if version().is_none() {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
        return;
    }
    let extent = Extent { seed: 1, count: JOBS, paced: false, time: None, keep: None };
    let outcome = run(&extent, &mut |_| {}).expect("fio runs");
    let shown: Vec<String> =
        outcome.differences.iter().map(|one| format!("{}: {}\n{}", one.seed, one.text, one.job)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    assert!(outcome.compared >= JOBS / 2, "{} compared: {outcome:?}", outcome.compared);
}
