//! Any bytes as what a client says in transmission: each request is answered once, as the protocol says, in any pieces.
//!
//! Begin with the inputs in `crates/nbd/tests/corpus/requests`.
#![no_main]

#[path = "../../crates/nbd/tests/it/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine::requests(bytes));
