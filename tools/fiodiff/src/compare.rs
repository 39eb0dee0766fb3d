//! What is compared, and how exactly.

use hoistway_fio::{BlockSize, Direction, FileService, Job, ZoneMode};

use crate::distributions;
use crate::figures::{Moved, Process, Request};
use crate::ours::{Ours, REQUESTS_MAX};
use crate::theirs::Theirs;

/// Part by which times and rates may differ.
const TIME_PART: f64 = 0.03;
/// Time by which runtimes may differ on top, in ms: fio's are whole milliseconds, and it starts its
/// clock before its first request.
const TIME_MS: f64 = 8.0;

/// Part by which pauses are usually longer than asked: timers wake a process late.
const DELAY_USUAL: f64 = 0.06;
/// Jobs may be delayed by this many times as much as the control job.
const DELAY_FACTOR: f64 = 4.0;

/// The outcome of the comparison of a job.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing differs.
    Same,
    /// The job differs, as the text says.
    Differs(String),
    /// hoistway refuses the job.
    Refused(String),
    /// fio refuses the job, or fails.
    Failed(String),
}

/// Compares what both did for a job. Returns the first difference, in a sentence.
pub fn compare(ours: &Ours, theirs: &Theirs) -> Option<String> {
    if ours.processes.len() != theirs.processes.len() {
        return Some(format!("{} processes here, {} in fio", ours.processes.len(), theirs.processes.len()));
    }
    let requests = theirs.requests.as_ref().and_then(|of_fio| requests(ours, of_fio));
    if requests.is_some() || ends_by_chance(&ours.job, ours) {
        return requests;
    }
    ours.processes.iter().zip(&theirs.processes).find_map(|(ours_of, theirs_of)| {
        totals(&ours.job, ours_of, theirs_of, theirs.delay)
            .or_else(|| times(&ours.job, ours_of, theirs_of, theirs.delay))
    })
}

/// Returns true if the options decide size, file and offset of each request.
fn is_exact(job: &Job) -> bool {
    let is_fixed = job.directions().all(|way| matches!(job.blocks.bs.get(way), BlockSize::Fixed(_)));
    let turns = matches!(job.files.file_service, FileService::RoundRobin(_) | FileService::Sequential);
    let is_mixed = job.requests.rw.reads() && job.requests.rw.writes() && !matches!(job.requests.rwmixread, 0 | 100);
    !job.requests.rw.is_random() && is_fixed && turns && !is_mixed
}

/// Returns true if the number of requests follows from the bytes.
fn has_exact_sizes(job: &Job) -> bool {
    let mut sizes = job.directions().map(|way| job.blocks.bs.get(way));
    let Some(first) = sizes.next() else { return true };
    matches!(first, BlockSize::Fixed(_)) && !job.blocks.bs_is_seq_rand && sizes.all(|size| size == first)
}

/// Returns true if sizes are not multiples of the smallest one.
fn has_odd_sizes(job: &Job) -> bool {
    job.directions().any(|way| match job.blocks.bs.get(way) {
        BlockSize::Fixed(_) => false,
        BlockSize::Range { min, max } => job.blocks.bs_unaligned || !max.is_multiple_of((*min).max(1)),
        BlockSize::Split(entries) => entries.iter().any(|entry| !entry.bytes.is_multiple_of(job.min_bs(way).max(1))),
    })
}

/// Returns true if a cap decides the number of requests of each direction.
fn is_capped(job: &Job) -> bool {
    job.directions().any(|way| is_capped_in(job, way))
}

fn is_capped_in(job: &Job, way: Direction) -> bool {
    job.rates.rate.get(way).is_some() || job.rates.rate_iops.get(way).is_some()
}

fn requests(ours: &Ours, theirs: &[(String, Request)]) -> Option<String> {
    let file_of = |name: &str| ours.regions.iter().position(|(known, _)| known == name);
    let mut of_fio: Vec<Request> = Vec::with_capacity(theirs.len());
    for (name, request) in theirs {
        match file_of(name) {
            Some(file) => of_fio.push(Request { file, ..*request }),
            None => return Some(format!("fio has a file {name}")),
        }
    }
    let (job, here) = (&ours.job, ours.requests.as_slice());
    // A job that ends by time or by chance has as many requests as the shorter run, and caps change
    // the order of reads and writes of our requests, which were made without a clock.
    let is_timed = job.end.runtime_ns.is_some();
    let is_mixed = job.requests.rw.reads() && job.requests.rw.writes();
    let is_cut = is_timed || ends_by_chance(job, ours);
    if is_cut || here.len() >= REQUESTS_MAX || of_fio.len() >= REQUESTS_MAX {
        let shared = here.len().min(of_fio.len());
        if is_mixed && is_capped(job) {
            return None;
        }
        return sequences(ours, &here[..shared], &of_fio[..shared]);
    }
    if is_mixed && is_capped(job) {
        return bytes(job, here, &of_fio);
    }
    bytes(job, here, &of_fio).or_else(|| sequences(ours, here, &of_fio))
}

