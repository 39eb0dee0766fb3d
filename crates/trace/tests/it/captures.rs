//! The captures in testdata/, and what blkparse makes of them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hoistway_trace::blktrace::Files;
use hoistway_trace::{Action, Batch, Event, Input, OpenOptions, Sink, Source, Span, blkparse, blktrace, open};

/// Captures with a file a CPU: the name, and how many there are.
const CAPTURES: [(&str, usize); 2] = [("vda-bfq", 2), ("vda-mq-deadline", 2)];
/// Captures in one file, whose records are of several CPUs.
const MIXED: [&str; 2] = ["android-emmc", "ftrace-bfq"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/blktrace").join(name)
}

fn opened(names: &[String]) -> Box<dyn Source + Send> {
    let inputs = names.iter().map(|name| Input::Path(file(&format!("{name}.xz")))).collect();
    open(inputs, &OpenOptions::default()).unwrap()
}

fn capture(name: &str, files: usize) -> Box<dyn Source + Send> {
    opened(&(0..files).map(|cpu| format!("{name}.blktrace.{cpu}")).collect::<Vec<_>>())
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(file(&format!("{name}.xz"))).unwrap();
    liblzma::read::XzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn write_to(source: &mut dyn Source, sink: &mut dyn Sink) {
    let mut batch = Batch::new();
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return sink.finish().unwrap();
        }
        sink.write(&batch).unwrap();
    }
}

fn text(source: &mut dyn Source, name: &str) -> Vec<u8> {
    let mut writer = blkparse::Writer::new(Vec::new(), name);
    write_to(source, &mut writer);
    writer.into_inner()
}

/// All events with their payloads, told apart from where the payloads lay.
fn events(source: &mut dyn Source) -> Vec<(Event, Vec<u8>)> {
    let (mut events, mut batch) = (Vec::new(), Batch::new());
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return events;
        }
        let all = batch.events().iter();
        events.extend(all.map(|event| (Event { payload: Span::default(), ..*event }, batch.payload(event).to_vec())));
    }
}

/// Fails at the first line that differs.
fn assert_same_text(name: &str, ours: &[u8], theirs: &[u8]) {
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    for (number, (ours, theirs)) in lines(ours).iter().zip(&lines(theirs)).enumerate() {
        assert_eq!(ours, theirs, "{name}:{}", number + 1);
    }
    assert!(ours == theirs, "{name}: {} bytes, not {}", ours.len(), theirs.len());
}

#[test]
fn the_text_of_captures_is_blkparses_to_the_byte() {
    for (name, files) in CAPTURES {
        assert_same_text(name, &text(&mut *capture(name, files), name), &unpacked(&format!("{name}.txt")));
    }
}

/// What the installed blkparse prints of files in a folder; `None`: it is not installed, which is said.
fn printed_by_blkparse(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let arguments = ["-i", name, "-o", "text"];
    let Ok(output) = Command::new("blkparse").args(arguments).current_dir(folder).output() else {
        eprintln!("SKIPPED: blkparse does not run here; Debian has it in the package blktrace");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::read(folder.join("text")).unwrap())
}

#[test]
fn the_text_of_a_file_with_several_cpus_is_blkparses_of_its_parts() {
    for name in MIXED {
        let folder = tempfile::tempdir().unwrap();
        // blkparse takes the records of one CPU from a file; without a name for a process it prints that it is null, as is done here.
        let mut parts = Files::new(&folder.path().join(name), blktrace::Version::V7, false);
        write_to(&mut *capture(name, 1), &mut parts);
        assert!(parts.paths().len() > 1);
        let Some(theirs) = printed_by_blkparse(folder.path(), name) else { return };
        assert_same_text(name, &text(&mut *capture(name, 1), name), &theirs);
    }
}

#[test]
fn what_is_written_in_either_version_is_read_again() {
    for (name, files) in CAPTURES.into_iter().chain(MIXED.map(|name| (name, 1))) {
        let expected = events(&mut *capture(name, files));
        assert!(expected.len() > 5000, "{name}: {} events", expected.len());
        for version in [blktrace::Version::V7, blktrace::Version::V8] {
            let mut writer = blktrace::Writer::new(Vec::new()).version(version);
            write_to(&mut *capture(name, files), &mut writer);
            let read = std::io::Cursor::new(writer.into_inner());
            let stream = hoistway_trace::Stream { name: name.into(), read: Box::new(read) };
            let again = events(&mut blktrace::Reader::new(vec![stream]));
            assert!(again == expected, "{name} {version:?}");
        }
    }
}

#[test]
fn blkparses_text_tells_the_events_of_the_binary_files() {
    for (name, files) in CAPTURES {
        let mut binary = events(&mut *capture(name, files));
        // The text has no messages of control groups, no time of the day, and names where they are first needed; it counts from the first event.
        binary.retain(|(event, _)| !event.action.is_note());
        let begin_ns = binary[0].0.time_ns;
        for (event, _) in &mut binary {
            event.time_ns -= begin_ns;
        }
        let mut told = events(&mut *opened(&[format!("{name}.txt")]));
        let names = told.iter().filter(|(event, _)| event.action == Action::Process).count();
        assert!(names > 3, "{name}: {names}");
        told.retain(|(event, _)| !event.action.is_note());
        assert_eq!(told.len(), binary.len(), "{name}");
        for (told, binary) in told.iter().zip(&binary) {
            assert_eq!(told, binary, "{name}");
        }
    }
}
