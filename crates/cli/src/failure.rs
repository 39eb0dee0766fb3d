//! What a run ends with: exit codes, and errors as they are told.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Error;
use hoistway_fio::LoadError;
use hoistway_serve::config::ConfigError;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Success,
    /// Something could not be done; standard error says what.
    Failed,
    /// The command line is wrong, as clap has it.
    Usage,
    /// What was compared is not identical.
    Different,
    /// Ctrl-C, as shells have it: 128 and the signal's number.
    Interrupted,
    /// As a program ended that was run.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Different => 3,
            Exit::Interrupted => 130,
            Exit::Code(code) => code,
        })
    }
}

/// A command line that clap could read and that makes no sense all the same.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Somebody pressed Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: nothing was written")]
pub struct Interrupted;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("standard output cannot be written: {0}")]
pub struct OutputError(#[from] pub io::Error);

/// Tells an error on standard error and answers the exit code. Somebody who reads no further, as
/// `head` does, is no error.
pub fn report(error: &Error) -> Exit {
    if error.downcast_ref::<OutputError>().is_some_and(|OutputError(io)| io.kind() == io::ErrorKind::BrokenPipe) {
        return Exit::Success;
    }
    if error.is::<Interrupted>() {
        tell(&error.to_string());
        return Exit::Interrupted;
    }
    // Diagnostics of a job file have their own heads, as compilers' do: one a line at fault.
    let head = if error.downcast_ref::<LoadError>().is_some_and(|load| matches!(load, LoadError::Invalid(_))) {
        ""
    } else {
        "error: "
    };
    tell(&format!("{head}{}", chain(error)));
    let of_arguments = error.downcast_ref::<ConfigError>().is_some_and(ConfigError::is_of_arguments);
    if error.is::<UsageError>() || of_arguments {
        tell("\nFor more information, try '--help'.");
        return Exit::Usage;
    }
    Exit::Failed
}

/// A line on standard error; when that cannot be written there is nobody left to tell.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The error and its causes; most of ours repeat their cause in their own sentence, which is then
/// left out.
fn chain(error: &Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
