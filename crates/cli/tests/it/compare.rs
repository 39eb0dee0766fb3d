//! `hoistway compare`, from outside.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran, TINY_JOB, hoistway, run};
use hoistway_core::Kind;
use hoistway_fio::results::Report;
use serde_json::{Value, json};

/// Two slow random readers, for which elevators differ.
const RANDOM_JOB: &str =
    "[global]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\nnumber_ios=50\n\n[near]\n\n[far]\noffset=32m\n";
/// A job that is interrupted before its end.
const ENDLESS_JOB: &str = "[a]\nrw=randread\nbs=4k\nsize=10g\ndirect=1\ntime_based\nruntime=10000d\n";

fn compare(job: &str, more: &[&str]) -> Ran {
    let folder = Folder::new();
    let mut command = hoistway(&["compare", "job.fio"]);
    folder.file("job.fio", job);
    Ran::of(command.args(more).current_dir(folder.path("")).output().expect("it starts"))
}

#[test]
fn the_table_has_the_elevators_in_the_given_order() {
    let ran = compare(TINY_JOB, &["--elevators", "cfq-v3,noop"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let names: Vec<&str> = ran.out.lines().skip_while(|line| !line.starts_with("---")).skip(1).take(2).collect();
    assert!(names[0].starts_with("cfq-v3 ") && names[1].starts_with("noop "), "{}", ran.out);
    assert!(ran.out.starts_with("job.fio on sata-7200-2006, seed 1\n"), "{}", ran.out);
    assert!(ran.out.contains("In short: "), "{}", ran.out);
}

#[test]
fn all_elevators_are_compared_unless_named() {
    let document = compare(TINY_JOB, &["--json"]).json();
    let names: Vec<&str> =
        document["elevators"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.info().name).collect();
    assert_eq!(names, all);
}

#[test]
fn the_table_fits_100_columns_and_has_no_escapes_in_a_pipe() {
    let ran = compare(RANDOM_JOB, &[]);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn the_best_values_of_columns_are_marked() {
    let args = ["--elevators", "noop,anticipatory"];
    let document = compare(RANDOM_JOB, &[&args[..], &["--json"]].concat()).json();
    let rate = |index: usize| document["elevators"][index]["bytes_per_s"].as_f64().expect("a rate");
    let best = if rate(0) > rate(1) { 0 } else { 1 };
    let table = compare(RANDOM_JOB, &args).out;
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.starts_with("---")).skip(1).take(2).collect();
    // The first figure of a row is MB/s.
    let marked: Vec<bool> = rows.iter().map(|row| row.split_whitespace().nth(1).unwrap().ends_with('*')).collect();
    assert!(rate(0) != rate(1) && marked[best] && !marked[1 - best], "{table}");
}

#[test]
fn a_single_elevator_has_no_marks() {
    let table = compare(TINY_JOB, &["--elevators", "noop"]).out;
    let row = table.lines().find(|line| line.starts_with("noop ")).expect("a row");
    assert!(!row.contains('*'), "{row}");
}

/// Noop on a device that takes one command at a time and 10 ms for each, with figures calculated by
/// hand.
///
/// Two processes read 16 blocks of 4 KiB each, directly and one at a time, so that the device
/// serves them in turns: 32 reads in 320 ms are 131072 bytes / 0.32 s = 0.410 MB/s, as much as one
/// process alone gets (65536 bytes in 160 ms). The first process ends after 310 ms with 0.211 MB/s,
/// the second after 320 ms with 0.205. The very first read takes 10 ms, each other one waits for
/// one of the other process and takes 20: 19.7 ms on average. A few us of kernel time do not show.
/// The device has no arm, so that all of its time is overhead.
#[test]
fn the_table_agrees_with_a_calculation_by_hand() {
    let folder = Folder::new();
    let device = "name = \"slow\"\nwhat = \"\"\nsource = \"\"\n[null]\nservice_ns = 10000000\ndepth = 1\n\
                  capacity_sectors = 2000000\n";
    let device = folder.file("slow.toml", device);
    let job = "[hand]\nrw=read\nbs=4k\nsize=64k\ndirect=1\nnumjobs=2\n";
    let table = compare(job, &["--elevators", "noop", "--drive", &device]).out;
    let row = table.lines().find(|line| line.starts_with("noop ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
    let (rate, alone, spread, jain, seconds) = ("0.410", "100", "0.205-0.211", "1.000", "0.320");
    let (mean_ms, p50_ms, p99_ms, max_ms) = ("19.7", "20.0", "20.0", "20.0");
    let (seek, rotation, data, idle) = ("0", "0", "0", "0");
    let expected = [rate, alone, spread, jain, seconds, mean_ms, p50_ms, p99_ms, max_ms, seek, rotation, data, idle];
    assert_eq!(cells, expected, "{table}");
}

#[test]
fn json_has_the_documented_keys() {
    let document = compare(TINY_JOB, &["--json", "--seed", "7"]).json();
    assert_eq!((&document["schema"], &document["seed"]), (&json!(1), &json!(7)));
    assert_eq!((&document["job"], &document["drive"]), (&json!("job.fio"), &json!("sata-7200-2006")));
    for elevator in document["elevators"].as_array().expect("a list") {
        for key in ["bytes_per_s", "of_single_stream", "jain", "runtime_ns"] {
            assert!(elevator[key].as_f64().is_some_and(|value| value > 0.0), "{key}");
        }
        for (key, parts) in [
            ("process_bytes_per_s", &["min", "max"][..]),
            ("latency_ns", &["mean", "stddev", "p50", "p99", "max"]),
            ("drive_ns", &["overhead", "seek", "rotation", "transfer", "idle"]),
        ] {
            assert!(parts.iter().all(|part| elevator[key][part].is_number()), "{key}: {}", elevator[key]);
        }
        assert_eq!(elevator["processes"].as_array().map(Vec::len), Some(2));
        let drive: u64 = elevator["drive_ns"].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!(json!(drive), elevator["runtime_ns"], "the drive's time adds up to the runtime");
    }
}

#[test]
fn json_has_the_fields_of_fio_and_the_bytes_of_the_job() {
    let ran = compare(TINY_JOB, &["--json", "--elevators", "noop,deadline"]);
    let report = Report::from_json(&ran.out).expect("fio's keys");
    let names: Vec<&str> = report.jobs.iter().map(|job| job.jobname.as_str()).collect();
    assert_eq!(names, ["noop/tiny", "noop/tiny", "deadline/tiny", "deadline/tiny"]);
    assert!(report.jobs.iter().all(|job| job.read.io_bytes == 256 << 10 && job.read.clat_ns.n == 64));
    assert!(report.global_options.is_some_and(|options| options.0.contains(&("bs".into(), "4k".into()))));
}

#[test]
fn the_seed_determines_the_json() {
    let with_seed = |seed: &str| compare(RANDOM_JOB, &["--json", "--elevators", "noop,cfq-v3", "--seed", seed]).out;
    let figures = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["elevators"].clone();
    let (first, again, other) = (with_seed("1"), with_seed("1"), with_seed("2"));
    assert!(first == again);
    assert_ne!(figures(&first), figures(&other));
}

#[test]
fn a_tunable_changes_the_result_and_is_printed() {
    let job = "[global]\nrw=read\nbs=4k\nsize=4m\n\n[readers]\nnumjobs=4\n";
    let ran =
        |value: &str| compare(job, &["--elevators", "cfq-v3", "--set", &format!("cfq-v3.slice_idle={value}")]).out;
    let row = |table: &str| table.lines().find(|line| line.starts_with("cfq-v3 ")).expect("a row").to_owned();
    let (with, without) = (ran("8ms"), ran("0"));
    assert_ne!(row(&with), row(&without));
    assert!(without.contains("with cfq-v3.slice_idle=0\n"), "{without}");
}

#[test]
fn a_profile_file_is_used() {
    let folder = Folder::new();
    let drive = folder.file("mine.toml", include_str!("../../../drive/profiles/slide-15000.toml"));
    let own = compare(TINY_JOB, &["--json", "--drive", &drive]).json();
    assert_eq!(own, compare(TINY_JOB, &["--json", "--drive", "slide-15000"]).json());
}

#[test]
fn the_page_is_complete_and_the_only_file() {
    let folder = Folder::new();
    let job = folder.file("job.fio", TINY_JOB);
    let page = folder.name("page.html");
    let ran = run(&["compare", &job, "--report", &page]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let html = std::fs::read_to_string(&page).expect("the page is there");
    assert!(html.trim_end().ends_with("</html>") && html.contains("anticipatory"));
    let mut files = folder.files();
    files.sort();
    assert_eq!(files, ["job.fio", "page.html"]);
    assert!(ran.out.contains(&format!("The page is in {page}.")), "{}", ran.out);
}

#[test]
fn with_a_page_standard_output_has_only_the_json() {
    let folder = Folder::new();
    let job = folder.file("job.fio", TINY_JOB);
    run(&["compare", &job, "--json", "--report", &folder.name("page.html")]).json();
    assert!(folder.path("page.html").exists());
}

#[test]
fn an_ignored_option_is_reported_on_standard_error_only() {
    let ran = compare("[a]\nsize=64k\nwrite_lat_log=x\nrefill_buffers\n", &["--json"]);
    ran.json();
    let ran = compare("[a]\nsize=64k\nrefill_buffers\n", &[]);
    assert!(ran.err.contains("note: ") && ran.err.contains("refill_buffers"), "{}", ran.err);
    assert!(!ran.out.contains("refill_buffers"));
}

/// Two readers in groups of different weights below a common group.
const GROUPED_JOB: &str = "[global]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\nruntime=2\ntime_based\n\
    [alice]\ncgroup=users/alice\ncgroup_weight=200/300\n[bob]\ncgroup=users/bob\noffset=32m\n";

#[test]
fn control_groups_have_a_table_and_keys() {
    let ran = compare(GROUPED_JOB, &["--elevators", "noop,deadline"]);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let at = rows.iter().position(|row| row[..] == ["group", "weight", "noop", "deadline"]).expect("a table of groups");
    assert_eq!(rows[at + 1], ["no", "groups", "no", "groups"]);
    let lines = &rows[at + 3..at + 6];
    let named: Vec<String> = lines.iter().map(|row| row[..2].join(" ")).collect();
    assert_eq!(named, ["users 200", "users/alice 300", "users/bob 100"]);
    assert_eq!(lines[0][2..], ["100", "100"]);
    assert!(ran.err.contains("none of these elevators has control groups"), "{}", ran.err);
    let document = compare(GROUPED_JOB, &["--elevators", "noop", "--json"]).json();
    let run = &document["elevators"][0];
    assert_eq!((&run["divides_by_groups"], run["groups"].as_array().map(Vec::len)), (&json!(false), Some(3)));
    let shares: f64 = [1, 2].iter().map(|group| run["groups"][group]["share"].as_f64().expect("a share")).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert_eq!(run["processes"][1]["cgroup"], "users/bob");
}

#[test]
fn in_a_pipe_the_table_of_groups_is_not_split() {
    let ran = compare(GROUPED_JOB, &[]);
    let rows = ran.out.lines().filter(|line| line.trim_start().starts_with("users/alice "));
    let figures: Vec<usize> = rows.map(|row| row.split_whitespace().count()).collect();
    assert_eq!(figures, [2 + Kind::ALL.len()], "{}", ran.out);
}

#[test]
fn a_job_without_groups_has_no_table_of_groups() {
    assert!(!compare(TINY_JOB, &["--elevators", "noop"]).out.contains("weight"));
}

#[test]
#[cfg(unix)]
fn ctrl_c_stops_a_run_within_a_moment_and_leaves_no_page() {
    let folder = Folder::new();
    let job = folder.file("job.fio", ENDLESS_JOB);
    let mut command = hoistway(&["compare", &job, "--report", &folder.name("page.html")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // The signal handler is installed by then; the run itself would take days.
    thread::sleep(Duration::from_secs(1));
    let pid = rustix::process::Pid::from_child(&child);
    let pressed = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert!(pressed.elapsed() < Duration::from_secs(5), "{:?}", pressed.elapsed());
    ran.refused(130, &["interrupted"]);
    assert_eq!(folder.files(), ["job.fio"]);
}
