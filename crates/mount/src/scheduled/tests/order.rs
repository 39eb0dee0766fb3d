//! In which order turns come.

use hoistway_core::Kind;

use super::*;

/// Offsets of requests, out of order and apart, so that none are merged.
const OFFSETS: [u64; 8] = [5, 1, 7, 3, 0, 6, 2, 4];

fn order_under(kind: Kind, merge: bool) -> Vec<u64> {
    let house = house(terms(kind));
    let log = Log::new();
    let pass = house.take(myself());
    for at in OFFSETS {
        let stride = if merge { 4 * KIB } else { MIB };
        house.park(&house.ask(myself(), Operation::Read, at * stride, 4 * KIB), &log, at);
    }
    assert!(log.so_far().is_empty(), "the device is taken");
    drop(pass);
    log.wait(OFFSETS.len())
}

#[test]
fn under_noop_who_came_first_is_first() {
    assert_eq!(order_under(Kind::Noop, false), OFFSETS);
}

#[test]
fn under_elevators_that_sort_the_disk_is_swept() {
    for kind in [Kind::Deadline, Kind::CfqV3, Kind::Cfq, Kind::Bfq] {
        let order = order_under(kind, false);
        // From where the arm is, upwards and perhaps round once: it was at the beginning of the file.
        let falls = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(falls <= 1, "{}: {order:?}", kind.info().name);
        let mut all = order.clone();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7], "each once");
    }
}

#[test]
fn every_elevator_gives_everybody_a_turn() {
    for &kind in Kind::ALL {
        let mut all = order_under(kind, false);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7], "{}", kind.info().name);
    }
}

#[test]
fn neighbours_that_were_merged_are_still_done_one_by_one() {
    let mut all = order_under(Kind::Noop, true);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn jobs_that_read_and_write_bring_and_take_data() {
    let house = house(terms(Kind::Deadline));
    let log = Log::new();
    let pass = house.take(myself());
    let Entered::Later(ticket) = house.gate.enter(&house.ask(myself(), Operation::Write, MIB, 8)) else {
        panic!("the device is taken");
    };
    let of_write = log.clone();
    let done = Box::new(move |written: std::io::Result<usize>| of_write.note(format!("{written:?}")));
    let data = crate::Buffer::from(&b"hoistway"[..]);
    let file = house.file.clone();
    house.gate.park(ticket, Job::Write { file, offset: MIB, data, flags: 0, done });
    drop(pass);
    assert_eq!(log.wait(1), ["Ok(8)"]);
    let pass = house.take(myself());
    for (offset, length) in [(MIB, 8), ((8 << 20) - 4, 100), (9 << 20, 10)] {
        let Entered::Later(ticket) = house.gate.enter(&house.ask(myself(), Operation::Read, offset, length as u64))
        else {
            panic!("the device is taken");
        };
        let of_read = log.clone();
        let done = Box::new(move |read: std::io::Result<&[u8]>| of_read.note(format!("{read:?}")));
        house.gate.park(ticket, Job::Read { file: house.file.clone(), offset, length, done });
    }
    drop(pass);
    let mut told = log.wait(3).split_off(1);
    told.sort();
    let text = format!("{:?}", Ok::<_, std::io::Error>(b"hoistway"));
    let (cut, none) = ("Ok([7, 7, 7, 7])".to_owned(), "Ok([])".to_owned());
    assert_eq!(told, [text, cut, none], "whole, cut at the end, and behind it");
}

#[test]
fn who_does_what_had_to_wait_has_no_right_to_the_blocks_that_are_kept_for_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root has that right");
        return;
    }
    let right = || {
        let sets = rustix::thread::capabilities(None).expect("they can be asked for");
        sets.effective.contains(rustix::thread::CapabilitySet::SYS_RESOURCE)
    };
    if !right() {
        eprintln!("skipped: this root has not got it");
        return;
    }
    let house = house(terms(Kind::Noop));
    let log = Log::new();
    let pass = house.take(myself());
    let (of_call, of_read) = (log.clone(), log.clone());
    for job in [
        Job::Call(Box::new(move || of_call.note(right()))),
        Job::Read { file: house.file.clone(), offset: 0, length: 512, done: Box::new(move |_| of_read.note(right())) },
    ] {
        match house.gate.enter(&house.ask(myself(), Operation::Read, MIB, 512)) {
            Entered::Later(ticket) => house.gate.park(ticket, job),
            Entered::Now(_) => panic!("the device is taken"),
        }
    }
    drop(pass);
    assert_eq!(log.wait(2), [false, false]);
}

#[test]
fn what_fails_is_told_and_the_next_one_has_its_turn() {
    let house = house(terms(Kind::Noop));
    let log = Log::new();
    let pass = house.take(myself());
    let folder = backing(File::open(house.folder.path()).expect("it is there"));
    let Entered::Later(ticket) = house.gate.enter(&house.ask(myself(), Operation::Read, 0, 512)) else {
        panic!("the device is taken");
    };
    let of_read = log.clone();
    let done = Box::new(move |read: std::io::Result<&[u8]>| {
        of_read.note(read.expect_err("a folder has no data").raw_os_error());
    });
    house.gate.park(ticket, Job::Read { file: folder, offset: 0, length: 512, done });
    house.park(&house.ask(myself(), Operation::Read, MIB, 512), &log, None);
    drop(pass);
    assert_eq!(log.wait(2), [Some(libc::EISDIR), None]);
}

