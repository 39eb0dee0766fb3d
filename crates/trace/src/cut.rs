//! Selects a filter of a trace by time, process, sectors or device.

use std::collections::{BTreeMap, HashMap};

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event};
use crate::source::{Notice, ReadError, Source};

/// Maximum number of outstanding bios that are remembered. Beyond it, the lowest sectors are
/// forgotten and their completions are attributed by process id alone.
const OUTSTANDING_MAX: usize = 1 << 18;

/// The events to keep. An empty field does not restrict anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutFilter {
    /// Keeps events from this time on, in ns after the first event of the trace.
    pub from_ns: u64,
    /// Keeps events before this time, in ns after the first event of the trace.
    pub to_ns: Option<u64>,
    /// Keeps the requests of these processes, including merges, dispatches and completions in other
    /// contexts.
    pub processes: Vec<ProcessName>,
    /// Keeps events that touch one of these sector ranges; both ends are included.
    pub sectors: Vec<(u64, u64)>,
    /// Keeps events of these devices.
    pub devices: Vec<DeviceId>,
}

/// A process that a user selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessName {
    /// The process with this id.
    Pid(u32),
    /// All processes with this name.
    Name(Vec<u8>),
}

/// A source that returns the selected filter of another source. Process names and wall-clock times
/// are always kept. Other events without a request (messages, plugs) are kept if time, process and
/// device match; a selection of sectors removes them.
pub struct Cut<S> {
    source: S,
    filter: CutFilter,
    input: Batch,
    start_ns: Option<u64>,
    /// For each process id with a recorded name: true if the name is selected.
    selected: HashMap<u32, bool>,
    outstanding: OutstandingBios,
    is_over: bool,
}

impl<S: Source> Cut<S> {
    /// Creates a source that returns the filter of `source` that `filter` selects.
    pub fn new(source: S, filter: CutFilter) -> Cut<S> {
        Cut {
            source,
            filter,
            input: Batch::new(),
            start_ns: None,
            selected: HashMap::new(),
            outstanding: OutstandingBios::default(),
            is_over: false,
        }
    }

    /// Returns true if an event is kept. Must be called for all events in order.
    fn keeps(&mut self, event: &Event, payload: &[u8]) -> bool {
        if event.action == Action::Process {
            let by_name = |wanted: &ProcessName| matches!(wanted, ProcessName::Name(name) if name == payload);
            let is_selected = self.filter.processes.iter().any(by_name);
            self.selected.insert(event.pid, is_selected);
            return true;
        }
        if event.action == Action::Timestamp {
            return true;
        }
        let of_process = self.filter.processes.is_empty() || self.is_of_process(event, payload);
        let since_ns = event.time_ns.saturating_sub(self.start_ns.unwrap_or(event.time_ns));
        of_process
            && since_ns >= self.filter.from_ns
            && self.filter.to_ns.is_none_or(|to_ns| since_ns < to_ns)
            && (self.filter.devices.is_empty() || self.filter.devices.contains(&event.device))
            && (self.filter.sectors.is_empty() || self.is_in_sectors(event))
    }

    fn is_in_sectors(&self, event: &Event) -> bool {
        let has_place = event.bytes > 0 || event.sector > 0;
        // An event without a length still touches its sector.
        let last = event.end_sector().saturating_sub(1).max(event.sector);
        has_place && self.filter.sectors.iter().any(|(from, to)| event.sector <= *to && last >= *from)
    }

    /// Returns true if an event belongs to a selected process, by its process id or by its request.
    fn is_of_process(&mut self, event: &Event, payload: &[u8]) -> bool {
        let by_pid = self.is_selected(event.pid);
        match event.action {
            Action::Queue => {
                self.outstanding.submit(event, by_pid);
                by_pid
            }
            Action::Remap | Action::Split => by_pid,
            Action::Message => elevator_pid(payload).map_or(by_pid, |pid| self.is_selected(pid)),
            Action::Complete => self.outstanding.complete(event).unwrap_or(by_pid),
            Action::Issue | Action::Requeue | Action::Insert | Action::Get => {
                self.outstanding.find(event).unwrap_or(by_pid)
            }
            _ => by_pid,
        }
    }

    fn is_selected(&self, pid: u32) -> bool {
        self.filter.processes.contains(&ProcessName::Pid(pid))
            || self.selected.get(&pid).is_some_and(|selected| *selected)
    }
}

impl<S: Source> Source for Cut<S> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        let mut input = std::mem::take(&mut self.input);
        while batch.is_empty() && !self.is_over {
            self.source.next(&mut input)?;
            if input.is_empty() {
                self.is_over = true;
                break;
            }
            self.start_ns = self.start_ns.or_else(|| input.start_ns());
            for event in input.events() {
                let payload = input.payload(event);
                if self.keeps(event, payload) {
                    batch.push_with(*event, payload);
                }
            }
            // Clocks of CPUs differ by less than a second, so that nothing can match after that. A
            // single time out of order does not end the trace.
            let end_ns =
                self.filter.to_ns.and_then(|to_ns| to_ns.checked_add(self.start_ns?)?.checked_add(1_000_000_000));
            let mut moments = input.events().iter().filter(|event| event.has_moment()).peekable();
            self.is_over =
                end_ns.is_some_and(|end_ns| moments.peek().is_some() && moments.all(|event| event.time_ns > end_ns));
        }
        self.input = input;
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }

    fn skipped_lines(&self) -> u64 {
        self.source.skipped_lines()
    }
}

