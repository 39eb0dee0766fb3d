//! Reads samples of all formats, writes them in other formats, and reads them back.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::process::Command;

use crate::common::{bytes, events, failure, open_bytes, open_files, write_to};
use hoistway_trace::iolog::LogVersion;
use hoistway_trace::{Action, Event, Format, OpenOptions, Rwbs, TimeUnit, csv, iolog, perfetto};

/// Number of events by the letters of the action.
fn counts(events: &[(Event, Vec<u8>)]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    events.iter().for_each(|(event, _)| *counts.entry(event.action.letters()).or_default() += 1);
    counts
}

#[test]
fn the_tracers_classic_text_is_read_completely() {
    let events = events(open_files(&["ftrace/bfq-classic.txt.xz"]).as_mut());
    // Counted with awk; N counts the names of six processes.
    let expected = [
        ("C", 204),
        ("D", 204),
        ("G", 205),
        ("I", 205),
        ("M", 3),
        ("N", 6),
        ("P", 205),
        ("Q", 208),
        ("U", 205),
        ("m", 4561),
    ];
    assert_eq!(counts(&events), BTreeMap::from(expected));
    assert!(events.windows(2).all(|pair| pair[0].0.time_ns <= pair[1].0.time_ns));
    let note = events.iter().find(|(event, _)| event.action == Action::Message).unwrap();
    assert_eq!(
        (note.0.time_ns, note.1.as_slice()),
        (1_781_997_797_584, &b"bfq [bfq_limit_depth] wr_busy 0 sync 1 depth 192"[..])
    );
}

#[test]
fn the_tracers_default_text_is_read_completely() {
    let events = events(open_files(&["ftrace/bfq-default.txt.xz"]).as_mut());
    let mut seen = counts(&events);
    seen.remove("N");
    // Counted with awk.
    let expected = [("C", 65), ("D", 63), ("G", 63), ("I", 61), ("P", 61), ("Q", 63), ("U", 60), ("UT", 1), ("m", 740)];
    assert_eq!(seen, BTreeMap::from(expected));
    let discard = events.iter().find(|(event, _)| event.op.has(Rwbs::DISCARD)).unwrap().0;
    assert_eq!((discard.sector, discard.bytes, discard.time_ns), (2048, 1 << 20, 48_820_070_798_000));
    assert!(events.iter().any(|(event, _)| event.action == Action::Message && event.cgroup == 1));
}

#[test]
fn samples_of_requests_have_the_sizes_of_their_lines() {
    // Counted with awk: records, reads, bytes.
    for (file, records, reads, bytes) in [
        ("blkreplay/windows-shared-server.load.gz", 1371, 0, 5_398_016),
        ("mqsim/tpcc-small-1000.trace.xz", 1000, 584, 8_602_112),
        ("iolog/fio-3.33-randrw.log", 6, 5, 24_576),
    ] {
        let events = events(open_files(&[file]).as_mut());
        assert!(events.iter().all(|(event, _)| event.action == Action::Queue));
        let read = events.iter().filter(|(event, _)| event.op.has(Rwbs::READ)).count();
        let sum: u64 = events.iter().map(|(event, _)| u64::from(event.bytes)).sum();
        assert_eq!((events.len(), read, sum), (records, reads, bytes), "{file}");
    }
}

#[test]
fn a_capture_survives_conversion_to_csv() {
    let files = ["blktrace/vda-bfq.blktrace.0.xz", "blktrace/vda-bfq.blktrace.1.xz"];
    let mut writer = csv::Writer::new(Vec::new());
    write_to(open_files(&files).as_mut(), &mut writer);
    let again = events(open_bytes(writer.into_inner()).as_mut());
    let first = events(open_files(&files).as_mut());
    assert_eq!(again.len(), first.len());
    assert!(again == first, "first difference: {:?}", again.iter().zip(&first).find(|(a, b)| a != b));
}

