//! How the rows of `published/s5.toml` are measured.

use hoistway_drive::{Access, Drive, Op, Profile, closed_loop};

use super::expectation::Row;
use super::runner::{Experiment, Runner};
use super::verdict::{Line, Measured, Plot};
use super::{PublishedError, defect, no_measure};
use crate::compare::{ProcessRun, Run};

/// Requests that are outstanding in the posting's four tests of fairness, as they are run here: the
/// first has fewer than the drive takes.
const OUTSTANDING: [u32; 4] = [24, 48, 64, 96];
/// The processes that make them.
const PROCESSES: u32 = 8;
const ELEVATORS: [&str; 3] = ["noop", "cfq", "fiops"];
/// What the drive does at most, in random reads of 4 KiB a second.
const PEAK_IOPS: f64 = 40_000.0;

/// Measures one of the rows.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    match row.id.as_str() {
        "S5-01" => drive(row),
        "S5-02" => share(row, runner),
        "S5-03" => unfair(row, runner),
        "S5-04" => fairness(row, runner),
        "S5-05" => peaks(row, runner),
        "S5-06" => latency(row, runner),
        "S5-07" => preemption(row, runner),
        "S5-08" => throughput(row, runner),
        "S5-09" => rates(row, runner),
        "S5-10" => rules(row, runner),
        _ => Err(no_measure(row)),
    }
}

/// The drive by itself, with all that it takes at once.
fn drive(row: &Row) -> Result<Measured, PublishedError> {
    let name = row.drive.clone().unwrap_or_default();
    let lacks = || PublishedError::NoInput { id: row.id.clone(), what: "drive", name: name.clone() };
    let profile = Profile::builtin(&name).ok_or_else(lacks)?;
    let per_s = |op: Op, sectors: u32, count: u64| {
        let mut drive = Drive::new(&profile);
        // Multiplicative hashing spreads the pages over the dies (Knuth 1973).
        let page = |number: u64| (number * 2_654_435_761) % 1_000_000;
        let commands = (0..count).map(|number| Access { op, sector: page(number) * 8, sectors }.into());
        let end_ns = closed_loop(&mut drive, 0, u32::MAX, commands, |_, _| {}).map_err(defect)?;
        Ok::<f64, PublishedError>(count as f64 * 1e9 / end_ns as f64)
    };
    Ok(Measured::default()
        .with("reads of 128 KiB", per_s(Op::Read, 256, 20_000)? * 131_072.0 / 1e6)
        .with("writes of 128 KiB", per_s(Op::Write, 256, 5000)? * 131_072.0 / 1e6)
        .with("random reads of 4 KiB", per_s(Op::Read, 8, 100_000)?)
        .with("random writes of 4 KiB", per_s(Op::Write, 8, 50_000)?))
}

/// The test of fairness with so many requests outstanding.
fn fair(row: &Row, elevator: &str, outstanding: u32) -> Result<Experiment, PublishedError> {
    let depth = format!("iodepth={}", outstanding / PROCESSES);
    Ok(Experiment::of(row, elevator)?.with_text("iodepth=8", &depth))
}

/// What group 2 gets by what group 1 gets, and the requests a second of both, with each number of
/// requests outstanding.
fn tested(row: &Row, runner: &mut Runner<'_>, elevator: &str) -> Result<[[f64; 2]; 4], PublishedError> {
    let experiments: Result<Vec<_>, _> = OUTSTANDING.iter().map(|&depth| fair(row, elevator, depth)).collect();
    let mut found = [[0.0; 2]; 4];
    for (at, comparison) in found.iter_mut().zip(runner.compared(&experiments?)?) {
        for run in &comparison.runs {
            *at = [bytes(run, "group2") / bytes(run, "group1"), run.bytes_per_s / 4096.0];
        }
    }
    Ok(found)
}

fn bytes(run: &Run, job: &str) -> f64 {
    run.processes.iter().filter(|process| process.name == job).map(|process| process.bytes as f64).sum()
}

