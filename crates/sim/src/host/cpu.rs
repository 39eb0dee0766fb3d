//! Processors: tasks get them in the order in which they ask.

use std::collections::VecDeque;

/// The processors of the host and the tasks that wait for one.
#[derive(Debug)]
pub(crate) struct Cpus {
    free: u32,
    waiting: VecDeque<(u32, u64)>,
}

impl Cpus {
    pub fn new(count: u32) -> Cpus {
        Cpus { free: count, waiting: VecDeque::new() }
    }

    /// A task wants a processor for `burst_ns`. Returns true if it has one now; if not, it is
    /// queued.
    #[inline]
    pub fn take(&mut self, task: u32, burst_ns: u64) -> bool {
        if self.free == 0 {
            self.waiting.push_back((task, burst_ns));
            return false;
        }
        self.free -= 1;
        true
    }

    /// A task leaves its processor. Returns who has it now, and for how long.
    #[inline]
    pub fn leave(&mut self) -> Option<(u32, u64)> {
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

    #[test]
    fn a_freed_processor_goes_to_whoever_asked_first() {
        let mut cpus = Cpus::new(2);
        assert!(cpus.take(1, 10) && cpus.take(2, 20));
        assert!(!cpus.take(3, 30) && !cpus.take(4, 40));
        assert_eq!(cpus.leave(), Some((3, 30)));
        assert_eq!(cpus.leave(), Some((4, 40)));
        assert_eq!(cpus.leave(), None);
        assert!(cpus.take(5, 50));
    }
}
