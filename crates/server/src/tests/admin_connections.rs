//! Connections to the control tree and to the metrics.

use super::world::{MS, World, user};
use crate::Purpose;

const DISK: &str = "[[device]]\nname = \"d\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n";

#[test]
fn only_whole_requests_extend_the_deadline_of_a_metrics_connection() {
    let mut world = World::of(DISK);
    let (partial, whole) = (world.connect(Purpose::Metrics, user(1)), world.connect(Purpose::Metrics, user(1)));
    for _ in 0..5 {
        world.write(partial, b"G");
        world.write(whole, b"GET / HTTP/1.1\r\n\r\n");
        world.pass(10_000 * MS);
        assert!(world.read(whole).starts_with(b"HTTP/1.1 200 OK"));
    }
    assert!(!world.is_open(partial), "30 s without a request");
    assert!(world.is_open(whole));
    world.pass(31_000 * MS);
    assert!(!world.is_open(whole));
}

#[test]
fn metrics_connections_do_not_lock_administrators_out() {
    let mut world = World::of(DISK);
    let scrapers: Vec<_> = (0..65).map(|_| world.connect(Purpose::Metrics, user(1))).collect();
    world.pass(10 * MS);
    assert_eq!(scrapers.iter().filter(|link| world.is_open(**link)).count(), 64);
    let control = world.connect(Purpose::Control, user(1));
    world.write(control, b"get server/reload\n");
    world.pass(10 * MS);
    assert_eq!(world.read(control), b"= never\nok\n");
}

#[test]
fn slow_metrics_clients_do_not_keep_a_scrape_out() {
    let mut world = World::of(DISK);
    let slow: Vec<_> = (0..64).map(|_| world.connect(Purpose::Metrics, user(1))).collect();
    slow.iter().for_each(|link| world.write(*link, b"GET /met"));
    world.pass(10 * MS);
    assert!(slow.iter().all(|link| world.is_open(*link)));
    // A client that was answered since is not the oldest.
    world.write(slow[0], b"rics HTTP/1.1\r\n\r\n");
    world.pass(10 * MS);
    assert!(world.read(slow[0]).starts_with(b"HTTP/1.1 200 OK"));
    let scrape = world.connect(Purpose::Metrics, user(2));
    world.write(scrape, b"GET /metrics HTTP/1.1\r\n\r\n");
    world.pass(10 * MS);
    assert!(world.read(scrape).starts_with(b"HTTP/1.1 200 OK"));
    let closed: Vec<_> = slow.iter().filter(|link| !world.is_open(**link)).collect();
    assert_eq!(closed, [&slow[1]], "the one without an answer for the longest time");
}
