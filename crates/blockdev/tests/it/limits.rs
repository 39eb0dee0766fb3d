//! Limits hold for every mix of clients.

use hoistway_core::Kind;
use hoistway_qos::RequestOp;
use hoistway_qos::{Limits, Rate, Terms};

use crate::testbed::*;

fn limited(bytes: Option<Rate>, operations: Option<Rate>) -> Terms {
    Terms { limits: Limits { bytes, operations }, ..Terms::default() }
}

fn rate(per_second: u64, burst: u64) -> Option<Rate> {
    Some(Rate { per_second, burst })
}

/// Returns the bytes and requests a second of the first client over 60 s, after the first second
/// has used up the bursts.
fn minute(testbed: &mut Testbed) -> (f64, f64) {
    testbed.run_until(SECOND);
    testbed.reset_counts();
    testbed.run_until(61 * SECOND);
    (testbed.clients[0].served_bytes as f64 / 60.0, testbed.clients[0].served as f64 / 60.0)
}

#[test]
fn limits_of_bytes_and_operations_hold_within_2_percent() {
    for (bytes, length) in [(20 * MIB, 65_536), (3_000_000, 4096), (5 * MIB, 3 * MIB)] {
        let mut testbed = Testbed::new(&millisecond(Kind::Fiops, 8));
        testbed.device.scheduler_mut().set_tenant("capped", &limited(rate(bytes, MIB), None), 0).expect("good terms");
        testbed.add(Some("capped"), Client::reads(32, length));
        let (got, _) = minute(&mut testbed);
        assert!((got / bytes as f64 - 1.0).abs() <= 0.02, "{length} bytes: {got} of {bytes} bytes a second");
    }
    let mut testbed = Testbed::new(&millisecond(Kind::Fiops, 8));
    testbed.device.scheduler_mut().set_tenant("capped", &limited(None, rate(150, 10)), 0).expect("good terms");
    testbed.add(Some("capped"), Client::reads(32, 65_536));
    let (_, got) = minute(&mut testbed);
    assert!((got / 150.0 - 1.0).abs() <= 0.02, "{got} of 150 operations a second");
}

#[test]
fn the_tighter_of_two_limits_applies() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 8));
    testbed
        .device
        .scheduler_mut()
        .set_tenant("capped", &limited(rate(100 * MIB, MIB), rate(100, 1)), 0)
        .expect("good terms");
    testbed.add(Some("capped"), Client::reads(32, 65_536));
    let (_, got) = minute(&mut testbed);
    assert!((got / 100.0 - 1.0).abs() <= 0.02, "{got} of 100 operations a second");
}

#[test]
fn the_connections_of_a_tenant_share_its_limit() {
    let mut testbed = Testbed::new(&millisecond(Kind::Fiops, 8));
    testbed.device.scheduler_mut().set_tenant("capped", &limited(rate(10 * MIB, MIB), None), 0).expect("good terms");
    for _ in 0..3 {
        testbed.add(Some("capped"), Client::reads(8, 65_536));
    }
    testbed.add(None, Client::reads(64, 65_536));
    minute(&mut testbed);
    let capped: u64 = testbed.clients[..3].iter().map(|client| client.served_bytes).sum();
    let (capped, free) = (capped as f64 / 60.0, testbed.clients[3].served as f64 / 60.0);
    assert!((capped / (10.0 * MIB as f64) - 1.0).abs() <= 0.02, "{capped}");
    assert!(free >= 7_800.0, "of 8000 requests a second 160 are the others': {free}");
}

#[test]
fn the_limit_of_a_group_is_shared_by_weight() {
    let mut testbed = Testbed::new(&millisecond(Kind::Fiops, 8));
    let limits = Limits { bytes: rate(30 * MIB, MIB), operations: None };
    testbed.device.scheduler_mut().set_group("guests", None, 100, &limits, 0).expect("a good group");
    for (name, weight) in [("a", 100), ("b", 200)] {
        let terms = Terms { parent: Some("guests".to_owned()), weight, ..Terms::default() };
        testbed.device.scheduler_mut().set_tenant(name, &terms, 0).expect("good terms");
    }
    testbed.add(Some("a"), Client::reads(32, 4096));
    testbed.add(Some("b"), Client::reads(32, 512 << 10));
    minute(&mut testbed);
    let [a, b] = [0, 1].map(|at| testbed.clients[at].served_bytes as f64 / 60.0);
    assert!(((a + b) / (30.0 * MIB as f64) - 1.0).abs() <= 0.02, "together: {a} + {b}");
    // 4 KiB requests are at most 8 of the drive's 8 a millisecond: more than a third of the limit.
    assert!((b / a / 2.0 - 1.0).abs() <= 0.05, "weights 1:2: {a} and {b}");
}

#[test]
fn a_pause_allows_one_burst() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 8));
    testbed.device.scheduler_mut().set_tenant("capped", &limited(rate(MIB, 4 * MIB), None), 0).expect("good terms");
    let member = testbed.device.scheduler_mut().join(Some("capped"), None, 0).expect("the client can join");
    testbed.engine.now_ns = 100 * SECOND;
    for ticket in 0..10 {
        testbed.device.submit(member, read(ticket, 0, MIB), 100 * SECOND);
    }
    let mut done = Vec::new();
    for step in 0..=20 {
        testbed.engine.now_ns = 100 * SECOND + step * 10 * MS;
        let now_ns = testbed.now();
        testbed.device.run(&mut testbed.engine, now_ns, &mut done);
    }
    assert_eq!(done.len(), 4, "4 MiB of the burst at once, and then 1 MiB a second");
    assert!(wait_for(&mut testbed, 9, 7 * SECOND).is_some());
    assert!(testbed.now() >= 106 * SECOND && testbed.now() < 106 * SECOND + 10 * MS, "{}", testbed.now());
}

