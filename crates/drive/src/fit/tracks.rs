//! What pairs of reads on one track tell: the time of a revolution, and how many sectors a track has.
//!
//! Two reads of the same size on the same track complete at angles that lie as far apart as their sectors. So the time between them
//! is a whole number of revolutions and a part that their distance in sectors gives, whatever seeks went before.

use std::f64::consts::TAU;

use super::requests::Request;

/// Usual speeds of spindles, in revolutions a minute.
const USUAL_RPM: [f64; 8] = [3600.0, 4200.0, 5400.0, 5900.0, 7200.0, 10_000.0, 12_000.0, 15_000.0];
/// How far a usual speed may be from what the spread of service times says.
const USUAL_RANGE: f64 = 0.12;
/// How far the search goes to either side of the spread.
const SEARCH_RANGE: f64 = 0.12;
/// The most pairs that are looked at, the nearest first.
const PAIRS: usize = 300;
/// Pairs that the search begins with.
const FIRST_PAIRS: usize = 80;
/// Sectors on a track: the fewest and the most that are tried, and the step from one to the next.
const TRACK_SECTORS: (f64, f64, f64) = (40.0, 6000.0, 1.25);
/// The part of a track that the reads of a pair may be apart: more of them lie on one track the nearer they are.
const NEAR: f64 = 0.4;
/// How much likelier than the best of as many guesses an agreement must be (its logarithm).
const EVIDENCE: f64 = 7.0;

/// What the pairs told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tracks {
    pub(super) revolution_ns: f64,
    /// Sectors a track at the first sector and at the last one.
    pub(super) outer_sectors: f64,
    pub(super) inner_sectors: f64,
    /// How well the pairs agree: 1 for always, about 0 for by chance.
    pub(super) coherence: f64,
    pub(super) pairs: usize,
}

/// A guess of the search.
#[derive(Debug, Clone, Copy)]
struct Guess {
    evidence: f64,
    revolution_ns: f64,
    /// On a track in the middle.
    sectors: f64,
    /// The longest time between two reads that it was made from.
    window_ns: f64,
}

/// Two reads: how many sectors lie between them, the time between their completions, and where on the drive they are (0 to 1).
#[derive(Debug, Clone, Copy)]
struct Pair {
    sectors: f64,
    time_ns: f64,
    place: f64,
}

/// Looks for revolution and track length near `spread_ns`; `None` when the pairs agree no better than by chance.
///
/// The search begins with the pairs that are nearest in time, for which a coarse grid will do, and lets in the others as the grid becomes
/// finer.
pub(super) fn find<'a>(
    reads: impl Iterator<Item = &'a Request>,
    capacity_sectors: u64,
    spread_ns: f64,
) -> Option<Tracks> {
    let pairs = pairs(reads.copied().collect(), capacity_sectors);
    let table = Table::new();
    let mut best: Option<Guess> = None;
    let mut guesses = 1.0;
    let mut sectors = TRACK_SECTORS.0;
    while sectors <= TRACK_SECTORS.1 {
        // Tracks of disks with zones hold about half as much again outside as inside.
        let mut marks = marks(&pairs, 1.2 * sectors, 0.8 * sectors, f64::INFINITY);
        marks.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        marks.truncate(FIRST_PAIRS);
        let window_ns = marks.last().map_or(0.0, |mark| mark.0.abs()).max(spread_ns);
        let step = (0.3 * spread_ns / window_ns).min(0.005);
        let steps = (SEARCH_RANGE / step).ceil() as i64;
        for index in -steps..=steps {
            let revolution_ns = spread_ns * (1.0 + index as f64 * step);
            let evidence = table.evidence(&marks, revolution_ns);
            if best.is_none_or(|best| evidence > best.evidence) {
                best = Some(Guess { evidence, revolution_ns, sectors, window_ns });
            }
        }
        guesses += 2.0 * steps as f64;
        sectors *= TRACK_SECTORS.2;
    }
    let sure = best.filter(|best| best.evidence > guesses.ln() + EVIDENCE);
    sure.map(|guess| refine(&table, &pairs, guess))
}

/// The usual speed that is nearest to the spread of service times, as ns a revolution; the spread itself when none is near.
pub(super) fn usual_ns(spread_ns: f64) -> f64 {
    let usual = USUAL_RPM.iter().map(|rpm| 6e10 / rpm);
    let nearest = usual.min_by(|a, b| (a / spread_ns).ln().abs().total_cmp(&(b / spread_ns).ln().abs()));
    nearest.filter(|usual| (usual / spread_ns - 1.0).abs() < USUAL_RANGE).unwrap_or(spread_ns)
}

/// Pairs of reads of equal sizes, the nearest first.
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
                place: first.sector as f64 / capacity_sectors.max(1) as f64,
            });
        }
    }
    pairs.sort_by(|a, b| a.sectors.total_cmp(&b.sectors));
    pairs
}

/// Time between the reads of pairs that are no longer than `window_ns` apart, and the angle between them, for tracks that hold `outer` to
/// `inner` sectors.
fn marks(pairs: &[Pair], outer: f64, inner: f64, window_ns: f64) -> Vec<(f64, f64)> {
    let turns = |pair: &Pair| (pair.time_ns, pair.sectors / (outer + (inner - outer) * pair.place));
    let near = pairs.iter().map(turns).take_while(|mark| mark.1 < NEAR);
    near.filter(|mark| mark.0.abs() <= window_ns).take(PAIRS).collect()
}

/// Finer and finer grids around the best guess, with pairs from an ever wider window of time.
fn refine(table: &Table, pairs: &[Pair], guess: Guess) -> Tracks {
    let Guess { mut revolution_ns, mut window_ns, sectors, .. } = guess;
    let (mut outer, mut inner, mut ratio) = (1.2 * sectors, 0.8 * sectors, 0.06);
    let longest_ns = pairs.iter().map(|pair| pair.time_ns.abs()).fold(window_ns, f64::max);
    loop {
        let evidence = |outer: f64, inner: f64, ns: f64| table.evidence(&marks(pairs, outer, inner, window_ns), ns);
        let around = |value: f64, step: f64, steps: i32| {
            (-steps..=steps).map(move |index| value * (1.0 + f64::from(index) * step))
        };
        // Twice, for a better time of a revolution shows a better length of tracks.
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
            return Tracks { revolution_ns, outer_sectors: outer, inner_sectors: inner, coherence, pairs: marks.len() };
        }
        (window_ns, ratio) = ((window_ns * 3.0).min(longest_ns), ratio / 1.5);
    }
}

/// Cosines in a table: the search takes a hundred million of them.
struct Table(Vec<f64>);

impl Table {
    fn new() -> Table {
        Table((0..1024).map(|index| (TAU * f64::from(index) / 1024.0).cos()).collect())
    }

    /// How unlikely it is by chance that marks agree around 0: the negative logarithm of the probability (Rayleigh's test for a known
    /// direction).
    fn evidence(&self, marks: &[(f64, f64)], revolution_ns: f64) -> f64 {
        let per_ns = 1.0 / revolution_ns;
        let cosine = |(time_ns, angle): &(f64, f64)| {
            // A negative number of steps wraps as angles do, for it is a two's complement.
            let step = ((time_ns * per_ns - angle) * 1024.0).round() as i64 & 1023;
            self.0.get(step as usize).copied().unwrap_or(0.0)
        };
        let sum: f64 = marks.iter().map(cosine).sum();
        if sum <= 0.0 { 0.0 } else { sum * sum / marks.len().max(1) as f64 }
    }
}
