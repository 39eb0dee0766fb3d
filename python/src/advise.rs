//! Advice on the scheduler of a drive.

use std::path::PathBuf;

use hoistway_advise::{
    AdviceReport, AdviseError, Answer, AnswerOptions, Case, CaseError, CaseRequest, ChangePlan, DriveChoice, Use,
    WorkloadSource,
};
use hoistway_report::sheet_page;
use hoistway_sim::HostConfig;
use hoistway_units::names::suggestion;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::drive::Drive;
use crate::error::{HoistwayError, failed, wrong_argument};
use crate::job::JobFile;
use crate::json::to_python;
use crate::trace::Trace;
use crate::whatif::trace_error;
use crate::work;

/// The answer of `hoistway advise` for a workload.
#[pyclass(frozen, module = "hoistway")]
pub struct Advice {
    case: Case,
    answer: Answer,
}

/// The choices of a request for advice, in Python's types.
#[derive(FromPyObject)]
pub struct Choices<'py> {
    job: Option<PyRef<'py, JobFile>>,
    trace: Option<PyRef<'py, Trace>>,
    #[pyo3(attribute("use_name"))]
    named_use: Option<String>,
    drive: Option<Drive>,
    host: Option<PathBuf>,
    objective: Option<String>,
    seeds: u32,
    seed: u64,
    all_schedulers: bool,
}

/// Advises a scheduler for a drive and a workload.
#[pyfunction]
pub fn advise(py: Python<'_>, choices: Choices<'_>, progress: bool) -> PyResult<Advice> {
    let workload = match (&choices.job, &choices.trace, &choices.named_use) {
        (Some(job), None, None) => WorkloadSource::Jobs { path: job.source.file_name().into(), jobs: job.jobs()? },
        (None, Some(trace), None) => WorkloadSource::Trace {
            name: trace.name().to_owned(),
            loaded: Box::new(trace.load(py, None)?),
            recorded_under: None,
        },
        (None, None, Some(name)) => WorkloadSource::Use(Use::from_name(name).ok_or_else(|| {
            let names = Use::ALL.map(Use::name);
            wrong_argument(format!("there is no use `{name}`{}", suggestion(name, names, "hoistway advise --help")))
        })?),
        _ => return Err(wrong_argument("advice needs one workload: a job file, a trace, or a use")),
    };
    let drive = choices.drive.as_ref().map(|drive| DriveChoice::Given(Box::new(drive.profile.clone())));
    let request = CaseRequest {
        subject: None,
        workload,
        drive: drive.unwrap_or(DriveChoice::Default),
        host: choices.host.as_deref().map(HostConfig::load).transpose().map_err(failed)?,
        objective: choices.objective.clone(),
    };
    let (seeds, seed, all_schedulers) = (choices.seeds, choices.seed, choices.all_schedulers);
    let advice = work::run(py, "simulating", progress, |control| {
        let case = Case::new(request, &control.cancel).map_err(Problem::Case)?;
        let report = |done: usize, all: usize| control.set_share(done as f64 / all.max(1) as f64);
        let options = AnswerOptions { seeds, seed, all_schedulers };
        let answer = Answer::of(&case, options, &report, &control.cancel).map_err(Problem::Answer)?;
        Ok(Advice { case, answer })
    })?;
    advice.map_err(|problem| match problem {
        Problem::Case(CaseError::Trace(error)) => trace_error(error),
        Problem::Case(error @ (CaseError::Objective(_) | CaseError::NoDrive)) => wrong_argument(error),
        Problem::Case(error) => failed(error),
        Problem::Answer(error) if error.is_cancelled() => PyKeyboardInterrupt::new_err(()),
        Problem::Answer(error) => failed(error),
    })
}

enum Problem {
    Case(CaseError),
    Answer(AdviseError),
}

#[pymethods]
impl Advice {
    /// The name of the advised scheduler; the current one if nothing is to be changed.
    #[getter]
    fn scheduler(&self) -> String {
        self.answer.chosen().name()
    }

    /// The figure that decided, in a sentence.
    #[getter]
    fn because(&self) -> &str {
        &self.answer.advice.because
    }

    /// The document that `hoistway advise --json` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let plan = ChangePlan::new(&self.case, self.answer.chosen());
        to_python(py, &AdviceReport::new(&self.case, &self.answer, &plan))
    }

    /// The page as a self-contained HTML document.
    fn html(&self) -> PyResult<String> {
        let plan = ChangePlan::new(&self.case, self.answer.chosen());
        let page = hoistway_advise::advice_page(&self.case, &self.answer, &plan);
        sheet_page(&page).map_err(|error| HoistwayError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("Advice({:?}: {})", self.scheduler(), self.because())
    }
}
