//! Lines of log files, as fio 3.33 prints them.

use hoistway_fio::{
    Direction,
    logs::{LogEntry, LogFormat, LogKind},
};

const ENTRY: LogEntry = LogEntry {
    time_ms: 500,
    value: 7727,
    direction: Direction::Write,
    bs: 4096,
    offset: 28_672,
    prioclass: 2,
    prio: 3,
};

#[test]
fn a_line_has_five_columns_and_a_sixth_for_the_offset() {
    assert_eq!(LogFormat::default().line(&ENTRY), "500, 7727, 1, 4096, 0");
    assert_eq!(LogFormat { offset: true, prio: false }.line(&ENTRY), "500, 7727, 1, 4096, 28672, 0");
}

#[test]
fn the_priority_is_a_mark_for_real_time_or_a_hexadecimal_number() {
    let real_time = LogEntry { prioclass: 1, direction: Direction::Read, ..ENTRY };
    assert_eq!(LogFormat::default().line(&real_time), "500, 7727, 0, 4096, 1");
    // Class 2 in the highest three of 16 bits is 0x4000.
    assert_eq!(LogFormat { offset: false, prio: true }.line(&ENTRY), "500, 7727, 1, 4096, 0x4003");
}

#[test]
fn a_job_selects_the_columns_of_its_log() {
    let job = crate::common::job("log_offset=1\nlog_prio=1");
    assert_eq!(LogFormat::of(&job), LogFormat { offset: true, prio: true });
}

#[test]
fn a_log_is_its_lines() {
    let mut out = Vec::new();
    LogFormat::default().write(&mut out, &[ENTRY, LogEntry { time_ms: 1000, ..ENTRY }]).expect("memory takes all");
    assert_eq!(String::from_utf8(out).expect("text"), "500, 7727, 1, 4096, 0\n1000, 7727, 1, 4096, 0\n");
}

#[test]
fn log_files_have_the_names_that_fio_gives_them() {
    assert_eq!(LogKind::Bandwidth.file_name("files", 8), "files_bw.8.log");
    let suffixes = [LogKind::SubmissionLatency, LogKind::CompletionLatency, LogKind::TotalLatency, LogKind::Iops];
    assert_eq!(suffixes.map(LogKind::suffix), ["slat", "clat", "lat", "iops"]);
}
