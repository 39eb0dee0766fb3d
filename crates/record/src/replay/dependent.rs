//! Requests that wait for others of their process.

use hoistway_trace::dependencies::{Release, ReleaseDelay};

use super::Plan;

/// What each process has done so far, and what lets its next requests go.
#[derive(Debug)]
pub(super) struct Dependents {
    processes: Vec<Process>,
}

#[derive(Debug)]
struct Process {
    /// The numbers of its requests, in order, and what they waited for.
    indices: Vec<u32>,
    waits: Vec<Release>,
    /// The next that is not let go.
    next: usize,
    /// Requests that are over.
    completions: usize,
    /// When its first request was recorded, in ns since the first of all.
    began_ns: u64,
}

impl Dependents {
    pub fn new(plan: &Plan) -> Dependents {
        let processes = plan.waits().into_iter().map(|(indices, waits)| {
            let first = indices.first().and_then(|index| plan.requests().get(*index as usize));
            let began_ns = first.map_or(0, |request| request.at_ns);
            Process { indices, waits, next: 0, completions: 0, began_ns }
        });
        Dependents { processes: processes.collect() }
    }

    /// Lets go what waits for nothing: `let_go` is told the request's number and when it is due, in
    /// ns since the beginning.
    pub fn begin(&mut self, plan: &Plan, scaled: &dyn Fn(u64) -> u64, let_go: &mut dyn FnMut(u32, u64)) {
        for process in &mut self.processes {
            let began_ns = scaled(process.began_ns);
            process.go_on(plan, began_ns, scaled, let_go);
        }
    }

    /// A request of a process is over at this time.
    pub fn completed(
        &mut self,
        plan: &Plan,
        process: u32,
        now_ns: u64,
        scaled: &dyn Fn(u64) -> u64,
        let_go: &mut dyn FnMut(u32, u64),
    ) {
        if let Some(process) = self.processes.get_mut(process as usize) {
            process.completions += 1;
            process.go_on(plan, now_ns, scaled, let_go);
        }
    }
}

impl Process {
    fn go_on(&mut self, plan: &Plan, now_ns: u64, scaled: &dyn Fn(u64) -> u64, let_go: &mut dyn FnMut(u32, u64)) {
        while let (Some(index), Some(wait)) = (self.indices.get(self.next), self.waits.get(self.next)) {
            // So many of those before it have to be over.
            let needed = self.next.saturating_sub(wait.outstanding_max as usize);
            if needed > self.completions {
                return;
            }
            let at_ns = match wait.then {
                // Nothing was over before it: the time at which it came is all that is known.
                _ if needed == 0 => scaled(plan.requests().get(*index as usize).map_or(0, |request| request.at_ns)),
                ReleaseDelay::Think(think_ns) => now_ns.saturating_add(scaled(think_ns)),
                ReleaseDelay::At(after_ns) => now_ns.max(scaled(self.began_ns.saturating_add(after_ns))),
            };
            let_go(*index, at_ns);
            self.next += 1;
        }
    }
}
