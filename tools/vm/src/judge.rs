//! The verdict on a boot: from the events of the guest, the console, and how the machine ended.

use std::collections::BTreeMap;

use hoistway_guest::kernel_log::{self, Report};
use hoistway_guest::protocol::{Counts, Event, Status};

use hoistway_workspace::programs::last_lines;

/// The lines of the console in an error.
const TAIL_LINES: usize = 60;

/// How the virtual machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest powered off.
    PoweredOff,
    /// The host ended the machine; the reason.
    TimedOut(String),
}

/// The facts about a boot.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The events, and the lines that could not be parsed.
    pub events: Vec<Result<Event, String>>,
    /// The text of the console.
    pub console: String,
    /// The module under test. Only data races in which it has a part are failures; all are if there
    /// is none.
    pub subject: Option<String>,
}

impl Record {
    /// Returns true for the report of a data race in which the module under test has no part.
    fn is_foreign_race(&self, text: &str) -> bool {
        self.subject.as_ref().is_some_and(|module| kernel_log::is_race_without(text, module))
    }

    /// The reports on the console.
    fn console_reports(&self) -> Vec<Report> {
        kernel_log::reports(self.console.lines().map(kernel_log::console_message))
    }

    /// The number of data races on the console in which the module under test has no part.
    pub fn foreign_races(&self) -> usize {
        self.console_reports().iter().filter(|report| self.is_foreign_race(&report.text)).count()
    }
}

/// The failures of a boot; empty if all campaigns passed and the kernel reported nothing.
pub fn failures(record: &Record, exit: &Exit) -> Vec<String> {
    let mut failures = Vec::new();
    let mut reported: Vec<&str> = Vec::new();
    for event in &record.events {
        match event {
            Err(message) => failures.push(message.clone()),
            Ok(Event::Ended { name, status: Status::Failed, detail, .. }) => failures.push(format!("{name}: {detail}")),
            Ok(Event::Ended { name, status: Status::Hung, detail, .. }) => {
                failures.push(format!("{name}: hung: {detail}; the console ends with\n{}", tail(record)));
            }
            Ok(Event::Report { name, kind, text }) => {
                reported.extend(text.lines());
                if record.is_foreign_race(text) {
                    continue;
                }
                failures.push(format!("{name}: the kernel reports a {kind}:\n{text}"));
            }
            Ok(_) => {}
        }
    }
    // What the guest could not report, because the kernel stopped.
    for report in record.console_reports().iter().filter(|report| !record.is_foreign_race(&report.text)) {
        let first = report.text.lines().next().unwrap_or_default();
        if !reported.iter().any(|line| line.trim() == first.trim()) {
            failures.push(format!("the console has a {}:\n{}", report.kind, report.text));
        }
    }
    let campaign = running(&record.events).unwrap_or("the boot");
    let finished = record.events.iter().any(|event| matches!(event, Ok(Event::Finished { .. })));
    match exit {
        Exit::TimedOut(reason) => {
            failures.push(format!("{campaign}: {reason}; the console ends with\n{}", tail(record)));
        }
        Exit::PoweredOff if !finished => {
            failures.push(format!("{campaign}: the machine stopped; the console ends with\n{}", tail(record)));
        }
        Exit::PoweredOff => {}
    }
    let passed = record.events.iter().any(|event| matches!(event, Ok(Event::Ended { status: Status::Passed, .. })));
    if failures.is_empty() && !passed {
        failures.push("no campaign passed".to_owned());
    }
    failures
}

/// The figures of the campaigns that passed, by name.
pub fn counts(record: &Record) -> BTreeMap<String, Counts> {
    let passed = record.events.iter().flatten().filter_map(|event| match event {
        Event::Ended { name, status: Status::Passed, counts, .. } => Some((name.clone(), counts.clone())),
        _ => None,
    });
    passed.collect()
}

/// The campaign that has begun and not ended.
pub fn running(events: &[Result<Event, String>]) -> Option<&str> {
    let mut running = None;
    for event in events.iter().flatten() {
        match event {
            Event::Begun { name } => running = Some(name.as_str()),
            Event::Ended { .. } => running = None,
            _ => {}
        }
    }
    running
}

fn tail(record: &Record) -> String {
    last_lines(&record.console, TAIL_LINES)
}

