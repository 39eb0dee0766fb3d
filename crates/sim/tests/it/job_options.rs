//! Options of job files that end, balance, batch and order requests.

use hoistway_core::Kind;
use hoistway_sim::Run;

use crate::common::{noop, request, run, seconds};

fn ios(run: &Run, job: &str) -> u64 {
    run.processes.iter().filter(|process| process.name == job).map(|process| process.read.ios + process.write.ios).sum()
}

#[test]
fn flow_divides_requests_by_weight_as_in_fio() {
    for sleep in ["", "flow_sleep=100"] {
        let jobs = format!(
            "[global]\nsize=1g\ndirect=1\nruntime=2\ntime_based\n{sleep}\n\
             [a]\nrw=randread\nflow=8\n[b]\nrw=write\nflow=1\n[alone]\nrw=read\noffset=2g\nflow_id=1\nflow=1\n"
        );
        let run = noop(&jobs);
        let ratio = ios(&run, "a") as f64 / ios(&run, "b") as f64;
        assert!((7.5..8.5).contains(&ratio), "{ratio} with {sleep}");
        assert!(ios(&run, "alone") > 20, "a job alone in its flow never waits: {}", ios(&run, "alone"));
    }
}

/// The pages of a removed file are never written; those of other files are after 30 s.
#[test]
fn dirty_pages_of_removed_files_are_dropped() {
    let drive_bytes = |options: &str| {
        let jobs = format!(
            "[tree]\nrw=write\nnrfiles=4\nopenfiles=2\nfilesize=1m\nloops=5\n{options}\n\
             [other]\nsize=1m\nrw=read\ndirect=1\ntime_based\nruntime=60\nrate_iops=2\n"
        );
        let run = noop(&jobs);
        assert_eq!(ios(&run, "tree"), 5 * 4 * 256);
        run.drive_bytes
    };
    // The other job reads 480 KiB.
    assert!(drive_bytes("") >= 4 << 20);
    assert!(drive_bytes("unlink_each_loop=1") < 1 << 20);
    assert!(drive_bytes("unlink=1") < 1 << 20);
    assert!(drive_bytes("unlink=1\nend_fsync=1") >= 4 << 20, "the files are synced before they are removed");
}

/// fio 3.33 ended the jobs of the same group, all that ran, or all, with these values.
#[test]
fn exitall_ends_the_jobs_that_exit_what_names() {
    let outcome = |what: &str| {
        let jobs = format!(
            "[global]\nsize=1m\n[first]\nnumber_ios=4\nthinktime=50ms\nexitall\n{what}\n\
             [same]\ntime_based\nruntime=3\n[other]\nnew_group\ntime_based\nruntime=2\n[behind]\nstonewall\nnumber_ios=3\n"
        );
        let run = noop(&jobs);
        let time = |name: &str| {
            let process = run.processes.iter().find(|process| process.name == name).expect("the job");
            (process.runtime_ns as f64 / 1e9).round() as u64
        };
        (time("same"), time("other"), ios(&run, "behind"))
    };
    assert_eq!(outcome(""), (0, 2, 3));
    assert_eq!(outcome("exit_what=group"), (0, 2, 3));
    assert_eq!(outcome("exit_what=stonewall"), (0, 0, 3));
    assert_eq!(outcome("exit_what=all"), (0, 0, 0));
}

#[test]
fn a_job_below_rate_min_ends_after_the_first_cycle() {
    let jobs = "[slow]\nsize=1m\nthinktime=20ms\nrate_min=1m\ntime_based\nruntime=9\n[other]\nsize=1m\ntime_based\nruntime=5\n";
    let comparison = run(&request(jobs, &[Kind::Noop])).expect("a run");
    let slow = comparison.runs[0].processes[0].runtime_ns as f64 / 1e9;
    // fio 3.33 ended it after 3.0 s.
    assert!((2.9..3.2).contains(&slow), "{slow}");
    assert!(comparison.runs[0].processes[1].runtime_ns > 4_900_000_000);
    assert!(comparison.notes.iter().any(|note| note.contains("slower than rate_min")), "{:?}", comparison.notes);
}

