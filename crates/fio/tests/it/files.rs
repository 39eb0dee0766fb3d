//! Whole files: sections, includes, variables, and the examples of the test data.

use crate::common::{parse_text, path_of, testdata};
use hoistway_fio::{BlockSize, Distribution, Ioengine, JobFile, Rw, Size, load, parse};

fn nothing_included(path: &str, _: &str) -> Result<String, std::io::Error> {
    panic!("{path} is not included")
}

fn example(name: &str) -> JobFile {
    load(path_of(name)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_competing_readers_are_eight_buffered_readers() {
    let file = example("competing-readers.fio");
    let [job] = file.jobs.as_slice() else { panic!("one job, not {:?}", file.jobs) };
    assert_eq!(
        (job.name.as_str(), job.start.numjobs, job.requests.rw, job.cache.direct),
        ("files", 8, Rw::Read, false)
    );
    assert_eq!(
        (job.submission.ioengine, job.submission.iodepth, job.region.size_or_all()),
        (Ioengine::Sync, 1, Size::Bytes(128 << 20))
    );
    assert_eq!(job.log.write_bw_log.as_deref(), Some("files"));
    assert_eq!(job.blocks.bs.read, BlockSize::Fixed(4096));
    assert_eq!(job.line, 11);
    assert!(file.ignored.is_empty());
}

#[test]
fn priorities_differ_by_job_and_share_the_class_of_the_global_section() {
    let standing: Vec<_> =
        example("priorities.fio").jobs.iter().map(|job| (job.priority.prioclass, job.priority.prio)).collect();
    assert_eq!(standing, [(Some(2), Some(0)), (Some(2), Some(4)), (Some(2), Some(7)), (Some(3), None)]);
}

#[test]
fn the_media_server_counts_in_thousands() {
    let file = example("media-server.fio");
    let [stream, batch] = file.jobs.as_slice() else { panic!("two jobs, not {:?}", file.jobs) };
    assert_eq!((stream.rates.rate.read, stream.region.offset_increment), (Some(1_000_000), Size::Bytes(1_000_000_000)));
    assert_eq!(stream.start.startdelay_ns, 0..=2_000_000_000);
    assert_eq!((stream.groupid, batch.groupid), (0, 1));
    assert_eq!((batch.blocks.bs.read.max(), batch.blocks.bs.write.max()), (65_536, 4096));
    assert_eq!(batch.requests.random_distribution, Distribution::Zipf(1.2));
    assert!(batch.cache.direct && batch.reporting.group_reporting && batch.end.time_based);
}

#[test]
fn a_job_is_affected_only_by_the_global_sections_above_it() {
    // The same file gave fio 3.33 these sizes and groups.
    let file = example("several-globals.fio");
    let jobs: Vec<_> = file
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.region.size_or_all(), job.requests.rw, job.groupid))
        .collect();
    let (small, large) = (Size::Bytes(4096), Size::Bytes(8192));
    assert_eq!(
        jobs,
        [
            ("first", small, Rw::Write, 0),
            ("second", large, Rw::Write, 0),
            ("third", large, Rw::Read, 1),
            ("fourth", large, Rw::Write, 2),
        ]
    );
    let global: Vec<_> = file.global_options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(global, [("size", "8k"), ("rw", "write")]);
}

