//! Any bytes as what a server says: answers, or a name for what is wrong with them, in any pieces.
//!
//! Begin with the inputs in `crates/nbd/tests/corpus/client`.
#![no_main]

#[path = "../../crates/nbd/tests/it/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine::client(bytes));
