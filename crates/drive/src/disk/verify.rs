//! Idle read after write: some drives read written sectors again while no command arrives (A. Riska
//! and E. Riedel, "Idle Read After Write - IRAW", USENIX 2008).

use crate::command::Access;

/// The written sectors that the drive will verify.
#[derive(Debug, Clone)]
pub(super) struct Verify {
    pub(super) delay_ns: u64,
    written: Vec<Access>,
}

impl Verify {
    /// The largest number of entries; the oldest is dropped.
    const CAPACITY: usize = 64;

    pub(super) fn new(delay_ms: f64) -> Verify {
        Verify { delay_ns: (delay_ms * 1e6).round() as u64, written: Vec::with_capacity(Verify::CAPACITY) }
    }

    pub(super) fn add(&mut self, access: &Access) {
        if self.written.len() == Verify::CAPACITY {
            self.written.remove(0);
        }
        self.written.push(*access);
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.written.remove(index);
    }

    /// The sectors to verify next: the lowest address, as in the recording of the Cheetah 15K.5.
    pub(super) fn lowest(&self) -> Option<(usize, Access)> {
        self.written.iter().copied().enumerate().min_by_key(|(_, access)| access.sector)
    }
}
