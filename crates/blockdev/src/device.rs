//! A block device: a backend, optionally with an emulated drive, below one queue that all exports
//! of the device share.

use hdrhistogram::Histogram;
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Op;
use hoistway_drive::{Access, Command};
use hoistway_nbd::Abilities;
use hoistway_qos::medium::DriveCommand;
use hoistway_qos::scheduler::DEPTH_MAX;
use hoistway_qos::{
    Begin, CommandId, Completion, DiskQueue, DiskScheduler, IoError, IoRequest, Medium, MediumEvent, MediumProperties,
    MediumRequest, MemberId, QueueError, ReconfigureError, Recorder, RequestOp,
};
use hoistway_reactor::{Buffer, ConnId, Engine, Event, IoDone};

use crate::backend::Backend;
use crate::depth;
use crate::emulated::EmulatedDrive;
use crate::error::BackendError;
use crate::error_log::{Cause, ErrorLog, FailedIo};
use crate::ids::{DeviceId, IoTag};
use crate::output::IoOutput;
use crate::remote::{Ended, Remote, Sabotage};

/// A request to a block device.
pub type BlockRequest = IoRequest<Buffer>;

/// The tag of a flush in the drive model. Commands use their id as tag.
const DRIVE_FLUSH_TAG: u32 = u32::MAX;

/// Reasons why a device cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The backend cannot be opened.
    #[error("device {device}: {cause}")]
    Backend {
        /// The name of the device.
        device: String,
        /// The error of the backend.
        cause: BackendError,
    },
    /// The configuration of the queue is invalid.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// A block device: its backend, emulated drive, and queue. Times are in ns of the engine's clock
/// ([`Engine::now_ns`]).
#[derive(Debug)]
pub struct Device {
    id: DeviceId,
    backend: Backend,
    emulated: Option<EmulatedDrive>,
    queue: DiskQueue<Buffer, IoOutput>,
    failures: Failures,
    notices: Vec<String>,
}

/// The failures of the I/O of a device.
#[derive(Debug)]
struct Failures {
    log: ErrorLog,
    /// The error of all flushes, after written data may have been lost. The system reports a failed
    /// write-back once, and lets the next flush succeed.
    lost_writes: Option<IoError>,
}

/// The medium of a device during one call: its backend, its drive model, and the engine.
struct MediumAccess<'a, E> {
    id: DeviceId,
    backend: &'a mut Backend,
    emulated: Option<&'a mut EmulatedDrive>,
    failures: &'a mut Failures,
    engine: &'a mut E,
}

impl Device {
    /// The name of the tenant in whose account the requests of clients without a tenant are
    /// counted.
    pub const DEFAULT_TENANT: &str = DiskScheduler::DEFAULT_TENANT;

    /// Opens a device. The engine's tags of its I/O contain `id`: see [`DeviceId::of_tag`].
    ///
    /// # Errors
    /// [`DeviceError::Backend`] if the backend cannot be opened, [`DeviceError::Queue`] if a value
    /// of the configuration is out of range.
    pub fn new<E: Engine>(
        id: DeviceId,
        config: &DeviceConfig,
        engine: &mut E,
        now_ns: u64,
    ) -> Result<Device, DeviceError> {
        let backend = Backend::open(id, &config.backend, engine)
            .map_err(|cause| DeviceError::Backend { device: config.queue.name.clone(), cause })?;
        if config.drive.is_some() {
            engine.require_precise_timers();
        }
        Device::with_backend(id, config, backend, now_ns)
    }

    /// Creates a device over an open backend. Unlike [`Device::new`], it does not request precise
    /// timers of the engine for an emulated drive.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if a value of the configuration is out of range.
    pub fn with_backend(
        id: DeviceId,
        config: &DeviceConfig,
        backend: Backend,
        now_ns: u64,
    ) -> Result<Device, DeviceError> {
        let emulated = config.drive.as_ref().map(|profile| EmulatedDrive::new(profile, now_ns));
        let mut notices = Vec::new();
        let bytes = usable_bytes(&backend, emulated.as_ref(), &mut notices);
        let medium = medium_properties(config, &backend, emulated.as_ref(), bytes);
        let queue = DiskQueue::new(&config.queue, medium, now_ns)?;
        let failures = Failures { log: ErrorLog::new(), lost_writes: None };
        Ok(Device { id, backend, emulated, queue, failures, notices })
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        self.queue.scheduler().name()
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.queue.scheduler().size()
    }

