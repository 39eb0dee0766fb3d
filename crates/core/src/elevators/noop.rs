//! noop: first come, first served.
//!
//! The idea: the device, or the scheduler behind it, is better informed. Merge adjacent bios and
//! keep the order of arrival. In a forced drain of several requests the dispatch list sorts them.

use crate::collections::{List, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker};
use crate::elevator::{Elevator, MakeTables};
use crate::layer::BlockLayer;
use crate::request::Arrivals;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "noop",
    aliases: &["none"],
    kernel: "2.6.18 (and every kernel until 4.20)",
    in_linux: "2.6.0-4.20",
    headline: "First come, first served, with merging",
    idea: "First come, first served; adjacent bios are merged.",
    suits: "Devices without seeks, or with a scheduler of their own.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[],
};

/// The state: one list.
#[derive(Debug, Default)]
pub(crate) struct Noop {
    queue: List<Arrivals>,
}

impl<H: HostTypes> MakeTables<H> for Noop {
    fn make_tables<M: TableMaker<H>>(_: Capacity, _: &mut M) {}
}

impl<H: HostTypes> Elevator<H> for Noop {
    type Tables = ();

    fn new(_: &mut QueueCore<H>, (): ()) -> Self {
        Noop::default()
    }

    fn into_tables(self) {}

    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        self.queue.prev(&core.tables.arrivals, request)
    }

    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        self.queue.next(&core.tables.arrivals, request)
    }

    fn join(&mut self, core: &mut QueueCore<H>, _: Slot, absorbed: Slot) {
        self.queue.remove(&mut core.tables.arrivals, absorbed);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.queue.push_back(&mut core.tables.arrivals, request);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, _force: bool) -> u32 {
        if self.queue.is_empty() {
            return 0;
        }
        let head = self.queue.pop_front(&mut core.tables.arrivals);
        core.dispatch_sort(head);
        1
    }

    fn withdraw(&mut self, core: &mut QueueCore<H>, request: Slot) -> bool {
        self.queue.remove(&mut core.tables.arrivals, request);
        true
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
