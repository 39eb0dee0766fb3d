//! A host for the request queue that makes any calls that the contract allows, and checks the
//! invariants.
//!
//! A case is a string of bytes: a header with the elevator, the queue's configuration and its
//! capacity, and records of six bytes, one per call. Any string is valid. So random generators,
//! fuzzers and people can write cases, and leaving out a record makes a smaller one.

mod bio_tracker;
mod bytes;
#[allow(dead_code)]
pub mod custom;
mod groups;
mod host;

// Each test with a host uses some of these.
#[allow(unused_imports)]
pub use bytes::{Call, Case, HEADER_BYTES, LAYERED, Place, RECORD_BYTES, Value};
pub use host::{Full, Host};

/// Executes a case and runs the queue dry. Returns the order of service, with which two runs can be
/// compared, or the violated property.
pub fn play(bytes: &[u8]) -> Result<Vec<u64>, String> {
    play_case(&Case::read(bytes))
}

/// Executes a decoded case.
pub fn play_case(case: &Case) -> Result<Vec<u64>, String> {
    play_counting(case).map(|(served, _)| served)
}

/// Executes a decoded case. Returns the order of service, and how often a table was full.
pub fn play_counting(case: &Case) -> Result<(Vec<u64>, Full), String> {
    let mut host = Host::new(case);
    for (number, &call) in case.calls.iter().enumerate() {
        host.call(call).map_err(|what| format!("call {number}, {call:?}: {what}"))?;
    }
    host.run_dry().map_err(|what| format!("after the last call: {what}"))?;
    host.check_all_entries_free()?;
    let full = host.full;
    Ok((host.into_served(), full))
}
