//! Bandwidth reservations: properties for any reservations and loads, and published results of a
//! bandwidth class.

use crate::reserved::{Device, Pace, Process, ReservationSimulation, SECOND_NS};
use hoistway_core::{Kind, Note, Reservation, ReserveError};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const RUN_NS: u64 = 3 * SECOND_NS;

/// A process that requests a reservation.
#[derive(Clone, Copy, Debug)]
struct Flow {
    rate: u64,
    sectors: u32,
    /// The bucket in requests, or the default.
    depth: Option<u64>,
    random: bool,
}

#[derive(Clone, Debug)]
struct Case {
    /// The elevator below.
    kind: Kind,
    device: Device,
    flows: Vec<Flow>,
    /// The request sizes of best-effort processes, in sectors, and whether their sectors are
    /// random.
    others: Vec<(u32, bool)>,
}

fn size() -> impl Strategy<Value = u32> {
    prop_oneof![Just(128u32), Just(256), Just(1024), Just(2048)]
}

fn flow() -> impl Strategy<Value = Flow> {
    (200_000u64..12_000_000, size(), prop_oneof![Just(None), (1u64..9).prop_map(Some)], any::<bool>())
        .prop_map(|(rate, sectors, depth, random)| Flow { rate, sectors, depth, random })
}

fn case(others: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    let device = (20_000_000u64..120_000_000, prop_oneof![Just(0u64), 50_000u64..8_000_000])
        .prop_map(|(rate, ns)| Device { bytes_per_second: rate / 1000 * 1000, position_ns: ns / 1000 * 1000 });
    let flows = prop::collection::vec(flow(), 1..6);
    let others = prop::collection::vec((size(), any::<bool>()), others);
    (prop::sample::select(Kind::ALL), device, flows, others).prop_map(|(kind, device, flows, others)| Case {
        kind,
        device,
        flows,
        others,
    })
}

