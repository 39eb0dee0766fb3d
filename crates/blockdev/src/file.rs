//! A file or a block device, read and written through the engine.
//!
//! Direct I/O transfers whole units (512 to 4096 bytes) only. Unaligned ranges are widened to whole
//! units. An unaligned write reads the units, changes them and writes them back, while no other
//! write to the same units is in flight. Without direct I/O all requests use the page cache, so
//! that the two ways never mix.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hoistway_machine::{OpenUnusedError, OpenedForWriting, open_unused};
use hoistway_nbd::Abilities;
use hoistway_qos::{Begin, IoError, IoId, MediumRequest, RequestOp};
use hoistway_reactor::{Buffer, Engine, FileId, Io, IoDone, IoOp};
use rustix::fs::{FlockOperation, flock};

use crate::depth;
use crate::error::{BackendError, io_error_of_os};
use crate::file_properties::{self, FileProperties, MediumKind};
use crate::file_size::SizeWatch;
use crate::ids::IoTag;
use crate::output::{IoOutput, Started};

/// Trims, and zeroing of block devices, use multiples of this many bytes; file systems free no
/// smaller blocks.
const TRIM_BYTES: u64 = 4096;

/// A file or a block device.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    /// The file system and the inode, which identify the file independently of its path. Simulated
    /// files have none.
    identity: Option<(u64, u64)>,
    properties: FileProperties,
    /// The size of the open file. Simulated files have none.
    size_watch: Option<SizeWatch>,
    read_only: bool,
    id: FileId,
    /// The unit of direct I/O in bytes; `None` without direct I/O.
    unit: Option<u64>,
    /// With direct I/O: the writes in flight, in whole units.
    writes: Vec<Range>,
    /// With direct I/O: writes that wait for a conflicting one, in order of submission.
    waiting: VecDeque<MediumRequest<Buffer>>,
    /// The I/O of more than one step.
    sequences: Vec<StepSequence>,
}

/// A write in flight.
#[derive(Clone, Copy, Debug)]
struct Range {
    io: IoId,
    from: u64,
    to: u64,
    /// The write reads before it writes, so that no other write to the range may be in flight.
    exclusive: bool,
}

/// An I/O of several steps, and its current step.
#[derive(Debug)]
struct StepSequence {
    io: IoId,
    current: Step,
    rest: VecDeque<Step>,
    /// The data of a write.
    data: Option<Buffer>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Reads whole units; the requested data begin `skip` bytes into them.
    Read { from: u64, length: u64, skip: usize },
    /// Reads whole units, of which `length` bytes at `skip` are then replaced.
    Load { from: u64, to: u64, skip: usize, length: usize, durable: bool },
    /// Any I/O without data.
    Plain { op: IoOp, from: u64, length: u64 },
    /// Writes zeroes.
    Zeroes { from: u64, length: u64 },
    /// Writes the units that were loaded and changed.
    Store,
}

