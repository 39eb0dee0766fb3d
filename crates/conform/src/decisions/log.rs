//! The log of a replay: all events of the queue and its surroundings. Events are turned into text
//! only for output.

use std::fmt::Write;

use hoistway_core::{Class, Event, Expiry, Io, Note, Op, Priority, Sink};

use super::decision::{Decision, Domain, List, MergeKind, PlugEvent};

/// Receives the queue's events and collects decisions in their lists.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    log: Vec<(u64, LogEvent)>,
    lists: [Vec<ReplayedDecision>; List::ALL.len()],
}

/// A decision of the replay, with the position of the log at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedDecision {
    /// The decision.
    pub decision: Decision,
    /// Number of log entries before the decision.
    pub(super) log: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LogEvent {
    /// An event of the queue.
    Queue(Event),
    /// A process exited.
    Exit { pid: u32 },
    /// A process changed its priority.
    Priority { pid: u32, priority: Priority },
    /// A process moved to another group, which is named by its id in the file.
    Move { pid: u32, group: u32 },
    /// A timer was due.
    Timer,
    /// A process that slept for a request continues.
    Woken { pid: u32 },
}

impl Sink for Recorder {
    fn record(&mut self, now_ns: u64, event: Event) {
        let at_ns = now_ns;
        match event {
            Event::BackMerge { bio, into } => self.merge(bio, into, MergeKind::Back, at_ns),
            Event::FrontMerge { bio, into } => self.merge(bio, into, MergeKind::Front, at_ns),
            Event::Join { request, into } => self.merge(request, into, MergeKind::Rq, at_ns),
            Event::Plug => self.decide(List::Plug, Decision::Plug { what: PlugEvent::Plug, at_ns }),
            Event::UnplugTimer => self.decide(List::Plug, Decision::Plug { what: PlugEvent::Timer, at_ns }),
            Event::Unplug { .. } => self.decide(List::Plug, Decision::Plug { what: PlugEvent::Unplug, at_ns }),
            Event::Sleep(bio) => self.decide(List::Sleeps, Decision::Sleep { id: bio.token as u32, at_ns }),
            Event::Note(Note::TokenDepth { domain, depth }) => {
                let domain = Domain::of_number(domain);
                self.decide(List::TokenDepth, Decision::TokenDepth { domain, depth, at_ns });
            }
            _ => {}
        }
        self.log.push((now_ns, LogEvent::Queue(event)));
    }
}

impl Recorder {
    /// Logs an event outside the queue.
    pub fn log_event(&mut self, now_ns: u64, what: LogEvent) {
        self.log.push((now_ns, what));
    }

    /// Records a decision.
    pub fn decide(&mut self, list: List, decision: Decision) {
        self.lists[list as usize].push(ReplayedDecision { decision, log: self.log.len() });
    }

    /// Records the dispatch of request `id`, which is the queue's last event.
    pub fn dispatched(&mut self, id: u32, at_ns: u64) {
        let made =
            ReplayedDecision { decision: Decision::Dispatch { id, at_ns }, log: self.log.len().saturating_sub(1) };
        self.lists[List::Dispatch as usize].push(made);
    }

    /// Splits the recorder into the lists and the log.
    pub fn into_parts(self) -> ([Vec<ReplayedDecision>; List::ALL.len()], Log) {
        (self.lists, Log(self.log))
    }

    fn merge(&mut self, io: Io, into: u64, how: MergeKind, at_ns: u64) {
        let decision = Decision::Merge { id: io.token as u32, into: into as u32, how, at_ns };
        self.decide(List::Merge, decision);
    }
}

/// All events in order.
#[derive(Debug, Default)]
pub(super) struct Log(Vec<(u64, LogEvent)>);

impl Log {
    /// The last `count` of the first `end` entries, as text.
    pub fn before(&self, end: usize, count: usize) -> Vec<String> {
        let end = end.min(self.0.len());
        self.0[end.saturating_sub(count)..end].iter().map(|(at_ns, what)| in_words(*at_ns, *what)).collect()
    }

    /// Number of entries up to and including a time.
    pub fn until(&self, at_ns: u64) -> usize {
        self.0.partition_point(|entry| entry.0 <= at_ns)
    }
}

fn in_words(at_ns: u64, what: LogEvent) -> String {
    let mut line = format!("{:>7}.{:06} ms  ", at_ns / 1_000_000, at_ns % 1_000_000);
    match what {
        LogEvent::Queue(event) => event_in_words(&mut line, event),
        LogEvent::Exit { pid } => push(&mut line, format_args!("--  process {pid} exits")),
        LogEvent::Priority { pid, priority } => {
            let class = match priority.class() {
                Class::None => "none",
                Class::RealTime => "rt",
                Class::BestEffort => "be",
                Class::Idle => "idle",
            };
            let level = priority.level();
            push(&mut line, format_args!("--  process {pid} changes its priority to {class} {level}"));
        }
        LogEvent::Move { pid, group } => push(&mut line, format_args!("--  process {pid} moves to group {group}")),
        LogEvent::Timer => push(&mut line, format_args!("--  a timer is due")),
        LogEvent::Woken { pid } => push(&mut line, format_args!("--  process {pid} is awake")),
    }
    line
}

