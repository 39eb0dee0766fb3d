//! Caps hold, whoever asks for how much.

use hoistway_core::Kind;
use hoistway_qos::RequestOp;
use hoistway_qos::{Limits, Rate, Terms};

use crate::world::*;

fn limited(bytes: Option<Rate>, operations: Option<Rate>) -> Terms {
    Terms { limits: Limits { bytes, operations }, ..Terms::default() }
}

fn rate(per_second: u64, burst: u64) -> Option<Rate> {
    Some(Rate { per_second, burst })
}

/// Bytes and requests a second of the first client in 60 s, after the bursts were spent in the
/// first second.
fn minute(world: &mut World) -> (f64, f64) {
    world.run_until(SECOND);
    world.count_from_here();
    world.run_until(61 * SECOND);
    (world.clients[0].served_bytes as f64 / 60.0, world.clients[0].served as f64 / 60.0)
}

#[test]
fn a_cap_of_bytes_and_one_of_operations_hold_to_a_fiftieth_over_a_minute() {
    for (bytes, length) in [(20 * MIB, 65_536), (3_000_000, 4096), (5 * MIB, 3 * MIB)] {
        let mut world = World::new(&millisecond(Kind::Fiops, 8));
        world.device.scheduler_mut().set_tenant("capped", &limited(rate(bytes, MIB), None), 0).expect("good terms");
        world.add(Some("capped"), Client::reads(32, length));
        let (got, _) = minute(&mut world);
        assert!((got / bytes as f64 - 1.0).abs() <= 0.02, "{length} bytes: {got} of {bytes} bytes a second");
    }
    let mut world = World::new(&millisecond(Kind::Fiops, 8));
    world.device.scheduler_mut().set_tenant("capped", &limited(None, rate(150, 10)), 0).expect("good terms");
    world.add(Some("capped"), Client::reads(32, 65_536));
    let (_, got) = minute(&mut world);
    assert!((got / 150.0 - 1.0).abs() <= 0.02, "{got} of 150 operations a second");
}

#[test]
fn the_tighter_of_two_caps_counts() {
    let mut world = World::new(&millisecond(Kind::Noop, 8));
    world
        .device
        .scheduler_mut()
        .set_tenant("capped", &limited(rate(100 * MIB, MIB), rate(100, 1)), 0)
        .expect("good terms");
    world.add(Some("capped"), Client::reads(32, 65_536));
    let (_, got) = minute(&mut world);
    assert!((got / 100.0 - 1.0).abs() <= 0.02, "{got} of 100 operations a second");
}

#[test]
fn the_connections_of_a_tenant_share_its_cap_and_others_have_none() {
    let mut world = World::new(&millisecond(Kind::Fiops, 8));
    world.device.scheduler_mut().set_tenant("capped", &limited(rate(10 * MIB, MIB), None), 0).expect("good terms");
    for _ in 0..3 {
        world.add(Some("capped"), Client::reads(8, 65_536));
    }
    world.add(None, Client::reads(64, 65_536));
    minute(&mut world);
    let capped: u64 = world.clients[..3].iter().map(|client| client.served_bytes).sum();
    let (capped, free) = (capped as f64 / 60.0, world.clients[3].served as f64 / 60.0);
    assert!((capped / (10.0 * MIB as f64) - 1.0).abs() <= 0.02, "{capped}");
    assert!(free >= 7_800.0, "of 8000 requests a second 160 are the others': {free}");
}

#[test]
fn the_cap_of_a_group_holds_for_all_in_it_and_is_shared_by_weight() {
    let mut world = World::new(&millisecond(Kind::Fiops, 8));
    let limits = Limits { bytes: rate(30 * MIB, MIB), operations: None };
    world.device.scheduler_mut().set_group("guests", None, 100, &limits, 0).expect("a good group");
    for (name, weight) in [("a", 100), ("b", 200)] {
        let terms = Terms { parent: Some("guests".to_owned()), weight, ..Terms::default() };
        world.device.scheduler_mut().set_tenant(name, &terms, 0).expect("good terms");
    }
    world.add(Some("a"), Client::reads(32, 4096));
    world.add(Some("b"), Client::reads(32, 512 << 10));
    minute(&mut world);
    let [a, b] = [0, 1].map(|at| world.clients[at].served_bytes as f64 / 60.0);
    assert!(((a + b) / (30.0 * MIB as f64) - 1.0).abs() <= 0.02, "together: {a} + {b}");
    // 4 KiB requests come to 8 ms of the drive's 8 a millisecond at most: more than a third of the
    // cap.
    assert!((b / a / 2.0 - 1.0).abs() <= 0.05, "weights 1:2: {a} and {b}");
}

