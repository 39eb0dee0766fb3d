//! Traces of other recorders: samples made to the published descriptions of the formats, and logs
//! of fio 3.33. All figures were computed by hand from the lines of the samples.

use crate::common::{events, events_and_notices, failure, file, input, open_files};
use hoistway_trace::describe::describe;
use hoistway_trace::{Action, Event, Format, Input, OpenOptions, Rwbs, TimeUnit, open, open_detected};

/// Time in ns, action, device, sector, bytes and whether it is a read.
type Seen = (u64, Action, String, u64, u32, bool);

fn seen(event: &Event) -> Seen {
    let device = event.device.to_string();
    (event.time_ns, event.action, device, event.sector, event.bytes, event.op.has(Rwbs::READ))
}

fn detected(name: &str) -> Format {
    let opened = open_detected(vec![Input::Path(file(name))], &OpenOptions::default()).unwrap();
    opened.detections()[0].format
}

/// The events of requests of a sample.
fn sample(name: &str) -> Vec<Event> {
    let all = events(open_files(&[&format!("samples/{name}")]).as_mut());
    all.into_iter().map(|(event, _)| event).filter(|event| event.action != Action::Process).collect()
}

fn rows(name: &str) -> Vec<Seen> {
    sample(name).iter().map(seen).collect()
}

fn row(time_ns: u64, action: Action, device: &str, sector: u64, bytes: u32, is_read: bool) -> Seen {
    (time_ns, action, device.to_owned(), sector, bytes, is_read)
}

#[test]
fn each_sample_has_the_format_of_its_name() {
    for (name, format) in [
        ("umass.spc", Format::Spc),
        ("tencent.csv", Format::Tencent),
        ("systor17.csv.gz", Format::Systor),
        ("fiu.blkparse", Format::Fiu),
        ("cloudphysics.csv", Format::CloudPhysics),
        ("v1.vscsi", Format::Vscsi),
        ("v2.vscsi", Format::Vscsi),
        ("disksim.ascii", Format::Disksim),
        ("biosnoop-bcc.txt", Format::Biosnoop),
        ("biosnoop-queue.txt", Format::Biosnoop),
        ("biosnoop-bpftrace.txt", Format::Biosnoop),
        ("biosnoop-bpftrace-0.23.txt", Format::Biosnoop),
        ("fio-3.33_lat.1.log", Format::FioLog),
        ("fio-3.33-offset_lat.1.log", Format::FioLog),
    ] {
        assert_eq!(detected(&format!("samples/{name}")), format, "{name}");
    }
}

#[test]
fn spc_has_blocks_of_512_bytes_and_seconds() {
    use Action::Queue;
    let expected = [
        row(0, Queue, "0,0", 303_567, 3584, false),
        row(1_500_000, Queue, "0,1", 55_590, 3072, false),
        row(26_214_000, Queue, "0,0", 303_574, 3584, true),
        row(26_682_000, Queue, "0,2", 240_840, 3072, false),
        row(1_000_001_000, Queue, "0,1", 303_581, 3584, true),
    ];
    assert_eq!(rows("umass.spc"), expected);
}

#[test]
fn tencent_has_sectors_and_whole_seconds() {
    let rows = rows("tencent.csv");
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0], row(1_538_323_200_000_000_000, Action::Queue, "0,1063", 12_910_952, 65_536, true));
    assert_eq!(rows[4], row(1_538_323_205_000_000_000, Action::Queue, "0,1583", 33_550_320, 4096, false));
}

#[test]
fn systor_has_bytes_and_response_times_in_seconds() {
    let rows = rows("systor17.csv.gz");
    let start = 1_455_592_207_110_738_000;
    // 331936178176 / 512 = 648312848.
    assert_eq!(rows[0], row(start, Action::Queue, "0,1", 648_312_848, 4096, false));
    assert_eq!(rows[2], row(start + 204_000, Action::Complete, "0,1", 648_312_848, 4096, false));
    let of_third: Vec<Action> = rows.iter().filter(|row| row.3 == 16).map(|row| row.1).collect();
    assert_eq!((rows.len(), of_third), (7, vec![Action::Queue]), "the third has no response time");
}

