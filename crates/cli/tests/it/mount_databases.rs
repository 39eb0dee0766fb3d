//! Databases under a mount that is killed, with the power of the disk or without. The long form is
//! `cargo xtask crash-test --of mount --clients postgres|sqlite`.

use std::path::Path;

use hoistway_reactor::simulated::Prng;
use hoistway_simulation::crash::databases::{Crash, DatabaseKind, Round, RoundError, TestBed};
use hoistway_simulation::crash::forgetting::{Cache, Fault};
use hoistway_simulation::crash::mounted::{MountSetUp, Queue};

/// Returns true if the test can run here. Otherwise it is skipped with a message, and fails with
/// CI=true.
fn can_crash(kind: DatabaseKind) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let why = match (is_root, Path::new("/dev/fuse").exists(), kind.missing_program()) {
        (false, ..) => "root",
        (_, false, _) => "/dev/fuse",
        (.., Some(program)) => program,
        _ => return true,
    };
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{kind:?} needs {why}");
    eprintln!("SKIPPED: {kind:?} needs {why}");
    false
}

fn bed(kind: DatabaseKind) -> TestBed {
    TestBed::new(Path::new(env!("CARGO_BIN_EXE_hoistway")), kind, 1).expect("a database")
}

fn round(crash: Crash, kernel_writes: bool) -> Round {
    Round { mount: MountSetUp { kernel_writes, queue: Queue::Scheduled("bfq") }, cache: Cache::Bypassed, crash }
}

fn every_commit_survives(kind: DatabaseKind) {
    if !can_crash(kind) {
        return;
    }
    let (mut bed, mut prng) = (bed(kind), Prng::new(1));
    for (crash, kernel_writes) in [(Crash::Power, false), (Crash::Mount, true)] {
        let outcome = bed.play(round(crash, kernel_writes), &mut prng);
        assert!(outcome.is_ok(), "{kind:?}, {crash:?}: {outcome:?}");
    }
    assert!(bed.counts().acknowledged > 0, "no commit was acknowledged");
}

fn an_ignored_sync_is_found(kind: DatabaseKind, fault: Fault) {
    if !can_crash(kind) {
        return;
    }
    let (mut bed, mut prng) = (bed(kind), Prng::new(1));
    bed.plant(fault);
    for _ in 0..10 {
        match bed.play(round(Crash::Power, false), &mut prng) {
            Ok(()) => {}
            Err(RoundError::Loss(_)) => return,
            Err(RoundError::Other(other)) => panic!("{kind:?}: {other}"),
        }
    }
    panic!("{kind:?}: ten power failures of a disk with the fault {fault:?} lost nothing");
}

#[test]
fn every_commit_of_postgres_survives_the_death_of_the_mount_and_of_the_power() {
    every_commit_survives(DatabaseKind::Postgres);
}

#[test]
fn every_commit_of_sqlite_with_a_log_survives_the_death_of_the_mount_and_of_the_power() {
    every_commit_survives(DatabaseKind::SqliteWal);
}

#[test]
fn every_commit_of_sqlite_with_a_journal_survives_the_death_of_the_mount_and_of_the_power() {
    every_commit_survives(DatabaseKind::SqliteDelete);
}

#[test]
fn a_disk_that_ignores_fsync_is_found_by_postgres() {
    an_ignored_sync_is_found(DatabaseKind::Postgres, Fault::Fsync);
}

#[test]
fn a_disk_that_ignores_fsync_is_found_by_sqlite() {
    an_ignored_sync_is_found(DatabaseKind::SqliteWal, Fault::Fsync);
}
