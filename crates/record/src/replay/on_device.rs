//! Executes requests on a block device of this process: a file, a block device, or a drive model
//! under an elevator.

use hoistway_qos::DiskQueueConfig;
use std::path::Path;

use hoistway_core::Kind as Elevator;
use hoistway_drive::{Profile, SECTOR_BYTES, describe};

use super::request::{PlannedRequest, RequestKind};
use super::{ReplayError, ReplayTarget};
use hoistway_blockdev::{BlockRequest, Device, DeviceId, IoOutput, process_priority};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_qos::{Completion, DEPTH_MAX, Hints, JoinError, MemberId, RequestOp};
use hoistway_reactor::Buffer;
use hoistway_reactor::{Engine, Event, Process};

/// The longest request to a file or block device that is not split, in bytes.
const REQUEST_BYTES_MAX: u32 = 64 << 20;
/// The longest request to a drive model that is not split, in bytes, as in kernels.
const DRIVE_REQUEST_BYTES_MAX: u32 = 1 << 20;
/// The size of the pattern that is written repeatedly, in bytes; it looks random.
const PATTERN_BYTES: usize = 1 << 20;

/// A device, with the processes of a plan as its clients.
pub struct DeviceTarget {
    device: Device,
    /// The member of each process of the plan.
    members: Vec<MemberId>,
    pattern: Vec<u8>,
    done: Vec<Completion<IoOutput>>,
}

impl DeviceTarget {
    /// Opens a file or a block device, with direct I/O where possible. Requests are dispatched in
    /// order of arrival and are not merged. `force_in_use` opens it for writing even if it is in
    /// use.
    ///
    /// # Errors
    /// The file cannot be opened, or is to be written and is in use.
    pub fn file<E: Engine>(
        path: &Path,
        writes: bool,
        force_in_use: bool,
        engine: &mut E,
    ) -> Result<DeviceTarget, ReplayError> {
        let backend = BackendConfig::File { path: path.into(), direct: None, read_only: !writes, force_in_use };
        let config = DeviceConfig {
            queue: DiskQueueConfig {
                name: path.display().to_string(),
                elevator: Some(Elevator::Noop),
                depth: Some(DEPTH_MAX),
                tunables: Vec::new(),
                merge: false,
                request_bytes_max: REQUEST_BYTES_MAX,
                bandwidth: None,
                position_ns: None,
                log_slow_ns: DiskQueueConfig::LOG_SLOW_NS_DEFAULT,
            },
            backend,
            drive: None,
        };
        DeviceTarget::new(&config, engine)
    }

    /// Creates a drive model under an elevator, without data. The queue depth is that of the drive,
    /// or `depth`.
    ///
    /// # Errors
    /// A value is out of its range.
    pub fn drive<E: Engine>(
        profile: &Profile,
        elevator: Elevator,
        depth: Option<u32>,
        tunables: Vec<(String, i64)>,
        engine: &mut E,
    ) -> Result<DeviceTarget, ReplayError> {
        let config = DeviceConfig {
            queue: DiskQueueConfig {
                name: profile.name().to_owned(),
                elevator: Some(elevator),
                depth,
                tunables,
                merge: true,
                request_bytes_max: DRIVE_REQUEST_BYTES_MAX,
                bandwidth: None,
                position_ns: None,
                log_slow_ns: DiskQueueConfig::LOG_SLOW_NS_DEFAULT,
            },
            backend: BackendConfig::Null { bytes: describe(profile).capacity_sectors * SECTOR_BYTES },
            drive: Some(profile.clone()),
        };
        DeviceTarget::new(&config, engine)
    }

    fn new<E: Engine>(config: &DeviceConfig, engine: &mut E) -> Result<DeviceTarget, ReplayError> {
        let now_ns = engine.now_ns();
        let device = Device::new(DeviceId(0), config, engine, now_ns)?;
        Ok(DeviceTarget { device, members: Vec::new(), pattern: pattern(), done: Vec::new() })
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.device.size()
    }

    /// Describes the target for users.
    pub fn describe(&self) -> String {
        self.device.backend().describe()
    }

    /// Returns true if discards are supported.
    pub fn can_discard(&self) -> bool {
        self.device.abilities().trim
    }

    /// Adds the processes of a plan as clients, with their recorded priorities.
    ///
    /// # Errors
    /// The plan has more processes than the device can have clients.
    pub fn join(&mut self, processes: &[Process], now_ns: u64) -> Result<(), JoinError> {
        for process in processes {
            self.members.push(self.device.scheduler_mut().join(None, Some(process_priority(process)), now_ns)?);
        }
        Ok(())
    }

    fn data<E: Engine>(&self, engine: &mut E, index: u32, bytes: usize) -> Buffer {
        let mut buffer = engine.buffer(bytes);
        // Each request writes other bytes, so that a deduplicating target cannot find equal ones.
        let mut at = (index as usize).wrapping_mul(8_209) % (PATTERN_BYTES / 2);
        let mut rest = buffer.get_mut(..bytes).unwrap_or_default();
        while !rest.is_empty() {
            let len = rest.len().min(PATTERN_BYTES - at);
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&self.pattern[at..at + len]);
            (rest, at) = (later, 0);
        }
        buffer
    }
}

impl<E: Engine> ReplayTarget<E> for DeviceTarget {
    fn submit(&mut self, engine: &mut E, now_ns: u64, index: u32, request: &PlannedRequest) {
        // On a file all processes are one client.
        let place = (request.process as usize).min(self.members.len().saturating_sub(1));
        let Some(member) = self.members.get(place) else { return };
        let op = match request.kind {
            RequestKind::Read => RequestOp::Read,
            RequestKind::Write => RequestOp::Write,
            RequestKind::Discard => RequestOp::Trim,
            RequestKind::Flush => RequestOp::Flush,
        };
        let data = (op == RequestOp::Write).then(|| self.data(engine, index, request.bytes as usize));
        let work = BlockRequest {
            ticket: index.into(),
            op,
            offset: request.offset,
            length: request.bytes.into(),
            durable: request.durable,
            data,
            hints: Hints::default(),
        };
        self.device.catch_up(engine, now_ns);
        self.device.submit(*member, work, now_ns);
    }

    fn run(&mut self, engine: &mut E, now_ns: u64, done: &mut Vec<(u32, Option<String>)>) {
        self.device.run(engine, now_ns, &mut self.done);
        let over = self.done.drain(..);
        done.extend(over.map(|over| (over.ticket as u32, over.result.err().map(|errno| errno.to_string()))));
    }

    fn wake_ns(&self) -> Option<u64> {
        self.device.next_wake_ns()
    }

    fn take(&mut self, engine: &mut E, event: Event, now_ns: u64) -> Result<(), ReplayError> {
        if let Event::Done { tag, done } = event {
            self.device.io_done(engine, tag, done, now_ns);
        }
        Ok(())
    }
}

/// Returns bytes of xorshift, which do not compress.
pub(super) fn pattern() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(PATTERN_BYTES / 8).flatten().collect()
}
