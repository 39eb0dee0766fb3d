//! The time of a revolution. One sector can be written once in each revolution, so its writes
//! complete at multiples of a period.

use super::under_test::DriveUnderTest;
use super::{ProbeError, Rotation};
use crate::random::SplitMix64;

const WRITES: usize = 200;
/// The longest pause between writes, so that they are different numbers of revolutions apart.
const WAIT_NS_MAX: u64 = 50_000_000;
/// Periods that count as a rotation: 120,000 rpm to 600 rpm.
const PERIOD_NS: std::ops::RangeInclusive<f64> = 5e5..=1e8;
/// The largest deviation of a write, as a share of the period.
const RESIDUE: f64 = 0.01;
/// The number of first sectors that are tried until one can be written.
const TRIES: u64 = 100;

pub(super) fn probe(subject: &mut DriveUnderTest) -> Result<Option<Rotation>, ProbeError> {
    subject.needs(TRIES * 2)?;
    let Some(sector) = writable(subject, 0)? else { return Ok(None) };
    let mut random = SplitMix64::new(1);
    let mut ends = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        subject.wait(random.below(WAIT_NS_MAX));
        if subject.write_media(sector)?.is_some() {
            ends.push(subject.now_ns);
        }
    }
    let gaps: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let Some((revolution_ns, residue_ns)) = period(&gaps) else { return Ok(None) };
    let first_track_sectors = first_track_sectors(subject, sector, revolution_ns)?;
    Ok(first_track_sectors.map(|sectors| Rotation { revolution_ns, residue_ns, first_track_sectors: sectors }))
}

/// The first writable sector at or after `from`.
fn writable(subject: &mut DriveUnderTest, from: u64) -> Result<Option<u64>, ProbeError> {
    for sector in from..from + TRIES {
        if subject.write_media(sector)?.is_some() {
            return Ok(Some(sector));
        }
    }
    subject.notes.push(format!("none of the sectors {from} to {} can be written", from + TRIES - 1));
    Ok(None)
}

/// The longest period of which all gaps are multiples, and the largest deviation. Gaps adjacent in
/// size are nearly equal or at least a period apart.
fn period(gaps: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let mut period = steps.filter(|step| step >= PERIOD_NS.start()).fold(f64::INFINITY, f64::min);
    if !PERIOD_NS.contains(&period) {
        return None;
    }
    // Each gap is a few periods long, so rounding yields their number. All gaps together yield the
    // period.
    for _ in 0..3 {
        let periods: f64 = gaps.iter().map(|gap| (gap / period).round()).sum();
        period = gaps.iter().sum::<f64>() / periods;
    }
    let residue = gaps.iter().map(|gap| (gap - (gap / period).round() * period).abs()).fold(0.0, f64::max);
    (residue <= RESIDUE * period).then_some((period, residue))
}

/// Sectors of the track of `sector`. One sector is the share of a revolution by which the next one
/// completes later.
fn first_track_sectors(subject: &mut DriveUnderTest, sector: u64, period: f64) -> Result<Option<u32>, ProbeError> {
    // First with a distance of eight sectors, then with a larger distance within half a track.
    let Some(near) = angle(subject, sector, sector + 8, period)?.filter(|angle| *angle > 1e-6) else {
        return Ok(None);
    };
    let apart = (4.0 / near).round().clamp(8.0, 4096.0) as u64;
    let far = angle(subject, sector, (sector + apart).min(subject.capacity_sectors() - 1), period)?;
    Ok(Some(far.filter(|angle| *angle > 1e-6).map_or(8.0 / near, |far| apart as f64 / far).round() as u32))
}

/// The angle in revolutions from the end of sector `from` to that of sector `to`.
pub(super) fn angle(subject: &mut DriveUnderTest, from: u64, to: u64, period: f64) -> Result<Option<f64>, ProbeError> {
    if subject.write_media(from)?.is_none() {
        return Ok(None);
    }
    let start_ns = subject.now_ns;
    if subject.write_media(to)?.is_none() {
        return Ok(None);
    }
    let revolutions = (subject.now_ns - start_ns) as f64 / period;
    Ok(Some(revolutions - revolutions.floor()))
}

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn period_is_found_among_its_multiples() {
        let gaps: Vec<f64> = [3, 7, 4, 5, 3, 9, 6].map(|count| f64::from(count) * 8_333_333.3).into();
        let (found, residue) = period(&gaps).expect("a period");
        assert!((found - 8_333_333.3).abs() < 1.0 && residue < 1.0, "{found} {residue}");
    }

    #[test]
    fn gaps_of_random_lengths_have_no_period() {
        let gaps: Vec<f64> = (0..100u32).map(|n| 1e6 + f64::from(n * n % 97) * 517_331.7).collect();
        assert_eq!(period(&gaps), None);
        assert_eq!(period(&[1e7; 50]), None);
        assert_eq!(period(&[]), None);
    }
}
