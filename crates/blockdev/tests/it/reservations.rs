//! Reservations of a device in operation: admission, tunables of the reservation layer, and
//! switches of the elevator.

use hoistway_config::DeviceConfig;
use hoistway_core::Kind;
use hoistway_qos::DiskQueueConfig;
use hoistway_qos::{Reserve, Terms};

use super::testbed::{Client, MIB, MS, SECOND, Testbed, constant_drive, millisecond};

fn known(kind: Kind) -> DeviceConfig {
    DeviceConfig {
        queue: DiskQueueConfig { bandwidth: Some(64 * MIB), position_ns: Some(0), ..millisecond(kind, 2).queue },
        ..millisecond(kind, 2)
    }
}

fn reserving(bytes_per_second: u64) -> Terms {
    Terms { reserve: Some(Reserve { bytes_per_second, request_bytes: 65_536 }), ..Terms::default() }
}

fn tunable(testbed: &Testbed, name: &str) -> Option<i64> {
    testbed.device.scheduler().tunables().find(|(tunable, _)| tunable.name == name).map(|(_, value)| value)
}

/// A device with requests in flight and without reservations.
fn at_work(config: &DeviceConfig) -> Testbed {
    let mut testbed = Testbed::new(config);
    testbed.add(None, Client::reads(16, 65_536));
    testbed.run_until(100 * MS);
    testbed
}

#[test]
fn settings_survive_the_first_reservation() {
    let mut testbed = at_work(&known(Kind::Bfq));
    testbed.device.scheduler_mut().set_tunable("slice_idle", 3).expect("bfq idles");
    testbed.device.scheduler_mut().set_tenant("film", &reserving(MIB), testbed.engine.now_ns).expect("room for it");
    assert!(testbed.device.scheduler().is_switching(), "requests are in the device");
    testbed.device.scheduler_mut().set_tunable("back_seek_max", 77).expect("bfq has it");
    testbed.run_until(200 * MS);
    let values = ["slice_idle", "back_seek_max", "low_latency"].map(|name| tunable(&testbed, name));
    assert_eq!(values, [Some(3), Some(77), Some(0)], "and what the configuration says");
    assert!(testbed.device.scheduler().reserved().is_some_and(|reserved| reserved.groups == 1));
    // In the other direction, the layer is removed by the next switch after the last reservation
    // has ended.
    testbed.device.scheduler_mut().set_tunable("excess", 1).expect("the layer has it");
    testbed.device.scheduler_mut().set_tenant("film", &Terms::default(), testbed.engine.now_ns).expect("good terms");
    testbed.device.scheduler_mut().switch(Kind::Deadline, testbed.engine.now_ns).expect("nothing is being switched");
    testbed.run_until(300 * MS);
    assert_eq!((testbed.device.scheduler().elevator(), tunable(&testbed, "excess")), (Kind::Deadline, None));
    testbed.device.scheduler_mut().set_tunable("fifo_batch", 5).expect("deadline has it");
    testbed.device.scheduler_mut().set_tenant("film", &reserving(MIB), testbed.engine.now_ns).expect("room for it");
    testbed.run_until(400 * MS);
    let values = ["fifo_batch", "excess", "slice_idle"].map(|name| tunable(&testbed, name));
    assert_eq!(values, [Some(5), Some(1), None]);
    testbed.device.scheduler_mut().switch(Kind::Bfq, testbed.engine.now_ns).expect("nothing is being switched");
    testbed.run_until(500 * MS);
    let values = ["slice_idle", "low_latency", "excess"].map(|name| tunable(&testbed, name));
    assert_eq!(values, [Some(8), Some(0), Some(1)], "the configuration's for its elevator, and the layer's");
}

