//! The simulated machine: processors, page cache, write-back, file layout, and the bounds of a run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{bytes, noop, request, run, seconds, with_host};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, CpuCosts, HostConfig, Setting, SimError, SliceKind, compare};

fn small_memory(mib: u64) -> HostConfig {
    HostConfig { page_cache_mib: mib, ..HostConfig::default() }
}

#[test]
fn the_time_of_the_drive_adds_up_to_the_runtime() {
    for jobs in ["[a]\nsize=8m\nnumjobs=3\n", "[a]\nrw=randrw\nsize=2m\ndirect=1\nioengine=libaio\niodepth=4\n"] {
        let all = Kind::ALL.to_vec();
        for run in run(&request(jobs, &all)).expect("runs").runs {
            let drive = run.drive_ns;
            let sum = drive.overhead + drive.seek + drive.rotation + drive.transfer + drive.idle;
            assert_eq!(sum, run.runtime_ns, "{} on {jobs}", run.elevator);
        }
    }
    let null = CompareRequest {
        profile: Profile::builtin("null").expect("a built-in profile"),
        ..request("[a]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\niodepth=32\nnumber_ios=1000\n", &[Kind::Noop])
    };
    let run = run(&null).expect("a run").runs.remove(0);
    assert_eq!(run.drive_ns.overhead + run.drive_ns.idle, run.runtime_ns);
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_nanosecond() {
    let jobs = "[a]\nrw=randrw\nsize=2m\nnumjobs=4\nfsync=20\n[b]\nrw=read\nsize=8m\nthinktime=1ms\n";
    for kind in Kind::ALL {
        let once = || {
            let run = run(&request(jobs, &[*kind])).expect("a run").runs.remove(0);
            let latencies: Vec<_> = run.processes.iter().map(|process| process.latency_ns).collect();
            (run.runtime_ns, run.drive_ns, run.drive_requests, latencies)
        };
        assert_eq!(once(), once(), "{kind:?}");
    }
}

#[test]
fn a_file_that_fits_into_memory_is_read_once_and_a_larger_one_in_each_pass() {
    let jobs = "[a]\nfilename=x\nsize=8m\n[b]\nfilename=x\nsize=8m\nio_size=32m\ninvalidate=0\nstartdelay=1\n";
    // The second job has the file in memory. By default each pass opens the file anew, which drops
    // its pages: fio 3.33 read 256 MiB from the disk with `size=64m` and `io_size=256m`.
    let large = noop(jobs);
    let anew = noop(&jobs.replace("invalidate=0\n", ""));
    assert!(anew.drive_requests > large.drive_requests * 4, "{} {}", anew.drive_requests, large.drive_requests);
    let small = with_host(jobs, small_memory(4));
    assert!(small.drive_requests > large.drive_requests * 2, "{} {}", small.drive_requests, large.drive_requests);
}

#[test]
fn one_processor_serves_two_readers_of_cached_pages_in_turns() {
    let jobs = "[a]\nfilename=x\nsize=4m\nio_size=400m\ninvalidate=0\nnumjobs=2\n";
    let time = |cpus| seconds(&with_host(jobs, HostConfig { cpus, ..HostConfig::default() }));
    let ratio = time(1) / time(2);
    assert!((1.7..2.05).contains(&ratio), "{ratio}");
}

#[test]
fn cpu_time_follows_from_the_configured_costs() {
    let costs =
        CpuCosts { system_call_ns: 1000, copy_page_ns: 5000, bio_ns: 20_000, completion_ns: 40_000, ..CpuCosts::NONE };
    let host = HostConfig { costs, ..HostConfig::default() };
    let direct = with_host("[a]\nsize=1m\nbs=64k\ndirect=1\n", host.clone());
    assert_eq!(direct.processes[0].cpu_ns, 16 * (1000 + 20_000 + 40_000));
    let buffered = with_host("[a]\nsize=1m\nbs=4k\n", HostConfig { read_ahead_kib: 0, ..host });
    assert_eq!(buffered.processes[0].cpu_ns, 256 * (1000 + 5000 + 20_000 + 40_000));
}

#[test]
fn a_writer_is_throttled_above_the_dirty_limit() {
    let jobs = "[a]\nrw=write\nsize=256m\nbs=64k\n";
    let free = noop(jobs);
    let held = with_host(jobs, small_memory(64));
    // In a small memory most of it goes to the disk at its speed, about 60 MB/s, before the writer
    // is done.
    assert!(seconds(&held) > 3.0 && seconds(&free) < 0.5, "{} {}", seconds(&held), seconds(&free));
    assert!(held.latency_ns.max > 10_000_000);
}

#[test]
fn old_pages_are_written_in_the_background() {
    let jobs = "[a]\nrw=write\nsize=1m\nnumber_ios=128\nrate_iops=2\n";
    let run = noop(jobs);
    // Two pages a second for 64 seconds: those of the first half minute are on the disk at the end,
    // although no process synced them.
    assert!(run.drive_bytes >= 30 * 2 * 4096, "{}", run.drive_bytes);
    assert!(run.drive_bytes < 60 * 2 * 4096, "young pages stay in memory: {}", run.drive_bytes);
    let patient = HostConfig { dirty_expire_ms: 3_600_000, ..HostConfig::default() };
    assert_eq!(with_host(jobs, patient).drive_requests, 0);
}

#[test]
fn many_dirty_pages_wake_the_flusher_before_they_are_old() {
    let host = HostConfig { dirty_background_percent: 1, ..small_memory(100) };
    let run = with_host("[a]\nrw=write\nsize=8m\nrate=8m\n", host);
    assert!(run.drive_requests > 5, "{}", run.drive_requests);
}

#[test]
fn part_of_a_page_is_read_before_it_is_written() {
    let pages = |bs: &str| {
        let run = noop(&format!("[a]\nrw=randwrite\nsize=256k\nbs={bs}\nnumber_ios=32\nend_fsync=1\n"));
        run.drive_bytes / 4096
    };
    assert_eq!(pages("4k"), 32, "whole pages are only written");
    // Of 64 pages 32 blocks of a quarter page hit some 26, each read once and written once.
    let of_parts = pages("1k");
    assert!(of_parts % 2 == 0 && (40..=64).contains(&of_parts), "{of_parts}");
}

#[test]
fn an_aged_file_system_costs_seeks() {
    let aged = HostConfig { aged: true, ..HostConfig::default() };
    let jobs = "[a]\nsize=32m\n[b]\nsize=32m\nstonewall\n[c]\nsize=32m\nstonewall\n";
    let (fresh, old) = (noop(jobs), with_host(jobs, aged));
    assert!(seconds(&old) > 1.2 * seconds(&fresh), "{} {}", seconds(&old), seconds(&fresh));
}

#[test]
fn hundreds_of_processes_share_a_pool_of_few_requests() {
    let mut host = HostConfig::default();
    host.queue.nr_requests = Some(4);
    for kind in Kind::ALL {
        let jobs = "[a]\nrw=randrw\nsize=64k\ndirect=1\nnumjobs=100\n[w]\nrw=write\nsize=1m\nend_fsync=1\nnumjobs=20\n";
        let request = CompareRequest { host: host.clone(), ..request(jobs, &[*kind]) };
        let run = run(&request).expect("a run").runs.remove(0);
        assert_eq!(bytes(&run), (100 << 16) + (20 << 20), "{kind:?}");
    }
}

#[test]
fn every_elevator_serves_every_byte_of_a_mixed_workload() {
    let jobs = "[global]\nsize=2m\n[r]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\n[s]\nnumjobs=4\n\
                [w]\nrw=randwrite\nfsync=32\n[d]\nrw=write\ndirect=1\nbs=32k\n[i]\nprioclass=3\n[t]\nprioclass=1\nthinktime=5ms\n";
    for kind in Kind::ALL {
        let run = run(&request(jobs, &[*kind])).expect("a run").runs.remove(0);
        assert_eq!(bytes(&run), 9 * (2 << 20), "{kind:?}");
    }
}

#[test]
fn a_recording_has_head_positions_and_slices() {
    let jobs = "[a]\nsize=32m\nnumjobs=2\n";
    let request = CompareRequest { record: true, ..request(jobs, &[Kind::CfqV3, Kind::Noop]) };
    let comparison = run(&request).expect("runs");
    let cfq = &comparison.runs[0];
    assert_eq!(cfq.head.len() as u64, cfq.drive_requests);
    assert!(cfq.head.is_sorted_by_key(|sample| sample.at_ns));
    let service: Vec<_> = cfq.slices.iter().filter(|slice| slice.kind == SliceKind::Service).collect();
    // 64 MiB at 60 MB/s in slices of 100 ms: about eleven.
    assert!((8..20).contains(&service.len()), "{}", service.len());
    assert!(service.iter().all(|slice| slice.end_ns - slice.start_ns < 200_000_000));
    assert!(service.iter().any(|slice| slice.pid == 1001) && service.iter().any(|slice| slice.pid == 1002));
    assert!(comparison.runs[1].slices.is_empty() && !comparison.runs[1].head.is_empty());
}

#[test]
fn a_cancelled_comparison_ends_at_once() {
    let request = request("[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nruntime=1000d\ntime_based\n", Kind::ALL);
    let cancel = AtomicBool::new(false);
    let seen = Mutex::new(0);
    let progress = |progress: hoistway_sim::Progress| {
        *seen.lock().expect("no panic") += 1;
        if progress.now_ns > 1_000_000_000 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let error = compare(&request, &progress, &cancel).unwrap_err();
    assert!(matches!(error, SimError::Cancelled), "{error}");
    assert!(*seen.lock().expect("no panic") > 1);
}

#[test]
fn time_without_progress_is_an_error_with_the_seed() {
    // A null engine on a machine whose work takes no time would never come to the end of its
    // second.
    let costs = CpuCosts::NONE;
    let host = HostConfig { costs, ..HostConfig::default() };
    let jobs = "[a]\nsize=1m\nioengine=null\ntime_based\nruntime=1\n";
    let error = run(&CompareRequest { host, ..request(jobs, &[Kind::Noop]) }).unwrap_err().to_string();
    assert!(error.contains("with seed 1 makes no progress at 0 ns with 1 unfinished"), "{error}");
}

#[test]
fn invalid_comparisons_are_errors_with_the_reason() {
    let error = |request: &CompareRequest| run(request).unwrap_err().to_string();
    let jobs = "[a]\nsize=1m\n";
    let none = error(&request(jobs, &[]));
    assert!(none.contains("name at least one of ") && none.contains("noop, "), "{none}");
    let mut other = request(jobs, &[Kind::Noop]);
    other.settings.push(Setting::parse("deadline.fifo_batch=1").expect("a setting"));
    assert!(error(&other).contains("not among the compared: noop"));
    assert!(
        error(&request("[a]\nsize=1t\n", &[Kind::Noop]))
            .contains("make `a.0.0` smaller or take a larger drive, as in --drive ssd-nvme-tlc")
    );
    assert!(error(&request("[a]\nsize=100t\n", &[Kind::Noop])).contains("(none of `hoistway drives` is that large)"));
    let host = HostConfig { cpus: 0, ..HostConfig::default() };
    assert!(error(&CompareRequest { host, ..request(jobs, &[Kind::Noop]) }).contains("cpus is 0"));
}

#[test]
fn a_setting_reaches_its_elevator() {
    let jobs = "[a]\nsize=32m\nnumjobs=4\n";
    let turns = |setting: Option<&str>| {
        let mut request = request(jobs, &[Kind::CfqV3]);
        request.settings.extend(setting.map(|text| Setting::parse(text).expect("a setting")));
        run(&request).expect("a run").runs[0].turns
    };
    let (usual, short) = (turns(None), turns(Some("cfq-v3.slice_sync=20ms")));
    assert!(short > 3 * usual, "{short} {usual}");
}

#[test]
fn the_single_stream_is_the_first_job_alone_on_its_first_file() {
    let one = run(&request("[a]\nsize=16m\n", &[Kind::Noop])).expect("a run");
    assert!((one.runs[0].of_single_stream - 1.0).abs() < 1e-9, "{}", one.runs[0].of_single_stream);
    let many = run(&request("[a]\nsize=16m\nnumjobs=5\n[b]\nrw=randread\nsize=1m\n", &[Kind::Noop])).expect("a run");
    assert_eq!(many.single_stream_bytes_per_s, one.single_stream_bytes_per_s);
}

#[test]
fn a_whole_device_is_read_to_its_last_page() {
    let profile = Profile::builtin("hp_c3323a").expect("a built-in profile");
    let jobs = "[a]\nfilename=/dev/sda\noffset=99%\nbs=64k\n";
    let comparison = run(&CompareRequest { profile, ..request(jobs, &[Kind::Noop]) }).expect("a run");
    assert!(bytes(&comparison.runs[0]) > 1 << 20);
}

#[test]
fn pauses_of_centuries_complete() {
    for option in ["startdelay=100000d\n", "thinktime=100000d\n", "rate=1\nbs=4k\n"] {
        let run = noop(&format!("[a]\nsize=1m\nnumber_ios=2\n{option}"));
        assert_eq!(bytes(&run), 2 * 4096, "{option}");
    }
}
