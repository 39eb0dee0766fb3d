//! Hosts with several drives and a journal: syncs, commits and submitters of each drive.
//!
//! The file system with its journal is on the first drive. The n-th device that the jobs name is
//! the n-th drive.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, HostConfig, JournalConfig, Kernel, ProcessRun, Run};

use crate::common::{request, run};

/// Revolutions a second of a disk of 7200 rpm, with a percent for the tolerance of the
/// spindle and the times of the host.
const REVOLUTIONS_PER_S: f64 = 120.0 * 1.01;

/// Runs jobs on hosts of 6.12 with these drives of 7200 rpm, with or without a journal.
fn on_drives(drives: u32, journal: Option<JournalConfig>, kind: Kind, jobs: &str) -> Run {
    let profile = Profile::builtin("cmr-8tb").expect("a built-in profile");
    let host = HostConfig { drives, journal, fua: Some(false), ..HostConfig::kernel(Kernel::V6_12) };
    run(&CompareRequest { profile, host, ..request(jobs, &[kind]) }).expect("a run").runs.remove(0)
}

fn with_journal(jobs: &str) -> Run {
    on_drives(2, Some(JournalConfig::ext4()), Kind::MqDeadline, jobs)
}

/// Reads the first drive a little, so that the next device is the second one.
const FIRST: &str = "[first]\nfilename=/dev/sda\nrw=read\ndirect=1\nnumber_ios=1\n";
/// A hundred writes in sequence, each made durable before the next.
const SYNCED: &str = "rw=write\nbs=4k\nsize=400k\ndirect=1\nsync=dsync\n";
/// A drive with 32 requests for random places at any time.
const BUSY: &str = "rw=randrw\nbs=64k\ndirect=1\nioengine=libaio\niodepth=32\ntime_based\nruntime=20\n";

fn job<'a>(run: &'a Run, name: &str) -> &'a ProcessRun {
    run.processes.iter().find(|process| process.name == name).expect("the job has a process")
}

/// Writes a second of a job's process, by the mean latency of its writes, after each of which the
/// next one follows.
fn writes_per_s(run: &Run, name: &str) -> f64 {
    1e9 / job(run, name).write.clat_ns.mean
}

#[test]
fn a_sync_on_one_drive_does_not_wait_for_the_other() {
    // The jobs of the busy drive, and of the one with synced writes: to the raw drive, and to a
    // file, whose writes are committed by the journal.
    let file = "[log]\nrw=write\nbs=4k\nsize=400k\ndirect=1\nsync=sync\n";
    for (synced, busy) in [
        (format!("{FIRST}[log]\nfilename=/dev/sdb\n{SYNCED}"), format!("[busy]\nfilename=/dev/sda\n{BUSY}")),
        (format!("{FIRST}{file}"), format!("[busy]\nfilename=/dev/sdb\n{BUSY}")),
    ] {
        let alone = writes_per_s(&with_journal(&synced), "log");
        let beside = writes_per_s(&with_journal(&format!("{synced}{busy}")), "log");
        assert!((beside / alone - 1.0).abs() < 0.05, "{alone:.1} writes a second, {beside:.1} beside\n{busy}");
        // On one drive the same jobs disturb each other.
        let shared = on_drives(1, Some(JournalConfig::ext4()), Kind::MqDeadline, &format!("{synced}{busy}"));
        let shared = writes_per_s(&shared, "log");
        assert!(shared < 0.5 * alone, "{alone:.1} writes a second, {shared:.1} on the busy drive");
    }
}

#[test]
fn each_drive_flushes_its_own_cache() {
    // If a flush went to the other drive, a write would wait for no revolution of its own.
    let second = format!("[b]\nfilename=/dev/sdb\n{SYNCED}");
    let both = format!("[a]\nfilename=/dev/sda\n{SYNCED}{second}");
    for journal in [None, Some(JournalConfig::ext3()), Some(JournalConfig::ext4())] {
        // Without FUA a durable write has two flushes: one in place of FUA, one of the call.
        for (jobs, names, requests) in
            [(format!("{FIRST}{second}"), &["b"][..], 1 + 100 * 3), (both.clone(), &["a", "b"][..], 2 * 100 * 3)]
        {
            let run = on_drives(2, journal, Kind::MqDeadline, &jobs);
            assert_eq!(run.drive_requests, requests);
            for name in names {
                let rate = writes_per_s(&run, name);
                assert!((40.0..=REVOLUTIONS_PER_S).contains(&rate), "{name}: {rate:.1} a second");
            }
        }
    }
}

/// Threads that submit requests of a process have numbers after that of the journal's thread.
#[test]
fn submitters_have_the_same_numbers_on_all_drives() {
    for kind in [Kind::MqDeadline, Kind::Bfq, Kind::Kyber, Kind::Noop] {
        let worker = "rw=randread\nbs=4k\ndirect=1\nioengine=posixaio\niodepth=8\nnumber_ios=200\n";
        let jobs = |first: &str, second: &str| {
            format!(
                "[one]\nfilename=/dev/{first}\n{worker}prioclass=3\n[two]\nfilename=/dev/{second}\n{worker}\
                 prioclass=1\nprio=0\n"
            )
        };
        let with = on_drives(2, Some(JournalConfig::ext4()), kind, &jobs("sda", "sdb"));
        let without = on_drives(2, None, kind, &jobs("sda", "sdb"));
        // The journal has nothing to do, so that only its thread makes a difference.
        let ends =
            |run: &Run| run.processes.iter().map(|process| (process.bytes, process.latency_ns)).collect::<Vec<_>>();
        assert_eq!(ends(&with), ends(&without), "{kind:?}");
        assert!(with.processes.iter().all(|process| process.bytes == 200 * 4096), "{kind:?}");
    }
}

/// On each drive the process of the real-time class goes before that of the idle class.
#[test]
fn priorities_hold_on_each_drive_beside_a_journal() {
    for device in ["/dev/sda", "/dev/sdb"] {
        let worker = format!(
            "filename={device}\nrw=randread\nbs=4k\ndirect=1\nioengine=posixaio\niodepth=16\ntime_based\nruntime=2\n"
        );
        let jobs = format!("{FIRST}[idle]\n{worker}prioclass=3\n[rt]\n{worker}prioclass=1\nprio=0\n");
        let run = with_journal(&jobs);
        let [idle, rt] = ["idle", "rt"].map(|name| job(&run, name).bytes);
        assert!(rt > 10 * idle, "{device}: {rt} bytes of the real-time class, {idle} of the idle class");
    }
}
