//! Parts of traces: a span of time, processes, sectors, devices.

use std::collections::{BTreeMap, HashMap};

use crate::batch::Batch;
use crate::event::{Action, DeviceId, Event};
use crate::source::{Notice, ReadError, Source};

/// So many requests that are under way are remembered; if more are, the oldest sectors are forgotten and their completions told by the process alone.
const UNDER_WAY_MAX: usize = 1 << 18;

/// What is kept. What is left empty leaves nothing out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// From so many ns after the trace's first event on.
    pub from_ns: u64,
    /// Before so many ns after it.
    pub to_ns: Option<u64>,
    /// What these processes asked for, wherever it was merged, dispatched or completed.
    pub processes: Vec<ProcessName>,
    /// Whatever touches one of these ranges of sectors, both ends included.
    pub sectors: Vec<(u64, u64)>,
    /// These devices.
    pub devices: Vec<DeviceId>,
}

/// A process, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessName {
    /// By its number.
    Pid(u32),
    /// By its name: all that have it.
    Name(Vec<u8>),
}

/// A part of a trace, as a source. Names of processes and the time of the day are kept always; the rest of what belongs to no request (messages, plugs) is
/// kept as far as time, process and device say so, and not where sectors are asked for.
pub struct Cut<S> {
    source: S,
    part: Part,
    taken: Batch,
    start_ns: Option<u64>,
    /// Whether a process that was seen by its name is asked for.
    asked_for: HashMap<u32, bool>,
    under_way: UnderWay,
    is_over: bool,
}

impl<S: Source> Cut<S> {
    /// A part of what a source has.
    pub fn new(source: S, part: Part) -> Cut<S> {
        Cut {
            source,
            part,
            taken: Batch::new(),
            start_ns: None,
            asked_for: HashMap::new(),
            under_way: UnderWay::default(),
            is_over: false,
        }
    }

    /// Whether an event is kept. All have to be asked about, in their order.
    fn keeps(&mut self, event: &Event, payload: &[u8]) -> bool {
        if event.action == Action::Process {
            let by_name = |wanted: &ProcessName| matches!(wanted, ProcessName::Name(name) if name == payload);
            let is_asked_for = self.part.processes.iter().any(by_name);
            self.asked_for.insert(event.pid, is_asked_for);
            return true;
        }
        if event.action == Action::Timestamp {
            return true;
        }
        let of_process = self.part.processes.is_empty() || self.is_of_process(event, payload);
        let since_ns = event.time_ns.saturating_sub(self.start_ns.unwrap_or(event.time_ns));
        of_process
            && since_ns >= self.part.from_ns
            && self.part.to_ns.is_none_or(|to_ns| since_ns < to_ns)
            && (self.part.devices.is_empty() || self.part.devices.contains(&event.device))
            && (self.part.sectors.is_empty() || self.is_in_sectors(event))
    }

    fn is_in_sectors(&self, event: &Event) -> bool {
        let has_place = event.bytes > 0 || event.sector > 0;
        // A completed or split range of no length still lies at its sector.
        let last = event.end_sector().saturating_sub(1).max(event.sector);
        has_place && self.part.sectors.iter().any(|(from, to)| event.sector <= *to && last >= *from)
    }

    /// Whether an event is of a process that is asked for: by whom it was caused, or whose request it is.
    fn is_of_process(&mut self, event: &Event, payload: &[u8]) -> bool {
        let by_pid = self.is_asked_for(event.pid);
        match event.action {
            Action::Queue => {
                self.under_way.submit(event, by_pid);
                by_pid
            }
            Action::Remap | Action::Split => by_pid,
            Action::Message => elevator_pid(payload).map_or(by_pid, |pid| self.is_asked_for(pid)),
            Action::Complete => self.under_way.complete(event).unwrap_or(by_pid),
            Action::Issue | Action::Requeue | Action::Insert | Action::Get => {
                self.under_way.find(event).unwrap_or(by_pid)
            }
            _ => by_pid,
        }
    }

    fn is_asked_for(&self, pid: u32) -> bool {
        self.part.processes.contains(&ProcessName::Pid(pid))
            || self.asked_for.get(&pid).is_some_and(|asked_for| *asked_for)
    }
}

impl<S: Source> Source for Cut<S> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        let mut taken = std::mem::take(&mut self.taken);
        while batch.is_empty() && !self.is_over {
            self.source.next(&mut taken)?;
            if taken.is_empty() {
                self.is_over = true;
                break;
            }
            self.start_ns = self.start_ns.or_else(|| taken.start_ns());
            for event in taken.events() {
                let payload = taken.payload(event);
                if self.keeps(event, payload) {
                    batch.push_with(*event, payload);
                }
            }
            // Clocks of CPUs differ by less than a second: behind that nothing more can come. One time that is out of place is no reason to end.
            let end_ns =
                self.part.to_ns.and_then(|to_ns| to_ns.checked_add(self.start_ns?)?.checked_add(1_000_000_000));
            let mut moments = taken.events().iter().filter(|event| event.has_moment()).peekable();
            self.is_over =
                end_ns.is_some_and(|end_ns| moments.peek().is_some() && moments.all(|event| event.time_ns > end_ns));
        }
        self.taken = taken;
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }
}

