//! Shares of tenants and clients.

use hoistway_config::DeviceConfig;
use hoistway_core::{Kind, ReserveError};
use hoistway_qos::DiskQueueConfig;
use hoistway_qos::TermsError;
use hoistway_qos::{Limits, Reserve, Terms};

use crate::testbed::*;

fn terms(weight: u16) -> Terms {
    Terms { weight, ..Terms::default() }
}

/// Runs two backlogged tenants on a null drive of 1 ms. Returns the ratios of their bytes and of
/// their requests.
fn ratio(kind: Kind, weights: [u16; 2], clients: [Client; 2], depth: u32) -> (f64, f64) {
    ratio_tuned(kind, &[], weights, clients, depth)
}

fn ratio_tuned(
    kind: Kind,
    tunables: &[(&str, i64)],
    weights: [u16; 2],
    clients: [Client; 2],
    depth: u32,
) -> (f64, f64) {
    let mut config = millisecond(kind, depth);
    config.queue.tunables.extend(tunables.iter().map(|(name, value)| ((*name).to_owned(), *value)));
    let mut testbed = Testbed::new(&config);
    for (name, weight) in ["one", "two"].into_iter().zip(weights) {
        testbed.device.scheduler_mut().set_tenant(name, &terms(weight), 0).expect("good terms");
    }
    let [one, two] = clients;
    testbed.add(Some("one"), one.at(0, 256 * MIB));
    testbed.add(Some("two"), two.at(256 * MIB, 256 * MIB));
    testbed.run_until(SECOND);
    testbed.reset_counts();
    testbed.run_until((if tunables.is_empty() { 21 } else { 201 }) * SECOND);
    let [one, two] = [0, 1].map(|at| (testbed.clients[at].served_bytes as f64, testbed.clients[at].served as f64));
    (one.0 / two.0, one.1 / two.1)
}

#[test]
fn two_backlogged_tenants_get_equal_shares_whatever_their_depth() {
    for kind in [Kind::Bfq, Kind::Fiops, Kind::Paternoster] {
        let (_, requests) = ratio(kind, [100, 100], [Client::reads(4, 4096), Client::reads(64, 4096)], 1);
        assert!((requests - 1.0).abs() <= 0.05, "{kind:?}: {requests}");
    }
}

#[test]
fn weights_of_1_to_4_are_shares_of_1_to_4() {
    for kind in [Kind::Bfq, Kind::Fiops, Kind::Paternoster] {
        let (_, requests) = ratio(kind, [100, 400], [Client::reads(64, 4096), Client::reads(8, 4096)], 1);
        assert!((requests * 4.0 - 1.0).abs() <= 0.05, "{kind:?}: {requests}");
    }
}

#[test]
fn shares_are_counted_in_the_elevators_own_unit() {
    let clients = || [Client::reads(16, 4096), Client::reads(16, MIB)];
    let (_, requests) = ratio(Kind::Fiops, [100, 100], clients(), 1);
    assert!((requests - 1.0).abs() <= 0.05, "fiops shares requests: {requests}");
    // A budget also ends after timeout_sync, and then counts as used up. On a drive that takes as
    // long for 4 KiB as for 1 MiB, this ends the budgets of small requests. Budgets of 2 MiB that
    // may take 10 s end by sectors alone.
    let bytes = ratio_tuned(Kind::Bfq, &[("max_budget", 4096), ("timeout_sync", 10_000)], [100, 100], clients(), 1).0;
    assert!((bytes - 1.0).abs() <= 0.05, "bfq shares sectors: {bytes}");
}

#[test]
fn a_weight_can_be_changed_while_requests_wait() {
    let mut testbed = two_tenants(&millisecond(Kind::Fiops, 1), [100, 100]);
    testbed.run_until(2 * SECOND);
    testbed.device.scheduler_mut().set_tenant("two", &terms(300), testbed.engine.now_ns).expect("good terms");
    testbed.reset_counts();
    testbed.run_until(22 * SECOND);
    let ratio = testbed.clients[1].served as f64 / testbed.clients[0].served as f64;
    assert!((ratio / 3.0 - 1.0).abs() <= 0.05, "{ratio}");
}

#[test]
fn a_tenant_gains_nothing_by_more_connections() {
    for kind in [Kind::Bfq, Kind::Fiops, Kind::Paternoster] {
        let mut testbed = two_tenants(&millisecond(kind, 1), [100, 100]);
        for _ in 0..7 {
            testbed.add(Some("two"), Client::reads(8, 4096).at(256 * MIB, 256 * MIB));
        }
        testbed.run_until(SECOND);
        testbed.reset_counts();
        testbed.run_until(21 * SECOND);
        let two: u64 = testbed.clients[1..].iter().map(|client| client.served).sum();
        let ratio = two as f64 / testbed.clients[0].served as f64;
        assert!((ratio - 1.0).abs() <= 0.05, "{kind:?}: {ratio}");
    }
}

