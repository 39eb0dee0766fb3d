//! Order: with an elevator that keeps the order of arrival, limits and switches keep it for each
//! tenant.

use hoistway_core::Kind;
use hoistway_qos::{Limits, RequestOp, Terms};
use proptest::prelude::*;

use crate::host::*;

#[derive(Clone, Debug)]
enum Step {
    Submit { client: usize, length: u64 },
    Pass { us: u64 },
    Limits { tenant: usize, bytes: Option<u64>, operations: Option<u64> },
    Depth { depth: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![Just(4096u64), 1u64..100_000, 1_000_000u64..4_000_000];
    let step = prop_oneof![
        10 => (0usize..4, length).prop_map(|(client, length)| Step::Submit { client, length }),
        3 => (0u64..50_000).prop_map(|us| Step::Pass { us }),
        1 => (0usize..2, prop::option::of(100_000u64..10_000_000), prop::option::of(5u64..500))
            .prop_map(|(tenant, bytes, operations)| Step::Limits { tenant, bytes, operations }),
        1 => (1u32..8).prop_map(|depth| Step::Depth { depth }),
    ];
    prop::collection::vec(step, 1..80)
}

const TENANTS: [&str; 2] = ["a", "b"];

/// Returns the tickets of a tenant in the order in which their first bytes began.
fn begun(host: &Host, of: &[u64]) -> Vec<u64> {
    let mut seen = Vec::new();
    for begun in host.disk.begun.iter().filter(|begun| of.contains(&begun.ticket)) {
        if !seen.contains(&begun.ticket) {
            seen.push(begun.ticket);
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn requests_of_a_tenant_begin_in_order_of_arrival_under_noop(steps in steps()) {
        let mut host = Host::new(&plain(Kind::Noop, 2), Ends::Later, 500 * US);
        let mut submitted = [const { Vec::new() }; 2];
        let clients = [0, 1].map(|tenant| {
            host.tenant(TENANTS[tenant], &Terms::default());
            [0, 1].map(|_| host.join(Some(TENANTS[tenant])))
        });
        for step in steps {
            match step {
                Step::Submit { client, length } => {
                    let (tenant, at) = (client / 2, client % 2);
                    let ticket = host.submit(clients[tenant][at], TENANTS[tenant], RequestOp::Read, MIB, length);
                    submitted[tenant].push(ticket);
                }
                Step::Pass { us } => {
                    let until_ns = host.now_ns + us * US;
                    host.run_until(until_ns);
                }
                Step::Limits { tenant, bytes, operations } => {
                    let bytes = bytes.and_then(|bytes| rate(bytes, bytes / 10));
                    let operations = operations.and_then(|operations| rate(operations, 2));
                    host.tenant(TENANTS[tenant], &limited(bytes, operations));
                }
                Step::Depth { depth } => host.queue.scheduler_mut().set_depth(depth),
            }
        }
        host.drain();
        for of in &submitted {
            prop_assert_eq!(&begun(&host, of), of);
        }
    }

    #[test]
    fn limits_hold_over_every_window_at_the_disk(
        tenant_rate in 1_000_000u64..50_000_000,
        tenant_burst in 1u64..1_000_000,
        group_rate in 1_000_000u64..50_000_000,
        group_burst in 1u64..1_000_000,
        requests in prop::collection::vec((0usize..2, 1u64..3_000_000, 0u64..100_000), 1..60),
    ) {
        // A disk that takes everything at once: what begins there is what the limits let pass.
        let mut host = Host::new(&plain(Kind::Noop, 4096), Ends::Later, US);
        let in_group = |limits: Limits| Terms { parent: Some("g".to_owned()), limits, ..Terms::default() };
        let group = Limits { bytes: rate(group_rate, group_burst), operations: None };
        host.queue.scheduler_mut().set_group("g", None, 100, &group, 0).expect("a good group");
        host.tenant("a", &in_group(Limits { bytes: rate(tenant_rate, tenant_burst), operations: None }));
        host.tenant("b", &in_group(Limits::default()));
        let clients = TENANTS.map(|name| host.join(Some(name)));
        let mut of_a = Vec::new();
        for (tenant, length, pause_us) in requests {
            let until_ns = host.now_ns + pause_us * US;
            host.run_until(until_ns);
            let ticket = host.submit(clients[tenant], TENANTS[tenant], RequestOp::Read, 0, length);
            of_a.extend((tenant == 0).then_some(ticket));
        }
        host.drain();
        // A request begins piece by piece, a microsecond or two after one another. So a window has
        // at most the burst, the tokens of its length and of 10 us more, and one request.
        let check = |of: &dyn Fn(u64) -> bool, rate: u64, burst: u64| {
            let ios: Vec<_> = host.disk.begun.iter().filter(|begun| of(begun.ticket)).collect();
            for from in 0..ios.len() {
                let mut bytes = 0;
                for io in &ios[from..] {
                    bytes += io.length;
                    let ns = io.at_ns - ios[from].at_ns + 10 * US;
                    let most = burst + 3_000_000 + (u128::from(rate) * u128::from(ns) / u128::from(SECOND)) as u64 + 1;
                    assert!(bytes <= most, "{bytes} of at most {most} bytes in {ns} ns");
                }
            }
        };
        check(&|ticket| of_a.contains(&ticket), tenant_rate, tenant_burst);
        check(&|_| true, group_rate, group_burst);
    }
}

#[test]
fn a_switch_keeps_the_order_of_requests_that_arrive_during_it() {
    let mut host = Host::new(&plain(Kind::Deadline, 1), Ends::Later, MS);
    let member = host.join(None);
    // Deadline serves these by address, upwards.
    let before = [9, 3, 6].map(|at| host.submit(member, DEFAULT, RequestOp::Read, at * MIB, 4096));
    host.run();
    let now_ns = host.now_ns;
    host.queue.scheduler_mut().switch(Kind::Noop, now_ns).expect("the first switch");
    assert!(host.queue.scheduler().is_switching());
    let after = [8, 2, 5].map(|at| host.submit(member, DEFAULT, RequestOp::Read, at * MIB, 4096));
    host.drain();
    assert_eq!(host.queue.scheduler().elevator(), Kind::Noop);
    let order = begun(&host, &[before, after].concat());
    assert_eq!(order[3..], after, "noop gets them in order of arrival");
    let mut drained = order[..3].to_vec();
    drained.sort_unstable();
    assert_eq!(drained, before, "first what deadline had");
}
