//! Accounts: bytes, operations and times of tenants.

use hoistway_core::Kind;
use hoistway_qos::{OpKind, RequestOp, Terms};
use proptest::prelude::*;

use crate::host::*;

fn within(histogram: Option<&hdrhistogram::Histogram<u64>>, ns: u64) -> bool {
    // Two significant digits.
    histogram.is_some_and(|histogram| histogram.max().abs_diff(ns) <= ns / 100 + US)
}

#[test]
fn the_time_of_a_request_is_divided_at_its_dispatch() {
    let mut host = Host::new(&plain(Kind::Noop, 1), Ends::Later, 7 * MS);
    host.tenant("a", &limited(None, rate(100, 1)));
    let member = host.join(Some("a"));
    host.submit(member, "a", RequestOp::Write, 0, 4096);
    host.submit(member, "a", RequestOp::Read, 8192, 4096);
    host.drain();
    // The write takes 8 ms, the read waits 10 ms for its operation of the limit and takes 9 ms.
    let account = host.queue.scheduler().account("a").expect("it has an account");
    let [read, write] = [OpKind::Read, OpKind::Write].map(|kind| &account.ops[kind as usize]);
    for (op, [queue_ms, device_ms]) in [(write, [0, 8]), (read, [10, 9])] {
        assert!(within(op.queue_ns.as_deref(), queue_ms * MS), "{op:?}");
        assert!(within(op.device_ns.as_deref(), device_ms * MS), "{op:?}");
        assert!(within(op.total_ns.as_deref(), (queue_ms + device_ms) * MS), "{op:?}");
    }
    assert_eq!(account.held_until(SECOND), 10 * MS);
    assert_eq!((account.service_ns, account.active_until(SECOND)), (17 * MS, 19 * MS));
    assert_eq!(host.queue.scheduler().busy_ns(SECOND), 17 * MS);
}

#[test]
fn the_bytes_of_trims_and_zeroes_are_discarded_and_status_queries_are_not_counted() {
    let mut host = Host::new(&plain(Kind::Noop, 1), Ends::AtOnce, 0);
    let member = host.join(None);
    host.submit(member, DEFAULT, RequestOp::Trim, 0, 3 * MIB);
    host.submit(member, DEFAULT, RequestOp::Zero { punch: false }, 0, 2 * MIB);
    host.submit(member, DEFAULT, RequestOp::Status, 0, MIB);
    host.submit(member, DEFAULT, RequestOp::Flush, 0, 0);
    host.drain();
    let ops = &host.queue.scheduler().account(DEFAULT).expect("it always exists").ops;
    assert_eq!(OpKind::ALL.map(|kind| ops[kind as usize].requests), [0, 0, 2, 1]);
    assert_eq!(OpKind::ALL.map(|kind| ops[kind as usize].bytes), [0, 0, 5 * MIB, 0]);
}

#[test]
fn a_tenant_that_is_removed_and_made_again_has_a_new_account() {
    let mut host = Host::new(&plain(Kind::Noop, 1), Ends::Later, MS);
    host.tenant("a", &Terms::default());
    let first = host.join(Some("a"));
    for at in 0..3 {
        host.submit(first, "a", RequestOp::Read, at * 8192, 4096);
        let until_ns = host.now_ns + 5 * MS;
        host.run_until(until_ns);
    }
    assert_eq!(host.queue.scheduler().account("a").expect("it exists").requests(), 3);
    // One request stays in the disk while its tenant is removed.
    host.submit(first, "a", RequestOp::Read, 0, 4096);
    host.run();
    host.leave(first);
    let now_ns = host.now_ns;
    host.queue.scheduler_mut().remove_tenant("a", now_ns).expect("it has no clients");
    assert!(host.queue.scheduler().account("a").is_none());
    host.tenant("a", &Terms::default());
    host.counts.clear();
    let second = host.join(Some("a"));
    host.submit(second, "a", RequestOp::Write, 0, 8192);
    host.drain();
    host.check_accounts();
    let account = host.queue.scheduler().account("a").expect("it exists");
    assert_eq!((account.requests(), account.bytes()), (1, 8192));
    // The first account took its own request: 1 ms, 8/7 ms and so on.
    assert_eq!(account.service_ns, MS + MS * 5 / 7);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_service_times_of_all_tenants_add_up_to_the_busy_time(
        depth in 1u32..8,
        in_drive: bool,
        requests in prop::collection::vec((0usize..3, 1u64..3_000_000, 0u64..5_000), 1..60),
    ) {
        let ends = if in_drive { Ends::InDrive } else { Ends::Later };
        let mut host = Host::new(&plain(Kind::Deadline, depth), ends, 300 * US);
        let names = ["a", "b", "c"];
        let clients = names.map(|name| {
            host.tenant(name, &Terms::default());
            host.join(Some(name))
        });
        for (tenant, length, pause_us) in requests {
            host.submit(clients[tenant], names[tenant], RequestOp::Read, 0, length);
            let until_ns = host.now_ns + pause_us * US;
            host.run_until(until_ns);
        }
        host.drain();
        host.check_accounts();
        let scheduler = host.queue.scheduler();
        let busy_ns = scheduler.busy_ns(host.now_ns);
        let service_ns: u64 = scheduler.accounts().map(|(_, account)| account.service_ns).sum();
        // A share is rounded down to 1/256 ns at each change, and to a ns at the end.
        let ios = host.disk.begun.len() as u64;
        prop_assert!(service_ns <= busy_ns && busy_ns - service_ns <= 2 * ios, "{service_ns} of {busy_ns} ns");
        prop_assert!(scheduler.accounts().all(|(_, account)| account.service_ns <= account.active_until(host.now_ns)));
    }
}
