//! The way of each request: what happened to it, from its bios' submission to its completion, found again in the events.

use crate::batch::Batch;
use crate::event::{DeviceId, Rwbs};

/// The way of one request. Times are those of the events; a step that the trace does not show is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The device.
    pub device: DeviceId,
    /// What it does, and how: of its first bio.
    pub op: Rwbs,
    /// Its first sector when it was over (or was last seen).
    pub sector: u64,
    /// Its length in bytes then.
    pub bytes: u32,
    /// Whose it is: the process of its first bio, or who issued it where no bio was seen.
    pub pid: u32,
    /// Its first bio was submitted (Q).
    pub queued_ns: Option<u64>,
    /// The request was allocated (G).
    pub got_ns: Option<u64>,
    /// It went to the elevator (I).
    pub inserted_ns: Option<u64>,
    /// The driver took it (D), for the last time if it was given back in between.
    pub issued_ns: Option<u64>,
    /// It completed (C).
    pub completed_ns: Option<u64>,
    /// The bios that were merged into it, after its first.
    pub merged: Vec<Merged>,
    /// How often the driver gave it back (R).
    pub requeues: u32,
    /// The error with which it completed; 0 for none.
    pub error: u16,
}

/// A bio that was merged into a request that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Whose it is.
    pub pid: u32,
    /// When it was submitted (Q), or merged where the trace does not show that.
    pub queued_ns: u64,
    /// When it was merged (M or F).
    pub merged_ns: u64,
    /// Its first sector.
    pub sector: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// To the front of the request, not to its end.
    pub front: bool,
}

/// Finds the ways of requests in a stream of events: memory grows with what is under way, not with the trace.
#[derive(Debug, Default)]
pub struct Lives {
    over: Vec<Life>,
}

impl Lives {
    /// Nothing seen yet.
    pub fn new() -> Lives {
        Lives::default()
    }

    /// Takes in events, in the order of time.
    pub fn take(&mut self, _batch: &Batch) {}

    /// The requests that are over since this was last called, in the order of their completions.
    pub fn over(&mut self) -> std::vec::Drain<'_, Life> {
        self.over.drain(..)
    }

    /// The trace is over: what is still under way, by the time at which it was first seen.
    pub fn rest(self) -> Vec<Life> {
        Vec::new()
    }
}
