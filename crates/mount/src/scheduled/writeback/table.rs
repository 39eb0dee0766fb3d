//! What is in memory for one disk, and what of it is on its way. It is told the time, and asks no system for anything.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::people::Key;
use super::super::queue::REQUEST_BYTES_MAX;
use super::super::ranges::Ranges;
use super::File;
use super::owners::Owners;
use super::room::Waiting;
use crate::{Ask, Asker, Backing, Job};

/// Writes of one file that somebody waits for and that are in the queue at a time.
const URGENT_A_FILE: usize = 32;
/// A part of a file that several wait for is put into the queue in the name of so many of them: it is done when the first of these has his turn.
const NAMES_MAX: usize = 4;
/// So many writes are begun in one go, about: the table is locked meanwhile.
const BATCH: usize = 64;

/// All of it.
#[derive(Default)]
pub(super) struct Table {
    files: FxHashMap<File, Dirty>,
    pub owners: Owners,
    /// Files with data that somebody waits for and that are not begun.
    urgent: VecDeque<File>,
    /// Files that somebody waits for.
    waited_for: FxHashSet<File>,
    pub waiting: Waiting,
    /// Bytes in memory that are not on the disk.
    dirty: u64,
    /// Bytes of them that are in the queue, or on their way.
    begun: u64,
    serial: u64,
    pub is_closed: bool,
    #[cfg(test)]
    pub steps: u64,
}

/// A file with data in memory.
struct Dirty {
    backing: Arc<Backing>,
    /// Who wrote last: all of it counts for him.
    asker: Asker,
    /// What is not begun, and since when its oldest part is there.
    ranges: Ranges,
    since_ns: u64,
    /// What is not begun and somebody waits for.
    urgent: Ranges,
    is_queued: bool,
    syncs: Vec<(Asker, Job)>,
    flights: Vec<Flight>,
    flying: u64,
    /// Bytes that somebody makes durable just now, all at once.
    syncing: u64,
    charged: u64,
    seat: Option<u64>,
    own: Own,
}

/// The same file opened once more, when a part of it is written for the first time while it is open.
pub(super) type Own = Arc<OnceLock<Option<OwnedFd>>>;

/// A part of a file that is in the queue or on its way.
struct Flight {
    serial: u64,
    start: u64,
    end: u64,
    /// Its turn has come.
    is_going: bool,
    /// Somebody waits for it.
    is_urgent: bool,
    /// How often it is in the queue.
    names: usize,
}

/// A part of a file that comes into the queue of its disk.
pub(super) struct Chunk {
    pub place: Place,
    pub backing: Arc<Backing>,
    pub asker: Asker,
    pub start: u64,
    pub end: u64,
}

/// What a request in the queue stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub file: File,
    serial: u64,
    /// Whose asynchronous write it is; `None`: somebody waits for it.
    pub of: Option<Key>,
}

/// What is written now.
pub(super) struct Going {
    pub backing: Arc<Backing>,
    /// Nothing where nobody has the file open by this descriptor any more.
    pub own: Option<Own>,
    pub start: u64,
    pub end: u64,
}

/// What was in memory when somebody began to make a file durable.
pub(super) struct Taken {
    file: File,
    ranges: Ranges,
    /// What of it somebody waited for by then.
    urgent: Ranges,
    since_ns: u64,
    serial: u64,
}

/// When data are begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    pub now_ns: u64,
    pub age_ns: u64,
    /// From so many bytes on that are not begun, whatever their age.
    pub background: u64,
    /// There are too many files.
    pub is_crowded: bool,
}

/// Who waited for a file, and the file.
pub(super) type Syncs = Option<(Arc<Backing>, Vec<(Asker, Job)>)>;

impl Table {
    /// Bytes in memory that are not on the disk.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// How many files have data in memory.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Whether a file has data in memory.
    pub fn has(&self, file: File) -> bool {
        self.files.contains_key(&file)
    }

    /// Somebody has put data into memory.
    pub fn dirtied(&mut self, key: File, ask: &Ask<'_>, now_ns: u64) {
        let file = self.files.entry(key).or_insert_with(|| Dirty::new(ask));
        if who(&file.asker) != who(&ask.asker) {
            file.unseat(key, &mut self.owners);
            self.owners.charge(who(&file.asker), file.charged, 0);
            self.owners.charge(who(&ask.asker), 0, file.charged);
        }
        file.asker = ask.asker;
        if file.ranges.is_empty() {
            file.since_ns = now_ns;
        }
        file.ranges.add(ask.offset, ask.offset.saturating_add(ask.length));
        self.settle(key);
    }