#[test]
fn a_capture_as_iolog_keeps_its_submissions_to_the_microsecond() {
    let files = ["blktrace/vda-mq-deadline.blktrace.0.xz", "blktrace/vda-mq-deadline.blktrace.1.xz"];
    let submitted: Vec<Event> = events(open_files(&files).as_mut()).into_iter().map(|(event, _)| event).collect();
    let submitted: Vec<Event> = submitted.into_iter().filter(|event| event.action == Action::Queue).collect();
    let start_us = submitted[0].time_ns / 1000;
    for version in [LogVersion::Two, LogVersion::Three] {
        let mut writer = iolog::Writer::new(Vec::new(), version);
        write_to(open_files(&files).as_mut(), &mut writer);
        let again = events(open_bytes(writer.into_inner()).as_mut());
        assert_eq!(again.len(), submitted.len());
        for ((again, _), event) in again.iter().zip(&submitted) {
            assert_eq!((again.sector, again.bytes), (event.sector, event.bytes));
            // Version 2 adds waits below 100 us to the next wait.
            let error_us = (event.time_ns / 1000 - start_us).abs_diff(again.time_ns / 1000);
            assert!(error_us <= if version == LogVersion::Two { 100 } else { 1 }, "{error_us} us");
        }
    }
}

#[test]
fn fio_replays_written_iologs() {
    let Ok(fio) = Command::new("fio").arg("--version").output() else {
        eprintln!("skipped: fio is not installed");
        return;
    };
    assert!(fio.status.success());
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    // 200 reads and 100 writes within 3 ms. Version 2 gets no waits that count, because fio 3.33
    // waits ms where its manual says us.
    let source: String =
        (0..300u32).map(|at| format!("{} 0 {} 8 {}\n", at * 10_000, at * 64, u32::from(at % 3 > 0))).collect();
    for version in [LogVersion::Two, LogVersion::Three] {
        let mut writer = iolog::Writer::new(std::fs::File::create(&log).unwrap(), version);
        write_to(open_bytes(source.clone().into_bytes()).as_mut(), &mut writer);
        let log = format!("--read_iolog={}", log.display());
        let replayed = Command::new("fio")
            .args(["--name=log", "--ioengine=null", "--size=1G", "--output-format=json", &log])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&replayed.stdout).unwrap();
        let job = &json["jobs"][0];
        let seen = [&job["error"], &job["read"]["total_ios"], &job["write"]["total_ios"], &job["read"]["io_bytes"]];
        assert_eq!(seen.map(|value| value.as_u64()), [Some(0), Some(200), Some(100), Some(200 * 4096)], "{version:?}");
    }
}

#[test]
fn a_capture_as_perfetto_has_two_slices_for_each_request_and_ends_at_depth_0() {
    let files = ["blktrace/vda-bfq.blktrace.0.xz", "blktrace/vda-bfq.blktrace.1.xz"];
    let mut writer = perfetto::Writer::new(Vec::new());
    write_to(open_files(&files).as_mut(), &mut writer);
    let page: serde_json::Value = serde_json::from_slice(&writer.into_inner()).unwrap();
    let elements = page["traceEvents"].as_array().unwrap();
    let completed = counts(&events(open_files(&files).as_mut()))["C"];
    let named =
        |start: &str| elements.iter().filter(|element| element["name"].as_str().unwrap().starts_with(start)).count();
    let flushes = named("D2C flush");
    assert!(named("D2C ") <= completed && named("D2C ") + 2 * flushes >= completed, "{} of {completed}", named("D2C "));
    let last = elements.iter().rfind(|element| element["ph"] == "C").unwrap();
    assert_eq!((&last["args"]["waiting"], &last["args"]["in device"]), (&0.into(), &0.into()));
    // On a thread, no slice begins before the previous one ends.
    let mut ends: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for slice in elements.iter().filter(|element| element["ph"] == "X") {
        let thread = (slice["pid"].as_u64().unwrap(), slice["tid"].as_u64().unwrap());
        let (from, dur) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        assert!(ends.insert(thread, from + dur).unwrap_or(0.0) <= from + 1e-3, "{slice}");
    }
}

