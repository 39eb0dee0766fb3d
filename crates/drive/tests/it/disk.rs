//! A disk, tested on a small one with short sums: 100 tracks a second, 100 sectors a track, 2
//! surfaces.

use hoistway_drive::{Access, AccessError, Drive, Op, Phases, Profile, Service, Source, describe};

/// 6000 rpm: a revolution is 10 ms and a sector 0.1 ms. Skews and switches are parameters. The
/// overhead is 0.2 ms a miss and 0.1 ms a hit; the interface takes 10 us a sector.
fn text(head_switch_ms: f64, track_skew: f64, more: &str) -> String {
    format!(
        r#"name = "small"
what = "a disk for sums by hand"
source = "none"
[disk]
rpm = 6000
surfaces = 2
cylinders = 100
capacity_sectors = 20000
mapping = "cylinder"
head_switch_ms = {head_switch_ms:?}
write_settle_ms = 0.3
[overhead]
read_hit_after_read_ms = 0.1
read_hit_after_write_ms = 0.1
read_miss_after_read_ms = 0.2
read_miss_after_write_ms = 0.25
write_miss_after_read_ms = 0.4
write_miss_after_write_ms = 0.45
[interface]
sector_ns = 10000
[seek]
form = "table"
points_ms = [[1, 1.0], [51, 6.0], [99, 9.5]]
[[zone]]
first_cylinder = 0
last_cylinder = 99
sectors_per_track = 100
track_skew_sectors = {track_skew:?}
change_skew_sectors = 14.0
{more}"#
    )
}

const BUFFER: &str = "[buffer]\nsegments = 2\nsegment_sectors = 64\nread_ahead_until = \"segment\"\n";

fn profile(more: &str) -> Profile {
    Profile::from_toml(&text(0.5, 6.0, more), "small.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn serve(drive: &mut Drive, now_ns: u64, op: Op, sector: u64, sectors: u32) -> Service {
    drive.serve(now_ns, Access { op, sector, sectors }).expect("within the disk").service
}

fn read(drive: &mut Drive, now_ns: u64, sector: u64, sectors: u32) -> Service {
    serve(drive, now_ns, Op::Read, sector, sectors)
}

const US: u64 = 1000;
const MS: u64 = 1_000_000;

#[track_caller]
fn assert_ns(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) <= 4, "{found} ns, not {expected}");
}

#[test]
fn first_read_waits_for_its_sector() {
    // 0.2 ms overhead; sector 10 begins at 1 ms, 4 sectors pass in 0.4 ms, the last takes 10 us to
    // the host.
    let service = read(&mut Drive::new(&profile("")), 0, 10, 4);
    assert_ns(service.finish_ns, 1410 * US);
    let Phases { overhead_ns, seek_ns, rotation_ns, transfer_ns, .. } = service.phases;
    assert_ns(overhead_ns, 210 * US);
    assert_eq!(seek_ns, 0);
    assert_ns(rotation_ns, 800 * US);
    assert_ns(transfer_ns, 400 * US);
    assert_eq!(service.source, Source::Media);
}

#[test]
fn seek_between_two_points_of_the_table_is_on_the_line() {
    // From 0 to cylinder 26: half way between 1 ms at 1 and 6 ms at 51; back from 99 to 0: the last
    // point.
    let mut drive = Drive::new(&profile(""));
    assert_eq!(read(&mut drive, 0, 26 * 200, 1).phases.seek_ns, 3_500_000);
    let full = read(&mut drive, 100 * MS, 99 * 200, 1);
    // 73 cylinders: 6 ms and 22 of 48 parts of the 3.5 ms to the last point.
    assert_eq!((full.cylinder, full.phases.seek_ns), (99, 7_604_167));
    assert_eq!(read(&mut drive, 200 * MS, 0, 1).phases.seek_ns, 9_500_000);
}

#[test]
fn seek_of_one_cylinder_comes_from_the_table() {
    let mut drive = Drive::new(&profile(""));
    assert_eq!(read(&mut drive, 0, 200, 1).phases.seek_ns, 1_000_000);
}

