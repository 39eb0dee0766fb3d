//! Processes that walk through a tree of files: each metadata block is read when the walk needs it.

use std::sync::Arc;

use hoistway_core::Flags;
use hoistway_fio::{Direction, FadviseHint};

use super::process::{OpenFile, Process, Stage, TreeWalk};
use super::state::{Flow, World};
use super::task::ProcessId;
use crate::error::Defect;
use crate::host::fs::tree::{MetadataRead, Tree};
use crate::host::mapping::Mapping;
use crate::host::page_cache::PageState;
use crate::record::Observer;
use crate::workload::walk::{Step, Walker};
use hoistway_workload::IoUnit;

/// System calls per file besides its reads: `stat`, `open` and `close`.
const CALLS_A_FILE: u64 = 3;

impl Process {
    /// Attaches a walk through this tree to the process, if there is one.
    pub(super) fn walk_through(&mut self, tree: Option<Arc<Tree>>, disk: u32, read_ahead_pages: u64) {
        let Some(tree) = tree else { return };
        self.plan.io_bytes = tree.bytes;
        let passes = if self.job.end.time_based { u64::MAX } else { u64::from(self.job.amount.loops) };
        let bytes = self.job.min_bs(Direction::Read);
        let walker = Walker::new(tree, self.job.hoistway.walk, bytes, read_ahead_pages, disk, passes);
        let walker = walker.with_seed(self.plan.seed ^ self.plan.number);
        self.walk = Some(TreeWalk { walker, wanted: MetadataRead::of_block(0), since_ns: 0, reads: 0 });
    }
}

impl<S: Observer> World<S> {
    /// Starts the next pass of a walk. Nothing of the tree is cached then, as after `echo 3 >
    /// /proc/sys/vm/drop_caches`, unless the job says `invalidate=0`.
    pub(super) fn begin_walk(&mut self, id: ProcessId) {
        let process = &mut self.processes[id];
        let Some(walk) = &mut process.walk else { return };
        if !walk.walker.begin_pass() {
            process.stage = Stage::Leave;
            return;
        }
        process.stage = Stage::Choose;
        let walker = &walk.walker;
        if process.job.cache.invalidate {
            self.cache.invalidate_where(|file| walker.uses(file));
        }
    }

    /// Starts the search for the next read, unless the job's pacing asks for a pause.
    pub(super) fn pace_walk(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        let Some(walk) = &mut process.walk else { return Ok(Flow::On) };
        if process.job.amount.number_ios.is_some_and(|most| walk.reads >= most) {
            process.stage = Stage::Leave;
            return Ok(Flow::On);
        }
        let due_ns = process.start_ns.saturating_add(process.pacing.due_ns(Direction::Read));
        if due_ns > self.now_ns {
            let until_ns = due_ns.min(process.deadline_ns);
            return Ok(self.sleep_until(id, until_ns));
        }
        walk.since_ns = self.now_ns;
        process.stage = Stage::Walk;
        Ok(Flow::On)
    }

    /// Takes the next step of a walk.
    pub(super) fn walk(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        let Some(walk) = &mut process.walk else { return Ok(Flow::On) };
        match walk.walker.next(&self.files) {
            None => self.begin_walk(id),
            Some(Step::Metadata(read)) => {
                walk.wanted = read;
                process.stage = Stage::Metadata;
            }
            Some(Step::Read { file, offset, bytes, opens }) => {
                walk.reads += 1;
                let since_ns = walk.since_ns;
                if opens {
                    let reader = self.host.reader(FadviseHint::None);
                    process.files.clear();
                    process.files.push(OpenFile { file, reader, mapping: Mapping::default() });
                    process.task.debt_ns += CALLS_A_FILE * self.host.costs.system_call_ns;
                }
                let flow = self.begin(id, IoUnit::new(Direction::Read, 0, offset, bytes))?;
                // The time to find the file belongs to its first read.
                self.processes[id].current.start_ns = since_ns;
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    /// Sleeps until the metadata blocks of a step are cached; missing blocks are read with their
    /// read-ahead window. Needed blocks outside the window were read before.
    pub(super) fn wait_for_metadata(&mut self, id: ProcessId) -> Result<Flow, Defect> {
        let process = &mut self.processes[id];
        let Some(walk) = &process.walk else { return Ok(Flow::On) };
        let (disk, wanted) = (walk.walker.disk(), walk.wanted);
        let mut blocks = wanted.first..wanted.first + wanted.blocks;
        let Some(absent) = blocks.clone().find(|block| self.cache.state(disk, *block) != PageState::Ready) else {
            for block in blocks.by_ref() {
                self.cache.touch(disk, block);
            }
            let process = &mut self.processes[id];
            if std::mem::take(&mut process.current.waited) {
                process.pay_completion();
            }
            process.stage = Stage::Walk;
            return Ok(Flow::On);
        };
        if blocks.any(|block| self.cache.state(disk, block) == PageState::Missing) {
            // A block whose window was read without success is read alone.
            let has_waited = self.processes[id].current.waited;
            let (first, blocks) = if has_waited { MetadataRead::of_block(absent).ahead } else { wanted.ahead };
            self.read_missing(id, disk, first..first + blocks, Flags::META)?;
        }
        self.wait_for_page(id, disk, absent)
    }
}
