//! Arbitrary bytes from a client during the handshake: the result is independent of fragmentation,
//! with bounded memory and replies.
#![no_main]

#[path = "../../crates/nbd/tests/it/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine::handshake(bytes));
