//! The flash drive against sums done by hand.

use hoistway_drive::{Access, Command, Drive, Op, Profile, closed_loop};

fn drive() -> Drive {
    Drive::new(&Profile::builtin("ssd-fiops").expect("a built-in profile"))
}

/// Operations a second of `count` commands of `sectors` sectors at distinct positions with `depth`
/// in flight.
fn iops(op: Op, sectors: u32, depth: u32, count: u64) -> f64 {
    // Multiplicative hashing spreads the pages over the dies (Knuth 1973).
    let page = |number: u64| (number * 2_654_435_761) % 1_000_000;
    let commands = (0..count).map(|number| Access { op, sector: page(number) * 8, sectors }.into());
    let end_ns = closed_loop(&mut drive(), 0, depth, commands, |_, _| {}).expect("within the drive");
    count as f64 / (end_ns as f64 / 1e9)
}

fn assert_near(what: &str, found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() <= part, "{what}: {found}, expected {expected}");
}

#[test]
fn one_read_takes_its_command_its_page_and_its_sectors() {
    // 25 us + 75 us + 8 * 2.048 us = 116.384 us.
    let service = drive().serve(0, Access { op: Op::Read, sector: 800, sectors: 8 }).expect("within the drive").service;
    assert_eq!(service.finish_ns, 116_384);
    assert_eq!((service.phases.overhead_ns, service.phases.transfer_ns), (25_000, 91_384));
}

#[test]
fn write_completes_with_its_data_and_with_fua_when_programmed() {
    // 25 us + 16.384 us; and 1 ms.
    let access = Access { op: Op::Write, sector: 0, sectors: 8 };
    assert_eq!(drive().serve(0, access).expect("within the drive").service.finish_ns, 41_384);
    let forced = Command::Transfer { access, fua: true };
    assert_eq!(drive().serve(0, forced).expect("within the drive").service.finish_ns, 1_041_384);
}

#[test]
fn two_reads_of_one_die_wait_for_each_other_and_of_two_dies_do_not() {
    let read = |drive: &mut Drive, pages: [u64; 2]| {
        for (tag, page) in (0..).zip(pages) {
            drive
                .submit(0, tag, &Access { op: Op::Read, sector: page * 8, sectors: 8 }.into())
                .expect("within the drive");
        }
        pages.map(|_| drive.poll(u64::MAX).expect("under way").service.finish_ns)
    };
    // The die is busy from 25 to 100 us and from 100 to 175 us.
    assert_eq!(read(&mut drive(), [0, 20]), [116_384, 191_384]);
    // The second command is ready at 50 us, its die done at 125.
    assert_eq!(read(&mut drive(), [0, 1]), [116_384, 141_384]);
}

#[test]
fn the_drive_reaches_its_published_figures() {
    assert_near("random reads, 31 at once", iops(Op::Read, 8, 31, 200_000), 40_000.0, 0.03);
    assert_near("random writes, 31 at once", iops(Op::Write, 8, 31, 100_000), 20_000.0, 0.03);
    assert_near("reads of 128 KiB in MB/s", iops(Op::Read, 256, 31, 20_000) * 131_072.0 / 1e6, 250.0, 0.03);
    // 20 pages a ms are 81.92 MB/s: the published 80 within 3 %.
    assert_near("writes of 128 KiB in MB/s", iops(Op::Write, 256, 31, 5_000) * 131_072.0 / 1e6, 80.0, 0.03);
}
