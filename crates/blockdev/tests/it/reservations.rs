//! Reservations while the device works: what is promised, what is set beside them, and what holds
//! when the elevator is exchanged for them.

use hoistway_config::DeviceConfig;
use hoistway_core::Kind;
use hoistway_qos::DiskQueueConfig;
use hoistway_qos::{Reserve, Terms};

use super::world::{Client, MIB, MS, SECOND, World, constant_drive, millisecond};

fn known(kind: Kind) -> DeviceConfig {
    DeviceConfig {
        queue: DiskQueueConfig { bandwidth: Some(64 * MIB), position_ns: Some(0), ..millisecond(kind, 2).queue },
        ..millisecond(kind, 2)
    }
}

fn reserving(bytes_per_second: u64) -> Terms {
    Terms { reserve: Some(Reserve { bytes_per_second, request_bytes: 65_536 }), ..Terms::default() }
}

fn tunable(world: &World, name: &str) -> Option<i64> {
    world.device.scheduler().tunables().find(|(tunable, _)| tunable.name == name).map(|(_, value)| value)
}

/// A device that is at work, and on which nothing is reserved.
fn at_work(config: &DeviceConfig) -> World {
    let mut world = World::new(config);
    world.add(None, Client::reads(16, 65_536));
    world.run_until(100 * MS);
    world
}

#[test]
fn what_is_set_survives_the_first_reservation() {
    let mut world = at_work(&known(Kind::Bfq));
    world.device.scheduler_mut().set_tunable("slice_idle", 3).expect("bfq idles");
    world.device.scheduler_mut().set_tenant("film", &reserving(MIB), world.engine.now_ns).expect("room for it");
    assert!(world.device.scheduler().is_switching(), "requests are in the device");
    world.device.scheduler_mut().set_tunable("back_seek_max", 77).expect("bfq has it");
    world.run_until(200 * MS);
    let values = ["slice_idle", "back_seek_max", "low_latency"].map(|name| tunable(&world, name));
    assert_eq!(values, [Some(3), Some(77), Some(0)], "and what the configuration says");
    assert!(world.device.scheduler().reserved().is_some_and(|reserved| reserved.groups == 1));
    // And the other way: the layer goes with the next elevator, when nobody reserves any more.
    world.device.scheduler_mut().set_tunable("excess", 1).expect("the layer has it");
    world.device.scheduler_mut().set_tenant("film", &Terms::default(), world.engine.now_ns).expect("good terms");
    world.device.scheduler_mut().switch(Kind::Deadline, world.engine.now_ns).expect("nothing is being switched");
    world.run_until(300 * MS);
    assert_eq!((world.device.scheduler().elevator(), tunable(&world, "excess")), (Kind::Deadline, None));
    world.device.scheduler_mut().set_tunable("fifo_batch", 5).expect("deadline has it");
    world.device.scheduler_mut().set_tenant("film", &reserving(MIB), world.engine.now_ns).expect("room for it");
    world.run_until(400 * MS);
    let values = ["fifo_batch", "excess", "slice_idle"].map(|name| tunable(&world, name));
    assert_eq!(values, [Some(5), Some(1), None]);
    world.device.scheduler_mut().switch(Kind::Bfq, world.engine.now_ns).expect("nothing is being switched");
    world.run_until(500 * MS);
    let values = ["slice_idle", "low_latency", "excess"].map(|name| tunable(&world, name));
    assert_eq!(values, [Some(8), Some(0), Some(1)], "the configuration's for its elevator, and the layer's");
}

#[test]
fn a_reservation_beyond_the_device_is_refused_under_load_too_and_the_old_one_stays() {
    let mut world = at_work(&known(Kind::Bfq));
    let refusal = |world: &mut World, name: &str, rate| {
        let now_ns = world.now();
        world
            .device
            .scheduler_mut()
            .set_tenant(name, &reserving(rate), now_ns)
            .expect_err("64 MiB/s less 15 %")
            .to_string()
    };
    // 85 % of 67,108 KB/s, and what is left of it beside 40 MB/s.
    assert_eq!(
        refusal(&mut world, "film", 60_000_000),
        "60000000 bytes a second cannot be reserved: no capacity: 57041800 bytes a second are left"
    );
    assert_eq!(
        (
            world.device.scheduler().is_switching(),
            world.device.scheduler().terms("film").and_then(|terms| terms.reserve)
        ),
        (false, None)
    );
    world.device.scheduler_mut().set_tenant("film", &reserving(40_000_000), world.engine.now_ns).expect("room for it");
    assert!(world.device.scheduler().is_switching(), "requests are in the device");
    assert_eq!(
        refusal(&mut world, "more", 20_000_000),
        "20000000 bytes a second cannot be reserved: no capacity: 17041799 bytes a second are left"
    );
    assert_eq!(
        refusal(&mut world, "film", 58_000_000),
        "58000000 bytes a second cannot be reserved: no capacity: 17041799 bytes a second are left"
    );
    world.run_until(200 * MS);
    let told = refusal(&mut world, "film", 58_000_000);
    assert_eq!(
        told, "58000000 bytes a second cannot be reserved: no capacity: 17041799 bytes a second are left",
        "as the layer itself says"
    );
    assert_eq!(world.device.scheduler().terms("film"), Some(&reserving(40_000_000)));
    assert_eq!(world.device.scheduler().unreserved("film"), None);
    assert!(
        world
            .device
            .scheduler()
            .reserved()
            .is_some_and(|reserved| reserved.groups == 1 && reserved.load_ns > 590_000_000)
    );
}

