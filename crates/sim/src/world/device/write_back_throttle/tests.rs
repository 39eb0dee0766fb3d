//! The throttle beside recordings of kernels (`testdata/wbt`).

use super::*;

const MS: u64 = 1_000_000;
/// A time at which the creation of the device is long ago, at the beginning of a tick.
const LATER: u64 = 10_000 * MS;

fn throttle(depth: u32, write_back_cache: bool) -> WriteBackThrottle<u32> {
    let settings = Settings { depth, rotational: false, write_back_cache, latency_ns: 0 };
    WriteBackThrottle::new(settings, Kind::MqDeadline).expect("it is on")
}

/// The lines of a table without its comments, as fields.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// Background writes of a flusher that always has one more.
struct Flusher {
    throttle: WriteBackThrottle<u32>,
    in_flight: VecDeque<u32>,
    next: u32,
}

impl Flusher {
    fn new(write_back_cache: bool) -> Flusher {
        Flusher { throttle: throttle(64, write_back_cache), in_flight: VecDeque::new(), next: 0 }
    }

    fn begin(&mut self, class: Class) {
        self.throttle.begun(SubmitterId(0), class, Some(self.next));
        self.in_flight.push_back(self.next);
        self.next += 1;
    }

    /// Submits writes until the throttle holds the flusher back.
    fn write(&mut self, class: Class, now_ns: u64) {
        while self.throttle.admit(SubmitterId(0), class, now_ns) {
            self.begin(class);
        }
    }
}

/// The flusher of a recording: it submits writes when the recorded one did.
struct RecordedFlusher {
    throttle: WriteBackThrottle<u32>,
    in_flight: VecDeque<u32>,
    next: u32,
    /// True while the throttle holds a write back.
    sleeps: bool,
    /// The time at which the throttle gave a slot that the recorded flusher has not used yet.
    woken_ns: Option<u64>,
}

impl RecordedFlusher {
    fn woken(&mut self, woken: &[SubmitterId], now_ns: u64) {
        if !woken.is_empty() {
            (self.sleeps, self.woken_ns) = (false, Some(now_ns));
        }
    }

    fn run_timers(&mut self, until_ns: u64) {
        while let Some(due_ns) = self.throttle.next_timer().filter(|due_ns| *due_ns <= until_ns) {
            let woken = self.throttle.timer(due_ns);
            self.woken(&woken, due_ns);
        }
    }

    /// Lets the flusher sleep if the throttle holds its next write back.
    fn try_to_write(&mut self, now_ns: u64) {
        let is_full = self.throttle.pools[0].in_flight() >= self.throttle.limit(Class::Background, now_ns);
        if is_full && !self.sleeps && self.woken_ns.is_none() {
            assert!(!self.throttle.admit(SubmitterId(0), Class::Background, now_ns));
            self.sleeps = true;
        }
    }

    fn slot(&mut self, now_ns: u64) {
        assert!(!self.sleeps, "held back with {} in flight", self.in_flight.len());
        if self.woken_ns.take().is_none() {
            assert!(
                self.throttle.admit(SubmitterId(0), Class::Background, now_ns),
                "{} in flight",
                self.in_flight.len()
            );
        }
        self.throttle.begun(SubmitterId(0), Class::Background, Some(self.next));
        self.in_flight.push_back(self.next);
        self.next += 1;
    }

    fn complete(&mut self, now_ns: u64) {
        let request = self.in_flight.pop_front().expect("one is in flight");
        let woken = self.throttle.completed((request, Op::Write), MS, now_ns, |_| true);
        self.woken(&woken, now_ns);
    }
}