#[test]
fn a_stonewall_on_the_first_job_starts_no_group() {
    let file = parse_text("[global]\nsize=1m\n[a]\nstonewall\n[b]\n").expect("two jobs");
    assert_eq!(file.jobs.iter().map(|job| job.groupid).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn sections_with_the_same_name_are_separate_jobs() {
    let file = parse_text("[a]\nsize=4k\n[a]\nsize=8k\n").expect("two jobs");
    assert_eq!(
        file.jobs.iter().map(|job| job.region.size_or_all()).collect::<Vec<_>>(),
        [Size::Bytes(4096), Size::Bytes(8192)]
    );
}

#[test]
fn variables_are_substituted() {
    let env = |name: &str| match name {
        "SIZE" => Some("64m".to_owned()),
        "JOBS" => Some("4".to_owned()),
        "DISK" => Some("d0".to_owned()),
        _ => None,
    };
    let file = parse(&testdata("variables.fio"), "variables.fio", &env, &nothing_included).expect("all are set");
    let job = &file.jobs[0];
    assert_eq!((job.region.size_or_all(), job.start.numjobs), (Size::Bytes(64 << 20), 4));
    assert_eq!(job.files.filename, ["/data/d0/a", "/data/d0/b"]);
    assert_eq!(job.options[1], ("size".to_owned(), "64m".to_owned()), "what the variable held, as fio prints it");
}

#[test]
fn an_unset_variable_is_named_in_the_error() {
    let faults = parse(&testdata("variables.fio"), "variables.fio", &|_| None, &nothing_included).expect_err("unset").0;
    let lines: Vec<u32> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [3, 4], "a path with a hole in it is still a path");
    assert_eq!(faults[0].help.as_deref(), Some("not set in the environment, so nothing was put in for it: SIZE"));
}

#[test]
fn load_takes_variables_from_the_process() {
    let dir = tempfile::tempdir().expect("a place for a file");
    let path = dir.path().join("path.fio");
    // cargo sets this variable for every test.
    std::fs::write(&path, "[j]\nsize=4k\nfilename=x-${CARGO_PKG_NAME}-${a=b}\n").expect("the file is written");
    let file = load(&path).unwrap_or_else(|error| panic!("{error}"));
    let expected = format!("x-{}-", std::env::var("CARGO_PKG_NAME").unwrap_or_default());
    assert_eq!(file.jobs[0].files.filename, [expected]);
}

#[test]
fn included_options_belong_to_the_section_that_includes_them() {
    let file = example("include/outer.fio");
    let job = &file.jobs[0];
    assert_eq!((job.region.size_or_all(), job.reporting.group_reporting), (Size::Bytes(1 << 20), true));
    assert_eq!(
        (job.submission.ioengine, job.submission.iodepth, job.requests.rw),
        (Ioengine::Libaio, 4, Rw::Read),
        "an include in an include"
    );
    assert_eq!(file.global_options[0].0, "size");
    assert_eq!(job.options.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["ioengine", "iodepth", "rw"]);
}

#[test]
fn the_loader_gets_the_path_as_written_and_the_including_file() {
    let asked = std::cell::RefCell::new(Vec::new());
    let loader = |path: &str, including: &str| {
        asked.borrow_mut().push((path.to_owned(), including.to_owned()));
        Ok(if path == "sub/a.inc" { "include b.inc\n".to_owned() } else { "size=4k\n".to_owned() })
    };
    parse("[j]\ninclude=sub/a.inc\n", "dir/job.fio", &|_| None, &loader).expect("both are there");
    let pair = |path: &str, including: &str| (path.to_owned(), including.to_owned());
    assert_eq!(asked.into_inner(), [pair("sub/a.inc", "dir/job.fio"), pair("b.inc", "dir/sub/a.inc")]);
}

#[test]
fn a_cycle_of_includes_is_reported_with_its_path() {
    let error = load(path_of("include/cycle.fio")).expect_err("it never ends").to_string();
    let first = error.lines().next().unwrap_or_default();
    assert!(first.contains("cycle.inc:2:1: error: `./sub/../cycle.inc` includes itself: "), "{error}");
    assert!(first.ends_with("include/./sub/../cycle.inc"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn errors_in_an_included_file_name_that_file() {
    let error = load(path_of("include/broken.fio")).expect_err("three faults").to_string();
    let lines: Vec<&str> = error.lines().filter(|line| !line.starts_with("  help")).collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert!(lines[0].contains("broken.inc:1:9: error: iodepth: 0 is out of range"), "{error}");
    assert!(lines[1].contains("broken.inc:3:3: error: unknown option `raed`"), "{error}");
    assert!(lines[2].contains("broken.inc:4:1: error: section [section] in an included file"), "{error}");
}

#[test]
fn includes_without_end_are_stopped() {
    // Every file includes another of a new name: no cycle, and no end.
    let loader = |path: &str, _: &str| Ok(format!("include {path}x\n"));
    let faults = parse("[j]\nsize=4k\ninclude a\n", "job.fio", &|_| None, &loader).expect_err("too deep").0;
    assert!(faults[0].message.ends_with("is included too deep or too often"), "{faults:?}");
    // Every file includes two others: deep enough to be stopped by number.
    let loader = |path: &str, _: &str| Ok(format!("include {path}x\ninclude {path}y\n"));
    let faults = parse("[j]\nsize=4k\ninclude a\n", "job.fio", &|_| None, &loader).expect_err("too many").0;
    assert!(!faults.is_empty());
}

#[test]
fn ignored_options_are_listed_once_with_their_first_position() {
    let text = "[global]\nsize=1m\nrandrepeat=0\nthread\n[a]\niomem=malloc\nrandrepeat=1\n[b]\nmem=mmap\n";
    let file = parse_text(text).expect("nothing is wrong");
    let ignored: Vec<_> = file.ignored.iter().map(|i| (i.name.as_str(), i.file.as_str(), i.line)).collect();
    assert_eq!(ignored, [("randrepeat", "job.fio", 3), ("thread", "job.fio", 4), ("mem", "job.fio", 6)]);
}

#[test]
fn a_byte_order_mark_and_carriage_returns_are_dropped() {
    let file = parse_text("\u{feff}[j]\r\nsize=4k\r\n").expect("as editors write it");
    assert_eq!((file.jobs[0].name.as_str(), file.jobs[0].region.size_or_all()), ("j", Size::Bytes(4096)));
}