#[test]
fn a_steady_job_ends_early() {
    let jobs = "[a]\nsize=64m\nrw=randread\ndirect=1\ntime_based\nruntime=60\nss=iops:20%\nss_dur=4\nss_ramp=2\n";
    let comparison = run(&request(jobs, &[Kind::Noop])).expect("a run");
    let time = seconds(&comparison.runs[0]);
    assert!((6.0..8.0).contains(&time), "{time}");
    assert!(comparison.notes.iter().any(|note| note.contains("its rate is steady")), "{:?}", comparison.notes);
    let never = noop(&jobs.replace("iops:20%", "iops:0.001%").replace("runtime=60", "runtime=12"));
    assert!(seconds(&never) > 11.9);
}

#[test]
fn the_search_finds_a_depth_within_the_latency_and_ends() {
    let jobs = |target: &str| {
        format!(
            "[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\n\
             latency_target={target}\nlatency_window=2s\nlatency_percentile=90\n"
        )
    };
    let found = |target: &str| {
        let comparison = run(&request(&jobs(target), &[Kind::Noop])).expect("a run");
        let note = comparison.notes.iter().find_map(|note| note.split("a queue depth of ").nth(1)).map(str::to_owned);
        let depth: Option<u32> = note.and_then(|note| note.split(' ').next()?.parse().ok());
        depth.unwrap_or_else(|| panic!("{target}: {:?}", comparison.notes))
    };
    let (strict, loose) = (found("30ms"), found("200ms"));
    assert!(strict < loose && loose < 64, "{strict} {loose}");
    assert_eq!(found("60s"), 64);
}

#[test]
fn a_latency_above_max_latency_ends_the_job() {
    let jobs = "[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nmax_latency=100\ntime_based\nruntime=5\n";
    let comparison = run(&request(jobs, &[Kind::Noop])).expect("a run");
    assert_eq!(ios(&comparison.runs[0], "a"), 1);
    assert!(comparison.notes.iter().any(|note| note.contains("longer than max_latency")));
}

#[test]
fn trims_are_requests_of_their_own() {
    let run = noop("[a]\nsize=1m\nrw=trimwrite\ndirect=1\nbs=64k\n");
    assert_eq!((run.processes[0].bytes, run.processes[0].write.bytes), (2 << 20, 1 << 20));
    let alone = noop("[a]\nsize=1m\nrw=randtrim\nbs=64k\nioengine=libaio\niodepth=8\n");
    assert_eq!((alone.processes[0].bytes, alone.processes[0].write.bytes), (1 << 20, 0));
    assert!(alone.drive_requests > 0 && alone.drive_bytes == 0, "discards move no data");
}

#[test]
fn written_blocks_are_verified_from_the_disk() {
    for direct in [0, 1] {
        let run = noop(&format!("[a]\nsize=4m\nrw=randwrite\ndirect={direct}\nverify=crc32c\n"));
        assert_eq!((run.processes[0].read.bytes, run.processes[0].write.bytes), (4 << 20, 4 << 20));
        assert_eq!(run.drive_bytes, 8 << 20, "direct={direct}");
    }
    assert_eq!(noop("[a]\nsize=4m\nrw=write\ndirect=1\nverify=crc32c\ndo_verify=0\n").processes[0].read.bytes, 0);
    assert_eq!(noop("[a]\nsize=4m\nrw=write\ndirect=1\nverify=crc32c\nverify_only\n").processes[0].write.bytes, 0);
}

#[test]
fn batches_are_submitted_and_drained_together() {
    let base = "[a]\nsize=4m\nrw=randread\ndirect=1\nioengine=libaio\niodepth=16\n";
    let report = |options: &str| {
        let request = request(&format!("{base}{options}\n"), &[Kind::Noop]);
        let report = run(&request).expect("a run").fio_report("fio-3.33", 0, &[]);
        serde_json::to_value(&report).expect("JSON")["jobs"][0].clone()
    };
    let share = |report: &serde_json::Value, table: &str, key: &str| report[table][key].as_f64().unwrap_or(-1.0);
    let single = report("");
    assert!(share(&single, "iodepth_submit", "4") > 99.0, "{single}");
    let batched = report("iodepth_batch=16\niodepth_batch_complete_min=16");
    assert!(share(&batched, "iodepth_submit", "16") > 99.0, "{}", batched["iodepth_submit"]);
    assert!(share(&batched, "iodepth_complete", "16") > 99.0, "{}", batched["iodepth_complete"]);
    // A queue that drains to 4 has 16 in flight less often than a full one.
    let drained = report("iodepth_low=4");
    assert!(share(&drained, "iodepth_level", "16") < share(&single, "iodepth_level", "16") - 10.0);
}

