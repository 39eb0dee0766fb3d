//! hoistway's own CSV: a line an event, with everything that an event has.
//!
//! | column | |
//! |---|---|
//! | `time_ns` | ns of the recorder's clock |
//! | `action` | blkparse's letters, `N` for a process's name, `T` for the time of the day |
//! | `device` | as in `8:0` |
//! | `cpu`, `pid`, `sequence` | 0 where they are not known |
//! | `rwbs` | blkparse's letters, with a `P` behind those of a command that is passed through |
//! | `sector`, `bytes` | sectors have 512 bytes |
//! | `error` | the number of the system's error, of completions |
//! | `cgroup` | the control group's number |
//! | `process` | the name that was told last for the pid |
//! | `payload` | the text of messages and names, with `\\` and `\xNN` for what does not print; hexadecimal digits for all others |
//!
//! Fields with commas or quotes in them stand in quotes, with inner quotes doubled (RFC 4180). A line of the file is always a line of the table.

mod reader;
mod writer;

pub(crate) use reader::Csv;
pub use writer::Writer;

/// The first line of such a file.
pub(crate) const HEADER: &str = "time_ns,action,device,cpu,pid,sequence,rwbs,sector,bytes,error,cgroup,process,payload";
/// What tells the file from others.
pub(crate) const HEADER_BEGINNING: &[u8] = b"time_ns,action,";