#[test]
fn a_reservation_that_is_made_while_an_elevator_is_switched_follows() {
    let mut world = at_work(&known(Kind::Bfq));
    world.device.scheduler_mut().switch(Kind::Noop, world.engine.now_ns).expect("nothing is being switched");
    let warnings =
        world.device.scheduler_mut().set_tenant("film", &reserving(MIB), world.engine.now_ns).expect("room for it");
    assert!(warnings.iter().any(|warning| warning.ends_with("the reservation follows")), "{warnings:?}");
    world.run_until(200 * MS);
    assert_eq!((world.device.scheduler().elevator(), world.device.scheduler().is_switching()), (Kind::Noop, false));
    assert!(world.device.scheduler().reserved().is_some_and(|reserved| reserved.groups == 1));
}

#[test]
fn the_layers_tunables_are_taken_at_the_start_and_later_and_have_the_last_word() {
    let said = |names: &[(&str, i64)]| DeviceConfig {
        queue: DiskQueueConfig {
            tunables: names.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..known(Kind::Fiops).queue
        },
        ..known(Kind::Fiops)
    };
    let config = said(&[("dirs", 0), ("device_bandwidth", 1000), ("size_cost", 1)]);
    let mut world = World::new(&config);
    assert_eq!(tunable(&world, "dirs"), None, "nothing is reserved");
    world.device.scheduler_mut().set_tenant("film", &reserving(65_536), 0).expect("room for it");
    let values = |world: &World| ["dirs", "device_bandwidth", "device_position"].map(|name| tunable(world, name));
    assert_eq!(values(&world), [Some(0), Some(1000), Some(0)]);
    world.device.reconfigure(&said(&[("dirs", 1)]), 0).expect("a good configuration");
    assert_eq!(values(&world), [Some(1), Some(67_108), Some(0)], "the device's own again");
    world.device.scheduler_mut().switch(Kind::Noop, 0).expect("nothing is being switched");
    assert_eq!(values(&world), [Some(1), Some(67_108), Some(0)]);
    let unknown =
        DeviceConfig { queue: DiskQueueConfig { bandwidth: None, position_ns: None, ..said(&[]).queue }, ..said(&[]) };
    world.device.reconfigure(&unknown, 0).expect("a good configuration");
    assert_eq!(values(&world), [Some(2), Some(60_000), Some(12_000)], "what is not told any more has its default");
}

#[test]
fn requests_that_are_later_than_promised_are_counted_for_their_tenant() {
    // 64 KiB each: the drive of 1 ms does 64,000 KB/s, and is said to do that, or four times as
    // much.
    for (said, misses) in [(60 * MIB, false), (240 * MIB, true)] {
        let config = DeviceConfig {
            queue: DiskQueueConfig { bandwidth: Some(said), ..known(Kind::Noop).queue },
            ..known(Kind::Noop)
        };
        let mut world = World::new(&DeviceConfig { drive: Some(constant_drive(MS, 1)), ..config });
        world.device.scheduler_mut().set_tenant("film", &reserving(said * 4 / 5), 0).expect("room for it");
        world.device.scheduler_mut().set_tenant("other", &Terms::default(), 0).expect("good terms");
        world.add(Some("film"), Client::reads(2048, 65_536));
        world.add(Some("other"), Client::reads(16, 65_536));
        world.run_until(5 * SECOND);
        let missed: Vec<(&str, bool)> =
            world.device.scheduler().accounts().map(|(name, account)| (name, account.reservation_missed > 0)).collect();
        assert_eq!(missed, [("default", false), ("film", misses), ("other", false)]);
    }
}

#[test]
fn promises_that_the_device_cannot_keep_any_more_are_told_and_marked() {
    let mut world = World::new(&known(Kind::Fiops));
    for name in ["film", "music"] {
        world.device.scheduler_mut().set_tenant(name, &reserving(20_000_000), 0).expect("room for it");
    }
    assert_eq!(world.device.scheduler_mut().set_tunable("device_bandwidth", 50_000), Ok(Vec::new()), "80 % of that");
    let told = world.device.scheduler_mut().set_tunable("device_bandwidth", 25_000).expect("in range");
    assert_eq!(
        told,
        [
            "device d: reservations take 160 % of the device's time by its present figures, and 85 % can be reserved: the reservations of 2 tenants are not guaranteed"
        ]
    );
    assert_eq!(world.device.scheduler_mut().set_tunable("device_bandwidth", 24_000), Ok(Vec::new()), "it was told");
    let kept = |world: &World| ["film", "music"].map(|name| world.device.scheduler().unreserved(name).is_none());
    assert_eq!(kept(&world), [false, false]);
    world.device.scheduler_mut().set_tenant("music", &Terms::default(), 0).expect("good terms");
    assert_eq!(
        (world.device.scheduler_mut().recheck_reservations(), kept(&world)),
        (Vec::new(), [true, true]),
        "20 of 24 MB/s"
    );
}
