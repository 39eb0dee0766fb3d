//! Random block numbers with uneven distributions.

use hoistway_fio::{Distribution, SplitEntry, Zone};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::mix;
use crate::permutation::Permutation;

/// Numbers that a draw of files has for each file.
pub(crate) const DRAWS_OF_FILE: u64 = 1024;

/// Draws block numbers below a number of blocks.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Uniform {
        blocks: u64,
    },
    Zipf {
        law: Zipf,
        places: Places,
    },
    Pareto {
        power: f64,
        places: Places,
    },
    Normal {
        /// Width of the even draw that is added to the mean, as a part of the blocks.
        spread: f64,
        places: Places,
    },
    Zoned {
        blocks: u64,
        zones: Vec<Zone>,
    },
    /// Zones of this many blocks, each with its share in percent.
    ZonedBlocks {
        blocks: u64,
        zones: Vec<(u8, u64)>,
    },
    /// Draws that are moved, so that the most popular block comes to a given place.
    Moved {
        draw: Box<Draw>,
        blocks: u64,
        by: u64,
    },
}

/// The block of each rank of Zipf, Pareto and the normal distribution.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    /// Popular blocks are not contiguous.
    Scattered(Permutation),
    /// Ranks are contiguous: they begin at block `first`, and continue at block 0 after the last.
    From { first: u64, blocks: u64 },
}

impl Places {
    fn get(&self, rank: u64) -> u64 {
        match self {
            Places::Scattered(permutation) => permutation.get(rank),
            Places::From { first, blocks } => (first + rank) % blocks,
        }
    }

    fn blocks(&self) -> u64 {
        match self {
            Places::Scattered(permutation) => permutation.len(),
            Places::From { blocks, .. } => *blocks,
        }
    }
}

impl Draw {
    /// Creates the draw of block numbers of blocks of this many bytes.
    pub fn of_bytes(distribution: &Distribution, blocks: u64, block_bytes: u64, key: u64) -> Draw {
        let blocks = blocks.max(1);
        Draw::with_places(distribution, Places::Scattered(Permutation::new(blocks, key)), block_bytes)
    }

    /// Creates the draw of the file to which the next request goes, as fio 3.33 makes it: among
    /// [`DRAWS_OF_FILE`] contiguous numbers for each file. But for the normal distribution, chance
    /// decides which number is the most popular one.
    pub fn of_files(distribution: &Distribution, files: u64, key: u64) -> Draw {
        let blocks = files.max(1) * DRAWS_OF_FILE;
        let first = if matches!(distribution, Distribution::Normal(_)) { 0 } else { mix(key) % blocks };
        Draw::with_places(distribution, Places::From { first, blocks }, 1)
    }

    fn with_places(distribution: &Distribution, places: Places, block_bytes: u64) -> Draw {
        let blocks = places.blocks();
        match distribution {
            Distribution::Random => Draw::Uniform { blocks },
            Distribution::Zipf(theta) => Draw::Zipf { law: Zipf::new(blocks, *theta), places },
            // The self-similar law of Gray et al., "Quickly generating billion-record synthetic
            // databases" (SIGMOD 1994): a share h of the blocks gets 1 - h of the accesses, and so
            // on within each share.
            Distribution::Pareto(h) => Draw::Pareto { power: h.ln() / (1.0 - h).ln(), places },
            Distribution::Normal(percent) => {
                Draw::Normal { spread: percent.min(NORMAL_SPREAD_MAX_PERCENT) / 100.0, places }
            }
            Distribution::Zoned(zones) => Draw::Zoned { blocks, zones: zones.clone() },
            Distribution::ZonedBytes(zones) => {
                let of = |zone: &SplitEntry| (zone.percent, (zone.bytes / block_bytes.max(1)).max(1));
                Draw::ZonedBlocks { blocks, zones: zones.iter().map(of).collect() }
            }
            Distribution::Centred(law, centre) => {
                let draw = Draw::with_places(law, places, block_bytes);
                let popular = match &draw {
                    Draw::Zipf { places, .. } | Draw::Pareto { places, .. } => places.get(0),
                    Draw::Normal { places, .. } => places.get(blocks / 2),
                    _ => blocks / 2,
                };
                let place = ((centre * blocks as f64) as u64).min(blocks - 1);
                Draw::Moved { draw: Box::new(draw), blocks, by: (place + blocks - popular) % blocks }
            }
        }
    }

    pub fn draw(&self, rng: &mut Pcg64) -> u64 {
        match self {
            Draw::Uniform { blocks } => rng.random_range(0..*blocks),
            Draw::Zipf { law, places } => places.get(law.draw(rng) - 1),
            Draw::Pareto { power, places } => {
                let blocks = places.blocks();
                let rank = (blocks as f64 * unit(rng).powf(*power)) as u64;
                places.get(rank.min(blocks - 1))
            }
            Draw::Normal { spread, places } => places.get(normal(rng, places.blocks(), *spread)),
            Draw::Zoned { blocks, zones } => zoned(rng, *blocks, zones),
            Draw::ZonedBlocks { blocks, zones } => zoned_blocks(rng, *blocks, zones),
            Draw::Moved { draw, blocks, by } => (draw.draw(rng) + by) % blocks,
        }
    }
}

