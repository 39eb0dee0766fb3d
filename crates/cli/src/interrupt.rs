//! Ctrl-C during long work.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

/// A flag that becomes true when Ctrl-C is pressed, for work that looks at it now and then; a second Ctrl-C ends the process on the spot.
///
/// # Errors
/// When the signal cannot be taken, or has been already.
pub fn watch() -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&cancel);
    ctrlc::set_handler(move || {
        if pressed.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    })?;
    Ok(cancel)
}
