//! The dirty data of one disk and the part of it that is under write-back. Without I/O; time is an
//! argument.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::issuers::IssuerId;
use super::super::queue::REQUEST_BYTES_MAX;
use super::super::ranges::Ranges;
use super::File;
use super::owners::Owners;
use super::throttle::WriterQueue;
use crate::{Backing, Caller, GateRequest, Job};

/// Maximum number of awaited writes of one file in the device queue.
const URGENT_A_FILE: usize = 32;
/// Maximum number of issuers for which an awaited chunk is queued. The first of these requests that
/// is dispatched writes it.
const ISSUERS_MAX: usize = 4;
/// Approximate number of writes submitted in one call, which bounds the time that the lock is held.
const BATCH: usize = 64;

/// The table of files with dirty data.
#[derive(Default)]
pub(super) struct Table {
    files: FxHashMap<File, DirtyFile>,
    pub owners: Owners,
    /// Files with awaited data that are not submitted.
    urgent: VecDeque<File>,
    /// Files on which a sync waits.
    waited_for: FxHashSet<File>,
    pub waiting: WriterQueue,
    /// Dirty bytes.
    dirty: u64,
    /// Dirty bytes that are in the device queue or in flight.
    submitted: u64,
    serial: u64,
    pub is_closed: bool,
    #[cfg(test)]
    pub steps: u64,
}

/// A file with dirty data.
struct DirtyFile {
    backing: Arc<Backing>,
    /// The last writer, to which all data of the file are charged.
    caller: Caller,
    /// Ranges that are not submitted, and the time at which the oldest became dirty.
    ranges: Ranges,
    since_ns: u64,
    /// Awaited ranges that are not submitted.
    urgent: Ranges,
    is_queued: bool,
    syncs: Vec<(Caller, Job)>,
    in_flight: Vec<InFlightChunk>,
    in_flight_bytes: u64,
    /// Bytes covered by running fsync calls.
    begin_sync: u64,
    charged: u64,
    queued_ns: Option<u64>,
    own_bytes: SecondDescriptor,
}

/// A second open file description, made for the first chunk written while the file is open.
pub(super) type SecondDescriptor = Arc<OnceLock<Option<OwnedFd>>>;

/// A chunk in the device queue or in flight.
struct InFlightChunk {
    serial: u64,
    start: u64,
    end: u64,
    /// The chunk was dispatched.
    is_dispatched: bool,
    /// A sync waits for the chunk.
    is_urgent: bool,
    /// Number of requests in the device queue for this chunk.
    issuers_of: usize,
}

/// A range of a file to be submitted to the device queue.
pub(super) struct Chunk {
    pub place: ChunkId,
    pub backing: Arc<Backing>,
    pub caller: Caller,
    pub start: u64,
    pub end: u64,
}

/// Identifies the chunk of a queued request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkId {
    pub file: File,
    serial: u64,
    /// The owner of an asynchronous write; `None` for an awaited one.
    pub of: Option<IssuerId>,
}

/// A dispatched range.
pub(super) struct ChunkWrite {
    pub backing: Arc<Backing>,
    /// `None` if no handle uses this descriptor any more.
    pub own_bytes: Option<SecondDescriptor>,
    pub start: u64,
    pub end: u64,
}

/// The data of a file that were dirty when a sync began.
pub(super) struct SyncSnapshot {
    file: File,
    ranges: Ranges,
    /// The awaited part of these data.
    urgent: Ranges,
    since_ns: u64,
    serial: u64,
}

/// Conditions under which data are submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubmitPolicy {
    pub now_ns: u64,
    pub age_ns: u64,
    /// Bytes of unsubmitted data above which data are submitted regardless of age.
    pub background: u64,
    /// The number of files is near its maximum.
    pub is_near_file_limit: bool,
}

/// A file and the syncs that waited for it.
pub(super) type SyncWaiters = Option<(Arc<Backing>, Vec<(Caller, Job)>)>;

impl Table {
    /// Returns the number of dirty bytes.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Returns the number of files with dirty data.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns true if a file has dirty data.
    pub fn has(&self, file: File) -> bool {
        self.files.contains_key(&file)
    }

