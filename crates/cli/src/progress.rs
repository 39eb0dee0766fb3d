//! How far a run is, on a terminal, once it has taken a second.

use std::io::{self, IsTerminal};
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Runs that end sooner show nothing: a bar that flashes up tells nobody anything.
const QUIET: Duration = Duration::from_secs(1);

/// A bar on standard error; in a pipe it never shows.
pub struct Bar {
    bar: ProgressBar,
    begun: Instant,
    shown: Once,
}

impl Bar {
    /// A bar of `length` steps, with a word for what takes the time.
    pub fn new(length: u64, what: &'static str) -> Bar {
        Bar::styled(Some(length), what, "{msg} [{bar:40}] {percent}% (about {eta} left)")
    }

    /// A count of steps whose number is not known.
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

    /// Sets how many steps are done; any thread may.
    pub fn set(&self, steps: u64) {
        if !self.shown.is_completed() && self.begun.elapsed() >= QUIET && io::stderr().is_terminal() {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
        self.bar.set_position(steps);
    }

    /// Says something else of what takes the time.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Prints something without the bar in its way.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    /// An error must not be told on the bar's line.
    fn drop(&mut self) {
        self.clear();
    }
}
