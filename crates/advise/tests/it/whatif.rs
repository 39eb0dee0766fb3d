//! Predictions from recordings, with figures calculated by hand.

use std::sync::atomic::AtomicBool;

use hoistway_advise::whatif::{
    Level, LoadedTrace, LoopModel, Machine, Model, QueueLimits, RecordedProcess, Recording, WhatifError,
};
use hoistway_advise::{ModelBasis, TraceCase, TraceCaseRequest, TraceDrive};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_trace::dependencies::{Pattern, SubmittedRequest};
use hoistway_trace::{Input, OpenOptions, Rwbs, Stream, open};

const MS: u64 = 1_000_000;
const LENGTH_NS: u64 = 10_000 * MS;

/// A drive that serves one request at a time, in a millisecond each.
fn machine() -> Machine {
    let text = "name = \"millisecond\"\nwhat = \"a device of constant time\"\nsource = \"a test\"\n[null]\nservice_ns = 1000000\n\
                depth = 1\ncapacity_sectors = 4194304\n";
    Machine {
        profile: Profile::from_toml(text, "millisecond.toml").expect("a good profile"),
        depth_max: None,
        kernel: None,
        groups: false,
        settings: Vec::new(),
        queue: QueueLimits::default(),
        seed: 1,
    }
}

/// A process that reads 4 KiB with a latency of `latency_ns` and pauses for `think_ns` after each
/// read.
fn process(pid: u32, latency_ns: u64, think_ns: u64) -> RecordedProcess {
    let request = |number: u64| {
        let queued_ns = number * (latency_ns + think_ns);
        let completed_ns = queued_ns + latency_ns;
        let completed_ns = if completed_ns <= LENGTH_NS { completed_ns } else { u64::MAX };
        SubmittedRequest {
            queued_ns,
            completed_ns,
            sector: 1000 * u64::from(pid) + 8 * number,
            bytes: 4096,
            op: Rwbs::READ,
        }
    };
    let count = LENGTH_NS / (latency_ns + think_ns);
    RecordedProcess { name: format!("p{pid}"), pid, requests: (0..count).map(request).collect() }
}

fn model(processes: Vec<RecordedProcess>) -> Model {
    Model::new(Recording { processes, from_ns: 0, until_ns: LENGTH_NS }).expect("a recording with requests")
}

#[test]
fn a_process_with_think_times_of_3_ms_is_predicted_as_recorded() {
    let model = model(vec![process(7, MS, 3 * MS)]);
    let fidelity = model.fidelity(Kind::Noop, &machine(), &AtomicBool::new(false)).expect("a run");
    // A request each 4 ms: 2,500 in 10 s.
    let process = &fidelity.processes[0];
    assert!((process.predicted.bytes_per_s / (250.0 * 4096.0) - 1.0).abs() < 0.001, "{process:?}");
    assert!(fidelity.miss() < 0.01 && fidelity.holds(), "{fidelity:?}");
    assert_eq!(process.predicted.latency_ns.p50, MS);
}

#[test]
fn a_process_that_waited_for_others_makes_more_requests_alone_and_continues_after_the_recording() {
    // Latencies of 4 ms and pauses of 1 ms: alone on the drive, the process makes a request each 2
    // ms, 5,000 instead of 2,000.
    let model = model(vec![process(7, 4 * MS, MS)]);
    assert_eq!(model.findings().next().map(|(_, found)| found.pattern), Some(Pattern::Closed { depth: 1 }));
    let predicted = model
        .predict(&[Kind::Noop, Kind::Deadline], &machine(), false, &|_| {}, &AtomicBool::new(false))
        .expect("a run");
    for run in &predicted.runs {
        let reads = run.processes[0].read.ios;
        assert!((4_990..=5_000).contains(&reads), "{}: {reads}", run.elevator);
    }
}

