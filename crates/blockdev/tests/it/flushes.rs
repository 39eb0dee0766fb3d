//! What a flush covers, and what it does not wait for.

use hoistway_blockdev::Work;
use hoistway_core::Kind;
use hoistway_qos::DiskQueueConfig;
use hoistway_qos::IoError;
use hoistway_qos::RequestOp;
use hoistway_reactor::IoOp;

use crate::world::*;

fn on_file(io_ns: u64) -> World {
    World::on_file(&config("f"), 64 << 20, io_ns)
}

fn flushes(world: &World) -> Vec<u64> {
    let log = world.engine.log.iter();
    log.filter(|(_, op, ..)| *op == IoOp::Flush).map(|(at_ns, ..)| *at_ns).collect()
}

#[test]
fn a_flush_waits_for_no_write_that_is_under_way() {
    let mut world = on_file(5 * MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.device.submit(member, write(1, 0, &[1; 4096]), 0);
    world.device.submit(member, simple(2, RequestOp::Flush), 0);
    assert!(wait_for(&mut world, 2, 5 * MS).is_some(), "it was begun beside the write");
    assert_eq!(flushes(&world), [0]);
}

#[test]
fn a_flush_that_comes_after_the_answer_begins_after_the_write() {
    let mut world = on_file(5 * MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    assert!(ask(&mut world, member, write(1, 0, &[1; 4096]), 10 * MS).is_some());
    assert!(ask(&mut world, member, simple(2, RequestOp::Flush), 10 * MS).is_some());
    assert_eq!(flushes(&world), [5 * MS]);
}

#[test]
fn flushes_that_come_meanwhile_share_the_next_one() {
    let mut world = on_file(5 * MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.device.submit(member, simple(1, RequestOp::Flush), 0);
    let mut done = Vec::new();
    world.device.run(&mut world.engine, 0, &mut done);
    world.engine.now_ns = MS;
    for ticket in 2..=9 {
        world.device.submit(member, simple(ticket, RequestOp::Flush), MS);
    }
    assert!(wait_for(&mut world, 9, 20 * MS).is_some());
    assert_eq!(flushes(&world), [0, 5 * MS], "eight share one, which does not begin before the first is over");
    assert!(world.device.is_idle());
}

#[test]
fn a_flush_that_has_failed_makes_all_later_ones_fail() {
    let mut world = on_file(MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.engine.write_error = Some(libc_eio());
    let durable = Work { durable: true, ..write(1, 0, &[1; 4096]) };
    let done = ask(&mut world, member, durable, 10 * MS).expect("an answer");
    assert_eq!(done.result.err(), Some(IoError::Io));
    world.engine.write_error = None;
    assert!(ask(&mut world, member, write(2, 0, &[1; 4096]), 10 * MS).expect("an answer").result.is_ok());
    let done = ask(&mut world, member, simple(3, RequestOp::Flush), 10 * MS).expect("an answer");
    assert_eq!(
        done.result.err(),
        Some(IoError::Io),
        "the system would say yes, although what was written before may be lost"
    );
    assert!(world.device.has_lost_writes());
}

#[test]
fn a_flush_of_an_emulated_drive_waits_for_its_cache() {
    let profile = hoistway_drive::Profile::builtin("cmr-4tb").expect("a built-in profile");
    let device = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Noop), ..config("slow").queue },
        drive: Some(profile),
        ..config("slow")
    };
    let mut world = World::new(&device);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    for ticket in 0..8 {
        let work = write(ticket, ticket * 100 * MIB, &[7; 4096]);
        assert!(ask(&mut world, member, work, SECOND).is_some());
    }
    let cached_ns = world.now();
    assert!(ask(&mut world, member, simple(8, RequestOp::Flush), SECOND).is_some());
    assert!(world.now() - cached_ns > 10 * MS, "the arm goes to each of them: {} ns", world.now() - cached_ns);
}

#[test]
fn a_flush_is_not_kept_waiting_by_a_drive_that_is_always_full() {
    let mut world = World::new(&millisecond(Kind::Noop, 2));
    world.add(None, Client::reads(64, 4096));
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.run_until(100 * MS);
    let before_ns = world.now();
    world.device.submit(member, simple(1, RequestOp::Flush), before_ns);
    // The client that keeps the drive busy lets go of nothing: its own answers are not read here.
    assert!(wait_for(&mut world, 1, 3 * MS).is_some(), "a millisecond until there is room, and one for the flush");
}

fn libc_eio() -> i32 {
    5
}
