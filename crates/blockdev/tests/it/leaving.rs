//! Clients that leave, elevator switches, and full queues: no request is lost or completed twice.

use hoistway_qos::DiskQueueConfig;
use hoistway_qos::ProcessPriority;
use std::collections::HashSet;

use hoistway_core::Kind;
use hoistway_qos::{CAPACITY, JoinError, RequestOp, TermsError};
use hoistway_qos::{Limits, Rate, Terms};

use crate::testbed::*;

#[test]
fn no_request_completes_after_its_client_left() {
    let mut testbed = Testbed::on_file(&config("f"), 64 << 20, 5 * MS);
    let terms = Terms {
        limits: Limits { bytes: Some(Rate { per_second: 8192, burst: 65_536 }), operations: None },
        ..Terms::default()
    };
    testbed.device.scheduler_mut().set_tenant("capped", &terms, 0).expect("good terms");
    let leaver = testbed.device.scheduler_mut().join(Some("capped"), None, 0).expect("the client can join");
    let stayer = testbed.device.scheduler_mut().join(Some("capped"), None, 0).expect("the client can join");
    for ticket in 0..16 {
        testbed.device.submit(leaver, write(ticket, ticket * 8192, &[1; 4096]), 0);
    }
    testbed.device.submit(leaver, write(50, 0, &vec![1; 5 << 20]), 0);
    testbed.device.submit(leaver, without_data(51, RequestOp::Flush), 0);
    testbed.device.submit(leaver, without_data(52, RequestOp::Flush), 0);
    let mut done = Vec::new();
    testbed.device.run(&mut testbed.engine, 0, &mut done);
    testbed.device.submit(stayer, read(100, 0, 4096), 0);
    testbed.device.leave(leaver, 0);
    testbed.device.submit(leaver, read(101, 0, 4096), 0);
    assert!(done.is_empty());
    let until_ns = 10 * SECOND;
    assert!(wait_for(&mut testbed, 100, until_ns).is_some());
    testbed.run_until(until_ns);
    assert!(testbed.log_done.is_empty(), "{:?}", testbed.log_done);
    assert!(testbed.device.is_idle());
    testbed.device.scheduler_mut().remove_tenant("capped", testbed.engine.now_ns).expect_err("one client is left");
    testbed.device.leave(stayer, testbed.now());
    testbed.device.scheduler_mut().remove_tenant("capped", testbed.engine.now_ns).expect("nobody is left");
}

#[test]
fn queued_requests_of_a_client_that_left_are_not_started() {
    let mut testbed = Testbed::on_file(
        &hoistway_config::DeviceConfig {
            queue: DiskQueueConfig { depth: Some(1), ..config("f").queue },
            ..config("f")
        },
        64 << 20,
        MS,
    );
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    for ticket in 0..64 {
        testbed.device.submit(member, write(ticket, ticket * 8192, &[1; 4096]), 0);
    }
    let mut done = Vec::new();
    testbed.device.run(&mut testbed.engine, 0, &mut done);
    testbed.device.leave(member, 0);
    testbed.run_until(SECOND);
    assert_eq!(testbed.engine.log.len(), 1, "the one that was in the device");
    assert!(testbed.device.is_idle());
}

#[test]
fn a_reused_member_slot_is_another_client() {
    let mut testbed = Testbed::new(&millisecond(Kind::Bfq, 1));
    let first = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.device.submit(first, read(1, 0, 4096), 0);
    testbed.device.leave(first, 0);
    let second = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    assert!(first != second && first.number() == second.number());
    testbed.device.leave(first, 0);
    assert!(execute(&mut testbed, second, read(2, 0, 4096), SECOND).is_some());
}

#[test]
fn excess_requests_wait_outside_the_elevator() {
    let mut testbed = Testbed::new(&hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { merge: false, ..millisecond(Kind::Fiops, 64).queue },
        ..millisecond(Kind::Fiops, 64)
    });
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let count = u64::from(CAPACITY.requests) + 5_000;
    for ticket in 0..count {
        testbed.device.submit(member, read(ticket, ticket % 1000 * 4096, 4096), 0);
    }
    let mut complete = HashSet::new();
    let mut done = Vec::new();
    while !testbed.device.is_idle() {
        let now_ns = testbed.now();
        testbed.device.run(&mut testbed.engine, now_ns, &mut done);
        for done in done.drain(..) {
            assert!(done.result.is_ok() && complete.insert(done.ticket));
        }
        let Some(next_ns) = testbed.device.next_wake_ns() else { break };
        testbed.engine.now_ns = next_ns.max(now_ns);
    }
    assert_eq!(complete.len() as u64, count);
}

