//! Reads and writes of mapped files: page faults in place of system calls.
//!
//! The kernel does not know how much a process will read: each fault is for one page. The pages
//! that are read along depend on the process's advice (`madvise`). Sequential: read-ahead as for a
//! file. Random: no other page. No advice: a window around the page.

use hoistway_fio::{FadviseHint, Ioengine};

use super::process::CurrentRequest;
use super::state::World;
use super::task::ProcessId;
use crate::error::Defect;
use crate::host::page_cache::PageState;
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// Returns true if a process works on mapped files.
    pub(super) fn is_mapped(&self, id: ProcessId) -> bool {
        self.processes[id].job.submission.ioengine == Ioengine::Mmap
    }

    /// Handles the access to a page of a mapped file: reads the pages that the fault calls for.
    pub(super) fn fault(&mut self, id: ProcessId) -> Result<(), Defect> {
        let process = &self.processes[id];
        let CurrentRequest { unit, page, .. } = process.current;
        let file = process.files[unit.file].file;
        match process.job.cache.fadvise_hint.of(process.job.requests.rw.is_random()) {
            FadviseHint::Random => {}
            FadviseHint::Sequential | FadviseHint::Pattern => self.read_ahead(id)?,
            FadviseHint::None => {
                let is_missing = self.cache.state(file, page) == PageState::Missing;
                let (max, pages) = (self.host.read_ahead_pages(), self.files[file as usize].pages());
                let mapping = &mut self.processes[id].files[unit.file].mapping;
                if is_missing {
                    let window = mapping.read_around(page, max, pages);
                    self.read_window(id, unit.file, window)?;
                }
            }
        }
        Ok(())
    }

    /// Charges the faults of a page that is up to date: one to map it, unless it is mapped already,
    /// and one to make it writable, unless it is dirty already.
    pub(super) fn map_page(&mut self, id: ProcessId, writes: bool) {
        let process = &mut self.processes[id];
        let CurrentRequest { unit, page, waited, .. } = process.current;
        let open = &mut process.files[unit.file];
        let mut faults = 0;
        if open.mapping.touch(page) {
            faults += 1;
            if !waited {
                open.mapping.hit();
            }
        } else if writes && !self.cache.is_dirty_page(open.file, page) {
            faults += 1;
        }
        process.task.debt_ns += faults * self.host.costs.fault_ns;
    }
}
