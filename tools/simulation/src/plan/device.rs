//! The derivation of a device from a seed: medium, emulated drive, elevator.

use std::fmt;

use hoistway_core::Kind;
use hoistway_drive::{Faults, Hang, Profile};
use hoistway_qos::{DiskQueueConfig, reservation_figures};

use super::MS;
use crate::remote::RemotePlan;
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_reactor::simulated::DiskPlan;
use hoistway_reactor::simulated::Prng;

/// The storage of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory of the server.
    Memory,
    /// No storage: reads return zeroes.
    Null,
    /// A simulated disk, through the page cache.
    Buffered,
    /// A simulated disk with direct I/O, if the file that stands for it supports that.
    Direct,
    /// A simulated disk behind a remote server.
    Remote,
}

/// The plan of a device.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    /// The storage of the device.
    pub medium: Medium,
    /// The plan of a simulated disk.
    pub disk: DiskPlan,
    /// The remote server and the connections to it, for [`Medium::Remote`].
    pub remote: Option<RemotePlan>,
    /// The offset of the clients' export, in bytes.
    pub export_offset: u64,
    /// The length of the clients' export, in bytes.
    pub export_bytes: u64,
    /// The length of the export behind it, which misbehaving clients use, in bytes.
    pub scratch_bytes: u64,
    /// The emulated drive.
    pub drive: Option<Profile>,
    /// True if the drive has unreadable sectors.
    pub drive_has_bad_sectors: bool,
    /// True if the disk may return EIO and ENOSPC.
    pub disk_may_fail: bool,
    /// The elevator; `None` lets the device choose.
    pub elevator: Option<Kind>,
    /// The tunables of the elevator.
    pub tunables: Vec<(String, i64)>,
    /// The maximum number of requests in the device.
    pub depth: Option<u32>,
    /// The size of the largest request in bytes.
    pub request_bytes_max: u32,
    /// True if adjacent requests are merged.
    pub merge: bool,
    /// The bandwidth in bytes per second and the positioning time in ns, for reservations.
    pub figures: Option<(u64, u64)>,
}

/// Figures with which no reservation is refused.
const AMPLE: Option<(u64, u64)> = Some((1 << 30, 0));

impl DevicePlan {
    /// Derives a device without the length of its export, which [`DevicePlan::lay_out`] sets.
    pub(super) fn new(prng: &mut Prng, number: usize, calm: bool) -> DevicePlan {
        let media = [
            Medium::Memory,
            Medium::Null,
            Medium::Buffered,
            Medium::Buffered,
            Medium::Buffered,
            Medium::Direct,
            Medium::Direct,
        ];
        let medium = prng.pick(&media);
        let (drive, drive_has_bad_sectors) = drive(prng, calm);
        // One emulated drive per world.
        let (drive, drive_has_bad_sectors) = if number == 0 { (drive, drive_has_bad_sectors) } else { (None, false) };
        let elevator = prng.permille(800).then(|| prng.pick(Kind::ALL));
        let tunables = elevator.map_or(0, |_| prng.between(0, 3));
        let tunables = (0..tunables).filter_map(|_| random_tunable(prng, elevator?)).collect();
        DevicePlan {
            medium,
            disk: DiskPlan::default(),
            remote: None,
            export_offset: prng.pick(&[0, 512, 4096, 12_345]),
            export_bytes: 0,
            scratch_bytes: 0,
            drive,
            drive_has_bad_sectors,
            disk_may_fail: !calm && prng.permille(400),
            elevator,
            tunables,
            depth: prng.permille(600).then(|| prng.magnitude(64) as u32),
            request_bytes_max: prng.pick(&[4096, 8192, 65536, 1 << 20]),
            merge: prng.permille(700),
            figures: random_figures(prng),
        }
    }

    /// Puts the disk behind a remote server, if there is a disk. Its errors are those of its
    /// connections.
    pub(super) fn make_remote(&mut self, prng: &mut Prng) {
        if self.is_simulated() {
            self.medium = Medium::Remote;
            self.remote = Some(RemotePlan::new(prng));
            self.disk_may_fail = false;
        }
    }

    /// Sets the length of the clients' export and derives the disk.
    pub(super) fn lay_out(&mut self, export_bytes: u64, calm: bool, prng: &mut Prng) {
        // Direct I/O needs files of whole units, a remote whole blocks.
        let unit = if matches!(self.medium, Medium::Direct | Medium::Remote) { 4096 } else { 1 };
        let size = (self.export_offset + export_bytes + 8192).next_multiple_of(unit);
        (self.export_bytes, self.scratch_bytes) = (export_bytes, size - self.export_offset - export_bytes);
        self.disk = disk(prng, size as usize, calm, self.disk_may_fail);
    }

    /// Returns true if the storage is a simulated disk, which outlives the server.
    pub fn is_simulated(&self) -> bool {
        matches!(self.medium, Medium::Buffered | Medium::Direct | Medium::Remote)
    }

    /// Returns true if valid requests may fail.
    pub fn is_faulty(&self) -> bool {
        self.disk_may_fail || self.drive_has_bad_sectors || self.remote.is_some_and(|remote| remote.may_fail())
    }

