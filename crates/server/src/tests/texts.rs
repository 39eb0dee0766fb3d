//! Those who steer and those who fetch metrics.

use super::world::{MS, World, user};
use crate::Purpose;

const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

#[test]
fn a_metrics_connection_lives_by_whole_requests_and_not_by_bytes() {
    let mut world = World::of(DISK);
    let (drips, asks) = (world.connect(Purpose::Metrics, user(1)), world.connect(Purpose::Metrics, user(1)));
    for _ in 0..5 {
        world.write(drips, b"G");
        world.write(asks, b"GET / HTTP/1.1\r\n\r\n");
        world.pass(10_000 * MS);
        assert!(world.read(asks).starts_with(b"HTTP/1.1 200 OK"));
    }
    assert!(!world.is_open(drips), "30 s without a request");
    assert!(world.is_open(asks));
    world.pass(31_000 * MS);
    assert!(!world.is_open(asks));
}

#[test]
fn those_who_fetch_metrics_do_not_keep_those_who_steer_out() {
    let mut world = World::of(DISK);
    let fetchers: Vec<_> = (0..65).map(|_| world.connect(Purpose::Metrics, user(1))).collect();
    world.pass(10 * MS);
    assert_eq!(fetchers.iter().filter(|link| world.is_open(**link)).count(), 64);
    let steers = world.connect(Purpose::Control, user(1));
    world.write(steers, b"get server/reload\n");
    world.pass(10 * MS);
    assert_eq!(world.read(steers), b"= never\nok\n");
}
