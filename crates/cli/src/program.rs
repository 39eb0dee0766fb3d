//! The program: its name, and its file for commands that start further processes of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
static NAME: OnceLock<String> = OnceLock::new();

/// Sets the name by which the program was called, and its file, once a process. `None` is the file
/// of this process.
pub fn set(called: Option<&OsStr>, program: Option<PathBuf>) {
    if let Some(program) = program {
        PROGRAM.get_or_init(|| program);
    }
    let name = called.and_then(|called| Path::new(called).file_name()).and_then(OsStr::to_str);
    let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if let Some(name) = name.filter(is_plain) {
        NAME.get_or_init(|| name.to_owned());
    }
}

/// The name of the program: the one by which it was called, if a shell needs no quotes for it.
pub fn name() -> &'static str {
    NAME.get().map_or("hoistway", String::as_str)
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