/// Returns true if a random draw decides when the job ends: a request that follows others ends a
/// file if it has less room than it needs, a block is verified once, however often it is written,
/// and a map with smaller blocks than those of a direction ends a file when it has a free one only
/// behind the file's end.
fn ends_by_chance(job: &Job, ours: &Ours) -> bool {
    let follows = job.requests.rw_modifier.is_some()
        || job.directions().any(|way| *job.requests.percentage_random.get(way) < 100);
    let has_rest = |len: u64| {
        job.directions().any(|way| match job.blocks.bs.get(way) {
            BlockSize::Fixed(bytes) => !len.is_multiple_of(*bytes),
            _ => true,
        })
    };
    let has_rests = ours.regions.iter().any(|(_, region)| has_rest(region.len));
    let repeats = !job.touches_blocks_once();
    let smallest = |way| job.min_bs(way);
    let map_unit = Direction::ALL.into_iter().map(smallest).min().unwrap_or(0);
    let ends_early = !repeats && !job.blocks.bs_is_seq_rand && job.directions().any(|way| smallest(way) > map_unit);
    job.requests.rw.is_random() && (follows && has_rests || job.verification.verifies && repeats || ends_early)
}

/// Compares the numbers of bytes and of requests.
fn bytes(job: &Job, ours: &[Request], theirs: &[Request]) -> Option<String> {
    let sum = |all: &[Request]| all.iter().map(|request| request.bytes).sum::<u64>();
    let most = ours.iter().chain(theirs).map(|request| request.bytes).max().unwrap_or(0);
    let (here, there) = (sum(ours), sum(theirs));
    let has_exact_sizes = has_exact_sizes(job);
    // Requests of odd sizes end before touched blocks with a rest of a block, as the draws have it.
    let rests = if has_odd_sizes(job) { here.max(there) / 20 } else { 0 };
    let slack = if has_exact_sizes || job.amount.number_ios.is_some() { 0 } else { most + rests };
    if has_exact_sizes && ours.len() != theirs.len() {
        return Some(format!("{} requests here, {} in fio", ours.len(), theirs.len()));
    }
    if job.amount.number_ios.is_some() {
        // The number decides, or the bytes do if they are fewer.
        return (has_exact_sizes && here != there).then(|| format!("{here} bytes here, {there} in fio"));
    }
    (here.abs_diff(there) > slack).then(|| format!("{here} bytes here, {there} in fio"))
}

/// Compares requests one by one, as sets, or by their distributions.
fn sequences(ours: &Ours, here: &[Request], there: &[Request]) -> Option<String> {
    let job = &ours.job;
    let outside = there.iter().find(|request| {
        let region = ours.regions[request.file].1;
        request.offset < region.start || request.offset + request.bytes > region.start + region.len
    });
    if let Some(request) = outside {
        let (name, region) = &ours.regions[request.file];
        let (start, end) = (region.start, region.start + region.len);
        return Some(format!("fio has {}, here `{name}` has {start} to {end}", shown(request)));
    }
    if is_exact(job) {
        return first_difference(here, there);
    }
    if is_permutation(job, here) {
        let (mut one, mut other) = (here.to_vec(), there.to_vec());
        one.sort_unstable();
        other.sort_unstable();
        return first_difference(&one, &other).map(|text| format!("sorted: {text}"));
    }
    distributions::compare(job, &ours.regions, here, there)
}

/// Returns true if requests touch each block once.
fn is_permutation(job: &Job, requests: &[Request]) -> bool {
    let is_plain = job.touches_blocks_once() && has_exact_sizes(job);
    let is_one_way = !(job.requests.rw.reads() && job.requests.rw.writes());
    let is_whole = job.amount.io_size.is_none()
        && job.amount.number_ios.is_none()
        && job.end.runtime_ns.is_none()
        && job.region.size.is_none();
    let no_zones = job.zones.mode == ZoneMode::None;
    let no_runs = job.requests.rw_modifier.is_none()
        && job.directions().all(|way| *job.requests.percentage_random.get(way) == 100);
    is_plain && is_one_way && is_whole && no_zones && no_runs && !requests.is_empty()
}