/// Returns the process id of a message of bfq or cfq: 2896 for `bfq2896S add_request`.
fn elevator_pid(note: &[u8]) -> Option<u32> {
    let rest = note.strip_prefix(b"bfq").or_else(|| note.strip_prefix(b"cfq"))?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let pid = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
    // 0 stands for a process that has no queue yet.
    (pid != 0).then_some(pid)
}

/// Outstanding bios by device and first sector, with true for bios of selected processes.
#[derive(Default)]
struct OutstandingBios {
    bios: BTreeMap<(DeviceId, u64, u64), bool>,
    submitted: u64,
}

impl OutstandingBios {
    fn submit(&mut self, event: &Event, is_selected: bool) {
        self.submitted += 1;
        self.bios.insert((event.device, event.sector, self.submitted), is_selected);
        if self.bios.len() > OUTSTANDING_MAX {
            self.bios.pop_first();
        }
    }

    /// Returns true if one of the bios in an event's range is selected; None if the range has no
    /// bio.
    fn find(&self, event: &Event) -> Option<bool> {
        let mut found = None;
        for (_, is_selected) in self.bios.range(range(event)) {
            found = Some(found == Some(true) || *is_selected);
        }
        found
    }

    /// Returns the same as `find` and removes the bios.
    fn complete(&mut self, event: &Event) -> Option<bool> {
        let mut found = None;
        while let Some((key, is_selected)) =
            self.bios.range(range(event)).next().map(|(key, selected)| (*key, *selected))
        {
            found = Some(found == Some(true) || is_selected);
            self.bios.remove(&key);
        }
        found
    }
}

/// Keys of the bios that begin in an event's range. A flush without data has only its sector.
fn range(event: &Event) -> std::ops::Range<(DeviceId, u64, u64)> {
    let end = event.end_sector().max(event.sector.saturating_add(1));
    (event.device, event.sector, 0)..(event.device, end, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::SingleBatch;

    /// Time, action, process id, sector, sectors.
    type Line = (u64, Action, u32, u64, u32);

    fn cut(lines: &[Line], filter: CutFilter) -> Vec<(u64, Action)> {
        let mut batch = Batch::new();
        batch.push_with(Event { pid: 7, ..Event::new(0, Action::Process) }, b"fio");
        for &(time_ns, action, pid, sector, sectors) in lines {
            let event = Event { pid, sector, bytes: sectors * 512, ..Event::new(time_ns, action) };
            if action == Action::Message { batch.push_with(event, b"bfq7S expire") } else { batch.push(event) }
        }
        let mut cut = Cut::new(SingleBatch(Some(batch)), filter);
        let mut out = Batch::new();
        cut.next(&mut out).unwrap();
        out.events()
            .iter()
            .filter(|event| event.action != Action::Process)
            .map(|event| (event.time_ns, event.action))
            .collect()
    }

    const TWO: &[Line] = &[
        (100, Action::Queue, 7, 0, 8),
        (110, Action::Queue, 8, 8, 8),
        (120, Action::BackMerge, 8, 8, 8),
        (130, Action::Queue, 8, 100, 8),
        (140, Action::Issue, 99, 0, 16),
        (150, Action::Issue, 99, 100, 8),
        (155, Action::Message, 99, 0, 0),
        (160, Action::Complete, 0, 0, 16),
        (170, Action::Complete, 0, 100, 8),
        (180, Action::Issue, 7, 200, 8),
    ];

    #[test]
    fn a_process_filter_keeps_requests_that_other_contexts_dispatch_and_complete() {
        let kept = [
            (100, Action::Queue),
            (140, Action::Issue),
            (155, Action::Message),
            (160, Action::Complete),
            (180, Action::Issue),
        ];
        let by_pid = CutFilter { processes: vec![ProcessName::Pid(7)], ..CutFilter::default() };
        assert_eq!(cut(TWO, by_pid), kept);
        let by_name = CutFilter { processes: vec![ProcessName::Name(b"fio".to_vec())], ..CutFilter::default() };
        assert_eq!(cut(TWO, by_name), kept);
    }

    #[test]
    fn times_count_from_the_first_event_and_the_end_is_excluded() {
        let filter = CutFilter { from_ns: 20, to_ns: Some(40), ..CutFilter::default() };
        assert_eq!(cut(TWO, filter), [(120, Action::BackMerge), (130, Action::Queue)]);
    }

    #[test]
    fn a_sector_filter_keeps_events_that_touch_a_range_and_drops_messages() {
        let filter = CutFilter { sectors: vec![(15, 50), (107, 107)], ..CutFilter::default() };
        let kept: Vec<u64> = cut(TWO, filter).into_iter().map(|(time_ns, _)| time_ns).collect();
        assert_eq!(kept, [110, 120, 130, 140, 150, 160, 170]);
    }

    #[test]
    fn a_device_filter_keeps_events_of_its_devices() {
        let none = CutFilter { devices: vec![DeviceId::new(8, 0)], ..CutFilter::default() };
        assert_eq!(cut(TWO, none), []);
        assert_eq!(cut(TWO, CutFilter::default()).len(), TWO.len());
    }
}
