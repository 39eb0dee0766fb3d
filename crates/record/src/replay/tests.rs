//! Plans, and what becomes of them in virtual time.

use hoistway_core::Kind as Elevator;
use hoistway_drive::Profile;
use hoistway_trace::request::{Merged, RequestRecord};
use hoistway_trace::{DeviceId, Rwbs};

use super::*;
use hoistway_reactor::Process;

/// A read of 4 KiB that came and was over at these times.
fn life(pid: u32, sector: u64, queued_ns: u64, completed_ns: u64) -> RequestRecord {
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
        merged: Vec::new(),
        requeues: 0,
        error: 0,
    }
}

fn plan(level: Level, reads_only: bool, lives: &[RequestRecord]) -> Plan {
    let mut builder = PlanBuilder::new(level, reads_only);
    lives.iter().for_each(|life| builder.take(life));
    builder.finish()
}

fn on_drive(plan: &Plan, name: &str, timing: Timing, scale: f64) -> Outcome {
    let mut engine = Virtual::default();
    let profile = Profile::builtin(name).expect("a built-in drive");
    let mut target = DeviceTarget::drive(&profile, Elevator::Noop, None, Vec::new(), &mut engine).expect("a drive");
    target.join(&vec![Process::default(); plan.processes().len()], 0).expect("there is room");
    replay(plan, &Options { timing, scale }, &mut target, &mut engine, &mut |_| true).expect("nothing fails")
}

#[test]
fn a_plan_has_each_bio_of_a_merged_request_at_its_own_time_or_the_request_as_the_driver_got_it() {
    // 8 sectors at 100, with 8 merged to the front and 16 to the end: 92 to 124.
    let merged = |pid, queued_ns, sector, bytes, front| Merged {
        pid,
        queued_ns,
        merged_ns: queued_ns + 1,
        sector,
        bytes,
        front,
    };
    let life = RequestRecord {
        sector: 92,
        bytes: 4096 + 4096 + 8192,
        merged: vec![merged(2, 5, 92, 4096, true), merged(3, 6, 108, 8192, false)],
        ..life(1, 0, 4, 50)
    };
    let all = |plan: &Plan| -> Vec<(u64, u64, u32, u32)> {
        let of = |request: &Planned| (request.at_ns, request.offset / 512, request.bytes, request.process);
        plan.requests().iter().map(of).collect()
    };
    let bios = plan(Level::Queue, false, std::slice::from_ref(&life));
    assert_eq!(all(&bios), [(0, 100, 4096, 0), (1, 92, 4096, 1), (2, 108, 8192, 2)]);
    let requests = plan(Level::Issue, false, &[life]);
    assert_eq!(all(&requests), [(0, 92, 16_384, 0)]);
    assert_eq!(requests.requests()[0].recorded_ns, 50 - 14);
}

#[test]
fn a_write_with_a_flush_before_it_is_two_things_and_what_changes_can_be_left_out() {
    let write = RequestRecord { op: Rwbs::WRITE.with(Rwbs::FLUSH).with(Rwbs::FUA), ..life(1, 0, 0, 9) };
    let flush = RequestRecord { op: Rwbs::WRITE.with(Rwbs::FLUSH), bytes: 0, ..life(1, 0, 1, 9) };
    let discard = RequestRecord { op: Rwbs::WRITE.with(Rwbs::DISCARD), ..life(1, 8, 2, 9) };
    let lives = [write, flush, discard, life(1, 0, 3, 9)];
    let whole = plan(Level::Queue, false, &lives);
    let kinds: Vec<Kind> = whole.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::Flush, Kind::Write, Kind::Flush, Kind::Discard, Kind::Read]);
    assert!(whole.requests()[1].durable);
    assert_eq!(whole.changing(), 4);
    let reads = plan(Level::Queue, true, &lives);
    assert_eq!((reads.requests().len(), reads.left_out().changing), (1, 3));
    let mut able = whole.clone();
    able.leave_out(true, true);
    assert_eq!((able.requests().len(), able.left_out().discards, able.left_out().flushes), (2, 1, 2));
}

