//! Measurements of the rows of `published/s5.toml`.

use hoistway_drive::{Access, Drive, Op, closed_loop};

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::{job_bytes, processes};
use crate::runner::{Experiment, Runner};
use crate::verdict::{Line, Measured, Plot};
use hoistway_sim::{ProcessRun, Run};

/// Requests in flight in the four tests of fairness; the first is below the depth of the drive.
const OUTSTANDING: [u32; 4] = [24, 48, 64, 96];
/// Number of processes in a test of fairness.
const PROCESSES: u32 = 8;
const ELEVATORS: [&str; 3] = ["noop", "cfq", "fiops"];
/// The maximum number of random reads of 4 KiB a second that the drive serves.
const PEAK_IOPS: f64 = 40_000.0;

/// Measures a row of the publication.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    match row.id.as_str() {
        "S5-01" => drive(row),
        "S5-02" => share(row, runner),
        "S5-03" => below_depth(row, runner),
        "S5-04" => above_depth(row, runner),
        "S5-05" => peaks(row, runner),
        "S5-06" => latency(row, runner),
        "S5-07" => preemption(row, runner),
        "S5-08" => throughput(row, runner),
        "S5-09" => rates(row, runner),
        "S5-10" => rules(row, runner),
        _ => Err(ReproduceError::no_measure(&row.id)),
    }
}

/// The drive alone at its full depth: bandwidth in MB/s, and requests a second.
fn drive(row: &Row) -> Result<Measured, ReproduceError> {
    let profile = row.profile()?;
    let per_s = |op: Op, sectors: u32, count: u64| {
        let mut drive = Drive::new(&profile);
        // Multiplicative hashing spreads the pages over the dies (Knuth 1973).
        let page = |number: u64| (number * 2_654_435_761) % 1_000_000;
        let commands = (0..count).map(|number| Access { op, sector: page(number) * 8, sectors }.into());
        let end_ns = closed_loop(&mut drive, 0, u32::MAX, commands, |_, _| {}).map_err(ReproduceError::defect)?;
        Ok::<f64, ReproduceError>(count as f64 * 1e9 / end_ns as f64)
    };
    Ok(Measured::default()
        .with("reads of 128 KiB", per_s(Op::Read, 256, 20_000)? * 131_072.0 / 1e6)
        .with("writes of 128 KiB", per_s(Op::Write, 256, 5000)? * 131_072.0 / 1e6)
        .with("random reads of 4 KiB", per_s(Op::Read, 8, 100_000)?)
        .with("random writes of 4 KiB", per_s(Op::Write, 8, 50_000)?))
}

/// The test of fairness with `outstanding` requests in flight.
fn fairness_test(row: &Row, elevator: &str, outstanding: u32) -> Result<Experiment, ReproduceError> {
    let depth = format!("iodepth={}", outstanding / PROCESSES);
    Ok(Experiment::of(row, elevator)?.with_text("iodepth=8", &depth))
}

/// The bytes of group 2 over those of group 1, and the requests a second of both, for each of
/// [`OUTSTANDING`].
fn fairness_figures(row: &Row, runner: &mut Runner<'_>, elevator: &str) -> Result<[[f64; 2]; 4], ReproduceError> {
    let experiments: Result<Vec<_>, _> = OUTSTANDING.iter().map(|&depth| fairness_test(row, elevator, depth)).collect();
    let mut found = [[0.0; 2]; 4];
    for (at, comparison) in found.iter_mut().zip(runner.compared(&experiments?)?) {
        for run in &comparison.runs {
            *at = [job_bytes(run, "group2") / job_bytes(run, "group1"), run.bytes_per_s / 4096.0];
        }
    }
    Ok(found)
}

/// The ratio of bytes of priorities 2 and 6 with 64 requests in flight, and the ratio of their
/// rates without competition.
fn share(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let found = fairness_figures(row, runner, "fiops")?;
    Ok(Measured::default()
        .with("group 2 by group 1", found[2][0])
        .with("priority 6 by priority 2 alone", alone(row, runner)?))
}

/// The rate of a process at priority 6 alone over that of one at priority 2 alone. Without
/// competition, the cost of a request has no effect.
fn alone(row: &Row, runner: &mut Runner<'_>) -> Result<f64, ReproduceError> {
    let mut rates = [0.0; 2];
    for (rate, (other, group)) in
        rates.iter_mut().zip([("[group2]\nprio=2\n", "group1"), ("[group1]\nprio=6\n", "group2")])
    {
        let experiment = fairness_test(row, "fiops", 64)?.with_text(other, "");
        for run in runner.compared(&[experiment])?.iter().flat_map(|comparison| &comparison.runs) {
            *rate = job_bytes(run, group);
        }
    }
    Ok(rates[0] / rates[1])
}

/// The ratio of the groups with fewer requests in flight than the depth of the drive.
fn below_depth(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for elevator in ELEVATORS {
        measured = measured.with(elevator, fairness_figures(row, runner, elevator)?[0][0]);
    }
    Ok(measured)
}

/// The ratio of the groups with more requests in flight than the depth of the drive.
fn above_depth(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    let mut lines = Vec::new();
    for elevator in ELEVATORS {
        let found = fairness_figures(row, runner, elevator)?;
        for (outstanding, [ratio, _]) in OUTSTANDING.iter().zip(found).skip(1) {
            measured = measured.with(format!("{elevator}, {outstanding}"), ratio);
        }
        let points = OUTSTANDING.iter().zip(found).map(|(outstanding, [ratio, _])| (f64::from(*outstanding), ratio));
        lines.push(Line { name: elevator.to_owned(), points: points.collect(), published: false });
    }
    let plot = Plot { x: "requests outstanding".into(), y: "group 2 by group 1".into(), lines };
    // CFQ sorts a queue back by (n - 1) x (180 ms - slice): 7 x 40 and 7 x 120 ms.
    let offsets = fairness_figures(row, runner, "cfq")?[1][0] / (840.0 / 280.0);
    Ok(measured.with("cfq, 48, by its offsets", offsets).with_plot(Some(plot)))
}

