//! Job files that fio and hoistway once understood differently. The figures are those of fio 3.33,
//! on files that exist.

use hoistway_core::Kind;
use hoistway_fio::JobFile;
use hoistway_sim::{CompareRequest, PlannedRequests, Run};
use hoistway_workload::Region;

use crate::common::{request, run};

fn jobs(text: &str) -> JobFile {
    let env = |name: &str| (name == "DUT").then(|| "/dev/sda".to_owned());
    hoistway_fio::parse(text, "case.fio", &env, &|_, _| unreachable!("nothing is included")).expect("a valid job file")
}

/// A run on a drive of negligible cost.
fn null_run(text: &str) -> Run {
    let profile = hoistway_drive::Profile::builtin("null").expect("a built-in profile");
    let request = CompareRequest { jobs: jobs(text), profile, ..request("[a]\nsize=1m\n", &[Kind::Noop]) };
    run(&request).expect("a run").runs.remove(0)
}

fn ios(run: &Run) -> (u64, u64) {
    (run.processes[0].read.ios, run.processes[0].write.ios)
}

/// The part of its file that each process works on, and its number of requests.
fn planned(text: &str) -> Vec<(Region, usize)> {
    let plan = PlannedRequests::new(&jobs(text), 1 << 40, 1).expect("a plan");
    let of = |mut process: hoistway_sim::PlannedProcess| {
        let requests = std::iter::from_fn(|| process.generator.next()).count();
        (process.files[0].1, requests)
    };
    plan.processes.into_iter().map(of).collect()
}

/// fio makes 300 reads and 300 writes in 3 s, although 90 % are to be reads.
#[test]
fn a_cap_on_both_directions_decides_the_mix() {
    let (reads, writes) = ios(&null_run(include_str!("../../testdata/fio-cases/k1-randrw-rate.fio")));
    assert!((299..=301).contains(&reads) && (299..=301).contains(&writes), "{reads} {writes}");
}

/// fio makes 60 writes in 3 s, 10 in half a second, and as many reads as it can: 3,408,399 in 3 s
/// on its null engine.
#[test]
fn a_capped_direction_does_not_hold_back_the_other() {
    let text = "[m]\nrw=randrw\nioengine=null\nrate_iops=,20\nsize=4m\nruntime=500ms\ntime_based\n";
    let (reads, writes) = ios(&null_run(text));
    assert!((9..=11).contains(&writes) && reads > 10_000, "{reads} {writes}");
}

/// fio makes 256 requests from offset 32 MiB.
#[test]
fn a_size_in_percent_is_of_filesize() {
    let case = planned(include_str!("../../testdata/fio-cases/k2-filesize-percent.fio"));
    assert_eq!(case, [(Region { start: 32 << 20, len: 16 << 20 }, 256)]);
}

/// fio makes 4, 4, 4 and 8 requests, the last job up to the end of the file.
#[test]
fn quarters_of_a_file_are_apart_and_end_with_it() {
    let region = |start_kib: u64, len_kib: u64| Region { start: start_kib << 10, len: len_kib << 10 };
    let case = planned(include_str!("../../testdata/fio-cases/f4-size-offset-percent.fio"));
    assert_eq!(case, [(region(0, 16), 4), (region(16, 16), 4), (region(32, 16), 4), (region(32, 32), 8)]);
}

/// Zones of 1 MiB: 64 of them, each clone one zone farther.
#[test]
fn numbers_of_zones_are_sizes() {
    let case = planned(include_str!("../../testdata/fio-cases/f8-zones-offset.fio"));
    let expected = (0..4u64).map(|clone| (Region { start: clone << 20, len: 64 << 20 }, 50)).collect::<Vec<_>>();
    assert_eq!(case, expected);
}

/// fio took 1506 ms for 100 requests with pauses of 5 ms, and 2013 ms with pauses of 20 ms.
#[test]
fn what_a_pause_made_a_job_miss_is_not_caught_up() {
    let time = |pause_us: u64| {
        let text = format!(
            "[m]\nioengine=null\nsize=4m\nrate_iops=100\nrate_ignore_thinktime=1\nthinktime={pause_us}\nnumber_ios=100\n"
        );
        null_run(&text).processes[0].runtime_ns as f64 / 1e6
    };
    let (short, long) = (time(5_000), time(20_000));
    assert!((short - 1_500.0).abs() < 45.0 && (long - 2_000.0).abs() < 60.0, "{short} {long}");
}
