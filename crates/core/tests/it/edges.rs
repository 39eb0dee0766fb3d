//! Edge cases of calls, under every elevator: no bio may be lost, served twice or left waiting.
//!
//! The host of `machine` executes each case and checks it; see `invariants.rs` for the properties.

use crate::machine::{Call, Case, Full, Place, Value, play_case, play_counting};
use hoistway_core::{
    Bio, BlockLayer, Capacity, Class, DeferredWork, ElevatorStorage, Flags, GroupError, GroupWeights, Kind, Next,
    NoSink, Op, Owned, Priority, QueueConfig, RequestQueue, Reservation, Storage, Submitted, TunableError,
};

/// A case for a kind of elevator in its block layer, with room for the edge cases.
fn case_of(kind: Kind) -> Case {
    Case {
        kind,
        layered: false,
        config: QueueConfig { layer: kind.info().layer, nr_requests: None, ..QueueConfig::default() },
        capacity: Capacity { requests: 200, contexts: 20, merged_bios: 200, groups: 8 },
        depth: 4,
        pulls_each: false,
        stands_still: false,
        calls: Vec::new(),
    }
}

/// Executes a case for each kind, with and without reservations; `change` prepares the queue and
/// the calls.
fn for_every_kind(change: impl Fn(&mut Case)) {
    for_every_kind_counting(change, |_, _| ());
}

/// Plays a case for every elevator, and passes on how often a table was full.
fn for_every_kind_counting(change: impl Fn(&mut Case), mut check: impl FnMut(&str, Full)) {
    for &kind in Kind::ALL {
        for layered in [false, true] {
            let mut case = Case { layered, ..case_of(kind) };
            change(&mut case);
            if layered {
                case.calls.splice(0..0, reservations());
            }
            match play_counting(&case) {
                Ok((_, full)) => check(kind.info().name, full),
                Err(what) => panic!("{} (layered: {layered}): {what}", kind.info().name),
            }
        }
    }
}

/// Reservations of the first process and the root group, of reads and writes, as the device allows.
fn reservations() -> impl Iterator<Item = Call> {
    let reservation = Reservation { depth_bytes: Some(8192), request_bytes: 4096, ..Reservation::of(100_000) };
    let own = |name: &str| Reservation::TUNABLES.iter().position(|row| row.name == name).expect("a tunable") as u8;
    let both = Call::SetTunable { index: own("dirs"), value: Value::Greatest };
    let near = Call::SetTunable { index: own("device_position"), value: Value::Least };
    [both, near, Call::Reserve { process: 0, reservation }, Call::ReserveGroup { group: 0, reservation }].into_iter()
}

fn submit(process: usize, op: Op, place: Place, sectors: u32) -> Call {
    Call::Submit { process: process as u16, op, place, sectors, flags: Flags::NONE }
}

/// Processes of all classes and levels, beyond the three initial ones.
fn processes(count: u32) -> impl Iterator<Item = Call> {
    let classes = [Class::BestEffort, Class::None, Class::RealTime, Class::BestEffort, Class::Idle];
    (0..count).map(move |number| Call::Create {
        pid: 100 + number,
        priority: Priority::new(classes[number as usize % 5], (number % 8) as u8).unwrap_or_default(),
        nice: 0,
    })
}

/// Reads and writes, far and near, sync and async, of this many processes: the parameters follow
/// from each number.
fn mixed_load(count: usize, processes: usize) -> impl Iterator<Item = Call> {
    (0..count).map(move |number| {
        let flags = [Flags::NONE, Flags::SYNC, Flags::META, Flags::SYNC.and(Flags::IDLE), Flags::NONE][number % 5];
        Call::Submit {
            process: (number % processes) as u16,
            op: if number % 3 == 2 { Op::Write } else { Op::Read },
            place: Place::At((number as u64).wrapping_mul(0x9E37_79B9) % (1 << 30) / 8 * 8),
            sectors: 8 + 8 * (number % 4) as u32,
            flags,
        }
    })
}