    /// Bytes of a file that are not on the disk, and that it is not certain of that they will soon be: they wait to be begun, or for their turn.
    pub fn waits(&self, key: File) -> u64 {
        self.files.get(&key).map_or(0, |file| {
            let queued = file.flights.iter().filter(|flight| !flight.is_going).map(Flight::bytes).sum::<u64>();
            file.ranges.bytes() + file.urgent.bytes() + queued
        })
    }

    /// What a file has in memory does not exist any more. Who waited for it comes back.
    pub fn cleaned(&mut self, key: File) -> Syncs {
        let file = self.files.get_mut(&key)?;
        file.ranges = Ranges::default();
        file.urgent = Ranges::default();
        self.begun -= file.void(u64::MAX);
        let over = file.syncs_over();
        self.settle(key);
        over
    }

    /// Somebody makes all of a file durable that is in memory by now: it is not begun meanwhile.
    pub fn syncing(&mut self, key: File) -> Option<Taken> {
        let file = self.files.get_mut(&key)?;
        let (ranges, urgent) = (std::mem::take(&mut file.ranges), std::mem::take(&mut file.urgent));
        let taken = Taken { file: key, since_ns: file.since_ns, serial: self.serial, ranges, urgent };
        file.syncing += taken.bytes();
        self.begun += taken.bytes();
        self.settle(key);
        Some(taken)
    }

    /// It is durable, or it is not: then it is where it was before. Who waited for it comes back.
    pub fn synced(&mut self, taken: Taken, is_durable: bool) -> Syncs {
        let bytes = taken.bytes();
        let Taken { file: key, mut ranges, mut urgent, since_ns, serial } = taken;
        let file = self.files.get_mut(&key)?;
        file.syncing -= bytes;
        self.begun -= bytes;
        if is_durable {
            // What waits for its turn since before that has been written by it.
            self.begun -= file.void(serial);
        } else {
            file.since_ns = if file.ranges.is_empty() { since_ns } else { since_ns.min(file.since_ns) };
            while let Some((start, end)) = ranges.take(u64::MAX) {
                file.ranges.add(start, end);
            }
            // Who waited for it may have gone meanwhile.
            let back = if file.syncs.is_empty() { &mut file.ranges } else { &mut file.urgent };
            while let Some((start, end)) = urgent.take(u64::MAX) {
                back.add(start, end);
            }
        }
        let over = file.syncs_over();
        // The requests at whose end more would have been begun may be among those that are void.
        if file.has_to_be_begun() {
            self.urgent.push_back(key);
        }
        self.settle(key);
        over
    }

    /// Has all data of a file written that are in memory by now, as somebody's requests that he waits for, and then does the job. Gives it back where there are none.
    /// What is in the queue already in the name of others comes there in his name once more.
    pub fn clean_then(&mut self, key: File, asker: Asker, job: Job, out: &mut Vec<Chunk>) -> Option<Job> {
        let Some(file) = self.files.get_mut(&key) else { return Some(job) };
        while let Some((start, end)) = file.ranges.take(u64::MAX) {
            file.urgent.add(start, end);
        }
        let is_known = file.syncs.iter().any(|(other, _)| who(other) == who(&asker));
        for flight in &mut file.flights {
            let again = !flight.is_going && (!flight.is_urgent || !is_known) && flight.names < NAMES_MAX;
            flight.is_urgent = true;
            if again {
                flight.names += 1;
                out.push(flight.chunk(key, &file.backing, asker, None));
            }
        }
        if file.urgent.is_empty() && file.flights.is_empty() {
            self.settle(key);
            return Some(job);
        }
        file.syncs.push((asker, job));
        if file.has_to_be_begun() {
            self.urgent.push_back(key);
        }
        self.settle(key);
        None
    }

