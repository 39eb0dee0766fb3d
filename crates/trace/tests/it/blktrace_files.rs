//! Reads captures, damaged files, and files of the writer.

use std::io::Read;

use hoistway_trace::Batch;
use hoistway_trace::EventWriter;
use hoistway_trace::Stream;
use hoistway_trace::blktrace::{Reader, Version, Writer};
use hoistway_trace::{Action, DeviceId, Event, Rwbs};
use hoistway_trace::{ReadError, Source};

/// An event with a payload of its own.
type EventWithPayload = (Event, Vec<u8>);

fn stream(name: &str, read: impl Read + Send + 'static) -> Stream {
    Stream { name: name.into(), read: Box::new(read) }
}

/// Returns all events of files, and the notices.
fn read_all(files: &[&[u8]]) -> Result<(Vec<EventWithPayload>, Vec<String>), ReadError> {
    let streams =
        files.iter().enumerate().map(|(cpu, bytes)| stream(&format!("a.{cpu}"), std::io::Cursor::new(bytes.to_vec())));
    let mut reader = Reader::new(streams.collect());
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    loop {
        reader.next(&mut batch)?;
        if batch.is_empty() {
            return Ok((events, reader.notices().iter().map(ToString::to_string).collect()));
        }
        events.extend(batch.events().iter().map(|event| with_payload(event, batch.payload(event))));
    }
}

/// Returns the event independent of the position of its payload in a batch.
fn with_payload(event: &Event, payload: &[u8]) -> EventWithPayload {
    (Event { payload: Default::default(), ..*event }, payload.to_vec())
}

fn at(time_ns: u64, cpu: u32, sequence: u32) -> Event {
    Event {
        sector: 800,
        bytes: 4096,
        pid: 7,
        sequence,
        cpu,
        device: DeviceId::new(8, 1),
        op: Rwbs::READ,
        ..Event::new(time_ns, Action::Queue)
    }
}

fn written(version: Version, events: &[EventWithPayload]) -> Vec<u8> {
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    let mut writer = Writer::new(Vec::new()).version(version);
    writer.write(&batch).unwrap();
    writer.into_inner()
}

/// Returns a file with records at these times on one CPU.
fn file(cpu: u32, times: &[u64]) -> Vec<u8> {
    let events: Vec<EventWithPayload> =
        (1..).zip(times).map(|(sequence, time_ns)| (at(*time_ns, cpu, sequence), vec![])).collect();
    written(Version::V7, &events)
}

fn order(events: &[EventWithPayload]) -> Vec<(u64, u32, u32)> {
    events.iter().map(|(event, _)| (event.time_ns, event.cpu, event.sequence)).collect()
}

/// Converts records to the other byte order. Payloads stay unchanged, except for control group ids.
fn swapped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let payload_bytes = usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        let cgroup_bytes = if rest[29] & 1 != 0 { 8 } else { 0 };
        for width in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2, cgroup_bytes] {
            out.extend(rest[..width].iter().rev());
            rest = &rest[width..];
        }
        out.extend_from_slice(&rest[..payload_bytes - cgroup_bytes]);
        rest = &rest[payload_bytes - cgroup_bytes..];
    }
    out
}

#[test]
fn written_records_are_read_in_both_versions_and_byte_orders() {
    let events = vec![
        (
            Event { sector: 0, bytes: 0, sequence: 0, op: Rwbs(0), action: Action::Process, ..at(1, 0, 0) },
            b"fio".to_vec(),
        ),
        (at(1, 0, 1), vec![]),
        (Event { cgroup: 77, ..at(2, 0, 2) }, vec![]),
        (
            Event { sector: 0, bytes: 0, sequence: 0, op: Rwbs(0), cgroup: 1, action: Action::Message, ..at(3, 0, 0) },
            b"bfq".to_vec(),
        ),
        (Event { action: Action::Remap, op: Rwbs::WRITE.with(Rwbs::FUA), ..at(4, 0, 3) }, (0..16).collect()),
        (Event { action: Action::Unplug, bytes: 0, op: Rwbs::NONE, ..at(5, 0, 4) }, vec![0, 0, 0, 0, 0, 0, 0, 3]),
        (
            Event { action: Action::Complete, error: 5, op: Rwbs::DISCARD.with(Rwbs::SYNC), ..at(u64::MAX, 0, 5) },
            vec![],
        ),
    ];
    for version in [Version::V7, Version::V8] {
        assert_eq!(read_all(&[&written(version, &events)]).unwrap(), (events.clone(), vec![]), "{version:?}");
    }
    assert_eq!(read_all(&[&swapped(&written(Version::V7, &events))]).unwrap(), (events, vec![]));
}

