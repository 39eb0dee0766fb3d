//! Merges that the caller makes: the C interface from C and from Rust, layouts, bad arguments, and
//! queues that keep their elevator.

use std::mem::{offset_of, size_of};
use std::ptr::{null, null_mut};

use hoistway_capi::*;

use crate::c_program;

/// A read of 8 sectors at 100 and one at 116. A bio is merged to the front of the second, and a
/// request to the end of the first as it is inserted, so that they meet at 112 and become one.
const EXPECTED: &str = "\
smaller 1, init 0
switch -6
submit 0 what 0
submit 0 what 0
prepare 4, at insertion 1
find 0: token 2 side 1, the upper one 1
allowed 1
growth 0
find 0: token 2 side 1
at insertion 0
neighbour 0: token 2
no neighbour 3
join 0, again -4
depth 64
listed 0
next 0: 1 at 100+24
listed 1: 1
refusal -4, growth -4
complete 0: 1 of them, 1
next 3
";

#[test]
fn a_c_program_merges_bios_and_requests_itself() {
    let Some(printed) = c_program::run("host_merge.c") else { return };
    let neighbour = format!(
        "neighbour {}: {} {} {} {}\n",
        size_of::<CNeighbour>(),
        offset_of!(CNeighbour, request),
        offset_of!(CNeighbour, token),
        offset_of!(CNeighbour, side),
        offset_of!(CNeighbour, reserved)
    );
    let extent = format!(
        "extent {}: {} {} {}\n",
        size_of::<CExtent>(),
        offset_of!(CExtent, sector),
        offset_of!(CExtent, sectors),
        offset_of!(CExtent, reserved)
    );
    assert_eq!(printed, neighbour + &extent + EXPECTED);
}

const CAPACITY: CCapacity = CCapacity { requests: 8, contexts: 2, merged_bios: 0, events: 0, groups: 1 };
const INVALID: i32 = Status::Invalid as i32;

fn index(name: &str) -> u32 {
    // SAFETY: the name lives.
    let index = unsafe { hoistway_elevator_index(name.as_ptr(), name.len()) };
    u32::try_from(index).expect("a known elevator")
}

fn config() -> CConfig {
    let mut config = CConfig::default();
    // SAFETY: the configuration lives.
    assert_eq!(unsafe { hoistway_config_default(&mut config) }, Status::Ok as i32);
    CConfig { merging: 0, plugging: 0, nr_requests: 0, layer: 5, ..config }
}

/// A queue that keeps its elevator, in a block of exactly its size.
struct Fixed {
    block: Vec<[u64; 8]>,
}

impl Fixed {
    fn new(elevator: u32) -> Fixed {
        // SAFETY: the capacity lives.
        let size = unsafe { hoistway_fixed_queue_size(&CAPACITY, elevator) };
        assert!(size > 0);
        let mut queue = Fixed { block: vec![[0; 8]; size.div_ceil(64) + 1] };
        // SAFETY: the block is aligned and has the size.
        let made = unsafe { hoistway_queue_init(queue.memory(), size, &CAPACITY, &config(), elevator, 0) };
        assert_eq!(made, Status::Ok as i32);
        queue
    }

    fn memory(&mut self) -> *mut HoistwayQueue {
        self.block.as_mut_ptr().map_addr(|at| at.next_multiple_of(64)).cast()
    }

    fn insert(&mut self, bio: &CBio) -> u64 {
        let mut submitted = CSubmitted::default();
        // SAFETY: the queue lives.
        assert_eq!(unsafe { hoistway_submit(self.memory(), bio, 0, &mut submitted) }, Status::Ok as i32);
        submitted.request
    }

    fn bio(&mut self, token: u64, sector: u64) -> CBio {
        let mut context = 0;
        // SAFETY: the queue lives.
        let made = unsafe { hoistway_context_create(self.memory(), 1, 2, 4, 0, &mut context) };
        assert_eq!(made, Status::Ok as i32);
        CBio { token, context, sector, sectors: 8, op: 0, flags: 0 }
    }
}

