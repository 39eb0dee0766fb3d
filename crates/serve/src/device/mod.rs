//! A device: a backend, perhaps with the model of a drive before it, under one request queue that all its exports share.
//!
//! ```text
//! submit ─▶ limits ─▶ pieces ─▶ RequestQueue (reservations, elevator) ─▶ depth ─▶ drive's model and backend ─▶ Done
//!    └─ flushes: one at a time ───────────────────────────────────────────────────────────┘
//! ```
//!
//! It is told the time, and calls the engine only to start I/O. Whoever hosts it gives it what has come ([`Device::submit`],
//! [`Device::io_done`]), lets it work ([`Device::run`]) and comes back when it says ([`Device::next_wake_ns`]).

pub mod account;
mod dispatch;
mod elevator;
mod emulated;
pub(crate) mod figures;
mod flush;
mod tap;
mod tenants;
mod work;

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use hoistway_core::{Kind, Owned, RequestQueue, Tunable, TunableError};
use hoistway_nbd::Abilities;
use hoistway_nbd::wire::Errno;
use slab::Slab;

use crate::backend::{Backend, BackendError, Shared};
use crate::buffer::Buffer;
use crate::config::DeviceConfig;
use crate::engine::{Allocation, Engine};
use crate::limits::{Cost, Limiter};

use account::Busy;
use dispatch::Flight;
use emulated::Emulated;
use flush::Flushes;
use tap::Tap;
use tenants::Tenants;
use work::{Entries, Entry, Stage};

pub use account::Account;
pub use elevator::{CAPACITY, CLOCK, ReconfigureError, SwitchError};
pub use tap::Record;
pub use tenants::{JoinError, MemberId, TermsError};

/// Something to be done on a device.
#[derive(Debug)]
pub struct Work {
    /// The asker's name for it.
    pub ticket: u64,
    /// What.
    pub op: WorkOp,
    /// The first byte, on the device.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// Durable before it is done.
    pub durable: bool,
    /// Of writes: the data, in the first `length` bytes; none where the host does the work.
    pub data: Option<Buffer>,
    /// What else an elevator should know.
    pub hints: Hints,
}

/// What an elevator should know of a request beside where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Of writes: nobody waits for it.
    pub is_async: bool,
    /// It is about metadata.
    pub is_metadata: bool,
}

/// What has begun on a device whose host does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The asker's name for it.
    pub ticket: u64,
    /// By which [`Device::io_done`] is told that it is over.
    pub tag: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOp {
    /// Reads.
    Read,
    /// Reads, and tells nobody.
    Cache,
    /// Writes.
    Write,
    /// Makes a range read as zeroes.
    Zero {
        /// A hole will do.
        punch: bool,
    },
    /// Gives a range back.
    Trim,
    /// Makes everything durable that was done (answered) before.
    Flush,
    /// Tells what is allocated.
    Status,
}

impl WorkOp {
    /// Whether it changes what a range holds.
    pub fn writes(self) -> bool {
        matches!(self, WorkOp::Write | WorkOp::Zero { .. } | WorkOp::Trim)
    }

    /// Whether there is such a range in so many bytes.
    ///
    /// # Errors
    /// What the protocol has for a range beyond the end: ENOSPC of what would have to find room there, else EINVAL.
    pub fn check_range(self, offset: u64, length: u64, size: u64) -> Result<(), Errno> {
        match offset.checked_add(length).is_some_and(|end| end <= size) {
            true => Ok(()),
            false if matches!(self, WorkOp::Write | WorkOp::Zero { .. }) => Err(Errno::NoSpc),
            false => Err(Errno::Inval),
        }
    }
}

/// Something that was done.
#[derive(Debug)]
pub struct Done {
    /// Whose.
    pub ticket: u64,
    /// The answer, or the error.
    pub result: Result<Answer, Errno>,
}

/// What there is to tell.
#[derive(Debug)]
pub enum Answer {
    /// That it was done.
    Nothing,
    /// Data, in the first bytes of a buffer, as many as were asked for.
    Buffer(Buffer),
    /// Data, in the backend's own memory.
    Shared(Shared),
    /// All zeroes: nothing was ever written there.
    Zeroes,
    /// Extents.
    Extents(Vec<Allocation>),
    /// What was read piece by piece: the length of each piece in bytes and what it holds, in order. None of them is one of these, or extents.
    Parts(Vec<(u64, Answer)>),
}

