//! hoistway's own CSV: one line for each event, with all fields of the event.
//!
//! | column | |
//! |---|---|
//! | `time_ns` | ns of the recorder's clock |
//! | `action` | blkparse's letters, `N` for the name of a process, `T` for the wall-clock time |
//! | `device` | as in `8:0` |
//! | `cpu`, `pid`, `sequence` | 0 if unknown |
//! | `rwbs` | blkparse's letters, followed by `P` for a passed-through command |
//! | `sector`, `bytes` | sectors of 512 bytes |
//! | `error` | error number of a completion |
//! | `cgroup` | control group id |
//! | `process` | last recorded name of the process |
//! | `payload` | text of messages and names, with `\\` and `\xNN` for unprintable bytes; hexadecimal digits for other payloads |
//!
//! Fields with commas or quotes are quoted, and inner quotes are doubled (RFC 4180). A field never
//! contains a line break.

mod reader;
mod writer;

pub(crate) use reader::{Csv, action_of, op_of};
pub use writer::Writer;
pub(crate) use writer::rwbs_text;

/// First line of a file.
pub(crate) const HEADER: &str = "time_ns,action,device,cpu,pid,sequence,rwbs,sector,bytes,error,cgroup,process,payload";
/// Start of the first line, by which the format is detected.
pub(crate) const HEADER_BEGINNING: &[u8] = b"time_ns,action,";
