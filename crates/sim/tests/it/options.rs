//! The effect of every supported option of a job file, in small worlds.

use crate::common::{bytes, noop, request, run, seconds, with_host};
use hoistway_core::{BlockLayer, Kind};
use hoistway_sim::{CompareRequest, HostConfig};

#[test]
fn writes_are_writes_and_mixed_jobs_mix() {
    let mixed = noop("[a]\nrw=randrw\nrwmixread=75\nsize=4m\ndirect=1\n");
    let process = &mixed.processes[0];
    let share = process.read.ios as f64 / (process.read.ios + process.write.ios) as f64;
    assert!((share - 0.75).abs() < 0.05, "{share}");
    let writer = noop("[a]\nrw=write\nsize=1m\ndirect=1\n");
    assert_eq!((writer.processes[0].read.bytes, writer.processes[0].write.bytes), (0, 1 << 20));
}

#[test]
fn random_direct_reads_cost_a_seek_and_half_a_revolution() {
    let random = noop("[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nnumber_ios=2000\n");
    let per_request_ms = seconds(&random) * 1e3 / 2000.0;
    // 8.75 ms of seek (about 8.6 over sectors: outer cylinders hold more), 4.17 of rotation, 0.15
    // of overhead, 0.07 of data.
    assert!((per_request_ms - 13.0).abs() < 0.3, "{per_request_ms}");
    let sequential = noop("[a]\nfilename=/dev/sda\nrw=read\ndirect=1\nnumber_ios=2000\n");
    assert!(seconds(&sequential) * 20.0 < seconds(&random));
}

#[test]
fn block_sizes_ranges_and_splits_are_distinguished() {
    let ios = |text: &str| noop(&format!("[a]\nrw=read\nsize=4m\ndirect=1\n{text}")).processes[0].read.ios;
    assert_eq!((ios("bs=4k\n"), ios("bs=64k\n")), (1024, 64));
    let ranged = ios("bsrange=4k-16k\n");
    // 10 KiB on average.
    assert!((360..460).contains(&ranged), "{ranged}");
    let split = ios("bssplit=4k/50:64k/50\n");
    // 34 KiB on average.
    assert!((90..160).contains(&split), "{split}");
}

#[test]
fn size_io_size_number_ios_and_loops_set_the_moved_bytes() {
    let moved = |text: &str| bytes(&noop(&format!("[a]\nrw=read\n{text}")));
    assert_eq!(moved("size=1m\n"), 1 << 20);
    assert_eq!(moved("size=1m\nio_size=256k\n"), 1 << 18);
    assert_eq!(moved("size=1m\nio_size=3m\n"), 3 << 20);
    assert_eq!(moved("size=1m\nnumber_ios=7\n"), 7 * 4096);
    assert_eq!(moved("size=1m\nloops=3\n"), 3 << 20);
    assert_eq!(moved("filesize=2m\n"), 2 << 20);
    assert_eq!(moved("nrfiles=4\nsize=1m\n"), 1 << 20);
}

#[test]
fn loops_read_from_the_disk_again() {
    let (once, thrice) = (noop("[a]\nsize=4m\n"), noop("[a]\nsize=4m\nloops=3\n"));
    let ratio = seconds(&thrice) / seconds(&once);
    assert!((2.5..3.5).contains(&ratio), "{ratio}");
}

#[test]
fn an_offset_reads_inner_zones_at_a_lower_rate() {
    let rate = |text: &str| noop(&format!("[a]\nfilename=/dev/sda\nsize=32m\nbs=128k\ndirect=1\n{text}")).bytes_per_s;
    let ratio = rate("offset=180g\n") / rate("");
    // The innermost of the drive's zones has 0.55 times the sectors of the outermost.
    assert!((0.53..0.62).contains(&ratio), "{ratio}");
    let increments = noop("[a]\nfilename=/dev/sda\nsize=1m\noffset_increment=50g\nnumjobs=2\ndirect=1\n");
    assert!(increments.drive_ns.seek > 0);
}

#[test]
fn runtime_ends_a_job_and_time_based_prolongs_it() {
    let short = noop("[a]\nsize=1g\nruntime=1\n");
    assert!((0.99..1.1).contains(&seconds(&short)), "{}", seconds(&short));
    let long = noop("[a]\nsize=1m\nruntime=1\ntime_based\n");
    assert!((0.99..1.1).contains(&seconds(&long)), "{}", seconds(&long));
    assert!(bytes(&long) > 1 << 20);
}

