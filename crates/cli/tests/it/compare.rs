//! `hoistway compare`, from outside.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, PATIENCE, Ran, TINY_JOB, hoistway, run};
use crate::fake::server;
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
    assert!(
        ran.out.starts_with("job.fio on ssd-sata-consumer, each elevator in its own kernel, seed 1\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("In short: "), "{}", ran.out);
}

/// The names of the compared elevators.
fn names(args: &[&str]) -> Vec<String> {
    let document = compare(TINY_JOB, &[args, &["--json"]].concat()).json();
    let all = document["elevators"].as_array().expect("a list");
    all.iter().map(|elevator| elevator["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_elevators_of_today_are_compared_unless_others_are_named() {
    assert_eq!(names(&[]), ["none", "mq-deadline", "kyber", "bfq"]);
    let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.info().name).collect();
    assert_eq!(names(&["--elevators", "all"]), all);
    let history = names(&["--elevators", "history"]);
    assert_eq!(history.len(), 12, "{history:?}");
    assert!(history.iter().all(|name| all.contains(&name.as_str())) && !history.contains(&"sfq".to_owned()));
}

#[test]
fn none_and_noop_name_the_same_elevator() {
    assert_eq!(names(&["--elevators", "noop"]), ["none"]);
    assert_eq!(names(&["--elevators", "none"]), ["none"]);
    assert_eq!(names(&["--elevators", "none", "--kernel", "own"]), ["noop"]);
    assert_eq!(names(&["--elevators", "none,deadline"]), ["noop", "deadline"]);
}

#[test]
fn the_model_follows_a_device_that_the_job_names() {
    let machine = server();
    let root = machine.root().to_str().expect("UTF-8");
    let job = |device: &str| format!("[a]\nfilename={device}\nrw=randread\ndirect=1\nnumber_ios=20\n");
    let of = |device: &str| compare(&job(device), &["--root", root]);
    let ran = of("/dev/nvme0n1p1");
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("drive: ssd-nvme-tlc, the model nearest to nvme0n1 of this machine: an NVMe drive"),
        "{text}"
    );
    assert!(text.contains("elevators: those that nvme0n1 can be set to"), "{text}");
    assert!(of("/dev/sda").out.contains("drive: cmr-4tb, the model nearest to sda"));
    // Without such a device the default is taken, and with --drive the device does not matter.
    let absent = of("/dev/sdq").out;
    assert!(absent.contains("drive: ssd-sata-consumer, a SATA SSD: /dev/sdq is no device of this machine"), "{absent}");
    let named = compare(&job("/dev/sda"), &["--root", root, "--drive", "cmr-8tb"]).out;
    assert!(named.starts_with("job.fio on cmr-8tb, Linux 6.1, seed 1\n") && !named.contains("drive:"), "{named}");
    let document = compare(&job("/dev/sda"), &["--root", root, "--json"]).json();
    assert_eq!((&document["drive_choice"]["device"], &document["drive"]), (&json!("sda"), &json!("cmr-4tb")));
}

/// A reader that a writer of many requests keeps from the disk, under elevators that let it.
const STARVING_JOB: &str =
    "[writer]\nrw=write\nbs=64k\nsize=1g\nruntime=10\n[reader]\nrw=read\nbs=4k\nsize=1g\nruntime=10\n";
const OLD_DISK: [&str; 4] = ["--drive", "sata-7200-2006", "--kernel", "own"];

#[test]
fn a_job_that_starves_is_named_and_its_elevator_gets_no_star() {
    let args = [&OLD_DISK[..], &["--elevators", "mq-deadline,bfq"]].concat();
    let ran = compare(STARVING_JOB, &args);
    let row = ran.out.lines().find(|line| line.starts_with("mq-deadline ! ")).expect("a marked row");
    assert!(!row.contains('*'), "{row}");
    assert!(ran.out.lines().any(|line| line.starts_with("reader ") && line.contains('!')), "{}", ran.out);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("In short: Choose scheduler bfq. Under bfq the slowest process gets "), "{text}");
    assert!(text.contains("Job `reader` starves under mq-deadline ("), "{text}");
    let document = compare(STARVING_JOB, &[&args[..], &["--json"]].concat()).json();
    let [first, second] = [0, 1].map(|index| &document["elevators"][index]);
    assert_eq!((&first["starves"], &second["starves"]), (&json!(true), &json!(false)));
    assert!(
        first["jobs"][1]["starved"]["processes"] == 1 && first["jobs"][0]["starved"].is_null(),
        "{}",
        first["jobs"]
    );
    assert!(document["decided_by"].as_str().is_some_and(|text| text.starts_with("Choose scheduler bfq")));
}