#[test]
fn an_excessive_reservation_is_refused_and_the_old_one_stays() {
    let mut testbed = at_work(&known(Kind::Bfq));
    let refusal = |testbed: &mut Testbed, name: &str, rate| {
        let now_ns = testbed.now();
        testbed
            .device
            .scheduler_mut()
            .set_tenant(name, &reserving(rate), now_ns)
            .expect_err("64 MiB/s less 15 %")
            .to_string()
    };
    // 85 % of 67,108 KB/s, and what is left of it beside 40 MB/s.
    assert_eq!(
        refusal(&mut testbed, "film", 60_000_000),
        "60000000 bytes a second cannot be reserved: no capacity: 57041800 bytes a second are left"
    );
    assert_eq!(
        (
            testbed.device.scheduler().is_switching(),
            testbed.device.scheduler().terms("film").and_then(|terms| terms.reserve)
        ),
        (false, None)
    );
    testbed
        .device
        .scheduler_mut()
        .set_tenant("film", &reserving(40_000_000), testbed.engine.now_ns)
        .expect("room for it");
    assert!(testbed.device.scheduler().is_switching(), "requests are in the device");
    assert_eq!(
        refusal(&mut testbed, "more", 20_000_000),
        "20000000 bytes a second cannot be reserved: no capacity: 17041799 bytes a second are left"
    );
    assert_eq!(
        refusal(&mut testbed, "film", 58_000_000),
        "58000000 bytes a second cannot be reserved: no capacity: 17041799 bytes a second are left"
    );
    testbed.run_until(200 * MS);
    let error = refusal(&mut testbed, "film", 58_000_000);
    assert_eq!(
        error, "58000000 bytes a second cannot be reserved: no capacity: 17041799 bytes a second are left",
        "as the layer itself says"
    );
    assert_eq!(testbed.device.scheduler().terms("film"), Some(&reserving(40_000_000)));
    assert_eq!(testbed.device.scheduler().unreserved("film"), None);
    assert!(
        testbed
            .device
            .scheduler()
            .reserved()
            .is_some_and(|reserved| reserved.groups == 1 && reserved.load_ns > 590_000_000)
    );
}

#[test]
fn a_reservation_during_a_switch_is_kept() {
    let mut testbed = at_work(&known(Kind::Bfq));
    testbed.device.scheduler_mut().switch(Kind::Noop, testbed.engine.now_ns).expect("nothing is being switched");
    let warnings =
        testbed.device.scheduler_mut().set_tenant("film", &reserving(MIB), testbed.engine.now_ns).expect("room for it");
    assert!(warnings.iter().any(|warning| warning.ends_with("the reservation follows")), "{warnings:?}");
    testbed.run_until(200 * MS);
    assert_eq!((testbed.device.scheduler().elevator(), testbed.device.scheduler().is_switching()), (Kind::Noop, false));
    assert!(testbed.device.scheduler().reserved().is_some_and(|reserved| reserved.groups == 1));
}

#[test]
fn tunables_of_the_reservation_layer_can_be_set_at_any_time() {
    let configured = |names: &[(&str, i64)]| DeviceConfig {
        queue: DiskQueueConfig {
            tunables: names.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..known(Kind::Fiops).queue
        },
        ..known(Kind::Fiops)
    };
    let config = configured(&[("dirs", 0), ("device_bandwidth", 1000), ("size_cost", 1)]);
    let mut testbed = Testbed::new(&config);
    assert_eq!(tunable(&testbed, "dirs"), None, "nothing is reserved");
    testbed.device.scheduler_mut().set_tenant("film", &reserving(65_536), 0).expect("room for it");
    let values = |testbed: &Testbed| ["dirs", "device_bandwidth", "device_position"].map(|name| tunable(testbed, name));
    assert_eq!(values(&testbed), [Some(0), Some(1000), Some(0)]);
    testbed.device.reconfigure(&configured(&[("dirs", 1)]), 0).expect("a good configuration");
    assert_eq!(values(&testbed), [Some(1), Some(67_108), Some(0)], "the device's own again");
    testbed.device.scheduler_mut().switch(Kind::Noop, 0).expect("nothing is being switched");
    assert_eq!(values(&testbed), [Some(1), Some(67_108), Some(0)]);
    let unknown = DeviceConfig {
        queue: DiskQueueConfig { bandwidth: None, position_ns: None, ..configured(&[]).queue },
        ..configured(&[])
    };
    testbed.device.reconfigure(&unknown, 0).expect("a good configuration");
    assert_eq!(values(&testbed), [Some(2), Some(60_000), Some(12_000)], "an unset tunable has its default");
}

#[test]
fn late_requests_are_counted_for_their_tenant() {
    // 64 KiB each: the drive of 1 ms sustains 64,000 KB/s; its configured bandwidth is that, or
    // four times as much.
    for (configured, misses) in [(60 * MIB, false), (240 * MIB, true)] {
        let config = DeviceConfig {
            queue: DiskQueueConfig { bandwidth: Some(configured), ..known(Kind::Noop).queue },
            ..known(Kind::Noop)
        };
        let mut testbed = Testbed::new(&DeviceConfig { drive: Some(constant_drive(MS, 1)), ..config });
        testbed.device.scheduler_mut().set_tenant("film", &reserving(configured * 4 / 5), 0).expect("room for it");
        testbed.device.scheduler_mut().set_tenant("other", &Terms::default(), 0).expect("good terms");
        testbed.add(Some("film"), Client::reads(2048, 65_536));
        testbed.add(Some("other"), Client::reads(16, 65_536));
        testbed.run_until(5 * SECOND);
        let missed: Vec<(&str, bool)> = testbed
            .device
            .scheduler()
            .accounts()
            .map(|(name, account)| (name, account.reservation_missed > 0))
            .collect();
        assert_eq!(missed, [("default", false), ("film", misses), ("other", false)]);
    }
}

