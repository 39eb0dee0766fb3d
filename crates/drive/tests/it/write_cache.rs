//! The write cache of a disk, tested on a small one with short sums: 10 ms a revolution, 100
//! sectors a track, 2 surfaces.

use hoistway_drive::{Access, Command, Completion, Drive, Op, Phases, Profile, Service, Source, closed_loop};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A sector passes in 0.1 ms and takes 10 us over the interface. The overhead is 0.1 ms a hit and
/// 0.2 ms a miss. A cylinder is reached in 1 ms.
fn profile(buffer: &str) -> Profile {
    let text = format!(
        r#"name = "small"
what = "a disk for sums by hand"
source = "none"
[disk]
rpm = 6000
surfaces = 2
cylinders = 100
capacity_sectors = 20000
mapping = "cylinder"
head_switch_ms = 0.5
[overhead]
read_hit_after_read_ms = 0.1
read_hit_after_write_ms = 0.1
read_miss_after_read_ms = 0.2
read_miss_after_write_ms = 0.2
write_hit_after_read_ms = 0.1
write_hit_after_write_ms = 0.1
write_miss_after_read_ms = 0.2
write_miss_after_write_ms = 0.2
[interface]
sector_ns = 10000
[seek]
form = "table"
points_ms = [[1, 1.0], [51, 6.0], [99, 9.5]]
[[zone]]
first_cylinder = 0
last_cylinder = 99
sectors_per_track = 100
track_skew_sectors = 6.0
change_skew_sectors = 14.0
{buffer}"#
    );
    Profile::from_toml(&text, "small.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// A write cache that only a flush empties.
const LAZY: &str = "write_sectors = 1000\nwrite_idle_ms = 4000.0\n";

fn cached(more: &str) -> Profile {
    let buffer = "[buffer]\nsegments = 2\nsegment_sectors = 64\nread_ahead_until = \"segment\"\nwrite_cache = true\n";
    profile(&format!("{buffer}{more}"))
}

fn serve(drive: &mut Drive, now_ns: u64, op: Op, sector: u64, sectors: u32) -> Service {
    drive.serve(now_ns, Access { op, sector, sectors }).expect("within the disk").service
}

fn flush(drive: &mut Drive, now_ns: u64) -> Service {
    drive.serve(now_ns, Command::Flush).expect("a flush names no sector").service
}

fn fua(sector: u64, sectors: u32) -> Command {
    Command::Transfer { access: Access { op: Op::Write, sector, sectors }, fua: true }
}

const US: u64 = 1000;
const MS: u64 = 1_000_000;

#[track_caller]
fn assert_ns(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) <= 50, "{found} ns, not {expected}");
}

#[test]
fn write_completes_when_the_cache_has_its_data() {
    // 0.1 ms overhead and 4 sectors of 10 us.
    let service = serve(&mut Drive::new(&cached("")), 0, Op::Write, 10, 4);
    assert_ns(service.finish_ns, 140 * US);
    assert_eq!((service.source, service.phases.overhead_ns), (Source::Buffer, service.finish_ns));
}

#[test]
fn switched_off_cache_writes_to_the_media() {
    let off = cached("").without_write_cache();
    // Sector 10 begins at 1 ms and 4 pass in 0.4 ms.
    assert_ns(serve(&mut Drive::new(&off), 0, Op::Write, 10, 4).finish_ns, 1400 * US);
}

#[test]
fn flush_completes_when_all_data_are_on_the_media() {
    let mut drive = Drive::new(&cached(""));
    serve(&mut drive, 0, Op::Write, 10, 4);
    let service = flush(&mut drive, 140 * US);
    assert_ns(service.finish_ns, 1400 * US);
    assert_eq!(service.source, Source::Media);
    // No dirty sector is left: the next flush completes at once.
    let again = flush(&mut drive, 5 * MS);
    assert_eq!((again.finish_ns, again.source), (5 * MS, Source::Buffer));
}

#[test]
fn fua_write_waits_for_the_media() {
    let mut drive = Drive::new(&cached(LAZY));
    let service = drive.serve(0, fua(10, 4)).expect("within the disk").service;
    assert_ns(service.finish_ns, 1400 * US);
    assert_eq!(service.source, Source::Media);
}

