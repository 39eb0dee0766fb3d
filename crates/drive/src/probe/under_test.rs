//! The drive under test with its clock and its failures.

use super::{FAILURES_KEPT, ProbeError};
use crate::closed_loop::closed_loop;
use crate::command::{Access, AccessError, Command, Op, Status};
use crate::drive::Drive;

/// A probe ends after more failures than this if they are half of all commands.
const FAILURES_MAX: u64 = 200;
/// The largest number of commands in flight. More do not change the rate of a drive and cost
/// memory.
const FULL_DEPTH_MAX: u32 = 1024;

pub(super) struct DriveUnderTest {
    drive: Drive,
    probe: &'static str,
    pub(super) now_ns: u64,
    commands: u64,
    pub(super) failures: u64,
    pub(super) failed_sectors: Vec<u64>,
    pub(super) notes: Vec<String>,
}

/// The timing of a series of commands.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Time from the first submission to the last completion.
    pub(super) elapsed_ns: u64,
    /// Latencies of the successful commands in the order of completion.
    pub(super) latencies_ns: Vec<u64>,
}

impl Series {
    pub(super) fn mean_ns(&self) -> f64 {
        self.latencies_ns.iter().sum::<u64>() as f64 / self.latencies_ns.len().max(1) as f64
    }

    /// Successful commands a second.
    pub(super) fn per_s(&self) -> f64 {
        self.latencies_ns.len() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// The latency within which the share `part` of the commands completes.
    pub(super) fn percentile_ns(&self, part: f64) -> u64 {
        let mut sorted = self.latencies_ns.clone();
        sorted.sort_unstable();
        let rank = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
        sorted.get(rank).copied().unwrap_or(0)
    }
}

impl DriveUnderTest {
    pub(super) fn new(drive: Drive, probe: &'static str) -> DriveUnderTest {
        DriveUnderTest {
            drive,
            probe,
            now_ns: 0,
            commands: 0,
            failures: 0,
            failed_sectors: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn capacity_sectors(&self) -> u64 {
        self.drive.capacity_sectors()
    }

    /// The number of commands in flight at full depth.
    pub(super) fn depth(&self) -> u32 {
        full_depth(&self.drive)
    }

    /// Returns an error if the drive has fewer sectors than a probe needs.
    pub(super) fn needs(&self, needed: u64) -> Result<(), ProbeError> {
        let capacity_sectors = self.capacity_sectors();
        if capacity_sectors < needed {
            return Err(ProbeError::TooSmall { probe: self.probe, capacity_sectors, needed });
        }
        Ok(())
    }

    /// Writes a sector to the media and returns the time; `None` if the sector failed.
    pub(super) fn write_media(&mut self, sector: u64) -> Result<Option<u64>, ProbeError> {
        let write = Command::Transfer { access: Access { op: Op::Write, sector, sectors: 1 }, fua: true };
        Ok(self.series(1, [write])?.latencies_ns.first().copied())
    }

    /// Advances the clock.
    pub(super) fn wait(&mut self, wait_ns: u64) {
        self.now_ns += wait_ns;
    }

    /// Runs commands with `depth` of them in flight.
    pub(super) fn series(
        &mut self,
        depth: u32,
        commands: impl IntoIterator<Item = Command>,
    ) -> Result<Series, ProbeError> {
        let start_ns = self.now_ns;
        let mut series = Series::default();
        let mut given = 0u64;
        let mut failed: Option<u64> = None;
        let counted = commands.into_iter().inspect(|_| given += 1);
        let end = closed_loop(&mut self.drive, start_ns, depth, counted, |submitted_ns, completion| {
            match completion.status {
                Status::Done => series.latencies_ns.push(completion.service.finish_ns - submitted_ns),
                Status::MediaError { sector } => {
                    failed = Some(sector);
                    self.failures += 1;
                    if self.failed_sectors.len() < FAILURES_KEPT && !self.failed_sectors.contains(&sector) {
                        self.failed_sectors.push(sector);
                    }
                }
            }
        });
        self.now_ns = end.map_err(|error| match error {
            AccessError::NoAnswer { since_ns } => ProbeError::Silent { probe: self.probe, since_ns },
            source => ProbeError::Refused { probe: self.probe, source },
        })?;
        self.commands += given;
        if let Some(sector) = failed
            && self.failures > FAILURES_MAX
            && self.failures * 2 > self.commands
        {
            return Err(ProbeError::Damaged { probe: self.probe, failures: self.failures, sector });
        }
        series.elapsed_ns = self.now_ns - start_ns;
        Ok(series)
    }
}

/// The number of commands in flight at full depth, up to a limit.
pub(super) fn full_depth(drive: &Drive) -> u32 {
    drive.depth().clamp(1, FULL_DEPTH_MAX)
}