#[test]
fn compressed_inputs_are_decompressed_and_truncated_ones_read_as_far_as_possible() {
    let plain = bytes("mqsim/tpcc-small-1000.trace.xz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(plain.as_slice(), 1).unwrap();
    let mut xz = Vec::new();
    liblzma::read::XzEncoder::new(plain.as_slice(), 1).read_to_end(&mut xz).unwrap();
    let first = events(open_bytes(plain.clone()).as_mut());
    for packed in [&gzip, &zstd, &xz, &[gzip.clone(), gzip.clone()].concat()] {
        let again = events(open_bytes(packed.clone()).as_mut());
        assert_eq!(again.len() % first.len(), 0);
        assert!(again.len() > first.len() || again == first);
    }
    for packed in [&gzip, &xz] {
        let mut source = open_bytes(packed[..packed.len() / 2].to_vec());
        let again = events(source.as_mut());
        assert!(again.len() < first.len());
        let notices: Vec<String> = source.notices().iter().map(ToString::to_string).collect();
        assert!(notices.iter().any(|notice| notice.contains("the compressed file ends too early")), "{notices:?}");
    }
    assert!(failure(gzip_of(&gzip), &OpenOptions::default()).contains("compressed twice"));
}

fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn compressed_zeros_are_an_error_at_the_beginning() {
    let bomb = gzip_of(&vec![0; 4 << 20]);
    assert!(bomb.len() < 1 << 16);
    let message = failure(bomb.clone(), &OpenOptions::default());
    assert_eq!(message, "input: unknown trace format: its first 65536 bytes are zeros");
    let binary =
        [Format::Blktrace, Format::TraceDat, Format::Vscsi, Format::Parquet, Format::OracleGeneral, Format::Lcs];
    // These tables need their titles, or a description of their columns.
    let titled =
        [Format::Biosnoop, Format::CloudPhysics, Format::Thesios, Format::Tectonic, Format::IoTracer, Format::Columns];
    for format in Format::ALL.into_iter().filter(|format| !binary.contains(format) && !titled.contains(format)) {
        let message = failure(
            bomb.clone(),
            &OpenOptions { format: Some(format), time_unit: Some(TimeUnit::Second), ..OpenOptions::default() },
        );
        assert!(message.starts_with("input:1: this line is longer than 64 KiB"), "{format:?}: {message}");
    }
    let lines = gzip_of(&[b'\n'; 17 << 20]);
    let message = failure(lines, &OpenOptions { format: Some(Format::Blkreplay), ..OpenOptions::default() });
    assert_eq!(message, "input:16777217: 16 MiB without a record up to here: the input does not have this format");
}

#[test]
fn inputs_of_different_formats_are_refused() {
    let message = crate::common::open_both(b"fio version 2 iolog\n/a add\n", b"0 0 8 8 1\n").err().unwrap().to_string();
    assert_eq!(message, "two: this is MQSim's text, but one is an iolog of fio: one trace has one format");
}

#[test]
fn an_empty_input_is_reported_among_others_and_an_error_alone() {
    let mut source = crate::common::open_both(b"", b"0 0 8 8 1\n").unwrap();
    assert_eq!(source.notices()[0].to_string(), "one: it is empty: nothing was recorded here");
    assert_eq!(events(source.as_mut()).len(), 1);
    assert_eq!(failure(Vec::new(), &OpenOptions::default()), "input: unknown trace format: it is empty");
}

#[test]
fn files_of_several_disks_and_servers_are_merged_by_time() {
    let one = b"128166372003061629,hm,1,Read,0,512,413\n128166372003071629,hm,1,Read,0,512,413\n";
    let two = b"128166372003066629,src,1,Write,0,512,100\n";
    let mut source = crate::common::open_both(one, two).unwrap();
    let devices: Vec<u32> = events(source.as_mut()).iter().map(|(event, _)| event.device.major()).collect();
    assert_eq!(devices, [0, 0, 1, 1, 0, 0]);
}
