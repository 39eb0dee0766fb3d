//! Addresses on the disk for objects: files and blocks of a distributed file system, or keys.

use std::hash::Hasher as _;
use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHasher};

use crate::event::DeviceId;
use crate::text::LineOutput;

/// Length of a region in bytes.
const REGION_BYTES: u64 = 1 << 20;
/// Maximum number of remembered regions. When it is reached, all are forgotten.
const REGIONS_MAX: usize = 1 << 22;
/// Maximum length of a request whose regions are allocated one after the other, in bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// Gives each region of 1 MiB of an object a region of the disk, on first use, one after the other.
/// Clones share the regions.
///
/// An object that is used from its start to its end is contiguous on the disk, and its addresses
/// keep their order. The addresses of the real disk are unknown.
#[derive(Clone, Debug, Default)]
pub struct ObjectPlaces(Arc<Mutex<Regions>>);

#[derive(Debug, Default)]
struct Regions {
    /// Numbers of the regions of the disk, by device, object and region of the object.
    known: FxHashMap<(DeviceId, u64, u64), u64>,
    /// Number of regions in use on each device.
    used: FxHashMap<DeviceId, u64>,
}

impl ObjectPlaces {
    /// Remark about addresses of objects.
    pub const REMARK: &'static str = "the trace has objects and no addresses: each MiB of an object gets a place on the disk when it is \
                                      first used, one after the other";

    /// Returns the address of byte `offset` of an object on a device, in bytes. `bytes` is the
    /// length of the request that begins there.
    pub fn address(&self, device: DeviceId, object: u64, offset: u64, bytes: u64, out: &mut LineOutput<'_>) -> u64 {
        // The lock is never held across a panic; if it were, the regions would still be consistent.
        let mut regions = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if regions.known.len() >= REGIONS_MAX {
            regions.known.clear();
            let kind = "objects that were seen before get new places: more than 4,194,304 regions of 1 MiB are in use";
            out.notices.count(kind, out.position, || format!("object {object:016x}"));
        }
        let first = offset / REGION_BYTES;
        let last = offset.saturating_add(bytes.clamp(1, REQUEST_BYTES_MAX) - 1) / REGION_BYTES;
        let place = regions.place(device, object, first);
        (first + 1..=last).for_each(|region| {
            regions.place(device, object, region);
        });
        place.saturating_mul(REGION_BYTES).saturating_add(offset % REGION_BYTES)
    }
}

impl Regions {
    fn place(&mut self, device: DeviceId, object: u64, region: u64) -> u64 {
        let used = self.used.entry(device).or_default();
        *self.known.entry((device, object, region)).or_insert_with(|| {
            *used += 1;
            *used - 1
        })
    }
}

/// Returns a number for the name of an object. Two names of a trace practically never have the same
/// number, which has 64 bits.
pub fn object_of(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}