/// The process that a note of bfq or cfq is about: `bfq2896S add_request` is about 2896.
fn elevator_pid(note: &[u8]) -> Option<u32> {
    let rest = note.strip_prefix(b"bfq").or_else(|| note.strip_prefix(b"cfq"))?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let pid = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
    // 0 stands for whoever it is that has no queue yet.
    (pid != 0).then_some(pid)
}

/// Bios that were submitted and did not complete yet: by device and first sector, with whether their process is asked for.
#[derive(Default)]
struct UnderWay {
    bios: BTreeMap<(DeviceId, u64, u64), bool>,
    submitted: u64,
}

impl UnderWay {
    fn submit(&mut self, event: &Event, is_asked_for: bool) {
        self.submitted += 1;
        self.bios.insert((event.device, event.sector, self.submitted), is_asked_for);
        if self.bios.len() > UNDER_WAY_MAX {
            self.bios.pop_first();
        }
    }

    /// Whether one of the bios in an event's range is asked for; `None` if there is no bio.
    fn find(&self, event: &Event) -> Option<bool> {
        let mut found = None;
        for (_, is_asked_for) in self.bios.range(range(event)) {
            found = Some(found == Some(true) || *is_asked_for);
        }
        found
    }

    /// The same, and they are over.
    fn complete(&mut self, event: &Event) -> Option<bool> {
        let mut found = None;
        while let Some((key, is_asked_for)) =
            self.bios.range(range(event)).next().map(|(key, asked_for)| (*key, *asked_for))
        {
            found = Some(found == Some(true) || is_asked_for);
            self.bios.remove(&key);
        }
        found
    }
}

/// The keys of bios that begin in an event's range; a flush has only its sector.
fn range(event: &Event) -> std::ops::Range<(DeviceId, u64, u64)> {
    let end = event.end_sector().max(event.sector.saturating_add(1));
    (event.device, event.sector, 0)..(event.device, end, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of one batch.
    struct Once(Option<Batch>);

    impl Source for Once {
        fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
            *batch = self.0.take().unwrap_or_default();
            Ok(())
        }

        fn notices(&mut self) -> Vec<Notice> {
            Vec::new()
        }
    }

    /// (time, action, process, sector, sectors).
    type Line = (u64, Action, u32, u64, u32);

    fn cut(lines: &[Line], part: Part) -> Vec<(u64, Action)> {
        let mut batch = Batch::new();
        batch.push_with(Event { pid: 7, ..Event::new(0, Action::Process) }, b"fio");
        for &(time_ns, action, pid, sector, sectors) in lines {
            let event = Event { pid, sector, bytes: sectors * 512, ..Event::new(time_ns, action) };
            if action == Action::Message { batch.push_with(event, b"bfq7S expire") } else { batch.push(event) }
        }
        let mut cut = Cut::new(Once(Some(batch)), part);
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
    fn a_process_keeps_its_requests_where_others_dispatch_and_complete_them() {
        let kept = [
            (100, Action::Queue),
            (140, Action::Issue),
            (155, Action::Message),
            (160, Action::Complete),
            (180, Action::Issue),
        ];
        let by_pid = Part { processes: vec![ProcessName::Pid(7)], ..Part::default() };
        assert_eq!(cut(TWO, by_pid), kept);
        let by_name = Part { processes: vec![ProcessName::Name(b"fio".to_vec())], ..Part::default() };
        assert_eq!(cut(TWO, by_name), kept);
    }

    #[test]
    fn time_counts_from_the_first_event_and_ends_before_its_end() {
        let part = Part { from_ns: 20, to_ns: Some(40), ..Part::default() };
        assert_eq!(cut(TWO, part), [(120, Action::BackMerge), (130, Action::Queue)]);
    }

    #[test]
    fn sectors_keep_what_touches_them_and_no_notes() {
        let part = Part { sectors: vec![(15, 50), (107, 107)], ..Part::default() };
        let kept: Vec<u64> = cut(TWO, part).into_iter().map(|(time_ns, _)| time_ns).collect();
        assert_eq!(kept, [110, 120, 130, 140, 150, 160, 170]);
    }

    #[test]
    fn devices_keep_theirs() {
        let none = Part { devices: vec![DeviceId::new(8, 0)], ..Part::default() };
        assert_eq!(cut(TWO, none), []);
        assert_eq!(cut(TWO, Part::default()).len(), TWO.len());
    }
}
