//! `hoistway drives --fit`: profiles from traces, and errors for unsuitable traces.

use std::fmt::Write;

use crate::common::{Folder, TINY_JOB, run};

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../drive/testdata/cheetah4LP.trace.gz");

const DISKSIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../drive/testdata/cheetah15k5.trace.gz");

/// A trace of a drive with service times of 4 to 12 ms for all sectors: 7200 rpm with a constant
/// seek.
fn trace(requests: u64) -> String {
    let mut text = "issue_us,op,sector,sectors,service_us\n".to_owned();
    let (mut issue_us, mut random) = (0, 1u64);
    // The upper bits of Knuth's MMIX generator.
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    for _ in 0..requests {
        let service_us = 4000 + below(8333);
        writeln!(text, "{issue_us},R,{},8,{service_us}", below(100_000_000)).expect("a string");
        issue_us += service_us + 500;
    }
    text
}

#[test]
fn a_fitted_profile_is_described_with_its_error() {
    let folder = Folder::new();
    let mine = folder.name("mine.toml");
    let fitted = run(&["drives", "--fit", &folder.file("trace.csv", trace(1000)), "-o", &mine]);
    assert_eq!(fitted.code, Some(0), "{}", fitted.err);
    assert!(fitted.err.lines().all(|line| line.starts_with("warning: ")), "{}", fitted.err);
    assert!(fitted.err.contains("warning: the trace has no writes"), "{}", fitted.err);
    assert!(fitted.out.contains("7200.0 rpm") && fitted.out.contains("held out"), "{}", fitted.out);
    assert!(fitted.out.contains("surfaces are assumed"), "unknown properties are reported: {}", fitted.out);
    let explained = run(&["drives", &mine, "--json"]).json();
    assert_eq!(explained["drives"][0]["name"], "mine");
    // 4 ms, half a revolution, and a negligible transfer.
    let read_ms = explained["drives"][0]["random_read_4k_ms"].as_f64().expect("a number");
    assert!((read_ms - 8.17).abs() < 0.2, "{read_ms}");
    let compared = run(&["compare", &folder.file("job.fio", TINY_JOB), "--drive", &mine, "--elevators", "noop"]);
    assert_eq!(compared.code, Some(0), "{}", compared.err);
}

#[test]
fn a_gzipped_recording_is_fitted_and_printed_as_json() {
    let document = run(&["drives", "--fit", RECORDING, "--json"]).json();
    assert_eq!(document["held_out"]["requests"], 5000);
    let found = document["found"].as_array().expect("a list");
    assert!(found.iter().any(|found| found["what"] == "revolution" && found["value"] == "6000000.0 ns, 10000.0 rpm"));
    assert!(document["toml"].as_str().expect("text").contains("[seek]"));
}

#[test]
fn without_a_file_to_write_the_profile_is_printed() {
    let folder = Folder::new();
    let fitted = run(&["drives", "--fit", &folder.file("trace.csv", trace(500))]);
    let profile = fitted.out.split("The profile\n").nth(1).expect("the profile comes last");
    let again = run(&["drives", &folder.file("again.toml", profile)]);
    assert_eq!(again.code, Some(0), "{}", again.err);
}

#[test]
fn traces_in_every_promised_form_are_read() {
    let folder = Folder::new();
    let text = trace(500);
    let fitted = |file: &str| {
        let document = run(&["drives", "--fit", file, "--json"]).json();
        (document["held_out"].clone(), document["warnings"].as_array().map(Vec::len))
    };
    let plain = fitted(&folder.file("plain.csv", &text));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).expect("memory");
    assert_eq!(fitted(&folder.file("packed.csv.gz", gzip.finish().expect("memory"))), plain);
    assert_eq!(fitted(&folder.file("windows.csv", text.replace('\n', "\r\n"))), plain);
    // The format of DiskSim has the pause after a request instead of its time of issue.
    let lines = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let disksim: String =
        lines.map(|fields| format!("{} Miss {} {} {} 500\n", fields[1], fields[2], fields[3], fields[4])).collect();
    assert_eq!(fitted(&folder.file("disksim.trace", disksim)), plain);
}