    /// Returns true if reservations may be refused, because the figures of the device are low or a
    /// tunable of its elevator overrides them.
    pub fn may_refuse(&self) -> bool {
        let (bandwidth, position_ns) = self.figures.unzip();
        let figures = |tunables| reservation_figures(bandwidth, position_ns, false, tunables);
        self.figures != AMPLE || figures(&self.tunables) != figures(&[])
    }

    /// Returns the configuration of the device with its disk at this path.
    pub(super) fn config(&self, number: usize, path: &str) -> DeviceConfig {
        let bytes = self.disk.size as u64;
        let remote = self.remote.map(|remote| BackendConfig::Remote(Box::new(remote.config(number))));
        let backend = match self.medium {
            Medium::Memory => BackendConfig::Memory { bytes },
            Medium::Remote => remote.unwrap_or(BackendConfig::Null { bytes }),
            Medium::Null => BackendConfig::Null { bytes },
            Medium::Buffered => {
                BackendConfig::File { path: path.into(), direct: Some(false), read_only: false, force_in_use: false }
            }
            Medium::Direct => {
                BackendConfig::File { path: path.into(), direct: None, read_only: false, force_in_use: false }
            }
        };
        DeviceConfig {
            queue: DiskQueueConfig {
                name: device_name(number),
                elevator: self.elevator,
                depth: self.depth,
                tunables: self.tunables.clone(),
                merge: self.merge,
                request_bytes_max: self.request_bytes_max,
                bandwidth: self.figures.map(|figures| figures.0),
                position_ns: self.figures.map(|figures| figures.1),
                log_slow_ns: DiskQueueConfig::LOG_SLOW_NS_DEFAULT,
            },
            backend,
            drive: self.drive.clone(),
        }
    }
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elevator = self.elevator.map_or("chosen by the device", |kind| kind.info().name);
        let (medium, tunables, depth) = (self.medium, &self.tunables, self.depth);
        write!(f, "{medium:?}, elevator {elevator} {tunables:?}, depth {depth:?}, figures {:?}, ", self.figures)?;
        if let Some(remote) = &self.remote {
            write!(f, "{remote}, ")?;
        }
        if let Some(drive) = &self.drive {
            let bad = if self.drive_has_bad_sectors { " with bad sectors" } else { "" };
            write!(f, "behind {}{bad}, ", drive.name())?;
        }
        write!(f, "{:?}", self.disk)
    }
}

/// Returns the name of a device.
pub(crate) fn device_name(number: usize) -> String {
    format!("disk-{number}")
}

/// Returns the figures of a device: often more than all tenants reserve, else so little that some
/// reservations are refused.
pub(crate) fn random_figures(prng: &mut Prng) -> Option<(u64, u64)> {
    match prng.between(0, 9) {
        0 => None,
        1..=3 => Some(((1 << 20) + prng.magnitude(16 << 20), prng.magnitude(4 * MS))),
        _ => AMPLE,
    }
}

/// Returns a tunable of an elevator with a value within its range, and so close to the default that
/// no request waits for hours.
pub(crate) fn random_tunable(prng: &mut Prng, kind: Kind) -> Option<(String, i64)> {
    let tunables = kind.info().tunables;
    let tunable = tunables.get(prng.index(tunables.len()))?;
    let (low, high) = (tunable.default / 4, tunable.default.saturating_mul(3).max(2));
    let (low, high) = (low.clamp(tunable.min, tunable.max), high.clamp(tunable.min, tunable.max));
    let value = if prng.permille(150) { tunable.min } else { low + prng.between(0, low.abs_diff(high)) as i64 };
    Some((tunable.name.to_owned(), value))
}

fn disk(prng: &mut Prng, size: usize, calm: bool, faulty: bool) -> DiskPlan {
    DiskPlan {
        size,
        latency_ns_max: prng.pick(&[2_000, 50_000, MS, 10 * MS]),
        hangs_permille: if calm { 0 } else { prng.pick(&[0, 0, 2, 20]) },
        hang_ns_max: prng.pick(&[10 * MS, 500 * MS, 3_000 * MS]),
        errors_permille: if faulty { prng.pick(&[0, 2, 30]) } else { 0 },
        no_space_permille: if faulty { prng.pick(&[0, 0, 20]) } else { 0 },
        failed_flush_loses: prng.permille(500),
        trim_keeps: prng.permille(300),
    }
}

/// Returns the emulated drive of one world in six, and whether it has bad sectors.
fn drive(prng: &mut Prng, calm: bool) -> (Option<Profile>, bool) {
    if !prng.permille(160) {
        return (None, false);
    }
    let name = prng.pick(&["null", "sata-7200-2006", "ssd-sata-consumer"]);
    let profile = Profile::builtin(name);
    if calm || name != "sata-7200-2006" {
        return (profile, false);
    }
    let bad_sectors: Vec<_> = (0..prng.between(0, 2)).map(|at| (at * 64 + prng.between(0, 50), 1)).collect();
    let hangs =
        (0..prng.between(0, 2)).map(|at| Hang { at_ms: (at * 1000) as f64, for_ms: prng.between(1, 900) as f64 });
    let has_bad_sectors = !bad_sectors.is_empty();
    let faults = Faults { bad_sectors, hangs: hangs.collect(), retries: 3, ..Faults::default() };
    (profile.and_then(|profile| profile.with_faults(faults).ok()), has_bad_sectors)
}
