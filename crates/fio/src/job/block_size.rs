//! Sizes of requests: `bs`, `bsrange` and `bssplit`.

use std::fmt;

use crate::{
    units::print_size,
    values::{Fault, Value, with_blanks},
};

const BSSPLIT_MAX: usize = 64;

/// The size of requests of one direction, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// One size, at least 1.
    Fixed(u64),
    /// A multiple of `min`, up to `max`; `1 <= min <= max`.
    Range {
        /// The smallest size, and the step.
        min: u64,
        /// The largest size.
        max: u64,
    },
    /// Sizes drawn by percentage; 1 to 64 entries whose percentages add up to 100.
    Split(Vec<SplitEntry>),
}

/// One size of a `bssplit` and its share of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitEntry {
    /// The size of a request, in bytes, at least 1.
    pub bytes: u64,
    /// Share of the requests, 0 to 100. Shares left blank have been given the rest.
    pub percent: u8,
}

impl BlockSize {
    /// The smallest request, in bytes.
    pub fn min(&self) -> u64 {
        match self {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { min, .. } => *min,
            BlockSize::Split(entries) => entries.iter().map(|e| e.bytes).min().unwrap_or(0),
        }
    }

    /// The largest request, in bytes.
    pub fn max(&self) -> u64 {
        match self {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { max, .. } => *max,
            BlockSize::Split(entries) => entries.iter().map(|e| e.bytes).max().unwrap_or(0),
        }
    }
}

/// The form of a job file, without the percentages' place in a comma list.
impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockSize::Fixed(bytes) => f.write_str(&print_size(*bytes)),
            BlockSize::Range { min, max } => write!(f, "{}-{}", print_size(*min), print_size(*max)),
            BlockSize::Split(entries) => {
                for (i, entry) in entries.iter().enumerate() {
                    let colon = if i > 0 { ":" } else { "" };
                    write!(f, "{colon}{}/{}", print_size(entry.bytes), entry.percent)?;
                }
                Ok(())
            }
        }
    }
}

/// Parses a block size: a number, not a range.
pub(super) fn block_size(v: Value) -> Result<BlockSize, Fault> {
    let value = v.text;
    if value.contains('-') && !value.starts_with('-') {
        return Err(Fault::with_help(format!("`{value}` is a range"), format!("write bsrange={value}")));
    }
    if value.contains(['/', ':']) {
        let message = format!("`{value}` is not one size");
        return Err(Fault::with_help(
            message,
            "commas stand between reads, writes and trims; a mix of sizes is bssplit=",
        ));
    }
    v.count(1).map(BlockSize::Fixed)
}

/// Parses a range of block sizes.
pub(super) fn block_range(v: Value) -> Result<BlockSize, Fault> {
    let value = v.text;
    if !value.contains(['-', ':']) {
        return Err(Fault::with_help(format!("`{value}` is not a range"), format!("write bs={value}, or 1k-4k")));
    }
    let range = v.range(|part| part.count(1))?;
    Ok(BlockSize::Range { min: *range.start(), max: *range.end() })
}

/// Parses a mix of block sizes, `4k/50:8k/30:64k/`. Blank percentages share the rest; if it does
/// not divide evenly, the earlier ones get one more.
pub(super) fn block_split(v: Value) -> Result<BlockSize, Fault> {
    let mut entries: Vec<(u64, Option<u8>)> = Vec::new();
    for part in v.text.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.trim().is_empty() { None } else { Some(v.part(share).percent()?) };
        entries.push((v.part(bytes).count(1)?, share));
    }
    if entries.len() > BSSPLIT_MAX {
        return Err(Fault::with_help(format!("{} block sizes", entries.len()), format!("at most {BSSPLIT_MAX}")));
    }
    let given: u64 = entries.iter().filter_map(|(_, share)| *share).map(u64::from).sum();
    let blanks = entries.iter().filter(|(_, share)| share.is_none()).count() as u64;
    if given > 100 || (given < 100 && blanks == 0) {
        let message = format!("the percentages add up to {given}");
        return Err(Fault::with_help(message, "they must add up to 100; a blank one, as in 64k/, takes what is left"));
    }
    let shares = with_blanks(&entries.iter().map(|(_, share)| *share).collect::<Vec<_>>());
    let split = entries.iter().zip(shares).map(|((bytes, _), percent)| SplitEntry { bytes: *bytes, percent }).collect();
    Ok(BlockSize::Split(split))
}
