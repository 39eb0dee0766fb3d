//! Tests of the dispatch order.

use hoistway_core::Kind;

use super::*;

/// Offsets of requests, unsorted and apart, so that none are merged.
const OFFSETS: [u64; 8] = [5, 1, 7, 3, 0, 6, 2, 4];

fn order_under(mount: MountTerms, merge: bool) -> Vec<u64> {
    let fixture = fixture_in_memory(mount);
    let log = Log::new();
    let slot = fixture.take(myself());
    for at in OFFSETS {
        let stride = if merge { 4 * KIB } else { MIB };
        fixture.park(&fixture.request(myself(), Operation::Read, at * stride, 4 * KIB), &log, at);
    }
    assert!(log.so_far().is_empty(), "the device is busy");
    drop(slot);
    log.wait(OFFSETS.len())
}

#[test]
fn noop_dispatches_in_arrival_order() {
    assert_eq!(order_under(terms(Kind::Noop), false), OFFSETS);
}

#[test]
fn sorting_elevators_sweep_the_disk() {
    for (kind, expiry) in [
        (Kind::Deadline, "read_expire"),
        (Kind::CfqV3, "fifo_expire_sync"),
        (Kind::Cfq, "fifo_expire_sync"),
        (Kind::Bfq, "fifo_expire_sync"),
    ] {
        // Requests that have expired are dispatched in order of arrival.
        let settings = vec![(kind, expiry.to_owned(), HOUR_MS as i64)];
        let order = order_under(MountTerms { settings, ..terms(kind) }, false);
        // The head starts at the beginning of the file and moves upwards, with at most one
        // wrap-around.
        let falls = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(falls <= 1, "{}: {order:?}", kind.info().name);
        let mut all = order.clone();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7], "each once");
    }
}

#[test]
fn every_elevator_dispatches_every_request() {
    for &kind in Kind::ALL {
        let mut all = order_under(terms(kind), false);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7], "{}", kind.info().name);
    }
}

#[test]
fn merged_neighbours_are_completed_one_by_one() {
    let mut all = order_under(terms(Kind::Noop), true);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn read_and_write_jobs_transfer_data() {
    let fixture = fixture(terms(Kind::Deadline));
    let log = Log::new();
    let slot = fixture.take(myself());
    let Admission::Later(ticket) = fixture.gate.admit(&fixture.request(myself(), Operation::Write, MIB, 8)) else {
        panic!("the device is busy");
    };
    let of_write = log.clone();
    let done = Box::new(move |written: std::io::Result<usize>| of_write.note(format!("{written:?}")));
    let data = crate::Buffer::from(&b"hoistway"[..]);
    let file = fixture.file.clone();
    fixture.gate.park(ticket, Job::Write { file, offset: MIB, data, flags: 0, done });
    drop(slot);
    assert_eq!(log.wait(1), ["Ok(8)"]);
    let slot = fixture.take(myself());
    for (offset, length) in [(MIB, 8), ((8 << 20) - 4, 100), (9 << 20, 10)] {
        let Admission::Later(ticket) =
            fixture.gate.admit(&fixture.request(myself(), Operation::Read, offset, length as u64))
        else {
            panic!("the device is busy");
        };
        let of_read = log.clone();
        let done = Box::new(move |read: std::io::Result<&[u8]>| of_read.note(format!("{read:?}")));
        fixture.gate.park(ticket, Job::Read { file: fixture.file.clone(), offset, length, done });
    }
    drop(slot);
    let mut results = log.wait(3).split_off(1);
    results.sort();
    let text = format!("{:?}", Ok::<_, std::io::Error>(b"hoistway"));
    let (cut, none) = ("Ok([7, 7, 7, 7])".to_owned(), "Ok([])".to_owned());
    assert_eq!(results, [text, cut, none], "whole, cut at the end, and behind it");
}

#[test]
fn executors_may_not_use_blocks_reserved_for_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root has that right");
        return;
    }
    let right = || {
        let sets = rustix::thread::capabilities(None).expect("they can be read");
        sets.effective.contains(rustix::thread::CapabilitySet::SYS_RESOURCE)
    };
    if !right() {
        eprintln!("skipped: this root has not got it");
        return;
    }
    let fixture = fixture(terms(Kind::Noop));
    let log = Log::new();
    let slot = fixture.take(myself());
    let (of_call, of_read) = (log.clone(), log.clone());
    for job in [
        Job::Call(Box::new(move || of_call.note(right()))),
        Job::Read {
            file: fixture.file.clone(),
            offset: 0,
            length: 512,
            done: Box::new(move |_| of_read.note(right())),
        },
    ] {
        match fixture.gate.admit(&fixture.request(myself(), Operation::Read, MIB, 512)) {
            Admission::Later(ticket) => fixture.gate.park(ticket, job),
            Admission::Now(_) => panic!("the device is busy"),
        }
    }
    drop(slot);
    assert_eq!(log.wait(2), [false, false]);
}

