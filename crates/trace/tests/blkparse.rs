//! What is written here, read by blkparse and btt.

use std::path::Path;
use std::process::Command;

use hoistway_trace::blktrace::{Action, Op, Request, Writer, device_number};

/// What a program of blktrace prints; `None`: it is not installed, which is said.
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

/// A read of 4 KiB that takes 1 ms in the queue and 2 ms in the device; a write that another is merged to, and that fails.
fn trace() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), device_number(43, 1), 0);
    let read = Request { pid: 7, op: Op::Read, sector: 800, sectors: 8 };
    let write = Request { pid: 9, op: Op::Write, sector: 16, sectors: 8 };
    let merged = Request { sector: 24, ..write };
    let both = Request { sectors: 16, ..write };
    let ms = |ms: u64| 5_000_000_000 + ms * 1_000_000;
    let mut write_all = || -> std::io::Result<()> {
        writer.start(ms(0), 1_700_000_000_000_000_000)?;
        writer.process(ms(0), 7, "database")?;
        writer.process(ms(0), 9, "backup")?;
        writer.plug(ms(0), 7)?;
        writer.request(ms(0), Action::Queue, read, 0)?;
        writer.request(ms(0), Action::Get, read, 0)?;
        writer.request(ms(0), Action::Insert, read, 0)?;
        writer.unplug(ms(0), 7, 1, true)?;
        writer.message(ms(1), 7, "slice of 7 begins")?;
        writer.request(ms(1), Action::Issue, read, 0)?;
        writer.request(ms(1), Action::Queue, write, 0)?;
        writer.request(ms(1), Action::Get, write, 0)?;
        writer.request(ms(1), Action::Insert, write, 0)?;
        writer.request(ms(2), Action::Queue, merged, 0)?;
        writer.request(ms(2), Action::BackMerge, merged, 0)?;
        writer.request(ms(3), Action::Complete, read, 0)?;
        writer.request(ms(3), Action::Issue, both, 0)?;
        writer.request(ms(5), Action::Complete, both, 5)
    };
    write_all().unwrap();
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
        assert!(lines.iter().any(|told| told == line), "{line}\n{text}");
    }
    assert!(lines.iter().any(|line| line.ends_with("9 M W 24 + 8 [backup]")), "{text}");
    assert!(lines.iter().any(|line| line.ends_with("C R 800 + 8 [0]")), "{text}");
    assert!(lines.iter().any(|line| line.ends_with("C W 16 + 16 [5]")), "{text}");
    assert!(text.contains("Reads Queued:           1,        4KiB"), "{text}");
}

#[test]
fn btt_finds_the_phases_of_a_request() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("disk.blktrace.0"), trace()).unwrap();
    if printed("blkparse", &["-q", "-i", "disk", "-O", "-d", "disk.bin"], folder.path()).is_none() {
        return;
    }
    let Some(text) = printed("btt", &["-i", "disk.bin"], folder.path()) else { return };
    // D2C: 2 ms for each of three bios; Q2C: 3 ms, 4 ms and 3 ms.
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("D2C")[1..5], ["0.002000000", "0.002000000", "0.002000000", "3"]);
    assert_eq!(row("Q2C")[1..5], ["0.003000000", "0.003333333", "0.004000000", "3"]);
}
