//! The part of a disk's queue that does not depend on the host's data types: the request queue with
//! its elevator, tenants, groups, clients, limits, reservations and the queue depth.
//!
//! The control tree and configuration reloads work on this type, whatever hosts the queue.

mod elevator;
mod membership;

use std::collections::BTreeMap;

use hoistway_core::{DeferredWork, Event, Kick, Kind, RequestId, RequestQueue, Tunable, TunableError};
use hoistway_custom::Host;
use slab::Slab;

use crate::account::{Account, BusyTime, OpKind};
use crate::entries::Entry;
use crate::limiter::Limiter;
use crate::medium::MediumProperties;
use crate::recorder::{QueueSink, Recorder};
use crate::tenants::Tenants;

pub use crate::tenants::MemberId;
pub use elevator::{CAPACITY, CLOCK, DEFAULT, DEFAULT_ROTATING, ReconfigureError, SwitchError};
pub use membership::{JoinError, ProcessPriority, TermsError};

/// The request queue of a disk.
pub(crate) type Queue = RequestQueue<Host<QueueSink>>;

/// The largest queue depth.
pub const DEPTH_MAX: u32 = 4096;

/// The smallest and the largest [`DiskQueueConfig::request_bytes_max`]: 4 KiB and 64 MiB.
pub const REQUEST_BYTES: std::ops::RangeInclusive<u32> = 4096..=64 << 20;

/// The configuration of a disk's queue.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskQueueConfig {
    /// The name of the device: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The elevator; `None` chooses it by whether the device rotates.
    pub elevator: Option<Kind>,
    /// The queue depth: the number of requests in the device at a time; `None` is the medium's
    /// default.
    pub depth: Option<u32>,
    /// Tunables of the elevator, by the kernel's names.
    pub tunables: Vec<(String, i64)>,
    /// Whether adjacent requests are merged.
    pub merge: bool,
    /// The size of the largest request in bytes; longer requests are split.
    pub request_bytes_max: u32,
    /// The sustained bandwidth in bytes per second, for the admission of reservations.
    pub bandwidth: Option<u64>,
    /// The positioning time of a request in ns, for the admission of reservations.
    pub position_ns: Option<u64>,
    /// Requests that take longer than this from arrival to completion, in ns, are logged, at most
    /// one a minute for each tenant.
    pub log_slow_ns: u64,
}

impl DiskQueueConfig {
    /// The default of [`log_slow_ns`](DiskQueueConfig::log_slow_ns): 10 s.
    pub const LOG_SLOW_NS_DEFAULT: u64 = 10_000_000_000;

    /// The default size of the largest request in bytes: 1 MiB.
    pub const REQUEST_BYTES_DEFAULT: u32 = 1 << 20;

    /// Creates the default configuration of a device.
    pub fn new(name: impl Into<String>) -> DiskQueueConfig {
        DiskQueueConfig {
            name: name.into(),
            elevator: None,
            depth: None,
            tunables: Vec::new(),
            merge: true,
            request_bytes_max: DiskQueueConfig::REQUEST_BYTES_DEFAULT,
            bandwidth: None,
            position_ns: None,
            log_slow_ns: DiskQueueConfig::LOG_SLOW_NS_DEFAULT,
        }
    }
}

/// Why a queue could not be created or configured.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// A tunable cannot be set.
    #[error("device {device}: tunable `{tunable}` of {elevator}: {source}")]
    Tunable {
        /// The device.
        device: String,
        /// The elevator's name.
        elevator: &'static str,
        /// The tunable's name.
        tunable: String,
        /// The reason.
        source: TunableError,
    },
    /// A depth or a size is out of its range.
    #[error("device {device}: {key} is {value}: {expected}")]
    Value {
        /// The device.
        device: String,
        /// The configuration key.
        key: &'static str,
        /// The rejected value.
        value: u64,
        /// The values that are accepted.
        expected: &'static str,
    },
}

/// A request of the request queue that was dispatched to the medium.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    pub id: RequestId,
    /// The number of bios whose I/O has not ended.
    pub pending_bios: u32,
    /// Whether the drive model has not reported the end of the command.
    pub in_drive: bool,
    /// The first sector that the drive model could not access.
    pub bad_sector: Option<u64>,
    /// The value that [`BusyTime::leave`] needs.
    pub busy_mark: u64,
    pub tenant: u32,
}

