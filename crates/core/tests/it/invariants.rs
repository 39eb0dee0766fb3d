//! Invariants of every elevator under random calls: each bio is served once, none is lost, no wait
//! is unbounded.
//!
//! Cases are random bytes from a fixed seed (see `machine`). `HOISTWAY_CASES` sets their number,
//! `HOISTWAY_CALLS` their length, `HOISTWAY_SEED` the seed, `HOISTWAY_ELEVATOR` the initial
//! elevator; `--nocapture` shows the number of calls. A failing case is reduced by leaving out
//! calls as long as it still fails, and printed. `HOISTWAY_CASE` names a file with a case to
//! execute instead, such as one found by the fuzzer.

use std::panic::{self, AssertUnwindSafe};

use crate::machine::{Call, Case, HEADER_BYTES, LAYERED, RECORD_BYTES, play_case};
use hoistway_core::Kind;

/// The default number of cases per elevator.
const CASES: u64 = 1500;
/// The default limit of calls per case.
const CALLS: u64 = 300;

#[test]
fn every_bio_is_served_once_and_no_wait_is_unbounded() {
    if let Some(file) = std::env::var_os("HOISTWAY_CASE") {
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return check("case", bytes);
    }
    let length = from_environment("HOISTWAY_CALLS", CALLS);
    let only = std::env::var("HOISTWAY_ELEVATOR").ok();
    for (index, kind) in Kind::ALL.iter().enumerate() {
        if only.as_ref().is_some_and(|name| name != kind.info().name) {
            continue;
        }
        let mut calls = 0;
        for number in 0..from_environment("HOISTWAY_CASES", CASES) {
            let seed = from_environment("HOISTWAY_SEED", 1).wrapping_mul(1 << 40) + number;
            let mut random = Random(seed ^ ((index as u64) << 32));
            let mut bytes = random.bytes(length);
            // Each without and, every third time, with the reservation layer.
            bytes[0] = index as u8;
            if number % 3 == 2 {
                bytes[0] |= LAYERED;
                reserve_first(&mut bytes, number / 3 % 2 == 0);
            }
            calls += (bytes.len() - HEADER_BYTES) / RECORD_BYTES;
            check(&format!("{}, seed {seed}", kind.info().name), bytes);
        }
        println!("{}: {calls} calls", kind.info().name);
    }
}

#[test]
fn the_same_calls_give_the_same_answers() {
    for number in 0..200u64 {
        let mut bytes = Random(number + (1 << 50)).bytes(CALLS);
        bytes[0] = number as u8;
        assert_eq!(outcome(&bytes), outcome(&bytes), "case {number}");
    }
}

#[test]
fn without_reservations_a_layer_decides_like_the_elevator_below() {
    for number in 0..1000u64 {
        let mut case = Case::read(&Random(number + (1 << 51)).bytes(CALLS));
        // Tunables have other indices with the layer; reservations and switches are left out.
        let matters = |call: &Call| {
            let reserves = matches!(call, Call::Reserve { .. } | Call::ReserveGroup { .. });
            !reserves && !matches!(call, Call::SetTunable { .. } | Call::Switch { .. })
        };
        case.calls.retain(matters);
        case.kind = Kind::ALL[number as usize % Kind::ALL.len()];
        let name = case.kind.info().name;
        case.layered = false;
        let below = play_case(&case);
        case.layered = true;
        assert_eq!(play_case(&case), below, "case {number}, {name}");
        if case.kind == Kind::CfqV3 {
            case.kind = Kind::CfqBw;
            assert_eq!(play_case(&case), below, "case {number}, cfq-bw");
        }
    }
}

/// A test of the test machine: it detects a host that breaks the contract.
#[test]
fn a_lost_bio_is_detected() {
    let case = Case::read(&[0; HEADER_BYTES + RECORD_BYTES]);
    let mut host = crate::machine::Host::new(&case);
    host.call(case.calls[0]).expect("a read of sector 0");
    let left = host.check_all_entries_free();
    assert!(left.is_err(), "a lost bio was not detected");
}

/// Inserts reservations at the start of a case, for two processes and a group; possibly of both
/// directions and with a large capacity of the device.
fn reserve_first(bytes: &mut [u8], tuned: bool) {
    let reserve = |process: u8, of_group: u8| [62, process, 1, 96, 1, of_group];
    let set_to = |index: u8, end: u8| [53, index, end, 0, 0, 0];
    let (least, greatest) = (3, 4);
    let tunables = [set_to(0, greatest), set_to(1, least), set_to(8, greatest)];
    let reservations = [reserve(0, 0), reserve(0, 1), reserve(1, 0)];
    let calls = tunables.iter().filter(|_| tuned).chain(&reservations);
    for (record, call) in bytes[HEADER_BYTES..].chunks_exact_mut(RECORD_BYTES).zip(calls) {
        record.copy_from_slice(call);
    }
}

/// Executes a case; if it fails, reduces it.
fn check(name: &str, bytes: Vec<u8>) {
    if let Err(what) = outcome(&bytes) {
        let (smallest, what) = shrink(bytes, what);
        let Case { kind, layered, config, capacity, depth, pulls_each, stands_still, calls } = Case::read(&smallest);
        let calls: Vec<String> = calls.iter().map(|call| format!("  {call:?}")).collect();
        let calls = calls.join("\n");
        let device = format!(
            "device of {depth}, takes requests per hardware queue: {pulls_each}, time stands still: {stands_still}"
        );
        panic!(
            "{name}: {what}\n{kind:?}, layered: {layered}, {config:?}, {capacity:?}, {device}\n{calls}\nbytes {smallest:?}"
        );
    }
}

/// Executes a case; a failed assertion inside the queue counts as a failure, too.
fn outcome(bytes: &[u8]) -> Result<Vec<u64>, String> {
    panic::catch_unwind(AssertUnwindSafe(|| crate::machine::play(bytes))).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        Err(format!("panic: {}", text.or(cause.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()))
    })
}

/// Leaves out runs of calls, long ones first, while the case still fails.
fn shrink(mut bytes: Vec<u8>, mut what: String) -> (Vec<u8>, String) {
    let silent = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut run = bytes.len() / RECORD_BYTES / 2;
    while run > 0 {
        let (mut at, mut shorter) = (HEADER_BYTES, false);
        while at < bytes.len() {
            let mut fewer = bytes.clone();
            fewer.drain(at..(at + run * RECORD_BYTES).min(bytes.len()));
            match outcome(&fewer) {
                Err(still) => (bytes, what, shorter) = (fewer, still, true),
                Ok(_) => at += run * RECORD_BYTES,
            }
        }
        if !shorter || run > 1 {
            run /= 2;
        }
    }
    panic::set_hook(silent);
    (bytes, what)
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(otherwise, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// A random case of fewer calls than `calls`.
pub fn random_case(seed: u64, calls: u64) -> Vec<u8> {
    Random(seed).bytes(calls)
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A header and fewer calls than `calls`. A third of the cases has the common configuration.
    fn bytes(&mut self, calls: u64) -> Vec<u8> {
        let calls = (self.next() % calls.max(1)) as usize;
        let mut bytes: Vec<u8> = (0..HEADER_BYTES + calls * RECORD_BYTES).map(|_| self.next() as u8).collect();
        if self.next().is_multiple_of(3) {
            bytes[..HEADER_BYTES].fill(0);
        }
        bytes
    }
}
