//! Calls of the C interface from Rust: invalid arguments, switches of the elevator, the ring of
//! events.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{null, null_mut};

use hoistway_capi::*;

const CAPACITY: CCapacity = CCapacity { requests: 8, contexts: 2, merged_bios: 4, events: 6, groups: 2 };

/// The value of every byte of a block before the queue is created.
const FILL: u8 = 0xA5;
/// The number of bytes behind the block that no call may change.
const GUARD: usize = 256;

/// A queue in a block of memory of its own.
struct Queue {
    memory: *mut HoistwayQueue,
    layout: Layout,
}

impl Queue {
    fn new(elevator: &str, events: u32) -> Queue {
        let capacity = CCapacity { events, ..CAPACITY };
        let mut config = CConfig::default();
        // SAFETY: all pointers are to live values, and the block has the required size and
        // alignment.
        unsafe {
            let size = hoistway_queue_size(&capacity);
            let layout = Layout::from_size_align(size + GUARD, 64).expect("a size");
            let memory = alloc(layout).cast::<HoistwayQueue>();
            memory.cast::<u8>().write_bytes(FILL, layout.size());
            assert_eq!(hoistway_config_default(&mut config), Status::Ok as i32);
            config.plugging = 0;
            let made = hoistway_queue_init(memory, size, &capacity, &config, index(elevator), 0);
            assert_eq!(made, Status::Ok as i32);
            Queue { memory, layout }
        }
    }

    fn process(&self, pid: u32) -> u64 {
        let mut context = 0;
        // SAFETY: the queue lives.
        assert_eq!(unsafe { hoistway_context_create(self.memory, pid, 2, 4, 0, &mut context) }, Status::Ok as i32);
        context
    }

    fn read(&self, context: u64, token: u64, sector: u64) -> i32 {
        let bio = CBio { token, context, sector, sectors: 8, op: 0, flags: 0 };
        let mut submitted = CSubmitted::default();
        // SAFETY: the queue lives.
        unsafe { hoistway_submit(self.memory, &bio, 0, &mut submitted) }
    }

    fn next(&self) -> Result<CRequest, i32> {
        let mut request = CRequest::default();
        // SAFETY: the queue lives.
        match unsafe { hoistway_next(self.memory, 0, &mut request) } {
            0 => Ok(request),
            other => Err(other),
        }
    }

    fn complete(&self, request: CRequest) -> Vec<u64> {
        let mut tokens = vec![0; request.bios_max as usize];
        let mut count = 0;
        // SAFETY: the queue lives, and the array has the given length.
        let completed =
            unsafe { hoistway_complete(self.memory, request.id, 0, tokens.as_mut_ptr(), request.bios_max, &mut count) };
        assert!(completed >= 0, "{completed}");
        tokens.truncate(count as usize);
        tokens
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and filled, and a queue needs no clean-up.
        unsafe {
            let behind = self.memory.cast::<u8>().add(self.layout.size() - GUARD);
            let touched = std::slice::from_raw_parts(behind, GUARD).iter().any(|&byte| byte != FILL);
            dealloc(self.memory.cast(), self.layout);
            assert!(!touched || std::thread::panicking(), "a byte behind the block was changed");
        }
    }
}

fn index(name: &str) -> u32 {
    // SAFETY: the name lives.
    let index = unsafe { hoistway_elevator_index(name.as_ptr(), name.len()) };
    u32::try_from(index).expect("a known elevator")
}

#[test]
fn every_elevator_has_a_name_and_an_index() {
    for number in 0..hoistway_elevator_count() {
        let mut name = [0xffu8; 32];
        // SAFETY: the buffer has the given length.
        let len = unsafe { hoistway_elevator_name(number, name.as_mut_ptr(), name.len()) } as usize;
        assert_eq!(name[len], 0);
        assert_eq!(index(std::str::from_utf8(&name[..len]).expect("text")), number);
        // SAFETY: as above; there is no room for the zero.
        assert_eq!(unsafe { hoistway_elevator_name(number, name.as_mut_ptr(), len) }, Status::TooSmall as i32);
    }
}

