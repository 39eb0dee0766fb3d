//! The model of a drive in real time: commands are given to it when they are dispatched, and are over when it says so.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use hoistway_drive::{Command, Drive, Profile, Status};

use super::account::latencies;

/// A drive whose clock is the server's.
#[derive(Debug)]
pub(super) struct Emulated {
    drive: Drive,
    name: String,
    /// The server's time at which the drive's clock began.
    began_ns: u64,
    /// The last time told to the drive, on its clock.
    told_ns: u64,
    /// Commands that were over before they were asked for.
    over: VecDeque<Over>,
    /// When the server last looked at a clock, on the drive's own.
    looked_ns: u64,
    /// How late completions were taken notice of.
    lateness: Box<Histogram<u64>>,
}

/// A command that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub tag: u32,
    /// The first sector that could not be read or written, if there is one.
    pub bad_sector: Option<u64>,
}

impl Emulated {
    pub fn new(profile: &Profile, now_ns: u64) -> Emulated {
        Emulated {
            drive: Drive::new(profile),
            name: profile.name().to_owned(),
            began_ns: now_ns,
            told_ns: 0,
            over: VecDeque::new(),
            looked_ns: 0,
            lateness: latencies(),
        }
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn bytes(&self) -> u64 {
        self.drive.capacity_sectors().saturating_mul(hoistway_drive::SECTOR_BYTES)
    }

    pub fn depth(&self) -> u32 {
        self.drive.depth().max(1)
    }

    /// How late completions were, in ns: from when the model said to when the server took notice.
    pub fn lateness(&self) -> &Histogram<u64> {
        &self.lateness
    }

    /// Lateness as lines of text: its quantiles, and how many completions came within each power of two of microseconds.
    pub fn lateness_lines(&self) -> Vec<String> {
        lines_of(&self.name, &self.lateness)
    }

    /// The server looks at this time: what was over before is noticed late by so much.
    pub fn look(&mut self, now_ns: u64) {
        self.looked_ns = self.looked_ns.max(now_ns.saturating_sub(self.began_ns));
    }

    /// Gives the drive a command. What was due before is taken out first, so that the drive's clock never goes back.
    ///
    /// # Errors
    /// When the command reaches beyond the drive.
    pub fn submit(&mut self, now_ns: u64, tag: u32, command: &Command) -> Result<(), hoistway_drive::AccessError> {
        self.catch_up(now_ns);
        self.drive.submit(self.told_ns, tag, command)
    }

    /// A command that is over by now, in the order in which they ended.
    pub fn poll(&mut self, now_ns: u64) -> Option<Over> {
        self.catch_up(now_ns);
        self.over.pop_front()
    }

    /// When the drive has something to tell or to do: `None` while it has nothing, or never answers again.
    pub fn next_ns(&self) -> Option<u64> {
        if !self.over.is_empty() {
            return Some(self.began_ns + self.told_ns);
        }
        self.drive.next_event_ns().map(|at_ns| at_ns.saturating_add(self.began_ns))
    }

    fn catch_up(&mut self, now_ns: u64) {
        self.told_ns = self.told_ns.max(now_ns.saturating_sub(self.began_ns));
        while self.drive.next_event_ns().is_some_and(|at_ns| at_ns <= self.told_ns) {
            // An event of the drive's own answers nothing, and the next one is later.
            if let Some(completion) = self.drive.poll(self.told_ns) {
                let noticed_ns = self.looked_ns.max(self.told_ns);
                self.lateness.saturating_record(noticed_ns.saturating_sub(completion.service.finish_ns));
                let bad_sector = match completion.status {
                    Status::Done => None,
                    Status::MediaError { sector } => Some(sector),
                };
                self.over.push_back(Over { tag: completion.tag, bad_sector });
            }
        }
    }
}

fn lines_of(name: &str, late: &Histogram<u64>) -> Vec<String> {
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
    // Each value counts once: those within 1 % of a bound lie on one side of it.
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
    fn a_completion_that_is_noticed_late_counts_as_late_and_does_not_turn_the_drives_clock_back() {
        let text = "[drive]\nname = \"still\"\nkind = \"null\"\n[null]\nservice_us = 1000\ndepth = 1\ncapacity_sectors = 1024\n";
        let profile = Profile::builtin("null").or_else(|| Profile::from_toml(text, "still.toml").ok());
        let profile = profile.expect("a drive without parts");
        let mut drive = Emulated::new(&profile, 5_000);
        let read = |sector| Command::from(Access { op: Op::Read, sector, sectors: 8 });
        drive.submit(6_000, 1, &read(0)).expect("within the drive");
        let due_ns = drive.next_ns().expect("it is at work");
        assert_eq!(drive.poll(due_ns - 1), None);
        drive.submit(due_ns + 40_000, 2, &read(8)).expect("within the drive");
        assert_eq!(drive.poll(due_ns + 40_000), Some(Over { tag: 1, bad_sector: None }));
        let late_ns = drive.lateness().max();
        assert!((40_000..41_000).contains(&late_ns), "{late_ns}");
        assert!(drive.next_ns() > Some(due_ns + 40_000));
        let lines = drive.lateness_lines();
        assert!(lines[0].contains("1 completions came late by 4"), "{lines:?}");
        assert_eq!(lines.last().map(|line| line.split_whitespace().last()), Some(Some("1")), "{lines:?}");
    }

    #[test]
    fn every_completion_is_in_one_line_of_the_histogram() {
        let mut late = *super::super::account::latencies();
        (0..3000).for_each(|at| late.saturating_record(at * 17));
        let lines = lines_of("disk", &late);
        let counts = lines[1..].iter().filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        assert_eq!(counts.sum::<u64>(), 3000, "{lines:?}");
    }
}