    /// Records data written into the page cache.
    pub fn note_dirty(&mut self, key: File, request: &GateRequest<'_>, now_ns: u64) {
        let file = self.files.entry(key).or_insert_with(|| DirtyFile::new(request));
        if issuer_id(&file.caller) != issuer_id(&request.caller) {
            file.unqueue(key, &mut self.owners);
            self.owners.charge(issuer_id(&file.caller), file.charged, 0);
            self.owners.charge(issuer_id(&request.caller), 0, file.charged);
        }
        file.caller = request.caller;
        if file.ranges.is_empty() {
            file.since_ns = now_ns;
        }
        file.ranges.add(request.offset, request.offset.saturating_add(request.length));
        self.update_accounts(key);
    }

    /// Returns the bytes of a file that are not dispatched: unsubmitted or waiting in the device
    /// queue.
    pub fn pending_bytes(&self, key: File) -> u64 {
        self.files.get(&key).map_or(0, |file| {
            let queued = file
                .in_flight
                .iter()
                .filter(|chunk_in_flight| !chunk_in_flight.is_dispatched)
                .map(InFlightChunk::bytes)
                .sum::<u64>();
            file.ranges.bytes() + file.urgent.bytes() + queued
        })
    }

    /// Drops the dirty state of a file whose data no longer exist. Returns the syncs that waited
    /// for it.
    pub fn discard(&mut self, key: File) -> SyncWaiters {
        let file = self.files.get_mut(&key)?;
        file.ranges = Ranges::default();
        file.urgent = Ranges::default();
        self.submitted -= file.cancel_queued(u64::MAX);
        let over = file.take_finished_syncs();
        self.update_accounts(key);
        over
    }

    /// Begins a sync of all data of a file that are dirty now; they are not submitted meanwhile.
    pub fn begin_sync(&mut self, key: File) -> Option<SyncSnapshot> {
        let file = self.files.get_mut(&key)?;
        let (ranges, urgent) = (std::mem::take(&mut file.ranges), std::mem::take(&mut file.urgent));
        let snapshot = SyncSnapshot { file: key, since_ns: file.since_ns, serial: self.serial, ranges, urgent };
        file.begin_sync += snapshot.bytes();
        self.submitted += snapshot.bytes();
        self.update_accounts(key);
        Some(snapshot)
    }

    /// Ends a sync. After a failure the data are dirty again, with their previous age. Returns
    /// the syncs that may continue.
    pub fn finish_sync(&mut self, snapshot: SyncSnapshot, is_durable: bool) -> SyncWaiters {
        let bytes = snapshot.bytes();
        let SyncSnapshot { file: key, mut ranges, mut urgent, since_ns, serial } = snapshot;
        let file = self.files.get_mut(&key)?;
        file.begin_sync -= bytes;
        self.submitted -= bytes;
        if is_durable {
            // The sync has also written the chunks that were queued before it.
            self.submitted -= file.cancel_queued(serial);
        } else {
            file.since_ns = if file.ranges.is_empty() { since_ns } else { since_ns.min(file.since_ns) };
            while let Some((start, end)) = ranges.take(u64::MAX) {
                file.ranges.add(start, end);
            }
            // The syncs that awaited the data may have been cancelled meanwhile.
            let back = if file.syncs.is_empty() { &mut file.ranges } else { &mut file.urgent };
            while let Some((start, end)) = urgent.take(u64::MAX) {
                back.add(start, end);
            }
        }
        let over = file.take_finished_syncs();
        // The cancelled chunks can no longer trigger the submission of further data.
        if file.mark_for_submission() {
            self.urgent.push_back(key);
        }
        self.update_accounts(key);
        over
    }