/// A device.
pub struct Device {
    index: u32,
    name: String,
    backend: Backend,
    emulated: Option<Emulated>,
    /// The backend answers in the call that begins something, and there is no drive to wait for.
    is_instant: bool,
    size: u64,
    queue: RequestQueue<Owned<Tap>>,
    /// What to do when a switch of the elevator is over.
    settling: elevator::Settling,
    depth: u32,
    request_bytes_max: u64,
    limiter: Limiter,
    tenants: Tenants,
    entries: Entries,
    flights: Slab<Flight>,
    /// Requests in the device.
    in_flight: u32,
    /// The queue wants to be run.
    kicked: bool,
    /// Requests for which the queue had no room, oldest first.
    overflow: VecDeque<u32>,
    /// Questions that wait for the next run.
    questions: VecDeque<u32>,
    flushes: Flushes,
    busy: Busy,
    /// What is done and not yet handed out, and by whom it was asked for.
    done: Vec<(u32, Done)>,
    now_ns: u64,
    notices: Vec<String>,
    bandwidth: Option<u64>,
    position_ns: Option<u64>,
    /// Kept from call to call, so that nothing is allocated.
    tokens: Vec<u32>,
}

/// Why a device could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Its bytes cannot be reached.
    #[error("device {device}: {source}")]
    Backend {
        /// Which.
        device: String,
        /// Why.
        source: BackendError,
    },
    /// A tunable cannot be set.
    #[error("device {device}: tunable `{tunable}` of {elevator}: {source}")]
    Tunable {
        /// Which.
        device: String,
        /// The elevator's name.
        elevator: &'static str,
        /// The tunable's name.
        tunable: String,
        /// Why.
        source: TunableError,
    },
    /// A depth or size that cannot be.
    #[error("device {device}: {key} is {value}: {expected}")]
    Value {
        /// Which.
        device: String,
        /// What.
        key: &'static str,
        /// What was given.
        value: u64,
        /// What would be right.
        expected: &'static str,
    },
}

/// The greatest depth.
pub const DEPTH_MAX: u32 = 4096;
/// An emulated drive is given no more requests at once unless it is told.
pub const EMULATED_DEPTH_MAX: u32 = 32;
/// Requests a run of what answers at once, while several clients wait.
pub const INSTANT_DEPTH: u32 = 8;
/// The least and the greatest [`DeviceConfig::request_bytes_max`]: 4 KiB and 64 MiB.
pub const REQUEST_BYTES: std::ops::RangeInclusive<u32> = 4096..=64 << 20;
/// A trim is done in pieces of at most 64 MiB: so much counts at once in an elevator that counts bytes.
pub const TRIM_BYTES_MAX: u64 = 64 << 20;

impl Device {
    /// Opens a device. `index` tells its I/O from that of others: the tags that it gives the engine are [`Device::index_of`] it.
    ///
    /// # Errors
    /// When its backend cannot be opened, or a value is out of its range.
    pub fn new<E: Engine>(
        index: u32,
        config: &DeviceConfig,
        engine: &mut E,
        now_ns: u64,
    ) -> Result<Device, DeviceError> {
        let backend = Backend::open(&config.backend, engine)
            .map_err(|source| DeviceError::Backend { device: config.name.clone(), source })?;
        if config.drive.is_some() {
            engine.be_punctual();
        }
        Device::over(index, config, backend, now_ns)
    }

