//! The page on adding a drive is current: its worked example runs.

use std::path::Path;

use hoistway_drive::{Access, Command, Drive, Op, Profile, closed_loop, describe};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A page of the directory docs.
fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The TOML blocks of a page, joined.
fn toml_of(page: &str) -> String {
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("the block ends"));
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn drive_of_the_how_to_page_has_the_figures_of_its_data_sheet() {
    let profile = Profile::from_toml(&toml_of(&page("add-a-drive.md")), "deskstar-7k1000.toml")
        .unwrap_or_else(|error| panic!("{error}"));
    let drive = describe(&profile);
    assert_eq!((drive.name.as_str(), drive.rpm, drive.depth), ("deskstar-7k1000", Some(7200.0), 32));
    assert_eq!((drive.capacity_sectors, drive.surfaces), (1_953_525_168, 10));
    assert!((drive.mean_seek_cylinders_ms - 8.5).abs() < 0.01, "{}", drive.mean_seek_cylinders_ms);
    // As stated on the page.
    let said = [drive.random_read_4k_iops, drive.sequential_outer_mb_s, drive.sequential_inner_mb_s].map(f64::round);
    assert_eq!(said, [79.0, 85.0, 44.0]);
    assert!(drive.warnings.is_empty(), "{:?}", drive.warnings);
}

#[test]
fn drive_of_the_how_to_page_runs_at_its_described_rate() {
    let profile = Profile::from_toml(&toml_of(&page("add-a-drive.md")), "deskstar-7k1000.toml").expect("a profile");
    let mut drive = Drive::new(&profile);
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let end = drive.capacity_sectors() - 8;
    let reads = (0..20_000).map(|_| {
        let access = Access { op: Op::Read, sector: random.random_range(0..end), sectors: 8 };
        Command::from(access)
    });
    let end_ns = closed_loop(&mut drive, 0, 1, reads, |_, _| {}).expect("within the drive");
    let iops = 20_000.0 * 1e9 / end_ns as f64;
    let described = describe(&profile).random_read_4k_iops;
    assert!((iops / described - 1.0).abs() < 0.01, "{iops} reads a second, {described} described");
}
