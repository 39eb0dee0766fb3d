//! Who gets how much.

use hoistway_core::Kind;
use hoistway_serve::tenant::{Limits, Rate, Reserve, Terms};

use crate::world::*;

fn terms(weight: u16) -> Terms {
    Terms { weight, ..Terms::default() }
}

/// What two backlogged tenants get of a null drive of 1 ms: bytes and requests of the first for one of the second.
fn ratio(kind: Kind, weights: [u16; 2], clients: [Client; 2], depth: u32) -> (f64, f64) {
    let mut world = World::new(&millisecond(kind, depth));
    for (name, weight) in ["one", "two"].into_iter().zip(weights) {
        world.device.set_tenant(name, &terms(weight), 0).expect("good terms");
    }
    let [one, two] = clients;
    world.add(Some("one"), one.at(0, 256 * MIB));
    world.add(Some("two"), two.at(256 * MIB, 256 * MIB));
    world.run_until(SECOND);
    world.count_from_here();
    world.run_until(21 * SECOND);
    let [one, two] = [0, 1].map(|at| (world.clients[at].served_bytes as f64, world.clients[at].served as f64));
    (one.0 / two.0, one.1 / two.1)
}

#[test]
fn two_backlogged_tenants_get_equal_shares_whatever_their_depth() {
    for kind in [Kind::Bfq, Kind::Fiops] {
        let (_, requests) = ratio(kind, [100, 100], [Client::reads(4, 4096), Client::reads(64, 4096)], 1);
        assert!((requests - 1.0).abs() <= 0.05, "{kind:?}: {requests}");
    }
}

#[test]
fn weights_of_1_to_4_are_shares_of_1_to_4() {
    for kind in [Kind::Bfq, Kind::Fiops] {
        let (_, requests) = ratio(kind, [100, 400], [Client::reads(64, 4096), Client::reads(8, 4096)], 1);
        assert!((requests * 4.0 - 1.0).abs() <= 0.05, "{kind:?}: {requests}");
    }
}

#[test]
fn small_and_large_requests_share_in_the_elevators_own_currency() {
    let clients = || [Client::reads(16, 4096), Client::reads(16, MIB)];
    let (_, requests) = ratio(Kind::Fiops, [100, 100], clients(), 1);
    assert!((requests - 1.0).abs() <= 0.05, "fiops shares requests: {requests}");
    let (bytes, _) = ratio(Kind::Bfq, [100, 100], clients(), 1);
    assert!((bytes - 1.0).abs() <= 0.05, "bfq shares sectors: {bytes}");
}

#[test]
fn probe_print() {
    for kind in [Kind::Bfq, Kind::Fiops, Kind::Cfq] {
        for depth in [1, 2, 8] {
            let a = ratio(kind, [100, 100], [Client::reads(4, 4096), Client::reads(64, 4096)], depth);
            let b = ratio(kind, [100, 400], [Client::reads(64, 4096), Client::reads(8, 4096)], depth);
            let c = ratio(kind, [100, 100], [Client::reads(16, 4096), Client::reads(16, MIB)], depth);
            println!("{kind:?} depth {depth}: qd {a:?} weights {b:?} sizes {c:?}");
        }
    }
    let _ = (Limits::default(), Rate { per_second: 1, burst: 1 }, Reserve { bytes_per_second: 1, request_bytes: 4096 });
}

struct Print;
impl hoistway_serve::device::Record for Print {
    fn record(&mut self, now_ns: u64, event: &hoistway_core::Event) {
        if now_ns > 90 * MS && now_ns < 111 * MS {
            println!("{now_ns} {event:?}");
        }
    }
}

#[test]
fn probe_cfq() {
    let mut world = World::new(&millisecond(Kind::Cfq, 8));
    for (name, weight) in ["one", "two"].into_iter().zip([100, 100]) {
        world.device.set_tenant(name, &terms(weight), 0).expect("good terms");
    }
    world.device.set_recorder(Some(Box::new(Print)));
    world.add(Some("one"), Client::reads(4, 4096).at(0, 256 * MIB));
    world.add(Some("two"), Client::reads(64, 4096).at(256 * MIB, 256 * MIB));
    for s in 1..15 {
        world.run_until(s * SECOND / 10);
        println!("{} {}", world.clients[0].served, world.clients[1].served);
    }
    println!("{:?}", world.device.tunables().map(|(t, v)| (t.name, v)).collect::<Vec<_>>());
}
