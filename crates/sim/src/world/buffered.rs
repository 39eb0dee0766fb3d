//! Reads and writes through the page cache.

use hoistway_core::{Bio, Flags, Op};

use super::choose::Flow;
use super::process::{Current, Stage};
use super::{PageIo, Token, World};
use crate::config::{PAGE_BYTES, PAGE_SECTORS};
use crate::host::page_cache::PageState;
use crate::host::readahead::Window;
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// One page of a read: read-ahead, a wait if the page is not there, a copy.
    pub(super) fn read_page(&mut self, task: u32) -> Flow {
        let process = &mut self.processes[task as usize];
        let Current { unit, page, last_page, planned, .. } = process.current;
        let open = &mut process.files[unit.file];
        let file = open.file;
        if planned <= page {
            let plan = open.reader.plan(page, last_page - page + 1, self.files[file as usize].pages());
            process.current.planned = page + plan.covered;
            for window in plan.windows.iter().filter(|window| window.pages > 0) {
                self.read_window(task, unit.file, *window);
            }
        }
        match self.cache.state(file, page) {
            PageState::Ready => {
                self.cache.touch(file, page);
                self.copy_page(task);
                Flow::On
            }
            PageState::Coming => self.wait_for_page(task, file, page),
            PageState::Missing => {
                self.processes[task as usize].files[unit.file].reader.missed();
                self.read_window(task, unit.file, Window { start: page, pages: 1 });
                self.wait_for_page(task, file, page)
            }
        }
    }

    /// One page of a write: throttling, a read if only part of the page is written, a copy.
    pub(super) fn write_page(&mut self, task: u32) -> Flow {
        if self.has_too_much_dirty() {
            self.throttled.push(task);
            self.wake_flusher();
            return Flow::Block;
        }
        let process = &mut self.processes[task as usize];
        let Current { unit, page, .. } = process.current;
        let file = process.files[unit.file].file;
        let whole = unit.offset <= page * PAGE_BYTES && unit.offset + unit.bytes >= (page + 1) * PAGE_BYTES;
        match self.cache.state(file, page) {
            PageState::Missing if !whole => {
                self.read_window(task, unit.file, Window { start: page, pages: 1 });
                return self.wait_for_page(task, file, page);
            }
            PageState::Coming => return self.wait_for_page(task, file, page),
            _ => {}
        }
        self.cache.make_dirty(file, page, self.now_ns);
        self.copy_page(task);
        self.dirtied();
        Flow::On
    }

    /// Pays for a page and goes on to the next, or to the end of the request.
    fn copy_page(&mut self, task: u32) {
        let costs = self.host.costs;
        let process = &mut self.processes[task as usize];
        let Current { unit, page, last_page, waited, .. } = process.current;
        let from = unit.offset.max(page * PAGE_BYTES);
        let bytes = (unit.offset + unit.bytes).min((page + 1) * PAGE_BYTES) - from;
        process.debt_ns += costs.copy_page_ns * bytes / PAGE_BYTES;
        if waited {
            process.debt_ns += costs.completion_ns;
        }
        process.current.waited = false;
        process.current.page = page + 1;
        if page == last_page {
            process.debt_ns += process.call_ns(costs.system_call_ns);
            process.stage = match process.stage {
                Stage::Write if process.job.sync => Stage::WriteThrough,
                _ => Stage::Finish,
            };
        }
    }

    /// Sleeps until a page is there. What the queue holds back goes to the drive first.
    pub(super) fn wait_for_page(&mut self, task: u32, file: u32, page: u64) -> Flow {
        let process = &mut self.processes[task as usize];
        if process.debt_ns > 0 {
            // The work so far takes its time; the page may be there by then.
            return Flow::On;
        }
        process.current.waited = true;
        self.page_waiters[file as usize].push((task, page));
        self.device.unplug(self.now_ns);
        Flow::Block
    }

    /// Submits reads for the pages of a window that are missing: a bio for each extent.
    fn read_window(&mut self, task: u32, open: usize, window: Window) {
        let file = self.processes[task as usize].files[open].file;
        let end = window.start + window.pages;
        let (mut page, mut missing) = (window.start, 0);
        while page < end {
            if self.cache.state(file, page) != PageState::Missing {
                page += 1;
                continue;
            }
            let first = page;
            while page < end && self.cache.state(file, page) == PageState::Missing {
                self.cache.begin_read(file, page);
                page += 1;
            }
            missing += page - first;
            self.submit_pages(task, file, first, page - first, Op::Read, Flags::NONE);
        }
        self.processes[task as usize].files[open].reader.found(window.pages - missing, missing);
    }

    /// Submits bios for pages that lie side by side in a file. Answers how many.
    pub(super) fn submit_pages(&mut self, task: u32, file: u32, first: u64, pages: u64, op: Op, flags: Flags) -> u64 {
        let context = self.device.context(task);
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
            self.device.submit(task, bio, self.now_ns);
            page += count;
            bios += 1;
        }
        let bio_ns = bios * self.host.costs.bio_ns;
        match self.processes.get_mut(task as usize) {
            Some(process) => process.debt_ns += bio_ns,
            None => self.flusher.debt_ns += bio_ns,
        }
        bios
    }
}
