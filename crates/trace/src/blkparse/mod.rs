//! blkparse's text in its default format: one line for each event, and a summary at the end.
//!
//! ```text
//! 254,0    1        3     0.002654800   127  Q  WS 88096 + 32 [load]
//! device cpu sequence seconds       process  action and operation, sector + sectors [name]
//! ```
//!
//! [`Writer`] prints the same bytes as blkparse 1.2 for the same records. The rules for counts,
//! lengths and depths were determined from its output for generated records. Known intentional
//! differences:
//!
//! - A process has its latest name. blkparse keeps the first name, which is wrong after process ids
//!   are reused.
//! - A name is valid from its record on. blkparse reads 512 records ahead and may use it earlier.
//! - A request of 2 GiB or more counts in full. blkparse counts its completion as negative.

mod line;
mod reader;
mod summary;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
