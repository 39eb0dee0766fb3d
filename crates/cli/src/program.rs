//! The file of the program, for commands that start further processes of it.

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result};

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the file of the program, once a process; `None` is the file of this process.
pub fn set(program: Option<PathBuf>) {
    if let Some(program) = program {
        PROGRAM.get_or_init(|| program);
    }
}

/// The file of the program.
///
/// # Errors
/// If the system does not name the file of this process.
pub fn file() -> Result<PathBuf> {
    match PROGRAM.get() {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe().context("cannot find the program of hoistway"),
    }
}
