//! Tests of plans and their replay in virtual time.

use hoistway_core::Kind as Elevator;
use hoistway_drive::Profile;
use hoistway_trace::request::{Merged, RequestRecord};
use hoistway_trace::{DeviceId, Rwbs};

use super::*;
use hoistway_reactor::Process;

/// A read of 4 KiB that was submitted and completed at these times.
fn record(pid: u32, sector: u64, queued_ns: u64, completed_ns: u64) -> RequestRecord {
    RequestRecord {
        device: DeviceId::new(8, 0),
        op: Rwbs::READ.with(Rwbs::SYNC),
        sector,
        bytes: 4096,
        pid,
        queued_ns: Some(queued_ns),
        got_ns: None,
        inserted_ns: None,
        issued_ns: Some(queued_ns + 10),
        completed_ns: Some(completed_ns),
        flush: None,
        merged: Vec::new(),
        requeues: 0,
        error: 0,
    }
}

fn plan(level: TraceLayer, reads_only: bool, records: &[RequestRecord]) -> ReplayPlan {
    let mut builder = ReplayPlanBuilder::new(level, reads_only);
    records.iter().for_each(|record| builder.take(record));
    builder.finish()
}

fn on_drive(plan: &ReplayPlan, name: &str, timing: Timing, scale: f64) -> ReplayOutcome {
    let mut engine = Virtual::default();
    let profile = Profile::builtin(name).expect("a built-in drive");
    let mut target = DeviceTarget::drive(&profile, Elevator::Noop, None, Vec::new(), &mut engine).expect("a drive");
    target.join(&vec![Process::default(); plan.processes().len()], 0).expect("there is room");
    replay(plan, &Options { timing, scale }, &mut target, &mut engine, &mut |_| true).expect("nothing fails")
}

#[test]
fn a_plan_has_bios_at_their_own_times_or_requests_as_dispatched() {
    // 8 sectors at 100, with 8 merged to the front and 16 to the end: 92 to 124.
    let merged = |pid, queued_ns, sector, bytes, front| Merged {
        pid,
        queued_ns,
        merged_ns: queued_ns + 1,
        sector,
        bytes,
        front,
    };
    let record = RequestRecord {
        sector: 92,
        bytes: 4096 + 4096 + 8192,
        merged: vec![merged(2, 5, 92, 4096, true), merged(3, 6, 108, 8192, false)],
        ..record(1, 0, 4, 50)
    };
    let all = |plan: &ReplayPlan| -> Vec<(u64, u64, u32, u32)> {
        let of = |request: &PlannedRequest| (request.at_ns, request.offset / 512, request.bytes, request.process);
        plan.requests().iter().map(of).collect()
    };
    let bios = plan(TraceLayer::Queue, false, std::slice::from_ref(&record));
    assert_eq!(all(&bios), [(0, 100, 4096, 0), (1, 92, 4096, 1), (2, 108, 8192, 2)]);
    let requests = plan(TraceLayer::Issue, false, &[record]);
    assert_eq!(all(&requests), [(0, 92, 16_384, 0)]);
    assert_eq!(requests.requests()[0].recorded_ns, 50 - 14);
}

#[test]
fn a_write_with_a_flush_is_one_request_and_writes_can_be_omitted() {
    let write = RequestRecord { op: Rwbs::WRITE.with(Rwbs::FLUSH).with(Rwbs::FUA), ..record(1, 0, 0, 9) };
    let flush = RequestRecord { op: Rwbs::WRITE.with(Rwbs::FLUSH), bytes: 0, ..record(1, 0, 1, 9) };
    let discard = RequestRecord { op: Rwbs::WRITE.with(Rwbs::DISCARD), ..record(1, 8, 2, 9) };
    let records = [write, flush, discard, record(1, 0, 3, 9)];
    let whole = plan(TraceLayer::Queue, false, &records);
    let kinds: Vec<RequestKind> = whole.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [RequestKind::Write, RequestKind::Flush, RequestKind::Discard, RequestKind::Read]);
    assert!(whole.requests()[0].durable && whole.requests()[0].preflush);
    assert_eq!(whole.changing(), 3);
    let reads = plan(TraceLayer::Queue, true, &records);
    assert_eq!((reads.requests().len(), reads.left_out().changing), (1, 3));
    let mut able = whole.clone();
    able.omit(true, true);
    assert_eq!((able.requests().len(), able.left_out().discards, able.left_out().flushes), (2, 1, 2));
}

