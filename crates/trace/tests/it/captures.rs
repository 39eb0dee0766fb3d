//! Compares the captures in testdata/ with the output of blkparse.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hoistway_trace::blktrace::CpuFiles;
use hoistway_trace::{Action, Batch, Event, EventWriter, Input, OpenOptions, Source, Span, blkparse, blktrace, open};

/// Captures with one file for each CPU: name and number of files.
const CAPTURES: [(&str, usize); 2] = [("vda-bfq", 2), ("vda-mq-deadline", 2)];
/// Captures in one file with the records of several CPUs.
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

fn write_to(source: &mut dyn Source, sink: &mut dyn EventWriter) {
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

/// Returns all events with their payloads, independent of the positions of the payloads.
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
fn the_text_of_captures_equals_that_of_blkparse() {
    for (name, files) in CAPTURES {
        assert_same_text(name, &text(&mut *capture(name, files), name), &unpacked(&format!("{name}.txt")));
    }
}

/// Returns the output of the installed blkparse for files in a folder, or None with a message.
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
fn the_text_of_a_file_with_several_cpus_equals_that_of_blkparse() {
    for name in MIXED {
        let folder = tempfile::tempdir().unwrap();
        // blkparse accepts the records of one CPU from a file. Both print (null) for unknown
        // process names.
        let mut parts = CpuFiles::new(&folder.path().join(name), blktrace::Version::V7, false);
        write_to(&mut *capture(name, 1), &mut parts);
        assert!(parts.paths().len() > 1);
        let Some(theirs) = printed_by_blkparse(folder.path(), name) else { return };
        assert_same_text(name, &text(&mut *capture(name, 1), name), &theirs);
    }
}

#[test]
fn written_captures_of_both_versions_are_read_back() {
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
fn blkparses_text_has_the_events_of_the_binary_files() {
    for (name, files) in CAPTURES {
        let mut binary = events(&mut *capture(name, files));
        // The text lacks messages of control groups and wall-clock times, has names at their first
        // use, and counts from the first event.
        binary.retain(|(event, _)| !event.action.is_note());
        let begin_ns = binary[0].0.time_ns;
        for (event, _) in &mut binary {
            event.time_ns -= begin_ns;
        }
        let mut read = events(&mut *opened(&[format!("{name}.txt")]));
        let names = read.iter().filter(|(event, _)| event.action == Action::Process).count();
        assert!(names > 3, "{name}: {names}");
        read.retain(|(event, _)| !event.action.is_note());
        assert_eq!(read.len(), binary.len(), "{name}");
        for (read, binary) in read.iter().zip(&binary) {
            assert_eq!(read, binary, "{name}");
        }
    }
}
