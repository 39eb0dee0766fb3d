//! Arbitrary bytes as a line of a decision file: a scenario that is replayed to its end, or an
//! error.
#![no_main]

use hoistway_conform::decisions::{Scenario, compare, replay_scenario};

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    match Scenario::from_json(line) {
        Ok(scenario) => {
            let replay = replay_scenario(&scenario);
            // A comparison has a result with and without recorded decisions.
            let _ = compare(&scenario, &replay);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
