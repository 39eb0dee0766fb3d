//! Flush sequences: writes that the kernel carries out as several commands.
//!
//! A bio may ask for a flush of the device's cache before its data (preflush), and for its data to
//! be on the medium at its completion (FUA). If the device has a volatile cache, the kernel splits
//! such a write into up to three steps: a flush, the data, and a second flush where the device has
//! no FUA. It takes the flags from the request before it issues the data. A sequence shows as
//! follows, here with all steps:
//!
//! ```text
//! Q FWFS 32788 + 2     the bio
//! D FN   0 + 0         the first flush, which other requests may share
//! C FN   0 + 0
//! D WS   32788 + 2     the data, without the flags
//! C WS   32788 + 2
//! D FN   0 + 0         the second flush
//! C FN   0 + 0
//! C WS   32788 + 0     the end of the request: a completion without a length
//! ```
//!
//! So a D that lacks a flag of its bio begins the data of a sequence, and the request ends with a
//! completion of length 0 at its sector. Traces of some drivers lack the D and C of the flushes.

use rustc_hash::FxHashMap;

use crate::event::{DeviceId, Event, Rwbs};

/// The steps of a flush sequence, as far as the trace shows them. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushSteps {
    /// Issue and completion of the flush before the data.
    pub before_ns: Option<(u64, u64)>,
    /// Completion of the data.
    pub data_completed_ns: Option<u64>,
    /// Issue and completion of the flush after the data.
    pub after_ns: Option<(u64, u64)>,
}

/// The flushes of each device.
#[derive(Debug, Default)]
pub(super) struct DeviceFlushes {
    devices: FxHashMap<DeviceId, DeviceFlush>,
}

#[derive(Debug, Default)]
struct DeviceFlush {
    /// Issue of the flush in the device.
    issued_ns: Option<u64>,
    /// Issue and completion of the last flush that completed.
    last_ns: Option<(u64, u64)>,
    /// Outstanding writes that may be sequences.
    sequences: usize,
    /// True if the end of a flush without data is reported twice: with the flush bit for the
    /// device's flush, and without it for the request that caused the flush.
    completes_twice: bool,
    /// True if the trace has shown the end of a sequence.
    ends_sequences: bool,
}

impl DeviceFlushes {
    /// Counts a write that may be a sequence.
    pub fn add_sequence(&mut self, device: DeviceId) {
        self.devices.entry(device).or_default().sequences += 1;
    }

    /// Counts the end of a write that was counted by [`DeviceFlushes::add_sequence`].
    pub fn remove_sequence(&mut self, device: DeviceId) {
        if let Some(flush) = self.devices.get_mut(&device) {
            flush.sequences = flush.sequences.saturating_sub(1);
        }
    }

    /// Records that the driver took a flush. Returns true if the flush may belong to a sequence.
    pub fn issued(&mut self, event: &Event) -> bool {
        let flush = self.devices.entry(event.device).or_default();
        flush.issued_ns = Some(event.time_ns);
        flush.sequences > 0
    }

    /// Records the completion of a flush. Returns false if the event repeats the end of a flush
    /// that was reported before.
    pub fn completed(&mut self, event: &Event) -> bool {
        let flush = self.devices.entry(event.device).or_default();
        if !event.op.has(Rwbs::FLUSH) {
            return !flush.completes_twice;
        }
        if !event.op.has(Rwbs::WRITE) {
            flush.completes_twice = true;
            let issued_ns = flush.issued_ns.take();
            flush.last_ns = issued_ns.map(|issued_ns| (issued_ns, event.time_ns));
        }
        true
    }

    /// Records the end of a sequence.
    pub fn sequence_ended(&mut self, device: DeviceId) {
        self.devices.entry(device).or_default().ends_sequences = true;
    }

    /// Returns true if the trace shows the ends of the device's sequences.
    pub fn ends_sequences(&self, device: DeviceId) -> bool {
        self.devices.get(&device).is_some_and(|flush| flush.ends_sequences)
    }

    /// Returns the last flush of a device that was issued at or after `from_ns` and has completed.
    pub fn last_since(&self, device: DeviceId, from_ns: u64) -> Option<(u64, u64)> {
        self.devices.get(&device)?.last_ns.filter(|(issued_ns, _)| *issued_ns >= from_ns)
    }
}

/// Returns true if a write with these flags may be a sequence.
pub(super) fn may_be_sequence(op: Rwbs) -> bool {
    op.has(Rwbs::FLUSH) || op.has(Rwbs::FUA)
}

/// Returns true if an issued request lacks a flag of its bio, which makes it the data of a
/// sequence.
pub(super) fn is_data_of_sequence(bio: Rwbs, issued: Rwbs) -> bool {
    [Rwbs::FLUSH, Rwbs::FUA].into_iter().any(|flag| bio.has(flag) && !issued.has(flag))
}