#[test]
fn a_model_is_validated_by_kind_of_request() {
    let args = ["drives", "--validate", "cheetah15k5_146", DISKSIM, "--buffer-off"];
    let ran = run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let row = |kind: &str| {
        ran.out
            .lines()
            .find(|line| line.trim_start().starts_with(kind))
            .unwrap_or_else(|| panic!("{kind}: {}", ran.out))
    };
    // The figures of docs/drives.md.
    assert_eq!(row("all ").split_whitespace().take(4).collect::<Vec<_>>(), ["all", "10000", "1.138", "0.241"]);
    for kind in ["reads ", "writes ", "elsewhere ", "at once ", "after a pause "] {
        assert!(row(kind).contains("recorded"), "{}", ran.out);
    }
    assert!(ran.out.contains("coherence 0.97"), "{}", ran.out);
    let document = run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!((&document["schema"], &document["kinds"][0]["kind"]), (&1.into(), &"all".into()));
    assert_eq!(document["kinds"][0]["recorded_ms"].as_array().map(Vec::len), Some(3));
    // With its buffer the model is faster than the recording.
    let cached = run(&args[..4]);
    assert!(cached.code == Some(0) && cached.err.starts_with("warning: "), "{}", cached.err);
}

#[test]
fn unsuitable_validations_are_refused() {
    let folder = Folder::new();
    let good = folder.file("good.csv", trace(500));
    run(&["drives", "--validate", "cheetah4P", &good]).refused(2, &["did you mean `cheetah4LP`", "cheetah9LP"]);
    run(&["drives", "--validate", "cheetah4LP"]).refused(2, &["2 values required"]);
    run(&["drives", "--validate", "hp_c3323a", &good]).refused(1, &["good.csv", "of the recording", "sector"]);
    run(&["drives", "--validate", "cheetah4LP", &folder.file("few.csv", trace(50))])
        .refused(1, &["few.csv", "has 50 requests"]);
    let overlapping = trace(500).lines().map(|line| line.replace(",8,", ",8,9")).collect::<Vec<_>>().join("\n");
    run(&["drives", "--validate", "cmr-4tb", &folder.file("together.csv", overlapping)])
        .refused(1, &["together.csv", "request 1 of the recording was issued before the previous one completed"]);
    run(&["drives", "--buffer-off"]).refused(2, &["--validate"]);
}

#[test]
fn a_base_keeps_its_geometry() {
    let folder = Folder::new();
    let mine = folder.name("mine.toml");
    let fitted = run(&["drives", "--fit", &folder.file("t.csv", trace(500)), "--base", "cmr-4tb", "-o", &mine]);
    assert_eq!(fitted.code, Some(0), "{}", fitted.err);
    let [base, mine] = ["cmr-4tb", &mine].map(|drive| run(&["drives", drive, "--json"]).json()["drives"][0].clone());
    for kept in ["cylinders", "surfaces", "capacity_bytes", "head_switch_ms"] {
        assert_eq!(base[kept], mine[kept], "{kept}");
    }
    assert_ne!(base["random_read_4k_ms"], mine["random_read_4k_ms"]);
}

#[test]
fn unsuitable_traces_are_refused_with_line_and_reason() {
    let folder = Folder::new();
    let refused = |text: &str, parts: &[&str]| run(&["drives", "--fit", &folder.file("t.csv", text)]).refused(1, parts);
    refused(&trace(100), &["t.csv", "100 requests have a service time", "at least 400 are needed"]);
    refused("issue_us,op\n", &["t.csv:1: field 3", "`issue_us,op,sector,sectors,service_us`"]);
    refused(&trace(500).replacen("\n0,R", "\nsoon,R", 1), &["t.csv:2: field 1 is `soon`", "a time in microseconds"]);
    refused("R Hit 5 8 4067.0\n", &["t.csv:1: field 6", "a time in microseconds"]);
    run(&["drives", "--fit", &folder.name("absent.csv")]).refused(1, &["absent.csv", "No such file"]);
    run(&["drives", "sata-7200-2006", "--fit", "t.csv"]).refused(2, &["cannot be used with"]);
    run(&["drives", "-o", "t.toml"]).refused(2, &["--fit"]);
    let good = folder.file("good.csv", trace(500));
    run(&["drives", "--fit", &good, "--base", "ssd-fiops"]).refused(1, &["ssd-fiops", "has no platter"]);
    run(&["drives", "--fit", &good, "--base", "cmr-5tb"]).refused(2, &["did you mean `cmr-4tb` or `cmr-8tb`?"]);
}
