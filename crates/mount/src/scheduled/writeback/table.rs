//! The dirty data of one disk and the part of it that is under write-back. Without I/O; time is an
//! argument.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::issuers::{IssuerId, issuer_id};
use super::super::ranges::Ranges;
use super::super::system::{Fault, has_fault};
use super::FileKey;
use super::owners::Owners;
use crate::gate::REQUEST_BYTES_MAX;
use crate::memory::shrink_map;
use crate::{Backing, Caller, GateRequest, Job};

/// Maximum number of awaited chunks of one file in the device queue.
const AWAITED_PER_FILE_MAX: usize = 32;
/// Maximum number of issuers for which an awaited chunk is queued. The first of these requests that
/// is dispatched writes the chunk.
const REQUESTS_PER_CHUNK_MAX: usize = 4;
/// Approximate number of chunks submitted in one call, which bounds the time that the lock is held.
const BATCH: usize = 64;

/// The table of files with dirty data.
#[derive(Default)]
pub(super) struct Table {
    files: FxHashMap<FileKey, DirtyFile>,
    pub owners: Owners,
    /// Files with awaited data that are not submitted.
    awaited: VecDeque<FileKey>,
    /// Files on which a sync waits.
    synced: FxHashSet<FileKey>,
    /// Dirty bytes.
    dirty: u64,
    /// Dirty bytes that are in the device queue or in flight.
    submitted: u64,
    /// Number of chunks submitted so far.
    serial: u64,
    pub is_closed: bool,
    /// Number of steps of [`Table::submit_due`].
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
    awaited: Ranges,
    /// The file is in the list of files with awaited data.
    is_listed: bool,
    /// Syncs that continue when no awaited data are left.
    syncs: Vec<(Caller, Job)>,
    in_flight: Vec<InFlightChunk>,
    in_flight_bytes: u64,
    /// Bytes covered by running fsync calls.
    syncing_bytes: u64,
    /// Dirty bytes charged to the owner.
    charged_bytes: u64,
    /// The time under which the file is sorted among those of its owner.
    queued_ns: Option<u64>,
    second_descriptor: SecondDescriptor,
}

/// A second open file description of a file, made for the first chunk in flight. `None`: the file
/// could not be opened again.
pub(super) type SecondDescriptor = Arc<OnceLock<Option<OwnedFd>>>;

/// A chunk in the device queue or in flight.
struct InFlightChunk {
    serial: u64,
    start: u64,
    end: u64,
    /// The chunk was dispatched.
    is_dispatched: bool,
    /// A sync waits for the chunk.
    is_awaited: bool,
    /// Number of requests in the device queue for this chunk.
    requests: usize,
}

/// A range of a file to be submitted to the device queue.
pub(in super::super) struct Chunk {
    pub id: ChunkId,
    pub backing: Arc<Backing>,
    /// The issuer that the request is charged to.
    pub caller: Caller,
    /// First byte and end (exclusive) of the range in the file.
    pub start: u64,
    pub end: u64,
}

/// Identifies the chunk of a queued request.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ChunkId {
    pub file: FileKey,
    serial: u64,
    /// The owner of an asynchronous write; `None` for an awaited one.
    pub owner: Option<IssuerId>,
}

/// A dispatched range.
pub(super) struct ChunkWrite {
    pub backing: Arc<Backing>,
    pub second_descriptor: SecondDescriptor,
    /// A handle may still use `backing`.
    pub is_open: bool,
    pub start: u64,
    pub end: u64,
}

/// The data of a file that were dirty when a sync began.
pub(super) struct SyncSnapshot {
    file: FileKey,
    ranges: Ranges,
    /// The awaited part of these data.
    awaited: Ranges,
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
    /// Writes wait until dirty memory is below its limit.
    pub has_throttled_writes: bool,
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

    /// Reduces the tables to the size that the dirty files need.
    pub fn shrink(&mut self) {
        shrink_map(&mut self.files);
        self.awaited.shrink_to_fit();
        self.owners.shrink();
    }

