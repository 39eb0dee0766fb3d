//! Requests and notes of a part of a trace as columns: adjacent values of a column are similar.

use super::data::{Chunk, MergedRow, RequestRow, SpanRow};
use super::pack::{Numbers, base64};

impl Chunk {
    /// Packs requests, in the order of completion, and notes.
    pub fn new(requests: &[RequestRow], spans: &[SpanRow]) -> Chunk {
        let first = |request: &RequestRow| request.steps_ns.into_iter().flatten().min();
        let last = |request: &RequestRow| request.steps_ns.into_iter().flatten().max();
        let begins = requests.iter().filter_map(first).chain(spans.iter().map(|span| span.start_ns));
        let ends = requests.iter().filter_map(last).chain(spans.iter().map(|span| span.end_ns));
        let mut numbers = Numbers::default();
        let merged: Vec<&MergedRow> = requests.iter().flat_map(|request| &request.merged).collect();
        [requests.len(), merged.len(), spans.len()].into_iter().for_each(|count| numbers.put(count as u64));
        pack_requests(&mut numbers, requests);
        pack_merged(&mut numbers, &merged);
        pack_spans(&mut numbers, spans);
        Chunk {
            from_ns: begins.min().unwrap_or(0),
            to_ns: ends.max().unwrap_or(0),
            requests: u32::try_from(requests.len()).unwrap_or(u32::MAX),
            packed: numbers.deflated(),
        }
    }

    /// The chunk as text for a page.
    pub(super) fn text(&self) -> String {
        base64(&self.packed)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.packed.len()
    }
}

/// A chunk as a script that passes it to the page. A page opened from a file can load scripts.
pub fn chunk_script(number: usize, chunk: &Chunk) -> String {
    format!("hoistwayChunk({number},\"{}\");\n", chunk.text())
}

fn pack_requests(numbers: &mut Numbers, requests: &[RequestRow]) {
    let of = || requests.iter();
    numbers.column(of().map(|request| request.device.into()));
    numbers.steps(of().map(|request| request.pid.into()));
    numbers.column(of().map(|request| request.op.into()));
    numbers.steps(of().map(|request| request.sector));
    numbers.column(of().map(|request| request.bytes.into()));
    // The first known step and its index. The other steps are differences plus 1; 0 stands for an
    // unknown step.
    let first = |request: &RequestRow| request.steps_ns.iter().position(Option::is_some).unwrap_or(0);
    numbers.column(of().map(|request| first(request) as u64));
    numbers.steps(of().map(|request| request.steps_ns[first(request)].unwrap_or(0)));
    for step in 1..5 {
        numbers.column(of().map(|request| {
            let before = request.steps_ns[..step].iter().rev().find_map(|time| *time);
            match (request.steps_ns[step], before) {
                (Some(time), Some(before)) => time.saturating_sub(before) + 1,
                _ => 0,
            }
        }));
    }
    numbers.column(of().map(|request| request.requeues.into()));
    numbers.column(of().map(|request| request.error.into()));
    numbers.column(of().map(|request| request.merged.len() as u64));
}

fn pack_merged(numbers: &mut Numbers, merged: &[&MergedRow]) {
    let of = || merged.iter();
    numbers.steps(of().map(|bio| bio.pid.into()));
    numbers.steps(of().map(|bio| bio.queued_ns));
    numbers.column(of().map(|bio| bio.merged_ns.saturating_sub(bio.queued_ns)));
    numbers.steps(of().map(|bio| bio.sector));
    numbers.column(of().map(|bio| u64::from(bio.bytes) << 1 | u64::from(bio.front)));
}

fn pack_spans(numbers: &mut Numbers, spans: &[SpanRow]) {
    let of = || spans.iter();
    numbers.column(of().map(|span| span.queue.into()));
    numbers.column(of().map(|span| u64::from(span.kind) << 3 | u64::from(span.why & 7)));
    numbers.steps(of().map(|span| span.start_ns));
    numbers.column(of().map(|span| span.end_ns.saturating_sub(span.start_ns)));
    numbers.column(of().map(|span| span.served));
    numbers.column(of().map(|span| span.budget));
}
