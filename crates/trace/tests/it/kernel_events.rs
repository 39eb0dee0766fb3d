//! Texts of the kernel's tracing: the `blk` tracer, and `block:` events of tracefs, trace-cmd and
//! perf. The recordings are of one job: 30 random reads and 10 writes of fio, a flush and a
//! discard.

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::common::{events, events_and_notices, failure, file, open_bytes, open_files};
use hoistway_trace::describe::{Evidence, RuleKind, describe};
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{Action, Batch, DeviceId, Event, Format, Input, OpenOptions, Rwbs, open_detected};

const FORCED: OpenOptions = OpenOptions {
    format: Some(Format::Ftrace),
    time_unit: None,
    sector_bytes: None,
    is_strict: false,
    offset_unit: None,
    columns: None,
};

type EventWithPayload = (Event, Vec<u8>);

fn gunzip(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn requests(name: &str) -> Vec<EventWithPayload> {
    events(open_files(&[name]).as_mut()).into_iter().filter(|(event, _)| event.action != Action::Process).collect()
}

fn one(line: &str) -> EventWithPayload {
    let found = events(open_bytes(line.as_bytes().to_vec()).as_mut());
    found.into_iter().find(|(event, _)| event.action != Action::Process).unwrap()
}

#[test]
fn all_recordings_of_the_job_have_the_same_requests() {
    let names = [
        "ftrace/block-events.txt.gz",
        "trace-cmd/report.txt.gz",
        "trace-cmd/report-us.txt.gz",
        "perf/script.txt.gz",
        "perf/script-ns.txt.gz",
        "trace-cmd/v6.dat.gz",
        "trace-cmd/v7-none.dat.gz",
        "trace-cmd/v7-zstd.dat",
    ];
    for name in names {
        let all = requests(name);
        let count = |action: Action, op: Rwbs| {
            all.iter().filter(|(event, _)| event.action == action && event.op.has(op)).count()
        };
        let bytes = |op: Rwbs| -> u64 {
            let issued = all.iter().filter(|(event, _)| event.action == Action::Issue && event.op.has(op));
            issued.map(|(event, _)| u64::from(event.bytes)).sum()
        };
        // 210 lines of `trace-cmd report`, counted with awk. The bio of the flush completes beside
        // the flush itself.
        assert_eq!(all.len(), 210, "{name}");
        assert_eq!([count(Action::Queue, Rwbs(0)), count(Action::Get, Rwbs(0))], [42, 42], "{name}");
        assert_eq!([count(Action::Insert, Rwbs(0)), count(Action::Issue, Rwbs(0))], [41, 42], "{name}");
        assert_eq!(count(Action::Complete, Rwbs(0)), 43, "{name}");
        assert_eq!([bytes(Rwbs::READ), bytes(Rwbs::WRITE)], [30 * 4096, 10 * 16_384], "{name}");
        assert_eq!(bytes(Rwbs::DISCARD), 1 << 20, "{name}");
        assert!(all.iter().all(|(event, _)| event.device == DeviceId::new(7, 0) && event.error == 0), "{name}");
        assert!(all.windows(2).all(|pair| pair[0].0.time_ns <= pair[1].0.time_ns), "{name}");
        let flush =
            all.iter().find(|(event, _)| event.op.has(Rwbs::FLUSH) && event.action == Action::Complete).unwrap();
        assert_eq!((flush.0.sector, flush.0.bytes), (0, 0), "{name}");
    }
}

#[test]
fn trace_dat_and_the_report_of_trace_cmd_have_equal_events_to_the_nanosecond() {
    let report = requests("trace-cmd/report.txt.gz");
    for name in ["v6.dat.gz", "v7-none.dat.gz", "v7-zstd.dat"] {
        assert_eq!(requests(&format!("trace-cmd/{name}")), report, "{name}");
    }
    // The first line of the report.
    let (first, _) = &report[0];
    assert_eq!((first.time_ns, first.cpu, first.pid), (1_308_227_130_182, 1, 25_085));
    assert_eq!((first.sector, first.bytes, first.op), (7408, 4096, Rwbs::READ));
}

#[test]
fn names_of_processes_are_those_of_the_report() {
    for name in ["trace-cmd/report.txt.gz", "trace-cmd/v7-zstd.dat", "perf/script.txt.gz"] {
        let all = events(open_files(&[name]).as_mut());
        let names: BTreeMap<u32, Vec<u8>> = all
            .iter()
            .filter(|(event, _)| event.action == Action::Process)
            .map(|(event, name)| (event.pid, name.clone()))
            .collect();
        let reader = all.iter().find(|(event, _)| event.action == Action::Queue).unwrap().0.pid;
        assert_eq!(names.get(&reader).map(Vec::as_slice), Some(&b"fio"[..]), "{name}");
    }
}

#[test]
fn the_detection_names_the_format_and_its_reason() {
    let detected = |name: &str| {
        let opened = open_detected(vec![Input::Path(file(name))], &OpenOptions::default()).unwrap();
        let found = opened.detections()[0].clone();
        (found.format, found.compression, found.reason)
    };
    let (format, compression, reason) = detected("trace-cmd/v7-zstd.dat");
    assert_eq!((format, compression), (Format::TraceDat, None));
    assert_eq!(reason, "trace-cmd's magic number and version 7 at byte 0");
    let (format, compression, reason) = detected("perf/script.txt.gz");
    assert_eq!((format, compression), (Format::Perf, Some("gzip")));
    assert!(reason.contains("in line 1, \"fio 25"), "{reason}");
    assert_eq!(detected("trace-cmd/report.txt.gz").0, Format::Ftrace);
}

#[test]
fn a_truncated_trace_dat_is_read_to_its_end_with_a_notice() {
    let whole = gunzip("trace-cmd/v6.dat.gz");
    let (found, notices) = events_and_notices(whole[..whole.len() - 8192].to_vec(), &OpenOptions::default());
    assert!(found.unwrap() > 50);
    assert!(notices.iter().any(|notice| notice.contains("the file ends too early")), "{notices:?}");
    let what = failure(whole[..300].to_vec(), &OpenOptions::default());
    assert!(what.starts_with("input at byte ") && what.contains("the file ends"), "{what}");
}

#[test]
fn classic_lines_are_read_to_the_nanosecond() {
    let (event, _) = one("  7,0    1  1781.997780178  2894  Q  RS 8 + 128 [fio]\n");
    let expected = Event {
        sector: 8,
        bytes: 65_536,
        pid: 2894,
        cpu: 1,
        device: DeviceId::new(7, 0),
        op: Rwbs::READ.with(Rwbs::SYNC),
        ..Event::new(1_781_997_780_178, Action::Queue)
    };
    assert_eq!(event, expected);
    let (event, _) = one("  7,1    1 48886.330894606    22  C  FN 0 [-5]\n");
    assert_eq!(
        (event.action, event.error, event.bytes, event.op),
        (Action::Complete, 5, 0, Rwbs::FLUSH.with(Rwbs::NONE))
    );
    let (event, payload) = one("  7,0    1  1781.998073596  2894  U   N [fio] 1\n");
    assert_eq!((event.action, payload), (Action::Unplug, vec![0, 0, 0, 0, 0, 0, 0, 1]));
    let (event, payload) = one("  7,1    0 48886.364761725 26037  X   R 0 / 1024 [dd]\n");
    assert_eq!((event.action, event.sector, payload), (Action::Split, 0, vec![0, 0, 0, 0, 0, 0, 4, 0]));
    let (event, payload) = one("  253,0  0 1.5 26037  A   R 2056 + 8 <- (8,1) 8 [dd]\n");
    assert_eq!((event.action, event.sector, event.bytes), (Action::Remap, 2056, 4096));
    let device = |major, minor| DeviceId::new(major, minor).0.to_be_bytes();
    assert_eq!(payload, [&device(8, 1)[..], &device(253, 0), &[0, 0, 0, 0, 0, 0, 0, 8]].concat());
}

#[test]
fn lines_of_trace_pipe_have_names_with_blanks_and_cgroups() {
    let text = " my [odd] job-22180   [000] d..1. 48820.033569:   7,1   1a,2  m   N bfq0A  new_ioprio 4\n";
    let all = events(open_bytes(text.as_bytes().to_vec()).as_mut());
    let [(name, words), (note, text)] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((name.action, words.as_slice()), (Action::Process, &b"my [odd] job"[..]));
    assert_eq!((note.time_ns, note.pid, note.cgroup), (48_820_033_569_000, 22_180, 2 << 32 | 0x1a));
    assert_eq!(text, b"bfq0A  new_ioprio 4");
}

#[test]
fn lines_of_events_have_all_beginnings_and_endings() {
    for (line, pid, cpu, sector, bytes) in [
        ("a b-12 (   11) [003] ..... 1.5: block_rq_issue: 8,0 R 4096 () 8 + 8 be,0,4 [a b]", 12, 3, 8, 4096),
        ("a-12   3d..1. 1.5: block_rq_issue:    8,0 R 4096 () 8 + 8 [a]", 12, 3, 8, 4096),
        ("a b 11/12 [003] 1.5: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [a b]", 12, 3, 8, 4096),
        ("a b 12 1.5:   1 block:block_rq_issue: 8,0 R 4096 () 8 + 8 [a b]", 12, 0, 8, 4096),
        ("a-12 [003] 1.5: block_bio_queue: 8,0 WS 16 + 1 [(sd-pam)]", 12, 3, 16, 512),
        ("a-12 [003] 1.5: block_rq_issue: 8,0 N 36 (12 00 00 24) 0 + 0 [a]", 12, 3, 0, 0),
    ] {
        let (event, _) = one(&format!("{line}\n"));
        assert_eq!((event.time_ns, event.pid, event.cpu), (1_500_000_000, pid, cpu), "{line}");
        assert_eq!((event.sector, event.bytes), (sector, bytes), "{line}");
        assert_eq!(event.op.has(Rwbs::PASS_THROUGH), line.contains("12 00"), "{line}");
    }
    let (event, _) = one("a-12 [003] 1.5: block_rq_complete: 8,0 R () 8 + 8 be,0,4 [-5]\n");
    assert_eq!((event.action, event.error), (Action::Complete, 5));
    let (event, payload) = one("a-12 [003] 1.5: block_bio_remap: 253,0 R 2056 + 8 <- (8,1) 8\n");
    assert_eq!((event.action, payload.len()), (Action::Remap, 16));
}

#[test]
fn events_of_other_tracers_plugs_and_lost_events_are_reported() {
    let text = "# tracer: blk\n  x-1 [000] d..1. 1.0: 7,1 Q R 0 + 8 [x]\nCPU:1 [LOST 123 EVENTS]\n  x-1 [000] .... 1.1: sys_close(fd: 3)\n  \
                x-1 [000] d..1. 1.2: block_rq_issue: 7,1 R 4096 () 0 + 8 [x]\n  x-1 [000] d..1. 1.3: block_plug: [x]\n  \
                x-1 [000] d..1. 1.4: block_rq_issue: 7,1 RU 4096 () 8 + 8 [x]\n";
    let (count, notices) = events_and_notices(text.as_bytes().to_vec(), &OpenOptions::default());
    assert_eq!(count, Ok(3));
    assert_eq!(
        notices,
        [
            "input:3: the tracer's buffer was full and events were lost (here 123)",
            "input:4: events of other tracers are left out (\"sys_close(fd\")",
            "input:6: plugs are left out, because their events name no device (\"block_plug\")",
            "input:7: unknown letters of an operation are ignored (\"RU\")",
        ]
    );
}

#[test]
fn invalid_lines_name_the_value_and_the_valid_ones() {
    let right = "  7,0    1  1781.997780178  2894  Q  RS 0 + 128 [fio]\n";
    for (wrong, message) in [
        ("  7,0    1  17x  2894  Q  RS 0 + 128 [fio]", "input:2: the time \"17x\" is no time"),
        ("  7,0    1  1.0  2894  q  RS 0 + 128 [fio]", "input:2: the action \"q\" is not known: Q, G, I"),
        ("  7,0    1  1.0  2894  Q  RZ 0 + 128 [fio]", "input:2: \"RZ\" is no operation of a request"),
        ("  7,0    1  1.0  2894  Q  R 0 - 128 [fio]", "input:2: \"-\" stands where a + and the length"),
        ("  7,0    1  1.0  2894  Q  R 0 + 99999999 [fio]", "input:2: the length 99999999 is too large"),
        ("  7,0    1  1.0", "input:2: the line ends where the process should be"),
        ("rubbish", "input:2: the line begins with \"rubbish\": \"8,0  1  12.345678901  697\" (blk_classic)"),
        (
            "x-1 [000] 1.0: block_rq_issue: 7,0 R 4096 (x 0 + 8 [x]",
            "input:2: the parenthesis of the command is not closed",
        ),
        ("x-1 [000] 1.0: block_rq_issue: 7,0 R 4096 () x + 8 [x]", "input:2: the sector \"x\" is no whole number"),
        (
            "x-1 [000] 1.0: block_bio_queue: 7,0 R 1 + 9999999 [x]",
            "input:2: the length of 9999999 sectors is too large",
        ),
        ("x-1 [000] 1.0: block_bio_queue: x R 1 + 8 [x]", "input:2: the device \"x\" is no pair of numbers"),
    ] {
        let failed =
            failure(format!("{right}{wrong}\n{right}").into_bytes(), &OpenOptions { is_strict: true, ..FORCED });
        assert!(failed.starts_with(message), "{failed}");
    }
}

/// Returns the finished requests of a trace in order of completion, and the number of others.
fn finished(name: &str) -> (Vec<RequestRecord>, usize) {
    let (mut source, mut batch, mut tracker) = (open_files(&[name]), Batch::new(), RequestTracker::new());
    let mut records = Vec::new();
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return (records, tracker.into_outstanding().len());
        }
        tracker.take(&batch);
        records.extend(tracker.take_finished());
    }
}