    /// Returns the scheduler, which holds the tenants, limits, elevator and accounts.
    pub fn scheduler(&self) -> &DiskScheduler {
        self.queue.scheduler()
    }

    /// Returns the scheduler for changes. The host has to call [`Device::run`] afterwards.
    pub fn scheduler_mut(&mut self) -> &mut DiskScheduler {
        self.queue.scheduler_mut()
    }

    /// Returns the operations and guarantees of the device.
    pub fn abilities(&self) -> Abilities {
        Abilities { rotational: self.scheduler().is_rotational(), ..self.backend.abilities() }
    }

    /// Returns true if zeroing a range is faster than writing data to it. `punch` permits a hole in
    /// the range. Without it, zeroing counts as slow on files: only an attempt shows if the file
    /// system can zero a range and keep it allocated.
    pub fn zero_is_fast(&self, punch: bool) -> bool {
        let keeps_allocation = !self.backend.is_file();
        self.emulated.is_none() && self.backend.abilities().fast_zero && (punch || keeps_allocation)
    }

    /// Returns the backend.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns the profile name of the emulated drive; `None` without one.
    pub fn drive(&self) -> Option<&str> {
        self.emulated.as_ref().map(EmulatedDrive::name)
    }

    /// Returns the histogram of the lateness of the emulated drive's completions: the delay in ns
    /// from the model's completion to its processing, with two significant digits. `None` without
    /// an emulated drive.
    pub fn lateness(&self) -> Option<&Histogram<u64>> {
        self.emulated.as_ref().map(EmulatedDrive::lateness)
    }

    /// Returns the lateness histogram as lines of text; empty without an emulated drive or without
    /// completions.
    pub fn lateness_lines(&self) -> Vec<String> {
        self.emulated.as_ref().map_or_else(Vec::new, EmulatedDrive::lateness_lines)
    }

    /// Returns notices about the configuration of the device, as sentences for the log.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Attaches a recorder of queue events, or with `None` detaches the current one.
    pub fn set_recorder(&mut self, recorder: Option<Box<dyn Recorder>>) {
        let drive = self.emulated.as_ref().map(EmulatedDrive::name);
        self.queue.scheduler_mut().set_recorder(recorder, drive);
    }

    /// Returns true if written data may have been lost: a flush or a durable write has failed. All
    /// flushes and durable writes then fail until the device is opened again.
    pub fn has_lost_writes(&self) -> bool {
        self.failures.lost_writes.is_some()
    }

    /// Returns true if no request is queued or in progress. Requests of removed clients count until
    /// they end.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Applies another configuration of the queue while requests are in progress, and returns
    /// warnings. The backend and the emulated drive do not change.
    ///
    /// # Errors
    /// [`ReconfigureError`] if a value is out of range, the elevator lacks a tunable, or a switch
    /// of elevators is in progress. The configuration is unchanged then.
    pub fn reconfigure(&mut self, config: &DeviceConfig, now_ns: u64) -> Result<Vec<String>, ReconfigureError> {
        self.scheduler_mut().reconfigure(&config.queue, now_ns)
    }

    /// Submits a request of a client. [`Device::run`] returns its completion, also if the request
    /// is invalid, unless the client is removed before.
    pub fn submit(&mut self, member: MemberId, request: BlockRequest, now_ns: u64) {
        let data_bytes = request.data.as_ref().map_or(0, |data| data.len() as u64);
        let lacks_data = request.op == RequestOp::Write && data_bytes < request.length;
        // The error of a range beyond the end takes precedence: the queue reports it.
        if lacks_data && request.op.check_range(request.offset, request.length, self.size()).is_ok() {
            return self.queue.refuse(member, request.ticket, IoError::InvalidArgument);
        }
        // The id of the I/O is not needed: the server identifies the request by its ticket.
        let _ = self.queue.submit(member, request, now_ns);
    }

    /// Removes a client. Its queued requests are dropped. Its requests in the device end without a
    /// completion.
    pub fn leave(&mut self, member: MemberId, now_ns: u64) {
        self.queue.leave(member, now_ns);
    }

    /// Dispatches requests up to the queue depth, and appends the completions of all clients to
    /// `done`.
    pub fn run<E: Engine>(&mut self, engine: &mut E, now_ns: u64, done: &mut Vec<Completion<IoOutput>>) {
        self.catch_up(engine, now_ns);
        self.end_remote_io(engine, now_ns);
        let (queue, mut medium) = self.split(engine);
        queue.run(&mut medium, now_ns, done);
        if let Some(remote) = self.backend.remote_mut() {
            remote.send_waiting(engine);
        }
    }