/// The line that shows the end of a campaign; None for other events.
pub fn line(event: &Event) -> Option<String> {
    let Event::Ended { name, status, detail, counts, milliseconds } = event else { return None };
    let seconds = *milliseconds as f64 / 1e3;
    let what = match status {
        Status::Passed => {
            let figures = counts.iter().filter(|(_, figure)| **figure > 0);
            let figures = figures.map(|(name, figure)| format!("{} {figure}", name.replace('_', " ")));
            figures.collect::<Vec<_>>().join(", ")
        }
        _ => detail.lines().next().unwrap_or_default().to_owned(),
    };
    let word = match status {
        Status::Passed => "ok",
        Status::Failed => "FAILED",
        Status::Skipped => "SKIPPED",
        Status::Hung => "HUNG",
    };
    Some(format!("  {name:<28} {word:<8} {seconds:>6.1} s  {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(name: &str) -> Result<Event, String> {
        Ok(Event::Begun { name: name.to_owned() })
    }

    fn ended(name: &str, status: Status, detail: &str) -> Result<Event, String> {
        let (name, detail) = (name.to_owned(), detail.to_owned());
        Ok(Event::Ended { name, status, detail, counts: Counts::new(), milliseconds: 1 })
    }

    fn finished() -> Result<Event, String> {
        Ok(Event::Finished { campaigns: 1 })
    }

    fn judge(events: Vec<Result<Event, String>>, console: &str, exit: &Exit) -> Vec<String> {
        failures(&Record { events, console: console.to_owned(), subject: Some("m".to_owned()) }, exit)
    }

    #[test]
    fn a_clean_boot_has_no_failures() {
        let events = vec![begun("a"), ended("a", Status::Passed, ""), ended("b", Status::Skipped, "no"), finished()];
        let console = "[    0.0] Linux version 6.12\n[    1.0] virtio_blk virtio1: [vda] 1 blocks\n";
        assert_eq!(judge(events, console, &Exit::PoweredOff), [""; 0]);
    }

    #[test]
    fn a_lost_write_is_a_failure() {
        let detail = "cell 7 of /dev/vda: lost write: sequence 2 instead of 3";
        let found = judge(vec![begun("a"), ended("a", Status::Failed, detail), finished()], "", &Exit::PoweredOff);
        assert_eq!(found, [format!("a: {detail}")]);
    }

    #[test]
    fn a_warning_in_the_log_is_a_failure_once() {
        let text = "WARNING: CPU: 0 PID: 1 at x.c:1 x+0x0/0x1\nCall Trace:".to_owned();
        let report = Ok(Event::Report { name: "a".to_owned(), kind: "warning".to_owned(), text });
        let events = vec![begun("a"), report, ended("a", Status::Passed, ""), finished()];
        let console = "[    9.1] WARNING: CPU: 0 PID: 1 at x.c:1 x+0x0/0x1\n[    9.1] Call Trace:\n";
        let found = judge(events, console, &Exit::PoweredOff);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a: the kernel reports a warning:\nWARNING: CPU: 0"));
    }

    #[test]
    fn a_data_race_is_a_failure_if_the_module_has_a_part_in_it() {
        let rule = "=".repeat(66);
        let race = |frame: &str| format!("BUG: KCSAN: data-race in a / b\n\nread to 0xff of 4 bytes:\n {frame}\n");
        let report = |text: &str| {
            Ok(Event::Report { name: "a".to_owned(), kind: "bug".to_owned(), text: text.trim_end().to_owned() })
        };
        for (frame, count) in [("b+0x1/0x2", 0), ("b+0x1/0x2 [m]", 1)] {
            let events = vec![begun("a"), report(&race(frame)), ended("a", Status::Passed, ""), finished()];
            let console = format!("{rule}\n{}{rule}\n", race(frame));
            assert_eq!(judge(events, &console, &Exit::PoweredOff).len(), count, "{frame}");
            let record = Record { console, subject: Some("m".to_owned()), ..Record::default() };
            assert_eq!(record.foreign_races(), 1 - count);
        }
    }

    #[test]
    fn a_panic_that_only_the_console_has_is_a_failure_with_its_trace() {
        let console = "[    1.0] fine\n[    9.1] BUG: kernel NULL pointer dereference, address: 0\n[    9.1] RIP: x\n";
        let found = judge(vec![begun("switch vda")], console, &Exit::PoweredOff);
        assert!(found[0].contains("RIP: x"), "{found:?}");
        assert!(found[1].starts_with("switch vda: the machine stopped; the console ends with\n[    1.0] fine"));
    }

    #[test]
    fn a_hang_is_a_failure_with_the_tail_of_the_console() {
        let events = vec![begun("switch vda")];
        let exit = Exit::TimedOut("no event for 90 s".to_owned());
        let found = judge(events, "[    8.0] last words\n", &exit);
        assert_eq!(found, ["switch vda: no event for 90 s; the console ends with\n[    8.0] last words"]);
        let events = vec![begun("a"), ended("a", Status::Hung, "no end after 60 s"), finished()];
        let found = judge(events, "[    8.0] last words\n", &Exit::PoweredOff);
        assert!(found[0].starts_with("a: hung: no end after 60 s") && found[0].ends_with("last words"));
    }

    #[test]
    fn a_boot_in_which_nothing_passed_and_a_damaged_line_are_failures() {
        assert_eq!(judge(vec![finished()], "", &Exit::PoweredOff), ["no campaign passed"]);
        let events = vec![Err("a damaged line".to_owned()), ended("a", Status::Passed, ""), finished()];
        assert_eq!(judge(events, "", &Exit::PoweredOff), ["a damaged line"]);
    }

    #[test]
    fn the_line_of_a_campaign_shows_its_figures_or_the_reason() {
        let counts = Counts::from([("switches".to_owned(), 40)]);
        let (name, detail) = ("switch vda".to_owned(), String::new());
        let event = Event::Ended { name, status: Status::Passed, detail, counts, milliseconds: 1500 };
        assert_eq!(line(&event).as_deref(), Some("  switch vda                   ok          1.5 s  switches 40"));
        let failed = ended("a", Status::Failed, "first\nsecond").expect("an event");
        assert!(line(&failed).is_some_and(|line| line.ends_with("first")));
    }
}
