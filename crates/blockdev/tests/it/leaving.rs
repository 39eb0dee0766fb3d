//! Clients that leave, elevators that are switched, and queues that are full: nothing is lost, and
//! nothing answered twice.

use hoistway_qos::DiskQueueConfig;
use hoistway_qos::ProcessPriority;
use std::collections::HashSet;

use hoistway_core::Kind;
use hoistway_qos::{CAPACITY, JoinError, RequestOp, TermsError};
use hoistway_qos::{Limits, Rate, Terms};

use crate::world::*;

#[test]
fn nothing_is_answered_after_a_client_has_left() {
    let mut world = World::on_file(&config("f"), 64 << 20, 5 * MS);
    let terms = Terms {
        limits: Limits { bytes: Some(Rate { per_second: 8192, burst: 65_536 }), operations: None },
        ..Terms::default()
    };
    world.device.scheduler_mut().set_tenant("capped", &terms, 0).expect("good terms");
    let leaver = world.device.scheduler_mut().join(Some("capped"), None, 0).expect("room for a client");
    let stayer = world.device.scheduler_mut().join(Some("capped"), None, 0).expect("room for a client");
    for ticket in 0..16 {
        world.device.submit(leaver, write(ticket, ticket * 8192, &[1; 4096]), 0);
    }
    world.device.submit(leaver, write(50, 0, &vec![1; 5 << 20]), 0);
    world.device.submit(leaver, simple(51, RequestOp::Flush), 0);
    world.device.submit(leaver, simple(52, RequestOp::Flush), 0);
    let mut done = Vec::new();
    world.device.run(&mut world.engine, 0, &mut done);
    world.device.submit(stayer, read(100, 0, 4096), 0);
    world.device.leave(leaver, 0);
    world.device.submit(leaver, read(101, 0, 4096), 0);
    assert!(done.is_empty());
    let until_ns = 10 * SECOND;
    assert!(wait_for(&mut world, 100, until_ns).is_some());
    world.run_until(until_ns);
    assert!(world.log_done.is_empty(), "{:?}", world.log_done);
    assert!(world.device.is_idle());
    world.device.scheduler_mut().remove_tenant("capped", world.engine.now_ns).expect_err("one client is left");
    world.device.leave(stayer, world.now());
    world.device.scheduler_mut().remove_tenant("capped", world.engine.now_ns).expect("nobody is left");
}

#[test]
fn what_a_client_that_has_left_had_queued_is_not_begun() {
    let mut world = World::on_file(
        &hoistway_config::DeviceConfig {
            queue: DiskQueueConfig { depth: Some(1), ..config("f").queue },
            ..config("f")
        },
        64 << 20,
        MS,
    );
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    for ticket in 0..64 {
        world.device.submit(member, write(ticket, ticket * 8192, &[1; 4096]), 0);
    }
    let mut done = Vec::new();
    world.device.run(&mut world.engine, 0, &mut done);
    world.device.leave(member, 0);
    world.run_until(SECOND);
    assert_eq!(world.engine.log.len(), 1, "the one that was in the device");
    assert!(world.device.is_idle());
}

#[test]
fn a_place_that_is_used_again_is_another_client() {
    let mut world = World::new(&millisecond(Kind::Bfq, 1));
    let first = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.device.submit(first, read(1, 0, 4096), 0);
    world.device.leave(first, 0);
    let second = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    assert!(first != second && first.number() == second.number());
    world.device.leave(first, 0);
    assert!(ask(&mut world, second, read(2, 0, 4096), SECOND).is_some());
}

#[test]
fn more_than_the_queue_holds_waits_in_front_of_it() {
    let mut world = World::new(&hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { merge: false, ..millisecond(Kind::Fiops, 64).queue },
        ..millisecond(Kind::Fiops, 64)
    });
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    let count = u64::from(CAPACITY.requests) + 5_000;
    for ticket in 0..count {
        world.device.submit(member, read(ticket, ticket % 1000 * 4096, 4096), 0);
    }
    let mut answered = HashSet::new();
    let mut done = Vec::new();
    while !world.device.is_idle() {
        let now_ns = world.now();
        world.device.run(&mut world.engine, now_ns, &mut done);
        for done in done.drain(..) {
            assert!(done.result.is_ok() && answered.insert(done.ticket));
        }
        let Some(next_ns) = world.device.next_wake_ns() else { break };
        world.engine.now_ns = next_ns.max(now_ns);
    }
    assert_eq!(answered.len() as u64, count);
}

#[test]
fn more_clients_than_the_device_takes_are_refused() {
    let mut world = World::new(&config("n"));
    let members: Vec<_> = (0..CAPACITY.contexts)
        .map(|_| world.device.scheduler_mut().join(None, None, 0).expect("room for a client"))
        .collect();
    assert_eq!(world.device.scheduler_mut().join(None, None, 0), Err(JoinError::Full(CAPACITY.contexts)));
    world.device.leave(members[77], 0);
    assert!(world.device.scheduler_mut().join(None, None, 0).is_ok());
    assert_eq!(
        world.device.scheduler_mut().join(Some("nobody"), None, 0),
        Err(JoinError::NoTenant("nobody".to_owned()))
    );
}

