//! Tests of issuers: priorities, many threads, exited threads, rules.

use hoistway_config::GroupConfig;
use hoistway_config::mount::{GroupsChoice, Ops};
use hoistway_control::{AdminTarget as _, Change, ObjectKind};
use hoistway_qos::Limits;

use super::*;

#[test]
fn real_time_precedes_best_effort_and_idle_comes_last() {
    // Older CFQ versions let the current time slice end first.
    let fixture = fixture(terms(Kind::Cfq));
    let (idle, usual, urgent) = (IdleProcess::start(), IdleProcess::start(), IdleProcess::start());
    idle.set_ioprio(3, 0);
    urgent.set_ioprio(1, 4);
    let log = Log::new();
    let slot = fixture.take(usual.caller());
    for (at, (name, process)) in (1..).zip([(2, &idle), (1, &usual), (0, &urgent)].repeat(3)) {
        fixture.park(&fixture.request(process.caller(), Operation::Read, at * 512 * KIB, 4 * KIB), &log, name);
    }
    drop(slot);
    assert_eq!(log.wait(9), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn an_ionice_change_applies_from_the_next_request() {
    let fixture = fixture(terms(Kind::Cfq));
    let (one, other) = (IdleProcess::start(), IdleProcess::start());
    let log = Log::new();
    let round = |expected: [u8; 4]| {
        let slot = fixture.take(myself());
        for at in [1, 2] {
            fixture.park(&fixture.request(one.caller(), Operation::Read, at * MIB, 4 * KIB), &log, 1);
            fixture.park(&fixture.request(other.caller(), Operation::Read, (at + 4) * MIB, 4 * KIB), &log, 2);
        }
        let before = log.so_far().len();
        drop(slot);
        assert_eq!(log.wait(4)[before..], expected);
        std::thread::sleep(Duration::from_millis(20));
    };
    other.set_ioprio(3, 0);
    round([1, 1, 2, 2]);
    other.set_ioprio(1, 0);
    round([2, 2, 1, 1]);
    other.set_ioprio(2, 4);
    one.set_ioprio(3, 0);
    round([2, 2, 1, 1]);
}

#[test]
fn a_thousand_concurrent_threads_are_served() {
    let fixture = Arc::new(fixture(MountTerms { depth: Some(4), ..terms(Kind::Bfq) }));
    let log = Log::new();
    let begin = Arc::new(std::sync::Barrier::new(1000));
    // The threads stay until they have been counted: exited ones leave the device.
    let end = Arc::new(std::sync::Barrier::new(1001));
    let threads: Vec<_> = (0..1000u64)
        .map(|number| {
            let (fixture, log, begin, end) = (fixture.clone(), log.clone(), begin.clone(), end.clone());
            let builder = std::thread::Builder::new().stack_size(128 << 10);
            let spawned = builder.spawn(move || {
                begin.wait();
                for at in 0..5 {
                    let offset = (number * 7 + at * 131) % 2000 * 4 * KIB;
                    match fixture.gate.admit(&fixture.request(myself(), Operation::Read, offset, 4 * KIB)) {
                        Admission::Now(slot) => {
                            log.note(number);
                            drop(slot);
                        }
                        Admission::Later(ticket) => fixture.gate.park(ticket, log.job(number)),
                    }
                }
                end.wait();
            });
            spawned.expect("there is room for a thousand threads")
        })
        .collect();
    let done = log.wait(5000);
    let mut counts = [0; 1000];
    done.iter().for_each(|number| counts[*number as usize] += 1);
    assert!(counts.iter().all(|count| *count == 5));
    let admin = fixture.gate.admin();
    let names = admin.names(ObjectKind::Clients);
    assert_eq!(names.len(), 1000);
    for name in names {
        let client = admin.client(name.parse().expect("it is a number")).expect("it is there");
        assert_eq!((client.pid.map(|tid| tid.to_string()), client.uid), (Some(name), Some(0)));
    }
    end.wait();
    for thread in threads {
        thread.join().expect("none panics");
    }
}

#[test]
fn a_thread_with_several_users_is_found_after_one_was_removed() {
    let fixture = fixture(terms(Kind::Noop));
    let me = myself();
    let root = fixture.file.clone();
    for uid in [5, 6] {
        let request = GateRequest {
            caller: Caller { uid, ..me },
            operation: Operation::Read,
            backing: &root,
            offset: 0,
            length: 512,
        };
        drop(fixture.gate.admit(&request));
    }
    let admin = fixture.gate.admin();
    assert_eq!(admin.client(me.tid.into()).expect("it is there").uid, Some(5));
    let queue = fixture.gate.shared.file_systems.queues().remove(0);
    let later_ns = now_ns() + 3_600_000_000_000;
    assert_eq!(maintenance::remove_exited(&queue, later_ns, |key| key.1 == 6, |_| false), 1);
    assert_eq!(admin.client(me.tid.into()).expect("it is there still").uid, Some(6));
    assert_eq!(maintenance::remove_exited(&queue, later_ns, |_| false, |_| false), 1);
    assert!(admin.client(me.tid.into()).is_none());
}

#[test]
fn extents_are_queried_again_after_a_change_that_ran_during_a_query() {
    let fixture = fixture(terms(Kind::Noop));
    let system = fixture.gate.shared.file_systems.of(&fixture.file).expect("it is scheduled");
    if !system.queue.disk.maps_extents {
        eprintln!("skipped: temporary files are on no disk here");
        return;
    }
    let hour_ns = 3_600_000_000_000;
    for (hours, operation) in [(1, Operation::MetadataWrite), (2, Operation::Write)] {
        let request = fixture.request(myself(), operation, 0, 4096);
        let Admission::Now(slot) = fixture.gate.admit(&request) else { panic!("it is alone") };
        // A query during the change.
        system.extent_cache.query(&fixture.file, 0, now_ns() + hours * hour_ns);
        assert!(!system.extent_cache.is_stale(fixture.file.inode), "{operation:?}");
        drop(slot);
        assert!(
            system.extent_cache.is_stale(fixture.file.inode),
            "{operation:?}: extents read meanwhile are not reused"
        );
    }
}

#[test]
fn exited_threads_are_removed_from_the_device() {
    let fixture = fixture(terms(Kind::Cfq));
    let dead = IdleProcess::start();
    let caller = dead.caller();
    drop(fixture.take(caller));
    let log = Log::new();
    let slot = fixture.take(myself());
    let before_ns = now_ns();
    fixture.park(&fixture.request(caller, Operation::Read, MIB, 512), &log, ());
    drop(dead);
    let queue = fixture.gate.shared.file_systems.queues().remove(0);
    let sweep = |at_ns: u64| {
        let is_there = |tid| {
            assert!(queue.is_free(), "the queue is not locked during a query");
            thread_facts::exists(tid)
        };
        maintenance::remove_exited(&queue, at_ns, |_| false, is_there)
    };
    let hour_ns = HOUR_MS * 1_000_000;
    assert_eq!(sweep(before_ns + hour_ns), 0, "it has a request in flight");
    drop(slot);
    log.wait(1);
    fixture.wait_for_idle_device();
    assert_eq!(sweep(before_ns), 0, "its last request is recent");
    let removed = sweep(before_ns + hour_ns);
    // After 5 s the gate itself may have removed it.
    assert!(removed == 1 || now_ns() >= before_ns + 5_000_000_000, "{removed} removed");
    assert_eq!(fixture.gate.admin().names(ObjectKind::Clients), [myself().tid.to_string()]);
}

#[test]
fn rules_attribute_requests() {
    let read = Ops::NAMES[0].1;
    let idle = Terms {
        priority: hoistway_core::Priority::new(hoistway_core::Class::Idle, 7).expect("it is one"),
        ..Terms::default()
    };
    let config = MountConfig {
        mount: terms(Kind::CfqV3),
        tenants: vec![
            tenant("scans", vec![MountRule::Path("sub/*".into()), MountRule::Op(read)], idle),
            tenant("sleepers", vec![MountRule::Comm("sleep".into())], Terms::default()),
        ],
        ..MountConfig::default()
    };
    let fixture = fixture_with(config);
    std::fs::create_dir(fixture.folder.path().join("sub")).expect("it is ours");
    let below = new_file(&fixture.folder, "sub/file");
    let sleeper = IdleProcess::start();
    let log = Log::new();
    let slot = fixture.take(myself());
    let scan =
        GateRequest { caller: sleeper.caller(), operation: Operation::Read, backing: &below, offset: 0, length: 512 };
    fixture.park(&scan, &log, "scan");
    fixture.park(&GateRequest { operation: Operation::Write, ..scan }, &log, "write");
    fixture.park(&fixture.request(myself(), Operation::Read, MIB, 512), &log, "own");
    drop(slot);
    let order = log.wait(3);
    assert_eq!(order[2], "scan", "the idle class is last: {order:?}");
    let admin = fixture.gate.admin();
    let device = admin.names(ObjectKind::Devices).remove(0);
    let mut counts = Vec::new();
    admin.accounts(&device, &mut |tenant, account| {
        counts.push((tenant.to_owned(), account.ops.iter().map(|op| op.requests).sum::<u64>()));
    });
    // The completion of the last request may not be counted yet.
    assert!(counts.iter().any(|(tenant, count)| tenant == "sleepers" && *count == 1), "{counts:?}");
    assert!(counts.iter().any(|(tenant, _)| tenant == "scans"), "{counts:?}");
}

#[test]
fn a_control_group_can_be_a_tenant() {
    let mount = MountTerms { groups: GroupsChoice::Cgroup, ..terms(Kind::Bfq) };
    let fixture = fixture(mount);
    drop(fixture.take(myself()));
    let facts = thread_facts::read_facts(myself(), true);
    let admin = fixture.gate.admin();
    let cgroup = facts.process.cgroup;
    match cgroup.len() {
        0 | 1 => eprintln!("skipped: this process is in no control group but the root"),
        _ => {
            assert!(admin.names(ObjectKind::Tenants).contains(&cgroup));
            let queue = fixture.gate.shared.file_systems.queues().remove(0);
            let result = std::cell::Cell::new(false);
            maintenance::refresh_cgroups(&queue, now_ns(), &|of| {
                assert!(queue.is_free(), "the queue is not locked during a query");
                result.set(result.get() || of == cgroup);
                Some(321)
            });
            assert!(result.get());
            assert_eq!(queue.lock().device.scheduler().terms(&cgroup).expect("it is a tenant").weight, 321);
            assert_eq!(admin.tenant(&cgroup).expect("it is a tenant").clients, 1);
        }
    }
}

#[test]
fn terms_set_at_run_time_hold_for_disks_met_later() {
    let tenants = vec![tenant("backup", vec![MountRule::Comm("rsync".into())], Terms::default())];
    let group = GroupConfig { name: "batch".into(), weight: 100, limits: Limits::default(), parent: None };
    let mount = terms(Kind::Bfq);
    let fixture = fixture_with(MountConfig { mount, tenants, groups: vec![group], ..MountConfig::default() });
    let mut admin = fixture.gate.admin();
    let terms = Terms { weight: 700, ..Terms::default() };
    let changes = [
        Change::Terms { tenant: "backup".into(), terms: terms.clone() },
        Change::GroupWeight { group: "batch".into(), weight: 300 },
    ];
    for change in changes {
        assert_eq!(admin.change(change).expect("the change is valid"), None);
    }
    let file_systems = &fixture.gate.shared.file_systems;
    let elsewhere = backing(File::open("/proc").expect("every Linux has it"));
    let later = file_systems.of(&elsewhere).expect("it is scheduled");
    assert!(!Arc::ptr_eq(&file_systems.queues()[0], &later.queue), "it is another disk");
    for queue in file_systems.queues() {
        let state = queue.lock();
        let scheduler = state.device.scheduler();
        assert_eq!(scheduler.terms("backup"), Some(&terms), "device {}", queue.name);
        assert_eq!(scheduler.group_terms("batch").expect("it is configured").weight, 300, "device {}", queue.name);
    }
    let other_admin = fixture.gate.admin();
    assert_eq!(other_admin.tenant("backup").expect("it is configured").terms, terms);
}

#[test]
fn the_elevator_is_switched_while_requests_wait() {
    let fixture = fixture(terms(Kind::Noop));
    let log = Log::new();
    let slot = fixture.take(myself());
    for at in 0..50 {
        fixture.park(&fixture.request(myself(), Operation::Read, at * 64 * KIB, 4 * KIB), &log, at);
    }
    let mut admin = fixture.gate.admin();
    let device = admin.names(ObjectKind::Devices).remove(0);
    let result = admin.change(Change::Elevator { device: device.clone(), kind: Kind::Bfq });
    assert!(result.is_ok(), "{result:?}");
    drop(slot);
    assert_eq!(log.wait(50).len(), 50);
    // The switch completes when the old elevator is empty; a completion is counted after its job.
    drop(fixture.take(myself()));
    let facts = admin.device(&device).expect("it is there");
    assert_eq!((facts.elevator, facts.depth), (Kind::Bfq, 1));
}

#[test]
fn every_leaf_of_the_control_tree_can_be_read() {
    let fixture = fixture(terms(Kind::Bfq));
    drop(fixture.take(myself()));
    let slot = fixture.take(myself());
    let log = Log::new();
    fixture.park(&fixture.request(myself(), Operation::Read, MIB, 512), &log, ());
    let mut admin = fixture.gate.admin();
    let mut watch = hoistway_control::Watch::new();
    watch.tick(now_ns(), &admin);
    let mut session = hoistway_control::Session::new();
    let mut out = Vec::new();
    session.receive(b"get -r\nset nowhere 1\n", &watch, &mut admin, &mut out);
    while session.has_more() {
        session.resume(&watch, &mut admin, &mut out);
    }
    let result = String::from_utf8(out).expect("it is text");
    assert!(result.contains("queue/scheduler: ") && result.contains("[bfq]"), "{result}");
    assert!(result.contains(&format!("clients/{}/", myself().tid)), "{result}");
    let text = hoistway_control::metrics::Metrics::new().text(&watch, &admin);
    assert!(text.contains("hoistway_requests_total"), "{text}");
    drop(slot);
    log.wait(1);
}

#[test]
fn the_last_free_session_thread_does_not_identify_a_file_system() {
    let mut fixture = fixture(terms(Kind::Noop));
    fixture.gate.set_session_threads(1);
    // A file system that was not met before, with an unused device number.
    fixture.file = Arc::new(Backing::new(File::open("/proc").expect("every Linux has it").into(), 0x7777_7777, 1));
    let file_systems = &fixture.gate.shared.file_systems;
    let log = Log::new();
    fixture.park(&fixture.request(myself(), Operation::MetadataRead, 0, 0), &log, "looked");
    assert_eq!(log.wait(1), ["looked"]);
    assert!(file_systems.is_known(&fixture.file), "a thread of the gate has identified it");
}
