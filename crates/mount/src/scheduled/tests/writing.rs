//! Tests of write-back by the mount.

use super::*;

fn dirty_terms(age_ms: u64) -> MountTerms {
    MountTerms { dirty_age_ns: Some(age_ms * 1_000_000), depth: Some(4), ..terms(Kind::Deadline) }
}

fn write(fixture: &GateFixture, offset: u64, length: u64) {
    write_as(fixture, &fixture.file, myself(), offset, length);
}

/// Writes to a file for a caller. The limit allows it.
fn write_as(fixture: &GateFixture, file: &Arc<Backing>, caller: Caller, offset: u64, length: u64) {
    assert!(try_write(fixture, file, caller, offset, length), "there is room in memory");
}

/// Writes if the limit allows it, and returns whether it did.
fn try_write(fixture: &GateFixture, file: &Arc<Backing>, caller: Caller, offset: u64, length: u64) -> bool {
    let request = GateRequest { caller, operation: Operation::BufferedWrite, backing: file, offset, length };
    match fixture.gate.admit(&request) {
        Admission::Now(_pass) => {
            let written = rustix::io::pwrite(&file.fd, &vec![9; length as usize], offset).expect("there is room");
            assert_eq!(written as u64, length);
            fixture.gate.note_dirty(&request);
            true
        }
        Admission::Later(_) => false,
    }
}

fn dirty(fixture: &GateFixture) -> u64 {
    let queue = fixture.gate.shared.file_systems.queues().remove(0);
    queue.dirty_tracker.get().map_or(0, |dirty_tracker| dirty_tracker.dirty())
}

#[test]
fn old_data_are_written_back_as_requests_of_their_writer() {
    let written = |age_ms| {
        let fixture = fixture(dirty_terms(age_ms));
        write(&fixture, 0, 3 * MIB);
        write(&fixture, 6 * MIB, 4 * KIB);
        write(&fixture, 3 * MIB, 4 * KIB);
        fixture
    };
    assert_eq!(dirty(&written(HOUR_MS)), 3 * MIB + 8 * KIB, "they are young");
    let fixture = written(100);
    wait_until("it is written back", || dirty(&fixture) == 0);
    let admin = fixture.gate.admin();
    let client = || hoistway_control::AdminTarget::client(&admin, myself().tid.into()).expect("it has issued requests");
    // Data are clean before the completion of their request is counted.
    wait_until("the requests are complete", || client().in_flight == 0);
    let client = client();
    assert_eq!((client.written_bytes, client.requests), (3 * MIB + 8 * KIB, 5), "of at most 1 MiB each");
}

#[test]
fn data_above_the_background_limit_are_written_back_at_once() {
    let fixture = fixture(MountTerms { dirty_background: Some(MIB), ..dirty_terms(HOUR_MS) });
    write(&fixture, 0, MIB);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(dirty(&fixture), MIB, "it is young and within the background limit");
    write(&fixture, 4 * MIB, 4 * KIB);
    wait_until("it is written back", || dirty(&fixture) <= MIB);
}

#[test]
fn a_writer_waits_above_the_limit_and_continues_below_it() {
    let mount = MountTerms { dirty_background: Some(64 * MIB), dirty_limit: Some(2 * MIB), ..dirty_terms(HOUR_MS) };
    // The background limit never exceeds the limit, so the limit decides here.
    let fixture = fixture(mount);
    let slot = (fixture.gate.admit(&fixture.request(myself(), Operation::Read, 0, 512)), ());
    write(&fixture, 0, MIB);
    write(&fixture, MIB, MIB);
    let log = Log::new();
    let request = fixture.request(myself(), Operation::BufferedWrite, 2 * MIB, MIB);
    let Admission::Later(ticket) = fixture.gate.admit(&request) else { panic!("there is no room") };
    fixture.gate.park(ticket, log.job("written"));
    assert_eq!(log.wait(1), ["written"]);
    assert!(dirty(&fixture) <= MIB, "{}", dirty(&fixture));
    drop(slot);
}

