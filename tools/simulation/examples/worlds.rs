//! Runs simulated worlds of the server or the mount: `cargo xtask worlds [--of mount] [--seeds N]
//! [--from SEED] [--seed SEED] [-v] [--sabotage KIND] [--jobs N]`.
//!
//! Without options it runs the seeds 0 to 9,999 on all cores. For a seed that fails it prints the
//! command that replays it. `--seed` runs one seed twice and compares; `-v` prints all events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use hoistway_blockdev::remote::Sabotage as RemoteSabotage;
use hoistway_reactor::simulated::Sabotage;
use hoistway_simulation::{Plan, WorldReport, mount, play};

struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    verbose: bool,
    sabotage: Sabotage,
    remote_sabotage: RemoteSabotage,
    /// Worlds of the mount instead of the server.
    of_mount: bool,
    mount_sabotage: Option<mount::Sabotage>,
    jobs: usize,
    keep_going: bool,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!(
                "error: {what}\nusage: cargo xtask worlds [--of server|mount] [--seeds N] [--from SEED] [--seed SEED] [-v] [--sabotage KIND] [--jobs N] [-k]"
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
    let mut options = Options {
        seeds: 10_000,
        from: 0,
        seed: None,
        verbose: false,
        sabotage,
        remote_sabotage: RemoteSabotage::None,
        of_mount: false,
        mount_sabotage: None,
        jobs,
        keep_going,
    };
    let mut wanted = None;
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
            "--sabotage" => wanted = Some(arguments.next().unwrap_or_default()),
            "--of" => {
                options.of_mount = match arguments.next().as_deref() {
                    Some("mount") => true,
                    Some("server") => false,
                    other => return Err(format!("--of {:?}: server or mount", other.unwrap_or_default())),
                };
            }
            _ => return Err(format!("{argument:?} is no option")),
        }
    }
    if let Some(text) = wanted {
        options.set_sabotage(&text)?;
    }
    Ok(options)
}

impl Options {
    fn set_sabotage(&mut self, text: &str) -> Result<(), String> {
        if self.of_mount {
            let all = mount::Sabotage::ALL.map(|kind| kind.to_string());
            let found = mount::Sabotage::ALL.into_iter().find(|kind| kind.to_string() == text);
            self.mount_sabotage = Some(found.ok_or(format!("--sabotage {text:?}: one of {}", all.join(", ")))?);
        } else {
            let found = Sabotage::ALL.into_iter().find(|kind| format!("{kind:?}") == text);
            let of_remote = RemoteSabotage::ALL.into_iter().find(|kind| format!("{kind:?}") == text);
            if found.is_none() && of_remote.is_none() {
                let (engine, remote) = (Sabotage::ALL, RemoteSabotage::ALL);
                return Err(format!("--sabotage {text:?}: one of {engine:?}, {remote:?}"));
            }
            self.sabotage = found.unwrap_or_default();
            self.remote_sabotage = of_remote.unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the option that selects the kind of worlds, to replay one.
    fn of(&self) -> &'static str {
        if self.of_mount { "--of mount " } else { "" }
    }
}

/// A world of the server or of the mount.
enum WorldPlan {
    Server(Box<Plan>),
    Mount(Box<mount::MountPlan>),
}

impl std::fmt::Display for WorldPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WorldPlan::Server(plan) => plan.fmt(f),
            WorldPlan::Mount(plan) => plan.fmt(f),
        }
    }
}

fn plan(seed: u64, options: &Options) -> WorldPlan {
    if options.of_mount {
        let mut plan = mount::MountPlan::new(seed);
        plan.sabotage = options.mount_sabotage;
        return WorldPlan::Mount(Box::new(plan));
    }
    let (sabotage, remote_sabotage) = (options.sabotage, options.remote_sabotage);
    WorldPlan::Server(Box::new(Plan { sabotage, remote_sabotage, ..Plan::new(seed) }))
}

/// Runs a world. A panic is a violation.
fn played(plan: &WorldPlan, verbose: bool) -> WorldReport {
    let outcome = catch_unwind(AssertUnwindSafe(|| match plan {
        WorldPlan::Server(plan) => play(plan, verbose),
        WorldPlan::Mount(plan) => mount::play(plan, verbose),
    }));
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
                        println!(
                            "seed {seed}: {problem}\n  replay it: cargo xtask worlds {}--seed {seed} -v",
                            options.of()
                        );
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
