//! A file or a block device: everything goes through the engine.
//!
//! With direct I/O nothing but whole units (512 to 4096 bytes) can be read and written. What is not
//! aligned is widened: reads to the units around them; writes by reading those units, changing them
//! and writing them back, while no other write to the same units is under way. The page cache has
//! no part in it, so the two ways never disagree.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hoistway_qos::{Begin, IoError, RequestOp};
use hoistway_reactor::{Buffer, Engine, FileId, Io, IoDone, IoOp};
use rustix::fs::{FlockOperation, flock};

use crate::answer::Answer;
use crate::capabilities::Capabilities;
use crate::depth;
use crate::error::{BackendError, io_error_of_os};
use crate::file_properties::{self, FileProperties, MediumKind};
use crate::operation::{Operation, Started};

/// Trims, and zeroes of block devices, come in multiples of this many bytes; file systems give back
/// nothing less.
const TRIM_BYTES: u64 = 4096;

/// A file or a block device.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    /// What it is whatever it is called: file system and inode. Simulated files have none.
    identity: Option<(u64, u64)>,
    properties: FileProperties,
    read_only: bool,
    id: FileId,
    /// The unit of direct I/O, if that is what is done.
    unit: Option<u64>,
    /// With direct I/O: the writes under way, in whole units.
    writes: Vec<Range>,
    /// With direct I/O: writes that wait for one of those, in the order in which they came.
    waiting: VecDeque<Operation>,
    /// What takes more than one step.
    scripts: Vec<Script>,
    /// Durable writes under way.
    durable: Vec<u64>,
    /// Something could not be made durable. The kernel forgets it then and calls the next flush a
    /// success; here none is any more.
    lost: bool,
}

/// A write under way.
#[derive(Clone, Copy, Debug)]
struct Range {
    tag: u64,
    from: u64,
    to: u64,
    /// It reads before it writes: nothing else may write there meanwhile.
    alone: bool,
}

/// Steps that follow one another, and the one under way.
#[derive(Debug)]
struct Script {
    tag: u64,
    current: Step,
    rest: VecDeque<Step>,
    /// Of a write: the data.
    data: Option<Buffer>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Reads whole units; the answer begins `skip` bytes into them.
    Read { from: u64, length: u64, skip: usize },
    /// Reads whole units, in order to change `length` bytes `skip` bytes into them.
    Load { from: u64, to: u64, skip: usize, length: usize, durable: bool },
    /// Any I/O without data.
    Plain { op: IoOp, from: u64, length: u64 },
    /// Writes zeroes.
    Zeroes { from: u64, length: u64 },
    /// Writes back what was loaded and changed.
    Store,
}

