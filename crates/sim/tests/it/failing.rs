//! Failing and hanging drives, and their effect on waiting processes.

use crate::common::{request, run};
use hoistway_core::Kind;
use hoistway_drive::{Faults, Hang, Profile};
use hoistway_sim::{CompareRequest, Comparison, HostConfig, SimError};

/// The jobs under noop on the drive of 2006 with these faults.
fn with_faults(jobs: &str, faults: Faults) -> CompareRequest {
    let profile = Profile::builtin("sata-7200-2006").expect("built in");
    let profile = profile.with_faults(faults).expect("faults that can be");
    CompareRequest { profile, ..request(jobs, &[Kind::Noop]) }
}

fn outcome(jobs: &str, faults: Faults) -> Comparison {
    run(&with_faults(jobs, faults)).expect("a run")
}

/// One bad physical sector in `one`, with few retries.
fn bad_by_chance(one: f64) -> Faults {
    Faults { bad_share: 1.0 / one, retries: 2, ..Faults::default() }
}

#[test]
fn a_direct_reader_stops_at_its_first_error() {
    for engine in ["psync", "libaio\niodepth=8"] {
        let jobs = format!("[d]\nrw=read\nbs=64k\nsize=64m\ndirect=1\nioengine={engine}\n");
        let comparison = outcome(&jobs, bad_by_chance(4000.0));
        let run = &comparison.runs[0];
        // 64 MiB are 16,384 physical sectors: four are bad, and the first of them ends it.
        assert!(run.failed_requests > 0 && run.processes[0].failed_ns.is_some(), "{engine}");
        assert!(run.processes[0].bytes < 64 << 20, "{engine}: {}", run.processes[0].bytes);
        let note = comparison.notes.last().expect("a note");
        assert!(
            note.starts_with("noop: the drive answered") && note.contains("1 processes stopped with EIO"),
            "{note}"
        );
        let fio = comparison.fio_report("test", 0, &[]);
        assert_eq!(fio.jobs[0].error, 5);
    }
}

#[test]
fn a_buffered_reader_stops_at_the_unreadable_page() {
    // Pages that were read with a bad one in one request are tried again alone and are sound.
    let jobs = "[b]\nrw=read\nbs=4k\nsize=64m\n";
    let first_bad = |comparison: &Comparison| comparison.runs[0].processes[0].bytes;
    let comparison = outcome(jobs, bad_by_chance(4000.0));
    let run = &comparison.runs[0];
    assert!(run.failed_requests >= 2 && run.processes[0].failed_ns.is_some());
    assert!((4096..64 << 20).contains(&first_bad(&comparison)), "{}", first_bad(&comparison));
    // A reader of one page at a time gets as far, to the page.
    let host = HostConfig { read_ahead_kib: 0, ..HostConfig::default() };
    let request = CompareRequest { host, ..with_faults(jobs, bad_by_chance(4000.0)) };
    assert_eq!(first_bad(&self::run(&request).expect("a run")), first_bad(&comparison));
}

#[test]
fn other_processes_continue_after_one_fails() {
    let jobs = "[r]\nrw=randread\nbs=4k\nsize=32m\nio_size=2m\ndirect=1\nnumjobs=8\n";
    let comparison = outcome(jobs, bad_by_chance(1000.0));
    let stopped = comparison.runs[0].processes.iter().filter(|process| process.failed_ns.is_some()).count();
    // 512 reads each, one of 1000 fails.
    assert!((1..7).contains(&stopped), "{stopped}");
    let whole = comparison.runs[0].processes.iter().filter(|process| process.bytes == 2 << 20).count();
    assert_eq!(whole, 8 - stopped);
}

#[test]
fn slow_sectors_cost_time_and_no_error() {
    let jobs = "[b]\nrw=read\nbs=64k\nsize=64m\n";
    let sound = outcome(jobs, Faults::default());
    let slow = outcome(jobs, Faults { slow_share: 1.0 / 1000.0, retries: 10, ..Faults::default() });
    assert_eq!((slow.runs[0].failed_requests, slow.runs[0].processes[0].bytes), (0, 64 << 20));
    // About 16 of 16,384 physical sectors at 83 ms each.
    let longer_ms = (slow.runs[0].runtime_ns - sound.runs[0].runtime_ns) / 1_000_000;
    assert!((300..3000).contains(&longer_ms), "{longer_ms}");
}

#[test]
fn lost_pages_are_counted_and_reported_to_the_next_sync() {
    let jobs = "[w]\nrw=write\nbs=4k\nsize=16m\nend_fsync=1\n";
    let comparison = outcome(jobs, Faults { spare_sectors: 0, ..bad_by_chance(1000.0) });
    let run = &comparison.runs[0];
    assert!(run.failed_requests > 0 && run.lost_pages > 0 && run.processes[0].failed_ns.is_some(), "{run:?}");
    // With spare sectors nothing is lost.
    let comparison = outcome(jobs, bad_by_chance(1000.0));
    let run = &comparison.runs[0];
    assert_eq!((run.failed_requests, run.lost_pages, run.processes[0].failed_ns), (0, 0, None));
}

#[test]
fn a_temporary_hang_delays_requests_and_loses_none() {
    let jobs = "[r]\nrw=randread\nbs=4k\nsize=32m\nio_size=1m\ndirect=1\nnumjobs=4\n";
    let hangs = vec![Hang { at_ms: 500.0, for_ms: 3000.0 }];
    let (sound, hung) = (outcome(jobs, Faults::default()), outcome(jobs, Faults { hangs, ..Faults::default() }));
    let later_ns = hung.runs[0].runtime_ns - sound.runs[0].runtime_ns;
    assert!((2_900_000_000..3_100_000_000).contains(&later_ns), "{later_ns}");
    assert!(hung.runs[0].processes.iter().all(|process| process.bytes == 1 << 20));
}

#[test]
fn a_permanent_hang_is_an_error_that_names_the_waiting_processes() {
    let hangs = || vec![Hang { at_ms: 100.0, for_ms: f64::INFINITY }];
    for (rw, more) in [("randread", "direct=1"), ("read", ""), ("write", "fsync=16"), ("randwrite", "sync=1")] {
        let jobs = format!("[stuck]\nrw={rw}\nbs=4k\nsize=512m\n{more}\n");
        for kind in [Kind::Noop, Kind::CfqV3, Kind::Bfq] {
            let request = with_faults(&jobs, Faults { hangs: hangs(), ..Faults::default() });
            let error = run(&CompareRequest { elevators: vec![kind], ..request }).expect_err("it hangs");
            let SimError::DriveHangs { commands, state, answered_ns, .. } = &error else { panic!("{rw}: {error}") };
            assert!(*commands > 0 && state.contains("of job `stuck` ("), "{rw}: {error}");
            assert!(state.contains(") waits for "), "{rw}: {error}");
            assert!(*answered_ns <= 100_000_000, "nothing is answered in a hang: {error}");
            assert!(error.to_string().contains("the drive does not answer: under "), "{error}");
        }
    }
}
