//! Every error of a profile or a recording names file, line, value and the valid values.

use hoistway_drive::fit::fit_rotation;
use hoistway_drive::recording::parse;
use hoistway_drive::replay::{ReplayError, replay};
use hoistway_drive::{Profile, ProfileError};

/// A valid small disk. Line numbers below count from its first line, `name`.
const GOOD: &str = r#"name = "small"
what = "a small disk"
source = "none"
[disk]
rpm = 6000
surfaces = 2
cylinders = 100
capacity_sectors = 20000
mapping = "cylinder"
head_switch_ms = 0.5
write_settle_ms = 0.3
[overhead]
read_miss_after_read_ms = 0.2
[interface]
sector_ns = 10000
[buffer]
segments = 2
segment_sectors = 64
read_ahead_until = "segment"
[seek]
form = "table"
points_ms = [[1, 1.0], [51, 6.0], [99, 9.5]]
[[zone]]
first_cylinder = 0
last_cylinder = 49
sectors_per_track = 100
track_skew_sectors = 6.0
[[zone]]
first_cylinder = 50
last_cylinder = 99
sectors_per_track = 100
track_skew_sectors = 6.0
"#;

const NULL: &str =
    "name = \"n\"\nwhat = \"\"\nsource = \"\"\n[null]\nservice_ns = 1\ndepth = 1\ncapacity_sectors = 1\n";

/// The error of `GOOD` with `from` replaced by `to`, as text.
#[track_caller]
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from} is in the profile");
    refused_text(&GOOD.replacen(from, to, 1))
}