    /// Whether somebody waits, for room or for a file.
    pub fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty() || !self.waited_for.is_empty()
    }

    /// Who waits, by the numbers of threads.
    pub fn waiters(&self) -> Vec<u32> {
        let files = self.waited_for.iter().filter_map(|key| self.files.get(key));
        let of_files = files.flat_map(|file| file.syncs.iter().map(|(asker, _)| asker.tid));
        let mut tids: Vec<u32> = of_files.chain(self.waiting.tids()).collect();
        tids.sort_unstable();
        tids.dedup();
        tids
    }

    /// A thread waits for nothing any more: what it would have done is given back. Data that nobody else waits for are as others.
    pub fn give_up(&mut self, tid: u32, now_ns: u64) -> Vec<Job> {
        let mut jobs = self.waiting.give_up(tid);
        let keys: Vec<File> = self.waited_for.iter().copied().collect();
        for key in keys {
            let Some(file) = self.files.get_mut(&key) else { continue };
            let (his, others) = std::mem::take(&mut file.syncs).into_iter().partition(|(asker, _)| asker.tid == tid);
            file.syncs = others;
            jobs.extend(Vec::into_iter(his).map(|(_, job)| job));
            if file.syncs.is_empty() {
                file.is_patient(now_ns);
            }
            self.settle(key);
        }
        jobs
    }

    /// What comes into the queue now. Answers when there will be more if nothing happens: the time that it is for at once, `None` for never.
    pub fn begin(&mut self, when: &When, out: &mut Vec<Chunk>) -> Option<u64> {
        while out.len() < BATCH {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            if let Some(key) = self.urgent.pop_front() {
                self.begin_urgent(key, out);
                continue;
            }
            match self.next(when)? {
                (due_ns, _) if due_ns > when.now_ns => return Some(due_ns),
                (_, who) => self.begin_oldest(who, out),
            }
        }
        Some(when.now_ns)
    }

    /// The turn of a request has come. `None`: what it stands for is written by another, or does not exist any more.
    pub fn begins(&mut self, place: &Place) -> Option<Going> {
        let file = self.files.get_mut(&place.file)?;
        let flight = file.flights.iter_mut().find(|flight| flight.serial == place.serial && !flight.is_going)?;
        flight.is_going = true;
        let is_open = Arc::strong_count(&file.backing) > 1;
        let own = is_open.then(|| file.own.clone());
        Some(Going { backing: file.backing.clone(), own, start: flight.start, end: flight.end })
    }

    /// A request is over; `has_gone`: it was it that has written its part. Who waited for that comes back.
    pub fn ended(&mut self, place: &Place, has_gone: bool) -> Syncs {
        if let Some(who) = place.of {
            self.owners.ended(who);
        }
        let key = place.file;
        let file = self.files.get_mut(&key).filter(|_| has_gone)?;
        if let Some(at) = file.flights.iter().position(|flight| flight.serial == place.serial) {
            let bytes = file.flights.swap_remove(at).bytes();
            file.flying -= bytes;
            self.begun -= bytes;
        }
        if file.flights.is_empty() {
            // It keeps no second descriptor while nothing of it is on its way.
            file.own = Own::default();
        }
        let over = file.syncs_over();
        if file.has_to_be_begun() {
            self.urgent.push_back(key);
        }
        self.settle(key);
        over
    }

    /// Nothing is written back here any more. Answers what waited, for room and for files.
    pub fn close(&mut self) -> Vec<Job> {
        let mut jobs = self.waiting.take();
        for (_, file) in self.files.drain() {
            jobs.extend(file.syncs.into_iter().map(|(_, job)| job));
        }
        *self = Table { is_closed: true, ..Table::default() };
        jobs
    }

    /// When there is something to begin, if nothing happens before; a time that has passed: now.
    pub fn due_ns(&mut self, when: &When) -> Option<u64> {
        if self.urgent.is_empty() { self.next(when).map(|(due_ns, _)| due_ns) } else { Some(when.now_ns) }
    }

    /// Whose oldest data are begun next, and when.
    fn next(&mut self, when: &When) -> Option<(u64, Key)> {
        let (since_ns, who) = self.owners.next()?;
        let due_ns = if self.is_much(when) { when.now_ns } else { since_ns.saturating_add(when.age_ns) };
        Some((due_ns, who))
    }

    fn is_much(&self, when: &When) -> bool {
        self.dirty.saturating_sub(self.begun) > when.background || !self.waiting.is_empty() || when.is_crowded
    }

    fn begin_oldest(&mut self, owner: Key, out: &mut Vec<Chunk>) {
        let Some((key, file)) = self.owners.oldest(owner).and_then(|key| Some((key, self.files.get_mut(&key)?))) else {
            return self.owners.forget_oldest(owner);
        };
        if let Some(range) = file.ranges.take(REQUEST_BYTES_MAX) {
            self.serial += 1;
            let flight = Flight::new(self.serial, range, false);
            out.push(flight.chunk(key, &file.backing, file.asker, Some(owner)));
            self.begun += flight.bytes();
            file.flying += flight.bytes();
            file.flights.push(flight);
            self.owners.begins(owner);
        }
        self.settle(key);
    }

    fn begin_urgent(&mut self, key: File, out: &mut Vec<Chunk>) {
        let Some(file) = self.files.get_mut(&key) else { return };
        file.is_queued = false;
        let mut names: Vec<Asker> = Vec::new();
        for (asker, _) in &file.syncs {
            if names.len() < NAMES_MAX && !names.iter().any(|name| who(name) == who(asker)) {
                names.push(*asker);
            }
        }
        let mut under_way = file.flights.iter().filter(|flight| flight.is_urgent).count();
        while under_way < URGENT_A_FILE
            && let Some(range) = file.urgent.take(REQUEST_BYTES_MAX)
        {
            under_way += 1;
            self.serial += 1;
            let flight = Flight { names: names.len(), ..Flight::new(self.serial, range, true) };
            out.extend(names.iter().map(|name| flight.chunk(key, &file.backing, *name, None)));
            self.begun += flight.bytes();
            file.flying += flight.bytes();
            file.flights.push(flight);
        }
        self.settle(key);
    }

    /// Counts a file as it is now, and forgets one that owes nothing.
    fn settle(&mut self, key: File) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let owner = who(&file.asker);
        let bytes = file.bytes();
        self.dirty = (self.dirty + bytes).saturating_sub(file.charged);
        self.owners.charge(owner, file.charged, bytes);
        file.charged = bytes;
        let seat = (!file.ranges.is_empty()).then_some(file.since_ns);
        self.owners.seat(owner, key, file.seat, seat);
        file.seat = seat;
        match file.syncs.is_empty() {
            true => self.waited_for.remove(&key),
            false => self.waited_for.insert(key),
        };
        if bytes == 0 && file.syncs.is_empty() {
            self.files.remove(&key);
        }
    }
}

