//! `cargo xtask fio-diff`: generated jobs, run by fio and by hoistway, and their differences.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use hoistway_fiodiff::{Extent, Outcome, run as run_jobs, version};

/// Options of the comparison with fio.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Seed of the first job; the next jobs have the next seeds
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of jobs
    #[arg(long, default_value_t = 1000, value_name = "N")]
    count: u64,
    /// Stop after this time; without --count, the number of jobs has no limit then
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Write the smallest job file of each difference to this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
}

/// Compares generated jobs for ten minutes.
///
/// # Errors
/// See [`run`].
pub fn ten_minutes() -> Result<()> {
    run(&Options { seed: 1, count: u64::MAX, minutes: Some(10), keep: None })
}

/// Compares jobs as the options say.
///
/// # Errors
/// fio is missing or cannot be started, or a job differs.
pub fn run(options: &Options) -> Result<()> {
    let Some(version) = version() else { bail!("fio is not installed: apt-get install fio") };
    let time = options.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let count = if time.is_some() { u64::MAX } else { options.count };
    let extent = Extent { seed: options.seed, count, time, keep: options.keep.clone() };
    println!("{version}, jobs from seed {}", options.seed);
    let mut shown = 0;
    let outcome = run_jobs(&extent, &mut |outcome: &Outcome| {
        for difference in &outcome.differences[shown..] {
            println!("seed {}: {}\n{}", difference.seed, difference.text, difference.job);
        }
        shown = outcome.differences.len();
    })?;
    print_messages("refused by hoistway", &outcome.refused);
    print_messages("refused by fio, or failed in it", &outcome.failed);
    println!("{} jobs compared, {} differ", outcome.compared, outcome.differences.len());
    match outcome.differences.is_empty() {
        true => Ok(()),
        false => bail!("{} jobs differ", outcome.differences.len()),
    }
}

/// Prints how many jobs were not compared, by the last line of the message.
fn print_messages(what: &str, jobs: &[(u64, String)]) {
    let mut kinds: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for (seed, message) in jobs {
        let text: String = message.chars().filter(|c| !c.is_ascii_digit()).collect();
        kinds.entry(text).or_insert((0, *seed)).0 += 1;
    }
    println!("{} jobs {what}", jobs.len());
    for (text, (count, seed)) in kinds {
        println!("  {count} such as seed {seed}: {}", text.trim().replace('\n', " "));
    }
}