impl File {
    /// Opens it, locks it (flock(2): shared for reading only, else exclusive), and finds out what
    /// it can do.
    pub fn open<E: Engine>(
        path: &Path,
        direct: Option<bool>,
        read_only: bool,
        engine: &mut E,
    ) -> Result<File, BackendError> {
        let failed = |cause: io::Error| BackendError::Open { path: path.into(), cause };
        let file = OpenOptions::new()
            .read(true)
            .write(!read_only)
            // A pipe is not waited for: it is refused below.
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|cause| refine(path, cause))?;
        let block_device = file_properties::check_kind(path, &file)?;
        // The engine must be free to wait for the medium.
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty()).map_err(|error| failed(error.into()))?;
        lock(path, &file, read_only)?;
        let properties = file_properties::examine(&file, block_device, read_only).map_err(failed)?;
        if properties.size == 0 {
            return Err(BackendError::Empty { path: path.into() });
        }
        let unit = direct_unit(path, direct, &properties)?;
        let identity = file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let id = match unit {
            None => engine.open(OwnedFd::from(file)),
            Some(_) => match reopen_direct(path, &file, read_only) {
                Ok(own) => {
                    // The lock goes with the first descriptor: the engine keeps that, too.
                    engine.open(OwnedFd::from(file));
                    engine.open(own)
                }
                Err(cause) if direct == Some(true) => {
                    return Err(BackendError::Direct { path: path.into(), cause: cause.to_string() });
                }
                Err(cause) => {
                    tracing::info!(path = %path.display(), %cause, "no direct I/O: through the page cache");
                    let id = engine.open(OwnedFd::from(file));
                    return Ok(File { identity, ..File::new(path.into(), properties, read_only, id, None) });
                }
            },
        };
        Ok(File { identity, ..File::new(path.into(), properties, read_only, id, unit.map(u64::from)) })
    }

    /// A file of an engine whose files are simulated.
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
        let (writes, scripts) = (Vec::with_capacity(64), Vec::with_capacity(8));
        File {
            path,
            identity: None,
            properties,
            read_only,
            id,
            unit,
            writes,
            waiting: VecDeque::new(),
            scripts,
            durable: Vec::new(),
            lost: false,
        }
    }

    pub fn is_at(&self, path: &Path) -> bool {
        let there = std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        self.identity.is_some() && self.identity == there
    }

    pub fn size(&self) -> u64 {
        self.properties.size
    }

    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            read_only: self.read_only,
            flush: true,
            fua: true,
            rotational: self.rotational(),
            trim: self.properties.trim && !self.read_only,
            write_zeroes: !self.read_only,
            fast_zero: self.properties.fast_zero && !self.read_only,
            multi_conn: true,
            // Past the page cache there is nothing to read it into.
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

    /// Begins an operation, whose range is checked.
    pub fn begin<E: Engine>(&mut self, engine: &mut E, operation: Operation) -> Started {
        let Operation { tag, op, offset, length, durable, .. } = operation;
        if self.lost && (durable || op == RequestOp::Flush) {
            return Begin::Done(Err(IoError::Io));
        }
        if durable && length > 0 {
            self.durable.push(tag);
        }
        match op {
            RequestOp::Flush if self.read_only => Begin::Done(Ok(Answer::Nothing)),
            RequestOp::Flush => self.start(engine, tag, IoOp::Flush, 0, 0, None),
            _ if length == 0 => Begin::Done(Ok(nothing(op))),
            RequestOp::Status => self.start(engine, tag, IoOp::Status, offset, length, None),
            RequestOp::Read | RequestOp::Cache => self.read(engine, tag, offset, length),
            RequestOp::Trim => self.trim(engine, operation),
            RequestOp::Write | RequestOp::Zero { .. } => self.write(engine, operation),
        }
    }

    /// Takes up what ended.
    pub fn finish<E: Engine>(&mut self, engine: &mut E, tag: u64, op: RequestOp, done: IoDone) -> Started {
        let started = self.take_up(engine, tag, op, done);
        if let Begin::Done(result) = &started {
            let durable = self.durable.iter().position(|durable| *durable == tag);
            if let Some(at) = durable {
                self.durable.swap_remove(at);
            }
            let lost = match result {
                Ok(_) => false,
                Err(error) => op == RequestOp::Flush || (durable.is_some() && *error == IoError::Io),
            };
            if lost && !self.lost {
                self.lost = true;
                tracing::error!(path = %self.path.display(), "writes may be lost: flushes fail until the device is opened anew");
            }
        }
        started
    }

    fn take_up<E: Engine>(&mut self, engine: &mut E, tag: u64, op: RequestOp, done: IoDone) -> Started {
        let script = match self.scripts.is_empty() {
            true => None,
            false => self.scripts.iter().position(|script| script.tag == tag),
        };
        let result = match script {
            None => answer(op, done),
            Some(at) => match self.step_ended(engine, at, op, done) {
                Some(result) => result,
                None => return Begin::Pending,
            },
        };
        if let Some(at) = self.writes.iter().position(|write| write.tag == tag) {
            self.writes.swap_remove(at);
            self.start_waiting(engine);
        }
        Begin::Done(result)
    }

    fn start<E: Engine>(
        &self,
        engine: &mut E,
        tag: u64,
        op: IoOp,
        offset: u64,
        length: u64,
        buffer: Option<Buffer>,
    ) -> Started {
        engine.start(tag, Io { file: self.id, op, offset, length, buffer });
        Begin::Pending
    }

    /// The whole units around a range.
    fn around(&self, offset: u64, length: u64) -> (u64, u64) {
        let unit = self.unit.unwrap_or(1);
        // The size is a multiple of the unit, so the end is no farther than the size.
        (offset - offset % unit, (offset + length).next_multiple_of(unit))
    }

    fn is_aligned(&self, offset: u64, length: u64) -> bool {
        self.unit.is_none_or(|unit| (offset | length).is_multiple_of(unit))
    }

    fn read<E: Engine>(&mut self, engine: &mut E, tag: u64, offset: u64, length: u64) -> Started {
        let (from, to) = self.around(offset, length);
        let buffer = engine.buffer((to - from) as usize);
        if (from, to - from) != (offset, length) {
            let step = Step::Read { from, length: to - from, skip: (offset - from) as usize };
            self.scripts.push(Script { tag, current: step, rest: VecDeque::new(), data: None });
        }
        self.start(engine, tag, IoOp::Read, from, to - from, Some(buffer))
    }

    /// Gives back the whole blocks of a range, if there are any.
    fn trim<E: Engine>(&mut self, engine: &mut E, request: Operation) -> Started {
        let from = request.offset.next_multiple_of(TRIM_BYTES);
        let end = request.offset + request.length;
        let to = if end == self.properties.size { end } else { end - end % TRIM_BYTES };
        let plain = Step::Plain { op: IoOp::Trim, from, length: to.saturating_sub(from) };
        let flush = Step::Plain { op: IoOp::Flush, from: 0, length: 0 };
        let steps = match (self.properties.trim && from < to, request.durable) {
            (true, true) => VecDeque::from([plain, flush]),
            (true, false) => VecDeque::from([plain]),
            (false, true) => VecDeque::from([flush]),
            (false, false) => return Begin::Done(Ok(Answer::Nothing)),
        };
        // With a flush behind it, it is a script.
        self.run(engine, request.tag, steps, None)
    }

    /// Writes data or zeroes: at once, or after the write that is in the way.
    fn write<E: Engine>(&mut self, engine: &mut E, request: Operation) -> Started {
        if self.unit.is_some() {
            let range = self.range(&request);
            let blocked = self.writes.iter().any(|write| write.forbids(&range))
                || self.waiting.iter().any(|earlier| self.range(earlier).forbids(&range));
            if blocked {
                self.waiting.push_back(request);
                return Begin::Pending;
            }
            self.writes.push(range);
        }
        self.start_write(engine, request)
    }

    fn range(&self, request: &Operation) -> Range {
        let (from, to) = self.around(request.offset, request.length);
        let alone = !self.is_aligned(request.offset, request.length);
        Range { tag: request.tag, from, to, alone }
    }

    fn start_waiting<E: Engine>(&mut self, engine: &mut E) {
        let mut at = 0;
        while let Some(request) = self.waiting.get(at) {
            let range = self.range(request);
            let blocked = self.writes.iter().any(|write| write.forbids(&range))
                || self.waiting.iter().take(at).any(|earlier| self.range(earlier).forbids(&range));
            if blocked {
                at += 1;
            } else if let Some(request) = self.waiting.remove(at) {
                self.writes.push(range);
                self.start_write(engine, request);
            }
        }
    }

    fn start_write<E: Engine>(&mut self, engine: &mut E, request: Operation) -> Started {
        let Operation { tag, op, offset, length, durable, data } = request;
        if let RequestOp::Zero { punch } = op {
            let steps = self.zero_steps(offset, length, durable, punch);
            return self.run(engine, tag, steps, None);
        }
        if self.is_aligned(offset, length) {
            return self.start(engine, tag, IoOp::Write { durable }, offset, length, data);
        }
        let (from, to) = self.around(offset, length);
        let step = Step::Load { from, to, skip: (offset - from) as usize, length: length as usize, durable };
        self.run(engine, tag, VecDeque::from([step]), data)
    }

    /// How a range becomes zeroes: whole blocks of 4 KiB by what the medium has for it; what is
    /// left at the ends is written, unless a file behind the page cache does that itself.
    fn zero_steps(&self, offset: u64, length: u64, durable: bool, punch: bool) -> VecDeque<Step> {
        let plain_bytes = if self.unit.is_some() || self.properties.block_device { TRIM_BYTES } else { 1 };
        let end = offset + length;
        let from = offset.next_multiple_of(plain_bytes).min(end);
        // The last one of a device may be short.
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

    /// Begins a script. One of a single plain step needs none.
    fn run<E: Engine>(&mut self, engine: &mut E, tag: u64, mut steps: VecDeque<Step>, data: Option<Buffer>) -> Started {
        let Some(current) = steps.pop_front() else { return Begin::Done(Ok(Answer::Nothing)) };
        if steps.is_empty()
            && let Step::Plain { op, from, length } = current
        {
            return self.start(engine, tag, op, from, length, None);
        }
        self.scripts.push(Script { tag, current, rest: steps, data });
        self.start_step(engine, tag, current)
    }

    fn start_step<E: Engine>(&self, engine: &mut E, tag: u64, step: Step) -> Started {
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

    /// A step of a script ended: its result, unless more follows.
    fn step_ended<E: Engine>(
        &mut self,
        engine: &mut E,
        at: usize,
        op: RequestOp,
        mut done: IoDone,
    ) -> Option<Result<Answer, IoError>> {
        let script = &mut self.scripts[at];
        let tag = script.tag;
        if done.result.is_ok() {
            if let Step::Load { from, to, skip, length, durable } = script.current
                && let Some(mut buffer) = done.buffer.take()
            {
                let changed = &mut buffer[skip..skip + length];
                match &script.data {
                    Some(data) => changed.copy_from_slice(&data[..length]),
                    None => changed.fill(0),
                }
                script.current = Step::Store;
                self.start(engine, tag, IoOp::Write { durable }, from, to - from, Some(buffer));
                return None;
            }
            if let Some(next) = script.rest.pop_front() {
                script.current = next;
                self.start_step(engine, tag, next);
                return None;
            }
        }
        let script = self.scripts.swap_remove(at);
        if let (Step::Read { skip, length, .. }, Some(buffer)) = (script.current, &mut done.buffer) {
            buffer.copy_within(skip..length as usize, 0);
        }
        Some(answer(op, done))
    }
}

impl Range {
    /// Whether two writes cannot be under way at once.
    fn forbids(&self, other: &Range) -> bool {
        (self.alone || other.alone) && self.from < other.to && other.from < self.to
    }
}

fn nothing(op: RequestOp) -> Answer {
    match op {
        RequestOp::Read => Answer::Zeroes,
        RequestOp::Status => Answer::Extents(Vec::new()),
        _ => Answer::Nothing,
    }
}

fn answer(op: RequestOp, done: IoDone) -> Result<Answer, IoError> {
    match done.result {
        Err(code) => Err(io_error_of_os(code)),
        Ok(()) => match (op, done.buffer) {
            (RequestOp::Read, Some(buffer)) => Ok(Answer::Buffer(buffer)),
            (RequestOp::Status, _) => Ok(Answer::Extents(done.extents)),
            _ => Ok(Answer::Nothing),
        },
    }
}

/// A clearer cause, where the system's is not clear.
fn refine(path: &Path, cause: io::Error) -> BackendError {
    let what = match cause.raw_os_error() {
        Some(libc::EISDIR) => "a directory",
        Some(libc::ENXIO) => "a pipe or a socket",
        _ => return BackendError::Open { path: path.into(), cause },
    };
    BackendError::Kind { path: path.into(), what }
}

/// The unit of direct I/O that is to be used, if any.
fn direct_unit(path: &Path, direct: Option<bool>, properties: &FileProperties) -> Result<Option<u32>, BackendError> {
    let refused = |cause: String| Err(BackendError::Direct { path: path.into(), cause });
    match (direct, properties.direct_unit) {
        (Some(false), _) => Ok(None),
        (Some(true), None) => refused("its file system has none".into()),
        (None, None) => Ok(None),
        (_, Some(unit)) if properties.size.is_multiple_of(u64::from(unit)) => Ok(Some(unit)),
        (Some(true), Some(unit)) => refused(format!("its size, {}, is no multiple of {unit}", properties.size)),
        (None, Some(_)) => Ok(None),
    }
}

/// The same file once more, for direct I/O.
fn reopen_direct(path: &Path, file: &std::fs::File, read_only: bool) -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.read(true).write(!read_only).custom_flags(libc::O_DIRECT);
    // Through its descriptor it is the same file, even if the name leads elsewhere by now.
    let own = options.open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let own = match own {
        Err(error) if error.kind() == io::ErrorKind::NotFound => options.open(path)?,
        other => other?,
    };
    Ok(OwnedFd::from(own))
}

