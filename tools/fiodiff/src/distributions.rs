//! Random requests: their distributions.

use std::collections::{HashMap, HashSet};

use hoistway_fio::{Distribution, FileService, Job};
use hoistway_workload::Region;

use crate::figures::Request;
use crate::statistics::{histograms_differ, shares_differ};

/// Bins of offsets within a file.
const BINS: u64 = 16;
/// Least different offsets from which the alignment of offsets is known.
const OFFSETS_MIN: usize = 32;

/// Compares two samples of requests. Returns the first difference, in a sentence.
pub fn compare(job: &Job, regions: &[(String, Region)], ours: &[Request], theirs: &[Request]) -> Option<String> {
    let cluster = cluster(job);
    let share = |what: &str, is: &dyn Fn(usize, &[Request]) -> bool, cluster: f64| {
        let count = |all: &[Request]| (0..all.len()).filter(|at| is(*at, all)).count();
        let (here, there) = (count(ours), count(theirs));
        shares_differ(here, ours.len(), there, theirs.len(), cluster)
            .then(|| format!("{what}: {here} of {} here, {there} of {} in fio", ours.len(), theirs.len()))
    };
    let of_files = |difference: Option<String>| difference.filter(|_| has_certain_files(job));
    let follows = |at: usize, all: &[Request]| at > 0 && is_next(&all[at - 1], &all[at]);
    let stays = |at: usize, all: &[Request]| at > 0 && all[at - 1].offset == all[at].offset;
    let turns = |at: usize, all: &[Request]| at > 0 && all[at - 1].way != all[at].way;
    let moves = |at: usize, all: &[Request]| at > 0 && all[at - 1].file != all[at].file;
    share("reads", &|at, all| all[at].way == 0, 1.0)
        .or_else(|| share("requests of the other direction than the one before", &turns, 2.0))
        .or_else(|| of_files(share("requests that follow the one before", &follows, 2.0)))
        .or_else(|| share("requests at the offset of the one before", &stays, 2.0))
        .or_else(|| of_files(share("requests to another file than the one before", &moves, 2.0)))
        .or_else(|| histogram("sizes", ours, theirs, 1.0, |request| (u64::from(request.way), request.bytes)))
        .or_else(|| of_files(histogram("files", ours, theirs, 2.0, |request| (0, request.file as u64))))
        .or_else(|| repeats(job, ours, theirs, cluster))
        .or_else(|| places(job, regions, ours, theirs, cluster))
        .or_else(|| alignment(regions, ours, theirs))
}

fn is_next(one: &Request, other: &Request) -> bool {
    one.file == other.file && one.offset + one.bytes == other.offset
}

/// The number of requests that one draw decides.
fn cluster(job: &Job) -> f64 {
    let runs =
        job.requests.rw_modifier.filter(|_| job.requests.rw.is_random()).map_or(1.0, |count| count.max(1) as f64);
    let least = job.directions().map(|way| *job.requests.percentage_random.get(way)).min().unwrap_or(100);
    runs * 200.0 / f64::from(least.max(2)) / if least == 100 { 2.0 } else { 1.0 }
}

/// Returns true if which blocks are popular is a matter of chance.
fn is_scattered(job: &Job) -> bool {
    matches!(
        job.requests.random_distribution,
        Distribution::Zipf(_) | Distribution::Pareto(_) | Distribution::Normal(_)
    )
}

/// Returns false if which files are popular, and how much so, is a matter of chance.
fn has_certain_files(job: &Job) -> bool {
    !matches!(job.files.file_service, FileService::Drawn(Distribution::Zipf(_) | Distribution::Pareto(_)))
}

fn histogram(
    what: &str,
    ours: &[Request],
    theirs: &[Request],
    cluster: f64,
    bin: impl Fn(&Request) -> (u64, u64),
) -> Option<String> {
    let mut keys: Vec<(u64, u64)> = ours.iter().chain(theirs).map(&bin).collect();
    keys.sort_unstable();
    keys.dedup();
    let count = |all: &[Request]| {
        let mut bins = vec![0; keys.len()];
        for request in all {
            if let Ok(at) = keys.binary_search(&bin(request)) {
                bins[at] += 1;
            }
        }
        bins
    };
    let (here, there) = (count(ours), count(theirs));
    histograms_differ(&here, &there, cluster).then(|| format!("{what}: of {keys:?} {here:?} here, {there:?} in fio"))
}

/// How often offsets repeat: the number of different ones, and the share of the most popular one.
fn repeats(job: &Job, ours: &[Request], theirs: &[Request], cluster: f64) -> Option<String> {
    let summary = |all: &[Request]| {
        let mut times: HashMap<(usize, u64), usize> = HashMap::new();
        for request in all {
            *times.entry((request.file, request.offset)).or_default() += 1;
        }
        (times.len(), times.values().copied().max().unwrap_or(0))
    };
    let ((here, here_most), (there, there_most)) = (summary(ours), summary(theirs));
    let (n, m) = (ours.len(), theirs.len());
    // Several directions and sizes, and popular blocks of several files, vary more.
    let spread = cluster * if is_scattered(job) { 4.0 } else { 2.0 };
    if shares_differ(here, n, there, m, spread) {
        return Some(format!("different offsets: {here} of {n} here, {there} of {m} in fio"));
    }
    let one_file = ours.iter().all(|request| request.file == 0);
    (is_scattered(job) && one_file && shares_differ(here_most, n, there_most, m, spread))
        .then(|| format!("requests at the most popular offset: {here_most} of {n} here, {there_most} of {m} in fio"))
}

/// The distribution of offsets over the region of each file.
fn places(
    job: &Job,
    regions: &[(String, Region)],
    ours: &[Request],
    theirs: &[Request],
    cluster: f64,
) -> Option<String> {
    if is_scattered(job) || !job.requests.rw.is_random() {
        return None;
    }
    let bin = |request: &Request| {
        let region = regions[request.file].1;
        (0, (request.offset - region.start.min(request.offset)) * BINS / region.len.max(1))
    };
    histogram("sixteenths of the region", ours, theirs, cluster, bin)
}

/// The multiple of which all offsets are, from the start of the region.
fn alignment(regions: &[(String, Region)], ours: &[Request], theirs: &[Request]) -> Option<String> {
    let summary = |all: &[Request]| {
        let from_start = |request: &Request| request.offset - regions[request.file].1.start.min(request.offset);
        let different: HashSet<u64> = all.iter().map(from_start).collect();
        (different.len(), different.into_iter().fold(0, gcd))
    };
    let ((here, align), (there, their_align)) = (summary(ours), summary(theirs));
    (here >= OFFSETS_MIN && there >= OFFSETS_MIN && align != their_align)
        .then(|| format!("offsets are multiples of {align} here, of {their_align} in fio"))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
