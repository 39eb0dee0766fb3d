//! The order of flushes and writes.

use std::sync::{Arc, Mutex};

use hoistway_blockdev::BlockRequest;
use hoistway_core::{Event, Flags, Kind, Op};
use hoistway_qos::DiskQueueConfig;
use hoistway_qos::IoError;
use hoistway_qos::Recorder;
use hoistway_qos::RequestOp;
use hoistway_reactor::IoOp;

use crate::testbed::*;

fn on_file(io_ns: u64) -> Testbed {
    Testbed::on_file(&config("f"), 64 << 20, io_ns)
}

fn flushes(testbed: &Testbed) -> Vec<u64> {
    let log = testbed.engine.log.iter();
    log.filter(|(_, op, ..)| *op == IoOp::Flush).map(|(at_ns, ..)| *at_ns).collect()
}

#[test]
fn a_flush_does_not_wait_for_writes_in_flight() {
    let mut testbed = on_file(5 * MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.device.submit(member, write(1, 0, &[1; 4096]), 0);
    testbed.device.submit(member, without_data(2, RequestOp::Flush), 0);
    assert!(wait_for(&mut testbed, 2, 5 * MS).is_some(), "it was begun beside the write");
    assert_eq!(flushes(&testbed), [0]);
}

#[test]
fn a_flush_after_a_completed_write_covers_it() {
    let mut testbed = on_file(5 * MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    assert!(execute(&mut testbed, member, write(1, 0, &[1; 4096]), 10 * MS).is_some());
    assert!(execute(&mut testbed, member, without_data(2, RequestOp::Flush), 10 * MS).is_some());
    assert_eq!(flushes(&testbed), [5 * MS]);
}

#[test]
fn flushes_during_a_flush_share_the_next_one() {
    let mut testbed = on_file(5 * MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.device.submit(member, without_data(1, RequestOp::Flush), 0);
    let mut done = Vec::new();
    testbed.device.run(&mut testbed.engine, 0, &mut done);
    testbed.engine.now_ns = MS;
    for ticket in 2..=9 {
        testbed.device.submit(member, without_data(ticket, RequestOp::Flush), MS);
    }
    assert!(wait_for(&mut testbed, 9, 20 * MS).is_some());
    assert_eq!(flushes(&testbed), [0, 5 * MS], "eight share one, which does not begin before the first is over");
    assert!(testbed.device.is_idle());
}

/// What made the first call fail may have lost data, of which the system reports no more: the
/// kernel reports a failed write-back once, and forgets it.
fn all_later_flushes_fail(fail: impl FnOnce(&mut FakeEngine), work: BlockRequest, mend: impl FnOnce(&mut FakeEngine)) {
    let mut testbed = on_file(MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    assert!(execute(&mut testbed, member, without_data(9, RequestOp::Flush), 10 * MS).expect("one").result.is_ok());
    fail(&mut testbed.engine);
    let done = execute(&mut testbed, member, work, 10 * MS).expect("a completion");
    assert_eq!(done.result.err(), Some(IoError::Io));
    mend(&mut testbed.engine);
    assert!(execute(&mut testbed, member, write(2, 0, &[1; 4096]), 10 * MS).expect("a completion").result.is_ok());
    let done = execute(&mut testbed, member, without_data(3, RequestOp::Flush), 10 * MS).expect("a completion");
    assert_eq!(
        done.result.err(),
        Some(IoError::Io),
        "the system would say yes, although what was written before may be lost"
    );
    let durable = BlockRequest { durable: true, ..write(4, 0, &[1; 4096]) };
    let done = execute(&mut testbed, member, durable, 10 * MS).expect("a completion");
    assert_eq!(done.result.err(), Some(IoError::Io), "its reply would promise as much as that of a flush");
    let read = BlockRequest::plain(5, RequestOp::Read, 0, 512);
    assert!(execute(&mut testbed, member, read, 10 * MS).expect("a completion").result.is_ok(), "reading goes on");
    assert!(testbed.device.has_lost_writes());
}

#[test]
fn after_a_failed_flush_all_flushes_fail() {
    all_later_flushes_fail(
        |engine| engine.flush_error = Some(libc_eio()),
        without_data(1, RequestOp::Flush),
        |engine| engine.flush_error = None,
    );
}

#[test]
fn after_a_failed_durable_write_all_flushes_fail() {
    all_later_flushes_fail(
        |engine| engine.write_error = Some(libc_eio()),
        BlockRequest { durable: true, ..write(1, 0, &[1; 4096]) },
        |engine| engine.write_error = None,
    );
}

#[test]
fn a_flush_of_an_emulated_drive_waits_for_its_cache() {
    let profile = hoistway_drive::Profile::builtin("cmr-4tb").expect("a built-in profile");
    let device = hoistway_config::DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Noop), ..config("slow").queue },
        drive: Some(profile),
        ..config("slow")
    };
    let mut testbed = Testbed::new(&device);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    for ticket in 0..8 {
        let work = write(ticket, ticket * 100 * MIB, &[7; 4096]);
        assert!(execute(&mut testbed, member, work, SECOND).is_some());
    }
    let cached_ns = testbed.now();
    assert!(execute(&mut testbed, member, without_data(8, RequestOp::Flush), SECOND).is_some());
    assert!(testbed.now() - cached_ns > 10 * MS, "the arm goes to each of them: {} ns", testbed.now() - cached_ns);
}

#[test]
fn a_flush_is_not_starved_by_a_full_drive() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 2));
    testbed.add(None, Client::reads(64, 4096));
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.run_until(100 * MS);
    let before_ns = testbed.now();
    testbed.device.submit(member, without_data(1, RequestOp::Flush), before_ns);
    // The client that keeps the drive busy submits no more: its completions are not processed here.
    assert!(wait_for(&mut testbed, 1, 3 * MS).is_some(), "a millisecond until there is room, and one for the flush");
}