#[test]
fn bad_arguments_are_refused() {
    let mut config = CConfig::default();
    let mut at_ns = 0;
    // SAFETY: the tested arguments are null, misaligned or out of range; all other pointers are to
    // live values.
    unsafe {
        assert_eq!(hoistway_queue_size(null()), 0);
        for capacity in [CCapacity { requests: 0, ..CAPACITY }, CCapacity { contexts: CAPACITY_MAX + 1, ..CAPACITY }] {
            assert_eq!(hoistway_queue_size(&capacity), 0, "{capacity:?}");
        }
        hoistway_config_default(&mut config);
        let mut block = vec![0u64; hoistway_queue_size(&CAPACITY) / 8 + 16];
        let memory = block.as_mut_ptr().map_addr(|at| at.next_multiple_of(64));
        let shifted = memory.add(1).cast();
        let size = hoistway_queue_size(&CAPACITY);
        let init =
            |memory, config: CConfig, elevator| hoistway_queue_init(memory, size, &CAPACITY, &config, elevator, 0);
        assert_eq!(init(shifted, config, 0), Status::Invalid as i32);
        assert_eq!(init(null_mut(), config, 0), Status::Invalid as i32);
        assert_eq!(init(memory.cast(), config, 1000), Status::Unknown as i32);
        let wrong = [
            CConfig { hz: 0, ..config },
            CConfig { layer: 6, ..config },
            CConfig { nr_requests: 3, ..config },
            CConfig { plugging: 2, ..config },
            CConfig { ordered: 3, ..config },
            CConfig { hw_queues: 0, ..config },
            CConfig { rotational: 2, ..config },
        ];
        for config in wrong {
            assert_eq!(init(memory.cast(), config, 0), Status::Invalid as i32, "{config:?}");
        }
        // A block without a queue is refused.
        assert_eq!(hoistway_next_timer(memory.cast(), &mut at_ns), Status::Invalid as i32);
        let queue = Queue::new("noop", 0);
        assert_eq!(hoistway_next_timer(queue.memory, null_mut()), Status::Invalid as i32);
        assert_eq!(hoistway_next_timer(queue.memory, &mut at_ns), Status::Empty as i32);
        let mut context = 0;
        assert_eq!(hoistway_context_create(queue.memory, 1, 4, 0, 0, &mut context), Status::Invalid as i32);
        assert_eq!(hoistway_context_create(queue.memory, 1, 2, 8, 0, &mut context), Status::Invalid as i32);
    }
}

#[test]
fn full_tables_are_reported() {
    let queue = Queue::new("deadline", 0);
    let context = queue.process(1);
    queue.process(2);
    let mut third = 0;
    // SAFETY: the queue lives.
    assert_eq!(unsafe { hoistway_context_create(queue.memory, 3, 2, 4, 0, &mut third) }, Status::Full as i32);
    for token in 0..8 {
        assert_eq!(queue.read(context, token, token * 1000), Status::Ok as i32);
    }
    assert_eq!(queue.read(context, 8, 8000), Status::Full as i32);
    let request = queue.next().expect("eight are queued");
    assert_eq!(queue.complete(request), [0]);
    assert_eq!(queue.read(context, 8, 8000), Status::Ok as i32);
}

#[test]
fn elevators_are_switched_back_and_forth_in_the_same_memory() {
    let queue = Queue::new("cfq-v3", 0);
    let context = queue.process(1);
    // SAFETY: the queue lives.
    let switch = |name| unsafe { hoistway_switch(queue.memory, index(name), 0) };
    for round in 0..6 {
        let to = ["deadline", "cfq-v3", "anticipatory"][round % 3];
        assert!(queue.read(context, 1, 100) >= 0 && queue.read(context, 2, 5000) >= 0);
        let first = queue.next().expect("two are queued");
        assert_eq!(switch(to), Status::Run as i32);
        assert_eq!(switch("noop"), Status::Busy as i32, "the first switch is not over");
        queue.complete(first);
        let second = queue.next().expect("one is left");
        queue.complete(second);
        // SAFETY: the queue lives.
        let (switching, now) = unsafe { (hoistway_is_switching(queue.memory), hoistway_elevator(queue.memory)) };
        assert_eq!((switching, now), (0, index(to) as i32));
        assert_eq!(switch(to), Status::Ok as i32, "to itself");
        assert_eq!(queue.next().err(), Some(Status::Empty as i32));
    }
}