#[test]
fn write_settles_after_a_seek_but_not_on_the_same_track() {
    let mut drive = Drive::new(&profile(""));
    assert_eq!(serve(&mut drive, 0, Op::Write, 0, 1).phases.seek_ns, 0);
    assert_eq!(serve(&mut drive, 100 * MS, Op::Write, 200, 1).phases.seek_ns, 1_300_000);
    assert_eq!(read(&mut drive, 200 * MS, 0, 1).phases.seek_ns, 1_000_000);
}

#[test]
fn each_overhead_is_applied() {
    let mut drive = Drive::new(&profile(BUFFER));
    let mut overhead = |now_ms: u64, op, sector| serve(&mut drive, now_ms * MS, op, sector, 1).phases.overhead_ns;
    // The last sector of a read takes 10 us to the host. The data of a write arrive before the arm.
    assert_ns(overhead(0, Op::Read, 50), 210 * US);
    assert_ns(overhead(100, Op::Read, 51), 110 * US);
    // The data of a write without a seek delay it by their 10 us.
    assert_ns(overhead(200, Op::Write, 4050), 400 * US);
    assert_ns(overhead(300, Op::Write, 8050), 450 * US);
    assert_ns(overhead(400, Op::Read, 90), 110 * US);
    assert_ns(overhead(500, Op::Write, 4050), 400 * US);
    assert_ns(overhead(600, Op::Read, 12_050), 260 * US);
}

#[test]
fn skew_below_the_head_switch_loses_a_revolution() {
    // The head switch takes 0.5 ms: a skew of 5 sectors, 0.5 ms, is just enough and one of 4.9 is
    // not.
    let crossing = |skew: f64| {
        let profile = Profile::from_toml(&text(0.5, skew, ""), "skew.toml").expect("a profile");
        let alone = read(&mut Drive::new(&profile), 0, 99, 1).finish_ns;
        read(&mut Drive::new(&profile), 0, 99, 2).finish_ns - alone
    };
    assert_ns(crossing(5.0), 600 * US);
    assert_ns(crossing(4.9), 10 * MS + 590 * US);
    assert_ns(crossing(6.0), 700 * US);
}

#[test]
fn writes_need_a_skew_for_the_settling_too() {
    // Head switch and settling take 0.8 ms: a skew of 8 sectors is enough for a write and 7.9 are
    // not, but they are for a read.
    let crossing = |op: Op, skew: f64| {
        let profile = Profile::from_toml(&text(0.5, skew, ""), "skew.toml").expect("a profile");
        let alone = serve(&mut Drive::new(&profile), 0, op, 99, 1).finish_ns;
        serve(&mut Drive::new(&profile), 0, op, 99, 2).finish_ns - alone
    };
    assert_ns(crossing(Op::Write, 8.0), 900 * US);
    assert_ns(crossing(Op::Write, 7.9), 10 * MS + 890 * US);
    assert_ns(crossing(Op::Read, 7.9), 890 * US);
}

#[test]
fn read_ahead_sectors_cost_overhead_and_interface() {
    let mut drive = Drive::new(&profile(BUFFER));
    let first = read(&mut drive, 0, 10, 4);
    // 10 ms later the segment is full: sectors 10 to 73.
    let hit = read(&mut drive, first.finish_ns + 10 * MS, 14, 60);
    assert_eq!(hit.source, Source::Buffer);
    assert_ns(hit.phases.total_ns(), 100 * US + 600 * US);
    assert_ns(hit.phases.overhead_ns, 700 * US);
}

#[test]
fn partial_hit_waits_for_the_media() {
    let mut drive = Drive::new(&profile(BUFFER));
    // Sector 14 begins at 1.4 ms. A command at 2.0 ms finds 14 to 19 and needs up to 29, which have
    // passed at 3.0 ms.
    read(&mut drive, 0, 10, 4);
    let partial = read(&mut drive, 2 * MS, 14, 16);
    assert_eq!(partial.source, Source::Both);
    assert_ns(partial.finish_ns, 3010 * US);
    assert_ns(partial.phases.transfer_ns + partial.phases.rotation_ns, 900 * US);
    // Read-ahead continues meanwhile: the next command joins the stream.
    let next = read(&mut drive, partial.finish_ns, 30, 10);
    assert_ns(next.finish_ns, 4010 * US);
}

