//! Elevators that are classes of Python.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hoistway_core::{
    Capacity, Class, CustomElevator, CustomRequest, Info, LONGEST_WAIT_NS, Op, QueueView, RequestId, Tunable, Unit,
};
use pyo3::prelude::*;

use crate::error::wrong_argument;

/// The exceptions that are kept until their run ends.
const EXCEPTIONS_MAX: usize = 64;

/// Exceptions that elevators raised, with the texts by which their runs name them.
static EXCEPTIONS: Mutex<Vec<(String, PyErr)>> = Mutex::new(Vec::new());

/// Takes the exception that is the cause of a run's error, by its text, with a note on the run.
pub fn take_exception(text: &str, note: &str) -> Option<PyErr> {
    let mut kept = EXCEPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = kept.iter().position(|(kept, _)| kept == text)?;
    let (_, exception) = kept.swap_remove(at);
    // Python 3.10 has no notes.
    Python::attach(|py| drop(exception.value(py).call_method1("add_note", (note,))));
    Some(exception)
}

/// A request as an elevator sees it: the same object from `insert` to `complete`.
#[pyclass(dict, module = "hoistway")]
pub struct QueuedRequest {
    request: CustomRequest,
}

#[pymethods]
impl QueuedRequest {
    #[getter]
    fn sector(&self) -> u64 {
        self.request.sector
    }
    #[getter]
    fn sectors(&self) -> u32 {
        self.request.sectors
    }
    #[getter]
    fn end(&self) -> u64 {
        self.request.end()
    }
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.request.op)
    }
    #[getter]
    fn is_sync(&self) -> bool {
        self.request.is_sync
    }
    #[getter]
    fn pid(&self) -> u32 {
        self.request.pid
    }
    #[getter]
    fn io_class(&self) -> &'static str {
        match self.request.priority.class() {
            Class::None => "none",
            Class::RealTime => "realtime",
            Class::BestEffort => "best-effort",
            Class::Idle => "idle",
        }
    }
    #[getter]
    fn level(&self) -> u8 {
        self.request.priority.level()
    }
    #[getter]
    fn submitted_ns(&self) -> u64 {
        self.request.submitted_ns
    }
    fn __repr__(&self) -> String {
        format!("<{}>", self.request)
    }
}

/// The name of an operation.
pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
    }
}

/// The state of the queue during a call.
#[pyclass(module = "hoistway")]
#[derive(Default)]
pub struct QueueState {
    #[pyo3(get)]
    now_ns: u64,
    #[pyo3(get)]
    queued: u32,
    #[pyo3(get)]
    in_flight: u32,
    #[pyo3(get)]
    position: u64,
    #[pyo3(get)]
    is_draining: bool,
    #[pyo3(get)]
    timer_ns: Option<u64>,
}

#[pymethods]
impl QueueState {
    fn set_timer(&mut self, at_ns: u64) {
        self.timer_ns = Some(at_ns);
    }
    fn cancel_timer(&mut self) {
        self.timer_ns = None;
    }
}

