//! Comparisons of budgets in sectors with slices of time.

use hoistway_drive::{Access, Drive, Op, describe};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::posted::as_posted;
use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::{processes, total_bytes};
use crate::runner::{Experiment, Runner};
use crate::verdict::{Line, Measured, Plot};
use hoistway_sim::{Run, SimError};

/// The budget in the thread, in sectors.
const BUDGET: u32 = 4096;

/// Two files at both ends of the disk that are read at once, with budgets of 4096 sectors:
/// bandwidth in MB/s, time of a budget in s, KiB of a turn.
pub fn two_files(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let [rate, turn] = runner.means(as_posted(Experiment::of(row, "bfq-v0")?), row.seeds, |run, _| {
        let seconds = run.runtime_ns as f64 / 1e9;
        let bytes = total_bytes(run);
        [bytes as f64 / 1e6 / seconds, bytes as f64 / 1024.0 / run.turns as f64]
    })?;
    let budget_ms = f64::from(BUDGET) * 512.0 / rate / 1000.0;
    Ok(Measured::default().with("together", rate).with("time of a budget", budget_ms).with("data a turn", turn))
}

/// Reads of `sectors` sectors that alternate between both ends of the disk, and at random
/// positions: the rates in kB/s, and the time of a budget of such reads in s.
pub fn small_reads(row: &Row, sectors: u32) -> Result<Measured, ReproduceError> {
    let [strokes, random] = [true, false].map(|alternates| read_ms(row, sectors, alternates));
    let (strokes, random) = (strokes?, random?);
    let kb_s = |ms: f64| f64::from(sectors) * 512.0 / ms;
    let reads = f64::from(BUDGET / sectors);
    Ok(Measured::default()
        .with("end to end", kb_s(strokes))
        .with("anywhere", kb_s(random))
        .with("a budget end to end", strokes * reads / 1000.0)
        .with("a budget anywhere", random * reads / 1000.0))
}

/// Reads of 512 bytes as in [`small_reads`], and the longest wait of another process for such a
/// budget in s, with and without a bound on its time.
pub fn a_budget_of_sectors(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let posted = as_posted(Experiment::of(row, "bfq-v0")?);
    let bounded = Experiment::of(row, "bfq-v0")?.with("max_budget=4096");
    let longest = |run: &Run, _: f64| {
        [processes(run, "stream").map(|process| process.latency_ns.max as f64 / 1e9).fold(0.0, f64::max)]
    };
    let [without] = runner.means(posted, row.seeds, longest)?;
    let [with] = runner.means(bounded, row.seeds, longest)?;
    Ok(small_reads(row, 1)?.with("held up", without).with("held up with a bound on time", with))
}

/// Two streams at both ends of the disk: the ratio of their bandwidths, with slices of time and
/// with budgets in sectors.
pub fn zones(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let drive = describe(&row.profile()?);
    let zones = drive.sequential_outer_mb_s / drive.sequential_inner_mb_s;
    let ratio = |run: &Run, _: f64| [run.processes[0].bytes_per_s / run.processes[1].bytes_per_s];
    let [time] = runner.means(Experiment::of(row, "cfq-tree")?, row.seeds, ratio)?;
    let [sectors] = runner.means(budget_as_long_as_a_slice(row)?, row.seeds, ratio)?;
    let measured = Measured::default().with("slices of time", time / zones * 65.0 / 40.0);
    Ok(measured
        .with("slices of time, as it is", time)
        .with("the drive's zones", zones)
        .with("budgets of sectors", sectors))
}

/// Two streams at both ends of the disk: the difference in total bandwidth between budgets in
/// sectors and slices of time, in percent.
pub fn aggregates(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let drive = describe(&row.profile()?);
    let (outer, inner) = (drive.sequential_outer_mb_s, drive.sequential_inner_mb_s);
    let due = (2.0 / (1.0 / outer + 1.0 / inner)) / ((outer + inner) / 2.0);
    // The second figure is per second of transfer and rotation, which excludes seeks.
    let rate = |run: &Run, _: f64| {
        let bytes = total_bytes(run);
        [bytes as f64 / run.runtime_ns as f64, bytes as f64 / (run.drive_ns.transfer + run.drive_ns.rotation) as f64]
    };
    let [time, time_media] = runner.means(Experiment::of(row, "cfq-tree")?, row.seeds, rate)?;
    let [sectors, sectors_media] = runner.means(budget_as_long_as_a_slice(row)?, row.seeds, rate)?;
    Ok(Measured::default()
        .with("budgets by slices", (sectors / time - 1.0) * 100.0)
        .with("due by the drive's zones", (due - 1.0) * 100.0)
        .with("off what is due", ((sectors_media / time_media) / due - 1.0) * 100.0))
}

