//! `hoistway trace whatif` and `hoistway trace replay` on traces that lack something, from outside.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Ran, run};

/// The requests of tar over many small files, submissions alone.
fn tar() -> String {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("examples/tar-reorder/tar.bin.xz")
        .display()
        .to_string()
}

/// Lines of blkparse's text: `count` reads of 8 sectors of one process at random places, each 2 ms
/// after the completion of the one before, whose steps with these letters are recorded.
fn random_reads(count: u64, steps: &str) -> String {
    let mut text = String::new();
    let (mut at_us, mut place) = (0, 1u64);
    for _ in 0..count {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let sector = (place >> 33) % 30_000_000 * 8;
        let took_us = 3000 + place % 8000;
        for (letter, us) in [('Q', at_us), ('D', at_us + 1), ('C', at_us + took_us)] {
            if steps.contains(letter) {
                let who = if letter == 'C' { "[0]" } else { "[reader]" };
                let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
                writeln!(text, "8,0 0 1 {s}.{ns:09} 7 {letter} R {sector} + 8 {who}").expect("a string takes it");
            }
        }
        at_us += took_us + 2000;
    }
    text
}

#[test]
fn submissions_alone_are_predicted_and_marked_as_not_validated() {
    let ran = run(&["trace", "whatif", &tar(), "--elevators", "noop,bfq"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in [
        "Assumed, because the trace has no completions",
        "Open loop: each request is submitted at its recorded time",
        "Predicted, not validated against the recording",
        "Confidence: low",
        "The prediction is not validated against the recording",
        "The drive is sata-7200-2006",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing in: {}", ran.out);
    }
}

#[test]
fn the_mark_is_in_the_json_and_on_the_page() {
    let folder = Folder::new();
    let page = folder.name("whatif.html");
    let args =
        ["trace", "whatif", &tar(), "--elevators", "noop,bfq", "--loop", "closed:2", "--json", "--report", &page];
    let json = run(&args).json();
    assert_eq!((&json["validated"], &json["model"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!(
        (&json["loop"], &json["outstanding"], &json["confidence"]),
        (&"closed".into(), &2.into(), &"low".into())
    );
    assert_eq!(json["validation"], "not validated against the recording");
    let assumption = json["assumptions"][0].as_str().expect("an assumption");
    assert!(assumption.starts_with("closed loop:") && assumption.contains("fewer than 2"), "{assumption}");
    assert_eq!(json["elevators"].as_array().map(Vec::len), Some(2));
    let requests: u64 = json["elevators"][0]["processes"]
        .as_array()
        .expect("processes")
        .iter()
        .map(|process| process["requests"].as_u64().expect("a number"))
        .sum();
    assert_eq!(requests, 2891, "each request is made once");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("not validated against the recording"));
}

#[test]
fn streams_stand_for_processes_that_the_trace_does_not_name() {
    let folder = Folder::new();
    let mut text = String::from("version 2\n");
    for number in 0..40 {
        for (from, ms) in [(0, 0), (1 << 30, 1)] {
            writeln!(text, "{} {} {} 8 1", (number * 4 + ms) * 1_000_000, 0, from / 512 + number * 8)
                .expect("it takes it");
        }
    }
    let trace = folder.file("mqsim.trace", text.split_once('\n').expect("lines").1);
    let json = run(&["trace", "whatif", &trace, "--format", "mqsim", "--elevators", "cfq", "--json"]).json();
    let names: Vec<_> = json["processes"].as_array().expect("processes").iter().map(|of| of["name"].clone()).collect();
    assert_eq!(names, ["stream 1 of reads", "stream 2 of reads"], "{json}");
}

#[test]
fn a_trace_without_completions_has_no_drive_to_fit_and_the_message_names_the_way() {
    let ran = run(&["trace", "whatif", &tar(), "--drive", "fit"]);
    ran.refused(
        1,
        &[
            "2,891 submissions (Q), no issues (D), no completions (C)",
            "no drive can be fitted",
            "--drive ssd-sata-consumer",
        ],
    );
    let ran = run(&["advise", "--trace", &tar(), "--drive", "sata-7200-2006"]);
    ran.refused(1, &["no completions (C)", "`hoistway trace whatif", "predicts without validation"]);
}

#[test]
fn advise_reads_a_table_by_its_columns() {
    let folder = Folder::new();
    let lines: String = (0..30).map(|at| format!("{at}.5;{};4096\n", at * 7919)).collect();
    let table = folder.file("requests.txt", lines);
    let columns = ["--columns", "time=1:s,offset=2:sectors,size=3:bytes"];
    let ran = run(&[&["advise", "--trace", &table, "--drive", "sata-7200-2006"], &columns[..]].concat());
    ran.refused(1, &["30 submissions (Q), no issues (D), no completions (C)"]);
}

#[test]
fn too_few_requests_for_a_fit_are_reported_with_the_contents_of_the_trace() {
    let folder = Folder::new();
    let trace = folder.file("few.txt", random_reads(50, "QDC"));
    let ran = run(&["trace", "whatif", &trace, "--recorded", "noop", "--elevators", "noop"]);
    ran.refused(
        1,
        &["50 submissions (Q), 50 issues (D), 50 completions (C)", "at least 400", "Name a drive with --drive"],
    );
}

#[test]
fn a_trace_of_completions_alone_names_what_is_missing() {
    let folder = Folder::new();
    let trace = folder.file("completions.txt", random_reads(50, "C"));
    let ran = run(&["trace", "whatif", &trace, "--recorded", "noop"]);
    ran.refused(1, &["no submissions (Q), no issues (D), 50 completions (C)", "hoistway trace describe", "blktrace"]);
    let ran = run(&["trace", "replay", &trace, "--drive", "sata-7200-2006"]);
    ran.refused(1, &["no submissions (Q), no issues (D), 50 completions (C)"]);
}

#[test]
fn a_loop_is_for_traces_without_completions() {
    let folder = Folder::new();
    let trace = folder.file("whole.txt", random_reads(50, "QDC"));
    let ran = run(&["trace", "whatif", &trace, "--recorded", "noop", "--loop", "open"]);
    ran.refused(2, &["has completions", "leave --loop out"]);
    run(&["trace", "whatif", &trace, "--loop", "half"]).refused(2, &["closed:N"]);
}

#[test]
fn damaged_requests_are_left_out_and_reported() {
    let folder = Folder::new();
    let whole = random_reads(500, "QDC");
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    let mut replace = |line: usize, field: usize, value: &str| {
        let mut fields: Vec<&str> = lines[line].split(' ').collect();
        fields[field] = value;
        lines[line] = fields.join(" ");
    };
    // The submission of a request years later, a length of 2 GiB and a sector beyond any drive.
    replace(3 * 499, 3, "1000000000.000000000");
    (0..3).for_each(|step| replace(3 * 100 + step, 9, "4194304"));
    (0..3).for_each(|step| replace(3 * 200 + step, 7, "1125899906842624"));
    let trace = folder.file("damaged.txt", lines.join("\n") + "\n");
    // The CPU time of the process is limited to 20 s.
    let sh = format!(
        "ulimit -t 20; exec {} trace whatif {trace} --recorded noop --drive sata-7200-2006 --elevators noop --json",
        env!("CARGO_BIN_EXE_hoistway")
    );
    let ran = Ran::of(Command::new("sh").args(["-c", &sh]).output().expect("sh is there"));
    let json: serde_json::Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{:?} {}{}", ran.code, ran.out, ran.err));
    let notes = json["notes"].to_string();
    for part in ["impossible length is left out", "impossible time", "impossible sector is left out"] {
        assert!(notes.contains(part), "`{part}` is missing in: {notes}");
    }
    // 500 requests of 5 to 13 ms.
    let duration_ns = json["duration_ns"].as_u64().expect("a number");
    assert!(duration_ns < 10_000_000_000, "{duration_ns}");
}

#[test]
fn a_replay_on_a_drive_model_has_the_same_report_under_any_elevator() {
    let replay = |elevator: &str, timing: &str| {
        let on = ["--drive", "sata-7200-2006", "--elevator", elevator, "--timing", timing, "--json"];
        run(&[&["trace", "replay", &tar()], on.as_slice()].concat()).json()
    };
    for (elevator, timing) in [("noop", "recorded"), ("bfq", "recorded"), ("bfq", "dependent")] {
        let json = replay(elevator, timing);
        let target = json["target"].as_str().expect("a target");
        assert!(target.contains("sata-7200-2006") && target.ends_with(elevator), "{target}");
        assert_eq!(json["replayed"]["kinds"]["reads"]["requests"], 2891, "{json}");
        assert!(json["replayed"]["kinds"]["reads"]["latency_ns"]["p99"].as_u64() > Some(0), "{json}");
    }
}

#[test]
fn a_replay_of_submissions_alone_says_what_its_timing_cannot_keep() {
    let on = ["trace", "replay", &tar(), "--drive", "sata-7200-2006", "--timing"];
    let dependent = run(&[&on[..], &["dependent"]].concat());
    assert_eq!(dependent.code, Some(0), "{}", dependent.err);
    assert!(dependent.err.contains("no completions") && dependent.err.contains("recorded gap"), "{}", dependent.err);
    assert!(dependent.out.contains("maximum of outstanding requests 1, recorded unknown"), "{}", dependent.out);
    let asap = run(&[&on[..], &["asap"]].concat());
    assert!(asap.err.contains("one at a time; --depth N"), "{}", asap.err);
}
