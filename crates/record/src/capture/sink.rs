//! Writes captured records to files, in order of time, with the names of processes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use hoistway_machine::{OpenUnusedError, create_unused};
use hoistway_trace::blktrace::Writer;
use hoistway_trace::queue_settings::QueueSettings;
use hoistway_trace::{Action, DeviceId, Event};

use super::device::TracedDevice;
use super::records::{self, Head, Next};
use super::{CaptureError, name_of, now_ns, since_1970_ns};

/// The interval between lookups of a process name in ns: a process begins with the name of its
/// parent.
const NAME_REFRESH_NS: u64 = 500_000_000;

/// An upper bound of CPU numbers; a record with a greater number is invalid.
const CPUS_MAX: u32 = 1 << 16;

/// The output files of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// One file with the records of all CPUs.
    One(PathBuf),
    /// A file per CPU, as of blktrace: `NAME.blktrace.0`.
    PerCpu(PathBuf),
}

/// Orders records and writes them.
pub struct Sink {
    output: Output,
    traced: TracedDevice,
    /// The settings of the queue that were written last.
    settings: QueueSettings,
    files: Vec<Option<BufWriter<File>>>,
    paths: Vec<PathBuf>,
    device: u32,
    /// The bytes of records that are not written yet, and the position of each.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    sequences: Vec<u32>,
    names: HashMap<u32, Name>,
    names_looked_ns: u64,
    /// The time of the last written record in ns.
    written_ns: u64,
    records: u64,
    requests: u64,
    written_bytes: u64,
    lost: u64,
    garbage_bytes: u64,
    foreign: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    time_ns: u64,
    cpu: u32,
    pid: u32,
    start: usize,
    len: usize,
    is_note: bool,
    /// Events that were lost before the record.
    lost: u32,
}

#[derive(Debug)]
struct Name {
    /// The name; `None` if the lookup failed.
    name: Option<String>,
    cpu: u32,
    /// The process had ended at the last lookup, and has had no event since: its id is not looked
    /// up again.
    has_ended: bool,
}

/// The summary of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkSummary {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The number of records from the kernel.
    pub records: u64,
    /// The number of records about requests.
    pub requests: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of bytes from the kernel that were no records.
    pub garbage_bytes: u64,
    /// The number of omitted records: of other devices, and of other parts of a partition's disk.
    pub foreign: u64,
}

