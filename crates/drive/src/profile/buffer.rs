//! The parameters of the read-ahead buffer and the write cache of a disk.

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BufferProfile {
    pub(crate) enabled: bool,
    pub(crate) segments: u32,
    pub(crate) segment_sectors: u32,
    pub(crate) read_ahead_sectors: u32,
    pub(crate) read_ahead_until: ReadAheadUntil,
    pub(crate) read_ahead_when: ReadAheadWhen,
    pub(crate) immediate_read: bool,
    pub(crate) replacement: Replacement,
    /// What writes complete in; `None`: they complete on the media.
    pub(crate) write_cache: Option<WriteCacheProfile>,
}

/// What a write cache holds and when it is emptied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WriteCacheProfile {
    /// The most dirty sectors.
    pub(crate) sectors: u64,
    /// The most runs of dirty sectors, and how many that were written stay readable.
    pub(crate) runs: usize,
    /// The share of either above which the cache is emptied whatever else there is to do, and the one at which that ends.
    pub(crate) high: f64,
    pub(crate) low: f64,
    /// The arm has been free for so long when idle emptying begins.
    pub(crate) idle_ns: u64,
}

/// Which segment is given up for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replacement {
    /// The one used longest ago.
    #[default]
    Lru,
    /// One after the other.
    RoundRobin,
}

/// After which reads the drive reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAheadWhen {
    /// After every one.
    #[default]
    Always,
    /// After those that go on where a segment ends: a single read shows no need of it.
    Sequential,
}

/// How far read-ahead goes when no command stops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAheadUntil {
    /// The segment is full.
    Segment,
    /// The end of the track on which the command ended.
    Track,
    /// The end of the track after it.
    NextTrack,
    /// The end of the cylinder on which the command ended.
    Cylinder,
}