/// Groups below the root and nested ones, with processes in them.
fn groups(processes: u16) -> impl Iterator<Item = Call> {
    let weights = [100, 1, 1000, 500].map(GroupWeights::of);
    let made = (0..5u16)
        .map(move |number| Call::CreateGroup { parent: number / 2, weights: weights[usize::from(number % 4)] });
    made.chain((0..processes).map(|process| Call::Move { process, group: process % 6 }))
}

#[test]
fn every_pair_of_elevators_is_switched_under_load() {
    for (number, (from, to)) in
        Kind::ALL.iter().flat_map(|&from| Kind::ALL.iter().map(move |&to| (from, to))).enumerate()
    {
        // Without the layer, with it, to it and from it.
        for layered in [[false, false], [number % 2 == 0, number % 2 == 1], [true, true]] {
            let mut case = Case { layered: layered[0], ..case_of(from) };
            if layered[0] {
                case.calls.extend(reservations());
            }
            case.calls.extend(processes(7));
            case.calls.extend(groups(10));
            case.calls.extend(mixed_load(40, 10));
            // Some requests go to the device, some are requeued, some processes exit with pending
            // requests.
            case.calls.extend([Call::Unplug, Call::Pass { ns: 7_000_000 }, Call::Complete { which: 1 }]);
            case.calls.extend([Call::Requeue { which: 0 }, Call::Timer, Call::Exit { process: 4 }]);
            case.calls.push(Call::Switch { kind: to, layered: layered[1] });
            case.calls.extend(mixed_load(20, 8));
            case.calls.extend([Call::Move { process: 2, group: 3 }, Call::Exit { process: 1 }]);
            // As many completions as the old elevator can have requests, so that the new one gets a
            // load of its own.
            case.calls.extend([Call::Complete { which: 0 }; 60]);
            if layered[1] {
                case.calls.extend(reservations());
            }
            case.calls.extend(mixed_load(40, 7));
            // And back again, possibly while the first switch is in progress.
            let [to_first, to_second] =
                [(from, layered[0]), (to, layered[1])].map(|(kind, layered)| Call::Switch { kind, layered });
            case.calls.extend([to_first, to_second, to_first]);
            case.calls.extend(mixed_load(20, 7));
            if let Err(what) = play_case(&case) {
                panic!("{} to {} (layered: {layered:?}): {what}", from.info().name, to.info().name);
            }
        }
    }
}

#[test]
fn full_tables_are_errors_and_not_panics() {
    for (requests, contexts) in [(4, 1), (16, 3), (60, 20)] {
        let fill = |case: &mut Case| {
            case.capacity = Capacity { requests, contexts, merged_bios: 2, groups: 2 };
            case.calls.extend(processes(30));
            case.calls.extend(groups(20));
            for _ in 0..3 {
                case.calls.extend(mixed_load(100, 20));
                case.calls.extend([Call::Complete { which: 0 }; 7]);
            }
        };
        for_every_kind_counting(fill, |elevator, full| {
            let all = [full.requests, full.contexts, full.groups];
            assert!(
                all.iter().all(|times| *times > 0),
                "{elevator}, {requests} requests, {contexts} contexts: {full:?}"
            );
        });
    }
}

#[test]
fn one_process_alone_is_served() {
    for_every_kind(|case| {
        case.capacity.contexts = 1;
        case.calls.extend(mixed_load(150, 1));
        case.calls.extend([Call::Complete { which: 0 }, Call::Exit { process: 0 }]);
    });
}

#[test]
fn ten_thousand_processes_are_served() {
    for_every_kind(|case| {
        case.capacity = Capacity { requests: 1000, contexts: 10_000, merged_bios: 16, groups: 60 };
        // The host creates 5,000 at once.
        case.calls.extend(processes(5_000));
        case.calls.extend((0..59).map(|parent| Call::CreateGroup { parent, weights: GroupWeights::default() }));
        case.calls.extend((0..10_000).map(|process| Call::Move { process, group: process }));
        case.calls.extend(mixed_load(900, 10_000));
        case.calls.extend([Call::Complete { which: 0 }; 10]);
    });
}

