//! The flash drive, against sums that can be done by hand.

use hoistway_drive::{Access, Drive, Op, Profile};

fn drive() -> Drive {
    Drive::new(&Profile::builtin("ssd-fiops").expect("a built-in profile"))
}

/// Operations a second of `count` commands of `sectors` sectors with `depth` under way at once, each at a place of its own.
fn iops(op: Op, sectors: u32, depth: usize, count: u64) -> f64 {
    let mut drive = drive();
    let mut under_way: Vec<u64> = vec![0; depth];
    let mut last_ns = 0;
    for number in 0..count {
        under_way.sort_unstable();
        let now_ns = under_way[0];
        // Multiplicative hashing spreads the pages over the dies (Knuth 1973).
        let page = (number * 2_654_435_761) % 1_000_000;
        let finish_ns =
            drive.start(now_ns, &Access { op, sector: page * 8, sectors }).expect("within the drive").finish_ns;
        under_way[0] = finish_ns;
        last_ns = last_ns.max(finish_ns);
    }
    count as f64 / (last_ns as f64 / 1e9)
}

fn assert_near(what: &str, found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() <= part, "{what}: {found}, expected {expected}");
}

#[test]
fn one_read_takes_its_command_its_page_and_its_sectors() {
    // 25 us + 75 us + 8 * 2.048 us = 116.384 us.
    let service = drive().start(0, &Access { op: Op::Read, sector: 800, sectors: 8 }).expect("within the drive");
    assert_eq!(service.finish_ns, 116_384);
    assert_eq!((service.phases.overhead_ns, service.phases.transfer_ns), (25_000, 91_384));
}

#[test]
fn one_write_programs_its_page_after_its_sectors_have_come() {
    // 25 us + 16.384 us + 1 ms.
    let service = drive().start(0, &Access { op: Op::Write, sector: 0, sectors: 8 }).expect("within the drive");
    assert_eq!(service.finish_ns, 1_041_384);
}

#[test]
fn two_reads_of_one_die_wait_for_each_other_and_of_two_dies_do_not() {
    let read = |drive: &mut Drive, page: u64| {
        drive.start(0, &Access { op: Op::Read, sector: page * 8, sectors: 8 }).expect("within the drive").finish_ns
    };
    let mut same = drive();
    // The die is busy from 25 to 100 and from 100 to 175 us.
    assert_eq!((read(&mut same, 0), read(&mut same, 20)), (116_384, 191_384));
    let mut other = drive();
    // The second command is ready at 50 us, its die done at 125.
    assert_eq!((read(&mut other, 0), read(&mut other, 1)), (116_384, 141_384));
}

#[test]
fn the_drive_reaches_its_published_figures() {
    assert_near("random reads, 31 at once", iops(Op::Read, 8, 31, 200_000), 40_000.0, 0.03);
    assert_near("random writes, 31 at once", iops(Op::Write, 8, 31, 100_000), 20_000.0, 0.03);
    assert_near("reads of 128 KiB in MB/s", iops(Op::Read, 256, 31, 20_000) * 131_072.0 / 1e6, 250.0, 0.03);
    // 20 pages a ms are 81.92 MB/s: the published 80 within 3 %.
    assert_near("writes of 128 KiB in MB/s", iops(Op::Write, 256, 31, 5_000) * 131_072.0 / 1e6, 80.0, 0.03);
}
