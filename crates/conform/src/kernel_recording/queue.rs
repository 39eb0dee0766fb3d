//! Makes the calls of a recording on a queue of hoistway's crates, and builds the records that the
//! kernel module would have written.

use std::collections::HashMap;
use std::hash::Hash;

use hoistway_core::{
    Bio, Class, ContextId, DeferredWork, Extent, Flags, GroupError, GroupId, GroupWeights, HostSearch, Kick, Merge,
    MergeError, Next, Op, Priority, RequestId, Reservation, ReserveError, Stale, SubmitError, Submitted, TunableError,
};

use super::call::Call;
use super::error::RecordError;
use super::record::{NO_HW_QUEUE, Record, seconds};
use super::start::{Queue, Start};

const OK: i16 = 0;
const RUN: i16 = 1;
const WAIT: i16 = 2;
const EMPTY: i16 = 3;
const SEARCH: i16 = 4;
const INVALID: i16 = -1;
const FULL: i16 = -3;
const STALE: i16 = -4;
const BAD_EXTENT: i16 = -5;
const NOT_SUPPORTED: i16 = -6;
const UNKNOWN: i16 = -7;
const OUT_OF_RANGE: i16 = -8;
const BUSY: i16 = -9;
const NOT_AWAKE: i16 = -10;
const NO_CAPACITY: i16 = -11;
/// A handle that the recording does not have.
const NO_HANDLE: u64 = u64::MAX;
/// The largest number of requests that are listed beside a difference.
const LISTED: usize = 24;

/// The handles of the kernel's objects and those of the replay's.
#[derive(Debug)]
struct Handles<T> {
    here: HashMap<u64, T>,
    recorded: HashMap<T, u64>,
}

impl<T: Copy + Eq + Hash> Handles<T> {
    fn new() -> Self {
        Handles { here: HashMap::new(), recorded: HashMap::new() }
    }

    fn add(&mut self, recorded: u64, here: T) {
        self.here.insert(recorded, here);
        self.recorded.insert(here, recorded);
    }

    fn remove(&mut self, recorded: u64) {
        if let Some(here) = self.here.remove(&recorded) {
            self.recorded.remove(&here);
        }
    }

    fn recorded(&self, here: T) -> u64 {
        self.recorded.get(&here).copied().unwrap_or(NO_HANDLE)
    }
}

/// A queue that repeats the calls of a recording.
#[allow(missing_debug_implementations)]
pub(super) struct ReplayQueue {
    queue: Queue,
    requests: Handles<RequestId>,
    contexts: Handles<ContextId>,
    groups: Handles<GroupId>,
    tunables: Vec<&'static str>,
}

impl ReplayQueue {
    /// Creates the queue that the start of a recording describes.
    pub fn new(start: &Start) -> Result<Self, RecordError> {
        let queue = start.create()?;
        let mut groups = Handles::new();
        groups.add(start.root(), queue.root_group());
        let tunables = queue.tunables().map(|(tunable, _)| tunable.name).collect();
        Ok(ReplayQueue { queue, requests: Handles::new(), contexts: Handles::new(), groups, tunables })
    }

    /// Makes the call of a record. Returns the record with the answer of this queue. An object that
    /// the call creates gets the handle that it has in the recording.
    pub fn answer(&mut self, record: &Record) -> Record {
        let mut made = record.question();
        match record.call {
            Call::Submit => self.submit(record, &mut made),
            Call::Requeue => made.status = kick(self.queue.requeue(self.request(record.a[0]), record.time_ns)),
            Call::Next => self.next(record, &mut made),
            Call::Complete => self.complete(record, &mut made),
            Call::AllowsMerge | Call::FindMerge | Call::PrepareMerge | Call::Neighbour => {
                self.search(record, &mut made)
            }
            Call::Growth | Call::Join | Call::InsertJoin => made.status = self.record_merge(record),
            Call::Dispatched => self.dispatched(&mut made),
            Call::NextTimer => match self.queue.next_timer() {
                Some(at_ns) => made.a[0] = at_ns,
                None => made.status = EMPTY,
            },
            Call::Timer => made.status = self.queue.timer(record.time_ns).status(),
            Call::NextWork => self.next_work(&mut made),
            Call::Context | Call::Exit | Call::Priority | Call::Cpu | Call::Move => self.context(record, &mut made),
            Call::Group | Call::Weights | Call::GroupRemove => self.group(record, &mut made),
            Call::SetTunable => made.status = self.set_tunable(record),
            Call::DepthLimit => match self.bio(record, record.a[0], record.a[1], record.a[2] as u32) {
                Some(bio) => made.n[1] = self.queue.depth_limit(record.n[0], &bio),
                None => made.status = INVALID,
            },
            Call::Joins => made.status = i16::from(self.queue.joins_at_insert()),
            Call::Reserve | Call::Release | Call::GroupReserve | Call::GroupRelease => {
                made.status = self.reservation(record);
            }
            Call::Queue | Call::Config | Call::Name | Call::Tunable | Call::End => {}
        }
        made
    }

