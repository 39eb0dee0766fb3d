//! Seek times from service times: the rest after the mean rotational latency and the transfer.

use crate::command::Op;

use super::layout::Layout;
use super::requests::{Request, Requests};
use super::stats::{line, mean, percentile, rising};

/// Points of the curve, evenly spaced in the square root of the distance.
const POINTS: usize = 14;
/// Straight lines in the resulting table for each interval of the curve.
const LINES: usize = 4;
/// Resistance of the curve to bending, in requests for each point.
const STIFFNESS: f64 = 4.0;
/// A request with a larger error in revolutions is left out, because the drive did background work.
const OUTLIER_REVOLUTIONS: f64 = 2.0;
/// The minimum number of accesses within a cylinder from which the overhead is determined.
const WITHIN_CYLINDER: usize = 30;
/// A slope above this many standard deviations is significant.
const CERTAIN_DEVIATIONS: f64 = 6.0;
/// Default overhead of a command in ms, usual for SCSI and ATA disks.
const USUAL_OVERHEAD_MS: f64 = 0.2;

/// The known parameters: rotation and interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Platter {
    pub(super) revolution_ms: f64,
    pub(super) interface_ms: f64,
    /// True if data cross the interface after the last sector was read, and not while sectors are
    /// read.
    pub(super) store_and_forward: bool,
}

/// The fitted parameters of the arm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arm {
    /// Seek times (cylinders, ms), rising in both.
    pub(super) points_ms: Vec<(u32, f64)>,
    pub(super) overhead_ms: f64,
    /// True if accesses within a cylinder determined the overhead.
    pub(super) overhead_seen: bool,
    /// Additional time of a write, overhead or settling.
    pub(super) write_extra_ms: f64,
    /// Number of reads that the curve is fitted to.
    pub(super) reads: usize,
    /// Number of writes that determined `write_extra_ms`.
    pub(super) writes: usize,
}

/// The service time without mean rotational latency and transfer.
fn movement_ms(request: &Request, layout: &Layout, platter: Platter) -> f64 {
    let sectors = f64::from(request.sectors);
    let per_sector_ms = platter.revolution_ms / f64::from(layout.sectors_per_track(request.sector));
    let transfer_ms = if platter.store_and_forward {
        sectors * (per_sector_ms + platter.interface_ms)
    } else {
        (sectors * per_sector_ms + platter.interface_ms).max(sectors * platter.interface_ms)
    };
    request.service_ms - platter.revolution_ms / 2.0 - transfer_ms
}

fn distance(request: &Request, layout: &Layout) -> u32 {
    layout.cylinder(request.from).abs_diff(layout.cylinder(request.sector))
}

/// Fits the curve, and the overheads from the remainder.
pub(super) fn find(requests: &Requests, layout: &Layout, platter: Platter) -> Arm {
    let moved: Vec<(u32, f64)> = requests
        .positioned(Op::Read)
        .into_iter()
        .map(|request| (distance(request, layout), movement_ms(request, layout, platter)))
        .collect();
    let (within, away): (Vec<_>, Vec<_>) = moved.into_iter().partition(|(distance, _)| *distance == 0);
    let within: Vec<f64> = within.iter().map(|(_, ms)| *ms).collect();
    let far = layout.cylinders.saturating_sub(1).max(1);
    let limit_ms = OUTLIER_REVOLUTIONS * platter.revolution_ms;
    let first = through(&away, far);
    let kept: Vec<(u32, f64)> =
        away.iter().copied().filter(|(distance, ms)| (ms - at(&first, *distance)).abs() < limit_ms).collect();
    let total = through(&kept, far);
    let overhead_seen = within.len() >= WITHIN_CYLINDER;
    let nearest_ms = total.first().map_or(0.0, |point| point.1);
    // Requests at equal gaps may wait for longer: a tenth of all rotational latencies is below a
    // tenth of a revolution.
    let quick_tenth_ms = percentile(&within, 0.1) + 0.4 * platter.revolution_ms;
    let overhead_ms = if overhead_seen { mean(&within).min(quick_tenth_ms) } else { USUAL_OVERHEAD_MS };
    let overhead_ms = overhead_ms.min(nearest_ms).max(0.0);
    let extra: Vec<f64> = requests
        .positioned(Op::Write)
        .into_iter()
        .filter(|_| requests.write_hits.is_none())
        .map(|write| (distance(write, layout), movement_ms(write, layout, platter)))
        .map(|(distance, ms)| ms - if distance == 0 { overhead_ms } else { at(&total, distance) })
        .filter(|ms| ms.abs() < limit_ms)
        .collect();
    Arm {
        points_ms: total.iter().map(|(distance, ms)| (*distance, ms - overhead_ms)).collect(),
        overhead_ms,
        overhead_seen,
        write_extra_ms: mean(&extra),
        reads: kept.len(),
        writes: extra.len(),
    }
}

/// Service times of reads in ms beyond the mean of reads at the same distance and of the same size.
///
/// Long reads are left out: a drive may begin to read in their middle.
pub(super) fn residuals(reads: Vec<&Request>, layout: &Layout) -> Vec<f64> {
    let sizes: Vec<f64> = reads.iter().map(|read| f64::from(read.sectors)).collect();
    let usual_size = percentile(&sizes, 0.5);
    let counts = |read: &&Request| f64::from(read.sectors) <= usual_size && distance(read, layout) > 0;
    let reads: Vec<&Request> = reads.into_iter().filter(counts).collect();
    let far = layout.cylinders.saturating_sub(1).max(1);
    let by_size: Vec<(f64, f64)> = reads.iter().map(|read| (f64::from(read.sectors), read.service_ms)).collect();
    let (_, slope) = line(&by_size);
    let times: Vec<(u32, f64)> =
        reads.iter().map(|read| (distance(read, layout), read.service_ms - slope * f64::from(read.sectors))).collect();
    let curve = through(&times, far);
    times.iter().map(|(distance, ms)| ms - at(&curve, *distance)).collect()
}

