//! `hoistway advise` on machines made of files, without a device, and on loop devices.

use std::process::{Command, Stdio};

use crate::common::{Folder, hoistway, run};
use crate::fake::{Fake, array, server};

/// A short job with two random readers.
const JOB: &str = "[reader]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=40\nnumjobs=2\ndirect=1\n";

/// A machine made of files, and its root as an argument.
fn machine() -> (Fake, String) {
    let fake = server();
    let root = fake.root().to_str().expect("UTF-8").to_owned();
    (fake, root)
}

#[test]
fn without_a_workload_every_device_is_listed_with_its_warnings() {
    let (_fake, root) = machine();
    let ran = run(&["advise", "--root", &root]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let out = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "4.00 TB, rotating, sata",
        "mq-deadline is set; it could be none, kyber, bfq",
        "simulated as cmr-4tb",
        "simulated as ssd-nvme-tlc",
        "the storage below is unknown",
        "no scheduler of its own: the queue of sda schedules its requests",
        "memory: there is no arm",
        "hoistway advise",
        "--for USE",
    ] {
        assert!(out.contains(part), "`{part}` is missing in: {}", ran.out);
    }
    let document = run(&["advise", "sda", "--root", &root, "--json"]).json();
    assert_eq!((&document["devices"][0]["name"], &document["devices"][0]["model"]), (&"sda".into(), &"cmr-4tb".into()));
}

#[test]
fn elevators_of_the_kernel_module_are_candidates_while_it_is_loaded() {
    let (fake, root) = machine();
    let ran = run(&["advise", "--root", &root]);
    assert!(ran.out.contains("hoistway_iosched, which is not installed, would add"), "{}", ran.out);
    fake.load_module();
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    let text = run(&["advise", "sda", "--root", &root, "--job", &job, "--seeds", "2"]);
    assert_eq!(text.code, Some(0), "{}", text.err);
    assert!(text.out.contains("cfq (now)"), "{}", text.out);
    // The prefixed name is the one that is set.
    fake.file("/sys/block/sda/queue/scheduler", "[none] h-bfq\n");
    let streams = "[s]\nrw=read\nbs=128k\nsize=1g\nnumjobs=4\ndirect=1\ntime_based\nruntime=2\n";
    let job = folder.file("streams.fio", streams);
    let args = ["advise", "sda", "--root", &root, "--job", &job, "--drive", "sata-7200-2006", "--seeds", "2"];
    let document = run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(document["verdict"], "change", "{}", document["because"]);
    let scheduler = &document["commands"]["assignments"][0];
    assert_eq!((&scheduler["name"], &scheduler["value"]), (&"scheduler".into(), &"h-bfq".into()), "{document}");
}

#[test]
fn a_job_is_answered_as_text_json_and_page_and_reproducibly() {
    let (_fake, root) = machine();
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    let page = folder.name("page.html");
    let args = ["advise", "sda", "--root", &root, "--job", &job, "--seeds", "2"];
    let text = run(&[&args[..], &["--report", &page]].concat());
    assert_eq!(text.code, Some(0), "{}", text.err);
    for part in ["Advice for sda", "mq-deadline (now)", "Confidence", "as it is set", "To be known", "depth 32"] {
        assert!(text.out.contains(part), "`{part}` is missing in: {}", text.out);
    }
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.contains("Results of each scheduler") && html.matches("<script").count() == 1);
    let document = run(&[&args[..], &["--json"]].concat()).json();
    for key in [
        "schema",
        "device",
        "workload",
        "objective",
        "drive",
        "host",
        "now",
        "verdict",
        "advice",
        "because",
        "confidence",
        "choices",
        "commands",
        "warnings",
    ] {
        assert!(!document[key].is_null(), "{key} is missing");
    }
    assert_eq!(document["drive"]["profile"], "cmr-4tb");
    assert_eq!(document, run(&[&args[..], &["--json"]].concat()).json());
}

#[test]
fn equal_devices_and_idle_loop_devices_are_listed_shortly() {
    let (fake, root) = machine();
    for number in [5, 6] {
        let folder = fake.virtual_device(&format!("loop{number}"), &format!("7:{number}"), 409_600);
        fake.queue(&folder, "[none] mq-deadline", false, 128);
    }
    let out = run(&["advise", "--root", &root]).out;
    assert!(out.contains("\n  as sdb\n"), "{out}");
    assert!(out.contains("loop0, loop5, loop6: loop devices without a scheduler"), "{out}");
    assert!(!out.contains("loop5: loop"), "{out}");
    // A named device is always shown in full.
    let out = run(&["advise", "loop5", "--root", &root]).out;
    assert!(out.contains("loop5: loop") && out.contains("none is set"), "{out}");
}

