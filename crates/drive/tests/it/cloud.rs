//! The cloud volume against closed forms.

use hoistway_drive::{Access, Command, Drive, Op, Profile, closed_loop};

const SECOND_NS: u64 = 1_000_000_000;
/// An unlimited rate.
const FREE: &str = "rate_per_s = 1000000000000\ndepth = 1000000000000";

fn drive(name: &str) -> Drive {
    Drive::new(&Profile::builtin(name).expect("a built-in profile"))
}

/// A volume without jitter: 1 ms latency, depth 1,000. `operations` and `bytes` are the lines of
/// the two buckets.
fn volume(operations: &str, bytes: &str) -> Drive {
    let text = format!(
        "name = \"v\"\nwhat = \"\"\nsource = \"\"\n[cloud]\ncapacity_sectors = 1000000000\ndepth = 1000\nunit_bytes = 262144\n\
         [cloud.operations]\n{operations}\n[cloud.bytes]\n{bytes}\n[cloud.latency]\nfloor_us = 1000.0\n"
    );
    Drive::new(&Profile::from_toml(&text, "v.toml").unwrap_or_else(|error| panic!("{error}")))
}

fn read(sector: u64, sectors: u32) -> Command {
    Access { op: Op::Read, sector, sectors }.into()
}

/// Reads of 4 KiB that are not adjacent.
fn random_reads(count: u64) -> impl Iterator<Item = Command> {
    (0..count).map(|number| read((number * 7919 % 1_000_000) * 16, 8))
}

/// Completion times, by submission, of commands that are all submitted at `now_ns`.
fn ends(drive: &mut Drive, now_ns: u64, commands: &[Command]) -> Vec<u64> {
    for (tag, command) in (0..).zip(commands) {
        drive.submit(now_ns, tag, command).expect("within the volume");
    }
    let mut ends = vec![0; commands.len()];
    while let Some(at_ns) = drive.next_event_ns() {
        let completion = drive.poll(at_ns).expect("due");
        ends[completion.tag as usize] = completion.service.finish_ns;
    }
    ends
}

#[test]
fn hundred_gib_of_gp2_burst_for_2000_seconds_and_then_run_at_their_base() {
    // 5.4e6 / (3000 - 300) = 2000 s at 3000 a second are 6,000,000 operations; 30,000 more take 100
    // s at 300.
    let mut drive = drive("cloud-gp2");
    let burst = 6_000_000u64;
    let mut over = 0;
    let mut burst_end_ns = 0;
    let commands = random_reads(burst + 30_000);
    let end_ns = closed_loop(&mut drive, 0, 64, commands, |_, completion| {
        over += 1;
        if over == burst {
            burst_end_ns = completion.service.finish_ns;
        }
    })
    .expect("within the volume");
    let burst_s = burst_end_ns as f64 / SECOND_NS as f64;
    let base_s = (end_ns - burst_end_ns) as f64 / SECOND_NS as f64;
    assert!((burst_s / 2000.0 - 1.0).abs() < 1e-3, "bursts for {burst_s} s");
    assert!((base_s / 100.0 - 1.0).abs() < 0.01, "then 30,000 operations in {base_s} s");
}

#[test]
fn gp3_is_limited_by_operations_or_by_bytes() {
    let rate = |sectors: u32, count: u64| {
        let commands = (0..count).map(|number| read(number * 7919 % 100_000 * 1024, sectors));
        let end_ns = closed_loop(&mut drive("cloud-gp3"), 0, 64, commands, |_, _| {}).expect("within the volume");
        count as f64 * SECOND_NS as f64 / end_ns as f64
    };
    let iops = rate(8, 30_000);
    assert!((iops / 3000.0 - 1.0).abs() < 0.002, "{iops} operations a second");
    // 125 MiB/s are 500 reads of 256 KiB.
    let large = rate(512, 5000);
    assert!((large / 500.0 - 1.0).abs() < 0.002, "{large} reads of 256 KiB a second");
}

#[test]
fn operations_larger_than_the_unit_are_charged_several_times() {
    let mut drive = volume("rate_per_s = 10", FREE);
    // One every 0.1 s: the bucket holds one. 1 MiB costs four tokens and waits for three more. The
    // last waits for one.
    let ends = ends(&mut drive, 0, &[read(0, 8), read(1_000_000, 2048), read(2_000_000, 8)]);
    assert_eq!(ends, [1_000_000, 401_000_000, 501_000_000]);
}

