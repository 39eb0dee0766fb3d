//! Zones: the parts of a file that a job works on one after the other (`zonemode=strided`), and
//! those of a zoned device, each of which is written from its start to its end (`zonemode=zbd`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_fio::Zones;
use rand::RngExt;
use rand_pcg::Pcg64;

/// The current zone of a strided job, from the region's start.
#[derive(Clone, Debug)]
pub(crate) struct StridedZone {
    zones: Zones,
    /// Start of the zone.
    pub start: u64,
    /// Bytes moved in the zone.
    moved: u64,
}

impl StridedZone {
    pub fn new(zones: Zones) -> StridedZone {
        StridedZone { zones, start: 0, moved: 0 }
    }

    /// Goes on to the next zone if enough bytes were moved in this one. Returns true if a zone
    /// begins. `len` is the length of the region, `smallest` that of a request.
    pub fn advance(&mut self, len: u64, smallest: u64) -> bool {
        if self.moved < self.zones.size {
            return self.moved == 0;
        }
        self.moved = 0;
        self.start = self.start.saturating_add(self.zones.stride().max(1));
        if self.start >= len || len - self.start < smallest {
            self.start = 0;
        }
        true
    }

    /// Length of the zone, in bytes: the last one may be shorter.
    pub fn len(&self, region_len: u64) -> u64 {
        self.zones.zone_bytes().min(region_len - self.start.min(region_len))
    }

    /// Bytes that may still be moved in the zone.
    pub fn left(&self) -> u64 {
        self.zones.size - self.moved.min(self.zones.size)
    }

    pub fn moved(&mut self, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
    }
}

/// The zones of a zoned device, which all processes that use it share.
#[derive(Clone, Debug)]
pub struct WrittenZones(Arc<Mutex<Written>>);

#[derive(Debug)]
struct Written {
    zones: Zones,
    /// Bytes written in each zone.
    written: Vec<u64>,
    /// Zones that are written partly, and not to their end.
    open: Vec<usize>,
}

impl WrittenZones {
    /// The zones of a region of this many bytes. They are empty, or written to their end.
    pub fn new(zones: Zones, region_bytes: u64, are_full: bool) -> WrittenZones {
        let count = usize::try_from(region_bytes / zones.zone_bytes().max(1)).unwrap_or(usize::MAX);
        let written = if are_full { zones.writable() } else { 0 };
        WrittenZones(Arc::new(Mutex::new(Written { zones, written: vec![written; count.max(1)], open: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a write that a job would make at this position: the position, and the bytes of
    /// the zone that are left. The zone's end is moved by `bytes` at most.
    pub(crate) fn write(&self, position: u64, bytes: u64, rng: &mut Pcg64) -> (u64, u64) {
        let mut zones = self.lock();
        let (zone_bytes, writable) = (zones.zones.zone_bytes().max(1), zones.zones.writable());
        let count = zones.written.len();
        let wished = (position / zone_bytes) as usize % count;
        let most = zones.zones.open_max as usize;
        let may_open = most == 0 || zones.open.len() < most;
        let zone = match zones.written[wished] {
            _ if zones.open.contains(&wished) => wished,
            _ if !may_open => zones.open[rng.random_range(0..zones.open.len())],
            written if written < writable => wished,
            _ => {
                let next =
                    (wished..wished + count).map(|zone| zone % count).find(|zone| zones.written[*zone] < writable);
                next.unwrap_or_else(|| {
                    // All zones are full: this one is reset.
                    zones.written[wished] = 0;
                    wished
                })
            }
        };
        if !zones.open.contains(&zone) {
            zones.open.push(zone);
        }
        let at = zones.written[zone];
        let bytes = bytes.min(writable - at);
        zones.written[zone] = at + bytes;
        if zones.written[zone] >= writable {
            zones.open.retain(|open| *open != zone);
        }
        (zone as u64 * zone_bytes + at, bytes)
    }

    /// The place of a read that a job would make at this position: a position below what was
    /// written, and the written bytes from there. `None` if nothing was written.
    pub(crate) fn read(&self, position: u64, grain: u64) -> Option<(u64, u64)> {
        let zones = self.lock();
        let zone_bytes = zones.zones.zone_bytes().max(1);
        let count = zones.written.len();
        let wished = (position / zone_bytes) as usize % count;
        let zone = (wished..wished + count).map(|zone| zone % count).find(|zone| zones.written[*zone] >= grain)?;
        let written = zones.written[zone];
        let within = if zone == wished { position % zone_bytes } else { 0 };
        let blocks = (written / grain.max(1)).max(1);
        let within = if within >= written { within / grain.max(1) % blocks * grain } else { within };
        Some((zone as u64 * zone_bytes + within, written - within))
    }

    /// Resets the first written zone at or after a position: its start and length. `None` if no
    /// zone was written.
    pub(crate) fn reset(&self, position: u64) -> Option<(u64, u64)> {
        let mut zones = self.lock();
        let zone_bytes = zones.zones.zone_bytes().max(1);
        let count = zones.written.len();
        let wished = (position / zone_bytes) as usize % count;
        let zone = (wished..wished + count).map(|zone| zone % count).find(|zone| zones.written[*zone] > 0)?;
        zones.written[zone] = 0;
        zones.open.retain(|open| *open != zone);
        Some((zone as u64 * zone_bytes, zone_bytes))
    }
}
