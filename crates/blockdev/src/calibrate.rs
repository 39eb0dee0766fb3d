//! Measures the bandwidth and the positioning time of a device, the two figures from which the
//! admission of reservations computes.
//!
//! The device is read, never written, one request at a time, through the same path as a client's
//! requests. First, several zones from the first byte to the last are read sequentially. The
//! bandwidth is that of the slowest zone, because a reservation must hold in any zone.
//! Then 4 KiB are read at random offsets. The positioning time is the mean time less the transfer
//! time at that bandwidth. The result also has an upper bound of the mean, which is the safer
//! figure for reservations.

use std::io;

use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_qos::{DiskQueueConfig, IoError, JoinError, MemberId, RequestOp};
use hoistway_reactor::Engine;
use serde::Serialize;

use crate::device::{BlockRequest, Device, DeviceError};
use crate::driver::DeviceDriver;
use crate::ids::DeviceId;

/// The number of zones that are read sequentially.
const ZONES: u64 = 8;
/// The size of a sequential read in bytes.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// The maximum number of bytes that are read in one zone.
const ZONE_BYTES_MAX: u64 = 64 << 20;
/// The longest time for one zone, in ns.
const ZONE_NS_MAX: u64 = 1_000_000_000;
/// The largest number of random reads, and their size in bytes.
const RANDOM_COUNT: u64 = 512;
const RANDOM_BYTES: u64 = 4096;
/// The longest time for the random reads, in ns.
const RANDOM_NS_MAX: u64 = 10_000_000_000;

/// The figures of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Calibration {
    /// The name of the device.
    pub name: String,
    /// True if the reads used the page cache, whose speed the figures then show.
    pub is_cached: bool,
    /// The measured zones, in order of offset.
    pub zones: Vec<Zone>,
    /// The bandwidth of the slowest zone in bytes a second.
    pub bytes_per_s: u64,
    /// The mean positioning time in ns.
    pub position_ns: u64,
    /// The upper end of the 95 % confidence interval of the mean positioning time, in ns.
    pub position_ns_high: u64,
    /// The number of random reads behind the positioning time.
    pub samples: u64,
}

impl Calibration {
    /// Returns the value of the configuration key `bandwidth`: the bandwidth in KiB a second.
    pub fn bandwidth(&self) -> String {
        format!("{}k", self.bytes_per_s / 1024)
    }

    /// Returns the value of the configuration key `position`: the upper bound of the positioning
    /// time in us, rounded up.
    pub fn position(&self) -> String {
        format!("{}us", self.position_ns_high.div_ceil(1000))
    }
}

/// The bandwidth of a part of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Zone {
    /// The first byte of the zone.
    pub offset: u64,
    /// The bandwidth in bytes a second.
    pub bytes_per_s: u64,
}

/// An error of a calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device accepts no client.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The device is too small for a measurement.
    #[error("device `{name}` has {bytes} bytes: too few to calibrate, 16 MiB are needed")]
    TooSmall {
        /// The name of the device.
        name: String,
        /// The size of the device in bytes.
        bytes: u64,
    },
    /// A read failed.
    #[error("device `{name}` cannot be read at byte {offset}: {error:?}")]
    Read {
        /// The name of the device.
        name: String,
        /// The offset of the read in bytes.
        offset: u64,
        /// The error.
        error: IoError,
    },
    /// The engine failed.
    #[error("the engine failed: {0}")]
    Engine(#[from] io::Error),
}

/// Measures a device. The device must have no other user meanwhile. `progress` receives the
/// completed share, 0 to 1.
///
/// # Errors
/// See [`CalibrateError`].
pub fn calibrate<E: Engine>(
    config: &DeviceConfig,
    engine: &mut E,
    progress: &mut dyn FnMut(f64),
) -> Result<Calibration, CalibrateError> {
    // First come, first served, depth 1, no merging: the figures are those of the device alone.
    let bare = DeviceConfig {
        queue: DiskQueueConfig {
            elevator: Some(Kind::Noop),
            depth: Some(1),
            merge: false,
            tunables: Vec::new(),
            ..config.clone().queue
        },
        backend: for_reading(&config.backend),
        ..config.clone()
    };
    let now_ns = engine.now_ns();
    let mut device = Device::new(DeviceId(0), &bare, engine, now_ns)?;
    let member = device.scheduler_mut().join(None, None, now_ns)?;
    let size = device.size();
    if size < 16 << 20 {
        return Err(CalibrateError::TooSmall { name: config.queue.name.clone(), bytes: size });
    }
    let driver = DeviceDriver::new(&mut device, engine);
    let mut reader = Reader { name: &config.queue.name, member, driver };
    let mut zones = Vec::new();
    for zone in 0..ZONES {
        zones.push(reader.zone(zone, size)?);
        progress((zone + 1) as f64 / (ZONES + 1) as f64 / 2.0);
    }
    let bytes_per_s = zones.iter().map(|zone| zone.bytes_per_s).min().unwrap_or(1).max(1);
    let times_ns = reader.random(size, &mut |share| progress(0.5 + share / 2.0))?;
    let (mean_ns, high_ns) = mean_and_bound(&times_ns);
    let transfer_ns = RANDOM_BYTES as f64 * 1e9 / bytes_per_s as f64;
    let less = |ns: f64| (ns - transfer_ns).max(0.0) as u64;
    Ok(Calibration {
        name: config.queue.name.clone(),
        is_cached: reads_page_cache(config),
        zones,
        bytes_per_s,
        position_ns: less(mean_ns),
        position_ns_high: less(high_ns),
        samples: times_ns.len() as u64,
    })
}