/// Repeats the slots and completions of a recording: the throttle has to admit each recorded write,
/// and a write that it wakes has to be a recorded one. Returns the most writes in flight.
fn replay(rows: &[(u64, &str)], cache: &str) -> usize {
    let throttle = throttle(64, cache == "back");
    let mut flusher = RecordedFlusher { throttle, in_flight: VecDeque::new(), next: 0, sleeps: false, woken_ns: None };
    let (mut last_slot_ns, mut most) = (u64::MAX, 0);
    for (index, (at_ns, event)) in rows.iter().enumerate() {
        // The kernel's timer runs up to 0.1 ms before or after the beginning of a tick.
        flusher.run_timers(if event.starts_with("step") { at_ns + MS / 10 } else { *at_ns });
        // The flusher submits its next write within 0.4 ms, unless it has written all dirty pages.
        let next = rows[index..].iter().find(|(_, event)| *event == "slot");
        let has_write = next.is_some_and(|(next_ns, _)| *next_ns < at_ns + 200 * MS);
        if *event == "complete" && has_write && at_ns.saturating_sub(last_slot_ns) > 400_000 {
            flusher.try_to_write(*at_ns);
        }
        match *event {
            "slot" => {
                flusher.slot(*at_ns);
                last_slot_ns = *at_ns;
                most = most.max(flusher.in_flight.len());
            }
            "complete" => flusher.complete(*at_ns),
            step => assert_eq!(format!("step {}", flusher.throttle.step), step, "at {at_ns} ns"),
        }
        let is_late = flusher.woken_ns.is_some_and(|woken_ns| *at_ns >= woken_ns + 2 * MS);
        assert!(!is_late, "no write follows the wake before {at_ns} ns");
    }
    most
}

#[test]
fn slots_of_periodic_write_back_are_those_of_recorded_kernels() {
    let text = include_str!("../../../../testdata/wbt/slots.tsv");
    for (kernel, cache) in [("6.1", "through"), ("6.1", "back"), ("6.12", "through"), ("6.12", "back")] {
        let event = |row: Vec<&'static str>| ((row[2].parse::<f64>().expect("ms") * MS as f64) as u64, row[3]);
        let mut rows: Vec<_> = rows(text).filter(|row| row[..2] == [kernel, cache]).map(event).collect();
        let (first_step_ns, _) = rows.iter().find(|(_, event)| event.starts_with("step")).expect("a step");
        // A step is at the beginning of a tick.
        let begin_ns = LATER + 104 * MS - first_step_ns;
        rows.iter_mut().for_each(|(at_ns, _)| *at_ns += begin_ns);
        assert_eq!(rows.len(), 172, "{kernel} {cache}");
        assert_eq!(replay(&rows, cache), 12, "{kernel} {cache}: most writes in flight");
    }
}