#[test]
fn a_device_takes_one_request_or_a_thousand() {
    for depth in [1, 1024] {
        for_every_kind(|case| {
            case.depth = depth;
            case.capacity.requests = 1100;
            case.calls.extend(processes(10));
            case.calls.extend(mixed_load(1050, 13));
            case.calls.extend([Call::Unplug, Call::Pass { ns: 20_000_000 }]);
            case.calls.extend([Call::Complete { which: 7 }; 200]);
            case.calls.extend(mixed_load(100, 13));
        });
    }
}

#[test]
fn bios_without_gaps_between_them_are_served_merged_or_not() {
    for merging in [true, false] {
        for_every_kind(|case| {
            case.config.merging = merging;
            case.capacity.requests = 600;
            for round in 0..20usize {
                let op = if round % 3 == 0 { Op::Write } else { Op::Read };
                for process in 0..3usize {
                    // Behind the last one, before it, and at another process's position.
                    let place =
                        [Place::AfterLast, Place::BeforeLast, Place::At(8 * round as u64)][(round / 7 + process) % 3];
                    case.calls.extend([submit(process, op, place, 8), submit(process, op, Place::AfterLast, 8)]);
                }
                case.calls.push(Call::Complete { which: 0 });
            }
        });
    }
}

#[test]
fn any_number_of_bios_at_one_sector_are_served() {
    for merging in [true, false] {
        for_every_kind(|case| {
            case.config.merging = merging;
            case.calls.extend(processes(6));
            for number in 0..150usize {
                let op = [Op::Read, Op::Write, Op::Read, Op::Discard][number % 4];
                case.calls.push(submit(number % 9, op, Place::At(4096), 8));
                if number.is_multiple_of(10) {
                    case.calls.push(Call::Complete { which: 0 });
                }
            }
        });
    }
}

#[test]
fn the_last_sector_can_be_accessed() {
    for_every_kind(|case| {
        for number in 0..60u64 {
            // The end is at most 2^64 - 1, the last representable end of an extent.
            let place = [u64::MAX - 1, u64::MAX - 8, 0, u64::MAX - 9, 1 << 63, u64::MAX / 2][number as usize % 6];
            let sectors = if place == u64::MAX - 1 { 1 } else { 8 };
            let op = if number.is_multiple_of(4) { Op::Write } else { Op::Read };
            case.calls.push(submit(number as usize % 3, op, Place::At(place), sectors));
            if number.is_multiple_of(5) {
                case.calls.push(Call::Complete { which: 0 });
            }
        }
        // An invalid extent: it is refused, and nothing has changed.
        case.calls.push(submit(0, Op::Read, Place::At(u64::MAX), 1));
    });
}

#[test]
fn all_requests_are_served_while_time_stands_still() {
    for_every_kind(|case| {
        case.stands_still = true;
        case.calls.extend(processes(6));
        case.calls.extend(groups(9));
        for _ in 0..4 {
            case.calls.extend(mixed_load(40, 9));
            case.calls.extend([Call::Unplug, Call::Timer, Call::Complete { which: 0 }, Call::Complete { which: 1 }]);
            case.calls.extend([Call::Complete { which: 0 }; 20]);
        }
    });
}

#[test]
fn hardware_queues_are_served_separately_and_together() {
    for pulls_each in [true, false] {
        for_every_kind(|case| {
            case.config.hw_queues = 4;
            case.pulls_each = pulls_each;
            case.calls.extend(processes(6));
            case.calls.extend((0..9u16).map(|process| Call::SetCpu { process, cpu: process * 3 }));
            case.calls.extend(mixed_load(60, 9));
            case.calls.extend([Call::Next { hw_queue: Some(2) }, Call::Next { hw_queue: None }]);
            case.calls.push(Call::Next { hw_queue: Some(u16::MAX) });
            case.calls.extend([Call::Complete { which: 0 }; 30]);
            case.calls.extend((0..9u16).map(|process| Call::SetCpu { process, cpu: u16::MAX - process }));
            case.calls.extend(mixed_load(60, 9));
        });
    }
}

