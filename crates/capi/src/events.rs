//! Trace events in a ring of fixed size, from which C reads them.

use hoistway_core::{Event, Io, Note, Sink};

/// A trace event in C's layout. Each [`EventKind`] documents its fields; the others are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CEvent {
    /// The time of the event, in ns.
    pub time_ns: u64,
    /// The token of the bio or request.
    pub token: u64,
    /// Its first sector, in units of 512 bytes.
    pub sector: u64,
    /// A second token, a time or a number, depending on the kind.
    pub value: u64,
    /// An [`EventKind`].
    pub kind: u32,
    /// The process, or the process of the queue.
    pub pid: u32,
    /// The length in sectors of 512 bytes.
    pub sectors: u32,
    /// The operation or a small number, depending on the kind.
    pub detail: u32,
}

/// The kinds of events. A *bio* event has token, sector, sectors, pid and, as detail, the
/// operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// A bio was submitted.
    Queue = 1,
    /// A request was allocated.
    Get = 2,
    /// A process sleeps until a request can be allocated.
    Sleep = 3,
    /// A bio was merged to the end of the request `value`.
    BackMerge = 4,
    /// A bio was merged to the front of the request `value`.
    FrontMerge = 5,
    /// A queued request was merged into its lower neighbour `value`.
    Join = 6,
    /// A request was inserted into the elevator.
    Insert = 7,
    /// The queue was plugged: no fields.
    Plug = 8,
    /// The queue was unplugged while `value` requests waited.
    Unplug = 9,
    /// The unplug timer fired: no fields.
    UnplugTimer = 10,
    /// The driver took a request.
    Issue = 11,
    /// The driver returned a request.
    Requeue = 12,
    /// A request completed.
    Complete = 13,
    /// The queue of `pid` became active; detail is its level.
    Activate = 32,
    /// The slice of the queue ends at `value` ns.
    SliceSet = 33,
    /// The queue expired with `value` ns left; detail is 1 if it was preempted.
    SliceExpired = 34,
    /// The disk is kept idle for the queue until `value` ns.
    IdleArmed = 35,
    /// The queue's next request ended the wait.
    IdleHit = 36,
    /// The wait timed out.
    IdleTimeout = 37,
    /// The queue preempted the queue of process `value`.
    Preempt = 38,
    /// A batch began; detail is its operation.
    Batch = 39,
    /// The request `token` was dispatched out of order: its deadline had passed.
    Overdue = 40,
    /// The elevator waits for process `pid` until `value` ns.
    Anticipate = 41,
    /// Anticipation ended early.
    AnticipationBroken = 42,
    /// Anticipation timed out.
    AnticipationTimeout = 43,
    /// The elevator was switched to the one whose index is detail.
    Switched = 44,
    /// The queue of `pid` was charged `value` in the elevator's own unit.
    Charge = 45,
    /// The budget of the queue ended: `value` of `sectors` sectors (at most 2^32 - 1) were served.
    /// Detail is the reason: 0 idle for too long, 1 timed out, 2 exhausted, 3 no more requests, 4
    /// preempted.
    BudgetExpired = 46,
    /// The queue's weight is multiplied by detail from now on; 1 ends the raising.
    WeightRaised = 47,
    /// The queue was merged into that of process `value`.
    QueuesMerged = 48,
    /// The process received a queue of its own again.
    QueueSplit = 49,
    /// A request of the queue was injected while the disk is kept idle for process `value`.
    Injected = 50,
    /// Requests of kind detail (0 reads, 1 writes, 2 discards, 3 others) may have `value` in the
    /// device.
    TokenDepth = 51,
    /// The request `token` preceded those of a higher class because of its age.
    Aged = 52,
    /// Requests of class detail / 256 (1 real time, 2 best effort, 3 idle) and kind detail % 256 (0
    /// async, 1 sync without idling, 2 sync) are served until `value` ns.
    Workload = 53,
    /// Requests are held back, async ones or one of a reserving process: no fields.
    Postponed = 54,
    /// A sweep over `value` bytes of reserving processes began.
    SweepBegun = 55,
    /// Three consecutive sweeps took longer than the bound of `value` ns: the device is slower than
    /// its configured figures.
    Degraded = 56,
}

/// The latest events, oldest first.
#[derive(Debug)]
pub struct EventRing {
    slots: &'static mut [CEvent],
    head: u32,
    len: u32,
    dropped: u64,
    /// Whether events are recorded; never without slots.
    on: bool,
}

impl EventRing {
    pub(crate) fn new(slots: &'static mut [CEvent]) -> Self {
        let on = !slots.is_empty();
        EventRing { slots, head: 0, len: 0, dropped: 0, on }
    }

    /// Starts or stops the recording of events. A ring without room records none.
    pub fn set_on(&mut self, on: bool) {
        self.on = on && !self.slots.is_empty();
    }

    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<CEvent> {
        if self.len == 0 {
            return None;
        }
        let event = self.slots.get(self.head as usize).copied();
        self.head = self.after(self.head, 1);
        self.len = self.len.saturating_sub(1);
        event
    }

