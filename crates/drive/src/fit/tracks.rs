//! The revolution and the sectors of a track from pairs of reads on one track.
//!
//! Two reads of the same size on one track complete at angles that are as far apart as their
//! sectors. The time between them is a whole number of revolutions plus the part given by their
//! distance, whatever seeks come before.

use std::f64::consts::TAU;

use super::requests::Request;

/// Usual spindle speeds in revolutions a minute.
const USUAL_RPM: [f64; 7] = [3600.0, 4200.0, 5400.0, 7200.0, 10_000.0, 12_000.0, 15_000.0];
/// The largest distance of a usual speed from that of the spread of service times, in standard
/// errors.
const USUAL_ERRORS: f64 = 2.25;
/// The largest relative distance: usual speeds are further apart, and there are speeds between
/// them.
const USUAL_RANGE: f64 = 0.07;
/// The range of the search on either side of the spread in standard errors, and its relative
/// bounds.
const SEARCH_ERRORS: f64 = 4.0;
const SEARCH_RANGE: (f64, f64) = (0.06, 0.15);
/// The logarithm of the factor by which the best revolution must be likelier than any other.
const ODDS: f64 = 5.0;
/// The share of the best evidence with which another track length is refined as well.
const PEAK_SHARE: f64 = 0.5;
/// The usual ratio of sectors on outer and inner tracks, and its weight as evidence.
const ZONED: f64 = 1.5;
const ZONED_EVIDENCE: f64 = 2.0;
/// The coherence below which the pairs do not determine the revolution.
const COHERENCE: f64 = 0.5;
/// The largest number of pairs, nearest first.
const PAIRS: usize = 300;
/// The number of pairs at the start of the search.
const FIRST_PAIRS: usize = 80;
/// Sectors of a track: the least and the largest candidate, and the step between candidates.
const TRACK_SECTORS: (f64, f64, f64) = (40.0, 6000.0, 1.25);
/// The largest distance of the reads of a pair, as a share of a track. Nearer reads are more often
/// on one track.
const NEAR: f64 = 0.4;
/// The logarithm of the factor by which an agreement must be likelier than the best of as many
/// guesses.
const EVIDENCE: f64 = 7.0;

/// The fitted rotation and track lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tracks {
    pub(super) revolution_ns: f64,
    /// Sectors of a track at the first sector and at the last one.
    pub(super) outer_sectors: f64,
    pub(super) inner_sectors: f64,
    /// Agreement of the pairs: 1 for perfect agreement, about 0 for chance.
    pub(super) coherence: f64,
    pub(super) pairs: usize,
    /// How much likelier this revolution is than any other of the search.
    pub(super) odds: Odds,
}

/// A ratio of probabilities, as its natural logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Odds(pub(super) f64);

impl std::fmt::Display for Odds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 > 1e6_f64.ln() { f.write_str("over a million times") } else { write!(f, "{:.0} times", self.0.exp()) }
    }
}

/// A revolution from the spread of service times, and its relative standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) revolution_ns: f64,
    pub(super) error: f64,
}

/// The outcome of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Search {
    /// The pairs agree no better than by chance.
    Nothing,
    /// The pairs agree on two revolutions in ns nearly as well, or poorly on the first.
    Doubtful(Tracks, f64),
    Found(Tracks),
}

impl Search {
    pub(super) fn tracks(self) -> Option<Tracks> {
        match self {
            Search::Found(tracks) => Some(tracks),
            Search::Nothing | Search::Doubtful(..) => None,
        }
    }
}

/// A candidate of the search.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    evidence: f64,
    revolution_ns: f64,
    /// Sectors of a track in the middle of the drive.
    sectors: f64,
    /// The longest time between two reads of a pair.
    window_ns: f64,
}

impl Candidate {
    /// Returns true if no candidate with the same track length has more evidence.
    fn is_peak(&self, all: &[Candidate]) -> bool {
        all.iter().all(|other| other.sectors != self.sectors || other.evidence <= self.evidence)
    }
}

/// Two reads: the distance in sectors, the time between their completions, and their position on
/// the drive (0 to 1).
#[derive(Debug, Clone, Copy)]
struct Pair {
    sectors: f64,
    time_ns: f64,
    position: f64,
}

