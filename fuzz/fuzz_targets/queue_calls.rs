//! Any sequence of calls of the request queue, under any elevator: everything is served once, nothing waits for ever.
#![no_main]

#[path = "../../crates/core/tests/it/machine/mod.rs"]
#[allow(dead_code, unused_imports)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(what) = machine::play(bytes) {
        panic!("{what}\n{:#?}", machine::Case::read(bytes));
    }
});