#[test]
fn synced_data_are_not_written_twice() {
    let fixture = fixture(dirty_terms(HOUR_MS));
    write(&fixture, 0, MIB);
    fixture.gate.discard_dirty(fixture.file.device, fixture.file.inode);
    assert_eq!(dirty(&fixture), 0);
    write(&fixture, 0, 4 * KIB);
    match fixture.gate.admit(&fixture.request(myself(), Operation::Sync, 0, 0)) {
        Admission::Now(slot) => {
            let syncing = fixture.gate.begin_sync(&fixture.file);
            rustix::fs::fsync(&fixture.file.fd).expect("it is written");
            fixture.gate.finish_sync(syncing);
            drop(slot);
        }
        Admission::Later(_) => panic!("it is alone"),
    }
    assert_eq!(dirty(&fixture), 0);
}

#[test]
fn data_written_during_a_sync_are_written_back_later() {
    let fixture = fixture(dirty_terms(HOUR_MS));
    write(&fixture, 0, 64 * KIB);
    let syncing = fixture.gate.begin_sync(&fixture.file);
    write(&fixture, MIB, 4 * KIB);
    fixture.gate.finish_sync(syncing);
    assert_eq!(dirty(&fixture), 4 * KIB);
}

#[test]
fn data_of_a_failed_sync_are_written_back_when_old() {
    let failed = |age_ms| {
        let fixture = fixture(dirty_terms(age_ms));
        write(&fixture, 0, 64 * KIB);
        drop(fixture.gate.begin_sync(&fixture.file));
        fixture
    };
    assert_eq!(dirty(&failed(HOUR_MS)), 64 * KIB, "they are dirty again");
    let fixture = failed(200);
    wait_until("it is written back", || dirty(&fixture) == 0);
}

/// A disk that dispatches only one process. The idle class owns all dirty memory and is never
/// dispatched.
fn fixture_with_hog(limit: u64) -> (GateFixture, IdleProcess) {
    let mount = MountTerms { dirty_background: Some(MIB), dirty_limit: Some(limit), ..dirty_terms(HOUR_MS) };
    let fixture = fixture(MountTerms { depth: Some(1), ..mount });
    let hog = IdleProcess::start();
    hog.set_ioprio(3, 0);
    (fixture, hog)
}

#[test]
fn data_of_an_undispatched_owner_block_no_other() {
    let (fixture, hog) = fixture_with_hog(16 * MIB);
    let slot = fixture.take(myself());
    let of_hog = new_file(&fixture.folder, "hog");
    let mut written = 0;
    while try_write(&fixture, &of_hog, hog.caller(), written * MIB, MIB) {
        written += 1;
        assert!(written <= 20, "the writer is throttled in the end");
    }
    assert!(written >= 16);
    write(&fixture, 0, MIB);
    write(&fixture, MIB, MIB);
    let other = IdleProcess::start();
    write_as(&fixture, &new_file(&fixture.folder, "other"), other.caller(), 0, MIB);
    // While writers wait, no owner gets more than its share.
    let mut mine = 2;
    while try_write(&fixture, &fixture.file, myself(), mine % 8 * MIB, MIB) && mine < 40 {
        mine += 1;
        fixture.gate.note_dirty(&fixture.request(myself(), Operation::BufferedWrite, (mine + 100) * MIB, MIB));
    }
    assert!(mine < 40, "{mine} MiB");
    drop(slot);
}

#[test]
fn a_sync_does_not_wait_for_undispatched_owners() {
    let mount = MountTerms { elevator: Some(Kind::Cfq), dirty_background: Some(MIB), ..dirty_terms(HOUR_MS) };
    let fixture = fixture(MountTerms { depth: Some(1), dirty_limit: Some(512 * MIB), ..mount });
    let (hog, usual) = (IdleProcess::start(), IdleProcess::start());
    hog.set_ioprio(3, 0);
    // As many writes of the idle owner as the queue takes precede it.
    let slot = fixture.take(usual.caller());
    let of_hog = new_file(&fixture.folder, "hog");
    for at in 0..300 {
        let request = GateRequest {
            caller: hog.caller(),
            operation: Operation::BufferedWrite,
            backing: &of_hog,
            offset: at * 2 * MIB,
            length: MIB,
        };
        fixture.gate.note_dirty(&request);
    }
    let queue = fixture.gate.shared.file_systems.queues().remove(0);
    let in_queue = || {
        let (waiting, held) = queue.lock().device.scheduler().waiting();
        waiting + held
    };
    wait_until("they are in the queue", || in_queue() >= 128);
    write(&fixture, 0, 4 * MIB);
    let log = Log::new();
    let Admission::Later(ticket) = fixture.gate.admit(&fixture.request(myself(), Operation::Sync, 0, 0)) else {
        panic!("4 MiB have to be written first");
    };
    let (of_job, of_hog) = (log.clone(), queue.clone());
    let left = move || of_hog.dirty_tracker.get().map_or(0, |dirty_tracker| dirty_tracker.dirty());
    fixture.gate.park(ticket, Job::Call(Box::new(move || of_job.note(left()))));
    // The write-back thread submits the data of the sync.
    let tid = myself().tid;
    let of_sync = || {
        let state = queue.lock();
        state.issuers.iter().filter(|(id, _)| id.0 == tid).map(|(_, issuer)| issuer.in_flight).sum::<u32>()
    };
    wait_until("the data of the sync are in the queue", || of_sync() >= 4);
    drop(slot);
    assert_eq!(log.wait(1), [300 * MIB], "all writes of the idle owner come later");
}