/// The requests a second in percent of the drive's maximum.
fn peaks(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for elevator in ELEVATORS {
        for (outstanding, [_, iops]) in OUTSTANDING.iter().zip(fairness_figures(row, runner, elevator)?) {
            measured = measured.with(format!("{elevator}, {outstanding}"), iops / PEAK_IOPS * 100.0);
        }
    }
    Ok(measured)
}

/// The mean latency of readers in us, and the requests a second of readers and of writers at the
/// drive. Adjacent pages are one request of a writer.
fn reader_and_writer_figures(run: &Run, _: f64) -> [f64; 3] {
    let readers = || processes(run, "readers");
    let reads: f64 = readers().map(|process| process.read.ios as f64).sum();
    let latency_ns = readers().map(|process| process.latency_ns.mean).sum::<f64>() / readers().count().max(1) as f64;
    let seconds = run.runtime_ns as f64 / 1e9;
    [latency_ns / 1e3, reads / seconds, (run.drive_requests as f64 - reads) / seconds]
}

/// The latency of sync reads beside async writes, in us.
fn latency(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for elevator in ELEVATORS {
        let [latency_us, ..] = runner.means(Experiment::of(row, elevator)?, row.seeds, reader_and_writer_figures)?;
        measured = measured.with(elevator, latency_us);
    }
    let deep = Experiment::of(row, "fiops")?.with_job(row, 1)?;
    let [_, sync, asynchronous] = runner.means(deep, row.seeds, reader_and_writer_figures)?;
    Ok(measured.with("fiops, sync by async", sync / asynchronous))
}

/// The latency of sync reads with the patch that serves sync requests first.
fn preemption(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let preempting =
        |job: usize| Ok::<_, ReproduceError>(Experiment::of(row, "fiops")?.with_job(row, job)?.with("sync_preempt=2"));
    let [cfq_us, ..] = runner.means(Experiment::of(row, "cfq")?, row.seeds, reader_and_writer_figures)?;
    let [without_us, ..] = runner.means(Experiment::of(row, "fiops")?, row.seeds, reader_and_writer_figures)?;
    let [with_us, ..] = runner.means(preempting(0)?, row.seeds, reader_and_writer_figures)?;
    let [_, _, without] =
        runner.means(Experiment::of(row, "fiops")?.with_job(row, 1)?, row.seeds, reader_and_writer_figures)?;
    let [_, _, with] = runner.means(preempting(1)?, row.seeds, reader_and_writer_figures)?;
    Ok(Measured::default()
        .with("latency, by cfq's", with_us / cfq_us)
        .with("latency without, by cfq's", without_us / cfq_us)
        .with("async requests, by those without", with / without))
}

/// A workload of the publication's table, by its name: pattern, size, engine, direct or buffered
/// I/O.
fn workload(row: &Row, name: &str, elevator: &str) -> Result<Experiment, ReproduceError> {
    let (kind, size) = name.rsplit_once('_').unwrap_or((name, "4k"));
    let (engine, direct, pattern) = match kind {
        "sync_read" => ("sync", 0, "read"),
        "sync_write" => ("sync", 0, "write"),
        "mmap_sync_read" => ("mmap", 0, "read"),
        _ => match kind.split_once('_') {
            Some(("aio", pattern)) => ("libaio", 1, pattern),
            Some(("mmap", pattern)) => ("mmap", 0, pattern),
            _ => return Err(ReproduceError::no_measure(&row.id)),
        },
    };
    Ok(Experiment::of(row, elevator)?
        .with_text("rw=randread", &format!("rw={pattern}"))
        .with_text("bs=4k", &format!("bs={size}"))
        .with_text("ioengine=libaio", &format!("ioengine={engine}"))
        .with_text("direct=1", &format!("direct={direct}")))
}

/// The throughput of CFQ over that of FIOPS, for each workload.
fn throughput(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
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

/// The bandwidth of one drive in MB/s; the published figures are of eight drives.
fn rates(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    for value in &row.values {
        let [rate] = runner.means(workload(row, &value.name, "fiops")?, 1, |run, _| {
            [run.drive_bytes as f64 * 1e3 / run.runtime_ns as f64]
        })?;
        measured = measured.with(value.name.clone(), rate);
    }
    Ok(measured)
}

/// The rules by which FIOPS chooses, with 64 requests in flight and two groups that differ in one
/// property.
fn rules(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut groups = |one: &str, two: &str| {
        let experiment = fairness_test(row, "fiops", 64)?.with_text("prio=6", one).with_text("prio=2", two);
        runner.means(experiment, 1, |run, _| {
            [job_bytes(run, "group1"), job_bytes(run, "group2"), bytes_from(run, "group1", 1_000_000_000)]
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

/// Bytes that the processes of a job moved after `from_ns` of their own time, in whole windows.
fn bytes_from(run: &Run, job: &str, from_ns: u64) -> f64 {
    let after = |process: &ProcessRun| {
        let skipped = (from_ns / process.window_ns.max(1)) as usize;
        process.windows.iter().skip(skipped).map(|window| window.bytes as f64).sum::<f64>()
    };
    processes(run, job).map(after).sum()
}
