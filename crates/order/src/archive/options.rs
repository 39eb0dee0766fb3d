//! Options of an archive run.

use super::attributes::AttributeSelection;
use super::header::Format;
use crate::sort::SortKey;
use crate::tree::FollowLinks;

/// Default number of reader threads.
pub const READERS: usize = 4;
/// Default read-ahead distance in files.
pub const READ_AHEAD_FILES: usize = 256;
/// Default limit of the data that wait for the writer, in bytes.
pub const READ_AHEAD_BYTES: usize = 32 << 20;

/// Options of [`write()`](super::write()).
#[derive(Clone)]
pub struct Options<'a> {
    /// The archive format.
    pub format: Format,
    /// The order of the members.
    pub by: SortKey,
    /// True if the tree was filled from a list, so that the contents of a directory are separate
    /// roots.
    pub is_list: bool,
    /// The link mode of the walk. With [`FollowLinks::Always`] the targets of links are archived.
    pub follow: FollowLinks,
    /// Store owner numbers without names.
    pub numeric_owner: bool,
    /// Keep leading slashes and `..` in member names.
    pub absolute_names: bool,
    /// Store holes as holes.
    pub sparse: bool,
    /// Which extended attributes are stored.
    pub attributes: AttributeSelection,
    /// Device and inode numbers of the archive and of the file that it replaces. These files are
    /// not archived.
    pub archive: &'a [(u64, u64)],
    /// Report an event for each member.
    pub report_members: bool,
    /// Number of reader threads.
    pub readers: usize,
    /// Largest number of files that are read ahead, at least one per reader.
    pub read_ahead_files: usize,
    /// Largest number of bytes that wait for the writer. Each reader has at least 256 KiB, and the
    /// writer has two more buffers of that size.
    pub read_ahead_bytes: usize,
    /// Called now and then with the number of written members.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Called by reader threads, for tests that change files during the run.
    #[doc(hidden)]
    pub hook: Option<Hook<'a>>,
}

/// Receives a phase and the path of the file.
#[doc(hidden)]
pub type Hook<'a> = &'a (dyn Fn(ReadPhase, &[u8]) + Sync);

/// A phase of reading one file.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPhase {
    /// Before the file is opened.
    Found,
    /// The file is open and its size is known.
    Opened,
    /// The file was read.
    Read,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            format: Format::default(),
            by: SortKey::Auto,
            is_list: false,
            follow: FollowLinks::default(),
            numeric_owner: false,
            absolute_names: false,
            sparse: true,
            attributes: AttributeSelection::default(),
            archive: &[],
            report_members: false,
            readers: READERS,
            read_ahead_files: READ_AHEAD_FILES,
            read_ahead_bytes: READ_AHEAD_BYTES,
            progress: None,
            hook: None,
        }
    }
}