/// Searches for revolution and track length near the spread of service times.
///
/// The search starts with the pairs nearest in time, for which a coarse grid suffices, and adds the
/// others as the grid becomes finer.
pub(super) fn find<'a>(reads: impl Iterator<Item = &'a Request>, capacity_sectors: u64, spread: Spread) -> Search {
    let spread_ns = spread.revolution_ns;
    let range = (SEARCH_ERRORS * spread.error).clamp(SEARCH_RANGE.0, SEARCH_RANGE.1);
    let pairs = pairs(reads.copied().collect(), capacity_sectors);
    let table = Table::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut guesses = 1.0;
    let mut sectors = TRACK_SECTORS.0;
    while sectors <= TRACK_SECTORS.1 {
        // Outer tracks of zoned disks hold about half as much again as inner ones.
        let mut marks = marks(&pairs, 1.2 * sectors, 0.8 * sectors, f64::INFINITY);
        marks.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        marks.truncate(FIRST_PAIRS);
        let window_ns = marks.last().map_or(0.0, |mark| mark.0.abs()).max(spread_ns);
        let step = (0.3 * spread_ns / window_ns).min(0.005);
        let steps = (range / step).ceil() as i64;
        for index in -steps..=steps {
            let revolution_ns = spread_ns * (1.0 + index as f64 * step);
            let evidence = table.evidence(&marks, revolution_ns);
            // A revolution with little evidence is no candidate for the second best either.
            if evidence > EVIDENCE {
                candidates.push(Candidate { evidence, revolution_ns, sectors, window_ns });
            }
        }
        guesses += 2.0 * steps as f64;
        sectors *= TRACK_SECTORS.2;
    }
    let best = candidates.iter().max_by(|a, b| a.evidence.total_cmp(&b.evidence)).copied();
    let Some(best) = best.filter(|best| best.evidence > guesses.ln() + EVIDENCE) else { return Search::Nothing };
    // The peak of the best one is as wide as a turn within the window.
    let width = (spread_ns / best.window_ns).max(0.01);
    let others = candidates.iter().filter(|other| (other.revolution_ns / best.revolution_ns - 1.0).abs() > width);
    let second = others.max_by(|a, b| a.evidence.total_cmp(&b.evidence));
    let odds = best.evidence - second.map_or(0.0, |second| second.evidence);
    // The best revolution has a peak for several track lengths; refinement tells which is right.
    let peaks = candidates.iter().filter(|other| {
        let same = (other.revolution_ns / best.revolution_ns - 1.0).abs() <= width;
        same && other.evidence >= PEAK_SHARE * best.evidence && other.is_peak(&candidates)
    });
    let refined = peaks.map(|peak| refine(&table, &pairs, *peak));
    // Where pairs agree as well with several lengths, that of a zoned disk is likelier.
    let agreement = |tracks: &Tracks| {
        let zoned = (tracks.outer_sectors / tracks.inner_sectors / ZONED).ln().abs();
        tracks.coherence.powi(2) * tracks.pairs as f64 - ZONED_EVIDENCE * zoned
    };
    let tracks = refined.max_by(|a, b| agreement(a).total_cmp(&agreement(b)));
    let Some(tracks) = tracks.map(|tracks| Tracks { odds: Odds(odds), ..tracks }) else { return Search::Nothing };
    if odds < ODDS || tracks.coherence < COHERENCE {
        return Search::Doubtful(tracks, second.map_or(spread_ns, |second| second.revolution_ns));
    }
    Search::Found(tracks)
}

impl Spread {
    /// The usual speed near the spread of service times, in ns a revolution; the spread itself
    /// unless there is just one.
    pub(super) fn usual_ns(self) -> f64 {
        let range = (USUAL_ERRORS * self.error).min(USUAL_RANGE);
        let near = |usual: &f64| (usual / self.revolution_ns - 1.0).abs() < range;
        let mut usual = USUAL_RPM.iter().map(|rpm| 6e10 / rpm).filter(near);
        match (usual.next(), usual.next()) {
            (Some(only), None) => only,
            _ => self.revolution_ns,
        }
    }
}

/// Returns true for the revolution of a usual speed.
pub(super) fn is_usual(revolution_ns: f64) -> bool {
    USUAL_RPM.iter().any(|rpm| (6e10 / rpm - revolution_ns).abs() < 1.0)
}

