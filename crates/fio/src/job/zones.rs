//! Options that restrict a job to zones of its files.

use super::option::{Subject, option, switch};
use crate::{
    size::Size,
    values::{Fault, Value, put},
};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Zones",
    options: &[
        option("zonemode", &[], |job, v| put(&mut job.zones.mode, v.word(&[("none", ZoneMode::None), ("strided", ZoneMode::Strided), ("zbd", ZoneMode::Zbd)])), "`none`, `strided`, `zbd`", "`none`", "The kind of zones to which requests are restricted."),
        option("zonesize", &[], |job, v| put(&mut job.zones.size, v.count(0)), "a size", "required with `zonemode`", "The bytes moved in a zone (strided), or the size of a zone (zbd: 256 MiB without it)."),
        option("zonerange", &[], |job, v| put(&mut job.zones.range, v.count(0)), "a size", "`zonesize`", "The bytes of a zone (strided)."),
        option("zoneskip", &[], |job, v| put(&mut job.zones.skip, zone_skip(v)), "a size", "`0`", "The bytes between two zones."),
        option("zonecapacity", &[], |job, v| put(&mut job.zones.capacity, v.count(0)), "a size", "`zonesize`", "The bytes of a zone that can be written (zbd)."),
        option("max_open_zones", &[], |job, v| job.zones.limit_open(v), "a number", "no limit", "The maximum number of zones that are written at a time (zbd)."),
        option("job_max_open_zones", &[], |job, v| job.zones.limit_open(v), "a number", "no limit", "The same for the job; the smaller one counts."),
        switch("read_beyond_wp", &[], |job| &mut job.zones.read_beyond, "`0`", "Reads may go beyond what was written (zbd)."),
    ],
};

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
    /// Sets a limit of `max_open_zones` or `job_max_open_zones`; the smaller one counts.
    fn limit_open(&mut self, v: Value) -> Result<(), Fault> {
        let (most, known) = (v.count_u32(0)?, self.open_max);
        self.open_max = if known > 0 && most > 0 { known.min(most) } else { known.max(most) };
        Ok(())
    }

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

/// Parses bytes between zones.
fn zone_skip(v: Value) -> Result<u64, Fault> {
    match v.size()? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Percent(_) => Err(Fault::with_help(format!("`{}` is a percentage", v.text), "give bytes")),
    }
}
