//! Measurements of the rows of `published/s4.toml`.

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::processes;
use crate::runner::{Experiment, Runner};
use crate::verdict::Measured;
use hoistway_sim::{Run, elevator_of_name};

/// A member of the array of the rows.
const SPINDLE: &str = "scsi-15k-73";
/// Reads and writes of a transaction, between two think times of a user.
const IOS_EACH: f64 = 10.0;
/// The clock of Red Hat Enterprise Linux 4, in ticks a second.
const HZ: u32 = 1000;

/// Measures a row of the publication.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    match row.id.as_str() {
        "S4-01" => transactions(row, runner),
        "S4-02" => scans(row, runner),
        "S4-04" => cpu_times(row, runner),
        "S4-05" => spindles(row, runner),
        "S4-06" => anticipation_ms(),
        "S4-07" => versions(),
        _ => Err(ReproduceError::no_measure(&row.id)),
    }
}

/// Transactions a minute under each elevator.
fn transactions(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut each = [0.0; 3];
    let mut on_one = [0.0; 3];
    for (index, elevator) in ["cfq-v2", "deadline", "noop"].into_iter().enumerate() {
        let array = Experiment::of(row, elevator)?;
        let spindle = Experiment { drive: SPINDLE.to_owned(), ..array.clone() };
        [each[index]] = runner.means(array, row.seeds, |run, _| [transactions_per_minute(run)])?;
        [on_one[index]] = runner.means(spindle, row.seeds, |run, _| [transactions_per_minute(run)])?;
    }
    let below = |all: [f64; 3], index: usize| (1.0 - all[index] / all[0]) * 100.0;
    Ok(Measured::default()
        .with("cfq", each[0])
        .with("deadline", each[1])
        .with("noop", each[2])
        .with("deadline below cfq", below(each, 1))
        .with("noop below cfq", below(each, 2))
        .with("one spindle: deadline below cfq", below(on_one, 1))
        .with("one spindle: noop below cfq", below(on_one, 2)))
}

/// The bandwidth of scans of large tables, in MB/s.
fn scans(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    let small = ("size=16g", "size=8g");
    let direct = ("numjobs=8", "numjobs=4\ndirect=1");
    // Eight tables fit on one spindle with 8 GiB each.
    for (drive, (old, new), name) in
        [(None, ("", ""), ""), (Some(SPINDLE), small, "one spindle: "), (None, direct, "direct: ")]
    {
        let (mut rates, mut turns) = ([0.0; 2], [0.0; 2]);
        for ((rate, turn), elevator) in rates.iter_mut().zip(&mut turns).zip(["cfq-v2", "deadline"]) {
            let array = Experiment::of(row, elevator)?;
            let drive = drive.map_or_else(|| array.drive.clone(), str::to_owned);
            let experiment = Experiment { drive, ..array.with_text(old, new) };
            [*rate, *turn] = runner.means(experiment, row.seeds, |run, _| {
                [run.bytes_per_s / 1e6, run.drive_bytes as f64 / run.turns as f64]
            })?;
        }
        measured = measured.with(format!("{name}data a turn, deadline by cfq"), turns[1] / turns[0]);
        measured = measured
            .with(format!("{name}cfq"), rates[0])
            .with(format!("{name}deadline"), rates[1])
            .with(format!("{name}deadline over cfq"), (rates[1] / rates[0] - 1.0) * 100.0);
    }
    Ok(measured)
}