#[test]
fn a_write_with_a_preflush_waits_for_the_flush() {
    // Eight writes go to the cache of the disk; the ninth is written after them.
    let write = |at: u64, op: Rwbs| RequestRecord { op, ..record(1, at * 1_000_000, at * 100_000_000, u64::MAX) };
    let latency_ns = |last: Rwbs| {
        let records: Vec<RequestRecord> = (0..8).map(|at| write(at, Rwbs::WRITE)).chain([write(8, last)]).collect();
        let outcome = on_drive(&plan(TraceLayer::Queue, false, &records), "cmr-4tb", Timing::Asap { depth: 1 }, 1.0);
        assert_eq!((outcome.failed, outcome.replayed.kinds[1].requests), (0, 9));
        outcome.replayed.elapsed_ns
    };
    let [cached, flushed] = [Rwbs::WRITE, Rwbs::WRITE.with(Rwbs::FLUSH)].map(latency_ns);
    assert!(flushed > cached + 10_000_000, "{flushed} {cached}");
}

#[test]
fn requests_beyond_the_target_are_refused_wrapped_or_shifted() {
    let fresh = || plan(TraceLayer::Queue, false, &[record(1, 8, 0, 9), record(1, 100, 1, 9)]);
    let offsets = |plan: &ReplayPlan| plan.requests().iter().map(|request| request.offset / 512).collect::<Vec<_>>();
    let size = 50 * 512;
    assert_eq!(fresh().fit(Placement::default(), size), Err(PlacementError::TooSmall { size, end: 108 * 512 }));
    let mut wrapped = fresh();
    wrapped.fit(Placement { wrap: true, ..Placement::default() }, size).expect("it wraps");
    // 100 modulo 50, and 8 as before.
    assert_eq!(offsets(&wrapped), [8, 0]);
    let mut shifted = fresh();
    shifted.fit(Placement { shift_bytes: -8 * 512, ..Placement::default() }, 100 * 512).expect("it fits");
    assert_eq!(offsets(&shifted), [0, 92]);
    let below = Placement { shift_bytes: -9 * 512, wrap: true };
    assert_eq!(fresh().fit(below, size), Err(PlacementError::BeforeBeginning { offset: 4096, shift: -9 * 512 }));
    assert_eq!(
        fresh().fit(Placement { wrap: true, ..Placement::default() }, 512),
        Err(PlacementError::RequestTooLong { size: 512, bytes: 4096 })
    );
    // A request across the end moves to before the end.
    let mut last = plan(TraceLayer::Queue, false, &[record(1, 0, 0, 9), record(1, 48, 1, 9)]);
    last.fit(Placement { wrap: true, ..Placement::default() }, size).expect("it wraps");
    assert_eq!(offsets(&last), [0, 42]);
}

#[test]
fn recorded_times_are_exact_in_virtual_time_and_can_be_scaled() {
    // 3 reads, 30 ms apart: a disk completes each before the next.
    let records: Vec<RequestRecord> =
        (0..3).map(|at| record(1, at * 10_000_000, at * 30_000_000, at * 30_000_000 + 5)).collect();
    let plan = plan(TraceLayer::Queue, false, &records);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Recorded, 1.0);
    assert_eq!((outcome.lag.max(), outcome.failed, outcome.replayed.kinds[0].requests), (0, 0, 3));
    let after_last_ns = outcome.replayed.elapsed_ns - 60_000_000;
    assert!((100_000..30_000_000).contains(&after_last_ns), "a read of a disk takes {after_last_ns} ns");
    let slower = on_drive(&plan, "sata-7200-2006", Timing::Recorded, 2.0);
    assert!((120_000_000..150_000_000).contains(&slower.replayed.elapsed_ns), "{}", slower.replayed.elapsed_ns);
    assert_eq!(plan.recorded().elapsed_ns, 60_000_005);
}

#[test]
fn asap_keeps_the_depth_and_ignores_the_times() {
    let records: Vec<RequestRecord> =
        (0..64).map(|at| record(1, at * 1_000_000, at * 1_000_000_000, at * 1_000_000_000 + 5)).collect();
    let plan = plan(TraceLayer::Queue, false, &records);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Asap { depth: 4 }, 1.0);
    assert_eq!((outcome.replayed.depth_max, outcome.lag.max()), (4, 0));
    assert!(outcome.replayed.elapsed_ns < 2_000_000_000, "64 random reads of a disk take a second or less");
}

