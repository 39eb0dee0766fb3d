//! The classes of requests: read or write, and the distance from the request before.

use crate::bio::Op;

use Distance::{Continues, Far1, Far2, Far3, Far4, Near};

/// A request continues another one if it begins at most this many sectors after its end.
const GAP_SECTORS: u64 = 128;
/// The distances up to which the classes reach, in sectors: 4 MiB, 256 MiB, 4 GiB, 64 GiB.
const REACHES: [(Distance, u64); 4] = [(Near, 1 << 13), (Far1, 1 << 19), (Far2, 1 << 23), (Far3, 1 << 27)];

/// The distance of a request from the end of another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distance {
    #[default]
    Continues,
    Near,
    Far1,
    Far2,
    Far3,
    Far4,
}

/// The number of distances.
const DISTANCES: usize = 6;

impl Distance {
    pub const ALL: [Distance; DISTANCES] = [Continues, Near, Far1, Far2, Far3, Far4];

    /// The distance from the end of a request to the sector of the next one.
    pub fn between(end: u64, sector: u64) -> Distance {
        if (end..=end.saturating_add(GAP_SECTORS)).contains(&sector) {
            return Continues;
        }
        let sectors = end.abs_diff(sector);
        REACHES.iter().find(|(_, reach)| sectors <= *reach).map_or(Far4, |(distance, _)| *distance)
    }

    /// Returns true for more than 4 MiB.
    pub fn is_far(self) -> bool {
        !matches!(self, Continues | Near)
    }
}

/// The number of classes.
pub const CLASSES: usize = 2 * DISTANCES;

/// The class of a request for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostClass {
    pub is_write: bool,
    pub distance: Distance,
}

impl CostClass {
    /// The class of an operation. Discards and flushes count as writes.
    pub fn of(op: Op, distance: Distance) -> CostClass {
        CostClass { is_write: op != Op::Read, distance }
    }

    /// The index of the class, below [`CLASSES`].
    pub fn index(self) -> usize {
        usize::from(self.is_write).saturating_mul(DISTANCES).saturating_add(self.distance as usize)
    }
}
