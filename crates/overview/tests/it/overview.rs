//! Tables of an overview, from requests and events that are made here.

use hoistway_overview::{Counts, LAYERS, Layer, NoteSpan, Overview, Queue, Tables};
use hoistway_trace::request::RequestRecord;
use hoistway_trace::{Action, Batch, DeviceId, Event, Rwbs};

/// The maximum number of buckets of time of a table.
const BUCKETS: usize = 2048;
/// The maximum number of processes with tables of their own.
const PROCESSES_MAX: usize = 64;

fn record(pid: u32, at_ns: u64, sector: u64) -> RequestRecord {
    RequestRecord {
        device: DeviceId::new(8, 0),
        op: Rwbs::READ,
        sector,
        bytes: 4096,
        pid,
        queued_ns: Some(at_ns),
        got_ns: Some(at_ns + 10),
        inserted_ns: Some(at_ns + 20),
        issued_ns: Some(at_ns + 1_000),
        completed_ns: Some(at_ns + 5_000),
        flush: None,
        merged: Vec::new(),
        requeues: 0,
        error: 0,
    }
}

fn sums(tables: &Tables) -> (u64, u64, [u64; LAYERS], u64) {
    let counts = || tables.processes.iter().flat_map(|process| &process.counts);
    let mut layers = [0; LAYERS];
    for bucket in tables.processes.iter().flat_map(|process| &process.layers_ns) {
        layers.iter_mut().zip(bucket).for_each(|(sum, ns)| *sum += ns);
    }
    let cells = tables.processes.iter().flat_map(|process| &process.reads).map(|(_, count)| u64::from(*count)).sum();
    (counts().map(|c| u64::from(c.reads)).sum(), counts().map(|c| c.read_bytes).sum(), layers, cells)
}

#[test]
fn no_request_is_lost_in_a_long_trace() {
    for every_ns in [700, 1_000_000, 3_000_000_000] {
        let mut overview = Overview::new();
        for number in 0..1_000 {
            overview.add_request(&record(number as u32 % 5, number * every_ns, (number * 7_919) % 1_000_003));
        }
        let tables = overview.into_tables();
        assert_eq!(sums(&tables), (1_000, 4_096_000, [10_000, 10_000, 980_000, 4_000_000, 0], 1_000));
        assert_eq!((tables.processes.len(), tables.requests, tables.unfinished), (5, 1_000, 0));
        let buckets = tables.processes[0].counts.len();
        assert!(buckets <= BUCKETS && (every_ns < 1_000_000 || buckets > BUCKETS / 2), "{buckets}");
    }
}

#[test]
fn the_busiest_processes_keep_separate_tables() {
    let mut overview = Overview::new();
    for number in 0..2_000u64 {
        overview.add_request(&record(1, number * 10_000, 0));
        overview.add_request(&record(1_000 + (number % 500) as u32, number * 10_000 + 5_000, 8));
    }
    let tables = overview.into_tables();
    assert_eq!((tables.processes[0].pid, tables.processes[0].requests), (Some(1), 2_000));
    let others = tables.processes.last().unwrap();
    assert_eq!(others.pid, None);
    assert_eq!(tables.processes.iter().map(|process| process.requests).sum::<u64>(), 4_000);
    assert!(tables.processes.len() <= PROCESSES_MAX + 1 && tables.combined_processes >= 500 - PROCESSES_MAX);
    assert_eq!(sums(&tables).0, 4_000);
}

#[test]
fn a_request_without_completion_is_in_the_drive_until_the_end() {
    let mut overview = Overview::new();
    overview.add_request(&record(1, 0, 0));
    overview.add_request(&RequestRecord { completed_ns: None, ..record(2, 0, 0) });
    let tables = overview.into_tables();
    assert_eq!((tables.unfinished, tables.end_ns), (1, 5_000));
    let process = tables.processes.iter().find(|process| process.pid == Some(2)).unwrap();
    assert_eq!(process.layers_ns.iter().map(|ns| ns[Layer::Drive as usize]).sum::<u64>(), 4_000);
    assert!(process.counts.iter().all(|counts| *counts == Counts::default()));
}

#[test]
fn steps_that_a_trace_lacks_are_not_layers() {
    let mut overview = Overview::new();
    // Without an elevator there is no insertion. A trace of response times has only both ends.
    overview.add_request(&RequestRecord { inserted_ns: None, ..record(1, 0, 0) });
    overview.add_request(&RequestRecord { got_ns: None, inserted_ns: None, issued_ns: None, ..record(1, 0, 0) });
    assert_eq!(sums(&overview.into_tables()).2, [10, 0, 990, 4_000, 5_000]);
}

#[test]
fn requests_that_are_only_submitted_are_in_no_layer() {
    let mut overview = Overview::new();
    for at_ns in [0, 1_000_000] {
        overview.add_request(&RequestRecord {
            got_ns: None,
            inserted_ns: None,
            issued_ns: None,
            completed_ns: None,
            ..record(1, at_ns, 0)
        });
    }
    let tables = overview.into_tables();
    assert_eq!((tables.requests, tables.unfinished, sums(&tables)), (2, 2, (2, 8192, [0; LAYERS], 2)));
}

#[test]
fn a_requeued_request_without_any_time_is_ignored() {
    let mut overview = Overview::new();
    overview.add_request(&RequestRecord {
        queued_ns: None,
        got_ns: None,
        inserted_ns: None,
        issued_ns: None,
        completed_ns: None,
        requeues: 1,
        ..record(1, 0, 0)
    });
    let tables = overview.into_tables();
    assert_eq!((tables.requests, tables.processes.len()), (0, 0));
}

#[test]
fn names_and_messages_come_from_events() {
    let mut batch = Batch::new();
    let of = |time_ns, action| Event { pid: 7, device: DeviceId::new(8, 0), ..Event::new(time_ns, action) };
    batch.push_with(of(0, Action::Process), b"fio\0\0\0");
    batch.push_with(of(1_000, Action::Message), b"bfq7S set_in_service_queue, cur-budget = 64");
    batch.push_with(of(3_000, Action::Message), b"bfq7S expire (3, slow 0, num_disp 1, short_ttime 1)");
    let mut overview = Overview::new();
    overview.add_events(&batch);
    overview.add_request(&record(7, 1_000, 0));
    let spans: Vec<NoteSpan> = overview.spans().collect();
    assert_eq!(spans.len(), 1);
    let tables = overview.into_tables();
    assert_eq!(
        (tables.start_ns, tables.processes[0].name.as_str(), tables.elevator.as_deref()),
        (1_000, "fio", Some("bfq"))
    );
    let queue = &tables.queues[0];
    assert_eq!((queue.queue, queue.name.as_str()), (Some(Queue::Of(7)), "fio"));
    assert_eq!(queue.times_ns.iter().map(|[served, _]| served).sum::<u64>(), 2_000);
}