#[test]
fn the_time_of_held_requests_is_counted_while_they_wait() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 8));
    testbed.device.scheduler_mut().set_tenant("capped", &limited(rate(MIB, MIB), None), 0).expect("good terms");
    let member = testbed.device.scheduler_mut().join(Some("capped"), None, 0).expect("the client can join");
    for ticket in 0..4 {
        testbed.device.submit(member, read(ticket, 0, MIB), 0);
    }
    let held_ns = |testbed: &Testbed, now_ns| {
        let account = testbed.device.scheduler().account("capped").expect("it has an account");
        (account.held, account.held_until(now_ns))
    };
    // The burst lets the first pass at once, the others pass after 1, 2 and 3 s.
    assert_eq!(held_ns(&testbed, 500 * MS), (3, 1500 * MS));
    assert!(wait_for(&mut testbed, 2, 5 * SECOND).is_some());
    let (held, sum_ns) = held_ns(&testbed, testbed.now());
    assert_eq!(held, 1);
    assert!(sum_ns.abs_diff(5 * SECOND) < 20 * MS, "1 s and twice 2 s: {sum_ns} ns");
    let now_ns = testbed.now();
    testbed.device.leave(member, now_ns);
    let after = held_ns(&testbed, now_ns + SECOND);
    assert_eq!(after, (0, sum_ns), "the last request left with its client");
}

#[test]
fn flushes_bypass_limits_and_trims_count_as_operations_only() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 8));
    testbed.device.scheduler_mut().set_tenant("capped", &limited(rate(1, 1), rate(1_000, 10)), 0).expect("good terms");
    let member = testbed.device.scheduler_mut().join(Some("capped"), None, 0).expect("the client can join");
    assert!(execute(&mut testbed, member, read(1, 0, 1), MS * 2).is_some(), "the burst");
    assert!(execute(&mut testbed, member, read(2, 0, 4096), MS * 200).is_none(), "a byte a second");
    assert!(execute(&mut testbed, member, without_data(3, RequestOp::Flush), MS * 2).is_some());
    let free = testbed.device.scheduler_mut().join(None, None, testbed.engine.now_ns).expect("the client can join");
    assert!(execute(&mut testbed, free, read(4, 0, 4096), MS * 2).is_some(), "others are not held back");
    let other = testbed.device.scheduler_mut().set_tenant(
        "trimmer",
        &limited(rate(1, 1), rate(1_000, 10)),
        testbed.engine.now_ns,
    );
    assert_eq!(other, Ok(Vec::new()));
    let trimmer =
        testbed.device.scheduler_mut().join(Some("trimmer"), None, testbed.engine.now_ns).expect("the client can join");
    let trim = hoistway_blockdev::BlockRequest { length: MIB, ..without_data(5, RequestOp::Trim) };
    assert!(execute(&mut testbed, trimmer, trim, MS * 2).is_some(), "it moves no bytes");
}

#[test]
fn a_raised_limit_applies_at_once() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 8));
    testbed.device.scheduler_mut().set_tenant("capped", &limited(rate(1, 1), None), 0).expect("good terms");
    let member = testbed.device.scheduler_mut().join(Some("capped"), None, 0).expect("the client can join");
    testbed.device.submit(member, read(1, 0, 4096), 0);
    testbed.device.submit(member, read(2, 0, 4096), 0);
    assert!(wait_for(&mut testbed, 2, 10 * SECOND).is_none());
    testbed.device.scheduler_mut().set_tenant("capped", &Terms::default(), testbed.engine.now_ns).expect("good terms");
    assert!(wait_for(&mut testbed, 2, 10 * MS).is_some());
}

#[test]
fn past_traffic_does_not_count_for_a_new_group_limit() {
    let mut testbed = Testbed::new(&millisecond(Kind::Fiops, 8));
    testbed.device.scheduler_mut().set_group("g", None, 100, &Limits::default(), 0).expect("a good group");
    let within = |limits: Limits| Terms { parent: Some("g".to_owned()), limits, ..Terms::default() };
    // The first tenant passes millions of bytes by its own limit, the other none.
    let own = Limits { bytes: rate(500 * MIB, MIB), operations: None };
    testbed.device.scheduler_mut().set_tenant("old", &within(own), 0).expect("good terms");
    testbed.device.scheduler_mut().set_tenant("new", &within(Limits::default()), 0).expect("good terms");
    testbed.add(Some("old"), Client::reads(16, 65_536));
    testbed.run_until(10 * SECOND);
    let limits = Limits { bytes: None, operations: rate(100, 1) };
    let now_ns = testbed.now();
    testbed.device.scheduler_mut().set_group("g", None, 100, &limits, now_ns).expect("a good group");
    testbed.device.scheduler_mut().set_tenant("old", &within(Limits::default()), now_ns).expect("good terms");
    testbed.add(Some("new"), Client::reads(16, 65_536));
    testbed.run_until(15 * SECOND);
    testbed.reset_counts();
    testbed.run_until(35 * SECOND);
    let shares: Vec<f64> = testbed.clients.iter().map(|client| client.served as f64 / 20.0).collect();
    assert!(shares.iter().all(|share| (share / 50.0 - 1.0).abs() <= 0.05), "{shares:?} of 50 operations a second each");
}