#[test]
fn a_write_with_fua_that_completes_twice_is_one_request() {
    let (records, outstanding) = finished("perf/fua-writes.txt");
    let shown: Vec<_> = records.iter().map(|record| (record.sector, record.q2c_ns(), record.postflush_ns())).collect();
    // The second completions are 11.272 and 11.529 ms after the submissions, the first 2.178 and
    // 2.149 ms. The last line but one belongs to no device.
    let expected = [
        (4112, Some(11_272_000), Some(9_094_000)),
        (4112, Some(11_529_000), Some(9_380_000)),
        (9000, Some(200_003_000), None),
    ];
    assert_eq!((shown.as_slice(), outstanding), (&expected[..], 0));
    let description = describe(open_files(&["perf/fua-writes.txt"]).as_mut()).unwrap();
    assert_eq!((description.all.requests, description.all.mix.writes, description.all.mix.fua), (3, 2, 2));
    let phases = &description.all.phases;
    assert_eq!((phases.postflush_ns.max, phases.d2c_ns.min), (9_380_000, 2_144_000));
    assert_eq!(description.devices.len(), 1, "{:?}", description.devices);
    let writer = &description.processes[0];
    let rule = writer.rule.unwrap();
    assert_eq!((writer.name.as_str(), rule.kind), ("dmcrypt_write", RuleKind::Undetermined));
    assert_eq!((rule.requests, rule.evidence), (2, Evidence::TooFewRequests));
}