impl Arm {
    /// Additional time of reads for each sector in ms if it is significant: transfers are slower
    /// than assumed.
    pub(super) fn missing_ms_per_sector(&self, requests: &Requests, layout: &Layout, platter: Platter) -> Option<f64> {
        let rest = |request: &Request| {
            let distance = distance(request, layout);
            let seek_ms = if distance == 0 { 0.0 } else { at(&self.points_ms, distance) };
            (f64::from(request.sectors), movement_ms(request, layout, platter) - seek_ms - self.overhead_ms)
        };
        let points: Vec<(f64, f64)> = requests.positioned(Op::Read).into_iter().map(rest).collect();
        let (at_zero, slope) = line(&points);
        let squares: f64 = points.iter().map(|(sectors, ms)| (ms - at_zero - slope * sectors).powi(2)).sum();
        let sizes: Vec<f64> = points.iter().map(|point| point.0).collect();
        let spread: f64 = sizes.iter().map(|size| (size - mean(&sizes)).powi(2)).sum();
        let deviation = (squares / points.len().max(1) as f64 / spread.max(1e-9)).sqrt();
        (slope > CERTAIN_DEVIATIONS * deviation).then_some(slope)
    }
}

/// The rising curve nearest to (distance, ms) from 1 to `far`, linear in the square root of the
/// distance.
fn through(moved: &[(u32, f64)], far: u32) -> Vec<(u32, f64)> {
    let last = f64::from(far).sqrt();
    let count = POINTS.min(far as usize).max(1);
    let step = if count > 1 { (last - 1.0) / (count - 1) as f64 } else { 1.0 };
    let mut sums = vec![vec![0.0; count + 1]; count];
    let mut weights = vec![0.0; count];
    for (distance, ms) in moved {
        let position = ((f64::from(*distance).sqrt() - 1.0) / step).clamp(0.0, (count - 1) as f64);
        let left = (position.floor() as usize).min(count.saturating_sub(2));
        let share = position - left as f64;
        let parts = [(left, 1.0 - share), ((left + 1).min(count - 1), share)];
        for (row, part) in parts {
            weights[row] += part;
            parts.iter().for_each(|(column, other)| sums[row][*column] += part * other);
            sums[row][count] += part * ms;
        }
    }
    // Second differences near 0 continue the curve over distances without requests.
    for middle in 1..count.saturating_sub(1) {
        let bend = [(middle - 1, 1.0), (middle, -2.0), (middle + 1, 1.0)];
        for (row, one) in bend {
            bend.iter().for_each(|(column, other)| sums[row][*column] += STIFFNESS * one * other);
        }
    }
    let solved = solve(sums);
    let weighed: Vec<(f64, f64)> = solved.iter().zip(&weights).map(|(ms, weight)| (ms.max(0.0), *weight)).collect();
    tabled(&rising(&weighed), step)
}

/// The curve as a table that is linear in the distance: each interval becomes several lines.
fn tabled(ms: &[f64], step: f64) -> Vec<(u32, f64)> {
    let position = |position: f64| {
        let left = position.floor() as usize;
        let (from, to) = (ms[left], ms[(left + 1).min(ms.len() - 1)]);
        ((1.0 + step * position).powi(2).round() as u32, from + (to - from) * position.fract())
    };
    let last = (ms.len() - 1) * LINES;
    let mut points: Vec<(u32, f64)> = (0..=last).map(|index| position(index as f64 / LINES as f64)).collect();
    points.dedup_by_key(|point| point.0);
    points
}

/// The curve at a distance.
fn at(points: &[(u32, f64)], distance: u32) -> f64 {
    crate::seek::SeekCurve::Table(points.to_vec()).time_ms(distance.max(1), 1)
}

/// Gaussian elimination with pivots. An undetermined unknown becomes 0.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for column in 0..count {
        let pivot = (column..count).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()));
        let Some(pivot) = pivot.filter(|pivot| rows[*pivot][column].abs() > 1e-9) else { continue };
        rows.swap(column, pivot);
        let pivot_row = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != column) {
            let factor = row[column] / pivot_row[column];
            row.iter_mut().zip(&pivot_row).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    rows.iter()
        .enumerate()
        .map(|(index, row)| if row[index].abs() > 1e-9 { row[count] / row[index] } else { 0.0 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let solved = solve(vec![vec![0.0, 2.0, 4.0], vec![1.0, 1.0, 5.0]]);
        assert_eq!(solved, [3.0, 2.0]);
    }

    #[test]
    fn curve_goes_through_its_samples() {
        let shown: Vec<(u32, f64)> = (1..10_000).map(|d| (d, 1.0 + 0.1 * f64::from(d).sqrt())).collect();
        let points = through(&shown, 9_999);
        for distance in [1, 50, 1000, 9_999] {
            let expected = 1.0 + 0.1 * f64::from(distance).sqrt();
            assert!((at(&points, distance) - expected).abs() < 0.15, "{distance}: {}", at(&points, distance));
        }
    }
}