    /// The same over a backend that is open.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn over(index: u32, config: &DeviceConfig, backend: Backend, now_ns: u64) -> Result<Device, DeviceError> {
        check_values(config)?;
        let emulated = config.drive.as_ref().map(|profile| Emulated::new(profile, now_ns));
        let mut notices = Vec::new();
        let size = size_of(&backend, emulated.as_ref(), &mut notices);
        let is_instant = emulated.is_none()
            && matches!(
                config.backend,
                crate::config::BackendConfig::Memory { .. } | crate::config::BackendConfig::Null { .. }
            );
        let (queue, settling) = elevator::make(config, &backend, emulated.is_some(), is_instant, now_ns)?;
        let tenants = Tenants::new(&queue);
        let mut device = Device {
            index,
            name: config.name.clone(),
            is_instant,
            size,
            queue,
            settling,
            depth: 0,
            request_bytes_max: config.request_bytes_max.into(),
            limiter: Limiter::default(),
            tenants,
            entries: Entries::default(),
            flights: Slab::new(),
            in_flight: 0,
            kicked: false,
            overflow: VecDeque::new(),
            questions: VecDeque::new(),
            flushes: Flushes::default(),
            busy: Busy::default(),
            done: Vec::new(),
            now_ns,
            notices,
            bandwidth: config.bandwidth,
            position_ns: config.position_ns,
            tokens: Vec::new(),
            backend,
            emulated,
        };
        let default = device.default_depth();
        device.set_depth(config.depth.unwrap_or(default));
        Ok(device)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls it otherwise.
    pub fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// The index of the device that gave the engine this tag.
    pub fn index_of(tag: u64) -> u32 {
        (tag >> 32) as u32
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What it can do for NBD clients.
    pub fn abilities(&self) -> Abilities {
        Abilities { rotational: self.is_rotational(), ..self.backend.abilities() }
    }

    /// Whether writing zeroes is fast, faster than writing data; `punch`: where a hole will do. Whether a file system can zero a range and keep it
    /// allocated is not known before it is tried, and then it may have to be written.
    pub fn zero_is_fast(&self, punch: bool) -> bool {
        let keeps = !self.backend.is_file();
        self.emulated.is_none() && self.backend.abilities().fast_zero && (punch || keeps)
    }

    /// Whether an arm moves in it, or in the drive that it is made to be.
    pub fn is_rotational(&self) -> bool {
        self.queue.config().rotational
    }

    /// The backend.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The name of the drive's profile that says how long everything takes.
    pub fn drive(&self) -> Option<&str> {
        self.emulated.as_ref().map(Emulated::name)
    }

    /// How late an emulated drive's completions were taken notice of, in ns: 2 digits.
    pub fn lateness(&self) -> Option<&Histogram<u64>> {
        self.emulated.as_ref().map(Emulated::lateness)
    }

    /// The same as lines of text, for whoever prints it at the end: none if nothing was emulated.
    pub fn lateness_lines(&self) -> Vec<String> {
        self.emulated.as_ref().map_or_else(Vec::new, Emulated::lateness_lines)
    }

    /// What should be known about how it was set up, as sentences for the log.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Tenants and what each of them had; the first is that of clients without a tenant, [`Device::DEFAULT_TENANT`].
    pub fn accounts(&self) -> impl Iterator<Item = (&str, &Account)> {
        self.tenants.accounts()
    }

    /// The names of groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.tenants.groups()
    }

    /// What one tenant had.
    pub fn account(&self, tenant: &str) -> Option<&Account> {
        self.tenants.account_named(tenant)
    }

    /// The name under which clients without a tenant are counted.
    pub const DEFAULT_TENANT: &str = "default";

    /// Requests that it is given at once.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Sets how many; an emulated drive takes no more than its own queue does.
    pub fn set_depth(&mut self, depth: u32) {
        let most = self.emulated.as_ref().map_or(DEPTH_MAX, Emulated::depth);
        self.depth = depth.clamp(1, DEPTH_MAX.min(most));
        self.kicked = true;
    }

    /// What the depth is unless it is told: an emulated drive's own, but 32 at most; of memory and nothing 8, where it is how many are served a run
    /// while several clients wait; else the backend's.
    pub fn default_depth(&self) -> u32 {
        match &self.emulated {
            Some(emulated) => emulated.depth().min(EMULATED_DEPTH_MAX),
            None if self.is_instant => INSTANT_DEPTH,
            None => self.backend.default_depth(),
        }
    }

    /// Whether neighbouring requests are merged.
    pub fn merges(&self) -> bool {
        self.queue.config().merging
    }

