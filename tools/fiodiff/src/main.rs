//! The program of the crate: the task `fio-diff` of `cargo xtask`.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use hoistway_fiodiff::{Extent, Outcome, version};
use hoistway_workspace::tasks::{self, Program};

/// Options of the comparison with fio.
#[derive(clap::Args, Clone, Debug)]
struct Options {
    /// Seed of the first job; the next jobs have the next seeds
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of jobs
    #[arg(long, default_value_t = 1000, value_name = "N")]
    count: u64,
    /// Stop after this time; without --count there is no other limit
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Write the smallest job file of each difference to this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    FioDiff(Options),
}

fn main() -> ExitCode {
    tasks::main(Program::Fiodiff, |Task::FioDiff(options)| run(&options))
}

/// Compares jobs as the options say. Fails if a job differs.
fn run(options: &Options) -> Result<()> {
    let Some(version) = version() else { bail!("fio is not installed: apt-get install fio") };
    let time = options.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let count = if time.is_some() { u64::MAX } else { options.count };
    let extent = Extent { seed: options.seed, count, paced: true, time, keep: options.keep.clone() };
    println!("{version}, jobs from seed {}", options.seed);
    let mut shown = 0;
    let outcome = hoistway_fiodiff::run(&extent, &mut |outcome: &Outcome| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_tasks_of_the_list() {
        tasks::assert_consistent::<Task>(Program::Fiodiff);
    }
}
