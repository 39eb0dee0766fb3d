//! A cloud volume: two token buckets in series, then a latency.
//!
//! A command waits in the order of arrival until the bucket of operations and then the bucket of
//! bytes cover it (token buckets: J. Turner, "New directions in communications", IEEE
//! Communications 24(10), 1986). It completes a latency later. An operation costs one token for
//! each unit that it fills or begins. An operation that continues the one before, while that one
//! still waits, is merged with it and pays only for additional units. Completed writes are durable:
//! a flush costs one round trip.

mod bucket;

use crate::command::{Access, Command, Completion, Op, Phases, SECTOR_BYTES, Service, Source, Status};
use crate::jitter::Jitter;
use crate::pending::Pending;
use crate::profile::{BucketProfile, CloudProfile};
use bucket::Bucket;

/// A volume with limits on operations and bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cloud {
    capacity_sectors: u64,
    depth: u32,
    unit_bytes: u64,
    operations: LimitedBucket,
    bytes: LimitedBucket,
    jitter: Jitter,
    /// The operation charged last, with which an adjacent one may be merged.
    last: Option<ChargedOperation>,
    pending: Pending,
}

/// A token bucket with a ceiling on its drain rate.
#[derive(Debug, Clone)]
struct LimitedBucket {
    content: Bucket,
    ceiling: Option<Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct ChargedOperation {
    op: Op,
    end_sector: u64,
    bytes: u64,
    /// The time of admission.
    admitted_ns: u64,
}

impl Cloud {
    pub(crate) fn new(profile: &CloudProfile) -> Cloud {
        let unit_bytes = u64::from(profile.unit_bytes);
        Cloud {
            capacity_sectors: profile.capacity_sectors,
            depth: profile.depth,
            unit_bytes,
            operations: LimitedBucket::new(&profile.operations, 1),
            bytes: LimitedBucket::new(&profile.bytes, unit_bytes),
            jitter: {
                let latency = &profile.latency;
                Jitter::new(latency.floor_ns, latency.jitter_median_ns, latency.jitter_sigma_milli, latency.seed)
            },
            last: None,
            pending: Pending::default(),
        }
    }

    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// The largest number of commands in flight.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) {
        let admitted_ns = match command {
            Command::Transfer { access, .. } => self.admit(now_ns, access),
            Command::Flush | Command::Discard { .. } => now_ns,
        };
        let latency_ns = self.jitter.draw_ns();
        let finish_ns = admitted_ns.saturating_add(latency_ns);
        let phases =
            Phases { wait_ns: admitted_ns - now_ns, overhead_ns: finish_ns - admitted_ns, ..Phases::default() };
        self.pending.add(tag, Service { finish_ns, phases, source: Source::Media, cylinder: 0 }, Status::Done);
    }

    #[inline]
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.pending.next_event_ns()
    }

    #[inline]
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        self.pending.poll(now_ns)
    }

    /// Charges a transfer and returns the time of its admission.
    fn admit(&mut self, now_ns: u64, access: &Access) -> u64 {
        let bytes = u64::from(access.sectors) * SECTOR_BYTES;
        let end_sector = access.end();
        let joins = |last: &ChargedOperation| {
            last.op == access.op
                && last.end_sector == access.sector
                && last.admitted_ns > now_ns
                && last.bytes + bytes <= self.unit_bytes
        };
        let before = self.last.filter(joins).map_or(0, |last| last.bytes);
        let operations = (before + bytes).div_ceil(self.unit_bytes) - before.div_ceil(self.unit_bytes);
        let let_in_ns = self.operations.draw(now_ns, operations);
        let admitted_ns = self.bytes.draw(let_in_ns, bytes);
        self.last = Some(ChargedOperation { op: access.op, end_sector, bytes: before + bytes, admitted_ns });
        admitted_ns
    }
}

impl LimitedBucket {
    /// `one` is the amount that the ceiling, which limits a rate, lets through at once.
    fn new(profile: &BucketProfile, one: u64) -> LimitedBucket {
        LimitedBucket {
            content: Bucket::new(profile.rate_per_s, profile.depth, profile.start),
            ceiling: profile.ceiling_per_s.map(|rate| Bucket::new(rate, one, one)),
        }
    }

    /// Draws `amount` after all earlier draws and returns the time at which it is covered.
    fn draw(&mut self, now_ns: u64, amount: u64) -> u64 {
        let covered_ns = self.content.draw(now_ns, amount);
        self.ceiling.as_mut().map_or(covered_ns, |ceiling| ceiling.draw(covered_ns, amount))
    }
}