/// A world of the admitted flows, each with its reservation and a permanent backlog above it, and
/// best-effort processes with a permanent backlog.
fn greedy_simulation(case: &Case) -> (ReservationSimulation, Vec<(usize, Reservation)>) {
    let mut sim = ReservationSimulation::over(case.kind, case.device);
    let mut flows = Vec::new();
    for (index, flow) in case.flows.iter().enumerate() {
        let bytes = u64::from(flow.sectors) * 512;
        let wanted = Reservation {
            bytes_per_second: flow.rate,
            depth_bytes: flow.depth.map(|requests| requests * bytes),
            request_bytes: bytes,
        };
        let first_sector = 1_000_000 + index as u64 * 100_000_000;
        // A bucket, and the inflow of two seconds.
        let depth = flow.depth.map_or(flow.rate / 2, |requests| requests * bytes);
        let outstanding = (depth + 2 * flow.rate).div_ceil(bytes) + 4;
        let pace = Pace::Greedy(outstanding.min(600));
        let process = Process { pace, sectors: flow.sectors, first_sector, random: flow.random, from_ns: 0 };
        let number = sim.add(process);
        match sim.reserve(number, wanted) {
            Ok(granted) => flows.push((number, granted)),
            Err(ReserveError::NoCapacity { headroom_bytes_per_second }) => {
                assert!(headroom_bytes_per_second < flow.rate);
                // The reported headroom can be reserved.
                if headroom_bytes_per_second > 0 {
                    let less = Reservation { bytes_per_second: headroom_bytes_per_second, ..wanted };
                    flows.push((number, sim.reserve(number, less).expect("that much is left")));
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    add_others(&mut sim, case);
    (sim, flows)
}

/// Best-effort processes with a permanent backlog.
fn add_others(sim: &mut ReservationSimulation, case: &Case) {
    for (index, &(sectors, random)) in case.others.iter().enumerate() {
        let first_sector = 2_000_000_000 + index as u64 * 100_000_000;
        sim.add(Process { pace: Pace::Greedy(16), sectors, first_sector, random, from_ns: 0 });
    }
}

/// All processes with a permanent backlog together receive rate * (time - D) less a request,
/// between any two times.
fn check_reserved_service(
    sim: &ReservationSimulation,
    processes: &[usize],
    reservation: Reservation,
    sectors: u32,
) -> Result<(), TestCaseError> {
    let (bytes, delay_ns) = (u64::from(sectors) * 512, sim.reserved().delay_ns_max);
    let done: Vec<_> = sim.services.iter().filter(|service| processes.contains(&service.process)).collect();
    // Between two completions there was none: the worst windows reach from one to just before
    // another.
    for (index, first) in done.iter().enumerate() {
        let mut sum = 0;
        for next in &done[index + 1..] {
            let ns = next.done_ns - first.done_ns;
            let rate = u128::from(reservation.bytes_per_second);
            let least = rate * u128::from(ns.saturating_sub(delay_ns)) / u128::from(SECOND_NS);
            prop_assert!(u128::from(sum + bytes) >= least, "{sum} bytes in {ns} ns, D {delay_ns}, {reservation:?}");
            sum += next.bytes;
        }
    }
    let last_ns = done.last().map_or(0, |service| service.done_ns);
    let due_ns = bytes * SECOND_NS / reservation.bytes_per_second + delay_ns;
    prop_assert!(last_ns + due_ns >= RUN_NS, "{reservation:?}: the last at {last_ns}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 170, failure_persistence: None, ..ProptestConfig::default() })]

    /// The reserved path serves at most rate * time + bucket + one request, between any two times.
    /// (A request is charged at the next dispatch, up to one service late.)
    #[test]
    fn the_reserved_path_serves_at_most_the_reservation(case in case(0..3)) {
        let (mut sim, flows) = greedy_simulation(&case);
        sim.run(RUN_NS);
        for (process, reservation) in flows {
            let charges: Vec<(u64, u64)> = charges_of(&sim, process);
            let bytes = u64::from(case.flows[process].sectors) * 512;
            let one_ns = case.device.position_ns + 2048 * 512 * SECOND_NS / case.device.bytes_per_second + 1;
            let depth = reservation.depth_bytes.expect("an explicit depth") + bytes;
            let mut sums = vec![0u64];
            charges.iter().for_each(|(_, bytes)| sums.push(sums.last().unwrap() + bytes));
            for from in 0..charges.len() {
                for until in (from..charges.len()).step_by(7) {
                    let (sum, ns) = (sums[until + 1] - sums[from], charges[until].0 - charges[from].0 + one_ns);
                    let most = u128::from(reservation.bytes_per_second) * u128::from(ns) / u128::from(SECOND_NS);
                    prop_assert!(u128::from(sum) <= most + u128::from(depth), "{sum} in {ns} ns, {reservation:?}");
                }
            }
        }
    }

    /// A process with a permanent backlog receives rate * (time - D) less a request, between any
    /// two times and under any other load; and each request within the reservation completes within
    /// D.
    #[test]
    fn a_backlogged_process_gets_its_reservation_in_time(case in case(0..4)) {
        let (mut sim, flows) = greedy_simulation(&case);
        sim.run(RUN_NS);
        let degraded = sim.notes().iter().any(|(_, note)| matches!(note, Note::Degraded { .. }));
        prop_assert!(!degraded);
        for (process, reservation) in flows {
            check_reserved_service(&sim, &[process], reservation, case.flows[process].sectors)?;
        }
    }

    /// The same for groups: a group's processes together receive what it has reserved, however they
    /// divide it.
    #[test]
    fn a_group_gets_what_it_has_reserved_in_time(
        case in case(0..4), members in prop::collection::vec(1usize..4, 1..6), greed in prop::collection::vec(1u64..200, 1..8),
    ) {
        let mut sim = ReservationSimulation::over(case.kind, case.device);
        let (mut groups, mut greed) = (Vec::new(), greed.iter().cycle());
        for ((index, flow), &members) in case.flows.iter().enumerate().zip(members.iter().cycle()) {
            let bytes = u64::from(flow.sectors) * 512;
            let depth_bytes = flow.depth.map(|requests| requests * bytes);
            let wanted = Reservation { bytes_per_second: flow.rate, depth_bytes, request_bytes: bytes };
            // Together they request the inflow of two seconds, divided at random.
            let depth = depth_bytes.unwrap_or(flow.rate / 2);
            let outstanding = ((depth + 2 * flow.rate).div_ceil(bytes) + 4).min(600);
            let processes: Vec<usize> = (0..members)
                .map(|member| {
                    let some = if member == 0 { outstanding } else { *greed.next().expect("for ever") };
                    let first_sector = 1_000_000 + (index * 4 + member) as u64 * 20_000_000;
                    let pace = Pace::Greedy(some);
                    sim.add(Process { pace, sectors: flow.sectors, first_sector, random: flow.random, from_ns: 0 })
                })
                .collect();
            if let Ok(granted) = sim.reserve_group(&processes, wanted) {
                groups.push((processes, granted, flow.sectors));
            }
        }
        let granted = groups.len() as u32;
        add_others(&mut sim, &case);
        sim.run(RUN_NS);
        let reserved = sim.reserved();
        prop_assert_eq!((reserved.contexts, reserved.groups), (0, granted));
        for (processes, reservation, sectors) in groups {
            check_reserved_service(&sim, &processes, reservation, sectors)?;
        }
    }

    /// While best effort has a permanent backlog, no request is served beyond a reservation, each
    /// sweep ascends, the n-th request of a process completes within D of the n-th charge, and best
    /// effort receives at least its minimum of device time.
    #[test]
    fn sweeps_ascend_and_best_effort_has_its_floor(case in case(1..4)) {
        let (mut sim, flows) = greedy_simulation(&case);
        sim.run(RUN_NS);
        let reserved = sim.reserved();
        for (process, _) in &flows {
            let charges = charges_of(&sim, *process);
            let done: Vec<_> = sim.services.iter().filter(|service| service.process == *process).collect();
            prop_assert!(done.len() <= charges.len(), "{} served, {} charged", done.len(), charges.len());
            for (service, (charged_ns, _)) in done.iter().zip(&charges) {
                let ns = service.done_ns - charged_ns;
                prop_assert!(ns <= reserved.delay_ns_max, "{ns} ns, and D is {}", reserved.delay_ns_max);
            }
        }
        let is_reserving = |process: usize| flows.iter().any(|(number, _)| *number == process);
        let swept: Vec<_> = sim.services.iter().filter(|service| is_reserving(service.process)).collect();
        for pair in swept.windows(2) {
            let ascends = pair[0].sector <= pair[1].sector;
            prop_assert!(pair[0].sweep < pair[1].sweep || ascends, "{pair:?}");
        }
        let best_effort = sim.services.iter().filter(|service| !is_reserving(service.process));
        let floor_ns: u64 = best_effort.map(|service| service.done_ns - service.issued_ns).sum();
        prop_assert!(floor_ns + 3 * reserved.sweep_ns_max + RUN_NS / 100 >= RUN_NS / 10, "{floor_ns} ns of {RUN_NS}");
    }

    /// The device is never idle while requests are queued; with the inner elevator's own idling,
    /// not while a reserving process has requests.
    #[test]
    fn no_work_is_left_while_the_device_is_idle(
        case in case(0..3), think_us in prop::collection::vec(0u64..20_000, 1..4), idles in any::<bool>(), shares in any::<bool>(),
    ) {
        let (mut sim, _) = greedy_simulation(&Case { flows: Vec::new(), ..case.clone() });
        if !idles {
            sim.never_idle();
        }
        sim.queue.set_tunable("excess", shares.into()).expect("in range");
        sim.queue.set_tunable("excess_wait", 0).expect("in range");
        let others = case.others.len();
        for (flow, think_us) in case.flows.iter().zip(think_us.iter().cycle()) {
            let (sectors, random) = (flow.sectors, flow.random);
            let pace = Pace::Thinks(think_us * 1000);
            let number = sim.add(Process { pace, sectors, first_sector: 7, random, from_ns: think_us * 997 });
            let _ = sim.reserve(number, Reservation::of(flow.rate));
            let pace = Pace::Thinks(think_us * 1700 + 1);
            sim.add(Process { pace, sectors, first_sector: 1 << 30, random, from_ns: think_us * 31 });
        }
        sim.run(RUN_NS);
        for (from_ns, until_ns, queued) in &sim.idle {
            let may_wait = |number: &usize| idles && (*number < others || (*number - others) % 2 == 1);
            // A refused process is best effort, too.
            let refused = |number: &usize| idles && sim.reserved().contexts < case.flows.len() as u32 && *number >= others;
            let none = queued.iter().all(|number| may_wait(number) || refused(number));
            prop_assert!(until_ns == from_ns || none, "{queued:?} wait from {from_ns} to {until_ns}");
        }
    }
}

/// The times and amounts of a process's charges. (sfq also emits one note per request, with the
/// number of its bucket.)
fn charges_of(sim: &ReservationSimulation, process: usize) -> Vec<(u64, u64)> {
    let of = |(at_ns, note): &(u64, Note)| match *note {
        Note::Charge { queue, amount } if queue as usize == process && amount % 512 == 0 => Some((*at_ns, amount)),
        _ => None,
    };
    sim.notes().iter().filter_map(of).collect()
}

/// Four streams of 5 MB/s in requests of 512 KiB on a disk of 60 MB/s, 12 ms to position and 15 ms
/// for the stroke back: a sweep has at most 4 * 2.5 MB / 60 MB/s + 4 * 5 * 12 ms + 15 ms = 167 +
/// 240 + 15 = 422 ms, and D is twice that and a request's 8.7 + 12 ms, once there was one: 864 ms.
#[test]
fn the_bound_of_four_streams_equals_the_computed_one() {
    let mut sim = ReservationSimulation::new(Device { bytes_per_second: 60_000_000, position_ns: 12_000_000 });
    sim.queue.set_tunable("device_return", 15_000).expect("in range");
    for index in 0..4 {
        let number = sim.add(Process {
            pace: Pace::Greedy(8),
            sectors: 1024,
            first_sector: index * 10_000_000,
            random: false,
            from_ns: 0,
        });
        let wanted = Reservation { request_bytes: 512 << 10, ..Reservation::of(5_000_000) };
        let granted = sim.reserve(number, wanted).expect("0.82 of the device's time");
        assert_eq!(granted.depth_bytes, Some(2_500_000));
    }
    sim.run(SECOND_NS);
    let reserved = sim.reserved();
    assert_eq!((reserved.contexts, reserved.load_ns / 1_000_000), (4, 821));
    assert_eq!(reserved.sweep_ns_max / 100_000, 4216);
    assert_eq!(reserved.delay_ns_max / 1_000_000, 864);
}

/// A device declared with 100 MB/s that has 20: two reservations of 20 MB/s are admitted and cannot
/// be served. After three sweeps with late requests a note is emitted; the reservations stay.
#[test]
fn a_device_slower_than_its_figures_is_reported() {
    for actual in [100_000_000, 20_000_000] {
        let mut sim = ReservationSimulation::new(Device { bytes_per_second: actual, position_ns: 0 });
        sim.queue.set_tunable("device_bandwidth", 100_000).expect("in range");
        for index in 0..2 {
            let first_sector = index * 100_000_000;
            let pace = Pace::Greedy(64);
            let number = sim.add(Process { pace, sectors: 1024, first_sector, random: false, from_ns: 0 });
            sim.reserve(number, Reservation::of(20_000_000)).expect("0.4 of the configured figures");
        }
        // Its sweeps become longer and longer: three of them take some seconds.
        sim.run(20 * SECOND_NS);
        let degraded = sim.notes().iter().any(|(_, note)| matches!(note, Note::Degraded { .. }));
        assert_eq!((degraded, sim.reserved().contexts), (actual == 20_000_000, 2), "{actual} bytes a second");
        assert_eq!(sim.queue.late_requests() > 0, degraded);
    }
}

/// A disk of 100 MB/s, 8 ms per seek. Ten films of 3 MiB/s, read ahead 1 MiB at a time, and
/// best-effort readers.
fn films(best_effort: usize, reserve: bool) -> (ReservationSimulation, Vec<usize>) {
    let mut sim = ReservationSimulation::new(Device { bytes_per_second: 100_000_000, position_ns: 8_000_000 });
    let films: Vec<usize> = (0..10)
        .map(|index| {
            let film = sim.add(Process {
                pace: Pace::Every(SECOND_NS / 3),
                sectors: 2048,
                first_sector: index * 30_000_000,
                random: false,
                from_ns: index * 33_000_000,
            });
            if reserve {
                let wanted = Reservation { request_bytes: MIB, ..Reservation::of(3 * MIB) };
                sim.reserve(film, wanted).expect("ten of 0.055");
            }
            film
        })
        .collect();
    for index in 0..best_effort as u64 {
        let first_sector = 400_000_000 + index * 30_000_000;
        sim.add(Process { pace: Pace::Greedy(4), sectors: 256, first_sector, random: index % 2 == 1, from_ns: 0 });
    }
    sim.run(20 * SECOND_NS);
    (sim, films)
}

/// Requests that did not complete within a second of their submission.
fn misses(sim: &ReservationSimulation, films: &[usize]) -> usize {
    let done = |service: &&crate::reserved::Service| films.contains(&service.process);
    let late = sim.services.iter().filter(done).filter(|s| s.done_ns - s.submitted_ns > SECOND_NS).count();
    // Each film submits 61 within 20 s.
    late + (films.len() * 58).saturating_sub(sim.services.iter().filter(done).count())
}

#[test]
fn reserving_readers_are_not_delayed_by_best_effort_ones() {
    let (alone, films_alone) = films(0, true);
    for best_effort in [1, 4, 8, 16] {
        let (sim, films) = films(best_effort, true);
        assert_eq!(misses(&sim, &films), 0, "{best_effort} best-effort readers");
        for (&film, &same) in films.iter().zip(&films_alone) {
            let (with, without) = (sim.served(film, 0, 20 * SECOND_NS), alone.served(same, 0, 20 * SECOND_NS));
            assert!(with * 100 >= without * 98, "{with} bytes, not {without}");
        }
    }
}

#[test]
fn without_reservations_they_miss_their_deadlines() {
    let (sim, films) = films(8, false);
    assert!(misses(&sim, &films) > 50, "{}", misses(&sim, &films));
}

/// The published load: ten films, three readers of 4 KiB anywhere 20 times a second, five of 4
/// MiB/s in a row. Without seeks it is half of the device's time; with a seek for each request,
/// more than all of it: 30 * 18.5 ms + 60 * 8 ms + 40 * 13 ms a second.
#[test]
fn ten_films_do_not_miss_a_deadline_beside_the_published_load() {
    let mut missed = Vec::new();
    for reserve in [true, false] {
        let (mut sim, films) = films(0, reserve);
        let now_ns = sim.now_ns;
        for index in 0..8u64 {
            let (ns, sectors) = if index < 3 { (SECOND_NS / 20, 8) } else { (SECOND_NS / 8, 1024) };
            let first_sector = 400_000_000 + index * 30_000_000;
            let process = Process { pace: Pace::Every(ns), sectors, first_sector, random: index < 3, from_ns: now_ns };
            sim.add(process);
        }
        sim.run(now_ns + 20 * SECOND_NS);
        let late = |of_films: bool| {
            let done = sim.services.iter().filter(|s| films.contains(&s.process) == of_films);
            done.filter(|s| s.done_ns - s.submitted_ns > SECOND_NS).count()
        };
        missed.push((late(true), late(false)));
    }
    assert_eq!(missed[0].0, 0, "{missed:?}");
    assert!(missed[0].1 > 0 && missed[1].0 > 0, "some deadlines must be missed: {missed:?}");
}

#[test]
fn a_greedy_reader_gets_its_reservation_and_not_more() {
    for think in [false, true] {
        let mut sim = ReservationSimulation::new(Device { bytes_per_second: 100_000_000, position_ns: 8_000_000 });
        sim.queue.set_tunable("excess_wait", think.into()).expect("in range");
        let greedy =
            sim.add(Process { pace: Pace::Greedy(64), sectors: 1024, first_sector: 0, random: false, from_ns: 0 });
        let wanted = Reservation { request_bytes: MIB / 2, ..Reservation::of(10 * MIB) };
        sim.reserve(greedy, wanted).expect("0.1 + 0.16");
        // A permanent backlog; or a think time of 0.2 ms, for which the excess waits.
        let pace = if think { Pace::Thinks(200_000) } else { Pace::Greedy(4) };
        sim.add(Process { pace, sectors: 256, first_sector: 400_000_000, random: false, from_ns: 0 });
        sim.run(20 * SECOND_NS);
        let served = sim.served(greedy, 4 * SECOND_NS, 20 * SECOND_NS) / 16;
        let error = served.abs_diff(10 * MIB) * 100;
        assert!(error <= 3 * 10 * MIB, "{served} bytes a second (best effort thinks: {think})");
    }
}

/// Two best-effort readers of 8 MiB/s, and one that requests 32 and has reserved 16.
#[test]
fn bandwidth_unused_by_best_effort_goes_to_the_excess() {
    let mut sim = ReservationSimulation::new(Device { bytes_per_second: 100_000_000, position_ns: 8_000_000 });
    let pace = |mib: u64, sectors: u64| Pace::Every(SECOND_NS * sectors * 512 / (mib * MIB));
    let wants = |mib: u64, first_sector: u64| Process {
        pace: pace(mib, 1024),
        sectors: 1024,
        first_sector,
        random: false,
        from_ns: 0,
    };
    let reader = sim.add(wants(32, 0));
    let others = [sim.add(wants(8, 200_000_000)), sim.add(wants(8, 400_000_000))];
    let wanted = Reservation { request_bytes: MIB / 2, ..Reservation::of(16 * MIB) };
    sim.reserve(reader, wanted).expect("0.17 + 0.26");
    sim.run(20 * SECOND_NS);
    let rate = |process| sim.served(process, 2 * SECOND_NS, 18 * SECOND_NS) / 16;
    assert!(rate(reader) > 16 * MIB, "{}", rate(reader));
    for other in others {
        assert!(rate(other) * 100 >= 98 * 8 * MIB, "{}", rate(other));
    }
    let idle_with_backlog =
        sim.idle.iter().filter(|(from_ns, until_ns, queued)| from_ns < until_ns && queued.contains(&reader));
    assert_eq!(idle_with_backlog.count(), 0, "while it had a backlog");
}

#[test]
fn unused_reservations_go_to_best_effort() {
    let mut sim = ReservationSimulation::new(Device { bytes_per_second: 100_000_000, position_ns: 0 });
    let lazy = sim.add(Process {
        pace: Pace::Every(SECOND_NS / 4),
        sectors: 2048,
        first_sector: 0,
        random: false,
        from_ns: 0,
    });
    sim.reserve(lazy, Reservation::of(80_000_000)).expect("80 of 100");
    let greedy =
        sim.add(Process { pace: Pace::Greedy(8), sectors: 1024, first_sector: 1 << 30, random: false, from_ns: 0 });
    sim.run(20 * SECOND_NS);
    let (used, rest) = (sim.served(lazy, 0, 20 * SECOND_NS) / 20, sim.served(greedy, 0, 20 * SECOND_NS) / 20);
    assert!(used < 5 * MIB && used + rest >= 98_000_000, "{used} + {rest}");
}
/// A best-effort reader with one request at a time, 128 KiB, and 0.2 ms of think time. While a
/// greedy reader's excess is served after each of its own, a request takes 8 + 1.3 ms and the
/// other's 8 + 5.2; if the excess waits for a ms of silence, 0.2 + 1.3 ms.
#[test]
fn a_ms_of_silence_before_the_excess_preserves_a_best_effort_reader() {
    let rates = [0, 1].map(|wait_ms| {
        let mut sim = ReservationSimulation::new(Device { bytes_per_second: 100_000_000, position_ns: 8_000_000 });
        sim.queue.set_tunable("excess_wait", wait_ms).expect("in range");
        let greedy =
            sim.add(Process { pace: Pace::Greedy(64), sectors: 1024, first_sector: 0, random: false, from_ns: 0 });
        let wanted = Reservation { request_bytes: MIB / 2, ..Reservation::of(10 * MIB) };
        sim.reserve(greedy, wanted).expect("0.1 + 0.16");
        let pace = Pace::Thinks(200_000);
        let other = sim.add(Process { pace, sectors: 256, first_sector: 400_000_000, random: false, from_ns: 0 });
        sim.run(20 * SECOND_NS);
        sim.served(other, 0, 20 * SECOND_NS) / 20_000_000
    });
    assert_eq!(rates, [5, 50], "MB/s");
}