#[test]
fn fiu_has_processes_with_blanks_and_blocks_of_512_bytes() {
    let all = events(open_files(&["samples/fiu.blkparse"]).as_mut());
    let names: Vec<(u32, &[u8])> = all
        .iter()
        .filter(|(event, _)| event.action == Action::Process)
        .map(|(event, name)| (event.pid, name.as_slice()))
        .collect();
    assert_eq!(names, [(4892, &b"syslogd"[..]), (2522, b"kjournald"), (5512, b"my backup")]);
    let requests: Vec<&Event> = all.iter().map(|(event, _)| event).filter(|event| !event.action.is_note()).collect();
    assert_eq!(seen(requests[0]), row(0, Action::Queue, "6,0", 904_265_560, 4096, false));
    assert_eq!(seen(requests[2]), row(2_000_000, Action::Queue, "6,0", 8, 8192, true));
    assert_eq!(requests.iter().map(|event| event.pid).collect::<Vec<_>>(), [4892, 2522, 5512, 5512]);
}

#[test]
fn tables_and_records_of_cloudphysics_have_us_bytes_and_blocks_of_512_bytes() {
    use Action::{Complete, Queue};
    let expected = [
        row(1_000_000_000, Queue, "0,0", 2048, 4096, true),
        row(1_000_250_000, Queue, "0,0", 1_048_576, 65_536, false),
        row(1_003_000_000, Queue, "0,0", 2056, 8192, true),
    ];
    assert_eq!(rows("cloudphysics.csv"), expected);
    assert_eq!(rows("v1.vscsi"), expected, "the third of the four records is an INQUIRY");
    let expected = [
        row(1_000_000_000, Queue, "0,0", 2048, 4096, true),
        row(1_000_250_000, Queue, "0,0", 1_048_576, 65_536, false),
        row(1_000_700_000, Complete, "0,0", 2048, 4096, true),
        row(1_001_450_000, Complete, "0,0", 1_048_576, 65_536, false),
        row(1_003_000_000, Queue, "0,0", 2056, 8192, false),
        row(1_003_090_000, Complete, "0,0", 2056, 8192, false),
    ];
    assert_eq!(rows("v2.vscsi"), expected);
}

#[test]
fn damaged_records_of_vscsi_are_skipped_with_their_position() {
    let mut bytes = std::fs::read(file("samples/v2.vscsi")).unwrap();
    bytes[43] = 9;
    bytes.extend_from_slice(&[1, 2, 3]);
    let forced = OpenOptions { format: Some(Format::Vscsi), ..OpenOptions::default() };
    let what = failure(bytes.clone(), &forced);
    assert!(what.contains("1 or 2 in the upper byte of the version"), "{what}");
    // Behind the records that detection examines.
    let whole = std::fs::read(file("samples/v2.vscsi")).unwrap();
    let (count, notices) = events_and_notices([whole.repeat(30), bytes].concat(), &OpenOptions::default());
    assert_eq!(count, Ok(30 * 6 + 4));
    let of = |what: &str| notices.iter().find(|notice| notice.contains(what)).cloned().unwrap_or_default();
    assert!(of("damaged records were skipped").starts_with("input at byte 3640: "), "{notices:?}");
    assert!(of("the last record is incomplete: 3 of 40 bytes").starts_with("input at byte 3720: "), "{notices:?}");
}

#[test]
fn disksim_has_ms_and_bit_0_for_reads() {
    use Action::Queue;
    let expected = [
        row(0, Queue, "0,0", 303_567, 4096, true),
        row(1_500_000, Queue, "0,1", 55_590, 3072, false),
        row(26_214_000, Queue, "0,0", 303_574, 4096, true),
        row(26_682_000, Queue, "0,0", 240_840, 8192, false),
    ];
    assert_eq!(rows("disksim.ascii"), expected);
}

