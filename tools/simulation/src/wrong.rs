//! Custom elevators that break rules of the request queue, for tests of its hosts.

use std::collections::VecDeque;
use std::sync::OnceLock;

use hoistway_core::{CustomElevator, CustomRequest, Info, Kind, QueueView, RequestId};

/// The longest wait that `starving` states, in ns: short, so that tests are.
const STARVING_WAIT_NS: u64 = 100_000_000;

/// A fault of an elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Every third request is forgotten.
    Loses,
    /// The last request is dispatched again while it is in the device.
    Repeats,
    /// The newest request goes first, always.
    Starves,
    /// Nothing is dispatched when the queue is drained.
    Keeps,
}

/// The elevators by name.
const ELEVATORS: [(&str, &str, Fault); 4] = [
    ("losing", "Forgets every third request", Fault::Loses),
    ("twice", "Dispatches requests again", Fault::Repeats),
    ("starving", "The newest request goes first", Fault::Starves),
    ("keeping", "Cannot be drained", Fault::Keeps),
];

/// Registers the wrong elevators once, and returns them: `losing`, `twice`, `starving` and
/// `keeping`.
///
/// # Panics
/// If another elevator of the program is registered under one of the names at the same time.
pub fn register_wrong_elevators() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let register = |(name, headline, fault)| {
            let make = move |_| -> hoistway_custom::AnyCustom { Box::new(Wrong::new(fault)) };
            hoistway_custom::register(Info::custom(name, "1", headline), make).expect("the names are valid")
        };
        ELEVATORS.into_iter().map(register).collect()
    })
}

/// An elevator in order of arrival, with a fault.
struct Wrong {
    fault: Fault,
    queued: VecDeque<RequestId>,
    inserted: u32,
    last: Option<RequestId>,
}

impl Wrong {
    fn new(fault: Fault) -> Wrong {
        Wrong { fault, queued: VecDeque::new(), inserted: 0, last: None }
    }
}

impl CustomElevator for Wrong {
    fn insert(&mut self, _: &mut QueueView, request: &CustomRequest) {
        self.inserted += 1;
        if self.fault != Fault::Loses || !self.inserted.is_multiple_of(3) {
            self.queued.push_back(request.id);
        }
    }

    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        let next = match self.fault {
            Fault::Repeats if queue.in_flight() > 0 && self.last.is_some() => self.last,
            Fault::Keeps if queue.is_draining() => None,
            Fault::Starves => self.queued.pop_back(),
            _ => self.queued.pop_front(),
        };
        self.last = next.or(self.last);
        next
    }

    fn longest_wait_ns(&self) -> u64 {
        if self.fault == Fault::Starves { STARVING_WAIT_NS } else { u64::MAX }
    }
}
