//! The kernel's buffers of events, one a CPU, being read.

use std::fs::File;
use std::io::{self, Read};

use super::sink::Sink;
use super::{CaptureError, now_ns};

/// The most that is read of a CPU before the others have their turn, in bytes.
const ROUND_BYTES: usize = 4 << 20;
/// What is written this long before it is read is complete, in ns: an interrupt may keep a CPU from
/// finishing an event.
const SETTLED_NS: u64 = 1_000_000;

/// The buffer of a CPU.
#[derive(Debug)]
pub(super) struct Pipe {
    /// The CPU's number.
    pub number: u32,
    file: File,
    /// What was read and is not taken yet: the beginning of a record, or of a line.
    pub given: Vec<u8>,
    /// The time of the last event that was taken, in ns.
    pub last_ns: u64,
}

impl Pipe {
    pub fn new(number: u32, file: File) -> Pipe {
        Pipe { number, file, given: Vec::new(), last_ns: 0 }
    }

    /// Reads what is there, at most a round's; answers whether that was all.
    pub fn fill(&mut self) -> Result<bool, CaptureError> {
        drain(&mut self.file, &mut self.given, ROUND_BYTES)
            .map_err(|cause| CaptureError::of(format!("the events of CPU {}", self.number), cause))
    }
}

/// The time before which nothing more will come of a CPU whose buffer is read to its end from now
/// on.
pub(super) fn settled_ns() -> u64 {
    now_ns().saturating_sub(SETTLED_NS)
}

/// Takes the records that are there of each CPU; answers the time before which nothing more will
/// come.
pub(super) fn take_records<'a>(
    pipes: impl Iterator<Item = &'a mut Pipe>,
    sink: &mut Sink,
) -> Result<u64, CaptureError> {
    let mut complete_to_ns = settled_ns();
    for pipe in pipes {
        let is_all = pipe.fill()?;
        if let Some(last_ns) = sink.feed(&mut pipe.given) {
            pipe.last_ns = last_ns;
        }
        if !is_all {
            complete_to_ns = complete_to_ns.min(pipe.last_ns);
        }
    }
    Ok(complete_to_ns)
}

/// Appends what a file has to give now, at most `bytes_max`; answers whether that was all.
///
/// # Errors
/// What the system says.
fn drain(file: &mut File, into: &mut Vec<u8>, bytes_max: usize) -> io::Result<bool> {
    /// More than tracefs gives at once.
    const STEP_BYTES: usize = 64 << 10;
    let before = into.len();
    while into.len() - before < bytes_max {
        let at = into.len();
        into.resize(at + STEP_BYTES, 0);
        let got = file.read(&mut into[at..]);
        into.truncate(at + got.as_ref().map_or(0, |got| *got));
        match got {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
