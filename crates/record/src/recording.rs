//! A recording of what passes through the devices' queues, in blktrace's format.
//!
//! The reactor hands events over in batches and never waits: a thread of the recording's own writes
//! them. What it cannot take in time is dropped, counted, and told at the end.
//!
//! In the files, a "process" is a connection: it goes by the number that its device gave it, and by
//! its tenant's name. Everything happens on CPU 0, and the device numbers are 43 (NBD's major) and
//! the place of the device in the configuration. The elevators' notes are messages.

mod notes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hoistway_core::{Event, Op};
use hoistway_trace::blktrace::Writer;
use hoistway_trace::{self as trace, Action, DeviceId, EventWriter as _, Rwbs};

use hoistway_qos::Recorder;

/// Events are handed over by so many, or after [`BATCH_NS_MAX`].
const BATCH_EVENTS: usize = 1024;
/// For so long at most an event waits for others, if any come: 0.1 s.
const BATCH_NS_MAX: u64 = 100_000_000;
/// So many batches may wait to be written: 65,536 events, some 5 MB.
const BATCHES_MAX: usize = 64;
/// After a pause of so long what waits in memory is written.
const QUIET: Duration = Duration::from_secs(1);
/// Bytes of a file that wait in memory, at most.
const BUFFER_BYTES: usize = 256 << 10;
/// Recordings tell what passes on all exports: they are their owner's.
const FILE_MODE: u32 = 0o600;
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
    /// Events that were dropped, because they came faster than they could be written, or because
    /// writing had failed.
    pub dropped: u64,
    /// Why writing failed, if it did: what came after that is missing.
    pub failed: Option<String>,
}

/// A recording: made ready by [`start`](Recording::start), under way from
/// [`begin`](Recording::begin) on.
#[derive(Debug)]
pub struct Recording {
    messages: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
    /// As it was told.
    path: PathBuf,
    /// There were several devices at the start.
    several: bool,
    clock: Clock,
    /// One a device, in the order in which they came.
    files: Vec<PathBuf>,
    /// Those of them that were not there before.
    made: Vec<PathBuf>,
    has_begun: bool,
    writer: Option<JoinHandle<Written>>,
}

/// The same moment on the server's clock and on the wall's.
#[derive(Clone, Copy, Debug)]
struct Clock {
    now_ns: u64,
    since_1970_ns: u64,
}

impl Recording {
    /// Opens the files of one: `path.blktrace.0` for one device, `path.DEVICE.blktrace.0` for each
    /// of several. What is in files that are there stays until it begins; one that is dropped
    /// before leaves nothing behind that was not there.
    ///
    /// `now_ns` and `since_1970_ns` are the same moment on the server's clock and on the wall's.
    ///
    /// # Errors
    /// A file that cannot be made; then nothing was changed.
    pub fn start(path: &Path, devices: &[&str], now_ns: u64, since_1970_ns: u64) -> Result<Recording, RecordError> {
        let (messages, taken) = sync_channel(BATCHES_MAX);
        let mut recording = Recording {
            messages: Some(messages),
            dropped: Arc::default(),
            path: path.to_owned(),
            several: devices.len() > 1,
            clock: Clock { now_ns, since_1970_ns },
            files: Vec::new(),
            made: Vec::new(),
            has_begun: false,
            writer: None,
        };
        let mut tracks = Vec::new();
        for device in devices {
            tracks.push(recording.open(file_of(path, device, recording.several))?);
        }
        let of_writer = Arc::clone(&recording.dropped);
        let writer = std::thread::Builder::new()
            .name("record".into())
            .spawn(move || write_all(&taken, tracks, &of_writer))
            .map_err(|error| RecordError::Thread(error.to_string()))?;
        recording.writer = Some(writer);
        Ok(recording)
    }

    /// Begins it: what is in the files is overwritten. To be called once all else has been seen to
    /// work.
    pub fn begin(&mut self) {
        self.has_begun = true;
        self.send(Message::Begin);
    }

