//! Probes measure the parameters of the profiles from outside.

use hoistway_drive::probe::{Findings, Probe, ProbeError, probe};
use hoistway_drive::{Description, Drive, Faults, Hang, Profile, describe};

fn profile(name: &str) -> Profile {
    Profile::builtin(name).unwrap_or_else(|| panic!("{name} is built in"))
}

fn probed(name: &str, which: &[Probe]) -> (Findings, Description) {
    let profile = profile(name);
    let found = probe(&Drive::new(&profile), which).unwrap_or_else(|error| panic!("{name}: {error}"));
    (found, describe(&profile))
}

fn assert_near(what: &str, found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() <= part, "{what}: {found}, expected {expected}");
}

#[test]
fn revolution_is_found_within_a_thousandth() {
    for name in Profile::names().filter(|name| profile(name).is_disk()) {
        let (found, description) = probed(name, &[Probe::Rotation]);
        let rotation = found.rotation.unwrap_or_else(|| panic!("{name} turns"));
        assert_near(name, rotation.revolution_ns / 1e6, description.revolution_ms, 0.001);
        assert_eq!(rotation.first_track_sectors, description.zones[0].sectors_per_track, "{name}");
    }
}

#[test]
fn drive_without_rotation_has_no_revolution_and_no_seek() {
    for name in ["null", "ssd-fiops", "cloud-gp2", "array-8x15k"] {
        let (found, _) = probed(name, &[Probe::Rotation, Probe::Seek]);
        assert_eq!((found.rotation, found.seek), (None, None), "{name}");
        assert!(found.notes.iter().any(|note| note.contains("does not rotate")), "{name}: {:?}", found.notes);
    }
}

#[test]
fn measured_seeks_equal_the_profile() {
    // Without wd_4tb_7200: its seek table, in tenths of a millisecond, has steps that look like
    // surfaces.
    for name in ["sata-7200-2006", "scsi-15k-73", "slide-7200", "cheetah15k5_146", "dec_rz26", "sas-15k-450"] {
        let (found, description) = probed(name, &[Probe::Seek]);
        let seek = found.seek.unwrap_or_else(|| panic!("{name} seeks"));
        // Two measurements, each accurate to 1/4096 of a revolution. A write on the home track
        // waits for the data of its first sector; they arrive during a seek.
        let sector_ns = description.interface_mb_s.map_or(0.0, |mb_s| 512_000.0 / mb_s);
        let grain_ns = description.revolution_ms * 1e6 / 512.0 + sector_ns;
        let near = |what: &str, found_ns: u64, expected_ms: f64, more_ns: f64| {
            let off_ns = (found_ns as f64 - expected_ms * 1e6).abs();
            assert!(off_ns <= grain_ns + more_ns, "{name}: {what} {found_ns} ns, expected {expected_ms} ms");
        };
        let settle_ms = description.write_settle_ms;
        near("to the next cylinder", seek.single_ns, description.single_seek_ms + settle_ms, 0.0);
        // The last cylinders are spare in some drives: 0.5 % of the longest seek do not reach them.
        let full_ms = description.full_seek_ms;
        near("across all", seek.full_ns, full_ms + settle_ms, full_ms * 1e6 * 0.005);
        if let Some(surfaces) = seek.surfaces {
            assert_eq!(surfaces, description.surfaces, "{name}");
            near(
                "to the next surface",
                seek.head_switch_ns.expect("with surfaces"),
                description.head_switch_ms + settle_ms,
                0.0,
            );
        }
        assert!(seek.curve.windows(2).all(|pair| pair[0].distance_sectors < pair[1].distance_sectors), "{name}");
    }
}

#[test]
fn zones_are_found_with_their_rates() {
    for name in ["sata-7200-2006", "scsi-15k-73", "slide-7200", "atlas10k"] {
        let (found, description) = probed(name, &[Probe::Zones]);
        let points = found.zones.expect("points");
        assert_eq!(points.len(), 64);
        let mut inside = 0;
        for point in &points {
            let zone = description.zones.iter().rfind(|zone| zone.first_sector <= point.sector).expect("a zone");
            // A measurement near the end of a zone includes a part of the next one.
            if point.sector + 384 * 256 <= zone.first_sector + zone.sectors {
                let rate = zone.sustained_mb_s.min(description.interface_mb_s.unwrap_or(f64::INFINITY));
                assert_near(&format!("{name} at {}", point.sector), point.mb_s, rate, 0.01);
                inside += 1;
            }
        }
        assert!(inside > 30, "{name}: only {inside} positions are within one zone");
    }
}