#[test]
fn a_closed_process_keeps_its_pauses_after_its_reads() {
    // One at a time on a fast drive: 0.1 ms each, then a pause of 1 ms; 40 requests.
    let records: Vec<RequestRecord> =
        (0..40).map(|at| record(1, at * 5_000_000 % 90_000_000, at * 1_100_000, at * 1_100_000 + 100_000)).collect();
    let plan = plan(TraceLayer::Queue, false, &records);
    let open = on_drive(&plan, "sata-7200-2006", Timing::Recorded, 1.0);
    assert!(open.replayed.depth_max > 4, "a disk is slower, and the recorded times do not wait for it");
    let closed = on_drive(&plan, "sata-7200-2006", Timing::Dependent, 1.0);
    assert_eq!((closed.replayed.depth_max, closed.lag.max()), (1, 0));
    let thought_ns = closed.replayed.elapsed_ns
        - closed.replayed.kinds[0]
            .latency
            .iter_recorded()
            .map(|at| at.value_iterated_to() * at.count_at_value())
            .sum::<u64>();
    // 39 pauses; latencies are summed from a histogram of 3 digits.
    let off = thought_ns as f64 / 39e6 - 1.0;
    assert!(off.abs() < 0.02, "{thought_ns} ns of thinking");
}

#[test]
fn an_interrupted_replay_waits_for_requests_in_flight() {
    let records: Vec<RequestRecord> =
        (0..10).map(|at| record(1, at * 8, at * 30_000_000, at * 30_000_000 + 5)).collect();
    let plan = plan(TraceLayer::Queue, false, &records);
    let mut engine = Virtual::default();
    let profile = Profile::builtin("null").expect("a built-in drive");
    let mut target = DeviceTarget::drive(&profile, Elevator::Noop, None, Vec::new(), &mut engine).expect("a drive");
    target.join(&[Process::default()], 0).expect("there is room");
    let options = Options { timing: Timing::Recorded, scale: 1.0 };
    let outcome = replay(&plan, &options, &mut target, &mut engine, &mut |progress| progress.done < 3);
    let outcome = outcome.expect("nothing fails");
    assert!(outcome.interrupted);
    assert_eq!(outcome.replayed.kinds[0].requests, 3);
}

#[test]
fn a_late_timer_keeps_its_interval_on_a_slower_drive() {
    // Due every 40 ms, up to 24 ms late, each completed in 0.1 to 0.2 ms; the disk takes about 10
    // ms.
    let mut state = 1u64;
    let mut chance = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let records: Vec<RequestRecord> = (0..200)
        .map(|at| {
            let at_ns = at * 40_000_000 + chance(24_000_000);
            record(1, at * 5_000_000 % 90_000_000, at_ns, at_ns + 100_000 + chance(100_000))
        })
        .collect();
    let plan = plan(TraceLayer::Queue, false, &records);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Dependent, 1.0);
    let longer = outcome.replayed.elapsed_ns as f64 / plan.recorded().elapsed_ns as f64;
    assert!((0.98..1.02).contains(&longer) && outcome.replayed.depth_max == 1, "{longer} times as long");
}

#[test]
fn requests_without_completions_wait_for_the_one_before_and_for_their_gap() {
    // Gaps of 20 ms and of 0.1 ms: a read of this drive takes some milliseconds.
    let submitted = |sector, at_ns| RequestRecord { completed_ns: None, ..record(1, sector, at_ns, 0) };
    let plan = plan(
        TraceLayer::Queue,
        false,
        &[submitted(0, 0), submitted(80_000_000, 20_000_000), submitted(40_000_000, 20_100_000)],
    );
    assert!(!plan.has_completions());
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Dependent, 1.0);
    assert_eq!((outcome.replayed.depth_max, outcome.lag.max()), (1, 0));
    assert!(outcome.replayed.elapsed_ns > 25_000_000, "{}", outcome.replayed.elapsed_ns);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Recorded, 1.0);
    assert_eq!(outcome.replayed.depth_max, 2);
}

#[test]
fn requests_of_a_process_keep_their_order_whichever_pause_ends_first() {
    const MS: u64 = 1_000_000;
    // Two at a time. The third request came 10 ms after the first completion, the fourth 0.1 ms
    // after the second one.
    let records = [
        record(1, 0, 0, MS),
        record(1, 8, 0, 11 * MS),
        record(1, 16, 11 * MS, 20 * MS),
        record(1, 24, 11 * MS + MS / 10, 30 * MS),
    ];
    let plan = plan(TraceLayer::Queue, false, &records);
    let mut dependents = Dependents::new(&plan);
    let mut due = Vec::new();
    let mut release = |process, at_ns| due.push((at_ns, process));
    dependents.begin(&plan, &|ns| ns, &mut release);
    // On a faster drive both complete after 1 ms.
    for _ in 0..2 {
        dependents.completed(&plan, 0, MS, &|ns| ns, &mut release);
    }
    due.sort_unstable();
    let taken = due.into_iter().map(|(at_ns, process)| {
        let index = dependents.peek(process).expect("a request for each due time");
        dependents.take(process);
        (index, at_ns)
    });
    assert_eq!(taken.collect::<Vec<_>>(), [(0, 0), (1, 0), (2, MS + MS / 10), (3, 11 * MS)]);
    assert_eq!(dependents.peek(0), None);
}