impl File {
    /// Opens and locks the file (flock(2): shared for reading only, else exclusive), and detects
    /// its properties. A file or block device that is in use, for example mounted, is opened for
    /// writing only with `force_in_use`.
    pub fn open<E: Engine>(
        path: &Path,
        direct: Option<bool>,
        read_only: bool,
        force_in_use: bool,
        engine: &mut E,
    ) -> Result<File, BackendError> {
        let failed = |cause: io::Error| BackendError::Open { path: path.into(), cause };
        let file = open_file(path, read_only, force_in_use)?;
        let block_device = file_properties::check_kind(path, &file)?;
        // Clears the flag: the engine waits for the medium.
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty()).map_err(|error| failed(error.into()))?;
        lock(path, &file, read_only)?;
        let properties = file_properties::examine(&file, block_device, read_only).map_err(failed)?;
        if properties.size == 0 {
            return Err(BackendError::Empty { path: path.into() });
        }
        let unit = direct_unit(path, direct, &properties)?;
        let identity = file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let size_watch = SizeWatch::new(&file, block_device, properties.size);
        let opened =
            |id, unit| File { identity, size_watch, ..File::new(path.into(), properties, read_only, id, unit) };
        let id = match unit {
            None => engine.open(OwnedFd::from(file)),
            Some(_) => match reopen_direct(path, &file, read_only) {
                Ok(own) => {
                    // The lock and the exclusive use belong to the open file description, which the
                    // engine keeps open.
                    engine.open(OwnedFd::from(file));
                    engine.open(own)
                }
                Err(cause) if direct == Some(true) => {
                    return Err(BackendError::Direct { path: path.into(), cause: cause.to_string() });
                }
                Err(cause) => {
                    tracing::info!(path = %path.display(), %cause, "no direct I/O: through the page cache");
                    let id = engine.open(OwnedFd::from(file));
                    return Ok(opened(id, None));
                }
            },
        };
        Ok(opened(id, unit.map(u64::from)))
    }

    /// Creates a file of an engine whose files are simulated.
    pub fn simulated(id: FileId, size: u64) -> File {
        let properties = FileProperties {
            size,
            block_device: false,
            medium: MediumKind::Flash,
            direct_unit: None,
            trim: true,
            fast_zero: true,
        };
        File::new(PathBuf::from("simulated"), properties, false, id, None)
    }

    fn new(path: PathBuf, properties: FileProperties, read_only: bool, id: FileId, unit: Option<u64>) -> File {
        let (writes, sequences) = (Vec::with_capacity(64), Vec::with_capacity(8));
        File {
            path,
            identity: None,
            properties,
            size_watch: None,
            read_only,
            id,
            unit,
            writes,
            waiting: VecDeque::new(),
            sequences,
        }
    }

    pub fn is_at(&self, path: &Path) -> bool {
        let there = std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        self.identity.is_some() && self.identity == there
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn size(&self) -> u64 {
        self.properties.size
    }

    pub fn abilities(&self) -> Abilities {
        Abilities {
            read_only: self.read_only,
            flush: true,
            fua: true,
            rotational: self.rotational(),
            trim: self.properties.trim && !self.read_only,
            write_zeroes: !self.read_only,
            fast_zero: self.properties.fast_zero && !self.read_only,
            multi_conn: true,
            // Direct I/O bypasses the page cache, so that there is no cache to read into.
            cache: self.unit.is_none(),
            block_status: true,
        }
    }

    pub fn block_preferred(&self) -> u32 {
        self.unit.map_or(4096, |unit| unit.max(4096) as u32)
    }

    pub fn rotational(&self) -> bool {
        self.properties.medium == MediumKind::Rotational
    }

    pub fn default_depth(&self) -> u32 {
        match self.properties.medium {
            MediumKind::Memory => depth::TMPFS,
            MediumKind::Rotational => depth::ROTATIONAL,
            MediumKind::Flash => depth::FLASH,
        }
    }

    pub fn describe(&self) -> String {
        let what = if self.properties.block_device { "block device" } else { "file" };
        let medium = match self.properties.medium {
            MediumKind::Memory => "in memory",
            MediumKind::Rotational => "rotational",
            MediumKind::Flash => "not rotational",
        };
        let how = match self.unit {
            Some(unit) => format!("direct I/O in units of {unit} bytes"),
            None => "through the page cache".into(),
        };
        format!("{} ({what}, {} bytes, {medium}, {how})", self.path.display(), self.properties.size)
    }

    /// Begins an I/O; its range has been checked.
    pub fn begin<E: Engine>(&mut self, engine: &mut E, tag: IoTag, request: MediumRequest<Buffer>) -> Started {
        let MediumRequest { op, offset, length, .. } = request;
        if !self.is_intact(engine.now_ns(), &request) {
            return Begin::Done(Err(IoError::Io));
        }
        match op {
            RequestOp::Flush if self.read_only => Begin::Done(Ok(IoOutput::Nothing)),
            RequestOp::Flush => self.start(engine, tag, IoOp::Flush, 0, 0, None),
            _ if length == 0 => Begin::Done(Ok(nothing(op))),
            RequestOp::Status => self.start(engine, tag, IoOp::Status, offset, length, None),
            RequestOp::Read | RequestOp::Cache => self.read(engine, tag, offset, length),
            RequestOp::Trim => self.trim(engine, tag, request),
            RequestOp::Write | RequestOp::Zero { .. } => self.write(engine, tag, request),
        }
    }

    /// Returns false if the file has become so short that a request would meet lost data. Flushes
    /// and durable writes then promise too much.
    fn is_intact(&mut self, now_ns: u64, request: &MediumRequest<Buffer>) -> bool {
        let Some(size) = &mut self.size_watch else { return true };
        let MediumRequest { op, offset, length, durable, .. } = *request;
        size.check_before(&self.path, op.writes(), now_ns);
        match op {
            RequestOp::Flush => !size.has_shrunk(),
            _ => offset + length <= size.intact_bytes() && !(durable && size.has_shrunk()),
        }
    }

    /// Processes the end of an operation of the engine. A read that met the end of the file fails:
    /// the file had its bytes when it was opened. A flush fails if the file has lost bytes.
    pub fn finish<E: Engine>(&mut self, engine: &mut E, tag: IoTag, op: RequestOp, mut done: IoDone) -> Started {
        let mut has_lost_bytes = done.missing > 0;
        if (has_lost_bytes || op == RequestOp::Flush)
            && let Some(size) = &mut self.size_watch
        {
            size.check(&self.path, engine.now_ns());
            has_lost_bytes |= op == RequestOp::Flush && size.has_shrunk();
        }
        if done.result.is_ok() && has_lost_bytes {
            done.result = Err(libc::EIO);
        }
        let sequence = match self.sequences.is_empty() {
            true => None,
            false => self.sequences.iter().position(|sequence| sequence.io == tag.io),
        };
        let result = match sequence {
            None => output(op, done),
            Some(at) => match self.step_ended(engine, tag, at, op, done) {
                Some(result) => result,
                None => return Begin::Pending,
            },
        };
        if let Some(at) = self.writes.iter().position(|write| write.io == tag.io) {
            self.writes.swap_remove(at);
            self.start_waiting(engine, tag);
        }
        Begin::Done(result)
    }

    fn start<E: Engine>(
        &self,
        engine: &mut E,
        tag: IoTag,
        op: IoOp,
        offset: u64,
        length: u64,
        buffer: Option<Buffer>,
    ) -> Started {
        engine.start(tag.number(), Io { file: self.id, op, offset, length, buffer });
        Begin::Pending
    }

    /// Returns the range of whole units around a range of bytes.
    fn widen(&self, offset: u64, length: u64) -> (u64, u64) {
        let unit = self.unit.unwrap_or(1);
        // The size is a multiple of the unit, so the end does not exceed the size.
        (offset - offset % unit, (offset + length).next_multiple_of(unit))
    }

    fn is_aligned(&self, offset: u64, length: u64) -> bool {
        self.unit.is_none_or(|unit| (offset | length).is_multiple_of(unit))
    }

    fn read<E: Engine>(&mut self, engine: &mut E, tag: IoTag, offset: u64, length: u64) -> Started {
        let (from, to) = self.widen(offset, length);
        let buffer = engine.buffer((to - from) as usize);
        if (from, to - from) != (offset, length) {
            let step = Step::Read { from, length: to - from, skip: (offset - from) as usize };
            self.sequences.push(StepSequence { io: tag.io, current: step, rest: VecDeque::new(), data: None });
        }
        self.start(engine, tag, IoOp::Read, from, to - from, Some(buffer))
    }

    /// Trims the whole blocks of a range, if there are any.
    fn trim<E: Engine>(&mut self, engine: &mut E, tag: IoTag, request: MediumRequest<Buffer>) -> Started {
        let from = request.offset.next_multiple_of(TRIM_BYTES);
        let end = request.offset + request.length;
        let to = if end == self.properties.size { end } else { end - end % TRIM_BYTES };
        let plain = Step::Plain { op: IoOp::Trim, from, length: to.saturating_sub(from) };
        let flush = Step::Plain { op: IoOp::Flush, from: 0, length: 0 };
        let steps = match (self.properties.trim && from < to, request.durable) {
            (true, true) => VecDeque::from([plain, flush]),
            (true, false) => VecDeque::from([plain]),
            (false, true) => VecDeque::from([flush]),
            (false, false) => return Begin::Done(Ok(IoOutput::Nothing)),
        };
        // A trim with a flush after it has two steps.
        self.run(engine, tag, steps, None)
    }

    /// Writes data or zeroes, at once or after a conflicting write.
    fn write<E: Engine>(&mut self, engine: &mut E, tag: IoTag, request: MediumRequest<Buffer>) -> Started {
        if self.unit.is_some() {
            let range = self.range(&request);
            let blocked = self.writes.iter().any(|write| write.conflicts_with(&range))
                || self.waiting.iter().any(|earlier| self.range(earlier).conflicts_with(&range));
            if blocked {
                self.waiting.push_back(request);
                return Begin::Pending;
            }
            self.writes.push(range);
        }
        self.start_write(engine, tag, request)
    }

    fn range(&self, request: &MediumRequest<Buffer>) -> Range {
        let (from, to) = self.widen(request.offset, request.length);
        let exclusive = !self.is_aligned(request.offset, request.length);
        Range { io: request.io, from, to, exclusive }
    }

    /// Starts the writes that waited for one that ended.
    fn start_waiting<E: Engine>(&mut self, engine: &mut E, ended: IoTag) {
        let mut at = 0;
        while let Some(request) = self.waiting.get(at) {
            let range = self.range(request);
            let blocked = self.writes.iter().any(|write| write.conflicts_with(&range))
                || self.waiting.iter().take(at).any(|earlier| self.range(earlier).conflicts_with(&range));
            if blocked {
                at += 1;
            } else if let Some(request) = self.waiting.remove(at) {
                self.writes.push(range);
                self.start_write(engine, IoTag { io: request.io, ..ended }, request);
            }
        }
    }

    fn start_write<E: Engine>(&mut self, engine: &mut E, tag: IoTag, request: MediumRequest<Buffer>) -> Started {
        let MediumRequest { op, offset, length, durable, data, .. } = request;
        if let RequestOp::Zero { punch } = op {
            let steps = self.zero_steps(offset, length, durable, punch);
            return self.run(engine, tag, steps, None);
        }
        if self.is_aligned(offset, length) {
            return self.start(engine, tag, IoOp::Write { durable }, offset, length, data);
        }
        let (from, to) = self.widen(offset, length);
        let step = Step::Load { from, to, skip: (offset - from) as usize, length: length as usize, durable };
        self.run(engine, tag, VecDeque::from([step]), data)
    }

    /// Returns the steps that zero a range. Whole blocks of 4 KiB use the medium's own operation.
    /// The remainders at both ends are written, unless a file behind the page cache can zero them
    /// itself.
    fn zero_steps(&self, offset: u64, length: u64, durable: bool, punch: bool) -> VecDeque<Step> {
        let plain_bytes = if self.unit.is_some() || self.properties.block_device { TRIM_BYTES } else { 1 };
        let end = offset + length;
        let from = offset.next_multiple_of(plain_bytes).min(end);
        // The last block of a device may be short.
        let to = if end == self.properties.size { end } else { end - end % plain_bytes }.max(from);
        let mut steps = VecDeque::with_capacity(4);
        let edge = |from: u64, to: u64| match self.unit {
            None => Step::Zeroes { from, length: to - from },
            Some(unit) => {
                let start = from - from % unit;
                let skip = (from - start) as usize;
                Step::Load { from: start, to: to.next_multiple_of(unit), skip, length: (to - from) as usize, durable }
            }
        };
        if offset < from {
            steps.push_back(edge(offset, from));
        }
        if from < to {
            steps.push_back(Step::Plain { op: IoOp::Zero { punch }, from, length: to - from });
        }
        if to < end {
            steps.push_back(edge(to, end));
        }
        if durable {
            steps.push_back(Step::Plain { op: IoOp::Flush, from: 0, length: 0 });
        }
        steps
    }

    /// Begins an I/O of several steps; a single plain step needs no state.
    fn run<E: Engine>(
        &mut self,
        engine: &mut E,
        tag: IoTag,
        mut steps: VecDeque<Step>,
        data: Option<Buffer>,
    ) -> Started {
        let Some(current) = steps.pop_front() else { return Begin::Done(Ok(IoOutput::Nothing)) };
        if steps.is_empty()
            && let Step::Plain { op, from, length } = current
        {
            return self.start(engine, tag, op, from, length, None);
        }
        self.sequences.push(StepSequence { io: tag.io, current, rest: steps, data });
        self.start_step(engine, tag, current)
    }

    fn start_step<E: Engine>(&self, engine: &mut E, tag: IoTag, step: Step) -> Started {
        match step {
            Step::Plain { op, from, length } => self.start(engine, tag, op, from, length, None),
            Step::Read { from, length, .. } => {
                let buffer = engine.buffer(length as usize);
                self.start(engine, tag, IoOp::Read, from, length, Some(buffer))
            }
            Step::Load { from, to, .. } => {
                let buffer = engine.buffer((to - from) as usize);
                self.start(engine, tag, IoOp::Read, from, to - from, Some(buffer))
            }
            Step::Zeroes { from, length } => {
                let mut buffer = engine.buffer(length as usize);
                buffer[..length as usize].fill(0);
                self.start(engine, tag, IoOp::Write { durable: false }, from, length, Some(buffer))
            }
            // A store follows its load, whose buffer it takes.
            Step::Store => Begin::Pending,
        }
    }

    /// Processes the end of a step: begins the next step or returns the result.
    fn step_ended<E: Engine>(
        &mut self,
        engine: &mut E,
        tag: IoTag,
        at: usize,
        op: RequestOp,
        mut done: IoDone,
    ) -> Option<Result<IoOutput, IoError>> {
        let sequence = &mut self.sequences[at];
        if done.result.is_ok() {
            if let Step::Load { from, to, skip, length, durable } = sequence.current
                && let Some(mut buffer) = done.buffer.take()
            {
                let changed = &mut buffer[skip..skip + length];
                match &sequence.data {
                    Some(data) => changed.copy_from_slice(&data[..length]),
                    None => changed.fill(0),
                }
                sequence.current = Step::Store;
                self.start(engine, tag, IoOp::Write { durable }, from, to - from, Some(buffer));
                return None;
            }
            if let Some(next) = sequence.rest.pop_front() {
                sequence.current = next;
                self.start_step(engine, tag, next);
                return None;
            }
        }
        let sequence = self.sequences.swap_remove(at);
        if let (Step::Read { skip, length, .. }, Some(buffer)) = (sequence.current, &mut done.buffer) {
            buffer.copy_within(skip..length as usize, 0);
        }
        Some(output(op, done))
    }
}

