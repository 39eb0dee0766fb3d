//! The contract of custom elevators: elevators outside this crate, which run in the same request
//! queue as the built-in ones.
//!
//! A custom elevator is a type of the host ([`HostTypes::Custom`](super::tables::HostTypes)), so
//! that the queue calls it directly. The queue checks each of its answers. After the first
//! [`Violation`] it calls the elevator no more, and dispatches all requests in order of arrival.

use super::capacity::Capacity;
use super::info::Info;
use crate::bio::Op;
use crate::layer::BlockLayer;
use crate::priority::Priority;
use crate::request::RequestId;

/// The longest time that a custom elevator may hold a request back while it dispatches requests
/// that arrived later, unless it states another: 5 s.
pub const LONGEST_WAIT_NS: u64 = 5_000_000_000;

/// An elevator outside this crate: it orders the requests of one device.
///
/// The queue merges adjacent bios, of any process, into queued requests. It calls
/// [`insert`](Self::insert) for each new request, [`dispatch`](Self::dispatch) whenever the device
/// can take a request, and [`complete`](Self::complete) when the device has finished one. The
/// elevator keeps its own lists, and names requests by [`CustomRequest::id`].
pub trait CustomElevator {
    /// A new request is queued.
    fn insert(&mut self, queue: &mut QueueView, request: &CustomRequest);

    /// Chooses the next request for the device and forgets it. `None` means "none now": nothing is
    /// queued, or the elevator waits.
    ///
    /// An elevator may wait while requests are in the device, or until a timer that it has set
    /// ([`QueueView::set_timer`]). It may not wait while [`QueueView::is_draining`].
    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId>;

    /// The device has finished a request.
    fn complete(&mut self, _queue: &mut QueueView, _request: &CustomRequest) {}

    /// The time of the timer has come. `dispatch` follows if the device can take a request.
    fn timer(&mut self, _queue: &mut QueueView) {}

    /// A bio was merged into a queued request at its end or before its start: `request` has the new
    /// extent.
    fn merged(&mut self, _queue: &mut QueueView, _request: &CustomRequest) {}

    /// A process exits. Requests of it may still be queued or in the device.
    fn exit(&mut self, _pid: u32) {}

    /// The value of the tunable at `index` of [`Info::tunables`].
    fn tunable(&self, _index: usize) -> i64 {
        0
    }

    /// Sets the tunable at `index`. The value is within its range.
    fn set_tunable(&mut self, _index: usize, _value: i64) {}

    /// Why the elevator cannot go on, if it cannot: an error in its own code. The queue asks after
    /// each call of `dispatch`.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// The longest time in ns that a request may wait while requests that arrived later are
    /// dispatched. `u64::MAX` for elevators that let some processes starve intentionally.
    fn longest_wait_ns(&self) -> u64 {
        LONGEST_WAIT_NS
    }
}

/// The custom elevators of a host, as one type.
pub trait CustomElevators: CustomElevator + Sized {
    /// Creates the elevator with this description for a queue of this capacity, or `None` if there
    /// is none.
    fn create(info: &'static Info, capacity: Capacity) -> Option<Self>;
}

/// The type without values for hosts without custom elevators.
#[derive(Debug)]
pub enum NoCustom {}

impl CustomElevator for NoCustom {
    fn insert(&mut self, _: &mut QueueView, _: &CustomRequest) {
        match *self {}
    }
    fn dispatch(&mut self, _: &mut QueueView) -> Option<RequestId> {
        match *self {}
    }
}

impl CustomElevators for NoCustom {
    fn create(_: &'static Info, _: Capacity) -> Option<NoCustom> {
        None
    }
}

/// The description of a custom elevator, which stands for its kind.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind {
    info: &'static Info,
}

impl CustomKind {
    /// Creates the kind of the elevator with this description.
    pub const fn new(info: &'static Info) -> CustomKind {
        CustomKind { info }
    }

    /// The description.
    pub const fn info(self) -> &'static Info {
        self.info
    }
}

/// Kinds are equal if their descriptions are one object: a name may be described twice.
impl PartialEq for CustomKind {
    fn eq(&self, other: &CustomKind) -> bool {
        core::ptr::eq(self.info, other.info)
    }
}

impl Eq for CustomKind {}

impl core::hash::Hash for CustomKind {
    fn hash<S: core::hash::Hasher>(&self, state: &mut S) {
        self.info.name.hash(state);
    }
}

impl Info {
    /// Describes a custom elevator by its name, its version, and a line of at most 52 characters.
    /// It has no tunables, groups or reservations, and the block layer of Linux 6.1; public fields
    /// can be set afterwards. Results of different versions count as results of different
    /// elevators.
    pub const fn custom(name: &'static str, version: &'static str, headline: &'static str) -> Info {
        Info {
            name,
            aliases: &[],
            kernel: version,
            in_linux: "never",
            headline,
            idea: headline,
            suits: "",
            tunables: &[],
            layer: BlockLayer::V6_1,
            groups: false,
            reservations: false,
            nr_requests: None,
            hashes_back_merges: false,
        }
    }
}

