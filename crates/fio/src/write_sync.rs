//! What a write waits for: `sync`.

/// The flag with which a job opens its files for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteSync {
    /// None: a write waits for the page cache or the drive.
    #[default]
    None,
    /// O_DSYNC: until its data, and the metadata that reading them needs, are safe.
    Dsync,
    /// O_SYNC: until its data and all metadata of the file are safe.
    Sync,
}
