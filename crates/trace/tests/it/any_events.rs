//! Whatever events there are: what is written is read again, and merging keeps all of them and each file's order.

use std::io::Cursor;

use hoistway_trace::blktrace::{Reader, Version, Writer};
use hoistway_trace::{Action, Batch, DeviceId, Event, Rwbs, Sink, Source, Span, Stream, blkparse};
use proptest::collection::vec;
use proptest::prelude::*;

type Told = (Event, Vec<u8>);

/// An event that the formats can tell: a read has a length, and notes have neither a request nor a number.
fn any_event(cpu: u32) -> impl Strategy<Value = Told> {
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
            // Texts end at their first zero.
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

fn written(version: Version, events: &[Told]) -> Vec<u8> {
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    let mut writer = Writer::new(Vec::new()).version(version);
    writer.write(&batch).unwrap();
    writer.into_inner()
}

fn read(files: Vec<Vec<u8>>) -> Vec<Told> {
    let streams = files.into_iter().map(|bytes| Stream { name: "a".into(), read: Box::new(Cursor::new(bytes)) });
    let mut reader = Reader::new(streams.collect());
    all(&mut reader)
}

fn all(source: &mut dyn Source) -> Vec<Told> {
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return events;
        }
        let told = batch.events().iter();
        events.extend(told.map(|event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec())));
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(events in vec(any_event(3), 0..60)) {
        prop_assert_eq!(read(vec![written(Version::V8, &events)]), &events[..]);
        // Version 7 has no actions of zones.
        let plain: Vec<Told> = events.into_iter().filter(|(event, _)| event.action != Action::Zone).collect();
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
            files.push((0..).zip(times).map(event).collect::<Vec<Told>>());
        }
        let merged = read(files.iter().map(|events| written(Version::V7, events)).collect());
        for (cpu, events) in (0u32..).zip(&files) {
            let of_cpu: Vec<Told> = merged.iter().filter(|(event, _)| event.cpu == cpu).cloned().collect();
            prop_assert_eq!(&of_cpu, events);
        }
        prop_assert_eq!(merged.len(), files.iter().map(Vec::len).sum::<usize>());
        prop_assert!(!is_sorted || merged.is_sorted_by_key(|(event, _)| event.time_ns));
    }

    #[test]
    fn a_cut_file_gives_a_beginning_of_its_events(events in vec(any_event(0), 1..20), cut in any::<prop::sample::Index>()) {
        let bytes = written(Version::V8, &events);
        let cut = cut.index(bytes.len() - 3) + 4;
        let read = read(vec![bytes[..cut].to_vec()]);
        prop_assert_eq!(&read[..], &events[..read.len()]);
    }

    #[test]
    fn text_tells_the_same_when_it_is_read_and_written_again(events in vec(any_event(1), 0..40)) {
        let text = |events: &[Told]| {
            let mut batch = Batch::new();
            events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
            let mut writer = blkparse::Writer::new(Vec::new(), "a").with_all_messages().quiet();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            writer.into_inner()
        };
        // What stands in no line is left out: it would move the moment from which times count.
        let is_printed = |(event, payload): &&Told| match event.action {
            Action::Zone | Action::DriverData => false,
            Action::Message => !payload.is_empty(),
            _ => true,
        };
        // Seconds are printed with 32 bits, and what has no whole sector has no length.
        let told = |(event, payload): &Told| {
            let bytes = event.bytes & !511;
            let op = if bytes == 0 { Rwbs(event.op.0 & !Rwbs::READ.0 | Rwbs::NONE.0) } else { event.op };
            (Event { time_ns: event.time_ns % (1 << 60), bytes, op, ..*event }, payload.clone())
        };
        let mut events: Vec<Told> = events.iter().filter(is_printed).map(told).collect();
        events.sort_by_key(|(event, _)| event.time_ns);
        let once = text(&events);
        let stream = Stream { name: "a".into(), read: Box::new(Cursor::new(once.clone())) };
        let twice = text(&all(&mut blkparse::Reader::new(stream)));
        prop_assert_eq!(String::from_utf8(twice), String::from_utf8(once));
    }
}
