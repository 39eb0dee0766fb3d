//! Who holds memory, and who waits for it.

use hoistway_nbd::wire::Command;

use super::world::{Client, MS, World, user};
use crate::Bounds;

const MIB: u64 = 1 << 20;
const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"null:1G\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// A world in which one client has begun a write of 7 MiB, which is nearly all there is, and sent
/// its header alone, and another waits for memory.
fn one_holds_what_another_wants() -> (World, Client, Client) {
    let mut world = World::with(DISK, Bounds { bytes_max: 10 * MIB, stall_ns_max: 10_000 * MS, ..Bounds::default() });
    let mut first = world.enter("x", user(1)).expect("it may");
    let mut second = world.enter("x", user(2)).expect("it may");
    let write = World::request(&mut first, Command::Write, 0, 7 * MIB, &vec![1; 7 * MIB as usize]);
    world.write(first.link, &write[..28]);
    world.pass(MS);
    let ask = World::request(&mut second, Command::Read, 0, 2 * MIB, &[]);
    world.write(second.link, &ask);
    world.pass(10 * MS);
    assert_eq!(world.server.state.waiting.len(), 1);
    (world, first, second)
}

#[test]
fn whoever_goes_on_at_the_least_rate_is_never_closed_for_being_slow() {
    let (mut world, first, mut second) = one_holds_what_another_wants();
    // 256 KiB a second: 28 s for all of it, far more than the 10 s that there are besides.
    for _ in 0..28 {
        world.write(first.link, &[1; 256 << 10]);
        world.pass(1000 * MS);
        assert!(world.is_open(first.link));
    }
    world.await_answers(&mut second, 1);
    assert!(second.answers[0].result.is_ok());
}

#[test]
fn whoever_drips_is_closed_when_his_bytes_should_have_come() {
    let (mut world, first, mut second) = one_holds_what_another_wants();
    // 10 s, and 28 s for 7 MiB at 256 KiB a second.
    for _ in 0..37 {
        world.write(first.link, &[1]);
        world.pass(1000 * MS);
    }
    assert!(world.is_open(first.link));
    world.pass(3000 * MS);
    assert!(!world.is_open(first.link), "a byte now and then is no progress");
    world.await_answers(&mut second, 1);
}

#[test]
fn a_request_under_way_does_not_excuse_who_stalls() {
    let text = format!("{DISK}[[tenant]]\nname = \"t\"\nuid = 1\nlimit_iops = 1\n");
    let mut world = World::with(&text, Bounds { bytes_max: 10 * MIB, stall_ns_max: 10_000 * MS, ..Bounds::default() });
    let mut first = world.enter("x", user(1)).expect("it may");
    let mut second = world.enter("x", user(2)).expect("it may");
    // Some hundred seconds of requests behind its own limit, and then a payload that does not come.
    let mut bytes: Vec<u8> =
        (0..200).flat_map(|at| World::request(&mut first, Command::Trim, at * 4096, 4096, &[])).collect();
    let write = World::request(&mut first, Command::Write, 0, 7 * MIB, &vec![1; 7 * MIB as usize]);
    bytes.extend_from_slice(&write[..28]);
    world.write(first.link, &bytes);
    world.pass(MS);
    let ask = World::request(&mut second, Command::Read, 0, 2 * MIB, &[]);
    world.write(second.link, &ask);
    for _ in 0..41 {
        world.hear(&mut first);
        world.pass(1000 * MS);
    }
    assert!(!world.is_open(first.link) && first.answers.len() < 200);
    world.await_answers(&mut second, 1);
}

#[test]
fn a_tenant_that_its_own_limit_holds_does_not_take_the_memory_of_others() {
    let text =
        format!("{DISK}[[tenant]]\nname = \"held\"\nuid = 1\nlimit = \"1K\"\n[[tenant]]\nname = \"free\"\nuid = 2\n");
    let mut world = World::with(&text, Bounds { bytes_max: 20 * MIB, ..Bounds::default() });
    let mut held: Vec<Client> = (0..20).map(|_| world.enter("x", user(1)).expect("it may")).collect();
    for client in &mut held {
        for at in 0..4 {
            let write = World::request(client, Command::Write, at * MIB, MIB, &vec![1; MIB as usize]);
            // What the server does not take stays on the way.
            world.sim.borrow_mut().write(client.link, &write);
        }
        world.pass(10 * MS);
    }
    assert!(world.server.bytes_under_way() <= 4 * MIB, "a fifth, however many connections");
    assert!(!world.server.state.waiting_within.is_empty() && world.server.state.waiting.is_empty());
    let mut free = world.enter("x", user(2)).expect("it may");
    let now_ns = world.now_ns();
    for at in 0..50 {
        let ask = World::request(&mut free, Command::Read, at * MIB, MIB, &[]);
        world.write(free.link, &ask);
        world.await_answers(&mut free, at as usize + 1);
    }
    assert!(world.now_ns() - now_ns < 10_000 * MS, "it never waits for the other's limit");
}

#[test]
fn those_of_a_tenant_who_wait_for_it_are_served_in_turn() {
    let text = format!("{DISK}[[tenant]]\nname = \"t\"\nuid = 1\n");
    let mut world = World::with(&text, Bounds { bytes_max: 8 * MIB, ..Bounds::default() });
    let mut clients: Vec<Client> = (0..10).map(|_| world.enter("x", user(1)).expect("it may")).collect();
    for client in &mut clients {
        let ask = World::request(client, Command::Read, 0, 2 * MIB, &[]);
        world.write(client.link, &ask);
    }
    for client in &mut clients {
        world.await_answers(client, 1);
        assert!(client.answers[0].result.is_ok());
    }
    assert!(!world.server.state.anybody_waits());
    assert_eq!(world.server.bytes_under_way(), 0);
}
