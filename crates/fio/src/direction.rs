//! The directions of requests, values by direction, and the kinds of jobs by their directions.

use std::fmt;

/// Direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// A read from the disk.
    Read,
    /// A write to the disk.
    Write,
    /// A discard: the disk may forget the blocks.
    Trim,
}

impl Direction {
    /// All directions, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];
}

/// A value each for reads, writes and trims, as in fio's comma lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions<T> {
    /// The value for reads.
    pub read: T,
    /// The value for writes.
    pub write: T,
    /// The value for trims.
    pub trim: T,
}

impl<T> Directions<T> {
    /// The same value for all directions.
    pub fn both(value: T) -> Self
    where
        T: Clone,
    {
        Directions { read: value.clone(), write: value.clone(), trim: value }
    }

    /// The value of one direction.
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// The value of one direction, to change it.
    pub fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}

/// The kind of a job's requests: fio's `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rw {
    /// `read`: sequential reads.
    Read,
    /// `write`: sequential writes.
    Write,
    /// `randread`: random reads.
    Randread,
    /// `randwrite`: random writes.
    Randwrite,
    /// `rw` or `readwrite`: sequential, mixed by `rwmixread`.
    Readwrite,
    /// `randrw`: random, mixed by `rwmixread`.
    Randrw,
    /// `trim`: sequential trims.
    Trim,
    /// `randtrim`: random trims.
    Randtrim,
    /// `trimwrite`: sequential; each block is trimmed, then written.
    Trimwrite,
    /// `randtrimwrite`: random; each block is trimmed, then written.
    Randtrimwrite,
}

impl Rw {
    /// Returns true if any request reads.
    pub fn reads(self) -> bool {
        matches!(self, Rw::Read | Rw::Randread | Rw::Readwrite | Rw::Randrw)
    }

    /// Returns true if any request writes.
    pub fn writes(self) -> bool {
        !matches!(self, Rw::Read | Rw::Randread | Rw::Trim | Rw::Randtrim)
    }

    /// Returns true if any request is a trim.
    pub fn trims(self) -> bool {
        matches!(self, Rw::Trim | Rw::Randtrim | Rw::Trimwrite | Rw::Randtrimwrite)
    }

    /// Returns true if each block is trimmed and then written.
    pub fn trims_before_writes(self) -> bool {
        matches!(self, Rw::Trimwrite | Rw::Randtrimwrite)
    }

    /// Returns true if some requests have this direction.
    pub fn uses(self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.reads(),
            Direction::Write => self.writes(),
            Direction::Trim => self.trims(),
        }
    }

    /// Returns true if offsets are random.
    pub fn is_random(self) -> bool {
        matches!(self, Rw::Randread | Rw::Randwrite | Rw::Randrw | Rw::Randtrim | Rw::Randtrimwrite)
    }
}

impl fmt::Display for Rw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rw::Read => "read",
            Rw::Write => "write",
            Rw::Randread => "randread",
            Rw::Randwrite => "randwrite",
            Rw::Readwrite => "rw",
            Rw::Randrw => "randrw",
            Rw::Trim => "trim",
            Rw::Randtrim => "randtrim",
            Rw::Trimwrite => "trimwrite",
            Rw::Randtrimwrite => "randtrimwrite",
        })
    }
}