#[track_caller]
fn refused_text(text: &str) -> String {
    match Profile::from_toml(text, "small.toml") {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// Asserts the error of `GOOD` with `from` replaced by `to`.
#[track_caller]
fn assert_error(from: &str, to: &str, expected: &str) {
    let error = refused(from, to);
    assert_eq!(error, expected, "for {to}");
}

#[test]
fn valid_profile_is_accepted() {
    assert!(Profile::from_toml(GOOD, "small.toml").is_ok());
    assert!(Profile::from_toml(NULL, "null.toml").is_ok());
}

#[test]
fn numbers_out_of_range_name_the_range() {
    assert_error("rpm = 6000", "rpm = 5", "small.toml:5:7: `disk.rpm` is 5: 60 to 600000");
    assert_error("rpm = 6000", "revolution_ns = 1", "small.toml:5:17: `disk.revolution_ns` is 1: 100000 to 1000000000");
    assert_error("rpm = 6000", "rpm = 1e300", "small.toml:5:7: `disk.rpm` is 1e300: 60 to 600000");
    assert_error("surfaces = 2", "surfaces = 0", "small.toml:6:12: `disk.surfaces` is 0: 1 to 255");
    assert_error("cylinders = 100", "cylinders = 0", "small.toml:7:13: `disk.cylinders` is 0: 1 to 16777216");
    assert_error(
        "head_switch_ms = 0.5",
        "head_switch_ms = nan",
        "small.toml:10:18: `disk.head_switch_ms` is NaN: 0 to 4000",
    );
    assert_error(
        "write_settle_ms = 0.3",
        "write_settle_ms = 5e9",
        "small.toml:11:19: `disk.write_settle_ms` is 5000000000: -4000 to 4000",
    );
    assert_error(
        "read_miss_after_read_ms = 0.2",
        "read_miss_after_read_ms = -0.2",
        "small.toml:13:27: `overhead.read_miss_after_read_ms` is -0.2: 0 to 4000",
    );
    assert_error(
        "sector_ns = 10000",
        "sector_ns = 2000000000",
        "small.toml:15:13: `interface.sector_ns` is 2000000000: 0 to 1000000000",
    );
    assert_error("segments = 2", "segments = 0", "small.toml:17:12: `buffer.segments` is 0: 1 to 65536");
    assert_error(
        "segment_sectors = 64",
        "segment_sectors = 0",
        "small.toml:18:19: `buffer.segment_sectors` is 0: 1 to 16777216",
    );
    assert_error(
        "segment_sectors = 64",
        "segment_sectors = 64\nread_ahead_sectors = 20000000",
        "small.toml:19:22: `buffer.read_ahead_sectors` is 20000000: 0 to 16777216",
    );
    assert_error(
        "segment_sectors = 64",
        "segment_sectors = 64\nread_ahead_min_sectors = 65",
        "small.toml:19:26: `buffer.read_ahead_min_sectors` is 65: 0 to 64",
    );
    assert_error(
        "sectors_per_track = 100",
        "sectors_per_track = 1",
        "small.toml:26:21: `zone.sectors_per_track` is 1: 2 to 65535",
    );
    assert_error(
        "track_skew_sectors = 6.0",
        "track_skew_sectors = 101",
        "small.toml:27:22: `zone.track_skew_sectors` is 101: 0 to 100",
    );
    assert_error(
        "track_skew_sectors = 6.0",
        "offset_sectors = -1",
        "small.toml:27:18: `zone.offset_sectors` is -1: 0 to 100",
    );
    assert_error(
        "track_skew_sectors = 6.0",
        "offset_revolutions = 1.0",
        "small.toml:27:22: `zone.offset_revolutions` is 1: 0 or more and below 1 revolution",
    );
    assert_error(
        "track_skew_sectors = 6.0",
        "spare_sectors_per_run = 100",
        "small.toml:27:25: `zone.spare_sectors_per_run` is 100: 0 to 99",
    );
}

#[test]
fn fractions_of_a_revolution_and_idle_times_name_the_range() {
    for key in ["phase", "track_skew", "change_skew", "group_skew"] {
        let error = refused("rpm = 6000", &format!("rpm = 6000\n{key}_revolutions = 1.5"));
        let column = key.len() + "_revolutions = ".len() + 1;
        let expected = "is 1.5: 0 or more and below 1 revolution";
        assert_eq!(error, format!("small.toml:6:{column}: `disk.{key}_revolutions` {expected}"));
    }
    assert_error(
        "rpm = 6000",
        "rpm = 6000\nidle_verify_ms = -1",
        "small.toml:6:18: `disk.idle_verify_ms` is -1: 0 to 4000",
    );
}

#[test]
fn rotation_is_given_exactly_once() {
    let both = refused("rpm = 6000", "rpm = 6000\nrevolution_ns = 1e7");
    assert_eq!(
        both,
        "small.toml:6:17: `disk.revolution_ns` is given beside `rpm`: the rotation is given once, as `rpm` or as `revolution_ns`"
    );
    let none = refused("rpm = 6000\n", "");
    assert_eq!(
        none,
        "small.toml:4:1: `disk.rpm` is missing: one of `rpm` (such as 7200) and `revolution_ns` is needed"
    );
}

#[test]
fn mapping_and_runs_belong_together() {
    let error = refused("mapping = \"cylinder\"", "mapping = \"serpentine\"");
    assert!(error.starts_with("small.toml:4:1: `disk.run_cylinders` is missing"), "{error}");
    assert_error(
        "mapping = \"cylinder\"",
        "mapping = \"cylinder\"\nrun_cylinders = 5",
        "small.toml:10:17: `disk.run_cylinders` is 5: only `mapping = \"serpentine\"` has runs",
    );
    assert_error(
        "mapping = \"cylinder\"",
        "mapping = \"serpentine\"\nrun_cylinders = 0",
        "small.toml:10:17: `disk.run_cylinders` is 0: 1 to 65535",
    );
    let error = refused("mapping = \"cylinder\"", "mapping = \"spiral\"");
    assert!(error.starts_with("small.toml:9:11: unknown variant `spiral`, expected"), "{error}");
}

#[test]
fn overlapping_zones_name_the_line_of_the_zone() {
    assert_error(
        "first_cylinder = 50",
        "first_cylinder = 49",
        "small.toml:29:18: `zone.first_cylinder` is 49: it overlaps the zone before, which ends at cylinder 49: 50 or more",
    );
}

#[test]
fn zones_are_within_the_disk() {
    assert_error(
        "last_cylinder = 99",
        "last_cylinder = 100",
        "small.toml:30:17: `zone.last_cylinder` is 100: the disk's last cylinder is 99",
    );
    assert_error(
        "last_cylinder = 99",
        "last_cylinder = 49",
        "small.toml:30:17: `zone.last_cylinder` is 49: a zone ends at its first cylinder or later: 50 or more",
    );
    let none = GOOD.split("[[zone]]").next().expect("text before the zones");
    assert_eq!(refused_text(none), "small.toml:4:1: `zone` is missing: a disk has at least one [[zone]]");
    let error = refused("track_skew_sectors = 6.0", "offset_sectors = 1\noffset_revolutions = 0.5");
    assert!(
        error.starts_with("small.toml:28:22: `zone.offset_revolutions` is given beside `offset_sectors`"),
        "{error}"
    );
}

#[test]
fn more_zones_than_any_drive_has_are_refused() {
    let head = GOOD.split("[[zone]]").next().expect("what comes before the zones");
    let zone = |number: usize| {
        format!("[[zone]]\nfirst_cylinder = {number}\nlast_cylinder = {number}\nsectors_per_track = 100\n")
    };
    let zones: String = (0..4097).map(zone).collect();
    let error = refused_text(&format!("{}{zones}", head.replace("cylinders = 100", "cylinders = 5000")));
    assert!(error.ends_with("`zone` is number 4097: at most 4096 zones"), "{error}");
}

#[test]
fn spare_cylinders_are_declared() {
    assert_error(
        "cylinders = 100",
        "cylinders = 102",
        "small.toml:7:13: `disk.spare_cylinders` is not given: 100 of 102 cylinders belong to zones: `spare_cylinders = 2`, or zones for them",
    );
    assert_error(
        "cylinders = 100",
        "cylinders = 102\nspare_cylinders = 1",
        "small.toml:8:19: `disk.spare_cylinders` is 1: 100 of 102 cylinders belong to zones: `spare_cylinders = 2`, or zones for them",
    );
    let declared = GOOD.replacen("cylinders = 100", "cylinders = 102\nspare_cylinders = 2", 1);
    assert!(Profile::from_toml(&declared, "small.toml").is_ok());
}

#[test]
fn capacity_is_that_of_the_zones() {
    assert_error(
        "capacity_sectors = 20000",
        "capacity_sectors = 20001",
        "small.toml:8:20: `disk.capacity_sectors` is 20001: the zones have 20000 sectors with an address: at most that many",
    );
    assert_error(
        "capacity_sectors = 20000",
        "capacity_sectors = 19990",
        "small.toml:8:20: `disk.capacity_sectors` is 19990: the zones have 20000 sectors with an address: that many, or 10 more declared as `spare_sectors`",
    );
    let declared = GOOD.replacen("20000", "19990", 1) + "spare_sectors = 10\n";
    assert!(Profile::from_toml(&declared, "small.toml").is_ok());
    for key in ["spare_sectors", "empty_front_sectors"] {
        let error = refused_text(&(GOOD.to_string() + key + " = 10000\n"));
        assert!(
            error.contains("is 10000: the zone has 10000 sectors: fewer than that may be spare or empty"),
            "{error}"
        );
        assert!(error.starts_with("small.toml:33:"), "{error}");
    }
}

#[test]
fn slips_rise_within_the_disk() {
    for (slips, found) in [("[[5, 1], [5, 1]]", "[5, 1]"), ("[[20000, 1]]", "[20000, 1]")] {
        let error = refused("rpm = 6000", &format!("rpm = 6000\nslips = {slips}"));
        assert!(error.contains(&format!("`disk.slips` is {found}: sectors rise and are within the disk")), "{error}");
        assert!(error.starts_with("small.toml:6:"), "{error}");
    }
}

#[test]
fn falling_seek_tables_must_be_measured() {
    let from = "points_ms = [[1, 1.0], [51, 6.0], [99, 9.5]]";
    let falling = "points_ms = [[1, 1.0], [51, 6.0], [99, 5.5]]";
    assert_error(
        from,
        falling,
        "small.toml:22:35: `seek` is 5.5 ms at distance 99: the curve falls there: at least the previous point, or `measured = true`",
    );
    let measured = GOOD.replacen(from, &format!("{falling}\nmeasured = true"), 1);
    assert!(Profile::from_toml(&measured, "small.toml").is_ok());
    // A measured table may fall, but not below 0 where it is extrapolated.
    let error = refused(from, "points_ms = [[1, 5.0], [2, 0.5]]\nmeasured = true");
    assert!(error.contains("`seek` is -4.0000 ms at distance 3: a seek takes 0 to 4000 ms"), "{error}");
}

#[test]
fn seek_points_are_in_order_and_in_range() {
    let from = "points_ms = [[1, 1.0], [51, 6.0], [99, 9.5]]";
    assert_error(
        from,
        "points_ms = [[1, 1.0], [1, 6.0]]",
        "small.toml:22:24: `seek.points_ms` is [1, 6]: distances rise from 1 on: 2 or more here",
    );
    assert_error(
        from,
        "points_ms = [[0, 1.0]]",
        "small.toml:22:14: `seek.points_ms` is [0, 1]: distances rise from 1 on: 1 or more here",
    );
    assert_error(
        from,
        "points_ms = [[1, -1.0]]",
        "small.toml:22:14: `seek.points_ms` is [1, -1]: a seek takes 0 to 4000 ms",
    );
    for none in ["", "points_ms = []"] {
        let error = refused(from, none);
        assert!(error.starts_with("small.toml:20:1: `seek.points_ms` is missing"), "{error}");
    }
}

const LEE_KATZ: &str = "form = \"lee-katz\"\nsingle_ms = 1.0\naverage_ms = 5.0\nfull_ms = 9.0\n";
const RUEMMLER: &str =
    "form = \"ruemmler-wilkes\"\nknee_cylinders = 20\na_ms = 1.0\nb_ms = 0.3\nc_ms = 2.0\ne_ms = 0.02\n";

fn with_seek(seek: &str) -> String {
    let table = "form = \"table\"\npoints_ms = [[1, 1.0], [51, 6.0], [99, 9.5]]\n";
    assert!(GOOD.contains(table));
    GOOD.replacen(table, seek, 1)
}

#[test]
fn falling_formulae_are_refused_even_if_marked_measured() {
    assert!(Profile::from_toml(&with_seek(LEE_KATZ), "small.toml").is_ok());
    assert!(Profile::from_toml(&with_seek(RUEMMLER), "small.toml").is_ok());
    // The line begins below the end of the root: 1 + 0.3 sqrt 19 = 2.31, 1 + 0.02 * 20 = 1.4.
    let falling = RUEMMLER.replace("c_ms = 2.0", "c_ms = 1.0");
    for more in ["", "measured = true\n"] {
        let error = refused_text(&with_seek(&format!("{falling}{more}")));
        let expected =
            "small.toml:20:1: `seek` is 1.4000 ms at distance 20: the curve falls there: a formula must rise";
        assert!(error.starts_with(expected), "{error}");
    }
    let error = refused_text(&with_seek(&LEE_KATZ.replace("full_ms = 9.0", "full_ms = 3.0")));
    assert!(error.contains("the curve falls there: a formula must rise with the distance"), "{error}");
}

#[test]
fn forms_of_curve_need_their_figures() {
    for (form, keys) in [
        (LEE_KATZ, ["single_ms", "average_ms", "full_ms"].as_slice()),
        (RUEMMLER, ["knee_cylinders", "a_ms", "b_ms", "c_ms", "e_ms"].as_slice()),
    ] {
        for key in keys {
            let without: String =
                form.lines().filter(|line| !line.starts_with(key)).map(|l| format!("{l}\n")).collect();
            let error = refused_text(&with_seek(&without));
            assert!(
                error.starts_with(&format!("small.toml:20:1: `seek.{key}` is missing: this form of curve")),
                "{error}"
            );
        }
    }
    let error = refused_text(&with_seek(&RUEMMLER.replace("knee_cylinders = 20", "knee_cylinders = 0")));
    assert!(error.contains("`seek.knee_cylinders` is 0: 1 to 16777216"), "{error}");
    let error = refused_text(&with_seek(&LEE_KATZ.replace("9.0", "1e6")));
    assert!(error.contains("`seek.full_ms` is 1000000: -4000 to 4000"), "{error}");
    let error = refused_text(&with_seek(""));
    assert!(error.contains("missing field `form`"), "{error}");
    let without = GOOD.replacen("[seek]", "[[no]]", 1);
    assert!(refused_text(&without).contains("unknown field `no`"));
}

#[test]
fn profile_has_one_kind_of_drive() {
    let both = GOOD.to_string() + "[null]\nservice_ns = 1\ndepth = 1\ncapacity_sectors = 1\n";
    let error = refused_text(&both);
    assert!(
        error.ends_with(
            "`null` is given beside `disk`: a profile has one of the tables [disk], [flash], [cloud], [array] and [null]"
        ),
        "{error}"
    );
    let none = refused_text("name = \"x\"\nwhat = \"\"\nsource = \"\"\n");
    assert_eq!(
        none,
        "small.toml:1:8: `disk` is missing: a profile has one of the tables [disk], [flash], [cloud], [array] and [null]"
    );
    let unnamed = refused("name = \"small\"", "name = \"\"");
    assert_eq!(unnamed, "small.toml:1:8: `name` is empty: a name of at least one letter");
    let no_seek: String = GOOD
        .lines()
        .filter(|l| !["[seek]", "form = \"table\""].contains(l) && !l.starts_with("points"))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(refused_text(&no_seek), "small.toml:4:1: `seek` is missing: a disk has a table [seek]");
}

#[test]
fn null_devices_have_ranges_too() {
    for (from, to, expected) in [
        ("depth = 1", "depth = 0", "small.toml:6:9: `null.depth` is 0: 1 to 65536"),
        (
            "service_ns = 1",
            "service_ns = 2000000000000",
            "small.toml:5:14: `null.service_ns` is 2000000000000: 0 to 1000000000000",
        ),
        (
            "capacity_sectors = 1",
            "capacity_sectors = 0",
            "small.toml:7:20: `null.capacity_sectors` is 0: 1 to 36028797018963968",
        ),
    ] {
        assert_eq!(refused_text(&NULL.replacen(from, to, 1)), expected);
    }
}

#[test]
fn flash_drives_have_ranges_too() {
    let good = include_str!("../../profiles/ssd-fiops.toml");
    let us = "0 to 1000000";
    for (from, to, expected) in [
        ("depth = 31", "depth = 0", "20:9: `flash.depth` is 0: 1 to 65536".to_string()),
        ("channels = 10", "channels = 0", "24:12: `flash.channels` is 0: 1 to 1024".to_string()),
        ("dies = 20", "dies = 0", "26:8: `flash.dies` is 0: 1 to 4096".to_string()),
        ("dies = 20", "dies = 25", "26:8: `flash.dies` is 25: a multiple of the 10 channels".to_string()),
        ("dies = 20", "dies = 20\nplanes = 0", "27:10: `flash.planes` is 0: 1 to 16".to_string()),
        ("page_read_us = [65.0]", "page_read_us = [65.0, -1.0]", format!("30:23: `flash.page_read_us` is -1: {us}")),
        (
            "page_read_us = [65.0]",
            "page_read_us = []",
            "30:16: `flash.page_read_us` is 0 times: 1 to 64 times, one for each kind of page, such as [75.0]"
                .to_string(),
        ),
        ("erase_us = 2000.0", "erase_us = nan", format!("32:12: `flash.erase_us` is NaN: {us}")),
        ("link_mb_s = 250.0", "link_mb_s = 0", "`flash.link_mb_s` is 0: 0.1 to 1000000".to_string()),
        (
            "dies = 20",
            "dies = 20\nwordline_pages = 3",
            "`flash.pages_per_block` is 128: a multiple of the 3 pages programmed together".to_string(),
        ),
        ("page_bytes = 4096", "page_bytes = 4096\nplanes = 4", "`flash.capacity_sectors` is 156301488".to_string()),
    ] {
        if from == "page_bytes = 4096" {
            continue;
        }
        let error = refused_text(&good.replacen(from, to, 1));
        assert!(error.ends_with(&expected), "{error}");
    }
    for bytes in ["2048", "4000", "12288", "2097152"] {
        let error = refused_text(&good.replacen("page_bytes = 4096", &format!("page_bytes = {bytes}"), 1));
        let expected = format!("29:14: `flash.page_bytes` is {bytes}: a power of two, 4096 to 1048576");
        assert!(error.ends_with(&expected), "{error}");
    }
    for factor in ["0", "-0.1", "0.95", "nan"] {
        let error = refused_text(&good.replacen("spare_factor = 0.074", &format!("spare_factor = {factor}"), 1));
        assert!(error.contains(":33:16: `flash.spare_factor` is "), "{error}");
        assert!(error.ends_with("more than 0 and at most 0.9: the part of the flash beyond the capacity"), "{error}");
    }
    let both = good.to_string() + "[null]\nservice_ns = 1\ndepth = 1\ncapacity_sectors = 1\n";
    assert!(refused_text(&both).contains("`null` is given beside `flash`"));
}

#[test]
fn flash_that_cannot_hold_its_capacity_or_collect_its_garbage_is_refused() {
    let good = include_str!("../../profiles/ssd-fiops.toml");
    let refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} is in the profile");
        refused_text(&good.replacen(from, to, 1))
    };
    // 8000 blocks minus 4 of the reserve, of 20 dies and 128 units, 92.6 % of them, 8 sectors each.
    // 19,537,686 units need 19,537,686 / 0.926 / 2560 = 8241.9 blocks and the reserve.
    let small = refused("blocks_per_plane = 8256", "blocks_per_plane = 8000");
    let expected = "21:20: `flash.capacity_sectors` is 156301488: at most 151639976, which 8000 blocks a plane hold besides the \
                    spare factor; or 8246 blocks a plane";
    assert!(small.ends_with(expected), "{small}");
    let order = refused("buffer_kib = 256", "gc_start_blocks = 2\ngc_hard_blocks = 2\nbuffer_kib = 256");
    let expected = "35:19: `flash.gc_start_blocks` is 2: garbage collection starts at more free blocks than the 2 at which the host waits";
    assert!(order.ends_with(expected), "{order}");
    let hard = refused("buffer_kib = 256", "gc_hard_blocks = 0\nbuffer_kib = 256");
    assert!(hard.ends_with("35:18: `flash.gc_hard_blocks` is 0: 1 to 1024"), "{hard}");
    let slice = refused("buffer_kib = 256", "slice_blocks = 9000\nbuffer_kib = 256");
    assert!(
        slice.ends_with("`flash.slice_blocks` is 9000: at most 8242, all blocks with data, or no value"),
        "{slice}"
    );
    let large = good.replacen("capacity_sectors = 156301488", "capacity_sectors = 1563014880", 1);
    let large = refused_text(&large.replacen("blocks_per_plane = 8256", "blocks_per_plane = 90000", 1));
    assert!(
        large.contains("more than 134217728 units of 4 KiB to simulate: `slice_blocks = 52424` or less"),
        "{large}"
    );
    let nvme = include_str!("../../profiles/ssd-nvme-tlc.toml");
    let buffer = refused_text(&nvme.replacen("buffer_kib = 65536", "buffer_kib = 12", 1));
    assert!(
        buffer.ends_with("`flash.buffer_kib` is 12: 0, or at least the 16 KiB that a die programs together"),
        "{buffer}"
    );
    let strewn = nvme.replacen("spare_factor = 0.1267", "spare_factor = 0.0001", 1).replacen("= 512\n", "= 4\n", 1);
    let strewn = refused_text(&strewn.replacen("blocks_per_plane = 4160", "blocks_per_plane = 800000", 1));
    assert!(strewn.contains("`flash.spare_factor` is 0.0001: too little: "), "{strewn}");
}