/// Zipf's law over 1..=n: the probability of k is proportional to k^-theta.
///
/// Rejection-inversion (Hörmann & Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6(3), 1996) takes constant time for any n.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: u64,
    theta: f64,
    /// The integral of x^-theta up to 1.5, minus the weight of 1; and up to n + 0.5.
    low: f64,
    high: f64,
    /// Distance from a whole number below which a value is accepted without a test.
    shortcut: f64,
}

impl Zipf {
    pub fn new(n: u64, theta: f64) -> Zipf {
        let mut law = Zipf { n, theta, low: 0.0, high: 0.0, shortcut: 0.0 };
        law.low = law.integral(1.5) - 1.0;
        law.high = law.integral(n as f64 + 0.5);
        law.shortcut = 2.0 - law.inverse(law.integral(2.5) - law.weight(2.0));
        law
    }

    pub fn draw(&self, rng: &mut Pcg64) -> u64 {
        loop {
            let area = self.high + unit(rng) * (self.low - self.high);
            let x = self.inverse(area);
            let k = (x.round() as u64).clamp(1, self.n);
            let kf = k as f64;
            if kf - x <= self.shortcut || area >= self.integral(kf + 0.5) - self.weight(kf) {
                return k;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    fn integral(&self, x: f64) -> f64 {
        (x.powf(1.0 - self.theta) - 1.0) / (1.0 - self.theta)
    }

    fn inverse(&self, area: f64) -> f64 {
        (1.0 + area * (1.0 - self.theta)).max(f64::MIN_POSITIVE).powf(1.0 / (1.0 - self.theta))
    }
}

/// A uniform number from 0 to below 1.
pub fn unit(rng: &mut Pcg64) -> f64 {
    rng.random_range(0..1u64 << 53) as f64 / (1u64 << 53) as f64
}

/// A number of the standard normal distribution, by the polar method of Marsaglia (1964).
pub fn standard_normal(rng: &mut Pcg64) -> f64 {
    loop {
        let (x, y) = (2.0 * unit(rng) - 1.0, 2.0 * unit(rng) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// The largest deviation that `normal:DEVIATION` has an effect up to, in percent.
const NORMAL_SPREAD_MAX_PERCENT: f64 = 50.0;
/// Even draws whose mean is nearly normal.
const NORMAL_DRAWS: u32 = 12;

/// A number around the middle, as fio 3.33 draws it: the mean of even draws, whose standard
/// deviation is a twelfth of the blocks, and on top an even draw over the deviation of the option.
/// Measured by how often 200,000 requests returned to each of 1024 blocks.
fn normal(rng: &mut Pcg64, blocks: u64, spread: f64) -> u64 {
    let mean = (0..NORMAL_DRAWS).map(|_| unit(rng)).sum::<f64>() / f64::from(NORMAL_DRAWS);
    let place = (mean + (unit(rng) - 0.5) * spread).rem_euclid(1.0);
    ((place * blocks as f64) as u64).min(blocks - 1)
}

fn zoned(rng: &mut Pcg64, blocks: u64, zones: &[Zone]) -> u64 {
    let mut ticket = rng.random_range(0..100u32);
    let mut before = 0u64;
    for zone in zones {
        let span = u64::from(zone.span_percent);
        if ticket < u32::from(zone.access_percent) {
            let at = |percent: u64| blocks / 100 * percent + blocks % 100 * percent / 100;
            let (start, end) = (at(before), at(before + span));
            return if end > start { rng.random_range(start..end) } else { start.min(blocks - 1) };
        }
        ticket -= u32::from(zone.access_percent);
        before += span;
    }
    rng.random_range(0..blocks)
}

fn zoned_blocks(rng: &mut Pcg64, blocks: u64, zones: &[(u8, u64)]) -> u64 {
    let mut ticket = rng.random_range(0..100u8);
    let mut start = 0u64;
    for (percent, count) in zones {
        let end = start.saturating_add(*count).min(blocks);
        if ticket < *percent && end > start {
            return rng.random_range(start..end);
        }
        ticket -= (*percent).min(ticket);
        start = end;
    }
    rng.random_range(0..blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn ranks(draw: &Draw) -> Vec<f64> {
        let mut rng = Pcg64::new(1, 1);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..DRAWS {
            *counts.entry(draw.draw(&mut rng)).or_insert(0u32) += 1;
        }
        let mut shares: Vec<f64> = counts.into_values().map(|count| f64::from(count) / DRAWS as f64).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    #[test]
    fn zipf_shares_fall_with_the_power_of_the_rank() {
        for theta in [0.7, 1.2] {
            let shares = ranks(&Draw::of_bytes(&Distribution::Zipf(theta), 1000, 4096, 7));
            let sum: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
            for k in [1usize, 2, 5, 10] {
                let expected = (k as f64).powf(-theta) / sum;
                assert!(
                    (shares[k - 1] / expected - 1.0).abs() < 0.06,
                    "theta {theta}, rank {k}: {} {expected}",
                    shares[k - 1]
                );
            }
        }
    }

    #[test]
    fn a_pareto_of_two_tenths_puts_four_fifths_of_the_accesses_on_a_fifth_of_the_blocks() {
        let shares = ranks(&Draw::of_bytes(&Distribution::Pareto(0.2), 1000, 4096, 7));
        let first: f64 = shares.iter().take(200).sum();
        assert!((first - 0.8).abs() < 0.02, "{first}");
    }

    #[test]
    fn a_normal_distribution_is_as_wide_as_that_of_fio() {
        // Of 200,000 requests of fio 3.33 to 1024 blocks: the blocks that were touched, and the
        // requests to the 512th of them by popularity.
        for (percent, touched, to_median) in [(0.0, 625, 10), (10.0, 663, 14), (20.0, 738, 35), (50.0, 986, 191)] {
            let draw = Draw::of_bytes(&Distribution::Normal(percent), 1024, 4096, 7);
            let mut rng = Pcg64::new(1, 1);
            let mut counts = vec![0i32; 1024];
            (0..200_000).for_each(|_| counts[draw.draw(&mut rng) as usize] += 1);
            counts.sort_unstable_by_key(|count| -count);
            let different = counts.iter().filter(|count| **count > 0).count() as i32;
            assert!((different - touched).abs() < 20, "normal:{percent}: {different} of {touched}");
            assert!(
                (counts[511] - to_median).abs() < 6 + to_median / 20,
                "normal:{percent}: {} of {to_median}",
                counts[511]
            );
        }
        let beyond = |percent| {
            let mut rng = Pcg64::new(1, 1);
            Draw::of_bytes(&Distribution::Normal(percent), 1024, 4096, 7).draw(&mut rng)
        };
        assert_eq!(beyond(50.0), beyond(99.0));
    }

    #[test]
    fn files_are_drawn_as_often_as_by_fio() {
        // Shares of 40,000 requests of fio 3.33: the most popular of four files, and the files
        // behind it in order. The place of the most popular number in its file is a matter of
        // chance.
        let measured = [
            (Distribution::Zipf(1.2), [0.929, 0.039, 0.019, 0.013]),
            (Distribution::Zipf(0.5), [0.472, 0.223, 0.169, 0.136]),
            (Distribution::Pareto(0.3), [0.639, 0.169, 0.107, 0.084]),
        ];
        for (law, expected) in measured {
            let places = Places::From { first: 200, blocks: 4 * DRAWS_OF_FILE };
            let draw = Draw::with_places(&law, places, 1);
            let mut rng = Pcg64::new(1, 1);
            let mut counts = [0u32; 4];
            (0..DRAWS).for_each(|_| counts[(draw.draw(&mut rng) / DRAWS_OF_FILE) as usize] += 1);
            let shares = counts.map(|count| f64::from(count) / DRAWS as f64);
            let is_near = shares.iter().zip(expected).all(|(here, there)| (here - there).abs() < 0.015);
            assert!(is_near, "{law:?}: {shares:?}, {expected:?} in fio");
        }
        let mut rng = Pcg64::new(1, 1);
        let draw = Draw::of_files(&Distribution::Normal(30.0), 4, 7);
        let outer = (0..DRAWS).filter(|_| draw.draw(&mut rng) / DRAWS_OF_FILE == 0).count() as f64 / DRAWS as f64;
        assert!((outer - 0.016).abs() < 0.005, "{outer} of the requests to the first of four files");
    }

    #[test]
    fn zones_get_their_share_of_the_accesses() {
        let zones = vec![Zone { access_percent: 60, span_percent: 10 }, Zone { access_percent: 40, span_percent: 90 }];
        let draw = Draw::of_bytes(&Distribution::Zoned(zones), 1000, 4096, 7);
        let mut rng = Pcg64::new(1, 1);
        let first = (0..DRAWS).filter(|_| draw.draw(&mut rng) < 100).count();
        assert!((first as f64 / DRAWS as f64 - 0.6).abs() < 0.01, "{first}");
    }

    #[test]
    fn zones_of_bytes_get_their_share_and_the_most_popular_block_its_place() {
        let zones = [(50, 16 << 10), (50, 16 << 10)].map(|(percent, bytes)| SplitEntry { percent, bytes });
        let draw = Draw::of_bytes(&Distribution::ZonedBytes(zones.to_vec()), 1000, 4096, 7);
        let mut rng = Pcg64::new(1, 1);
        let drawn: Vec<u64> = (0..DRAWS).map(|_| draw.draw(&mut rng)).collect();
        let first = drawn.iter().filter(|block| **block < 4).count() as f64 / DRAWS as f64;
        assert!(drawn.iter().all(|block| *block < 8) && (first - 0.5).abs() < 0.01, "{first}");
        let centred = Distribution::Centred(Box::new(Distribution::Zipf(1.2)), 0.3);
        let draw = Draw::of_bytes(&centred, 1000, 4096, 7);
        let mut counts = vec![0u32; 1000];
        (0..DRAWS).for_each(|_| counts[draw.draw(&mut rng) as usize] += 1);
        assert_eq!((0..1000).max_by_key(|block| counts[*block]), Some(300));
    }
}