#[test]
fn tenants_of_a_group_share_what_the_group_has() {
    let mut testbed = Testbed::new(&millisecond(Kind::Bfq, 1));
    testbed.device.scheduler_mut().set_group("guests", None, 100, &Limits::default(), 0).expect("a good group");
    testbed.device.scheduler_mut().set_tenant("host", &terms(100), 0).expect("good terms");
    for guest in ["a", "b"] {
        let terms = Terms { parent: Some("guests".to_owned()), ..Terms::default() };
        testbed.device.scheduler_mut().set_tenant(guest, &terms, 0).expect("good terms");
    }
    for name in ["host", "a", "b"] {
        testbed.add(Some(name), Client::reads(8, 4096));
    }
    testbed.run_until(20 * SECOND);
    let [host, a, b] = [0, 1, 2].map(|at| testbed.clients[at].served as f64);
    assert!((host / (a + b) - 1.0).abs() <= 0.05 && (a / b - 1.0).abs() <= 0.05, "{host} {a} {b}");
}

#[test]
fn a_reservation_holds_within_2_percent_under_load() {
    for kind in [Kind::Bfq, Kind::Fiops, Kind::Noop, Kind::MqDeadline] {
        let config = DeviceConfig {
            queue: DiskQueueConfig { bandwidth: Some(64 * MIB), position_ns: Some(0), ..millisecond(kind, 1).queue },
            ..millisecond(kind, 1)
        };
        let mut testbed = Testbed::new(&config);
        // 200 requests of 64 KiB a second, of the 1000 that the drive serves.
        let reserve = Some(Reserve { bytes_per_second: 200 * 65_536, request_bytes: 65_536 });
        let warnings =
            testbed.device.scheduler_mut().set_tenant("film", &Terms { reserve, ..terms(1) }, 0).expect("room for it");
        assert_eq!(warnings.len(), usize::from(!kind.info().groups), "{warnings:?}");
        testbed.device.scheduler_mut().set_tenant("greedy", &terms(1000), 0).expect("good terms");
        testbed.add(Some("film"), Client::reads(8, 65_536));
        testbed.add(Some("greedy"), Client::reads(64, 65_536));
        testbed.add(Some("greedy"), Client::reads(64, 65_536));
        testbed.run_until(SECOND);
        testbed.reset_counts();
        testbed.run_until(61 * SECOND);
        let rate = testbed.clients[0].served as f64 / 60.0;
        assert!(rate >= 200.0 * 0.98, "{kind:?}: {rate} requests a second of the 200 that are reserved");
    }
}

#[test]
fn an_excessive_reservation_is_refused_with_the_free_rate() {
    let config = DeviceConfig {
        queue: DiskQueueConfig {
            bandwidth: Some(100_000_000),
            position_ns: Some(0),
            ..millisecond(Kind::Fiops, 1).queue
        },
        ..millisecond(Kind::Fiops, 1)
    };
    let mut testbed = Testbed::new(&config);
    let asking = |bytes_per_second| Terms {
        reserve: Some(Reserve { bytes_per_second, request_bytes: 65_536 }),
        ..Terms::default()
    };
    testbed.device.scheduler_mut().set_tenant("first", &asking(50_000_000), 0).expect("there is room");
    let refused =
        testbed.device.scheduler_mut().set_tenant("second", &asking(50_000_000), 0).expect_err("85 % can be reserved");
    let TermsError::Reserve { source: ReserveError::NoCapacity { headroom_bytes_per_second }, .. } = refused else {
        panic!("{refused}");
    };
    assert!((34_000_000..36_000_000).contains(&headroom_bytes_per_second), "{headroom_bytes_per_second}");
    assert!(refused.to_string().contains(&headroom_bytes_per_second.to_string()), "{refused}");
    testbed.device.scheduler_mut().set_tenant("second", &asking(30_000_000), 0).expect("there is room for that");
}

#[test]
fn a_reservation_outlives_a_switch_of_the_elevator() {
    let config = DeviceConfig {
        queue: DiskQueueConfig { bandwidth: Some(64 * MIB), position_ns: Some(0), ..millisecond(Kind::Bfq, 1).queue },
        ..millisecond(Kind::Bfq, 1)
    };
    let mut testbed = Testbed::new(&config);
    let reserve = Some(Reserve { bytes_per_second: 300 * 65_536, request_bytes: 65_536 });
    testbed.device.scheduler_mut().set_tenant("film", &Terms { reserve, ..terms(1) }, 0).expect("room for it");
    testbed.device.scheduler_mut().set_tenant("greedy", &terms(1000), 0).expect("good terms");
    testbed.add(Some("film"), Client::reads(8, 65_536));
    testbed.add(Some("greedy"), Client::reads(64, 65_536));
    testbed.run_until(SECOND);
    testbed.device.scheduler_mut().switch(Kind::Noop, testbed.engine.now_ns).expect("nothing else is being switched");
    testbed.run_until(2 * SECOND);
    assert_eq!(
        (testbed.device.scheduler().elevator(), testbed.device.scheduler().unreserved("film")),
        (Kind::Noop, None)
    );
    testbed.reset_counts();
    testbed.run_until(32 * SECOND);
    let rate = testbed.clients[0].served as f64 / 30.0;
    assert!(rate >= 300.0 * 0.98, "{rate} requests a second of the 300 that are reserved");
}

