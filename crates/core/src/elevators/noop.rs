//! noop: first come, first served.
//!
//! The idea: the device, or whoever is behind it, knows better; merge what lies side by side and keep the order of arrival.
//! On a forced drain of several requests the dispatch list sorts them.

use super::{Elevator, MakeTables};
use crate::layer::BlockLayer;
use crate::parts::{List, Slot};
use crate::queue::block::Block;
use crate::registry::Info;
use crate::request::Arrivals;
use crate::storage::{Capacity, Home, Maker};

/// What the registry tells of it.
pub(crate) const INFO: Info = Info {
    name: "noop",
    aliases: &[],
    kernel: "2.6.18 (and every kernel until 4.20)",
    in_linux: "2.6.0-4.20",
    headline: "First come, first served, with merging",
    idea: "First come, first served; bios that lie side by side are merged.",
    suits: "Devices without seeks, or with a scheduler of their own behind them.",
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

impl<H: Home> MakeTables<H> for Noop {
    fn make_tables<M: Maker<H>>(_: Capacity, _: &mut M) {}
}

impl<H: Home> Elevator<H> for Noop {
    type Tables = ();

    fn new(_: &mut Block<H>, (): ()) -> Self {
        Noop::default()
    }

    fn into_tables(self) {}

    fn former(&self, block: &Block<H>, request: Slot) -> Slot {
        self.queue.prev(&block.table.arrivals, request)
    }

    fn latter(&self, block: &Block<H>, request: Slot) -> Slot {
        self.queue.next(&block.table.arrivals, request)
    }

    fn join(&mut self, block: &mut Block<H>, _: Slot, absorbed: Slot) {
        self.queue.remove(&mut block.table.arrivals, absorbed);
    }

    fn insert(&mut self, block: &mut Block<H>, request: Slot) {
        self.queue.push_back(&mut block.table.arrivals, request);
    }

    fn dispatch(&mut self, block: &mut Block<H>, _force: bool) -> u32 {
        if self.queue.is_empty() {
            return 0;
        }
        let head = self.queue.pop_front(&mut block.table.arrivals);
        block.dispatch_sort(head);
        1
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
