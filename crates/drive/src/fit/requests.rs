//! The requests of a recording for the fit of a disk: those served by the media, and the arm
//! positions before them.

use std::collections::BTreeMap;

use crate::command::Op;
use crate::recording::Record;

use super::stats::{line, percentile};

/// The number of previous requests in whose buffered data, or read-ahead, a read may be.
const RECENT: usize = 64;
const AHEAD_SECTORS: u64 = 2048;
/// The share of reads without buffered data that are faster than the fastest one that counts as
/// served by the media.
const QUICK_SHARE: f64 = 0.05;
/// The least number of hits that shows a buffer.
const HITS_MIN: usize = 20;
/// A hit takes at most this many times the usual hit of its size, and a little more.
const HIT_RATIO: f64 = 1.5;
const HIT_MARGIN_MS: f64 = 0.2;

/// One request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) op: Op,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    /// The sector after the previous request, at which the arm stopped.
    pub(super) from: u64,
    pub(super) service_ms: f64,
    pub(super) completion_ns: f64,
    /// True if the request was faster than the media: memory served it.
    pub(super) quick: bool,
}

/// The service time of hits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hits {
    /// Overhead in ms.
    pub(super) overhead_ms: f64,
    /// Transfer of a sector in ms.
    pub(super) sector_ms: f64,
    pub(super) requests: usize,
}

/// A classified recording.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    pub(super) all: Vec<Request>,
    pub(super) read_hits: Option<Hits>,
    /// Writes that complete in memory; `None` if most do not.
    pub(super) write_hits: Option<Hits>,
    /// Number of reads that no buffer can hold.
    pub(super) far_reads: usize,
}

impl Requests {
    pub(super) fn new(records: &[Record]) -> Requests {
        let near: Vec<bool> = (0..records.len()).map(|index| is_near(records, index)).collect();
        let of = |op: Op| records.iter().zip(&near).filter(move |(record, _)| record.access.op == op);
        let far: Vec<f64> = of(Op::Read).filter(|(_, near)| !**near).map(|(record, _)| ms(record)).collect();
        let quickest_ms = percentile(&far, QUICK_SHARE);
        let quick =
            |op: Op| of(op).filter(|(record, near)| **near && ms(record) < quickest_ms).map(|(record, _)| record);
        let writes: Vec<f64> = of(Op::Write).map(|(record, _)| ms(record)).collect();
        let read_hits = Hits::of(quick(Op::Read));
        let cached = percentile(&writes, 0.5) < quickest_ms;
        let write_hits = Hits::of(quick(Op::Write)).filter(|_| cached);
        let mut from = 0;
        let sort_out = |(record, near): (&Record, &bool)| {
            let access = record.access;
            let hits = if access.op == Op::Read { read_hits } else { write_hits };
            let request = Request {
                op: access.op,
                sector: access.sector,
                sectors: access.sectors,
                from,
                service_ms: ms(record),
                completion_ns: record.issue_ns as f64 + record.service_ns as f64,
                quick: *near && hits.is_some_and(|hits| hits.take(access.sectors, ms(record))),
            };
            from = access.end();
            request
        };
        let all = records.iter().zip(&near).map(sort_out).collect();
        Requests { all, read_hits, write_hits, far_reads: far.len() }
    }

    /// Requests of one operation that the media served, without the first, whose arm position is
    /// unknown.
    pub(super) fn media(&self, op: Op) -> impl Iterator<Item = &Request> {
        self.all.iter().skip(1).filter(move |request| request.op == op && !request.quick)
    }
}

impl Hits {
    /// The line through the times of hits by size; `None` if there are too few.
    fn of<'a>(hits: impl Iterator<Item = &'a Record>) -> Option<Hits> {
        let mut by_size: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for hit in hits {
            by_size.entry(hit.access.sectors).or_default().push(ms(hit));
        }
        let requests: usize = by_size.values().map(Vec::len).sum();
        if requests < HITS_MIN {
            return None;
        }
        // Waits only make a hit slower, so the faster half decides.
        let typical = by_size.iter().flat_map(|(sectors, times)| {
            std::iter::repeat_n((f64::from(*sectors), percentile(times, 0.3)), times.len())
        });
        let (overhead_ms, sector_ms) = line(&typical.collect::<Vec<_>>());
        Some(Hits { overhead_ms: overhead_ms.max(0.0), sector_ms: sector_ms.max(0.0), requests })
    }

    /// Returns true if a request of `sectors` that took `ms` is a hit.
    pub(super) fn take(&self, sectors: u32, ms: f64) -> bool {
        ms < HIT_RATIO * (self.overhead_ms + f64::from(sectors) * self.sector_ms) + HIT_MARGIN_MS
    }
}

fn ms(record: &Record) -> f64 {
    record.service_ns as f64 / 1e6
}

/// Returns true if memory may serve a request: a write, or a read at or after one of the last
/// requests.
fn is_near(records: &[Record], index: usize) -> bool {
    let access = records[index].access;
    let may_be_held = |recent: &Record| {
        let start = recent.access.sector;
        let end = start + u64::from(recent.access.sectors) + AHEAD_SECTORS;
        (start..end).contains(&access.sector)
    };
    access.op == Op::Write || records[index.saturating_sub(RECENT)..index].iter().any(may_be_held)
}