    /// Does what is due at a remote export, and ends the operations that it has completed.
    fn end_remote_io<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        let Some(remote) = self.backend.remote_mut() else { return };
        remote.advance(engine, now_ns);
        let (ended, loss) = (remote.take_ended(), remote.take_loss());
        if let Some(why) = loss {
            self.failures.lose_writes(&self.backend, IoError::Io, why);
        }
        for Ended { io, result, cause } in ended {
            if let Some(request) = self.queue.io_in_progress(io) {
                self.end_io(&request, result, cause, now_ns);
            }
        }
    }

    /// Ends an I/O in the queue, and logs a failure. A flush that began before written data may
    /// have been lost fails, too.
    fn end_io(&mut self, request: &MediumRequest<()>, result: Result<IoOutput, IoError>, cause: Cause, now_ns: u64) {
        let result = match self.failures.lost_writes {
            Some(error) if request.op == RequestOp::Flush => Err(error),
            _ => result,
        };
        if let Err(error) = result {
            self.failures.log(&self.backend, request, error, cause, now_ns);
            self.failures.note(&self.backend, request, error);
        }
        self.queue.end_io(request.io, result, now_ns);
    }

    /// Plants a fault in the recovery of a remote export, for tests that have to find it.
    pub fn sabotage_remote(&mut self, sabotage: Sabotage) {
        if let Some(remote) = self.backend.remote_mut() {
            remote.set_sabotage(sabotage);
        }
    }

    /// Returns true if a connection of the engine belongs to the device.
    pub fn owns(&self, conn: ConnId) -> bool {
        self.backend.remote().is_some_and(|remote| remote.owns(conn))
    }

    /// Processes an event of a connection of the device, or the end of an attempt to connect.
    /// [`Device::run`] does what follows from it.
    pub fn connection_event<E: Engine>(&mut self, engine: &mut E, event: Event, now_ns: u64) {
        if let Some(remote) = self.backend.remote_mut() {
            remote.event(engine, event, now_ns);
        }
    }

    /// Processes the events of an emulated drive that were due since the last run, each at its own
    /// time. The host calls this method before it submits new requests. Without an emulated drive,
    /// the call has no effect.
    pub fn catch_up<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        let Some(emulated) = &mut self.emulated else { return };
        emulated.set_woken(now_ns);
        let (queue, mut medium) = self.split(engine);
        queue.catch_up(&mut medium, now_ns);
    }

    /// Processes the completion of an I/O that the device started in the engine. A completion with
    /// an unknown tag is ignored.
    pub fn io_done<E: Engine>(&mut self, engine: &mut E, tag: u64, done: IoDone, now_ns: u64) {
        let tag = IoTag::of(tag);
        let Some(request) = self.queue.io_in_progress(tag.io) else { return };
        let cause = Cause::of(&done);
        if let Begin::Done(result) = self.backend.finish(engine, tag, request.op, done) {
            self.end_io(&request, result, cause, now_ns);
        }
    }

    /// Returns the time in ns at which the host has to call [`Device::run`], unless it calls it
    /// earlier because of a request or a completion. A time in the past means at once, `None` that
    /// there is no timer.
    pub fn next_wake_ns(&self) -> Option<u64> {
        let queue = self.queue.next_wake_ns(self.emulated.as_ref().and_then(EmulatedDrive::next_ns));
        let remote = self.backend.remote().and_then(Remote::next_wake_ns);
        [queue, remote].into_iter().flatten().min()
    }

    /// Borrows the queue and the medium below it separately.
    fn split<'a, E: Engine>(
        &'a mut self,
        engine: &'a mut E,
    ) -> (&'a mut DiskQueue<Buffer, IoOutput>, MediumAccess<'a, E>) {
        let Device { id, backend, emulated, queue, failures, .. } = self;
        (queue, MediumAccess { id: *id, backend, emulated: emulated.as_mut(), failures, engine })
    }
}

