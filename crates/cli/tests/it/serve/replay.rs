//! `hoistway trace replay` on files, servers and drive models.

use std::path::Path;

use hoistway_trace::blktrace::Writer;
use hoistway_trace::{Action, DeviceId, Event, Rwbs};

use super::server::{Server, write_pattern};
use crate::common::{Folder, Ran, run};

const READ: Rwbs = Rwbs::READ;
const WRITE: Rwbs = Rwbs::WRITE;

/// A trace of one process with requests at intervals of 2 ms that take 1 ms each: operation, first
/// sector, bytes.
pub(super) fn write_trace(path: &Path, requests: &[(Rwbs, u64, u32)]) {
    let mut writer = Writer::new(Vec::new()).counting();
    let device = DeviceId::new(8, 0);
    let name = Event { device, pid: 7, ..Event::new(1_000, Action::Process) };
    writer.event(&name, b"teller").expect("memory takes it");
    for (at, (op, sector, bytes)) in requests.iter().enumerate() {
        let queued_ns = 1_000_000 + at as u64 * 2_000_000;
        let steps = [
            (Action::Queue, 0),
            (Action::Get, 1),
            (Action::Insert, 2),
            (Action::Issue, 3),
            (Action::Complete, 1_000_000),
        ];
        for (action, after_ns) in steps {
            let event = Event {
                device,
                pid: 7,
                sector: *sector,
                bytes: *bytes,
                op: *op,
                ..Event::new(queued_ns + after_ns, action)
            };
            writer.event(&event, b"").expect("memory takes it");
        }
    }
    std::fs::write(path, writer.into_inner()).expect("the folder can be written");
}

fn trace(folder: &Folder, requests: &[(Rwbs, u64, u32)]) -> String {
    write_trace(&folder.path("trace"), requests);
    folder.name("trace")
}

/// A folder with a disk of 1 MiB whose blocks are filled with their number.
fn disk() -> Folder {
    let folder = Folder::new();
    write_pattern(&folder.path("disk"), 1 << 20);
    folder
}

fn replay(args: &[&str]) -> Ran {
    let mut all = vec!["trace", "replay"];
    all.extend(args);
    run(&all)
}

/// The 4 KiB blocks that differ from the disk of [`disk`].
fn changed(path: &Path) -> Vec<usize> {
    let bytes = std::fs::read(path).expect("the disk is there");
    let blocks = bytes.chunks(4096).enumerate();
    blocks.filter(|(at, block)| block.iter().any(|byte| *byte != (at % 251) as u8)).map(|(at, _)| at).collect()
}

#[test]
fn requests_on_a_file_have_the_recorded_places_and_times() {
    let folder = disk();
    let trace = trace(&folder, &[(READ, 0, 8192), (WRITE, 16, 4096), (READ, 800, 4096), (WRITE, 80, 8192)]);
    let json = replay(&[&trace, "--on", &folder.name("disk"), "--write", "--json"]).json();
    assert_eq!((&json["schema"], &json["requests"], &json["failed"]), (&1.into(), &4.into(), &0.into()));
    for side in ["recorded", "replayed"] {
        let reads = &json[side]["kinds"]["reads"];
        assert_eq!((&reads["requests"], &reads["bytes"]), (&2.into(), &12_288.into()), "{side}");
        assert_eq!(json[side]["processes"][0]["name"], "teller");
    }
    // The last is submitted 6 ms after the first; recorded, it took 1 ms.
    assert!(json["replayed"]["elapsed_ns"].as_u64() >= Some(6_000_000), "{json}");
    assert_eq!(json["recorded"]["elapsed_ns"], 7_000_000);
    assert!(json["lag_ns"]["max"].is_u64(), "{json}");
    assert_eq!(changed(&folder.path("disk")), [2, 10, 11]);
}

#[test]
fn requests_are_replayed_on_a_server() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk"]);
    let trace = trace(&server.folder, &[(READ, 0, 8192), (WRITE, 16, 4096), (Rwbs::WRITE.with(Rwbs::FLUSH), 0, 0)]);
    for timing in ["recorded", "asap", "dependent"] {
        let json = replay(&[&trace, "--on", &server.uri(0), "--write", "--json", "--timing", timing]).json();
        assert_eq!((&json["failed"], &json["timing"]), (&0.into(), &timing.into()));
        let of = |kind: &str| json["replayed"]["kinds"][kind]["requests"].as_u64();
        assert_eq!((of("reads"), of("writes"), of("flushes")), (Some(1), Some(1), Some(1)), "{json}");
    }
    assert_eq!(changed(&server.folder.path("disk")), [2]);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn each_process_has_a_connection_of_its_own() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk"]);
    let (one, other, both) = (server.folder.path("one"), server.folder.path("other"), server.folder.name("both"));
    write_trace(&one, &[(READ, 0, 4096), (WRITE, 16, 4096)]);
    write_trace(&other, &[(READ, 800, 4096), (WRITE, 80, 8192)]);
    let mut bytes = std::fs::read(&one).expect("it was written");
    let mut second = std::fs::read(&other).expect("it was written");
    // The process id is at byte 32 of a record; the process name follows the first record.
    let mut at = 0;
    while at < second.len() {
        second[at + 32] = 8;
        at += 48 + usize::from(u16::from_le_bytes([second[at + 46], second[at + 47]]));
    }
    bytes.append(&mut second);
    std::fs::write(&both, bytes).expect("the folder can be written");
    let json = replay(&[&both, "--on", &server.uri(0), "--write", "--json"]).json();
    assert!(json["target"].as_str().is_some_and(|target| target.ends_with("connections: 2")), "{}", json["target"]);
    assert_eq!(json["replayed"]["processes"].as_array().map(Vec::len), Some(2));
    assert_eq!((&json["requests"], &json["failed"]), (&4.into(), &0.into()));
    assert_eq!(changed(&server.folder.path("disk")), [2, 10, 11]);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_drive_model_is_deterministic() {
    let folder = Folder::new();
    let requests: Vec<_> = (0..50).map(|at| (READ, at * 1_000_003 % 100_000_000 / 8 * 8, 4096)).collect();
    let trace = trace(&folder, &requests);
    let on = ["--drive", "sata-7200-2006", "--elevator", "deadline", "--set", "deadline.read_expire=100", "--json"];
    let run = || replay(&[&[trace.as_str()], on.as_slice()].concat()).json();
    let json = run();
    assert_eq!(json, run());
    assert_eq!(json["lag_ns"]["max"], 0);
    let p50_ns = json["replayed"]["kinds"]["reads"]["latency_ns"]["p50"].as_u64().expect("a number");
    assert!((3_000_000..500_000_000).contains(&p50_ns), "{p50_ns} ns for a random read of a disk");
}