#[test]
fn every_elevator_can_be_switched_to_every_other_under_load() {
    for &from in Kind::ALL {
        let mut world = World::new(&hoistway_config::DeviceConfig {
            queue: DiskQueueConfig { elevator: Some(from), ..millisecond(from, 4).queue },
            ..millisecond(from, 4)
        });
        world.device.scheduler_mut().set_tenant("a", &Terms::default(), 0).expect("good terms");
        for at in 0..3 {
            let client =
                Client { op: [RequestOp::Read, RequestOp::Write, RequestOp::Read][at], ..Client::reads(8, 8192) };
            world.add((at > 0).then_some("a"), client);
        }
        world.run_until(50 * MS);
        for &to in Kind::ALL {
            let served: u64 = world.clients.iter().map(|client| client.served).sum();
            let now_ns = world.now();
            world.device.scheduler_mut().switch(to, now_ns).expect("the last switch is over");
            world.run_until(now_ns + 300 * MS);
            assert!(!world.device.scheduler().is_switching(), "{from:?} to {to:?}");
            assert_eq!(world.device.scheduler().elevator(), to);
            let now_served: u64 = world.clients.iter().map(|client| client.served).sum();
            assert!(now_served > served, "{from:?} to {to:?}: nothing was served in 300 ms");
        }
        assert!(world.clients.iter().all(|client| client.errors == 0));
    }
}

#[test]
fn a_flush_does_not_wait_for_a_switch() {
    let mut world = World::new(&millisecond(Kind::Bfq, 1));
    world.add(None, Client::reads(64, 4096));
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.run_until(100 * MS);
    let now_ns = world.now();
    world.device.scheduler_mut().switch(Kind::Fiops, now_ns).expect("the first switch");
    assert!(world.device.scheduler().is_switching(), "64 requests are to be served first");
    world.device.submit(member, simple(1, RequestOp::Flush), now_ns);
    assert!(wait_for(&mut world, 1, 4 * MS).is_some());
    assert!(world.device.scheduler().is_switching());
}

#[test]
fn a_tenant_can_move_to_another_group_while_its_requests_wait() {
    let mut world = World::new(&millisecond(Kind::Bfq, 1));
    for (group, weight) in [("low", 100), ("high", 300)] {
        world.device.scheduler_mut().set_group(group, None, weight, &Limits::default(), 0).expect("a good group");
    }
    let in_group = |group: &str| Terms { parent: Some(group.to_owned()), ..Terms::default() };
    for name in ["a", "b"] {
        world.device.scheduler_mut().set_tenant(name, &in_group("low"), 0).expect("good terms");
        world.add(Some(name), Client::reads(8, 4096));
    }
    world.run_until(2 * SECOND);
    world.device.scheduler_mut().set_tenant("b", &in_group("high"), world.engine.now_ns).expect("good terms");
    world.run_until(3 * SECOND);
    world.count_from_here();
    world.run_until(23 * SECOND);
    let ratio = world.clients[1].served as f64 / world.clients[0].served as f64;
    assert!((ratio / 3.0 - 1.0).abs() <= 0.05, "{ratio}");
    let into_itself =
        world.device.scheduler_mut().set_group("low", Some("low"), 100, &Limits::default(), world.engine.now_ns);
    assert_eq!(into_itself, Err(TermsError::Loop("low".to_owned())));
    let nowhere = world.device.scheduler_mut().set_tenant("a", &in_group("none"), world.engine.now_ns);
    assert_eq!(nowhere, Err(TermsError::NoGroup("none".to_owned())));
}

#[test]
fn a_client_without_terms_brings_its_processs_priority() {
    // A real-time process (class 1, level 0: `ionice -c1 -n0`) beside 64 requests of others under
    // CFQ.
    let mut world = World::new(&millisecond(Kind::Cfq, 1));
    world.add(None, Client::reads(64, 4096));
    world.run_until(500 * MS);
    let realtime = ProcessPriority::from_ioprio(1 << 13, 0);
    let member =
        world.device.scheduler_mut().join(None, Some(realtime), world.engine.now_ns).expect("room for a client");
    let before_ns = world.now();
    assert!(ask(&mut world, member, read(1, 0, 4096), SECOND).is_some());
    assert!(world.now() - before_ns <= 3 * MS, "it goes before all others: {} ns", world.now() - before_ns);
}

