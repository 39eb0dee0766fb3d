//! The shares that the examples show: each test is a claim of a page in `examples/`, made with the
//! page's own job file, mostly with a shorter runtime. Published figures and how far the simulation
//! is from them are in the pages.

use std::sync::atomic::AtomicBool;

use crate::common::{request, run};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::published::{Verdict, reproduce, select};
use hoistway_sim::{CompareRequest, ProcessRun, Run, Setting};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../../examples/", $name, ".fio"))
    };
}

/// The runs of these jobs, one for each elevator, with these settings.
fn runs(jobs: &str, elevators: &[Kind], settings: &[&str]) -> Vec<Run> {
    let settings = settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    run(&CompareRequest { settings, ..request(jobs, elevators) }).expect("runs").runs
}

/// The same on the SSD on which FIOPS was measured.
fn runs_on_flash(jobs: &str, elevators: &[Kind]) -> Vec<Run> {
    let profile = Profile::builtin("ssd-fiops").expect("a built-in profile");
    run(&CompareRequest { profile, ..request(jobs, elevators) }).expect("runs").runs
}

/// An example with another value somewhere.
fn with(jobs: &str, old: &str, new: &str) -> String {
    assert!(jobs.contains(old), "the example has no {old}");
    jobs.replace(old, new)
}

fn processes<'a>(run: &'a Run, job: &str) -> Vec<&'a ProcessRun> {
    let found: Vec<&ProcessRun> = run.processes.iter().filter(|process| process.name == job).collect();
    assert!(!found.is_empty(), "no job {job}");
    found
}

fn bytes(run: &Run, job: &str) -> f64 {
    processes(run, job).iter().map(|process| process.bytes as f64).sum()
}

/// A job's part of all bytes, in percent.
fn percent(run: &Run, job: &str) -> f64 {
    let all: u64 = run.processes.iter().map(|process| process.bytes).sum();
    bytes(run, job) * 100.0 / all as f64
}

/// A group's part of what was moved while all ran, in percent.
fn group_percent(run: &Run, name: &str) -> f64 {
    let group = run.groups.iter().find(|group| group.name == name);
    group.expect("a group of the job file").share * 100.0
}

fn near(what: &str, value: f64, due: f64, tolerance: f64) {
    assert!((value - due).abs() <= tolerance, "{what}: {value:.3}, due {due} +- {tolerance}");
}

#[test]
fn cfq_divides_the_disk_by_priority_as_its_lists_do() {
    // A round has 8 - p visits of 180 - 20 p ms: weights of 1440, 1120, 840, 600, 400, 240, 120,
    // 40, in sum 4800.
    let run = runs(example!("priorities"), &[Kind::CfqV3], &[]).remove(0);
    let shares: Vec<f64> = (0..8).map(|priority| percent(&run, &format!("p{priority}"))).collect();
    for (priority, share) in (0u32..).zip(&shares) {
        let weight = f64::from((180 - 20 * priority) * (8 - priority));
        near(&format!("share of priority {priority}, percent"), *share, weight * 100.0 / 4800.0, 2.0);
    }
    assert!(shares.is_sorted_by(|higher, lower| higher > lower), "{shares:?}");
}

#[test]
fn a_reader_beside_a_writer_has_half_of_the_disk_under_cfq_and_next_to_nothing_under_deadline() {
    let jobs = with(example!("reader-and-writer"), "runtime=30", "runtime=15");
    let runs = runs(&jobs, &[Kind::CfqV3, Kind::Deadline], &[]);
    let [cfq, deadline] = [&runs[0], &runs[1]].map(|run| bytes(run, "reader") / 15e6);
    assert!(cfq > 20.0 && deadline < 4.0, "MB/s: {cfq:.1} and {deadline:.1}");
    let worst = |run: &Run| processes(run, "reader")[0].latency_ns.max;
    assert!(worst(&runs[0]) < worst(&runs[1]), "{} and {} ns", worst(&runs[0]), worst(&runs[1]));
}