impl Range {
    /// Returns true if the two writes may not be in flight at the same time.
    fn conflicts_with(&self, other: &Range) -> bool {
        (self.exclusive || other.exclusive) && self.from < other.to && other.from < self.to
    }
}

/// Opens a file; for writing only if it is not in use, or with `force_in_use`.
fn open_file(path: &Path, read_only: bool, force_in_use: bool) -> Result<std::fs::File, BackendError> {
    // The open of a pipe does not block; the pipe is refused later.
    let flags = libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(!read_only);
    if read_only {
        return options.custom_flags(flags).open(path).map_err(|cause| open_error(path, cause));
    }
    match open_unused(path, &options, flags, force_in_use) {
        Ok(OpenedForWriting { file, overridden }) => {
            if let Some(in_use) = overridden {
                tracing::warn!("{in_use}: opened for writing all the same, because `force_in_use` is set");
            }
            Ok(file)
        }
        Err(OpenUnusedError::InUse(in_use)) => Err(BackendError::InUse { in_use }),
        Err(OpenUnusedError::System(cause)) => Err(open_error(path, cause)),
    }
}

fn nothing(op: RequestOp) -> IoOutput {
    match op {
        RequestOp::Read => IoOutput::Zeroes,
        RequestOp::Status => IoOutput::Extents(Vec::new()),
        _ => IoOutput::Nothing,
    }
}