#[test]
fn a_ticket_that_is_dropped_gives_its_turn_up() {
    let house = house(terms(Kind::Noop));
    let log = Log::new();
    let pass = house.take(myself());
    for at in 0..20 {
        let ask = house.ask(myself(), Operation::Read, at * 64 * KIB, 4 * KIB);
        match house.gate.enter(&ask) {
            Entered::Later(ticket) if at % 2 == 0 => drop(ticket),
            Entered::Later(ticket) => house.gate.park(ticket, log.job(at)),
            Entered::Now(_) => panic!("the device is taken"),
        }
    }
    drop(pass);
    assert_eq!(log.wait(10), [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    drop(house.take(myself()));
}

#[test]
fn a_turn_that_comes_before_the_job_is_not_lost() {
    let house = house(terms(Kind::Noop));
    let log = Log::new();
    let pass = house.take(myself());
    let Entered::Later(ticket) = house.gate.enter(&house.ask(myself(), Operation::Read, MIB, 512)) else {
        panic!("the device is taken");
    };
    drop(pass);
    house.gate.park(ticket, log.job("late"));
    assert_eq!(log.wait(1), ["late"]);
    drop(house.take(myself()));
}

#[test]
fn an_elevator_that_waits_for_the_next_request_of_a_process_goes_on_without_it() {
    for kind in [Kind::Anticipatory, Kind::CfqV3, Kind::Cfq, Kind::Bfq] {
        let house = house(terms(kind));
        let log = Log::new();
        // One reads and reads; then it stops, and the other must not wait for ever.
        for at in 0..20 {
            match house.gate.enter(&house.ask(myself(), Operation::Read, at * 4 * KIB, 4 * KIB)) {
                Entered::Now(pass) => drop(pass),
                Entered::Later(_) => panic!("it is alone"),
            }
        }
        let other = Idler::start();
        match house.gate.enter(&house.ask(other.asker(), Operation::Read, 7 * MIB, 4 * KIB)) {
            Entered::Now(pass) => {
                drop(pass);
                log.note(());
            }
            Entered::Later(ticket) => house.gate.park(ticket, log.job(())),
        }
        log.wait(1);
    }
}

#[test]
fn what_waits_when_the_gate_is_closed_is_done() {
    let house = house(terms(Kind::Noop));
    let log = Log::new();
    let pass = house.take(myself());
    for at in 0..10 {
        house.park(&house.ask(myself(), Operation::Read, at * 64 * KIB, 512), &log, at);
    }
    house.gate.close();
    assert_eq!(log.wait(10).len(), 10);
    drop(pass);
}

/// The threads of a session: they take what is asked for in the order in which it comes, and do it where they are told to.
struct Callers {
    asks: Sender<(Asker, u64)>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Callers {
    fn start(count: usize, house: &Arc<House>, slow: &Arc<Slow>) -> Callers {
        let (asks, taken) = channel();
        let taken = Arc::new(Mutex::new(taken));
        house.gate.asked_by(count);
        let caller = |_| {
            let (house, slow, taken) = (house.clone(), slow.clone(), taken.clone());
            std::thread::spawn(move || {
                loop {
                    let Ok((asker, at)) = taken.lock().expect("no panic").recv() else { return };
                    match house.gate.enter(&house.ask(asker, Operation::Read, at % 2000 * 4 * KIB, 4 * KIB)) {
                        Entered::Now(pass) => {
                            slow.serve(at);
                            drop(pass);
                        }
                        Entered::Later(ticket) => {
                            let slow = slow.clone();
                            house.gate.park(ticket, Job::Call(Box::new(move || slow.serve(at))));
                        }
                    }
                }
            })
        };
        Callers { asks, threads: (0..count).map(caller).collect() }
    }
}

/// Storage that serves nobody until it is let.
struct Slow {
    begun: Log<u64>,
    lets: Mutex<Receiver<()>>,
}

impl Slow {
    fn serve(&self, at: u64) {
        self.begun.note(at);
        // Whoever would let it may have gone.
        let _ = self.lets.lock().expect("no panic").recv();
    }
}

#[test]
fn who_is_real_time_is_next_while_slow_storage_keeps_many_who_are_idle() {
    const REAL_TIME: u64 = 1_000_000;
    for callers in [2, 4, 40] {
        let house = Arc::new(house(MountTerms { depth: Some(32), ..terms(Kind::MqDeadline) }));
        let (let_one, lets) = channel();
        let slow = Arc::new(Slow { begun: Log::new(), lets: Mutex::new(lets) });
        let callers = Callers::start(callers, &house, &slow);
        let (idle, urgent) = (Idler::start(), Idler::start());
        idle.set_ioprio(3, 0);
        urgent.set_ioprio(1, 0);
        for at in 0..300 {
            callers.asks.send((idle.asker(), at * 7)).expect("they live");
        }
        slow.begun.wait(32);
        callers.asks.send((urgent.asker(), REAL_TIME)).expect("they live");
        // Everybody is in the queue, and nobody in front of it.
        let queue = house.gate.shared.systems.queues().remove(0);
        let until = Instant::now() + LONG;
        let waiting = || queue.lock().people.iter().map(|(_, person)| person.open).sum::<u32>();
        while waiting() < 301 {
            assert!(Instant::now() < until, "{} of 301 have come to the queue", waiting());
            std::thread::yield_now();
        }
        assert_eq!(slow.begun.so_far().len(), 32, "the disk is given no more at once");
        let_one.send(()).expect("it listens");
        assert_eq!(slow.begun.wait(1).last(), Some(&REAL_TIME));
        drop((let_one, callers.asks));
        callers.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}