#[test]
fn text_that_is_not_a_profile_names_line_and_column() {
    let syntax = refused("rpm = 6000", "rpm = = 6000");
    assert!(syntax.starts_with("small.toml:5:7: "), "{syntax}");
    let unknown = refused("rpm = 6000", "rpn = 6000");
    assert!(unknown.starts_with("small.toml:5:1: unknown field `rpn`, expected one of `rpm`"), "{unknown}");
    let kind = refused("surfaces = 2", "surfaces = \"two\"");
    assert!(kind.starts_with("small.toml:6:12: invalid type: string \"two\", expected u32"), "{kind}");
    let negative = refused("cylinders = 100", "cylinders = -1");
    assert!(negative.starts_with("small.toml:7:13: invalid value: integer `-1`, expected u32"), "{negative}");
    let missing = refused("surfaces = 2\n", "");
    assert!(missing.starts_with("small.toml:4:1: missing field `surfaces`"), "{missing}");
}

#[test]
fn file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent.toml");
    let error = Profile::load(&path).expect_err("it is not there");
    assert!(matches!(error, ProfileError::Read { .. }));
    assert!(error.to_string().starts_with(&format!("{}: cannot read the profile: ", path.display())), "{error}");
    std::fs::write(&path, GOOD.replacen("rpm = 6000", "rpm = 1", 1)).expect("written");
    let error = Profile::load(&path).expect_err("its rpm is 1").to_string();
    assert_eq!(error, format!("{}:5:7: `disk.rpm` is 1: 60 to 600000", path.display()));
    std::fs::write(&path, GOOD).expect("written");
    assert_eq!(Profile::load(&path).expect("a profile").name(), "small");
    assert!(Profile::builtin("no such drive").is_none());
}

