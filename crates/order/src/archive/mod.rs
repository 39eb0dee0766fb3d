//! Tar archives in the order of the disk.
//!
//! [`write()`] is told a tree and writes it. Several threads read, each a batch of files at a time and straight to where they stand in the archive, headers
//! and all; one writes what they have read, batch by batch. So a cold tree keeps the queue of the disk full, and what is read is copied once.

mod attributes;
mod data;
mod exclude;
mod header;
mod names;
mod owners;
mod pax;
mod plan;
mod queue;
mod source;
mod sparse;
mod trouble;
mod twins;
mod worker;
mod writer;

use std::io::{self, Write};
use std::thread;

use crate::sort::By;
use crate::tree::{Follow, Tree};
pub use attributes::Attributes;
pub use exclude::Excludes;
pub use header::{Format, Unfit};
pub use names::unsafe_prefix;
pub use trouble::{Severity, Told, Trouble, said};

use plan::Plan;
use queue::Queue;
use worker::{Reading, Worker};
use writer::Writer;

/// How an archive is written.
#[derive(Clone)]
pub struct Options<'a> {
    /// Its format.
    pub format: Format,
    /// The order of its members.
    pub by: By,
    /// Whether the tree is a list: what lies in a directory of it does not have that as its parent.
    pub is_list: bool,
    /// What the tree was walked with: under [`Follow::Always`] links are archived as what they lead to.
    pub follow: Follow,
    /// Numbers of owners alone, without names.
    pub numeric_owner: bool,
    /// Paths as they are, with leading slashes and `..`.
    pub absolute_names: bool,
    /// Holes as holes.
    pub sparse: bool,
    /// Which attributes it has.
    pub attributes: Attributes,
    /// Devices and inodes of what the archive is written to and of what it takes the place of: these are not archived.
    pub archive: &'a [(u64, u64)],
    /// Whether the name of each member is told.
    pub tell_members: bool,
    /// Threads that read.
    pub readers: usize,
    /// Files that are read ahead of the one that is written, at most; each reader has one at least.
    pub read_ahead_files: usize,
    /// Bytes of the archive that wait to be written, at most; each reader has 256 KiB at least, and two of these are there besides.
    pub read_ahead_bytes: usize,
    /// Told how many members were written, now and then.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Called by the threads that read, for tests that change files meanwhile.
    #[doc(hidden)]
    pub hook: Option<Hook<'a>>,
}

/// Called with a moment and the path of the file.
#[doc(hidden)]
pub type Hook<'a> = &'a (dyn Fn(Moment, &[u8]) + Sync);

/// A moment in the life of a member.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It is about to be opened.
    Found,
    /// It was opened, and its size is known.
    Opened,
    /// It was read.
    Read,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            format: Format::default(),
            by: By::Auto,
            is_list: false,
            follow: Follow::default(),
            numeric_owner: false,
            absolute_names: false,
            sparse: true,
            attributes: Attributes::default(),
            archive: &[],
            tell_members: false,
            readers: READERS,
            read_ahead_files: READ_AHEAD_FILES,
            read_ahead_bytes: READ_AHEAD_BYTES,
            progress: None,
            hook: None,
        }
    }
}

/// Threads that read, unless told otherwise.
pub const READERS: usize = 4;
/// Files that are read ahead, unless told otherwise.
pub const READ_AHEAD_FILES: usize = 256;
/// Bytes that are read ahead, unless told otherwise.
pub const READ_AHEAD_BYTES: usize = 32 << 20;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Members.
    pub members: u64,
    /// Bytes of the archive, before compression.
    pub bytes: u64,
    /// Files that are not in it because other files of the same name were asked for later.
    pub replaced: u64,
}

/// Why there is no whole archive: what was written has no mark at its end.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It could not be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// Nobody reads.
    #[error("no thread can be started to read files: {0}")]
    Thread(io::Error),
    /// A thread that reads is gone before its time.
    #[error("a thread that read files ended before its time")]
    ReaderLost,
}

/// Writes all names of a tree into an archive. What is wrong with a file is told, and the rest goes on.
///
/// A file with several names is there once, under that of them that comes first; the others are links to it. Each such file takes some 150 bytes of memory and
/// its name. Of names that are the same in the archive the one that was asked for last is there.
///
/// # Errors
/// [`WriteError`]: the archive is not whole then.
pub fn write(
    tree: &Tree,
    options: &Options<'_>,
    out: &mut dyn Write,
    told: &mut dyn FnMut(Told),
) -> Result<Written, WriteError> {
    let Plan { items, replaced } = plan::plan(tree, options.by, options.is_list, options.absolute_names);
    let readers = options.readers.max(1);
    let batch = (options.read_ahead_files / readers).max(1);
    let queue = Queue::new(items.len().div_ceil(batch), options.read_ahead_bytes, readers);
    let reading = Reading::new(tree, &items, options, queue, batch);
    thread::scope(|scope| {
        let mut failed = None;
        for reader in 0..readers {
            let builder = thread::Builder::new().name(format!("reader {reader}"));
            let started = builder.spawn_scoped(scope, || Worker::new(&reading).run());
            failed = failed.or(started.err().filter(|_| reader == 0));
        }
        let written = match failed {
            Some(error) => Err(WriteError::Thread(error)),
            None => Writer::new(options, out, told).run(&reading.queue),
        };
        // Those who still read for an archive that failed.
        reading.queue.stop();
        written.map(|written| Written { replaced, ..written })
    })
}
