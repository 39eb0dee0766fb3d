//! The shares in the examples: each test checks a statement of a page in `examples/` with the job
//! file of the page, mostly with a shorter runtime. The pages compare with published figures.

use crate::common::{request, run};
use hoistway_core::Kind;
use hoistway_drive::Profile;
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

/// The runs of these jobs on the SSD of the measurements of FIOPS.
fn runs_on_flash(jobs: &str, elevators: &[Kind]) -> Vec<Run> {
    let profile = Profile::builtin("ssd-fiops").expect("a built-in profile");
    run(&CompareRequest { profile, ..request(jobs, elevators) }).expect("runs").runs
}

/// An example with a text replaced.
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

/// The share of a job in all bytes, in percent.
fn percent(run: &Run, job: &str) -> f64 {
    let all: u64 = run.processes.iter().map(|process| process.bytes).sum();
    bytes(run, job) * 100.0 / all as f64
}

/// The share of a group while all processes ran, in percent.
fn group_percent(run: &Run, name: &str) -> f64 {
    let group = run.groups.iter().find(|group| group.name == name);
    group.expect("a group of the job file").share * 100.0
}

fn near(what: &str, value: f64, due: f64, tolerance: f64) {
    assert!((value - due).abs() <= tolerance, "{what}: {value:.3}, due {due} +- {tolerance}");
}

#[test]
fn cfq_divides_the_disk_by_priority() {
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
fn a_reader_beside_a_writer_gets_half_of_the_disk_under_cfq_and_little_under_deadline() {
    let jobs = with(example!("reader-and-writer"), "runtime=30", "runtime=15");
    let runs = runs(&jobs, &[Kind::CfqV3, Kind::Deadline], &[]);
    let [cfq, deadline] = [&runs[0], &runs[1]].map(|run| bytes(run, "reader") / 15e6);
    assert!(cfq > 20.0 && deadline < 4.0, "MB/s: {cfq:.1} and {deadline:.1}");
    let worst = |run: &Run| processes(run, "reader")[0].latency_ns.max;
    assert!(worst(&runs[0]) < worst(&runs[1]), "{} and {} ns", worst(&runs[0]), worst(&runs[1]));
}

#[test]
fn streaming_readers_keep_the_rate_of_the_disk_under_cfq_and_lose_most_under_deadline() {
    let jobs = example!("streamed-readers");
    let comparison = run(&request(jobs, &[Kind::CfqV3, Kind::Deadline])).expect("runs");
    // The rate of all readers together from 2 s after the start of a reader to that of the next.
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

/// The time of each open of a file in ms, under cfq-v3 and under deadline.
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
    // A read waits for its 500 ms, for the running batch, and for overdue streams; or not at all.
    assert!((2000.0..3500.0).contains(&mean(&deadline)), "{deadline:?}");
    assert!(mean(&cfq) * 2.5 < mean(&deadline), "{} and {} ms", mean(&cfq), mean(&deadline));
}

#[test]
fn dependent_reads_are_faster_under_deadline_beside_streams_of_one_request() {
    // With readers through the page cache, deadline serves another reader after each request, so
    // that waits are short.
    let jobs = example!("dependent-reads");
    let (open, stream) = jobs.split_once("[stream]").expect("two jobs");
    let buffered =
        stream.replace("bs=128k", "bs=4k\ndirect=0\nfadvise_hint=0").replace("ioengine=libaio\niodepth=16\n", "");
    let [cfq, deadline] = openings_ms(&format!("{open}[stream]{buffered}"));
    assert!((200.0..450.0).contains(&mean(&deadline)), "{deadline:?}");
    assert!(mean(&cfq) > 1.5 * mean(&deadline), "{} and {} ms", mean(&cfq), mean(&deadline));
    assert!(cfq.iter().all(|ms| *ms < 5.0 * (4.0 * 110.0 + 25.0)), "{cfq:?}");
}

#[test]
fn five_dependent_reads_alone_take_five_seeks() {
    // Published: 66 ms, five times 13.3. Here 8.6 ms of seek, 4.17 of rotation, 0.2 of command and
    // data, and a think time after each.
    let (open, _) = example!("dependent-reads").split_once("[stream]").expect("two jobs");
    let jobs = with(&with(open, "numjobs=12", "numjobs=60"), "startdelay=1-30", "startdelay=1-600");
    let run = runs(&jobs, &[Kind::CfqV3], &[]).remove(0);
    let openings: Vec<f64> = processes(&run, "open").iter().map(|open| open.runtime_ns as f64 / 1e6 - 10.0).collect();
    near("ms without thought", mean(&openings), 66.0, 6.6);
}

#[test]
fn a_group_of_weight_100_gets_as_much_as_100_groups_of_weight_1() {
    let run = runs(example!("weights"), &[Kind::Bfq], &["bfq.low_latency=0"]).remove(0);
    near("heavy, percent", group_percent(&run, "heavy"), 50.0, 3.0);
    let light = (1..=100).map(|index| bytes(&run, &format!("light{index}")));
    let (least, most) = light.fold((f64::MAX, 0.0f64), |(least, most), bytes| (least.min(bytes), most.max(bytes)));
    // A turn is 6 MB, and in 40 s each has had one or two.
    assert!(least > 0.0 && most < 3.0 * least, "{least} to {most} bytes");
}

/// `fair-iops` with `depth` requests per process: a run of a second for each elevator.
fn fair_iops(depth: u32, elevators: &[Kind]) -> Vec<Run> {
    let jobs = with(example!("fair-iops"), "iodepth=8", &format!("iodepth={depth}"));
    runs_on_flash(&with(&jobs, "runtime=3", "runtime=1"), elevators)
}

fn ratio(run: &Run) -> f64 {
    bytes(run, "group2") / bytes(run, "group1")
}

#[test]
fn fiops_divides_requests_seven_to_three_above_the_depth_of_the_drive() {
    for depth in [8, 12, 16] {
        let runs = fair_iops(depth, &[Kind::Fiops, Kind::Noop]);
        near(&format!("fiops, depth {depth} x 8"), ratio(&runs[0]), 7.0 / 3.0, 0.02 * 7.0 / 3.0);
        near(&format!("noop, depth {depth} x 8"), ratio(&runs[1]), 1.0, 0.03);
    }
}

#[test]
fn no_group_is_preferred_below_the_depth_of_the_drive() {
    for run in fair_iops(3, &[Kind::Fiops, Kind::Noop]) {
        near(&run.elevator, ratio(&run), 1.0, 0.03);
    }
}

#[test]
fn noop_and_fiops_reach_the_40_000_requests_a_second_of_the_drive() {
    for depth in [8, 16] {
        for run in fair_iops(depth, &[Kind::Fiops, Kind::Noop]) {
            let iops = run.drive_requests as f64 * 1e9 / run.runtime_ns as f64;
            assert!(iops >= 0.98 * 40_000.0, "{} at depth {depth} x 8: {iops}", run.elevator);
        }
    }
}

#[test]
fn cfq_exceeds_the_ratio_of_its_priorities_on_flash() {
    for depth in [8, 16] {
        let run = fair_iops(depth, &[Kind::Cfq]).remove(0);
        assert!(ratio(&run) > 7.0 / 3.0, "depth {depth} x 8: {}", ratio(&run));
    }
}

#[test]
fn one_reader_gets_half_of_the_disk_against_a_group_of_a_hundred() {
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
fn a_hierarchy_of_groups_divides_the_disk_by_weight() {
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
