//! Every built-in profile loads and has the figures of its sources.

use hoistway_drive::{Description, Drive, Faults, Hang, Profile, describe};

fn described(name: &str) -> Description {
    describe(&Profile::builtin(name).unwrap_or_else(|| panic!("{name} is built in")))
}

#[test]
fn every_builtin_profile_loads() {
    let mut count = 0;
    for name in Profile::names() {
        let path = format!("{}/profiles/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let profile = Profile::load(path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name(), name);
        assert_eq!(Profile::builtin(name), Some(profile.clone()));
        let description = describe(&profile);
        assert_eq!(Drive::new(&profile).capacity_sectors(), description.capacity_sectors);
        assert_eq!(Drive::new(&profile).depth(), description.depth);
        assert!(!description.what.is_empty() && !description.source.is_empty(), "{name} says what it is");
        count += 1;
    }
    assert_eq!(
        count,
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles"))
            .expect("a folder")
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "toml"))
            .count()
    );
}

#[test]
fn mean_seeks_are_those_of_the_published_tables() {
    // Over pairs of uniform cylinders and of uniform sectors, in ms.
    for (name, cylinders_ms, sectors_ms) in [
        ("hp_c3323a", 9.52, 9.38),
        ("dec_rz26", 10.49, 10.49),
        ("st41601n", 11.14, 11.06),
        ("hp_c2490a", 9.19, 9.13),
        ("barracuda_st32171w", 9.33, 9.20),
        ("atlas_III", 8.31, 8.23),
        ("ibm18es", 7.20, 7.17),
        ("cheetah4LP", 7.96, 7.89),
        ("cheetah9LP", 5.47, 5.43),
        ("atlas10k", 5.60, 5.55),
        ("maxtor_atlas10kV_300", 4.84, 4.78),
        ("cheetah15k5_146", 3.80, 3.76),
        ("wd_4tb_7200", 7.44, 7.32),
        ("slide-5400", 14.0, 14.0),
        ("slide-7200", 9.0, 9.0),
        ("slide-15000", 4.0, 4.0),
    ] {
        let description = described(name);
        let (cylinders, sectors) = (description.mean_seek_cylinders_ms, description.mean_seek_sectors_ms);
        // The published means are of the tables as measured. Without falling points the Atlas 10K's
        // and the IBM 18ES's, which have single points wrong by milliseconds, change by 1.2 % and 1
        // %; the others' change is negligible.
        let within = if matches!(name, "atlas10k" | "ibm18es") { 0.013 * cylinders_ms } else { 0.011 };
        assert!((cylinders - cylinders_ms).abs() < within, "{name}: {cylinders} over cylinders");
        assert!((sectors - sectors_ms).abs() < within, "{name}: {sectors} over sectors");
    }
}

#[test]
fn desktop_drive_of_2006_is_described_by_its_inputs() {
    let description = described("sata-7200-2006");
    assert!((description.sequential_outer_mb_s - 63.5).abs() < 0.01, "{}", description.sequential_outer_mb_s);
    let ratio = description.sequential_inner_mb_s / description.sequential_outer_mb_s;
    assert!((ratio - 0.55).abs() < 0.001, "{ratio}");
    assert_eq!(description.zones.len(), 16);
    assert_eq!((description.rpm, description.surfaces, description.depth), (Some(7200.0), 4, 1));
    assert_eq!(description.capacity_sectors, 390_721_968);
    assert!(description.inputs.iter().any(|input| input.starts_with("63.5 MB/s")), "inputs are marked");
    let buffer = description.buffer.expect("a buffer");
    assert_eq!(buffer.segments * buffer.segment_sectors * 512, 8 << 20);
    assert!(buffer.enabled && buffer.write_cache_sectors.is_none());
    assert!(description.warnings.is_empty(), "{:?}", description.warnings);
}

#[test]
fn server_drive_has_the_rates_of_its_input() {
    let description = described("scsi-15k-73");
    assert!((description.sequential_outer_mb_s - 78.0).abs() < 0.1, "{}", description.sequential_outer_mb_s);
    assert!((description.sequential_inner_mb_s - 51.4).abs() < 0.1, "{}", description.sequential_inner_mb_s);
}

