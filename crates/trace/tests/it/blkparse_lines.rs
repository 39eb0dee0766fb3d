//! Compares lines and summaries with the output of blkparse 1.2, and reads them back.

use hoistway_trace::Batch;
use hoistway_trace::EventWriter;
use hoistway_trace::Stream;
use hoistway_trace::blkparse::{Reader, Writer};
use hoistway_trace::{Action, DeviceId, Event, Format, OpenOptions, Rwbs, Span};
use hoistway_trace::{ReadError, Source};

use crate::common::failure;

/// An event with a payload of its own.
type EventWithPayload = (Event, Vec<u8>);

const READ: Rwbs = Rwbs::READ;
const COMMAND: Rwbs = Rwbs::READ.with(Rwbs::PASS_THROUGH);

fn event(action: Action, time_ns: u64) -> Event {
    Event {
        sector: 800,
        bytes: 4096,
        pid: 7,
        sequence: 1,
        device: DeviceId::new(8, 1),
        op: READ,
        ..Event::new(time_ns, action)
    }
}

fn name(pid: u32, name: &str) -> EventWithPayload {
    (Event { pid, ..Event::new(0, Action::Process) }, name.as_bytes().to_vec())
}

fn batch_of(events: &[EventWithPayload]) -> Batch {
    let mut batch = Batch::new();
    events.iter().for_each(|(event, payload)| batch.push_with(*event, payload));
    batch
}

/// Returns the lines without the summary.
fn lines(events: &[EventWithPayload]) -> Vec<String> {
    let mut writer = Writer::new(Vec::new(), "a").quiet();
    writer.write(&batch_of(events)).unwrap();
    writer.finish().unwrap();
    String::from_utf8(writer.into_inner()).unwrap().lines().map(str::to_owned).collect()
}

fn summary(events: &[EventWithPayload]) -> String {
    let mut writer = Writer::new(Vec::new(), "a");
    writer.write(&batch_of(events)).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    text.find("CPU").map_or_else(String::new, |at| text[at..].to_owned())
}

fn read(text: &str) -> Result<Vec<EventWithPayload>, ReadError> {
    read_with_notices(text).map(|(events, _)| events)
}

fn read_with_notices(text: &str) -> Result<(Vec<EventWithPayload>, Vec<String>), ReadError> {
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    let mut reader = Reader::new(Stream { name: "a.txt".into(), read: Box::new(bytes) });
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    loop {
        reader.next(&mut batch)?;
        if batch.is_empty() {
            return Ok((events, reader.notices().iter().map(ToString::to_string).collect()));
        }
        let all = batch.events().iter();
        events.extend(all.map(|event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec())));
    }
}

/// Returns the line of an event, from the action on.
fn line_of(action: Action, op: Rwbs, bytes: u32, payload: &[u8]) -> String {
    let lines = lines(&[name(7, "proc"), (Event { op, bytes, ..event(action, 5) }, payload.to_vec())]);
    lines.first().map_or_else(String::new, |line| line["  8,1    0        1     0.000000000     7 ".len()..].to_owned())
}

