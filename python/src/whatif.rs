//! Predictions of a recorded workload under other elevators.

use hoistway_advise::whatif::{LoopModel, WhatifError, WhatifReport, whatif_page};
use hoistway_advise::{ModelBasis, TraceCase, TraceCaseError, TraceCaseRequest, TraceDrive};
use hoistway_compare::{Judgement, Named, RunShares, named_elevators};
use hoistway_report::compare_page;
use hoistway_sim::{Comparison, Kernel, Setting, elevator_of_name};
use hoistway_sweep::run_figures;
use pyo3::prelude::*;

use crate::compare::{run_names, simulation_error};
use crate::drive::Drive;
use crate::error::{HoistwayError, failed, wrong_argument};
use crate::json::to_python;
use crate::table::Table;
use crate::trace::Trace;
use crate::work;

/// A prediction.
#[pyclass(frozen, module = "hoistway")]
pub struct Prediction {
    case: TraceCase,
    /// `None` if the model misses the recording by too much.
    comparison: Option<Comparison>,
}

/// The choices of a prediction, in Python's types.
#[derive(FromPyObject)]
pub struct Choices {
    elevators: Vec<String>,
    drive: Option<Drive>,
    fit: bool,
    recorded: Option<String>,
    #[pyo3(attribute("loop_model"))]
    loop_name: Option<String>,
    depth: Option<u32>,
    kernel: Option<String>,
    settings: Vec<String>,
    device: Option<String>,
    record: bool,
}

/// Converts an error about a trace.
pub fn trace_error(error: TraceCaseError) -> PyErr {
    match error {
        TraceCaseError::Simulation(error) => match *error {
            WhatifError::Sim(error) => simulation_error(error),
            error => failed(error),
        },
        error @ (TraceCaseError::NoElevator { .. } | TraceCaseError::Switched { .. }) => wrong_argument(error),
        error => failed(error),
    }
}

/// Predicts a trace under other elevators.
#[pyfunction]
pub fn whatif(py: Python<'_>, trace: &Trace, choices: Choices, progress: bool) -> PyResult<Prediction> {
    let named = choices.elevators.iter().map(|name| Named::parse(name)).collect::<Result<Vec<_>, _>>();
    let elevators = named_elevators(&named.map_err(wrong_argument)?, hoistway_custom::all);
    let elevators = elevators.map_err(|error| wrong_argument(format!("elevators {error}")))?;
    let settings = choices.settings.iter().map(|text| Setting::parse_argument(text)).collect::<Result<_, _>>();
    let request = TraceCaseRequest {
        name: trace.name().to_owned(),
        recorded_under: choices.recorded.map(|name| elevator_of_name(&name)).transpose().map_err(wrong_argument)?,
        loop_model: match choices.loop_name {
            Some(text) => LoopModel::parse(&text).map_err(wrong_argument)?,
            None => LoopModel::Open,
        },
        drive: match choices.drive {
            Some(drive) => TraceDrive::Given(Box::new(drive.profile)),
            None if choices.fit => TraceDrive::Fitted,
            None => TraceDrive::FromTrace,
        },
        depth_max: choices.depth,
        kernel: choices.kernel.map(|name| Kernel::parse(&name)).transpose().map_err(wrong_argument)?,
        settings: settings.map_err(wrong_argument)?,
        loaded: trace.load(py, choices.device.as_deref())?,
    };
    let prediction = work::run(py, "simulating", progress, |control| {
        let case = TraceCase::new(request, &control.cancel)?;
        let holds = match &case.basis {
            ModelBasis::Validated { fidelity, .. } => fidelity.holds(),
            ModelBasis::Unvalidated(_) => true,
        };
        let shares = RunShares::of_seeds(1);
        let predict = || {
            let report = |at| control.set_share(shares.note(0, at));
            let comparison = case.model.predict(&elevators, &case.machine, choices.record, &report, &control.cancel);
            comparison.map_err(|error| TraceCaseError::Simulation(Box::new(error)))
        };
        let comparison = if holds { Some(predict()?) } else { None };
        Ok(Prediction { comparison, case })
    })?;
    prediction.map_err(trace_error)
}

impl Prediction {
    fn comparison(&self) -> PyResult<&Comparison> {
        self.comparison.as_ref().ok_or_else(|| HoistwayError::new_err(self.refusal()))
    }

    fn refusal(&self) -> String {
        format!(
            "{}: the model misses the recording by too much, so there is no prediction; to_dict() has its errors",
            self.case.name
        )
    }
}

#[pymethods]
impl Prediction {
    /// True if the model is good enough for predictions.
    #[getter]
    fn holds(&self) -> bool {
        self.comparison.is_some()
    }

    /// The predicted figures: a row for each elevator.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let comparison = self.comparison()?;
        let mut columns = run_names(comparison.runs.iter().map(|run| (comparison.seed, run.elevator.as_str())));
        columns.extend(run_figures(&comparison.runs.iter().map(Some).collect::<Vec<_>>()));
        Table::new(columns)
    }

    /// The verdict in a few sentences.
    #[getter]
    fn verdict(&self) -> String {
        self.comparison.as_ref().map_or_else(|| self.refusal(), |comparison| Judgement::of(comparison).verdict.text())
    }

    /// Notes on the trace.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.case.notes.clone()
    }

    /// The document that `hoistway trace whatif --json` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let confidence = self.case.confidence(self.comparison.as_ref());
        to_python(py, &WhatifReport::new(&self.case, self.comparison.as_ref(), &confidence))
    }

    /// The page as a self-contained HTML document.
    fn html(&self) -> PyResult<String> {
        let comparison = self.comparison()?;
        let page = whatif_page(&self.case, comparison, &self.case.confidence(Some(comparison)));
        compare_page(&page).map_err(|error| HoistwayError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("Prediction({:?})", self.case.name)
    }
}