#[test]
fn a_pause_is_worth_a_burst_and_no_more() {
    let mut world = World::new(&millisecond(Kind::Noop, 8));
    world.device.scheduler_mut().set_tenant("capped", &limited(rate(MIB, 4 * MIB), None), 0).expect("good terms");
    let member = world.device.scheduler_mut().join(Some("capped"), None, 0).expect("room for a client");
    world.engine.now_ns = 100 * SECOND;
    for ticket in 0..10 {
        world.device.submit(member, read(ticket, 0, MIB), 100 * SECOND);
    }
    let mut done = Vec::new();
    for step in 0..=20 {
        world.engine.now_ns = 100 * SECOND + step * 10 * MS;
        let now_ns = world.now();
        world.device.run(&mut world.engine, now_ns, &mut done);
    }
    assert_eq!(done.len(), 4, "4 MiB of the burst at once, and then 1 MiB a second");
    assert!(wait_for(&mut world, 9, 7 * SECOND).is_some());
    assert!(world.now() >= 106 * SECOND && world.now() < 106 * SECOND + 10 * MS, "{}", world.now());
}

#[test]
fn flushes_pass_limits_and_trims_count_as_operations_alone() {
    let mut world = World::new(&millisecond(Kind::Noop, 8));
    world.device.scheduler_mut().set_tenant("capped", &limited(rate(1, 1), rate(1_000, 10)), 0).expect("good terms");
    let member = world.device.scheduler_mut().join(Some("capped"), None, 0).expect("room for a client");
    assert!(ask(&mut world, member, read(1, 0, 1), MS * 2).is_some(), "the burst");
    assert!(ask(&mut world, member, read(2, 0, 4096), MS * 200).is_none(), "a byte a second");
    assert!(ask(&mut world, member, simple(3, RequestOp::Flush), MS * 2).is_some());
    let free = world.device.scheduler_mut().join(None, None, world.engine.now_ns).expect("room for a client");
    assert!(ask(&mut world, free, read(4, 0, 4096), MS * 2).is_some(), "others are not held back");
    let other =
        world.device.scheduler_mut().set_tenant("trimmer", &limited(rate(1, 1), rate(1_000, 10)), world.engine.now_ns);
    assert_eq!(other, Ok(Vec::new()));
    let trimmer =
        world.device.scheduler_mut().join(Some("trimmer"), None, world.engine.now_ns).expect("room for a client");
    let trim = hoistway_blockdev::Work { length: MIB, ..simple(5, RequestOp::Trim) };
    assert!(ask(&mut world, trimmer, trim, MS * 2).is_some(), "it moves no bytes");
}

#[test]
fn a_raised_cap_counts_at_once() {
    let mut world = World::new(&millisecond(Kind::Noop, 8));
    world.device.scheduler_mut().set_tenant("capped", &limited(rate(1, 1), None), 0).expect("good terms");
    let member = world.device.scheduler_mut().join(Some("capped"), None, 0).expect("room for a client");
    world.device.submit(member, read(1, 0, 4096), 0);
    world.device.submit(member, read(2, 0, 4096), 0);
    assert!(wait_for(&mut world, 2, 10 * SECOND).is_none());
    world.device.scheduler_mut().set_tenant("capped", &Terms::default(), world.engine.now_ns).expect("good terms");
    assert!(wait_for(&mut world, 2, 10 * MS).is_some());
}

#[test]
fn a_tenant_that_has_passed_much_is_not_kept_waiting_by_a_limit_that_its_group_gets_later() {
    let mut world = World::new(&millisecond(Kind::Fiops, 8));
    world.device.scheduler_mut().set_group("g", None, 100, &Limits::default(), 0).expect("a good group");
    let within = |limits: Limits| Terms { parent: Some("g".to_owned()), limits, ..Terms::default() };
    // Bytes by the million for one, by its own limit; nothing for the other.
    let own = Limits { bytes: rate(500 * MIB, MIB), operations: None };
    world.device.scheduler_mut().set_tenant("old", &within(own), 0).expect("good terms");
    world.device.scheduler_mut().set_tenant("new", &within(Limits::default()), 0).expect("good terms");
    world.add(Some("old"), Client::reads(16, 65_536));
    world.run_until(10 * SECOND);
    let limits = Limits { bytes: None, operations: rate(100, 1) };
    let now_ns = world.now();
    world.device.scheduler_mut().set_group("g", None, 100, &limits, now_ns).expect("a good group");
    world.device.scheduler_mut().set_tenant("old", &within(Limits::default()), now_ns).expect("good terms");
    world.add(Some("new"), Client::reads(16, 65_536));
    world.run_until(15 * SECOND);
    world.count_from_here();
    world.run_until(35 * SECOND);
    let shares: Vec<f64> = world.clients.iter().map(|client| client.served as f64 / 20.0).collect();
    assert!(shares.iter().all(|share| (share / 50.0 - 1.0).abs() <= 0.05), "{shares:?} of 50 operations a second each");
}
