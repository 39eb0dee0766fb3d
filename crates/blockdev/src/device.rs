//! A block device: a backend, perhaps with an emulated drive, below one queue that all exports of
//! the device share.

use hdrhistogram::Histogram;
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Op;
use hoistway_drive::{Access, Command};
use hoistway_qos::medium::{DriveCommand, FLUSH_NUMBER};
use hoistway_qos::scheduler::DEPTH_MAX;
use hoistway_qos::{
    Begin, Completion, DiskQueue, DiskScheduler, IoError, IoRequest, Medium, MediumEvent, MediumProperties,
    MediumRequest, MemberId, QueueError, ReconfigureError, Recorder, RequestOp,
};
use hoistway_reactor::{Buffer, Engine, IoDone};

use crate::backend::Backend;
use crate::capabilities::Capabilities;
use crate::depth;
use crate::emulated::EmulatedDrive;
use crate::error::BackendError;
use crate::operation::Operation;
use crate::output::IoOutput;

/// A request to a block device.
pub type BlockRequest = IoRequest<Buffer>;

/// The tag of a flush in the drive model.
const DRIVE_FLUSH_TAG: u32 = u32::MAX;

/// An error of creating a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The backend cannot be opened.
    #[error("device {device}: {source}")]
    Backend {
        /// The device.
        device: String,
        /// The reason.
        source: BackendError,
    },
    /// The configuration of the queue is invalid.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// A block device.
#[derive(Debug)]
pub struct Device {
    index: u32,
    backend: Backend,
    emulated: Option<EmulatedDrive>,
    queue: DiskQueue<Buffer, IoOutput>,
    notices: Vec<String>,
}

/// The medium of a device during one call: its backend, its drive model, and the engine.
struct MediumAccess<'a, E> {
    index: u32,
    backend: &'a mut Backend,
    emulated: Option<&'a mut EmulatedDrive>,
    engine: &'a mut E,
}

impl Device {
    /// The name under which clients without a tenant are accounted.
    pub const DEFAULT_TENANT: &str = DiskScheduler::DEFAULT_TENANT;

    /// Opens a device. The tags of its I/O in the engine contain `index`; [`Device::index_of`]
    /// returns it.
    ///
    /// # Errors
    /// When its backend cannot be opened, or a value is out of its range.
    pub fn new<E: Engine>(
        index: u32,
        config: &DeviceConfig,
        engine: &mut E,
        now_ns: u64,
    ) -> Result<Device, DeviceError> {
        let backend = Backend::open(&config.backend, engine)
            .map_err(|source| DeviceError::Backend { device: config.queue.name.clone(), source })?;
        if config.drive.is_some() {
            engine.require_precise_timers();
        }
        Device::with_backend(index, config, backend, now_ns)
    }

