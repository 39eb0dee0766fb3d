//! The way of completions from the drive to the host.

use std::collections::VecDeque;

use hoistway_drive::{Completion, Jitter};

/// Completions on their way to the host. Without a transport time they are there at once.
#[derive(Debug)]
pub(super) struct Transport {
    /// Times from the end of a request in the drive until the host knows of it.
    times: Option<Jitter>,
    /// The completions, each with the time of its arrival.
    arriving: VecDeque<(u64, Completion)>,
}

impl Transport {
    pub fn new(times: Option<Jitter>) -> Transport {
        Transport { times, arriving: VecDeque::new() }
    }

    /// Time at which the next completion arrives.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.arriving.front().map(|(arrival_ns, _)| *arrival_ns)
    }

    /// Takes a completion that has arrived.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64) -> Option<Completion> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.arriving.pop_front().map(|(_, completion)| completion)
    }

    /// Sends a completion of the drive. Returns it if it is there at once.
    #[inline]
    pub fn send(&mut self, mut completion: Completion, now_ns: u64) -> Option<Completion> {
        let Some(times) = &mut self.times else { return Some(completion) };
        // Completions do not overtake one another.
        let earliest_ns = self.arriving.back().map_or(now_ns, |(arrival_ns, _)| *arrival_ns);
        let arrival_ns = (now_ns + times.draw_ns()).max(earliest_ns);
        completion.service.phases.overhead_ns += arrival_ns - now_ns;
        self.arriving.push_back((arrival_ns, completion));
        None
    }
}
