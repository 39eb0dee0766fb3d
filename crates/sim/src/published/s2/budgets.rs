//! Budgets of sectors against slices of time.

use hoistway_drive::{Access, Drive, Op, Profile, describe};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::compare::Run;
use crate::error::SimError;
use crate::published::PublishedError;
use crate::published::expectation::Row;
use crate::published::runner::{Experiment, Runner};
use crate::published::s2::as_posted;
use crate::published::verdict::{Line, Measured, Plot};

/// The budget that the thread talks of, in sectors.
const BUDGET: u32 = 4096;

/// Two files at both ends of the disk, read at once, with budgets of 4096 sectors.
pub fn two_files(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let [rate, turn] = runner.means(as_posted(Experiment::of(row, "bfq-v0")?), row.seeds, |run, _| {
        let seconds = run.runtime_ns as f64 / 1e9;
        let bytes: u64 = run.processes.iter().map(|process| process.bytes).sum();
        [bytes as f64 / 1e6 / seconds, bytes as f64 / 1024.0 / run.turns as f64]
    })?;
    let budget_ms = f64::from(BUDGET) * 512.0 / rate / 1000.0;
    Ok(Measured::default().with("together", rate).with("time of a budget", budget_ms).with("data a turn", turn))
}

/// Reads of so many sectors: from end to end of the disk, and anywhere; and how long a budget of
/// such reads lasts.
pub fn small_reads(row: &Row, sectors: u32) -> Result<Measured, PublishedError> {
    let [strokes, random] = [true, false].map(|strokes| ms_a_read(row, sectors, strokes));
    let (strokes, random) = (strokes?, random?);
    let kb_s = |ms: f64| f64::from(sectors) * 512.0 / ms;
    let reads = f64::from(BUDGET / sectors);
    Ok(Measured::default()
        .with("end to end", kb_s(strokes))
        .with("anywhere", kb_s(random))
        .with("a budget end to end", strokes * reads / 1000.0)
        .with("a budget anywhere", random * reads / 1000.0))
}

/// The same with 512 bytes a read; and how long one process holds another up with them, with a
/// bound on time and without.
pub fn a_budget_of_sectors(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let posted = as_posted(Experiment::of(row, "bfq-v0")?);
    let bounded = Experiment::of(row, "bfq-v0")?.with("max_budget=4096");
    let longest = |run: &Run, _: f64| {
        let stream = run.processes.iter().filter(|process| process.name == "stream");
        [stream.map(|process| process.latency_ns.max as f64 / 1e9).fold(0.0, f64::max)]
    };
    let [without] = runner.means(posted, row.seeds, longest)?;
    let [with] = runner.means(bounded, row.seeds, longest)?;
    Ok(small_reads(row, 1)?.with("held up", without).with("held up with a bound on time", with))
}