#[test]
fn the_lateness_of_requests_is_known_while_they_wait_and_after() {
    // The device takes 1 s for a request of 64 KiB; its configuration says 1 ms.
    let config = DeviceConfig { drive: Some(constant_drive(SECOND, 1)), ..known(Kind::Noop) };
    let mut testbed = Testbed::new(&config);
    testbed.device.scheduler_mut().set_tenant("film", &reserving(MIB), 0).expect("room for it");
    testbed.device.scheduler_mut().set_tenant("other", &Terms::default(), 0).expect("good terms");
    testbed.add(Some("film"), Client::reads(1, 65_536));
    testbed.add(Some("other"), Client::reads(1, 65_536));
    testbed.run_until(500 * MS);
    let bound_ns = testbed.device.scheduler().reserved().expect("a reservation").delay_ns_max;
    let lateness_ns = |testbed: &Testbed, now_ns| match testbed.device.scheduler().late_tenants(now_ns)[..] {
        [] => 0,
        [("film", ns)] => ns,
        ref others => panic!("only film has a reservation: {others:?}"),
    };
    // Both requests arrived at 0 and are not complete. One of the two is in the device.
    assert!(bound_ns < 400 * MS, "{bound_ns}");
    let late_ns = lateness_ns(&testbed, 500 * MS);
    assert!(late_ns.abs_diff(500 * MS - bound_ns) < 20 * MS, "{late_ns} after the bound of {bound_ns} ns");
    assert_eq!(lateness_ns(&testbed, 900 * MS) - late_ns, 400 * MS, "it grows with time");
    let account = |testbed: &Testbed| {
        let account = testbed.device.scheduler().account("film").expect("it has an account");
        (account.reservation_missed, account.reservation_late_ns)
    };
    assert_eq!(account(&testbed), (0, 0), "nothing has completed");
    testbed.run_until(10 * SECOND + 500 * MS);
    let (missed, sum_ns) = account(&testbed);
    // Each takes 1 s, or 2 s if the other tenant's request is served before it.
    let mean_ns = sum_ns / missed.max(1);
    assert!(missed >= 3 && (500 * MS..2 * SECOND).contains(&mean_ns), "{missed} requests, late by {mean_ns} ns");
    let (_, other) = testbed.device.scheduler().accounts().find(|(name, _)| *name == "other").expect("an account");
    assert_eq!((other.reservation_missed, other.reservation_late_ns), (0, 0));
}

#[test]
fn reservations_beyond_the_device_are_reported_and_marked() {
    let mut testbed = Testbed::new(&known(Kind::Fiops));
    for name in ["film", "music"] {
        testbed.device.scheduler_mut().set_tenant(name, &reserving(20_000_000), 0).expect("room for it");
    }
    assert_eq!(testbed.device.scheduler_mut().set_tunable("device_bandwidth", 50_000), Ok(Vec::new()), "80 % of that");
    let warnings = testbed.device.scheduler_mut().set_tunable("device_bandwidth", 25_000).expect("in range");
    assert_eq!(
        warnings,
        [
            "device d: reservations take 160 % of the device's time by its present figures, and 85 % can be reserved: the reservations of 2 tenants are not guaranteed"
        ]
    );
    assert_eq!(
        testbed.device.scheduler_mut().set_tunable("device_bandwidth", 24_000),
        Ok(Vec::new()),
        "the warning is given once"
    );
    let kept = |testbed: &Testbed| ["film", "music"].map(|name| testbed.device.scheduler().unreserved(name).is_none());
    assert_eq!(kept(&testbed), [false, false]);
    testbed.device.scheduler_mut().set_tenant("music", &Terms::default(), 0).expect("good terms");
    assert_eq!(
        (testbed.device.scheduler_mut().recheck_reservations(), kept(&testbed)),
        (Vec::new(), [true, true]),
        "20 of 24 MB/s"
    );
}
