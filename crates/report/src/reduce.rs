//! Reduces series with more points than a page can draw, by rules that the page states.
//!
//! Head positions are sampled: the requests of a process are cut into runs, and one of each run
//! stays, so that the density is kept. The first and the last request also stay, and the lowest and
//! the highest of every sixteen runs, so that single outliers stay visible. Throughput windows are
//! joined without loss of bytes. Slices are joined across gaps.

use serde::Serialize;

use crate::data::{ComparePage, ElevatorResult, HeadTrack, ProcessBandwidth, Slice};

/// The largest number of head positions of one elevator, plus four for each process.
pub const HEAD_POINTS_MAX: usize = 20_000;

/// The largest number of head positions of one page, plus four for each process. It limits a page
/// of many elevators to a few MB.
pub const HEAD_POINTS_PAGE_MAX: usize = 120_000;

/// The largest number of throughput windows of one process.
pub const WINDOWS_MAX: usize = 600;

/// The largest number of throughput windows of one page, or 60 for each process if that is more.
pub const WINDOWS_PAGE_MAX: usize = 150_000;

/// The minimum number of windows to which a longer run is joined.
const WINDOWS_LEAST: usize = 60;

/// The largest number of slices of one elevator, or one for each process if that is more.
pub const SLICES_MAX: usize = 6_000;

/// The largest number of slices of one page, with the same exception.
pub const SLICES_PAGE_MAX: usize = 48_000;

/// Points that always stay of a process: first, last, lowest and highest.
const CORNERS: usize = 4;

/// Number of runs in a group of which the lowest and the highest request stay; up to twice as many
/// in a short track.
const RUNS_OF_A_GROUP: usize = 16;

/// The reductions of one elevator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reduction {
    /// Number of requests served.
    pub requests: u64,
    /// Number of head positions shown.
    pub head_shown: usize,
    /// Number of slices.
    pub slices: usize,
    /// Number of slices shown.
    pub slices_shown: usize,
    /// The longest gap within a lane that was closed, in ns; 0 for none.
    pub slice_gap_ns: u64,
}

/// Reduces a page and returns it with the reductions of each elevator.
pub fn reduce(page: &ComparePage) -> (ComparePage, Vec<Reduction>) {
    let budget = HEAD_POINTS_MAX.min(HEAD_POINTS_PAGE_MAX / page.elevators.len().max(1));
    let longest = page.elevators.iter().flat_map(|e| &e.bandwidth).map(|b| b.bytes_per_s.len()).max().unwrap_or(0);
    let series: usize = page.elevators.iter().map(|e| e.bandwidth.len()).sum();
    let windows = (WINDOWS_PAGE_MAX / series.max(1)).clamp(WINDOWS_LEAST, WINDOWS_MAX);
    let joined = longest.div_ceil(windows).max(1);
    let slices_max = SLICES_MAX.min(SLICES_PAGE_MAX / page.elevators.len().max(1));
    let mut reductions = Vec::with_capacity(page.elevators.len());
    let mut elevators = Vec::with_capacity(page.elevators.len());
    for elevator in &page.elevators {
        let head = reduce_head(&elevator.head, budget);
        let (slices, slice_gap_ns) = match &elevator.slices {
            Some(slices) => {
                let (kept, gap) = reduce_slices(slices, page.processes.len(), slices_max);
                (Some(kept), gap)
            }
            None => (None, 0),
        };
        let given: usize = elevator.head.iter().map(|t| t.time_ns.len()).sum();
        reductions.push(Reduction {
            requests: elevator.requests.max(given as u64),
            head_shown: head.iter().map(|t| t.time_ns.len()).sum(),
            slices: elevator.slices.as_ref().map_or(0, Vec::len),
            slices_shown: slices.as_ref().map_or(0, Vec::len),
            slice_gap_ns,
        });
        let bandwidth = elevator.bandwidth.iter().map(|b| join_windows(b, joined)).collect();
        elevators.push(ElevatorResult { head, slices, bandwidth, ..without_series(elevator) });
    }
    let window_ns = page.window_ns.saturating_mul(joined as u64);
    let drawn = ComparePage { window_ns, elevators, ..without_elevators(page) };
    (drawn, reductions)
}

