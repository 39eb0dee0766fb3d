//! Emulated drives: service times, sizes and faults.

use hoistway_blockdev::BlockRequest;
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_drive::{Access, Drive, Faults, Hang, Op, Profile};
use hoistway_qos::DiskQueueConfig;
use hoistway_qos::IoError;
use hoistway_qos::RequestOp;

use crate::testbed::*;

fn disk() -> Profile {
    Profile::builtin("sata-7200-2006").expect("a built-in profile")
}

fn slow(profile: Profile) -> DeviceConfig {
    DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Noop), ..config("slow").queue },
        drive: Some(profile),
        ..config("slow")
    }
}

#[test]
fn requests_complete_at_the_time_of_the_model() {
    let mut testbed = Testbed::new(&slow(disk()));
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let mut model = Drive::new(&disk());
    let mut at_ns = 0;
    for ticket in 0..200u64 {
        let sector = ticket * 7_919 * 101 % 2_000_000;
        assert!(execute(&mut testbed, member, read(ticket, sector * 512, 4096), SECOND).is_some());
        let access = Access { op: Op::Read, sector, sectors: 8 };
        at_ns = model.serve(at_ns, access).expect("within the disk").service.finish_ns;
        assert_eq!(testbed.now(), at_ns, "request {ticket}");
    }
    let lateness = testbed.device.lateness().expect("an emulated drive");
    assert_eq!((lateness.len(), lateness.max()), (200, 0));
}

#[test]
fn a_slower_backend_delays_the_completion() {
    let fast = DeviceConfig { drive: Some(constant_drive(MS, 4)), ..config("f") };
    let mut testbed = Testbed::on_file(&fast, 64 << 20, 30 * MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    assert!(execute(&mut testbed, member, read(1, 0, 4096), SECOND).is_some());
    assert_eq!(testbed.now(), 30 * MS);
}

#[test]
fn a_bad_sector_fails_its_request() {
    let faults = Faults { bad_sectors: vec![(1000, 1)], retries: 2, ..Faults::default() };
    let profile = disk().with_faults(faults).expect("good faults");
    let mut testbed = Testbed::new(&DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Deadline), ..slow(profile.clone()).queue },
        ..slow(profile)
    });
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    // The first request keeps the drive busy while the other three become one command.
    testbed.device.submit(member, read(1, 100 << 20, 4096), 0);
    let mut done = Vec::new();
    testbed.device.run(&mut testbed.engine, 0, &mut done);
    for (ticket, sector) in [(2, 992), (3, 1000), (4, 1008)] {
        testbed.device.submit(member, read(ticket, sector * 512, 4096), 0);
    }
    let mut results = Vec::new();
    for _ in 0..1000 {
        let Some(next_ns) = testbed.device.next_wake_ns() else { break };
        testbed.engine.now_ns = next_ns;
        testbed.device.run(&mut testbed.engine, next_ns, &mut done);
        results.extend(done.drain(..).map(|done| (done.ticket, done.result.err())));
    }
    results.sort_unstable_by_key(|(ticket, _)| *ticket);
    assert_eq!(testbed.device.scheduler().merged()[0], 2);
    let failed = Some(IoError::Io);
    assert_eq!(results, [(1, None), (2, None), (3, failed), (4, failed)], "what lies before the sector was read");
}

#[test]
fn a_hanging_drive_stalls_its_requests() {
    let hang = Hang { at_ms: 100.0, for_ms: 2_000.0 };
    let profile = disk().with_faults(Faults { hangs: vec![hang], ..Faults::default() }).expect("good faults");
    let mut testbed = Testbed::new(&slow(profile));
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.engine.now_ns = 150 * MS;
    assert!(execute(&mut testbed, member, read(1, 0, 4096), 1_900 * MS).is_none(), "the drive completes no request");
    assert!(execute(&mut testbed, member, read(2, 1 << 20, 4096), 3 * SECOND).is_some());
    assert!(testbed.now() >= 2_100 * MS);
}

#[test]
fn the_size_is_the_smaller_of_drive_and_backend_with_a_notice() {
    let little = Testbed::new(&DeviceConfig { backend: BackendConfig::Memory { bytes: 1 << 20 }, ..slow(disk()) });
    assert_eq!(little.device.size(), 1 << 20);
    assert!(little.device.notices()[0].contains("1048576 of the"), "{:?}", little.device.notices());
    let large = Testbed::new(&DeviceConfig { backend: BackendConfig::Null { bytes: 1 << 50 }, ..slow(disk()) });
    assert_eq!(large.device.size(), disk().capacity_sectors() * 512);
    assert!(large.device.notices()[0].contains("are not used"), "{:?}", large.device.notices());
}

#[test]
fn the_default_elevator_is_paternoster_for_rotating_drives_else_fiops() {
    let unset = |drive| Testbed::new(&DeviceConfig { drive, ..config("d") });
    let rotating = unset(Some(disk()));
    assert_eq!(
        (rotating.device.scheduler().elevator(), rotating.device.scheduler().is_rotational()),
        (Kind::Paternoster, true)
    );
    assert!(rotating.device.scheduler().elevator_reason().contains("the emulated drive rotates"));
    let flash = unset(None);
    assert_eq!((flash.device.scheduler().elevator(), flash.device.scheduler().is_rotational()), (Kind::Fiops, false));
    let groups =
        flash.device.scheduler().tunables().find(|(tunable, _)| tunable.name == "groups").expect("fiops has it");
    assert_eq!(groups.1, 1);
}

#[test]
fn late_completions_are_counted_and_time_does_not_go_back() {
    let mut testbed = Testbed::new(&millisecond(Kind::Noop, 4));
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let mut done = Vec::new();
    for ticket in 0..100u64 {
        testbed.device.submit(member, read(ticket, 0, 4096), testbed.now());
        let now_ns = testbed.now();
        testbed.device.run(&mut testbed.engine, now_ns, &mut done);
        testbed.engine.now_ns = testbed.device.next_wake_ns().expect("the drive is at work") + 150_000;
        let now_ns = testbed.now();
        testbed.device.run(&mut testbed.engine, now_ns, &mut done);
    }
    assert_eq!(done.len(), 100);
    let lateness = testbed.device.lateness().expect("an emulated drive");
    assert!((150_000..=151_600).contains(&lateness.value_at_quantile(0.5)), "{}", lateness.value_at_quantile(0.5));
}

#[test]
fn zeroes_take_the_drive_as_long_as_data() {
    let time = |op: RequestOp| {
        let mut testbed = Testbed::new(&slow(disk().without_write_cache()));
        let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
        let data = (op == RequestOp::Write).then(|| hoistway_reactor::Buffer::alone(1 << 20));
        let work = BlockRequest { data, ..BlockRequest::plain(1, op, 0, 1 << 20) };
        assert!(execute(&mut testbed, member, work, SECOND).is_some());
        testbed.now()
    };
    assert_eq!(time(RequestOp::Zero { punch: true }), time(RequestOp::Write));
    assert!(!Testbed::new(&slow(disk())).device.zero_is_fast(true));
    assert!(Testbed::new(&config("n")).device.zero_is_fast(true));
}