/// Pairs of reads of equal size, nearest first.
fn pairs(mut reads: Vec<Request>, capacity_sectors: u64) -> Vec<Pair> {
    reads.sort_by_key(|read| (read.sectors, read.sector));
    let mut pairs: Vec<Pair> = Vec::new();
    for (index, first) in reads.iter().enumerate() {
        let reach = (NEAR * 1.2 * TRACK_SECTORS.1) as u64;
        let near = |second: &&Request| second.sectors == first.sectors && second.sector - first.sector <= reach;
        for second in reads[index + 1..].iter().take(8).take_while(near) {
            pairs.push(Pair {
                sectors: (second.sector - first.sector) as f64,
                time_ns: second.completion_ns - first.completion_ns,
                position: first.sector as f64 / capacity_sectors.max(1) as f64,
            });
        }
    }
    pairs.sort_by(|a, b| a.sectors.total_cmp(&b.sectors));
    pairs
}

/// Time and angle between the reads of pairs at most `window_ns` apart, for tracks of `outer` to
/// `inner` sectors.
fn marks(pairs: &[Pair], outer: f64, inner: f64, window_ns: f64) -> Vec<(f64, f64)> {
    let turns = |pair: &Pair| (pair.time_ns, pair.sectors / (outer + (inner - outer) * pair.position));
    let near = pairs.iter().map(turns).take_while(|mark| mark.1 < NEAR);
    near.filter(|mark| mark.0.abs() <= window_ns).take(PAIRS).collect()
}

/// Refines the best guess with finer grids and with pairs from a growing window of time.
fn refine(table: &Table, pairs: &[Pair], guess: Candidate) -> Tracks {
    let Candidate { mut revolution_ns, mut window_ns, sectors, .. } = guess;
    let (mut outer, mut inner, mut ratio) = (1.2 * sectors, 0.8 * sectors, 0.06);
    let longest_ns = pairs.iter().map(|pair| pair.time_ns.abs()).fold(window_ns, f64::max);
    loop {
        let evidence = |outer: f64, inner: f64, ns: f64| table.evidence(&marks(pairs, outer, inner, window_ns), ns);
        let around = |value: f64, step: f64, steps: i32| {
            (-steps..=steps).map(move |index| value * (1.0 + f64::from(index) * step))
        };
        // Twice, because a better revolution yields a better track length.
        for _ in 0..2 {
            let mut best = (evidence(outer, inner, revolution_ns), outer, inner);
            for outer in around(outer, ratio, 3) {
                for inner in around(inner, ratio, 3).filter(|inner| *inner <= outer * 1.02) {
                    let found = evidence(outer, inner, revolution_ns);
                    best = if found > best.0 { (found, outer, inner) } else { best };
                }
            }
            (outer, inner) = (best.1, best.2);
            let marks = marks(pairs, outer, inner, window_ns);
            for part in [0.03, 0.003] {
                let steps = around(revolution_ns, part * revolution_ns / window_ns, 16);
                let nearest = steps.map(|ns| (table.evidence(&marks, ns), ns));
                revolution_ns = nearest.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(revolution_ns, |best| best.1);
            }
        }
        if window_ns >= longest_ns && ratio < 0.01 {
            let marks = marks(pairs, outer, inner, window_ns);
            let coherence = (table.evidence(&marks, revolution_ns) / marks.len().max(1) as f64).sqrt();
            let pairs = marks.len();
            let odds = Odds(0.0);
            return Tracks { revolution_ns, outer_sectors: outer, inner_sectors: inner, coherence, pairs, odds };
        }
        (window_ns, ratio) = ((window_ns * 3.0).min(longest_ns), ratio / 1.5);
    }
}

/// A table of cosines: the search evaluates a hundred million of them.
struct Table(Vec<f64>);

impl Table {
    fn new() -> Table {
        Table((0..1024).map(|index| (TAU * f64::from(index) / 1024.0).cos()).collect())
    }

    /// The negative logarithm of the probability that marks agree around 0 by chance (Rayleigh's
    /// test for a known direction).
    fn evidence(&self, marks: &[(f64, f64)], revolution_ns: f64) -> f64 {
        let per_ns = 1.0 / revolution_ns;
        let cosine = |(time_ns, angle): &(f64, f64)| {
            // A negative number of steps wraps as angles do, in two's complement.
            let step = ((time_ns * per_ns - angle) * 1024.0).round() as i64 & 1023;
            self.0.get(step as usize).copied().unwrap_or(0.0)
        };
        let sum: f64 = marks.iter().map(cosine).sum();
        if sum <= 0.0 { 0.0 } else { sum * sum / marks.len().max(1) as f64 }
    }
}
