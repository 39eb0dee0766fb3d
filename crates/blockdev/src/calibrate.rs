//! What a device sustains and what positioning costs it: the two figures that the admission of
//! reservations reckons with.
//!
//! The device is read, never written, one request at a time, through the same path as a client's
//! requests. In each of several zones from the first byte to the last it reads in sequence; the
//! slowest zone is the bandwidth, for a promise has to be kept wherever the data lie. Then it reads
//! 4 KiB at places all over; the mean time, less what the bytes take at that bandwidth, is the
//! position. An upper bound of the mean is told beside it, for a reservation that has to hold is
//! better reckoned with that.

use std::io;

use hoistway_config::DeviceConfig;
use hoistway_core::Kind;
use hoistway_qos::{DiskQueueConfig, Hints, IoError, JoinError, MemberId, RequestOp};
use hoistway_reactor::{Engine, Event};

use crate::device::{Device, DeviceError, Work};

/// Zones that are read in sequence.
const ZONES: u64 = 8;
/// Requests of a sequential reading, in bytes.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// The most that is read in one zone.
const ZONE_BYTES_MAX: u64 = 64 << 20;
/// The longest that one zone is read, in ns.
const ZONE_NS_MAX: u64 = 1_000_000_000;
/// Random readings, at most and in bytes.
const RANDOM_COUNT: u64 = 512;
const RANDOM_BYTES: u64 = 4096;
/// The longest that they go on, in ns.
const RANDOM_NS_MAX: u64 = 10_000_000_000;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Where each zone begins and what it sustains, in bytes a second.
    pub zones: Vec<(u64, u64)>,
    /// The slowest of them.
    pub bytes_per_s: u64,
    /// The mean cost of positioning, in ns.
    pub position_ns: u64,
    /// The upper end of the 95 % interval of that mean, in ns.
    pub position_ns_high: u64,
    /// Random readings that it is from.
    pub samples: u64,
}

/// Why a device could not be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// It cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It takes no client.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It is too small to tell anything.
    #[error("device `{name}` has {bytes} bytes: too few to calibrate, 16 MiB are needed")]
    TooSmall {
        /// Its name.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// A reading failed.
    #[error("device `{name}` cannot be read at byte {offset}: {error:?}")]
    Read {
        /// Its name.
        name: String,
        /// Where.
        offset: u64,
        /// The error.
        error: IoError,
    },
    /// The engine failed.
    #[error("the engine failed: {0}")]
    Engine(#[from] io::Error),
}

/// Measures a device. Nothing else may use it meanwhile; `progress` is told how far it is, 0 to 1.
///
/// # Errors
/// See [`CalibrateError`].
pub fn calibrate<E: Engine>(
    config: &DeviceConfig,
    engine: &mut E,
    progress: &mut dyn FnMut(f64),
) -> Result<Calibration, CalibrateError> {
    // First come, first served, one at a time and nothing merged: what is measured is the device.
    let bare = DeviceConfig {
        queue: DiskQueueConfig {
            elevator: Some(Kind::Noop),
            depth: Some(1),
            merge: false,
            tunables: Vec::new(),
            ..config.clone().queue
        },
        ..config.clone()
    };
    let now_ns = engine.now_ns();
    let mut device = Device::new(0, &bare, engine, now_ns)?;
    let member = device.scheduler_mut().join(None, None, now_ns)?;
    let mut reader = Reader { name: &config.queue.name, device, member, engine };
    let size = reader.device.size();
    if size < 16 << 20 {
        return Err(CalibrateError::TooSmall { name: config.queue.name.clone(), bytes: size });
    }
    let mut zones = Vec::new();
    for zone in 0..ZONES {
        zones.push(reader.zone(zone, size)?);
        progress((zone + 1) as f64 / (ZONES + 1) as f64 / 2.0);
    }
    let bytes_per_s = zones.iter().map(|&(_, rate)| rate).min().unwrap_or(1).max(1);
    let times_ns = reader.random(size, &mut |share| progress(0.5 + share / 2.0))?;
    let (mean_ns, high_ns) = mean_and_bound(&times_ns);
    let transfer_ns = RANDOM_BYTES as f64 * 1e9 / bytes_per_s as f64;
    let less = |ns: f64| (ns - transfer_ns).max(0.0) as u64;
    Ok(Calibration {
        zones,
        bytes_per_s,
        position_ns: less(mean_ns),
        position_ns_high: less(high_ns),
        samples: times_ns.len() as u64,
    })
}

/// A client that waits for each of its readings.
struct Reader<'a, E: Engine> {
    name: &'a str,
    device: Device,
    member: MemberId,
    engine: &'a mut E,
}