#[test]
fn ramp_time_is_not_measured() {
    let ramped = noop("[a]\nsize=1g\nruntime=1\nramp_time=2\n");
    assert_eq!(ramped.processes[0].start_ns, 2_000_000_000);
    assert!((0.99..1.1).contains(&seconds(&ramped)), "{}", seconds(&ramped));
    let plain = noop("[a]\nsize=1g\nruntime=1\n");
    assert!((bytes(&ramped) as f64 / bytes(&plain) as f64 - 1.0).abs() < 0.05);
}

#[test]
fn startdelay_stonewall_and_wait_for_order_the_jobs() {
    let starts = |text: &str| -> Vec<u64> { noop(text).processes.iter().map(|process| process.start_ns).collect() };
    assert_eq!(starts("[global]\nsize=1m\n[a]\n[b]\nstartdelay=2\n"), [0, 2_000_000_000]);
    let walled = noop("[global]\nsize=1m\n[a]\n[b]\nstonewall\n[c]\n");
    let (a, b, c) = (&walled.processes[0], &walled.processes[1], &walled.processes[2]);
    assert_eq!((a.start_ns, b.start_ns, c.start_ns), (0, a.runtime_ns, a.runtime_ns));
    let waited = noop("[global]\nsize=1m\n[a]\n[b]\nwait_for=a\n[c]\n");
    let (a, b, c) = (&waited.processes[0], &waited.processes[1], &waited.processes[2]);
    assert_eq!((b.start_ns, c.start_ns), (a.runtime_ns, 0));
}

#[test]
fn thinktime_pauses_after_thinktime_blocks() {
    let base = "[a]\nsize=400k\ndirect=1\n";
    let plain = seconds(&noop(base));
    let every = seconds(&noop(&format!("{base}thinktime=10ms\n")));
    // 100 blocks, a pause after each but the last needs no end.
    assert!((every - plain - 1.0).abs() < 0.5, "{every} {plain}");
    let tenth = seconds(&noop(&format!("{base}thinktime=10ms\nthinktime_blocks=10\n")));
    assert!((tenth - plain - 0.1).abs() < 0.1, "{tenth} {plain}");
    let spin = noop(&format!("{base}thinktime=10ms\nthinktime_spin=10ms\n"));
    assert!(spin.processes[0].cpu_ns > 900_000_000, "{}", spin.processes[0].cpu_ns);
}

#[test]
fn rates_cap_bandwidth_and_requests_a_second() {
    let capped = noop("[a]\nsize=10m\nrate=5m\n");
    assert!((seconds(&capped) - 2.0).abs() < 0.05, "{}", seconds(&capped));
    let ios = noop("[a]\nsize=400k\nrate_iops=50\n");
    assert!((seconds(&ios) - 2.0).abs() < 0.1, "{}", seconds(&ios));
    let poisson = noop("[a]\nsize=1600k\nrate_iops=200\nrate_process=poisson\n");
    assert!((1.5..2.6).contains(&seconds(&poisson)), "{}", seconds(&poisson));
    assert_ne!(seconds(&poisson), seconds(&noop("[a]\nsize=1600k\nrate_iops=200\n")));
}

#[test]
fn skewed_distributions_hit_the_page_cache_where_a_map_cannot() {
    let time = |text: &str| seconds(&noop(&format!("[a]\nrw=randread\nsize=8m\n{text}")));
    let mapped = time("");
    // Without the map, 1 - 1/e of the blocks are read from the disk; with zipf far fewer, with a
    // narrow normal fewer still.
    let drawn = time("norandommap\n");
    assert!((drawn / mapped - 0.632).abs() < 0.06, "{drawn} {mapped}");
    for distribution in ["zipf:1.2", "pareto:0.1", "normal:5", "zoned:95/5:5/95"] {
        let skewed = time(&format!("random_distribution={distribution}\n"));
        assert!(skewed < drawn * 0.85, "{distribution}: {skewed} {drawn}");
    }
    let half = time("percentage_random=10\n");
    assert!(half < mapped * 0.6, "{half} {mapped}");
}

#[test]
fn several_requests_at_a_random_offset_save_seeks() {
    let time = |rw: &str| seconds(&noop(&format!("[a]\nfilename=/dev/sda\nrw={rw}\ndirect=1\nnumber_ios=400\n")));
    let (single, eight) = (time("randread"), time("randread:8"));
    assert!(eight < single * 0.3, "{eight} {single}");
    let identical = noop("[a]\nfilename=/dev/sda\nrw=randread:8\nrw_sequencer=identical\ndirect=1\nnumber_ios=400\n");
    assert!(seconds(&identical) < single * 0.3);
    let holes = noop("[a]\nrw=read:60k\nsize=8m\ndirect=1\nnumber_ios=100\n");
    let dense = noop("[a]\nrw=read\nsize=8m\ndirect=1\nnumber_ios=100\n");
    assert!(seconds(&holes) > 2.0 * seconds(&dense));
}