#[test]
fn zones_of_version_8_and_wall_clock_times_keep_their_numbers() {
    let zone = (Event { action: Action::Zone, ..at(1, 0, 1) }, 19u64.to_be_bytes().to_vec());
    let day = Event { sector: 0, bytes: 0, sequence: 0, op: Rwbs(0), action: Action::Timestamp, ..at(1, 0, 0) };
    let events = vec![zone, (day, 1_700_000_000_000_000_001u64.to_be_bytes().to_vec())];
    assert_eq!(read_all(&[&written(Version::V8, &events)]).unwrap(), (events, vec![]));
}

#[test]
fn files_are_merged_by_time_and_the_last_read_file_precedes_equal_times() {
    // Expected order: output of blkparse 1.2 for the same records.
    let (events, notices) =
        read_all(&[&file(0, &[10, 10, 20]), &file(1, &[10, 10, 20]), &file(2, &[10, 10, 20])]).unwrap();
    let cpus: Vec<u32> = events.iter().map(|(event, _)| event.cpu).collect();
    assert_eq!((cpus, notices), (vec![0, 0, 2, 2, 1, 1, 1, 2, 0], vec![]));
    let (events, _) = read_all(&[&file(0, &[10, 30]), &file(1, &[15, 30]), &file(2, &[20, 30, 30])]).unwrap();
    let cpus: Vec<u32> = events.iter().map(|(event, _)| event.cpu).collect();
    assert_eq!(cpus, [0, 1, 2, 2, 2, 1, 0]);
}

#[test]
fn a_clock_that_runs_backwards_is_reported_and_the_file_keeps_its_order() {
    let (events, notices) = read_all(&[&file(0, &[10, 30, 20, 25, 40]), &file(1, &[15, 22])]).unwrap();
    let times: Vec<u64> = order(&events).iter().map(|(time_ns, ..)| *time_ns).collect();
    assert_eq!(times, [10, 15, 22, 30, 20, 25, 40]);
    assert_eq!(
        notices,
        ["a.0 at byte 96: the clock of a CPU ran backwards once, by at most 10 ns: records keep the order of the file"]
    );
}

#[test]
fn late_process_names_are_no_clock_that_runs_backwards() {
    let name = (Event { pid: 7, ..Event::new(5, Action::Process) }, b"fio".to_vec());
    let bytes = [file(0, &[10, 20]), written(Version::V7, &[name]), file(0, &[30])].concat();
    let (events, notices) = read_all(&[&bytes]).unwrap();
    assert_eq!((events.len(), notices), (4, Vec::new()));
}

#[test]
fn a_file_with_the_records_of_several_cpus_is_sorted() {
    let mixed = [file(0, &[10, 20, 30]), file(1, &[5, 15, 25])].concat();
    let (events, notices) = read_all(&[&mixed]).unwrap();
    assert_eq!(order(&events), [(5, 1, 1), (10, 0, 1), (15, 1, 2), (20, 0, 2), (25, 1, 3), (30, 0, 3)]);
    assert_eq!(notices.len(), 1);
    assert!(notices[0].starts_with("a.0: the records of several CPUs alternate in this file"), "{notices:?}");
    // A second CPU begins long after the first.
    let first: Vec<u64> = (0..40_000).collect();
    let second: Vec<u64> = (40_000..90_000).map(|time_ns| time_ns ^ 1).collect();
    let late = [file(0, &first), file(1, &second)].concat();
    let (events, notices) = read_all(&[&late]).unwrap();
    assert!(events.is_sorted_by_key(|(event, _)| event.time_ns) && events.len() == 90_000);
    assert!(notices.iter().any(|notice| notice.contains("ran backwards 25000 times, by at most 1 ns")), "{notices:?}");
}