impl<E: Engine> Medium for MediumAccess<'_, E> {
    type Data = Buffer;
    type Output = IoOutput;

    fn begin(&mut self, request: MediumRequest<Buffer>) -> Begin<IoOutput> {
        let MediumRequest { io, ticket, op, offset, length, durable, .. } = request;
        let begun = match self.failures.lost_writes {
            Some(error) if op == RequestOp::Flush => Begin::Done(Err(error)),
            Some(_) if durable => Begin::Done(Err(IoError::Io)),
            _ => self.backend.begin(self.engine, self.id, request),
        };
        if let Begin::Done(Err(error)) = begun {
            let request = MediumRequest { io, ticket, op, offset, length, durable, data: None };
            self.failures.log(self.backend, &request, error, Cause::Refused, self.engine.now_ns());
            self.failures.note(self.backend, &request, error);
        }
        begun
    }

    fn copy_piece(&mut self, data: &Buffer, from: usize, length: usize) -> Option<Buffer> {
        let bytes = data.get(from..from.checked_add(length)?)?;
        let mut piece = self.engine.buffer(length);
        piece.get_mut(..length)?.copy_from_slice(bytes);
        Some(piece)
    }

    fn start_command(&mut self, command: &DriveCommand, now_ns: u64) -> bool {
        let Some(emulated) = &mut self.emulated else { return false };
        let DriveCommand { id, op, sector, sectors, fua } = *command;
        let command = match op {
            Op::Read => Command::from(Access { op: hoistway_drive::Op::Read, sector, sectors }),
            Op::Discard => Command::Discard { sector, sectors },
            Op::Write | Op::Flush => {
                Command::Transfer { access: Access { op: hoistway_drive::Op::Write, sector, sectors }, fua }
            }
        };
        // Requests beyond the end of the drive were refused at submission.
        emulated.submit(now_ns, id.number(), &command).is_ok()
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
            number => MediumEvent::CommandDone { id: CommandId::of_number(number), bad_sector: completed.bad_sector },
        })
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.emulated.as_ref().and_then(|emulated| emulated.next_ns())
    }
}

impl Failures {
    /// Logs a failed I/O.
    fn log(&self, backend: &Backend, request: &MediumRequest<()>, error: IoError, cause: Cause, now_ns: u64) {
        let MediumRequest { op, offset, length, .. } = *request;
        self.log.log(&backend.name(), &FailedIo { op, offset, length, error, cause }, now_ns);
    }

    /// Takes note of a failed I/O. A remote keeps written data until a flush succeeds, and reports
    /// a loss itself.
    fn note(&mut self, backend: &Backend, request: &MediumRequest<()>, error: IoError) {
        let why = match request.op {
            _ if backend.remote().is_some() => return,
            RequestOp::Flush => "a flush failed",
            // After EIO the operating system may have dropped other writes too. It reports ENOSPC
            // before it accepts data.
            _ if request.durable && error == IoError::Io => "a durable write failed",
            _ => return,
        };
        self.lose_writes(backend, error, why);
    }

    /// Fails all flushes and durable writes from now on.
    fn lose_writes(&mut self, backend: &Backend, error: IoError, why: &str) {
        if self.lost_writes.is_none() {
            let storage = backend.name();
            tracing::error!(%storage, "written data may be lost: {why}; all flushes fail until the device is opened again");
        }
        self.lost_writes.get_or_insert(error);
    }
}

/// Returns the properties of the medium for a queue: those of the emulated drive, if there is one,
/// otherwise those of the backend. `bytes` is the usable size.
fn medium_properties(
    config: &DeviceConfig,
    backend: &Backend,
    emulated: Option<&EmulatedDrive>,
    bytes: u64,
) -> MediumProperties {
    let backend_is_synchronous = matches!(config.backend, BackendConfig::Memory { .. } | BackendConfig::Null { .. });
    MediumProperties {
        bytes,
        rotational: config.drive.as_ref().map_or(backend.rotational(), |profile| profile.is_rotational()),
        is_emulated: emulated.is_some(),
        is_synchronous: emulated.is_none() && backend_is_synchronous,
        splits_requests: true,
        io_bytes_max: backend.remote().map_or(u64::MAX, Remote::io_bytes_max),
        default_depth: match emulated {
            Some(emulated) => emulated.depth().min(depth::EMULATED_MAX),
            None if backend_is_synchronous => depth::MEMORY,
            None => backend.default_depth(),
        },
        depth_max: emulated.map_or(DEPTH_MAX, EmulatedDrive::depth),
    }
}

/// Returns the smaller of the sizes of backend and emulated drive in bytes. Appends a notice if the
/// sizes differ.
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
