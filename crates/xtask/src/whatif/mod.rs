//! How good the predictions of `hoistway trace whatif` are: workloads are recorded under one elevator, the others are predicted from that, and then run.

mod page;
mod pairs;
pub(crate) mod real;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tools::{self, cargo};
use pairs::{Case, Summary};

/// What is asked for.
struct Options {
    /// Seeds that were never used while predictions were made better: those of development are below 110.
    seeds: (u64, u64),
    seconds: u64,
    /// How long a run in real time is; 0: none.
    real_seconds: u64,
    write: bool,
    /// What `recorded_clients quality` printed for these seeds and seconds, instead of running it again.
    from: Option<PathBuf>,
}

/// Measures, writes docs/whatif.md if told to, and fails if a goal is missed.
pub fn run(words: &[&str]) -> Result<()> {
    let options = options(words)?;
    let programs = programs(options.real_seconds > 0)?;
    let cases = match &options.from {
        Some(file) => read(&std::fs::read_to_string(file).with_context(|| file.display().to_string())?)?,
        None => virtual_cases(&programs, &options)?,
    };
    let real = if options.real_seconds > 0 { real::cases(&programs, options.real_seconds)? } else { Vec::new() };
    let (told, fitted): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.drive == "told");
    let goals = page::goals(&Summary::of(&told));
    for goal in &goals {
        println!("{}: {} ({})", goal.text, goal.found, if goal.holds { "yes" } else { "NO" });
    }
    if options.write {
        page::write(&page::Measured {
            told,
            fitted,
            real,
            goals: &goals,
            seconds: options.seconds,
            seeds: options.seeds,
            real_seconds: options.real_seconds,
        })?;
    }
    match goals.iter().all(|goal| goal.holds) {
        true => Ok(()),
        false => bail!("a goal is missed"),
    }
}

/// What is run.
pub struct Programs {
    pub(crate) clients: PathBuf,
    pub(crate) hoistway: PathBuf,
}

/// Builds them.
pub(crate) fn programs(with_server: bool) -> Result<Programs> {
    tools::run(cargo().args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "hoistway-serve",
        "--example",
        "recorded_clients",
    ]))?;
    if with_server {
        tools::run(cargo().args(["build", "--quiet", "--release", "-p", "hoistway-cli"]))?;
    }
    let folder = tools::target_directory()?.join("release");
    Ok(Programs { clients: folder.join("examples/recorded_clients"), hoistway: folder.join("hoistway") })
}

fn virtual_cases(programs: &Programs, options: &Options) -> Result<Vec<Case>> {
    let (from, to) = options.seeds;
    let mut command = std::process::Command::new(&programs.clients);
    command.args(["quality", "--seeds", &format!("{from}-{to}"), "--seconds", &options.seconds.to_string()]);
    read(&tools::output(&mut command)?)
}

fn read(text: &str) -> Result<Vec<Case>> {
    let document: Value = serde_json::from_str(text).context("what recorded_clients prints")?;
    document.as_array().context("an array of cases")?.iter().map(Case::read).collect()
}

fn options(words: &[&str]) -> Result<Options> {
    let mut options = Options { seeds: (111, 116), seconds: 180, real_seconds: 20, write: false, from: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if *word == "--write" {
            options.write = true;
            continue;
        }
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().with_context(|| format!("{word} is `{value}`: it takes a number"));
        match *word {
            "--seeds" => {
                let (from, to) =
                    value.split_once('-').with_context(|| format!("{word} is `{value}`: it takes FROM-TO"))?;
                options.seeds = (from.parse()?, to.parse()?);
            }
            "--seconds" => options.seconds = number()?,
            "--from" => options.from = Some(value.into()),
            "--real-seconds" => options.real_seconds = number()?,
            _ => bail!(
                "{word} is not known: there are --seeds FROM-TO, --seconds S, --real-seconds S (0: none), --from FILE and --write"
            ),
        }
    }
    Ok(options)
}
