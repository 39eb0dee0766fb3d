//! What a seed makes of a device: what lies below it, what is put before it, how it works.

use hoistway_qos::DiskQueueConfig;
use std::fmt;

use hoistway_core::Kind;
use hoistway_drive::{Faults, Hang, Profile};

use super::MS;
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_reactor::simulated::DiskPlan;
use hoistway_reactor::simulated::Prng;

/// What lies below the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory.
    Memory,
    /// Nothing.
    Null,
    /// A simulated disk, through the page cache.
    Buffered,
    /// A simulated disk, with direct I/O where the real file that stands for it can do that.
    Direct,
}

/// A device.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    /// What lies below it.
    pub medium: Medium,
    /// The disk, of simulated ones.
    pub disk: DiskPlan,
    /// Where the clients' export begins on it, and its bytes.
    pub export_offset: u64,
    /// See there.
    pub export_bytes: u64,
    /// Bytes of the export behind it, which rude clients use.
    pub scratch_bytes: u64,
    /// What is put before it.
    pub drive: Option<Profile>,
    /// The drive has sectors that cannot be read.
    pub drive_has_bad_sectors: bool,
    /// The disk may answer EIO and ENOSPC.
    pub disk_may_fail: bool,
    /// Its elevator, tunables of that, depth, largest request, merging.
    pub elevator: Option<Kind>,
    /// See there.
    pub tunables: Vec<(String, i64)>,
    /// See there.
    pub depth: Option<u32>,
    /// See there.
    pub request_bytes_max: u32,
    /// See there.
    pub merge: bool,
    /// What it is said to sustain in bytes a second, and what positioning costs in ns, for
    /// reservations; none: nothing is said.
    pub figures: Option<(u64, u64)>,
}

/// Figures with which nobody is refused anything.
const AMPLE: Option<(u64, u64)> = Some((1 << 30, 0));

impl DevicePlan {
    /// A device of a world. The export's bytes, and so the size of all, are not known yet: see
    /// [`DevicePlan::lay_out`].
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
        // What is slow beside what is fast is enough: one drive a world.
        let (drive, drive_has_bad_sectors) = if number == 0 { (drive, drive_has_bad_sectors) } else { (None, false) };
        let elevator = prng.permille(800).then(|| prng.pick(Kind::ALL));
        let tunables = elevator.map_or(0, |_| prng.between(0, 3));
        let tunables = (0..tunables).filter_map(|_| random_tunable(prng, elevator?)).collect();
        DevicePlan {
            medium,
            disk: DiskPlan::default(),
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

    /// The clients' export has so many bytes.
    pub(super) fn lay_out(&mut self, export_bytes: u64, calm: bool, prng: &mut Prng) {
        // Direct I/O is done to files of whole units only.
        let unit = if self.medium == Medium::Direct { 4096 } else { 1 };
        let size = (self.export_offset + export_bytes + 8192).next_multiple_of(unit);
        (self.export_bytes, self.scratch_bytes) = (export_bytes, size - self.export_offset - export_bytes);
        self.disk = disk(prng, size as usize, calm, self.disk_may_fail);
    }

    /// Whether it lies on a simulated disk, which outlives the server.
    pub fn is_simulated(&self) -> bool {
        matches!(self.medium, Medium::Buffered | Medium::Direct)
    }

    /// Whether requests may fail although nothing is wrong with them. A sound drive gives no reason
    /// to.
    pub fn is_faulty(&self) -> bool {
        self.disk_may_fail || self.drive_has_bad_sectors
    }

    /// Whether reservations may be refused.
    pub fn may_refuse(&self) -> bool {
        self.figures != AMPLE
    }

    /// Its part of the configuration, with its disk at this path.
    pub(super) fn config(&self, number: usize, path: &str) -> DeviceConfig {
        let bytes = self.disk.size as u64;
        let backend = match self.medium {
            Medium::Memory => BackendConfig::Memory { bytes },
            Medium::Null => BackendConfig::Null { bytes },
            Medium::Buffered => BackendConfig::File { path: path.into(), direct: Some(false), read_only: false },
            Medium::Direct => BackendConfig::File { path: path.into(), direct: None, read_only: false },
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
        if let Some(drive) = &self.drive {
            let bad = if self.drive_has_bad_sectors { " with bad sectors" } else { "" };
            write!(f, "behind {}{bad}, ", drive.name())?;
        }
        write!(f, "{:?}", self.disk)
    }
}

/// What devices are called.
pub(crate) fn device_name(number: usize) -> String {
    format!("disk-{number}")
}

/// What a device is said to do: often more than anybody asks for, else so little that some have to
/// be refused.
pub(crate) fn random_figures(prng: &mut Prng) -> Option<(u64, u64)> {
    match prng.between(0, 9) {
        0 => None,
        1..=3 => Some(((1 << 20) + prng.magnitude(16 << 20), prng.magnitude(4 * MS))),
        _ => AMPLE,
    }
}

/// A tunable of an elevator, and a value for it: within its range, and not so far from the default
/// that somebody would wait for hours.
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

/// The model of a drive, in one world of six, and whether it has bad sectors; disks may have those
/// and hangs.
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