#[test]
fn every_action_is_printed_as_by_blkparse() {
    let number = [0, 1, 2, 3, 4, 5, 6, 7];
    for (action, op, bytes, payload, expected) in [
        (Action::Queue, READ, 4096, &[][..], " Q   R 800 + 8 [proc]"),
        (Action::Queue, READ, 1000, &[], " Q   R 800 + 1 [proc]"),
        (Action::Queue, Rwbs::NONE, 0, &[], " Q   N [proc]"),
        (Action::Queue, COMMAND, 4096, &[1], " Q   R 4096 [proc]"),
        (Action::Issue, COMMAND, 4096, &[], " D   R 4096 [proc]"),
        (Action::Issue, COMMAND, 4096, &[1, 2, 3, 0, 0], " D   R 4096 (01 02 03 00 ..) [proc]"),
        (Action::Insert, COMMAND, 4096, &[1], " I   R 4096 (01) [proc]"),
        (Action::Get, COMMAND, 4096, &[1], " G   R 800 + 8 [proc]"),
        (Action::Complete, READ, 4096, &[], " C   R 800 + 8 [0]"),
        (Action::Complete, Rwbs::NONE, 0, &[], " C   N 800 [0]"),
        (Action::Complete, COMMAND, 4096, &[], " C   R [0]"),
        (Action::Complete, COMMAND, 4096, &[1, 0], " C   R (01 00 ..) [0]"),
        (Action::Requeue, READ, 100, &[], " R   R 800 [0]"),
        (Action::Requeue, COMMAND, 4096, &[1], " R   R [0]"),
        (Action::Plug, Rwbs::NONE, 0, &[], " P   N [proc]"),
        (Action::Unplug, Rwbs::NONE, 0, &number, " U   N [proc] 67438087"),
        (Action::UnplugTimer, Rwbs::NONE, 0, &[], "UT   N [proc] 0"),
        (Action::Split, READ, 4096, &number, " X   R 800 / 67438087 [proc]"),
        (Action::Bounce, READ, 4096, &[], " B   R 800 + 8 [proc]"),
        (Action::DriverData, READ, 4096, &[], ""),
    ] {
        assert_eq!(line_of(action, op, bytes, payload), expected, "{action:?} {op:?}");
    }
    for (op, expected) in [
        (Rwbs::WRITE.with(Rwbs::FLUSH), " Q  FW 800 + 8 [proc]"),
        (Rwbs::WRITE.with(Rwbs::FUA), " Q  WF 800 + 8 [proc]"),
        (READ.with(Rwbs::SYNC).with(Rwbs::META), " Q RSM 800 + 8 [proc]"),
        (Rwbs(Rwbs::WRITE.0 | 0xF0 | Rwbs::FLUSH.0), " Q FWFASM 800 + 8 [proc]"),
        (Rwbs::DISCARD, " Q   D 800 + 8 [proc]"),
    ] {
        assert_eq!(line_of(Action::Queue, op, 4096, &[]), expected, "{op:?}");
    }
}

#[test]
fn remaps_messages_and_large_numbers_are_printed_as_by_blkparse() {
    let mut remap = [0; 16];
    remap[..4].copy_from_slice(&DeviceId::new(259, 3).0.to_be_bytes());
    remap[4..8].copy_from_slice(&DeviceId::new(259, 524_288).0.to_be_bytes());
    remap[8..].copy_from_slice(&u64::MAX.to_be_bytes());
    let large = Event {
        time_ns: 5_000_000_000_000,
        device: DeviceId::new(254, 0xF_FFFF),
        pid: 4_000_000_000,
        sector: u64::MAX,
        bytes: u32::MAX,
        ..event(Action::Queue, 0)
    };
    let events = [
        (event(Action::Queue, 1000), vec![]),
        (Event { sequence: 55, ..event(Action::Message, 1100) }, b"hello".to_vec()),
        (event(Action::Message, 1100), vec![]),
        (Event { cgroup: 1, ..event(Action::Message, 1100) }, b"of a group".to_vec()),
        (event(Action::Message, 500), b"early".to_vec()),
        (event(Action::Remap, 2000), remap.to_vec()),
        (large, vec![]),
        (Event { sequence: u32::MAX, ..event(Action::Queue, 2000) }, vec![]),
    ];
    let expected = [
        "  8,1    0        1     0.000000000     7  Q   R 800 + 8 [(null)]",
        "  8,1    0        0     0.000000100     0  m   N hello",
        "  8,1    0        0 1266874889.709551116     0  m   N early",
        "259,524288  0        1     0.000001000     7  A   R 800 + 8 <- (259,3) 18446744073709551615",
        "254,1048575  0        1  4999.999999000 4000000000  Q   R 18446744073709551615 + 8388607 [(null)]",
        "  8,1    0       -1     0.000001000     7  Q   R 800 + 8 [(null)]",
    ];
    assert_eq!(lines(&events), expected);
    let mut writer = Writer::new(Vec::new(), "a").quiet().with_all_messages();
    writer.write(&batch_of(&events)).unwrap();
    assert!(String::from_utf8(writer.into_inner()).unwrap().contains(" m   N of a group\n"));
}

