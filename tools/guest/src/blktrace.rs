//! Traces of a block device, by the kernel's blktrace interface (`linux/blktrace_api.h`).

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{Outcome, system};

const BLKTRACESETUP: u32 = 0xc048_1273;
const BLKTRACESTART: u32 = 0x1274;
const BLKTRACESTOP: u32 = 0x1275;
const BLKTRACETEARDOWN: u32 = 0x1276;

/// The bytes of `struct blk_user_trace_setup`.
const SETUP_BYTES: usize = 72;
/// The bytes of `struct blk_io_trace`.
const HEAD_BYTES: usize = 48;
/// `BLK_IO_TRACE_MAGIC` with `BLK_IO_TRACE_VERSION`.
const MAGIC: u32 = 0x6561_7407;
/// The category of reads in an action.
const READ: u32 = 1 << 16;
/// The category of notifications in an action.
const NOTIFY: u32 = 1 << (16 + 10);
/// The mark of actions that are followed by the number of a control group.
const OF_GROUP: u32 = 1 << 8;

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A bio came (Q).
    Queue,
    /// A bio was merged into a request (M or F).
    Merge,
    /// A request was inserted into the elevator (I).
    Insert,
    /// A request was given to the driver (D).
    Issue,
    /// A request has completed (C).
    Complete,
    /// Something else.
    Other,
}

/// An event of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of a read.
    Read(Action),
    /// A message.
    Message(String),
    /// An event of something else.
    Other,
}

/// A running trace of a device. Dropping it removes it.
#[derive(Debug)]
pub struct Trace {
    device: File,
    directory: PathBuf,
}

impl Trace {
    /// Starts a trace. Returns None if the kernel has no such interface.
    pub fn start(path: &Path) -> Outcome<Option<Trace>> {
        let name = path.file_name().unwrap_or_default();
        let directory = Path::new("/sys/kernel/debug/block").join(name);
        if !directory.is_dir() {
            return Ok(None);
        }
        let device = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut setup = [0; SETUP_BYTES];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = setup.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(32, &u16::MAX.to_ne_bytes()); // act_mask
        put(36, &(512u32 << 10).to_ne_bytes()); // buf_size
        put(40, &4u32.to_ne_bytes()); // buf_nr
        put(56, &u64::MAX.to_ne_bytes()); // end_lba
        match system::control(&device, BLKTRACESETUP, &mut setup) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => return Ok(None),
            Err(error) => return Err(format!("BLKTRACESETUP of {}: {error}", path.display())),
        }
        let trace = Trace { device, directory };
        trace.control(BLKTRACESTART)?;
        Ok(Some(trace))
    }

    /// Ends the trace and returns its events, those of each processor in their order. Fails if
    /// events were lost, or if something of the trace is left.
    pub fn finish(self) -> Outcome<Vec<Event>> {
        self.control(BLKTRACESTOP)?;
        let mut events = Vec::new();
        for path in self.files("trace") {
            let mut bytes = Vec::new();
            let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
            read.map_err(|error| format!("{}: {error}", path.display()))?;
            events.append(&mut parse(&bytes).map_err(|error| format!("{}: {error}", path.display()))?);
        }
        let dropped = system::read(self.directory.join("dropped"))?;
        if dropped != "0" {
            return Err(format!("the trace lost {dropped} events"));
        }
        self.control(BLKTRACETEARDOWN)?;
        let left: Vec<String> = ["trace", "dropped", "msg"]
            .iter()
            .flat_map(|name| self.files(name))
            .map(|path| path.display().to_string())
            .collect();
        if !left.is_empty() {
            return Err(format!("the trace left {}", left.join(", ")));
        }
        match system::control(&self.device, BLKTRACESTART, &mut []) {
            Ok(()) => Err("a trace that was removed can be started".to_owned()),
            Err(_) => Ok(events),
        }
    }

    fn control(&self, number: u32) -> Outcome<()> {
        let result = system::control(&self.device, number, &mut []);
        result.map_err(|error| format!("ioctl {number:#x} of {}: {error}", self.directory.display()))
    }

    /// The files of the trace whose names begin with a text.
    fn files(&self, beginning: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning))
            .map(|entry| entry.path())
            .collect();
        paths.sort();
        paths
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // A trace that has ended is no longer there.
        let _ = system::control(&self.device, BLKTRACESTOP, &mut []);
        let _ = system::control(&self.device, BLKTRACETEARDOWN, &mut []);
    }
}

/// Parses the events of one processor.
fn parse(bytes: &[u8]) -> Outcome<Vec<Event>> {
    let (mut events, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let (Some(magic), Some(action), Some(length)) = (number(rest, 0, 4), number(rest, 28, 4), number(rest, 46, 2))
        else {
            return Err(format!("the event at byte {at} is cut off"));
        };
        if magic != MAGIC {
            return Err(format!("the event at byte {at} begins with {magic:#x} instead of {MAGIC:#x}"));
        }
        let text = rest.get(HEAD_BYTES..HEAD_BYTES + length as usize);
        let text = text.ok_or_else(|| format!("the data of the event at byte {at} are cut off"))?;
        events.push(event(action, text));
        at += HEAD_BYTES + length as usize;
    }
    Ok(events)
}

/// A number of some bytes in the byte order of the machine, which is little-endian.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    Some(bytes.get(at..at + length)?.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

fn event(action: u32, text: &[u8]) -> Event {
    let text = if action & OF_GROUP != 0 { text.get(8..).unwrap_or_default() } else { text };
    let kind = action & 0xff;
    if action & NOTIFY != 0 {
        return match kind {
            2 => Event::Message(String::from_utf8_lossy(text).into_owned()),
            _ => Event::Other,
        };
    }
    if action & READ == 0 {
        return Event::Other;
    }
    Event::Read(match kind {
        1 => Action::Queue,
        2 | 3 => Action::Merge,
        7 => Action::Issue,
        8 => Action::Complete,
        12 => Action::Insert,
        _ => Action::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(action: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[28..32].copy_from_slice(&action.to_le_bytes());
        bytes[46..48].copy_from_slice(&(text.len() as u16).to_le_bytes());
        bytes.extend_from_slice(text);
        bytes
    }

    #[test]
    fn events_of_reads_and_messages_are_parsed() {
        let mut trace = bytes(READ | 12 | 1 << 20, &[]);
        trace.extend(bytes(NOTIFY | 2, b"cfq 7: activate 1 (2)"));
        trace.extend(bytes(NOTIFY | OF_GROUP | 2, b"12345678cfq 8"));
        trace.extend(bytes(2 << 16 | 7, &[]));
        let message = |text: &str| Event::Message(text.to_owned());
        let expected =
            vec![Event::Read(Action::Insert), message("cfq 7: activate 1 (2)"), message("cfq 8"), Event::Other];
        assert_eq!(parse(&trace), Ok(expected));
    }

    #[test]
    fn a_damaged_trace_is_an_error() {
        assert!(parse(&[0; 48]).is_err_and(|error| error.contains("begins with 0x0")));
        assert!(parse(&bytes(READ, b"text")[..50]).is_err_and(|error| error.contains("cut off")));
    }
}
