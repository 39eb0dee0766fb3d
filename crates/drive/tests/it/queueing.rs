//! Command queueing: the choice of the next command, its gain, and its invariants.

use hoistway_drive::{Access, Command, Completion, Drive, Op, Profile, closed_loop};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const MS: u64 = 1_000_000;

/// A built-in drive without a queue, with the table `queue` added.
fn queued(name: &str, queue: &str) -> Profile {
    let path = format!("{}/profiles/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("read");
    Profile::from_toml(&format!("{text}\n{queue}"), name).unwrap_or_else(|error| panic!("{error}"))
}

fn satf(more: &str) -> Profile {
    queued("sata-7200-2006", &format!("[queue]\ndepth = 32\npolicy = \"satf\"\n{more}"))
}

/// The 8 TB drive with another queue, without a limit of the waiting time.
fn cmr_8tb(more: &str) -> Profile {
    let queue = format!("[queue]\ndepth = 32\npolicy = \"satf\"\n{more}");
    let text = format!("name = \"n\"\nwhat = \"\"\nsource = \"\"\nbase = \"cmr-8tb\"\n{queue}");
    Profile::from_toml(&text, "n.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Accesses of 4 KiB within the first `sectors`.
fn random_on(sectors: u64, count: u64, seed: u64, writes: bool) -> impl Iterator<Item = Command> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..count).map(move |_| {
        let op = if writes && random.random_range(0..2) == 0 { Op::Write } else { Op::Read };
        Access { op, sector: random.random_range(0..sectors / 8) * 8, sectors: 8 }.into()
    })
}

fn random(count: u64, seed: u64, writes: bool) -> impl Iterator<Item = Command> {
    random_on(384_000_000, count, seed, writes)
}

/// Commands a second with `depth` in flight. Asserts that the phases of every completion add up.
fn iops(profile: &Profile, depth: u32, count: u64) -> f64 {
    let mut done = 0;
    let check = |submitted_ns: u64, completion: &Completion| {
        let service = completion.service;
        assert_eq!(service.finish_ns - submitted_ns, service.phases.total_ns(), "{completion:?}");
        done += 1;
    };
    let mut drive = Drive::new(profile);
    let commands = random_on(drive.capacity_sectors(), count, 7, false);
    let end_ns = closed_loop(&mut drive, 0, depth, commands, check).expect("within the drive");
    assert_eq!(done, count);
    count as f64 * 1e9 / end_ns as f64
}

/// All completions of a closed loop with their submission times, by completion.
fn completions(profile: &Profile, depth: u32, commands: impl IntoIterator<Item = Command>) -> Vec<(u64, Completion)> {
    let mut all = Vec::new();
    closed_loop(&mut Drive::new(profile), 0, depth, commands, |at_ns, completion| all.push((at_ns, *completion)))
        .expect("within the drive");
    all
}

#[test]
fn one_command_at_a_time_is_served_as_without_a_queue() {
    // Random and sequential accesses of both kinds have the same times to the nanosecond, including
    // phases and sources.
    let sequential =
        |first: u64| (0..2000).map(move |n| Access { op: Op::Read, sector: first + n * 64, sectors: 64 }.into());
    let commands = || random(5000, 1, true).chain(sequential(1_000_000)).chain(random(500, 2, true));
    for name in ["sata-7200-2006", "scsi-15k-73", "atlas10k", "wd_4tb_7200"] {
        let capacity = Drive::new(&Profile::builtin(name).expect("built in")).capacity_sectors();
        let within =
            |command: &Command| command.span().is_some_and(|(sector, sectors)| sector + u64::from(sectors) <= capacity);
        let run = |profile: &Profile| completions(profile, 1, commands().filter(within));
        let plain = run(&Profile::builtin(name).expect("built in"));
        for policy in ["fifo", "satf"] {
            let queue = format!("[queue]\ndepth = 32\npolicy = \"{policy}\"");
            assert_eq!(run(&queued(name, &queue)), plain, "{name}, {policy}");
        }
    }
}

#[test]
fn fifo_begins_commands_in_the_order_of_their_arrival() {
    let profile = queued("sata-7200-2006", "[queue]\ndepth = 32\npolicy = \"fifo\"");
    let tags: Vec<u32> = completions(&profile, 32, random(1000, 3, true)).iter().map(|(_, done)| done.tag).collect();
    assert!(tags.is_sorted());
}

#[test]
fn deeper_queues_are_never_slower() {
    for more in ["", "window = 4", "age_weight = 0.05", "max_wait_ms = 500.0"] {
        let profile = satf(more);
        let rates: Vec<f64> = [1, 2, 4, 8, 16, 32].into_iter().map(|depth| iops(&profile, depth, 20_000)).collect();
        // With a window of 4 deeper queues gain nothing: they differ by chance, 20,000 times 3 ms
        // of spread.
        assert!(rates.windows(2).all(|pair| pair[1] > pair[0] * 0.995), "{more}: {rates:?}");
    }
}

#[test]
fn queue_of_32_gains_as_much_as_measured_on_real_drives() {
    // The ratio of depth 32 to depth 1. Published: 2.9 for a drive that chooses among all of its
    // commands, and 1.65 for one (ST2000DM006, 94 commands a second against 57) that seems to
    // choose among a few. With these mechanics that takes a window of 6; a window of 4 yields 1.48.
    let gain = |more: &str| iops(&cmr_8tb(more), 32, 20_000) / iops(&cmr_8tb(more), 1, 20_000);
    for (more, expected) in [("window = 4", 1.48), ("window = 6", 1.65), ("", 2.7)] {
        let found = gain(more);
        assert!((found / expected - 1.0).abs() < 0.03, "{more}: {found}, not {expected}");
    }
}

#[test]
fn drive_of_8_tb_has_its_published_rates() {
    // 12.2 ms at depth 1, 200 commands a second at depth 32.
    let profile = Profile::builtin("cmr-8tb").expect("built in");
    let (one, all) = (1000.0 / iops(&profile, 1, 20_000), iops(&profile, 32, 20_000));
    assert!((one - 12.2).abs() < 0.2, "{one} ms");
    assert!((all / 200.0 - 1.0).abs() < 0.1, "{all} commands a second");
}

#[test]
fn limit_of_waiting_bounds_the_longest_wait() {
    let longest_ms = |more: &str| {
        let done = completions(&satf(more), 32, random(20_000, 5, false));
        done.iter().map(|(_, done)| done.service.phases.wait_ns / MS).max().expect("some")
    };
    let (free, limited, aged) = (longest_ms(""), longest_ms("max_wait_ms = 300.0"), longest_ms("age_weight = 0.05"));
    println!("longest waits: {free} ms, with a limit of 300 ms {limited}, aged {aged}");
    // At the limit the oldest command is next. At most the 31 others can be older, each with at
    // most 17 + 8.4 ms.
    assert!(limited <= 300 + 31 * 26 && limited < free, "{limited} against {free}");
    assert!(aged < free, "{aged} against {free}");
}

#[test]
fn without_ageing_a_far_command_starves_and_with_it_does_not() {
    // 31 readers stay on one track; one command is at the other end of the disk.
    let wait_ms = |more: &str| {
        let near = (0..30_000u64).map(|number| Access { op: Op::Read, sector: number * 397 % 4096, sectors: 1 }.into());
        let far: Command = Access { op: Op::Read, sector: 390_000_000, sectors: 1 }.into();
        let profile = satf(more).without_buffer();
        let done = completions(
            &profile,
            32,
            std::iter::once(Access { op: Op::Read, sector: 9, sectors: 1 }.into()).chain([far]).chain(near),
        );
        done.iter().find(|(_, done)| done.tag == 1).expect("it ends").1.service.phases.wait_ns / MS
    };
    assert!(wait_ms("") > 10_000, "{}", wait_ms(""));
    // The weight of its age exceeds its positioning time of at most 25 ms after 25 / 0.05 ms.
    assert!(wait_ms("age_weight = 0.05") < 530, "{}", wait_ms("age_weight = 0.05"));
    assert!(wait_ms("max_wait_ms = 100.0") < 126, "{}", wait_ms("max_wait_ms = 100.0"));
}

#[test]
fn overlapping_commands_with_a_write_complete_in_the_order_of_arrival() {
    // Few positions, so that most commands overlap waiting ones.
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let mut draw = |_| {
        let op = if random.random_range(0..3) == 0 { Op::Write } else { Op::Read };
        Access {
            op,
            sector: random.random_range(0..40) * 10_000 + random.random_range(0..8),
            sectors: random.random_range(1..8),
        }
    };
    let accesses: Vec<Access> = (0..10_000).map(&mut draw).collect();
    let done = completions(&satf(""), 32, accesses.iter().map(|access| (*access).into()));
    let mut rank = vec![0; accesses.len()];
    for (at, (_, completion)) in done.iter().enumerate() {
        rank[completion.tag as usize] = at;
    }
    let ends = |access: &Access| access.sector + u64::from(access.sectors);
    let mut conflicts = 0;
    for (later, access) in accesses.iter().enumerate() {
        for earlier in later.saturating_sub(200)..later {
            let before = &accesses[earlier];
            let overlap = before.sector < ends(access) && access.sector < ends(before);
            if overlap && (before.op == Op::Write || access.op == Op::Write) {
                assert!(rank[earlier] < rank[later], "{earlier} {before:?} and {later} {access:?}");
                conflicts += 1;
            }
        }
    }
    assert!(conflicts > 1000 && !rank.is_sorted(), "{conflicts}");
}

#[test]
fn read_from_the_buffer_does_not_wait_for_the_arm() {
    let mut drive = Drive::new(&satf(""));
    let read = |sector| Command::from(Access { op: Op::Read, sector, sectors: 8 });
    let first = drive.serve(0, read(1000)).expect("within the disk").service.finish_ns;
    let later_ns = first + 5 * MS;
    drive.submit(later_ns, 1, &read(300_000_000)).expect("within the disk");
    drive.submit(later_ns, 2, &read(1008)).expect("within the disk");
    drive.submit(later_ns, 3, &read(1016)).expect("within the disk");
    // 0.1 ms and 8 sectors of 3.413 us each, one after the other; the distant one takes its seek.
    for (tag, after_ns) in [(2, 127_304), (3, 254_608)] {
        let done = drive.poll(later_ns + MS).expect("it is over");
        assert_eq!((done.tag, done.service.finish_ns - later_ns), (tag, after_ns));
    }
    assert_eq!(drive.poll(later_ns + 5 * MS), None);
    assert_eq!(drive.poll(later_ns + 30 * MS).map(|done| done.tag), Some(1));
}

#[test]
fn sequential_reads_and_writes_keep_the_rate_of_the_media() {
    // 4 KiB each, 32 under way: 63.5 MB/s, the sustained rate of the outermost tracks.
    for op in [Op::Read, Op::Write] {
        let commands = (0..50_000u64).map(|number| Access { op, sector: number * 8, sectors: 8 }.into());
        let end_ns = closed_loop(&mut Drive::new(&satf("")), 0, 32, commands, |_, _| {}).expect("within the disk");
        let mb_s = 50_000.0 * 4096.0 * 1000.0 / end_ns as f64;
        assert!((mb_s - 63.5).abs() < 0.7, "{op:?}: {mb_s}");
    }
}

#[test]
fn sequential_stream_among_random_commands_continues() {
    // Every second command continues the stream. While its next command waits, the head is already
    // there: the random commands cost what they cost alone, and the stream little more than the
    // transfer.
    let mut next = 0;
    let mixed = random(20_000, 17, false).map(move |command| {
        next += 1;
        if next % 2 == 0 { Access { op: Op::Read, sector: next * 4, sectors: 8 }.into() } else { command }
    });
    let done = completions(&satf(""), 32, mixed);
    let end_ns = done.last().expect("some").1.service.finish_ns;
    let random_alone_ns = 10_000.0 * 1e9 / iops(&satf(""), 16, 10_000);
    assert!((end_ns as f64) < 1.4 * random_alone_ns, "{end_ns} against {random_alone_ns}");
}
