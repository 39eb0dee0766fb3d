//! Arrays against sums done by hand and against their members.

use hoistway_drive::{Access, Command, Drive, Op, Profile, Source, Status, closed_loop};

const MS_NS: u64 = 1_000_000;

/// An array of `count` null devices with 1 ms a command, one at a time; 1 us of controller, 100 ns
/// a sector on the link.
fn simple(count: u32, more: &str, cache: &str) -> String {
    format!(
        "name = \"a\"\nwhat = \"\"\nsource = \"\"\n[array]\ndepth = 64\ncommand_us = 1.0\nlink_sector_ns = 100\n{more}\n{cache}\n\
         [[array.member]]\ncount = {count}\n[array.member.profile]\nname = \"m\"\nwhat = \"\"\nsource = \"\"\n\
         [array.member.profile.null]\nservice_ns = 1000000\ndepth = 1\ncapacity_sectors = 1000000\n"
    )
}

/// A cache of 64 KiB, 16 lines of 4 KiB, written back from 12 lines down to 4, or after a second.
fn cache(battery: bool, order: &str) -> String {
    format!(
        "[array.cache]\nsectors = 128\nbattery = {battery}\nhigh_part = 0.75\nlow_part = 0.25\nidle_ms = 1000.0\norder = \"{order}\""
    )
}

