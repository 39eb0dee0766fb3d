//! The parameters of the read-ahead buffer and the write cache of a disk.

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BufferProfile {
    pub(crate) enabled: bool,
    pub(crate) segments: u32,
    pub(crate) segment_sectors: u32,
    pub(crate) read_ahead_sectors: u32,
    /// Sectors that are read ahead even if another command waits for the arm.
    pub(crate) read_ahead_min_sectors: u32,
    pub(crate) read_ahead_until: ReadAheadUntil,
    pub(crate) read_ahead_when: ReadAheadWhen,
    pub(crate) immediate_read: bool,
    pub(crate) replacement: Replacement,
    /// True if sectors stay readable after the host has read them.
    pub(crate) keep_read: bool,
    /// True if sectors that were read stay readable after a write into the cache.
    pub(crate) keep_after_write: bool,
    /// True if written sectors can be read from the cache.
    pub(crate) keep_written: bool,
    /// The write cache; `None` if writes complete on the media.
    pub(crate) write_cache: Option<WriteCacheProfile>,
}

/// The capacity of a write cache and the conditions under which it is emptied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WriteCacheProfile {
    /// The largest number of dirty sectors.
    pub(crate) sectors: u64,
    /// The largest number of runs of dirty sectors. As many clean runs stay readable.
    pub(crate) runs: usize,
    /// Fill level, as a share of `sectors`: forced write-back starts above `high` and ends at
    /// `low`.
    pub(crate) high: f64,
    pub(crate) low: f64,
    /// Idle time of the arm after which write-back starts.
    pub(crate) idle_ns: u64,
    /// Sectors of a run that are written before it is another run's turn: a segment.
    pub(crate) turn_sectors: u64,
}

/// The segment that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replacement {
    /// The least recently used one.
    #[default]
    Lru,
    /// The segments in turn.
    RoundRobin,
}

/// The reads that start read-ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAheadWhen {
    /// Every read.
    #[default]
    Always,
    /// Only a read that continues a segment. A single read does not show a sequential stream.
    Sequential,
}

/// The end of read-ahead unless a command interrupts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAheadUntil {
    /// The end of the segment.
    Segment,
    /// The end of the track on which the command ends.
    Track,
    /// The end of the following track.
    NextTrack,
    /// The end of the cylinder on which the command ends.
    Cylinder,
}