/// The active slice of an elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceState<'a> {
    /// The tenant of the client that has the slice.
    pub tenant: &'a str,
    /// The time since the start of the slice, in ns.
    pub age_ns: u64,
    /// The time until the latest end of the slice, in ns; `None` while that is not set. A slice
    /// ends earlier if its client has no more requests.
    pub left_ns: Option<u64>,
}

/// The request queue, elevator, tenants and limits of one disk.
pub struct DiskScheduler {
    pub(crate) name: String,
    pub(crate) medium: MediumProperties,
    pub(crate) queue: Queue,
    elevator: elevator::ElevatorState,
    pub(crate) depth: u32,
    pub(crate) request_bytes_max: u64,
    pub(crate) limiter: Limiter,
    pub(crate) tenants: Tenants,
    pub(crate) in_flight: Slab<InFlightRequest>,
    pub(crate) busy: BusyTime,
    /// Whether the request queue must be run.
    pub(crate) kicked: bool,
    pub(crate) now_ns: u64,
    bandwidth: Option<u64>,
    position_ns: Option<u64>,
    pub(crate) log_slow_ns: u64,
}

impl std::fmt::Debug for DiskScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskScheduler")
            .field("name", &self.name)
            .field("elevator", &self.queue.kind())
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl DiskScheduler {
    /// The name under which clients without a tenant are accounted.
    pub const DEFAULT_TENANT: &str = crate::tenants::DEFAULT_TENANT;

    /// Creates the scheduler of a disk.
    ///
    /// # Errors
    /// When a value is out of its range or the elevator has no such tunable.
    pub fn new(config: &DiskQueueConfig, medium: MediumProperties, now_ns: u64) -> Result<DiskScheduler, QueueError> {
        check_values(config)?;
        let (queue, elevator) = elevator::create(config, &medium, now_ns)?;
        let tenants = Tenants::new(&queue);
        let mut scheduler = DiskScheduler {
            name: config.name.clone(),
            medium,
            queue,
            elevator,
            depth: 0,
            request_bytes_max: config.request_bytes_max.into(),
            limiter: Limiter::default(),
            tenants,
            in_flight: Slab::new(),
            busy: BusyTime::default(),
            kicked: false,
            now_ns,
            bandwidth: config.bandwidth,
            position_ns: config.position_ns,
            log_slow_ns: config.log_slow_ns,
        };
        scheduler.set_depth(config.depth.unwrap_or(medium.default_depth));
        Ok(scheduler)
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Renames the device.
    pub fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Returns the size of the device in bytes.
    pub fn size(&self) -> u64 {
        self.medium.bytes
    }

    /// Returns true if the device, or the drive that it emulates, rotates.
    pub fn is_rotational(&self) -> bool {
        self.queue.config().rotational
    }

    /// Returns the names and accounts of all tenants; the first is
    /// [`DiskScheduler::DEFAULT_TENANT`].
    pub fn accounts(&self) -> impl Iterator<Item = (&str, &Account)> {
        self.tenants.accounts()
    }

    /// Returns the names of all groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.tenants.groups()
    }

    /// Returns the account of a tenant.
    pub fn account(&self, tenant: &str) -> Option<&Account> {
        self.tenants.account_named(tenant)
    }

    /// Returns the queue depth: the number of requests in the device at a time.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Sets the queue depth, limited to what the medium accepts.
    pub fn set_depth(&mut self, depth: u32) {
        self.depth = depth.clamp(1, DEPTH_MAX.min(self.medium.depth_max));
        self.kicked = true;
    }

    /// Returns the queue depth that applies unless one is configured.
    pub fn default_depth(&self) -> u32 {
        self.medium.default_depth
    }

    /// Returns true if adjacent requests are merged.
    pub fn merges(&self) -> bool {
        self.queue.config().merging
    }

    /// Sets whether adjacent requests are merged, and the size of the largest request in bytes. A
    /// synchronous medium never merges: the search would cost more than it saves.
    ///
    /// # Errors
    /// When the largest request is not in [`REQUEST_BYTES`] or not a multiple of 4 KiB; nothing has
    /// changed then.
    pub fn set_requests(&mut self, merge: bool, request_bytes_max: u32) -> Result<(), QueueError> {
        check_request_bytes_max(&self.name, request_bytes_max)?;
        self.request_bytes_max = request_bytes_max.into();
        self.queue.set_merging(merge && !self.medium.is_synchronous, (request_bytes_max / 512).max(1));
        Ok(())
    }

    /// Logs a request that took long, at most one a minute for each tenant: an example for the
    /// latencies that the metrics sum up.
    #[cold]
    pub(crate) fn log_slow<D, O>(&self, entry: &Entry<D, O>, queue_ns: u64, device_ns: u64) {
        let Some(tenant) = self.tenants.nodes.get(entry.tenant as usize) else { return };
        let Some(suppressed) = tenant.slow_log.allow(self.now_ns) else { return };
        let seconds = |ns: u64| ns as f64 / 1e9;
        tracing::warn!(
            device = self.name,
            tenant = tenant.name,
            op = OpKind::of(entry.request.op).map_or("status", OpKind::name),
            offset = entry.request.offset,
            bytes = entry.request.length,
            queue_ns,
            device_ns,
            elevator = self.queue.kind().info().name,
            waiting = tenant.account.waiting,
            suppressed,
            "a request was slow: {:.3} s in the queue, {:.3} s in the device",
            seconds(queue_ns),
            seconds(device_ns)
        );
    }

    /// Returns the size of the largest request in bytes; longer requests are split.
    pub fn request_bytes_max(&self) -> u64 {
        self.request_bytes_max
    }

    /// Returns the size of the largest piece of a split request in bytes.
    pub(crate) fn piece_bytes_max(&self) -> u64 {
        self.request_bytes_max.min(self.medium.io_bytes_max)
    }

    /// Returns the number of requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.len() as u32
    }

    /// Returns the number of requests in the device: reads, and all others.
    pub fn in_flight_by_direction(&self) -> [u64; 2] {
        let mut counts = [0; 2];
        for (_, request) in &self.in_flight {
            let op = self.queue.request(request.id).map(|request| request.op());
            counts[usize::from(op != Some(hoistway_core::Op::Read))] += 1;
        }
        counts
    }

    /// Returns the number of requests that wait in the queue, and of those that limits hold back.
    pub fn waiting(&self) -> (u64, u64) {
        self.tenants.waiting()
    }

    /// Returns the time during which at least one request was in the device, in ns.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        self.busy.busy_ns(now_ns)
    }

    /// Returns the number of bios that were merged: reads, and all others.
    pub fn merged(&self) -> [u64; 2] {
        self.queue.sink().merges
    }

    /// Returns the active slice. `None` without one, and under elevators without slices.
    pub fn slice(&self, now_ns: u64) -> Option<SliceState<'_>> {
        let start = self.queue.sink().slice?;
        let until_ns = self.queue.slice()?.until_ns;
        Some(SliceState {
            tenant: self.tenants.name_of_number(start.number)?,
            age_ns: now_ns.saturating_sub(start.began_ns),
            left_ns: until_ns.map(|until_ns| until_ns.saturating_sub(now_ns)),
        })
    }

    /// Returns true if the current elevator has slices and has begun one.
    pub fn has_slices(&self) -> bool {
        self.queue.sink().has_slices
    }

    /// Returns the tenants with requests that are later than the bound of their reservation at this
    /// time, each with the largest lateness of these requests in ns.
    pub fn late_tenants(&self, now_ns: u64) -> Vec<(&str, u64)> {
        let mut late: BTreeMap<u32, u64> = BTreeMap::new();
        if self.queue.is_reserving() {
            self.queue.for_each_late(now_ns, |number, late_ns| {
                if let Some(tenant) = self.tenants.tenant_of_number(number) {
                    let largest_ns = late.entry(tenant).or_default();
                    *largest_ns = late_ns.max(*largest_ns);
                }
            });
        }
        let named = |(tenant, late_ns)| Some((self.tenants.nodes.get(tenant as usize)?.name.as_str(), late_ns));
        late.into_iter().filter_map(named).collect()
    }

    /// Ends the slice of a queue that is no longer active, in elevators that do not report the end.
    #[inline]
    pub(crate) fn end_left_slice(&mut self) {
        if self.queue.sink().slice.is_some() && self.queue.slice().is_none() {
            let now_ns = self.now_ns;
            self.queue.sink_mut().end_slice(now_ns);
        }
    }

    /// Adds the slices that have ended to the accounts of their tenants.
    #[inline]
    pub(crate) fn count_slices(&mut self) {
        while let Some((number, ns)) = self.queue.sink_mut().ended_slices.pop() {
            if let Some(tenant) = self.tenants.tenant_of_number(number) {
                let account = self.tenants.account(tenant);
                account.slices += 1;
                account.slice_ns += ns;
            }
        }
    }

    /// Returns what the sustained bandwidth is configured to be, in bytes per second.
    pub fn bandwidth(&self) -> Option<u64> {
        self.bandwidth
    }

    /// Returns the configured positioning time of a request, in ns.
    pub fn position_ns(&self) -> Option<u64> {
        self.position_ns
    }

    /// Attaches a recorder of queue events, or detaches the current one. `drive` is the name of an
    /// emulated drive. The recorder gets the elevator with the tunables that differ from their
    /// defaults, and the depth.
    pub fn set_recorder(&mut self, mut recorder: Option<Box<dyn Recorder>>, drive: Option<&str>) {
        if let Some(recorder) = &mut recorder {
            let drive = drive.map_or(String::new(), |drive| format!(", drive {drive}"));
            let elevator = self.elevator().info().name;
            recorder.setting(&format!("elevator {elevator}, depth {}{drive}", self.depth));
            let changed = self.queue.tunables().filter(|(tunable, value)| *value != tunable.default);
            let changed: String = changed.map(|(tunable, value)| format!(" {}={value}", tunable.name)).collect();
            if !changed.is_empty() {
                recorder.setting(&format!("hoistway scheduler {elevator}:{changed}"));
            }
        }
        self.queue.sink_mut().recorder = recorder;
    }

    /// Passes an event of a request outside of the request queue to the recorder.
    pub(crate) fn record(&mut self, now_ns: u64, event: Event) {
        if let Some(recorder) = &mut self.queue.sink_mut().recorder {
            recorder.record(now_ns, &event);
        }
    }

    /// Returns true if a recorder is attached.
    pub fn is_recorded(&self) -> bool {
        self.queue.sink().recorder.is_some()
    }

    /// Returns the elevator.
    pub fn elevator(&self) -> Kind {
        self.queue.kind()
    }

    /// Returns the elevator's tunables and their values.
    pub fn tunables(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        self.queue.tunables()
    }

    /// Runs the request queue again after a change other than a request: a client, a group, a
    /// tunable.
    pub(crate) fn kick(&mut self) {
        self.kicked = true;
        self.run_deferred();
    }

    /// Takes up the answer of a call to the request queue.
    pub(crate) fn handle_kick(&mut self, kick: Kick) {
        self.kicked |= kick == Kick::Run;
        self.run_deferred();
    }

    /// Does the work that the request queue deferred. The queue never puts a process to sleep,
    /// because its pool of requests has no limit.
    pub(crate) fn run_deferred(&mut self) {
        while let Some(work) = self.queue.next_work() {
            self.kicked |= work == DeferredWork::Run;
        }
    }

    /// Advances the scheduler's time; time never goes back.
    pub(crate) fn advance(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.now_ns
    }
}

pub(super) fn check_values(config: &DiskQueueConfig) -> Result<(), QueueError> {
    let value = |key, value, expected| QueueError::Value { device: config.name.clone(), key, value, expected };
    if config.depth.is_some_and(|depth| depth == 0 || depth > DEPTH_MAX) {
        return Err(value("depth", config.depth.unwrap_or(0).into(), "it takes 1 to 4096"));
    }
    check_request_bytes_max(&config.name, config.request_bytes_max)
}

fn check_request_bytes_max(device: &str, bytes: u32) -> Result<(), QueueError> {
    if REQUEST_BYTES.contains(&bytes) && bytes.is_multiple_of(4096) {
        return Ok(());
    }
    let expected = "it takes 4096 to 67108864 bytes, in multiples of 4096";
    Err(QueueError::Value { device: device.to_owned(), key: "request_max", value: bytes.into(), expected })
}
