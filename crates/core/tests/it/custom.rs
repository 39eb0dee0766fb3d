//! Custom elevators: the order of a correct one, and the rule that each wrong one breaks.

use hoistway_core::{
    Bio, Capacity, ContextId, CustomKind, ElevatorStorage, Flags, Info, Kick, Kind, Next, NoSink, Op, OrderedMode,
    Owned, Priority, QueueConfig, RequestQueue, Rule, Storage,
};

use crate::machine::custom::{ERRATIC, LATE, LOSING, STARVING, TURNS, TWICE, TestElevator, WAIT_NS};
use crate::machine::{Call, Case, play_case};

type Queue = RequestQueue<Owned<NoSink, TestElevator>>;

fn queue(info: &'static Info) -> (Queue, [ContextId; 2]) {
    let capacity = Capacity::default();
    let config =
        QueueConfig { layer: info.layer, plugging: false, ordered: OrderedMode::None, ..QueueConfig::default() };
    let elevator = ElevatorStorage::owned(Kind::Custom(CustomKind::new(info)), capacity);
    let mut queue: Queue = RequestQueue::new(config, Storage::owned(capacity), elevator, NoSink, 0);
    let contexts = [1, 2].map(|pid| queue.create_context(pid, Priority::UNSET, 0).expect("room"));
    (queue, contexts)
}

fn submit(queue: &mut Queue, context: ContextId, sector: u64, now_ns: u64) {
    let bio = Bio { context, op: Op::Read, sector, sectors: 8, flags: Flags::NONE, token: sector };
    let (_, _) = queue.submit(bio, now_ns).expect("room");
}

/// Dispatches a request and completes it after 1 ms. Returns its first sector.
fn serve(queue: &mut Queue, now_ns: &mut u64) -> Option<u64> {
    let Next::Request(id) = queue.next(*now_ns) else { return None };
    let sector = queue.request(id).expect("it exists").sector();
    *now_ns += 1_000_000;
    let _ = queue.complete(id, *now_ns, |_| {}).expect("it was started");
    Some(sector)
}

#[test]
fn a_custom_elevator_decides_the_order() {
    let (mut queue, [one, two]) = queue(&TURNS);
    for number in 0..6 {
        submit(&mut queue, one, 1000 + 100 * number, 0);
        submit(&mut queue, two, 5000 + 100 * number, 0);
    }
    let mut now_ns = 0;
    let order: Vec<u64> = std::iter::from_fn(|| serve(&mut queue, &mut now_ns)).collect();
    // Four of the first, four of the second, then two of the first, whose turn waits.
    assert_eq!(order, [1000, 1100, 1200, 1300, 5000, 5100, 5200, 5300, 1400, 1500]);
    assert_eq!(queue.next_timer(), Some(now_ns + WAIT_NS));
    now_ns += WAIT_NS;
    assert_eq!(queue.timer(now_ns), Kick::Run);
    let order: Vec<u64> = std::iter::from_fn(|| serve(&mut queue, &mut now_ns)).collect();
    assert_eq!(order, [5400, 5500]);
    assert_eq!((queue.is_empty(), queue.violation()), (true, None));
}

#[test]
fn a_merged_bio_is_reported_with_the_new_extent() {
    let (mut queue, [one, _]) = queue(&TURNS);
    for sector in [800, 0, 808, 8, 816] {
        submit(&mut queue, one, sector, 0);
    }
    let mut now_ns = 0;
    let Next::Request(id) = queue.next(now_ns) else { panic!("queued") };
    assert_eq!(queue.request(id).map(|request| (request.sector(), request.sectors())), Some((800, 24)));
    assert_eq!(serve(&mut queue, &mut now_ns), Some(0));
}

/// Submits 30 requests of two processes and serves all; the second process's are submitted later.
fn violation_of(info: &'static Info) -> (String, Rule) {
    let (mut queue, [one, two]) = queue(info);
    let mut now_ns = 0;
    submit(&mut queue, one, 8, 0);
    let mut served = 0;
    for number in 0..30 {
        // A request that waits for 6 s, while the requests of the other process are served.
        now_ns += if info.name == "starving" { 200_000_000 } else { 0 };
        submit(&mut queue, two, 1000 + 100 * number, now_ns);
        if info.name == "starving" {
            served += usize::from(serve(&mut queue, &mut now_ns).is_some());
        }
    }
    let mut in_flight = Vec::new();
    while let Next::Request(id) = queue.next(now_ns) {
        in_flight.push(id);
        served += 1;
        if in_flight.len() == 2 || info.name != "twice" {
            now_ns += 1_000_000;
            let _ = queue.complete(in_flight.remove(0), now_ns, |_| {}).expect("it was started");
        }
    }
    assert_eq!(served, 31, "every request is dispatched once");
    assert!(queue.is_empty());
    let violation = queue.violation().expect("a broken rule");
    (violation.to_string(), violation.rule)
}