/// A request as a custom elevator sees it: a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomRequest {
    /// The handle, which `dispatch` returns. It is unique: a later request never has the same one.
    pub id: RequestId,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in sectors of 512 bytes.
    pub sectors: u32,
    /// The operation.
    pub op: Op,
    /// True for a read, and for a write for which a process waits.
    pub is_sync: bool,
    /// The process that submitted it.
    pub pid: u32,
    /// The effective priority of the process when the request was made.
    pub priority: Priority,
    /// The time at which the request was made, in ns of the host's time.
    pub submitted_ns: u64,
}

impl CustomRequest {
    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }
}

/// The state of the queue during a call of a custom elevator, and its timer.
#[derive(Debug)]
pub struct QueueView {
    pub(crate) now_ns: u64,
    pub(crate) queued: u32,
    pub(crate) in_flight: u32,
    pub(crate) position: u64,
    pub(crate) is_draining: bool,
    pub(crate) timer_ns: Option<u64>,
}

impl QueueView {
    /// The time in ns of the host's time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The number of requests that the elevator holds.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// The number of requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The sector after the request that was dispatched last.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns true if the queue needs all requests now, because of a barrier or because another
    /// elevator replaces this one. `dispatch` must return a request then while any is queued.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// The time at which the timer fires, in ns of the host's time, if it is set.
    pub fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// Sets the timer, or moves it. A time in the past means "as soon as possible".
    pub fn set_timer(&mut self, at_ns: u64) {
        self.timer_ns = Some(at_ns);
    }

    /// Cancels the timer.
    pub fn cancel_timer(&mut self) {
        self.timer_ns = None;
    }
}

/// A rule that a custom elevator has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It dispatched a request that it had dispatched before.
    DispatchedTwice,
    /// It dispatched a request that has completed, or that it was never given.
    NotQueued,
    /// It dispatched nothing while requests are queued, none is in the device, and no timer is set:
    /// nothing would make it continue.
    Stalled,
    /// It dispatched nothing while the queue is being drained.
    NotDrained,
    /// It reported an error of its own code ([`CustomElevator::failure`]).
    Failed,
    /// It held a request back for longer than [`CustomElevator::longest_wait_ns`], and dispatched
    /// one that had arrived later.
    Starved {
        /// The time for which the request has waited, in ns.
        waited_ns: u64,
    },
}

/// The first answer of a custom elevator that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The time of the answer, in ns of the host's time.
    pub at_ns: u64,
    /// The number of the call of `dispatch`, from 1.
    pub call: u64,
    /// The request: the one that was dispatched wrongly, or the oldest one that is queued. `None`
    /// for a request that completed long ago.
    pub request: Option<CustomRequest>,
    /// The number of requests that the elevator holds.
    pub queued: u32,
}

/// A time in seconds, to the nanosecond.
struct Seconds(u64);

impl core::fmt::Display for Seconds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl core::fmt::Display for CustomRequest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let op = match self.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Discard => "discard",
        };
        let (sectors, sector, pid) = (self.sectors, self.sector, self.pid);
        write!(f, "the {op} of {sectors} sectors at sector {sector} by process {pid}")
    }
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "call {} of dispatch, at {}, ", self.call, Seconds(self.at_ns))?;
        match (self.rule, &self.request) {
            (Rule::Failed, _) => f.write_str("failed"),
            (Rule::DispatchedTwice, Some(request)) => {
                write!(f, "returned {request}, which had been dispatched before")
            }
            (Rule::DispatchedTwice | Rule::NotQueued, None) => {
                f.write_str("returned a request that has completed, or that was never inserted")
            }
            (Rule::NotQueued, Some(request)) => write!(f, "returned {request}, which has completed"),
            (Rule::Starved { waited_ns }, Some(request)) => {
                let submitted = Seconds(request.submitted_ns);
                let waited = Seconds(waited_ns);
                write!(
                    f,
                    "passed over {request}, inserted at {submitted}: it has waited for {waited} while later requests were dispatched"
                )
            }
            (Rule::NotDrained, Some(oldest)) => {
                let queued = self.queued;
                write!(
                    f,
                    "returned nothing although the queue is being drained and {queued} are queued; the oldest is {oldest}"
                )
            }
            (_, Some(oldest)) => {
                let (queued, submitted) = (self.queued, Seconds(oldest.submitted_ns));
                write!(
                    f,
                    "returned nothing although {queued} are queued, none is in the device, and no timer is set; the oldest is {oldest}, inserted at {submitted}"
                )
            }
            (_, None) => f.write_str("returned nothing although requests are queued"),
        }
    }
}