/// Every elevator uses each set of tables while the other set still has requests of any elevator.
#[test]
fn every_pair_of_elevators_is_switched_in_one_block() {
    let kinds = hoistway_elevator_count();
    for (from, to) in (0..kinds).flat_map(|from| (0..kinds).map(move |to| (from, to))) {
        let queue = Queue::new("noop", 6);
        let contexts = [queue.process(1), queue.process(2)];
        let (mut submitted_count, mut done, mut now_ns) = (0, Vec::new(), 0);
        // In some rounds with the reservation layer, which needs additional tables.
        for kind in [from, to | RESERVING, from | RESERVING, to] {
            let mut read = |number: usize| {
                assert!(queue.read(contexts[number % 2], submitted_count, (submitted_count * 7919) % 10_000) >= 0);
                submitted_count += 1;
            };
            (0..3).for_each(&mut read);
            // The old elevator has one request in the device and two queued. The others arrive
            // before the switch is complete.
            let device = queue.next().expect("three are queued");
            // SAFETY: the queue lives.
            assert!(unsafe { hoistway_switch(queue.memory, kind, 0) } >= 0);
            (3..5).for_each(&mut read);
            done.extend(queue.complete(device));
            loop {
                match queue.next() {
                    Ok(request) => done.extend(queue.complete(request)),
                    Err(other) if other == Status::Empty as i32 => break,
                    // SAFETY: the queue lives.
                    Err(_) => unsafe {
                        assert_eq!(hoistway_next_timer(queue.memory, &mut now_ns), Status::Ok as i32);
                        assert!(hoistway_timer(queue.memory, now_ns) >= 0);
                    },
                }
            }
            // SAFETY: the queue lives.
            let (now, reserving) = unsafe { (hoistway_elevator(queue.memory), hoistway_is_reserving(queue.memory)) };
            let own = index("cfq-bw") == kind & !RESERVING;
            assert_eq!((now, reserving), ((kind & !RESERVING) as i32, i32::from(own || kind & RESERVING != 0)));
        }
        done.sort_unstable();
        assert!(done.iter().copied().eq(0..submitted_count), "{from} to {to}: {done:?} of {submitted_count}");
    }
}

#[test]
fn a_full_ring_of_events_drops_the_oldest_and_counts_them() {
    let queue = Queue::new("noop", 6);
    let context = queue.process(7);
    // Three events each: submitted, allocated, inserted.
    for token in 0..3 {
        assert_eq!(queue.read(context, token, token * 1000), Status::Ok as i32);
    }
    let mut events = Vec::new();
    let mut event = CEvent::default();
    // SAFETY: the queue lives.
    while unsafe { hoistway_next_event(queue.memory, &mut event) } == Status::Ok as i32 {
        events.push((event.kind, event.token, event.sector, event.pid));
    }
    let kinds = [EventKind::Queue, EventKind::Get, EventKind::Insert].map(|kind| kind as u32);
    let expected: Vec<_> = [1, 2].iter().flat_map(|&token| kinds.map(|kind| (kind, token, token * 1000, 7))).collect();
    assert_eq!(events, expected);
    // SAFETY: the queue lives.
    assert_eq!(unsafe { hoistway_events_dropped(queue.memory) }, 3);
}

