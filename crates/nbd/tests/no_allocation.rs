//! Neither reading the header of a request nor writing its reply allocates memory, once the buffer
//! of replies has grown.
//!
//! A counting allocator replaces that of the system. Each thread counts its own allocations:
//! those of the test harness do not matter.

#[allow(dead_code)]
#[path = "it/machine/mod.rs"]
mod machine;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hoistway_nbd::Limits;
use hoistway_nbd::server::{Extent, Parsed, Replies, Session};
use hoistway_nbd::wire::{Command, RequestHeader};
use machine::export;

/// Counts allocations and passes them on to the allocator of the system.
struct Counting;

thread_local! {
    // A constant without a destructor does not allocate on first use.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn requests_and_replies_allocate_nothing() {
    // The counter itself must count.
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1u8)));
    assert!(ALLOCATIONS.get() > before, "the counter does not count");

    for replies in [Replies::Simple, Replies::Structured, Replies::Extended] {
        let base_allocation = replies != Replies::Simple;
        let session = Session { export: export("disk"), replies, base_allocation, limits: Limits::default() };
        let mut stream = Vec::new();
        for cookie in 0..1000u64 {
            // Of every command, and of one that is not known; some of them beyond the end.
            let header = RequestHeader {
                flags: 0,
                command: (cookie % 9) as u16,
                cookie,
                offset: cookie * 2000,
                length: if cookie % 9 == 3 { 0 } else { 512 },
            };
            match replies {
                Replies::Extended => header.write_extended(&mut stream),
                _ => header.write_compact(&mut stream),
            }
        }
        let mut out = Vec::with_capacity(1 << 20);
        let before = ALLOCATIONS.get();
        let served = serve(&session, &stream, &mut out);
        assert_eq!(ALLOCATIONS.get(), before, "{replies:?}");
        assert_eq!(served, 1000);
    }
}

fn serve(session: &Session, mut stream: &[u8], out: &mut Vec<u8>) -> u32 {
    let extents = [Extent { length: 512, hole: false, zero: false }, Extent { length: 512, hole: true, zero: true }];
    let mut served = 0;
    while let Parsed::Request(request, used) = session.parse(stream) {
        match (request.refused, request.command) {
            (Some((errno, text)), _) => session.error(&request, errno, text, out),
            (None, Command::Read) => session.data(&request, out),
            (None, Command::BlockStatus) => session.block_status(&request, &extents, out),
            (None, _) => session.ok(&request, out),
        }
        stream = &stream[used..];
        served += 1;
    }
    served
}