#[test]
fn fua_write_replaces_older_dirty_sectors() {
    let mut drive = Drive::new(&cached(LAZY));
    serve(&mut drive, 0, Op::Write, 10, 4);
    drive.serve(MS, fua(8, 8)).expect("within the disk");
    assert_eq!(flush(&mut drive, 50 * MS).finish_ns, 50 * MS);
}

#[test]
fn discarded_sectors_are_not_written() {
    let mut drive = Drive::new(&cached(LAZY));
    serve(&mut drive, 0, Op::Write, 10, 4);
    drive.serve(MS, Command::Discard { sector: 0, sectors: 100 }).expect("within the disk");
    assert_eq!(flush(&mut drive, 50 * MS).finish_ns, 50 * MS);
}

#[test]
fn dirty_sectors_are_read_from_the_cache() {
    let mut drive = Drive::new(&cached(LAZY));
    serve(&mut drive, 0, Op::Write, 10, 8);
    let hit = serve(&mut drive, 3 * MS, Op::Read, 12, 4);
    assert_ns(hit.finish_ns, 3140 * US);
    assert_eq!(hit.source, Source::Buffer);
    // One more sector, which is not dirty: all sectors come from the media, where sector 12 passes
    // at 11.2 ms.
    let miss = serve(&mut drive, 10 * MS, Op::Read, 12, 7);
    assert_ns(miss.finish_ns, 11_910 * US);
}

#[test]
fn adjoining_writes_go_to_the_media_in_one_pass() {
    let mut drive = Drive::new(&cached(LAZY));
    for (now_ms, sector) in [(0, 14), (1, 10), (2, 18), (3, 12)] {
        serve(&mut drive, now_ms * MS, Op::Write, sector, 4);
    }
    // Sectors 10 to 21 from 11 ms on: 12 of 0.1 ms.
    assert_ns(flush(&mut drive, 10 * MS).finish_ns, 12_200 * US);
}

#[test]
fn nearest_in_time_goes_to_the_media_first() {
    // At 0 ms: sector 50 of the same track passes at 5 ms and ends at 5.1 ms; on cylinder 1, with
    // 14 + 6 + 0 sectors of skew, sector 200 + 50 passes at 7 ms. In the order of the writes the
    // flush would take another revolution.
    let mut drive = Drive::new(&cached(LAZY));
    serve(&mut drive, 0, Op::Write, 250, 1);
    serve(&mut drive, MS, Op::Write, 50, 1);
    let service = flush(&mut drive, 20 * MS);
    assert_ns(service.finish_ns, 27_100 * US);
    let Phases { seek_ns, rotation_ns, transfer_ns, .. } = service.phases;
    assert_ns(seek_ns, MS);
    assert_ns(transfer_ns, 200 * US);
    assert_ns(rotation_ns, 5900 * US);
}

#[test]
fn idle_drive_empties_its_cache() {
    let mut drive = Drive::new(&cached("write_idle_ms = 3.0\n"));
    serve(&mut drive, 0, Op::Write, 50, 1);
    // The arm was idle at 0 ms; sector 50 passes at 5 ms and is written at 5.1 ms. A later flush
    // has no work.
    assert_eq!(flush(&mut drive.clone(), 6 * MS).finish_ns, 6 * MS);
    // An earlier flush waits for the current write-back.
    assert_ns(flush(&mut drive.clone(), 4 * MS).finish_ns, 5100 * US);
    // A read meanwhile waits for the arm, a hit does not.
    let read = serve(&mut drive.clone(), 4 * MS, Op::Read, 70, 1);
    assert_ns(read.finish_ns, 7110 * US);
    // 0.8 ms of the wait are rotational latency, and 0.1 ms the transfer of sector 50; then the
    // read waits from 5.1 to 7 ms for sector 70.
    assert_eq!(read.phases.seek_ns, 0);
    assert_ns(read.phases.rotation_ns, 2700 * US);
    assert_ns(read.phases.transfer_ns, 200 * US);
    assert_ns(serve(&mut drive, 4 * MS, Op::Read, 50, 1).finish_ns, 4110 * US);
}