/// A class that was registered as an elevator, in Python's types.
#[derive(FromPyObject)]
pub struct ElevatorClass {
    name: String,
    version: String,
    headline: String,
    idea: String,
    /// Name, unit, default, minimum, maximum, meaning and trade-off.
    tunables: Vec<(String, String, i64, i64, i64, String, String)>,
    /// `None` is unlimited.
    longest_wait_ns: Option<u64>,
    /// The methods that the class defines.
    methods: Vec<String>,
    /// Makes an object of the class.
    make: Py<PyAny>,
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn unit(label: &str) -> PyResult<Unit> {
    let units = [
        Unit::Milliseconds,
        Unit::Microseconds,
        Unit::Nanoseconds,
        Unit::Requests,
        Unit::Kibibytes,
        Unit::Sectors,
        Unit::KilobytesPerSecond,
        Unit::Percent,
        Unit::Times,
        Unit::Factor,
        Unit::Number,
        Unit::Switch,
    ];
    units.into_iter().find(|unit| unit.label() == label).ok_or_else(|| {
        let labels: Vec<&str> = units.iter().map(|unit| unit.label()).collect();
        wrong_argument(format!("there is no unit `{label}`; there are {}", labels.join(", ")))
    })
}

/// Registers a class as an elevator. The latest one of a name is found by the name.
#[pyfunction]
pub fn register_elevator(py: Python<'_>, class: ElevatorClass) -> PyResult<()> {
    let ElevatorClass { name, version, headline, idea, tunables, longest_wait_ns, methods, make } = class;
    let names: Vec<String> = tunables.iter().map(|(name, ..)| name.clone()).collect();
    let rows = tunables.into_iter().map(|(name, label, default, min, max, meaning, trade_off)| {
        if !(min..=max).contains(&default) {
            return Err(wrong_argument(format!("the default {default} of {name} is not in {min} to {max}")));
        }
        let (meaning, trade_off) = (leaked(meaning), leaked(trade_off));
        Ok(Tunable { name: leaked(name), unit: unit(&label)?, default, min, max, meaning, trade_off })
    });
    let rows = rows.collect::<PyResult<Vec<Tunable>>>()?;
    let defaults: Vec<i64> = rows.iter().map(|row| row.default).collect();
    let mut info = Info::custom(leaked(name), leaked(version), leaked(headline));
    info.idea = leaked(idea);
    info.tunables = Box::leak(rows.into_boxed_slice());
    let limit_ns = longest_wait_ns.unwrap_or(u64::MAX);
    let make_elevator = move |_: Capacity| -> hoistway_custom::AnyCustom {
        Box::new(PythonElevator::new(&make, &methods, &names, &defaults, limit_ns))
    };
    py.detach(|| hoistway_custom::register(info, make_elevator)).map_err(wrong_argument)?;
    Ok(())
}

/// The time that an elevator may hold requests back unless its class says otherwise, in ns.
#[pyfunction]
pub fn longest_wait_ns() -> u64 {
    LONGEST_WAIT_NS
}

/// The methods of an object; those that its class does not define are `None`.
struct Methods {
    insert: Option<Py<PyAny>>,
    dispatch: Option<Py<PyAny>>,
    complete: Option<Py<PyAny>>,
    timer: Option<Py<PyAny>>,
    merged: Option<Py<PyAny>>,
    exit: Option<Py<PyAny>>,
}

/// An object of such a class.
struct PythonObject {
    object: Py<PyAny>,
    state: Py<QueueState>,
    methods: Methods,
}

impl PythonObject {
    fn new(make: &Py<PyAny>, defined: &[String]) -> PyResult<PythonObject> {
        Python::attach(|py| {
            let object = make.bind(py).call0()?;
            let method = |name: &str| match defined.iter().any(|method| method == name) {
                true => object.getattr(name).map(|method| Some(method.unbind())),
                false => Ok(None),
            };
            let methods = Methods {
                insert: method("insert")?,
                dispatch: method("dispatch")?,
                complete: method("complete")?,
                timer: method("timer")?,
                merged: method("merged")?,
                exit: method("exit")?,
            };
            Ok(PythonObject { state: Py::new(py, QueueState::default())?, methods, object: object.unbind() })
        })
    }
}

/// An elevator that is an object of Python. After an exception it is not called any more.
struct PythonElevator {
    /// `None` if it was not created.
    object: Option<PythonObject>,
    /// The requests that it holds or that are in the device.
    requests: HashMap<RequestId, Py<QueuedRequest>>,
    tunables: Vec<(String, i64)>,
    longest_wait_ns: u64,
    failure: Option<String>,
}

impl PythonElevator {
    fn new(make: &Py<PyAny>, methods: &[String], tunables: &[String], defaults: &[i64], longest_wait_ns: u64) -> Self {
        let object = PythonObject::new(make, methods);
        let mut elevator = PythonElevator {
            object: None,
            requests: HashMap::new(),
            tunables: tunables.iter().cloned().zip(defaults.iter().copied()).collect(),
            longest_wait_ns,
            failure: None,
        };
        match object {
            Ok(object) => elevator.object = Some(object),
            Err(error) => elevator.fail(error),
        }
        elevator
    }

    /// Keeps an exception, which ends the run.
    fn fail(&mut self, error: PyErr) {
        let text = Python::attach(|py| {
            let value = error.value(py);
            let line = error.traceback(py).and_then(|traceback| last_line(&traceback).ok()).unwrap_or_default();
            format!(
                "{}: {value}{line}",
                error.get_type(py).name().map_or_else(|_| "Exception".into(), |n| n.to_string())
            )
        });
        let mut kept = EXCEPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= EXCEPTIONS_MAX {
            kept.remove(0);
        }
        kept.push((text.clone(), error));
        self.failure.get_or_insert(text);
    }

