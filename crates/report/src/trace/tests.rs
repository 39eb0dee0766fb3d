use super::*;
use crate::data::Fact;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--";

fn lane(pid: Option<u32>) -> TraceLane {
    TraceLane {
        pid,
        name: HOSTILE.into(),
        requests: 3,
        counts: vec![TraceCounts { reads: 3, read_bytes: 12_288, ..TraceCounts::default() }; 4],
        layers_ns: vec![[1, 2, 3, 4, 0]; 4],
        reads: vec![(0, 2), (300, 1)],
        ..TraceLane::default()
    }
}

fn page() -> TracePage {
    TracePage {
        title: HOSTILE.into(),
        facts: vec![Fact { label: HOSTILE.into(), value: HOSTILE.into() }],
        notes: vec![HOSTILE.into()],
        end_ns: 4_000,
        bucket_ns: 1_024,
        devices: vec![HOSTILE.into()],
        lanes: vec![lane(Some(7)), lane(None)],
        ..TracePage::default()
    }
}

fn request(at_ns: u64) -> RequestRow {
    RequestRow {
        pid: 7,
        op: 1,
        sector: 8,
        bytes: 4096,
        steps_ns: [Some(at_ns), None, None, Some(at_ns + 5), Some(at_ns + 9)],
        ..RequestRow::default()
    }
}

#[test]
fn names_cannot_end_a_script_or_open_a_tag_and_the_page_is_self_contained() {
    let chunk = Chunk::new(&[request(10)], &[]);
    let html = trace_page(&page(), &SingleRequests::InPage(vec![chunk])).unwrap();
    assert!(!html.contains("<img"));
    for outside in ["http:", "https:", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'; script-src 'unsafe-inline'; "));
    assert!(html.contains("id=\"hoistway-chunk-0\""));
}

#[test]
fn a_page_with_chunk_files_may_load_scripts_from_its_directory_only() {
    let beside = SingleRequests::Beside { prefix: "page.detail".into(), chunks: vec![(0, 9, 1)] };
    let html = trace_page(&page(), &beside).unwrap();
    assert!(html.contains("script-src 'unsafe-inline' 'self' file:;") && html.contains("\"prefix\":\"page.detail\""));
    assert!(!html.contains("hoistway-chunk-0"));
}

#[test]
fn a_chunk_spans_its_first_to_its_last_step() {
    let span = SpanRow { start_ns: 3, end_ns: 40, ..SpanRow::default() };
    let chunk = Chunk::new(&[request(10), request(20)], &[span]);
    assert_eq!((chunk.from_ns, chunk.to_ns, chunk.requests), (3, 40, 2));
    let empty = Chunk::new(&[], &[]);
    assert_eq!((empty.from_ns, empty.to_ns, empty.requests), (0, 0, 0));
}

#[test]
fn numbers_have_seven_bits_a_byte_and_differences_their_sign_in_the_lowest_bit() {
    let mut numbers = Numbers::default();
    numbers.put(300);
    numbers.put_step(5, 3);
    numbers.put_step(0, u64::MAX);
    let mut inflated = Vec::new();
    let packed = numbers.deflated();
    std::io::Read::read_to_end(&mut flate2::read::DeflateDecoder::new(packed.as_slice()), &mut inflated).unwrap();
    // 300 is 2 * 128 + 44; -2 is 3; one step back from 0 is the highest number, as 1.
    assert_eq!(inflated, [0xac, 2, 3, 1]);
}

#[test]
fn depths_are_rounded_to_a_part_in_4096() {
    assert_eq!([0, 1, 512, 1_024, 3 * 1_024].map(|ns| depth(ns, 1_024)), [0, 4, 2_048, 4_096, 12_288]);
    assert_eq!(depth(u64::MAX, 1), u64::MAX, "no overflow");
}