    /// Creates a device over an open backend.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn with_backend(
        index: u32,
        config: &DeviceConfig,
        backend: Backend,
        now_ns: u64,
    ) -> Result<Device, DeviceError> {
        let emulated = config.drive.as_ref().map(|profile| EmulatedDrive::new(profile, now_ns));
        let mut notices = Vec::new();
        let bytes = usable_bytes(&backend, emulated.as_ref(), &mut notices);
        let medium = medium_properties(config, &backend, emulated.as_ref(), bytes);
        let queue = DiskQueue::new(&config.queue, medium, now_ns)?;
        Ok(Device { index, backend, emulated, queue, notices })
    }

    /// Returns the index of the device that an engine's tag belongs to.
    pub fn index_of(tag: u64) -> u32 {
        (tag >> 32) as u32
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        self.queue.scheduler().name()
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.queue.scheduler().size()
    }

    /// Returns the scheduler: tenants, limits, elevator, accounts.
    pub fn scheduler(&self) -> &DiskScheduler {
        self.queue.scheduler()
    }

    /// Returns the scheduler for changes. The host has to call [`Device::run`] afterwards.
    pub fn scheduler_mut(&mut self) -> &mut DiskScheduler {
        self.queue.scheduler_mut()
    }

    /// Returns what the device can do.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities { rotational: self.scheduler().is_rotational(), ..self.backend.capabilities() }
    }

    /// Returns true if writing zeroes is faster than writing data; `punch`: where the range may
    /// become a hole. Whether a file system can zero a range and keep it allocated is unknown
    /// before it is tried, so it counts as slow.
    pub fn zero_is_fast(&self, punch: bool) -> bool {
        let keeps_allocation = !self.backend.is_file();
        self.emulated.is_none() && self.backend.capabilities().fast_zero && (punch || keeps_allocation)
    }

    /// Returns the backend.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns the profile name of the emulated drive.
    pub fn drive(&self) -> Option<&str> {
        self.emulated.as_ref().map(EmulatedDrive::name)
    }

    /// Returns how late the completions of the emulated drive were processed, in ns, with two
    /// significant digits.
    pub fn lateness(&self) -> Option<&Histogram<u64>> {
        self.emulated.as_ref().map(EmulatedDrive::lateness)
    }

    /// Returns the lateness as lines of text; empty without an emulated drive.
    pub fn lateness_lines(&self) -> Vec<String> {
        self.emulated.as_ref().map_or_else(Vec::new, EmulatedDrive::lateness_lines)
    }

    /// Returns notices about the setup of the device, as sentences for the log.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Attaches a recorder of queue events, or detaches the present one.
    pub fn set_recorder(&mut self, recorder: Option<Box<dyn Recorder>>) {
        let drive = self.emulated.as_ref().map(EmulatedDrive::name);
        self.queue.scheduler_mut().set_recorder(recorder, drive);
    }

    /// Returns true if a flush or a durable write has failed: all flushes then fail until the
    /// device is opened again.
    pub fn has_lost_writes(&self) -> bool {
        self.queue.has_lost_writes()
    }

    /// Returns true if no request waits or is in progress, including requests of clients that have
    /// left.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Applies another configuration of the queue while requests are in progress; backend and drive
    /// stay. Returns warnings.
    ///
    /// # Errors
    /// When a value is out of its range, the elevator has no such tunable, or a switch is in
    /// progress; nothing has changed then.
    pub fn reconfigure(&mut self, config: &DeviceConfig, now_ns: u64) -> Result<Vec<String>, ReconfigureError> {
        self.scheduler_mut().reconfigure(&config.queue, now_ns)
    }

    /// Submits a request. [`Device::run`] returns its completion, unless the client leaves before.
    pub fn submit(&mut self, member: MemberId, work: BlockRequest, now_ns: u64) {
        let data_bytes = work.data.as_ref().map_or(0, |data| data.len() as u64);
        let lacks_data = work.op == RequestOp::Write && data_bytes < work.length;
        if lacks_data && work.op.check_range(work.offset, work.length, self.size()).is_ok() {
            return self.queue.refuse(member, work.ticket, IoError::InvalidArgument);
        }
        // The server identifies its requests by their tickets.
        let _ = self.queue.submit(member, work, now_ns);
    }

    /// Removes a client. Its waiting requests are dropped; those in the device end without a
    /// completion.
    pub fn leave(&mut self, member: MemberId, now_ns: u64) {
        self.queue.leave(member, now_ns);
    }

    /// Dispatches requests up to the queue depth, and appends the completions of ended requests to
    /// `done`.
    pub fn run<E: Engine>(&mut self, engine: &mut E, now_ns: u64, done: &mut Vec<Completion<IoOutput>>) {
        self.catch_up(engine, now_ns);
        let (queue, mut medium) = self.split(engine);
        queue.run(&mut medium, now_ns, done);
    }

    /// Processes the events of an emulated drive that were due since the last run, each at its own
    /// time. The host calls it before it submits new requests. It does nothing for other devices.
    pub fn catch_up<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        let Some(emulated) = &mut self.emulated else { return };
        emulated.set_woken(now_ns);
        let (queue, mut medium) = self.split(engine);
        queue.catch_up(&mut medium, now_ns);
    }

    /// Processes the end of an I/O that the device started in the engine.
    pub fn io_done<E: Engine>(&mut self, engine: &mut E, tag: u64, io: IoDone, now_ns: u64) {
        let number = tag as u32;
        let Some(op) = self.queue.op_of(number) else { return };
        if let Begin::Done(result) = self.backend.finish(engine, tag, op, io) {
            self.queue.end_io(number, result, now_ns);
        }
    }

    /// Returns the time at which [`Device::run`] has to be called if nothing else happens; a time
    /// in the past means at once.
    pub fn next_wake_ns(&self) -> Option<u64> {
        self.queue.next_wake_ns(self.emulated.as_ref().and_then(EmulatedDrive::next_ns))
    }

    fn split<'a, E: Engine>(
        &'a mut self,
        engine: &'a mut E,
    ) -> (&'a mut DiskQueue<Buffer, IoOutput>, MediumAccess<'a, E>) {
        let Device { index, backend, emulated, queue, .. } = self;
        (queue, MediumAccess { index: *index, backend, emulated: emulated.as_mut(), engine })
    }
}

