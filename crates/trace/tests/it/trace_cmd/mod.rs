//! Reads recordings of trace-cmd 3.1.6 and compares them with the text of `trace-cmd report`.

mod built;

use std::io::{Cursor, Read as _};
use std::path::Path;

use flate2::read::GzDecoder;
use hoistway_trace::trace_cmd::{Error, TraceDat};

fn packed(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/trace-cmd").join(name)).unwrap()
}

fn file(name: &str) -> Vec<u8> {
    if !name.ends_with(".gz") {
        return packed(name);
    }
    let mut bytes = Vec::new();
    GzDecoder::new(packed(name).as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn open(bytes: Vec<u8>) -> Result<TraceDat, Error> {
    TraceDat::open(Box::new(Cursor::new(bytes)))
}

/// Time, CPU, event and sector of each record.
fn records(dat: &mut TraceDat) -> Vec<(u64, u32, String, u64)> {
    let mut found = Vec::new();
    while let Some(record) = dat.next_record().unwrap() {
        let format = record.format.unwrap();
        let sector = format.field("sector").and_then(|field| field.number(record.data, record.is_big_endian));
        found.push((record.time_ns, record.cpu, format.name.clone(), sector.unwrap()));
    }
    found
}

#[test]
fn all_versions_and_compressions_have_the_records_that_trace_cmd_reports() {
    for (name, version) in [("v6.dat.gz", 6), ("v7-none.dat.gz", 7), ("v7-zstd.dat", 7)] {
        let mut dat = open(file(name)).unwrap();
        assert_eq!((dat.version(), dat.clock(), dat.has_ns()), (version, "local", true), "{name}");
        assert_eq!(dat.process_names().get(&25085).map(Vec::as_slice), Some(&b"fio"[..]));
        let found = records(&mut dat);
        // `trace-cmd report -t v6.dat`: 210 lines, the first and the last of which are
        // fio-25085 [001] 1308.227130182: block_bio_queue: 7,0 R 7408 + 8 [fio]
        // ksoftirqd/1-22 [001] 1308.570728810: block_rq_complete: 7,0 DS () 2048 + 2048 0x2,0,4 [0]
        assert_eq!(found.len(), 210, "{name}");
        assert_eq!(found[0], (1_308_227_130_182, 1, "block_bio_queue".to_owned(), 7408));
        assert_eq!(found[209], (1_308_570_728_810, 1, "block_rq_complete".to_owned(), 2048));
        assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert_eq!(dat.losses(), &Default::default());
    }
}

#[test]
fn a_truncated_file_is_read_up_to_its_end() {
    let whole = file("v6.dat.gz");
    let mut dat = open(whole[..whole.len() - 12_288].to_vec()).unwrap();
    let found = records(&mut dat);
    assert!(found.len() < 210 && found.len() > 50, "{}", found.len());
    assert!(dat.losses().is_cut);
    for length in [0, 5, 12, 100, 5000, 20_000] {
        let what = open(whole[..length].to_vec()).err().unwrap().to_string();
        assert!(what.contains("at byte"), "{length}: {what}");
    }
}

#[test]
fn a_damaged_page_is_skipped_and_its_position_reported() {
    let mut bytes = file("v6.dat.gz");
    // The length of the first page of CPU 1.
    let page = bytes.len() - 12_288;
    bytes[page + 8..page + 12].copy_from_slice(&5000u32.to_le_bytes());
    let mut dat = open(bytes).unwrap();
    let found = records(&mut dat);
    assert!(found.len() < 210);
    assert_eq!((dat.losses().damaged_pages, dat.losses().first_damaged), (1, page as u64));
}

#[test]
fn other_versions_and_compressions_are_refused_with_those_that_are_read() {
    let mut bytes = file("v7-zstd.dat");
    bytes[10] = b'8';
    assert!(open(bytes).err().unwrap().to_string().contains("version \"8\": 6 and 7 are read"));
    let mut bytes = file("v7-zstd.dat");
    bytes[18..22].copy_from_slice(b"lzma");
    assert!(open(bytes).err().unwrap().to_string().contains("none, zlib and zstd are"));
}

/// Every fifth byte changed, one at a time: an error or records, never a panic.
#[test]
fn no_damage_of_one_byte_makes_the_reader_panic() {
    let whole = file("v7-zstd.dat");
    for at in (0..whole.len()).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        if let Ok(mut dat) = open(bytes) {
            while let Ok(Some(_)) = dat.next_record() {}
        }
    }
}
