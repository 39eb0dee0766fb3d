//! `hoistway trace info`, the sample in the program, and what commands say of traces that lack
//! something.

use crate::common::{Folder, run};

/// Path of a file in the test data of hoistway-trace.
fn data(name: &str) -> String {
    format!("{}/../trace/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The words of the line that begins with `name`.
fn row<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().find(|line| line.starts_with(name)).unwrap_or_default().split_whitespace().collect()
}

#[test]
fn info_names_the_format_its_reason_and_the_contents() {
    let ran = run(&["trace", "info", &data("trace-cmd/report.txt.gz")]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("text of the kernel's tracing (ftrace), unpacked by gzip"), "{}", ran.out);
    assert!(ran.out.contains("detected from process, CPU in brackets and seconds in line 2"), "{}", ran.out);
    // Counted with awk in the report: 42 block_bio_queue, 42 block_rq_issue, 43 block_rq_complete.
    for (name, count) in [("submissions (Q)", "42"), ("issues (D)", "42"), ("completions (C)", "43"), ("devices", "1")]
    {
        assert!(row(&ran.out, name).contains(&count), "{name}: {}", ran.out);
    }
}

#[test]
fn info_as_json_has_the_same_and_a_forced_format_is_named() {
    let json = run(&["trace", "info", &data("samples/umass.spc"), "--json"]).json();
    assert_eq!(json["inputs"][0]["format"], "spc");
    assert_eq!((&json["requests"]["requests"], &json["requests"]["completed"]), (&5.into(), &0.into()));
    assert_eq!(json["queue_depth_max"], serde_json::Value::Null);
    let forced = run(&["trace", "info", &data("samples/disksim.ascii"), "--from", "disksim", "--json"]).json();
    assert_eq!(forced["inputs"][0]["detected_from"], "it was specified");
    run(&["trace", "info", &data("samples/umass.spc"), "--from", "tea"]).refused(2, &["unknown format `tea`", "spc"]);
}

#[test]
fn cut_keeps_from_for_times() {
    let ran = run(&["trace", "cut", &data("samples/umass.spc"), "--from", "1", "--format", "spc", "-q"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 1), "{}", ran.err);
}

#[test]
fn the_sample_of_the_program_is_a_trace() {
    let ran = run(&["trace", "describe", "sample:two-readers"]);
    assert!(ran.out.starts_with("two-readers: 743 requests, 12.2 MB in 5.60 s, of 2 processes"), "{}", ran.out);
    run(&["trace", "describe", "sample:three"])
        .refused(2, &["there is no sample:three: sample:two-readers is the sample"]);
}

#[test]
fn a_trace_without_requests_is_refused_by_view_as_by_the_others() {
    let folder = Folder::new();
    let header = "time_ns,action,device,cpu,pid,sequence,rwbs,sector,bytes,error,cgroup,process,payload";
    let trace = folder
        .file("notes.csv", format!("{header}\n1,N,8:0,0,5,0,,0,0,0,0,fio,fio\n2,m,8:0,0,5,0,N,0,0,0,0,fio,hello\n"));
    let page = folder.name("page.html");
    run(&["trace", "view", &trace, "-o", &page])
        .refused(1, &["notes.csv: there is nothing to draw: none of its 2 events is of a request"]);
    assert!(!std::path::Path::new(&page).exists(), "no page is written");
    run(&["trace", "describe", &trace]).refused(1, &["has no events of requests, only 2 messages and names"]);
}

#[test]
fn no_lane_of_a_page_appears_twice() {
    let folder = Folder::new();
    // 150 processes on three devices: more than have lanes of their own.
    let header = "time_ns,action,device,cpu,pid,sequence,rwbs,sector,bytes,error,cgroup,process,payload\n";
    let lines: String = (0..3000u32)
        .map(|at| {
            let (pid, device, sector) = (at % 150, at % 3, at * 8);
            format!("{}000,Q,8:{device},0,{pid},0,R,{sector},4096,0,0,,\n{}500,C,8:{device},0,{pid},0,R,{sector},4096,0,0,,\n", at, at)
        })
        .collect();
    let trace = folder.file("many.csv", format!("{header}{lines}"));
    let page = folder.name("page.html");
    assert_eq!(run(&["trace", "view", &trace, "-o", &page]).code, Some(0));
    let html = std::fs::read_to_string(&page).expect("the page");
    let start = html.find("application/json").expect("the tables of the page");
    let json = html[start..].split_once('>').and_then(|(_, rest)| rest.split_once("</script>")).expect("a script").0;
    let tables: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let lanes = tables["lanes"].as_array().expect("lanes");
    let rows: std::collections::BTreeSet<String> =
        lanes.iter().map(|lane| format!("{} {} {}", lane["device"], lane["pid"], lane["name"])).collect();
    assert!(lanes.len() > 10);
    assert_eq!(rows.len(), lanes.len());
}