#[test]
fn the_summary_counts_as_blkparse_does() {
    let all = |action, ns: u64| (event(action, ns), vec![]);
    let mut events: Vec<_> = [(1, Action::Complete), (2, Action::Complete), (3, Action::Issue), (4, Action::Issue)]
        .into_iter()
        .chain([(5, Action::Requeue), (6, Action::Requeue), (7, Action::Requeue), (8, Action::Issue)])
        .map(|(ns, action)| all(action, ns))
        .collect();
    events.push((Event { op: COMMAND, ..event(Action::Issue, 9) }, vec![]));
    events.push((Event { op: COMMAND, ..event(Action::Queue, 9) }, vec![]));
    events.push((Event { op: Rwbs::WRITE.with(Rwbs::PASS_THROUGH), ..event(Action::Queue, 9) }, vec![]));
    events.push((Event { op: Rwbs::DISCARD, ..event(Action::Issue, 2_000_000) }, vec![]));
    let expected = "\
CPU0 (a):
 Reads Queued:           0,        4KiB\t Writes Queued:           0,        0KiB
 Read Dispatches:        3,        0KiB\t Write Dispatches:        1,        4KiB
 Reads Requeued:         3\t\t Writes Requeued:         0
 Reads Completed:        2,        8KiB\t Writes Completed:        0,        0KiB
 Read Merges:            0,        0KiB\t Write Merges:            0,        0KiB
 Read depth:             2        \t Write depth:             1
 PC Reads Queued:        1,        0KiB\t PC Writes Queued:        1,        4KiB
 PC Read Disp.:          1,        4KiB\t PC Write Disp.:          0,        0KiB
 PC Reads Req.:          0\t\t PC Writes Req.:          0
 PC Reads Compl.:        0\t\t PC Writes Compl.:        0
 IO unplugs:             0        \t Timer unplugs:           0

Throughput (R/W): 8000KiB/s / 0KiB/s
Events (a): 12 entries
Skips: 0 forward (0 -   0.0%)
";
    assert_eq!(summary(&events), expected);
}

#[test]
fn large_sums_are_printed_in_larger_units() {
    let mut events = Vec::new();
    for (count, bytes, expected) in [
        (1, 1_000_000 << 10, "       1,  1000000KiB"),
        (1, 1_000_001 << 10, "       1,     1000MiB"),
        (239, u32::MAX, "     239,     1002GiB"),
        (3, 700, "       3,        2KiB"),
    ] {
        events.clear();
        events.resize(count, (Event { bytes, ..event(Action::Queue, 1) }, vec![]));
        let summary = summary(&events);
        assert!(summary.contains(&format!(" Reads Queued:    {expected}\t")), "{summary}");
    }
    events.resize(1_000_001, (event(Action::Queue, 1), vec![]));
    assert!(summary(&events).contains(" Reads Queued:        1000K,"));
}

#[test]
fn written_text_is_read_back() {
    let mut remap = [0; 16];
    remap[4..8].copy_from_slice(&DeviceId::new(8, 1).0.to_be_bytes());
    let none = |action| Event { sector: 0, bytes: 0, op: Rwbs::NONE, ..event(action, 0) };
    let events = vec![
        (Event { device: DeviceId::new(8, 1), ..name(7, "we] + [x").0 }, b"we] + [x".to_vec()),
        (event(Action::Queue, 0), vec![]),
        (event(Action::Remap, 10), remap.to_vec()),
        (none(Action::Plug), vec![]),
        (none(Action::Unplug), vec![0, 0, 0, 0, 0, 0, 0, 3]),
        (Event { bytes: 0, ..event(Action::Split, 20) }, vec![0, 0, 0, 0, 0, 0, 3, 36]),
        (Event { pid: 0, sequence: 0, ..none(Action::Message) }, b"  bfq7S  said [this] ".to_vec()),
        (Event { sector: 0, op: COMMAND, ..event(Action::Issue, 5) }, vec![1, 2]),
        (Event { sector: 0, bytes: 0, op: COMMAND, error: 9, ..event(Action::Complete, 6) }, vec![1, 2]),
        (Event { bytes: 0, op: Rwbs::FLUSH.with(Rwbs::NONE), ..event(Action::Complete, 12_000_000_007) }, vec![]),
        (Event { sequence: u32::MAX - 1, error: 65_535, ..event(Action::Requeue, 7) }, vec![]),
    ];
    let mut writer = Writer::new(Vec::new(), "a");
    writer.write(&batch_of(&events)).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    assert_eq!(read_with_notices(&text).unwrap(), (events, vec![]), "{text}");
}

