//! The C ABI over hoistway-core, and the shell crate that proves the absence of panics.
//!
//! `include/hoistway.h` documents the interface for C programs, and docs/c-library.md its use.
//! `abi.txt` describes the ABI: `cargo xtask clib` builds the library and writes the description.
//!
//! A queue occupies one block of the caller's memory, from which all its tables are cut; nothing
//! else is allocated. Every function checks its pointers and arguments. It returns a negative
//! [`Status`] if they are wrong, and then nothing has changed.
//!
//! With the feature `proof` the crate has a panic handler that calls the undefined function
//! `hoistway_core_can_panic`. A static library of the crate, optimised as a whole and with overflow
//! checks, leaves that symbol undefined exactly if some code in it can panic. It contains every
//! elevator, since a queue can be switched to any of them.
//!
//! Where to change what:
//! - a call: `calls.rs` (contexts, bios, requests, time), `groups.rs`, or `names.rs` (elevators and
//!   tunables by name), and `include/hoistway.h`
//! - merges that the caller makes: `host_merge.rs`
//! - a structure or code: `types.rs` and `include/hoistway.h`, then `cargo xtask clib --write-abi`
//!   and the tables of `tests/it/abi.rs`; checks of arguments: `arguments.rs`
//! - the division of the caller's memory: `memory.rs`; trace events: `events.rs`

#![no_std]

mod arguments;
mod calls;
mod events;
mod groups;
mod host_merge;
mod memory;
mod names;
mod types;

pub use calls::*;
pub use events::{CEvent, EventKind, EventRing};
pub use groups::*;
pub use host_merge::*;
pub use memory::{hoistway_fixed_queue_size, hoistway_queue_init, hoistway_queue_size};
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
        // SAFETY: the call is never executed: a program that contains it does not link.
        unsafe { hoistway_core_can_panic() }
    }
}

/// A function that can panic, to show that the proof detects it.
#[cfg(feature = "proof-selftest")]
#[unsafe(no_mangle)]
pub extern "C" fn hoistway_proof_selftest(index: usize) -> u32 {
    let table = [2, 3, 5, 7];
    table[index]
}
