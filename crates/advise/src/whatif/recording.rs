//! The recorded requests of a device, and the errors of predictions from them.

use hoistway_core::Op;
use hoistway_sim::SimError;
use hoistway_trace::dependencies::SubmittedRequest;
use hoistway_trace::{ReadError, Rwbs};

/// The recorded requests of one device.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The processes.
    pub processes: Vec<RecordedProcess>,
    /// Start of the recording, in ns of the trace's clock.
    pub from_ns: u64,
    /// End of the recording, in ns of the trace's clock.
    pub until_ns: u64,
}

/// The recorded requests of one process.
#[derive(Clone, Debug)]
pub struct RecordedProcess {
    /// Name of the process.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// The requests, in the order of their arrivals.
    pub requests: Vec<SubmittedRequest>,
}

impl Recording {
    /// Length of the recording, in ns.
    pub fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

/// The operation of a request with data.
pub(super) fn op_of(op: Rwbs) -> Option<Op> {
    if op.has(Rwbs::DISCARD) {
        Some(Op::Discard)
    } else if op.has(Rwbs::WRITE) {
        Some(Op::Write)
    } else if op.has(Rwbs::READ) {
        Some(Op::Read)
    } else {
        None
    }
}

/// Returns true for a flush without data.
pub(super) fn is_flush(request: &SubmittedRequest) -> bool {
    request.bytes == 0 && request.op.has(Rwbs::FLUSH)
}

/// The sector after a request.
pub(super) fn end_of(request: &SubmittedRequest) -> u64 {
    request.sector.saturating_add(u64::from(request.bytes).div_ceil(512))
}

/// Reasons why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub enum WhatifError {
    /// The recording has no completed request with data.
    #[error(
        "the trace has no request with data whose start and completion it shows: it allows no validated prediction"
    )]
    Nothing,
    /// The recording reaches beyond the drive's last sector.
    #[error(
        "the trace reaches sector {sector} and the drive `{drive}` has {capacity_sectors} sectors: choose a larger drive"
    )]
    Beyond {
        /// The last sector of the trace.
        sector: u64,
        /// Name of the drive's profile.
        drive: String,
        /// Number of sectors of the drive.
        capacity_sectors: u64,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The trace does not contain the device.
    #[error("there is no device `{wanted}` in the trace: its devices are {known}")]
    NoDevice {
        /// The requested device.
        wanted: String,
        /// The devices in the trace.
        known: String,
    },
    /// The simulation failed.
    #[error(transparent)]
    Sim(#[from] SimError),
}