/// Returns a backend that is only read, so that a device which is in use can be measured.
fn for_reading(backend: &BackendConfig) -> BackendConfig {
    let mut backend = backend.clone();
    match &mut backend {
        BackendConfig::File { read_only, .. } => *read_only = true,
        BackendConfig::Remote(remote) => remote.read_only = true,
        BackendConfig::Memory { .. } | BackendConfig::Null { .. } => {}
    }
    backend
}

/// Returns true if a calibration of the device would measure the page cache: direct I/O is off.
pub fn reads_page_cache(config: &DeviceConfig) -> bool {
    matches!(config.backend, BackendConfig::File { direct: Some(false), .. })
}

/// A client that waits for each of its reads.
struct Reader<'a, E> {
    name: &'a str,
    member: MemberId,
    driver: DeviceDriver<'a, E>,
}

impl<E: Engine> Reader<'_, E> {
    /// Reads a zone sequentially and measures its bandwidth. The first read is not counted because
    /// it includes the positioning.
    fn zone(&mut self, zone: u64, size: u64) -> Result<Zone, CalibrateError> {
        let length = (size / ZONES).min(ZONE_BYTES_MAX) / SEQUENTIAL_BYTES * SEQUENTIAL_BYTES;
        // The last zone ends at the end of the device.
        let start = (size - length) / (ZONES - 1) * zone / SEQUENTIAL_BYTES * SEQUENTIAL_BYTES;
        let mut offset = start;
        self.read(offset, SEQUENTIAL_BYTES)?;
        offset += SEQUENTIAL_BYTES;
        let began_ns = self.driver.now_ns();
        let (mut bytes, mut taken_ns) = (0, 0);
        while offset + SEQUENTIAL_BYTES <= start + length && taken_ns < ZONE_NS_MAX {
            self.read(offset, SEQUENTIAL_BYTES)?;
            offset += SEQUENTIAL_BYTES;
            bytes += SEQUENTIAL_BYTES;
            taken_ns = self.driver.now_ns().saturating_sub(began_ns);
        }
        Ok(Zone { offset: start, bytes_per_s: (bytes as f64 * 1e9 / taken_ns.max(1) as f64) as u64 })
    }

    /// Reads at random offsets; returns the time of each read in ns.
    fn random(&mut self, size: u64, progress: &mut dyn FnMut(f64)) -> Result<Vec<u64>, CalibrateError> {
        let mut times_ns = Vec::new();
        let (mut state, mut sum_ns) = (0x9e37_79b9_7f4a_7c15u64, 0);
        while (times_ns.len() as u64) < RANDOM_COUNT && sum_ns < RANDOM_NS_MAX {
            // Xorshift with a fixed seed: every calibration reads the same offsets.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let offset = state % (size / RANDOM_BYTES) * RANDOM_BYTES;
            let began_ns = self.driver.now_ns();
            self.read(offset, RANDOM_BYTES)?;
            let taken_ns = self.driver.now_ns().saturating_sub(began_ns);
            times_ns.push(taken_ns);
            sum_ns += taken_ns;
            progress((times_ns.len() as f64 / RANDOM_COUNT as f64).max(sum_ns as f64 / RANDOM_NS_MAX as f64).min(1.0));
        }
        Ok(times_ns)
    }

    /// Reads and waits for the completion.
    fn read(&mut self, offset: u64, length: u64) -> Result<(), CalibrateError> {
        let request = BlockRequest::plain(offset, RequestOp::Read, offset, length);
        let completion = self.driver.execute(self.member, request)?;
        let failed = |error| CalibrateError::Read { name: self.name.to_owned(), offset, error };
        completion.result.map(|_| ()).map_err(failed)
    }
}

/// Returns the mean and the upper end of its 95 % confidence interval (normal: 1.96 standard
/// errors).
fn mean_and_bound(times_ns: &[u64]) -> (f64, f64) {
    let count = times_ns.len().max(1) as f64;
    let mean = times_ns.iter().map(|&ns| ns as f64).sum::<f64>() / count;
    let variance = times_ns.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, mean + 1.96 * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_exceeds_the_mean_by_1_96_standard_errors() {
        // 10 and 20: mean 15, variance 50, standard error 5.
        let (mean, high) = mean_and_bound(&[10, 20]);
        assert_eq!(mean, 15.0);
        assert!((high - (15.0 + 1.96 * 5.0)).abs() < 1e-9);
    }

    #[test]
    fn the_figures_of_an_emulated_disk_agree_with_its_profile() {
        use hoistway_drive::{Profile, SECTOR_BYTES, describe};

        use hoistway_reactor::Virtual;

        let profile = Profile::builtin("sata-7200-2006").expect("a built-in drive");
        let drive = describe(&profile);
        let config = DeviceConfig {
            queue: DiskQueueConfig::new("disk"),
            backend: BackendConfig::Null { bytes: drive.capacity_sectors * SECTOR_BYTES },
            drive: Some(profile),
        };
        let mut engine = Virtual::default();
        let mut progress = 0.0;
        let found = calibrate(&config, &mut engine, &mut |share| progress = share).expect("it can be read");
        assert_eq!(progress, 1.0, "progress reached the end");
        assert!(
            found.zones.first().map(|zone| zone.bytes_per_s) > found.zones.last().map(|zone| zone.bytes_per_s),
            "{:?}",
            found.zones
        );
        // Consecutive commands of 1 MiB lose a little of the track's rate between them.
        let inner = found.bytes_per_s as f64 / (drive.sequential_inner_mb_s * 1e6);
        assert!((0.85..=1.01).contains(&inner), "{inner} of the inner zone's rate");
        let position = found.position_ns as f64 / (drive.random_read_4k_ms * 1e6);
        assert!((0.93..=1.07).contains(&position), "{position} of a random read");
        assert!(found.position_ns_high > found.position_ns);
    }
}