#[test]
fn full_cache_makes_a_write_wait_for_space() {
    let mut drive = Drive::new(&cached("write_segments = 1\nwrite_high = 1.0\nwrite_idle_ms = 4000.0\n"));
    serve(&mut drive, 0, Op::Write, 10, 4);
    // The one run is on the media at 1.4 ms; then 0.1 ms and 10 us.
    let second = serve(&mut drive, 200 * US, Op::Write, 5000, 1);
    assert_ns(second.finish_ns, 1510 * US);
    // A write larger than the cache goes to the media: 65 sectors from 500 on, cylinder 2, angle 40
    // of 100.
    let large = serve(&mut drive, 100 * MS, Op::Write, 500, 65);
    assert_eq!(large.source, Source::Media);
}

#[test]
fn cache_above_its_high_mark_is_emptied_down_to_its_low_one() {
    let marks = "write_sectors = 100\nwrite_high = 0.5\nwrite_low = 0.2\nwrite_idle_ms = 4000.0\n";
    let mut drive = Drive::new(&cached(marks));
    for index in 0..49 {
        serve(&mut drive, index * 500 * US, Op::Write, index * 400, 1);
    }
    // 49 of 100: no write-back begins, and a flush writes all of them, each with a seek of at least
    // a millisecond.
    assert!(flush(&mut drive.clone(), 3000 * MS).phases.seek_ns >= 49 * MS);
    serve(&mut drive, 25 * MS, Op::Write, 49 * 400, 1);
    // 50 start write-back, which leaves 20.
    let rest = flush(&mut drive, 3000 * MS).phases;
    assert_ns(rest.transfer_ns, 20 * 100 * US);
}

#[test]
fn read_ahead_continues_while_a_write_completes_in_the_cache() {
    let mut drive = Drive::new(&cached(LAZY));
    serve(&mut drive, 0, Op::Read, 10, 4);
    serve(&mut drive, 2 * MS, Op::Write, 5000, 4);
    assert_eq!(serve(&mut drive, 9 * MS, Op::Read, 50, 8).source, Source::Buffer);
    // Unless the sectors that it reads are being written.
    let mut drive = Drive::new(&cached(LAZY));
    serve(&mut drive, 0, Op::Read, 10, 4);
    serve(&mut drive, 2 * MS, Op::Write, 40, 4);
    assert_eq!(serve(&mut drive, 9 * MS, Op::Read, 50, 8).source, Source::Media);
}

#[test]
fn buffer_may_lose_what_was_read_ahead_before_a_write() {
    let mut drive = Drive::new(&cached(&format!("{LAZY}keep_after_write = false\n")));
    serve(&mut drive, 0, Op::Read, 10, 4);
    serve(&mut drive, 20 * MS, Op::Write, 5000, 4);
    assert_eq!(serve(&mut drive, 39 * MS, Op::Read, 50, 8).source, Source::Media);
    // The written sectors stay readable.
    assert_eq!(serve(&mut drive, 59 * MS, Op::Read, 5000, 4).source, Source::Buffer);
}

#[test]
fn buffer_may_refuse_to_serve_reads_of_written_sectors() {
    let mut drive = Drive::new(&cached(&format!("{LAZY}keep_written = false\n")));
    serve(&mut drive, 0, Op::Write, 10, 8);
    assert_eq!(serve(&mut drive, 3 * MS, Op::Read, 12, 4).source, Source::Media);
}

/// The rate of `requests` adjacent writes of `sectors`, one at a time, in sectors a second.
fn stream(profile: &Profile, requests: u64, sectors: u32) -> f64 {
    let mut drive = Drive::new(profile);
    let writes =
        (0..requests).map(|index| Command::from(Access { op: Op::Write, sector: index * u64::from(sectors), sectors }));
    let end_ns = closed_loop(&mut drive, 0, 1, writes, |_, _| {}).expect("within the disk");
    let end_ns = flush(&mut drive, end_ns).finish_ns;
    requests as f64 * f64::from(sectors) / end_ns as f64 * 1e9
}

#[test]
fn waiting_for_space_counts_as_the_work_of_the_arm() {
    // Seeks of a lone sequential writer are head switches and moves to the next cylinder; the rest
    // of its wait is transfer and the skews.
    let mut drive = Drive::new(&cached("write_sectors = 200\n"));
    let (mut now_ns, mut sum) = (0, Phases::default());
    for index in 0..500 {
        let service = serve(&mut drive, now_ns, Op::Write, index * 20, 20);
        assert_eq!(service.phases.total_ns(), service.finish_ns - now_ns);
        now_ns = service.finish_ns;
        sum.seek_ns += service.phases.seek_ns;
        sum.transfer_ns += service.phases.transfer_ns;
    }
    let share = |ns: u64| ns as f64 / now_ns as f64;
    // The interface takes 0.3 ms of the 2 ms that a write takes on the media.
    assert!(share(sum.transfer_ns) > 0.65, "{}", share(sum.transfer_ns));
    assert!(share(sum.seek_ns) < 0.1, "{}", share(sum.seek_ns));
}

