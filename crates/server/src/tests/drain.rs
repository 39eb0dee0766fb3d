//! What becomes of those who are there when the server leaves.

use hoistway_nbd::wire::{Command, Errno};

use super::world::{MS, World, user};
use crate::{Bounds, Purpose};
use hoistway_reactor::Signal;

const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:64M\"\ndrive = \"sata-7200-2006\"\nelevator = \"noop\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// ERR_SHUTDOWN of an option, as it is sent.
const SHUTDOWN: [u8; 4] = 0x8000_0007_u32.to_be_bytes();

#[test]
fn requests_that_could_not_begin_yet_are_refused_and_those_under_way_are_done() {
    let mut world = World::with(DISK, Bounds { requests_max: 1, ..Bounds::default() });
    let mut client = world.enter("x", user(1)).expect("it may");
    let requests = (0..6).map(|at| World::request(&mut client, Command::Read, at << 20, 4096, &[]));
    let bytes: Vec<u8> = requests.collect::<Vec<_>>().concat();
    world.write(client.link, &bytes);
    world.pass(MS);
    world.server.drain();
    world.await_answers(&mut client, 6);
    let refused = client.answers.iter().filter(|answer| matches!(&answer.result, Err((Errno::Shutdown, _)))).count();
    let done = client.answers.iter().filter(|answer| answer.result.is_ok()).count();
    assert_eq!((done, refused), (1, 5));
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn whoever_waits_for_memory_is_told_that_the_server_leaves() {
    let mut world = World::with(DISK, Bounds { bytes_max: 2 << 20, ..Bounds::default() });
    let mut first = world.enter("x", user(1)).expect("it may");
    let mut second = world.enter("x", user(1)).expect("it may");
    // Half a payload: its memory is taken, and it stays so.
    let write = World::request(&mut first, Command::Write, 0, 1 << 20, &vec![7; 1 << 20]);
    world.write(first.link, &write[..write.len() / 2]);
    world.pass(MS);
    let ask = World::request(&mut second, Command::Read, 0, 1 << 20, &[]);
    world.write(second.link, &ask);
    world.pass(10 * MS);
    assert_eq!(world.server.state.waiting.len(), 1, "it waits for the first one's memory");
    world.server.drain();
    world.await_answers(&mut second, 1);
    assert!(matches!(&second.answers[0].result, Err((Errno::Shutdown, _))), "{:?}", second.answers);
    world.write(first.link, &write[write.len() / 2..]);
    world.await_answers(&mut first, 1);
    assert!(first.answers[0].result.is_ok(), "it had begun");
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_client_in_the_handshake_is_told_that_the_server_leaves() {
    let mut world = World::of(DISK);
    let link = world.connect(Purpose::Nbd, user(1));
    world.pass(MS);
    assert_eq!(world.read(link).len(), 18, "the greeting");
    world.server.drain();
    // Fixed newstyle; then LIST.
    world.write(link, &[&[0, 0, 0, 1][..], b"IHAVEOPT", &[0, 0, 0, 3], &[0; 4]].concat());
    world.pass(10 * MS);
    let told = world.read(link);
    assert!(told.windows(4).any(|bytes| bytes == SHUTDOWN), "{told:?}");
    world.pass(MS);
    assert!(!world.is_open(link));
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_silent_client_in_the_handshake_holds_the_server_for_a_moment_only() {
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
fn a_device_that_cannot_be_flushed_is_no_clean_end() {
    let mut world = World::of(DISK);
    // As many as a device takes.
    while world.server.state.join(0, None, &user(1)).is_ok() {}
    world.server.drain();
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(false));
}

#[test]
fn the_first_signal_after_the_server_began_to_leave_by_itself_loses_nothing() {
    let mut world = World::of(DISK);
    let mut client = world.enter("x", user(1)).expect("it may");
    let ask = World::request(&mut client, Command::Read, 0, 4096, &[]);
    world.write(client.link, &ask);
    world.until(|world| world.server.state.devices[0].scheduler().in_flight() > 0);
    world.server.drain();
    world.sim.borrow_mut().signal_in(0, Signal::Terminate);
    world.await_answers(&mut client, 1);
    assert!(client.answers[0].result.is_ok());
    world.pass(100 * MS);
    assert_eq!(world.ended, Some(true));
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut world = World::of(DISK);
    let mut client = world.enter("x", user(1)).expect("it may");
    let asks: Vec<Vec<u8>> =
        (0..20).map(|at| World::request(&mut client, Command::Read, at << 21, 4096, &[])).collect();
    world.write(client.link, &asks.concat());
    world.until(|world| world.server.state.devices[0].scheduler().in_flight() > 0);
    world.server.drain();
    for _ in 0..2 {
        world.sim.borrow_mut().signal_in(0, Signal::Terminate);
    }
    world.pass(3 * MS);
    assert_eq!(world.ended, Some(false));
}
