//! Random block numbers with uneven distributions.

use hoistway_fio::{Distribution, SplitEntry, Zone};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::permutation::Permutation;

/// Draws block numbers below a number of blocks. A permutation scatters Zipf and Pareto ranks, so
/// popular blocks are not contiguous.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Uniform {
        blocks: u64,
    },
    Zipf {
        law: Zipf,
        scatter: Permutation,
    },
    Pareto {
        power: f64,
        scatter: Permutation,
    },
    Normal {
        blocks: u64,
        deviation: f64,
    },
    Zoned {
        blocks: u64,
        zones: Vec<Zone>,
    },
    /// Zones of so many blocks, each with its share in percent.
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

impl Draw {
    pub fn new(distribution: &Distribution, blocks: u64, key: u64) -> Draw {
        Draw::of_bytes(distribution, blocks, 4096, key)
    }

    /// Creates the draw of block numbers of blocks of so many bytes.
    pub fn of_bytes(distribution: &Distribution, blocks: u64, block_bytes: u64, key: u64) -> Draw {
        let blocks = blocks.max(1);
        let scatter = Permutation::new(blocks, key);
        match distribution {
            Distribution::Random => Draw::Uniform { blocks },
            Distribution::Zipf(theta) => Draw::Zipf { law: Zipf::new(blocks, *theta), scatter },
            // The self-similar law of Gray et al., "Quickly generating billion-record synthetic
            // databases" (SIGMOD 1994): a share h of the blocks gets 1 - h of the accesses, and so
            // on within each share.
            Distribution::Pareto(h) => Draw::Pareto { power: h.ln() / (1.0 - h).ln(), scatter },
            Distribution::Normal(percent) => Draw::Normal { blocks, deviation: percent / 100.0 * blocks as f64 },
            Distribution::Zoned(zones) => Draw::Zoned { blocks, zones: zones.clone() },
            Distribution::ZonedBytes(zones) => {
                let of = |zone: &SplitEntry| (zone.percent, (zone.bytes / block_bytes.max(1)).max(1));
                Draw::ZonedBlocks { blocks, zones: zones.iter().map(of).collect() }
            }
            Distribution::Centred(law, centre) => {
                let draw = Draw::of_bytes(law, blocks, block_bytes, key);
                let popular = match &draw {
                    Draw::Zipf { scatter, .. } | Draw::Pareto { scatter, .. } => scatter.get(0),
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
            Draw::Zipf { law, scatter } => scatter.get(law.draw(rng) - 1),
            Draw::Pareto { power, scatter } => {
                let blocks = scatter.len();
                let rank = (blocks as f64 * unit(rng).powf(*power)) as u64;
                scatter.get(rank.min(blocks - 1))
            }
            Draw::Normal { blocks, deviation } => normal(rng, *blocks, *deviation),
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

/// A number around the middle; a draw outside the range is repeated.
fn normal(rng: &mut Pcg64, blocks: u64, deviation: f64) -> u64 {
    let middle = blocks as f64 / 2.0;
    if deviation <= 0.0 {
        return blocks / 2;
    }
    loop {
        let value = middle + deviation * standard_normal(rng);
        if (0.0..blocks as f64).contains(&value) {
            return (value as u64).min(blocks - 1);
        }
    }
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
            let shares = ranks(&Draw::new(&Distribution::Zipf(theta), 1000, 7));
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
        let shares = ranks(&Draw::new(&Distribution::Pareto(0.2), 1000, 7));
        let first: f64 = shares.iter().take(200).sum();
        assert!((first - 0.8).abs() < 0.02, "{first}");
    }

    #[test]
    fn a_normal_distribution_is_centred() {
        let draw = Draw::new(&Distribution::Normal(10.0), 10_000, 7);
        let mut rng = Pcg64::new(1, 1);
        let near = (0..DRAWS).filter(|_| (4000..6000).contains(&draw.draw(&mut rng))).count();
        // Within one standard deviation: 68.3 %.
        assert!((near as f64 / DRAWS as f64 - 0.683).abs() < 0.01, "{near}");
    }

    #[test]
    fn zones_get_their_share_of_the_accesses() {
        let zones = vec![Zone { access_percent: 60, span_percent: 10 }, Zone { access_percent: 40, span_percent: 90 }];
        let draw = Draw::new(&Distribution::Zoned(zones), 1000, 7);
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
        let draw = Draw::new(&centred, 1000, 7);
        let mut counts = vec![0u32; 1000];
        (0..DRAWS).for_each(|_| counts[draw.draw(&mut rng) as usize] += 1);
        assert_eq!((0..1000).max_by_key(|block| counts[*block]), Some(300));
    }
}