#[test]
fn groups_are_created_weighted_used_and_removed() {
    let queue = Queue::new("noop", 0);
    let (memory, context) = (queue.memory, queue.process(1));
    let (mut root, mut group, mut other) = (1, 0, 0);
    // SAFETY: the queue lives; the only invalid pointer is null.
    unsafe {
        assert_eq!(hoistway_group_root(memory, null_mut()), Status::Invalid as i32);
        assert_eq!(hoistway_group_root(memory, &mut root), Status::Ok as i32);
        let create = |parent, weight, leaf, group| hoistway_group_create(memory, parent, weight, leaf, 0, group);
        assert_eq!(create(root, 100, 100, null_mut()), Status::Invalid as i32);
        for (weight, leaf) in [(0, 100), (1001, 100), (100, 0), (100, 65536 + 100)] {
            assert_eq!(create(root, weight, leaf, &mut group), Status::OutOfRange as i32, "{weight}, {leaf}");
        }
        assert_eq!(create(root + 1, 100, 100, &mut group), Status::Stale as i32);
        assert_eq!(create(root, 1000, 1, &mut group), Status::Ok as i32);
        // Two groups, and the root is one of them.
        assert_eq!(create(group, 100, 100, &mut other), Status::Full as i32);
        assert_eq!(hoistway_group_set_weights(memory, group, 0, 1, 0), Status::OutOfRange as i32);
        assert_eq!(hoistway_group_set_weights(memory, group, 1, 1000, 0), Status::Ok as i32);
        assert_eq!(hoistway_context_move(memory, context, group, 0), Status::Ok as i32);
        assert_eq!(hoistway_group_remove(memory, group, 0), Status::Busy as i32);
        assert_eq!(hoistway_group_remove(memory, root, 0), Status::Busy as i32);
        assert_eq!(hoistway_context_move(memory, context, root, 0), Status::Ok as i32);
        assert_eq!(hoistway_group_remove(memory, group, 0), Status::Ok as i32);
        assert_eq!(hoistway_group_remove(memory, group, 0), Status::Stale as i32);
        assert_eq!(hoistway_context_move(memory, context, group, 0), Status::Stale as i32);
        assert_eq!(hoistway_context_move(memory, context + 1, root, 0), Status::Stale as i32);
        // The entry of the table is used again with another handle.
        assert_eq!(create(root, 100, 100, &mut other), Status::Ok as i32);
        assert_ne!(other, group);
    }
}

#[test]
fn a_cpu_and_a_hardware_queue_have_their_ranges() {
    let queue = Queue::new("noop", 0);
    let context = queue.process(1);
    let mut request = CRequest::default();
    // SAFETY: the queue lives.
    unsafe {
        assert_eq!(hoistway_context_set_cpu(queue.memory, context, 65535), Status::Ok as i32);
        assert_eq!(hoistway_context_set_cpu(queue.memory, context, 65536), Status::Invalid as i32);
        assert_eq!(hoistway_context_set_cpu(queue.memory, context + 1, 0), Status::Stale as i32);
        assert_eq!(queue.read(context, 7, 100), Status::Ok as i32);
        // There is one hardware queue, number 0.
        assert_eq!(hoistway_next_for(queue.memory, 1, 0, &mut request), Status::Invalid as i32);
        assert_eq!(hoistway_next_for(queue.memory, 65536, 0, &mut request), Status::Invalid as i32);
        assert_eq!(hoistway_next_for(queue.memory, 0, 0, &mut request), Status::Ok as i32);
        assert_eq!((request.token, request.sector), (7, 100));
        assert_eq!(hoistway_next_for(queue.memory, 0, 0, &mut request), Status::Empty as i32);
    }
}

#[test]
fn a_discard_is_served_as_a_discard() {
    let queue = Queue::new("deadline", 0);
    let context = queue.process(1);
    let bio = CBio { token: 1, context, sector: 8, sectors: 8, op: 3, flags: 0 };
    let mut submitted = CSubmitted::default();
    // SAFETY: the queue lives.
    unsafe {
        assert_eq!(hoistway_submit(queue.memory, &bio, 0, &mut submitted), Status::Ok as i32);
        let flush = CBio { op: 2, ..bio };
        assert_eq!(hoistway_submit(queue.memory, &flush, 0, &mut submitted), Status::Invalid as i32);
    }
    assert_eq!(queue.next().map(|request| request.op), Ok(3));
}