impl Sink {
    /// Creates the files. Existing contents are removed.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(output: Output, device: &TracedDevice) -> Result<Sink, CaptureError> {
        let mut sink = Sink {
            output,
            traced: device.clone(),
            settings: QueueSettings::default(),
            files: Vec::new(),
            paths: Vec::new(),
            device: device.major << 20 | device.minor & 0xf_ffff,
            bytes: Vec::new(),
            pieces: Vec::new(),
            sequences: Vec::new(),
            names: HashMap::new(),
            names_looked_ns: 0,
            written_ns: 0,
            records: 0,
            requests: 0,
            written_bytes: 0,
            lost: 0,
            garbage_bytes: 0,
            foreign: 0,
        };
        sink.file_of(0)?;
        let note = sink.note(Action::Timestamp, now_ns(), (0, 0), &since_1970_ns().to_be_bytes());
        sink.write_to(0, &note)?;
        sink.write_settings(now_ns())?;
        Ok(sink)
    }

    /// Returns the number of records received so far, omitted ones included.
    pub(super) fn taken(&self) -> u64 {
        self.records + self.foreign
    }

    /// Returns the number of records accepted so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Returns the number of lost events that the stream reported.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Consumes the whole records of a CPU's bytes; an incomplete record stays. Returns the time of
    /// the last record in ns.
    pub(super) fn feed(&mut self, pending: &mut Vec<u8>) -> Option<u64> {
        let (mut at, mut last_ns, mut lost) = (0, None, 0u64);
        loop {
            match records::next(&pending[at..]) {
                Next::Incomplete => break,
                Next::Other { bytes, lost: more } => {
                    self.garbage_bytes += if more == 0 { bytes as u64 } else { 0 };
                    lost += more;
                    at += bytes;
                }
                Next::Record(head) if head.cpu >= CPUS_MAX => {
                    self.garbage_bytes += head.len as u64;
                    at += head.len;
                }
                Next::Record(head) => {
                    last_ns = Some(head.time_ns);
                    self.push(&head, &pending[at..at + head.len], lost);
                    lost = 0;
                    at += head.len;
                }
            }
        }
        self.lost += lost;
        pending.drain(..at);
        last_ns
    }

    /// Adds a mark.
    pub(super) fn message(&mut self, time_ns: u64, cpu: u32, pid: u32, text: &str) {
        let start = self.bytes.len();
        let note = self.note(Action::Message, time_ns, (cpu, pid), text.as_bytes());
        self.bytes.extend_from_slice(&note);
        let len = note.len();
        self.pieces.push(Piece { time_ns, cpu, pid, start, len, is_note: true, lost: 0 });
    }

    /// Sets the name of a process whose lookup failed. The record follows those of the process;
    /// readers use the last name.
    pub(super) fn name(&mut self, pid: u32, name: &str) -> Result<(), CaptureError> {
        let Some(known) = self.names.get_mut(&pid) else { return Ok(()) };
        if known.name.is_none() {
            known.name = Some(name.to_owned());
            let cpu = known.cpu;
            return self.write_name(self.written_ns, cpu, pid, name);
        }
        Ok(())
    }

    /// Returns true if the name of a process is unknown.
    pub(super) fn has_unnamed(&self) -> bool {
        self.names.values().any(|known| known.name.is_none())
    }

    /// Writes the records before a time in order; no further records before that time may arrive.
    pub(super) fn write_until(&mut self, until_ns: u64) -> Result<(), CaptureError> {
        // A stable sort: records of equal time stay in the kernel's order.
        self.pieces.sort_by_key(|piece| piece.time_ns);
        let count = self.pieces.partition_point(|piece| piece.time_ns < until_ns);
        if count == 0 {
            return Ok(());
        }
        let pieces = std::mem::take(&mut self.pieces);
        let mut bytes = std::mem::take(&mut self.bytes);
        let (ripe, rest) = pieces.split_at(count);
        // The name records precede these records, so their time must not be later.
        self.refresh_names(ripe.first().map_or(0, |piece| piece.time_ns))?;
        for piece in ripe {
            self.write_piece(piece, &mut bytes)?;
        }
        for piece in rest {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&bytes[piece.start..piece.start + piece.len]);
            self.pieces.push(Piece { start, ..*piece });
        }
        Ok(())
    }

    /// Writes all remaining records.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> Result<SinkSummary, CaptureError> {
        self.write_until(u64::MAX)?;
        self.write_settings(self.written_ns)?;
        for (file, path) in self.files.iter_mut().zip(&self.paths) {
            if let Some(file) = file {
                file.flush().map_err(|cause| CaptureError::Output { path: path.clone(), cause })?;
            }
        }
        let made = self.files.iter().zip(&self.paths).filter(|(file, _)| file.is_some());
        Ok(SinkSummary {
            files: made.map(|(_, path)| path.clone()).collect(),
            records: self.records,
            requests: self.requests,
            bytes: self.written_bytes,
            garbage_bytes: self.garbage_bytes,
            foreign: self.foreign,
        })
    }

    /// Writes the settings of the queue as messages, if they differ from the last written ones.
    fn write_settings(&mut self, time_ns: u64) -> Result<(), CaptureError> {
        let settings = self.traced.queue_settings();
        if settings == self.settings {
            return Ok(());
        }
        // Requests of a partition are in the queue of its disk.
        let disk = self.traced.traced_as.last().copied().unwrap_or(self.device);
        for text in settings.messages() {
            self.write_to(0, &note_of(disk, Action::Message, time_ns, (0, 0), text.as_bytes()))?;
        }
        self.settings = settings;
        Ok(())
    }

    fn push(&mut self, head: &Head, record: &[u8], lost: u64) {
        self.lost += lost;
        // The kernel puts requests at sector 0 of the disk into the trace of every partition.
        let is_outside = !head.is_note()
            && head.bytes > 0
            && self.traced.sectors.as_ref().is_some_and(|own| !own.contains(&head.sector));
        if is_outside || (head.has_device() && !self.traced.traced_as.contains(&head.device)) {
            self.foreign += 1;
            return;
        }
        self.records += 1;
        self.requests += u64::from(!head.is_note());
        let piece = Piece {
            time_ns: head.time_ns,
            cpu: head.cpu,
            pid: head.pid,
            start: self.bytes.len(),
            len: head.len,
            is_note: head.is_note(),
            lost: u32::try_from(lost).unwrap_or(u32::MAX),
        };
        self.bytes.extend_from_slice(record);
        self.pieces.push(piece);
    }

    fn write_piece(&mut self, piece: &Piece, bytes: &mut [u8]) -> Result<(), CaptureError> {
        self.written_ns = piece.time_ns;
        match self.names.get_mut(&piece.pid) {
            // The id belongs to a new process, or the record is late.
            Some(known) => known.has_ended = false,
            None => {
                let name = name_of(piece.pid);
                if let Some(name) = &name {
                    self.write_name(piece.time_ns, piece.cpu, piece.pid, name)?;
                }
                self.names.insert(piece.pid, Name { name, cpu: piece.cpu, has_ended: false });
            }
        }
        let Some(record) = bytes.get_mut(piece.start..piece.start + piece.len) else { return Ok(()) };
        if !piece.is_note {
            // tracefs does not number records; readers detect missing ones by the sequence number.
            let cpu = piece.cpu as usize;
            if self.sequences.len() <= cpu {
                self.sequences.resize(cpu + 1, 0);
            }
            let sequence = self.sequences[cpu].wrapping_add(1).wrapping_add(piece.lost);
            self.sequences[cpu] = sequence;
            if record.get(4..8) == Some(&[0; 4]) {
                record[4..8].copy_from_slice(&sequence.to_ne_bytes());
            }
        }
        self.write_to(piece.cpu, record)
    }

    /// Looks up names again: the process may have started another program.
    fn refresh_names(&mut self, time_ns: u64) -> Result<(), CaptureError> {
        let looked_ns = now_ns();
        if looked_ns < self.names_looked_ns + NAME_REFRESH_NS {
            return Ok(());
        }
        self.names_looked_ns = looked_ns;
        let mut changed = Vec::new();
        for (pid, known) in self.names.iter_mut().filter(|(pid, known)| **pid != 0 && !known.has_ended) {
            match name_of(*pid) {
                Some(name) if known.name.as_ref() != Some(&name) => {
                    changed.push((*pid, known.cpu, name.clone()));
                    known.name = Some(name);
                }
                Some(_) => {}
                None => known.has_ended = true,
            }
        }
        changed.sort();
        changed.iter().try_for_each(|(pid, cpu, name)| self.write_name(time_ns, *cpu, *pid, name))
    }

    fn write_name(&mut self, time_ns: u64, cpu: u32, pid: u32, name: &str) -> Result<(), CaptureError> {
        let note = self.note(Action::Process, time_ns, (cpu, pid), name.as_bytes());
        self.write_to(cpu, &note)
    }

    /// Creates a note record of the device.
    fn note(&self, action: Action, time_ns: u64, cpu_pid: (u32, u32), payload: &[u8]) -> Vec<u8> {
        note_of(self.device, action, time_ns, cpu_pid, payload)
    }

    fn write_to(&mut self, cpu: u32, bytes: &[u8]) -> Result<(), CaptureError> {
        self.written_bytes += bytes.len() as u64;
        let (file, path) = self.file_of(cpu)?;
        file.write_all(bytes).map_err(|cause| CaptureError::Output { path: path.to_owned(), cause })
    }

    /// Returns the file of a CPU; creates it on first use.
    fn file_of(&mut self, cpu: u32) -> Result<(&mut BufWriter<File>, &Path), CaptureError> {
        let place = if matches!(self.output, Output::One(_)) { 0 } else { cpu as usize };
        while self.files.len() <= place {
            self.files.push(None);
            self.paths.push(PathBuf::new());
        }
        let (file, path) = (&mut self.files[place], &mut self.paths[place]);
        if file.is_none() {
            *path = self.output.path_of(cpu);
            let made = create_unused(path).map_err(|error| match error {
                OpenUnusedError::InUse(in_use) => CaptureError::InUse(in_use.to_string()),
                OpenUnusedError::System(cause) => CaptureError::Output { path: path.clone(), cause },
            })?;
            *file = Some(BufWriter::with_capacity(1 << 20, made));
        }
        match file {
            Some(file) => Ok((file, path)),
            None => Err(CaptureError::Output { path: path.clone(), cause: io::ErrorKind::NotFound.into() }),
        }
    }
}

