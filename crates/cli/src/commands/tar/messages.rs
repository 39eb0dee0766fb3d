//! Messages of `hoistway tar`: member names and warnings, with GNU tar's texts where other programs
//! parse them.

use std::collections::BTreeSet;

use hoistway_order::archive::{ArchiveEvent, ArchiveWarning, Severity, error_text, unsafe_prefix};
use hoistway_order::{Operation, PathError, WalkError};
use hoistway_units::printable::bytes;

use crate::cli::{TarArgs, is_standard};
use crate::failure::{Exit, print_message};
use crate::output::Out;

/// Prints messages and keeps the highest severity.
pub struct Reporter<'a> {
    args: &'a TarArgs,
    out: &'a mut Out,
    worst: Severity,
    /// Removed name prefixes, each reported once.
    removed_prefixes: BTreeSet<Vec<u8>>,
}

impl<'a> Reporter<'a> {
    pub fn new(args: &'a TarArgs, out: &'a mut Out) -> Reporter<'a> {
        Reporter { args, out, worst: Severity::Note, removed_prefixes: BTreeSet::new() }
    }

    /// Reports the prefix that is removed from the member name of a root.
    pub fn report_prefix(&mut self, path: &[u8]) {
        let prefix = &path[..unsafe_prefix(path)];
        if self.args.absolute_names || prefix.is_empty() || !self.removed_prefixes.insert(prefix.to_vec()) {
            return;
        }
        print_message(&format!("hoistway tar: Removing leading `{}' from member names", bytes(prefix)));
    }

    /// Reports an error of the walk.
    pub fn walk_error(&mut self, error: &PathError) {
        let path = bytes(&error.path);
        match error.error {
            WalkError::Failed { operation: Operation::MapExtents, .. } | WalkError::Replaced => {}
            WalkError::Failed { operation: Operation::Stat, errno } => {
                self.warn(Severity::Error, &format!("{path}: Cannot stat: {}", error_text(errno)));
            }
            WalkError::Failed { operation: Operation::Open, errno } => {
                let warning = ArchiveWarning::opening(errno);
                self.warn(warning.severity(), &format!("{path}: {warning}"));
            }
            WalkError::Failed { operation: Operation::ReadDirectory, errno } => {
                self.warn(Severity::Error, &format!("{path}: Cannot read: {}", error_text(errno)));
            }
            WalkError::Loop => self.warn(
                Severity::Differs,
                &format!("{path}: this directory contains itself; its contents are not archived again"),
            ),
            WalkError::NoExtentMap => self.warn(Severity::Note, &error.to_string()),
        }
    }

    /// Reports an event of the archive run.
    pub fn event(&mut self, event: &ArchiveEvent) {
        match event {
            ArchiveEvent::Member(name) if self.has_own_stdout() => {
                // A closed standard output does not stop the run.
                let _ = self.out.line(bytes(name));
                if self.out.is_terminal() {
                    let _ = self.out.flush();
                }
            }
            ArchiveEvent::Member(name) => print_message(&bytes(name)),
            ArchiveEvent::Warning(path, warning) => {
                self.warn(warning.severity(), &format!("{}: {warning}", bytes(path)));
            }
        }
    }

    /// Reports the number of files that other files with the same member name replace.
    pub fn replaced(&self, files: u64) {
        if files > 0 {
            let are = if files == 1 { "file is" } else { "files are" };
            print_message(&format!(
                "hoistway tar: {files} {are} not archived: later arguments have files with the same member names"
            ));
        }
    }

    /// Prints the final message and returns the exit code.
    pub fn finish(self) -> Exit {
        match self.worst {
            Severity::Note => Exit::Success,
            Severity::Differs => Exit::Failed,
            Severity::Error => {
                print_message("hoistway tar: Exiting with failure status due to previous errors");
                Exit::Code(2)
            }
        }
    }

    /// Returns true if standard output is free for member names.
    fn has_own_stdout(&self) -> bool {
        self.args.file.as_deref().is_some_and(|file| !is_standard(file.as_os_str()))
    }

    fn warn(&mut self, severity: Severity, text: &str) {
        self.worst = self.worst.max(severity);
        print_message(&format!("hoistway tar: {text}"));
    }
}