#[test]
fn biosnoop_of_bcc_has_the_issue_and_the_completion() {
    use Action::{Complete, Issue, Queue};
    // The first request took 0.74 ms and completed at 0.004 ms: times are moved by 0.736 ms.
    let expected = [
        row(0, Issue, "0,0", 4096, 4096, false),
        row(740_000, Complete, "0,0", 4096, 4096, false),
        row(5_736_000, Issue, "0,0", 8192, 65_536, true),
        row(10_736_000, Complete, "0,0", 8192, 65_536, true),
        row(11_486_000, Issue, "0,1", 0, 512, true),
        row(11_736_000, Complete, "0,1", 0, 512, true),
    ];
    assert_eq!(rows("biosnoop-bcc.txt"), expected);
    let events = sample("biosnoop-bcc.txt");
    assert_eq!(events.iter().map(|event| event.pid).collect::<Vec<_>>(), [1950, 1950, 1956, 1956, 1950, 1950]);
    let queued = rows("biosnoop-queue.txt");
    let first: Vec<(u64, Action)> = queued.iter().filter(|row| row.3 == 2048).map(|row| (row.0, row.1)).collect();
    assert_eq!(first, [(0, Queue), (10_000, Issue), (560_000, Complete)]);
}

#[test]
fn requests_of_bpftrace_keep_their_latencies_without_positions() {
    let mut source = open_files(&["samples/biosnoop-bpftrace.txt"]);
    let description = describe(source.as_mut()).unwrap();
    let d2c = &description.all.phases.d2c_ns;
    // 10, 16 and 1 ms; the last two overlap.
    assert_eq!((d2c.count, d2c.min, d2c.max), (3, 1_000_000, 16_000_000));
    assert!((d2c.mean - 9e6).abs() < 1.0, "{}", d2c.mean);
    let notices: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
    assert!(notices.iter().any(|notice| notice.contains("no directions and sizes")), "{notices:?}");
}

#[test]
fn a_recording_of_bpftrace_has_device_numbers_and_two_lines_of_titles() {
    let rows = rows("biosnoop-bpftrace-0.23.txt");
    let completions = rows.iter().filter(|row| row.1 == Action::Complete).count();
    // Counted with awk: 57 requests, 9 of them of fio; latencies of 0 to 4 ms, 49 ms together.
    assert_eq!((rows.len(), completions), (2 * 57, 57));
    assert!(rows.iter().all(|row| row.2 == "254,0"), "{rows:?}");
    let mut source = open_files(&["samples/biosnoop-bpftrace-0.23.txt"]);
    let names: Vec<Vec<u8>> = events(source.as_mut())
        .into_iter()
        .filter(|(event, _)| event.action == Action::Process)
        .map(|(_, name)| name)
        .collect();
    assert_eq!(names, [&b"ThreadPoolForeg"[..], b"fio", b"kworker/u8:0"]);
    let description = describe(open_files(&["samples/biosnoop-bpftrace-0.23.txt"]).as_mut()).unwrap();
    let d2c = &description.all.phases.d2c_ns;
    assert_eq!((d2c.count, d2c.min, d2c.max), (57, 0, 4_000_000));
    assert!((d2c.mean - 49e6 / 57.0).abs() < 1.0, "{}", d2c.mean);
}

#[test]
fn latency_logs_of_fio_have_requests_with_and_without_offsets() {
    for name in ["fio-3.33_lat.1.log", "fio-3.33-offset_lat.1.log"] {
        let events = sample(name);
        let of =
            |action: Action, op: Rwbs| events.iter().filter(|event| event.action == action && event.op.has(op)).count();
        // Counted with awk: 20 lines, 7 reads of 4 KiB and 13 writes of 8 KiB.
        assert_eq!([of(Action::Queue, Rwbs::READ), of(Action::Queue, Rwbs::WRITE)], [7, 13], "{name}");
        assert_eq!(of(Action::Complete, Rwbs(0)), 20, "{name}");
        let sum: u32 = events.iter().filter(|event| event.action == Action::Queue).map(|event| event.bytes).sum();
        assert_eq!(sum, 7 * 4096 + 13 * 8192, "{name}");
    }
    let events = sample("fio-3.33-offset_lat.1.log");
    // `0, 165356, 1, 8192, 3792896, 0`: it began 165356 ns before 0, by which all times are moved.
    let first: Vec<Seen> = events.iter().filter(|event| event.sector == 7408).map(seen).collect();
    let expected =
        [row(0, Action::Queue, "0,0", 7408, 8192, false), row(165_356, Action::Complete, "0,0", 7408, 8192, false)];
    assert_eq!(first, expected);
}