/// Creates a note record.
fn note_of(device: u32, action: Action, time_ns: u64, (cpu, pid): (u32, u32), payload: &[u8]) -> Vec<u8> {
    let event = Event { device: DeviceId(device), cpu, pid, ..Event::new(time_ns, action) };
    let mut writer = Writer::new(Vec::new());
    let written = writer.event(&event, payload);
    debug_assert!(written.is_ok(), "memory takes everything");
    writer.into_inner()
}

impl Output {
    fn path_of(&self, cpu: u32) -> PathBuf {
        match self {
            Output::One(path) => path.clone(),
            Output::PerCpu(name) => {
                let mut path = name.clone().into_os_string();
                path.push(format!(".blktrace.{cpu}"));
                PathBuf::from(path)
            }
        }
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sink({:?}, {} records)", self.output, self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::record;
    use super::*;

    const DEVICE: u32 = 7 << 20;
    const QUEUE: u32 = 0x11_0001;
    /// A process id without a process.
    const NO_PROCESS: u32 = u32::MAX - 1;

    fn sink(output: Output) -> Sink {
        let device = TracedDevice {
            path: "loop".into(),
            name: "loop".into(),
            major: 7,
            minor: 0,
            disk: None,
            sysfs: PathBuf::new(),
            family: Vec::new(),
            traced_as: vec![DEVICE],
            sectors: None,
        };
        Sink::create(output, &device).unwrap()
    }

    /// Returns the time and the sequence number of each record of a file except the first, which
    /// has the wall-clock time.
    fn read(path: &Path) -> Vec<(u64, u32)> {
        let bytes = std::fs::read(path).unwrap();
        let (mut at, mut found) = (0, Vec::new());
        while let Next::Record(head) = records::next(&bytes[at..]) {
            found.push((head.time_ns, u32::from_ne_bytes(bytes[at + 4..at + 8].try_into().unwrap())));
            at += head.len;
        }
        assert_eq!(at, bytes.len());
        found.split_off(1)
    }

    #[test]
    fn records_of_several_cpus_are_ordered_by_time_and_renumbered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut sink = sink(Output::One(path.clone()));
        let mut one =
            [record(10, QUEUE, NO_PROCESS, DEVICE, 0, b""), record(30, QUEUE, NO_PROCESS, DEVICE, 0, b"")].concat();
        let mut other =
            [record(20, QUEUE, NO_PROCESS, DEVICE, 1, b"x"), record(40, QUEUE, NO_PROCESS, DEVICE, 1, b"")].concat();
        other.extend(&record(50, QUEUE, NO_PROCESS, DEVICE, 1, b"")[..20]);
        assert_eq!((sink.feed(&mut one), sink.feed(&mut other)), (Some(30), Some(40)));
        assert_eq!((one.len(), other.len()), (0, 20), "a part of a record stays");
        sink.write_until(35).unwrap();
        let written = sink.finish().unwrap();
        assert_eq!((written.records, written.requests, written.files), (4, 4, vec![path.clone()]));
        assert_eq!(read(&path), [(10, 1), (20, 1), (30, 2), (40, 2)]);
    }

