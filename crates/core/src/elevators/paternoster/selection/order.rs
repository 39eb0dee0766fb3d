//! The contexts with queued requests, in the orders in which they are looked for: those that wait
//! by start, the eligible ones of each kind by finish and by sector.

use crate::collections::{Arena, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};

/// What eligible contexts ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Single requests, by a context that had less than its share.
    #[default]
    Light,
    /// Single requests.
    Scattered,
    /// A turn.
    Stream,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Light, Kind::Scattered, Kind::Stream];
}

/// The orders of contexts.
pub struct Order<H: HostTypes> {
    /// The virtual time, in ns: the position of a context that had exactly its share.
    pub virtual_time: u64,
    /// The contexts that wait, by start.
    waiting: Tree,
    /// The eligible contexts of each kind, by finish.
    eligible: PerKind,
    nodes: TableOf<H, Node>,
    /// The contexts of each kind that became eligible while seeks were costly, by the sector of
    /// their next request. The node of another context has the key [`NO_SECTOR`].
    sweeps: PerKind,
    sweep_nodes: TableOf<H, Node>,
}

/// The key of a context that is in no sweep.
const NO_SECTOR: u64 = u64::MAX;

impl<H: HostTypes> Order<H> {
    pub fn new(nodes: H::Slots<Node>, sweep_nodes: H::Slots<Node>) -> Self {
        Order {
            virtual_time: 0,
            waiting: Tree::default(),
            eligible: PerKind::default(),
            nodes: Arena::new(nodes),
            sweeps: PerKind::default(),
            sweep_nodes: Arena::new(sweep_nodes),
        }
    }

    pub fn into_slots(self) -> (H::Slots<Node>, H::Slots<Node>) {
        (self.nodes.into_slots(), self.sweep_nodes.into_slots())
    }

    /// The number of contexts for which the tables have entries.
    pub fn capacity(&self) -> u32 {
        self.nodes.capacity().min(self.sweep_nodes.capacity())
    }

    /// Adds a context that waits until the virtual time reaches its start.
    pub fn insert_waiting(&mut self, context: Slot, start: u64) {
        self.waiting.insert_late(&mut self.nodes, context, start, ());
    }

    /// Removes a context that waits.
    pub fn remove_waiting(&mut self, context: Slot) {
        self.waiting.remove(&mut self.nodes, context);
    }

    /// Removes the waiting context with the least start if the virtual time has reached it, and
    /// returns it, or [`NIL`]. If `may_advance`, the virtual time moves forward to the start.
    pub fn pop_due(&mut self, may_advance: bool) -> Slot {
        let first = self.waiting.first();
        if first == NIL {
            return NIL;
        }
        let start = self.nodes[first].key();
        if start > self.virtual_time {
            if !may_advance {
                return NIL;
            }
            self.virtual_time = start;
        }
        self.remove_waiting(first);
        first
    }

    /// Adds an eligible context, to the sweep as well if its next request has a `sector`.
    pub fn insert_eligible(&mut self, context: Slot, kind: Kind, finish: u64, sector: Option<u64>) {
        self.eligible.of_mut(kind).insert_late(&mut self.nodes, context, finish, ());
        match sector {
            Some(sector) => self.sweeps.of_mut(kind).insert(&mut self.sweep_nodes, context, sector),
            None => self.sweep_nodes[context].set_key(NO_SECTOR),
        }
    }

    /// Removes an eligible context.
    pub fn remove_eligible(&mut self, context: Slot, kind: Kind) {
        self.eligible.of_mut(kind).remove(&mut self.nodes, context);
        if self.is_in_sweep(context) {
            self.sweeps.of_mut(kind).remove(&mut self.sweep_nodes, context);
        }
    }

    /// Returns true if an eligible context is in the sweep of its kind.
    pub fn is_in_sweep(&self, context: Slot) -> bool {
        self.sweep_nodes[context].key() != NO_SECTOR
    }

    /// Moves a context in the sweep of its kind.
    pub fn move_in_sweep(&mut self, context: Slot, kind: Kind, sector: u64) {
        if self.sweep_nodes[context].key() != sector {
            let sweep = self.sweeps.of_mut(kind);
            sweep.remove(&mut self.sweep_nodes, context);
            sweep.insert(&mut self.sweep_nodes, context, sector);
        }
    }

    /// Returns true if a context is eligible.
    pub fn has_eligible(&self) -> bool {
        Kind::ALL.iter().any(|kind| self.has(*kind))
    }

    /// Returns true if a context of a kind is eligible.
    pub fn has(&self, kind: Kind) -> bool {
        !self.eligible.of(kind).is_empty()
    }

    /// The eligible context with the least finish, and its kind.
    pub fn first(&self) -> Option<(Kind, Slot)> {
        let mut best: Option<(Kind, Slot, u64)> = None;
        for kind in Kind::ALL {
            let context = self.eligible.of(kind).first();
            let finish = self.nodes[context].key();
            if context != NIL && best.is_none_or(|(.., other)| finish < other) {
                best = Some((kind, context, finish));
            }
        }
        best.map(|(kind, context, _)| (kind, context))
    }

    /// The context of a kind whose next request is the first at or after `sector`; the one with the
    /// lowest sector if there is none.
    pub fn next_in_sweep(&self, kind: Kind, sector: u64) -> Slot {
        let sweep = self.sweeps.of(kind);
        let ahead = sweep.first_not_below(&self.sweep_nodes, sector);
        if ahead == NIL { sweep.first() } else { ahead }
    }
}

/// A tree of each kind.
#[derive(Debug, Default)]
struct PerKind {
    light: Tree,
    scattered: Tree,
    streams: Tree,
}

impl PerKind {
    fn of(&self, kind: Kind) -> &Tree {
        match kind {
            Kind::Light => &self.light,
            Kind::Scattered => &self.scattered,
            Kind::Stream => &self.streams,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut Tree {
        match kind {
            Kind::Light => &mut self.light,
            Kind::Scattered => &mut self.scattered,
            Kind::Stream => &mut self.streams,
        }
    }
}
