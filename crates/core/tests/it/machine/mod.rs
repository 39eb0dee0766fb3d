//! A host for the request queue that does anything that the contract allows, and watches what must always hold.
//!
//! A case is a string of bytes, any string: a header that chooses the elevator, the queue's configuration and its capacity, and
//! records of six bytes, a call each. So a generator of random bytes, a fuzzer and a person can all make cases, and
//! leaving out a record makes a smaller case.

mod bytes;
mod groups;
mod host;
mod ledger;

// Each test that has a host uses some of these.
#[allow(unused_imports)]
pub use bytes::{Call, Case, HEADER_BYTES, LAYERED, Place, RECORD_BYTES, Value};
pub use host::Host;

/// Plays a case to its end and lets the queue run dry. Answers the order of service, by which two runs can be compared, or what
/// does not hold.
pub fn play(bytes: &[u8]) -> Result<Vec<u64>, String> {
    play_case(&Case::read(bytes))
}

/// The same for a case that somebody has written down.
pub fn play_case(case: &Case) -> Result<Vec<u64>, String> {
    let mut host = Host::new(case);
    for (number, &call) in case.calls.iter().enumerate() {
        host.call(call).map_err(|what| format!("call {number}, {call:?}: {what}"))?;
    }
    host.run_dry().map_err(|what| format!("after the last call: {what}"))?;
    host.leave_nothing_behind()?;
    Ok(host.into_served())
}