#[test]
fn random_offsets_depend_on_the_seeds_of_job_and_world_only() {
    let text = "[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nnumber_ios=50\n";
    let with_seed = |seed: u64, text: &str| {
        let request = hoistway_sim::CompareRequest { seed, ..request(text, &[Kind::Noop]) };
        run(&request).expect("a run").runs[0].runtime_ns
    };
    assert_eq!(with_seed(1, text), with_seed(1, text));
    assert_ne!(with_seed(1, text), with_seed(2, text));
    assert_ne!(with_seed(1, text), with_seed(1, &format!("{text}randseed=7\n")));
}

#[test]
fn a_larger_iodepth_helps_an_elevator_that_sorts() {
    let time = |text: &str, kind: Kind| {
        let text = format!("[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nnumber_ios=500\n{text}");
        run(&request(&text, &[kind])).expect("a run").runs[0].runtime_ns as f64
    };
    let one = time("ioengine=libaio\n", Kind::Deadline);
    let many = time("ioengine=libaio\niodepth=32\n", Kind::Deadline);
    assert!(many < 0.75 * one, "{many} {one}");
    // A synchronous engine has one in flight whatever iodepth says.
    let sync = time("ioengine=sync\niodepth=32\n", Kind::Deadline);
    assert!((sync / one - 1.0).abs() < 0.01, "{sync} {one}");
    for engine in ["psync", "vsync", "pvsync", "pvsync2"] {
        assert_eq!(time(&format!("ioengine={engine}\n"), Kind::Deadline), sync, "{engine}");
    }
    for engine in ["io_uring", "posixaio"] {
        assert_eq!(time(&format!("ioengine={engine}\niodepth=32\n"), Kind::Deadline), many, "{engine}");
    }
    let null = noop("[a]\nsize=4m\nioengine=null\n");
    assert_eq!((bytes(&null), null.drive_requests), (4 << 20, 0));
}

#[test]
fn a_mapped_file_is_read_without_system_calls() {
    let cpu = |engine: &str| noop(&format!("[a]\nsize=4m\nioengine={engine}\n")).processes[0].cpu_ns;
    let costs = HostConfig::default().costs;
    // A call a page, and a fault a page.
    assert_eq!(cpu("psync\nfadvise_hint=0") + 1024 * costs.fault_ns, cpu("mmap") + 1024 * costs.system_call_ns);
}

#[test]
fn buffered_reads_are_read_ahead_and_direct_ones_are_not() {
    let buffered = noop("[a]\nsize=16m\nbuffered=1\n");
    let direct = noop("[a]\nsize=16m\ndirect=1\n");
    // Windows of 128 KiB: 16 MiB take 128 requests and the small first ones, or fewer where two
    // were merged.
    assert!(buffered.drive_requests <= 135, "{}", buffered.drive_requests);
    assert_eq!(direct.drive_requests, 4096);
    let without = with_host("[a]\nsize=16m\n", HostConfig { read_ahead_kib: 0, ..HostConfig::default() });
    assert_eq!(without.drive_requests, 4096);
}

#[test]
fn buffered_writes_complete_in_memory_and_syncs_wait_for_the_disk() {
    let cached = noop("[a]\nrw=write\nsize=16m\n");
    assert!(seconds(&cached) < 0.05, "{}", seconds(&cached));
    let ended = noop("[a]\nrw=write\nsize=16m\nend_fsync=1\n");
    assert!((0.2..1.0).contains(&seconds(&ended)), "{}", seconds(&ended));
    assert_eq!(ended.processes[0].sync.n, 0, "fio does not report it");
    let often = noop("[a]\nrw=write\nsize=1m\nfsync=16\n");
    // None follows the last write.
    assert_eq!(often.processes[0].sync.n, 15);
    // An fsync after each 64 KiB: the platter has turned on by the time the next ones come.
    assert!((often.processes[0].sync.mean - 8.33e6).abs() < 3e6, "{}", often.processes[0].sync.mean);
    assert_eq!(noop("[a]\nrw=write\nsize=1m\nfdatasync=64\n").processes[0].sync.n, 3);
    let through = noop("[a]\nrw=write\nsize=1m\nsync=1\n");
    // Every 4 KiB waits for a revolution.
    assert!((seconds(&through) / 256.0 - 8.33e-3).abs() < 0.5e-3, "{}", seconds(&through));
}

