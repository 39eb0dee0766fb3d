//! Waiting for files of devices.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// The time until a device that was created appears, and until one that was removed disappears.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a condition holds; `failure` begins the error if it does not.
pub fn wait_until(failure: &str, mut holds: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{failure} within {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Waits until a file exists, or until it does not.
pub fn wait_for(path: &Path, exists: bool) -> Outcome<()> {
    let what = if exists { "does not appear" } else { "does not disappear" };
    wait_until(&format!("{} {what}", path.display()), || Ok(path.exists() == exists))
}
