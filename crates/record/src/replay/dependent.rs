//! Releases requests that depend on earlier requests of their process.

use hoistway_trace::dependencies::{Release, ReleaseDelay};

use super::ReplayPlan;

/// The progress of each process, from which the release of its next requests follows.
#[derive(Debug)]
pub(super) struct Dependents {
    processes: Vec<Process>,
}

#[derive(Debug)]
struct Process {
    /// The indices of the process's requests, in order, and their dependencies.
    indices: Vec<u32>,
    waits: Vec<Release>,
    /// The next request to release.
    next: usize,
    /// The number of requests that were taken.
    taken: usize,
    /// The number of completed requests.
    completions: usize,
    /// The recorded time of the first request, in ns since the first one of the trace.
    began_ns: u64,
    /// The due time of the last released request, in ns since the beginning.
    last_due_ns: u64,
}

impl Dependents {
    pub fn new(plan: &ReplayPlan) -> Dependents {
        let processes = plan.waits().into_iter().map(|(indices, waits)| {
            let first = indices.first().and_then(|index| plan.requests().get(*index as usize));
            let began_ns = first.map_or(0, |request| request.at_ns);
            Process { indices, waits, next: 0, taken: 0, completions: 0, began_ns, last_due_ns: 0 }
        });
        Dependents { processes: processes.collect() }
    }

    /// Releases the requests without dependencies: `release` receives the number of a process, and
    /// the time in ns since the beginning at which its next request is due.
    pub fn begin(&mut self, plan: &ReplayPlan, scaled: &dyn Fn(u64) -> u64, release: &mut dyn FnMut(u32, u64)) {
        for (number, process) in (0..).zip(&mut self.processes) {
            let began_ns = scaled(process.began_ns);
            process.release_next(plan, began_ns, scaled, &mut |at_ns| release(number, at_ns));
        }
    }

    /// The index of the next request of a process that was not taken. A due time belongs to no
    /// request: a process makes its requests in their order, whichever of two pauses ends first.
    pub fn peek(&self, process: u32) -> Option<u32> {
        let process = self.processes.get(process as usize)?;
        process.indices.get(process.taken).copied()
    }

    /// Takes the next request of a process; one of its due times has come.
    pub fn take(&mut self, process: u32) {
        if let Some(process) = self.processes.get_mut(process as usize) {
            process.taken += 1;
        }
    }

    /// Processes the completion of a request of a process.
    pub fn completed(
        &mut self,
        plan: &ReplayPlan,
        process: u32,
        now_ns: u64,
        scaled: &dyn Fn(u64) -> u64,
        release: &mut dyn FnMut(u32, u64),
    ) {
        if let Some(waiting) = self.processes.get_mut(process as usize) {
            waiting.completions += 1;
            waiting.release_next(plan, now_ns, scaled, &mut |at_ns| release(process, at_ns));
        }
    }
}

impl Process {
    fn release_next(
        &mut self,
        plan: &ReplayPlan,
        now_ns: u64,
        scaled: &dyn Fn(u64) -> u64,
        release: &mut dyn FnMut(u64),
    ) {
        while let (Some(index), Some(wait)) = (self.indices.get(self.next), self.waits.get(self.next)) {
            // The number of earlier requests that must have completed.
            let needed = self.next.saturating_sub(wait.outstanding_max as usize);
            if needed > self.completions {
                return;
            }
            let at_ns = match wait.then {
                // No request precedes it: only its recorded time is known.
                _ if needed == 0 => scaled(plan.requests().get(*index as usize).map_or(0, |request| request.at_ns)),
                ReleaseDelay::Think(think_ns) => now_ns.saturating_add(scaled(think_ns)),
                ReleaseDelay::At(after_ns) => now_ns.max(scaled(self.began_ns.saturating_add(after_ns))),
                ReleaseDelay::Gap(gap_ns) => now_ns.max(self.last_due_ns.saturating_add(scaled(gap_ns))),
            };
            release(at_ns);
            self.last_due_ns = at_ns;
            self.next += 1;
        }
    }
}