#[test]
fn one_segment_streams_while_it_is_written() {
    // The sectors that are being written and those that arrive share the segment.
    let media = 100.0 / 0.0106;
    let rate = stream(&cached("write_segments = 1\n"), 1000, 8);
    assert!((rate / media - 1.0).abs() < 0.1, "{rate} of {media} sectors/s");
}

#[test]
fn runs_are_written_a_segment_at_a_time_in_turn() {
    // Two runs of 128 sectors on cylinders 0 and 50, segments of 64: the arm moves four times,
    // counting the one from cylinder 0 to 50 and back, and stays on a run when it is the last.
    let mut drive = Drive::new(&cached(LAZY));
    for (now_ms, sector) in [(0, 0), (10, 64), (20, 10_000), (30, 10_064)] {
        serve(&mut drive, now_ms * MS, Op::Write, sector, 64);
    }
    let seek_ns = flush(&mut drive, 50 * MS).phases.seek_ns;
    // Three moves over 50 cylinders of 5.9 ms, and head switches of 0.5 ms.
    assert!((17 * MS..20 * MS).contains(&seek_ns), "{seek_ns} ns");
}

#[test]
fn open_segments_are_not_written_before_they_are_needed() {
    // Two streams in two segments: write-back in long runs, not one request at a time.
    let mut drive = Drive::new(&cached("write_segments = 2\n"));
    let (mut now_ns, mut seeks) = (0, 0);
    for index in 0..400u64 {
        let service = serve(&mut drive, now_ns, Op::Write, index % 2 * 10_000 + index / 2 * 8, 8);
        now_ns = service.finish_ns;
        seeks += u64::from(service.phases.seek_ns > 2 * MS);
    }
    // 3,200 sectors in runs of up to 64.
    assert!(seeks < 80, "{seeks}");
}

/// The disk of 2006 with a write cache of 8 MiB.
fn sata_2006() -> Profile {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/sata-7200-2006.toml");
    let text = std::fs::read_to_string(file).expect("the profile");
    let with = text.replace("write_cache = false", "write_cache = true\nwrite_sectors = 16384");
    assert_ne!(with, text);
    Profile::from_toml(&with, "sata-7200-2006.toml").expect("a profile")
}

#[test]
fn sequential_writes_stream_with_the_cache_and_lose_a_revolution_each_without() {
    let profile = sata_2006();
    // Reads of the same sectors in large requests show the rate of the media.
    let mut drive = Drive::new(&profile);
    let reads = (0..1024).map(|index| Command::from(Access { op: Op::Read, sector: index * 1024, sectors: 1024 }));
    let end_ns = closed_loop(&mut drive, 0, 1, reads, |_, _| {}).expect("within the disk");
    let media = 1024.0 * 1024.0 / end_ns as f64 * 1e9;
    let large = stream(&profile, 1024, 1024);
    assert!((large / media - 1.0).abs() < 0.05, "{large} of {media} sectors/s");
    // Small writes follow each other as fast as command and interface allow, and the media keep up.
    let alone_ns = serve(&mut Drive::new(&profile), 0, Op::Write, 0, 8).finish_ns;
    let small = stream(&profile, 100_000, 8) * alone_ns as f64 / 8e9;
    assert!((small - 1.0).abs() < 0.05, "{small} of a write each {alone_ns} ns");
    // 7200 rpm: a revolution of 8.333 ms for 8 sectors, within 1 % (the end of a track returns some
    // of its skew).
    let each_ms = 8.0 / stream(&profile.without_write_cache(), 10_000, 8) * 1e3;
    assert!((each_ms / 8.333 - 1.0).abs() < 0.01, "{each_ms} ms");
}