fn event_in_words(line: &mut String, event: Event) {
    match event {
        Event::Queue(bio) => io_in_words(line, "Q  asked for", bio),
        Event::Get(io) => io_in_words(line, "G  request made for", io),
        Event::Sleep(bio) => io_in_words(line, "S  asleep with", bio),
        Event::BackMerge { bio, into } => {
            io_in_words(line, "M  to the back of a request:", bio);
            push(line, format_args!(" into {into}"));
        }
        Event::FrontMerge { bio, into } => {
            io_in_words(line, "F  to the front of a request:", bio);
            push(line, format_args!(" into {into}"));
        }
        Event::Join { request, into } => {
            io_in_words(line, "J  closed up:", request);
            push(line, format_args!(" into {into}"));
        }
        Event::Insert(io) => io_in_words(line, "I  to the elevator:", io),
        Event::Plug => line.push_str("P  plugged"),
        Event::Unplug { waiting } => push(line, format_args!("U  unplugged, {waiting} waiting")),
        Event::UnplugTimer => line.push_str("UT the plug's timer fired"),
        Event::Issue(io) => io_in_words(line, "D  to the driver:", io),
        Event::Requeue(io) => io_in_words(line, "R  back from the driver:", io),
        Event::Complete(io) => io_in_words(line, "C  done:", io),
        Event::Note(note) => note_in_words(line, note),
    }
}

fn note_in_words(line: &mut String, note: Note) {
    line.push_str("m  ");
    match note {
        Note::Activate { queue, level } => push(line, format_args!("queue {queue} (level {level}) has the disk")),
        Note::SliceSet { queue, until_ns } => push(line, format_args!("slice of queue {queue} ends at {until_ns} ns")),
        Note::SliceExpired { queue, left_ns, preempted } => {
            let why = if preempted { ", preempted" } else { "" };
            push(line, format_args!("slice of queue {queue} is over, {left_ns} ns left{why}"));
        }
        Note::IdleArmed { queue, until_ns } => {
            push(line, format_args!("disk kept idle for queue {queue} until {until_ns} ns"));
        }
        Note::IdleHit { queue } => push(line, format_args!("queue {queue} asked in time")),
        Note::IdleTimeout { queue } => push(line, format_args!("waited for queue {queue} in vain")),
        Note::Preempt { queue, victim } => push(line, format_args!("queue {queue} preempts queue {victim}")),
        Note::Batch { op } => push(line, format_args!("a batch of {}s begins", op_name(op))),
        Note::Overdue { token } => push(line, format_args!("request {token} is overdue")),
        Note::Anticipate { pid, until_ns } => {
            push(line, format_args!("waits for process {pid} until {until_ns} ns"));
        }
        Note::AnticipationBroken { pid } => push(line, format_args!("waits for process {pid} no longer")),
        Note::AnticipationTimeout { pid } => push(line, format_args!("waited for process {pid} in vain")),
        Note::Charge { queue, amount } => push(line, format_args!("queue {queue} is charged {amount}")),
        Note::BudgetExpired { queue, reason, served, budget } => {
            let why = match reason {
                Expiry::TooIdle => "too idle",
                Expiry::TimedOut => "out of time",
                Expiry::Exhausted => "used up",
                Expiry::NoMoreRequests => "no more requests",
                Expiry::Preempted => "preempted",
            };
            push(line, format_args!("budget of queue {queue} is over ({why}): {served} of {budget} sectors"));
        }
        Note::WeightRaised { queue, coefficient } => {
            push(line, format_args!("weight of queue {queue} is raised {coefficient} times"));
        }
        Note::QueuesMerged { queue, into } => push(line, format_args!("queue {queue} is merged into queue {into}")),
        Note::QueueSplit { queue } => push(line, format_args!("process {queue} has a queue of its own again")),
        Note::Injected { queue, into } => {
            push(line, format_args!("a request of queue {queue} is put in while queue {into} has the disk"));
        }
        Note::TokenDepth { domain, depth } => {
            let domain = Domain::of_number(domain).name();
            push(line, format_args!("{domain}s may have {depth} in the device"));
        }
        Note::Aged { token } => push(line, format_args!("request {token} has waited long enough for its class")),
        Note::Workload { class, kind, until_ns } => {
            push(line, format_args!("class {class}, kind {kind} is served until {until_ns} ns"));
        }
        Note::Postponed => push(line, format_args!("requests are held back")),
        Note::SweepBegun { bytes } => push(line, format_args!("a sweep over {bytes} bytes begins")),
        Note::Degraded { bound_ns } => {
            push(line, format_args!("three sweeps in a row took longer than the bound of {bound_ns} ns"));
        }
        Note::Switched { elevator } => push(line, format_args!("switched to elevator {elevator}")),
    }
}

fn io_in_words(line: &mut String, what: &str, io: Io) {
    let Io { token, pid, op, sector, sectors, .. } = io;
    push(line, format_args!("{what} {token} ({} {sector}+{sectors}, process {pid})", op_name(op)));
}

fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
    }
}

fn push(line: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = line.write_fmt(words);
}