#[test]
fn descriptions_warn_of_unusual_figures() {
    let warned = |name: &str, words: &str| described(name).warnings.iter().any(|warning| warning.contains(words));
    assert!(warned("atlas10k", "the seek table ends at distance 10021"));
    assert!(warned("wd_4tb_7200", "the seek table extends to distance 353181"));
    assert!(warned("cheetah9LP", "the interface, 4.9 MB/s, is slower than the media"));
    for name in Profile::names() {
        assert!(!warned(name, "the seek table falls"), "{name}");
    }
}

#[test]
fn skew_shorter_than_its_switch_is_warned_of() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/scsi-15k-73.toml")).expect("read");
    assert!(described("scsi-15k-73").warnings.is_empty());
    // 0.3 ms of 4 are 0.075 revolutions.
    let text = text.replace("track_skew_revolutions = 0.123", "track_skew_revolutions = 0.07");
    let warnings = describe(&Profile::from_toml(&text, "short.toml").expect("a profile")).warnings;
    let expected = "a skew is shorter than its switch in 14 zones (0 to 13): each crossing loses a revolution";
    assert_eq!(warnings, [expected]);
}

#[test]
fn null_device_is_described_too() {
    let description = described("null");
    assert_eq!((description.rpm, description.depth, description.buffer), (None, 64, None));
    assert!((description.random_read_4k_ms - 0.01).abs() < 1e-12);
    assert!((description.random_read_4k_iops - 100_000.0).abs() < 1e-6);
}

#[test]
fn drives_made_from_data_sheets_have_their_figures() {
    // Capacity in GB (10^9 bytes), sustained MB/s on the outermost tracks, seek of one cylinder,
    // mean seek over cylinders, full stroke, depth.
    for (name, gb, mb_s, seeks_ms, depth) in [
        ("ata-7200-30", 30.7, 35.0, [1.2, 8.5, 15.0], 1),
        ("laptop-5400", 160.0, 41.9, [1.0, 11.0, 20.0], 1),
        ("cmr-8tb", 8001.6, 205.0, [0.6, 8.0, 16.0], 32),
        ("cmr-20tb", 20003.9, 285.0, [0.25, 8.0, 16.0], 32),
        ("sas-15k-450", 449.1, 229.1, [0.2, 3.4, 6.6], 64),
    ] {
        let drive = described(name);
        assert!((drive.capacity_sectors as f64 * 512e-9 - gb).abs() < 0.1, "{name}: {}", drive.capacity_sectors);
        assert!((drive.sequential_outer_mb_s / mb_s - 1.0).abs() < 0.003, "{name}: {}", drive.sequential_outer_mb_s);
        let found = [drive.single_seek_ms, drive.mean_seek_cylinders_ms, drive.full_seek_ms];
        assert!(found.iter().zip(seeks_ms).all(|(found, ms)| (found - ms).abs() < 0.01), "{name}: {found:?}");
        assert_eq!(drive.depth, depth, "{name}");
        assert!(!drive.warnings.iter().any(|warning| warning.contains("revolution")), "{name}: {:?}", drive.warnings);
    }
}

#[test]
fn queue_and_faults_are_described() {
    let words = described("cmr-8tb").queue;
    assert_eq!(words, "shortest access time first, the oldest first after 500 ms");
    assert_eq!(described("sata-7200-2006").queue, "");
    let hangs = vec![Hang { at_ms: 5.0, for_ms: f64::INFINITY }];
    let faults =
        Faults { bad_sectors: vec![(90, 2), (70, 1)], slow_share: 1e-6, retries: 3, hangs, ..Faults::default() };
    let profile = Profile::builtin("cmr-8tb").expect("built in").with_faults(faults).expect("faults that can be");
    let expected = [
        "3 sectors, the first of them 70, cannot be read after 3 revolutions of retries",
        "one of 1000000 physical sectors is read after 3 revolutions of retries (seed 1)",
        "hangs at 5 ms for ever",
    ];
    assert_eq!(describe(&profile).faults, expected);
}

#[test]
fn derived_drive_has_the_mechanics_of_its_base_and_a_queue() {
    for (name, base, depth) in [("cmr-4tb", "wd_4tb_7200", 32), ("scsi-10k-300", "maxtor_atlas10kV_300", 64)] {
        let (drive, base) = (described(name), described(base));
        assert_eq!((&drive.zones, drive.capacity_sectors, drive.rpm), (&base.zones, base.capacity_sectors, base.rpm));
        assert_eq!(drive.mean_seek_sectors_ms, base.mean_seek_sectors_ms);
        assert_eq!((drive.depth, base.depth), (depth, 1));
    }
}