#[test]
fn a_group_that_finds_no_room_where_it_moves_stays_as_it_is() {
    let mut world = World::new(&millisecond(Kind::Bfq, 1));
    let set_group = |world: &mut World, name: &str, parent: Option<&str>| {
        world.device.scheduler_mut().set_group(name, parent, 100, &Limits::default(), 0)
    };
    for name in ["low", "high"] {
        set_group(&mut world, name, None).expect("a good group");
    }
    for name in ["a", "b"] {
        let terms = Terms { parent: Some("low".to_owned()), ..Terms::default() };
        world.device.scheduler_mut().set_tenant(name, &terms, 0).expect("good terms");
        world.add(Some(name), Client::reads(4, 4096));
    }
    // Of the queue's groups two are left, and three are wanted: for `low` and the two in it.
    let full = (0..2048)
        .find(|number| world.device.scheduler_mut().set_tenant(&format!("t{number}"), &Terms::default(), 0).is_err());
    let full = full.expect("the queue has 1024 groups");
    for number in [0, 1] {
        world.device.scheduler_mut().remove_tenant(&format!("t{number}"), 0).expect("nobody uses it");
    }
    world.run_until(MS);
    let refused = set_group(&mut world, "low", Some("high")).expect_err("no room for three");
    assert!(matches!(refused, TermsError::Group(_)), "{refused}");
    assert_eq!(world.device.scheduler().group_terms("low").expect("it is there").parent, None);
    let now_ns = world.now();
    let room = (0..4).take_while(|number| {
        world.device.scheduler_mut().set_tenant(&format!("n{number}"), &Terms::default(), now_ns).is_ok()
    });
    assert_eq!(room.count(), 2, "what was made for the move is free again");
    world.device.scheduler_mut().remove_tenant(&format!("t{}", full - 1), now_ns).expect("nobody uses it");
    for name in ["n0", "n1"] {
        world.device.scheduler_mut().remove_tenant(name, now_ns).expect("nobody uses it");
    }
    world.run_until(10 * MS);
    set_group(&mut world, "low", Some("high")).expect("now there is room");
    world.count_from_here();
    world.run_until(SECOND);
    assert!(world.clients.iter().all(|client| client.served > 400), "both go on");
}

#[test]
fn a_device_takes_up_another_configuration_while_it_works() {
    let first = millisecond(Kind::Bfq, 4);
    let mut world = World::new(&first);
    world.add(None, Client::reads(16, 4096));
    world.run_until(100 * MS);
    let second = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig {
            elevator: Some(Kind::Deadline),
            tunables: vec![("fifo_batch".to_owned(), 4)],
            depth: Some(2),
            merge: false,
            request_bytes_max: 65_536,
            ..first.clone().queue
        },
        ..first.clone()
    };
    let warnings = world.device.reconfigure(&second, world.now()).expect("a good configuration");
    assert_eq!(warnings.len(), 1, "what bfq has is served first: {warnings:?}");
    world.run_until(200 * MS);
    let device = &world.device;
    assert_eq!(
        (device.scheduler().elevator(), device.scheduler().depth(), device.scheduler().merges()),
        (Kind::Deadline, 2, false)
    );
    assert_eq!(device.scheduler().request_bytes_max(), 65_536);
    let batch = |world: &World| {
        world.device.scheduler().tunables().find(|(tunable, _)| tunable.name == "fifo_batch").map(|row| row.1)
    };
    assert_eq!(batch(&world), Some(4));
    let unset = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { tunables: Vec::new(), ..second.clone().queue },
        ..second.clone()
    };
    assert_eq!(world.device.reconfigure(&unset, world.now()).expect("a good configuration"), Vec::<String>::new());
    assert_eq!(batch(&world), Some(16), "the default");
    let bad = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { tunables: vec![("slice_idle".to_owned(), 1)], depth: Some(9), ..second.queue },
        ..second
    };
    let refused = world.device.reconfigure(&bad, world.now()).expect_err("deadline has no slices");
    assert_eq!(refused.to_string(), "device d: tunable `slice_idle` of deadline: no tunable of this name");
    assert_eq!(world.device.scheduler().depth(), 2, "nothing has changed");
}

#[test]
fn when_the_client_leaves_for_whom_the_device_is_kept_the_others_go_on() {
    for &kind in Kind::ALL {
        let mut world = World::new(&millisecond(kind, 1));
        let [first, second] =
            [0, 1].map(|_| world.device.scheduler_mut().join(None, None, 0).expect("room for a client"));
        for ticket in 0..50 {
            // One at a time, next to each other: worth waiting for.
            assert!(ask(&mut world, first, read(ticket, ticket * 4096, 4096), SECOND).is_some(), "{kind:?}");
        }
        let now_ns = world.now();
        world.device.submit(second, read(100, 256 * MIB, 4096), now_ns);
        let mut done = Vec::new();
        world.device.run(&mut world.engine, now_ns, &mut done);
        world.device.leave(first, now_ns);
        assert!(wait_for(&mut world, 100, SECOND).is_some(), "{kind:?}: nobody is left to wait for");
    }
}
