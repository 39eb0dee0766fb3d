//! The requests in progress: their steps, and the order in which they may be sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hoistway_nbd::client::{RequestSpec, Status};
use hoistway_nbd::wire::{Command, CommandFlags};
use hoistway_qos::{IoId, RequestOp};
use hoistway_reactor::{Buffer, Engine};

/// The first number of a request that is no part of a recovery. Changes that are sent again have
/// lower numbers, so that they come first.
const FIRST: u64 = 1 << 40;

/// The requests in progress.
#[derive(Debug)]
pub(super) struct Requests {
    all: BTreeMap<u64, Request>,
    /// The requests that are not in flight, in the order in which they are sent.
    waiting: BTreeSet<u64>,
    /// The ranges of all changes in progress, with their numbers.
    changes: Vec<(u64, u64, u64)>,
    next: u64,
    next_replay: u64,
}

/// A request to the remote, or several in a row.
#[derive(Debug)]
pub(super) struct Request {
    pub purpose: Purpose,
    pub op: RequestOp,
    /// The range in whole blocks of the remote.
    pub from: u64,
    pub to: u64,
    /// The first byte and the length of the operation.
    pub asked: (u64, u64),
    /// The change must be durable at its end.
    pub is_durable: bool,
    /// The data of a write, from the start of its range.
    pub data: Option<Arc<Buffer>>,
    /// The data of a read that have arrived, from the start of the range.
    pub buffer: Option<Buffer>,
    /// The reply of a read was one hole.
    pub is_hole: bool,
    pub extents: Vec<Status>,
    pub step: Step,
    pub since_ns: u64,
    /// For a flush in flight: the number of the last change in the journal when it was sent.
    pub covers: u64,
    /// A connection was lost while the request was in flight on another one: its reply does not
    /// count.
    pub is_stale: bool,
    /// The connection on which the request is in flight.
    pub slot: Option<usize>,
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An I/O of the device's queue.
    Host { io: IoId },
    /// A change of the journal that is sent again.
    Replay,
    /// A flush that empties the journal.
    OwnFlush,
}

/// The current step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The operation itself.
    Whole,
    /// Reads the blocks of which a change replaces parts.
    Load,
    /// Writes the blocks after the replacement.
    Store,
    /// Flushes after a durable change, at a remote without FUA.
    Flush,
}

impl Request {
    pub fn new(purpose: Purpose, op: RequestOp, (from, to): (u64, u64), since_ns: u64) -> Request {
        Request {
            purpose,
            op,
            from,
            to,
            asked: (from, to - from),
            is_durable: false,
            data: None,
            buffer: None,
            is_hole: false,
            extents: Vec::new(),
            step: Step::Whole,
            since_ns,
            covers: 0,
            is_stale: false,
            slot: None,
        }
    }

    /// Returns the command of the current step. `has_fua` says whether the remote supports FUA.
    pub fn spec(&self, has_fua: bool) -> RequestSpec {
        let command = match (self.step, self.op) {
            (Step::Flush, _) | (Step::Whole, RequestOp::Flush) => Command::Flush,
            (Step::Load, _) | (Step::Whole, RequestOp::Read) => Command::Read,
            (Step::Store, _) | (Step::Whole, RequestOp::Write) => Command::Write,
            (Step::Whole, RequestOp::Zero { .. }) => Command::WriteZeroes,
            (Step::Whole, RequestOp::Trim) => Command::Trim,
            (Step::Whole, RequestOp::Cache) => Command::Cache,
            (Step::Whole, RequestOp::Status) => Command::BlockStatus,
        };
        let no_hole = command == Command::WriteZeroes && self.op == RequestOp::Zero { punch: false };
        let fua = has_fua && self.is_durable && command.changes();
        let (offset, length) = if command == Command::Flush { (0, 0) } else { (self.from, self.to - self.from) };
        RequestSpec { command, flags: CommandFlags { fua, no_hole, ..CommandFlags::default() }, offset, length }
    }

    /// Returns true if the current step changes the remote.
    pub fn is_change(&self) -> bool {
        self.op.writes() && matches!(self.step, Step::Whole | Step::Store)
    }

    /// Returns the memory for the data of a read, which is allocated at the first call.
    pub fn memory<E: Engine>(&mut self, engine: &mut E) -> &mut Buffer {
        let length = (self.to - self.from) as usize;
        self.buffer.get_or_insert_with(|| engine.buffer(length))
    }

    /// Replaces parts of the loaded blocks, which become the data of the next step.
    pub fn replace_parts(&mut self, mut blocks: Buffer) {
        let (offset, length) = self.asked;
        let (start, length) = ((offset - self.from) as usize, length as usize);
        let part = &mut blocks[start..start + length];
        match &self.data {
            Some(data) => part.copy_from_slice(&data[..length]),
            None => part.fill(0),
        }
        self.data = Some(Arc::new(blocks));
        self.step = Step::Store;
    }

    /// Forgets what has arrived of a reply.
    fn reset(&mut self) {
        (self.slot, self.is_stale, self.is_hole) = (None, false, false);
        self.extents.clear();
    }
}

impl Requests {
    pub fn new() -> Requests {
        Requests { all: BTreeMap::new(), waiting: BTreeSet::new(), changes: Vec::new(), next: FIRST, next_replay: 0 }
    }

    /// Adds a request, which waits behind all others.
    pub fn add(&mut self, request: Request) {
        let number = self.next;
        self.next += 1;
        self.insert(number, request);
    }