#[test]
fn recordings_name_line_and_field() {
    let good = "R Hit 5 8 4067.0 9.0\n\nW Miss 6 8 1 2\n";
    let records = parse(good, "t").expect("a recording");
    assert_eq!((records[0].service_ns, records[1].issue_ns), (4_067_000, 4_076_000));
    for (from, to, expected) in [
        ("W", "X", "t:3: field 1 is `X`: R or W"),
        ("Miss", "Maybe", "t:3: field 2 is `Maybe`: Hit or Miss"),
        ("6 8 1 2", "-6 8 1 2", "t:3: field 3 is `-6`: a sector number"),
        ("6 8 1 2", "6 0 1 2", "t:3: field 4 is `0`: a number of sectors, at least 1"),
        ("6 8 1 2", "6 8 inf 2", "t:3: field 5 is `inf`: a time in microseconds, 0 to 86400000000"),
        ("6 8 1 2", "6 8 1", "t:3: field 6 is ``: a time in microseconds, 0 to 86400000000"),
        ("6 8 1 2", "6 8 1 2 3", "t:3: field 7 is `3`: the end of the line after six fields"),
    ] {
        assert_eq!(parse(&good.replacen(from, to, 1), "t").expect_err(to).to_string(), expected);
    }
}

#[test]
fn errors_of_a_fit_name_the_reason() {
    let disk = Profile::from_toml(GOOD, "small.toml").expect("a profile");
    let null = Profile::from_toml(NULL, "null.toml").expect("a profile");
    let short = parse("R Hit 5 8 4067.0 9.0\n", "t").expect("a recording");
    assert_eq!(fit_rotation(&disk, &short), Err(ReplayError::TooShort { found: 1 }));
    assert_eq!(
        fit_rotation(&disk, &short).unwrap_err().to_string(),
        "the recording has 1 requests: at least 100 are needed"
    );
    assert_eq!(fit_rotation(&null, &short), Err(ReplayError::NoPlatter { name: "n".to_string() }));
    let beyond = parse("R Hit 5 8 4067.0 9.0\nR Hit 20000 8 1 1\n", "t").expect("a recording");
    let error = replay(&disk, &beyond).expect_err("the second is beyond the end").to_string();
    assert!(error.starts_with("request 1 of the recording: sectors 20000 to 20000+8 reach beyond the end"), "{error}");
}