    /// Lines on the current state.
    pub fn state(&self) -> Vec<String> {
        let queue = &self.queue;
        let timer = queue.next_timer().map_or_else(|| "no timer".to_owned(), |ns| format!("timer at {}", seconds(ns)));
        let mut handles: Vec<(u64, RequestId)> = self.requests.here.iter().map(|(&key, &id)| (key, id)).collect();
        handles.sort_unstable_by_key(|(handle, id)| (queue.request(*id).map(|request| request.sector()), *handle));
        let mut lines = vec![format!(
            "elevator {}, {} requests ({} in the device), {} contexts, {} groups, {timer}",
            queue.kind().info().name,
            handles.len(),
            queue.in_flight(),
            self.contexts.here.len(),
            self.groups.here.len(),
        )];
        for (handle, id) in handles.iter().take(LISTED) {
            let Some(request) = queue.request(*id) else { continue };
            lines.push(format!(
                "request {handle:#x} sector={} sectors={} op={} pid={}",
                request.sector(),
                request.sectors(),
                if request.op() == Op::Read { "read" } else { "write" },
                queue.context_of(*id).map_or(0, |context| context.pid()),
            ));
        }
        if handles.len() > LISTED {
            lines.push(format!("{} more requests", handles.len() - LISTED));
        }
        lines
    }

    fn request(&self, handle: u64) -> RequestId {
        self.requests.here.get(&handle).copied().unwrap_or_default()
    }

    fn context_id(&self, handle: u64) -> ContextId {
        self.contexts.here.get(&handle).copied().unwrap_or_default()
    }

    /// The bio of a call; `None` if its operation is not one of bios.
    fn bio(&self, record: &Record, context: u64, sector: u64, sectors: u32) -> Option<Bio> {
        let op = match record.op {
            0 => Op::Read,
            1 => Op::Write,
            3 => Op::Discard,
            _ => return None,
        };
        let context = self.context_id(context);
        Some(Bio { token: record.token, context, op, sector, sectors, flags: flags(record.flags) })
    }

    fn submit(&mut self, record: &Record, made: &mut Record) {
        let Some(bio) = self.bio(record, record.a[0], record.a[1], record.n[0]) else {
            made.status = INVALID;
            return;
        };
        match self.queue.submit(bio, record.time_ns) {
            Ok((submitted, kick)) => {
                made.status = kick.status();
                match submitted {
                    Submitted::Queued(id) => {
                        self.requests.add(record.a[2], id);
                        made.a[2] = record.a[2];
                    }
                    Submitted::Merged(id) => {
                        made.n[1] = 1;
                        made.a[2] = self.requests.recorded(id);
                    }
                    Submitted::Asleep => made.n[1] = 2,
                }
            }
            Err(error) => made.status = error.status(),
        }
    }

    fn next(&mut self, record: &Record, made: &mut Record) {
        let next = match (record.a[3], u16::try_from(record.a[3])) {
            (NO_HW_QUEUE, _) => self.queue.next(record.time_ns),
            (_, Ok(hw_queue)) if hw_queue < self.queue.config().hw_queues => {
                self.queue.next_for(hw_queue, record.time_ns)
            }
            _ => {
                made.status = INVALID;
                return;
            }
        };
        let id = match next {
            Next::Request(id) => id,
            Next::Wait => return made.status = WAIT,
            Next::Empty => return made.status = EMPTY,
        };
        let Some(request) = self.queue.request(id) else { return made.status = STALE };
        made.a[..3].copy_from_slice(&[self.requests.recorded(id), request.sector(), request.submitted_ns()]);
        made.n = [request.sectors(), self.queue.context_of(id).map_or(0, |context| context.pid())];
        made.token = request.token();
        made.op = request.op() as u8;
        made.flags = flag_bits(request.flags());
    }

    fn complete(&mut self, record: &Record, made: &mut Record) {
        let (mut count, mut first) = (0, 0);
        let completed = self.queue.complete(self.request(record.a[0]), record.time_ns, |token| {
            first = if count == 0 { token } else { first };
            count += 1;
        });
        if completed.is_ok() {
            self.requests.remove(record.a[0]);
            made.n[0] = count;
            made.token = first;
        }
        made.status = kick(completed);
    }