#[test]
fn a_name_is_emitted_once_and_again_when_it_changes() {
    let line = |pid: u32, name: &str| format!("  8,1    0        1     0.000000000 {pid:5}  Q   R 800 + 8 [{name}]\n");
    let text = [line(7, "a"), line(7, "a"), line(8, "(null)"), line(7, "b"), line(8, "c")].concat();
    let names: Vec<_> = read(&text).unwrap().into_iter().filter(|(event, _)| event.action == Action::Process).collect();
    let names: Vec<_> = names.iter().map(|(event, name)| (event.pid, std::str::from_utf8(name).unwrap())).collect();
    assert_eq!(names, [(7, "a"), (7, "b"), (8, "c")]);
}

#[test]
fn times_between_steps_are_not_part_of_a_command() {
    let text = "  8,1    0        1     0.000000000     7  C   R 800 + 8 (   12345) [0]\n";
    assert_eq!(read(text).unwrap(), [(event(Action::Complete, 0), vec![])]);
}

#[test]
fn invalid_lines_name_the_line_and_the_expected_value() {
    let good = "  8,1    0        1     0.000000000     7  Q   R 800 + 8 [a]\n";
    for (line, expected) in [
        (
            "8,x 0 1 0.0 7 Q R 800 + 8 [a]",
            "input:2: the device \"8,x\" is no pair of numbers such as 8,0 (below 4096 and 1048576)",
        ),
        (
            "8,1 0 1 0.0 7 ? R 800 + 8 [a]",
            "input:2: \"?\" is no action: expected one of Q M F G S R D C P U UT I X B A m",
        ),
        ("8,1 0 1 0.0 7 Q R 800 - 8 [a]", "input:2: found \"- 8 [a]\" instead of a name or an error in brackets"),
        ("8,1 0 1 0.0 7 Q R 800 +", "input:2: the line ends where the length should be"),
        ("8,1 0 1 0.0 7 Q R 800 + 9999999 [a]", "input:2: 9999999 sectors exceed the maximum of a request, 8388607"),
        ("8,1 0 1 0.0 7 C R 800 + 8 [x]", "input:2: the error \"x\" is no whole number"),
        ("8,1 0 1 0.0 7 A R 8 + 8 <- 8,0 5", "input:2: \"8,0\" is no device in parentheses"),
        ("8,1 0 1 0.0 7 D R 6 (0x) [a]", "input:2: \"0x\" is no byte of a command: expected two hexadecimal digits"),
        (
            "4096,1 0 1 0.0 7 P N [a]",
            "input:2: the device \"4096,1\" is no pair of numbers such as 8,0 (below 4096 and 1048576)",
        ),
    ] {
        let options = OpenOptions { format: Some(Format::Blkparse), is_strict: true, ..OpenOptions::default() };
        let error = failure(format!("{good}{line}\n{good}").into_bytes(), &options);
        assert_eq!(error, expected, "{line}");
    }
    let (events, notices) = read_with_notices(&format!("warning: x\n{good}CPU0 (a):\n\n  Reads Queued: 1\n")).unwrap();
    assert_eq!((events.len(), notices.len()), (2, 1));
    assert!(notices[0].starts_with("a.txt:1: lines without an event were skipped"), "{notices:?}");
    let cut = format!("{good}  8,1    0        1     0.0000");
    assert!(read_with_notices(&cut).unwrap().1[0].starts_with("a.txt:2: the last line is incomplete and was skipped"));
}