#[test]
fn adjacent_waiting_operations_are_merged_before_they_are_charged() {
    let mut drive = volume("rate_per_s = 10", FREE);
    // The first takes the only token. Eight of 32 KiB are one operation of 256 KiB, the ninth
    // begins another.
    let mut commands = vec![read(1_000_000, 8)];
    commands.extend((0..9).map(|number| read(number * 64, 64)));
    let found = ends(&mut drive, 0, &commands);
    assert_eq!(found[0], 1_000_000);
    assert!(found[1..9].iter().all(|end| *end == 101_000_000), "{found:?}");
    assert_eq!(found[9], 201_000_000);
    // An adjacent command after the admission of the previous one is charged.
    let later = 10 * SECOND_NS;
    assert_eq!(ends(&mut drive, later, &[read(0, 8)]), [later + 1_000_000]);
    assert_eq!(ends(&mut drive, later + 5_000_000, &[read(8, 8)]), [later + 101_000_000]);
    // A write is not merged with a read.
    let write = Access { op: Op::Write, sector: 16, sectors: 8 }.into();
    let last = 20 * SECOND_NS;
    let found = ends(&mut drive, last, &[read(0, 8), read(8, 8), write]);
    assert_eq!(found, [last + 1_000_000, last + 101_000_000, last + 201_000_000]);
}

#[test]
fn credits_come_back_while_the_volume_is_idle_up_to_its_depth() {
    let mut drive = volume("rate_per_s = 100\ndepth = 1000\nstart = 0", FREE);
    let at_once = |found: &[u64], now_ns: u64| found.iter().filter(|end| **end == now_ns + 1_000_000).count();
    // After 2 s there are 200 tokens; all are spent, and more.
    let reads: Vec<Command> = random_reads(500).collect();
    assert_eq!(at_once(&ends(&mut drive, 2 * SECOND_NS, &reads), 2 * SECOND_NS), 200);
    // An hour later there are 1,000 tokens and not 360,000.
    let hour_ns = 3600 * SECOND_NS;
    let reads: Vec<Command> = random_reads(1000).collect();
    assert_eq!(at_once(&ends(&mut drive, hour_ns, &reads), hour_ns), 1000);
    assert_eq!(at_once(&ends(&mut drive, hour_ns + 1_001_000, &reads), hour_ns + 1_001_000), 0);
}

#[test]
fn flush_and_discard_cost_a_latency_and_no_credit() {
    let mut drive = volume("rate_per_s = 1\nstart = 1", FREE);
    let found = ends(&mut drive, 0, &[Command::Flush, Command::Discard { sector: 0, sectors: 8 }, read(0, 8)]);
    assert_eq!(found, [1_000_000, 1_000_000, 1_000_000]);
}

#[test]
fn phases_separate_the_wait_for_credit_from_the_latency() {
    let mut drive = volume("rate_per_s = 10\nstart = 0", FREE);
    let phases = drive.serve(0, read(0, 8)).expect("within the volume").service.phases;
    assert_eq!((phases.wait_ns, phases.overhead_ns, phases.total_ns()), (100_000_000, 1_000_000, 101_000_000));
}

#[test]
fn commands_overtake_each_other_deterministically() {
    let run = || {
        let mut order = Vec::new();
        closed_loop(&mut drive("cloud-gp2"), 0, 32, random_reads(1000), |_, completion| order.push(completion.tag))
            .expect("within the volume");
        order
    };
    let order = run();
    assert!(!order.is_sorted(), "latencies differ");
    assert_eq!(order, run());
}

#[test]
fn impossible_volumes_are_refused_with_the_line() {
    let good = include_str!("../../profiles/cloud-gp2.toml");
    for (from, to, expected) in [
        ("depth = 64", "depth = 0", "v.toml:21:9: `cloud.depth` is 0: 1 to 65536"),
        ("unit_bytes = 262144", "unit_bytes = 1000", "v.toml:22:14: `cloud.unit_bytes` is 1000: a multiple of 512"),
        ("rate_per_s = 300", "rate_per_s = 0", "v.toml:25:14: `cloud.operations.rate_per_s` is 0: 1 to 1099511627776"),
        ("start = 5400000", "start = 6000000", "v.toml:27:9: `cloud.operations.start` is 6000000: 0 to 5400000"),
        (
            "ceiling_per_s = 3000",
            "ceiling_per_s = 200",
            "v.toml:28:17: `cloud.operations.ceiling_per_s` is 200: the ceiling is not below the rate: 300 or more",
        ),
        ("floor_us = 400.0", "floor_us = -1.0", "v.toml:34:12: `cloud.latency.floor_us` is -1: 0 to 1000000"),
        ("sigma = 0.5", "sigma = nan", "v.toml:36:16: `cloud.latency.jitter_sigma` is NaN: 0 to 3"),
    ] {
        assert!(good.contains(from), "{from} is in the profile");
        let error = Profile::from_toml(&good.replacen(from, to, 1), "v.toml").expect_err("refused").to_string();
        assert_eq!(error, expected);
    }
}
