//! The reasons for which slow clients are closed.

use hoistway_nbd::wire::Command;

use super::world::{MS, World, user};
use crate::Purpose;
use crate::close_reason::CloseReason;
use hoistway_reactor::ConnId;

const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:8M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

/// Returns the close reason of the only client after its deadline.
fn reason(world: &mut World) -> String {
    let id: ConnId = world.server.connections.ids()[0];
    let client = world.server.connections.get_mut(id).expect("a connection");
    client.expire();
    client.close_reason().map(CloseReason::to_string).unwrap_or_default()
}

#[test]
fn the_reason_distinguishes_handshake_and_reply_timeouts() {
    let mut world = World::of(DISK);
    world.connect(Purpose::Nbd, user(1));
    world.pass(MS);
    assert_eq!(reason(&mut world), "the client did not choose an export in time");
    let mut world = World::of(DISK);
    let mut client = world.join("x", user(1)).expect("an admitted client");
    // More data than the link holds (and no hole), a disconnect request, and no reads.
    let mut bytes = World::request(&mut client, Command::Write, 0, 4 << 20, &vec![1; 4 << 20]);
    world.write(client.link, &bytes);
    world.await_replies(&mut client, 1);
    bytes = World::request(&mut client, Command::Read, 0, 4 << 20, &[]);
    bytes.extend(World::request(&mut client, Command::Disconnect, 0, 0, &[]));
    world.write(client.link, &bytes);
    world.pass(100 * MS);
    assert_eq!(reason(&mut world), "the client did not take its last replies in time");
}
