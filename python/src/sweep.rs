//! Sweeps: their plan, the batches that executors run, and the folder of results.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use hoistway_machine::{Root, available_bytes};
use hoistway_report::sheet_page;
use hoistway_sweep::{
    Batch, BatchError, BatchFiles, LIBRARY, LocalOptions, PageError, PageOptions, Plan, PointId, ResultFolder, Results,
    SweepProgress, SweepSpec, page, run, simulate,
};
use hoistway_units::figures::grouped;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use toml::{Table, Value};

use crate::drive::toml_value;
use crate::error::{HoistwayError, failed, wrong_argument};
use crate::json::to_python;
use crate::work;

/// The part of the available memory that simulations may take, in tenths.
const MEMORY_TENTHS: u64 = 9;

/// The numbered points of a sweep.
#[pyclass(frozen, module = "hoistway")]
pub struct SweepPlan {
    plan: Plan,
}

#[pymethods]
impl SweepPlan {
    /// Reads a sweep file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<SweepPlan> {
        SweepPlan::new(SweepSpec::load(&path).map_err(failed)?)
    }

    /// Reads the text of a sweep file; names of files are relative to `directory`.
    #[staticmethod]
    fn from_toml(text: &str, name: &str, directory: PathBuf) -> PyResult<SweepPlan> {
        SweepPlan::new(SweepSpec::from_toml(text, name, &directory).map_err(failed)?)
    }

    /// Reads a sweep from a dictionary with the keys of a sweep file.
    #[staticmethod]
    fn from_dict(keys: &Bound<'_, PyDict>, directory: PathBuf) -> PyResult<SweepPlan> {
        let text = toml::to_string(&table(keys)?).map_err(failed)?;
        SweepPlan::from_toml(&text, "the sweep", directory)
    }

    /// The number of points.
    #[getter]
    fn points(&self) -> u64 {
        self.plan.points()
    }

    /// The sweep with the texts of all files that it names.
    #[getter]
    fn self_contained(&self) -> &str {
        &self.plan.spec().self_contained
    }

    /// The batches: the first number of each, and the one after its last.
    fn batches(&self) -> Vec<(u64, u64)> {
        self.plan.batches().map(|batch| (batch.points.start, batch.points.end)).collect()
    }
}

impl SweepPlan {
    fn new(spec: SweepSpec) -> PyResult<SweepPlan> {
        Ok(SweepPlan { plan: Plan::new(spec).map_err(failed)? })
    }
}

fn table(keys: &Bound<'_, PyDict>) -> PyResult<Table> {
    let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((key.extract::<String>()?, nested(&value)?));
    keys.iter().map(pair).collect()
}

fn nested(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(keys) = value.cast::<PyDict>() {
        return Ok(Value::Table(table(keys)?));
    }
    if !value.is_instance_of::<pyo3::types::PyString>()
        && let Ok(values) = value.extract::<Vec<Bound<'_, PyAny>>>()
    {
        return Ok(Value::Array(values.iter().map(nested).collect::<PyResult<_>>()?));
    }
    toml_value(value).map_err(|_| {
        PyTypeError::new_err(format!("{value:?}: a key of a sweep is a number, a text, true, false, a list or a dict"))
    })
}

/// The folder of results, locked while the object is open.
#[pyclass(module = "hoistway")]
pub struct SweepFolder {
    folder: Option<ResultFolder>,
}

impl SweepFolder {
    fn folder(&self) -> PyResult<&ResultFolder> {
        self.folder.as_ref().ok_or_else(|| HoistwayError::new_err("the folder of results is closed"))
    }
}