#[test]
fn every_tunable_works_at_both_ends_of_its_range() {
    for &kind in Kind::ALL {
        for (index, tunable) in kind.info().tunables.iter().enumerate() {
            for value in [tunable.min, tunable.max] {
                let mut case = case_of(kind);
                case.calls.extend(processes(6));
                case.calls.extend(groups(9));
                case.calls.extend(mixed_load(30, 9));
                case.calls.push(Call::SetTunable { index: index as u8, value: Value::Of(value) });
                case.calls.extend([Call::Complete { which: 0 }; 10]);
                case.calls.extend(mixed_load(30, 9));
                case.calls.extend([Call::Timer, Call::Complete { which: 0 }]);
                if let Err(what) = play_case(&case) {
                    panic!("{} with {}={value}: {what}", kind.info().name, tunable.name);
                }
            }
        }
    }
}

/// Two threads share a queue by their process id. When queues are per group from then on, the first
/// thread takes the queue along to its group. When that thread has exited, the group has no process
/// and no request, but the queue still has the other thread's.
#[test]
fn a_group_can_be_removed_although_a_thread_of_another_group_shares_its_queue() {
    let mut case = case_of(Kind::CfqV2);
    let thread = Call::Create { pid: 7, priority: Priority::UNSET, nice: 0 };
    case.calls.extend([thread, thread, Call::CreateGroup { parent: 0, weights: GroupWeights::default() }]);
    case.calls.extend([submit(3, Op::Read, Place::At(0), 8), submit(4, Op::Read, Place::At(1000), 8)]);
    let by_group = Kind::CfqV2.info().tunables.iter().position(|tunable| tunable.name == "key_type");
    let index = by_group.expect("a tunable of cfq-v2") as u8;
    case.calls.extend([Call::SetTunable { index, value: Value::Greatest }, Call::Move { process: 3, group: 1 }]);
    case.calls.extend([submit(3, Op::Read, Place::At(2000), 8), Call::Unplug]);
    case.calls.extend([Call::Complete { which: 0 }; 3]);
    case.calls.extend([submit(4, Op::Read, Place::At(3000), 8), Call::Exit { process: 3 }]);
    // The host expects the group to be removed, and that another can take its place.
    case.calls.extend([Call::RemoveGroup { group: 1 }, submit(3, Op::Read, Place::At(4000), 8)]);
    case.calls.push(Call::CreateGroup { parent: 0, weights: GroupWeights::default() });
    case.calls.extend([Call::Move { process: 0, group: 1 }, submit(0, Op::Read, Place::At(5000), 8)]);
    if let Err(what) = play_case(&case) {
        panic!("{what}");
    }
}

/// With a pool of four, three reads of one process are within the pool, and the fourth makes that
/// process a batcher: two others sleep. The first completion wakes the first sleeper, which exits
/// before its wake-up is reported, so the second one is woken instead.
#[test]
fn no_exited_process_is_woken() {
    let capacity = Capacity { requests: 20, contexts: 3, merged_bios: 0, groups: 1 };
    let config = QueueConfig { nr_requests: Some(4), plugging: false, ..QueueConfig::default() };
    let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::Noop, capacity));
    let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
    let [reader, first, second] =
        [1, 2, 3].map(|pid| queue.create_context(pid, Priority::UNSET, 0).expect("free entries"));
    let read = |token, context| Bio::new(token, context, Op::Read, token * 1000, 8);
    for token in 0..4 {
        let (submitted, _) = queue.submit(read(token, reader), 0).expect("free entries");
        assert!(matches!(submitted, Submitted::Queued(_)));
    }
    for (token, sleeper) in [(4, first), (5, second)] {
        assert_eq!(queue.submit(read(token, sleeper), 0).expect("free entries").0, Submitted::Asleep);
    }
    let Next::Request(id) = queue.next(0) else { panic!("four reads are queued") };
    let _ = queue.complete(id, 1, |_| {}).expect("an in-flight request");
    let _ = queue.exit_context(first, 2).expect("it runs");
    let work: Vec<DeferredWork> =
        core::iter::from_fn(|| queue.next_work()).filter(|work| *work != DeferredWork::Run).collect();
    assert_eq!(work, [DeferredWork::Wake(second)]);
}

