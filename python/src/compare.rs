//! Comparisons of elevators.

use std::path::PathBuf;
use std::sync::Mutex;

use hoistway_advise::device_facts::device_defaults;
use hoistway_compare::{
    CompareChoices, CompareError, CompareSetup, Compared, ComparisonDocument, DocumentContext, HostChoice, JobRun,
    Judgement, Named, RunShares, Shortening, page,
};
use hoistway_machine::{Root, available_bytes};
use hoistway_report::compare_page;
use hoistway_sim::{HostConfig, Run, Setting, SimError};
use hoistway_sweep::{Cells, Column, job_figures, run_figures};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::custom::take_exception;
use crate::drive::Drive;
use crate::error::{HoistwayError, failed, wrong_argument};
use crate::job::JobFile;
use crate::json::to_python;
use crate::table::Table;
use crate::work;

/// The result of a comparison.
#[pyclass(frozen, module = "hoistway")]
#[derive(Debug)]
pub struct Comparison {
    setup: CompareSetup,
    compared: Compared,
    judgement: Judgement,
    /// The runs of the seeds beyond the first.
    more: Vec<(u64, Vec<Run>)>,
}

/// The choices of a comparison, in Python's types.
#[derive(FromPyObject)]
pub struct Choices {
    drive: Option<Drive>,
    elevators: Vec<String>,
    settings: Vec<String>,
    kernel: Option<String>,
    host: Option<PathBuf>,
    seed: u64,
    seeds: u32,
    runtime: Option<String>,
    scale: Option<f64>,
    record: bool,
}

impl Choices {
    fn setup(self, job: &JobFile) -> PyResult<CompareSetup> {
        let parsed = self.elevators.iter().map(|name| Named::parse(name)).collect::<Result<_, _>>();
        let settings = self.settings.iter().map(|text| Setting::parse_argument(text)).collect::<Result<_, _>>();
        let scale = self.scale.map(|scale| Shortening::parse_scale(&scale.to_string())).transpose();
        let jobs = job.jobs()?;
        let choices = CompareChoices {
            job: job.source.file_name().to_owned(),
            defaults: device_defaults(&Root::machine(), &jobs),
            jobs,
            shortening: Shortening {
                runtime_ns: self
                    .runtime
                    .map(|text| Shortening::parse_runtime(&text))
                    .transpose()
                    .map_err(|error| wrong_argument(format!("runtime: {error}")))?,
                scale: scale.map_err(|error| wrong_argument(format!("scale: {error}")))?,
            },
            drive: self.drive.map(|drive| drive.profile),
            elevators: parsed.map_err(wrong_argument)?,
            settings: settings.map_err(wrong_argument)?,
            host: match (self.host, self.kernel) {
                (Some(_), Some(_)) => return Err(wrong_argument("host and kernel exclude each other")),
                (Some(path), None) => {
                    let host = HostConfig::load(&path).map_err(failed)?;
                    HostChoice::Config(path.display().to_string(), Box::new(host))
                }
                (None, Some(name)) => HostChoice::parse(&name).map_err(wrong_argument)?,
                (None, None) => HostChoice::Default,
            },
            seed: self.seed,
            record: self.record,
        };
        CompareSetup::new(choices).map_err(|error| wrong_argument(format!("elevators {error}")))
    }
}

/// Compares elevators.
#[pyfunction]
pub fn compare(py: Python<'_>, job: &JobFile, choices: Choices, progress: bool) -> PyResult<Comparison> {
    let seeds = choices.seeds;
    let mut setup = choices.setup(job)?;
    let more = Mutex::new(Vec::new());
    let compared = work::run(py, "simulating", progress, |control| {
        let shares = RunShares::of_seeds(seeds);
        let each = |seed: u64, runs: &[Run]| more.lock().map(|mut more| more.push((seed, runs.to_vec()))).unwrap_or(());
        Compared::run(
            &setup.request,
            seeds,
            available_bytes(&Root::machine()),
            &|seed, at| control.set_share(shares.note(seed, at)),
            &each,
            &control.cancel,
        )
    })?;
    let mut compared = compared.map_err(|error| match error {
        CompareError::Simulation(error) => simulation_error(error),
        error => failed(error),
    })?;
    compared.comparison.notes.append(&mut setup.notes);
    let judgement = Judgement::over_seeds(&compared.comparison, compared.seeds.as_ref());
    Ok(Comparison { setup, compared, judgement, more: more.into_inner().unwrap_or_default() })
}

