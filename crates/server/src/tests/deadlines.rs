//! Why those are closed who take too long.

use hoistway_nbd::wire::Command;

use super::world::{MS, World, user};
use crate::Purpose;
use crate::connection::Reason;
use hoistway_reactor::ConnId;

const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:8M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// What is said of the only client when its time has passed.
fn reason(world: &mut World) -> String {
    let id: ConnId = world.server.table.ids()[0];
    let client = world.server.table.get_mut(id).expect("it is there");
    client.expire();
    client.over().map(Reason::to_string).unwrap_or_default()
}

#[test]
fn it_is_said_whether_a_client_chose_nothing_or_did_not_take_its_replies() {
    let mut world = World::of(DISK);
    world.connect(Purpose::Nbd, user(1));
    world.pass(MS);
    assert_eq!(reason(&mut world), "the client did not choose an export in time");
    let mut world = World::of(DISK);
    let mut client = world.enter("x", user(1)).expect("it may");
    // More than the connection holds (and no hole), a goodbye, and nobody who reads.
    let mut bytes = World::request(&mut client, Command::Write, 0, 4 << 20, &vec![1; 4 << 20]);
    world.write(client.link, &bytes);
    world.await_answers(&mut client, 1);
    bytes = World::request(&mut client, Command::Read, 0, 4 << 20, &[]);
    bytes.extend(World::request(&mut client, Command::Disconnect, 0, 0, &[]));
    world.write(client.link, &bytes);
    world.pass(100 * MS);
    assert_eq!(reason(&mut world), "the client did not take its last replies in time");
}