fn output(op: RequestOp, done: IoDone) -> Result<IoOutput, IoError> {
    match done.result {
        Err(code) => Err(io_error_of_os(code)),
        Ok(()) => match (op, done.buffer) {
            (RequestOp::Read, Some(buffer)) => Ok(IoOutput::Buffer(buffer)),
            (RequestOp::Status, _) => Ok(IoOutput::Extents(done.extents)),
            _ => Ok(IoOutput::Nothing),
        },
    }
}

/// Replaces the system's error by a clearer one where the file's kind explains it.
fn open_error(path: &Path, cause: io::Error) -> BackendError {
    let what = match cause.raw_os_error() {
        Some(libc::EISDIR) => "a directory",
        Some(libc::ENXIO) => "a pipe or a socket",
        _ => return BackendError::Open { path: path.into(), cause },
    };
    BackendError::Kind { path: path.into(), what }
}

/// Returns the unit of direct I/O to use, if any.
fn direct_unit(path: &Path, direct: Option<bool>, properties: &FileProperties) -> Result<Option<u32>, BackendError> {
    let refused = |cause: String| Err(BackendError::Direct { path: path.into(), cause });
    match (direct, properties.direct_unit) {
        (Some(false), _) => Ok(None),
        (Some(true), None) => refused("its file system has none".into()),
        (None, None) => Ok(None),
        (_, Some(unit)) if properties.size.is_multiple_of(u64::from(unit)) => Ok(Some(unit)),
        (Some(true), Some(unit)) => refused(format!("its size, {}, is not a multiple of {unit}", properties.size)),
        (None, Some(_)) => Ok(None),
    }
}