/// A group cannot be removed while a write of it is in the device, and the attempt does not make
/// its queue expire: the next write of its process, back in the group, precedes another's.
#[test]
fn a_group_that_cannot_be_removed_keeps_its_turn() {
    let capacity = Capacity { requests: 20, contexts: 3, merged_bios: 0, groups: 2 };
    let config = QueueConfig { nr_requests: None, plugging: false, merging: false, ..QueueConfig::default() };
    let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::CfqWf2q, capacity));
    let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
    let [writer, other] = [1, 2].map(|pid| queue.create_context(pid, Priority::UNSET, 0).expect("free entries"));
    let group = queue.create_group(queue.root_group(), GroupWeights::default(), 0).expect("free entries");
    let write = |context, sector| Bio::new(sector, context, Op::Write, sector, 8);
    let _ = queue.move_context(writer, group, 0).expect("both exist");
    let _ = queue.submit(write(writer, 0), 0).expect("free entries");
    let Next::Request(first) = queue.next(0) else { panic!("a write is queued") };
    let _ = queue.submit(write(other, 5000), 0).expect("free entries");
    let _ = queue.move_context(writer, queue.root_group(), 500_000).expect("both exist");
    // It has used 0.5 ms of its slice: with a new slice it would come behind the other.
    assert_eq!(queue.remove_group(group, 500_000).unwrap_err(), GroupError::Busy);
    let _ = queue.move_context(writer, group, 500_000).expect("both exist");
    let _ = queue.submit(write(writer, 8), 500_000).expect("free entries");
    let _ = queue.complete(first, 1_000_000, |_| {}).expect("an in-flight request");
    let Next::Request(next) = queue.next(1_000_000) else { panic!("two writes are queued") };
    assert_eq!(queue.request(next).map(|request| request.sector()), Some(8));
}

/// Two processes sleep for a request, and their bios have the same token. The first one's goes
/// between 1000 and 2000, where it fits, not to the position last computed for the second one's.
#[test]
fn bios_with_equal_tokens_keep_separate_positions_in_the_list_of_2_4() {
    let capacity = Capacity { requests: 20, contexts: 3, merged_bios: 4, groups: 1 };
    let config = QueueConfig { nr_requests: Some(4), plugging: false, ..QueueConfig::default() };
    let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::Linus, capacity));
    let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
    let [reader, first, second] =
        [1, 2, 3].map(|pid| queue.create_context(pid, Priority::UNSET, 0).expect("free entries"));
    let read = |context, sector| Bio::new(7, context, Op::Read, sector, 8);
    for sector in [0, 1000, 2000, 3000] {
        let (submitted, _) = queue.submit(read(reader, sector), 0).expect("free entries");
        assert!(matches!(submitted, Submitted::Queued(_)));
    }
    let Next::Request(id) = queue.next(0) else { panic!("four reads are queued") };
    for (sleeper, sector) in [(first, 1500), (second, 2500)] {
        assert_eq!(queue.submit(read(sleeper, sector), 0).expect("free entries").0, Submitted::Asleep);
    }
    let _ = queue.complete(id, 1, |_| {}).expect("an in-flight request");
    let (submitted, _) = queue.resubmit(read(first, 1500), 1).expect("it was woken");
    assert!(matches!(submitted, Submitted::Queued(_)));
    let mut sectors = Vec::new();
    while let Next::Request(id) = queue.next(1) {
        sectors.extend(queue.request(id).map(|request| request.sector()));
    }
    assert_eq!(sectors, [1000, 1500, 2000, 3000]);
}