    /// Adds a change that is sent again; it waits behind the previous ones, and before all other
    /// requests.
    pub fn add_replay(&mut self, request: Request) {
        let number = self.next_replay;
        self.next_replay += 1;
        self.insert(number, request);
    }

    fn insert(&mut self, number: u64, request: Request) {
        if request.op.writes() {
            self.changes.push((number, request.from, request.to));
        }
        self.all.insert(number, request);
        self.waiting.insert(number);
    }

    pub fn get(&self, number: u64) -> Option<&Request> {
        self.all.get(&number)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Request> {
        self.all.get_mut(&number)
    }

    pub fn remove(&mut self, number: u64) -> Option<Request> {
        let request = self.all.remove(&number)?;
        self.waiting.remove(&number);
        if request.op.writes()
            && let Some(at) = self.changes.iter().position(|(change, ..)| *change == number)
        {
            self.changes.swap_remove(at);
        }
        Some(request)
    }

    /// Returns the first waiting request with this number or a higher one.
    pub fn waiting_from(&self, number: u64) -> Option<u64> {
        self.waiting.range(number..).next().copied()
    }

    /// Returns true if an earlier change of the same bytes is in progress.
    pub fn is_blocked(&self, number: u64) -> bool {
        let Some(Request { from, to, .. }) = self.all.get(&number) else { return false };
        self.changes.iter().any(|(other, start, end)| *other < number && start < to && from < end)
    }

    /// Counts a request as in flight on a connection.
    pub fn set_sent(&mut self, number: u64, slot: usize) {
        self.waiting.remove(&number);
        if let Some(request) = self.all.get_mut(&number) {
            request.slot = Some(slot);
        }
    }

    /// Lets a request wait: for its next step, or to be sent again.
    pub fn wait(&mut self, number: u64) {
        if let Some(request) = self.all.get_mut(&number) {
            request.reset();
            self.waiting.insert(number);
        }
    }

    /// Lets all requests in flight on a connection wait.
    pub fn wait_all_of(&mut self, slot: usize) {
        let of_slot: Vec<u64> =
            self.all.iter().filter(|(_, request)| request.slot == Some(slot)).map(|(number, _)| *number).collect();
        of_slot.into_iter().for_each(|number| self.wait(number));
    }

    /// Removes the changes of a recovery that wait; those in flight on other connections stay
    /// until they end.
    pub fn remove_waiting_replays(&mut self) {
        let replays: Vec<u64> = self.waiting.range(..FIRST).copied().collect();
        replays.into_iter().for_each(|number| drop(self.remove(number)));
    }

    /// Discards the replies to all reads and flushes in flight: the remote may have lost changes
    /// before it executed them.
    pub fn make_stale(&mut self) {
        for request in self.all.values_mut() {
            request.is_stale |= request.slot.is_some() && !request.is_change();
        }
    }

    /// Returns true if a change is in flight on any connection.
    pub fn has_changes_in_flight(&self) -> bool {
        self.all.values().any(|request| request.slot.is_some() && request.is_change())
    }

    /// Returns true if a flush that empties the journal is in progress.
    pub fn has_own_flush(&self) -> bool {
        self.all.values().any(|request| request.purpose == Purpose::OwnFlush)
    }

    /// Returns the time of the oldest request in ns. Requests have ascending times, except those of
    /// a recovery, which come first.
    pub fn oldest_ns(&self) -> Option<u64> {
        let replay = self.all.first_key_value();
        let other = self.all.range(FIRST..).next();
        [replay, other].into_iter().flatten().map(|(_, request)| request.since_ns).min()
    }

    /// Returns the connections on which a request of this time or earlier is in flight.
    pub fn slots_of_expired(&self, limit_ns: u64) -> BTreeSet<usize> {
        self.all.values().filter(|request| request.since_ns <= limit_ns).filter_map(|request| request.slot).collect()
    }

    /// Removes the requests of this time or earlier, except changes of a recovery.
    pub fn take_expired(&mut self, limit_ns: u64) -> Vec<Request> {
        let expired = self.all.range(FIRST..).filter(|(_, request)| request.since_ns <= limit_ns);
        let expired: Vec<u64> = expired.map(|(number, _)| *number).collect();
        expired.into_iter().filter_map(|number| self.remove(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(from: u64, to: u64) -> Request {
        Request::new(Purpose::Host { io: IoId::of_number(0) }, RequestOp::Write, (from, to), 0)
    }

    #[test]
    fn only_earlier_changes_of_the_same_bytes_block() {
        let mut requests = Requests::new();
        requests.add(write(0, 10));
        requests.add(write(10, 20));
        requests.add(write(5, 15));
        let blocked: Vec<bool> = (FIRST..FIRST + 3).map(|number| requests.is_blocked(number)).collect();
        assert_eq!(blocked, [false, false, true]);
        requests.remove(FIRST);
        requests.remove(FIRST + 1);
        assert!(!requests.is_blocked(FIRST + 2));
    }

    #[test]
    fn changes_that_are_sent_again_come_first() {
        let mut requests = Requests::new();
        requests.add(write(0, 10));
        requests.add_replay(Request::new(Purpose::Replay, RequestOp::Write, (0, 10), 5));
        let first = requests.waiting_from(0).expect("two wait");
        assert_eq!(requests.get(first).map(|request| request.purpose), Some(Purpose::Replay));
        assert!(!requests.is_blocked(first) && requests.is_blocked(FIRST));
        assert_eq!(requests.oldest_ns(), Some(0));
    }
}