/// Opens the same file again for direct I/O.
fn reopen_direct(path: &Path, file: &std::fs::File, read_only: bool) -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.read(true).write(!read_only).custom_flags(libc::O_DIRECT);
    // A path through the descriptor reaches the same file even if the original path has changed.
    let own = options.open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let own = match own {
        Err(error) if error.kind() == io::ErrorKind::NotFound => options.open(path)?,
        other => other?,
    };
    Ok(OwnedFd::from(own))
}

/// Takes the advisory lock. The lock of a block device that another process holds is retried for a
/// second, because udev opens block devices for moments; a lock whose process has ended for ten
/// seconds, because the kernel may still complete the I/O of a killed process (io_uring).
fn lock(path: &Path, file: &std::fs::File, read_only: bool) -> Result<(), BackendError> {
    let wanted =
        if read_only { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    let is_block_device = file_properties::check_kind(path, file)?;
    for attempt in 1.. {
        match flock(file, wanted) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let name = holder(file).map(|pid| (pid, std::fs::read_to_string(format!("/proc/{pid}/comm"))));
                let is_alive = matches!(name, Some((_, Ok(_))));
                let tries = match (is_alive, is_block_device) {
                    (false, _) => LOCK_TRIES_ENDED,
                    (true, true) => LOCK_TRIES_BLOCK_DEVICE,
                    (true, false) => 1,
                };
                if attempt >= tries {
                    let holder =
                        name.map(|(pid, name)| format!(": process {pid} ({})", name.unwrap_or_default().trim()));
                    return Err(BackendError::Locked { path: path.into(), holder: holder.unwrap_or_default() });
                }
                if attempt == 1 {
                    tracing::info!(path = %path.display(), "waiting for the lock of an earlier server");
                }
                #[cfg(test)]
                if let Some(act) = WHILE_LOCKED.take() {
                    act();
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            // File systems without locks (some network file systems) are served without a lock.
            Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL) => {
                tracing::warn!(path = %path.display(), "cannot be locked: make sure that no other program writes to it");
                return Ok(());
            }
            Err(error) => return Err(BackendError::Open { path: path.into(), cause: error.into() }),
        }
    }
    Ok(())
}

/// The number of attempts to take a lock whose process has ended.
const LOCK_TRIES_ENDED: u32 = 200;
/// The number of attempts to take the lock of a block device from a process.
const LOCK_TRIES_BLOCK_DEVICE: u32 = 20;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

#[cfg(test)]
thread_local! {
    /// A function that a test sets. [`lock`] calls it once, after its first attempt in this thread
    /// that finds the lock taken.
    pub(crate) static WHILE_LOCKED: std::cell::Cell<Option<Box<dyn FnOnce()>>> = std::cell::Cell::default();
}

/// Returns the process that holds a lock on a file, from `/proc/locks` (proc(5)).
fn holder(file: &std::fs::File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let inode = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let line =
        locks.lines().find(|line| line.contains("FLOCK") && line.split_whitespace().any(|word| word == inode))?;
    line.split_whitespace().nth(4)?.parse().ok()
}