#[test]
fn read_of_sectors_that_the_read_ahead_will_reach_waits_for_it() {
    let mut drive = Drive::new(&profile(BUFFER));
    // The read ends at 1.41 ms. Sector 15 begins at 1.5 ms, before the overhead of a miss is over,
    // and passes with three more until 1.9 ms.
    let first = read(&mut drive, 0, 10, 4);
    let next = read(&mut drive, first.finish_ns, 15, 4);
    assert_ns(next.finish_ns, 1910 * US);
    assert_eq!((next.source, next.phases.seek_ns), (Source::Media, 0));
    // Read-ahead goes on from there.
    assert_ns(read(&mut drive, next.finish_ns, 19, 4).finish_ns, 2310 * US);
    // Beyond the segment, which ends at 73, the arm positions anew: sector 75 passes at 7.5 ms.
    let mut drive = Drive::new(&profile(BUFFER));
    let first = read(&mut drive, 0, 10, 4);
    assert_ns(read(&mut drive, first.finish_ns, 75, 1).finish_ns, 7610 * US);
    // A far sector of a long read-ahead is reached sooner by a seek: on cylinder 1, after 186
    // sectors and two tracks' skews, or after 1 ms and most of a revolution.
    let long = "[buffer]\nsegments = 2\nsegment_sectors = 1000\nread_ahead_until = \"segment\"\n";
    let mut drive = Drive::new(&profile(long));
    let first = read(&mut drive, 0, 10, 4);
    let away = read(&mut drive, first.finish_ns, 250, 1);
    assert_eq!(away.phases.seek_ns, MS);
}

#[test]
fn least_read_ahead_is_finished_before_the_arm_moves() {
    let mut drive = Drive::new(&profile(&format!("{BUFFER}read_ahead_min_sectors = 20\n")));
    let first = read(&mut drive, 0, 10, 4);
    // Sectors 14 to 33 have passed at 3.4 ms. The seek to cylinder 1 ends at 4.4 ms; sector 200, at
    // angle 20, begins at 12 ms.
    let away = read(&mut drive, first.finish_ns, 200, 1);
    assert_ns(away.finish_ns, 12_110 * US);
    assert_eq!(read(&mut drive, away.finish_ns, 14, 20).source, Source::Buffer);
    assert_eq!(read(&mut drive, 100 * MS, 34, 1).source, Source::Media);
    // A write waits as well.
    let mut drive = Drive::new(&profile(&format!("{BUFFER}read_ahead_min_sectors = 20\n")));
    let first = read(&mut drive, 0, 10, 4);
    serve(&mut drive, first.finish_ns, Op::Write, 10_000, 1);
    assert_eq!(read(&mut drive, 100 * MS, 14, 20).source, Source::Buffer);
}

#[test]
fn least_read_ahead_serves_several_requests_of_each_stream_a_positioning() {
    // Two streams of 8 sectors in turn: without a minimum read-ahead each read positions; with 40
    // sectors one of six does.
    let positionings = |more: &str| {
        let segments = "[buffer]\nsegments = 2\nsegment_sectors = 200\nread_ahead_until = \"segment\"\n";
        let mut drive = Drive::new(&profile(&format!("{segments}{more}")));
        let mut now_ns = 0;
        let seeks = (0..120).map(|number| {
            let sector = number % 2 * 10_000 + number / 2 * 8;
            let service = read(&mut drive, now_ns, sector, 8);
            now_ns = service.finish_ns;
            service.phases.seek_ns
        });
        seeks.filter(|seek_ns| *seek_ns > 5 * MS).count()
    };
    assert!(positionings("") > 100, "{}", positionings(""));
    assert!(positionings("read_ahead_min_sectors = 40\n") <= 20, "{}", positionings("read_ahead_min_sectors = 40\n"));
}

#[test]
fn rest_of_a_partial_hit_is_read_after_the_head_has_moved() {
    let mut drive = Drive::new(&profile(BUFFER));
    read(&mut drive, 0, 10, 4);
    // At 2.05 ms sectors 10 to 19 are buffered; then the arm moves away.
    read(&mut drive, 2050 * US, 10_000, 4);
    let rest = read(&mut drive, 100 * MS, 16, 8);
    assert_eq!(rest.source, Source::Both);
    // 50 cylinders: 1 ms for the first and 0.1 ms for each of 49 more.
    assert_eq!(rest.phases.seek_ns, 5_900_000);
    // 4 sectors from the media, 20 to 23: 16 to 19 are in the buffer.
    assert_ns(rest.phases.transfer_ns, 400 * US);
}