/// Converts an error of a simulation; that of a cancelled one is `KeyboardInterrupt`.
pub fn simulation_error(error: SimError) -> PyErr {
    match error {
        SimError::Cancelled => PyKeyboardInterrupt::new_err(()),
        SimError::Violation { failure: Some(ref failure), elevator, seed, ref violation } => {
            let note = format!("in elevator `{elevator}` with seed {seed}: {violation}");
            take_exception(failure, &note).unwrap_or_else(|| failed(error))
        }
        error @ (SimError::SettingUnused { .. } | SimError::TunableValue { .. }) => wrong_argument(error),
        error => failed(error),
    }
}

impl Comparison {
    /// All runs with their seeds, by seed and elevator.
    fn runs(&self) -> Vec<(u64, &Run)> {
        let first = self.compared.comparison.runs.iter().map(|run| (self.compared.comparison.seed, run));
        first.chain(self.more.iter().flat_map(|(seed, runs)| runs.iter().map(|run| (*seed, run)))).collect()
    }
}

/// The columns that name a run.
pub fn run_names<'a>(runs: impl Iterator<Item = (u64, &'a str)> + Clone) -> Vec<Column> {
    let names = runs.clone().map(|(_, name)| Some(name.to_owned())).collect();
    let seeds = runs.map(|(seed, _)| i64::try_from(seed).ok()).collect();
    vec![
        Column { name: "elevator".to_owned(), cells: Cells::Text(names) },
        Column { name: "seed".to_owned(), cells: Cells::Int(seeds) },
    ]
}

#[pymethods]
impl Comparison {
    /// The figures: a row for each elevator and seed.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let runs = self.runs();
        let mut columns = run_names(runs.iter().map(|(seed, run)| (*seed, run.elevator.as_str())));
        columns.extend(run_figures(&runs.iter().map(|(_, run)| Some(*run)).collect::<Vec<_>>()));
        Table::new(columns)
    }

    /// The figures of the jobs: a row for each elevator, seed and job.
    #[getter]
    fn jobs(&self) -> PyResult<Table> {
        let runs = self.runs();
        let of_run = |(seed, run): &(u64, &Run)| -> Vec<(u64, String, JobRun)> {
            JobRun::of_run(run).into_iter().map(|job| (*seed, run.elevator.clone(), job)).collect()
        };
        let rows: Vec<(u64, String, JobRun)> = runs.iter().flat_map(of_run).collect();
        let mut columns = run_names(rows.iter().map(|(seed, elevator, _)| (*seed, elevator.as_str())));
        let jobs = rows.iter().map(|(_, _, job)| Some(job.name.clone())).collect();
        columns.push(Column { name: "job".to_owned(), cells: Cells::Text(jobs) });
        columns.extend(job_figures(&rows.iter().map(|(_, _, job)| job).collect::<Vec<_>>()));
        Table::new(columns)
    }

    /// The verdict in a few sentences.
    #[getter]
    fn verdict(&self) -> String {
        self.judgement.verdict.text()
    }

    /// Notes on parts of the job file that were not simulated, and on failures.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.compared.comparison.notes.clone()
    }

    /// The number of simulated requests of the drive, those of the reference runs included.
    #[getter]
    fn simulated_requests(&self) -> u64 {
        self.compared.comparison.simulated_requests
    }

    /// Bytes a second of the first job's process alone.
    #[getter]
    fn single_stream_bytes_per_s(&self) -> f64 {
        self.compared.comparison.single_stream_bytes_per_s
    }

    /// The document that `hoistway compare --json` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let context = DocumentContext::new(&self.setup, &self.compared);
        to_python(py, &ComparisonDocument::new(&self.compared.comparison, &self.judgement, &context))
    }

    /// The page as a self-contained HTML document.
    fn html(&self) -> PyResult<String> {
        let CompareSetup { request, job, host, settings, .. } = &self.setup;
        let drive = hoistway_drive::describe(&request.profile).what;
        let page = page(&self.compared.comparison, &self.judgement, job, &drive, host, settings);
        compare_page(&page).map_err(|error| HoistwayError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("Comparison({:?} on {}, {})", self.setup.job, self.compared.comparison.drive, self.setup.host)
    }
}