#[test]
fn steps_follow_the_windows_of_recorded_kernels() {
    let text = include_str!("../../../../testdata/wbt/windows.tsv");
    let mut compared = 0;
    for kernel in ["6.1", "6.12"] {
        let mut throttle = throttle(64, true);
        for row in rows(text).filter(|row| row[0] == kernel) {
            assert_eq!(throttle.step.to_string(), row[4], "{kernel}: at {} ms", row[2]);
            throttle.settle(match row[3] {
                "1" => Verdict::Ok,
                "2" => Verdict::Unknown,
                "3" => Verdict::UnknownWriting,
                _ => Verdict::Exceeded,
            });
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn the_depth_of_the_disk_decides_the_slots_as_on_recorded_kernels() {
    let mut compared = 0;
    for row in rows(include_str!("../../../../testdata/wbt/depths.tsv")) {
        let number = |at: usize| row[at].parse::<u32>().expect("a number");
        let depths = Depths::at(number(1), 0);
        assert_eq!((depths.normal, depths.background), (number(2), number(3)), "queue_depth {}", row[1]);
        compared += 1;
    }
    assert_eq!(compared, 18);
}

#[test]
fn steps_double_and_halve_the_slots() {
    let at = |depth, step| {
        let Depths { all, normal, background, is_most } = Depths::at(depth, step);
        (all, normal, background, is_most)
    };
    let of_64 = [4, 3, 2, 1, 0, -1, -2].map(|step| at(64, step));
    let expected = [(1, 1, 1), (2, 2, 1), (4, 2, 1), (8, 4, 2), (16, 8, 4), (31, 16, 8)];
    assert_eq!(of_64[..6], expected.map(|(all, normal, background)| (all, normal, background, false)));
    assert_eq!(of_64[6], (48, 24, 12, true));
    assert_eq!([at(4, -1), at(16, -1), at(32, -1)], [(3, 2, 1, true), (12, 6, 3, true), (24, 12, 6, true)]);
    assert_eq!([at(256, -3), at(256, -4)], [(121, 61, 31, false), (192, 96, 48, true)]);
    assert_eq!([at(1, 0), at(1, 1)], [(2, 2, 1, true), (1, 1, 1, true)]);
}

#[test]
fn slow_reads_take_all_slots_but_one() {
    // Recorded with reads of 2 ms and a limit of 1 ms: steps 1 to 4, and no further.
    let settings = Settings { depth: 64, rotational: false, write_back_cache: true, latency_ns: MS };
    let mut throttle = WriteBackThrottle::<u32>::new(settings, Kind::MqDeadline).expect("it is on");
    assert!(throttle.admit(SubmitterId(0), Class::Background, LATER));
    throttle.begun(SubmitterId(0), Class::Background, Some(0));
    let mut ends_ms = Vec::new();
    let mut before_ns = LATER;
    for step in [1, 2, 3, 4, 4] {
        let due_ns = throttle.next_timer().expect("a write is in flight");
        for request in 1..=3 {
            throttle.completed((request, Op::Write), MS, due_ns - 1, |_| true);
        }
        throttle.completed((9, Op::Read), 2 * MS, due_ns - 1, |_| true);
        assert!(throttle.timer(due_ns).is_empty());
        assert_eq!(throttle.step, step);
        ends_ms.push((due_ns - before_ns) / MS);
        before_ns = due_ns;
    }
    assert_eq!(ends_ms, [104, 76, 60, 52, 48], "the recorded windows");
}

#[test]
fn a_sync_write_waits_behind_a_background_write() {
    let mut flusher = Flusher::new(true);
    flusher.write(Class::Background, LATER);
    assert_eq!(flusher.in_flight.len(), 4);
    // It would have 16 slots, but the pool has a sleeper.
    assert!(!flusher.throttle.admit(SubmitterId(1), Class::Sync, LATER));
    for _ in 0..3 {
        assert!(
            flusher
                .throttle
                .completed((flusher.in_flight.pop_front().expect("4"), Op::Write), MS, LATER, |_| true)
                .is_empty()
        );
    }
    let last = flusher.in_flight.pop_front().expect("the fourth");
    let woken = flusher.throttle.completed((last, Op::Write), MS, LATER, |_| true);
    assert_eq!(woken, [SubmitterId(0), SubmitterId(1)], "a drive with a cache gets writes in bursts");
}

#[test]
fn writers_that_sleep_give_write_back_all_slots_for_a_second() {
    let mut young = Flusher::new(true);
    young.write(Class::Background, 0);
    assert_eq!(young.in_flight.len(), 16, "the creation of the device counts as well");
    let mut flusher = Flusher::new(true);
    flusher.throttle.dirty_sleep(LATER);
    flusher.write(Class::Background, LATER + 999 * MS);
    assert_eq!(flusher.in_flight.len(), 16);
    let mut late = Flusher::new(true);
    late.throttle.dirty_sleep(LATER);
    late.write(Class::Background, LATER + 1000 * MS);
    assert_eq!(late.in_flight.len(), 4);
}

#[test]
fn discards_have_a_pool_of_their_own() {
    let mut flusher = Flusher::new(true);
    flusher.write(Class::Discard, LATER);
    assert_eq!(flusher.in_flight.len(), 4);
    assert!(flusher.throttle.admit(SubmitterId(1), Class::Sync, LATER));
}

#[test]
fn bfq_and_cfq_switch_it_off() {
    let settings = Settings { depth: 1, rotational: true, write_back_cache: true, latency_ns: 0 };
    for kind in [Kind::Bfq, Kind::Cfq] {
        assert!(WriteBackThrottle::<u32>::new(settings, kind).is_none());
    }
}

#[test]
fn direct_writes_take_no_slot() {
    let of = |op, flags| Class::of(&Bio { flags, ..Bio::new(0, hoistway_core::ContextId::default(), op, 0, 8) });
    assert_eq!(of(Op::Write, Flags::SYNC.and(Flags::IDLE)), None);
    assert_eq!(of(Op::Read, Flags::NONE), None);
    assert_eq!(of(Op::Write, Flags::SYNC), Some(Class::Sync));
    assert_eq!(of(Op::Write, Flags::NONE), Some(Class::Background));
}
