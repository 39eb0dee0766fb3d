//! Arbitrary bytes on a connection of the whole server, over a simulated network. The server keeps
//! its contract with the engine, closes the connection, and frees all of its memory.
#![no_main]

use std::cell::RefCell;

use hoistway_simulation::wire::Wire;

/// The number of inputs that one server handles, so that its creation costs little.
const INPUTS_A_SERVER: u32 = 256;

thread_local! {
    static WIRE: RefCell<(u32, Wire)> = RefCell::new((0, Wire::new(1)));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    WIRE.with_borrow_mut(|(inputs, wire)| {
        *inputs += 1;
        if *inputs % INPUTS_A_SERVER == 0 {
            *wire = Wire::new(1);
        }
        if let Err(what) = wire.play(bytes) {
            panic!("{what}");
        }
    });
});
