//! Progress bars, shown on a terminal after the first second.

use std::io::{self, IsTerminal};
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time before a bar is shown: shorter runs show none.
const QUIET: Duration = Duration::from_secs(1);

/// A progress bar on standard error; never shown in a pipe.
pub struct Bar {
    bar: ProgressBar,
    begun: Instant,
    shown: Once,
}

impl Bar {
    /// Creates a bar of `length` steps with a label.
    pub fn new(length: u64, what: &'static str) -> Bar {
        Bar::styled(Some(length), what, "{msg} [{bar:40}] {percent}% (about {eta} left)")
    }

    /// Creates a counter for an unknown number of steps.
    pub fn counter(what: &'static str) -> Bar {
        Bar::styled(None, what, "{pos} {msg}")
    }

    fn styled(length: Option<u64>, what: &'static str, template: &str) -> Bar {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Bar { bar, begun: Instant::now(), shown: Once::new() }
    }

    /// Sets the number of finished steps, from any thread.
    pub fn set(&self, steps: u64) {
        if !self.shown.is_completed() && self.begun.elapsed() >= QUIET && io::stderr().is_terminal() {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
        self.bar.set_position(steps);
    }

    /// Changes the label.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Prints while the bar is hidden.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    /// Removes the bar, so that an error gets a line of its own.
    fn drop(&mut self) {
        self.clear();
    }
}