#[test]
fn a_group_reserves_over_any_elevator() {
    let queue = Queue::new("noop", 0);
    let memory = queue.memory;
    let (context, mut group, mut headroom) = (queue.process(1), 0, 0);
    let wanted = CReservation { bytes_per_second: 1_000_000, depth_bytes: 0, request_bytes: 0 };
    // SAFETY: the queue and the numbers live.
    unsafe {
        let reserve = |group, headroom| hoistway_group_reserve(memory, group, &wanted, 0, headroom);
        assert_eq!(hoistway_group_root(memory, &mut group), Status::Ok as i32);
        assert_eq!(reserve(group, &mut headroom), Status::NotSupported as i32);
        let rows = hoistway_tunable_count(memory);
        assert_eq!(hoistway_switch(memory, index("noop") | RESERVING, 0), Status::Ok as i32);
        assert_eq!(hoistway_switch(memory, index("noop") | RESERVING, 0), Status::Ok as i32, "to itself");
        assert_eq!((hoistway_is_reserving(memory), hoistway_tunable_count(memory)), (1, rows + 10));
        assert_eq!(reserve(group, null_mut()), Status::Invalid as i32);
        assert_eq!(reserve(group + 1, &mut headroom), Status::Stale as i32);
        assert_eq!(reserve(group, &mut headroom), Status::Ok as i32);
        let more = CReservation { bytes_per_second: 1_000_000_000, ..wanted };
        assert_eq!(hoistway_reserve(memory, context, &more, 0, &mut headroom), Status::NoCapacity as i32);
        assert!(headroom > 1_000_000, "{headroom} bytes a second of headroom");
        // A best-effort read and one of the group: the group's is first. (dirs is 0: reads are
        // reserved.)
        let (mut other, mut below) = (0, 0);
        assert_eq!(hoistway_group_create(memory, group, 100, 100, 0, &mut below), Status::Ok as i32);
        assert_eq!(hoistway_context_create(memory, 2, 2, 4, 0, &mut other), Status::Ok as i32);
        assert_eq!(hoistway_context_move(memory, other, below, 0), Status::Ok as i32);
        assert!(queue.read(other, 1, 100) >= 0 && queue.read(context, 2, 5000) >= 0);
        let [first, second] = [(); 2].map(|()| queue.next().expect("two are queued"));
        assert_eq!([queue.complete(first), queue.complete(second)], [[2], [1]]);
        assert_eq!(hoistway_group_release(memory, group, 0), Status::Ok as i32);
        assert_eq!(hoistway_group_release(memory, group + 1, 0), Status::Stale as i32);
        assert_eq!(hoistway_set_tunable_by_name(memory, b"dirs".as_ptr(), 4, 3), Status::OutOfRange as i32);
        assert_eq!(hoistway_set_tunable_by_name(memory, b"dirs".as_ptr(), 4, 2), Status::Ok as i32);
        assert_eq!(hoistway_queue_size(&CAPACITY) % 64, 0);
        assert_eq!(hoistway_switch(memory, 99 | RESERVING, 0), Status::Unknown as i32);
    }
}

#[test]
fn each_status_has_a_text_and_other_values_a_general_one() {
    // SAFETY: the text is constant and ends with a zero.
    let text = |status: i32| unsafe { std::ffi::CStr::from_ptr(hoistway_status_text(status).cast()) };
    let text = |status: i32| text(status).to_str().expect("ASCII");
    let codes = Status::NoCapacity as i32..=Status::Search as i32;
    let texts: std::collections::BTreeSet<&str> = codes.clone().map(text).collect();
    assert_eq!(texts.len(), codes.count(), "each has its own");
    assert!(!texts.contains("unknown status") && texts.iter().all(|text| !text.is_empty()));
    for other in [i32::MIN, Status::NoCapacity as i32 - 1, Status::Search as i32 + 1, i32::MAX] {
        assert_eq!(text(other), "unknown status");
    }
    assert_eq!(text(Status::Unknown as i32), "no elevator or tunable with this name or number");
}
