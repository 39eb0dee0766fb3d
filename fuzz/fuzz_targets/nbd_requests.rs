//! Arbitrary bytes from a client in transmission: each request gets one valid reply, independent of
//! fragmentation.
#![no_main]

#[path = "../../crates/nbd/tests/it/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine::requests(bytes));