/// The numbers of requests, contexts and groups in a queue whose own tables and elevator tables
/// were made for these capacities. With the layer the last context and the last group reserve
/// bandwidth.
fn room_of(
    (kind, layered): (Kind, bool),
    own: Capacity,
    elevators: Capacity,
    switched: Option<(Kind, Capacity)>,
) -> [u32; 3] {
    let make = if layered { ElevatorStorage::owned_reserving } else { ElevatorStorage::owned };
    let config = QueueConfig { nr_requests: None, merging: false, ..QueueConfig::default() };
    let (storage, elevator) = (Storage::owned(own), make(kind, elevators));
    let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
    if let Some((other, capacity)) = switched {
        let _ = queue.switch(make(other, capacity), 0);
        assert_eq!(queue.kind(), if capacity.requests < elevators.requests { kind } else { other });
        assert!(queue.take_retired_storage().is_some());
    }
    let mut contexts = Vec::new();
    while let Ok(context) = queue.create_context(contexts.len() as u32, Priority::UNSET, 0) {
        contexts.push(context);
    }
    let (mut groups, mut last) = (1, queue.root_group());
    while let Ok(group) = queue.create_group(queue.root_group(), GroupWeights::default(), 0) {
        (groups, last) = (groups + 1, group);
    }
    if let (true, [.., before_last, of_its_own]) = (layered, contexts.as_slice()) {
        assert!(queue.move_context(*before_last, last, 0).is_ok());
        assert!(queue.reserve(*of_its_own, Reservation::of(100_000), 0).is_ok());
        assert!(queue.reserve_group(last, Reservation::of(100_000), 0).is_ok());
    }
    let mut requests = 0;
    for &context in contexts.iter().cycle() {
        let bio = Bio::new(requests, context, Op::Read, requests * 1000, 8);
        if queue.submit(bio, 0).is_err() {
            break;
        }
        requests += 1;
    }
    let (mut served, mut now_ns) = (0, 0);
    loop {
        match queue.next(now_ns) {
            Next::Request(id) => {
                let _ = queue.complete(id, now_ns, |_| served += 1).expect("an in-flight request");
            }
            Next::Wait => {
                now_ns = queue.next_timer().expect("a timer ends every wait");
                let _ = queue.timer(now_ns);
            }
            Next::Empty => break,
        }
    }
    assert_eq!(served, requests, "every accepted request is served");
    [requests as u32, contexts.len() as u32, groups]
}

/// A queue holds no more than the smaller of its two storages; entries beyond the end would be
/// lost.
#[test]
fn the_capacity_of_a_queue_is_the_smaller_one_of_both_storages() {
    let small = Capacity { requests: 10, contexts: 3, merged_bios: 4, groups: 2 };
    let large = Capacity { requests: 30, contexts: 7, merged_bios: 9, groups: 5 };
    for &kind in Kind::ALL {
        for (own, elevators) in [(small, small), (small, large), (large, small)] {
            for layered in [false, true] {
                let room = room_of((kind, layered), own, elevators, None);
                assert_eq!(room, [10, 3, 2], "{} (layered: {layered})", kind.info().name);
            }
        }
        let other = if kind == Kind::Noop { Kind::CfqV3 } else { Kind::Noop };
        for layered in [false, true] {
            let room = |own, other| room_of((kind, layered), own, own, Some(other));
            assert_eq!(room(large, (other, small)), [30, 7, 5], "storage that is too small is returned unused");
            assert_eq!(room(small, (other, large)), [10, 3, 2], "larger storage is accepted");
        }
    }
}