#[test]
fn a_request_that_is_dispatched_twice_is_named() {
    let (text, rule) = violation_of(&TWICE);
    assert_eq!(rule, Rule::DispatchedTwice);
    assert_eq!(
        text,
        "call 2 of dispatch, at 0.000000000 s, returned the read of 8 sectors at sector 8 by process 1, which had been dispatched before"
    );
}

#[test]
fn a_request_that_has_completed_is_detected() {
    let (text, rule) = violation_of(&LATE);
    assert_eq!(rule, Rule::NotQueued);
    assert_eq!(
        text,
        "call 2 of dispatch, at 0.001000000 s, returned the read of 8 sectors at sector 8 by process 1, which has completed"
    );
}

#[test]
fn a_lost_request_is_named_when_nothing_else_is_left() {
    let (text, rule) = violation_of(&LOSING);
    assert_eq!(rule, Rule::Stalled);
    let end = "returned nothing although 10 are queued, none is in the device, and no timer is set; the oldest is the \
               read of 8 sectors at sector 1100 by process 2, inserted at 0.000000000 s";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_request_that_starves_is_named() {
    let (text, rule) = violation_of(&STARVING);
    // The sum: 25 requests, each after 200 ms and served for 1 ms, are 5.025 s.
    assert_eq!(rule, Rule::Starved { waited_ns: 5_024_000_000 });
    let end = "passed over the read of 8 sectors at sector 8 by process 1, inserted at 0.000000000 s: it has waited for \
               5.024000000 s while later requests were dispatched";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_violation_ends_with_the_elevator_that_caused_it() {
    let capacity = Capacity::default();
    let (mut queue, [one, _]) = queue(&TWICE);
    let mut now_ns = 0;
    for round in 0..2 {
        let next_sector = 8 + 1000 * round;
        submit(&mut queue, one, next_sector, now_ns);
        submit(&mut queue, one, next_sector + 100, now_ns);
        let [Next::Request(first), Next::Request(second)] = [queue.next(now_ns), queue.next(now_ns)] else {
            panic!("both are queued")
        };
        assert_eq!(queue.violation().map(|violation| violation.at_ns), Some(now_ns));
        let _ = queue.switch(ElevatorStorage::owned(Kind::Deadline, capacity), now_ns);
        assert!(queue.is_switching() && queue.violation().is_some(), "the old elevator's requests are in the device");
        now_ns += 1_000_000;
        for id in [first, second] {
            let _ = queue.complete(id, now_ns, |_| {}).expect("it was started");
        }
        assert_eq!((queue.kind(), queue.violation()), (Kind::Deadline, None));
        let again = ElevatorStorage::owned(Kind::Custom(CustomKind::new(&TWICE)), capacity);
        let _ = queue.switch(again, now_ns);
        assert_eq!((queue.kind().info().name, queue.violation()), ("twice", None));
    }
}

#[test]
fn a_host_without_custom_elevators_gets_noop() {
    let kind = Kind::Custom(CustomKind::new(&TURNS));
    let storage: ElevatorStorage<Owned<NoSink>> = ElevatorStorage::owned(kind, Capacity::default());
    assert_eq!(storage.kind(), Kind::Noop);
}

/// Random calls, as for the built-in elevators: a correct elevator, and one with wrong answers,
/// after which the queue dispatches in order of arrival.
#[test]
fn every_bio_is_served_once_whatever_a_custom_elevator_answers() {
    for number in 0..1500 {
        for info in [&TURNS, &ERRATIC] {
            let mut case = Case::read(&crate::invariants::random_case(number + (1 << 52), 300));
            case.kind = Kind::Custom(CustomKind::new(info));
            case.layered = number % 3 == 2;
            if number % 2 == 0 {
                case.calls.retain(|call| !matches!(call, Call::Switch { .. }));
            }
            if let Err(what) = play_case(&case) {
                panic!(
                    "{}, case {number}: {what}\n{:?}, layered: {}\n{:#?}",
                    info.name, case.config, case.layered, case.calls
                );
            }
        }
    }
}
