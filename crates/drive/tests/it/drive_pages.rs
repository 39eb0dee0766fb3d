//! The pages on drive files are current: the worked example runs, and no key is missing.

use std::collections::BTreeSet;
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

/// The fields of the structures in the parser's sources, by structure.
fn fields() -> Vec<(String, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/profile/raw");
    let mut structures: Vec<(String, Vec<String>)> = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the reader's sources") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
        let mut inside = false;
        for line in text.lines() {
            if let Some((_, rest)) = line.split_once("struct ") {
                structures.push((rest.trim_end_matches(" {").to_owned(), Vec::new()));
                inside = true;
            } else if line.starts_with('}') {
                inside = false;
            } else if let Some((name, _)) = line.trim().trim_start_matches("pub").split_once(": ").filter(|_| inside) {
                // `(super) name` or `(in crate::profile) name`.
                let name = name.rsplit(' ').next().unwrap_or("");
                structures.last_mut().expect("a structure").1.push(name.to_owned());
            }
        }
    }
    structures
}

/// The keys of the tables under a heading.
fn documented(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("a section {heading}"));
    let section = section.split("\n## ").next().unwrap_or("");
    let keys = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    keys.map(str::to_owned).collect()
}

#[test]
fn every_key_of_a_drive_file_is_in_the_reference_and_no_other() {
    let page = page("drive-files.md");
    let of = |structures: &[&str]| -> BTreeSet<String> {
        let wanted = fields().into_iter().filter(|(name, _)| structures.contains(&name.as_str()));
        wanted.flat_map(|(_, fields)| fields).collect()
    };
    let sections: [(&str, &[&str]); 13] = [
        ("The file", &["RawProfile"]),
        ("`[disk]`", &["RawDisk"]),
        ("`[seek]`", &["RawSeek"]),
        ("`[[zone]]`", &["RawZone"]),
        ("`[overhead]`", &["RawOverhead"]),
        ("`[interface]`", &["RawInterface"]),
        ("`[buffer]`", &["RawBuffer"]),
        ("`[queue]`", &["RawQueue"]),
        ("`[faults]`", &["RawFaults", "RawHang"]),
        ("`[flash]`", &["RawFlash"]),
        ("`[cloud]`", &["RawCloud", "RawBucket", "RawLatency"]),
        ("`[array]`", &["RawArray", "RawArrayCache", "RawMember"]),
        ("`[null]`", &["RawNull"]),
    ];
    for (heading, structures) in sections {
        let keys = of(structures);
        assert!(!keys.is_empty(), "{structures:?} have fields");
        assert_eq!(documented(&page, heading), keys, "section {heading}");
    }
    let known: BTreeSet<&str> = sections.iter().flat_map(|(_, structures)| structures.iter().copied()).collect();
    let all: BTreeSet<String> = fields().into_iter().map(|(name, _)| name).collect();
    assert_eq!(all, known.into_iter().map(str::to_owned).collect(), "every structure has its section");
}
