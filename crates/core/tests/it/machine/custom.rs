//! Custom elevators for tests: correct ones, and ones that break a rule.

use std::collections::{BTreeMap, VecDeque};

use hoistway_core::{Capacity, CustomElevator, CustomElevators, CustomRequest, Info, QueueView, RequestId};

/// A turn of a process, in requests.
const TURN: u32 = 4;
/// The wait for the next request of a process, in ns.
pub const WAIT_NS: u64 = 2_000_000;

pub static TURNS: Info = Info::custom("turns", "1", "Turns of four requests for each process");
pub static ERRATIC: Info = Info::custom("erratic", "1", "Wrong answers now and then");
pub static TWICE: Info = Info::custom("twice", "1", "Dispatches each request twice");
pub static LATE: Info = Info::custom("late", "1", "Dispatches a request that has completed");
pub static LOSING: Info = Info::custom("losing", "1", "Forgets each third request");
pub static STARVING: Info = Info::custom("starving", "1", "The latest request first");

/// The elevators of these tests.
pub enum TestElevator {
    Turns(Turns),
    Erratic(Erratic),
    Wrong(Wrong),
}

impl CustomElevators for TestElevator {
    fn create(info: &'static Info, _: Capacity) -> Option<TestElevator> {
        Some(match info.name {
            "turns" => TestElevator::Turns(Turns::default()),
            "erratic" => TestElevator::Erratic(Erratic::default()),
            "twice" | "late" | "losing" | "starving" => {
                TestElevator::Wrong(Wrong { how: info.name, ..Wrong::default() })
            }
            _ => return None,
        })
    }
}

macro_rules! each {
    ($self:expr, $elevator:ident => $call:expr) => {
        match $self {
            TestElevator::Turns($elevator) => $call,
            TestElevator::Erratic($elevator) => $call,
            TestElevator::Wrong($elevator) => $call,
        }
    };
}

impl CustomElevator for TestElevator {
    fn insert(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        each!(self, e => e.insert(queue, request));
    }
    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        each!(self, e => e.dispatch(queue))
    }
    fn complete(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        each!(self, e => e.complete(queue, request));
    }
    fn timer(&mut self, queue: &mut QueueView) {
        each!(self, e => e.timer(queue));
    }
    fn merged(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        each!(self, e => e.merged(queue, request));
    }
}

/// Turns of four requests for each process; a turn waits for the next request of its process.
#[derive(Default)]
pub struct Turns {
    queues: BTreeMap<u32, VecDeque<CustomRequest>>,
    active: Option<u32>,
    left: u32,
}

impl Turns {
    fn next_process(&self) -> Option<u32> {
        let later = self.active.and_then(|active| self.queues.range(active + 1..).next());
        later.or(self.queues.iter().next()).map(|(pid, _)| *pid)
    }
}

impl CustomElevator for Turns {
    fn insert(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        if self.active == Some(request.pid) {
            queue.cancel_timer();
        }
        self.queues.entry(request.pid).or_default().push_back(*request);
    }

    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        let goes_on = self.active.is_some_and(|active| self.left > 0 && self.queues.contains_key(&active));
        if !goes_on {
            if self.left > 0 && self.active.is_some() && queue.queued() > 0 && !queue.is_draining() {
                if queue.in_flight() == 0 && queue.timer_ns().is_none() {
                    queue.set_timer(queue.now_ns() + WAIT_NS);
                }
                return None;
            }
            self.active = self.next_process();
            self.left = TURN;
            queue.cancel_timer();
        }
        let active = self.active?;
        let waiting = self.queues.get_mut(&active)?;
        let request = waiting.pop_front();
        if waiting.is_empty() {
            self.queues.remove(&active);
        }
        self.left -= 1;
        request.map(|request| request.id)
    }

    fn timer(&mut self, _: &mut QueueView) {
        self.left = 0;
    }

    fn merged(&mut self, _: &mut QueueView, request: &CustomRequest) {
        let queued = self.queues.get_mut(&request.pid).expect("the process has a queue");
        let entry = queued.iter_mut().find(|entry| entry.id == request.id).expect("the request is queued");
        assert!(entry.sectors < request.sectors, "a merge adds sectors");
        *entry = *request;
    }
}

/// Answers that depend on a counter: mostly the oldest request; now and then nothing, or any
/// request that it has ever seen.
#[derive(Default)]
pub struct Erratic {
    seen: Vec<RequestId>,
    next: usize,
    calls: usize,
}

impl CustomElevator for Erratic {
    fn insert(&mut self, _: &mut QueueView, request: &CustomRequest) {
        self.seen.push(request.id);
    }

    fn dispatch(&mut self, _: &mut QueueView) -> Option<RequestId> {
        self.calls += 1;
        match self.calls % 19 {
            7 => None,
            13 => self.seen.get(self.calls % (self.seen.len() + 1)).copied(),
            _ => {
                let id = self.seen.get(self.next).copied();
                self.next += usize::from(id.is_some());
                id
            }
        }
    }
}

/// Breaks one rule.
#[derive(Default)]
pub struct Wrong {
    how: &'static str,
    queued: VecDeque<RequestId>,
    inserted: u32,
    last: Option<RequestId>,
}

impl CustomElevator for Wrong {
    fn insert(&mut self, _: &mut QueueView, request: &CustomRequest) {
        self.inserted += 1;
        if self.how != "losing" || !self.inserted.is_multiple_of(3) {
            self.queued.push_back(request.id);
        }
    }

    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        let again = match self.how {
            "twice" => queue.in_flight() > 0,
            "late" => queue.in_flight() == 0,
            _ => false,
        };
        if again && self.last.is_some() {
            return self.last;
        }
        let next = if self.how == "starving" { self.queued.pop_back() } else { self.queued.pop_front() };
        self.last = next.or(self.last);
        next
    }
}
