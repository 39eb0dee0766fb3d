//! CPU times of Linux 6.3, locks of elevators, and hosts with several drives.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, HostConfig, Kernel, Run};

use crate::common::{request, run};

/// Random reads of the drives by processes with 32 requests each, on a host of 6.3.
fn readers(elevator: Kind, host: HostConfig, processes: u32, devices: &str) -> CompareRequest {
    let jobs = format!(
        "[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth=32\nnumjobs={processes}\ntime_based\n\
         ramp_time=5ms\nruntime=40ms\nfilename={devices}\n"
    );
    let profile = Profile::builtin("samsung-980-pro").expect("a built-in profile");
    CompareRequest { profile, host, ..request(&jobs, &[elevator]) }
}

fn rate(request: &CompareRequest) -> f64 {
    let runs: Vec<Run> = run(request).expect("a run").runs;
    runs[0].bytes_per_s / 4096.0
}

fn host(cpus: u32, drives: u32) -> HostConfig {
    HostConfig { cpus, drives, ..HostConfig::kernel(Kernel::V6_3) }
}

fn assert_near(found: f64, expected: f64, percent: f64) {
    assert!((found / expected - 1.0).abs() * 100.0 <= percent, "{found}, expected {expected}");
}

#[test]
fn one_core_spends_the_sum_of_the_times_on_each_request() {
    let costs = HostConfig::kernel(Kernel::V6_3).costs;
    let sum_ns = (costs.system_call_ns + costs.bio_ns + costs.completion_ns + costs.program_ns) as f64;
    let elevators =
        [(Kind::Noop, 0), (Kind::Kyber, costs.elevators.kyber.work_ns), (Kind::Bfq, costs.elevators.bfq.work_ns)];
    for (elevator, work_ns) in elevators {
        let mut request = readers(elevator, host(1, 1), 1, "/dev/nvme0n1");
        request.jobs.jobs[0].submission.iodepth = 128;
        assert_near(rate(&request), 1e9 / (sum_ns + work_ns as f64), 3.0);
    }
}

#[test]
fn a_lock_limits_the_rate_of_many_cores() {
    let elevators = HostConfig::kernel(Kernel::V6_3).costs.elevators;
    for (elevator, cost) in [(Kind::MqDeadline, elevators.mq_deadline), (Kind::Bfq, elevators.bfq)] {
        let found = rate(&readers(elevator, host(10, 1), 10, "/dev/nvme0n1"));
        assert_near(found, 1e9 / cost.contended_ns as f64, 6.0);
    }
    // Kyber has no such lock: the link of the drive is the limit.
    assert_near(rate(&readers(Kind::Kyber, host(10, 1), 10, "/dev/nvme0n1")), 3.24e9 / 4096.0, 5.0);
}

#[test]
fn each_drive_has_a_link_and_a_lock_of_its_own() {
    let both = "/dev/nvme0n1:/dev/nvme1n1";
    let one = rate(&readers(Kind::Noop, host(10, 1), 10, "/dev/nvme0n1"));
    let two = rate(&readers(Kind::Noop, host(10, 2), 10, both));
    assert!(two > 1.6 * one, "{two} of two drives, {one} of one");
    let locked = |drives, devices| rate(&readers(Kind::Bfq, host(10, drives), 10, devices));
    let (one, two) = (locked(1, "/dev/nvme0n1"), locked(2, both));
    assert!(two > 1.6 * one, "{two} of two drives, {one} of one");
    // Two names on a host with one drive mean the same drive.
    assert_near(locked(1, both), one, 6.0);
}

#[test]
fn several_drives_are_refused_without_direct_io() {
    let mut request = readers(Kind::Noop, host(2, 2), 1, "/dev/nvme0n1");
    request.jobs.jobs[0].cache.direct = false;
    let error = run(&request).expect_err("the page cache writes to one drive").to_string();
    let expected = "test.fio:1: job `r`: the host has 2 drives, of which only direct I/O without syncs uses several; \
                    set direct=1 and no fsync, or `drives = 1` in the host file";
    assert_eq!(error, expected);
}

#[test]
fn a_seed_repeats_a_run_with_locks() {
    let request = readers(Kind::MqDeadline, host(4, 1), 4, "/dev/nvme0n1");
    assert_eq!(rate(&request).to_bits(), rate(&request).to_bits());
    let other = CompareRequest { seed: 2, ..request.clone() };
    assert_ne!(rate(&request).to_bits(), rate(&other).to_bits());
}
