//! Arbitrary events: statistics, overview tables and reordering handle them without a panic.
#![no_main]

use hoistway_overview::Overview;
use hoistway_trace::describe::Describer;
use hoistway_trace::reorder::{SectorSorter, Window};
use hoistway_trace::request::RequestTracker;
use hoistway_trace::{Action, Batch, DeviceId, Event, Rwbs};
use libfuzzer_sys::fuzz_target;

/// Few sectors, lengths and processes, so that events refer to the same requests; arbitrary times
/// and operations.
type RawEvent<'a> = (u8, u8, u16, u32, u8, u8, &'a [u8]);

fuzz_target!(|raw: Vec<RawEvent<'_>>| {
    let mut batch = Batch::new();
    let mut now_ns = 0u64;
    for (action, cpu, op, delta, sector, length, payload) in raw {
        // Three in four times advance by a little; the others are arbitrary.
        now_ns = match delta % 4 {
            3 => u64::from(delta) << (delta % 33),
            _ => now_ns.wrapping_add(u64::from(delta)),
        };
        let event = Event {
            sector: u64::from(sector % 32) * 8,
            bytes: if length == 255 { u32::MAX } else { u32::from(length % 16) * 512 },
            pid: u32::from(cpu % 5),
            cpu: cpu.into(),
            device: DeviceId(u32::from(cpu >> 7)),
            error: u16::from(cpu & 1),
            op: Rwbs(op),
            ..Event::new(now_ns, Action::ALL[usize::from(action) % Action::ALL.len()])
        };
        batch.push_with(event, payload);
    }
    let mut describe = Describer::new();
    describe.take(&batch);
    let description = describe.finish();
    assert_eq!(description.counts.events + description.counts.notes, batch.len() as u64);
    let (mut tracker, mut overview) = (RequestTracker::new(), Overview::new());
    tracker.take(&batch);
    overview.add_events(&batch);
    let finished: Vec<_> = tracker.take_finished().collect();
    finished.iter().chain(&tracker.into_outstanding()).for_each(|request| overview.add_request(request));
    let tables = overview.into_tables();
    assert!(tables.processes.iter().map(|process| process.requests).sum::<u64>() == tables.requests);
    let (mut reorder, mut sorted) = (SectorSorter::new(Window::All, ()), Batch::new());
    reorder.take(&batch, &mut sorted);
    reorder.finish(&mut sorted);
});
