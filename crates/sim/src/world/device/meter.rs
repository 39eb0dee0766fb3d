//! Statistics of a drive: its work, and how long each kind of work took.

use hoistway_drive::Phases;

use crate::measure::DriveTime;
use crate::record::HeadSample;

/// The measurements of a drive.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub requests: u64,
    /// Bytes that requests asked of the drive.
    pub bytes: u64,
    /// Number of times that the drive went from one process's request to another process's.
    pub turns: u64,
    /// Time at which the drive last completed a request.
    pub answered_ns: u64,
    phases: Phases,
    busy_ns: u64,
    /// Since when the drive works; `None` if it is idle.
    busy_since_ns: Option<u64>,
    last_pid: u32,
    pub(super) head: Vec<HeadSample>,
}

impl Meter {
    /// Counts a command that was started.
    #[inline]
    pub fn started(&mut self, now_ns: u64) {
        self.busy_since_ns.get_or_insert(now_ns);
    }

    /// Counts a transfer that was started for a process.
    #[inline]
    pub fn transferred(&mut self, pid: u32, sectors: u32) {
        self.bytes += u64::from(sectors) * 512;
        if pid != self.last_pid {
            self.last_pid = pid;
            self.turns += 1;
        }
    }

    /// Counts a command that completed; `is_idle` if it was the last one in the drive.
    pub fn completed(&mut self, phases: &Phases, is_idle: bool, now_ns: u64) {
        self.phases.overhead_ns += phases.overhead_ns;
        self.phases.seek_ns += phases.seek_ns;
        self.phases.rotation_ns += phases.rotation_ns;
        self.phases.transfer_ns += phases.transfer_ns;
        self.requests += 1;
        self.answered_ns = now_ns;
        if is_idle {
            self.busy_ns += self.busy_since_ns.take().map_or(0, |since_ns| now_ns - since_ns);
        }
    }

    /// Divides the time from `from_ns` to `now_ns` among the phases of service. No request starts
    /// before `from_ns`; the phases of a request in flight at the end count in the proportions of
    /// the earlier requests.
    pub fn time(&self, from_ns: u64, now_ns: u64) -> DriveTime {
        let phases = self.phases;
        let busy_ns = self.busy_ns + self.busy_since_ns.map_or(0, |since_ns| now_ns - since_ns);
        let total_ns = phases.service_ns().max(1);
        // A drive with several requests at once spends their times in parallel.
        let share = |phase_ns: u64| match total_ns > busy_ns {
            true => (u128::from(phase_ns) * u128::from(busy_ns) / u128::from(total_ns)) as u64,
            false => phase_ns,
        };
        let time = DriveTime {
            overhead: share(phases.overhead_ns),
            seek: share(phases.seek_ns),
            rotation: share(phases.rotation_ns),
            transfer: share(phases.transfer_ns),
            idle: 0,
        };
        let accounted = time.overhead + time.seek + time.rotation + time.transfer;
        DriveTime { idle: now_ns.saturating_sub(from_ns).saturating_sub(accounted), ..time }
    }
}