fn first_difference(here: &[Request], there: &[Request]) -> Option<String> {
    let at = here.iter().zip(there).position(|(one, other)| one != other);
    match (at, here.len() == there.len()) {
        (None, true) => None,
        (None, false) => Some(format!("{} requests here, {} in fio", here.len(), there.len())),
        (Some(at), _) => {
            let around = |all: &[Request]| {
                let shown: Vec<String> = all[at.saturating_sub(1)..all.len().min(at + 3)].iter().map(shown).collect();
                shown.join(", ")
            };
            Some(format!("request {at} of {}: {} here, {} in fio", here.len(), around(here), around(there)))
        }
    }
}

fn shown(request: &Request) -> String {
    let way = ["read", "write", "trim"][usize::from(request.way)];
    format!("{way} file {} at {} +{}", request.file, request.offset, request.bytes)
}

/// Compares the figures that fio reports with those of the simulation.
fn totals(job: &Job, ours: &Process, theirs: &Process, delay: f64) -> Option<String> {
    let is_timed = job.end.runtime_ns.is_some();
    let is_mixed = job.requests.rw.reads() && job.requests.rw.writes();
    let sum = |process: &Process| {
        Direction::ALL.into_iter().fold(Moved::default(), |all, way| {
            let one = process.moved.get(way);
            Moved { ios: all.ios + one.ios, bytes: all.bytes + one.bytes }
        })
    };
    let (here, there) = (sum(ours), sum(theirs));
    let differ = |what: &str, here: u64, there: u64| Some(format!("{what}: {here} here, {there} in fio"));
    if !is_timed && has_exact_sizes(job) && here != there {
        return differ("requests of a process", here.ios, there.ios);
    }
    for way in Direction::ALL {
        let (here, there) = (ours.moved.get(way), theirs.moved.get(way));
        let decides = !is_timed && !is_mixed && has_exact_sizes(job);
        if decides && here != there {
            return differ(&format!("{way:?} requests of a process"), here.ios, there.ios);
        }
        // A cap decides how many requests there are until the end of a job. Poisson arrivals vary.
        let by_cap = is_capped_in(job, way) && (is_timed || is_mixed);
        let is_even = job.rates.rate_process == hoistway_fio::RateProcess::Linear;
        let all_capped = job.directions().all(|way| is_capped_in(job, way));
        let varies = !has_exact_sizes(job) || !is_timed && !all_capped;
        if by_cap
            && is_even
            && !varies
            && is_far(here.ios as f64, there.ios as f64, 2.0 + here.ios as f64 * slack_of(delay))
        {
            return differ(&format!("capped {way:?} requests"), here.ios, there.ios);
        }
    }
    // fio counts an fdatasync nowhere, and how long a queued sync takes decides how many follow.
    let queues_syncs = job.submission.ioengine.queues_syncs() && job.submission.effective_iodepth() > 1;
    let is_counted = !is_timed && !is_mixed && has_exact_sizes(job) && job.syncs.fdatasync == 0 && !queues_syncs;
    (is_counted && ours.syncs != theirs.syncs).then(|| format!("{} syncs here, {} in fio", ours.syncs, theirs.syncs))
}

/// Compares the runtimes of jobs whose options decide them.
fn times(job: &Job, ours: &Process, theirs: &Process, delay: f64) -> Option<String> {
    let caps = job.directions().all(|way| is_capped_in(job, way));
    let is_paced = job.pauses.thinktime_ns > 0 || caps || job.end.runtime_ns.is_some();
    let varies = job.rates.rate_process == hoistway_fio::RateProcess::Poisson || !has_exact_sizes(job);
    (is_paced && !varies && is_far(ours.runtime_ms, theirs.runtime_ms, TIME_MS + ours.runtime_ms * slack_of(delay)))
        .then(|| format!("{:.0} ms here, {:.0} in fio", ours.runtime_ms, theirs.runtime_ms))
}

/// The part by which figures may differ because the machine delays fio. Below a usual delay of
/// timers there is none.
fn slack_of(delay: f64) -> f64 {
    if delay > DELAY_USUAL { delay * DELAY_FACTOR } else { 0.0 }
}

fn is_far(one: f64, other: f64, slack: f64) -> bool {
    (one - other).abs() > TIME_PART * one.max(other) + slack
}
