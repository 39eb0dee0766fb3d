//! Kills databases that commit through `hoistway mount`, and the mount with them: `cargo xtask
//! crash-test --of mount --clients postgres|sqlite [--rounds N] [--seed N]`. Requires root.
//!
//! Before the rounds proper the same is done over disks with planted faults until a loss is found:
//! a test that cannot fail proves nothing.

use std::process::ExitCode;
use std::time::Instant;

use hoistway_reactor::simulated::Prng;
use hoistway_simulation::crash::databases::{Crash, DatabaseKind, Round, RoundError, TestBed};
use hoistway_simulation::crash::forgetting::Fault;
use hoistway_simulation::crash::{CrashOptions, exit_code};

/// The maximum number of crashes until a fault must be detected.
const FAULT_ROUNDS_MAX: u64 = 30;

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    exit_code(run())
}

struct Options {
    shared: CrashOptions,
    databases: &'static [DatabaseKind],
}

impl Options {
    fn parse() -> Result<Options> {
        let mut databases: &'static [DatabaseKind] = &[];
        let shared = CrashOptions::parse(std::env::args().skip(1), &["--clients"], |word, value| {
            databases = match (word, value) {
                ("--clients", "postgres") => &[DatabaseKind::Postgres],
                ("--clients", "sqlite") => &[DatabaseKind::SqliteWal, DatabaseKind::SqliteDelete],
                ("--clients", _) => return Err(format!("--clients {value:?}: there are postgres and sqlite")),
                _ => return Ok(false),
            };
            Ok(true)
        })?;
        if databases.is_empty() { Err("--clients is missing".into()) } else { Ok(Options { shared, databases }) }
    }
}

fn run() -> Result<()> {
    let options = Options::parse()?;
    for kind in options.databases {
        if let Some(program) = kind.missing_program() {
            return Err(format!("{kind:?} needs the program {program}"));
        }
        let faults: &[Fault] = match kind {
            // The commit is the removal of the journal.
            DatabaseKind::SqliteDelete => &[Fault::Fsync, Fault::DirectorySync],
            DatabaseKind::Postgres | DatabaseKind::SqliteWal => &[Fault::Fsync],
        };
        for fault in faults {
            detect_fault(*kind, *fault, &options)?;
        }
        crash(*kind, &options)?;
    }
    Ok(())
}

/// Crashes over a disk with a fault, until something is lost.
fn detect_fault(kind: DatabaseKind, fault: Fault, options: &Options) -> Result<()> {
    let mut bed = TestBed::new(&options.shared.hoistway, kind, options.shared.seed)?;
    bed.plant(fault);
    for number in 0..FAULT_ROUNDS_MAX {
        let mut prng = Prng::new(options.shared.seed.wrapping_mul(7_000_003) ^ number);
        let round = Round { crash: Crash::Power, ..Round::new(number, &mut prng) };
        match bed.play(round, &mut prng) {
            Ok(()) => {}
            Err(RoundError::Loss(loss)) => {
                let loss = loss.lines().next().unwrap_or_default();
                println!("{kind:?}: a disk with the fault {fault:?} is detected by crash {}: {loss}", number + 1);
                return Ok(());
            }
            Err(RoundError::Other(other)) => return Err(format!("{kind:?}, {fault:?}: {other}")),
        }
    }
    Err(format!("{kind:?}: {FAULT_ROUNDS_MAX} crashes over a disk with the fault {fault:?}, and nothing was missing"))
}

/// Crashes over a sound disk. A round with a loss is followed by a new database.
fn crash(kind: DatabaseKind, options: &Options) -> Result<()> {
    let began = Instant::now();
    let mut bed = TestBed::new(&options.shared.hoistway, kind, options.shared.seed)?;
    let (mut lost, mut acknowledged, mut power_failures, mut mount_kills) = (0, 0, 0, 0);
    for number in 0..options.shared.rounds {
        let mut prng = Prng::new(options.shared.seed.wrapping_mul(1_000_003) ^ number);
        let round = Round::new(number, &mut prng);
        let outcome = bed.play(round, &mut prng);
        let is_last = number + 1 == options.shared.rounds;
        if is_last || outcome.is_err() {
            let counts = bed.counts();
            acknowledged += counts.acknowledged;
            power_failures += counts.power_failures;
            mount_kills += counts.mount_kills;
        }
        match outcome {
            Ok(()) => {}
            Err(RoundError::Loss(loss)) => {
                eprintln!("{kind:?}: round {number} ({round:?}): {loss}");
                lost += 1;
                bed = TestBed::new(&options.shared.hoistway, kind, options.shared.seed)?;
            }
            Err(RoundError::Other(other)) => return Err(format!("{kind:?}: round {number} ({round:?}): {other}")),
        }
    }
    println!(
        "{kind:?}: {} rounds in {:.1} s, {power_failures} power failures, {mount_kills} kills of the mount alone \
         with the database: {acknowledged} commits acknowledged; {lost} rounds with a loss",
        options.shared.rounds,
        began.elapsed().as_secs_f64(),
    );
    if lost > 0 { Err(format!("{kind:?}: {lost} of {} rounds lost data", options.shared.rounds)) } else { Ok(()) }
}
