//! The order of service: who is eligible, and who of them is served next.

use crate::collections::{Arena, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};

/// The parties with requests, in the orders in which they are looked for.
pub(super) struct Order<H: HostTypes> {
    /// The virtual time, in ns: the position that a party has if it had exactly its share.
    pub time: u64,
    /// The parties that wait, by position.
    waiting: Tree,
    /// The eligible parties of each kind, by finish.
    eligible: PerKind,
    nodes: TableOf<H, Node>,
    /// The parties of each kind that were made eligible while moves mattered, by the sector of
    /// their next request. The node of another party has the key [`NO_SECTOR`].
    sweeps: PerKind,
    sweep_nodes: TableOf<H, Node>,
}

/// The key of a party that is in no sweep.
const NO_SECTOR: u64 = u64::MAX;

/// What eligible parties ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Single requests, by a party that had less than its share.
    #[default]
    Light,
    /// Single requests.
    Scattered,
    /// A turn.
    Stream,
}

impl<H: HostTypes> Order<H> {
    pub fn new(nodes: H::Slots<Node>, sweep_nodes: H::Slots<Node>) -> Self {
        Order {
            time: 0,
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

    /// The number of parties for which the tables have entries.
    pub fn capacity(&self) -> u32 {
        self.nodes.capacity().min(self.sweep_nodes.capacity())
    }

    /// Adds a party that waits until the virtual time reaches its position.
    pub fn wait(&mut self, party: Slot, position: u64) {
        self.waiting.insert_late(&mut self.nodes, party, position, ());
    }

    /// Removes a party that waits.
    pub fn stop_waiting(&mut self, party: Slot) {
        self.waiting.remove(&mut self.nodes, party);
    }

    /// The party that has waited until now, or [`NIL`]: its position has been reached. Unless the
    /// virtual time stays, it moves to the least position.
    pub fn next_to_board(&mut self, stays: bool) -> Slot {
        let first = self.waiting.first();
        if first == NIL {
            return NIL;
        }
        let position = self.nodes[first].key();
        if position > self.time {
            if stays {
                return NIL;
            }
            self.time = position;
        }
        first
    }

    /// Adds an eligible party, to the sweep as well if its next request has a `sector`.
    pub fn board(&mut self, party: Slot, kind: Kind, finish: u64, sector: Option<u64>) {
        self.eligible.of_mut(kind).insert_late(&mut self.nodes, party, finish, ());
        match sector {
            Some(sector) => self.sweeps.of_mut(kind).insert(&mut self.sweep_nodes, party, sector),
            None => self.sweep_nodes[party].set_key(NO_SECTOR),
        }
    }

    /// Removes an eligible party.
    pub fn leave(&mut self, party: Slot, kind: Kind) {
        self.eligible.of_mut(kind).remove(&mut self.nodes, party);
        if self.is_in_sweep(party) {
            self.sweeps.of_mut(kind).remove(&mut self.sweep_nodes, party);
        }
    }

    /// Returns true if an eligible party is in the sweep of its kind.
    pub fn is_in_sweep(&self, party: Slot) -> bool {
        self.sweep_nodes[party].key() != NO_SECTOR
    }

    /// Moves a party in the sweep of its kind.
    pub fn move_in_sweep(&mut self, party: Slot, kind: Kind, sector: u64) {
        if self.sweep_nodes[party].key() != sector {
            let sweep = self.sweeps.of_mut(kind);
            sweep.remove(&mut self.sweep_nodes, party);
            sweep.insert(&mut self.sweep_nodes, party, sector);
        }
    }

    /// Returns true if a party is eligible.
    pub fn has_eligible(&self) -> bool {
        Kind::ALL.iter().any(|kind| self.has(*kind))
    }

    /// Returns true if a party of a kind is eligible.
    pub fn has(&self, kind: Kind) -> bool {
        !self.eligible.of(kind).is_empty()
    }

    /// The kind of the eligible party that finishes first, and the party.
    pub fn first(&self) -> Option<(Kind, Slot)> {
        let mut best: Option<(Kind, Slot, u64)> = None;
        for kind in Kind::ALL {
            let party = self.eligible.of(kind).first();
            let finish = self.nodes[party].key();
            if party != NIL && best.is_none_or(|(.., other)| finish < other) {
                best = Some((kind, party, finish));
            }
        }
        best.map(|(kind, party, _)| (kind, party))
    }

    /// The party of a kind whose next request is the first at or after `sector`; from the lowest
    /// one on if there is none.
    pub fn next_in_sweep(&self, kind: Kind, sector: u64) -> Slot {
        let sweep = self.sweeps.of(kind);
        let ahead = sweep.first_not_below(&self.sweep_nodes, sector);
        if ahead == NIL { sweep.first() } else { ahead }
    }
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Light, Kind::Scattered, Kind::Stream];
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