#[test]
fn priorities_and_nice_divide_the_disk_under_cfq() {
    let shares = |one: &str, two: &str| {
        let text = format!("[global]\nsize=1g\nruntime=4\n[a]\n{one}[b]\n{two}");
        let run = run(&request(&text, &[Kind::CfqV3])).expect("a run").runs.remove(0);
        run.processes[0].bytes as f64 / run.processes[1].bytes as f64
    };
    let equal = shares("", "");
    assert!((0.85..1.18).contains(&equal), "{equal}");
    assert!(shares("prio=0\n", "prio=7\n") > 4.0);
    assert!(shares("nice=-20\n", "nice=19\n") > 4.0);
    assert!(shares("prioclass=1\nprio=4\n", "prio=0\n") > 4.0);
    assert!(shares("prioclass=2\nprio=4\n", "prioclass=3\n") > 20.0);
}

#[test]
fn clones_have_separate_files_unless_filename_is_given() {
    let own = noop("[a]\nsize=4m\nnumjobs=3\n");
    assert_eq!(own.processes.len(), 3);
    let shared = noop("[a]\nfilename=x\nsize=4m\nnumjobs=3\n");
    // The first to come reads from the disk, the others from the cache.
    assert!(shared.drive_requests < own.drive_requests * 2 / 3, "{} {}", shared.drive_requests, own.drive_requests);
}

#[test]
fn directories_lie_apart() {
    let seek = |text: &str| noop(&format!("[global]\nsize=4m\ndirect=1\nbs=64k\n{text}")).drive_ns.seek;
    let together = seek("[a]\nfilename=d/a\n[b]\nfilename=d/b\n");
    let apart = seek("[a]\nfilename=d/a\n[b]\nfilename=e/b\n");
    assert!(apart > together * 3 / 2, "{apart} {together}");
}

#[test]
fn group_reporting_merges_a_group_to_one_job_in_fios_json() {
    let names = |text: &str| -> Vec<String> {
        let comparison = run(&request(text, &[Kind::Noop])).expect("a run");
        let report = comparison.fio_report("hoistway", 0, &[]);
        report
            .jobs
            .iter()
            .map(|job| format!("{} {}", job.jobname, job.read.as_ref().expect("reads").io_bytes))
            .collect()
    };
    assert_eq!(names("[a]\nsize=1m\nnumjobs=2\n"), ["noop/a 1048576", "noop/a 1048576"]);
    assert_eq!(names("[a]\nsize=1m\nnumjobs=2\ngroup_reporting\n"), ["noop/a 2097152"]);
    let two = "[global]\ngroup_reporting\nsize=1m\n[a]\n[b]\nnew_group\n";
    assert_eq!(names(two), ["noop/a 1048576", "noop/b 1048576"]);
}

#[test]
fn one_call_reaps_at_most_iodepth_batch_complete_max_requests() {
    // Eight requests complete while the job thinks.
    let reaped = |more: &str| {
        let text = format!(
            "[a]\nrw=randread\nsize=1m\ndirect=1\nioengine=libaio\niodepth=8\nthinktime=1s\nthinktime_blocks=8\n\
             thinktime_blocks_type=issue\n{more}"
        );
        let comparison = run(&request(&text, &[Kind::Noop])).expect("a run");
        let job = comparison.fio_report("hoistway", 0, &[]).jobs.remove(0);
        assert_eq!(job.read.expect("reads").total_ios, 256);
        let json = serde_json::to_value(job.iodepth_complete).expect("JSON");
        ["4", "8"].map(|batch| json[batch].as_f64().expect("a share"))
    };
    assert_eq!(reaped(""), [0.0, 100.0]);
    assert_eq!(reaped("iodepth_batch_complete_max=4\n"), [100.0, 0.0]);
    assert_eq!(reaped("iodepth_batch_complete_max=8\n"), [0.0, 100.0]);
}

#[test]
fn unified_reporting_adds_all_directions_in_fios_json() {
    let job = |unified: &str| {
        let text = format!("[a]\nrw=randrw\nsize=1m\ndirect=1\n{unified}");
        let comparison = run(&request(&text, &[Kind::Noop])).expect("a run");
        comparison.fio_report("hoistway", 0, &[]).jobs.remove(0)
    };
    let separate = job("");
    let (read, write) = (separate.read.expect("reads"), separate.write.expect("writes"));
    assert!(separate.mixed.is_none() && read.total_ios > 0 && write.total_ios > 0);
    let both = job("unified_rw_reporting=both\n");
    assert_eq!(both.read.map(|both| both.io_bytes), Some(read.io_bytes));
    for (unified, has_directions) in [("mixed", false), ("1", false), ("2", true)] {
        let report = job(&format!("unified_rw_reporting={unified}\n"));
        assert_eq!((report.read.is_some(), report.sync.is_some()), (has_directions, has_directions), "{unified}");
        let mixed = report.mixed.expect("all directions");
        assert_eq!((mixed.total_ios, mixed.io_bytes, mixed.clat_ns.n), (256, 1 << 20, 256));
        assert_eq!(mixed.clat_ns.max, read.clat_ns.max.max(write.clat_ns.max));
        assert!((mixed.iops - read.iops - write.iops).abs() < 0.01 * mixed.iops, "{} {}", mixed.iops, read.iops);
    }
}