#[test]
fn clients_beyond_the_capacity_are_refused() {
    let mut testbed = Testbed::new(&config("n"));
    let members: Vec<_> = (0..CAPACITY.contexts)
        .map(|_| testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join"))
        .collect();
    assert_eq!(testbed.device.scheduler_mut().join(None, None, 0), Err(JoinError::Full(CAPACITY.contexts)));
    testbed.device.leave(members[77], 0);
    assert!(testbed.device.scheduler_mut().join(None, None, 0).is_ok());
    assert_eq!(
        testbed.device.scheduler_mut().join(Some("nobody"), None, 0),
        Err(JoinError::NoTenant("nobody".to_owned()))
    );
}

#[test]
fn every_elevator_can_be_switched_to_every_other_under_load() {
    for &from in Kind::ALL {
        let mut testbed = Testbed::new(&hoistway_config::DeviceConfig {
            queue: DiskQueueConfig { elevator: Some(from), ..millisecond(from, 4).queue },
            ..millisecond(from, 4)
        });
        testbed.device.scheduler_mut().set_tenant("a", &Terms::default(), 0).expect("good terms");
        for at in 0..3 {
            let client =
                Client { op: [RequestOp::Read, RequestOp::Write, RequestOp::Read][at], ..Client::reads(8, 8192) };
            testbed.add((at > 0).then_some("a"), client);
        }
        testbed.run_until(50 * MS);
        for &to in Kind::ALL {
            let served: u64 = testbed.clients.iter().map(|client| client.served).sum();
            let now_ns = testbed.now();
            testbed.device.scheduler_mut().switch(to, now_ns).expect("the last switch is over");
            testbed.run_until(now_ns + 300 * MS);
            assert!(!testbed.device.scheduler().is_switching(), "{from:?} to {to:?}");
            assert_eq!(testbed.device.scheduler().elevator(), to);
            let now_served: u64 = testbed.clients.iter().map(|client| client.served).sum();
            assert!(now_served > served, "{from:?} to {to:?}: nothing was served in 300 ms");
        }
        assert!(testbed.clients.iter().all(|client| client.errors == 0));
    }
}

#[test]
fn a_flush_does_not_wait_for_a_switch() {
    let mut testbed = Testbed::new(&millisecond(Kind::Bfq, 1));
    testbed.add(None, Client::reads(64, 4096));
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.run_until(100 * MS);
    let now_ns = testbed.now();
    testbed.device.scheduler_mut().switch(Kind::Fiops, now_ns).expect("the first switch");
    assert!(testbed.device.scheduler().is_switching(), "64 requests are to be served first");
    testbed.device.submit(member, without_data(1, RequestOp::Flush), now_ns);
    assert!(wait_for(&mut testbed, 1, 4 * MS).is_some());
    assert!(testbed.device.scheduler().is_switching());
}

#[test]
fn a_tenant_can_move_to_another_group_while_its_requests_wait() {
    let mut testbed = Testbed::new(&millisecond(Kind::Bfq, 1));
    for (group, weight) in [("low", 100), ("high", 300)] {
        testbed.device.scheduler_mut().set_group(group, None, weight, &Limits::default(), 0).expect("a good group");
    }
    let in_group = |group: &str| Terms { parent: Some(group.to_owned()), ..Terms::default() };
    for name in ["a", "b"] {
        testbed.device.scheduler_mut().set_tenant(name, &in_group("low"), 0).expect("good terms");
        testbed.add(Some(name), Client::reads(8, 4096));
    }
    testbed.run_until(2 * SECOND);
    testbed.device.scheduler_mut().set_tenant("b", &in_group("high"), testbed.engine.now_ns).expect("good terms");
    testbed.run_until(3 * SECOND);
    testbed.reset_counts();
    testbed.run_until(23 * SECOND);
    let ratio = testbed.clients[1].served as f64 / testbed.clients[0].served as f64;
    assert!((ratio / 3.0 - 1.0).abs() <= 0.05, "{ratio}");
    let into_itself =
        testbed.device.scheduler_mut().set_group("low", Some("low"), 100, &Limits::default(), testbed.engine.now_ns);
    assert_eq!(into_itself, Err(TermsError::Loop("low".to_owned())));
    let nowhere = testbed.device.scheduler_mut().set_tenant("a", &in_group("none"), testbed.engine.now_ns);
    assert_eq!(nowhere, Err(TermsError::NoGroup("none".to_owned())));
}

#[test]
fn a_client_without_terms_has_the_priority_of_its_process() {
    // A real-time process (class 1, level 0: `ionice -c1 -n0`) beside 64 requests of others under
    // CFQ.
    let mut testbed = Testbed::new(&millisecond(Kind::Cfq, 1));
    testbed.add(None, Client::reads(64, 4096));
    testbed.run_until(500 * MS);
    let realtime = ProcessPriority::from_ioprio(1 << 13, 0);
    let member =
        testbed.device.scheduler_mut().join(None, Some(realtime), testbed.engine.now_ns).expect("the client can join");
    let before_ns = testbed.now();
    assert!(execute(&mut testbed, member, read(1, 0, 4096), SECOND).is_some());
    assert!(testbed.now() - before_ns <= 3 * MS, "it goes before all others: {} ns", testbed.now() - before_ns);
}

#[test]
fn a_group_without_room_at_its_new_parent_does_not_move() {
    let mut testbed = Testbed::new(&millisecond(Kind::Bfq, 1));
    let set_group = |testbed: &mut Testbed, name: &str, parent: Option<&str>| {
        testbed.device.scheduler_mut().set_group(name, parent, 100, &Limits::default(), 0)
    };
    for name in ["low", "high"] {
        set_group(&mut testbed, name, None).expect("a good group");
    }
    for name in ["a", "b"] {
        let terms = Terms { parent: Some("low".to_owned()), ..Terms::default() };
        testbed.device.scheduler_mut().set_tenant(name, &terms, 0).expect("good terms");
        testbed.add(Some(name), Client::reads(4, 4096));
    }
    // Two of the queue's groups are free, and three are needed: for `low` and its two members.
    let full = (0..2048)
        .find(|number| testbed.device.scheduler_mut().set_tenant(&format!("t{number}"), &Terms::default(), 0).is_err());
    let full = full.expect("the queue has 1024 groups");
    for number in [0, 1] {
        testbed.device.scheduler_mut().remove_tenant(&format!("t{number}"), 0).expect("nobody uses it");
    }
    testbed.run_until(MS);
    let refused = set_group(&mut testbed, "low", Some("high")).expect_err("no room for three");
    assert!(matches!(refused, TermsError::Group(_)), "{refused}");
    assert_eq!(testbed.device.scheduler().group_terms("low").expect("it is there").parent, None);
    let now_ns = testbed.now();
    let room = (0..4).take_while(|number| {
        testbed.device.scheduler_mut().set_tenant(&format!("n{number}"), &Terms::default(), now_ns).is_ok()
    });
    assert_eq!(room.count(), 2, "what was made for the move is free again");
    testbed.device.scheduler_mut().remove_tenant(&format!("t{}", full - 1), now_ns).expect("nobody uses it");
    for name in ["n0", "n1"] {
        testbed.device.scheduler_mut().remove_tenant(name, now_ns).expect("nobody uses it");
    }
    testbed.run_until(10 * MS);
    set_group(&mut testbed, "low", Some("high")).expect("now there is room");
    testbed.reset_counts();
    testbed.run_until(SECOND);
    assert!(testbed.clients.iter().all(|client| client.served > 400), "both go on");
}

#[test]
fn a_device_is_reconfigured_under_load() {
    let first = millisecond(Kind::Bfq, 4);
    let mut testbed = Testbed::new(&first);
    testbed.add(None, Client::reads(16, 4096));
    testbed.run_until(100 * MS);
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
    let warnings = testbed.device.reconfigure(&second, testbed.now()).expect("a good configuration");
    assert_eq!(warnings.len(), 1, "what bfq has is served first: {warnings:?}");
    testbed.run_until(200 * MS);
    let device = &testbed.device;
    assert_eq!(
        (device.scheduler().elevator(), device.scheduler().depth(), device.scheduler().merges()),
        (Kind::Deadline, 2, false)
    );
    assert_eq!(device.scheduler().request_bytes_max(), 65_536);
    let batch = |testbed: &Testbed| {
        testbed.device.scheduler().tunables().find(|(tunable, _)| tunable.name == "fifo_batch").map(|row| row.1)
    };
    assert_eq!(batch(&testbed), Some(4));
    let unset = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { tunables: Vec::new(), ..second.clone().queue },
        ..second.clone()
    };
    assert_eq!(testbed.device.reconfigure(&unset, testbed.now()).expect("a good configuration"), Vec::<String>::new());
    assert_eq!(batch(&testbed), Some(16), "the default");
    let bad = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { tunables: vec![("slice_idle".to_owned(), 1)], depth: Some(9), ..second.queue },
        ..second
    };
    let refused = testbed.device.reconfigure(&bad, testbed.now()).expect_err("deadline has no slices");
    assert_eq!(refused.to_string(), "device d: tunable `slice_idle` of deadline: no tunable of this name");
    assert_eq!(testbed.device.scheduler().depth(), 2, "nothing has changed");
}

#[test]
fn other_clients_continue_when_the_client_with_the_slice_leaves() {
    for &kind in Kind::ALL {
        let mut testbed = Testbed::new(&millisecond(kind, 1));
        let [first, second] =
            [0, 1].map(|_| testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join"));
        for ticket in 0..50 {
            // One at a time, next to each other: the elevator idles for the next.
            assert!(execute(&mut testbed, first, read(ticket, ticket * 4096, 4096), SECOND).is_some(), "{kind:?}");
        }
        let now_ns = testbed.now();
        testbed.device.submit(second, read(100, 256 * MIB, 4096), now_ns);
        let mut done = Vec::new();
        testbed.device.run(&mut testbed.engine, now_ns, &mut done);
        testbed.device.leave(first, now_ns);
        assert!(wait_for(&mut testbed, 100, SECOND).is_some(), "{kind:?}: nobody is left to wait for");
    }
}
