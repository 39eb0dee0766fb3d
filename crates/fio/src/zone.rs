//! Types of the options that restrict a job to zones of its files.

/// The kind of zones: fio's `zonemode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneMode {
    /// `none`: no zones.
    #[default]
    None,
    /// `strided`: `size` bytes are moved within one zone, then the next zone follows.
    Strided,
    /// `zbd`: zones of a zoned block device, each written from its start to its end.
    Zbd,
}

/// The zones of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// The kind of zones.
    pub mode: ZoneMode,
    /// Bytes moved in a zone, or the size of a zone of a zoned device: `zonesize`.
    pub size: u64,
    /// Bytes of a zone: `zonerange`. 0 means `size`.
    pub range: u64,
    /// Bytes between two zones: `zoneskip`.
    pub skip: u64,
    /// Bytes of a zone that can be written: `zonecapacity`. 0 means `size`.
    pub capacity: u64,
    /// Most zones that are written at once: `max_open_zones`. 0 for no limit.
    pub open_max: u32,
    /// True if reads may go beyond what was written: `read_beyond_wp`.
    pub read_beyond: bool,
}

impl Zones {
    /// No zones.
    pub const NONE: Zones =
        Zones { mode: ZoneMode::None, size: 0, range: 0, skip: 0, capacity: 0, open_max: 0, read_beyond: false };

    /// Bytes of a zone.
    pub fn zone_bytes(&self) -> u64 {
        if self.range > 0 { self.range } else { self.size }
    }

    /// Bytes from the start of a zone to the start of the next.
    pub fn stride(&self) -> u64 {
        self.zone_bytes().saturating_add(self.skip)
    }

    /// Bytes of a zone that can be written.
    pub fn writable(&self) -> u64 {
        if self.capacity > 0 { self.capacity.min(self.zone_bytes()) } else { self.zone_bytes() }
    }
}