#[test]
fn what_does_not_fit_is_refused_wrapped_or_shifted() {
    let fresh = || plan(Level::Queue, false, &[life(1, 8, 0, 9), life(1, 100, 1, 9)]);
    let offsets = |plan: &Plan| plan.requests().iter().map(|request| request.offset / 512).collect::<Vec<_>>();
    let size = 50 * 512;
    assert_eq!(fresh().fit(Fit::default(), size), Err(Unfit::TooSmall { size, end: 108 * 512 }));
    let mut wrapped = fresh();
    wrapped.fit(Fit { wrap: true, ..Fit::default() }, size).expect("it wraps");
    // 100 modulo 50, and 8 as it was.
    assert_eq!(offsets(&wrapped), [8, 0]);
    let mut shifted = fresh();
    shifted.fit(Fit { shift_bytes: -8 * 512, ..Fit::default() }, 100 * 512).expect("it fits");
    assert_eq!(offsets(&shifted), [0, 92]);
    let below = Fit { shift_bytes: -9 * 512, wrap: true };
    assert_eq!(fresh().fit(below, size), Err(Unfit::BeforeBeginning { offset: 4096, shift: -9 * 512 }));
    assert_eq!(
        fresh().fit(Fit { wrap: true, ..Fit::default() }, 512),
        Err(Unfit::RequestTooLong { size: 512, bytes: 4096 })
    );
    // What would lie on both sides of the end lies before it.
    let mut last = plan(Level::Queue, false, &[life(1, 0, 0, 9), life(1, 48, 1, 9)]);
    last.fit(Fit { wrap: true, ..Fit::default() }, size).expect("it wraps");
    assert_eq!(offsets(&last), [0, 42]);
}

#[test]
fn recorded_times_are_kept_to_the_nanosecond_in_virtual_time_and_can_be_scaled() {
    // 3 reads, 30 ms apart: a disk is done with each before the next.
    let lives: Vec<RequestRecord> =
        (0..3).map(|at| life(1, at * 10_000_000, at * 30_000_000, at * 30_000_000 + 5)).collect();
    let plan = plan(Level::Queue, false, &lives);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Recorded, 1.0);
    assert_eq!((outcome.lag.max(), outcome.failed, outcome.replayed.kinds[0].requests), (0, 0, 3));
    let after_last_ns = outcome.replayed.elapsed_ns - 60_000_000;
    assert!((100_000..30_000_000).contains(&after_last_ns), "a read of a disk takes {after_last_ns} ns");
    let slower = on_drive(&plan, "sata-7200-2006", Timing::Recorded, 2.0);
    assert!((120_000_000..150_000_000).contains(&slower.replayed.elapsed_ns), "{}", slower.replayed.elapsed_ns);
    assert_eq!(plan.recorded().elapsed_ns, 60_000_005);
}

#[test]
fn as_soon_as_possible_keeps_the_depth_and_forgets_the_times() {
    let lives: Vec<RequestRecord> =
        (0..64).map(|at| life(1, at * 1_000_000, at * 1_000_000_000, at * 1_000_000_000 + 5)).collect();
    let plan = plan(Level::Queue, false, &lives);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Asap { depth: 4 }, 1.0);
    assert_eq!((outcome.replayed.depth_max, outcome.lag.max()), (4, 0));
    assert!(outcome.replayed.elapsed_ns < 2_000_000_000, "64 random reads of a disk take a second or less");
}

#[test]
fn a_closed_process_waits_for_its_reads_and_then_thinks_as_long_as_it_did() {
    // One at a time on a fast drive: 0.1 ms each, then 1 ms of thinking; 40 of them.
    let lives: Vec<RequestRecord> =
        (0..40).map(|at| life(1, at * 5_000_000 % 90_000_000, at * 1_100_000, at * 1_100_000 + 100_000)).collect();
    let plan = plan(Level::Queue, false, &lives);
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
fn an_interrupted_replay_says_so_and_waits_for_what_is_under_way() {
    let lives: Vec<RequestRecord> = (0..10).map(|at| life(1, at * 8, at * 30_000_000, at * 30_000_000 + 5)).collect();
    let plan = plan(Level::Queue, false, &lives);
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
fn a_timer_that_woke_late_is_as_long_on_a_slower_drive() {
    // Due every 40 ms, up to 24 ms late, each over in 0.1 to 0.2 ms; the disk takes some 10 ms.
    let mut state = 1u64;
    let mut chance = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let lives: Vec<RequestRecord> = (0..200)
        .map(|at| {
            let at_ns = at * 40_000_000 + chance(24_000_000);
            life(1, at * 5_000_000 % 90_000_000, at_ns, at_ns + 100_000 + chance(100_000))
        })
        .collect();
    let plan = plan(Level::Queue, false, &lives);
    let outcome = on_drive(&plan, "sata-7200-2006", Timing::Dependent, 1.0);
    let longer = outcome.replayed.elapsed_ns as f64 / plan.recorded().elapsed_ns as f64;
    assert!((0.98..1.02).contains(&longer) && outcome.replayed.depth_max == 1, "{longer} times as long");
}