#[test]
fn commits_of_ext4_are_requests_with_two_flushes_each() {
    // Three calls of fdatasync on a loop device of Linux 6.18 under mq-deadline.
    let (records, outstanding) = finished("ftrace/fdatasync-on-ext4.txt");
    let commits: Vec<&RequestRecord> = records.iter().filter(|record| record.flush.is_some()).collect();
    assert_eq!((commits.len(), outstanding), (3, 0));
    for commit in &commits {
        let steps = commit.flush.as_ref().unwrap();
        let (Some(before), Some(after)) = (steps.before_ns, steps.after_ns) else { panic!("{steps:?}") };
        let times_ns = [commit.queued_ns, Some(before.0), Some(before.1), commit.issued_ns, steps.data_completed_ns];
        let times_ns = times_ns.into_iter().chain([Some(after.0), Some(after.1), commit.completed_ns]);
        let times_ns: Vec<u64> = times_ns.map(Option::unwrap).collect();
        assert!(times_ns.is_sorted(), "{times_ns:?}");
        assert!(commit.op.has(Rwbs::FLUSH) && commit.op.has(Rwbs::FUA), "{:?}", commit.op);
    }
    // The kernel's worker issues the flushes and makes no request of its own.
    assert!(records.iter().all(|record| record.queued_ns.is_some()));
}