#[test]
fn a_volume_on_several_paths_is_set_at_the_queue_above_them() {
    let fake = array();
    let root = fake.root().to_str().expect("UTF-8").to_owned();
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    let args = ["advise", "san-db", "--root", &root, "--job", &job, "--seeds", "2", "--json"];
    let document = run(&args).json();
    assert_eq!((&document["device"]["name"], &document["device"]["alike"]), (&"dm-0".into(), &serde_json::json!([])));
    let paths = ["sda", "sdb"].map(|path| format!("/sys/block/{path}/"));
    let commands = document["commands"].to_string();
    assert!(!paths.iter().any(|path| commands.contains(path)), "{commands}");
    if document["verdict"] == "leave" {
        assert_eq!(
            document["commands"]["for_good"],
            serde_json::json!([]),
            "leaving things as they are needs no command"
        );
    }
}

#[test]
fn a_partition_a_volume_and_a_mirror_lead_to_the_queues_that_count() {
    let (_fake, root) = machine();
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    for (named, device, alike) in [("sda1", "sda", 0), ("dm-1", "sda", 0), ("md0", "sdb", 1)] {
        let document = run(&["advise", named, "--root", &root, "--job", &job, "--seeds", "2", "--json"]).json();
        assert_eq!(document["device"]["name"], device, "{named}");
        assert_eq!(document["device"]["named"], named);
        assert_eq!(document["device"]["alike"].as_array().map(Vec::len), Some(alike), "{named}");
    }
    run(&["advise", "zram0", "--root", &root, "--job", &job])
        .refused(1, &["zram0", "no scheduler to choose", "memory"]);
}

#[test]
fn invalid_arguments_are_refused_with_a_remedy() {
    let (_fake, root) = machine();
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    let refused =
        |args: &[&str], code, parts: &[&str]| run(&[&["advise", "--root", &root], args].concat()).refused(code, parts);
    refused(&["--for", "destkop"], 2, &["destkop", "did you mean `desktop`?"]);
    refused(&["--for", "desktop"], 2, &["which device", "sda", "--drive"]);
    refused(&["nosuch", "--for", "desktop"], 1, &["nosuch"]);
    refused(&["sda", "--for", "desktop", "--job", &job], 2, &["--job"]);
    refused(&["sda", "--job", "nosuch.fio"], 1, &["nosuch.fio"]);
    refused(&["sda", "--job", &job, "--drive", "cmr-4"], 2, &["cmr-4", "did you mean"]);
    refused(&["sda", "--job", &job, "--drive", "fit"], 2, &["fits a drive to a trace"]);
    refused(&["--job", &job, "--drive", "auto"], 2, &["name the device"]);
    refused(&["sda", "--job", &job, "--objective", "p99(redaer) min"], 2, &["did you mean `reader`?", "    ^^^^^^"]);
    refused(&["sda", "--tune"], 2, &["--tune needs a workload"]);
    refused(&["sda", "--job", &job, "--seeds", "1"], 2, &["--seeds"]);
    refused(&["sda", "--job", &job, "--tune", "--tunables", "bfq.slice_idel"], 2, &["did you mean `slice_idle`?"]);
    refused(
        &["sda", "--job", &job, "--tune", "--tunables", "cfq"],
        2,
        &["no scheduler that could be set", "mq-deadline"],
    );
    refused(&["sda", "--trace", "nosuch"], 1, &["nosuch"]);
    refused(&["--for", "media", "--drive", "cmr-4tb", "--seconds", "5"], 2, &["--tune"]);
    refused(&["sda", "--for", "media", "--columns", "time=1:s,size=2:bytes"], 2, &["name it with --trace"]);
}

#[test]
fn apply_asks_on_a_terminal_and_refuses_in_a_pipe() {
    let (fake, root) = machine();
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    let before = fake.text("/sys/block/sda/queue/scheduler");
    let args = ["advise", "sda", "--root", &root, "--job", &job, "--apply"];
    run(&args).refused(2, &["--apply asks", "no terminal", "--yes"]);
    run(&[&args[..], &["--json"]].concat()).refused(2, &["--yes"]);
    assert_eq!(fake.text("/sys/block/sda/queue/scheduler"), before, "nothing was written");
}