#[test]
fn bandwidth_logs_have_the_windows_of_log_avg_msec() {
    let text = "[a]\nsize=100m\nrate=20m\nwrite_bw_log=x\nlog_avg_msec=1000\n";
    let run = noop(text);
    let process = &run.processes[0];
    assert_eq!(process.bandwidth_log_name(1).as_deref(), Some("x_bw.1.log"));
    let log = process.bandwidth_log();
    // 100 MiB at 20 MiB/s; the request that starts the last second may end the job before that is
    // over.
    assert!((4..=5).contains(&log.len()), "{}", log.len());
    for (index, entry) in log.iter().enumerate() {
        assert_eq!(entry.time_ms, 1000 * (index as u64 + 1));
        assert!((entry.value as f64 / 20480.0 - 1.0).abs() < 0.05, "{}", entry.value);
    }
    assert_eq!(noop("[a]\nsize=1m\n").processes[0].bandwidth_log_name(1), None);
    let half = noop("[a]\nsize=100m\nrate=20m\nbwavgtime=250\n");
    assert_eq!(half.processes[0].window_ns, 250_000_000);
}

#[test]
fn fios_json_has_the_figures_of_the_run() {
    let comparison = run(&request("[a]\nrw=randread\nsize=1m\ndirect=1\n", &[Kind::Noop])).expect("a run");
    let process = &comparison.runs[0].processes[0];
    let json = comparison.fio_report("hoistway", 0, &[]).to_json();
    let report = hoistway_fio::results::Report::from_json(&json).expect("what was written can be read");
    let job = &report.jobs[0];
    let read = job.read.as_ref().expect("reads");
    assert_eq!((job.jobname.as_str(), read.total_ios, read.io_bytes), ("noop/a", 256, 1 << 20));
    assert_eq!(read.runtime, process.runtime_ns.div_ceil(1_000_000));
    assert!((read.clat_ns.mean - process.read.clat_ns.mean).abs() < 1.0);
    assert_eq!(read.clat_ns.n, 256);
    let extra = report.hoistway.expect("what fio has no name for");
    assert_eq!(extra["runs"][0]["elevator"], "noop");
}

#[test]
fn a_percentage_offset_is_rounded_up_to_offset_align() {
    let first_byte = |align: &str| {
        let job = format!("[a]\nfilename=/dev/sda\noffset=50%\noffset_align={align}\nnumber_ios=1\ndirect=1\n");
        let request = CompareRequest { record: true, ..request(&job, &[Kind::Noop]) };
        run(&request).expect("a run").runs[0].head[0].sector * 512
    };
    // Half of 390,721,968 sectors, which are 93.2 GiB.
    assert_eq!((first_byte("4k"), first_byte("1g")), (390_721_968 / 2 * 512, 94 << 30));
}

#[test]
fn options_without_effect_are_noted() {
    let text = "[a]\nsize=1m\ncgroup=fast\nioengine=libaio\niodepth=8\ndescription=x\n";
    let notes = run(&request(text, &[Kind::Noop])).expect("a run").notes;
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].ends_with("accepted without effect on a simulation: test.fio:6 `description`"), "{}", notes[0]);
    assert!(notes[1].contains("job `a`: none of these elevators has control groups"), "{}", notes[1]);
    assert!(notes[2].contains("one at a time, iodepth=8 or not"), "{}", notes[2]);
}

#[test]
fn elevators_of_later_kernels_have_the_back_merges_of_their_block_layer() {
    // Two files by turns: what comes next is never behind what came last, so that a request is
    // found by its end or not at all.
    let jobs = "[a]\nsize=8m\nnrfiles=2\ndirect=1\nioengine=libaio\niodepth=32\n";
    let later: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| kind.info().layer != BlockLayer::V2_6_18).collect();
    let runs = run(&request(jobs, &later)).expect("runs").runs;
    assert!(!runs.is_empty());
    for run in runs {
        assert!(run.drive_requests < 2048 / 4, "{}: {} requests", run.elevator, run.drive_requests);
    }
}
