//! A recording of what passes through the devices' queues, in blktrace's format.
//!
//! The reactor hands events over in batches and never waits: a thread of the recording's own writes them. What it cannot take in time is dropped,
//! counted, and told at the end.
//!
//! In the files, a "process" is a connection: it goes by the number that its device gave it, and by its tenant's name. Everything happens on CPU 0, and the device
//! numbers are 43 (NBD's major) and the place of the device in the configuration. The elevators' notes are messages.

mod notes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use hoistway_core::{Event, Io, Op};
use hoistway_trace::blktrace::{self, Action, Request, Writer, device_number};

use crate::device::Record;

/// Events are handed over by so many, or after [`BATCH_NS_MAX`].
const BATCH_EVENTS: usize = 1024;
/// For so long at most an event waits for others, if any come: 0.1 s.
const BATCH_NS_MAX: u64 = 100_000_000;
/// So many batches may wait to be written: 65,536 events, some 5 MB.
const BATCHES_MAX: usize = 64;
/// The major number of NBD's devices.
const MAJOR: u32 = 43;

/// Why a recording was not begun, or is not whole.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file.
    #[error("cannot record to {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The thread was not started, or broke down.
    #[error("the thread that writes the recording: {0}")]
    Thread(String),
}

/// What became of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Events that were written.
    pub written: u64,
    /// Events that were dropped, because they came faster than they could be written, or because writing had failed.
    pub dropped: u64,
    /// Why writing failed, if it did: what came after that is missing.
    pub failed: Option<String>,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recording {
    batches: Option<SyncSender<Batch>>,
    dropped: Arc<AtomicU64>,
    files: Vec<PathBuf>,
    writer: Option<JoinHandle<Written>>,
}

impl Recording {
    /// Begins one: `path.blktrace.0` for one device, `path.DEVICE.blktrace.0` for each of several. Files that are there are overwritten.
    ///
    /// `now_ns` and `since_1970_ns` are the same moment on the server's clock and on the wall's.
    ///
    /// # Errors
    /// A file that cannot be made; then none is left behind that was not there before.
    pub fn start(path: &Path, devices: &[&str], now_ns: u64, since_1970_ns: u64) -> Result<Recording, RecordError> {
        let files: Vec<PathBuf> = devices.iter().map(|device| file_of(path, device, devices.len() > 1)).collect();
        let mut tracks = Vec::new();
        for (at, path) in files.iter().enumerate() {
            let error = |source| RecordError::File { path: path.clone(), source };
            let file = File::create(path).map_err(error)?;
            let device = device_number(MAJOR, u32::try_from(at).unwrap_or(0));
            let mut track = Track::new(Writer::new(BufWriter::with_capacity(1 << 18, file), device, 0));
            track.writer.start(now_ns, since_1970_ns).map_err(error)?;
            tracks.push(track);
        }
        let (batches, taken) = sync_channel(BATCHES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let of_writer = Arc::clone(&dropped);
        let writer = std::thread::Builder::new()
            .name("record".into())
            .spawn(move || write_all(&taken, tracks, &of_writer))
            .map_err(|error| RecordError::Thread(error.to_string()))?;
        Ok(Recording { batches: Some(batches), dropped, files, writer: Some(writer) })
    }

    /// What takes the events of a device, by its place among those that the recording began with.
    pub fn tap(&self, device: usize) -> Tap {
        Tap {
            device,
            batch: Vec::with_capacity(BATCH_EVENTS),
            since_ns: None,
            batches: self.batches.clone(),
            dropped: Arc::clone(&self.dropped),
        }
    }

    /// Events that were dropped until now.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Ends it, and waits until everything is written. All [`Tap`]s have to be dropped before: what they hold is written then.
    ///
    /// # Errors
    /// A thread that broke down.
    pub fn finish(mut self) -> Result<Summary, RecordError> {
        // The taps are gone, so the thread ends once this end of the channel is.
        self.batches = None;
        let joined = self.writer.take().map(JoinHandle::join);
        let written = match joined {
            Some(Ok(written)) => written,
            _ => return Err(RecordError::Thread("it panicked".into())),
        };
        let files = std::mem::take(&mut self.files);
        Ok(Summary { files, written: written.events, dropped: self.dropped(), failed: written.failed })
    }
}

/// Takes the events of one device.
#[derive(Debug)]
pub struct Tap {
    device: usize,
    batch: Vec<Entry>,
    /// When the first event of the batch happened.
    since_ns: Option<u64>,
    batches: Option<SyncSender<Batch>>,
    dropped: Arc<AtomicU64>,
}

impl Tap {
    fn hand_over(&mut self) {
        let entries = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_EVENTS));
        let batch = Batch { device: self.device, entries };
        let Some(batches) = &self.batches else { return };
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = batches.try_send(batch) {
            self.dropped.fetch_add(events_in(&batch.entries), Ordering::Relaxed);
            // Names are few and told once only: they stay for the next batch. The memory serves again.
            self.batch = batch.entries;
            self.batch.retain(|entry| matches!(entry, Entry::Name { .. }));
        }
    }
}

