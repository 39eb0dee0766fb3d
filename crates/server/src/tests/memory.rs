//! The memory budget: clients that hold memory and clients that wait for it.

use hoistway_nbd::wire::Command;

use super::world::{Client, MS, World, user};
use crate::Bounds;

const MIB: u64 = 1 << 20;
const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"null:1G\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// Creates a world in which one client has sent only the header of a write of 7 MiB, nearly the
/// whole budget, and another waits for memory.
fn one_holds_memory_and_another_waits() -> (World, Client, Client) {
    let mut world = World::with(DISK, Bounds { bytes_max: 10 * MIB, stall_ns_max: 10_000 * MS, ..Bounds::default() });
    let mut first = world.join("x", user(1)).expect("an admitted client");
    let mut second = world.join("x", user(2)).expect("an admitted client");
    let write = World::request(&mut first, Command::Write, 0, 7 * MIB, &vec![1; 7 * MIB as usize]);
    world.write(first.link, &write[..28]);
    world.pass(MS);
    let request = World::request(&mut second, Command::Read, 0, 2 * MIB, &[]);
    world.write(second.link, &request);
    world.pass(10 * MS);
    assert_eq!(world.server.state.memory_waiters.common_len(), 1);
    (world, first, second)
}

#[test]
fn a_client_at_the_minimum_rate_is_never_closed_as_stalled() {
    let (mut world, first, mut second) = one_holds_memory_and_another_waits();
    // 256 KiB per second: 28 s for the payload, far more than the additional 10 s.
    for _ in 0..28 {
        world.write(first.link, &[1; 256 << 10]);
        world.pass(1000 * MS);
        assert!(world.is_open(first.link));
    }
    world.await_replies(&mut second, 1);
    assert!(second.replies[0].result.is_ok());
}

#[test]
fn a_client_below_the_minimum_rate_is_closed_when_its_bytes_are_overdue() {
    let (mut world, first, mut second) = one_holds_memory_and_another_waits();
    // 10 s, and 28 s for 7 MiB at 256 KiB per second.
    for _ in 0..37 {
        world.write(first.link, &[1]);
        world.pass(1000 * MS);
    }
    assert!(world.is_open(first.link));
    world.pass(3000 * MS);
    assert!(!world.is_open(first.link), "a byte per second is no progress");
    world.await_replies(&mut second, 1);
}

#[test]
fn a_stalled_client_is_closed_even_with_requests_in_progress() {
    let text = format!("{DISK}[[tenant]]\nname = \"t\"\nuid = 1\nlimit_iops = 1\n");
    let mut world = World::with(&text, Bounds { bytes_max: 10 * MIB, stall_ns_max: 10_000 * MS, ..Bounds::default() });
    let mut first = world.join("x", user(1)).expect("an admitted client");
    let mut second = world.join("x", user(2)).expect("an admitted client");
    // 200 s of requests behind the client's own limit, then a payload that is never sent.
    let mut bytes: Vec<u8> =
        (0..200).flat_map(|at| World::request(&mut first, Command::Trim, at * 4096, 4096, &[])).collect();
    let write = World::request(&mut first, Command::Write, 0, 7 * MIB, &vec![1; 7 * MIB as usize]);
    bytes.extend_from_slice(&write[..28]);
    world.write(first.link, &bytes);
    world.pass(MS);
    let request = World::request(&mut second, Command::Read, 0, 2 * MIB, &[]);
    world.write(second.link, &request);
    for _ in 0..41 {
        world.receive(&mut first);
        world.pass(1000 * MS);
    }
    assert!(!world.is_open(first.link) && first.replies.len() < 200);
    world.await_replies(&mut second, 1);
}

#[test]
fn a_tenant_that_its_own_limit_delays_does_not_use_up_the_memory_of_others() {
    let text =
        format!("{DISK}[[tenant]]\nname = \"held\"\nuid = 1\nlimit = \"1K\"\n[[tenant]]\nname = \"free\"\nuid = 2\n");
    let mut world = World::with(&text, Bounds { bytes_max: 20 * MIB, ..Bounds::default() });
    let mut held: Vec<Client> = (0..20).map(|_| world.join("x", user(1)).expect("an admitted client")).collect();
    for client in &mut held {
        for at in 0..4 {
            let write = World::request(client, Command::Write, at * MIB, MIB, &vec![1; MIB as usize]);
            // Bytes that the server does not receive stay in the link.
            world.sim.borrow_mut().write(client.link, &write);
        }
        world.pass(10 * MS);
    }
    assert!(world.server.bytes_in_progress() <= 4 * MIB, "a fifth, whatever the number of connections");
    assert!(!world.server.state.memory_waiters.is_empty() && world.server.state.memory_waiters.common_len() == 0);
    let mut free = world.join("x", user(2)).expect("an admitted client");
    let now_ns = world.now_ns();
    for at in 0..50 {
        let request = World::request(&mut free, Command::Read, at * MIB, MIB, &[]);
        world.write(free.link, &request);
        world.await_replies(&mut free, at as usize + 1);
    }
    assert!(world.now_ns() - now_ns < 10_000 * MS, "the free tenant does not wait for the limit of the other");
}

#[test]
fn waiting_clients_of_one_tenant_are_served_in_turn() {
    let text = format!("{DISK}[[tenant]]\nname = \"t\"\nuid = 1\n");
    let mut world = World::with(&text, Bounds { bytes_max: 8 * MIB, ..Bounds::default() });
    let mut clients: Vec<Client> = (0..10).map(|_| world.join("x", user(1)).expect("an admitted client")).collect();
    for client in &mut clients {
        let request = World::request(client, Command::Read, 0, 2 * MIB, &[]);
        world.write(client.link, &request);
    }
    for client in &mut clients {
        world.await_replies(client, 1);
        assert!(client.replies[0].result.is_ok());
    }
    assert!(world.server.state.memory_waiters.is_empty());
    assert_eq!(world.server.bytes_in_progress(), 0);
}
