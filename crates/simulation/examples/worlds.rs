//! Runs simulated worlds of the server: `cargo xtask worlds [--seeds N] [--from SEED] [--seed
//! SEED] [-v] [--sabotage KIND] [--jobs N]`.
//!
//! Without options it runs the seeds 0 to 9,999 on all cores. For a seed that fails it prints the
//! command that replays it. `--seed` runs one seed twice and compares; `-v` prints all events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use hoistway_reactor::simulated::Sabotage;
use hoistway_simulation::{Plan, WorldReport, play};

struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    verbose: bool,
    sabotage: Sabotage,
    jobs: usize,
    keep_going: bool,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!(
                "error: {what}\nusage: cargo xtask worlds [--seeds N] [--from SEED] [--seed SEED] [-v] [--sabotage KIND] [--jobs N] [-k]"
            );
            return ExitCode::FAILURE;
        }
    };
    std::panic::set_hook(Box::new(|_| {}));
    let well = match options.seed {
        Some(seed) => replay(seed, &options),
        None => all(&options),
    };
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let (sabotage, keep_going) = (Sabotage::None, false);
    let mut options = Options { seeds: 10_000, from: 0, seed: None, verbose: false, sabotage, jobs, keep_going };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().ok_or(format!("{argument} needs a number"))?;
            text.parse::<u64>().map_err(|_| format!("{argument} {text:?}: a number is needed"))
        };
        match argument.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--seed" => options.seed = Some(number()?),
            "--jobs" => options.jobs = number()?.max(1) as usize,
            "-v" => options.verbose = true,
            "-k" => options.keep_going = true,
            "--sabotage" => {
                let text = arguments.next().unwrap_or_default();
                let found = Sabotage::ALL.into_iter().find(|kind| format!("{kind:?}") == text);
                options.sabotage = found.ok_or(format!("--sabotage {text:?}: one of {:?}", Sabotage::ALL))?;
            }
            _ => return Err(format!("{argument:?} is no option")),
        }
    }
    Ok(options)
}

fn plan(seed: u64, options: &Options) -> Plan {
    Plan { sabotage: options.sabotage, ..Plan::new(seed) }
}

/// Runs a world. A panic is a violation.
fn played(plan: &Plan, verbose: bool) -> WorldReport {
    let outcome = catch_unwind(AssertUnwindSafe(|| play(plan, verbose)));
    outcome.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        WorldReport::unplayed(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn replay(seed: u64, options: &Options) -> bool {
    let plan = plan(seed, options);
    if options.verbose {
        // Print the messages of panics.
        let _ = std::panic::take_hook();
        print!("{plan}");
    }
    let outcome = played(&plan, options.verbose);
    for line in &outcome.log {
        println!("{line}");
    }
    let again = played(&plan, false);
    let summary = format!(
        "seed {seed}: {} events, {} requests answered, {} crashes, {:.3} s of virtual time, hash {:016x}",
        outcome.events,
        outcome.answered,
        outcome.crashes,
        outcome.ended_ns as f64 / 1e9,
        outcome.hash
    );
    println!("{summary}");
    if let Some(problem) = &outcome.problem {
        println!("seed {seed}: {problem}");
    }
    if again.hash != outcome.hash {
        println!("seed {seed}: two runs differ in their hashes: {:016x} and {:016x}", outcome.hash, again.hash);
    }
    outcome.problem.is_none() && again.hash == outcome.hash
}

fn all(options: &Options) -> bool {
    let next = AtomicU64::new(options.from);
    let stop = AtomicBool::new(false);
    let failed = Mutex::new(Vec::new());
    let [events, answered, crashes] = [0; 3].map(AtomicU64::new);
    let end = options.from.saturating_add(options.seeds);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let plan = plan(seed, options);
                    let outcome = played(&plan, false);
                    events.fetch_add(outcome.events, Ordering::Relaxed);
                    answered.fetch_add(outcome.answered, Ordering::Relaxed);
                    crashes.fetch_add(u64::from(outcome.crashes), Ordering::Relaxed);
                    // One world in ten runs twice: only a deterministic world can be replayed.
                    let differs = seed.is_multiple_of(10) && played(&plan, false).hash != outcome.hash;
                    let problem = outcome.problem.or(differs.then(|| "two runs differ in their hashes".to_owned()));
                    if let Some(problem) = problem {
                        println!("seed {seed}: {problem}\n  replay it: cargo xtask worlds --seed {seed} -v");
                        failed.lock().unwrap_or_else(|poison| poison.into_inner()).push(seed);
                        stop.fetch_or(!options.keep_going, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let played = next.load(Ordering::Relaxed).min(end) - options.from;
    let failed = failed.into_inner().unwrap_or_else(|poison| poison.into_inner());
    println!(
        "worlds: {played} seeds in {seconds:.1} s ({:.0} a second): {} events, {} requests answered, {} crashes, {} failed",
        played as f64 / seconds,
        events.into_inner(),
        answered.into_inner(),
        crashes.into_inner(),
        failed.len()
    );
    failed.is_empty()
}