#[test]
fn logs_of_fio_without_requests_are_refused() {
    let named = |name: &str, text: &str| {
        let opened = open(vec![input(name, text.as_bytes().to_vec())], &OpenOptions::default());
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let what = named("job_bw.1.log", "500, 81920, 0, 0, 0\n");
    assert!(what.starts_with("job_bw.1.log: bw logs of fio have no latencies of requests"), "{what}");
    let what = failure(b"500, 81920, 0, 0, 0\n".to_vec(), &OpenOptions::default());
    assert!(what.starts_with("input:1: a size of 0: the line is the mean of an interval"), "{what}");
}

#[test]
fn units_and_sectors_can_be_specified() {
    let text = b"1.5 0 10 4 1\n".to_vec();
    let options = OpenOptions { time_unit: Some(TimeUnit::Second), sector_bytes: Some(4096), ..OpenOptions::default() };
    let mut source = open(vec![input("input", text)], &options).unwrap();
    let all = events(source.as_mut());
    assert_eq!(seen(&all[0].0), row(1_500_000_000, Action::Queue, "0,0", 80, 16_384, true));
}

#[test]
fn invalid_lines_name_the_value_and_the_valid_ones() {
    for (format, right, wrong, message) in [
        (Format::Spc, "0,8,512,R,0.5", "0,8,512,X,0.6", "\"X\" stands where R or W should be"),
        (Format::Spc, "0,8,512,R,0.5", "0,8,512,R", "the line ends where the time should be"),
        (Format::Tencent, "1538323200,8,8,0,1", "1538323200,8,8,2,1", "\"2\" stands where 0 (a read) or 1 (a write)"),
        (Format::Tencent, "1538323200,8,8,0,1", "1538323200,-8,8,1,1", "the offset \"-8\" is no whole number"),
        (Format::Systor, "1.5,0.1,R,0,0,512", "1.5,late,R,0,0,512", "the response time \"late\" is no time"),
        (Format::Systor, "1.5,0.1,R,0,0,512", "1.5,0.1,T,0,0,512", "\"T\" stands where R or W should be"),
        (Format::Fiu, "0 1 a 8 8 W 6 0 x", "0 1 a 8 8 T 6 0 x", "\"0 1 a 8 8 T 6 0 x\" has no R or W between"),
        (Format::Fiu, "0 1 a 8 8 W 6 0 x", "0 1 a 8 8 W 9999 0 x", "the device 9999 0 does not exist"),
        (Format::Disksim, "0.5 0 8 8 1", "0.6 0 8 8 read", "the flags \"read\" are no hexadecimal number"),
        (Format::Disksim, "0.5 0 8 8 1", "0.6 0 8.5 8 1", "the block \"8.5\" is no whole number"),
        (Format::CloudPhysics, "ts,lbn,len,cmd", "1,2,3,read-it", "\"read-it\" is no SCSI command: 0x28 or 40"),
        (Format::CloudPhysics, "ts,lbn,len,cmd", "1,2,3", "the line ends where a column of the titles should be"),
        (Format::FioLog, "0, 5, 0, 512, 0", "0, 5, 3, 512, 0", "\"3\" stands where 0 (a read), 1 (a write) or 2"),
        (Format::Biosnoop, "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)", "1.0 fio 1 sda", "the line has 4 columns"),
        (
            Format::Biosnoop,
            "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)",
            "1.0 fio 1 sda W x 512 0.5",
            "the sector \"x\" is no whole number",
        ),
    ] {
        let options = OpenOptions { format: Some(format), is_strict: true, ..OpenOptions::default() };
        let failed = failure(format!("{right}\n{wrong}\n{right}\n").into_bytes(), &options);
        assert!(failed.starts_with(&format!("input:2: {message}")), "{failed}");
    }
}

#[test]
fn missing_titles_name_those_that_would_be_right() {
    let forced = |format| OpenOptions { format: Some(format), ..OpenOptions::default() };
    let what = failure(b"1.0 fio 1 sda\n".to_vec(), &forced(Format::Biosnoop));
    assert!(what.contains("TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)"), "{what}");
    let what = failure(b"time,lbn,cmd\n1,2,3\n".to_vec(), &forced(Format::CloudPhysics));
    assert_eq!(what, "input: the titles \"time,lbn,cmd\" have no column of len, length, size, obj_size, bytes");
}
