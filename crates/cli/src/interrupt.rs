//! Ctrl-C during long work.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Result;

/// A flag that becomes true when Ctrl-C is pressed, for work that looks at it now and then; a
/// second Ctrl-C ends the process on the spot. Every call answers the same flag.
///
/// # Errors
/// When the signal cannot be taken.
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
