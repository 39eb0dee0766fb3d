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
/// A read without buffered data that is faster than this share of the median is a hit in a large
/// buffer.
const HIT_SHARE: f64 = 0.25;
/// The minimum share of writes faster than nearly all reads that shows a write cache. A short
/// overhead of writes alone makes fewer of them so fast.
const CACHED_SHARE: f64 = 0.3;
/// Writes end in a cache if their faster half spreads over less than this share of the spread of
/// the reads. On the media they wait for any part of a revolution, as reads do.
const CACHE_SPREAD: f64 = 0.25;
/// The minimum number of hits that shows a buffer.
const HITS_MIN: usize = 20;
/// The longest idle time before a request that leaves the drive no time for other work.
const AT_ONCE_NS: u64 = 1_000_000;
/// The number of undisturbed requests that is enough.
const UNDISTURBED_MIN: usize = 400;
/// Numbers of requests since the last cached write; the relative error of a spread right after one,
/// and of a spread of reads that may all be disturbed.
const SINCE_CACHED: [usize; 4] = [8, 4, 2, 1];
const WRITES_BACK: f64 = 0.08;
const UNKNOWN_WORK: f64 = 0.3;
/// The minimum number of requests from known positions of the arm.
const POSITIONED_MIN: usize = 100;
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
    /// Number of requests since the last cached write, which the drive writes back in idle time. It
    /// moves the arm for that.
    pub(super) since_cached: usize,
    /// Idle time before the request.
    pub(super) idle_ns: u64,
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
        let median_ms = percentile(&far, 0.5);
        let on_media: Vec<f64> = far.iter().copied().filter(|ms| *ms >= HIT_SHARE * median_ms).collect();
        let quickest_ms = percentile(&on_media, QUICK_SHARE);
        let write_hits = cached_writes(of(Op::Write).map(|(record, _)| record).collect(), &on_media);
        let quick =
            |op: Op| of(op).filter(|(record, near)| **near && ms(record) < quickest_ms).map(|(record, _)| record);
        let read_hits = Hits::of(quick(Op::Read));
        let (mut from, mut since_cached, mut free_ns) = (0, usize::MAX, 0u64);
        let sort_out = |(record, near): (&Record, &bool)| {
            let access = record.access;
            let hits = if access.op == Op::Read { read_hits } else { write_hits };
            let quick = *near && hits.is_some_and(|hits| hits.take(access.sectors, ms(record)));
            let request = Request {
                op: access.op,
                sector: access.sector,
                sectors: access.sectors,
                from,
                service_ms: ms(record),
                completion_ns: record.issue_ns as f64 + record.service_ns as f64,
                quick,
                since_cached,
                idle_ns: record.issue_ns.saturating_sub(free_ns),
            };
            free_ns = record.issue_ns.saturating_add(record.service_ns);
            from = access.end();
            since_cached = if quick && access.op == Op::Write { 0 } else { since_cached.saturating_add(1) };
            request
        };
        let all = records.iter().zip(&near).map(sort_out).collect();
        Requests { all, read_hits, write_hits, far_reads: far.len() }
    }

    /// Requests of one operation that the media served with the arm at a known position: no cached
    /// write came right before. All that the media served if nearly all positions are unknown.
    pub(super) fn positioned(&self, op: Op) -> Vec<&Request> {
        let known = self.after_cached(op, 1);
        if known.len() >= POSITIONED_MIN { known } else { self.media(op).collect() }
    }

    /// Requests of one operation that the media served without other work of the drive: at once
    /// after the previous one, or as far from cached writes as leaves enough of them. Also the
    /// relative error that the spread of their times has because of such work.
    pub(super) fn undisturbed(&self, op: Op) -> (Vec<&Request>, f64) {
        let at_once: Vec<&Request> =
            self.after_cached(op, 1).into_iter().filter(|request| request.idle_ns < AT_ONCE_NS).collect();
        if at_once.len() >= UNDISTURBED_MIN {
            return (at_once, 0.0);
        }
        for least in SINCE_CACHED {
            let away = self.after_cached(op, least);
            if away.len() >= UNDISTURBED_MIN {
                let error = if self.write_hits.is_some() { WRITES_BACK / least as f64 } else { 0.0 };
                return (away, error);
            }
        }
        let error = if self.write_hits.is_some() { UNKNOWN_WORK } else { 0.0 };
        (self.positioned(op), error)
    }

    fn after_cached(&self, op: Op, least: usize) -> Vec<&Request> {
        self.media(op).filter(|request| request.since_cached >= least).collect()
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

/// The hits of writes that end in a write cache; `None` if writes wait for the media.
///
/// `reads` are the times of reads on the media. Many writes are then faster than nearly all of
/// these reads, or their faster half has nearly one time for each size. Other writes may wait for
/// space in the cache.
fn cached_writes(writes: Vec<&Record>, reads: &[f64]) -> Option<Hits> {
    let times: Vec<f64> = writes.iter().map(|write| ms(write)).collect();
    let median_ms = percentile(&times, 0.5);
    let spread_ms = percentile(reads, 0.75) - percentile(reads, 0.25);
    let mut by_size: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for write in &writes {
        by_size.entry(write.access.sectors).or_default().push(ms(write));
    }
    let halves = by_size.values().flat_map(|times| {
        let half_ms = percentile(times, 0.5) - percentile(times, 0.05);
        std::iter::repeat_n(half_ms, times.len())
    });
    let half_ms = percentile(&halves.collect::<Vec<_>>(), 0.5);
    let faster = percentile(&times, CACHED_SHARE) < percentile(reads, QUICK_SHARE);
    // Sequential writes without a cache all take one revolution, which is more than the spread.
    let alike = half_ms < CACHE_SPREAD * spread_ms && median_ms < spread_ms && median_ms < percentile(reads, 0.25);
    if !faster && !alike {
        return None;
    }
    let limit_ms = percentile(reads, QUICK_SHARE).max(median_ms + half_ms);
    Hits::of(writes.into_iter().filter(|write| ms(write) <= limit_ms))
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