#[test]
fn a_truncated_file_is_read_up_to_the_last_complete_record() {
    let bytes = file(0, &[1, 2, 3]);
    let (events, notices) = read_all(&[&bytes[..bytes.len() - 1]]).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(notices, ["a.0 at byte 96: the last record is cut off: 47 bytes of 48"]);
    let with_payload = written(Version::V7, &[(at(1, 0, 1), vec![]), (at(2, 0, 2), vec![7; 100])]);
    let (events, notices) = read_all(&[&with_payload[..with_payload.len() - 60]]).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(notices, ["a.0 at byte 48: the last record is cut off: 88 bytes of 148"]);
}

#[test]
fn garbage_between_records_is_skipped_and_reported() {
    let (one, two) = (file(0, &[1]), file(0, &[2]));
    for garbage in [&b"x"[..], b"tae", &[0; 1000], b"\x07taX\x07tae\x07"] {
        let bytes = [&one[..], garbage, &two, garbage].concat();
        let (events, notices) = read_all(&[&bytes]).unwrap();
        assert_eq!(order(&events), [(1, 0, 1), (2, 0, 1)], "{garbage:?}");
        // The garbage at the end may be the beginning of a record.
        let counts = if garbage.len() == 1000 { "2000, places: 2)" } else { "" };
        let expected = format!("a.0 at byte 48: bytes without a record were skipped (bytes: {counts}");
        assert!(notices.iter().any(|notice| notice.starts_with(&expected)), "{notices:?}");
    }
    let (events, notices) = read_all(&[&[&b"before"[..], &one].concat()]).unwrap();
    assert_eq!((events.len(), notices.len()), (1, 1));
    assert!(notices[0].starts_with("a.0 at byte 0: "), "{notices:?}");
}

#[test]
fn an_input_without_records_is_an_error_that_describes_records() {
    let error = |bytes: &[u8]| read_all(&[bytes]).unwrap_err().to_string();
    assert_eq!(
        error(b"hello"),
        "a.0 at byte 0: no record of blktrace in 5 bytes: each begins with 0x65617407 (version 7) or 0x65617408"
    );
    let mut old = file(0, &[1]);
    old[0] = 6;
    assert_eq!(error(&old), "a.0 at byte 0: records of version 6 begin here; supported are versions 7 and 8");
    let mut reader = Reader::new(vec![stream("zeros", std::io::repeat(0))]);
    let error = reader.next(&mut Batch::new()).unwrap_err().to_string();
    assert!(error.starts_with("zeros at byte 0: no record of blktrace in 1"), "{error}");
    let endless = std::io::Cursor::new(file(0, &[1])).chain(std::io::repeat(0));
    let mut reader = Reader::new(vec![stream("zeros", endless)]);
    reader.next(&mut Batch::new()).unwrap();
    let error = reader.next(&mut Batch::new()).unwrap_err().to_string();
    assert!(error.starts_with("zeros at byte 48: no record of blktrace in 1"), "{error}");
}

#[test]
fn invalid_actions_and_cpus_are_skipped_and_reported() {
    let mut bytes = file(0, &[1, 2, 3]);
    bytes[28] = 200;
    bytes[48 + 43] = 1;
    let (events, notices) = read_all(&[&bytes]).unwrap();
    assert_eq!(order(&events), [(3, 0, 3)]);
    assert!(notices.iter().any(|notice| notice.contains("at byte 0: records of an unknown action")), "{notices:?}");
    assert!(
        notices.iter().any(|notice| notice.contains("at byte 48: bytes without a record were skipped")),
        "{notices:?}"
    );
}

#[test]
fn events_before_an_error_are_returned_first() {
    for good in [file(0, &[1, 2]), [file(0, &[1]), file(1, &[2])].concat()] {
        let endless = std::io::Cursor::new(good).chain(std::io::repeat(7));
        let mut reader = Reader::new(vec![stream("a", endless), stream("b", std::io::Cursor::new(file(2, &[1])))]);
        let mut batch = Batch::new();
        reader.next(&mut batch).unwrap();
        assert_eq!(batch.len(), 3);
        assert!(reader.next(&mut batch).is_err() && batch.is_empty());
        reader.next(&mut batch).unwrap();
        assert!(batch.is_empty());
    }
}

#[test]
fn empty_files_hold_no_events() {
    assert_eq!(read_all(&[]).unwrap(), (vec![], vec![]));
    assert_eq!(read_all(&[&[], &file(1, &[1]), &[]]).unwrap().0.len(), 1);
}