    #[test]
    fn lost_events_leave_a_gap_and_foreign_devices_are_omitted() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = sink(Output::PerCpu(folder.path().join("loop")));
        let mut bytes = record(10, QUEUE, NO_PROCESS, DEVICE, 1, b"");
        bytes.extend(b"CPU:1 [LOST 5 EVENTS]\n");
        bytes.extend(record(20, QUEUE, NO_PROCESS, DEVICE, 1, b""));
        bytes.extend(record(25, QUEUE, NO_PROCESS, DEVICE + 1, 1, b""));
        sink.feed(&mut bytes);
        assert_eq!(sink.lost(), 5);
        let written = sink.finish().unwrap();
        assert_eq!((written.records, written.foreign, written.files.len()), (2, 1, 2));
        assert_eq!(read(&folder.path().join("loop.blktrace.1")).first(), Some(&(20, 7)));
    }

    #[test]
    fn requests_outside_of_the_partition_are_omitted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut sink = sink(Output::One(path.clone()));
        sink.traced.sectors = Some(2048..4096);
        for (time_ns, sector, bytes) in [(10, 0u64, 4096u32), (20, 2048, 4096), (30, 0, 0), (40, 4096, 512)] {
            let mut bytes_of = record(time_ns, QUEUE, NO_PROCESS, DEVICE, 0, b"");
            bytes_of[16..24].copy_from_slice(&sector.to_ne_bytes());
            bytes_of[24..28].copy_from_slice(&bytes.to_ne_bytes());
            sink.feed(&mut bytes_of);
        }
        assert_eq!(sink.finish().unwrap().foreign, 2);
        assert_eq!(read(&path), [(20, 1), (30, 2)]);
    }

    #[test]
    fn a_process_is_named_before_its_first_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut sink = sink(Output::One(path.clone()));
        sink.feed(&mut record(10, QUEUE, std::process::id(), DEVICE, 0, b""));
        sink.message(9, 0, std::process::id(), "pread64 /data");
        sink.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let name = name_of(std::process::id()).unwrap();
        // The time of the day (48 + 8), then the name's note.
        assert_eq!(bytes[56 + 48..][..name.len()], *name.as_bytes());
        assert_eq!(read(&path), [(9, 0), (9, 0), (10, 1)]);
    }
}