/// The CPU time of a transaction in us, under all elevators, on the array and on one spindle: its
/// range, and the range of throughput.
fn cpu_times(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let (mut costs, mut rates) = (Vec::new(), Vec::new());
    for elevator in &row.elevators {
        let array = Experiment::of(row, elevator)?;
        let spindle = Experiment { drive: SPINDLE.to_owned(), ..array.clone() };
        for experiment in [array, spindle] {
            let [cost_us, rate] = runner.means(experiment, row.seeds, |run, _| {
                let cpu_ns: u64 = processes(run, "user").map(|process| process.cpu_ns).sum();
                [cpu_ns as f64 / 1000.0 / transaction_count(run), transactions_per_minute(run)]
            })?;
            costs.push(cost_us);
            rates.push(rate);
        }
    }
    let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let least = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Measured::default()
        .with("apart", (most(&costs) / least(&costs) - 1.0) * 100.0)
        .with("least", least(&costs))
        .with("throughput", most(&rates) / least(&rates)))
}

/// The anticipatory elevator over CFQ, for one and for eight spindles: mean read latency,
/// transactions, and the difference in idle time in percent.
fn spindles(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for (drive, name) in [(None, "8 spindles"), (Some(SPINDLE), "1 spindle")] {
        let mut figures = [[0.0; 3]; 2];
        for (figures, elevator) in figures.iter_mut().zip(["anticipatory", "cfq-v2"]) {
            let array = Experiment::of(row, elevator)?;
            let experiment = match drive {
                Some(drive) => Experiment { drive: drive.to_owned(), ..array },
                None => array,
            };
            *figures = runner.means(experiment, row.seeds, |run, _| {
                [read_ms(run), transactions_per_minute(run), run.drive_ns.idle as f64 / run.runtime_ns as f64 * 100.0]
            })?;
        }
        let [anticipatory, cfq] = figures;
        measured = measured
            .with(name, anticipatory[0] / cfq[0])
            .with(format!("{name}, transactions"), anticipatory[1] / cfq[1])
            .with(format!("{name}, idle"), anticipatory[2] - cfq[2]);
    }
    Ok(measured)
}

/// The time that the anticipatory elevator waits at HZ ticks a second, in ms.
fn anticipation_ms() -> Result<Measured, ReproduceError> {
    let info = elevator_of_name("anticipatory")?.info();
    let tunable = info.tunables.iter().find(|tunable| tunable.name == "antic_expire");
    let ms = tunable.map_or(f64::NAN, |tunable| tunable.default as f64);
    // HZ / 150 of the kernel, in whole ticks.
    let ticks = f64::from(HZ / 150) * 1000.0 / f64::from(HZ);
    Ok(Measured::default().with("antic_expire", ms).with("HZ / 150", ticks))
}

/// The third number of the first and the last version of Linux 2.6 with each of its default
/// elevators.
fn versions() -> Result<Measured, ReproduceError> {
    let of = |name: &str| -> Result<(f64, f64), ReproduceError> {
        let in_linux = elevator_of_name(name)?.info().in_linux;
        let third = |version: &str| version.strip_prefix("2.6.").and_then(|third| third.parse().ok());
        let (first, last) = in_linux.split_once('-').unwrap_or((in_linux, in_linux));
        Ok((third(first).unwrap_or(f64::NAN), third(last).unwrap_or(f64::NAN)))
    };
    let (anticipatory, cfq) = (of("anticipatory")?, of("cfq-v3")?);
    Ok(Measured::default()
        .with("anticipatory, from 2.6.", anticipatory.0)
        .with("anticipatory, to 2.6.", anticipatory.1)
        .with("CFQ of slices, from 2.6.", cfq.0)
        .with("CFQ of slices, to 2.6.", cfq.1))
}

fn transaction_count(run: &Run) -> f64 {
    processes(run, "user").map(|process| process.read.ios + process.write.ios).sum::<u64>() as f64 / IOS_EACH
}

fn transactions_per_minute(run: &Run) -> f64 {
    transaction_count(run) * 60e9 / run.runtime_ns as f64
}

/// The mean latency of reads by users, in ms.
fn read_ms(run: &Run) -> f64 {
    let (sum, count) = processes(run, "user").fold((0.0, 0), |(sum, count), process| {
        (sum + process.read.clat_ns.mean * process.read.ios as f64, count + process.read.ios)
    });
    sum / count as f64 / 1e6
}
