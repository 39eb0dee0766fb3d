//! The C ABI over hoistway-core, and the shell that proves that it cannot panic.
//!
//! The interface is described in `include/hoistway.h`, for those who use it from C. A queue lives in one block of the caller's memory,
//! from which all its tables are cut; nothing is allocated. Every function checks its pointers and arguments and answers a
//! [`Status`] below 0 if they are wrong; then nothing has changed.
//!
//! With the feature `proof` the crate has a panic handler that calls the undefined function `hoistway_core_can_panic`. A static library
//! of it, optimised as a whole and with overflow checks, leaves that symbol undefined exactly if something in it can panic, and
//! every elevator is in it, since a queue can be switched to any.

#![no_std]

mod arguments;
mod calls;
mod events;
mod groups;
mod memory;
mod names;
mod types;

pub use calls::*;
pub use events::{CEvent, EventKind, EventRing};
pub use groups::*;
pub use memory::{hoistway_queue_init, hoistway_queue_size};
pub use names::*;
pub use types::*;

/// The queue as C sees it: a pointer to the caller's block of memory.
pub use memory::Shell as HoistwayQueue;

#[cfg(feature = "proof")]
mod proof {
    unsafe extern "C" {
        /// Defined nowhere.
        fn hoistway_core_can_panic() -> !;
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        // SAFETY: the call is never carried out: a program in which it remains does not link.
        unsafe { hoistway_core_can_panic() }
    }
}

/// A function that can panic, to show that the proof sees it.
#[cfg(feature = "proof-selftest")]
#[unsafe(no_mangle)]
pub extern "C" fn hoistway_proof_selftest(index: usize) -> u32 {
    let table = [2, 3, 5, 7];
    table[index]
}
