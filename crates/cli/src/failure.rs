//! Exit codes, and the output of errors. Messages quote names and values of unknown origin:
//! unprintable characters are escaped here, for all of them.

use std::io::{self, Write};

use anyhow::Error;
use hoistway_advise::ObjectiveError;
use hoistway_config::ConfigError;
use hoistway_drive::DriveChoiceError;
use hoistway_fio::{Diagnostics, LoadError};
use hoistway_report::ReportFileError;
use hoistway_units::{errors, printable};

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Success,
    /// The command failed; standard error has the reason.
    Failed,
    /// Invalid command line or configuration, with clap's exit code: another attempt is useless.
    Usage,
    /// The compared results are not identical.
    Different,
    /// Ctrl-C, with the shell's exit code: 128 and the signal's number.
    Interrupted,
    /// The exit code of a program that the command ran.
    Code(u8),
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Different => 3,
            Exit::Interrupted => 130,
            Exit::Code(code) => code,
        }
    }
}

/// A command line that clap accepts although it is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The user pressed Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: nothing was written")]
pub struct Interrupted;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("standard output cannot be written: {0}")]
pub struct OutputError(#[from] pub io::Error);

/// Prints an error on standard error and returns the exit code. A closed pipe, as with `head`, is
/// not an error.
pub fn report(error: &Error) -> Exit {
    if error.downcast_ref::<OutputError>().is_some_and(|OutputError(io)| io.kind() == io::ErrorKind::BrokenPipe) {
        return Exit::Success;
    }
    let is_unwritten = error
        .downcast_ref::<ReportFileError>()
        .is_some_and(|error| matches!(error, ReportFileError::Interrupted { .. }));
    if error.is::<Interrupted>() || is_unwritten {
        print_message(&error.to_string());
        return Exit::Interrupted;
    }
    // Diagnostics of a job file have their own prefixes, one per faulty line.
    let head = if error.downcast_ref::<LoadError>().is_some_and(|load| matches!(load, LoadError::Invalid(_))) {
        ""
    } else {
        "error: "
    };
    let text = format!("{head}{}", chain(error));
    if has_lines(error) {
        print_text(&text)
    } else {
        print_message(&text)
    }
    let configuration = error.downcast_ref::<ConfigError>();
    if configuration.is_some_and(|error| !error.concerns_arguments_only()) {
        return Exit::Usage;
    }
    let is_unknown_drive =
        error.downcast_ref::<DriveChoiceError>().is_some_and(|error| matches!(error, DriveChoiceError::Unknown { .. }));
    let is_usage = error.is::<UsageError>() || error.is::<ObjectiveError>();
    if is_usage || configuration.is_some() || is_unknown_drive {
        print_text("\nFor more information, try '--help'.");
        return Exit::Usage;
    }
    Exit::Failed
}

/// Returns true if the text of an error has several lines, which quote names as one line each.
fn has_lines(error: &Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<LoadError>()
            || cause.is::<Diagnostics>()
            || cause.is::<ConfigError>()
            || cause.is::<ObjectiveError>()
    })
}

/// Prints a line on standard error. A write error has no further output channel and is ignored.
pub fn print_message(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable::one_line(line));
}

/// Prints text of several lines on standard error.
pub fn print_text(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable::lines(text));
}

/// Returns the error with its causes; a cause that is part of the text already is left out.
pub fn chain(error: &Error) -> String {
    errors::chain(error.as_ref())
}
