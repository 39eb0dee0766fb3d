//! A cloud volume: two accounts in series, then a latency.
//!
//! A command waits, in the order of arrival, until the account of operations and then the account of bytes cover it (token buckets: J. Turner,
//! "New directions in communications", IEEE Communications 24(10), 1986); it is over a latency later. An operation is charged once for each unit that
//! it fills or begins; one that goes on where the one before it ends, and comes while that one still waits, is merged with it and charged only for
//! the units that both together begin anew. What has been answered is kept: a flush costs its way there and back.

mod bucket;
mod jitter;

use crate::command::{Access, Command, Completion, Op, Phases, SECTOR_BYTES, Service, Source, Status};
use crate::pending::Pending;
use crate::profile::{BucketProfile, CloudProfile};
use bucket::Bucket;
use jitter::Jitter;

/// A volume with limits on operations and on bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cloud {
    capacity_sectors: u64,
    depth: u32,
    unit_bytes: u64,
    operations: Account,
    bytes: Account,
    jitter: Jitter,
    /// The operation charged last, which a neighbour may become part of.
    last: Option<Charged>,
    pending: Pending,
}

/// An account, and how fast it may be drawn on.
#[derive(Debug, Clone)]
struct Account {
    content: Bucket,
    ceiling: Option<Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Charged {
    op: Op,
    end_sector: u64,
    bytes: u64,
    /// When it is let in.
    admitted_ns: u64,
}

impl Cloud {
    pub(crate) fn new(profile: &CloudProfile) -> Cloud {
        let unit_bytes = u64::from(profile.unit_bytes);
        Cloud {
            capacity_sectors: profile.capacity_sectors,
            depth: profile.depth,
            unit_bytes,
            operations: Account::new(&profile.operations, 1),
            bytes: Account::new(&profile.bytes, unit_bytes),
            jitter: Jitter::new(&profile.latency),
            last: None,
            pending: Pending::default(),
        }
    }

    /// How many sectors the volume has.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// How many commands it takes at once.
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

    /// Charges a transfer and answers when it is let in.
    fn admit(&mut self, now_ns: u64, access: &Access) -> u64 {
        let bytes = u64::from(access.sectors) * SECTOR_BYTES;
        let end_sector = access.end();
        let joins = |last: &Charged| {
            last.op == access.op
                && last.end_sector == access.sector
                && last.admitted_ns > now_ns
                && last.bytes + bytes <= self.unit_bytes
        };
        let before = self.last.filter(joins).map_or(0, |last| last.bytes);
        let operations = (before + bytes).div_ceil(self.unit_bytes) - before.div_ceil(self.unit_bytes);
        let let_in_ns = self.operations.draw(now_ns, operations);
        let admitted_ns = self.bytes.draw(let_in_ns, bytes);
        self.last = Some(Charged { op: access.op, end_sector, bytes: before + bytes, admitted_ns });
        admitted_ns
    }
}

impl Account {
    /// `one` is what may be drawn at once by a ceiling, which is about rates.
    fn new(profile: &BucketProfile, one: u64) -> Account {
        Account {
            content: Bucket::new(profile.rate_per_s, profile.depth, profile.start),
            ceiling: profile.ceiling_per_s.map(|rate| Bucket::new(rate, one, one)),
        }
    }

    /// Draws `amount` from `now_ns` on, after all that was drawn before; answers when it is covered.
    fn draw(&mut self, now_ns: u64, amount: u64) -> u64 {
        let covered_ns = self.content.draw(now_ns, amount);
        self.ceiling.as_mut().map_or(covered_ns, |ceiling| ceiling.draw(covered_ns, amount))
    }
}