    /// Sets whether neighbouring requests are merged (never in memory: finding them would cost more than it saves) and the largest request in bytes.
    ///
    /// # Errors
    /// When the largest request is not in [`REQUEST_BYTES`] or no multiple of 4 KiB; then nothing has changed.
    pub fn set_requests(&mut self, merge: bool, request_bytes_max: u32) -> Result<(), DeviceError> {
        check_request_bytes_max(&self.name, request_bytes_max)?;
        self.request_bytes_max = request_bytes_max.into();
        self.queue.set_merging(merge && !self.is_instant, (request_bytes_max / 512).max(1));
        Ok(())
    }

    /// The largest request in bytes: longer ones are split.
    pub fn request_bytes_max(&self) -> u64 {
        self.request_bytes_max
    }

    /// Whether a flush or a durable write has failed: then all flushes fail, until the device is opened anew.
    pub fn has_lost_writes(&self) -> bool {
        self.flushes.has_failed()
    }

    /// Requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests that wait in the queue, and those that limits hold back.
    pub fn waiting(&self) -> (u64, u64) {
        self.tenants.waiting()
    }

    /// For how long something was in the device since the start, in ns.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        self.busy.busy_ns(now_ns)
    }

    /// Bios that were merged since the start: reads, and all others.
    pub fn merged(&self) -> [u64; 2] {
        self.queue.sink().merges
    }

    /// The tenant whose request the elevator serves alone at present; of elevators without slices, nobody.
    pub fn slice_holder(&self) -> Option<&str> {
        self.tenants.name_of_number(self.queue.sink().holder?)
    }

    /// Has everything that happens in the queue told to this recorder from now on, or to nobody.
    pub fn set_recorder(&mut self, mut recorder: Option<Box<dyn Record>>) {
        if let Some(recorder) = &mut recorder {
            let drive = self.drive().map_or(String::new(), |drive| format!(", drive {drive}"));
            recorder.setting(&format!("elevator {}, depth {}{drive}", self.elevator().info().name, self.depth));
        }
        self.queue.sink_mut().recorder = recorder;
    }

    /// Whether somebody records.
    pub fn is_recorded(&self) -> bool {
        self.queue.sink().recorder.is_some()
    }

    /// The elevator.
    pub fn elevator(&self) -> Kind {
        self.queue.kind()
    }

    /// Its tunables and their values.
    pub fn tunables(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        self.queue.tunables()
    }

    /// Whether nothing is waiting or under way: nobody waits for an answer, and nothing of clients that have left is in the device.
    pub fn is_idle(&self) -> bool {
        self.entries.slab.is_empty() && self.flights.is_empty() && self.flushes.are_idle()
    }

    /// Takes in a request. It is answered once, by its ticket, from [`Device::run`], unless its member leaves before.
    pub fn submit(&mut self, member: MemberId, work: Work, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let Some(tenant) = self.tenants.tenant_of(member) else { return };
        let ticket = work.ticket;
        if let Err(errno) = self.check(&work) {
            self.done.push((member.slot(), Done { ticket, result: Err(errno) }));
            return;
        }
        let op = work.op;
        if op == WorkOp::Cache && self.is_instant {
            self.done.push((member.slot(), Done { ticket, result: Ok(Answer::Nothing) }));
            return;
        }
        let moved = if matches!(op, WorkOp::Read | WorkOp::Write | WorkOp::Cache) { work.length } else { 0 };
        let entry = Entry::new(work, member.slot(), tenant, now_ns);
        let slot = self.entries.insert(entry);
        self.entries.link(slot, self.tenants.first_of(member.slot()));
        self.tenants.account(tenant).entered(now_ns);
        match op {
            WorkOp::Flush => self.flushes.add(slot),
            WorkOp::Status => self.questions.push_back(slot),
            _ if self.limiter.admit(tenant, Cost { bytes: moved, operations: 1 }, slot, now_ns) => self.admit(slot),
            _ => {
                self.tenants.account(tenant).held += 1;
                self.set_stage(slot, Stage::Held);
            }
        }
    }

    /// When [`Device::run`] has to be called next if nothing happens before; a time that has passed: at once.
    pub fn next_wake_ns(&self) -> Option<u64> {
        let at_once = !self.done.is_empty()
            || !self.questions.is_empty()
            || (self.flushes.wants_to_begin() && (self.emulated.is_none() || self.in_flight < self.depth))
            || (self.kicked && self.has_room());
        if at_once {
            return Some(self.now_ns);
        }
        self.next_event_ns()
    }

    /// A client has left: what it waits for is not begun any more, or finished without an answer.
    pub fn leave(&mut self, member: MemberId, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let Some(tenant) = self.tenants.tenant_of(member) else { return };
        let mut slot = *self.tenants.first_of(member.slot());
        let mut was_held = false;
        while let Some(entry) = self.entries.get_mut(slot) {
            let next = entry.after;
            entry.dead = true;
            entry.data = None;
            was_held |= entry.stage == Stage::Held;
            let is_gone = entry.stage == Stage::Held;
            if is_gone {
                self.forget(slot);
            }
            slot = next;
        }
        if was_held {
            let entries = &self.entries;
            self.limiter.retain(
                tenant,
                |slot| entries.get(slot).is_some_and(|entry| entry.stage == Stage::Held),
                now_ns,
            );
        }
        self.drop_dead_directs();
        self.done.retain(|(owner, _)| *owner != member.slot());
        self.tenants.leave(&mut self.queue, member, now_ns);
        // Where the elevator kept the device for this client alone, the others go on at once.
        self.told();
    }

    /// Of a device whose host does the work: adds to `begun` what has begun since the last time, in the order in which it is to be done. The host does it and
    /// says so by [`Device::io_done`]. Of a member that has left there may be something among it, with its tickets.
    pub fn take_begun(&mut self, begun: &mut Vec<Begun>) {
        let entries = &self.entries;
        begun.extend(self.backend.begun().map(|tag| {
            let ticket = entries.get(tag as u32).map_or(u64::MAX, |entry| entry.ticket);
            Begun { ticket, tag }
        }));
    }

    fn check(&self, work: &Work) -> Result<(), Errno> {
        if work.op == WorkOp::Flush {
            return Ok(());
        }
        work.op.check_range(work.offset, work.length, self.size)?;
        let data_bytes = work.data.as_ref().map_or(0, |data| data.len() as u64);
        if work.length == 0 || (work.op == WorkOp::Write && data_bytes < work.length && !self.backend.is_hosted()) {
            return Err(Errno::Inval);
        }
        Ok(())
    }

    fn set_stage(&mut self, slot: u32, stage: Stage) {
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.stage = stage;
        }
    }
}

