//! The requests, and how choices become the request of a comparison.

use std::io;

use hoistway_compare::{CompareChoices, CompareDefaults, CompareSetup, HostChoice, Named, Shortening};
use hoistway_drive::Profile;
use hoistway_fio::Diagnostics;
use hoistway_sim::{Kernel, Setting};
use serde::Deserialize;

use super::Problem;

/// A request.
#[derive(Debug)]
pub(super) enum Request {
    /// The choices that a visitor has.
    Catalogue,
    /// A comparison.
    Compare(Choices),
    /// The film of the first elevator.
    Film(Choices, FilmRange),
}

/// The fields of a request besides its choices.
#[derive(Debug, Deserialize)]
struct Head {
    kind: RequestKind,
    film: Option<FilmRange>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RequestKind {
    Catalogue,
    Compare,
    Film,
}

impl Request {
    /// Parses a request in JSON. Head and choices are read one after the other, because a form in
    /// which serde reads both at once takes four times the code.
    ///
    /// # Errors
    /// serde_json's errors, and a missing window of a film.
    pub(super) fn parse(text: &str) -> Result<Request, Problem> {
        let head: Head = parse(text)?;
        match (head.kind, head.film) {
            (RequestKind::Catalogue, _) => Ok(Request::Catalogue),
            (RequestKind::Compare, _) => Ok(Request::Compare(parse(text)?)),
            (RequestKind::Film, Some(film)) => Ok(Request::Film(parse(text)?, film)),
            (RequestKind::Film, None) => Err(Problem::new("the request: missing field `film`")),
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| Problem::new(format!("the request: {error}")))
}

/// The window of a film, in seconds of virtual time.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct FilmRange {
    /// The start.
    #[serde(default)]
    pub from_s: f64,
    /// The length.
    pub length_s: f64,
}

/// The choices of a visitor: the options of `hoistway compare` under their names, in their written
/// forms.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Choices {
    /// The text of the job file.
    pub job: String,
    /// The name of the job file.
    pub name: Option<String>,
    /// The name of a built-in drive.
    pub drive: Option<String>,
    /// The elevators.
    pub elevators: Vec<String>,
    /// The tunables, `cfq-v3.slice_idle=0`.
    pub set: Vec<String>,
    /// The kernel of the host, or `own`.
    pub kernel: Option<String>,
    /// The seed; 1 without it.
    pub seed: Option<u64>,
    /// The number of seeds.
    pub seeds: Option<u32>,
    /// The longest runtime of a job.
    pub runtime: Option<String>,
    /// The part of each job.
    pub scale: Option<f64>,
}

impl Choices {
    /// The setup of the comparison; with `record`, head positions and slices are recorded.
    pub(super) fn setup(self, record: bool) -> Result<CompareSetup, Problem> {
        let name = self.name.unwrap_or_else(|| "playground.fio".to_owned());
        let no_includes = |path: &str, _: &str| {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("{path}: the playground has no files")))
        };
        let jobs = hoistway_fio::parse(&self.job, &name, &|_| None, &no_includes).map_err(faults)?;
        let option = |name: &'static str| move |problem: String| Problem::new(format!("--{name} {problem}"));
        let choices = CompareChoices {
            job: name,
            defaults: CompareDefaults::without_machine(&jobs),
            jobs,
            shortening: Shortening {
                runtime_ns: self
                    .runtime
                    .map(|text| Shortening::parse_runtime(&text))
                    .transpose()
                    .map_err(option("runtime"))?,
                scale: self
                    .scale
                    .map(|scale| Shortening::parse_scale(&scale.to_string()))
                    .transpose()
                    .map_err(option("scale"))?,
            },
            drive: self.drive.as_deref().map(Profile::choose_builtin).transpose().map_err(Problem::new)?,
            elevators: self
                .elevators
                .iter()
                .map(|name| Named::parse(name))
                .collect::<Result<_, _>>()
                .map_err(option("elevators"))?,
            settings: self
                .set
                .iter()
                .map(|text| Setting::parse_argument(text))
                .collect::<Result<_, _>>()
                .map_err(option("set"))?,
            host: self
                .kernel
                .map_or(Ok(HostChoice::Default), |name| HostChoice::parse(&name))
                .map_err(option("kernel"))?,
            seed: self.seed.unwrap_or(1),
            record,
        };
        CompareSetup::new(choices).map_err(option("elevators"))
    }
}

fn faults(faults: Diagnostics) -> Problem {
    let line = faults.0.first().map(|first| first.line).filter(|line| *line > 0);
    Problem { message: faults.to_string(), line }
}

/// The names of the hosts, as `--kernel` takes them.
pub(super) fn hosts() -> Vec<&'static str> {
    Kernel::ALL.iter().map(|kernel| kernel.name()).chain(["own"]).collect()
}