    fn search(&mut self, record: &Record, made: &mut Record) {
        if record.call == Call::Neighbour {
            let Some(side) = side(record.n[1]) else { return made.status = INVALID };
            return match self.queue.neighbour(self.request(record.a[0]), side) {
                Some(id) => {
                    made.a[1] = self.requests.recorded(id);
                    made.token = self.queue.request(id).map_or(0, |request| request.token());
                }
                None => made.status = EMPTY,
            };
        }
        let Some(bio) = self.bio(record, record.a[1], record.a[2], record.n[0]) else {
            return made.status = INVALID;
        };
        if record.call == Call::AllowsMerge {
            let allowed = self.queue.allows_merge(self.request(record.a[0]), &bio, record.time_ns);
            return made.status = i16::from(allowed);
        }
        let found = if record.call == Call::FindMerge {
            self.queue.find_merge_for_host(&bio, record.time_ns)
        } else {
            match self.queue.prepare_merge(&bio, record.time_ns) {
                HostSearch::Usual => return made.status = SEARCH,
                HostSearch::Nothing => None,
                HostSearch::Found(id, merge) => Some((id, merge)),
            }
        };
        match found {
            Some((id, merge)) => {
                made.a[0] = self.requests.recorded(id);
                made.token = self.queue.request(id).map_or(0, |request| request.token());
                made.n[1] = u32::from(merge == Merge::Front);
            }
            None => made.status = EMPTY,
        }
    }

    fn record_merge(&mut self, record: &Record) -> i16 {
        let (now_ns, [a, b, c, d], [m, n]) = (record.time_ns, record.a, record.n);
        let recorded = match record.call {
            Call::Growth => {
                let Some(side) = side(n) else { return INVALID };
                self.queue.record_growth(self.request(a), side, Extent { sector: b, sectors: m }, now_ns)
            }
            Call::Join => {
                let (request, absorbed) = (self.request(a), self.request(b));
                let (result, before) = (Extent { sector: c, sectors: m }, Extent { sector: d, sectors: n });
                let joined = self.queue.record_join((request, result), (absorbed, before), now_ns);
                if joined.is_ok() {
                    self.requests.remove(b);
                }
                joined
            }
            _ => {
                let Some(bio) = self.bio(record, c, d, n) else { return INVALID };
                let grown = Extent { sector: b, sectors: m };
                self.queue.record_join_at_insert(self.request(a), grown, &bio, now_ns)
            }
        };
        recorded.map_or_else(|error| error.status(), |kick| kick.status())
    }

    fn dispatched(&self, made: &mut Record) {
        made.n[0] = u32::try_from(self.queue.dispatched().count()).unwrap_or(u32::MAX);
        let listed = self.queue.dispatched().nth(made.n[1] as usize);
        made.token = listed.map_or(0, |request| request.token());
    }

    fn next_work(&mut self, made: &mut Record) {
        match self.queue.next_work() {
            Some(DeferredWork::Wake(context)) => {
                made.n[0] = 1;
                made.a[0] = self.contexts.recorded(context);
            }
            Some(_) => {}
            None => made.status = EMPTY,
        }
    }

    fn context(&mut self, record: &Record, made: &mut Record) {
        let (id, now_ns) = (self.context_id(record.a[0]), record.time_ns);
        made.status = match record.call {
            Call::Context => match self.queue.create_context(record.n[0], Priority::default(), 0) {
                Ok(id) => {
                    self.contexts.add(record.a[0], id);
                    made.a[0] = record.a[0];
                    OK
                }
                Err(_) => FULL,
            },
            Call::Exit => {
                let exited = self.queue.exit_context(id, now_ns);
                if exited.is_ok() {
                    self.contexts.remove(record.a[0]);
                }
                kick(exited)
            }
            Call::Priority => match priority(record.n) {
                Some(priority) => kick(self.queue.set_priority(id, priority, now_ns)),
                None => INVALID,
            },
            Call::Cpu => match u16::try_from(record.n[0]) {
                Ok(cpu) => self.queue.set_cpu(id, cpu).map_or(STALE, |()| OK),
                Err(_) => INVALID,
            },
            _ => match self.groups.here.get(&record.a[1]) {
                Some(group) => kick(self.queue.move_context(id, *group, now_ns)),
                None => STALE,
            },
        };
    }

    fn group(&mut self, record: &Record, made: &mut Record) {
        let now_ns = record.time_ns;
        let weights = u16::try_from(record.n[0]).map(GroupWeights::of);
        let group = self.groups.here.get(&record.a[0]).copied();
        made.status = match (record.call, group, weights) {
            (Call::Group | Call::Weights, _, Err(_)) => OUT_OF_RANGE,
            (_, None, _) => STALE,
            (Call::Group, Some(parent), Ok(weights)) => match self.queue.create_group(parent, weights, now_ns) {
                Ok(id) => {
                    self.groups.add(record.a[1], id);
                    made.a[1] = record.a[1];
                    OK
                }
                Err(error) => error.status(),
            },
            (Call::Weights, Some(group), Ok(weights)) => {
                let set = self.queue.set_group_weights(group, weights, now_ns);
                set.map_or_else(|error| error.status(), |kick| kick.status())
            }
            (_, Some(group), _) => match self.queue.remove_group(group, now_ns) {
                Ok(kick) => {
                    self.groups.remove(record.a[0]);
                    kick.status()
                }
                Err(error) => error.status(),
            },
        };
    }

