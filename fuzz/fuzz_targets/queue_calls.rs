//! Random sequences of calls of the request queue under any elevator: every bio is served once, and
//! none waits without bound.
#![no_main]

#[path = "../../crates/core/tests/it/machine/mod.rs"]
#[allow(dead_code, unused_imports)]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(what) = machine::play(bytes) {
        panic!("{what}\n{:#?}", machine::Case::read(bytes));
    }
});
