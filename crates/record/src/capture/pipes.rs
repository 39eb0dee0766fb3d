//! Reads the kernel's event buffers, one per CPU.

use std::fs::File;
use std::io::{self, Read};

use super::sink::Sink;
use super::{CaptureError, now_ns};

/// The maximum number of bytes that are read of a CPU before the next one.
const ROUND_BYTES: usize = 4 << 20;
/// The age in ns from which events are complete: an interrupt may delay the end of an event.
const SETTLED_NS: u64 = 1_000_000;

/// The event buffer of a CPU.
#[derive(Debug)]
pub(super) struct Pipe {
    /// The number of the CPU.
    pub number: u32,
    file: File,
    /// Bytes that were read and not consumed: the beginning of a record or of a line.
    pub pending: Vec<u8>,
    /// The time of the last consumed event in ns.
    pub last_ns: u64,
}

impl Pipe {
    pub fn new(number: u32, file: File) -> Pipe {
        Pipe { number, file, pending: Vec::new(), last_ns: 0 }
    }

    /// Reads the available bytes, at most one round's. Returns true if the buffer is empty.
    pub fn fill(&mut self) -> Result<bool, CaptureError> {
        drain(&mut self.file, &mut self.pending, ROUND_BYTES)
            .map_err(|cause| CaptureError::of(format!("the events of CPU {}", self.number), cause))
    }
}

/// Returns the time before which a CPU has no further events if its buffer is read to its end from
/// now on.
pub(super) fn settled_ns() -> u64 {
    now_ns().saturating_sub(SETTLED_NS)
}

/// Reads the available records of each CPU. Returns the time in ns before which all records have
/// been read.
pub(super) fn take_records<'a>(
    pipes: impl Iterator<Item = &'a mut Pipe>,
    sink: &mut Sink,
) -> Result<u64, CaptureError> {
    let mut complete_to_ns = settled_ns();
    for pipe in pipes {
        let is_all = pipe.fill()?;
        if let Some(last_ns) = sink.feed(&mut pipe.pending) {
            pipe.last_ns = last_ns;
        }
        if !is_all {
            complete_to_ns = complete_to_ns.min(pipe.last_ns);
        }
    }
    Ok(complete_to_ns)
}

/// Appends the available bytes of a file, at most `bytes_max`. Returns true if the end was reached.
///
/// # Errors
/// The error of the system call.
fn drain(file: &mut File, into: &mut Vec<u8>, bytes_max: usize) -> io::Result<bool> {
    /// More than tracefs returns at once.
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