#[test]
fn null_and_misaligned_pointers_are_refused() {
    let mut fixed = Fixed::new(index("mq-deadline") | FIXED);
    let bio = fixed.bio(1, 100);
    let id = fixed.insert(&bio);
    let queue = fixed.memory();
    let grown = [CExtent { sector: 100, sectors: 16, reserved: 0 }; 2];
    let mut found = CNeighbour::default();
    let mut tokens = [0u64; 3];
    let (bad_bio, bad_extent) = ((&raw const bio).wrapping_byte_add(1), grown.as_ptr().wrapping_byte_add(4));
    let (bad_found, bad_tokens) = ((&raw mut found).wrapping_byte_add(4), tokens.as_mut_ptr().wrapping_byte_add(2));
    // SAFETY: the queue lives; each other pointer is to a live value, null or misaligned.
    unsafe {
        for queue in [null_mut(), queue.wrapping_byte_add(8)] {
            assert_eq!(hoistway_prepare_merge(queue, &bio, 0, &mut found), INVALID);
            assert_eq!(hoistway_joins_at_insert(queue), INVALID);
            assert_eq!(hoistway_record_refusal(queue, id), INVALID);
            assert_eq!(hoistway_allows_merge(queue, id, &bio, 0), INVALID);
            assert_eq!(hoistway_find_merge(queue, &bio, 0, &mut found), INVALID);
            assert_eq!(hoistway_neighbour(queue, id, 0, &mut found), INVALID);
            assert_eq!(hoistway_record_growth(queue, id, 0, &grown[0], 0), INVALID);
            assert_eq!(hoistway_record_join(queue, id, id, &grown, 0), INVALID);
            assert_eq!(hoistway_record_join_at_insert(queue, id, &grown[0], &bio, 0), INVALID);
            assert_eq!(hoistway_depth_limit(queue, 8, &bio), INVALID);
            assert_eq!(hoistway_dispatched(queue, tokens.as_mut_ptr(), 3), INVALID);
        }
        for bio in [null(), bad_bio] {
            assert_eq!(hoistway_prepare_merge(queue, bio, 0, &mut found), INVALID);
            assert_eq!(hoistway_allows_merge(queue, id, bio, 0), INVALID);
            assert_eq!(hoistway_find_merge(queue, bio, 0, &mut found), INVALID);
            assert_eq!(hoistway_record_join_at_insert(queue, id, &grown[0], bio, 0), INVALID);
            assert_eq!(hoistway_depth_limit(queue, 8, bio), INVALID);
        }
        for extent in [null(), bad_extent] {
            assert_eq!(hoistway_record_growth(queue, id, 0, extent, 0), INVALID);
            assert_eq!(hoistway_record_join(queue, id, id, extent.cast(), 0), INVALID);
            assert_eq!(hoistway_record_join_at_insert(queue, id, extent, &bio, 0), INVALID);
        }
        for found in [null_mut(), bad_found] {
            assert_eq!(hoistway_prepare_merge(queue, &bio, 0, found), INVALID);
            assert_eq!(hoistway_find_merge(queue, &bio, 0, found), INVALID);
            assert_eq!(hoistway_neighbour(queue, id, 0, found), INVALID);
        }
        for tokens in [null_mut(), bad_tokens] {
            assert_eq!(hoistway_dispatched(queue, tokens, 3), INVALID);
        }
        assert_eq!(hoistway_neighbour(queue, id, 2, &mut found), INVALID, "there are two sides");
        assert_eq!(hoistway_record_growth(queue, id, 2, &grown[0], 0), INVALID, "there are two sides");
        let unknown = CBio { flags: 1 << 15, ..bio };
        assert_eq!(hoistway_allows_merge(queue, id, &unknown, 0), INVALID);

        // Nothing has changed.
        let mut request = CRequest::default();
        assert_eq!(hoistway_next(queue, 0, &mut request), Status::Ok as i32);
        assert_eq!((request.token, request.sector, request.sectors), (1, 100, 8));
    }
}