#[test]
fn new_command_stops_read_ahead() {
    let mut drive = Drive::new(&profile(BUFFER));
    let first = read(&mut drive, 0, 10, 4);
    // The arm moves at once: only 10 to 13, and what passed in the microseconds between, were read.
    read(&mut drive, first.finish_ns, 10_000, 4);
    let again = read(&mut drive, 100 * MS, 14, 4);
    assert_eq!(again.source, Source::Media);
    assert!(again.phases.seek_ns > 0);
}

#[test]
fn least_recently_used_segment_is_replaced() {
    let mut drive = Drive::new(&profile(BUFFER));
    for (step, sector) in [(0, 0), (1, 4000), (2, 0), (3, 8000)] {
        read(&mut drive, step * 100 * MS, sector, 4);
    }
    // Two segments: 0 was used again, so 4000 was replaced by 8000.
    assert_eq!(read(&mut drive, 400 * MS, 0, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 500 * MS, 8000, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 600 * MS, 4000, 4).source, Source::Media);
}

#[test]
fn round_robin_replaces_segments_in_turn() {
    let mut drive = Drive::new(&profile(&format!("{BUFFER}replacement = \"round-robin\"\n")));
    for (step, sector) in [(0, 0), (1, 4000), (2, 0), (3, 8000)] {
        read(&mut drive, step * 100 * MS, sector, 4);
    }
    assert_eq!(read(&mut drive, 400 * MS, 4000, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 500 * MS, 0, 4).source, Source::Media);
}

#[test]
fn segment_keeps_the_longer_part_around_written_sectors() {
    let mut drive = Drive::new(&profile(BUFFER));
    // Sectors 0 to 63 are buffered, then 50 is written: 0 to 49 stay.
    read(&mut drive, 0, 0, 4);
    serve(&mut drive, 100 * MS, Op::Write, 50, 1);
    assert_eq!(read(&mut drive, 200 * MS, 44, 6).source, Source::Buffer);
    assert_eq!(read(&mut drive, 300 * MS, 52, 4).source, Source::Media);
}

#[test]
fn written_sectors_leave_the_buffer() {
    let mut drive = Drive::new(&profile(BUFFER));
    read(&mut drive, 0, 0, 4);
    serve(&mut drive, 100 * MS, Op::Write, 2, 1);
    assert_eq!(read(&mut drive, 200 * MS, 0, 4).source, Source::Media);
}

#[test]
fn hit_keeps_a_quarter_of_a_segment_behind_it() {
    let mut drive = Drive::new(&profile(BUFFER));
    // The segment has sectors 10 to 73. After the hit, read-ahead continues to 91: 28 to 91.
    read(&mut drive, 0, 10, 4);
    assert_eq!(read(&mut drive, 100 * MS, 40, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 200 * MS, 88, 4).source, Source::Buffer);
    let mut drive = Drive::new(&profile(BUFFER));
    read(&mut drive, 0, 10, 4);
    assert_eq!(read(&mut drive, 100 * MS, 40, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 200 * MS, 30, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 300 * MS, 10, 4).source, Source::Media);
}

#[test]
fn drive_may_drop_what_the_host_has_read() {
    let mut drive = Drive::new(&profile(&format!("{BUFFER}keep_read = false\n")));
    read(&mut drive, 0, 10, 4);
    // Read-ahead refills the whole segment behind the host: 44 to 107.
    assert_eq!(read(&mut drive, 100 * MS, 40, 4).source, Source::Buffer);
    assert_eq!(read(&mut drive, 200 * MS, 100, 8).source, Source::Buffer);
    assert_eq!(read(&mut drive, 300 * MS, 100, 8).source, Source::Media);
    // A sequential read continues the empty segment after the rest of a revolution.
    let first = read(&mut drive, 400 * MS, 500, 4);
    assert_eq!(read(&mut drive, first.finish_ns, 504, 4).finish_ns - first.finish_ns, 400 * US);
}

