//! Records the events of devices' queues, in blktrace's format.
//!
//! The reactor passes events on in batches and never waits: a thread of the recording writes them.
//! Events that the thread cannot take in time are dropped and counted.
//!
//! In the files, a "process" is a connection: its id is the number that its device assigned, its
//! name that of its tenant. All events are on CPU 0. The device numbers are 43 (the major number of
//! NBD) and the index of the device in the configuration. Notes of the elevators are messages.

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

use hoistway_core::{Event, Flags, Io, Op};
use hoistway_machine::{InUse, OpenUnusedError, open_unused};
use hoistway_trace::blktrace::Writer;
use hoistway_trace::{self as trace, Action, DeviceId, EventWriter as _, Rwbs};

use hoistway_qos::Recorder;

/// The number of events in a batch; a batch is also sent after [`BATCH_NS_MAX`].
const BATCH_EVENTS: usize = 1024;
/// The longest time that an event waits for others, if further ones arrive: 0.1 s.
const BATCH_NS_MAX: u64 = 100_000_000;
/// The largest number of batches that wait for the thread: 65,536 events, about 5 MB.
const BATCHES_MAX: usize = 64;
/// The pause after which buffered bytes are written.
const QUIET: Duration = Duration::from_secs(1);
/// The size of a file's buffer in bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// The mode of recordings: they show the requests of all exports, so that only their owner may read
/// them.
const FILE_MODE: u32 = 0o600;
/// The major number of NBD's devices.
const MAJOR: u32 = 43;

/// An error of a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file cannot be created or written.
    #[error("cannot record to {}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// The file is in use, for example behind a mounted loop device.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// The thread could not be started, or panicked.
    #[error("the recording thread failed: {0}")]
    Thread(String),
}

/// The summary of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The number of written events.
    pub written: u64,
    /// The number of events that were dropped because they arrived faster than they could be
    /// written, or after a write error.
    pub dropped: u64,
    /// The write error, if any; later events are missing.
    pub failed: Option<String>,
}

/// A recording: prepared by [`start`](Recording::start), active from [`begin`](Recording::begin)
/// on.
#[derive(Debug)]
pub struct Recording {
    messages: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
    /// The path as given.
    path: PathBuf,
    /// True if there were several devices at the start.
    several: bool,
    clock: Clock,
    /// The files, one per device, in order of their addition.
    files: Vec<PathBuf>,
    /// The files that did not exist before.
    made: Vec<PathBuf>,
    has_begun: bool,
    writer: Option<JoinHandle<WriteSummary>>,
}

/// The same instant on the server's clock and on the wall clock.
#[derive(Clone, Copy, Debug)]
struct Clock {
    now_ns: u64,
    since_1970_ns: u64,
}

impl Recording {
    /// Opens the files: `path.blktrace.0` for one device, `path.DEVICE.blktrace.0` for each of
    /// several. Existing contents stay until [`Recording::begin`]; a recording that is dropped
    /// before removes the files that it has created.
    ///
    /// `now_ns` and `since_1970_ns` are the same instant on the server's clock and on the wall
    /// clock.
    ///
    /// # Errors
    /// A file cannot be created; no file has changed then.
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

    /// Begins the recording, which overwrites the files. The host calls it after all other steps of
    /// its start have succeeded.
    pub fn begin(&mut self) {
        self.has_begun = true;
        self.send(Message::Begin);
    }

    /// Adds a device with a file of its own. Returns the tap that receives its events.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn add(&mut self, device: &str) -> Result<Tap, RecordError> {
        // A removed device may have had this name.
        let names = (1u32..).map(|number| if number == 1 { device.to_owned() } else { format!("{device}-{number}") });
        let mut paths = names.map(|name| file_of(&self.path, &name, true));
        let file = paths.find(|file| !self.files.contains(file)).unwrap_or_default();
        let file = self.open(file)?;
        self.send(Message::Device(Box::new(file)));
        Ok(self.tap(self.files.len() - 1))
    }

    /// Returns the newest of the files.
    pub fn newest(&self) -> Option<&Path> {
        self.files.last().map(PathBuf::as_path)
    }

    fn open(&mut self, path: PathBuf) -> Result<DeviceFile, RecordError> {
        let error = |source| RecordError::File { path: path.clone(), source };
        let mut options = File::options();
        options.write(true).mode(FILE_MODE);
        let file = match options.clone().create_new(true).open(&path) {
            Ok(file) => {
                self.made.push(path.clone());
                file
            }
            Err(exists) if exists.kind() == io::ErrorKind::AlreadyExists => {
                match open_unused(&path, File::options().write(true), 0, false) {
                    Ok(opened) => opened.file,
                    Err(OpenUnusedError::InUse(in_use)) => return Err(in_use.into()),
                    Err(OpenUnusedError::System(cause)) => return Err(error(cause)),
                }
            }
            Err(other) => return Err(error(other)),
        };
        let device = DeviceId::new(MAJOR, u32::try_from(self.files.len()).unwrap_or(0));
        self.files.push(path);
        Ok(DeviceFile::new(file, device, self.clock))
    }

    /// The thread receives messages until the recording ends.
    fn send(&self, message: Message) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(message);
        }
    }

    /// Returns the tap of a device, by its index among the devices at the start.
    pub fn tap(&self, device: usize) -> Tap {
        Tap {
            device,
            batch: Vec::with_capacity(BATCH_EVENTS),
            since_ns: None,
            messages: self.messages.clone(),
            dropped: Arc::clone(&self.dropped),
        }
    }

    /// Returns the number of dropped events so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Ends the recording and waits until all events are written. All [`Tap`]s must have been
    /// dropped, which passes on their events.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn finish(mut self) -> Result<Summary, RecordError> {
        // The taps are gone, so that the thread ends with this end of the channel.
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
    /// Removes the created files if the recording never began.
    fn drop(&mut self) {
        self.messages = None;
        if !self.has_begun {
            for file in &self.made {
                let _ = fs::remove_file(file);
            }
        }
    }
}