#[test]
fn jobs_that_run_one_after_another_have_rows_and_no_common_index() {
    let job =
        "[global]\nrw=randread\nsize=64m\ndirect=1\nnumber_ios=50\n[first]\nbs=4k\n[second]\nstonewall\nbs=256k\n";
    let ran = compare(job, &["--elevators", "none,bfq"]);
    for name in ["first ", "second "] {
        assert!(ran.out.lines().any(|line| line.starts_with(name)), "{}", ran.out);
    }
    assert!(ran.out.contains("Jain's index is left out"), "{}", ran.out);
    let document = compare(job, &["--elevators", "none,bfq", "--json"]).json();
    assert!(document["elevators"][0]["jain"].is_null());
    assert_eq!(document["elevators"][0]["jobs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_table_of_an_ssd_has_no_arm() {
    let on = |drive: &str| compare(RANDOM_JOB, &["--drive", drive]).out;
    let (flash, disk) = (on("ssd-sata-consumer"), on("cmr-4tb"));
    for word in ["seek", "rot."] {
        assert!(!flash.contains(word), "{flash}");
        assert!(disk.contains(word), "{disk}");
    }
}

#[test]
fn the_table_fits_100_columns_and_has_no_escapes_in_a_pipe() {
    let ran = compare(RANDOM_JOB, &[]);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn the_best_values_of_columns_are_marked() {
    let args = ["--elevators", "noop,anticipatory", "--drive", "sata-7200-2006"];
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
    let row = table.lines().find(|line| line.starts_with("none ")).expect("a row");
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
/// The device has no arm, so that there are no columns of seek and rotation, and all of its time is
/// overhead.
#[test]
fn the_table_agrees_with_a_calculation_by_hand() {
    let folder = Folder::new();
    let device = "name = \"slow\"\nwhat = \"\"\nsource = \"\"\n[null]\nservice_ns = 10000000\ndepth = 1\n\
                  capacity_sectors = 2000000\n";
    let device = folder.file("slow.toml", device);
    let job = "[hand]\nrw=read\nbs=4k\nsize=64k\ndirect=1\nnumjobs=2\n";
    let table = compare(job, &["--elevators", "noop", "--drive", &device, "--kernel", "own"]).out;
    let row = table.lines().find(|line| line.starts_with("noop ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
    let (rate, alone, spread, jain, seconds) = ("0.410", "100", "0.205-0.211", "1.000", "0.320");
    let (mean_ms, p50_ms, p99_ms, max_ms) = ("19.7", "20.0", "20.0", "20.0");
    let (data, idle) = ("0", "0");
    let expected = [rate, alone, spread, jain, seconds, mean_ms, p50_ms, p99_ms, max_ms, data, idle];
    assert_eq!(cells, expected, "{table}");
}

#[test]
fn json_has_the_documented_keys() {
    let document = compare(TINY_JOB, &["--json", "--seed", "7"]).json();
    assert_eq!((&document["schema"], &document["seed"]), (&json!(1), &json!(7)));
    assert_eq!((&document["job"], &document["drive"]), (&json!("job.fio"), &json!("ssd-sata-consumer")));
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
    assert!(
        report
            .jobs
            .iter()
            .filter_map(|job| job.read.as_ref())
            .all(|read| read.io_bytes == 256 << 10 && read.clat_ns.n == 64)
    );
    assert!(report.global_options.is_some_and(|options| options.0.contains(&("bs".into(), "4k".into()))));
}

#[test]
fn the_seed_determines_the_json() {
    let args = ["--json", "--elevators", "noop,cfq-v3", "--drive", "sata-7200-2006"];
    let with_seed = |seed: &str| compare(RANDOM_JOB, &[&args[..], &["--seed", seed]].concat()).out;
    let figures = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["elevators"].clone();
    let (first, again, other) = (with_seed("1"), with_seed("1"), with_seed("2"));
    assert!(first == again);
    assert_ne!(figures(&first), figures(&other));
}

#[test]
fn a_tunable_changes_the_result_and_is_printed() {
    let job = "[global]\nrw=read\nbs=4k\nsize=4m\n\n[readers]\nnumjobs=4\n";
    let args = ["--elevators", "cfq-v3", "--drive", "sata-7200-2006", "--set"];
    let ran = |value: &str| compare(job, &[&args[..], &[&format!("cfq-v3.slice_idle={value}")]].concat()).out;
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
    assert!(html.trim_end().ends_with("</html>") && html.contains("mq-deadline"));
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
    let ran = compare(GROUPED_JOB, &["--elevators", "all"]);
    let rows = ran.out.lines().filter(|line| line.trim_start().starts_with("users/alice "));
    let figures: Vec<usize> = rows.map(|row| row.split_whitespace().count()).collect();
    assert_eq!(figures, [2 + Kind::ALL.len()], "{}", ran.out);
}

#[test]
fn a_job_without_groups_has_no_table_of_groups() {
    assert!(!compare(TINY_JOB, &["--elevators", "noop"]).out.contains("weight"));
}

/// Ticks of user time (0.01 s) after which a simulation has moved data.
#[cfg(target_os = "linux")]
const BEGUN_TICKS: u64 = 30;

/// Returns true if two threads besides the main one have simulated for a while: one of them runs an
/// elevator, even if the other one runs the reference.
#[cfg(target_os = "linux")]
fn has_run_an_elevator(child: &Child) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).expect("it runs").filter_map(Result::ok);
    let workers = threads.filter(|thread| thread.file_name().to_str() != Some(&child.id().to_string()));
    let user_ticks = workers.filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("stat")).ok()?;
        // The command in parentheses is field 2, the user time field 14.
        status.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse::<u64>().ok()
    });
    user_ticks.filter(|ticks| *ticks >= BEGUN_TICKS).count() >= 2
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_prints_a_partial_result_and_leaves_no_page() {
    let folder = Folder::new();
    let job = folder.file("job.fio", ENDLESS_JOB);
    let mut command = hoistway(&["compare", &job, "--report", &folder.name("page.html")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // The signal handler is installed before the runs begin, which would take days.
    let begun = Instant::now();
    while !has_run_an_elevator(&child) {
        if begun.elapsed() > PATIENCE {
            child.kill().expect("it is not waited for");
            panic!("no elevator has run after {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(
        ran.out.contains("PARTIAL: interrupted") && ran.out.contains("In short, of the partial result: "),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("interrupted: the result is partial"), "{}", ran.err);
    assert_eq!(folder.files(), ["job.fio"]);
}

#[test]
fn several_seeds_have_spreads_and_name_chance() {
    let job = "[a]\nrw=randread\nbs=4k\nsize=1g\ndirect=1\nioengine=libaio\niodepth=32\nnumber_ios=3000\n";
    let args = ["--drive", "sata-7200-2006", "--kernel", "own", "--elevators", "noop,deadline,kyber", "--seeds", "3"];
    let ran = compare(job, &args);
    assert!(ran.out.contains(", 3 seeds from 1\n") && ran.out.contains("Means over 3 seeds"), "{}", ran.out);
    let cells = |name: &str| {
        let row = ran.out.lines().find(|line| line.starts_with(name)).expect("a row");
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    // Sorted requests are faster than those in order of arrival, with every seed.
    assert!(cells("deadline")[1].ends_with('*') && cells("noop")[1].ends_with('%'), "{}", ran.out);
    let document = compare(job, &[&args[..], &["--json"]].concat()).json();
    let seeded = &document["over_seeds"];
    assert_eq!(seeded["seeds"], json!([1, 2, 3]));
    let rate = &seeded["elevators"][1]["measures"][0];
    assert_eq!((&rate["measure"], &rate["is_chance"]), (&json!("bytes_per_s"), &json!(false)));
    assert_eq!(rate["values"].as_array().map(Vec::len), Some(3));
    assert_eq!(rate["values"][0], document["elevators"][1]["bytes_per_s"]);
}

/// A log that waits for its syncs beside a writer that does not.
const LOG_JOB: &str = "[log]\nrw=write\nbs=4k\nsize=64m\nfdatasync=1\nruntime=2\n\
                       [flood]\nrw=write\nbs=64k\nsize=2g\nruntime=2\n";
const DISK: [&str; 4] = ["--drive", "cmr-8tb", "--elevators", "none,bfq"];

#[test]
fn the_tables_of_a_job_that_syncs_have_the_latencies_of_its_syncs() {
    let folder = Folder::new();
    let ran = compare(LOG_JOB, &[&DISK[..], &["--report", folder.path("page.html").to_str().expect("UTF-8")]].concat());
    let document = compare(LOG_JOB, &[&DISK[..], &["--json"]].concat()).json();
    let sync = |key: &str| {
        let ns = document["elevators"][1]["jobs"][0]["sync_ns"][key].as_f64().expect("a latency");
        if ns < 99.95e6 { format!("{:.1}", ns / 1e6) } else { format!("{:.0}", ns / 1e6) }
    };
    let header: Vec<&str> = ran.out.lines().filter(|line| line.contains("sync p99")).take(1).collect();
    assert!(header[0].contains("sync p99") && header[0].contains("sync max"), "{}", ran.out);
    let bfq: Vec<String> = ran.out.lines().filter(|line| line.starts_with("bfq ")).map(str::to_owned).collect();
    assert!(["p99", "max"].map(sync).iter().all(|figure| bfq.join(" ").contains(figure)), "{}", ran.out);
    let rows = |name: &str| ran.out.lines().filter(|line| line.trim_start().starts_with(name)).collect::<Vec<_>>();
    let [p99, max] = ["p99", "max"].map(|key| rows(&format!("sync {key} ms")));
    assert_eq!((p99.len(), max.len()), (1, 1), "only the log syncs: {}", ran.out);
    assert!(p99[0].trim_end().ends_with(&sync("p99")) && max[0].trim_end().ends_with(&sync("max")), "{}", ran.out);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("sync p99 and sync max: how long it waits for an fsync or fdatasync"), "{text}");
    assert!(text.contains("Under bfq 99 of 100 syncs take at most "), "{text}");
    let page = fs::read_to_string(folder.path("page.html")).expect("a page");
    assert!(page.contains("Sync p99") && page.contains("p99 of syncs, ms") && page.contains("<small>sync p99 "));
}

#[test]
fn the_tables_of_a_job_without_syncs_do_not_name_them() {
    let job = LOG_JOB.replace("fdatasync=1", "fdatasync=0");
    let folder = Folder::new();
    let ran = compare(&job, &[&DISK[..], &["--report", folder.path("page.html").to_str().expect("UTF-8")]].concat());
    assert!(!ran.out.contains("sync"), "{}", ran.out);
    let page = fs::read_to_string(folder.path("page.html")).expect("a page");
    assert!(!page.contains("Sync p99") && !page.contains("\"sync\"") && !page.contains("of syncs"));
}

#[test]
fn several_seeds_have_the_latencies_of_syncs() {
    let ran = compare(LOG_JOB, &[&DISK[..], &["--seeds", "2", "--runtime", "1"]].concat());
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("sync p99 ms") && text.contains("mean to max leave these out"), "{text}");
    let document = compare(LOG_JOB, &[&DISK[..], &["--seeds", "2", "--runtime", "1", "--json"]].concat()).json();
    let measures = document["over_seeds"]["elevators"][0]["measures"].as_array().expect("measures");
    let names: Vec<&str> = measures.iter().filter_map(|measure| measure["measure"].as_str()).collect();
    assert_eq!(names[3..], ["latency_p99_ns", "latency_max_ns", "sync_p99_ns", "sync_max_ns"]);
    assert_eq!(measures[5]["values"][0], document["elevators"][0]["jobs"][0]["sync_ns"]["p99"].as_f64().expect("ns"));
    let names = compare(RANDOM_JOB, &["--elevators", "none", "--seeds", "2", "--json"]).json();
    let measures = &names["over_seeds"]["elevators"][0]["measures"];
    assert_eq!(measures.as_array().map(Vec::len), Some(5), "{measures}");
}

#[test]
fn a_runtime_and_a_scale_shorten_a_job() {
    let job =
        "[a]\nrw=read\nbs=64k\nsize=256m\ndirect=1\ntime_based\nruntime=60\n[b]\nrw=read\nbs=64k\nsize=64m\ndirect=1\n";
    let seconds = |args: &[&str]| {
        let document = compare(job, &[args, &["--elevators", "none", "--json"]].concat()).json();
        let run = &document["elevators"][0];
        let bytes = run["processes"][1]["bytes"].as_u64().expect("bytes");
        (run["runtime_ns"].as_u64().expect("a time") as f64 / 1e9, bytes >> 20)
    };
    let ((short, all), (scaled, quarter)) =
        (seconds(&["--runtime", "2s"]), seconds(&["--scale", "0.25", "--runtime", "3"]));
    assert!((1.9..2.2).contains(&short) && (2.9..3.2).contains(&scaled), "{short} {scaled}");
    assert_eq!((all, quarter), (64, 16));
    assert!(compare(job, &["--runtime", "1s", "--elevators", "none"]).out.contains("with jobs of 1.00 s at most\n"));
    compare(job, &["--scale", "2"]).refused(2, &["above 0 and at most 1"]);
    compare(job, &["--runtime", "0"]).refused(2, &["longer than nothing"]);
}

/// Under an address space of 1.2 GB, 65,536 processes with deep queues do not fit, and a few do.
#[test]
#[cfg(target_os = "linux")]
fn too_many_processes_for_the_memory_are_refused_before_they_run() {
    let folder = Folder::new();
    let job = "[a]\nrw=randrw\nbs=4k\nsize=1m\ndirect=1\nioengine=libaio\niodepth=8\ntime_based\nruntime=60\nnumjobs=";
    let limited = |processes: u32| {
        let file = folder.file("job.fio", format!("{job}{processes}\n"));
        let command = format!("ulimit -v 1200000; exec \"$0\" compare {file} --elevators none --runtime 1ms");
        let program = hoistway(&[]).get_program().to_owned();
        Ran::of(std::process::Command::new("sh").arg("-c").arg(command).arg(program).output().expect("a shell"))
    };
    limited(65_536).refused(1, &["65536 processes under 1 elevators take", "are available", "processes fit"]);
    assert_eq!(limited(100).code, Some(0));
}