    fn reservation(&mut self, record: &Record) -> i16 {
        let [holder, bytes_per_second, depth_bytes, request_bytes] = record.a;
        let wanted = Reservation {
            bytes_per_second,
            depth_bytes: (depth_bytes > 0).then_some(depth_bytes),
            request_bytes: if request_bytes > 0 { request_bytes } else { Reservation::REQUEST_DEFAULT },
        };
        let (context, now_ns) = (self.context_id(holder), record.time_ns);
        let group = self.groups.here.get(&holder).copied();
        let reserved = match (record.call, group) {
            (Call::Reserve, _) => self.queue.reserve(context, wanted, now_ns),
            (Call::Release, _) => return kick(self.queue.release(context, now_ns)),
            (_, None) => return STALE,
            (Call::GroupReserve, Some(group)) => self.queue.reserve_group(group, wanted, now_ns),
            (_, Some(group)) => return kick(self.queue.release_group(group, now_ns)),
        };
        reserved.map_or_else(|error| error.status(), |kick| kick.status())
    }

    fn set_tunable(&mut self, record: &Record) -> i16 {
        let Some(name) = self.tunables.get(record.n[0] as usize) else { return UNKNOWN };
        match self.queue.set_tunable(name, record.a[0] as i64) {
            Ok(()) => OK,
            Err(TunableError::Unknown) => UNKNOWN,
            Err(TunableError::OutOfRange { .. }) => OUT_OF_RANGE,
        }
    }
}

/// The return value of a C function for a result.
trait ToStatus {
    fn status(self) -> i16;
}

impl ToStatus for Kick {
    fn status(self) -> i16 {
        if self == Kick::Run { RUN } else { OK }
    }
}

impl ToStatus for SubmitError {
    fn status(self) -> i16 {
        match self {
            SubmitError::Full => FULL,
            SubmitError::Asleep | SubmitError::NotWoken => NOT_AWAKE,
            SubmitError::NoContext => STALE,
            SubmitError::BadExtent => BAD_EXTENT,
            SubmitError::NotSupported => NOT_SUPPORTED,
        }
    }
}

impl ToStatus for MergeError {
    fn status(self) -> i16 {
        match self {
            MergeError::Stale => STALE,
            MergeError::BadExtent => BAD_EXTENT,
            MergeError::Submit(error) => error.status(),
        }
    }
}

impl ToStatus for ReserveError {
    fn status(self) -> i16 {
        match self {
            ReserveError::Stale => STALE,
            ReserveError::NotSupported => NOT_SUPPORTED,
            ReserveError::BadRate => INVALID,
            ReserveError::NoCapacity { .. } => NO_CAPACITY,
        }
    }
}

impl ToStatus for GroupError {
    fn status(self) -> i16 {
        match self {
            GroupError::Stale => STALE,
            GroupError::Full => FULL,
            GroupError::BadWeight => OUT_OF_RANGE,
            GroupError::Busy => BUSY,
        }
    }
}

fn kick(result: Result<Kick, Stale>) -> i16 {
    result.map_or(STALE, Kick::status)
}

fn side(number: u32) -> Option<Merge> {
    match number {
        0 => Some(Merge::Back),
        1 => Some(Merge::Front),
        _ => None,
    }
}

fn priority([class, level]: [u32; 2]) -> Option<Priority> {
    let class = match class {
        0 => Class::None,
        1 => Class::RealTime,
        2 => Class::BestEffort,
        3 => Class::Idle,
        _ => return None,
    };
    Priority::new(class, u8::try_from(level).ok()?)
}

/// The flags in the order of their bits.
const FLAGS: [Flags; 6] = [Flags::SYNC, Flags::META, Flags::IDLE, Flags::UNPLUG, Flags::FUA, Flags::BARRIER];

fn flags(bits: u16) -> Flags {
    let set = FLAGS.into_iter().enumerate().filter(|(bit, _)| bits & 1 << bit != 0);
    set.fold(Flags::NONE, |flags, (_, flag)| flags.and(flag))
}

fn flag_bits(flags: Flags) -> u16 {
    let set = FLAGS.into_iter().enumerate().filter(|(_, flag)| flags.has(*flag));
    set.fold(0, |bits, (bit, _)| bits | 1 << bit)
}
