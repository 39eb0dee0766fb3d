//! Who asks: priorities, many threads, those that leave, rules.

use hoistway_serve::config::mount::{GroupsChoice, Ops};
use hoistway_serve::control::{Change, Steer as _, Things};

use super::*;

#[test]
fn who_is_real_time_is_before_all_others_and_who_is_idle_behind() {
    // Older forms of CFQ let who has a slice end it first.
    let house = house(terms(Kind::Cfq));
    let (idle, usual, urgent) = (Idler::start(), Idler::start(), Idler::start());
    idle.set_ioprio(3, 0);
    urgent.set_ioprio(1, 4);
    let log = Log::new();
    let pass = house.take(usual.asker());
    for (at, (name, who)) in (1..).zip([(2, &idle), (1, &usual), (0, &urgent)].repeat(3)) {
        house.park(&house.ask(who.asker(), Operation::Read, at * 512 * KIB, 4 * KIB), &log, name);
    }
    drop(pass);
    assert_eq!(log.wait(9), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn what_ionice_says_holds_from_the_next_request_on() {
    let house = house(terms(Kind::Cfq));
    let (one, other) = (Idler::start(), Idler::start());
    let log = Log::new();
    let round = |expected: [u8; 4]| {
        let pass = house.take(myself());
        for at in [1, 2] {
            house.park(&house.ask(one.asker(), Operation::Read, at * MIB, 4 * KIB), &log, 1);
            house.park(&house.ask(other.asker(), Operation::Read, (at + 4) * MIB, 4 * KIB), &log, 2);
        }
        let before = log.so_far().len();
        drop(pass);
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
fn a_thousand_threads_ask_at_once_and_each_is_served() {
    let house = Arc::new(house(MountTerms { depth: Some(4), ..terms(Kind::Bfq) }));
    let log = Log::new();
    let begin = Arc::new(std::sync::Barrier::new(1000));
    let threads: Vec<_> = (0..1000u64)
        .map(|number| {
            let (house, log, begin) = (house.clone(), log.clone(), begin.clone());
            let builder = std::thread::Builder::new().stack_size(128 << 10);
            let spawned = builder.spawn(move || {
                begin.wait();
                for at in 0..5 {
                    let offset = (number * 7 + at * 131) % 2000 * 4 * KIB;
                    match house.gate.enter(&house.ask(myself(), Operation::Read, offset, 4 * KIB)) {
                        Entered::Now(pass) => {
                            log.note(number);
                            drop(pass);
                        }
                        Entered::Later(ticket) => house.gate.park(ticket, log.job(number)),
                    }
                }
            });
            spawned.expect("there is room for a thousand threads")
        })
        .collect();
    for thread in threads {
        thread.join().expect("none panics");
    }
    let done = log.wait(5000);
    let mut counts = [0; 1000];
    done.iter().for_each(|number| counts[*number as usize] += 1);
    assert!(counts.iter().all(|count| *count == 5));
    let operator = house.gate.operator();
    let names = operator.names(Things::Clients);
    assert_eq!(names.len(), 1000);
    for name in names {
        let client = operator.client(name.parse().expect("it is a number")).expect("it is there");
        assert_eq!((client.pid.map(|tid| tid.to_string()), client.uid), (Some(name), Some(0)));
    }
}

#[test]
fn a_thread_that_asks_as_several_users_is_found_whoever_has_left() {
    let house = house(terms(Kind::Noop));
    let me = myself();
    let root = house.file.clone();
    for uid in [5, 6] {
        let ask =
            Ask { asker: Asker { uid, ..me }, operation: Operation::Read, backing: &root, offset: 0, length: 512 };
        drop(house.gate.enter(&ask));
    }
    let operator = house.gate.operator();
    assert_eq!(operator.client(me.tid.into()).expect("it is there").uid, Some(5));
    let queue = house.gate.shared.systems.queues().remove(0);
    let later_ns = now_ns() + 3_600_000_000_000;
    assert_eq!(people::sweep(&queue, later_ns, |key| key.1 == 6, |_| false), 1);
    assert_eq!(operator.client(me.tid.into()).expect("it is there still").uid, Some(6));
    assert_eq!(people::sweep(&queue, later_ns, |_| false, |_| false), 1);
    assert!(operator.client(me.tid.into()).is_none());
}

#[test]
fn where_a_file_lies_is_asked_for_again_after_it_was_changed_and_not_only_before() {
    let house = house(terms(Kind::Noop));
    let system = house.gate.shared.systems.of(&house.file).expect("it is scheduled");
    if !system.queue.disk.has_places {
        eprintln!("skipped: temporary files lie on no disk here");
        return;
    }
    let hour_ns = 3_600_000_000_000;
    for (hours, operation) in [(1, Operation::Change), (2, Operation::Write)] {
        let ask = house.ask(myself(), operation, 0, 4096);
        let Entered::Now(pass) = house.gate.enter(&ask) else { panic!("it is alone") };
        // Somebody asks while it is being changed.
        system.places.learn(&house.file, 0, now_ns() + hours * hour_ns);
        assert!(!system.places.is_stale(house.file.inode), "{operation:?}");
        drop(pass);
        assert!(
            system.places.is_stale(house.file.inode),
            "{operation:?}: what was told meanwhile is believed for ever"
        );
    }
}

#[test]
fn threads_that_are_gone_leave_the_device() {
    let house = house(terms(Kind::Cfq));
    let dead = Idler::start();
    let asker = dead.asker();
    drop(house.take(asker));
    let log = Log::new();
    let pass = house.take(myself());
    house.park(&house.ask(asker, Operation::Read, MIB, 512), &log, ());
    drop(dead);
    let queue = house.gate.shared.systems.queues().remove(0);
    let sweep = |later_ns: u64| {
        let is_there = |tid| {
            assert!(queue.is_free(), "others wait while the system is asked");
            people::is_there(tid)
        };
        people::sweep(&queue, now_ns() + later_ns, |_| false, is_there)
    };
    assert_eq!(sweep(3_600_000_000_000), 0, "it has a request under way");
    drop(pass);
    log.wait(1);
    // The job is over before its end is noted.
    while queue.lock().device.in_flight() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(sweep(0), 0, "it asked just now");
    assert_eq!(sweep(3_600_000_000_000), 1);
    assert_eq!(house.gate.operator().names(Things::Clients), [myself().tid.to_string()]);
}

#[test]
fn rules_say_whose_requests_are() {
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
    let house = house_of(config);
    std::fs::create_dir(house.folder.path().join("sub")).expect("it is ours");
    let below = new_file(&house.folder, "sub/file");
    let sleeper = Idler::start();
    let log = Log::new();
    let pass = house.take(myself());
    let scan = Ask { asker: sleeper.asker(), operation: Operation::Read, backing: &below, offset: 0, length: 512 };
    house.park(&scan, &log, "scan");
    house.park(&Ask { operation: Operation::Write, ..scan }, &log, "write");
    house.park(&house.ask(myself(), Operation::Read, MIB, 512), &log, "own");
    drop(pass);
    let order = log.wait(3);
    assert_eq!(order[2], "scan", "the idle class is last: {order:?}");
    let operator = house.gate.operator();
    let device = operator.names(Things::Devices).remove(0);
    let mut counts = Vec::new();
    operator.accounts(&device, &mut |tenant, account| {
        counts.push((tenant.to_owned(), account.ops.iter().map(|op| op.requests).sum::<u64>()));
    });
    // The last one's end may not be counted yet.
    assert!(counts.iter().any(|(tenant, count)| tenant == "sleepers" && *count == 1), "{counts:?}");
    assert!(counts.iter().any(|(tenant, _)| tenant == "scans"), "{counts:?}");
}

#[test]
fn a_control_group_can_be_a_tenant() {
    let mount = MountTerms { groups: GroupsChoice::Cgroup, ..terms(Kind::Bfq) };
    let house = house(mount);
    drop(house.take(myself()));
    let facts = people::read(myself(), true);
    let operator = house.gate.operator();
    let cgroup = facts.process.cgroup;
    match cgroup.len() {
        0 | 1 => eprintln!("skipped: this process is in no control group but the root"),
        _ => {
            assert!(operator.names(Things::Tenants).contains(&cgroup));
            let queue = house.gate.shared.systems.queues().remove(0);
            let told = std::cell::Cell::new(false);
            cgroups::refresh(&queue, now_ns(), &|of| {
                assert!(queue.is_free(), "others wait while the system is asked");
                told.set(told.get() || of == cgroup);
                Some(321)
            });
            assert!(told.get());
            assert_eq!(queue.lock().device.terms(&cgroup).expect("it is a tenant").weight, 321);
            assert_eq!(operator.tenant(&cgroup).expect("it is a tenant").clients, 1);
        }
    }
}

#[test]
fn the_elevator_is_switched_while_requests_wait() {
    let house = house(terms(Kind::Noop));
    let log = Log::new();
    let pass = house.take(myself());
    for at in 0..50 {
        house.park(&house.ask(myself(), Operation::Read, at * 64 * KIB, 4 * KIB), &log, at);
    }
    let mut operator = house.gate.operator();
    let device = operator.names(Things::Devices).remove(0);
    let told = operator.change(Change::Elevator { device: device.clone(), kind: Kind::Bfq });
    assert!(told.is_ok(), "{told:?}");
    drop(pass);
    assert_eq!(log.wait(50).len(), 50);
    // It is another one when nothing of the old one's is left: the end of a job is counted after it.
    drop(house.take(myself()));
    let facts = operator.device(&device).expect("it is there");
    assert_eq!((facts.elevator, facts.depth), (Kind::Bfq, 1));
}

#[test]
fn everything_that_the_control_tree_tells_can_be_asked_for() {
    let house = house(terms(Kind::Bfq));
    drop(house.take(myself()));
    let pass = house.take(myself());
    let log = Log::new();
    house.park(&house.ask(myself(), Operation::Read, MIB, 512), &log, ());
    let mut operator = house.gate.operator();
    let mut watch = hoistway_serve::control::Watch::new();
    watch.tick(now_ns(), &operator);
    let mut session = hoistway_serve::control::Session::new();
    let mut out = Vec::new();
    session.receive(b"get -r\nset nowhere 1\n", &watch, &mut operator, &mut out);
    while session.has_more() {
        session.resume(&watch, &mut operator, &mut out);
    }
    let told = String::from_utf8(out).expect("it is text");
    assert!(told.contains("queue/scheduler: ") && told.contains("[bfq]"), "{told}");
    assert!(told.contains(&format!("clients/{}/", myself().tid)), "{told}");
    let text = hoistway_serve::metrics::Metrics::new().text(&watch, &operator);
    assert!(text.contains("hoistway_requests_total"), "{text}");
    drop(pass);
    log.wait(1);
}

#[test]
fn the_last_thread_that_is_free_does_not_find_out_where_a_file_system_lies() {
    let mut house = house(terms(Kind::Noop));
    house.gate.asked_by(1);
    // It was not met before, and has a number that no file system has.
    house.file = Arc::new(Backing::new(File::open("/proc").expect("every Linux has it").into(), 0x7777_7777, 1));
    let systems = &house.gate.shared.systems;
    let log = Log::new();
    house.park(&house.ask(myself(), Operation::Look, 0, 0), &log, "looked");
    assert_eq!(log.wait(1), ["looked"]);
    assert!(systems.knows(&house.file), "a thread of the gate's has found it out");
}