/// Keeps the events of a queue that belong to writes and flushes, with their times in ms.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<(u64, Event)>>>);

impl Recorder for Events {
    fn record(&mut self, now_ns: u64, event: &Event) {
        if matches!(event, Event::Queue(_) | Event::Issue(_) | Event::Complete(_)) {
            self.0.lock().expect("no test thread panics").push((now_ns / MS, *event));
        }
    }
}

#[test]
fn a_recorder_gets_flushes_and_durable_writes() {
    let mut testbed = on_file(5 * MS);
    let events = Events::default();
    testbed.device.set_recorder(Some(Box::new(events.clone())));
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let durable = BlockRequest { durable: true, ..write(1, 0, &[1; 4096]) };
    assert!(execute(&mut testbed, member, durable, 10 * MS).is_some());
    assert!(execute(&mut testbed, member, without_data(2, RequestOp::Flush), 10 * MS).is_some());
    let events = events.0.lock().expect("no test thread panics");
    let seen: Vec<_> = events
        .iter()
        .map(|(ms, event)| match event {
            Event::Queue(io) => (*ms, 'Q', io.op, io.flags.has(Flags::FUA), io.pid),
            Event::Issue(io) => (*ms, 'D', io.op, io.flags.has(Flags::FUA), io.pid),
            Event::Complete(io) => (*ms, 'C', io.op, io.flags.has(Flags::FUA), io.pid),
            _ => unreachable!("only these are kept"),
        })
        .collect();
    let number = member.number();
    let expected = [
        (0, 'Q', Op::Write, true, number),
        (0, 'D', Op::Write, true, number),
        (5, 'C', Op::Write, true, number),
        (5, 'Q', Op::Flush, false, number),
        (5, 'D', Op::Flush, false, 0),
        (10, 'C', Op::Flush, false, 0),
    ];
    assert_eq!(seen, expected);
}

fn libc_eio() -> i32 {
    5
}
