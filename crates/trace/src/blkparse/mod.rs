//! blkparse's text, in its default format: a line an event, and a summary at the end.
//!
//! ```text
//! 254,0    1        3     0.002654800   127  Q  WS 88096 + 32 [load]
//! device cpu sequence seconds       process  action and what it does, sector + sectors [name]
//! ```
//!
//! [`Writer`] prints what blkparse 1.2 prints of the same records, to the byte; how counts, lengths and depths come about was found out by giving it records and
//! looking at what it printed. Known differences, all on purpose:
//!
//! - a process goes by its latest name; blkparse keeps the first, which is another process's where numbers came round again;
//! - a name holds from its record on; blkparse reads 512 records ahead and may know it earlier;
//! - a request of 2 GiB or more counts in full; blkparse takes its completion for a negative one.

mod line;
mod reader;
mod summary;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