impl<E: Engine> Medium for MediumAccess<'_, E> {
    type Data = Buffer;
    type Output = IoOutput;

    fn begin(&mut self, request: MediumRequest<Buffer>) -> Begin<IoOutput> {
        let MediumRequest { number, op, offset, length, durable, data, .. } = request;
        let tag = u64::from(self.index) << 32 | u64::from(number);
        debug_assert!(op == RequestOp::Flush || number != FLUSH_NUMBER, "only a flush has this number");
        self.backend.begin(self.engine, Operation { tag, op, offset, length, durable, data })
    }

    fn copy_piece(&mut self, data: &Buffer, from: usize, length: usize) -> Option<Buffer> {
        let bytes = data.get(from..from.checked_add(length)?)?;
        let mut piece = self.engine.buffer(length);
        piece.get_mut(..length)?.copy_from_slice(bytes);
        Some(piece)
    }

    fn start_command(&mut self, command: &DriveCommand, now_ns: u64) -> bool {
        let Some(emulated) = &mut self.emulated else { return false };
        let DriveCommand { number, op, sector, sectors, fua } = *command;
        let command = match op {
            Op::Read => Command::from(Access { op: hoistway_drive::Op::Read, sector, sectors }),
            Op::Discard => Command::Discard { sector, sectors },
            Op::Write | Op::Flush => {
                Command::Transfer { access: Access { op: hoistway_drive::Op::Write, sector, sectors }, fua }
            }
        };
        // Requests beyond the end of the drive were refused at submission.
        emulated.submit(now_ns, number, &command).is_ok()
    }

    fn start_flush(&mut self, now_ns: u64) -> bool {
        let Some(emulated) = &mut self.emulated else { return false };
        // A flush names no sectors, so the drive cannot refuse it.
        let _ = emulated.submit(now_ns, DRIVE_FLUSH_TAG, &Command::Flush);
        true
    }

    fn poll(&mut self, now_ns: u64) -> Option<MediumEvent> {
        let completed = self.emulated.as_mut()?.poll(now_ns)?;
        Some(match completed.tag {
            DRIVE_FLUSH_TAG => MediumEvent::FlushDone,
            number => MediumEvent::CommandDone { number, bad_sector: completed.bad_sector },
        })
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.emulated.as_ref().and_then(|emulated| emulated.next_ns())
    }
}

fn medium_properties(
    config: &DeviceConfig,
    backend: &Backend,
    emulated: Option<&EmulatedDrive>,
    bytes: u64,
) -> MediumProperties {
    let in_memory = matches!(config.backend, BackendConfig::Memory { .. } | BackendConfig::Null { .. });
    MediumProperties {
        bytes,
        rotational: config.drive.as_ref().map_or(backend.rotational(), |profile| profile.is_rotational()),
        is_emulated: emulated.is_some(),
        is_synchronous: emulated.is_none() && in_memory,
        splits_requests: true,
        default_depth: match emulated {
            Some(emulated) => emulated.depth().min(depth::EMULATED_MAX),
            None if in_memory => depth::MEMORY,
            None => backend.default_depth(),
        },
        depth_max: emulated.map_or(DEPTH_MAX, EmulatedDrive::depth),
    }
}

/// Returns the smaller of the sizes of backend and drive in bytes, and notes the difference.
fn usable_bytes(backend: &Backend, emulated: Option<&EmulatedDrive>, notices: &mut Vec<String>) -> u64 {
    let bytes = backend.size();
    let Some(drive) = emulated else { return bytes };
    let (name, drive_bytes) = (drive.name(), drive.bytes());
    if drive_bytes < bytes {
        let unused = bytes - drive_bytes;
        notices.push(format!("the drive {name} holds {drive_bytes} bytes: {unused} bytes of the backend are not used"));
    } else if drive_bytes > bytes {
        notices.push(format!(
            "the backend holds {bytes} of the {drive_bytes} bytes of the drive {name}: only the drive's outer part is used"
        ));
    }
    bytes.min(drive_bytes)
}
