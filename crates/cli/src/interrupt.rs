//! Ctrl-C during long work.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Result;

/// Installs a Ctrl-C handler and returns its flag, which becomes true when Ctrl-C is pressed. A
/// second Ctrl-C ends the process at once. Every call returns the same flag.
///
/// # Errors
/// If the signal handler cannot be installed.
pub fn watch() -> Result<Arc<AtomicBool>> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(Arc::clone(flag));
    }
    let cancel = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&cancel);
    ctrlc::set_handler(move || {
        if pressed.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    })?;
    Ok(Arc::clone(FLAG.get_or_init(|| cancel)))
}
