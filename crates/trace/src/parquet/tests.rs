//! Tests of the reader and the writer through files.

use std::fs::{self, File};
use std::path::Path;

use super::{Partition, Writer};
use crate::batch::Batch;
use crate::describe::describe;
use crate::event::{Action, DeviceId, Event, Rwbs, Span};
use crate::files::resolve;
use crate::stream::{Input, Stream};
use crate::writer::EventWriter;
use crate::{OpenOptions, Source, open};

type EventWithPayload = (Event, Vec<u8>);

/// Reads requests of two processes with submission, issue and completion.
fn requests(count: u64) -> Batch {
    let mut batch = Batch::new();
    for (pid, name) in [(7, "reader"), (8, "writer")] {
        batch.push_with(Event { pid, ..Event::new(1, Action::Process) }, name.as_bytes());
    }
    for number in 0..count {
        let event = |action, after_ns| Event {
            sector: number * 8,
            bytes: 4096,
            pid: 7 + (number % 2) as u32,
            device: DeviceId::new(8, 0),
            op: if number % 2 == 0 { Rwbs::READ } else { Rwbs::WRITE },
            ..Event::new(1_000_000 + number * 1000 + after_ns, action)
        };
        batch.push(event(Action::Queue, 0));
        batch.push(event(Action::Issue, 100));
        batch.push(Event { pid: 0, ..event(Action::Complete, 300 + number % 5) });
    }
    batch
}

fn write(mut writer: Writer, batch: &Batch) {
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn opened(path: &Path) -> Result<Box<dyn Source + Send>, String> {
    let files = resolve(path).map_err(|error| error.to_string())?;
    open(files.into_iter().map(Input::Path).collect(), &OpenOptions::default()).map_err(|error| error.to_string())
}

fn events(source: &mut dyn Source) -> Vec<EventWithPayload> {
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

fn failure(path: &Path) -> String {
    let mut source = match opened(path) {
        Ok(source) => source,
        Err(error) => return error,
    };
    let mut batch = Batch::new();
    loop {
        match source.next(&mut batch) {
            Ok(()) => assert!(!batch.is_empty(), "the file is read without an error"),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn all_fields_of_extreme_events_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    let mut batch = Batch::new();
    for (index, action) in (0u16..).zip(Action::ALL) {
        let event = Event {
            sector: u64::MAX - u64::from(index),
            bytes: u32::MAX,
            pid: u32::MAX,
            sequence: 1 << 31,
            cpu: 255,
            device: DeviceId(u32::MAX),
            error: u16::MAX,
            op: Rwbs(0x3FF >> (index % 10)),
            cgroup: u64::MAX,
            ..Event::new(u64::MAX - 7, action)
        };
        batch.push_with(event, b"\0a,\xff");
        batch.push(Event::new(0, action));
    }
    for bits in 0..1024 {
        batch.push(Event { op: Rwbs(bits), ..Event::new(5, Action::Queue) });
    }
    write(Writer::file(&file, |path| File::create(path)), &batch);
    let expected = batch.events().iter();
    let expected: Vec<EventWithPayload> =
        expected.map(|event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec())).collect();
    assert_eq!(events(opened(&file).unwrap().as_mut()), expected);
    let stream = Stream { name: "pipe".into(), read: Box::new(File::open(&file).unwrap()) };
    let mut piped = open(vec![Input::Stream(stream)], &OpenOptions::default()).unwrap();
    assert_eq!(events(piped.as_mut()), expected);
}

#[test]
fn a_set_is_read_in_its_order_and_describes_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, set) = (folder.path().join("one.parquet"), folder.path().join("set"));
    let mut batch = requests(100);
    // A note that is older than the events before it does not divide the set.
    batch.push_with(Event { pid: 9, ..Event::new(3, Action::Process) }, b"late");
    write(Writer::file(&file, |path| File::create(path)), &batch);
    write(Writer::folder(&set, Partition { events: 40, interval_ns: None }).unwrap(), &batch);
    assert_eq!(fs::read_dir(&set).unwrap().count(), 8, "303 events in files of at least 40");
    let by_time = folder.path().join("by-time");
    write(Writer::folder(&by_time, Partition { events: 1 << 20, interval_ns: Some(25_000) }).unwrap(), &batch);
    assert_eq!(fs::read_dir(&by_time).unwrap().count(), 4, "100 us in intervals of 25 us");
    let one = events(opened(&file).unwrap().as_mut());
    let whole = describe(opened(&file).unwrap().as_mut()).unwrap();
    assert_eq!((whole.all.requests, whole.all.phases.q2c_ns.min, whole.all.phases.q2c_ns.max), (100, 300, 304));
    for set in [&set, &by_time] {
        let mut source = opened(set).unwrap();
        assert_eq!(events(source.as_mut()), one);
        assert_eq!(source.notices(), []);
        assert_eq!(describe(opened(set).unwrap().as_mut()).unwrap(), whole);
    }
    let again = Writer::folder(&set, Partition::default()).unwrap_err().to_string();
    assert!(again.contains("not empty"), "{again}");
}

#[test]
fn missing_and_repeated_parts_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let part = |index: u32| folder.path().join(format!("events-{index:05}.parquet"));
    write(Writer::folder(folder.path(), Partition { events: 40, interval_ns: None }).unwrap(), &requests(100));
    let all = events(opened(folder.path()).unwrap().as_mut()).len();
    fs::remove_file(part(1)).unwrap();
    fs::remove_file(part(7)).unwrap();
    let mut source = opened(folder.path()).unwrap();
    let rest = events(source.as_mut()).len();
    assert!(rest > all / 2 && rest < all - 40, "{rest} of {all}");
    let notices: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
    assert!(
        notices[0].contains("events-00006.parquet: parts of its set are missing (1, counted from 0)"),
        "{notices:?}"
    );
    assert!(notices[1].contains("not the last part"), "{notices:?}");
    fs::copy(part(2), part(1)).unwrap();
    let repeated = failure(folder.path());
    assert!(repeated.contains("part 2 of the same set as"), "{repeated}");
}

#[test]
fn damaged_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write(Writer::folder(folder.path(), Partition { events: 100, interval_ns: None }).unwrap(), &requests(100));
    let part = folder.path().join("events-00001.parquet");
    let whole = fs::read(&part).unwrap();
    for (length, message) in [
        (0, "events-00001.parquet: it is empty"),
        (3, "unknown trace format"),
        (9, "events-00001.parquet: its footer is missing (PAR1 at its end would be right)"),
        (whole.len() / 2, "events-00001.parquet: its footer is missing"),
        (whole.len() - 1, "events-00001.parquet: its footer is missing"),
    ] {
        fs::write(&part, &whole[..length]).unwrap();
        if length == 0 {
            // As for the empty file of a CPU: a notice.
            let mut source = opened(folder.path()).unwrap();
            let notices: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
            assert!(notices.iter().any(|notice| notice.contains(message)), "{notices:?}");
            continue;
        }
        let failed = failure(folder.path());
        assert!(failed.contains(message), "{failed}");
    }
    // Bytes that are overwritten in the middle of a page.
    let mut damaged = whole.clone();
    damaged[8..200].fill(0xff);
    fs::write(&part, &damaged).unwrap();
    let failed = failure(folder.path());
    assert!(failed.contains("events-00001.parquet: column `time_ns` is damaged at row 1"), "{failed}");
}
