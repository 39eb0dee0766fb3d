//! Tar archives in physical disk order.
//!
//! [`write()`] writes the names of a [`Tree`] into an archive. Several reader threads process one
//! batch of files each and read header and data directly into their position of the archive. One
//! writer thread writes the batches in order. A cold tree therefore keeps the queue of the disk
//! full, and data are copied once.

mod attributes;
mod block;
mod data;
mod duplicates;
mod event;
mod exclude;
mod header;
mod members;
mod names;
mod options;
mod owners;
mod pax;
mod queue;
mod source;
mod sparse;
mod summary;
mod worker;
mod writer;

use std::io::Write;
use std::thread;

use crate::tree::Tree;
use members::MemberPlan;
use queue::Queue;
use worker::{ReaderContext, Worker};
use writer::Writer;

pub use attributes::AttributeSelection;
pub use event::{ArchiveEvent, ArchiveWarning, Severity, error_text};
pub use exclude::ExcludePatterns;
pub use header::{Format, FormatError};
pub use names::unsafe_prefix;
#[doc(hidden)]
pub use options::{Hook, ReadPhase};
pub use options::{Options, READ_AHEAD_BYTES, READ_AHEAD_FILES, READERS};
pub use summary::{ArchiveError, ArchiveSummary};

/// Writes all names of a tree into an archive. Warnings about single files go to `on_event`, and
/// the run continues.
///
/// A file with several names is stored once, under its first name; its other names are hard links.
/// Each such file needs about 150 bytes of memory and its name. If two names are equal in the
/// archive, that of the last root is stored.
///
/// # Errors
/// [`ArchiveError`]; the archive is then incomplete.
pub fn write(
    tree: &Tree,
    options: &Options<'_>,
    out: &mut dyn Write,
    on_event: &mut dyn FnMut(ArchiveEvent),
) -> Result<ArchiveSummary, ArchiveError> {
    let MemberPlan { items, replaced } = members::plan(tree, options.by, options.is_list, options.absolute_names);
    let readers = options.readers.max(1);
    let batch = (options.read_ahead_files / readers).max(1);
    let queue = Queue::new(items.len().div_ceil(batch), options.read_ahead_bytes, readers);
    let context = ReaderContext::new(tree, &items, options, queue, batch);
    thread::scope(|scope| {
        let mut failed = None;
        for reader in 0..readers {
            let builder = thread::Builder::new().name(format!("reader {reader}"));
            let started = builder.spawn_scoped(scope, || Worker::new(&context).run());
            failed = failed.or(started.err().filter(|_| reader == 0));
        }
        let summary = match failed {
            Some(error) => Err(ArchiveError::Thread(error)),
            None => Writer::new(options, out, on_event).run(&context.queue),
        };
        // Ends the readers of a failed run.
        context.queue.stop();
        summary.map(|summary| ArchiveSummary { replaced, ..summary })
    })
}