/// The share that priorities 6 and 2 are due, from what a request of each costs; and what comes of
/// it.
fn share(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let found = tested(row, runner, "fiops")?;
    Ok(Measured::default()
        .with("group 2 by group 1", found[2][0])
        .with("priority 6 by priority 2 alone", alone(row, runner)?))
}

/// The rate of a process at priority 6 alone, by one at priority 2 alone: without competitors the
/// cost of a request does not count.
fn alone(row: &Row, runner: &mut Runner<'_>) -> Result<f64, PublishedError> {
    let mut rates = [0.0; 2];
    for (rate, (other, group)) in
        rates.iter_mut().zip([("[group2]\nprio=2\n", "group1"), ("[group1]\nprio=6\n", "group2")])
    {
        let experiment = fair(row, "fiops", 64)?.with_text(other, "");
        for run in runner.compared(&[experiment])?.iter().flat_map(|comparison| &comparison.runs) {
            *rate = bytes(run, group);
        }
    }
    Ok(rates[0] / rates[1])
}

/// Fewer outstanding than the drive takes.
fn unfair(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    for elevator in ELEVATORS {
        measured = measured.with(elevator, tested(row, runner, elevator)?[0][0]);
    }
    Ok(measured)
}

/// More outstanding than the drive takes.
fn fairness(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    let mut lines = Vec::new();
    for elevator in ELEVATORS {
        let found = tested(row, runner, elevator)?;
        for (outstanding, [ratio, _]) in OUTSTANDING.iter().zip(found).skip(1) {
            measured = measured.with(format!("{elevator}, {outstanding}"), ratio);
        }
        let points = OUTSTANDING.iter().zip(found).map(|(outstanding, [ratio, _])| (f64::from(*outstanding), ratio));
        lines.push(Line { name: elevator.to_owned(), points: points.collect(), published: false });
    }
    let plot = Plot { x: "requests outstanding".into(), y: "group 2 by group 1".into(), lines };
    // Filed back by (n - 1) x (180 ms - slice): 7 x 40 and 7 x 120 ms.
    let offsets = tested(row, runner, "cfq")?[1][0] / (840.0 / 280.0);
    Ok(measured.with("cfq, 48, by its offsets", offsets).drawn(Some(plot)))
}

/// The part of the drive's most requests a second.
fn peaks(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    for elevator in ELEVATORS {
        for (outstanding, [_, iops]) in OUTSTANDING.iter().zip(tested(row, runner, elevator)?) {
            measured = measured.with(format!("{elevator}, {outstanding}"), iops / PEAK_IOPS * 100.0);
        }
    }
    Ok(measured)
}

/// Mean latency of the readers in us, and requests a second that the drive has of readers and of
/// writers: several pages that lie side by side are one request of a writer's.
fn beside_writers(run: &Run, _: f64) -> [f64; 3] {
    let readers = || run.processes.iter().filter(|process| process.name == "readers");
    let reads: f64 = readers().map(|process| process.read.ios as f64).sum();
    let latency_ns = readers().map(|process| process.latency_ns.mean).sum::<f64>() / readers().count().max(1) as f64;
    let seconds = run.runtime_ns as f64 / 1e9;
    [latency_ns / 1e3, reads / seconds, (run.drive_requests as f64 - reads) / seconds]
}

/// Sync reads beside async writes.
fn latency(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    for elevator in ELEVATORS {
        let [latency_us, ..] = runner.means(Experiment::of(row, elevator)?, row.seeds, beside_writers)?;
        measured = measured.with(elevator, latency_us);
    }
    let deep = Experiment::of(row, "fiops")?.with_job(row, 1)?;
    let [_, sync, asynchronous] = runner.means(deep, row.seeds, beside_writers)?;
    Ok(measured.with("fiops, sync by async", sync / asynchronous))
}