/// The error of `GOOD` with a table `[queue]` at its end, which begins on line 33.
#[track_caller]
fn refused_queue(queue: &str) -> String {
    refused_text(&format!("{GOOD}[queue]\n{queue}"))
}

#[test]
fn queue_depth_has_a_range() {
    for (depth, found) in [("0", "0"), ("257", "257")] {
        let expected = format!("small.toml:34:9: `queue.depth` is {found}: 1 to 256");
        assert_eq!(refused_queue(&format!("depth = {depth}\npolicy = \"satf\"\n")), expected);
    }
}

#[test]
fn window_wider_than_the_queue() {
    let expected = "small.toml:36:10: `queue.window` is 33: 1 to 32";
    assert_eq!(refused_queue("depth = 32\npolicy = \"satf\"\nwindow = 33\n"), expected);
}

#[test]
fn negative_ageing_is_refused() {
    let expected = "small.toml:36:14: `queue.age_weight` is -0.1: 0 to 1000";
    assert_eq!(refused_queue("depth = 32\npolicy = \"satf\"\nage_weight = -0.1\n"), expected);
    let expected = "small.toml:36:15: `queue.max_wait_ms` is -1: 0 to 4000";
    assert_eq!(refused_queue("depth = 32\npolicy = \"satf\"\nmax_wait_ms = -1.0\n"), expected);
}