    /// Submits all data of a file that are dirty now as synchronous requests of an issuer, and runs
    /// the job afterwards. Returns the job if no data are dirty. Chunks that are already queued for
    /// other issuers are queued once more for this one.
    pub fn sync_after_writeback(&mut self, key: File, caller: Caller, job: Job, out: &mut Vec<Chunk>) -> Option<Job> {
        let Some(file) = self.files.get_mut(&key) else { return Some(job) };
        while let Some((start, end)) = file.ranges.take(u64::MAX) {
            file.urgent.add(start, end);
        }
        let is_known = file.syncs.iter().any(|(other, _)| issuer_id(other) == issuer_id(&caller));
        for chunk_in_flight in &mut file.in_flight {
            let again = !chunk_in_flight.is_dispatched
                && (!chunk_in_flight.is_urgent || !is_known)
                && chunk_in_flight.issuers_of < ISSUERS_MAX;
            chunk_in_flight.is_urgent = true;
            if again {
                chunk_in_flight.issuers_of += 1;
                out.push(chunk_in_flight.chunk(key, &file.backing, caller, None));
            }
        }
        if file.urgent.is_empty() && file.in_flight.is_empty() {
            self.update_accounts(key);
            return Some(job);
        }
        file.syncs.push((caller, job));
        if file.mark_for_submission() {
            self.urgent.push_back(key);
        }
        self.update_accounts(key);
        None
    }

    /// Returns true if a throttled write or a sync waits.
    pub fn has_waiters(&self) -> bool {
        !self.waiting.is_empty() || !self.waited_for.is_empty()
    }

    /// Returns the IDs of waiting threads.
    pub fn waiters(&self) -> Vec<u32> {
        let files = self.waited_for.iter().filter_map(|key| self.files.get(key));
        let of_files = files.flat_map(|file| file.syncs.iter().map(|(caller, _)| caller.tid));
        let mut waiting_threads: Vec<u32> = of_files.chain(self.waiting.waiting_threads()).collect();
        waiting_threads.sort_unstable();
        waiting_threads.dedup();
        waiting_threads
    }

    /// Cancels everything for which a thread waits and returns the jobs. Data that no other thread
    /// awaits become ordinary dirty data.
    pub fn cancel(&mut self, tid: u32, now_ns: u64) -> Vec<Job> {
        let mut jobs = self.waiting.cancel(tid);
        let keys: Vec<File> = self.waited_for.iter().copied().collect();
        for key in keys {
            let Some(file) = self.files.get_mut(&key) else { continue };
            let (cancelled, others) =
                std::mem::take(&mut file.syncs).into_iter().partition(|(caller, _)| caller.tid == tid);
            file.syncs = others;
            jobs.extend(Vec::into_iter(cancelled).map(|(_, job)| job));
            if file.syncs.is_empty() {
                file.clear_urgency(now_ns);
            }
            self.update_accounts(key);
        }
        jobs
    }

    /// Collects the chunks to submit now. Returns the time at which the next data are due: at once
    /// if more are left, `None` for never.
    pub fn submit_due(&mut self, policy: &SubmitPolicy, out: &mut Vec<Chunk>) -> Option<u64> {
        while out.len() < BATCH {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            if let Some(key) = self.urgent.pop_front() {
                self.submit_urgent(key, out);
                continue;
            }
            match self.next(policy)? {
                (due_ns, _) if due_ns > policy.now_ns => return Some(due_ns),
                (_, issuer_id) => self.submit_oldest(issuer_id, out),
            }
        }
        Some(policy.now_ns)
    }

    /// Marks a chunk as dispatched. `None`: its data were written by another request or no longer
    /// exist.
    pub fn dispatch(&mut self, place: &ChunkId) -> Option<ChunkWrite> {
        let file = self.files.get_mut(&place.file)?;
        let chunk_in_flight = file
            .in_flight
            .iter_mut()
            .find(|chunk_in_flight| chunk_in_flight.serial == place.serial && !chunk_in_flight.is_dispatched)?;
        chunk_in_flight.is_dispatched = true;
        let is_open = Arc::strong_count(&file.backing) > 1;
        let own_bytes = is_open.then(|| file.own_bytes.clone());
        Some(ChunkWrite {
            backing: file.backing.clone(),
            own_bytes,
            start: chunk_in_flight.start,
            end: chunk_in_flight.end,
        })
    }

