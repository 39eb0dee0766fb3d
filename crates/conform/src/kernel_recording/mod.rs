//! Replays of recordings that hoistway's kernel module made: every call of the core inside a
//! running kernel, with its arguments, its time and its answer. The same calls of hoistway's
//! crates must have the same answers.
//!
//! A recording is a header of 64 bytes and records of 64 bytes, all numbers little-endian
//! (`kernel/record.h`). Each record describes one call.
//! - [`Call`] is the table of the calls with their fields; [`Record`] is one call with its words
//! - [`Reader`] converts bytes to records and checks them; [`Record::to_bytes`] converts back
//! - `queue.rs` makes the calls, [`Replay`] compares the answers
//! - [`replay_recording`] replays a file, compressed or not

mod call;
mod error;
mod file;
mod queue;
mod reader;
mod record;
mod replay;
mod start;

pub use call::Call;
pub use error::{RecordError, RecordingError};
pub use file::{AnswerCount, RecordingReport, for_each_record, is_recording, replay_recording};
pub use reader::{Header, Reader};
pub use record::{RECORD_SIZE, Record};
pub use replay::{RecordDifference, Replay};