#[test]
fn a_large_sync_is_many_requests_and_ends_after_all_of_them() {
    let fixture = fixture(dirty_terms(HOUR_MS));
    write(&fixture, 0, 5 * MIB);
    let log = Log::new();
    let Admission::Later(ticket) = fixture.gate.admit(&fixture.request(myself(), Operation::Sync, 0, 0)) else {
        panic!("5 MiB have to be written first");
    };
    fixture.gate.park(ticket, log.job("durable"));
    assert_eq!(log.wait(1), ["durable"]);
    assert_eq!(dirty(&fixture), 0, "all of it was written before");
}

#[test]
fn dirty_data_of_a_removed_file_are_written_back_or_discarded() {
    let fixture = fixture(dirty_terms(50));
    write(&fixture, 0, MIB);
    std::fs::remove_file(fixture.folder.path().join("file")).expect("it is ours");
    wait_until("it is written back or discarded", || dirty(&fixture) == 0);
}

#[test]
fn after_the_end_no_write_waits_for_the_dirty_limit() {
    let fixture = fixture(MountTerms { dirty_limit: Some(MIB), ..dirty_terms(HOUR_MS) });
    write(&fixture, 0, MIB);
    fixture.gate.close();
    let log = Log::new();
    match fixture.gate.admit(&fixture.request(myself(), Operation::BufferedWrite, MIB, 8 * MIB)) {
        Admission::Now(_) => log.note(()),
        Admission::Later(ticket) => fixture.gate.park(ticket, log.job(())),
    }
    log.wait(1);
}

#[test]
fn addresses_follow_a_file_that_was_truncated_and_rewritten() {
    let fixture = fixture(terms(Kind::Deadline));
    let system = fixture.gate.shared.file_systems.of(&fixture.file).expect("it is set up");
    if !system.queue.disk.maps_extents {
        eprintln!("skipped: temporary files are on no device here");
        return;
    }
    let file = new_file(&fixture.folder, "other");
    let address = |now_ns| system.extent_cache.address_of_data(&file, MIB, 4 * KIB, now_ns);
    let before = address(now_ns());
    assert_eq!(before, address(now_ns()));
    let between = new_file(&fixture.folder, "between");
    rustix::fs::ftruncate(&file.fd, 0).expect("it is ours");
    rustix::io::pwrite(&file.fd, &[1; 4096], 4 * MIB).expect("there is room");
    rustix::fs::fsync(&file.fd).expect("it is written");
    let request =
        GateRequest { caller: myself(), operation: Operation::MetadataWrite, backing: &file, offset: 0, length: 0 };
    match fixture.gate.admit(&request) {
        Admission::Now(slot) => drop(slot),
        Admission::Later(_) => panic!("it is alone"),
    }
    // Stale extents are queried again after a while.
    let mut extents = Vec::new();
    let result =
        hoistway_order::ExtentReader::default().for_each_from(std::os::fd::AsFd::as_fd(&file.fd), 0, |extent| {
            extents.push(extent);
            true
        });
    result.expect("the file system supports FIEMAP");
    let after = system.extent_cache.address_of_data(&file, 4 * MIB, 4 * KIB, now_ns() + 10_000_000_000);
    let placement = extents.first().expect("a page was written").physical;
    assert_eq!(after % (1 << 40), (after - placement) + placement, "a sum that cannot overflow");
    assert_eq!((after - placement) % 512, 0);
    let partition = after - placement;
    assert_eq!(
        address(now_ns() + 10_000_000_000),
        partition + placement.saturating_sub(3 * MIB),
        "the hole precedes the data"
    );
    drop(between);
}