#[test]
fn operations_a_second_never_fall_as_depth_grows() {
    for (name, most) in [("ssd-fiops", 40_000.0), ("cloud-gp3", 3000.0), ("null", 6_400_000.0)] {
        let (found, description) = probed(name, &[Probe::Depth]);
        let points = found.depth.expect("points");
        assert_eq!(points.last().map(|point| point.depth), Some(description.depth));
        assert_near(&format!("{name}, one at a time"), points[0].iops, description.random_read_4k_iops, 0.05);
        assert!(points.windows(2).all(|pair| pair[1].iops >= pair[0].iops * 0.995), "{name}: {points:?}");
        assert_near(&format!("{name}, as many as it takes"), points.last().expect("points").iops, most, 0.03);
        for point in &points {
            // Little's law, J. Little, Operations Research 9(3), 1961.
            assert_near("under way", point.iops * point.mean_ns / 1e9, f64::from(point.depth), 0.03);
            assert!(point.p99_ns as f64 >= point.mean_ns * 0.999);
        }
    }
}

#[test]
fn rate_of_an_array_grows_with_the_queue_depth() {
    let (found, _) = probed("array-8x15k", &[Probe::Depth]);
    let points = found.depth.expect("points");
    let gain = points.last().expect("points").iops / points[0].iops;
    assert!((6.0..=8.1).contains(&gain), "{gain} times one at a time, on eight members");
}

#[test]
fn memory_is_found_with_its_size() {
    let (found, description) = probed("sata-7200-2006", &[Probe::Cache]);
    let cache = found.cache.expect("a probe");
    let buffer = description.buffer.expect("a buffer");
    assert_eq!(cache.ahead_bytes, Some(u64::from(buffer.segment_sectors) * 512), "a segment is read ahead");
    // While a span is reread, read-ahead continues and uses its space: the model keeps half a
    // segment.
    assert!(cache.read_bytes.expect("remembered") >= u64::from(buffer.segment_sectors) * 256, "{cache:?}");
    assert_eq!(cache.segments, Some(buffer.segments));
    assert_eq!(cache.write_bytes, None, "its write cache is off");
    let (found, _) = probed("ssd-fiops", &[Probe::Cache]);
    let cache = found.cache.expect("a probe");
    assert_eq!((cache.read_bytes, cache.ahead_bytes, cache.segments), (None, None, None));
}

#[test]
fn write_cache_of_an_array_is_found_with_its_size() {
    let text = include_str!("../../profiles/array-8x15k.toml").replace("battery = true", "battery = false");
    let text = text.replace("sectors = 262144", "sectors = 16384");
    let drive = Drive::new(&Profile::from_toml(&text, "a.toml").expect("a profile"));
    let cache = probe(&drive, &[Probe::Cache]).expect("probed").cache.expect("a probe");
    let bytes = cache.write_bytes.expect("a write cache") as f64;
    // 8 MiB, and the write-back of eight members during the burst.
    assert!((8e6..12e6).contains(&bytes), "{bytes}");
}

#[test]
fn sizes_of_flash_end_at_the_link() {
    let (found, _) = probed("ssd-fiops", &[Probe::Sizes]);
    let sizes = found.sizes.expect("points");
    assert_eq!((sizes[0].bytes, sizes.last().expect("points").bytes), (4096, 1 << 20));
    assert!(sizes.windows(2).all(|pair| pair[1].read_mb_s >= pair[0].read_mb_s * 0.99), "{sizes:?}");
    let last = sizes.last().expect("points");
    assert_near("reads of 1 MiB in MB/s", last.read_mb_s, 250.0, 0.03);
    // 20 dies that program 4 KiB in 1 ms. The write buffer completes a small write before a page
    // could be read.
    assert_near("writes of 1 MiB in MB/s", last.write_mb_s, 82.0, 0.03);
    assert!(sizes[0].write_ns < sizes[0].read_ns, "{:?}", sizes[0]);
}

#[test]
fn too_small_a_drive_is_refused_by_name() {
    let text =
        "name = \"n\"\nwhat = \"\"\nsource = \"\"\n[null]\nservice_ns = 1000\ndepth = 4\ncapacity_sectors = 100\n";
    let drive = Drive::new(&Profile::from_toml(text, "n.toml").expect("a profile"));
    let error = probe(&drive, &[Probe::Zones]).expect_err("too small");
    assert_eq!(error, ProbeError::TooSmall { probe: "zones", capacity_sectors: 100, needed: 32_768 });
    assert_eq!(error.to_string(), "zones: the drive has 100 sectors: at least 32768 are needed");
}

