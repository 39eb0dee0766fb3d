//! `cargo xtask whatif`: the accuracy of the predictions of `hoistway trace whatif`. Workloads are
//! recorded under one elevator; the others are predicted from the recording, and then run:
//! docs/whatif.md.

mod page;
mod pairs;
pub(crate) mod real;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use hoistway_workspace::{cargo, programs};
use serde_json::Value;

use pairs::{Case, Summary};

/// Options of `cargo xtask whatif`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Seeds of the recorded workloads; seeds below 110 were used while the predictions were
    /// developed
    #[arg(long, default_value = "111-116", value_name = "FROM-TO", value_parser = seeds)]
    seeds: (u64, u64),
    /// Seconds of a recording, in virtual time
    #[arg(long, default_value_t = 180, value_name = "S")]
    seconds: u64,
    /// Seconds of a run in real time; 0 runs none
    #[arg(long, default_value_t = 20, value_name = "S")]
    real_seconds: u64,
    /// Number of times that each workload runs in real time
    #[arg(long, default_value_t = 3, value_name = "N")]
    real_rounds: u64,
    /// Microseconds by which each doubling of the machine's idle time delays the clients of a
    /// second series in virtual time; 0 runs none
    #[arg(long, default_value_t = 30, value_name = "US")]
    wake_us: u64,
    /// Write docs/whatif.md
    #[arg(long)]
    write: bool,
    /// Use this output of `recorded_clients quality`, for the same seeds and seconds, instead of
    /// running the program
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The same for the clients that wake up late: the output of `recorded_clients quality
    /// --wake-us`
    #[arg(long, value_name = "FILE")]
    wake_from: Option<PathBuf>,
    /// Use these cases in real time, in the form of the output of `recorded_clients quality`,
    /// instead of running them
    #[arg(long, value_name = "FILE")]
    real_from: Option<PathBuf>,
    /// A sentence for the page: when, and on what, the runs in real time were made
    #[arg(long, value_name = "TEXT", default_value = "")]
    real_note: String,
}

/// Parses `FROM-TO`.
fn seeds(text: &str) -> Result<(u64, u64)> {
    let (from, to) = text.split_once('-').context("the form is FROM-TO")?;
    Ok((from.parse()?, to.parse()?))
}

/// Measures, writes docs/whatif.md with `--write`, and fails if a goal is missed.
pub fn run(options: &Options) -> Result<()> {
    let runs_real = options.real_seconds > 0 && options.real_from.is_none();
    let runs_waking = options.wake_us > 0 && options.wake_from.is_none();
    let programs = if runs_real || runs_waking || options.from.is_none() { Some(programs(runs_real)?) } else { None };
    let made = |file: &Option<PathBuf>, run: &dyn Fn(&Programs) -> Result<Vec<Case>>| match (file, &programs) {
        (Some(file), _) => read(&std::fs::read_to_string(file).with_context(|| file.display().to_string())?),
        (None, Some(programs)) => run(programs),
        (None, None) => Ok(Vec::new()),
    };
    let cases = made(&options.from, &|programs| virtual_cases(programs, options, 0))?;
    let (given, fitted): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.drive == pairs::GIVEN);
    let mut waking = match options.wake_us {
        0 => Vec::new(),
        wake_us => made(&options.wake_from, &|programs| virtual_cases(programs, options, wake_us))?,
    };
    waking.retain(|case| case.drive == pairs::GIVEN);
    let real = match options.real_seconds {
        0 => Vec::new(),
        seconds => made(&options.real_from, &|programs| real::cases(programs, seconds, options.real_rounds))?,
    };
    let goals = page::goals(&Summary::of(&given));
    for goal in &goals {
        println!("{}: {} ({})", goal.text, goal.found, if goal.holds { "yes" } else { "NO" });
    }
    if options.write {
        page::write(&page::Measured {
            given,
            fitted,
            waking,
            real,
            goals: &goals,
            seconds: options.seconds,
            seeds: options.seeds,
            wake_us: options.wake_us,
            real_seconds: options.real_seconds,
            real_note: &options.real_note,
        })?;
    }
    match goals.iter().all(|goal| goal.holds) {
        true => Ok(()),
        false => bail!("a goal is missed"),
    }
}

/// The programs of the measurement.
pub struct Programs {
    pub(crate) clients: PathBuf,
    pub(crate) hoistway: PathBuf,
}

/// Builds the programs.
pub(crate) fn programs(with_server: bool) -> Result<Programs> {
    programs::run(cargo::command().args([
        "build",
        "--quiet",
        "--profile",
        "dist",
        "-p",
        "hoistway-record",
        "--example",
        "recorded_clients",
    ]))?;
    if with_server {
        cargo::packaged()?;
    }
    let folder = cargo::target_directory()?.join("dist");
    Ok(Programs { clients: folder.join("examples/recorded_clients"), hoistway: folder.join("hoistway") })
}

fn virtual_cases(programs: &Programs, options: &Options, wake_us: u64) -> Result<Vec<Case>> {
    let (from, to) = options.seeds;
    let mut command = std::process::Command::new(&programs.clients);
    command.args(["quality", "--seeds", &format!("{from}-{to}"), "--seconds", &options.seconds.to_string()]);
    command.args(["--wake-us", &wake_us.to_string()]);
    read(&programs::output(&mut command)?)
}

fn read(text: &str) -> Result<Vec<Case>> {
    let document: Value = serde_json::from_str(text).context("the output of recorded_clients")?;
    document.as_array().context("an array of cases")?.iter().map(Case::read).collect()
}
