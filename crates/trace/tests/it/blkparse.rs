//! Reads written files with blkparse and btt.

use std::path::Path;
use std::process::Command;

use hoistway_trace::blktrace::Writer;
use hoistway_trace::{Action, DeviceId, Event, Rwbs};

/// Returns the output of a program of blktrace, or None with a message if it is not installed.
fn printed(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    match Command::new(program).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            eprintln!("SKIPPED: {program} does not run here ({error}); Debian has it in the package blktrace");
            None
        }
    }
}

/// A read of 4 KiB that takes 1 ms in the queue and 2 ms in the device, and a failing write with a
/// back merge.
fn trace() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).counting();
    let device = DeviceId::new(43, 1);
    let ms = |ms: u64| 5_000_000_000 + ms * 1_000_000;
    let plain = |at: u64, action| Event { device, op: Rwbs::NONE, ..Event::new(ms(at), action) };
    let read = |at, action| Event { pid: 7, op: Rwbs::READ, sector: 800, bytes: 4096, ..plain(at, action) };
    let write = |at, action| Event { pid: 9, op: Rwbs::WRITE, sector: 16, bytes: 4096, ..plain(at, action) };
    let merged = |at, action| Event { sector: 24, ..write(at, action) };
    let both = |at, action| Event { bytes: 8192, ..write(at, action) };
    writer.start(device, ms(0), 1_700_000_000_000_000_000).unwrap();
    let events: [(Event, &[u8]); 18] = [
        (Event { pid: 7, ..plain(0, Action::Process) }, b"database"),
        (Event { pid: 9, ..plain(0, Action::Process) }, b"backup"),
        (Event { pid: 7, ..plain(0, Action::Plug) }, &[]),
        (read(0, Action::Queue), &[]),
        (read(0, Action::Get), &[]),
        (read(0, Action::Insert), &[]),
        (Event { pid: 7, ..plain(0, Action::UnplugTimer) }, &[0, 0, 0, 0, 0, 0, 0, 1]),
        (Event { pid: 7, ..plain(1, Action::Message) }, b"slice of 7 begins"),
        (read(1, Action::Issue), &[]),
        (write(1, Action::Queue), &[]),
        (write(1, Action::Get), &[]),
        (write(1, Action::Insert), &[]),
        (merged(2, Action::Queue), &[]),
        (merged(2, Action::BackMerge), &[]),
        (read(3, Action::Complete), &[]),
        (both(3, Action::Issue), &[]),
        (plain(4, Action::Plug), &[]),
        (Event { error: 5, ..both(5, Action::Complete) }, &[]),
    ];
    events.iter().for_each(|(event, payload)| writer.event(event, payload).unwrap());
    writer.into_inner()
}

#[test]
fn blkparse_reads_every_record_and_note() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("disk.blktrace.0"), trace()).unwrap();
    let Some(text) = printed("blkparse", &["-i", "disk"], folder.path()) else { return };
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .take_while(|line| !line.starts_with("CPU"))
        .collect();
    let expected = [
        "43,1 0 1 0.000000000 7 P N [database]",
        "43,1 0 2 0.000000000 7 Q R 800 + 8 [database]",
        "43,1 0 3 0.000000000 7 G R 800 + 8 [database]",
        "43,1 0 4 0.000000000 7 I R 800 + 8 [database]",
        "43,1 0 5 0.000000000 7 UT N [database] 1",
        "43,1 0 0 0.001000000 0 m N slice of 7 begins",
        "43,1 0 6 0.001000000 7 D R 800 + 8 [database]",
        "43,1 0 7 0.001000000 9 Q W 16 + 8 [backup]",
    ];
    assert!(lines.len() > 12, "{text}");
    for line in expected {
        assert!(lines.iter().any(|printed| printed == line), "{line}\n{text}");
    }
    assert!(lines.iter().any(|line| line.ends_with("9 M W 24 + 8 [backup]")), "{text}");
    assert!(lines.iter().any(|line| line.ends_with("C R 800 + 8 [0]")), "{text}");
    assert!(lines.iter().any(|line| line.ends_with("C W 16 + 16 [5]")), "{text}");
    assert!(text.contains("Reads Queued:           1,        4KiB"), "{text}");
}

#[test]
fn btt_reports_the_phases_of_a_request() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("disk.blktrace.0"), trace()).unwrap();
    if printed("blkparse", &["-q", "-i", "disk", "-O", "-d", "disk.bin"], folder.path()).is_none() {
        return;
    }
    let Some(text) = printed("btt", &["-i", "disk.bin"], folder.path()) else { return };
    // D2C is 2 ms for each of three bios; Q2C is 3 ms, 4 ms and 3 ms.
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("D2C")[1..5], ["0.002000000", "0.002000000", "0.002000000", "3"]);
    assert_eq!(row("Q2C")[1..5], ["0.003000000", "0.003333333", "0.004000000", "3"]);
}