#[test]
fn the_text_has_replayed_and_recorded_figures() {
    let folder = Folder::new();
    let trace = trace(&folder, &[(READ, 0, 4096), (WRITE.with(Rwbs::DISCARD), 8, 4096)]);
    let ran = replay(&[&trace, "--on", "drive:null", "--timing", "dependent"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["under noop", "2 requests of 1 processes", "reads", "discards", "teller (7)", "lag of submissions"] {
        assert!(ran.out.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    let reads = replay(&[&trace, "--on", "drive:null", "--reads-only"]);
    assert!(reads.out.contains("left out: 1 writes, discards and flushes"), "{}", reads.out);
}

#[test]
fn writes_require_an_option() {
    let folder = disk();
    let trace = trace(&folder, &[(READ, 0, 4096), (WRITE, 8, 4096)]);
    let disk = folder.name("disk");
    replay(&[&trace, "--on", &disk]).refused(1, &["has 1 writes, discards and flushes", "--write", "--reads-only"]);
    assert_eq!(replay(&[&trace, "--on", &disk, "--reads-only"]).code, Some(0));
    assert!(changed(&folder.path("disk")).is_empty());
}

#[test]
fn unsuitable_targets_are_refused_by_name() {
    let folder = disk();
    let far = [(READ, 0, 4096), (READ, 4096, 4096)];
    let trace = trace(&folder, &far);
    let missing = folder.name("nothing");
    replay(&[&trace, "--on", &missing]).refused(1, &[&missing, "No such file"]);
    replay(&[&trace, "--on", &folder.name("")]).refused(1, &["this is a directory"]);
    let disk = folder.name("disk");
    // 4096 sectors and one request: 2,101,248 bytes.
    replay(&[&trace, "--on", &disk]).refused(1, &[&disk, "1048576 bytes", "2101248", "--wrap", "--shift"]);
    assert_eq!(replay(&[&trace, "--on", &disk, "--wrap"]).code, Some(0));
    replay(&[&trace, "--on", &disk, "--shift", "-4k"]).refused(1, &["before byte 0"]);
    replay(&[&trace, "--on", &disk, "--shift", "100"]).refused(2, &["not a multiple of 512"]);
    replay(&[&trace, "--drive", "sata-7200-2060"]).refused(2, &["did you mean"]);
    replay(&[&trace, "--drive", "null", "--on", &disk]).refused(2, &["cannot be used with"]);
    replay(&[&trace]).refused(2, &["--on <TARGET>"]);
    let socket = format!("nbd+unix:///?socket={missing}");
    replay(&[&trace, "--on", &socket]).refused(1, &["cannot connect"]);
    replay(&[&trace, "--on", &socket.replace("nbd+", "nbds+")]).refused(1, &["TLS"]);
    replay(&[&trace, "--on", "nbd+unix:///"]).refused(2, &["socket is missing"]);
    replay(&[&trace, "--on", &disk, "--wrap", "--depth", "4"]).refused(2, &["--timing asap"]);
    replay(&[&trace, "--on", &disk, "--elevator", "bfq"]).refused(2, &["--drive"]);
    std::fs::write(folder.path("empty"), "").expect("the folder can be written");
    replay(&[&trace, "--on", &folder.name("empty")]).refused(1, &["its size is 0"]);
}

#[test]
fn a_read_only_export_takes_no_writes() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk,read-only"]);
    let trace = trace(&server.folder, &[(READ, 0, 4096), (WRITE, 8, 4096)]);
    replay(&[&trace, "--on", &server.uri(0), "--write"]).refused(1, &["the export is read-only", "--reads-only"]);
    assert_eq!(replay(&[&trace, "--on", &server.uri(0), "--reads-only"]).code, Some(0));
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn traces_without_requests_are_refused() {
    let folder = disk();
    let disk = folder.name("disk");
    let notes = trace(&folder, &[]);
    replay(&[&notes, "--on", &disk]).refused(1, &["nothing to replay"]);
    let empty = folder.file("nothing", "");
    replay(&[&empty, "--on", &disk]).refused(1, &[&empty]);
    let writes = trace(&folder, &[(WRITE, 0, 4096)]);
    replay(&[&writes, "--on", &disk, "--reads-only"])
        .refused(1, &["nothing to replay: the trace holds 6 records", "left out: 1 writes"]);
    replay(&[&folder.name("away"), "--on", &disk]).refused(1, &["away", "there is no such file"]);
}
