//! Properties of all traces.

use crate::common::{events, open_bytes, write_to};
use hoistway_trace::{
    Action, Batch, DeviceId, Event, EventWriter as _, Format, Merge, Notice, OpenOptions, ReadError, Rwbs, Source,
    TimeUnit, csv, open,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A source of events in memory, in batches of at most `batch_max`.
struct Held {
    events: Vec<(Event, Vec<u8>)>,
    batch_max: usize,
}

impl Source for Held {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        let count = self.batch_max.min(self.events.len());
        self.events.drain(..count).for_each(|(event, payload)| batch.push_with(event, &payload));
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}

fn any_event() -> impl Strategy<Value = (Event, Vec<u8>)> {
    let numbers = (
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<u16>(),
        any::<u64>(),
    );
    (numbers, 0..Action::ALL.len(), 0..Rwbs::NONE.0 * 4, any::<u32>(), vec(any::<u8>(), 0..40)).prop_map(
        |((time_ns, sector, bytes, pid, sequence, cpu, error, cgroup), action, op, device, payload)| {
            let device = DeviceId(device);
            // One operation, preceded only by a flush.
            let operation = [Rwbs::READ, Rwbs::WRITE, Rwbs::DISCARD, Rwbs::NONE][usize::from(op % 4)];
            let others = op & !(Rwbs::READ.0 | Rwbs::WRITE.0 | Rwbs::DISCARD.0 | Rwbs::NONE.0);
            let event = Event {
                sector,
                bytes,
                pid,
                sequence,
                cpu,
                device,
                error,
                op: Rwbs(others).with(operation),
                cgroup,
                ..Event::new(time_ns, Action::ALL[action])
            };
            (event, payload)
        },
    )
}

proptest! {
    #[test]
    fn written_csv_is_read_as_the_same_events(held in vec(any_event(), 0..50)) {
        let mut writer = csv::Writer::new(Vec::new());
        write_to(&mut Held { events: held.clone(), batch_max: 7 }, &mut writer);
        let again = events(open_bytes(writer.into_inner()).as_mut());
        prop_assert_eq!(again, held);
    }

    #[test]
    fn a_merge_is_sorted_complete_and_stable(parts in vec(vec(0u64..20, 0..30), 1..5), batch_max in 1usize..6) {
        // The process id is the index of the part, the sequence number the index in it.
        let part = |(part, times): (usize, &Vec<u64>)| {
            let mut times = times.clone();
            times.sort();
            let event = |(at, time): (usize, u64)| (Event { pid: part as u32, sequence: at as u32, ..Event::new(time, Action::Queue) }, vec![part as u8]);
            times.into_iter().enumerate().map(event).collect::<Vec<_>>()
        };
        let parts: Vec<Vec<_>> = parts.iter().enumerate().map(part).collect();
        let mut expected: Vec<_> = parts.iter().flatten().cloned().collect();
        expected.sort_by_key(|(event, _)| (event.time_ns, event.pid, event.sequence));
        let sources = parts.into_iter().map(|events| (Box::new(Held { events, batch_max }) as Box<dyn Source + Send>, 0)).collect();
        prop_assert_eq!(events(&mut Merge::new(sources)), expected);
    }

    #[test]
    fn a_shift_moves_a_part_of_a_merge(times in vec(0u64..1000, 1..20), shift in -500i64..500) {
        let mut times = times;
        times.sort();
        let held = |times: &[u64]| Held { events: times.iter().map(|time| (Event::new(*time, Action::Queue), Vec::new())).collect(), batch_max: 3 };
        let sources: Vec<(Box<dyn Source + Send>, i64)> = vec![(Box::new(held(&times)), shift), (Box::new(held(&times)), 0)];
        let merged: Vec<u64> = events(&mut Merge::new(sources)).iter().map(|(event, _)| event.time_ns).collect();
        let mut expected: Vec<u64> = times.iter().map(|time| time.saturating_add_signed(shift)).chain(times.iter().copied()).collect();
        expected.sort();
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn arbitrary_lines_of_any_format_are_events_or_an_error(lines in vec("[0-9a-zA-Z,;:+\\[\\] ./<#\"-]{0,60}", 0..8), start in 0..STARTS.len(), format in 0..Format::ALL.len(), specified: bool) {
        let text = STARTS[start].to_owned() + &lines.join("\n");
        let options = OpenOptions {
            format: specified.then_some(Format::ALL[format]),
            time_unit: specified.then_some(TimeUnit::Second),
            ..OpenOptions::default()
        };
        let mut batch = Batch::new();
        let mut sink = csv::Writer::new(Vec::new());
        let result = open(vec![crate::common::input("input", text.into_bytes())], &options).and_then(|mut source| loop {
            source.next(&mut batch)?;
            if batch.is_empty() {
                return Ok(());
            }
            sink.write(&batch).unwrap();
        });
        if let Err(error) = result {
            prop_assert!(error.to_string().starts_with("input"));
        }
    }
}

/// A valid line of each format.
const STARTS: [&str; 18] = [
    "",
    "fio version 3 iolog\n0 /a add\n5 /a read 0 4096\n",
    "fio version 2 iolog\n/a add\n/a wait 5 0\n",
    "  7,0    0  1781.997769913  2896  Q  WS 102888 + 8 [<...>]\n",
    " fio-22180   [000] d..1. 48820.033531:   7,1    Q  RS 3952 + 8 [fio]\n",
    "128166372003061629,hm,1,Read,383496192,32768,413\n",
    "419,W,8792731648,16384,1577808144360767\n",
    "0.5 ; 6293576 ; 8 ; W ; 0.0 ; 0.0\n",
    " fio-24899 [001] 1306.78: block_rq_issue: 7,0 R 4096 () 8 + 8 0x2,0,4 [fio]\n",
    " fio 25114 [000] 1309.55: block:block_bio_queue: 7,0 R 8 + 8 [fio]\n",
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.5 fio 1 sda R 8 4096 0.25\n",
    "0, 165356, 1, 8192, 3792896, 0\n",
    "1538323200,12910952,128,0,1063\n",
    "0,20941264,8192,W,0.551706\n",
    "1455592207.110738000,0.5,R,1,4096,8192\n",
    "0 4892 syslogd 904265560 8 W 6 0 531e779c\n",
    "ts,lbn,len,cmd\n5,8,512,40\n",
    "0.000000 0 12345 8 1\n",
];