#[pymethods]
impl SweepFolder {
    /// Opens or creates a folder.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<SweepFolder> {
        Ok(SweepFolder { folder: Some(py.detach(|| ResultFolder::open(&path)).map_err(failed)?) })
    }

    /// Unlocks the folder.
    fn close(&mut self) {
        self.folder = None;
    }

    /// Writes the sweep itself.
    fn write_sweep(&self, plan: &SweepPlan) -> PyResult<()> {
        self.folder()?.write_sweep(&plan.plan).map_err(failed)
    }

    /// The names of the points of a batch that have a result; `None` if all points have one.
    fn done(&self, py: Python<'_>, plan: &SweepPlan, start: u64, end: u64) -> PyResult<Option<Vec<String>>> {
        let folder = self.folder()?;
        if folder.points() == 0 {
            return Ok(Some(Vec::new()));
        }
        let ids = py.detach(|| plan.plan.ids(start..end).collect::<Vec<PointId>>());
        let done: Vec<String> = ids.iter().filter(|id| folder.has(**id)).map(ToString::to_string).collect();
        Ok((done.len() < ids.len()).then_some(done))
    }

    /// Writes the files of a batch.
    fn write_batch(&self, py: Python<'_>, name: String, points: Vec<u8>, jobs: Vec<u8>) -> PyResult<()> {
        let folder = self.folder()?;
        let files = BatchFiles { name, points, jobs, rows: 0, failed: 0, first_error: None };
        py.detach(|| folder.write_batch(&files)).map_err(failed)
    }

    /// Runs all points on this machine and returns the summary.
    #[pyo3(signature = (plan, threads, progress))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        plan: &SweepPlan,
        threads: Option<usize>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let folder = self.folder()?;
        let options = LocalOptions {
            threads: threads.unwrap_or_else(processors),
            available_bytes: available_bytes(&Root::machine()),
        };
        let summary = work::run(py, "points", progress, |control| {
            let report = |at: SweepProgress| {
                control.steps.store(at.points, Ordering::Relaxed);
                control.done.fetch_max(at.done, Ordering::Relaxed);
            };
            run(&plan.plan, folder, options, &report, &control.cancel)
        })?;
        to_python(py, &summary.map_err(failed)?)
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The files of a batch: name, points, jobs, number of rows, number of errors, first error.
type Files<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>, usize, usize, Option<String>);

/// Simulates a batch of a sweep, in any process. `library` is the version of the driver.
#[pyfunction]
pub fn simulate_batch<'py>(
    py: Python<'py>,
    sweep: &str,
    library: &str,
    points: (u64, u64),
    done: Vec<String>,
) -> PyResult<Option<Files<'py>>> {
    if library != LIBRARY {
        return Err(HoistwayError::new_err(format!(
            "this worker has hoistway {LIBRARY}, and the sweep runs with {library}: install the same version everywhere"
        )));
    }
    let spec = SweepSpec::from_toml(sweep, "the sweep", &PathBuf::new()).map_err(failed)?;
    let plan = Plan::new(spec).map_err(failed)?;
    let done: Vec<PointId> = done.iter().filter_map(|id| PointId::parse(id)).collect();
    let each_bytes = available_bytes(&Root::machine()).map(|bytes| bytes / 10 * MEMORY_TENTHS / processors() as u64);
    let files = work::run(py, "points", false, |control| {
        let missing = Batch { points: points.0..points.1 }.missing(&plan, |point| done.contains(&point));
        simulate(&plan, missing, each_bytes, &|| {}, &control.cancel)
    })?;
    let files = files.map_err(|error| match error {
        BatchError::Cancelled => PyKeyboardInterrupt::new_err(()),
        error => failed(error),
    })?;
    Ok(files.map(|BatchFiles { name, points, jobs, rows, failed, first_error }| {
        (name, PyBytes::new(py, &points), PyBytes::new(py, &jobs), rows, failed, first_error)
    }))
}

/// Draws the results of a folder as a self-contained HTML document.
#[pyfunction]
#[pyo3(signature = (folder, measure, over))]
pub fn sweep_page(
    py: Python<'_>,
    folder: PathBuf,
    measure: Option<String>,
    over: Option<[String; 2]>,
) -> PyResult<String> {
    let sheet = py.detach(|| {
        let results = Results::read(&folder).map_err(failed)?;
        let name = format!("{} points in {}", grouped(results.rows() as u64), folder.display());
        page(&results, &PageOptions { name, measure, over }).map_err(|error| match error {
            PageError::NoFigures => failed(error),
            PageError::UnknownMeasure { .. } | PageError::NotVaried { .. } => wrong_argument(error),
        })
    })?;
    sheet_page(&sheet).map_err(failed)
}