#[test]
fn a_lone_request_waits_for_few_requests_of_other_clients() {
    // A client with one request every 10 ms, alone and beside three clients that keep 32 requests
    // in flight, at depth 8 on a null drive of 1 ms.
    let p99 = |rivals: u32| {
        let mut testbed = Testbed::new(&millisecond(Kind::Fiops, 8));
        for name in ["lone", "a", "b", "c"] {
            testbed.device.scheduler_mut().set_tenant(name, &terms(100), 0).expect("good terms");
        }
        testbed.add(Some("lone"), Client { pause_ns: 10 * MS + 137_000, ..Client::reads(1, 4096) });
        for name in ["a", "b", "c"].iter().take(rivals as usize) {
            testbed.add(Some(name), Client::reads(32, 4096));
        }
        testbed.run_until(20 * SECOND);
        let latencies = &mut testbed.clients[0].latencies_ns;
        latencies.sort_unstable();
        latencies[latencies.len() * 99 / 100]
    };
    let (alone, beside) = (p99(0), p99(3));
    assert!(beside <= 2 * alone + 3 * MS, "alone {alone} ns, beside three rivals {beside} ns");
}

#[test]
fn clients_of_a_memory_device_take_turns() {
    let mut testbed = Testbed::new(&DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Fiops), ..config("n").queue },
        ..config("n")
    });
    let [greedy, modest] =
        [0, 1].map(|_| testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join"));
    let run = |testbed: &mut Testbed| {
        let mut done = Vec::new();
        testbed.device.run(&mut testbed.engine, 0, &mut done);
        done.iter().map(|done| done.ticket).collect::<Vec<_>>()
    };
    (0..64).for_each(|ticket| testbed.device.submit(greedy, read(ticket, ticket << 20, 4096), 0));
    (64..68).for_each(|ticket| testbed.device.submit(modest, read(ticket, ticket << 20, 4096), 0));
    let first = run(&mut testbed);
    let of_modest = first.iter().filter(|ticket| **ticket >= 64).count();
    assert_eq!((first.len(), of_modest), (8, 4), "a run serves eight, and each has half of them: {first:?}");
    // A client alone gets the whole device; a turn reserved for a client that has left delays no
    // other client.
    testbed.device.submit(modest, read(70, 0, 4096), 0);
    testbed.device.leave(greedy, 0);
    let next = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    (71..91).for_each(|ticket| testbed.device.submit(next, read(ticket, ticket << 20, 4096), 0));
    testbed.device.leave(modest, 0);
    assert_eq!(run(&mut testbed).len(), 20);
}

#[test]
fn elevators_that_starve_clients_on_flash_get_a_warning() {
    for depth in [1, 8] {
        for &kind in Kind::ALL {
            let mut testbed = Testbed::new(&millisecond(kind, depth));
            let is_warned_of = testbed.device.scheduler().elevator_warning().is_some();
            for (name, requests) in [("few", 4), ("many", 64)] {
                testbed.device.scheduler_mut().set_tenant(name, &terms(100), 0).expect("good terms");
                testbed.add(Some(name), Client::reads(requests, 4096));
            }
            testbed.run_until(SECOND);
            testbed.reset_counts();
            testbed.run_until(5 * SECOND);
            let [few, many] = [0, 1].map(|at| testbed.clients[at].served);
            assert_eq!(is_warned_of, few * 50 < many, "{kind:?} at depth {depth}: {few} {many}");
        }
    }
    let disk = hoistway_drive::Profile::builtin("sata-7200-2006");
    let config = DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Cfq), ..config("disk").queue },
        drive: disk,
        ..config("disk")
    };
    assert_eq!(Testbed::new(&config).device.scheduler().elevator_warning(), None, "it is made for disks");
}

/// Two tenants that always have 16 requests in flight.
fn two_tenants(config: &DeviceConfig, weights: [u16; 2]) -> Testbed {
    let mut testbed = Testbed::new(config);
    for (name, weight) in ["one", "two"].into_iter().zip(weights) {
        testbed.device.scheduler_mut().set_tenant(name, &terms(weight), 0).expect("good terms");
        testbed.add(Some(name), Client::reads(16, 4096));
    }
    testbed
}