/// Two streams at both ends: what each gets, with slices of time and with budgets of sectors.
pub fn zones(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let drive = describe(&profile(row)?);
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

/// The same: all together, with either.
pub fn aggregates(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let drive = describe(&profile(row)?);
    let (outer, inner) = (drive.sequential_outer_mb_s, drive.sequential_inner_mb_s);
    let due = (2.0 / (1.0 / outer + 1.0 / inner)) / ((outer + inner) / 2.0);
    // Per byte moved and second of transfer, so that how often either seeks does not count.
    let rate = |run: &Run, _: f64| {
        let bytes: u64 = run.processes.iter().map(|process| process.bytes).sum();
        [bytes as f64 / run.runtime_ns as f64, bytes as f64 / (run.drive_ns.transfer + run.drive_ns.rotation) as f64]
    };
    let [time, time_media] = runner.means(Experiment::of(row, "cfq-tree")?, row.seeds, rate)?;
    let [sectors, sectors_media] = runner.means(budget_as_long_as_a_slice(row)?, row.seeds, rate)?;
    Ok(Measured::default()
        .with("budgets by slices", (sectors / time - 1.0) * 100.0)
        .with("due by the drive's zones", (due - 1.0) * 100.0)
        .with("off what is due", ((sectors_media / time_media) / due - 1.0) * 100.0))
}

/// The longest wait of a light reader beside 2 to 64 streams: how it grows with them, and what it
/// is of the bound that budgets give.
pub fn light_reader(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
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
    Ok(measured.drawn(Some(plot)))
}

/// The light reader's wait, its 99th percentile and the longest, in ms, and what all move together,
/// in sectors a ms.
fn light_wait(run: &Run, _: f64) -> [f64; 3] {
    let light = run.processes.iter().filter(|process| process.name == "light");
    let (p99, max) =
        light.fold((0, 0), |(p99, max), process| (p99.max(process.latency_ns.p99), max.max(process.latency_ns.max)));
    let bytes: u64 = run.processes.iter().map(|process| process.bytes).sum();
    [p99 as f64 / 1e6, max as f64 / 1e6, bytes as f64 / 512.0 / (run.runtime_ns as f64 / 1e6)]
}

/// What may be served before a reader that comes back beside so many streams of its weight: its own
/// budget by its share, and one of the largest. Its own is the first, three quarters of the
/// largest, or less.
fn bound_sectors(streams: u32) -> f64 {
    f64::from(BUDGET) * 0.75 * f64::from(streams + 1) + f64::from(BUDGET)
}

/// A stream beside a process that reads all over the disk: what the stream gets, with slices of
/// time and with budgets of sectors.
pub fn beside_a_seeky_one(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let rate = |run: &Run, _: f64| {
        let stream = run.processes.iter().filter(|process| process.name == "stream");
        [stream.map(|process| process.bytes_per_s / 1e6).sum()]
    };
    let [time] = runner.means(Experiment::of(row, "cfq-tree")?.with_text("bs=512", "bs=4k"), row.seeds, rate)?;
    let sectors = as_posted(Experiment::of(row, "bfq-v0")?.with_text("bs=512", "bs=4k"));
    let [sectors] = runner.means(sectors, row.seeds, rate)?;
    Ok(Measured::default().with("slices of time", time).with("budgets of sectors", sectors))
}

/// What one of weight 100 has beside a hundred of weight 1, and what one of them has beside it
/// alone.
pub fn weights(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let share = |run: &Run, name: &str| {
        run.groups.iter().filter(|group| group.name == name).map(|group| group.share * 100.0).sum::<f64>()
    };
    let all = Experiment::of(row, "bfq")?.with("low_latency=0");
    let two = all.clone().with_job(row, 1)?;
    let [heavy] = runner.means(all, row.seeds, |run, _| [share(run, "heavy")])?;
    let [light] = runner.means(two, row.seeds, |run, _| [share(run, "light")])?;
    Ok(Measured::default().with("one of weight 100", heavy).with("one of the hundred, alone", light))
}

/// Budgets of 12,288 sectors, 100 ms at the 62 MB/s that are the mean of the drive's ends: neither
/// side seeks more than the other.
fn budget_as_long_as_a_slice(row: &Row) -> Result<Experiment, PublishedError> {
    Ok(as_posted(Experiment::of(row, "bfq-v0")?).with("max_budget=12288"))
}

/// The mean time of a read in ms: from end to end of the disk in turn, or anywhere.
fn ms_a_read(row: &Row, sectors: u32, strokes: bool) -> Result<f64, PublishedError> {
    const READS: u32 = 4000;
    let mut drive = Drive::new(&profile(row)?.without_buffer());
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let last = drive.capacity_sectors() - u64::from(sectors);
    let mut now_ns = 0;
    for index in 0..READS {
        // Within 1 % of either end, so that the platter is met at any angle.
        let near = random.random_range(0..last / 100);
        let sector = match (strokes, index % 2) {
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

fn profile(row: &Row) -> Result<Profile, PublishedError> {
    let name = row.drive.clone().unwrap_or_default();
    let found = Profile::builtin(&name);
    found.ok_or_else(|| PublishedError::NoInput { id: row.id.clone(), what: "drive", name })
}