impl Record for Tap {
    fn record(&mut self, now_ns: u64, event: &Event) {
        let waits_too_long = self.since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > BATCH_NS_MAX);
        self.since_ns.get_or_insert(now_ns);
        self.batch.push(Entry::Event(now_ns, *event));
        if waits_too_long || self.batch.len() >= BATCH_EVENTS {
            self.since_ns = None;
            self.hand_over();
        }
    }

    fn name(&mut self, number: u32, name: &str) {
        self.batch.push(Entry::Name { number, name: name.to_owned() });
    }
}

impl Drop for Tap {
    /// The last events may wait for the thread a moment: the device is gone, and nobody waits for it.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.batch);
        if let Some(batches) = self.batches.take().filter(|_| !entries.is_empty()) {
            let count = events_in(&entries);
            if batches.send(Batch { device: self.device, entries }).is_err() {
                self.dropped.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

/// What goes to the thread.
#[derive(Debug)]
struct Batch {
    device: usize,
    entries: Vec<Entry>,
}

/// Something to be written.
#[derive(Debug)]
enum Entry {
    /// What happened, and when.
    Event(u64, Event),
    /// What a connection is called from now on.
    Name { number: u32, name: String },
}

fn events_in(entries: &[Entry]) -> u64 {
    entries.iter().filter(|entry| matches!(entry, Entry::Event(..))).count() as u64
}

/// What the thread did.
#[derive(Debug, Default)]
struct Written {
    events: u64,
    failed: Option<String>,
}

/// The file of one device.
struct Track {
    writer: Writer<BufWriter<File>>,
    names: BTreeMap<u32, String>,
    /// Processes whose names stand in the file.
    named: BTreeSet<u32>,
}

impl Track {
    fn new(writer: Writer<BufWriter<File>>) -> Track {
        Track { writer, names: BTreeMap::new(), named: BTreeSet::new() }
    }

    fn name(&mut self, number: u32, name: String) {
        self.names.insert(number, name);
        self.named.remove(&number);
    }

    fn write(&mut self, now_ns: u64, event: &Event) -> io::Result<()> {
        if let Some(number) = pid_of(event).filter(|number| !self.named.contains(number)) {
            if let Some(name) = self.names.get(&number) {
                self.writer.process(now_ns, number, name)?;
            }
            self.named.insert(number);
        }
        let (action, io) = match event {
            Event::Queue(io) => (Action::Queue, io),
            Event::Get(io) => (Action::Get, io),
            Event::Sleep(io) => (Action::Sleep, io),
            // A request that closed up with its neighbour was merged to the end of it.
            Event::BackMerge { bio: io, .. } | Event::Join { request: io, .. } => (Action::BackMerge, io),
            Event::FrontMerge { bio, .. } => (Action::FrontMerge, bio),
            Event::Insert(io) => (Action::Insert, io),
            Event::Issue(io) => (Action::Issue, io),
            Event::Requeue(io) => (Action::Requeue, io),
            Event::Complete(io) => (Action::Complete, io),
            Event::Plug => return self.writer.plug(now_ns, 0),
            Event::Unplug { waiting } => return self.writer.unplug(now_ns, 0, *waiting, false),
            Event::UnplugTimer => return self.writer.unplug(now_ns, 0, 0, true),
            Event::Note(note) => return self.writer.message(now_ns, notes::queue_of(note), &notes::text(note)),
        };
        self.writer.request(now_ns, action, request(io), 0)
    }
}

/// Writes until all taps and the recording are gone.
fn write_all(taken: &Receiver<Batch>, mut tracks: Vec<Track>, dropped: &AtomicU64) -> Written {
    let mut written = Written::default();
    while let Ok(Batch { device, entries }) = taken.recv() {
        let Some(track) = tracks.get_mut(device).filter(|_| written.failed.is_none()) else {
            dropped.fetch_add(events_in(&entries), Ordering::Relaxed);
            continue;
        };
        let before = written.events;
        for entry in &entries {
            match entry {
                Entry::Name { number, name } => track.name(*number, name.clone()),
                Entry::Event(now_ns, event) => match track.write(*now_ns, event) {
                    Ok(()) => written.events += 1,
                    Err(error) => {
                        fail(&mut written, &error);
                        break;
                    }
                },
            }
        }
        dropped.fetch_add(events_in(&entries).saturating_sub(written.events - before), Ordering::Relaxed);
    }
    for track in &mut tracks {
        if let Err(error) = track.writer.flush() {
            fail(&mut written, &error);
        }
    }
    written
}

fn fail(written: &mut Written, error: &io::Error) {
    if written.failed.is_none() {
        tracing::error!("the recording ends here: {error}");
        written.failed = Some(error.to_string());
    }
}

fn file_of(path: &Path, device: &str, several: bool) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    // A whole name of a file is taken for what it says.
    if let Some(stem) = path.to_str().and_then(|path| path.strip_suffix(".blktrace.0")) {
        name = stem.into();
    }
    if several {
        name.push(format!(".{device}"));
    }
    name.push(".blktrace.0");
    name.into()
}

fn request(io: &Io) -> Request {
    let op = match io.op {
        Op::Read => blktrace::Op::Read,
        Op::Write => blktrace::Op::Write,
        Op::Discard => blktrace::Op::Discard,
        Op::Flush => blktrace::Op::Flush,
    };
    Request { pid: io.pid, op, sector: io.sector, sectors: io.sectors }
}

/// Whose an event is.
fn pid_of(event: &Event) -> Option<u32> {
    match event {
        Event::Queue(io) | Event::Get(io) | Event::Sleep(io) | Event::Insert(io) => Some(io.pid),
        Event::Issue(io) | Event::Requeue(io) | Event::Complete(io) => Some(io.pid),
        Event::BackMerge { bio, .. } | Event::FrontMerge { bio, .. } => Some(bio.pid),
        Event::Join { request, .. } => Some(request.pid),
        Event::Plug | Event::Unplug { .. } | Event::UnplugTimer | Event::Note(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_core::Note;
    use std::process::Command;

    fn io(token: u64, pid: u32) -> Io {
        Io { token, pid, op: Op::Read, sector: token * 8, sectors: 8 }
    }

    #[test]
    fn what_is_recorded_is_what_blkparse_reads() {
        let folder = tempfile::tempdir().unwrap();
        let recording =
            Recording::start(&folder.path().join("rec"), &["sda"], 1_000, 1_700_000_000_000_000_000).unwrap();
        let mut tap = recording.tap(0);
        tap.name(5, "database");
        for token in 0..3_000u64 {
            let now_ns = 1_000 + token * 1_000_000;
            for event in [Event::Queue(io(token, 5)), Event::Get(io(token, 5)), Event::Insert(io(token, 5))] {
                tap.record(now_ns, &event);
            }
            tap.record(now_ns, &Event::Note(Note::Activate { queue: 5, level: 4 }));
            tap.record(now_ns + 10, &Event::Issue(io(token, 5)));
            tap.record(now_ns + 500_000, &Event::Complete(io(token, 5)));
        }
        drop(tap);
        let summary = recording.finish().unwrap();
        let file = folder.path().join("rec.blktrace.0");
        assert_eq!(summary, Summary { files: vec![file.clone()], written: 18_000, dropped: 0, failed: None });
        // 15,000 records of requests, 3,000 messages, a time and a name.
        let text = "slice of 5 begins, level 4";
        let expected = 18_000 * 48 + 3_000 * text.len() + (48 + 8) + (48 + 16);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), expected as u64);
        let Ok(output) = Command::new("blkparse").args(["-i", "rec"]).current_dir(folder.path()).output() else {
            return eprintln!("SKIPPED: blkparse does not run here; Debian has it in the package blktrace");
        };
        let parsed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(parsed.contains("Reads Queued:        3000,    12000KiB"), "{}", &parsed[parsed.len() - 900..]);
        assert!(parsed.contains("Reads Completed:     3000,    12000KiB"));
        assert!(parsed.contains(text) && parsed.contains("Q   R 23992 + 8 [database]"));
    }

    #[test]
    fn each_of_several_devices_has_a_file_and_a_whole_name_is_taken_for_what_it_says() {
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(file_of(&path("/x/rec"), "sda", false), path("/x/rec.blktrace.0"));
        assert_eq!(file_of(&path("/x/rec.blktrace.0"), "sda", false), path("/x/rec.blktrace.0"));
        assert_eq!(file_of(&path("rec"), "sda", true), path("rec.sda.blktrace.0"));
    }

    #[test]
    fn what_cannot_be_written_in_time_is_dropped_and_counted() {
        let (batches, kept_full) = sync_channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let mut tap =
            Tap { device: 0, batch: Vec::new(), since_ns: None, batches: Some(batches), dropped: Arc::clone(&dropped) };
        tap.name(1, "kept");
        for token in 0..BATCH_EVENTS as u64 * 2 + 6 {
            tap.record(token, &Event::Queue(io(token, 1)));
        }
        assert_eq!(dropped.load(Ordering::Relaxed), BATCH_EVENTS as u64 * 2 - 2, "each batch began with the name");
        assert!(matches!(&tap.batch[0], Entry::Name { number: 1, .. }));
        drop(kept_full);
        drop(tap);
        assert_eq!(dropped.load(Ordering::Relaxed), BATCH_EVENTS as u64 * 2 + 6);
    }

    #[test]
    fn events_do_not_wait_for_a_batch_to_be_full() {
        let (batches, taken) = sync_channel(4);
        let mut tap =
            Tap { device: 0, batch: Vec::new(), since_ns: None, batches: Some(batches), dropped: Arc::default() };
        tap.record(0, &Event::Queue(io(1, 1)));
        tap.record(BATCH_NS_MAX, &Event::Queue(io(2, 1)));
        assert!(taken.try_recv().is_err());
        tap.record(BATCH_NS_MAX + 1, &Event::Queue(io(3, 1)));
        assert!(matches!(taken.try_recv(), Ok(Batch { entries, .. }) if entries.len() == 3));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = Recording::start(Path::new("/nowhere/rec"), &["sda"], 0, 0).unwrap_err().to_string();
        assert!(error.starts_with("cannot record to /nowhere/rec.blktrace.0: No such file"), "{error}");
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_is_told() {
        // /dev/full takes nothing.
        let Ok(full) = File::options().write(true).open("/dev/full") else {
            return eprintln!("SKIPPED: there is no /dev/full");
        };
        let (batches, taken) = sync_channel(4);
        let entries: Vec<_> = (0..10_000).map(|token| Entry::Event(token, Event::Queue(io(token, 1)))).collect();
        batches.send(Batch { device: 0, entries }).unwrap();
        batches.send(Batch { device: 0, entries: vec![Entry::Event(0, Event::Plug)] }).unwrap();
        drop(batches);
        let dropped = AtomicU64::new(0);
        let written = write_all(&taken, vec![Track::new(Writer::new(BufWriter::new(full), 0, 0))], &dropped);
        assert!(written.failed.is_some_and(|why| why.contains("No space left")));
        assert_eq!(written.events + dropped.load(Ordering::Relaxed), 10_001);
    }
}
