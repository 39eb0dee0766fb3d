//! Writes a comparison page of invented figures: `cargo run --example demo_page -- PAGE.html`.
//!
//! The figures come from a seeded generator and resemble four sequential and two random readers on
//! one disk. They are not a measurement.

use std::error::Error;

use hoistway_report::{
    ComparePage, DriveTime, ElevatorResult, Fact, HeadTrack, LatencySummary, PercentileLatency, ProcessBandwidth,
    Slice, compare_page,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

const RUN_NS: u64 = 30_000_000_000;
const WINDOW_NS: u64 = 500_000_000;
const DISK_SECTORS: u64 = 156_301_488;

/// The properties of an invented elevator.
struct Temper {
    name: &'static str,
    /// Throughput of all readers, of 60 MB/s.
    efficiency: f64,
    /// The spread of the readers' shares; 0 for equal shares.
    unfairness: f64,
    /// The length of a slice; 0 without slices.
    slice_ns: u64,
    /// The median latency in ns.
    median_ns: f64,
}

const TEMPERS: [Temper; 6] = [
    Temper { name: "noop", efficiency: 0.29, unfairness: 0.9, slice_ns: 0, median_ns: 21e6 },
    Temper { name: "deadline", efficiency: 0.34, unfairness: 0.5, slice_ns: 0, median_ns: 17e6 },
    Temper { name: "anticipatory", efficiency: 0.78, unfairness: 0.7, slice_ns: 0, median_ns: 3e6 },
    Temper { name: "cfq-v3", efficiency: 0.72, unfairness: 0.12, slice_ns: 100_000_000, median_ns: 2e6 },
    Temper { name: "cfq-v3 slice_idle=0", efficiency: 0.38, unfairness: 0.2, slice_ns: 20_000_000, median_ns: 13e6 },
    Temper { name: "bfq", efficiency: 0.81, unfairness: 0.05, slice_ns: 125_000_000, median_ns: 1.8e6 },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "demo_page.html".to_owned());
    let processes = arguments.next().map_or(Ok(6), |n| n.parse::<u32>())?;
    let page = demo(processes, 20261120);
    std::fs::write(&path, compare_page(&page)?)?;
    println!("{path}");
    Ok(())
}

fn demo(processes: u32, seed: u64) -> ComparePage {
    let mut rng = Pcg64::seed_from_u64(seed);
    let fact = |label: &str, value: &str| Fact { label: label.into(), value: value.into() };
    let names = (0..processes).map(|p| match p % 6 {
        4 | 5 => format!("random reader {p}"),
        _ => format!("stream {p}"),
    });
    ComparePage {
        command: "hoistway compare".into(),
        title: "Four streams and two random readers".into(),
        subtitle: "Made-up figures that show what a page looks like".into(),
        facts: vec![
            fact("job file", "readers.fio"),
            fact("drive", "80 GB, 7200 rpm (made up)"),
            fact("seed", &seed.to_string()),
            fact("version", env!("CARGO_PKG_VERSION")),
        ],
        verdict:
            "Waiting for the next request of the same reader decided it: the elevators that anticipate spend half of \
                  the run transferring, the others seek."
                .into(),
        notes: vec![
            "Nothing on this page was measured.".into(),
            "A share above 100 % of one stream is possible where the cache answers.".into(),
        ],
        single_stream_bytes_per_s: 58.6e6,
        window_ns: WINDOW_NS,
        processes: names.collect(),
        elevators: TEMPERS.iter().map(|t| elevator(t, processes, &mut rng)).collect(),
        groups: Vec::new(),
        jobs: Vec::new(),
        solid_state: false,
        tables: Vec::new(),
    }
}