/// A switch from an elevator to the same one with the layer is a switch, and back; reservations end
/// with it.
#[test]
fn a_switch_adds_or_removes_the_layer() {
    let capacity = Capacity { requests: 20, contexts: 3, merged_bios: 4, groups: 2 };
    for &kind in Kind::ALL {
        let config = QueueConfig { layer: kind.info().layer, ..QueueConfig::default() };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(kind, capacity));
        let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
        let context = queue.create_context(1, Priority::UNSET, 0).expect("free entries");
        let group = queue.create_group(queue.root_group(), GroupWeights::default(), 0).expect("free entries");
        let own = kind.info().reservations;
        assert_eq!(queue.is_reserving(), own);
        assert_eq!(queue.reserve(context, Reservation::of(1000), 0).is_ok(), own);
        assert_eq!(queue.set_tunable("dirs", 2), if own { Ok(()) } else { Err(TunableError::Unknown) });
        let rows = queue.tunables().count();
        for layered in [true, false, true] {
            let storage = if layered { ElevatorStorage::owned_reserving } else { ElevatorStorage::owned };
            let _ = queue.switch(storage(kind, capacity), 0);
            assert_eq!((queue.kind(), queue.is_reserving()), (kind, layered || own));
            let more = if own || !layered { 0 } else { Reservation::TUNABLES.len() };
            assert_eq!(queue.tunables().count(), rows + more);
            let retired = queue.take_retired_storage().expect("unused storage of one of the two");
            // cfq-bw includes the layer, so no switch takes place and reservations stay.
            assert_eq!(retired.is_reserving(), own || !layered, "{}", kind.info().name);
            assert_eq!(queue.reservation(context).is_some(), own);
            assert_eq!(queue.group_reservation(group), None);
        }
        assert!(queue.reserve(context, Reservation::of(1000), 0).is_ok());
        assert!(queue.reserve_group(group, Reservation::of(1000), 0).is_ok());
        let reserved = queue.reserved().expect("a layer");
        assert_eq!((reserved.contexts, reserved.groups), (1, 1));
        // Tunables are found by name, so the names of the layer and of the elevator must differ.
        let mut names: Vec<_> = queue.tunables().map(|(row, _)| row.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: {names:?}", kind.info().name);
    }
}

#[test]
fn requests_pass_noop_to_either_end_of_the_dispatch_list() {
    let noop = Kind::from_name("noop").expect("it is built in");
    let capacity = Capacity::default();
    let config = QueueConfig { layer: BlockLayer::V6_1, plugging: false, ..QueueConfig::default() };
    let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(noop, capacity));
    let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
    let context = queue.create_context(1, Priority::UNSET, 0).expect("there is room");
    let submit = |queue: &mut RequestQueue<Owned<NoSink>>, sector: u64| {
        let (outcome, _) = queue.submit(Bio::new(sector, context, Op::Read, sector, 8), 0).expect("a valid bio");
        let Submitted::Queued(id) = outcome else { panic!("{outcome:?}") };
        id
    };
    let ids = [100, 200, 300, 400].map(|sector| submit(&mut queue, sector));
    assert!(queue.bypass(ids[2], false, 0) && queue.bypass(ids[3], false, 0) && queue.bypass(ids[1], true, 0));
    assert!(!queue.bypass(ids[1], true, 0), "it is on the dispatch list already");
    // A bio behind a request of the dispatch list is not merged into it.
    submit(&mut queue, 208);
    let mut order = Vec::new();
    while let Next::Request(id) = queue.next(0) {
        order.push(queue.request(id).expect("it was just taken").sector());
        queue.complete(id, 0, |_| {}).map(drop).expect("it is in the device");
    }
    assert_eq!(order, [200, 300, 400, 100, 208]);
}

#[test]
fn elevators_that_order_their_requests_let_none_pass() {
    for &kind in Kind::ALL.iter().filter(|kind| kind.info().name != "noop") {
        let capacity = Capacity::default();
        let config = QueueConfig { layer: kind.info().layer, ..QueueConfig::default() };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(kind, capacity));
        let mut queue = RequestQueue::<Owned<NoSink>>::new(config, storage, elevator, NoSink, 0);
        let context = queue.create_context(1, Priority::UNSET, 0).expect("there is room");
        let (outcome, _) = queue.submit(Bio::new(0, context, Op::Read, 0, 8), 0).expect("a valid bio");
        let Submitted::Queued(id) = outcome else { panic!("{}: {outcome:?}", kind.info().name) };
        assert!(!queue.bypass(id, true, 0), "{}", kind.info().name);
    }
}