/// Receives the events of one device.
#[derive(Debug)]
pub struct Tap {
    device: usize,
    batch: Vec<Entry>,
    /// The time of the first event of the batch in ns.
    since_ns: Option<u64>,
    messages: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
}

impl Tap {
    fn send_batch(&mut self) {
        let entries = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_EVENTS));
        let Some(messages) = &self.messages else { return };
        let sent = messages.try_send(Message::Batch(Batch { device: self.device, entries }));
        if let Err(TrySendError::Full(Message::Batch(batch)) | TrySendError::Disconnected(Message::Batch(batch))) = sent
        {
            self.dropped.fetch_add(events_in(&batch.entries), Ordering::Relaxed);
            // Names are few and sent only once: they stay for the next batch. The memory is reused.
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
            self.send_batch();
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
    /// The last events may wait for the thread: the device has ended, so that nothing is delayed.
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

/// Records into a file directly, without a thread: for a device in virtual time. The path is a
/// complete file name.
#[derive(Debug)]
pub struct DirectRecorder {
    file: DeviceFile,
    outcome: Arc<Mutex<io::Result<u64>>>,
}

impl DirectRecorder {
    /// Begins at time 0. After the recorder has been dropped, the shared result has the number of
    /// written events, or the error.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn start(path: &Path) -> io::Result<(DirectRecorder, Arc<Mutex<io::Result<u64>>>)> {
        let mut file =
            DeviceFile::new(File::create(path)?, DeviceId::new(MAJOR, 0), Clock { now_ns: 0, since_1970_ns: 0 });
        file.begin()?;
        let outcome = Arc::new(Mutex::new(Ok(0)));
        Ok((DirectRecorder { file, outcome: Arc::clone(&outcome) }, outcome))
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

impl Recorder for DirectRecorder {
    fn record(&mut self, now_ns: u64, event: &Event) {
        let written = self.file.write(now_ns, event);
        self.note(written, 1);
    }

    fn name(&mut self, number: u32, name: &str) {
        self.file.name(number, name.to_owned());
    }

    fn setting(&mut self, text: &str) {
        let written = self.file.setting(text);
        self.note(written, 0);
    }
}

impl Drop for DirectRecorder {
    fn drop(&mut self) {
        let written = self.file.writer.finish();
        self.note(written, 0);
    }
}

/// A message to the thread.
#[derive(Debug)]
enum Message {
    /// Allows the thread to write to the files: always the first message.
    Begin,
    /// Adds a device.
    Device(Box<DeviceFile>),
    /// A batch of events.
    Batch(Batch),
}

/// Events of a device.
#[derive(Debug)]
struct Batch {
    device: usize,
    entries: Vec<Entry>,
}

/// An item of a batch.
#[derive(Debug)]
enum Entry {
    /// An event and its time in ns.
    Event(u64, Event),
    /// The name of a connection from now on.
    Name { number: u32, name: String },
    /// A setting of the device at the beginning.
    Setting(String),
}

fn events_in(entries: &[Entry]) -> u64 {
    entries.iter().filter(|entry| matches!(entry, Entry::Event(..))).count() as u64
}

/// The result of the thread.
#[derive(Debug, Default)]
struct WriteSummary {
    events: u64,
    failed: Option<String>,
}

/// The file of one device.
#[derive(Debug)]
struct DeviceFile {
    writer: Writer<BufWriter<File>>,
    device: DeviceId,
    clock: Clock,
    names: BTreeMap<u32, String>,
    /// The process ids whose names are in the file.
    named: BTreeSet<u32>,
}

impl DeviceFile {
    fn new(file: File, device: DeviceId, clock: Clock) -> DeviceFile {
        let writer = Writer::new(BufWriter::with_capacity(BUFFER_BYTES, file)).counting();
        // Flushes of the device have no client.
        let names = BTreeMap::from([(0, "hoistway".to_owned())]);
        DeviceFile { writer, device, clock, names, named: BTreeSet::new() }
    }

    /// Truncates the file and writes the start time.
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
            // A request that was joined to its neighbour counts as merged to the neighbour's end.
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
                let message = trace::Event { pid: notes::note_queue(note), ..self.plain(now_ns, Action::Message) };
                return self.writer.event(&message, notes::text(note).as_bytes());
            }
        };
        let (bytes, op) = (io.sectors.saturating_mul(512), op_of(action, io));
        self.writer
            .event(&trace::Event { sector: io.sector, bytes, pid: io.pid, op, ..self.plain(now_ns, action) }, &[])
    }

    /// Creates an event of this device without a request.
    fn plain(&self, now_ns: u64, action: Action) -> trace::Event {
        trace::Event { device: self.device, op: Rwbs::NONE, ..trace::Event::new(now_ns, action) }
    }
}