impl<E: Engine> Reader<'_, E> {
    /// Reads a zone in sequence: where it began, and bytes a second. The first reading is not
    /// counted, for the way there is none of the sequence.
    fn zone(&mut self, zone: u64, size: u64) -> Result<(u64, u64), CalibrateError> {
        let length = (size / ZONES).min(ZONE_BYTES_MAX) / SEQUENTIAL_BYTES * SEQUENTIAL_BYTES;
        // The last zone ends where the device does.
        let start = (size - length) / (ZONES - 1) * zone / SEQUENTIAL_BYTES * SEQUENTIAL_BYTES;
        let mut offset = start;
        self.read(offset, SEQUENTIAL_BYTES)?;
        offset += SEQUENTIAL_BYTES;
        let began_ns = self.engine.now_ns();
        let (mut bytes, mut taken_ns) = (0, 0);
        while offset + SEQUENTIAL_BYTES <= start + length && taken_ns < ZONE_NS_MAX {
            self.read(offset, SEQUENTIAL_BYTES)?;
            offset += SEQUENTIAL_BYTES;
            bytes += SEQUENTIAL_BYTES;
            taken_ns = self.engine.now_ns().saturating_sub(began_ns);
        }
        Ok((start, (bytes as f64 * 1e9 / taken_ns.max(1) as f64) as u64))
    }

    /// Reads all over: the time of each reading, in ns.
    fn random(&mut self, size: u64, progress: &mut dyn FnMut(f64)) -> Result<Vec<u64>, CalibrateError> {
        let mut times_ns = Vec::new();
        let (mut state, mut sum_ns) = (0x9e37_79b9_7f4a_7c15u64, 0);
        while (times_ns.len() as u64) < RANDOM_COUNT && sum_ns < RANDOM_NS_MAX {
            // Xorshift: the same places in every calibration.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let offset = state % (size / RANDOM_BYTES) * RANDOM_BYTES;
            let began_ns = self.engine.now_ns();
            self.read(offset, RANDOM_BYTES)?;
            let taken_ns = self.engine.now_ns().saturating_sub(began_ns);
            times_ns.push(taken_ns);
            sum_ns += taken_ns;
            progress((times_ns.len() as f64 / RANDOM_COUNT as f64).max(sum_ns as f64 / RANDOM_NS_MAX as f64).min(1.0));
        }
        Ok(times_ns)
    }

    /// Reads and waits.
    fn read(&mut self, offset: u64, length: u64) -> Result<(), CalibrateError> {
        let work = Work {
            ticket: offset,
            op: RequestOp::Read,
            offset,
            length,
            durable: false,
            data: None,
            hints: Hints::default(),
        };
        let now_ns = self.engine.now_ns();
        self.device.submit(self.member, work, now_ns);
        let (mut done, mut events) = (Vec::new(), Vec::new());
        loop {
            let now_ns = self.engine.now_ns();
            self.device.run(self.engine, now_ns, &mut done);
            if let Some(done) = done.pop() {
                let failed = |error| CalibrateError::Read { name: self.name.to_owned(), offset, error };
                return done.result.map(|_| ()).map_err(failed);
            }
            let until_ns = self.device.next_wake_ns();
            self.engine.turn(until_ns, &mut events)?;
            let now_ns = self.engine.now_ns();
            for event in events.drain(..) {
                match event {
                    Event::Done { tag, done } => self.device.io_done(self.engine, tag, done, now_ns),
                    Event::Signal(_) => return Err(io::Error::from(io::ErrorKind::Interrupted).into()),
                    _ => {}
                }
            }
        }
    }
}

/// The mean, and the upper end of its 95 % interval (normal: 1.96 standard errors).
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
    fn a_bound_lies_above_the_mean_by_the_standard_error() {
        // 10 and 20: mean 15, variance 50, standard error 5.
        let (mean, high) = mean_and_bound(&[10, 20]);
        assert_eq!(mean, 15.0);
        assert!((high - (15.0 + 1.96 * 5.0)).abs() < 1e-9);
    }

    #[test]
    fn a_disk_is_found_to_be_what_its_profile_says() {
        use hoistway_drive::{Profile, SECTOR_BYTES, describe};

        use hoistway_config::BackendConfig;
        use hoistway_reactor::Virtual;

        let profile = Profile::builtin("sata-7200-2006").expect("a built-in drive");
        let drive = describe(&profile);
        let config = DeviceConfig {
            queue: DiskQueueConfig {
                name: "disk".to_owned(),
                elevator: None,
                depth: None,
                tunables: Vec::new(),
                merge: true,
                request_bytes_max: 1 << 20,
                bandwidth: None,
                position_ns: None,
            },
            backend: BackendConfig::Null { bytes: drive.capacity_sectors * SECTOR_BYTES },
            drive: Some(profile),
        };
        let mut engine = Virtual::default();
        let mut progress = 0.0;
        let found = calibrate(&config, &mut engine, &mut |share| progress = share).expect("it can be read");
        assert_eq!(progress, 1.0, "progress reached the end");
        assert!(found.zones.first().map(|zone| zone.1) > found.zones.last().map(|zone| zone.1), "{:?}", found.zones);
        // Commands of 1 MiB one after the other lose a little between them to the rate of the
        // tracks.
        let inner = found.bytes_per_s as f64 / (drive.sequential_inner_mb_s * 1e6);
        assert!((0.85..=1.01).contains(&inner), "{inner} of the inner zone's rate");
        let position = found.position_ns as f64 / (drive.random_read_4k_ms * 1e6);
        assert!((0.93..=1.07).contains(&position), "{position} of a random read");
        assert!(found.position_ns_high > found.position_ns);
    }
}
