//! Write-back by the mount.

use super::*;

fn dirty_terms(age_ms: u64) -> MountTerms {
    MountTerms { dirty_age_ns: Some(age_ms * 1_000_000), depth: Some(4), ..terms(Kind::Deadline) }
}

fn write(house: &House, offset: u64, length: u64) {
    let data = vec![9; length as usize];
    let ask = house.ask(myself(), Operation::Buffered, offset, length);
    match house.gate.enter(&ask) {
        Entered::Now(_pass) => {
            let written = rustix::io::pwrite(&house.file.fd, &data, offset).expect("there is room");
            assert_eq!(written as u64, length);
            house.gate.dirtied(&ask);
        }
        Entered::Later(_) => panic!("there is room in memory"),
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
    house.gate.shared.writeback.as_ref().expect("it is ours").dirty()
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
            rustix::fs::fsync(&house.file.fd).expect("it is written");
            drop(pass);
        }
        Entered::Later(_) => panic!("it is alone"),
    }
    house.gate.cleaned(&house.file);
    assert_eq!(dirty(&house), 0);
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
    let told = hoistway_order::Extents::default().each_from(std::os::fd::AsFd::as_fd(&file.fd), 0, |extent| {
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