/// Writes until all taps and the recording are gone.
fn write_all(taken: &Receiver<Message>, mut tracks: Vec<DeviceFile>, dropped: &AtomicU64) -> WriteSummary {
    let mut written = WriteSummary::default();
    // The recording never began: the files stay as they were.
    if !matches!(taken.recv(), Ok(Message::Begin)) {
        return written;
    }
    tracks.iter_mut().for_each(|file| begin(file, &mut written));
    loop {
        let message = match taken.recv_timeout(QUIET) {
            Ok(message) => message,
            // Writes buffered events, for concurrent readers and for the case of a crash.
            Err(RecvTimeoutError::Timeout) => {
                tracks.iter_mut().for_each(|file| flush(file, &mut written));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match message {
            Message::Begin => {}
            Message::Device(mut file) => {
                begin(&mut file, &mut written);
                tracks.push(*file);
            }
            Message::Batch(Batch { device, entries }) => match tracks.get_mut(device) {
                Some(file) if written.failed.is_none() => write_batch(file, &entries, &mut written, dropped),
                _ => drop(dropped.fetch_add(events_in(&entries), Ordering::Relaxed)),
            },
        }
    }
    tracks.iter_mut().for_each(|file| flush(file, &mut written));
    written
}

fn flush(file: &mut DeviceFile, written: &mut WriteSummary) {
    if written.failed.is_none()
        && let Err(error) = file.writer.finish()
    {
        fail(written, &error);
    }
}

fn begin(file: &mut DeviceFile, written: &mut WriteSummary) {
    if let Err(error) = file.begin() {
        fail(written, &error);
    }
}

fn write_batch(file: &mut DeviceFile, entries: &[Entry], written: &mut WriteSummary, dropped: &AtomicU64) {
    let before = written.events;
    for entry in entries {
        match entry {
            Entry::Name { number, name } => file.name(*number, name.clone()),
            Entry::Setting(text) => {
                if let Err(error) = file.setting(text) {
                    fail(written, &error);
                    break;
                }
            }
            Entry::Event(now_ns, event) => match file.write(*now_ns, event) {
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

fn fail(written: &mut WriteSummary, error: &io::Error) {
    if written.failed.is_none() {
        tracing::error!("the recording ends here: {error}");
        written.failed = Some(error.to_string());
    }
}

fn file_of(path: &Path, device: &str, several: bool) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    // A complete file name is taken literally.
    if let Some(stem) = path.to_str().and_then(|path| path.strip_suffix(".blktrace.0")) {
        name = stem.into();
    }
    if several {
        name.push(format!(".{device}"));
    }
    name.push(".blktrace.0");
    name.into()
}

/// Returns the operation and the flags of a bio or request, as Linux records them. A submitted
/// flush is a write without data; the flush of the device has no direction.
fn op_of(action: Action, io: &Io) -> Rwbs {
    let op = match io.op {
        Op::Read => Rwbs::READ,
        Op::Write => Rwbs::WRITE,
        Op::Discard => return Rwbs::DISCARD,
        Op::Flush if action == Action::Queue => return Rwbs::WRITE.with(Rwbs::FLUSH).with(Rwbs::SYNC),
        Op::Flush => return Rwbs::NONE.with(Rwbs::FLUSH),
    };
    // Reads are synchronous without the flag.
    let flags = [(Flags::SYNC, Rwbs::SYNC), (Flags::FUA, Rwbs::FUA), (Flags::META, Rwbs::META)];
    flags.into_iter().filter(|(flag, _)| io.flags.has(*flag)).fold(op, |op, (_, bit)| op.with(bit))
}

/// Returns the connection of an event.
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
    use hoistway_trace::request::RequestTracker;
    use std::process::Command;

    fn io(token: u64, pid: u32) -> Io {
        Io { token, pid, op: Op::Read, sector: token * 8, sectors: 8, flags: Flags::NONE }
    }

    #[test]
    fn blkparse_reads_the_recording() {
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
            return eprintln!("SKIPPED: blkparse is not installed (package blktrace in Debian)");
        };
        let parsed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(parsed.contains("Reads Queued:        3000,    12000KiB"), "{}", &parsed[parsed.len() - 900..]);
        assert!(parsed.contains("Reads Completed:     3000,    12000KiB"));
        assert!(parsed.contains(text) && parsed.contains("Q   R 23992 + 8 [database]"));
    }

    #[test]
    fn flushes_durable_writes_and_their_clients_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let mut recording = Recording::start(&folder.path().join("rec"), &["sda"], 0, 0).unwrap();
        recording.begin();
        let mut tap = recording.tap(0);
        let flush = |pid| Io { token: 0, pid, op: Op::Flush, sector: 0, sectors: 0, flags: Flags::SYNC };
        let write = Io { op: Op::Write, flags: Flags::SYNC.and(Flags::FUA), ..io(3, 7) };
        let events =
            [Event::Queue(flush(5)), Event::Queue(flush(6)), Event::Issue(flush(0)), Event::Complete(flush(0))];
        let writes = [Event::Queue(write), Event::Issue(write), Event::Complete(write)];
        (10u64..).zip(events.iter().chain(&writes)).for_each(|(now_ns, event)| tap.record(now_ns, event));
        drop(tap);
        let files = recording.finish().unwrap().files;
        let inputs = files.into_iter().map(hoistway_trace::Input::Path).collect();
        let mut source = hoistway_trace::open(inputs, &hoistway_trace::OpenOptions::default()).unwrap();
        let (mut batch, mut tracker) = (hoistway_trace::Batch::new(), RequestTracker::new());
        source.next(&mut batch).unwrap();
        tracker.take(&batch);
        let requests: Vec<_> = tracker
            .take_finished()
            .map(|record| {
                (record.pid, record.bytes, record.op.has(Rwbs::FLUSH), record.op.has(Rwbs::FUA), record.q2c_ns())
            })
            .collect();
        // One flush of the device serves both clients.
        let expected = [(5, 0, true, false, Some(3)), (6, 0, true, false, Some(2)), (7, 4096, false, true, Some(2))];
        assert_eq!((requests.as_slice(), tracker.outstanding()), (&expected[..], 0));
    }

    #[test]
    fn each_device_has_a_file_and_a_complete_name_is_taken_literally() {
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(file_of(&path("/x/rec"), "sda", false), path("/x/rec.blktrace.0"));
        assert_eq!(file_of(&path("/x/rec.blktrace.0"), "sda", false), path("/x/rec.blktrace.0"));
        assert_eq!(file_of(&path("rec"), "sda", true), path("rec.sda.blktrace.0"));
    }

    #[test]
    fn events_beyond_the_writing_speed_are_dropped_and_counted() {
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
        assert_eq!(dropped.load(Ordering::Relaxed), BATCH_EVENTS as u64 * 2 - 2, "each batch begins with the name");
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
        // The third file cannot be created.
        Recording::start(&path, &["a", "b", "c"], 0, 0).unwrap_err();
        assert!(!a.exists() && std::fs::read(&b).unwrap() == b"kept");
        // All files can be created, and a later step fails.
        drop(Recording::start(&path, &["a", "b"], 0, 0).unwrap());
        assert!(!a.exists() && std::fs::read(&b).unwrap() == b"kept");
        let mut recording = Recording::start(&path, &["a", "b"], 0, 0).unwrap();
        recording.begin();
        assert_eq!(recording.finish().unwrap().files, [a.clone(), b.clone()]);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o600);
        let length = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert!(
            length(&a) == length(&b) && length(&a) > 4,
            "the old contents are removed, and the start time is written"
        );
    }

    #[test]
    fn an_added_device_has_a_file_of_its_own() {
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
    fn a_missing_directory_is_named() {
        let error = Recording::start(Path::new("/nowhere/rec"), &["sda"], 0, 0).unwrap_err().to_string();
        assert!(error.starts_with("cannot record to /nowhere/rec.blktrace.0: No such file"), "{error}");
    }

    #[test]
    fn a_full_disk_ends_the_recording_with_an_error() {
        // /dev/full accepts no bytes.
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
        let written = write_all(
            &taken,
            vec![DeviceFile::new(full, DeviceId(0), Clock { now_ns: 0, since_1970_ns: 0 })],
            &dropped,
        );
        assert!(written.failed.is_some_and(|why| why.contains("No space left")));
        assert_eq!(written.events + dropped.load(Ordering::Relaxed), 10_001);
    }
}
