//! Long work beside the interpreter: without its lock, with progress, and until Ctrl-C.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::InternalError;

/// Interval in which signals are handled and progress is shown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Steps of a progress bar whose work has no steps of its own.
pub const STEPS: u64 = 1000;

/// The state that the working thread shares with the thread that waits for it.
#[derive(Debug, Default)]
pub struct Control {
    /// Becomes true when the work has to end.
    pub cancel: AtomicBool,
    /// Steps that are done.
    pub done: AtomicU64,
    /// All steps; 0 while their number is unknown.
    pub steps: AtomicU64,
}

impl Control {
    /// Sets the part that is done, 0 to 1.
    pub fn set_share(&self, share: f64) {
        self.steps.store(STEPS, Ordering::Relaxed);
        self.done.store((share * STEPS as f64).round() as u64, Ordering::Relaxed);
    }
}

/// Runs work in a thread of its own while this thread handles signals. With `progress` the bar of
/// `hoistway/_progress.py` is shown.
///
/// # Errors
/// The exception of a signal handler, such as `KeyboardInterrupt`, once the work has ended;
/// [`InternalError`] if the work panics.
pub fn run<T: Send>(
    py: Python<'_>,
    what: &str,
    progress: bool,
    work: impl FnOnce(&Control) -> T + Send,
) -> PyResult<T> {
    let mut bar = if progress { Bar::new(py, what) } else { None };
    let control = Control::default();
    let result = py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            let control = &control;
            scope.spawn(move || sender.send(catch_unwind(AssertUnwindSafe(|| work(control)))));
            let mut interrupted = None;
            loop {
                match receiver.recv_timeout(POLL_INTERVAL) {
                    Ok(Ok(result)) => break interrupted.map_or(Ok(result), Err),
                    Ok(Err(panic)) => break Err(internal(panic.as_ref())),
                    Err(RecvTimeoutError::Timeout) if interrupted.is_none() => {
                        let handled = Python::attach(|py| {
                            bar.as_mut().map_or(Ok(()), |bar| bar.update(py, control))?;
                            py.check_signals()
                        });
                        if let Err(error) = handled {
                            control.cancel.store(true, Ordering::Relaxed);
                            interrupted = Some(error);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        break Err(InternalError::new_err("the thread of the work ended without a result"));
                    }
                }
            }
        })
    });
    if let Some(bar) = bar {
        bar.close(py)?;
    }
    result
}

fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    InternalError::new_err(format!("a fault of hoistway: {text}"))
}

/// A progress bar.
struct Bar {
    bar: Py<PyAny>,
    shown: u64,
}

impl Bar {
    /// `None` if the bar cannot be made: progress is no reason to fail.
    fn new(py: Python<'_>, what: &str) -> Option<Bar> {
        let bar = py.import("hoistway._progress").ok()?.call_method1("bar", (STEPS, what)).ok()?;
        Some(Bar { bar: bar.unbind(), shown: 0 })
    }

    fn update(&mut self, py: Python<'_>, control: &Control) -> PyResult<()> {
        let steps = control.steps.load(Ordering::Relaxed).max(1);
        let done = control.done.load(Ordering::Relaxed).saturating_mul(STEPS) / steps;
        if done > self.shown {
            self.bar.call_method1(py, "update", (done - self.shown,))?;
            self.shown = done;
        }
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.bar.call_method0(py, "close").map(drop)
    }
}