fn elevator(temper: &Temper, processes: u32, rng: &mut impl Rng) -> ElevatorResult {
    let shares: Vec<f64> = (0..processes).map(|_| 1.0 + temper.unfairness * rng.random_range(-0.9..0.9)).collect();
    let sum: f64 = shares.iter().sum();
    let bytes_per_s = 60e6 * temper.efficiency;
    let rates: Vec<f64> = shares.iter().map(|s| bytes_per_s * s / sum).collect();
    let squares: f64 = shares.iter().map(|s| s * s).sum();
    let percentiles = percentiles(temper.median_ns, 1.0 + temper.unfairness);
    let at = |p: f64| percentiles.iter().find(|q| q.percentile >= p).map_or(0, |q| q.latency_ns);
    let head: Vec<HeadTrack> = (0..processes).map(|p| head(p, rates[p as usize], temper, processes, rng)).collect();
    ElevatorResult {
        name: temper.name.into(),
        is_current: false,
        bytes_per_s,
        of_single_stream: Some(bytes_per_s / 58.6e6),
        divides_by_groups: false,
        process_min_bytes_per_s: rates.iter().copied().fold(f64::MAX, f64::min),
        process_max_bytes_per_s: rates.iter().copied().fold(0.0, f64::max),
        jain: Some(sum * sum / (f64::from(processes) * squares)),
        latency: LatencySummary {
            mean_ns: temper.median_ns * 1.3,
            stddev_ns: temper.median_ns * 1.1,
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            max_ns: at(100.0),
        },
        sync: None,
        runtime_ns: RUN_NS,
        drive: drive_time(temper.efficiency),
        percentiles,
        bandwidth: rates.iter().zip(0..).map(|(&rate, p)| bandwidth(p, rate, temper.unfairness, rng)).collect(),
        requests: head.iter().map(|t| t.time_ns.len() as u64).sum(),
        head,
        slices: (temper.slice_ns > 0).then(|| slices(temper.slice_ns, processes, rng)),
        starves: false,
    }
}

fn drive_time(efficiency: f64) -> DriveTime {
    let of = |share: f64| (RUN_NS as f64 * share) as u64;
    let transfer_ns = of(efficiency * 0.9);
    let rest = 1.0 - efficiency * 0.9;
    let (seek_ns, rotation_ns, overhead_ns) = (of(rest * 0.48), of(rest * 0.3), of(rest * 0.06));
    let idle_ns = RUN_NS - transfer_ns - seek_ns - rotation_ns - overhead_ns;
    DriveTime { seek_ns, rotation_ns, transfer_ns, overhead_ns, idle_ns }
}

fn percentiles(median_ns: f64, tail: f64) -> Vec<PercentileLatency> {
    let points = [0.0, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0];
    let latency = |p: f64| median_ns * (0.3 + 0.35 * tail * (100.0 / (100.0 - p).max(0.003)).ln().powf(1.6));
    points.map(|p| PercentileLatency { percentile: p, latency_ns: latency(p) as u64 }).into()
}

fn bandwidth(process: u32, rate: f64, unrest: f64, rng: &mut impl Rng) -> ProcessBandwidth {
    let mut level = 1.0;
    let mut window = || {
        level = (level + unrest * rng.random_range(-0.35..0.35)).clamp(0.35, 1.8);
        rate * level * rng.random_range(0.93..1.07)
    };
    ProcessBandwidth { process, bytes_per_s: (0..RUN_NS / WINDOW_NS).map(|_| window()).collect() }
}

fn head(process: u32, rate: f64, temper: &Temper, processes: u32, rng: &mut impl Rng) -> HeadTrack {
    let random = matches!(process % 6, 4 | 5);
    let request_sectors = if random { 8 } else { 256 };
    let wanted = (rate * RUN_NS as f64 / 1e9 / 512.0 / request_sectors as f64) as u64;
    let requests = if random { 100 * RUN_NS / 1_000_000_000 } else { wanted }.max(1);
    let turn = temper.slice_ns.max(10_000_000) * u64::from(processes);
    let base = DISK_SECTORS / u64::from(processes + 1) * u64::from(process + 1);
    let mut track = HeadTrack { process, ..HeadTrack::default() };
    for i in 0..requests {
        let even = RUN_NS / requests * i;
        // A reader with slices is served in bursts at its position within the round.
        let place = u64::from(process) * turn / u64::from(processes);
        let within = (even % turn) / u64::from(processes);
        let time_ns = if temper.slice_ns > 0 { even / turn * turn + place + within } else { even };
        track.time_ns.push(time_ns.min(RUN_NS));
        let sector = if random { rng.random_range(0..DISK_SECTORS) } else { base + i * request_sectors };
        track.sector.push(sector.min(DISK_SECTORS));
    }
    track
}

fn slices(slice_ns: u64, processes: u32, rng: &mut impl Rng) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut start_ns = 0;
    let mut process = 0;
    while start_ns < RUN_NS {
        let end_ns = (start_ns + (slice_ns as f64 * rng.random_range(0.8..1.1)) as u64).min(RUN_NS);
        slices.push(Slice { process, start_ns, end_ns });
        start_ns = end_ns + rng.random_range(1_000_000..9_000_000);
        process = (process + 1) % processes.max(1);
    }
    slices
}
