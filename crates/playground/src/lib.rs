//! The simulator for a browser: a request as JSON in, an answer as JSON out.
//!
//! [`answer`] is the whole library. A request is an object with a `kind`:
//!
//! - `catalogue`: the drives, the elevators with their tunables, the hosts, the example jobs
//! - `compare`: a job under several elevators; `document` of the answer is the text that
//!   `hoistway compare --json` prints for the same choices, byte for byte
//! - `film`: every step of the requests of one elevator in a window of time
//!
//! The answer is `{"ok": ...}` or `{"error": {"message", "line"}}`, with the texts of the command.
//!
//! # The ABI of the module
//!
//! `hoistway.wasm` exports its memory and, from `abi.rs`:
//!
//! - `hoistway_alloc(bytes) -> address`: memory for a request
//! - `hoistway_free(address, bytes)`: releases a request or an answer
//! - `hoistway_call(address, bytes) -> (address << 32) | bytes`: answers the UTF-8 request; the
//!   answer belongs to the caller
//!
//! It imports one function, `hoistway.progress(share, virtual_s)`: the part of all runs that is
//! done, 0 to 1, and the virtual time of the current run in seconds.
//!
//! # Where to change
//!
//! - a field of a request: `request.rs`
//! - an example job: `examples.rs`
//! - the series of charts: `charts.rs`

mod abi;
mod charts;
mod examples;
mod request;

use hoistway_compare::{
    Compared, ComparisonDocument, DocumentContext, Judgement, KERNEL_SCHEDULERS, RunShares, legends,
};
use hoistway_core::Kind;
use hoistway_drive::DriveList;
use hoistway_sim::{ElevatorList, FilmWindow, Progress};
use serde::Serialize;

use charts::Charts;
use examples::{EXAMPLES, Example};
pub use request::Choices;
use request::{FilmRange, Request};

/// Memory that the runs of a comparison may use, as a 32-bit module has it.
const MEMORY_BYTES: u64 = 2 << 30;
/// The maximum number of steps of a film.
const STEPS_MAX: usize = 20_000;

/// An error, in the words of the command.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// The message; several lines if a job file has several errors.
    pub message: String,
    /// The line of the job file, from 1; absent if the error is not about a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Problem {
    fn new(message: impl ToString) -> Problem {
        Problem { message: message.to_string(), line: None }
    }
}

/// The choices that a visitor has.
#[derive(Serialize)]
struct Catalogue {
    version: &'static str,
    drives: DriveList,
    elevators: ElevatorList,
    /// The names of the schedulers of Linux 6.
    current: Vec<&'static str>,
    hosts: Vec<&'static str>,
    examples: &'static [Example],
}

/// The answer of a comparison.
#[derive(Serialize)]
struct ComparisonAnswer<'a> {
    /// The text of `hoistway compare --json`.
    document: String,
    /// The name of the job, and the host in words.
    job: &'a str,
    host: &'a str,
    /// The settings in words.
    settings: &'a [String],
    /// The legends of the tables.
    legend: String,
    jobs_legend: String,
    charts: Charts,
}

/// Answers a request, both in JSON. `progress` gets the part of all runs that is done and the
/// virtual time of the current run in seconds.
pub fn answer(request: &str, progress: &(dyn Fn(f64, f64) + Sync)) -> String {
    let (key, value) = match respond(request, progress) {
        Ok(value) => ("ok", Ok(value)),
        Err(problem) => ("error", serde_json::to_string(&problem)),
    };
    // Texts and numbers always have a form in JSON.
    let value = value.unwrap_or_else(|_| r#"{"message":"the answer has no JSON form"}"#.to_owned());
    format!(r#"{{"{key}":{value}}}"#)
}

/// The answer to a request, as JSON.
fn respond(request: &str, progress: &(dyn Fn(f64, f64) + Sync)) -> Result<String, Problem> {
    match Request::parse(request)? {
        Request::Catalogue => serde_json::to_string(&catalogue()).map_err(Problem::new),
        Request::Compare(choices) => compare(choices, progress),
        Request::Film(choices, film) => serde_json::to_string(&self::film(choices, film)?).map_err(Problem::new),
    }
}

fn catalogue() -> Catalogue {
    Catalogue {
        version: env!("CARGO_PKG_VERSION"),
        drives: DriveList::builtin(),
        elevators: ElevatorList::new(Kind::ALL),
        current: KERNEL_SCHEDULERS.map(|kind| kind.info().name).to_vec(),
        hosts: request::hosts(),
        examples: &EXAMPLES,
    }
}

fn compare(choices: Choices, progress: &(dyn Fn(f64, f64) + Sync)) -> Result<String, Problem> {
    let (setup, compared, judgement) = run(choices, progress)?;
    let comparison = &compared.comparison;
    let answer = ComparisonAnswer {
        document: document(&setup, &compared, &judgement)?,
        job: &setup.job,
        host: &setup.host,
        settings: &setup.settings,
        legend: legends::table(comparison, &judgement, "One stream alone"),
        jobs_legend: legends::jobs(&judgement, 0),
        charts: Charts::of(comparison),
    };
    serde_json::to_string(&answer).map_err(Problem::new)
}

type Judged = (hoistway_compare::CompareSetup, Compared, Judgement);

fn run(choices: Choices, progress: &(dyn Fn(f64, f64) + Sync)) -> Result<Judged, Problem> {
    let (seeds, mut setup) = (choices.seeds.unwrap_or(1).max(1), choices.setup(true)?);
    let shares = RunShares::of_seeds(seeds);
    let report = |seed: u32, at: Progress| progress(shares.note(seed, at), at.now_ns as f64 / 1e9);
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let compared = Compared::run(&setup.request, seeds, Some(MEMORY_BYTES), &report, &|_, _| {}, &cancel);
    let mut compared = compared.map_err(Problem::new)?;
    compared.comparison.notes.append(&mut setup.notes);
    let judgement = Judgement::over_seeds(&compared.comparison, compared.seeds.as_ref());
    Ok((setup, compared, judgement))
}

/// The text that `hoistway compare --json` prints.
fn document(
    setup: &hoistway_compare::CompareSetup,
    compared: &Compared,
    judgement: &Judgement,
) -> Result<String, Problem> {
    let context = DocumentContext::new(setup, compared);
    let document = ComparisonDocument::new(&compared.comparison, judgement, &context);
    Ok(serde_json::to_string_pretty(&document).map_err(Problem::new)? + "\n")
}

fn film(choices: Choices, range: FilmRange) -> Result<hoistway_sim::Film, Problem> {
    let setup = choices.setup(true)?;
    let ns = |s: f64| (s.max(0.0) * 1e9) as u64;
    let from_ns = ns(range.from_s);
    let until_ns = from_ns.saturating_add(ns(range.length_s));
    hoistway_sim::film(&setup.request, FilmWindow { from_ns, until_ns, steps: STEPS_MAX }).map_err(Problem::new)
}