#[test]
fn offloaded_requests_of_a_synchronous_engine_are_in_flight_together() {
    let jobs = |options: &str| format!("[a]\nsize=512m\nio_size=4m\nrw=randread\ndirect=1\niodepth=16\n{options}\n");
    // Only a scheduler that sees several requests can sort them.
    let deadline = |options: &str| run(&request(&jobs(options), &[Kind::Deadline])).expect("a run").runs.remove(0);
    let (inline, offload) = (deadline(""), deadline("io_submit_mode=offload"));
    assert!(seconds(&offload) < 0.98 * seconds(&inline), "{} {}", seconds(&offload), seconds(&inline));
    // Each thread is a process of its own to a scheduler with queues per process.
    let comparison = run(&request(&jobs("io_submit_mode=offload"), &[Kind::Cfq, Kind::Bfq])).expect("runs");
    assert!(comparison.runs.iter().all(|run| ios(run, "a") == 1024));
}

#[test]
fn mq_deadline_prefers_requests_of_a_higher_class() {
    let jobs = |options: &str| {
        format!(
            "[a]\nfilename=/dev/sda\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\nruntime=20\ntime_based\n{options}\n"
        )
    };
    let tail = |kind, options: &str| {
        let run = run(&request(&jobs(options), &[kind])).expect("a run").runs.remove(0);
        run.latency_ns.p50
    };
    let some = "prioclass=3\ncmdprio_percentage=20\ncmdprio_class=1";
    assert_ne!(tail(Kind::MqDeadline, some), tail(Kind::MqDeadline, "prioclass=3"));
    // A scheduler that looks at processes sees no difference.
    assert_eq!(tail(Kind::Bfq, some), tail(Kind::Bfq, "prioclass=3"));
}

#[test]
fn clones_share_the_zones_of_a_zoned_device() {
    let jobs = "[a]\nfilename=/dev/sda\nsize=64m\nrw=randwrite\nbs=64k\ndirect=1\nnumjobs=4\nio_size=16m\n\
                zonemode=zbd\nzonesize=8m\nmax_open_zones=2\n";
    let run = noop(jobs);
    assert_eq!(run.drive_bytes, 64 << 20);
    let random = noop(&jobs.replace("zonemode=zbd\nzonesize=8m\nmax_open_zones=2\n", ""));
    assert!(run.drive_ns.seek < random.drive_ns.seek, "{} {}", run.drive_ns.seek, random.drive_ns.seek);
}

#[test]
fn pauses_go_by_the_time_of_requests_and_are_not_caught_up() {
    let base = "[a]\nsize=1g\ndirect=1\nruntime=4\ntime_based\n";
    let run = noop(&format!("{base}thinktime=500ms\nthinktime_iotime=500ms\n"));
    let busy = run.drive_ns.idle as f64 / run.runtime_ns as f64;
    assert!((0.4..0.6).contains(&busy), "{busy}");
    let capped = |option: &str| {
        ios(&noop(&format!("{base}rate_iops=100\nthinktime=100ms\nthinktime_blocks=10\n{option}\n")), "a")
    };
    // 10 requests in 100 ms, then 100 ms of pause: caught up or not.
    let (caught_up, left) = (capped(""), capped("rate_ignore_thinktime=1"));
    assert!(caught_up > 380 && (180..230).contains(&left), "{caught_up} {left}");
}

#[test]
fn pre_read_files_are_in_memory() {
    let run = noop("[a]\nsize=16m\nrw=randread\npre_read=1\n");
    assert_eq!((run.drive_bytes, run.processes[0].bytes), (0, 16 << 20));
}

#[test]
fn a_job_without_data_is_left_out_and_its_stonewall_stays() {
    let jobs = "[a]\nsize=1m\n[burn]\nioengine=cpuio\nstonewall\ntime_based\nruntime=5\n[b]\nsize=1m\n";
    let comparison = run(&request(jobs, &[Kind::Noop])).expect("a run");
    let starts: Vec<u64> = comparison.runs[0].processes.iter().map(|process| process.start_ns).collect();
    assert!(starts.len() == 2 && starts[1] > 0, "{starts:?}");
    assert!(comparison.notes[0].contains("job `burn` is left out"), "{:?}", comparison.notes);
}