#[test]
fn fifo_queue_has_no_keys_of_satf() {
    let expected = "small.toml:36:10: `queue.window` is 4: only `policy = \"satf\"` reorders commands";
    assert_eq!(refused_queue("depth = 32\npolicy = \"fifo\"\nwindow = 4\n"), expected);
}

#[test]
fn base_is_a_disk_with_its_own_mechanics() {
    let based = |rest: &str| refused_text(&format!("name = \"n\"\nwhat = \"\"\nsource = \"\"\n{rest}"));
    let expected = "small.toml:4:8: `base` is ssd-fiops: the name of a built-in disk, such as \"sata-7200-2006\"";
    assert_eq!(based("base = \"ssd-fiops\"\n"), expected);
    let expected =
        "small.toml:5:1: `null` is given beside `base`: the base's own mechanics; leave the table or `base` out";
    let null = "[null]\nservice_ns = 1\ndepth = 1\ncapacity_sectors = 1\n";
    assert_eq!(based(&format!("base = \"cmr-8tb\"\n{null}")), expected);
}

#[test]
fn write_cache_has_one_size_and_its_marks_in_order() {
    let with =
        |keys: &str| refused("read_ahead_until = \"segment\"", &format!("read_ahead_until = \"segment\"\n{keys}"));
    assert_eq!(
        with("write_segments = 1\nwrite_sectors = 64"),
        "small.toml:21:17: `buffer.write_sectors` is given beside `write_segments`: \
         the size is given once, as `write_segments` or as `write_sectors`"
    );
    assert_eq!(with("write_segments = 0"), "small.toml:20:18: `buffer.write_segments` is 0: 1 to 65536");
    assert_eq!(with("write_high = 1.5"), "small.toml:20:14: `buffer.write_high` is 1.5: 0 to 1");
    assert_eq!(
        with("write_high = 0.5\nwrite_low = 0.6"),
        "small.toml:21:13: `buffer.write_low` is 0.6: write-back ends at or below its start level: at most `write_high`, 0.5"
    );
    assert_eq!(with("write_idle_ms = -1"), "small.toml:20:17: `buffer.write_idle_ms` is -1: 0 to 4000");
}