fn make(text: &str) -> Drive {
    Drive::new(&Profile::from_toml(text, "a.toml").unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// `count` copies of a built-in drive behind a controller without cost.
fn of_drives(name: &str, count: u32, more: &str) -> Drive {
    make(&format!(
        "name = \"a\"\nwhat = \"\"\nsource = \"\"\n[array]\ndepth = 64\ncommand_us = 0.0\nlink_sector_ns = 0\n{more}\n\
         [[array.member]]\ndrive = \"{name}\"\ncount = {count}\n"
    ))
}

fn read(sector: u64, sectors: u32) -> Command {
    Access { op: Op::Read, sector, sectors }.into()
}

fn write(sector: u64, sectors: u32) -> Command {
    Access { op: Op::Write, sector, sectors }.into()
}

/// Completion times, by submission, of commands that are all submitted at `now_ns`.
fn ends(drive: &mut Drive, now_ns: u64, commands: &[Command]) -> Vec<u64> {
    for (tag, command) in (0..).zip(commands) {
        drive.submit(now_ns, tag, command).expect("within the array");
    }
    let (mut ends, mut left) = (vec![0; commands.len()], commands.len());
    while left > 0 {
        let at_ns = drive.next_event_ns().expect("commands are under way");
        while let Some(completion) = drive.poll(at_ns) {
            assert_eq!(completion.service.phases.total_ns(), completion.service.finish_ns - now_ns);
            ends[completion.tag as usize] = completion.service.finish_ns;
            left -= 1;
        }
    }
    ends
}

fn mb_s(drive: &mut Drive, depth: u32, sectors: u32, count: u64) -> f64 {
    let commands = (0..count).map(|number| read(number * u64::from(sectors), sectors));
    let end_ns = closed_loop(drive, 0, depth, commands, |_, _| {}).expect("within the drive");
    (count * u64::from(sectors) * 512) as f64 * 1e3 / end_ns as f64
}

/// Operations a second at positions spread over the first `span` sectors.
fn iops(drive: &mut Drive, op: Op, depth: u32, count: u64) -> f64 {
    let pages = drive.capacity_sectors() / 8;
    // Multiplicative hashing spreads the pages (Knuth 1973).
    let commands = (0..count).map(|number| {
        let page = number.wrapping_mul(11_400_714_819_323_198_485) % pages;
        Access { op, sector: page * 8, sectors: 8 }.into()
    });
    let end_ns = closed_loop(drive, 0, depth, commands, |_, _| {}).expect("within the drive");
    count as f64 * 1e9 / end_ns as f64
}

fn assert_near(what: &str, found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() <= part, "{what}: {found}, expected {expected}");
}

#[test]
fn one_read_takes_controller_member_and_link() {
    let mut drive = make(&simple(4, "chunk_sectors = 16", ""));
    assert_eq!(drive.capacity_sectors(), 4_000_000);
    // 1 us + 1 ms + 8 x 100 ns.
    let completion = drive.serve(0, read(0, 8)).expect("within the array");
    assert_eq!(completion.service.finish_ns, 1_001_800);
    assert_eq!(completion.service.phases.overhead_ns, 1_001_800);
    // Four chunks on four members in parallel: the link takes 6.4 us for 64 sectors.
    assert_eq!(drive.serve(10 * MS_NS, read(0, 64)).expect("within").service.finish_ns, 10 * MS_NS + 1_007_400);
    // Eight chunks are two on each member, adjacent there, and form one command.
    assert_eq!(drive.serve(20 * MS_NS, read(0, 128)).expect("within").service.finish_ns, 20 * MS_NS + 1_013_800);
}

#[test]
fn commands_of_one_member_wait_for_each_other_and_of_two_do_not() {
    let mut drive = make(&simple(4, "chunk_sectors = 16", ""));
    // Sectors 0 and 64 are on member 0, 16 on member 1. The controller starts them a microsecond
    // apart, and the link is free.
    let found = ends(&mut drive, 0, &[read(0, 8), read(64, 8), read(16, 8)]);
    assert_eq!(found, [1_001_800, 2_001_800, 1_003_800]);
}

#[test]
fn stripe_reads_in_sequence_n_times_as_fast_as_its_members() {
    let alone = mb_s(&mut Drive::new(&Profile::builtin("scsi-15k-73").expect("built in")), 2, 128, 4000);
    for count in [2, 4, 8] {
        let mut array = of_drives("scsi-15k-73", count, "chunk_sectors = 128");
        let together = mb_s(&mut array, 2, 128 * count, 4000);
        assert_near(&format!("{count} members"), together, alone * f64::from(count), 0.05);
    }
}

#[test]
fn link_limits_the_rate_of_a_stripe() {
    let mut drive = Drive::new(&Profile::builtin("array-8x15k").expect("built in"));
    // Eight times 75 MB/s are 600; the link is 320 MB/s.
    assert_near("through the link", mb_s(&mut drive, 8, 1024, 4000), 320.0, 0.02);
}

#[test]
fn mirror_reads_twice_as_fast_and_writes_once() {
    let one = |op| iops(&mut of_drives("scsi-15k-73", 1, ""), op, 8, 4000);
    let two = |op| iops(&mut of_drives("scsi-15k-73", 2, "copies = 2"), op, 8, 4000);
    // More than twice, because the nearer of two arms is chosen.
    let (reads, writes) = (two(Op::Read) / one(Op::Read), two(Op::Write) / one(Op::Write));
    assert!((1.9..2.4).contains(&reads), "reads: {reads} times one drive");
    // Each write waits for the slower of two unsynchronised platters.
    assert!((0.8..=1.01).contains(&writes), "writes: {writes} times one drive");
}

#[test]
fn reads_of_a_mirror_go_to_the_nearer_arm_when_no_queue_is_shorter() {
    let mut drive = of_drives("slide-7200", 2, "copies = 2");
    let far = drive.capacity_sectors() - 8;
    let mut now_ns = 0;
    let mut seeks: Vec<u64> = Vec::new();
    for number in 0..40 {
        let sector = if number % 2 == 0 { 0 } else { far };
        let service = drive.serve(now_ns, read(sector, 8)).expect("within").service;
        now_ns = service.finish_ns + MS_NS;
        seeks.push(service.phases.seek_ns);
    }
    // The first read at the far end moves one arm there; then each end has its own arm.
    assert!(seeks[2..].iter().all(|seek| *seek == 0), "{seeks:?}");
}

#[test]
fn stripe_over_mirrors_has_the_size_of_half_its_members() {
    let mut drive = make(&simple(4, "copies = 2\nchunk_sectors = 16", ""));
    assert_eq!(drive.capacity_sectors(), 2_000_000);
    // Sectors 0 and 32 are on column 0: two concurrent reads use both copies.
    let found = ends(&mut drive, 0, &[read(0, 8), read(32, 8)]);
    assert_eq!(found, [1_001_800, 1_002_800]);
    // Writes use both copies.
    let found = ends(&mut drive, 10 * MS_NS, &[write(0, 8), write(32, 8)]);
    assert_eq!(found, [11 * MS_NS + 1_800, 12 * MS_NS + 1_800]);
}

#[test]
fn cached_write_completes_when_its_data_have_arrived() {
    let mut drive = make(&simple(1, "", &cache(true, "sweep")));
    let completion = drive.serve(0, write(0, 8)).expect("within");
    assert_eq!(completion.service.finish_ns, 1_800);
    // These sectors are read from the cache, adjacent ones from the member.
    let completion = drive.serve(2_000, read(0, 8)).expect("within");
    assert_eq!((completion.service.finish_ns, completion.service.source), (3_800, Source::Buffer));
    let completion = drive.serve(4_000, read(0, 16)).expect("within");
    assert_eq!((completion.service.finish_ns, completion.service.source), (1_006_600, Source::Both));
}

#[test]
fn cache_is_written_back_while_the_host_is_idle() {
    let mut drive = make(&simple(1, "", &cache(true, "sweep")));
    drive.serve(0, write(0, 8)).expect("within");
    // A second after the last completion the member writes for 1 ms; then no event is left.
    assert_eq!(drive.next_event_ns(), Some(1_000_001_800));
    while let Some(at_ns) = drive.next_event_ns() {
        assert_eq!(drive.poll(at_ns), None);
        assert!(at_ns <= 1_001_001_800, "{at_ns}");
    }
    let service = drive.serve(2_000_000_000, read(0, 8)).expect("within").service;
    assert_eq!(service.source, Source::Media);
}

#[test]
fn full_cache_accepts_writes_at_the_rate_of_the_members() {
    for order in ["sweep", "fifo"] {
        let mut drive = make(&simple(1, "", &cache(true, order)));
        // 16 lines are accepted at once; 84 others wait for the member, which writes one a
        // millisecond, because none are adjacent.
        let commands: Vec<Command> = (0..100).map(|number| write(number * 7919 % 1000 * 16, 8)).collect();
        let mut answered = Vec::new();
        let end_ns = closed_loop(&mut drive, 0, 64, commands, |_, done| answered.push(done.service.finish_ns));
        let at_once = answered.iter().filter(|end| **end < MS_NS).count();
        assert_eq!(at_once, 16, "{order}");
        let end_ns = end_ns.expect("within");
        assert!((84 * MS_NS..86 * MS_NS).contains(&end_ns), "{order}: {end_ns}");
    }
}

#[test]
fn adjacent_lines_are_written_back_together() {
    let mut drive = make(&simple(1, "", &cache(true, "sweep")));
    // 13 lines pass the high mark of 12. The first destage has all of them but those that arrive
    // while it begins.
    let writes: Vec<Command> = (0..13).map(|number| write(number * 8, 8)).collect();
    ends(&mut drive, 0, &writes);
    let mut last_ns = 0;
    while let Some(at_ns) = drive.next_event_ns() {
        drive.poll(at_ns);
        last_ns = at_ns;
    }
    // One command of 104 sectors, 1 ms after the mark was passed: no work is left for idle time.
    let found = drive.serve(last_ns + MS_NS, read(0, 104)).expect("within").service;
    assert_eq!(found.source, Source::Media);
    assert!(last_ns < 1_001_100_000, "{last_ns}");
}

#[test]
fn flush_costs_nothing_with_a_battery_and_empties_the_cache_without() {
    let mut drive = make(&simple(1, "", &cache(true, "sweep")));
    drive.serve(0, write(0, 8)).expect("within");
    assert_eq!(drive.serve(10_000, Command::Flush).expect("a flush").service.finish_ns, 11_000);
    // Without a battery: three distant lines are three writes, then the member's own flush: 4 ms.
    let mut drive = make(&simple(1, "", &cache(false, "sweep")));
    ends(&mut drive, 0, &[write(0, 8), write(800, 8), write(1600, 8)]);
    let flushed = drive.serve(10_000, Command::Flush).expect("a flush").service;
    assert_eq!(flushed.finish_ns, 11_000 + 4 * MS_NS);
    // No dirty lines are left: the next flush is the member's alone.
    assert_eq!(drive.serve(10 * MS_NS, Command::Flush).expect("a flush").service.finish_ns, 11 * MS_NS + 1_000);
}

#[test]
fn flush_waits_only_for_earlier_writes() {
    let mut drive = make(&simple(1, "", &cache(false, "fifo")));
    drive.serve(0, write(0, 8)).expect("within");
    // The writes after the flush complete at once, and the flush does not wait for them.
    let found = ends(&mut drive, 10_000, &[Command::Flush, write(800, 8), write(1600, 8)]);
    // The flush: 1 ms for sector 0; possibly 1 ms for another write at the member; 1 ms for its own
    // flush.
    assert!((2 * MS_NS..=3 * MS_NS + 20_000).contains(&found[0]), "{found:?}");
    assert!(found[1..].iter().all(|end| *end < 20_000), "{found:?}");
}

#[test]
fn fua_write_waits_for_the_media_where_the_cache_has_no_battery() {
    let fua = Command::Transfer { access: Access { op: Op::Write, sector: 0, sectors: 8 }, fua: true };
    let end = |battery| make(&simple(1, "", &cache(battery, "sweep"))).serve(0, fua).expect("within").service.finish_ns;
    assert_eq!((end(true), end(false)), (1_800, MS_NS + 1_800));
}

#[test]
fn write_larger_than_the_cache_bypasses_it() {
    let mut drive = make(&simple(1, "", &cache(true, "sweep")));
    drive.serve(0, write(0, 8)).expect("within");
    // 136 sectors are 17 lines: 1 us, 13.6 us on the link, 1 ms.
    let service = drive.serve(MS_NS, write(0, 136)).expect("within").service;
    assert_eq!(service.finish_ns, 2 * MS_NS + 14_600);
    // The data that it replaced are no longer in the cache.
    assert_eq!(drive.serve(3 * MS_NS, read(0, 8)).expect("within").service.source, Source::Media);
}

#[test]
fn without_a_cache_a_flush_goes_to_every_member() {
    let mut drive = make(&simple(4, "chunk_sectors = 16", ""));
    let done = drive.serve(0, Command::Flush).expect("a flush");
    assert_eq!((done.service.finish_ns, done.status), (1_001_000, Status::Done));
    let discard = Command::Discard { sector: 0, sectors: 64 };
    assert_eq!(drive.serve(10 * MS_NS, discard).expect("within").service.finish_ns, 11 * MS_NS + 1_000);
}

#[test]
fn array_of_any_drives_is_deterministic() {
    for name in ["scsi-15k-73", "ssd-fiops", "cloud-gp2"] {
        let run = || {
            let mut order = Vec::new();
            let mut drive = of_drives(
                name,
                3,
                "chunk_sectors = 64\n[array.cache]\nsectors = 1024\nbattery = false\nhigh_part = 0.5\nlow_part = 0.2\nidle_ms = 5.0\norder = \"fifo\"",
            );
            let commands = (0..2000u64).map(|number| match number % 5 {
                0 => Command::Flush,
                1 | 2 => write(number * 7919 % 100_000, 1 + (number % 300) as u32),
                _ => read(number * 104_729 % 100_000, 1 + (number % 700) as u32),
            });
            closed_loop(&mut drive, 0, 32, commands, |_, done| order.push((done.tag, done.service.finish_ns)))
                .expect("within");
            order
        };
        let order = run();
        assert_eq!(order.len(), 2000, "{name}: every command is answered");
        assert_eq!(order, run());
    }
}

#[test]
fn impossible_arrays_are_refused_with_the_line() {
    let good = include_str!("../../profiles/array-8x15k.toml");
    for (from, to, expected) in [
        ("depth = 126", "depth = 0", "a.toml:18:9: `array.depth` is 0: 1 to 65536"),
        ("chunk_sectors = 128", "chunk_sectors = 100", "a.toml:21:17: `array.chunk_sectors` is 100: a multiple of 8"),
        (
            "chunk_sectors = 128",
            "",
            "a.toml:17:1: `array.chunk_sectors` is missing: striping needs the number of consecutive sectors on one member, such as 128",
        ),
        (
            "chunk_sectors = 128",
            "chunk_sectors = 128\ncopies = 3",
            "a.toml:22:10: `array.copies` is 3: 8 members are not a multiple of it: a divisor of 8",
        ),
        ("sectors = 262144", "sectors = 1", "a.toml:24:11: `array.cache.sectors` is 1: 8 to 134217728"),
        ("low_part = 0.4", "low_part = 0.9", "a.toml:27:12: `array.cache.low_part` is 0.9: 0 to 0.8"),
        ("count = 8", "count = 65", "a.toml:33:9: `array.member.count` is 65: 1 to 64"),
        (
            "drive = \"scsi-15k-73\"",
            "",
            "a.toml:31:1: `array.member.drive` is missing: a member needs the name of a built-in drive, or a table `profile` of its own",
        ),
        (
            "drive = \"scsi-15k-73\"",
            "drive = \"array-8x15k\"",
            "a.toml:32:9: `array.member.drive` is array-8x15k: an array's members are single drives: list those of the inner array, with `copies` and `chunk_sectors`",
        ),
    ] {
        assert!(good.contains(from), "{from} is in the profile");
        let text = good.replace(from, to);
        let error = Profile::from_toml(&text, "a.toml").expect_err("refused").to_string();
        assert_eq!(error, expected, "for {to}");
    }
    let unknown = good.replace("scsi-15k-73", "scsi-15k-74");
    let error = Profile::from_toml(&unknown, "a.toml").expect_err("refused").to_string();
    assert!(
        error.starts_with(
            "a.toml:32:9: `array.member.drive` is scsi-15k-74: there is no such drive (did you mean `scsi-15k-73`"
        ),
        "{error}"
    );
    let inner = "[[array.member]]\n[array.member.profile]\nname = \"i\"\nwhat = \"\"\nsource = \"\"\n[array.member.profile.array]\ndepth = 1\ncommand_us = 0.0\nlink_sector_ns = 0\n";
    let error = Profile::from_toml(&format!("{good}{inner}"), "a.toml").expect_err("refused").to_string();
    assert!(error.contains("`array` is given in a member: an array's members are single drives"), "{error}");
}

/// An array of two disks. Sectors 80 to 87 are bad on those marked in `bad`.
fn faulty(layout: &str, bad: &[bool], more: &str) -> Drive {
    let members: String = bad
        .iter()
        .map(|bad| {
            let faults = "[array.member.profile.faults]\nbad_sectors = [[80, 8]]\nretries = 2\nspare_sectors = 0\n";
            format!(
                "[[array.member]]\n[array.member.profile]\nname = \"m\"\nwhat = \"\"\nsource = \"\"\nbase = \"slide-7200\"\n{}",
                if *bad { faults } else { "" }
            )
        })
        .collect();
    make(&format!(
        "name = \"a\"\nwhat = \"\"\nsource = \"\"\n[array]\ndepth = 64\ncommand_us = 0.0\nlink_sector_ns = 0\n{layout}\n{more}\n{members}"
    ))
}

#[test]
fn failure_of_a_member_is_reported_with_the_sector_of_the_array() {
    let mut drive = faulty("chunk_sectors = 64", &[true, false], "");
    // The member's sectors 64 to 127 are the third chunk of the array: its sector 80 is 128 + 16.
    for command in [read(128, 64), write(128, 64)] {
        let done = drive.serve(0, command).expect("within");
        assert_eq!(done.status, Status::MediaError { sector: 144 });
        drive = faulty("chunk_sectors = 64", &[true, false], "");
    }
    assert_eq!(drive.serve(0, read(64, 64)).expect("within").status, Status::Done);
}

#[test]
fn mirror_reads_a_bad_sector_from_the_other_copy() {
    let mut drive = faulty("copies = 2", &[true, false], "");
    let done = drive.serve(0, read(80, 8)).expect("within");
    assert_eq!(done.status, Status::Done);
    // The first copy has the lower index, retries for two revolutions, and only then the other copy
    // is read.
    assert!(done.service.finish_ns > 2 * 8_333_333, "{}", done.service.finish_ns);
    assert_eq!(drive.serve(done.service.finish_ns, write(80, 8)).expect("within").status, Status::Done);
    let mut drive = faulty("copies = 2", &[true, true], "");
    assert_eq!(drive.serve(0, read(80, 8)).expect("within").status, Status::MediaError { sector: 80 });
    let now_ns = 1_000_000_000;
    assert_eq!(drive.serve(now_ns, write(80, 8)).expect("within").status, Status::MediaError { sector: 80 });
}

#[test]
fn failed_write_back_is_reported_once_by_the_next_flush() {
    let mut drive = faulty("copies = 2", &[true, true], &cache(false, "sweep"));
    assert_eq!(drive.serve(0, write(80, 8)).expect("within").status, Status::Done);
    let flushed = drive.serve(1_000, Command::Flush).expect("a flush");
    assert_eq!(flushed.status, Status::MediaError { sector: 80 });
    assert_eq!(drive.serve(flushed.service.finish_ns, Command::Flush).expect("a flush").status, Status::Done);
}
