//! A drive model in real time: a dispatched request is passed to the model, and completes when the
//! model completes it.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use hoistway_drive::{Command, Drive, Profile, Status};

use hoistway_qos::account::latency_histogram;

/// A drive model that runs on the host's clock.
#[derive(Debug)]
pub(crate) struct EmulatedDrive {
    drive: Drive,
    name: String,
    /// The host's time at which the drive's clock started.
    began_ns: u64,
    /// The last time passed to the drive, on its clock.
    drive_ns: u64,
    /// Completed commands that were not polled yet.
    completed: VecDeque<CompletedCommand>,
    /// The time of the host's last wake-up, on the drive's clock.
    woken_ns: u64,
    /// How late completions were processed.
    lateness: Box<Histogram<u64>>,
}

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletedCommand {
    pub tag: u32,
    /// The first sector that could not be read or written.
    pub bad_sector: Option<u64>,
}

impl EmulatedDrive {
    pub fn new(profile: &Profile, now_ns: u64) -> EmulatedDrive {
        EmulatedDrive {
            drive: Drive::new(profile),
            name: profile.name().to_owned(),
            began_ns: now_ns,
            drive_ns: 0,
            completed: VecDeque::new(),
            woken_ns: 0,
            lateness: latency_histogram(),
        }
    }

    /// Returns the name of the profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn bytes(&self) -> u64 {
        self.drive.capacity_sectors().saturating_mul(hoistway_drive::SECTOR_BYTES)
    }

    pub fn depth(&self) -> u32 {
        self.drive.depth().max(1)
    }

    /// Returns the lateness of completions in ns: from the model's time to the time at which the
    /// host processed them.
    pub fn lateness(&self) -> &Histogram<u64> {
        &self.lateness
    }

    /// Returns the lateness as lines of text: its quantiles, and the number of completions for each
    /// power of two of microseconds.
    pub fn lateness_lines(&self) -> Vec<String> {
        format_lines(&self.name, &self.lateness)
    }

    /// Sets the time at which the host woke up. Commands that completed before are late by the
    /// difference.
    pub fn set_woken(&mut self, now_ns: u64) {
        self.woken_ns = self.woken_ns.max(now_ns.saturating_sub(self.began_ns));
    }

    /// Submits a command. Events that were due before are processed first, so that the drive's
    /// clock never goes back.
    ///
    /// # Errors
    /// When the command exceeds the capacity of the drive.
    pub fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) -> Result<(), hoistway_drive::AccessError> {
        self.catch_up(now_ns);
        self.drive.submit(self.drive_ns, tag, command)
    }

    /// Returns the next command that has completed, in order of completion.
    pub fn poll(&mut self, now_ns: u64) -> Option<CompletedCommand> {
        self.catch_up(now_ns);
        self.completed.pop_front()
    }

    /// Returns the time of the drive's next event in ns; `None` while it is idle or never completes
    /// again.
    pub fn next_ns(&self) -> Option<u64> {
        if !self.completed.is_empty() {
            return Some(self.began_ns + self.drive_ns);
        }
        self.drive.next_event_ns().map(|at_ns| at_ns.saturating_add(self.began_ns))
    }

    fn catch_up(&mut self, now_ns: u64) {
        self.drive_ns = self.drive_ns.max(now_ns.saturating_sub(self.began_ns));
        while self.drive.next_event_ns().is_some_and(|at_ns| at_ns <= self.drive_ns) {
            // An internal event of the drive completes no command, and the next event is later.
            if let Some(completion) = self.drive.poll(self.drive_ns) {
                let noticed_ns = self.woken_ns.max(self.drive_ns);
                self.lateness.saturating_record(noticed_ns.saturating_sub(completion.service.finish_ns));
                let bad_sector = match completion.status {
                    Status::Done => None,
                    Status::MediaError { sector } => Some(sector),
                };
                self.completed.push_back(CompletedCommand { tag: completion.tag, bad_sector });
            }
        }
    }
}

fn format_lines(name: &str, late: &Histogram<u64>) -> Vec<String> {
    if late.is_empty() {
        return Vec::new();
    }
    let us = |ns: u64| ns as f64 / 1000.0;
    let at = |quantile| us(late.value_at_quantile(quantile));
    let mut lines = vec![format!(
        "{}: {} completions came late by {:.1} us (p50), {:.1} us (p99), {:.1} us (p99.9), {:.1} us at most",
        name,
        late.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        us(late.max())
    )];
    // Each value counts once: values within 1 % of a bound are on one side of it.
    let values = late.iter_recorded().map(|at| (late.lowest_equivalent(at.value_iterated_to()), at.count_at_value()));
    let mut recorded = values.peekable();
    let (mut from_us, mut to_us) = (0u64, 1u64);
    while from_us * 1000 <= late.max() {
        let mut count = 0;
        while let Some((_, more)) = recorded.next_if(|(ns, _)| *ns < to_us.saturating_mul(1000)) {
            count += more;
        }
        lines.push(format!("{from_us:>9} to {to_us:>9} us {count:>12}"));
        (from_us, to_us) = (to_us, to_us.saturating_mul(2));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_drive::{Access, Op};

    #[test]
    fn a_late_completion_counts_and_the_drives_clock_does_not_go_back() {
        let text = "[drive]\nname = \"still\"\nkind = \"null\"\n[null]\nservice_us = 1000\ndepth = 1\ncapacity_sectors = 1024\n";
        let profile = Profile::builtin("null").or_else(|| Profile::from_toml(text, "still.toml").ok());
        let profile = profile.expect("a drive without parts");
        let mut drive = EmulatedDrive::new(&profile, 5_000);
        let read = |sector| Command::from(Access { op: Op::Read, sector, sectors: 8 });
        drive.submit(6_000, 1, &read(0)).expect("within the drive");
        let due_ns = drive.next_ns().expect("it is at work");
        assert_eq!(drive.poll(due_ns - 1), None);
        drive.submit(due_ns + 40_000, 2, &read(8)).expect("within the drive");
        assert_eq!(drive.poll(due_ns + 40_000), Some(CompletedCommand { tag: 1, bad_sector: None }));
        let late_ns = drive.lateness().max();
        assert!((40_000..41_000).contains(&late_ns), "{late_ns}");
        assert!(drive.next_ns() > Some(due_ns + 40_000));
        let lines = drive.lateness_lines();
        assert!(lines[0].contains("1 completions came late by 4"), "{lines:?}");
        assert_eq!(lines.last().map(|line| line.split_whitespace().last()), Some(Some("1")), "{lines:?}");
    }

    #[test]
    fn every_completion_is_in_one_line_of_the_histogram() {
        let mut late = *latency_histogram();
        (0..3000).for_each(|at| late.saturating_record(at * 17));
        let lines = format_lines("disk", &late);
        let counts = lines[1..].iter().filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        assert_eq!(counts.sum::<u64>(), 3000, "{lines:?}");
    }
}
