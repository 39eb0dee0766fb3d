//! Any events, as any format may tell them: what is told of them, drawn of them, and found to have been waited for.
#![no_main]

use hoistway_trace::describe::Describe;
use hoistway_trace::life::Lives;
use hoistway_trace::overview::Overview;
use hoistway_trace::reorder::{Reorder, Window};
use hoistway_trace::{Action, Batch, DeviceId, Event, Rwbs};
use libfuzzer_sys::fuzz_target;

/// Places, lengths and processes are few, so that events mean the same requests; times and what a request does are any.
type Told<'a> = (u8, u8, u16, u32, u8, u8, &'a [u8]);

fuzz_target!(|told: Vec<Told<'_>>| {
    let mut batch = Batch::new();
    let mut now_ns = 0u64;
    for (action, cpu, op, later, place, length, payload) in told {
        // Three in four go on by a little; others go anywhere.
        now_ns = match later % 4 {
            3 => u64::from(later) << (later % 33),
            _ => now_ns.wrapping_add(u64::from(later)),
        };
        let event = Event {
            sector: u64::from(place % 32) * 8,
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
    let mut describe = Describe::new();
    describe.take(&batch);
    let description = describe.finish();
    assert_eq!(description.counts.events + description.counts.notes, batch.len() as u64);
    let (mut lives, mut overview) = (Lives::new(), Overview::new());
    lives.take(&batch);
    overview.take(&batch);
    let over: Vec<_> = lives.over().collect();
    over.iter().chain(&lives.rest()).for_each(|life| overview.life(life));
    let tables = overview.tables();
    assert!(tables.lanes.iter().map(|lane| lane.requests).sum::<u64>() == tables.requests);
    let (mut reorder, mut sorted) = (Reorder::new(Window::All, ()), Batch::new());
    reorder.take(&batch, &mut sorted);
    reorder.finish(&mut sorted);
});
