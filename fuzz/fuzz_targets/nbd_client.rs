//! Arbitrary bytes from a server: the client returns replies or an error, independent of
//! fragmentation.
#![no_main]

#[path = "../../crates/nbd/tests/it/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine::client(bytes));