/// The same with the patch that lets sync requests go first.
fn preemption(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let preempting =
        |job: usize| Ok::<_, PublishedError>(Experiment::of(row, "fiops")?.with_job(row, job)?.with("sync_preempt=2"));
    let [cfq_us, ..] = runner.means(Experiment::of(row, "cfq")?, row.seeds, beside_writers)?;
    let [without_us, ..] = runner.means(Experiment::of(row, "fiops")?, row.seeds, beside_writers)?;
    let [with_us, ..] = runner.means(preempting(0)?, row.seeds, beside_writers)?;
    let [_, _, without] = runner.means(Experiment::of(row, "fiops")?.with_job(row, 1)?, row.seeds, beside_writers)?;
    let [_, _, with] = runner.means(preempting(1)?, row.seeds, beside_writers)?;
    Ok(Measured::default()
        .with("latency, by cfq's", with_us / cfq_us)
        .with("latency without, by cfq's", without_us / cfq_us)
        .with("async requests, by those without", with / without))
}

/// A workload of the table, by its name there: pattern, size, engine, and whether it goes past the
/// page cache.
fn workload(row: &Row, name: &str, elevator: &str) -> Result<Experiment, PublishedError> {
    let (kind, size) = name.rsplit_once('_').unwrap_or((name, "4k"));
    let (engine, direct, pattern) = match kind {
        "sync_read" => ("sync", 0, "read"),
        "sync_write" => ("sync", 0, "write"),
        "mmap_sync_read" => ("mmap", 0, "read"),
        _ => match kind.split_once('_') {
            Some(("aio", pattern)) => ("libaio", 1, pattern),
            Some(("mmap", pattern)) => ("mmap", 0, pattern),
            _ => return Err(no_measure(row)),
        },
    };
    Ok(Experiment::of(row, elevator)?
        .with_text("rw=randread", &format!("rw={pattern}"))
        .with_text("bs=4k", &format!("bs={size}"))
        .with_text("ioengine=libaio", &format!("ioengine={engine}"))
        .with_text("direct=1", &format!("direct={direct}")))
}

/// CFQ's throughput by FIOPS', workload by workload.
fn throughput(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    for value in &row.values {
        let mut rates = [0.0; 2];
        for (rate, elevator) in rates.iter_mut().zip(["cfq", "fiops"]) {
            [*rate] = runner.means(workload(row, &value.name, elevator)?, 1, |run, _| [run.bytes_per_s])?;
        }
        measured = measured.with(value.name.clone(), rates[0] / rates[1]);
    }
    Ok(measured)
}

/// One drive's part of what eight drives did, in MB/s.
fn rates(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    for value in &row.values {
        let [rate] = runner.means(workload(row, &value.name, "fiops")?, 1, |run, _| {
            [run.drive_bytes as f64 * 1e3 / run.runtime_ns as f64]
        })?;
        measured = measured.with(value.name.clone(), rate);
    }
    Ok(measured)
}

/// The rules that FIOPS chooses by, in worlds with 64 requests outstanding: two groups that differ
/// in one thing.
fn rules(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut groups = |one: &str, two: &str| {
        let experiment = fair(row, "fiops", 64)?.with_text("prio=6", one).with_text("prio=2", two);
        runner.means(experiment, 1, |run, _| {
            [bytes(run, "group1"), bytes(run, "group2"), bytes_from(run, "group1", 1_000_000_000)]
        })
    };
    let [one, two, _] = groups("prio=0", "prio=7")?;
    let [real_time, best_effort, _] = groups("prioclass=1", "prio=4")?;
    let [other, idle, _] = groups("prio=4", "prioclass=3")?;
    let [_, late, since] = groups("prio=4", "prio=4\nstartdelay=1\nruntime=2")?;
    let percent = |part: f64, whole: f64| part / (part + whole) * 100.0;
    Ok(Measured::default()
        .with("priority 7 by priority 0", two / one)
        .with("best effort beside real time", percent(best_effort, real_time))
        .with("idle beside best effort", percent(idle, other))
        .with("late by early, from then on", late / since))
}

/// What a job's processes moved from `from_ns` of their own time on, by whole windows.
fn bytes_from(run: &Run, job: &str, from_ns: u64) -> f64 {
    let processes = run.processes.iter().filter(|process| process.name == job);
    let after = |process: &ProcessRun| {
        let skipped = (from_ns / process.window_ns.max(1)) as usize;
        process.windows.iter().skip(skipped).map(|window| window.bytes as f64).sum::<f64>()
    };
    processes.map(after).sum()
}