#[test]
fn an_error_is_reported_and_the_next_request_is_dispatched() {
    let fixture = fixture(terms(Kind::Noop));
    let log = Log::new();
    let slot = fixture.take(myself());
    let folder = backing(File::open(fixture.folder.path()).expect("it is there"));
    let Admission::Later(ticket) = fixture.gate.admit(&fixture.request(myself(), Operation::Read, 0, 512)) else {
        panic!("the device is busy");
    };
    let of_read = log.clone();
    let done = Box::new(move |read: std::io::Result<&[u8]>| {
        of_read.note(read.expect_err("a folder has no data").raw_os_error());
    });
    fixture.gate.park(ticket, Job::Read { file: folder, offset: 0, length: 512, done });
    fixture.park(&fixture.request(myself(), Operation::Read, MIB, 512), &log, None);
    drop(slot);
    assert_eq!(log.wait(2), [Some(libc::EISDIR), None]);
}

#[test]
fn a_dropped_ticket_withdraws_its_request() {
    let fixture = fixture(terms(Kind::Noop));
    let log = Log::new();
    let slot = fixture.take(myself());
    for at in 0..20 {
        let request = fixture.request(myself(), Operation::Read, at * 64 * KIB, 4 * KIB);
        match fixture.gate.admit(&request) {
            Admission::Later(ticket) if at % 2 == 0 => drop(ticket),
            Admission::Later(ticket) => fixture.gate.park(ticket, log.job(at)),
            Admission::Now(_) => panic!("the device is busy"),
        }
    }
    drop(slot);
    assert_eq!(log.wait(10), [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    drop(fixture.take(myself()));
}

#[test]
fn a_dispatch_before_the_job_is_parked_is_not_lost() {
    let fixture = fixture(terms(Kind::Noop));
    let log = Log::new();
    let slot = fixture.take(myself());
    let Admission::Later(ticket) = fixture.gate.admit(&fixture.request(myself(), Operation::Read, MIB, 512)) else {
        panic!("the device is busy");
    };
    drop(slot);
    fixture.gate.park(ticket, log.job("late"));
    assert_eq!(log.wait(1), ["late"]);
    drop(fixture.take(myself()));
}

#[test]
fn an_anticipating_elevator_continues_without_the_next_request() {
    for kind in [Kind::Anticipatory, Kind::CfqV3, Kind::Cfq, Kind::Bfq] {
        let fixture = fixture(terms(kind));
        let log = Log::new();
        // One process reads and then stops; the other must not wait forever.
        for at in 0..20 {
            match fixture.gate.admit(&fixture.request(myself(), Operation::Read, at * 4 * KIB, 4 * KIB)) {
                Admission::Now(slot) => drop(slot),
                Admission::Later(_) => panic!("it is alone"),
            }
        }
        let other = IdleProcess::start();
        match fixture.gate.admit(&fixture.request(other.caller(), Operation::Read, 7 * MIB, 4 * KIB)) {
            Admission::Now(slot) => {
                drop(slot);
                log.note(());
            }
            Admission::Later(ticket) => fixture.gate.park(ticket, log.job(())),
        }
        log.wait(1);
    }
}

#[test]
fn waiting_jobs_run_when_the_gate_is_closed() {
    let fixture = fixture(terms(Kind::Noop));
    let log = Log::new();
    let slot = fixture.take(myself());
    for at in 0..10 {
        fixture.park(&fixture.request(myself(), Operation::Read, at * 64 * KIB, 512), &log, at);
    }
    fixture.gate.close();
    assert_eq!(log.wait(10).len(), 10);
    drop(slot);
}

/// Session threads: they receive requests in arrival order, and carry out those that are dispatched
/// at once.
struct SessionThreads {
    requests: Sender<(Caller, u64)>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl SessionThreads {
    fn start(count: usize, fixture: &Arc<GateFixture>, slow: &Arc<SlowStorage>) -> SessionThreads {
        let (requests, taken) = channel();
        let taken = Arc::new(Mutex::new(taken));
        fixture.gate.set_session_threads(count);
        let caller = |_| {
            let (fixture, slow, taken) = (fixture.clone(), slow.clone(), taken.clone());
            std::thread::spawn(move || {
                loop {
                    let Ok((caller, at)) = taken.lock().expect("no panic").recv() else { return };
                    match fixture.gate.admit(&fixture.request(caller, Operation::Read, at % 2000 * 4 * KIB, 4 * KIB)) {
                        Admission::Now(slot) => {
                            slow.serve(at);
                            drop(slot);
                        }
                        Admission::Later(ticket) => {
                            let slow = slow.clone();
                            fixture.gate.park(ticket, Job::Call(Box::new(move || slow.serve(at))));
                        }
                    }
                }
            })
        };
        SessionThreads { requests, threads: (0..count).map(caller).collect() }
    }
}

/// Storage that completes no request until it is released.
struct SlowStorage {
    started: Log<u64>,
    releases: Mutex<Receiver<()>>,
}

impl SlowStorage {
    fn serve(&self, at: u64) {
        self.started.note(at);
        // The releasing side may no longer exist.
        let _ = self.releases.lock().expect("no panic").recv();
    }
}

#[test]
fn a_real_time_request_is_next_on_slow_storage_with_many_idle_ones() {
    const REAL_TIME: u64 = 1_000_000;
    for session_threads in [2, 4, 40] {
        // Old requests would precede those of higher classes.
        let settings = vec![(Kind::MqDeadline, "prio_aging_expire".to_owned(), HOUR_MS as i64)];
        let fixture = Arc::new(fixture(MountTerms { depth: Some(32), settings, ..terms(Kind::MqDeadline) }));
        let (release_one, releases) = channel();
        let slow = Arc::new(SlowStorage { started: Log::new(), releases: Mutex::new(releases) });
        let session_threads = SessionThreads::start(session_threads, &fixture, &slow);
        let (idle, urgent) = (IdleProcess::start(), IdleProcess::start());
        idle.set_ioprio(3, 0);
        urgent.set_ioprio(1, 0);
        for at in 0..300 {
            session_threads.requests.send((idle.caller(), at * 7)).expect("the threads run");
        }
        slow.started.wait(32);
        session_threads.requests.send((urgent.caller(), REAL_TIME)).expect("the threads run");
        // All requests are queued, and no session thread is blocked.
        let queue = fixture.gate.shared.file_systems.queues().remove(0);
        let waiting = || queue.lock().issuers.iter().map(|(_, issuer)| issuer.in_flight).sum::<u32>();
        wait_until("301 requests are in the queue", || waiting() == 301);
        assert_eq!(slow.started.so_far().len(), 32, "the depth limits requests in flight");
        release_one.send(()).expect("the storage waits");
        assert_eq!(slow.started.wait(1).last(), Some(&REAL_TIME));
        drop((release_one, session_threads.requests));
        session_threads.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}
