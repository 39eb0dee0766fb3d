//! Random workloads on random machines under every elevator: all bytes are moved, time adds up, and
//! a seed replays its run. A failure prints the seed and the job file that replay it.

use std::fmt::Write;

use crate::common::{request, run};
use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, HostConfig, Kernel, Plugging, ReadAheadRules, WriteBack};
use rand::RngExt;
use rand_pcg::Pcg64;

const WORLDS: u64 = 60;

/// A job file of one to four small jobs, and the bytes that all of it moves.
fn jobs(rng: &mut Pcg64) -> (String, u64) {
    let (mut text, mut bytes) = (String::new(), 0);
    for job in 0..rng.random_range(1..5) {
        let clones = rng.random_range(1..5u64);
        let bs = 1u64 << rng.random_range(12..17u32);
        let blocks = rng.random_range(1..40u64);
        let rw = ["read", "write", "randread", "randwrite", "rw", "randrw"][rng.random_range(0..6)];
        write!(text, "[j{job}]\nrw={rw}\nbs={bs}\nsize={}\nnumjobs={clones}\n", bs * blocks).expect("a string");
        bytes += clones * bs * blocks;
        if rng.random_range(0..2) == 0 {
            let engine = ["libaio", "psync", "io_uring"][rng.random_range(0..3)];
            write!(text, "direct=1\nioengine={engine}\niodepth={}\n", rng.random_range(1..40)).expect("a string");
        }
        for option in
            ["fsync=3", "sync=1", "end_fsync=1", "thinktime=2ms", "prio=1", "prioclass=3", "nice=9", "loops=1"]
        {
            if rng.random_range(0..6) == 0 {
                writeln!(text, "{option}").expect("a string");
            }
        }
        for option in ["rate_iops=300", "norandommap", "random_distribution=zipf:0.8", "nrfiles=1", "filename=shared"] {
            if rng.random_range(0..8) == 0 {
                writeln!(text, "{option}").expect("a string");
            }
        }
        if job > 0 && rng.random_range(0..5) == 0 {
            text += "stonewall\n";
        }
    }
    (text, bytes)
}

fn host(rng: &mut Pcg64) -> HostConfig {
    let mut host = HostConfig {
        cpus: rng.random_range(1..4),
        page_cache_mib: rng.random_range(1..20),
        read_ahead_kib: [0, 16, 128, 1024][rng.random_range(0..4)],
        dirty_background_percent: rng.random_range(0..20),
        dirty_percent: rng.random_range(1..60),
        flush_interval_ms: rng.random_range(1..2000),
        dirty_expire_ms: rng.random_range(0..3000),
        flush_chunk_pages: rng.random_range(1..2000),
        groups: rng.random_range(1..40),
        file_gap_kib: rng.random_range(0..100),
        aged: rng.random_range(0..2) == 0,
        ..HostConfig::default()
    };
    host.queue.nr_requests = [Some(4), Some(16), Some(128), None][rng.random_range(0..4)];
    host.plugging = [
        Plugging::None,
        Plugging::Queue,
        Plugging::Task { requests: 16, kib: 0 },
        Plugging::Task { requests: 4, kib: 128 },
    ][rng.random_range(0..4)];
    host.read_ahead = [ReadAheadRules::TwoWindows, ReadAheadRules::OnDemand, ReadAheadRules::OnDemandWithHistory]
        [rng.random_range(0..3)];
    host.write_back = [WriteBack::Waiting, WriteBack::Pdflush, WriteBack::Pauses][rng.random_range(0..3)];
    host.kernel = [None, Some(Kernel::V2_6_18), Some(Kernel::V3_2), Some(Kernel::V6_1)][rng.random_range(0..4)];
    host.queue.merging = rng.random_range(0..4) > 0;
    host.queue.clock.hz = [100, 250, 1000][rng.random_range(0..3)];
    host
}

#[test]
fn every_world_moves_all_its_bytes_and_replays() {
    for seed in 0..WORLDS {
        let mut rng = Pcg64::new(u128::from(seed), 1);
        let (jobs, bytes) = jobs(&mut rng);
        let request = CompareRequest { host: host(&mut rng), seed, ..request(&jobs, Kind::ALL) };
        let about = format!("seed {seed}, {:?}, job file:\n{jobs}", request.host);
        let first = run(&request).unwrap_or_else(|error| panic!("{error}; {about}"));
        for run in &first.runs {
            let moved: u64 = run.processes.iter().map(|process| process.bytes).sum();
            assert_eq!(moved, bytes, "{}: {about}", run.elevator);
            let drive = run.drive_ns;
            let sum = drive.overhead + drive.seek + drive.rotation + drive.transfer + drive.idle;
            assert_eq!(sum, run.runtime_ns, "{}: {about}", run.elevator);
        }
        let again = run(&request).expect("it ran before");
        for (one, two) in first.runs.iter().zip(&again.runs) {
            assert_eq!((one.runtime_ns, one.drive_ns), (two.runtime_ns, two.drive_ns), "{}: {about}", one.elevator);
        }
    }
}