fn with_faults(faults: Faults) -> Drive {
    Drive::new(&profile("slide-7200").with_faults(faults).expect("a disk"))
}

#[test]
fn bad_sectors_are_reported_and_the_rest_is_probed() {
    let bad = Faults { bad_sectors: vec![(0, 3)], bad_share: 0.001, spare_sectors: 0, ..Faults::default() };
    let found = probe(&with_faults(bad), &[Probe::Rotation, Probe::Seek, Probe::Zones, Probe::Depth]).expect("probed");
    let rotation = found.rotation.expect("it turns all the same");
    assert_near("a revolution", rotation.revolution_ns, 60e9 / 7200.0, 0.001);
    assert_eq!(found.failed_sectors[..3], [0, 1, 2], "the first that can be written is the fourth");
    assert!(found.failures >= found.failed_sectors.len() as u64);
    assert!(found.seek.is_some_and(|seek| !seek.curve.is_empty()));
    assert_eq!(found.zones.map(|zones| zones.len()), Some(64));
}

#[test]
fn drive_that_is_bad_throughout_ends_the_probe_with_an_error() {
    let bad = || Faults { bad_share: 1.0, spare_sectors: 0, ..Faults::default() };
    let found = probe(&with_faults(bad()), &[Probe::Rotation]).expect("too few tries to judge by");
    assert_eq!(found.rotation, None);
    assert!(found.notes[0].contains("none of the sectors 0 to 99 can be written"), "{:?}", found.notes);
    for which in [Probe::Zones, Probe::Depth, Probe::Sizes, Probe::Overwrite] {
        match probe(&with_faults(bad()), &[which]) {
            Err(ProbeError::Damaged { probe, failures, .. }) => {
                assert_eq!(probe, which.name());
                assert!(failures > 200);
            }
            other => panic!("{}: {other:?}", which.name()),
        }
    }
}

#[test]
fn probe_of_a_drive_that_remaps_all_writes_stays_within_the_drive() {
    // Each write of a bad sector remaps it, so that angles are meaningless and a track seems to
    // have a few sectors.
    let profile = Profile::builtin("cmr-8tb").expect("built in");
    let bad = Faults { bad_share: 1.0, ..Faults::default() };
    let drive = Drive::new(&profile.with_faults(bad).expect("faults that can be"));
    let found = probe(&drive, &[Probe::Seek]).expect("writes succeed");
    assert_eq!(found.failures, 0);
    assert!(found.seek.is_some_and(|seek| !seek.curve.is_empty()));
}

#[test]
fn endless_hang_ends_the_probe_and_a_short_one_does_not() {
    let hang = |for_ms| Faults { hangs: vec![Hang { at_ms: 500.0, for_ms }], ..Faults::default() };
    for which in Probe::ALL {
        match probe(&with_faults(hang(f64::INFINITY)), &[*which]) {
            Err(error @ ProbeError::Silent { .. }) => {
                assert!(error.to_string().contains("never completed a command"), "{error}");
            }
            other => panic!("{}: {other:?}", which.name()),
        }
    }
    let found = probe(&with_faults(hang(30_000.0)), &[Probe::Depth]).expect("it returns");
    assert!(found.depth.is_some_and(|points| points[0].iops > 1.0));
}

#[test]
fn disk_of_two_sectors_a_track_is_probed_up_to_its_beginning() {
    let text = "name = \"small\"\nwhat = \"\"\nsource = \"\"\n[disk]\nrpm = 7200\nsurfaces = 1\ncylinders = 100\n\
                capacity_sectors = 200\nmapping = \"cylinder\"\nhead_switch_ms = 0\n[seek]\nform = \"table\"\npoints_ms = [[1, 1.0]]\n\
                [[zone]]\nfirst_cylinder = 0\nlast_cylinder = 99\nsectors_per_track = 2\n";
    let drive = Drive::new(&Profile::from_toml(text, "small.toml").expect("a profile"));
    let found = probe(&drive, &[Probe::Rotation, Probe::Seek]).expect("probed");
    assert_near("a revolution", found.rotation.expect("it turns").revolution_ns, 60e9 / 7200.0, 0.001);
}

#[test]
fn remapped_sectors_keep_the_probe_within_the_drive() {
    let bad = Faults { bad_share: 1.0, ..Faults::default() };
    let base = profile("sata-7200-2006");
    let drive = Drive::new(&base.with_faults(bad).expect("a disk"));
    match probe(&drive, &[Probe::Rotation, Probe::Seek]) {
        Ok(_) | Err(ProbeError::Damaged { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}
