//! What a write waits for: `sync`.

/// The flag with which a job opens its files for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteSync {
    /// No flag: a write ends when its data are in the page cache, or in the drive with `direct=1`.
    #[default]
    None,
    /// O_DSYNC: until its data, and the metadata needed to read them, are on stable storage.
    Dsync,
    /// O_SYNC: until its data and all metadata of the file are on stable storage.
    Sync,
}
