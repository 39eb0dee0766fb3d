//! Collects errors of single paths and reports them at the end, after the list.

use std::collections::HashMap;

use hoistway_order::{EntryId, FileKind, Operation, PathError, WalkError};

use crate::failure::{Exit, print_message};

/// Largest number of errors that are reported one by one.
const REPORTED_MAX: usize = 1000;

/// The errors of a run.
pub struct ErrorLog {
    /// True if a file system without extent information is an error.
    requires_placement: bool,
    messages: Vec<String>,
    count: usize,
    /// Entries that cannot be opened; true if the file is gone.
    unreadable: HashMap<EntryId, bool>,
    /// Number of files whose data are not on the disk yet.
    pub not_written: usize,
}

impl ErrorLog {
    pub fn new(requires_placement: bool) -> ErrorLog {
        ErrorLog { requires_placement, messages: Vec::new(), count: 0, unreadable: HashMap::new(), not_written: 0 }
    }

    /// Adds an error of one path. Notes are printed at once.
    pub fn add(&mut self, error: PathError) {
        if error.is_note() && !self.requires_placement {
            return print_message(&format!("note: {error}"));
        }
        let is_unreadable = match error.error {
            WalkError::Failed { operation: Operation::Open, .. } => true,
            _ => error.is_gone(),
        };
        if let Some(id) = error.id.filter(|_| is_unreadable) {
            self.unreadable.insert(id, error.is_gone());
        }
        self.add_message(error.to_string());
    }

    /// Adds an error that concerns no entry of the tree.
    pub fn add_message(&mut self, text: String) {
        self.count += 1;
        if self.messages.len() < REPORTED_MAX {
            self.messages.push(text);
        }
    }

    /// Returns true if a name is not printed: it is gone, or it is a file that cannot be opened.
    /// Unreadable directories are printed.
    pub fn omits(&self, id: EntryId, kind: FileKind) -> bool {
        self.unreadable.get(&id).is_some_and(|gone| *gone || kind == FileKind::File)
    }

    /// Forgets all entries, because the next window uses new ids.
    pub fn forget_entries(&mut self) {
        self.unreadable.clear();
    }

    /// Prints all errors and returns the exit code.
    pub fn finish(self) -> Exit {
        if self.not_written > 0 {
            print_message(&format!(
                "note: {} not on the disk yet and sorted by inode number before the others; --sync writes such files first",
                counted(self.not_written, "file is", "files are"),
            ));
        }
        for text in &self.messages {
            print_message(&format!("error: {text}"));
        }
        if self.count > self.messages.len() {
            print_message(&format!("error: and {} more", self.count - self.messages.len()));
        }
        if self.count == 0 { Exit::Success } else { Exit::Failed }
    }
}

/// Formats a count with its noun: "1 file is", "2 files are".
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