    /// Returns true if a file has dirty data.
    pub fn has(&self, file: FileKey) -> bool {
        self.files.contains_key(&file)
    }

    /// Records data written into the page cache.
    pub fn note_dirty(&mut self, key: FileKey, request: &GateRequest<'_>, now_ns: u64) {
        let file = self.files.entry(key).or_insert_with(|| DirtyFile::new(request));
        if issuer_id(&file.caller) != issuer_id(&request.caller) {
            file.unqueue(key, &mut self.owners);
            self.owners.charge(issuer_id(&file.caller), file.charged_bytes, 0);
            self.owners.charge(issuer_id(&request.caller), 0, file.charged_bytes);
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
    pub fn pending_bytes(&self, key: FileKey) -> u64 {
        self.files.get(&key).map_or(0, |file| {
            let queued =
                file.in_flight.iter().filter(|chunk| !chunk.is_dispatched).map(InFlightChunk::bytes).sum::<u64>();
            file.ranges.bytes() + file.awaited.bytes() + queued
        })
    }

    /// Drops the dirty state of a file whose data no longer exist. Returns the syncs that waited
    /// for it.
    pub fn discard(&mut self, key: FileKey) -> SyncWaiters {
        let file = self.files.get_mut(&key).filter(|_| !has_fault(Fault::UnlinkKeepsDirtyBytes))?;
        file.ranges = Ranges::default();
        file.awaited = Ranges::default();
        self.submitted -= file.cancel_queued(u64::MAX);
        let finished = file.take_finished_syncs();
        self.update_accounts(key);
        finished
    }

    /// Has chunks that are dispatched from now on use a new second description.
    pub fn renew_description(&mut self, key: FileKey) {
        if let Some(file) = self.files.get_mut(&key) {
            file.second_descriptor = SecondDescriptor::default();
        }
    }

    /// Begins a sync of all data of a file that are dirty now; they are not submitted meanwhile.
    pub fn begin_sync(&mut self, key: FileKey) -> Option<SyncSnapshot> {
        let file = self.files.get_mut(&key)?;
        let (ranges, awaited) = (std::mem::take(&mut file.ranges), std::mem::take(&mut file.awaited));
        let snapshot = SyncSnapshot { file: key, since_ns: file.since_ns, serial: self.serial, ranges, awaited };
        file.syncing_bytes += snapshot.bytes();
        self.submitted += snapshot.bytes();
        self.update_accounts(key);
        Some(snapshot)
    }

    /// Ends a sync. After a failure the data are dirty again, with their previous age. Returns
    /// the syncs that may continue.
    pub fn finish_sync(&mut self, snapshot: SyncSnapshot, is_durable: bool) -> SyncWaiters {
        let bytes = snapshot.bytes();
        let SyncSnapshot { file: key, mut ranges, mut awaited, since_ns, serial } = snapshot;
        let file = self.files.get_mut(&key)?;
        file.syncing_bytes -= bytes;
        self.submitted -= bytes;
        if is_durable {
            // The sync has also written the chunks that were queued before it.
            self.submitted -= file.cancel_queued(serial);
        } else if !has_fault(Fault::FailedSyncDropsRanges) {
            file.since_ns = if file.ranges.is_empty() { since_ns } else { since_ns.min(file.since_ns) };
            while let Some((start, end)) = ranges.take(u64::MAX) {
                file.ranges.add(start, end);
            }
            // The syncs that awaited the data may have been cancelled meanwhile.
            let ranges_back = if file.syncs.is_empty() { &mut file.ranges } else { &mut file.awaited };
            while let Some((start, end)) = awaited.take(u64::MAX) {
                ranges_back.add(start, end);
            }
        }
        let finished = file.take_finished_syncs();
        // The cancelled chunks can no longer trigger the submission of further data.
        if file.mark_for_submission() {
            self.awaited.push_back(key);
        }
        self.update_accounts(key);
        finished
    }

    /// Submits all data of a file that are dirty now as synchronous requests of an issuer, and runs
    /// the job afterwards. Returns the job if no data are dirty. Chunks that are already queued for
    /// other issuers are queued once more for this one.
    pub fn sync_after_writeback(
        &mut self,
        key: FileKey,
        caller: Caller,
        job: Job,
        out: &mut Vec<Chunk>,
    ) -> Option<Job> {
        let Some(file) = self.files.get_mut(&key) else { return Some(job) };
        while let Some((start, end)) = file.ranges.take(u64::MAX) {
            file.awaited.add(start, end);
        }
        let is_known = file.syncs.iter().any(|(other, _)| issuer_id(other) == issuer_id(&caller));
        for chunk in &mut file.in_flight {
            let again =
                !chunk.is_dispatched && (!chunk.is_awaited || !is_known) && chunk.requests < REQUESTS_PER_CHUNK_MAX;
            chunk.is_awaited = !(chunk.is_dispatched && has_fault(Fault::SyncIgnoresDispatchedChunks));
            if again {
                chunk.requests += 1;
                out.push(chunk.request(key, &file.backing, caller, None));
            }
        }
        if file.awaited.is_empty() && file.in_flight.is_empty() {
            self.update_accounts(key);
            return Some(job);
        }
        file.syncs.push((caller, job));
        if file.mark_for_submission() {
            self.awaited.push_back(key);
        }
        self.update_accounts(key);
        None
    }

    /// Returns true if a sync waits for write-back.
    pub fn has_waiting_syncs(&self) -> bool {
        !self.synced.is_empty()
    }

    /// Returns the IDs of the threads whose syncs wait; a thread may occur several times.
    pub fn syncing_threads(&self) -> Vec<u32> {
        let files = self.synced.iter().filter_map(|key| self.files.get(key));
        files.flat_map(|file| file.syncs.iter().map(|(caller, _)| caller.tid)).collect()
    }

    /// Cancels the waiting syncs of a thread and returns their jobs. Data that no other thread
    /// awaits become ordinary dirty data.
    pub fn cancel(&mut self, tid: u32, now_ns: u64) -> Vec<Job> {
        let mut jobs = Vec::new();
        let keys: Vec<FileKey> = self.synced.iter().copied().collect();
        for key in keys {
            let Some(file) = self.files.get_mut(&key) else { continue };
            let (cancelled, others) =
                std::mem::take(&mut file.syncs).into_iter().partition(|(caller, _)| caller.tid == tid);
            file.syncs = others;
            jobs.extend(Vec::into_iter(cancelled).map(|(_, job)| job));
            if file.syncs.is_empty() {
                file.clear_awaited(now_ns);
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
            if let Some(key) = self.awaited.pop_front() {
                self.submit_awaited(key, out);
                continue;
            }
            match self.next_due(policy)? {
                (due_ns, _) if due_ns > policy.now_ns => return Some(due_ns),
                (_, issuer_id) => self.submit_oldest(issuer_id, out),
            }
        }
        Some(policy.now_ns)
    }

    /// Marks a chunk as dispatched. `None`: its data were written by another request or no longer
    /// exist.
    pub fn dispatch(&mut self, id: &ChunkId) -> Option<ChunkWrite> {
        let file = self.files.get_mut(&id.file)?;
        let chunk = file.in_flight.iter_mut().find(|chunk| chunk.serial == id.serial && !chunk.is_dispatched)?;
        chunk.is_dispatched = true;
        let is_open = Arc::strong_count(&file.backing) > 1;
        let second_descriptor = file.second_descriptor.clone();
        let start = if has_fault(Fault::ChunkRangeWrong) { chunk.end.min(chunk.start + 4096) } else { chunk.start };
        Some(ChunkWrite { backing: file.backing.clone(), second_descriptor, is_open, start, end: chunk.end })
    }

    /// Completes a chunk; `was_written` is true if this request wrote it. Returns the syncs that
    /// waited for it.
    pub fn finish(&mut self, id: &ChunkId, was_written: bool) -> SyncWaiters {
        if let Some(issuer_id) = id.owner {
            self.owners.finish(issuer_id);
        }
        let key = id.file;
        let file = self.files.get_mut(&key).filter(|_| was_written)?;
        if let Some(at) = file.in_flight.iter().position(|chunk| chunk.serial == id.serial) {
            let bytes = file.in_flight.swap_remove(at).bytes();
            file.in_flight_bytes -= if has_fault(Fault::ChunkStaysDirty) { 0 } else { bytes };
            self.submitted -= bytes;
        }
        if file.in_flight.is_empty() {
            // No second descriptor is kept while nothing is in flight.
            file.second_descriptor = SecondDescriptor::default();
        }
        let finished = file.take_finished_syncs();
        if file.mark_for_submission() {
            self.awaited.push_back(key);
        }
        self.update_accounts(key);
        finished
    }

    /// Stops write-back. Returns the jobs of all waiting syncs.
    pub fn close(&mut self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (_, file) in self.files.drain() {
            jobs.extend(file.syncs.into_iter().map(|(_, job)| job));
        }
        *self = Table { is_closed: true, ..Table::default() };
        jobs
    }

    /// Returns the time at which data are due if nothing else happens; a time in the past means
    /// now.
    pub fn due_ns(&mut self, policy: &SubmitPolicy) -> Option<u64> {
        if self.awaited.is_empty() { self.next_due(policy).map(|(due_ns, _)| due_ns) } else { Some(policy.now_ns) }
    }

    /// Returns the owner whose oldest data are submitted next, and the time at which they are due.
    fn next_due(&mut self, policy: &SubmitPolicy) -> Option<(u64, IssuerId)> {
        let (since_ns, issuer_id) = self.owners.next_due()?;
        let due_ns = if self.ignores_age(policy) { policy.now_ns } else { since_ns.saturating_add(policy.age_ns) };
        Some((due_ns, issuer_id))
    }

    /// Returns true if data are submitted regardless of their age.
    fn ignores_age(&self, policy: &SubmitPolicy) -> bool {
        self.dirty.saturating_sub(self.submitted) > policy.background
            || policy.has_throttled_writes
            || policy.is_near_file_limit
    }

    fn submit_oldest(&mut self, owner: IssuerId, out: &mut Vec<Chunk>) {
        let Some((key, file)) = self.owners.oldest_file(owner).and_then(|key| Some((key, self.files.get_mut(&key)?)))
        else {
            return self.owners.remove_oldest_file(owner);
        };
        if let Some(range) = file.ranges.take(REQUEST_BYTES_MAX) {
            self.serial += 1;
            let chunk = InFlightChunk::new(self.serial, range, false);
            out.push(chunk.request(key, &file.backing, file.caller, Some(owner)));
            self.submitted += chunk.bytes();
            file.in_flight_bytes += chunk.bytes();
            file.in_flight.push(chunk);
            self.owners.dispatch(owner);
        }
        self.update_accounts(key);
    }

    fn submit_awaited(&mut self, key: FileKey, out: &mut Vec<Chunk>) {
        let Some(file) = self.files.get_mut(&key) else { return };
        file.is_listed = false;
        let mut issuers: Vec<Caller> = Vec::new();
        for (caller, _) in &file.syncs {
            if issuers.len() < REQUESTS_PER_CHUNK_MAX
                && !issuers.iter().any(|issuer| issuer_id(issuer) == issuer_id(caller))
            {
                issuers.push(*caller);
            }
        }
        let mut in_flight = file.in_flight.iter().filter(|chunk| chunk.is_awaited).count();
        while in_flight < AWAITED_PER_FILE_MAX
            && let Some(range) = file.awaited.take(REQUEST_BYTES_MAX)
        {
            in_flight += 1;
            self.serial += 1;
            let chunk = InFlightChunk { requests: issuers.len(), ..InFlightChunk::new(self.serial, range, true) };
            out.extend(issuers.iter().map(|issuer| chunk.request(key, &file.backing, *issuer, None)));
            self.submitted += chunk.bytes();
            file.in_flight_bytes += chunk.bytes();
            file.in_flight.push(chunk);
        }
        self.update_accounts(key);
    }

    /// Updates the accounts of a file, and removes one without dirty data.
    fn update_accounts(&mut self, key: FileKey) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let owner = issuer_id(&file.caller);
        let bytes = file.bytes();
        self.dirty = (self.dirty + bytes).saturating_sub(file.charged_bytes);
        self.owners.charge(owner, file.charged_bytes, bytes);
        file.charged_bytes = bytes;
        let queued_ns = (!file.ranges.is_empty()).then_some(file.since_ns);
        self.owners.move_file(owner, key, file.queued_ns, queued_ns);
        file.queued_ns = queued_ns;
        match file.syncs.is_empty() {
            true => self.synced.remove(&key),
            false => self.synced.insert(key),
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
            awaited: Ranges::default(),
            is_listed: false,
            syncs: Vec::new(),
            in_flight: Vec::new(),
            in_flight_bytes: 0,
            syncing_bytes: 0,
            charged_bytes: 0,
            queued_ns: None,
            second_descriptor: SecondDescriptor::default(),
        }
    }

    fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.awaited.bytes() + self.syncing_bytes + self.in_flight_bytes
    }

    fn unqueue(&mut self, key: FileKey, owners: &mut Owners) {
        owners.move_file(issuer_id(&self.caller), key, self.queued_ns.take(), None);
    }

    /// Cancels the queued chunks with a serial number up to `serial`; their requests then do
    /// nothing. Returns the number of bytes.
    fn cancel_queued(&mut self, serial: u64) -> u64 {
        let mut bytes = 0;
        self.in_flight.retain(|chunk| {
            let stays = chunk.is_dispatched || chunk.serial > serial;
            bytes += if stays { 0 } else { chunk.bytes() };
            stays
        });
        self.in_flight_bytes -= bytes;
        bytes
    }

    /// Returns true if the file has to be added to the list of files with awaited data, and marks
    /// it as added.
    fn mark_for_submission(&mut self) -> bool {
        !self.awaited.is_empty() && !std::mem::replace(&mut self.is_listed, true)
    }

    /// Turns awaited data into ordinary dirty data.
    fn clear_awaited(&mut self, now_ns: u64) {
        if self.ranges.is_empty() {
            self.since_ns = now_ns;
        }
        while let Some((start, end)) = self.awaited.take(u64::MAX) {
            if !has_fault(Fault::CancelledSyncDropsRanges) {
                self.ranges.add(start, end);
            }
        }
        for chunk in &mut self.in_flight {
            chunk.is_awaited = false;
        }
    }

    /// Returns the waiting syncs if no awaited data are left.
    fn take_finished_syncs(&mut self) -> SyncWaiters {
        let is_finished = self.awaited.is_empty() && !self.in_flight.iter().any(|chunk| chunk.is_awaited);
        if !is_finished || self.syncs.is_empty() {
            return None;
        }
        Some((self.backing.clone(), std::mem::take(&mut self.syncs)))
    }
}

impl SyncSnapshot {
    fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.awaited.bytes()
    }
}

impl InFlightChunk {
    fn new(serial: u64, (start, end): (u64, u64), is_awaited: bool) -> InFlightChunk {
        InFlightChunk { serial, start, end, is_dispatched: false, is_awaited, requests: 1 }
    }

    fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Creates a request for the chunk.
    fn request(&self, file: FileKey, backing: &Arc<Backing>, caller: Caller, owner: Option<IssuerId>) -> Chunk {
        let id = ChunkId { file, serial: self.serial, owner };
        Chunk { id, backing: backing.clone(), caller, start: self.start, end: self.end }
    }
}