fn check_values(config: &DeviceConfig) -> Result<(), DeviceError> {
    let value = |key, value, expected| DeviceError::Value { device: config.name.clone(), key, value, expected };
    if config.depth.is_some_and(|depth| depth == 0 || depth > DEPTH_MAX) {
        return Err(value("depth", config.depth.unwrap_or(0).into(), "it takes 1 to 4096"));
    }
    check_request_bytes_max(&config.name, config.request_bytes_max)
}

fn check_request_bytes_max(device: &str, bytes: u32) -> Result<(), DeviceError> {
    if REQUEST_BYTES.contains(&bytes) && bytes.is_multiple_of(4096) {
        return Ok(());
    }
    let expected = "it takes 4096 to 67108864 bytes, in multiples of 4096";
    Err(DeviceError::Value { device: device.to_owned(), key: "request_max", value: bytes.into(), expected })
}

fn tunable_error(config: &DeviceConfig, kind: Kind, tunable: &str, source: TunableError) -> DeviceError {
    let elevator = kind.info().name;
    DeviceError::Tunable { device: config.name.clone(), elevator, tunable: tunable.to_owned(), source }
}

/// The smaller of what the backend and the drive hold; if they differ, that is worth a word.
fn size_of(backend: &Backend, emulated: Option<&Emulated>, notices: &mut Vec<String>) -> u64 {
    let bytes = backend.size();
    let Some(drive) = emulated else { return bytes };
    if drive.bytes() < bytes {
        notices.push(format!(
            "the drive {} holds {} bytes: the other {} of the backend are not used",
            drive.name(),
            drive.bytes(),
            bytes - drive.bytes()
        ));
    } else if drive.bytes() > bytes {
        notices.push(format!(
            "the backend holds {bytes} of the {} bytes of the drive {}: only its outer part is used",
            drive.bytes(),
            drive.name()
        ));
    }
    bytes.min(drive.bytes())
}
