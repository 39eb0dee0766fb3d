//! Measurements of the rows of `published/s6.toml`.
//!
//! The names of the figures say what to run: the rows differ in the table that they come from.

use hoistway_drive::{Access, Drive, Op, closed_loop};

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::runner::{Experiment, Runner};
use crate::verdict::{Line, Measured, Plot};
use hoistway_sim::ProcessRun;

/// Measures a row of the publication.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    match row.id.as_str() {
        "S6-01" => depths(row),
        "S6-02" => sizes(row),
        _ if row.what.contains("kyber's targets") => targets(row, runner),
        _ => readers(row, runner),
    }
}

/// Random numbers below `below`: xorshift (G. Marsaglia, "Xorshift RNGs", 2003).
fn random(mut state: u64, below: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    })
}

/// The drive alone with this many random reads in flight: reads a second, and the 99th percentile
/// of the latency in us.
fn alone(row: &Row, depth: u32, sectors: u32) -> Result<[f64; 2], ReproduceError> {
    const READS: usize = 100_000;
    let profile = row.profile()?;
    let mut drive = Drive::new(&profile);
    let blocks = drive.capacity_sectors() / u64::from(sectors);
    let places = random(88_172_645_463_325_252, blocks).take(READS);
    let commands = places.map(|block| Access { op: Op::Read, sector: block * u64::from(sectors), sectors }.into());
    let mut latencies = Vec::with_capacity(READS);
    let end_ns =
        closed_loop(&mut drive, 0, depth, commands, |at_ns, done| latencies.push(done.service.finish_ns - at_ns))
            .map_err(ReproduceError::defect)?;
    latencies.sort_unstable();
    let p99_ns = latencies.get(READS * 99 / 100).copied().unwrap_or(0);
    Ok([READS as f64 * 1e9 / end_ns as f64, p99_ns as f64 / 1e3])
}

/// The number in the name of a figure: `rate, depth 128` has 128.
fn number(row: &Row, name: &str, after: &str) -> Result<u32, ReproduceError> {
    let found = name.split(", ").find_map(|word| word.strip_prefix(after)?.trim().parse().ok());
    found.ok_or_else(|| ReproduceError::no_measure(&row.id))
}

/// The drive alone over its queue depth.
fn depths(row: &Row) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for value in &row.values {
        let [rate, p99_us] = alone(row, number(row, &value.name, "depth ")?, 8)?;
        measured = measured.with(value.name.clone(), if value.name.starts_with("p99") { p99_us } else { rate });
    }
    Ok(measured)
}

/// The drive alone with reads of several sizes.
fn sizes(row: &Row) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for value in &row.values {
        let [rate, _] = alone(row, number(row, &value.name, "depth ")?, number(row, &value.name, "KiB ")? * 2)?;
        measured = measured.with(value.name.clone(), rate);
    }
    Ok(measured)
}

/// Readers of one or more drives: requests a second, or the 99th percentile of the latency in us.
///
/// A name is `none, depth 128`, with the words `processes`, `drives`, and `p99` in front.
fn readers(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut experiments = Vec::new();
    for value in &row.values {
        let elevator = value.name.split(", ").find(|word| row.elevators.iter().any(|known| known == word));
        let elevator = elevator.ok_or_else(|| ReproduceError::no_measure(&row.id))?;
        let given = |after: &str, default: u32| number(row, &value.name, after).unwrap_or(default);
        let drives = given("drives ", 1);
        let depth = given("depth ", if row.what.contains("one request each") { 1 } else { 128 });
        let processes = given("processes ", if row.what.contains("ten processes") { 10 } else { 1 });
        let devices: Vec<String> = (0..drives).map(|drive| format!("/dev/nvme{drive}n1")).collect();
        let experiment = Experiment::of(row, elevator)?
            .with_text("iodepth=128", &format!("iodepth={depth}"))
            .with_text("numjobs=10", &format!("numjobs={processes}"))
            .with_text("/dev/nvme0n1", &devices.join(":"));
        let cpus = row.what.contains("on one core").then_some(1);
        experiments.push(Experiment { cpus, drives, alone: false, ..experiment });
    }
    let mut measured = Measured::default();
    let mut lines: Vec<Line> = Vec::new();
    for (value, comparison) in row.values.iter().zip(runner.compared(&experiments)?) {
        for run in &comparison.runs {
            let figure = match value.name.starts_with("p99") {
                true => run.latency_ns.p99 as f64 / 1e3,
                false => run.bytes_per_s / 4096.0,
            };
            measured = measured.with(value.name.clone(), figure);
            draw(&mut lines, &value.name, value.published, figure);
        }
    }
    Ok(measured.with_plot(plot(lines)))
}

/// Adds a figure and its published value to the lines of its elevator; the last number of the name
/// is the place on the x axis.
fn draw(lines: &mut Vec<Line>, name: &str, published: Option<f64>, figure: f64) {
    let mut words = name.split(", ").filter(|word| *word != "p99");
    let (Some(elevator), Some(x)) = (words.next(), words.last().and_then(|word| word.rsplit(' ').next()?.parse().ok()))
    else {
        return;
    };
    let figures = [(format!("{elevator}, published"), published, true), (elevator.to_owned(), Some(figure), false)];
    for (name, y, published) in figures {
        let Some(y) = y else { continue };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((x, y)),
            None => lines.push(Line { name, points: vec![(x, y)], published }),
        }
    }
}

fn plot(lines: Vec<Line>) -> Option<Plot> {
    let many = lines.iter().any(|line| line.points.len() > 2);
    many.then(|| Plot { x: "depth, processes or drives".into(), y: "requests a second, or us".into(), lines })
}

/// The requests a second and the latencies of reads and writes under kyber with other targets.
///
/// A name is `read 0, write 10ms: reads` with `writes`, `p99 of reads` or `p99 of writes` at the
/// end, and the row says how the processes share CPUs.
fn targets(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut experiments = Vec::new();
    for value in &row.values {
        let (cell, _) = value.name.split_once(": ").ok_or_else(|| ReproduceError::no_measure(&row.id))?;
        let target = |after: &str| {
            let text = cell.split(", ").find_map(|word| word.strip_prefix(after));
            text.and_then(nanoseconds).ok_or_else(|| ReproduceError::no_measure(&row.id))
        };
        let mut experiment = Experiment::of(row, "kyber")?
            .with(&format!("read_lat_nsec={}", target("read ")?))
            .with(&format!("write_lat_nsec={}", target("write ")?));
        if row.what.contains("one read at a time") {
            experiment = experiment.with_text("[reader]\n", "[reader]\niodepth=1\n");
        }
        let cpus = Some(if row.what.contains("two CPUs") { 2 } else { 1 });
        experiments.push(Experiment { cpus, alone: false, ..experiment });
    }
    let mut measured = Measured::default();
    for (value, comparison) in row.values.iter().zip(runner.compared(&experiments)?) {
        for run in &comparison.runs {
            let of = |process: &ProcessRun| match value.name.ends_with("reads") {
                true => process.read.clone(),
                false => process.write.clone(),
            };
            let done = run.processes.iter().map(|process| (process, of(process))).find(|(_, done)| done.ios > 0);
            let figure = done.map_or(0.0, |(process, done)| match value.name.contains("p99") {
                true => done.clat_ns.p99 as f64 / 1e3,
                false => done.ios as f64 * 1e9 / process.runtime_ns as f64,
            });
            measured = measured.with(value.name.clone(), figure);
        }
    }
    Ok(measured)
}

/// A time as the study writes it, in ns: `0`, `50us`, `10ms` or `1s`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