#[test]
fn read_ahead_ends_by_its_policy() {
    let held = |until: &str, sector: u64| {
        let more = format!("[buffer]\nsegments = 2\nsegment_sectors = 1000\nread_ahead_until = \"{until}\"\n");
        let mut drive = Drive::new(&profile(&more));
        read(&mut drive, 0, 10, 4);
        read(&mut drive, 1000 * MS, sector, 1).source == Source::Buffer
    };
    // From sector 10: the track ends at 99, the next track and the cylinder at 199, the segment at
    // 1009.
    for (until, last) in [("track", 99), ("next-track", 199), ("cylinder", 199), ("segment", 1009)] {
        assert!(held(until, last), "{until}: {last} is read");
        assert!(!held(until, last + 1), "{until}: {} is not", last + 1);
    }
}

#[test]
fn read_ahead_goes_no_further_than_its_limit() {
    let more = "[buffer]\nsegments = 1\nsegment_sectors = 64\nread_ahead_sectors = 5\nread_ahead_until = \"segment\"\n";
    let mut drive = Drive::new(&profile(more));
    read(&mut drive, 0, 10, 4);
    assert_eq!(read(&mut drive, 100 * MS, 18, 1).source, Source::Buffer);
    let mut drive = Drive::new(&profile(more));
    read(&mut drive, 0, 10, 4);
    assert_eq!(read(&mut drive, 100 * MS, 19, 1).source, Source::Media);
}

#[test]
fn requests_as_large_as_a_segment_stream_too() {
    let more = "[buffer]\nsegments = 2\nsegment_sectors = 100\nread_ahead_until = \"segment\"\n";
    let mut drive = Drive::new(&profile(more));
    let mut now_ns = read(&mut drive, 0, 0, 100).finish_ns;
    for track in 1..5 {
        let next = read(&mut drive, now_ns, track * 100, 100);
        assert!(next.finish_ns - now_ns < 14 * MS, "100 sectors take 10 ms and a track's skew, not a revolution more");
        now_ns = next.finish_ns;
    }
}

#[test]
fn read_ahead_may_wait_for_a_second_sequential_read() {
    let mut drive = Drive::new(&profile(&format!("{BUFFER}read_ahead_when = \"sequential\"\n")));
    read(&mut drive, 0, 0, 4);
    assert_eq!(read(&mut drive, 100 * MS, 4, 4).source, Source::Media);
    assert_eq!(read(&mut drive, 200 * MS, 8, 4).source, Source::Buffer);
}

#[test]
fn stored_data_cross_the_interface_when_all_are_read() {
    let text = text(0.5, 6.0, "").replace("sector_ns = 10000", "sector_ns = 10000\nstore_and_forward = true");
    let mut drive = Drive::new(&Profile::from_toml(&text, "small.toml").expect("a profile"));
    // The four sectors have passed at 1.4 ms and take 10 us each from then on.
    assert_ns(read(&mut drive, 0, 10, 4).finish_ns, 1440 * US);
}

#[test]
fn separate_heads_cost_a_move_between_write_and_read() {
    let text = text(0.5, 6.0, "").replace("write_settle_ms = 0.3", "heads_apart = true");
    let mut drive = Drive::new(&Profile::from_toml(&text, "small.toml").expect("a profile"));
    // The move to the next cylinder takes 1 ms; longer moves hide it.
    assert_eq!(serve(&mut drive, 0, Op::Write, 0, 1).phases.seek_ns, MS);
    assert_eq!(serve(&mut drive, 50 * MS, Op::Write, 10, 1).phases.seek_ns, 0);
    assert_eq!(read(&mut drive, 100 * MS, 20, 1).phases.seek_ns, MS);
    assert_eq!(serve(&mut drive, 150 * MS, Op::Write, 26 * 200, 1).phases.seek_ns, 3_500_000);
}

#[test]
fn immediate_read_begins_in_the_middle_of_the_request() {
    // 50 sectors from 0; the overhead of 0.2 ms puts the head on sector 2, within them.
    let more = |immediate: bool| format!("{BUFFER}read_ahead_sectors = 0\nimmediate_read = {immediate}\n");
    let whole = |immediate| read(&mut Drive::new(&profile(&more(immediate))), 0, 0, 50).finish_ns;
    // Waiting for sector 0 takes 9.8 ms and 5 ms follow; reading at once takes one revolution.
    assert_ns(whole(false), 15_010 * US);
    assert_ns(whole(true), 10_210 * US);
}