    /// Records one more device, in a file of its own: what takes its events.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn add(&mut self, device: &str) -> Result<Tap, RecordError> {
        // A device of this name may have been there before, on other bytes.
        let names = (1u32..).map(|number| if number == 1 { device.to_owned() } else { format!("{device}-{number}") });
        let mut paths = names.map(|name| file_of(&self.path, &name, true));
        let file = paths.find(|file| !self.files.contains(file)).unwrap_or_default();
        let track = self.open(file)?;
        self.send(Message::Device(Box::new(track)));
        Ok(self.tap(self.files.len() - 1))
    }

    /// The newest of its files.
    pub fn newest(&self) -> Option<&Path> {
        self.files.last().map(PathBuf::as_path)
    }

    fn open(&mut self, path: PathBuf) -> Result<Track, RecordError> {
        let error = |source| RecordError::File { path: path.clone(), source };
        let mut options = File::options();
        options.write(true).mode(FILE_MODE);
        let file = match options.clone().create_new(true).open(&path) {
            Ok(file) => {
                self.made.push(path.clone());
                file
            }
            Err(exists) if exists.kind() == io::ErrorKind::AlreadyExists => options.open(&path).map_err(error)?,
            Err(other) => return Err(error(other)),
        };
        let device = DeviceId::new(MAJOR, u32::try_from(self.files.len()).unwrap_or(0));
        self.files.push(path);
        Ok(Track::new(file, device, self.clock))
    }

    /// The thread takes what is sent until it ends, which it does not before the recording.
    fn send(&self, message: Message) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(message);
        }
    }

    /// What takes the events of a device, by its place among those that the recording began with.
    pub fn tap(&self, device: usize) -> Tap {
        Tap {
            device,
            batch: Vec::with_capacity(BATCH_EVENTS),
            since_ns: None,
            messages: self.messages.clone(),
            dropped: Arc::clone(&self.dropped),
        }
    }

    /// Events that were dropped until now.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Ends it, and waits until everything is written. All [`Tap`]s have to be dropped before: what
    /// they hold is written then.
    ///
    /// # Errors
    /// A thread that broke down.
    pub fn finish(mut self) -> Result<Summary, RecordError> {
        // The taps are gone, so the thread ends once this end of the channel is.
        self.messages = None;
        let joined = self.writer.take().map(JoinHandle::join);
        let written = match joined {
            Some(Ok(written)) => written,
            _ => return Err(RecordError::Thread("it panicked".into())),
        };
        let files = std::mem::take(&mut self.files);
        Ok(Summary { files, written: written.events, dropped: self.dropped(), failed: written.failed })
    }
}

impl Drop for Recording {
    /// One that has not begun takes its files along.
    fn drop(&mut self) {
        self.messages = None;
        if !self.has_begun {
            for file in &self.made {
                let _ = fs::remove_file(file);
            }
        }
    }
}

/// Takes the events of one device.
#[derive(Debug)]
pub struct Tap {
    device: usize,
    batch: Vec<Entry>,
    /// When the first event of the batch happened.
    since_ns: Option<u64>,
    messages: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
}

impl Tap {
    fn hand_over(&mut self) {
        let entries = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_EVENTS));
        let Some(messages) = &self.messages else { return };
        let sent = messages.try_send(Message::Batch(Batch { device: self.device, entries }));
        if let Err(TrySendError::Full(Message::Batch(batch)) | TrySendError::Disconnected(Message::Batch(batch))) = sent
        {
            self.dropped.fetch_add(events_in(&batch.entries), Ordering::Relaxed);
            // Names are few and told once only: they stay for the next batch. The memory serves
            // again.
            self.batch = batch.entries;
            self.batch.retain(|entry| !matches!(entry, Entry::Event(..)));
        }
    }
}

impl Recorder for Tap {
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

    fn setting(&mut self, text: &str) {
        self.batch.push(Entry::Setting(text.to_owned()));
    }
}