#[test]
fn rotated_think_times_change_the_result_little_and_depend_on_the_seed() {
    // Pauses of 1 ms after the first 1,000 requests and of 9 ms after the others: 2 s and 8 s.
    let mut recorded = process(7, MS, MS);
    for (number, request) in recorded.requests.iter_mut().enumerate() {
        let number = number as u64;
        request.queued_ns = if number <= 1_000 { 2 * number } else { 2_000 + 10 * (number - 1_000) } * MS;
        request.completed_ns = request.queued_ns + MS;
    }
    recorded.requests.retain(|request| request.completed_ns <= LENGTH_NS);
    let model = model(vec![recorded]);
    let reads = |model: &Model| {
        let runs = model.run_each(&[Kind::Noop], &machine(), &AtomicBool::new(false)).expect("a run");
        runs[0].processes[0].read.ios
    };
    let as_recorded = reads(&model);
    let others: Vec<_> = (1..6).map(|seed| reads(&model.with_rotated_think_times(seed))).collect();
    for count in &others {
        assert!(count.abs_diff(as_recorded) <= as_recorded / 100, "{count} instead of {as_recorded}");
    }
    // The rotation ends with another pause, which the end of the run cuts off.
    assert!(others.windows(2).any(|pair| pair[0] != pair[1]) || others[0] != as_recorded, "{others:?}");
    assert_eq!(
        reads(&model.with_rotated_think_times(3)),
        reads(&model.with_rotated_think_times(3)),
        "a run is determined by its seed"
    );
}

#[test]
fn a_model_that_misses_the_recording_is_refused() {
    let model = model(vec![process(7, 4 * MS, MS)]);
    let fidelity = model.fidelity(Kind::Noop, &machine(), &AtomicBool::new(false)).expect("a run");
    // 5,000 requests instead of 2,000 are 150 % too many.
    assert!(!fidelity.holds() && (fidelity.miss() - 1.5).abs() < 0.01, "{}", fidelity.miss());
    assert_eq!(fidelity.confidence(&model, None).level, Level::Low);
}

#[test]
fn a_reader_and_a_writer_are_predicted_together() {
    let mut writer = process(9, MS, 7 * MS);
    writer.requests.iter_mut().for_each(|request| request.op = Rwbs::WRITE);
    let model = model(vec![process(7, MS, 3 * MS), writer]);
    let predicted =
        model.predict(&[Kind::Deadline], &machine(), false, &|_| {}, &AtomicBool::new(false)).expect("a run");
    let [reader, writer] = predicted.runs[0].processes.as_slice() else { panic!("two processes") };
    assert!(reader.write.ios == 0 && writer.read.ios == 0 && writer.write.ios > 1_000, "{}", writer.write.ios);
}

/// A process that writes 4 KiB in 0.1 ms, syncs it in 30 ms, and pauses for 1 ms. The sync is a
/// flush after the write, or FUA.
fn syncing(with_fua: bool) -> RecordedProcess {
    let mut requests = Vec::new();
    let mut at_ns = 0;
    while at_ns + 31_100_000 <= LENGTH_NS {
        let written_ns = at_ns + if with_fua { 30_100_000 } else { 100_000 };
        let sector = 8 * (requests.len() as u64 * 7_919 % 100_000);
        let op = if with_fua { Rwbs::WRITE.with(Rwbs::FUA) } else { Rwbs::WRITE };
        let write = SubmittedRequest { queued_ns: at_ns, completed_ns: written_ns, sector, bytes: 4096, op };
        requests.push(write);
        if !with_fua {
            let (queued_ns, completed_ns) = (written_ns, written_ns + 30_000_000);
            let op = Rwbs::WRITE.with(Rwbs::FLUSH).with(Rwbs::SYNC);
            requests.push(SubmittedRequest { queued_ns, completed_ns, sector: 0, bytes: 0, op });
        }
        at_ns += 31_100_000;
    }
    RecordedProcess { name: "database".into(), pid: 7, requests }
}

