//! The result of an archive run.

use std::io;

use serde::Serialize;

/// The counters of a complete archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveSummary {
    /// Number of members.
    pub members: u64,
    /// Size of the archive before compression, in bytes.
    pub bytes: u64,
    /// Files that are left out because a later root has a file with the same member name.
    pub replaced: u64,
}

/// Why an archive is incomplete. The output then has no end mark.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Writing the output failed.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The first reader thread cannot be started.
    #[error("no reader thread can be started: {0}")]
    Thread(io::Error),
    /// A reader thread ended early.
    #[error("a reader thread ended before its work was done")]
    ReaderThreadDied,
}