#[test]
fn streaming_readers_keep_the_disk_s_rate_under_cfq_and_lose_most_of_it_under_deadline() {
    let jobs = example!("streamed-readers");
    let comparison = run(&request(jobs, &[Kind::CfqV3, Kind::Deadline])).expect("runs");
    // The rate of all readers together from 2 s after a reader has come until the next one does.
    let rate = |run: &Run, readers: u64| {
        let from_ns = (readers - 1) * 10_000_000_000 + 2_000_000_000;
        let until_ns = readers * 10_000_000_000;
        let of_process = |process: &ProcessRun| {
            let windows = process.windows.iter().zip(0u64..).filter(|(_, index)| {
                let begin_ns = process.start_ns + index * process.window_ns;
                (from_ns..until_ns).contains(&begin_ns)
            });
            windows.map(|(window, _)| window.bytes).sum::<u64>()
        };
        run.processes.iter().map(of_process).sum::<u64>() as f64 / 8.0 / comparison.single_stream_bytes_per_s
    };
    for readers in 1..=4 {
        let [cfq, deadline] = [0, 1].map(|index| rate(&comparison.runs[index], readers));
        assert!(cfq > 0.9, "{readers} readers under cfq-v3: {cfq:.3} of one stream");
        match readers {
            1 => assert!(deadline > 0.9, "{deadline:.3} of one stream"),
            _ => assert!(deadline < 0.45, "{readers} readers under deadline: {deadline:.3} of one stream"),
        }
    }
}