#[test]
fn only_disks_have_faults_and_queue() {
    for key in ["faults", "queue"] {
        let table = if key == "faults" { "[faults]\nretries = 1\n" } else { "[queue]\ndepth = 1\npolicy = \"fifo\"\n" };
        let expected =
            format!("small.toml:8:1: `{key}` is given: only disks, with a table [disk] or a `base`, have this table");
        assert_eq!(refused_text(&format!("{NULL}{table}")), expected);
    }
}

#[test]
fn impossible_faults_are_refused_with_the_line() {
    let with = |faults: &str| refused_text(&format!("{GOOD}[faults]\n{faults}\n"));
    assert_eq!(
        with("bad_sectors = [[1, 2], [19999, 2]]"),
        "small.toml:34:24: `faults.bad_sectors` is [19999, 2]: \
         a first sector and how many, at least 1, within sectors 0 to 19999"
    );
    assert_eq!(with("bad_share = 1.5"), "small.toml:34:13: `faults.bad_share` is 1.5: 0 to 1");
    assert_eq!(
        with("hangs = [{ at_ms = 5 }]"),
        "small.toml:34:10: `faults.hangs` is without a duration at 5 ms: \
         a hang has a duration: `for_ms = 2000`, or `for_ms = inf` for ever"
    );
    assert_eq!(
        with("hangs = [{ at_ms = 5, for_ms = -1 }]"),
        "small.toml:34:10: `faults.hangs` is -1 ms from 5 ms on: a hang lasts more than 0 ms; `inf` is for ever"
    );
}