    /// The number of events dropped because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn push(&mut self, event: CEvent) {
        if self.len as usize >= self.slots.len() {
            self.dropped = self.dropped.saturating_add(1);
            if self.pop().is_none() {
                return;
            }
        }
        let at = self.after(self.head, self.len);
        if let Some(slot) = self.slots.get_mut(at as usize) {
            *slot = event;
            self.len = self.len.saturating_add(1);
        }
    }

    fn after(&self, at: u32, steps: u32) -> u32 {
        let (at, len) = (at.saturating_add(steps), self.slots.len() as u32);
        if at >= len { at.saturating_sub(len) } else { at }
    }
}

impl Sink for EventRing {
    #[inline(always)]
    fn is_on(&self) -> bool {
        self.on
    }

    fn record(&mut self, now_ns: u64, event: Event) {
        self.push(CEvent { time_ns: now_ns, ..translate(event) });
    }
}

fn translate(event: Event) -> CEvent {
    use EventKind as K;
    match event {
        Event::Queue(io) => of_io(K::Queue, io),
        Event::Get(io) => of_io(K::Get, io),
        Event::Sleep(io) => of_io(K::Sleep, io),
        Event::BackMerge { bio, into } => CEvent { value: into, ..of_io(K::BackMerge, bio) },
        Event::FrontMerge { bio, into } => CEvent { value: into, ..of_io(K::FrontMerge, bio) },
        Event::Join { request, into } => CEvent { value: into, ..of_io(K::Join, request) },
        Event::Insert(io) => of_io(K::Insert, io),
        Event::Plug => of(K::Plug),
        Event::Unplug { waiting } => CEvent { value: u64::from(waiting), ..of(K::Unplug) },
        Event::UnplugTimer => of(K::UnplugTimer),
        Event::Issue(io) => of_io(K::Issue, io),
        Event::Requeue(io) => of_io(K::Requeue, io),
        Event::Complete(io) => of_io(K::Complete, io),
        Event::Note(note) => translate_note(note),
    }
}

fn translate_note(note: Note) -> CEvent {
    use EventKind as K;
    match note {
        Note::Activate { queue, level } => CEvent { detail: u32::from(level), ..of_pid(K::Activate, queue) },
        Note::SliceSet { queue, until_ns } => CEvent { value: until_ns, ..of_pid(K::SliceSet, queue) },
        Note::SliceExpired { queue, left_ns, preempted } => {
            CEvent { value: left_ns, detail: u32::from(preempted), ..of_pid(K::SliceExpired, queue) }
        }
        Note::IdleArmed { queue, until_ns } => CEvent { value: until_ns, ..of_pid(K::IdleArmed, queue) },
        Note::IdleHit { queue } => of_pid(K::IdleHit, queue),
        Note::IdleTimeout { queue } => of_pid(K::IdleTimeout, queue),
        Note::Preempt { queue, victim } => CEvent { value: u64::from(victim), ..of_pid(K::Preempt, queue) },
        Note::Batch { op } => CEvent { detail: op as u32, ..of(K::Batch) },
        Note::Overdue { token } => CEvent { token, ..of(K::Overdue) },
        Note::Anticipate { pid, until_ns } => CEvent { value: until_ns, ..of_pid(K::Anticipate, pid) },
        Note::AnticipationBroken { pid } => of_pid(K::AnticipationBroken, pid),
        Note::AnticipationTimeout { pid } => of_pid(K::AnticipationTimeout, pid),
        Note::Charge { queue, amount } => CEvent { value: amount, ..of_pid(K::Charge, queue) },
        Note::BudgetExpired { queue, reason, served, budget } => CEvent {
            value: served,
            sectors: u32::try_from(budget).unwrap_or(u32::MAX),
            detail: reason as u32,
            ..of_pid(K::BudgetExpired, queue)
        },
        Note::WeightRaised { queue, coefficient } => CEvent { detail: coefficient, ..of_pid(K::WeightRaised, queue) },
        Note::QueuesMerged { queue, into } => CEvent { value: u64::from(into), ..of_pid(K::QueuesMerged, queue) },
        Note::QueueSplit { queue } => of_pid(K::QueueSplit, queue),
        Note::Injected { queue, into } => CEvent { value: u64::from(into), ..of_pid(K::Injected, queue) },
        Note::TokenDepth { domain, depth } => {
            CEvent { value: u64::from(depth), detail: u32::from(domain), ..of(K::TokenDepth) }
        }
        Note::Aged { token } => CEvent { token, ..of(K::Aged) },
        Note::Workload { class, kind, until_ns } => {
            CEvent { value: until_ns, detail: (u32::from(class) << 8) | u32::from(kind), ..of(K::Workload) }
        }
        Note::Postponed => of(K::Postponed),
        Note::SweepBegun { bytes } => CEvent { value: bytes, ..of(K::SweepBegun) },
        Note::Degraded { bound_ns } => CEvent { value: bound_ns, ..of(K::Degraded) },
        Note::Switched { elevator } => CEvent { detail: u32::from(elevator), ..of(K::Switched) },
    }
}

fn of(kind: EventKind) -> CEvent {
    CEvent { kind: kind as u32, ..CEvent::default() }
}

fn of_pid(kind: EventKind, pid: u32) -> CEvent {
    CEvent { pid, ..of(kind) }
}

fn of_io(kind: EventKind, io: Io) -> CEvent {
    CEvent { token: io.token, sector: io.sector, sectors: io.sectors, pid: io.pid, detail: io.op as u32, ..of(kind) }
}