/// Submits all commands at `now_ns`, tagged by index, and returns the completions in order.
fn all(drive: &mut Drive, now_ns: u64, commands: &[Command]) -> Vec<Completion> {
    for (tag, command) in commands.iter().enumerate() {
        drive.submit(now_ns, tag as u32, command).expect("within the disk");
    }
    let mut completions = Vec::new();
    while let Some(at_ns) = drive.next_event_ns() {
        while let Some(completion) = drive.poll(at_ns) {
            assert_eq!(completion.service.phases.total_ns(), completion.service.finish_ns - now_ns, "{completion:?}");
            completions.push(completion);
        }
    }
    completions
}

fn tags(completions: &[Completion]) -> Vec<u32> {
    completions.iter().map(|completion| completion.tag).collect()
}

#[test]
fn blocking_flush_keeps_the_order_of_all_commands() {
    let read = |sector| Command::from(Access { op: Op::Read, sector, sectors: 4 });
    let write = |sector| Command::from(Access { op: Op::Write, sector, sectors: 4 });
    let commands = [read(5000), write(10), read(9000), Command::Flush, read(10), write(60), Command::Flush, read(60)];
    let queue = "[queue]\ndepth = 32\npolicy = \"satf\"\n";
    let blocking = all(&mut Drive::new(&cached(&format!("{LAZY}{queue}"))), 0, &commands);
    assert_eq!(tags(&blocking), [1, 0, 2, 3, 4, 5, 6, 7]);
    // A queued flush (SCSI) begins when the mechanics are free; commands served by the cache
    // overtake it.
    let queued = all(&mut Drive::new(&cached(&format!("{LAZY}{queue}flush_blocks = false\n"))), 0, &commands);
    assert_eq!(tags(&queued), [1, 4, 5, 7, 0, 3, 6, 2]);
}

#[test]
fn queued_writes_complete_in_the_cache_while_the_arm_is_busy() {
    let queue = "[queue]\ndepth = 4\npolicy = \"satf\"\n";
    let mut drive = Drive::new(&cached(&format!("{LAZY}{queue}")));
    let read = Command::from(Access { op: Op::Read, sector: 19_000, sectors: 4 });
    let write = |sector| Command::from(Access { op: Op::Write, sector, sectors: 4 });
    let completions = all(&mut drive, 0, &[read, write(10), write(400)]);
    assert_eq!(tags(&completions), [1, 2, 0]);
    // One after the other over the interface.
    assert_ns(completions[0].service.finish_ns, 140 * US);
    assert_ns(completions[1].service.finish_ns, 280 * US);
    assert_ns(completions[1].service.phases.wait_ns, 140 * US);
}

#[test]
fn any_mixture_of_commands_completes_and_leaves_no_dirty_sectors() {
    let caches =
        ["write_segments = 1\n", "write_sectors = 64\nwrite_high = 0.5\n", "", "replacement = \"round-robin\"\n"];
    for (number, cache) in caches.iter().enumerate() {
        for (depth, queue) in [(1, ""), (8, "[queue]\ndepth = 8\npolicy = \"satf\"\n")] {
            let mut random = Pcg64Mcg::seed_from_u64(number as u64);
            let mut drive = Drive::new(&cached(&format!("{cache}{queue}")));
            let commands: Vec<Command> = (0..3000).map(|_| draw(&mut random)).collect();
            let mut ended = 0;
            let mut last_ns = 0;
            let end_ns = closed_loop(&mut drive, 0, depth, commands, |_, completion| {
                assert!(completion.service.finish_ns >= last_ns, "completions come in order");
                (ended, last_ns) = (ended + 1, completion.service.finish_ns);
            });
            let end_ns = end_ns.expect("within the disk");
            assert_eq!(ended, 3000, "{cache}");
            let flushed_ns = flush(&mut drive, end_ns).finish_ns;
            assert_eq!(flush(&mut drive, flushed_ns).finish_ns, flushed_ns);
        }
    }
}

fn draw(random: &mut Pcg64Mcg) -> Command {
    let (sector, sectors) = (random.random_range(0..2000), random.random_range(1..40));
    match random.random_range(0..20) {
        0 => Command::Flush,
        1 => Command::Discard { sector, sectors },
        2 => fua(sector, sectors),
        3..10 => Access { op: Op::Read, sector, sectors }.into(),
        _ => Access { op: Op::Write, sector, sectors }.into(),
    }
}
