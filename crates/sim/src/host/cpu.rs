//! Processors, which tasks get in the order of their requests.

use std::collections::VecDeque;

use crate::world::Task;

/// The processors of the host and the tasks that wait for one.
#[derive(Debug)]
pub(crate) struct Cpus {
    free: u32,
    waiting: VecDeque<(Task, u64)>,
}

impl Cpus {
    pub fn new(count: u32) -> Cpus {
        Cpus { free: count, waiting: VecDeque::new() }
    }

    /// Requests a processor for a task and `burst_ns`. Returns true if one is free; otherwise the
    /// task is queued.
    #[inline]
    pub fn take(&mut self, task: Task, burst_ns: u64) -> bool {
        if self.free == 0 {
            self.waiting.push_back((task, burst_ns));
            return false;
        }
        self.free -= 1;
        true
    }

    /// Returns true if a task waits for a processor.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Releases the processor of a task. Returns the next task that gets it, with its burst in ns.
    #[inline]
    pub fn leave(&mut self) -> Option<(Task, u64)> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::ProcessId;

    #[test]
    fn a_released_processor_goes_to_the_first_waiting_task() {
        let task = |number| Task::Process(ProcessId(number));
        let mut cpus = Cpus::new(2);
        assert!(cpus.take(task(1), 10) && cpus.take(task(2), 20));
        assert!(!cpus.take(task(3), 30) && !cpus.take(task(4), 40));
        assert_eq!(cpus.leave(), Some((task(3), 30)));
        assert_eq!(cpus.leave(), Some((task(4), 40)));
        assert_eq!(cpus.leave(), None);
        assert!(cpus.take(task(5), 50));
    }
}
