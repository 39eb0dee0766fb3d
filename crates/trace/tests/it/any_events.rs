//! Property tests with arbitrary events: written events are read back, and merging keeps all events
//! and the order of each file.

use std::io::Cursor;

use hoistway_trace::blktrace::{Reader, Version, Writer};
use hoistway_trace::{Action, Batch, DeviceId, Event, EventWriter, Rwbs, Source, Span, Stream, blkparse};
use proptest::collection::vec;
use proptest::prelude::*;

type EventWithPayload = (Event, Vec<u8>);

/// An event that the formats can represent: a read has a length, and notes have neither a request
/// nor a sequence number.
fn any_event(cpu: u32) -> impl Strategy<Value = EventWithPayload> {
    let numbers = (any::<u64>(), any::<u64>(), 1..=u32::MAX, any::<u32>(), any::<u32>(), any::<u16>(), any::<u64>());
    let what = (0..Action::ALL.len(), 0..4usize, 0u16..128, vec(any::<u8>(), 0..40));
    (numbers, what).prop_map(
        move |((time_ns, sector, bytes, pid, sequence, error, cgroup), (action, op, ways, payload))| {
            let action = Action::ALL[action];
            let kind = [Rwbs::READ, Rwbs::WRITE, Rwbs::DISCARD, Rwbs::NONE][op];
            let ways = Rwbs(ways << 3 & !Rwbs::NONE.0);
            let bytes = if kind == Rwbs::NONE { 0 } else { bytes };
            let device = DeviceId(pid ^ sequence);
            let event = Event {
                sector,
                bytes,
                pid,
                sequence,
                cpu,
                device,
                error,
                op: kind.with(ways),
                cgroup,
                ..Event::new(time_ns, action)
            };
            let note = Event { sector: 0, bytes: 0, sequence: 0, error: 0, op: Rwbs(0), ..event };
            // Texts end at the first zero byte.
            let text: Vec<u8> = payload.iter().map(|byte| byte & 0x7F | 0x20).collect();
            match action {
                Action::Process => (note, text.into_iter().take(15).collect()),
                Action::Message => (note, text),
                Action::Timestamp => {
                    (note, (sector % (1 << 32) * 1_000_000_000 + u64::from(pid) % 1_000_000_000).to_be_bytes().to_vec())
                }
                Action::Zone => (event, (18 + u64::from(error) % 200).to_be_bytes().to_vec()),
                _ => (event, payload),
            }
        },
    )
}

fn written(version: Version, events: &[EventWithPayload]) -> Vec<u8> {
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    let mut writer = Writer::new(Vec::new()).version(version);
    writer.write(&batch).unwrap();
    writer.into_inner()
}

fn read(files: Vec<Vec<u8>>) -> Vec<EventWithPayload> {
    let streams = files.into_iter().map(|bytes| Stream { name: "a".into(), read: Box::new(Cursor::new(bytes)) });
    let mut reader = Reader::new(streams.collect());
    all(&mut reader)
}

fn all(source: &mut dyn Source) -> Vec<EventWithPayload> {
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return events;
        }
        let read = batch.events().iter();
        events.extend(read.map(|event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec())));
    }
}

proptest! {
    #[test]
    fn written_events_are_read_back(events in vec(any_event(3), 0..60)) {
        prop_assert_eq!(read(vec![written(Version::V8, &events)]), &events[..]);
        // Version 7 has no zone actions.
        let plain: Vec<EventWithPayload> = events.into_iter().filter(|(event, _)| event.action != Action::Zone).collect();
        prop_assert_eq!(read(vec![written(Version::V7, &plain)]), plain);
    }

    #[test]
    fn merging_loses_nothing_and_keeps_the_order_of_each_file(
        times in vec(vec(0u64..50, 0..30), 1..6),
        is_sorted in any::<bool>(),
    ) {
        let mut files = Vec::new();
        for (cpu, mut times) in (0u32..).zip(times) {
            if is_sorted {
                times.sort_unstable();
            }
            let event = |(sequence, time_ns): (u32, u64)| {
                let event = Event { cpu, sequence, bytes: 512, op: Rwbs::READ, ..Event::new(time_ns, Action::Queue) };
                (event, vec![])
            };
            files.push((0..).zip(times).map(event).collect::<Vec<EventWithPayload>>());
        }
        let merged = read(files.iter().map(|events| written(Version::V7, events)).collect());
        for (cpu, events) in (0u32..).zip(&files) {
            let of_cpu: Vec<EventWithPayload> = merged.iter().filter(|(event, _)| event.cpu == cpu).cloned().collect();
            prop_assert_eq!(&of_cpu, events);
        }
        prop_assert_eq!(merged.len(), files.iter().map(Vec::len).sum::<usize>());
        prop_assert!(!is_sorted || merged.is_sorted_by_key(|(event, _)| event.time_ns));
    }

    #[test]
    fn a_truncated_file_yields_a_prefix_of_its_events(events in vec(any_event(0), 1..20), cut in any::<prop::sample::Index>()) {
        let bytes = written(Version::V8, &events);
        let cut = cut.index(bytes.len() - 3) + 4;
        let read = read(vec![bytes[..cut].to_vec()]);
        prop_assert_eq!(&read[..], &events[..read.len()]);
    }

    #[test]
    fn text_is_unchanged_when_it_is_read_and_written_again(events in vec(any_event(1), 0..40)) {
        let text = |events: &[EventWithPayload]| {
            let mut batch = Batch::new();
            events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
            let mut writer = blkparse::Writer::new(Vec::new(), "a").with_all_messages().quiet();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            writer.into_inner()
        };
        // Events without a line are omitted: they would change the time from which the text counts.
        let is_printed = |(event, payload): &&EventWithPayload| match event.action {
            Action::Zone | Action::DriverData => false,
            Action::Message => !payload.is_empty(),
            _ => true,
        };
        // Seconds are printed with 32 bits, and lengths below a sector are not printed.
        let printable = |(event, payload): &EventWithPayload| {
            let bytes = event.bytes & !511;
            let op = if bytes == 0 { Rwbs(event.op.0 & !Rwbs::READ.0 | Rwbs::NONE.0) } else { event.op };
            (Event { time_ns: event.time_ns % (1 << 60), bytes, op, ..*event }, payload.clone())
        };
        let mut events: Vec<EventWithPayload> = events.iter().filter(is_printed).map(printable).collect();
        events.sort_by_key(|(event, _)| event.time_ns);
        let once = text(&events);
        let stream = Stream { name: "a".into(), read: Box::new(Cursor::new(once.clone())) };
        let twice = text(&all(&mut blkparse::Reader::new(stream)));
        prop_assert_eq!(String::from_utf8(twice), String::from_utf8(once));
    }
}
