//! Numbers of bytes, or percentages of a size: `size`, `io_size`, `offset`.

use std::fmt;

use crate::units::print_size;

/// A number of bytes, or a percentage of a size that the job file does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage, 1 to 100.
    Percent(u8),
}

impl Size {
    /// The number of bytes, given the size of the whole.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            // Split so that no product overflows.
            Size::Percent(percent) => {
                let percent = u64::from(percent);
                whole / 100 * percent + whole % 100 * percent / 100
            }
        }
    }
}

/// The form of a job file.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Bytes(bytes) => f.write_str(&print_size(*bytes)),
            Size::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