/// Takes the advisory lock. Two sorts of others are waited for, up to a second: what looks at block
/// devices for moments (udev), and a process that is gone, whose I/O the kernel has not ended yet
/// (io_uring's goes on for moments after a kill).
fn lock(path: &Path, file: &std::fs::File, read_only: bool) -> Result<(), BackendError> {
    let wanted =
        if read_only { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    let is_block_device = file_properties::check_kind(path, file)?;
    for attempt in 1..=LOCK_TRIES {
        match flock(file, wanted) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let name = holder(file).map(|pid| (pid, std::fs::read_to_string(format!("/proc/{pid}/comm"))));
                let lives = matches!(name, Some((_, Ok(_))));
                if attempt == LOCK_TRIES || (lives && !is_block_device) {
                    let told = name.map(|(pid, name)| format!(": process {pid} ({})", name.unwrap_or_default().trim()));
                    return Err(BackendError::Locked { path: path.into(), holder: told.unwrap_or_default() });
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            // A file system without locks (some network ones) is served without.
            Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL) => {
                tracing::warn!(path = %path.display(), "cannot be locked: see to it yourself that nobody else writes to it");
                return Ok(());
            }
            Err(error) => return Err(BackendError::Open { path: path.into(), cause: error.into() }),
        }
    }
    Ok(())
}

/// How often the lock is tried, and the pause between two.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The process that has taken a lock on a file, from `/proc/locks` (proc(5)).
fn holder(file: &std::fs::File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let inode = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let line =
        locks.lines().find(|line| line.contains("FLOCK") && line.split_whitespace().any(|word| word == inode))?;
    line.split_whitespace().nth(4)?.parse().ok()
}
