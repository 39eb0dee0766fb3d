//! Connected clients during a shutdown.

use hoistway_nbd::wire::{Command, Errno};

use super::world::{MS, World, user};
use crate::{Bounds, Purpose, Turn};
use hoistway_blockdev::DeviceId;
use hoistway_reactor::Signal;

const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:64M\"\ndrive = \"sata-7200-2006\"\nelevator = \"noop\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// A device that is flushed in no time.
const MEMORY: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:64M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// The error ERR_SHUTDOWN of an option, in network byte order.
const SHUTDOWN: [u8; 4] = 0x8000_0007_u32.to_be_bytes();

#[test]
fn waiting_requests_are_refused_and_requests_in_progress_complete() {
    let mut world = World::with(DISK, Bounds { requests_max: 1, ..Bounds::default() });
    let mut client = world.join("x", user(1)).expect("an admitted client");
    let requests = (0..6).map(|at| World::request(&mut client, Command::Read, at << 20, 4096, &[]));
    let bytes: Vec<u8> = requests.collect::<Vec<_>>().concat();
    world.write(client.link, &bytes);
    world.pass(MS);
    world.server.drain();
    world.await_replies(&mut client, 6);
    let refused = client.replies.iter().filter(|answer| matches!(&answer.result, Err((Errno::Shutdown, _)))).count();
    let done = client.replies.iter().filter(|answer| answer.result.is_ok()).count();
    assert_eq!((done, refused), (1, 5));
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn requests_that_wait_for_memory_are_refused() {
    let mut world = World::with(DISK, Bounds { bytes_max: 2 << 20, ..Bounds::default() });
    let mut first = world.join("x", user(1)).expect("an admitted client");
    let mut second = world.join("x", user(1)).expect("an admitted client");
    // Half a payload: its memory is charged and stays charged.
    let write = World::request(&mut first, Command::Write, 0, 1 << 20, &vec![7; 1 << 20]);
    world.write(first.link, &write[..write.len() / 2]);
    world.pass(MS);
    let request = World::request(&mut second, Command::Read, 0, 1 << 20, &[]);
    world.write(second.link, &request);
    world.pass(10 * MS);
    assert_eq!(
        world.server.state.memory_waiters.common_len(),
        1,
        "the second client waits for the memory of the first"
    );
    world.server.drain();
    world.await_replies(&mut second, 1);
    assert!(matches!(&second.replies[0].result, Err((Errno::Shutdown, _))), "{:?}", second.replies);
    world.write(first.link, &write[write.len() / 2..]);
    world.await_replies(&mut first, 1);
    assert!(first.replies[0].result.is_ok(), "the write was in progress");
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_client_in_the_handshake_receives_an_error() {
    let mut world = World::of(DISK);
    let link = world.connect(Purpose::Nbd, user(1));
    world.pass(MS);
    assert_eq!(world.read(link).len(), 18, "the greeting");
    world.server.drain();
    // Fixed newstyle; then LIST.
    world.write(link, &[&[0, 0, 0, 1][..], b"IHAVEOPT", &[0, 0, 0, 3], &[0; 4]].concat());
    world.pass(10 * MS);
    let received = world.read(link);
    assert!(received.windows(4).any(|bytes| bytes == SHUTDOWN), "{received:?}");
    world.pass(MS);
    assert!(!world.is_open(link));
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_silent_client_in_the_handshake_delays_the_shutdown_by_its_grace_time_only() {
    let mut world = World::of(DISK);
    world.connect(Purpose::Nbd, user(1));
    world.pass(MS);
    world.server.drain();
    world.pass(900 * MS);
    assert_eq!(world.ended, None);
    world.pass(200 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_shutdown_without_the_final_flush_is_not_clean() {
    let mut world = World::of(DISK);
    // All memberships of the device are taken.
    while world.server.state.join(DeviceId(0), None, &user(1)).is_ok() {}
    world.server.drain();
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(false));
}

#[test]
fn the_first_signal_during_a_shutdown_loses_no_requests() {
    let mut world = World::of(DISK);
    let mut client = world.join("x", user(1)).expect("an admitted client");
    let request = World::request(&mut client, Command::Read, 0, 4096, &[]);
    world.write(client.link, &request);
    world.until(|world| world.server.state.devices[0].scheduler().in_flight() > 0);
    world.server.drain();
    world.sim.borrow_mut().signal_in(0, Signal::Terminate);
    world.await_replies(&mut client, 1);
    assert!(client.replies[0].result.is_ok());
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_reload_that_comes_with_the_end_is_not_lost() {
    let mut world = World::of(MEMORY);
    for signal in [Signal::Reload, Signal::Terminate] {
        world.sim.borrow_mut().signal_in(MS / 2, signal);
    }
    let mut results = Vec::new();
    while !matches!(results.last(), Some(Turn::Ended { .. })) {
        let result = world.server.run().expect("an intact engine");
        results.extend((result != Turn::Alarm).then_some(result));
    }
    assert_eq!(results, [Turn::Reload, Turn::Draining, Turn::Ended { clean: true }]);
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut world = World::of(DISK);
    let mut client = world.join("x", user(1)).expect("an admitted client");
    let requests: Vec<Vec<u8>> =
        (0..20).map(|at| World::request(&mut client, Command::Read, at << 21, 4096, &[])).collect();
    world.write(client.link, &requests.concat());
    world.until(|world| world.server.state.devices[0].scheduler().in_flight() > 0);
    world.server.drain();
    for _ in 0..2 {
        world.sim.borrow_mut().signal_in(0, Signal::Terminate);
    }
    world.pass(3 * MS);
    assert_eq!(world.ended, Some(false));
}
