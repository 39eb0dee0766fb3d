//! Reads and writes through the page cache.

use std::ops::Range;

use hoistway_core::{Bio, Flags, Op};
use hoistway_fio::{Ioengine, WriteSync};

use super::devices::MAIN;
use super::process::{CurrentRequest, OpenFile, Stage};
use super::state::{Flow, PageIo, Token, World};
use super::task::{ProcessId, Task};
use crate::error::Defect;
use crate::host::on_demand::{MarkedWindow, ReadPosition};
use crate::host::page::{PAGE_BYTES, PAGE_SECTORS};
use crate::host::page_cache::PageState;
use crate::host::readahead::Reader;
use crate::host::window::Window;
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// Reads one page: runs read-ahead, sleeps while the page is missing, copies it.
    pub(super) fn read_page(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let is_mapped = self.is_mapped(id);
        match is_mapped {
            true => self.fault(id)?,
            false => self.read_ahead(id)?,
        }
        let process = &self.processes[id];
        let CurrentRequest { unit, page, .. } = process.current;
        let file = process.files[unit.file].file;
        match self.cache.state(file, page) {
            PageState::Ready => {
                self.cache.touch(file, page);
                if is_mapped {
                    self.map_page(id, false);
                }
                self.copy_page(id);
                Ok(Flow::On)
            }
            PageState::Coming => self.wait_for_page(id, file, page),
            PageState::Missing => {
                self.processes[id].files[unit.file].reader.missed();
                self.read_window(id, unit.file, Window { start: page, pages: 1 })?;
                self.wait_for_page(id, file, page)
            }
        }
    }

    /// Runs read-ahead for the page that a process reads next.
    pub(super) fn read_ahead(&mut self, id: ProcessId) -> Result<(), Defect> {
        let process = &mut self.processes[id];
        let CurrentRequest { unit, page, last_page, planned, .. } = process.current;
        // A page fault is for one page: the kernel does not know how many more the process will
        // read.
        let wanted = if process.job.submission.ioengine == Ioengine::Mmap { 1 } else { last_page - page + 1 };
        let OpenFile { file, reader, .. } = &mut process.files[unit.file];
        let at = ReadPosition { page, wanted, file_pages: self.files[*file as usize].pages() };
        match reader {
            Reader::OnDemand(_) => self.read_on_demand(id, unit.file, at)?,
            Reader::TwoWindows(windows) if planned <= page => {
                let plan = windows.plan(at.page, at.wanted, at.file_pages);
                process.current.planned = page + plan.covered;
                for window in plan.windows.iter().filter(|window| window.pages > 0) {
                    self.read_window(id, unit.file, *window)?;
                }
            }
            Reader::TwoWindows(_) => {}
            Reader::Requested(most) => {
                let pages = at.wanted.min(*most).min(at.file_pages.saturating_sub(page));
                if self.cache.state(*file, page) == PageState::Missing {
                    self.read_window(id, unit.file, Window { start: page, pages })?;
                }
            }
        }
        Ok(())
    }

    /// Runs read-ahead on demand at its two triggers: the page is missing, or it carries a marker.
    fn read_on_demand(&mut self, id: ProcessId, open: usize, at: ReadPosition) -> Result<(), Defect> {
        let OpenFile { file, reader: Reader::OnDemand(reader), .. } = &mut self.processes[id].files[open] else {
            return Ok(());
        };
        let file = *file;
        let is_missing = self.cache.state(file, at.page) == PageState::Missing;
        let window = is_missing.then(|| reader.missing(at, |page| self.cache.state(file, page) != PageState::Missing));
        self.read_marked(id, open, window.flatten())?;
        // A congested device gets no read-ahead: no process waits for those pages.
        if !self.cache.take_mark(file, at.page) || self.devices[MAIN].is_congested(Op::Read) {
            self.was_read(id, open, at.page);
            return Ok(());
        }
        let Reader::OnDemand(reader) = &mut self.processes[id].files[open].reader else { return Ok(()) };
        let window = reader.met_marker(at, |page| self.cache.state(file, page) != PageState::Missing);
        self.read_marked(id, open, window)?;
        self.was_read(id, open, at.page);
        Ok(())
    }

    fn was_read(&mut self, id: ProcessId, open: usize, page: u64) {
        if let Reader::OnDemand(reader) = &mut self.processes[id].files[open].reader {
            reader.was_read(page);
        }
    }

    /// Reads a window. The page for the marker gets it, unless the page was cached already.
    fn read_marked(&mut self, id: ProcessId, open: usize, marked: Option<MarkedWindow>) -> Result<(), Defect> {
        let Some(MarkedWindow { window, marker }) = marked else { return Ok(()) };
        let file = self.processes[id].files[open].file;
        let marker = marker.filter(|page| self.cache.state(file, *page) == PageState::Missing);
        self.read_window(id, open, window)?;
        if let Some(page) = marker {
            self.cache.mark(file, page);
        }
        Ok(())
    }

    /// Writes one page: throttles the writer, reads the page if only part of it is written, copies.
    pub(super) fn write_page(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        if let Some(flow) = self.throttle_writer(id)? {
            return Ok(flow);
        }
        let is_mapped = self.is_mapped(id);
        if is_mapped {
            self.fault(id)?;
        }
        let process = &mut self.processes[id];
        let CurrentRequest { unit, page, .. } = process.current;
        let file = process.files[unit.file].file;
        // A write to a mapped page reads the page first: the kernel does not know that all of it
        // will be written.
        let whole =
            !is_mapped && unit.offset <= page * PAGE_BYTES && unit.offset + unit.bytes >= (page + 1) * PAGE_BYTES;
        match self.cache.state(file, page) {
            PageState::Missing if !whole => {
                self.read_window(id, unit.file, Window { start: page, pages: 1 })?;
                return self.wait_for_page(id, file, page);
            }
            PageState::Coming => return self.wait_for_page(id, file, page),
            _ => {}
        }
        if is_mapped {
            self.map_page(id, true);
        }
        if self.cache.make_dirty(file, page, self.now_ns) {
            self.processes[id].dirtying.count();
        }
        self.record_change(file, (unit.offset + unit.bytes).min((page + 1) * PAGE_BYTES));
        self.copy_page(id);
        self.dirtied();
        Ok(Flow::On)
    }

    /// Charges the CPU time of a page and continues with the next page, or with the end of the
    /// request.
    fn copy_page(&mut self, id: ProcessId) {
        let costs = self.host.costs;
        let process = &mut self.processes[id];
        let CurrentRequest { unit, page, last_page, waited, .. } = process.current;
        let from = unit.offset.max(page * PAGE_BYTES);
        let bytes = (unit.offset + unit.bytes).min((page + 1) * PAGE_BYTES) - from;
        process.task.debt_ns += costs.copy_page_ns * bytes / PAGE_BYTES;
        if waited {
            process.pay_completion();
        }
        process.current.waited = false;
        process.current.page = page + 1;
        if page == last_page {
            process.task.debt_ns += process.call_ns(costs.system_call_ns);
            process.stage = match process.stage {
                // O_SYNC does not apply to mapped pages.
                Stage::Write
                    if process.job.syncs.sync != WriteSync::None
                        && process.job.submission.ioengine != Ioengine::Mmap =>
                {
                    Stage::WriteThrough
                }
                _ => Stage::Finish,
            };
        }
    }

    /// Sleeps until a page is up to date. The queue is unplugged first.
    pub(super) fn wait_for_page(&mut self, id: ProcessId, file: u32, page: u64) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        if process.task.debt_ns > 0 {
            // The work so far takes CPU time; the page may be up to date afterwards.
            return Ok(Flow::On);
        }
        process.current.waited = true;
        self.waiting.pages[file as usize].push((id, page));
        self.devices[MAIN].unplug(self.now_ns)?;
        Ok(Flow::Block)
    }

    /// Submits reads for the missing pages of a window: one bio per extent.
    pub(super) fn read_window(&mut self, id: ProcessId, open: usize, window: Window) -> Result<(), Defect> {
        let file = self.processes[id].files[open].file;
        let end = window.start + window.pages;
        let submitter = self.processes[id].task.submitter;
        self.devices[MAIN].plug(submitter);
        let missing = self.read_missing(id, file, window.start..end, Flags::NONE)?;
        self.devices[MAIN].finish_plug(submitter, self.now_ns)?;
        self.processes[id].files[open].reader.found(window.pages - missing, missing);
        Ok(())
    }

    /// Submits reads for the missing ones of some pages. Returns their number.
    pub(super) fn read_missing(
        &mut self,
        id: ProcessId,
        file: u32,
        pages: Range<u64>,
        flags: Flags,
    ) -> Result<u64, Defect> {
        let (mut page, mut missing) = (pages.start, 0);
        while page < pages.end {
            if self.cache.state(file, page) != PageState::Missing {
                page += 1;
                continue;
            }
            let first = page;
            while page < pages.end && self.cache.state(file, page) == PageState::Missing {
                self.cache.begin_read(file, page);
                page += 1;
            }
            missing += page - first;
            self.submit_pages(id.into(), file, first, page - first, Op::Read, flags)?;
        }
        Ok(missing)
    }

    /// Submits bios for contiguous pages of a file. Returns the number of bios.
    pub(super) fn submit_pages(
        &mut self,
        task: Task,
        file: u32,
        first: u64,
        pages: u64,
        op: Op,
        flags: Flags,
    ) -> Result<u64, Defect> {
        let submitter = self.submitter_of(task);
        let context = self.devices[MAIN].context(submitter);
        let most = (u64::from(self.host.queue.max_sectors) / PAGE_SECTORS).max(1);
        let (mut page, end) = (first, first + pages);
        let mut bios = 0;
        while page < end {
            let Some((disk, room)) = self.files[file as usize].locate(page * PAGE_SECTORS) else { break };
            let count = (room / PAGE_SECTORS).clamp(1, most).min(end - page);
            let slot = self.page_ios.insert(PageIo { file, first: page, pages: count });
            let token = match op {
                Op::Read => Token::PageRead(slot),
                _ => Token::PageWrite(slot),
            };
            let sectors = (count * PAGE_SECTORS) as u32;
            let bio = Bio { token: token.encode(), context, op, sector: disk, sectors, flags };
            self.devices[MAIN].submit(submitter, bio, self.now_ns)?;
            page += count;
            bios += 1;
        }
        let bio_ns = bios * self.host.costs.bio_ns;
        self.task_mut(task).debt_ns += bio_ns;
        Ok(bios)
    }
}