#[test]
fn serpentine_runs_go_out_on_one_surface_and_back_on_the_next() {
    let text = text(0.5, 12.0, "").replace("mapping = \"cylinder\"", "mapping = \"serpentine\"\nrun_cylinders = 10");
    let mut drive = Drive::new(&Profile::from_toml(&text, "serpentine.toml").expect("a profile"));
    let mut cylinder = |track: u64| read(&mut drive, track * 100 * MS, track * 100, 1).cylinder;
    let tracks = [0, 1, 9, 10, 11, 19, 20, 29, 30, 39];
    assert_eq!(tracks.map(&mut cylinder), [0, 1, 9, 9, 8, 0, 10, 19, 19, 10]);
}

#[test]
fn slipped_sectors_pass_like_a_gap() {
    // 4 sectors are slipped at sector 50: the two around the gap are 0.4 ms further apart.
    let with = text(0.5, 6.0, "spare_sectors = 6\n")
        .replace("capacity_sectors = 20000", "capacity_sectors = 19990\nslips = [[50, 4]]");
    let profile = Profile::from_toml(&with, "slips.toml").expect("a profile");
    let finish = |sectors| read(&mut Drive::new(&profile), 0, 49, sectors).finish_ns;
    assert_ns(finish(2) - finish(1), 500 * US);
    let last = describe(&profile).zones[0].clone();
    assert_eq!((last.first_sector, last.sectors), (0, 19_990));
}

#[test]
fn idle_drive_verifies_written_sectors() {
    let with = text(0.5, 6.0, "").replace("write_settle_ms = 0.3", "write_settle_ms = 0.0\nidle_verify_ms = 2.0");
    let mut drive = Drive::new(&Profile::from_toml(&with, "verify.toml").expect("a profile"));
    let written = serve(&mut drive, 0, Op::Write, 0, 1).finish_ns;
    // At once: the arm comes from cylinder 0.
    let away = read(&mut drive, written, 10_200, 1);
    assert_eq!(away.phases.seek_ns, 6_000_000);
    // After a long pause the arm has returned; the seek to cylinder 1 is short.
    assert_eq!(read(&mut drive, away.finish_ns + 100 * MS, 200, 1).phases.seek_ns, 1_000_000);
}

#[test]
fn command_beyond_the_end_or_of_no_length_is_refused() {
    let mut drive = Drive::new(&profile(""));
    let mut start = |sector, sectors| drive.serve(0, Access { op: Op::Read, sector, sectors });
    let beyond = AccessError::BeyondEnd { sector: 19_999, sectors: 2, capacity_sectors: 20_000 };
    assert_eq!(start(19_999, 2), Err(beyond));
    assert_eq!(beyond.to_string(), "sectors 19999 to 19999+2 reach beyond the end: the drive has sectors 0 to 19999");
    assert!(start(u64::MAX, 1).is_err());
    assert_eq!(start(5, 0), Err(AccessError::ZeroLength { sector: 5 }));
    assert_eq!(start(5, 0).unwrap_err().to_string(), "a command of 0 sectors at sector 5: at least 1 is needed");
    assert!(start(19_999, 1).is_ok());
}

#[test]
fn null_drive_has_a_constant_service_time() {
    let text =
        "name = \"n\"\nwhat = \"\"\nsource = \"\"\n[null]\nservice_ns = 1234\ndepth = 7\ncapacity_sectors = 100\n";
    let profile = Profile::from_toml(text, "n.toml").expect("a profile");
    let mut drive = Drive::new(&profile);
    assert_eq!((drive.depth(), drive.capacity_sectors()), (7, 100));
    for sector in [0, 99, 50] {
        assert_eq!(serve(&mut drive, 10, Op::Write, sector, 1).finish_ns, 1244);
    }
    assert!(drive.serve(0, Access { op: Op::Read, sector: 99, sectors: 2 }).is_err());
    assert_eq!(Drive::new(&self::profile("")).depth(), 1);
}