    /// Completes a chunk; `was_written` is true if this request wrote it. Returns the syncs that
    /// waited for it.
    pub fn finish(&mut self, place: &ChunkId, was_written: bool) -> SyncWaiters {
        if let Some(issuer_id) = place.of {
            self.owners.finish(issuer_id);
        }
        let key = place.file;
        let file = self.files.get_mut(&key).filter(|_| was_written)?;
        if let Some(at) = file.in_flight.iter().position(|chunk_in_flight| chunk_in_flight.serial == place.serial) {
            let bytes = file.in_flight.swap_remove(at).bytes();
            file.in_flight_bytes -= bytes;
            self.submitted -= bytes;
        }
        if file.in_flight.is_empty() {
            // No second descriptor is kept while nothing is in flight.
            file.own_bytes = SecondDescriptor::default();
        }
        let over = file.take_finished_syncs();
        if file.mark_for_submission() {
            self.urgent.push_back(key);
        }
        self.update_accounts(key);
        over
    }

    /// Stops write-back. Returns all waiting jobs.
    pub fn close(&mut self) -> Vec<Job> {
        let mut jobs = self.waiting.take();
        for (_, file) in self.files.drain() {
            jobs.extend(file.syncs.into_iter().map(|(_, job)| job));
        }
        *self = Table { is_closed: true, ..Table::default() };
        jobs
    }

    /// Returns the time at which data are due if nothing else happens; a time in the past means
    /// now.
    pub fn due_ns(&mut self, policy: &SubmitPolicy) -> Option<u64> {
        if self.urgent.is_empty() { self.next(policy).map(|(due_ns, _)| due_ns) } else { Some(policy.now_ns) }
    }

    /// Returns the owner whose oldest data are submitted next, and the time at which they are due.
    fn next(&mut self, policy: &SubmitPolicy) -> Option<(u64, IssuerId)> {
        let (since_ns, issuer_id) = self.owners.next()?;
        let due_ns = if self.exceeds_request(policy) { policy.now_ns } else { since_ns.saturating_add(policy.age_ns) };
        Some((due_ns, issuer_id))
    }

    fn exceeds_request(&self, policy: &SubmitPolicy) -> bool {
        self.dirty.saturating_sub(self.submitted) > policy.background
            || !self.waiting.is_empty()
            || policy.is_near_file_limit
    }

    fn submit_oldest(&mut self, owner: IssuerId, out: &mut Vec<Chunk>) {
        let Some((key, file)) = self.owners.oldest(owner).and_then(|key| Some((key, self.files.get_mut(&key)?))) else {
            return self.owners.remove_oldest(owner);
        };
        if let Some(range) = file.ranges.take(REQUEST_BYTES_MAX) {
            self.serial += 1;
            let chunk_in_flight = InFlightChunk::new(self.serial, range, false);
            out.push(chunk_in_flight.chunk(key, &file.backing, file.caller, Some(owner)));
            self.submitted += chunk_in_flight.bytes();
            file.in_flight_bytes += chunk_in_flight.bytes();
            file.in_flight.push(chunk_in_flight);
            self.owners.dispatch(owner);
        }
        self.update_accounts(key);
    }

    fn submit_urgent(&mut self, key: File, out: &mut Vec<Chunk>) {
        let Some(file) = self.files.get_mut(&key) else { return };
        file.is_queued = false;
        let mut issuers_of: Vec<Caller> = Vec::new();
        for (caller, _) in &file.syncs {
            if issuers_of.len() < ISSUERS_MAX && !issuers_of.iter().any(|name| issuer_id(name) == issuer_id(caller)) {
                issuers_of.push(*caller);
            }
        }
        let mut under_way = file.in_flight.iter().filter(|chunk_in_flight| chunk_in_flight.is_urgent).count();
        while under_way < URGENT_A_FILE
            && let Some(range) = file.urgent.take(REQUEST_BYTES_MAX)
        {
            under_way += 1;
            self.serial += 1;
            let chunk_in_flight =
                InFlightChunk { issuers_of: issuers_of.len(), ..InFlightChunk::new(self.serial, range, true) };
            out.extend(issuers_of.iter().map(|name| chunk_in_flight.chunk(key, &file.backing, *name, None)));
            self.submitted += chunk_in_flight.bytes();
            file.in_flight_bytes += chunk_in_flight.bytes();
            file.in_flight.push(chunk_in_flight);
        }
        self.update_accounts(key);
    }