impl Drop for Tap {
    /// The last events may wait for the thread a moment: the device is gone, and nobody waits for
    /// it.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.batch);
        if let Some(messages) = self.messages.take().filter(|_| !entries.is_empty()) {
            let count = events_in(&entries);
            if messages.send(Message::Batch(Batch { device: self.device, entries })).is_err() {
                self.dropped.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

/// Records into a file at once, without a thread: for a device whose time is not the world's. It
/// takes a whole name of a file.
#[derive(Debug)]
pub struct Direct {
    track: Track,
    outcome: Arc<Mutex<io::Result<u64>>>,
}

impl Direct {
    /// Begins at time 0. How many events were written, or why not all were, is known when the
    /// recorder is gone.
    ///
    /// # Errors
    /// A file that cannot be made or written.
    pub fn start(path: &Path) -> io::Result<(Direct, Arc<Mutex<io::Result<u64>>>)> {
        let mut track = Track::new(File::create(path)?, DeviceId::new(MAJOR, 0), Clock { now_ns: 0, since_1970_ns: 0 });
        track.begin()?;
        let outcome = Arc::new(Mutex::new(Ok(0)));
        Ok((Direct { track, outcome: Arc::clone(&outcome) }, outcome))
    }

    fn note(&self, written: io::Result<()>, events: u64) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match (written, &mut *outcome) {
            (Ok(()), Ok(count)) => *count += events,
            (Err(error), Ok(_)) => *outcome = Err(error),
            (_, Err(_)) => {}
        }
    }
}

impl Recorder for Direct {
    fn record(&mut self, now_ns: u64, event: &Event) {
        let written = self.track.write(now_ns, event);
        self.note(written, 1);
    }

    fn name(&mut self, number: u32, name: &str) {
        self.track.name(number, name.to_owned());
    }

    fn setting(&mut self, text: &str) {
        let written = self.track.setting(text);
        self.note(written, 0);
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let written = self.track.writer.finish();
        self.note(written, 0);
    }
}

/// What goes to the thread.
#[derive(Debug)]
enum Message {
    /// The files may be written to: always the first.
    Begin,
    /// One more device.
    Device(Box<Track>),
    /// Events.
    Batch(Batch),
}

/// Events of a device.
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
    /// What the device was like at the beginning.
    Setting(String),
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
#[derive(Debug)]
struct Track {
    writer: Writer<BufWriter<File>>,
    device: DeviceId,
    clock: Clock,
    names: BTreeMap<u32, String>,
    /// Processes whose names stand in the file.
    named: BTreeSet<u32>,
}

impl Track {
    fn new(file: File, device: DeviceId, clock: Clock) -> Track {
        let writer = Writer::new(BufWriter::with_capacity(BUFFER_BYTES, file)).counting();
        Track { writer, device, clock, names: BTreeMap::new(), named: BTreeSet::new() }
    }

    /// Takes away what the file had, and writes down when it begins.
    fn begin(&mut self) -> io::Result<()> {
        let file = self.writer.output().get_ref();
        // Pipes and devices have no length.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        self.writer.start(self.device, self.clock.now_ns, self.clock.since_1970_ns)
    }

    fn name(&mut self, number: u32, name: String) {
        self.names.insert(number, name);
        self.named.remove(&number);
    }

    fn setting(&mut self, text: &str) -> io::Result<()> {
        self.writer.event(&self.plain(self.clock.now_ns, Action::Message), text.as_bytes())
    }

    fn write(&mut self, now_ns: u64, event: &Event) -> io::Result<()> {
        if let Some(number) = pid_of(event).filter(|number| !self.named.contains(number)) {
            if let Some(name) = self.names.get(&number) {
                let named = trace::Event { pid: number, ..self.plain(now_ns, Action::Process) };
                self.writer.event(&named, name.as_bytes())?;
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
            Event::Plug => return self.writer.event(&self.plain(now_ns, Action::Plug), &[]),
            Event::Unplug { waiting } => {
                return self.writer.event(&self.plain(now_ns, Action::Unplug), &u64::from(*waiting).to_be_bytes());
            }
            Event::UnplugTimer => return self.writer.event(&self.plain(now_ns, Action::UnplugTimer), &[0; 8]),
            Event::Note(note) => {
                let message = trace::Event { pid: notes::queue_of(note), ..self.plain(now_ns, Action::Message) };
                return self.writer.event(&message, notes::text(note).as_bytes());
            }
        };
        let (bytes, op) = (io.sectors.saturating_mul(512), op_of(io.op));
        self.writer
            .event(&trace::Event { sector: io.sector, bytes, pid: io.pid, op, ..self.plain(now_ns, action) }, &[])
    }

    /// An event of this device.
    fn plain(&self, now_ns: u64, action: Action) -> trace::Event {
        trace::Event { device: self.device, op: Rwbs::NONE, ..trace::Event::new(now_ns, action) }
    }
}

/// Writes until all taps and the recording are gone.
fn write_all(taken: &Receiver<Message>, mut tracks: Vec<Track>, dropped: &AtomicU64) -> Written {
    let mut written = Written::default();
    // It never began, and nothing was written: the files are as they were.
    if !matches!(taken.recv(), Ok(Message::Begin)) {
        return written;
    }
    tracks.iter_mut().for_each(|track| begin(track, &mut written));
    loop {
        let message = match taken.recv_timeout(QUIET) {
            Ok(message) => message,
            // Whoever reads along, or looks at it after a crash, finds what was there before the
            // pause.
            Err(RecvTimeoutError::Timeout) => {
                tracks.iter_mut().for_each(|track| flush(track, &mut written));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match message {
            Message::Begin => {}
            Message::Device(mut track) => {
                begin(&mut track, &mut written);
                tracks.push(*track);
            }
            Message::Batch(Batch { device, entries }) => match tracks.get_mut(device) {
                Some(track) if written.failed.is_none() => write_batch(track, &entries, &mut written, dropped),
                _ => drop(dropped.fetch_add(events_in(&entries), Ordering::Relaxed)),
            },
        }
    }
    tracks.iter_mut().for_each(|track| flush(track, &mut written));
    written
}

fn flush(track: &mut Track, written: &mut Written) {
    if written.failed.is_none()
        && let Err(error) = track.writer.finish()
    {
        fail(written, &error);
    }
}

fn begin(track: &mut Track, written: &mut Written) {
    if let Err(error) = track.begin() {
        fail(written, &error);
    }
}

fn write_batch(track: &mut Track, entries: &[Entry], written: &mut Written, dropped: &AtomicU64) {
    let before = written.events;
    for entry in entries {
        match entry {
            Entry::Name { number, name } => track.name(*number, name.clone()),
            Entry::Setting(text) => {
                if let Err(error) = track.setting(text) {
                    fail(written, &error);
                    break;
                }
            }
            Entry::Event(now_ns, event) => match track.write(*now_ns, event) {
                Ok(()) => written.events += 1,
                Err(error) => {
                    fail(written, &error);
                    break;
                }
            },
        }
    }
    dropped.fetch_add(events_in(entries).saturating_sub(written.events - before), Ordering::Relaxed);
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

fn op_of(op: Op) -> Rwbs {
    match op {
        Op::Read => Rwbs::READ,
        // The device's clients wait for every write: it submits them as synchronous.
        Op::Write => Rwbs::WRITE.with(Rwbs::SYNC),
        Op::Discard => Rwbs::DISCARD,
        Op::Flush => Rwbs::WRITE.with(Rwbs::FLUSH),
    }
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
    use hoistway_core::{Io, Note};
    use std::process::Command;

    fn io(token: u64, pid: u32) -> Io {
        Io { token, pid, op: Op::Read, sector: token * 8, sectors: 8 }
    }

    #[test]
    fn what_is_recorded_is_what_blkparse_reads() {
        let folder = tempfile::tempdir().unwrap();
        let mut recording =
            Recording::start(&folder.path().join("rec"), &["sda"], 1_000, 1_700_000_000_000_000_000).unwrap();
        recording.begin();
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
        let mut tap = Tap {
            device: 0,
            batch: Vec::new(),
            since_ns: None,
            messages: Some(batches),
            dropped: Arc::clone(&dropped),
        };
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
            Tap { device: 0, batch: Vec::new(), since_ns: None, messages: Some(batches), dropped: Arc::default() };
        tap.record(0, &Event::Queue(io(1, 1)));
        tap.record(BATCH_NS_MAX, &Event::Queue(io(2, 1)));
        assert!(taken.try_recv().is_err());
        tap.record(BATCH_NS_MAX + 1, &Event::Queue(io(3, 1)));
        assert!(matches!(taken.try_recv(), Ok(Message::Batch(Batch { entries, .. })) if entries.len() == 3));
    }

    #[test]
    fn a_recording_that_does_not_begin_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rec");
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(format!("rec.{name}.blktrace.0")));
        std::fs::write(&b, "kept").unwrap();
        std::fs::create_dir(&c).unwrap();
        // The third cannot be made.
        Recording::start(&path, &["a", "b", "c"], 0, 0).unwrap_err();
        assert!(!a.exists() && std::fs::read(&b).unwrap() == b"kept");
        // All can, and something else fails then.
        drop(Recording::start(&path, &["a", "b"], 0, 0).unwrap());
        assert!(!a.exists() && std::fs::read(&b).unwrap() == b"kept");
        let mut recording = Recording::start(&path, &["a", "b"], 0, 0).unwrap();
        recording.begin();
        assert_eq!(recording.finish().unwrap().files, [a.clone(), b.clone()]);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o600);
        let length = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert!(length(&a) == length(&b) && length(&a) > 4, "what was there is gone, when it began is written down");
    }

    #[test]
    fn a_device_that_comes_later_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut recording = Recording::start(&folder.path().join("rec"), &["sda"], 0, 0).unwrap();
        recording.begin();
        let mut taps = vec![recording.tap(0), recording.add("sdb").unwrap(), recording.add("sdb").unwrap()];
        for (at, tap) in taps.iter_mut().enumerate() {
            (0..=at as u64).for_each(|token| tap.record(token, &Event::Queue(io(token, 1))));
        }
        drop(taps);
        let summary = recording.finish().unwrap();
        let files = ["rec", "rec.sdb", "rec.sdb-2"].map(|name| folder.path().join(format!("{name}.blktrace.0")));
        assert_eq!((summary.files.as_slice(), summary.written), (&files[..], 6));
        let lengths = files.map(|file| std::fs::metadata(file).unwrap().len());
        assert_eq!((lengths[1] - lengths[0], lengths[2] - lengths[1]), (48, 48));
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
        batches.send(Message::Begin).unwrap();
        batches.send(Message::Batch(Batch { device: 0, entries })).unwrap();
        let entries = vec![Entry::Event(0, Event::Plug)];
        batches.send(Message::Batch(Batch { device: 0, entries })).unwrap();
        drop(batches);
        let dropped = AtomicU64::new(0);
        let written =
            write_all(&taken, vec![Track::new(full, DeviceId(0), Clock { now_ns: 0, since_1970_ns: 0 })], &dropped);
        assert!(written.failed.is_some_and(|why| why.contains("No space left")));
        assert_eq!(written.events + dropped.load(Ordering::Relaxed), 10_001);
    }
}