/// MergeKind long each opening of a file took, in ms, under cfq-v3 and under deadline.
fn openings_ms(jobs: &str) -> [Vec<f64>; 2] {
    let runs = runs(jobs, &[Kind::CfqV3, Kind::Deadline], &[]);
    [&runs[0], &runs[1]].map(|run| {
        let openings = processes(run, "open");
        assert!(openings.iter().all(|open| open.read.ios == 5), "five reads each");
        openings.iter().map(|open| open.runtime_ns as f64 / 1e6).collect()
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn five_dependent_reads_take_rounds_under_cfq_and_five_expiries_under_deadline() {
    let [cfq, deadline] = openings_ms(example!("dependent-reads"));
    // Four slices of 100 ms, and what the last request of each takes over it, before each read, at
    // most.
    assert!(cfq.iter().all(|ms| *ms < 5.0 * (4.0 * 110.0 + 25.0)), "{cfq:?}");
    // A read waits for its 500 ms, for the batch that runs then, and for streams that are overdue
    // as well; or not at all.
    assert!((2000.0..3500.0).contains(&mean(&deadline)), "{deadline:?}");
    assert!(mean(&cfq) * 2.5 < mean(&deadline), "{} and {} ms", mean(&cfq), mean(&deadline));
}

#[test]
fn dependent_reads_are_sooner_under_deadline_where_streams_have_one_request_at_a_time() {
    // Readers through the page cache: deadline turns from one to the next with each request, and
    // comes by soon.
    let jobs = example!("dependent-reads");
    let (open, stream) = jobs.split_once("[stream]").expect("two jobs");
    let buffered = stream.replace("bs=128k", "bs=4k\ndirect=0").replace("ioengine=libaio\niodepth=16\n", "");
    let [cfq, deadline] = openings_ms(&format!("{open}[stream]{buffered}"));
    assert!((200.0..450.0).contains(&mean(&deadline)), "{deadline:?}");
    assert!(mean(&cfq) > 1.5 * mean(&deadline), "{} and {} ms", mean(&cfq), mean(&deadline));
    assert!(cfq.iter().all(|ms| *ms < 5.0 * (4.0 * 110.0 + 25.0)), "{cfq:?}");
}

#[test]
fn five_dependent_reads_alone_take_five_seeks() {
    // Published: 66 ms, five times 13.3. Here 8.6 ms of seek, 4.17 of rotation, 0.2 of command and
    // data, and thought after each.
    let (open, _) = example!("dependent-reads").split_once("[stream]").expect("two jobs");
    let jobs = with(&with(open, "numjobs=12", "numjobs=60"), "startdelay=1-30", "startdelay=1-600");
    let run = runs(&jobs, &[Kind::CfqV3], &[]).remove(0);
    let openings: Vec<f64> = processes(&run, "open").iter().map(|open| open.runtime_ns as f64 / 1e6 - 10.0).collect();
    near("ms without thought", mean(&openings), 66.0, 6.6);
}

#[test]
fn one_of_weight_a_hundred_has_as_much_as_a_hundred_of_weight_one() {
    let run = runs(example!("weights"), &[Kind::Bfq], &["bfq.low_latency=0"]).remove(0);
    near("heavy, percent", group_percent(&run, "heavy"), 50.0, 3.0);
    let light = (1..=100).map(|index| bytes(&run, &format!("light{index}")));
    let (least, most) = light.fold((f64::MAX, 0.0f64), |(least, most), bytes| (least.min(bytes), most.max(bytes)));
    // A turn is 6 MB, and in 40 s each has had one or two.
    assert!(least > 0.0 && most < 3.0 * least, "{least} to {most} bytes");
}

/// `fair-iops` with so many requests a process: a run of a second for each elevator.
fn fair_iops(depth: u32, elevators: &[Kind]) -> Vec<Run> {
    let jobs = with(example!("fair-iops"), "iodepth=8", &format!("iodepth={depth}"));
    runs_on_flash(&with(&jobs, "runtime=3", "runtime=1"), elevators)
}

fn ratio(run: &Run) -> f64 {
    bytes(run, "group2") / bytes(run, "group1")
}

#[test]
fn fiops_divides_requests_seven_to_three_when_more_are_queued_than_the_drive_takes() {
    for depth in [8, 12, 16] {
        let runs = fair_iops(depth, &[Kind::Fiops, Kind::Noop]);
        near(&format!("fiops, depth {depth} x 8"), ratio(&runs[0]), 7.0 / 3.0, 0.02 * 7.0 / 3.0);
        near(&format!("noop, depth {depth} x 8"), ratio(&runs[1]), 1.0, 0.03);
    }
}

#[test]
fn nobody_is_preferred_while_the_drive_takes_all_that_is_asked() {
    for run in fair_iops(3, &[Kind::Fiops, Kind::Noop]) {
        near(&run.elevator, ratio(&run), 1.0, 0.03);
    }
}

#[test]
fn noop_and_fiops_reach_the_drive_s_40_000_requests_a_second() {
    for depth in [8, 16] {
        for run in fair_iops(depth, &[Kind::Fiops, Kind::Noop]) {
            let iops = run.drive_requests as f64 * 1e9 / run.runtime_ns as f64;
            assert!(iops >= 0.98 * 40_000.0, "{} at depth {depth} x 8: {iops}", run.elevator);
        }
    }
}

#[test]
fn cfq_prefers_more_than_its_priorities_say_on_flash() {
    for depth in [8, 16] {
        let run = fair_iops(depth, &[Kind::Cfq]).remove(0);
        assert!(ratio(&run) > 7.0 / 3.0, "depth {depth} x 8: {}", ratio(&run));
    }
}

#[test]
fn reserved_readers_are_kept_apart_and_leave_what_they_do_not_use() {
    let names = ["S3-06", "S3-07", "S3-08", "S3-09"].map(str::to_owned);
    let rows = select(&names).expect("rows of published results");
    for outcome in reproduce(&rows, &|_| {}, &AtomicBool::new(false)).expect("runs") {
        assert_eq!(outcome.verdict, Verdict::Reproduced, "{}: {}", outcome.row.id, outcome.why());
    }
}

#[test]
fn one_reader_has_half_of_the_disk_against_a_group_of_a_hundred() {
    let jobs = example!("one-against-a-hundred");
    let runs = runs(jobs, &[Kind::Bfq, Kind::Cfq, Kind::CfqV3], &["bfq.low_latency=0"]);
    let shares: Vec<f64> = runs.iter().map(|run| group_percent(run, "one")).collect();
    near("bfq, percent", shares[0], 50.0, 3.0);
    // CFQ divides time, and does not count the seek at the beginning of a turn; a hundred seek more
    // often.
    near("cfq, percent", shares[1], 45.0, 3.0);
    near("cfq-v3, which has no groups, percent", shares[2], 1.0, 1.0);
}

#[test]
fn a_hierarchy_of_groups_divides_the_disk_as_its_weights_say() {
    for run in runs(example!("hierarchy"), &[Kind::Bfq, Kind::Cfq], &["bfq.low_latency=0"]) {
        let due = [
            ("services", 200.0 / 3.0),
            ("services/database", 400.0 / 9.0),
            ("services/web", 200.0 / 9.0),
            ("users", 100.0 / 3.0),
            ("users/alice", 100.0 / 6.0),
            ("users/bob", 100.0 / 6.0),
        ];
        for (group, due) in due {
            near(&format!("{}: {group}, percent", run.elevator), group_percent(&run, group), due, 2.0);
        }
    }
}