#[test]
fn a_process_that_waited_for_flushes_waits_for_those_of_the_drive_and_not_for_a_pause() {
    // The flash flushes in 3.2 ms, and the time of a write.
    let profile = Profile::builtin("ssd-sata-consumer").expect("a built-in profile");
    for with_fua in [false, true] {
        let model = model(vec![syncing(with_fua)]);
        assert!(model.notes().is_empty(), "no flush is left out: {:?}", model.notes());
        let (_, finding) = model.findings().next().expect("a process");
        assert_eq!((finding.pattern, finding.think_ns[3]), (Pattern::Closed { depth: 1 }, MS));
        let machine = Machine { profile: profile.clone(), ..machine() };
        let runs = model.run_each(&[Kind::Noop, Kind::MqDeadline], &machine, &AtomicBool::new(false)).expect("a run");
        for run in &runs {
            let requests = run.processes[0].write.ios;
            let cycles = if with_fua { requests } else { requests / 2 };
            // 321 are recorded; 10 s / (3 ms + 1 ms) are 2,500 at most.
            assert!((1_500..2_500).contains(&cycles), "{} with FUA {with_fua}: {cycles}", run.elevator);
        }
    }
}

#[test]
fn a_drive_that_is_fitted_to_a_trace_has_the_flushes_of_the_trace() {
    // A read of 100 us, a write of 20 us and a flush of 4 to 6 ms, one after the other, 1,000
    // times.
    let mut text = "8,0 0 0 0.000000000 0 m N hoistway scheduler none:\n".to_owned();
    let mut at_us = 0;
    for number in 0..1_000u64 {
        let sector = 8 * (number * 7_919 % 100_000);
        let [read, write] = [sector, sector + 8].map(|sector| format!("{sector} + 8 "));
        let requests = [
            ([("Q", "R"), ("D", "R"), ("C", "R")], [read.as_str(), &read, &read], 100),
            ([("Q", "WS"), ("D", "WS"), ("C", "WS")], [write.as_str(), &write, &write], 20),
            ([("Q", "FWS"), ("D", "FN"), ("C", "FN")], ["", "", "0 "], 4_000 + number * 7_919 % 2_000),
        ];
        for (events, ranges, us) in requests {
            for ((action, op), range) in events.into_iter().zip(ranges) {
                let (at_us, end) = if action == "C" { (at_us + us, "0") } else { (at_us, "db") };
                let (s, ns) = (at_us / 1_000_000, at_us % 1_000_000 * 1000);
                text += &format!("8,0 0 1 {s}.{ns:09} 7 {action} {op} {range}[{end}]\n");
            }
            at_us += us + 10;
        }
    }
    let stream = Stream { name: "db.txt".into(), read: Box::new(std::io::Cursor::new(text)) };
    let mut source = open(vec![Input::Stream(stream)], &OpenOptions::default()).expect("a trace");
    let request = TraceCaseRequest {
        name: "db.txt".into(),
        loaded: LoadedTrace::read(source.as_mut(), None).expect("a trace of a device"),
        recorded_under: None,
        loop_model: LoopModel::Open,
        drive: TraceDrive::Fitted,
        depth_max: None,
        kernel: None,
        settings: Vec::new(),
    };
    let case = TraceCase::new(request, &AtomicBool::new(false)).expect("a case");
    assert_eq!(case.recorded_under(), Some(Kind::Noop), "the trace names it");
    let fitted = case.fitted.as_ref().expect("a fitted drive");
    let flush = fitted.found.iter().find(|finding| finding.what == "flush").expect("the flushes");
    assert_eq!((flush.value.as_str(), flush.from.as_str()), ("5006 us", "1000 flushes"));
    let ModelBasis::Validated { fidelity, .. } = &case.basis else { panic!("the trace has completions") };
    assert!(fidelity.holds() && fidelity.miss() < 0.05, "{fidelity:?}");
}

#[test]
fn impossible_predictions_are_errors_with_reasons() {
    assert!(matches!(Model::new(Recording::default()), Err(WhatifError::Nothing)));
    let mut far = process(7, MS, MS);
    far.requests[5].sector = 1 << 40;
    let error = model(vec![far]).fidelity(Kind::Noop, &machine(), &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("reaches sector 1099511627783") && error.contains("`millisecond` has 4194304"), "{error}");
}