    /// Calls a method with the state of the queue, then sets the timer as the method wants it.
    fn call<T>(
        &mut self,
        queue: &mut QueueView,
        method: impl Fn(&Methods) -> Option<&Py<PyAny>>,
        request: Option<&Py<QueuedRequest>>,
        answer: impl FnOnce(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.as_ref().filter(|_| self.failure.is_none())?;
        let called = Python::attach(|py| {
            let Some(method) = method(&object.methods) else { return Ok(None) };
            let state = object.state.bind(py);
            *state.try_borrow_mut()? = QueueState {
                now_ns: queue.now_ns(),
                queued: queue.queued(),
                in_flight: queue.in_flight(),
                position: queue.position(),
                is_draining: queue.is_draining(),
                timer_ns: queue.timer_ns(),
            };
            let answer = answer(match request {
                Some(request) => method.bind(py).call1((state, request.bind(py)))?,
                None => method.bind(py).call1((state,))?,
            })?;
            let timer_ns = state.try_borrow()?.timer_ns;
            Ok(Some((answer, timer_ns)))
        });
        match called {
            Ok(None) => None,
            Ok(Some((answer, timer_ns))) => {
                match timer_ns {
                    Some(at_ns) => queue.set_timer(at_ns),
                    None => queue.cancel_timer(),
                }
                Some(answer)
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }
}

/// The last line of a traceback: `, in FUNCTION (FILE:LINE)`.
fn last_line(traceback: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut at = traceback.clone();
    while let Ok(next) = at.getattr("tb_next") {
        if next.is_none() {
            break;
        }
        at = next;
    }
    let code = at.getattr("tb_frame")?.getattr("f_code")?;
    let (name, file): (String, String) = (code.getattr("co_name")?.extract()?, code.getattr("co_filename")?.extract()?);
    let line: u32 = at.getattr("tb_lineno")?.extract()?;
    let file = std::path::Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned());
    Ok(format!(", in {name} ({file}:{line})"))
}

/// The request that `dispatch` returned.
fn dispatched(answer: Bound<'_, PyAny>) -> PyResult<Option<RequestId>> {
    if answer.is_none() {
        return Ok(None);
    }
    match answer.cast::<QueuedRequest>() {
        Ok(request) => Ok(Some(request.try_borrow()?.request.id)),
        Err(_) => Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "dispatch returned {}: a request that was inserted, or None, would be right",
            answer.repr()?
        ))),
    }
}

impl CustomElevator for PythonElevator {
    fn insert(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        if self.failure.is_some() {
            return;
        }
        match Python::attach(|py| Py::new(py, QueuedRequest { request: *request })) {
            Ok(object) => {
                self.call(queue, |methods| methods.insert.as_ref(), Some(&object), |_| Ok(()));
                self.requests.insert(request.id, object);
            }
            Err(error) => self.fail(error),
        }
    }

    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        self.call(queue, |methods| methods.dispatch.as_ref(), None, dispatched).flatten()
    }

    fn complete(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        if let Some(object) = self.requests.remove(&request.id) {
            self.call(queue, |methods| methods.complete.as_ref(), Some(&object), |_| Ok(()));
            Python::attach(|_| drop(object));
        }
    }

    fn timer(&mut self, queue: &mut QueueView) {
        self.call(queue, |methods| methods.timer.as_ref(), None, |_| Ok(()));
    }

    fn merged(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        let Some(object) = Python::attach(|py| {
            let object = self.requests.get(&request.id)?.clone_ref(py);
            object.try_borrow_mut(py).ok()?.request = *request;
            Some(object)
        }) else {
            return;
        };
        self.call(queue, |methods| methods.merged.as_ref(), Some(&object), |_| Ok(()));
    }

    fn exit(&mut self, pid: u32) {
        let Some(object) = self.object.as_ref().filter(|_| self.failure.is_none()) else { return };
        let Some(exit) = object.methods.exit.as_ref() else { return };
        if let Err(error) = Python::attach(|py| exit.call1(py, (pid,)).map(drop)) {
            self.fail(error);
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index).map_or(0, |(_, value)| *value)
    }

    fn set_tunable(&mut self, index: usize, value: i64) {
        let Some((name, kept)) = self.tunables.get_mut(index) else { return };
        *kept = value;
        let Some(object) = &self.object else { return };
        if let Err(error) = Python::attach(|py| object.object.bind(py).setattr(name.as_str(), value)) {
            self.fail(error);
        }
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn longest_wait_ns(&self) -> u64 {
        self.longest_wait_ns
    }
}
