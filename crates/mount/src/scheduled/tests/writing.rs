//! Write-back by the mount.

use super::*;

fn dirty_terms(age_ms: u64) -> MountTerms {
    MountTerms { dirty_age_ns: Some(age_ms * 1_000_000), depth: Some(4), ..terms(Kind::Deadline) }
}

fn write(house: &House, offset: u64, length: u64) {
    write_as(house, &house.file, myself(), offset, length);
}

/// Writes to a file in somebody's name. There is room for it.
fn write_as(house: &House, file: &Arc<Backing>, asker: Asker, offset: u64, length: u64) {
    assert!(try_write(house, file, asker, offset, length), "there is room in memory");
}

/// The same; says whether there was room.
fn try_write(house: &House, file: &Arc<Backing>, asker: Asker, offset: u64, length: u64) -> bool {
    let ask = Ask { asker, operation: Operation::Buffered, backing: file, offset, length };
    match house.gate.enter(&ask) {
        Entered::Now(_pass) => {
            let written = rustix::io::pwrite(&file.fd, &vec![9; length as usize], offset).expect("there is room");
            assert_eq!(written as u64, length);
            house.gate.dirtied(&ask);
            true
        }
        Entered::Later(_) => false,
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn dirty(house: &House) -> u64 {
    let queue = house.gate.shared.systems.queues().remove(0);
    queue.ledger.get().map_or(0, |ledger| ledger.dirty())
}

#[test]
fn what_is_old_enough_is_written_back_as_requests_of_who_wrote_it() {
    let house = house(dirty_terms(100));
    write(&house, 0, 3 * MIB);
    write(&house, 6 * MIB, 4 * KIB);
    write(&house, 3 * MIB, 4 * KIB);
    assert_eq!(dirty(&house), 3 * MIB + 8 * KIB);
    wait_until("it is written back", || dirty(&house) == 0);
    let operator = house.gate.operator();
    let client = hoistway_serve::control::Steer::client(&operator, myself().tid.into()).expect("it has asked");
    assert_eq!((client.written_bytes, client.requests), (3 * MIB + 8 * KIB, 5), "of at most 1 MiB each");
}

#[test]
fn what_is_much_is_written_back_at_once() {
    let house = house(MountTerms { dirty_background: Some(MIB), ..dirty_terms(3_600_000) });
    write(&house, 0, MIB);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(dirty(&house), MIB, "it is young, and not more than may wait");
    write(&house, 4 * MIB, 4 * KIB);
    wait_until("it is written back", || dirty(&house) <= MIB);
}

#[test]
fn a_writer_waits_while_too_much_is_in_memory_and_goes_on_when_there_is_room() {
    let mount = MountTerms { dirty_background: Some(64 * MIB), dirty_limit: Some(2 * MIB), ..dirty_terms(3_600_000) };
    // What is limited counts from the background on, which is never above the limit: so it is the limit that matters here.
    let house = house(mount);
    let pass = (house.gate.enter(&house.ask(myself(), Operation::Read, 0, 512)), ());
    write(&house, 0, MIB);
    write(&house, MIB, MIB);
    let log = Log::new();
    let ask = house.ask(myself(), Operation::Buffered, 2 * MIB, MIB);
    let Entered::Later(ticket) = house.gate.enter(&ask) else { panic!("there is no room") };
    house.gate.park(ticket, log.job("written"));
    assert_eq!(log.wait(1), ["written"]);
    assert!(dirty(&house) <= MIB, "{}", dirty(&house));
    drop(pass);
}

#[test]
fn what_was_made_durable_is_not_written_twice() {
    let house = house(dirty_terms(3_600_000));
    write(&house, 0, MIB);
    house.gate.cleaned(&house.file);
    assert_eq!(dirty(&house), 0);
    write(&house, 0, 4 * KIB);
    match house.gate.enter(&house.ask(myself(), Operation::Sync, 0, 0)) {
        Entered::Now(pass) => {
            let syncing = house.gate.syncing(&house.file);
            rustix::fs::fsync(&house.file.fd).expect("it is written");
            house.gate.synced(syncing);
            drop(pass);
        }
        Entered::Later(_) => panic!("it is alone"),
    }
    assert_eq!(dirty(&house), 0);
}

#[test]
fn what_is_written_while_a_file_is_made_durable_is_written_back_later() {
    let house = house(dirty_terms(3_600_000));
    write(&house, 0, 64 * KIB);
    let syncing = house.gate.syncing(&house.file);
    write(&house, MIB, 4 * KIB);
    house.gate.synced(syncing);
    assert_eq!(dirty(&house), 4 * KIB);
}

#[test]
fn what_could_not_be_made_durable_is_written_back_when_it_is_old() {
    let house = house(dirty_terms(200));
    write(&house, 0, 64 * KIB);
    drop(house.gate.syncing(&house.file));
    assert_eq!(dirty(&house), 64 * KIB, "it is where it was");
    wait_until("it is written back", || dirty(&house) == 0);
}

/// A disk that has nobody's turn but one's, a hog whose data fill all the memory that there is, and nothing of it written: his class has no turns.
fn beside_a_hog(limit: u64) -> (House, Idler) {
    let mount = MountTerms { dirty_background: Some(MIB), dirty_limit: Some(limit), ..dirty_terms(3_600_000) };
    let house = house(MountTerms { depth: Some(1), ..mount });
    let hog = Idler::start();
    hog.set_ioprio(3, 0);
    (house, hog)
}

#[test]
fn data_of_one_whose_turn_does_not_come_hold_nobody_else() {
    let (house, hog) = beside_a_hog(16 * MIB);
    let pass = house.take(myself());
    let of_hog = new_file(&house.folder, "hog");
    let mut brought = 0;
    while try_write(&house, &of_hog, hog.asker(), brought * MIB, MIB) {
        brought += 1;
        assert!(brought <= 20, "he is held at last");
    }
    assert!(brought >= 16);
    write(&house, 0, MIB);
    write(&house, MIB, MIB);
    let other = Idler::start();
    write_as(&house, &new_file(&house.folder, "other"), other.asker(), 0, MIB);
    // But nobody has more than a part while others wait.
    let mut mine = 2;
    while try_write(&house, &house.file, myself(), mine % 8 * MIB, MIB) && mine < 40 {
        mine += 1;
        house.gate.dirtied(&house.ask(myself(), Operation::Buffered, (mine + 100) * MIB, MIB));
    }
    assert!(mine < 40, "{mine} MiB");
    drop(pass);
}

#[test]
fn making_a_file_durable_does_not_wait_for_those_whose_turn_does_not_come() {
    let mount = MountTerms { elevator: Some(Kind::Cfq), dirty_background: Some(MIB), ..dirty_terms(3_600_000) };
    let house = house(MountTerms { depth: Some(1), dirty_limit: Some(512 * MIB), ..mount });
    let (hog, usual) = (Idler::start(), Idler::start());
    hog.set_ioprio(3, 0);
    // As many writes of the hog's as the queue takes are there before.
    let pass = house.take(usual.asker());
    let of_hog = new_file(&house.folder, "hog");
    for at in 0..300 {
        let ask = Ask {
            asker: hog.asker(),
            operation: Operation::Buffered,
            backing: &of_hog,
            offset: at * 2 * MIB,
            length: MIB,
        };
        house.gate.dirtied(&ask);
    }
    let queue = house.gate.shared.systems.queues().remove(0);
    let in_queue = || {
        let (waiting, held) = queue.lock().device.waiting();
        waiting + held
    };
    wait_until("they are in the queue", || in_queue() >= 128);
    write(&house, 0, 4 * MIB);
    let log = Log::new();
    let Entered::Later(ticket) = house.gate.enter(&house.ask(myself(), Operation::Sync, 0, 0)) else {
        panic!("4 MiB have to be written first");
    };
    let (of_job, of_hog) = (log.clone(), queue.clone());
    let left = move || of_hog.ledger.get().map_or(0, |ledger| ledger.dirty());
    house.gate.park(ticket, Job::Call(Box::new(move || of_job.note(left()))));
    drop(pass);
    assert_eq!(log.wait(1), [300 * MIB], "the hog's are all behind");
}

#[test]
fn making_much_durable_is_many_requests_and_ends_when_all_are_written() {
    let house = house(dirty_terms(3_600_000));
    write(&house, 0, 5 * MIB);
    let log = Log::new();
    let Entered::Later(ticket) = house.gate.enter(&house.ask(myself(), Operation::Sync, 0, 0)) else {
        panic!("5 MiB have to be written first");
    };
    house.gate.park(ticket, log.job("durable"));
    assert_eq!(log.wait(1), ["durable"]);
    assert_eq!(dirty(&house), 0, "all of it was written before");
}

#[test]
fn a_file_that_was_removed_owes_nothing() {
    let house = house(dirty_terms(50));
    write(&house, 0, MIB);
    std::fs::remove_file(house.folder.path().join("file")).expect("it is ours");
    wait_until("it is written back, or gone", || dirty(&house) == 0);
}

#[test]
fn what_is_left_at_the_end_is_the_kernel_s() {
    let house = house(MountTerms { dirty_limit: Some(MIB), ..dirty_terms(3_600_000) });
    write(&house, 0, MIB);
    house.gate.close();
    let log = Log::new();
    match house.gate.enter(&house.ask(myself(), Operation::Buffered, MIB, 8 * MIB)) {
        Entered::Now(_) => log.note(()),
        Entered::Later(ticket) => house.gate.park(ticket, log.job(())),
    }
    log.wait(1);
}

#[test]
fn places_follow_a_file_that_was_cut_and_written_anew() {
    let house = house(terms(Kind::Deadline));
    let system = house.gate.shared.systems.of(&house.file).expect("it is set up");
    if !system.queue.disk.has_places {
        eprintln!("skipped: temporary files lie on no device here");
        return;
    }
    let file = new_file(&house.folder, "other");
    let place = |now_ns| system.places.of_data(&file, MIB, 4 * KIB, now_ns);
    let before = place(now_ns());
    assert_eq!(before, place(now_ns()));
    let between = new_file(&house.folder, "between");
    rustix::fs::ftruncate(&file.fd, 0).expect("it is ours");
    rustix::io::pwrite(&file.fd, &[1; 4096], 4 * MIB).expect("there is room");
    rustix::fs::fsync(&file.fd).expect("it is written");
    let ask = Ask { asker: myself(), operation: Operation::Change, backing: &file, offset: 0, length: 0 };
    match house.gate.enter(&ask) {
        Entered::Now(pass) => drop(pass),
        Entered::Later(_) => panic!("it is alone"),
    }
    // What may have changed is asked for again after a while.
    let mut extents = Vec::new();
    let told = hoistway_order::ExtentReader::default().for_each_from(std::os::fd::AsFd::as_fd(&file.fd), 0, |extent| {
        extents.push(extent);
        true
    });
    told.expect("this file system tells");
    let after = system.places.of_data(&file, 4 * MIB, 4 * KIB, now_ns() + 10_000_000_000);
    let lies = extents.first().expect("a page was written").physical;
    assert_eq!(after % (1 << 40), (after - lies) + lies, "a sum that cannot overflow");
    assert_eq!((after - lies) % 512, 0);
    let partition = after - lies;
    assert_eq!(place(now_ns() + 10_000_000_000), partition + lies.saturating_sub(3 * MIB), "the hole lies before it");
    drop(between);
}
