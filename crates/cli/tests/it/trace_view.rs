//! `hoistway trace view`: pages of recorded traces, and refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/testdata").join(name)
}

fn view(folder: &Path, trace: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(["trace", "view"]).arg(trace).args(more).current_dir(folder).output().expect("the program runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn every_recorded_trace_has_a_page_with_its_requests() {
    let folder = tempfile::tempdir().unwrap();
    // Number of requests, as counted by blkparse: completed, or in flight at the end of the
    // recording.
    for (trace, page, requests) in [
        ("blktrace/vda-bfq.blktrace.*.xz", "vda-bfq.html", "1085 requests"),
        ("blktrace/android-emmc.blktrace.0.xz", "android-emmc.html", "963 requests"),
        ("blkreplay/windows-shared-server.load.gz", "windows-shared-server.html", "1371 requests"),
    ] {
        let output = view(folder.path(), &data(trace), &[]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(
            said(&output).contains(&format!("wrote {page}")) && said(&output).contains(requests),
            "{}",
            said(&output)
        );
        let html = fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(html.contains("id=\"hoistway-chunk-0\"") && html.len() < 500_000, "{trace}: {} bytes", html.len());
    }
}

#[test]
fn a_trace_under_bfq_has_its_queues_and_its_elevator() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        view(folder.path(), &data("blktrace/vda-bfq.blktrace.*.xz"), &["-o", "page.html", "--title", "A <title>"]);
    assert!(output.status.success(), "{}", said(&output));
    let html = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for part in ["<dd>bfq</dd>", "data-chart=\"scheduler\"", "shared by several", "A &lt;title&gt;", "<dd>254,0</dd>"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn other_machines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = view(folder.path(), &data("blkreplay/windows-shared-server.load.gz"), &["--serve=0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("only a loopback address is supported, such as --serve=127.0.0.1:0"),
        "{}",
        said(&output)
    );
}

#[test]
fn an_invalid_trace_is_reported_and_no_page_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "buy milk\n").unwrap();
    let output = view(folder.path(), &file, &[]);
    assert!(!output.status.success() && said(&output).contains("notes.txt"), "{}", said(&output));
    assert!(!folder.path().join("notes.html").exists());
}

#[test]
fn operation_bits_of_page_and_event_are_equal() {
    use hoistway_trace::Rwbs;
    let bits = [Rwbs::READ, Rwbs::WRITE, Rwbs::DISCARD, Rwbs::FLUSH, Rwbs::FUA, Rwbs::AHEAD, Rwbs::SYNC, Rwbs::META];
    assert_eq!(bits.map(|bit| bit.0), [1, 2, 4, 8, 16, 32, 64, 128]);
    assert_eq!([Rwbs::NONE.0, Rwbs::PASS_THROUGH.0], [256, 512]);
}