    /// Updates the accounts of a file, and removes one without dirty data.
    fn update_accounts(&mut self, key: File) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let owner = issuer_id(&file.caller);
        let bytes = file.bytes();
        self.dirty = (self.dirty + bytes).saturating_sub(file.charged);
        self.owners.charge(owner, file.charged, bytes);
        file.charged = bytes;
        let queued_ns = (!file.ranges.is_empty()).then_some(file.since_ns);
        self.owners.queued_ns(owner, key, file.queued_ns, queued_ns);
        file.queued_ns = queued_ns;
        match file.syncs.is_empty() {
            true => self.waited_for.remove(&key),
            false => self.waited_for.insert(key),
        };
        if bytes == 0 && file.syncs.is_empty() {
            self.files.remove(&key);
        }
    }
}

impl DirtyFile {
    fn new(request: &GateRequest<'_>) -> DirtyFile {
        DirtyFile {
            backing: request.backing.clone(),
            caller: request.caller,
            ranges: Ranges::default(),
            since_ns: 0,
            urgent: Ranges::default(),
            is_queued: false,
            syncs: Vec::new(),
            in_flight: Vec::new(),
            in_flight_bytes: 0,
            begin_sync: 0,
            charged: 0,
            queued_ns: None,
            own_bytes: SecondDescriptor::default(),
        }
    }

    fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.urgent.bytes() + self.begin_sync + self.in_flight_bytes
    }

    fn unqueue(&mut self, key: File, owners: &mut Owners) {
        owners.queued_ns(issuer_id(&self.caller), key, self.queued_ns.take(), None);
    }

    /// Cancels the queued chunks with a serial number up to `serial`; their requests then do
    /// nothing. Returns the number of bytes.
    fn cancel_queued(&mut self, serial: u64) -> u64 {
        let mut bytes = 0;
        self.in_flight.retain(|chunk_in_flight| {
            let stays = chunk_in_flight.is_dispatched || chunk_in_flight.serial > serial;
            bytes += if stays { 0 } else { chunk_in_flight.bytes() };
            stays
        });
        self.in_flight_bytes -= bytes;
        bytes
    }

    /// Returns true if the file has to be added to the list of files with awaited data, and marks
    /// it as added.
    fn mark_for_submission(&mut self) -> bool {
        !self.urgent.is_empty() && !std::mem::replace(&mut self.is_queued, true)
    }

    /// Turns awaited data into ordinary dirty data.
    fn clear_urgency(&mut self, now_ns: u64) {
        if self.ranges.is_empty() {
            self.since_ns = now_ns;
        }
        while let Some((start, end)) = self.urgent.take(u64::MAX) {
            self.ranges.add(start, end);
        }
        for chunk_in_flight in &mut self.in_flight {
            chunk_in_flight.is_urgent = false;
        }
    }

    /// Returns the waiting syncs if no awaited data are left.
    fn take_finished_syncs(&mut self) -> SyncWaiters {
        let is_over = self.urgent.is_empty() && !self.in_flight.iter().any(|chunk_in_flight| chunk_in_flight.is_urgent);
        if !is_over || self.syncs.is_empty() {
            return None;
        }
        Some((self.backing.clone(), std::mem::take(&mut self.syncs)))
    }
}

impl SyncSnapshot {
    fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.urgent.bytes()
    }
}

impl InFlightChunk {
    fn new(serial: u64, (start, end): (u64, u64), is_urgent: bool) -> InFlightChunk {
        InFlightChunk { serial, start, end, is_dispatched: false, is_urgent, issuers_of: 1 }
    }

    fn bytes(&self) -> u64 {
        self.end - self.start
    }

    fn chunk(&self, file: File, backing: &Arc<Backing>, caller: Caller, of: Option<IssuerId>) -> Chunk {
        let place = ChunkId { file, serial: self.serial, of };
        Chunk { place, backing: backing.clone(), caller, start: self.start, end: self.end }
    }
}

/// Returns the key under which an issuer's data are accounted.
pub(super) fn issuer_id(caller: &Caller) -> IssuerId {
    (caller.tid, caller.uid)
}