#[test]
fn apply_sets_the_advised_values_and_prints_the_way_back() {
    let (fake, root) = machine();
    let folder = Folder::new();
    // A kernel creates the files of a scheduler's tunables when it is set; here they exist before.
    fake.bfq("/sys/block/sda");
    // Streams are faster with long turns, which bfq grants unless it takes them for starting
    // programs.
    let job = folder.file("mine.fio", "[s]\nrw=read\nbs=128k\nsize=1g\nnumjobs=4\ndirect=1\ntime_based\nruntime=2\n");
    let args = [
        "advise",
        "sda",
        "--root",
        &root,
        "--job",
        &job,
        "--drive",
        "sata-7200-2006",
        "--seeds",
        "2",
        "--json",
        "--apply",
        "--yes",
    ];
    let ran = run(&args);
    let document = ran.json();
    assert_eq!(document["verdict"], "change", "{}", document["because"]);
    let words = document["commands"]["assignments"].as_array().expect("assignments");
    assert!(!words.is_empty());
    for word in words {
        let file = match word["name"].as_str().expect("a name") {
            "scheduler" => "queue/scheduler".to_owned(),
            name => format!("queue/iosched/{name}"),
        };
        assert_eq!(fake.text(&format!("/sys/block/sda/{file}")), word["value"], "{word}");
    }
    assert!(ran.err.contains("Back: hoistway devices set sda"), "{}", ran.err);
}

#[test]
fn a_search_prints_a_front_reproducibly() {
    let folder = Folder::new();
    let job = folder.file("mine.fio", JOB);
    let args = [
        "advise",
        "--job",
        &job,
        "--drive",
        "null",
        "--tune",
        "--evaluations",
        "12",
        "--tunables",
        "bfq.slice_idle,mq-deadline.fifo_batch",
    ];
    let text = run(&args);
    assert_eq!(text.code, Some(0), "{}", text.err);
    for part in ["choices were tried", "No other trial is better in both throughput and", "Confidence"] {
        assert!(text.out.contains(part), "`{part}` is missing in: {}", text.out);
    }
    let of = || run(&[&args[..], &["--json"]].concat()).json();
    let document = of();
    assert_eq!(document["evaluations"], 12);
    assert!(document["front"].as_array().is_some_and(|front| !front.is_empty()));
    assert_eq!(document, of());
}

/// A loop device over a file, detached on drop.
struct Loop(String);

impl Loop {
    /// Attaches a device; `None`, with a message, where that is not possible.
    fn new(folder: &Folder) -> Option<Loop> {
        let file = folder.file("image", "");
        std::fs::File::options()
            .write(true)
            .open(&file)
            .and_then(|file| file.set_len(64 << 20))
            .expect("a sparse file");
        let made = Command::new("losetup").args(["--find", "--show", &file]).stderr(Stdio::null()).output();
        let name = made
            .ok()
            .filter(|made| made.status.success())
            .map(|made| String::from_utf8_lossy(&made.stdout).trim().to_owned());
        if name.is_none() {
            assert!(std::env::var_os("CI").is_none(), "CI has root and losetup");
            eprintln!("skipped: this needs root, losetup and a free loop device");
        }
        name.map(|path| Loop(path.trim_start_matches("/dev/").to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.0)]).status();
    }
}

#[test]
fn a_loop_device_is_advised_on_under_each_scheduler() {
    let folder = Folder::new();
    let Some(device) = Loop::new(&folder) else { return };
    let job = folder.file("mine.fio", JOB);
    let scheduler = format!("/sys/block/{}/queue/scheduler", device.0);
    let there = std::fs::read_to_string(&scheduler).expect("a loop device has a queue");
    let names: Vec<String> = there.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect();
    for name in &names {
        std::fs::write(&scheduler, name).expect("root may set it");
        let document = run(&["advise", &device.0, "--job", &job, "--seeds", "2", "--json"]).json();
        assert_eq!(document["now"]["scheduler"], name.as_str());
        assert_eq!(document["now_is_set"], true);
        let warnings = document["warnings"].as_array().expect("warnings");
        let said = |part: &str| warnings.iter().any(|text| text.as_str().is_some_and(|text| text.contains(part)));
        assert!(said("is a file"), "{warnings:?}");
        let ionice = name == "none" || name == "kyber";
        assert_eq!(said("`ionice` has no effect"), ionice, "{name}: {warnings:?}");
    }
}

#[test]
fn help_names_the_uses_and_the_objective() {
    let output = hoistway(&["advise", "--help"]).output().expect("the binary starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["desktop, database, vm-host, backup, media", "--objective", "fairness", "Exit codes"] {
        assert!(text.contains(part), "{part}");
    }
}
