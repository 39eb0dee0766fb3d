//! `hoistway trace describe` and `hoistway trace reorder`, from outside.

use std::path::{Path, PathBuf};

use crate::common::{Folder, run};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn capture(name: &str) -> String {
    repository().join("crates/trace/testdata/blktrace").join(name).display().to_string()
}

fn example(name: &str) -> String {
    repository().join("examples/tar-reorder").join(format!("{name}.bin.xz")).display().to_string()
}

#[test]
fn describe_prints_totals_and_processes() {
    let ran = run(&["trace", "describe", &capture("vda-bfq")]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with("vda-bfq: 1085 requests, 9.38 MB in 2.01 s, of 6 processes on 254,0\n"), "{}", ran.out);
    let too_long: Vec<&str> = ran.out.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(too_long.is_empty(), "{too_long:?}");
    for begins in ["reads     460", "D2C    in the device             1560    11.8", "load (128)   664", "bfq noted "] {
        assert!(ran.out.lines().any(|line| line.starts_with(begins)), "{begins}\n{}", ran.out);
    }
}

#[test]
fn describe_prints_a_single_process() {
    let whole = run(&["trace", "describe", &capture("vda-bfq"), "--json"]).json();
    assert_eq!((&whole["schema"], &whole["trace"]), (&1.into(), &"vda-bfq".into()));
    assert_eq!(whole["processes"].as_array().unwrap().len(), 6);
    let one = run(&["trace", "describe", &capture("vda-bfq"), "--json", "--process", "128"]).json();
    assert_eq!(one["processes"].as_array().unwrap().len(), 1);
    let process = &one["processes"][0];
    assert_eq!((&process["pid"], &process["name"], &process["bios"]), (&128.into(), &"load".into(), &664.into()));
    let of_all: u64 = whole["processes"].as_array().unwrap().iter().map(|one| one["bios"].as_u64().unwrap()).sum();
    assert_eq!(whole["all"]["bios"].as_u64().unwrap(), of_all);
    let ran = run(&["trace", "describe", &capture("vda-bfq"), "--process", "unknown"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("--process: no process unknown made requests; the trace has load (128),"), "{}", ran.err);
}

#[test]
fn describe_notes_missing_completions() {
    let ran = run(&["trace", "describe", &example("tar")]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("This trace has no completions"), "{}", ran.out);
    assert!(!ran.out.contains("D2C") && !ran.out.contains("in the device"), "{}", ran.out);
}

/// Returns the time of the drive for the requests of a trace in recorded order and in one sweep, in
/// s, and the share of distances of 0 before and after, in percent.
fn swept(trace: &str) -> ([f64; 2], [f64; 2]) {
    let folder = Folder::new();
    let to = folder.path("sweep.bin").display().to_string();
    let ran = run(&["trace", "reorder", trace, "--by", "sector", "--drive", "sata-7200-2006", "-o", &to]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |behind: &str| -> f64 {
        let rest = &text[text.find(behind).unwrap_or_else(|| panic!("{behind}: {text}")) + behind.len()..];
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    ([number("takes "), number("recorded order and ")], [number(" before "), number(" after ")])
}

#[test]
fn small_files_are_read_faster_the_nearer_the_order_is_to_that_on_the_disk() {
    // Recordings of 2,500 files of an aged ext4: in the order of tar, by inode, by first block, and
    // a single file of the same size.
    let ([tar, sweep], [before, after]) = swept(&example("tar"));
    let ([blocks, _], _) = swept(&example("blocks"));
    let ([single, _], _) = swept(&example("single"));
    assert!(single < sweep && sweep < blocks && blocks < tar, "{single} {sweep} {blocks} {tar}");
    assert!((5.0..20.0).contains(&(tar / blocks)), "{tar} {blocks}");
    assert!(before < 20.0 && after > 60.0, "{before} {after}");
}

#[test]
fn a_window_of_one_request_changes_no_order() {
    let folder = Folder::new();
    let to = |name: &str| folder.path(name).display().to_string();
    let one = run(&["trace", "reorder", &example("tar"), "--by", "sector", "--within", "1", "-o", &to("one.csv")]);
    assert_eq!(one.code, Some(0), "{}", one.err);
    let as_it_is = run(&["trace", "convert", &example("tar"), "-o", &to("same.csv")]);
    assert_eq!(as_it_is.code, Some(0), "{}", as_it_is.err);
    let read = |name: &str| std::fs::read_to_string(PathBuf::from(to(name))).unwrap();
    assert!(read("one.csv") == read("same.csv"), "the two differ");
}

#[test]
fn a_drive_that_is_too_small_is_reported() {
    let folder = Folder::new();
    let to = folder.path("sweep.bin").display().to_string();
    // The trace begins at sector 2,348,060,440 (1.2 TB); the drive has 200 GB.
    let trace = capture("android-emmc");
    let ran = run(&["trace", "reorder", &trace, "--by", "sector", "--drive", "sata-7200-2006", "-o", &to]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("--drive: the drive cannot serve the requests of the trace"), "{}", ran.err);
}