impl Dirty {
    fn new(ask: &Ask<'_>) -> Dirty {
        Dirty {
            backing: ask.backing.clone(),
            asker: ask.asker,
            ranges: Ranges::default(),
            since_ns: 0,
            urgent: Ranges::default(),
            is_queued: false,
            syncs: Vec::new(),
            flights: Vec::new(),
            flying: 0,
            syncing: 0,
            charged: 0,
            seat: None,
            own: Own::default(),
        }
    }

    fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.urgent.bytes() + self.syncing + self.flying
    }

    fn unseat(&mut self, key: File, owners: &mut Owners) {
        owners.seat(who(&self.asker), key, self.seat.take(), None);
    }

    /// Forgets what waits for its turn, of what came into the queue up to then: its requests do nothing when they have theirs. Answers how many bytes that were.
    fn void(&mut self, serial: u64) -> u64 {
        let mut bytes = 0;
        self.flights.retain(|flight| {
            let stays = flight.is_going || flight.serial > serial;
            bytes += if stays { 0 } else { flight.bytes() };
            stays
        });
        self.flying -= bytes;
        bytes
    }

    /// Whether it is to be put among those of which urgent data are begun: there are some, and it is not there. It is taken to be from now on.
    fn has_to_be_begun(&mut self) -> bool {
        !self.urgent.is_empty() && !std::mem::replace(&mut self.is_queued, true)
    }

    /// Nobody waits for it any more.
    fn is_patient(&mut self, now_ns: u64) {
        if self.ranges.is_empty() {
            self.since_ns = now_ns;
        }
        while let Some((start, end)) = self.urgent.take(u64::MAX) {
            self.ranges.add(start, end);
        }
        for flight in &mut self.flights {
            flight.is_urgent = false;
        }
    }

    /// Those who waited for the file, if nothing of that is left.
    fn syncs_over(&mut self) -> Syncs {
        let is_over = self.urgent.is_empty() && !self.flights.iter().any(|flight| flight.is_urgent);
        if !is_over || self.syncs.is_empty() {
            return None;
        }
        Some((self.backing.clone(), std::mem::take(&mut self.syncs)))
    }
}

impl Taken {
    fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.urgent.bytes()
    }
}

impl Flight {
    fn new(serial: u64, (start, end): (u64, u64), is_urgent: bool) -> Flight {
        Flight { serial, start, end, is_going: false, is_urgent, names: 1 }
    }

    fn bytes(&self) -> u64 {
        self.end - self.start
    }

    fn chunk(&self, file: File, backing: &Arc<Backing>, asker: Asker, of: Option<Key>) -> Chunk {
        let place = Place { file, serial: self.serial, of };
        Chunk { place, backing: backing.clone(), asker, start: self.start, end: self.end }
    }
}

/// As whom somebody counts.
pub(super) fn who(asker: &Asker) -> Key {
    (asker.tid, asker.uid)
}
