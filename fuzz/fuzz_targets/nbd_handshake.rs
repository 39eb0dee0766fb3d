//! Any bytes as what a client says before transmission: the same in any pieces, with bounded memory and replies.
//!
//! Begin with the inputs in `crates/nbd/tests/corpus/handshake`.
#![no_main]

#[path = "../../crates/nbd/tests/it/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine::handshake(bytes));
