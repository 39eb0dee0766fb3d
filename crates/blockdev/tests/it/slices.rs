//! Slices of elevators, as accounts and the control tree show them.

use hoistway_core::Kind;
use hoistway_qos::Terms;

use crate::testbed::*;

/// The elevators with slices.
const WITH_SLICES: [Kind; 8] =
    [Kind::CfqV3, Kind::CfqTree, Kind::CfqBw, Kind::BfqV0, Kind::CfqWf2q, Kind::Cfq, Kind::Bfq, Kind::Paternoster];

/// What was seen of a run of two tenants.
struct Seen {
    /// The slices of each tenant that ended, and their length in ns.
    ended: [(u64, u64); 2],
    /// The time in ns for which each tenant held the slice, as far as seen once a millisecond.
    held_ns: [u64; 2],
    /// The number of times at which the end of the slice was known.
    bounded: u64,
    /// The longest slice, up to its latest end, in ns.
    longest_ns: u64,
}

/// Runs two tenants that read one after the other through their parts of a disk.
fn run(kind: Kind, tunables: &[(&str, i64)]) -> Seen {
    let mut config = millisecond(kind, 1);
    config.drive = Some(hoistway_drive::Profile::builtin("sata-7200-2006").expect("a built-in drive"));
    config.queue.tunables.extend(tunables.iter().map(|(name, value)| ((*name).to_owned(), *value)));
    let mut testbed = Testbed::new(&config);
    let names = ["one", "two"];
    for (name, part) in names.into_iter().zip(0..) {
        testbed.device.scheduler_mut().set_tenant(name, &Terms::default(), 0).expect("good terms");
        let client = Client { sequential: true, ..Client::reads(4, 65_536) };
        testbed.add(Some(name), client.at(part * 256 * MIB, 256 * MIB));
    }
    let mut seen = Seen { ended: [(0, 0); 2], held_ns: [0; 2], bounded: 0, longest_ns: 0 };
    for ms in 1..=20_000 {
        testbed.run_until(ms * MS);
        let now_ns = testbed.now();
        let Some(slice) = testbed.device.scheduler().slice(now_ns) else { continue };
        let tenant = names.iter().position(|name| *name == slice.tenant).expect("one of both has it");
        seen.held_ns[tenant] += MS;
        if let Some(left_ns) = slice.left_ns {
            seen.bounded += 1;
            seen.longest_ns = seen.longest_ns.max(slice.age_ns + left_ns);
        }
    }
    for (ended, name) in seen.ended.iter_mut().zip(names) {
        let account = testbed.device.scheduler().account(name).expect("it has an account");
        *ended = (account.slices, account.slice_ns);
    }
    seen
}

#[test]
fn slices_are_counted_for_their_tenant_and_their_end_is_known() {
    for kind in WITH_SLICES {
        let seen = run(kind, &[]);
        for ((count, ns), held_ns) in seen.ended.into_iter().zip(seen.held_ns) {
            // Under bfq most requests of one tenant are dispatched within slices of the other.
            assert!(count >= 3, "{kind:?}: {count} slices in 20 s");
            let difference = ns.abs_diff(held_ns) as f64 / ns as f64;
            assert!(difference < 0.15, "{kind:?}: {count} slices of {ns} ns in all, and {held_ns} ns were seen");
        }
        let all_ns: u64 = seen.ended.iter().map(|(_, ns)| ns).sum();
        assert!(all_ns <= 20 * SECOND, "{kind:?}: {all_ns} ns of slices in 20 s: they overlap");
        assert!(seen.bounded >= 1000, "{kind:?}: the end of the slice was known at {} times", seen.bounded);
        assert!(seen.longest_ns <= 2 * SECOND, "{kind:?}: a slice of {} ns", seen.longest_ns);
    }
}

#[test]
fn the_length_of_a_slice_follows_the_tunable() {
    for (kind, name) in [(Kind::CfqV3, "slice_sync"), (Kind::Cfq, "slice_sync"), (Kind::Bfq, "timeout_sync")] {
        let mut tunables = vec![(name, 30)];
        if kind == Kind::Cfq {
            tunables.push(("low_latency", 0));
        }
        let seen = run(kind, &tunables);
        let longest_ms = seen.longest_ns as f64 / 1e6;
        // The end is set after the first request, and a level other than 4 changes the length.
        assert!((30.0..75.0).contains(&longest_ms), "{kind:?}: 30 ms, and a slice of {longest_ms} ms");
    }
}

#[test]
fn elevators_without_slices_have_none() {
    for kind in [Kind::Noop, Kind::Deadline, Kind::Fiops, Kind::Kyber] {
        let seen = run(kind, &[]);
        assert_eq!((seen.ended, seen.held_ns), ([(0, 0); 2], [0; 2]), "{kind:?}");
    }
}

#[test]
fn a_switch_ends_the_slice() {
    let mut testbed = Testbed::new(&millisecond(Kind::Bfq, 1));
    testbed.add(None, Client::reads(4, 65_536));
    testbed.run_until(SECOND);
    let scheduler = testbed.device.scheduler();
    assert!(scheduler.has_slices() && scheduler.slice(SECOND).is_some());
    testbed.device.scheduler_mut().switch(Kind::Noop, testbed.engine.now_ns).expect("nothing is being switched");
    testbed.run_until(2 * SECOND);
    let scheduler = testbed.device.scheduler();
    assert_eq!((scheduler.has_slices(), scheduler.slice(2 * SECOND)), (false, None));
}