/// A process that submits `count` reads with this gap in between; no completion is recorded.
fn submissions(count: u64, gap_ns: u64) -> Recording {
    let mut process = process(7, MS, MS);
    process.requests.truncate(count as usize);
    for (number, request) in (0..).zip(&mut process.requests) {
        // Apart from one another, so that no two requests are merged.
        request.sector = 1000 * number;
        (request.queued_ns, request.completed_ns) = (number * gap_ns, u64::MAX);
    }
    Recording { processes: vec![process], from_ns: 0, until_ns: (count - 1) * gap_ns }
}

/// Length of the run, median and maximum of the latency, in ms.
fn run_of_submissions(recording: Recording, loop_model: LoopModel) -> [f64; 3] {
    let model = Model::of_submissions(recording, loop_model).expect("a recording with requests");
    let runs = model.run_each(&[Kind::Noop], &machine(), &AtomicBool::new(false)).expect("a run");
    assert_eq!(runs[0].processes[0].read.ios, 100, "each request is made once");
    let latency = runs[0].latency_ns;
    [runs[0].runtime_ns, latency.p50, latency.max].map(|ns| ns as f64 / MS as f64)
}

#[test]
fn submissions_with_long_gaps_keep_their_times_in_both_loops() {
    // 99 gaps of 4 ms, and 1 ms for the last request.
    for loop_model in [LoopModel::Open, LoopModel::Closed { outstanding: 1 }] {
        let [length, p50, max] = run_of_submissions(submissions(100, 4 * MS), loop_model);
        assert!(
            (length - 397.0).abs() < 0.1 && (p50 - 1.0).abs() < 0.01 && (max - 1.0).abs() < 0.01,
            "{length} {p50} {max}"
        );
    }
}

#[test]
fn submissions_that_are_faster_than_the_drive_queue_up_in_an_open_loop_and_wait_in_a_closed_one() {
    // 100 requests of 1 ms each need 100 ms; the last is submitted after 49.5 ms in the open loop.
    let [length, _, max] = run_of_submissions(submissions(100, MS / 2), LoopModel::Open);
    assert!((length - 100.0).abs() < 0.1 && (max - 50.5).abs() < 0.6, "{length} {max}");
    let [length, p50, max] = run_of_submissions(submissions(100, MS / 2), LoopModel::Closed { outstanding: 1 });
    assert!(
        (length - 100.0).abs() < 0.1 && (p50 - 1.0).abs() < 0.01 && (max - 1.0).abs() < 0.01,
        "{length} {p50} {max}"
    );
    // With two outstanding requests each waits for the one before it.
    let [length, p50, _] = run_of_submissions(submissions(100, MS / 2), LoopModel::Closed { outstanding: 2 });
    assert!((length - 100.0).abs() < 0.1 && (1.4..2.1).contains(&p50), "{length} {p50}");
}

#[test]
fn a_process_with_a_lost_completion_does_not_repeat_its_requests_for_the_rest_of_a_long_recording() {
    // Active for 10 s of a recording of 100,000 s, in which another process makes the last request.
    let mut early = process(7, MS, MS);
    early.requests[17].completed_ns = u64::MAX;
    let made = early.requests.len() as u64;
    let late_ns = 100_000_000 * MS;
    let mut late = process(9, MS, MS);
    late.requests.truncate(2);
    (late.requests[1].queued_ns, late.requests[1].completed_ns) = (late_ns, late_ns + MS);
    let recording = Recording { processes: vec![early, late], from_ns: 0, until_ns: late_ns + MS };
    let model = Model::new(recording).expect("a recording with requests");
    assert_eq!(model.endless().collect::<Vec<_>>(), [false, true]);
    let runs = model.run_each(&[Kind::Noop], &machine(), &AtomicBool::new(false)).expect("a run");
    assert!(runs[0].processes[0].read.ios <= made, "{}", runs[0].processes[0].read.ios);
}