/// The longest wait of a light reader beside 2 to 64 streams: its growth in ms per stream, and its
/// ratio to the bound that follows from budgets.
pub fn light_reader(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let (mut lines, mut of_bound) = (Vec::new(), 0.0_f64);
    for (elevator, name) in [("cfq-tree", "cfq"), ("bfq-v0", "bfq"), ("cfq-wf2q", "slices by WF2Q+")] {
        let mut points = Vec::new();
        for count in [2u32, 4, 8, 16, 32, 64] {
            let text = format!("numjobs={count}");
            let experiment = Experiment::of(row, elevator)?.with_text("numjobs=8", &text);
            let experiment = if elevator == "bfq-v0" { as_posted(experiment) } else { experiment };
            let [p99_ms, max_ms, sectors_per_ms] = runner.means(experiment, row.seeds, light_wait)?;
            points.push((f64::from(count), p99_ms));
            if elevator == "bfq-v0" {
                of_bound = of_bound.max(max_ms / (bound_sectors(count) / sectors_per_ms));
            }
        }
        lines.push(Line { name: name.to_owned(), points, published: false });
    }
    let slope = |line: &Line| {
        let (first, last) = (line.points[0], line.points[line.points.len() - 1]);
        (last.1 - first.1) / (last.0 - first.0)
    };
    let measured = Measured::default()
        .with("cfq", slope(&lines[0]))
        .with("bfq", slope(&lines[1]))
        .with("slices by WF2Q+", slope(&lines[2]))
        .with("bfq by cfq", slope(&lines[1]) / slope(&lines[0]) * 100.0)
        .with("bfq by its bound", of_bound);
    let plot = Plot {
        x: "streams beside it".to_owned(),
        y: "wait of the light reader (99th percentile), ms".to_owned(),
        lines,
    };
    Ok(measured.with_plot(Some(plot)))
}

/// The 99th percentile and the maximum of the light reader's wait in ms, and the total bandwidth in
/// sectors a ms.
fn light_wait(run: &Run, _: f64) -> [f64; 3] {
    let (p99, max) = processes(run, "light")
        .fold((0, 0), |(p99, max), process| (p99.max(process.latency_ns.p99), max.max(process.latency_ns.max)));
    let bytes = total_bytes(run);
    [p99 as f64 / 1e6, max as f64 / 1e6, bytes as f64 / 512.0 / (run.runtime_ns as f64 / 1e6)]
}

/// The maximum number of sectors that are served before a returning reader beside `streams` streams
/// of its weight: its own budget divided by its share, and one budget of maximum size. Its own
/// budget is at most the first one, three quarters of the maximum.
fn bound_sectors(streams: u32) -> f64 {
    f64::from(BUDGET) * 0.75 * f64::from(streams + 1) + f64::from(BUDGET)
}

/// The bandwidth of a stream beside a process with random reads in MB/s, with slices of time and
/// with budgets in sectors.
pub fn stream_with_seeky_reader(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let rate = |run: &Run, _: f64| [processes(run, "stream").map(|process| process.bytes_per_s / 1e6).sum()];
    let [time] = runner.means(Experiment::of(row, "cfq-tree")?.with_text("bs=512", "bs=4k"), row.seeds, rate)?;
    let sectors = as_posted(Experiment::of(row, "bfq-v0")?.with_text("bs=512", "bs=4k"));
    let [sectors] = runner.means(sectors, row.seeds, rate)?;
    Ok(Measured::default().with("slices of time", time).with("budgets of sectors", sectors))
}

/// The share in percent of a group of weight 100 beside a hundred groups of weight 1, and of one
/// group of weight 1 beside the group of weight 100.
pub fn weights(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let share = |run: &Run, name: &str| {
        run.groups.iter().filter(|group| group.name == name).map(|group| group.share * 100.0).sum::<f64>()
    };
    let all = Experiment::of(row, "bfq")?.with("low_latency=0");
    let two = all.clone().with_job(row, 1)?;
    let [heavy] = runner.means(all, row.seeds, |run, _| [share(run, "heavy")])?;
    let [light] = runner.means(two, row.seeds, |run, _| [share(run, "light")])?;
    Ok(Measured::default().with("one of weight 100", heavy).with("one of the hundred, alone", light))
}

/// BFQ with budgets of 12,288 sectors. They take 100 ms at 62 MB/s, the mean of both ends of the
/// drive, so that slices of time and budgets have the same number of seeks.
fn budget_as_long_as_a_slice(row: &Row) -> Result<Experiment, ReproduceError> {
    Ok(as_posted(Experiment::of(row, "bfq-v0")?).with("max_budget=12288"))
}

/// The mean time of a read in ms: alternating between both ends of the disk, or at random
/// positions.
fn read_ms(row: &Row, sectors: u32, alternates: bool) -> Result<f64, ReproduceError> {
    const READS: u32 = 4000;
    let mut drive = Drive::new(&row.profile()?.without_buffer());
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let last = drive.capacity_sectors() - u64::from(sectors);
    let mut now_ns = 0;
    for index in 0..READS {
        // Within 1 % of an end, so that the angle of the platter is random.
        let near = random.random_range(0..last / 100);
        let sector = match (alternates, index % 2) {
            (true, 0) => near,
            (true, _) => last - near,
            (false, _) => random.random_range(0..last),
        };
        let served = drive.serve(now_ns, Access { op: Op::Read, sector, sectors });
        let defect = |error: &dyn std::fmt::Display| SimError::Defect { seed: 1, now_ns, problem: error.to_string() };
        now_ns = served.map_err(|error| defect(&error))?.service.finish_ns;
    }
    Ok(now_ns as f64 / 1e6 / f64::from(READS))
}