#[test]
fn a_queue_that_keeps_its_elevator_needs_less_memory_and_is_not_switched() {
    // SAFETY: all pointers are to live values; the block of each queue has its size.
    unsafe {
        let full = hoistway_queue_size(&CAPACITY);
        assert_eq!(hoistway_fixed_queue_size(&CAPACITY, index("noop")), 0, "without the bit");
        assert_eq!(hoistway_fixed_queue_size(&CAPACITY, 1000 | FIXED), 0, "an unknown elevator");
        assert_eq!(hoistway_fixed_queue_size(null(), index("noop") | FIXED), 0);
        for elevator in (0..hoistway_elevator_count()).flat_map(|number| [number, number | RESERVING]) {
            let size = hoistway_fixed_queue_size(&CAPACITY, elevator | FIXED);
            assert!(size > 0 && size < full, "elevator {elevator:#x}: {size} of {full} bytes");
            let mut fixed = Fixed::new(elevator | FIXED);
            let queue = fixed.memory();
            let init = hoistway_queue_init(queue, size - 1, &CAPACITY, &config(), elevator | FIXED, 0);
            assert_eq!(init, Status::TooSmall as i32);
            assert_eq!(hoistway_elevator(queue), (elevator & !RESERVING) as i32);
            for other in [index("deadline"), elevator, elevator | FIXED] {
                assert_eq!(hoistway_switch(queue, other, 0), Status::NotSupported as i32, "to {other:#x}");
            }
            assert_eq!(hoistway_is_switching(queue), 0);
            let bio = fixed.bio(5, 100);
            fixed.insert(&bio);
            let mut request = CRequest::default();
            while hoistway_next(queue, 0, &mut request) != Status::Ok as i32 {
                let mut at_ns = 0;
                assert_eq!(hoistway_next_timer(queue, &mut at_ns), Status::Ok as i32);
                assert!(hoistway_timer(queue, at_ns) >= 0);
            }
            assert_eq!((request.token, request.sector), (5, 100), "elevator {elevator:#x}");
        }
    }
}

#[test]
fn an_elevator_that_searches_itself_returns_its_request() {
    let mut fixed = Fixed::new(index("kyber") | FIXED);
    let bio = fixed.bio(1, 100);
    let id = fixed.insert(&bio);
    let queue = fixed.memory();
    let mut found = CNeighbour::default();
    let mut tokens = [7u64; 2];
    // SAFETY: the queue lives.
    unsafe {
        assert_eq!(hoistway_joins_at_insert(queue), 0);
        let above = CBio { token: 2, sector: 108, ..bio };
        assert_eq!(hoistway_prepare_merge(queue, &above, 0, &mut found), Status::Ok as i32);
        assert_eq!(found, CNeighbour { request: id, token: 1, side: 0, reserved: 0 });
        let apart = CBio { token: 2, sector: 500, ..bio };
        assert_eq!(hoistway_prepare_merge(queue, &apart, 0, &mut found), Status::Empty as i32);
        assert_eq!(hoistway_record_refusal(queue, id), Status::Ok as i32);
        assert_eq!(hoistway_prepare_merge(queue, &above, 0, &mut found), Status::Empty as i32);

        // The list is longer than the array: its length is returned.
        let mut request = CRequest::default();
        fixed.insert(&apart);
        for _ in 0..2 {
            assert_eq!(hoistway_next(queue, 0, &mut request), Status::Ok as i32);
            assert!(hoistway_requeue(queue, request.id, 0) >= 0);
        }
        assert_eq!(hoistway_dispatched(queue, tokens.as_mut_ptr(), 0), 1);
        assert_eq!(tokens, [7, 7]);
    }
}