/// Reduces all tracks together to `budget` points, or to four a track if that is more.
fn reduce_head(tracks: &[HeadTrack], budget: usize) -> Vec<HeadTrack> {
    let points: usize = tracks.iter().map(|t| t.time_ns.len()).sum();
    if points <= budget {
        return tracks.to_vec();
    }
    // There are more points than the budget of 0 or more, so the divisor is at least 1.
    tracks.iter().map(|t| thin(t, (t.time_ns.len() * budget / points).max(CORNERS))).collect()
}

/// Reduces a track to `keep` points, at least four.
fn thin(track: &HeadTrack, keep: usize) -> HeadTrack {
    let points = track.time_ns.len();
    if points <= keep {
        return track.clone();
    }
    let within = keep - 2;
    let groups = (within / (RUNS_OF_A_GROUP + 2)).max(1);
    let runs = within / groups - 2;
    let mut kept = vec![0, points - 1];
    for group in 0..groups {
        let (from, to) = (points * group / groups, points * (group + 1) / groups);
        kept.extend((from..to).min_by_key(|&i| track.sector[i]));
        kept.extend((from..to).max_by_key(|&i| track.sector[i]));
        for run in 0..runs {
            let (first, end) = (from + (to - from) * run / runs, from + (to - from) * (run + 1) / runs);
            kept.push(first + index_in_run(group * runs + run, track.process, end - first));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    HeadTrack {
        process: track.process,
        time_ns: kept.iter().map(|&i| track.time_ns[i]).collect(),
        sector: kept.iter().map(|&i| track.sector[i]).collect(),
    }
}

/// The index of the request that stays of a run, below `length`.
///
/// Multiples of the golden ratio modulo 1 are spread evenly over the runs (Weyl 1916) and differ
/// between processes, so the sample has no artificial stripes.
fn index_in_run(run: usize, process: u32, length: usize) -> usize {
    let golden: u32 = 2_654_435_769; // 2^32 / 1.618
    let spread = golden.wrapping_mul((run as u32).wrapping_add(process.wrapping_mul(7919)));
    ((u64::from(spread) * length as u64) >> 32) as usize
}

/// Joins each `joined` windows to one with their mean rate. The last one may join fewer.
fn join_windows(series: &ProcessBandwidth, joined: usize) -> ProcessBandwidth {
    let mean = |w: &[f64]| w.iter().sum::<f64>() / w.len() as f64;
    let bytes_per_s = match joined {
        0 | 1 => series.bytes_per_s.clone(),
        _ => series.bytes_per_s.chunks(joined).map(mean).collect(),
    };
    ProcessBandwidth { process: series.process, bytes_per_s }
}

/// Slices by start. If there are too many, slices of a process with a small gap between them are
/// joined; the gap doubles until there are few enough or one for each process.
fn reduce_slices(slices: &[Slice], processes: usize, max: usize) -> (Vec<Slice>, u64) {
    let mut sorted = slices.to_vec();
    sorted.sort_by_key(|s| (s.start_ns, s.process));
    let end = sorted.iter().map(|s| s.end_ns).max().unwrap_or(0);
    let mut gap_ns = 0;
    let mut kept = sorted.clone();
    while kept.len() > max.max(processes) && gap_ns < end {
        gap_ns = (gap_ns * 2).max(end / 4096).max(1);
        kept = join_slices(&sorted, processes, gap_ns);
    }
    (kept, gap_ns)
}

fn join_slices(sorted: &[Slice], processes: usize, gap_ns: u64) -> Vec<Slice> {
    let mut kept: Vec<Slice> = Vec::new();
    let mut last = vec![None; processes];
    for slice in sorted {
        let of_process = &mut last[slice.process as usize];
        match of_process.and_then(|i: usize| kept.get_mut(i)) {
            Some(before) if slice.start_ns.saturating_sub(before.end_ns) <= gap_ns => {
                before.end_ns = before.end_ns.max(slice.end_ns);
            }
            _ => {
                *of_process = Some(kept.len());
                kept.push(*slice);
            }
        }
    }
    kept
}

/// A copy without the long series.
fn without_series(e: &ElevatorResult) -> ElevatorResult {
    ElevatorResult {
        name: e.name.clone(),
        percentiles: e.percentiles.clone(),
        head: Vec::new(),
        bandwidth: Vec::new(),
        slices: None,
        ..*e
    }
}

fn without_elevators(p: &ComparePage) -> ComparePage {
    ComparePage {
        command: p.command.clone(),
        tables: p.tables.clone(),
        title: p.title.clone(),
        subtitle: p.subtitle.clone(),
        facts: p.facts.clone(),
        verdict: p.verdict.clone(),
        notes: p.notes.clone(),
        processes: p.processes.clone(),
        groups: p.groups.clone(),
        elevators: Vec::new(),
        jobs: p.jobs.clone(),
        ..*p
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn track(process: u32, sectors: &[u64]) -> HeadTrack {
        HeadTrack { process, time_ns: (0..sectors.len() as u64).collect(), sector: sectors.to_vec() }
    }

    #[test]
    fn few_points_are_not_reduced() {
        let tracks = vec![track(0, &[5, 1, 9]), track(1, &[2])];
        assert_eq!(reduce_head(&tracks, 4), tracks);
    }

    #[test]
    fn one_outlier_in_a_million_requests_stays() {
        let mut sectors: Vec<u64> = (1000..1_001_000).collect();
        sectors[654_321] = 7;
        sectors[123_456] = 1_953_525_167;
        let kept = reduce_head(&[track(0, &sectors)], 2000);
        assert!(kept[0].time_ns.len() <= 2000);
        let at = |sector: u64| kept[0].sector.iter().position(|&s| s == sector).map(|i| kept[0].time_ns[i]);
        assert_eq!(at(7), Some(654_321));
        assert_eq!(at(1_953_525_167), Some(123_456));
    }

    #[test]
    fn the_smallest_budget_keeps_the_four_corners_of_each_process() {
        let tracks = [track(0, &[4, 9, 1, 5, 6]), track(1, &[3, 3, 3, 3, 3, 3, 3])];
        let kept = reduce_head(&tracks, 0);
        assert_eq!(kept[0].sector, [4, 9, 1, 6]);
        assert_eq!(kept[0].time_ns, [0, 1, 2, 4]);
        // The lowest and the highest of equal sectors are the first and the last, which are kept
        // once.
        assert_eq!(kept[1].time_ns, [0, 6]);
    }

    #[test]
    fn thinning_keeps_the_density() {
        // Nine of ten requests are at the start of the disk, one is anywhere.
        let sectors: Vec<u64> = (0..100_000).map(|i| if i % 10 == 3 { 500 + i } else { i % 100 }).collect();
        let kept = &reduce_head(&[track(0, &sectors)], 9_000)[0];
        let crowded = kept.sector.iter().filter(|&&s| s < 100).count() as f64 / kept.sector.len() as f64;
        assert!((0.78..=0.92).contains(&crowded), "{crowded}");
    }

    proptest! {
        #[test]
        fn thinning_keeps_order_extremes_and_the_budget(
            sectors in prop::collection::vec(0u64..1_000, 1..3_000), budget in 0usize..200,
        ) {
            let whole = track(3, &sectors);
            let kept = &reduce_head(std::slice::from_ref(&whole), budget)[0];
            prop_assert_eq!(kept.time_ns.len(), kept.sector.len());
            prop_assert!(kept.sector.len() <= budget.max(4));
            prop_assert!(kept.time_ns.windows(2).all(|w| w[0] < w[1]));
            prop_assert_eq!(kept.sector.iter().min(), sectors.iter().min());
            prop_assert_eq!(kept.sector.iter().max(), sectors.iter().max());
            prop_assert_eq!(kept.time_ns.last(), whole.time_ns.last());
            for (t, s) in kept.time_ns.iter().zip(&kept.sector) {
                prop_assert_eq!(sectors[*t as usize], *s);
            }
        }

        #[test]
        fn joined_slices_cover_what_the_slices_covered(
            lengths in prop::collection::vec((0u64..50, 0u64..9, 0u32..5), 1..400), max in 1usize..40,
        ) {
            let mut slices = Vec::new();
            let mut now = 0;
            for (length, pause, process) in lengths {
                slices.push(Slice { process, start_ns: now, end_ns: now + length });
                now += length + pause;
            }
            let (kept, _) = reduce_slices(&slices, 5, max);
            prop_assert!(kept.len() <= max.max(5));
            for s in &slices {
                let covered = |k: &&Slice| k.process == s.process && k.start_ns <= s.start_ns && k.end_ns >= s.end_ns;
                prop_assert!(kept.iter().find(covered).is_some());
            }
        }
    }

    #[test]
    fn joined_windows_have_the_mean_of_their_windows() {
        let series = ProcessBandwidth { process: 1, bytes_per_s: vec![1.0, 3.0, 10.0, 20.0, 7.0] };
        assert_eq!(join_windows(&series, 2).bytes_per_s, [2.0, 15.0, 7.0]);
        assert_eq!(join_windows(&series, 1), series);
    }

    #[test]
    fn an_hour_of_windows_is_drawn_as_six_hundred_of_six_seconds_each() {
        // 3600 s of 500 ms windows are 7200, 12 times 600.
        let bandwidth = vec![ProcessBandwidth { process: 0, bytes_per_s: vec![1e6; 7200] }];
        let elevator = ElevatorResult { name: "noop".into(), bandwidth, ..ElevatorResult::default() };
        let page = ComparePage {
            window_ns: 500_000_000,
            processes: vec!["a".into()],
            elevators: vec![elevator],
            ..ComparePage::default()
        };
        let (drawn, _) = reduce(&page);
        assert_eq!(drawn.window_ns, 6_000_000_000);
        assert_eq!(drawn.elevators[0].bandwidth[0].bytes_per_s.len(), 600);
    }

    #[test]
    fn many_processes_have_fewer_and_wider_windows() {
        // 16 elevators by 128 processes are 2048 lines of 73 windows each: 7200 windows are joined
        // by 99.
        let bandwidth = (0..128).map(|process| ProcessBandwidth { process, bytes_per_s: vec![1e6; 7200] }).collect();
        let elevator = ElevatorResult { bandwidth, ..ElevatorResult::default() };
        let page = ComparePage { window_ns: 1000, elevators: vec![elevator; 16], ..ComparePage::default() };
        let (drawn, _) = reduce(&page);
        assert_eq!(drawn.window_ns, 99_000);
        let windows: usize = drawn.elevators.iter().flat_map(|e| &e.bandwidth).map(|b| b.bytes_per_s.len()).sum();
        assert!(windows <= WINDOWS_PAGE_MAX, "{windows}");
    }

    #[test]
    fn many_elevators_share_the_page_budget() {
        let sectors: Vec<u64> = (0..30_000).collect();
        let elevator = |i: u32| ElevatorResult {
            name: i.to_string(),
            head: vec![track(0, &sectors)],
            ..ElevatorResult::default()
        };
        let page = ComparePage {
            window_ns: 1,
            processes: vec!["a".into()],
            elevators: (0..12).map(elevator).collect(),
            ..ComparePage::default()
        };
        let (drawn, reductions) = reduce(&page);
        let shown: usize = drawn.elevators.iter().map(|e| e.head[0].time_ns.len()).sum();
        assert!(shown <= HEAD_POINTS_PAGE_MAX, "{shown}");
        assert!(reductions.iter().all(|r| r.requests == 30_000 && r.head_shown < 10_001));
    }
}
