//! Films with deadlines of a second, as many as an elevator carries.

use crate::compare::{Comparison, Run};
use crate::published::PublishedError;
use crate::published::expectation::Row;
use crate::published::runner::{Experiment, Runner};
use crate::published::verdict::{Line, Measured, Plot};

/// MiB/s of a film in HD, and of one in SD.
pub const HD: u32 = 3;
pub const SD: u32 = 1;
/// No drive that the rows name carries as many films.
const FILMS_MAX: u32 = 128;
/// The part of the disk over which they lie, in MiB: ten films are 18 GiB apart, as in the job
/// file.
const DISK_MIB: u32 = 180 << 10;

/// The means by which films are distinguished from other readers: a reservation, a class, or none.
const WAYS: [(&str, &str, Option<u32>); 6] = [
    ("bandwidth class", "cfq-bw", None),
    ("real time", "cfq-tree", Some(1)),
    ("best effort", "cfq-tree", Some(2)),
    ("anticipatory", "anticipatory", None),
    ("deadline", "deadline", None),
    ("noop", "noop", None),
];

/// Rounds that films miss with growing numbers of them, and with the published number.
pub fn misses(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let counts = [4u32, 7, 10, 13, 16];
    let mut measured = Measured::default();
    let mut lines = Vec::new();
    for (name, elevator, class) in WAYS.into_iter().take(3) {
        let mut points = Vec::new();
        for count in counts {
            let experiment = films(row, elevator, class, HD, count)?;
            let figures = |run: &Run, _: f64| [missed(run, "film"), missed(run, "sequential")];
            let [late, late_others] = runner.means(experiment, row.seeds, figures)?;
            if count == 10 {
                measured = measured.with(name, late).with(format!("{name}, the others"), late_others);
            }
            points.push((f64::from(count), late / f64::from(count)));
        }
        let falls = points.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
        measured = measured.with(format!("{name}, falls"), falls as f64);
        lines.push(Line { name: name.to_owned(), points, published: false });
    }
    let plot = Plot { x: "films".to_owned(), y: "rounds missed by a film, of 60".to_owned(), lines };
    Ok(measured.drawn(Some(plot)))
}

/// The most films without a missed deadline, for each way.
pub fn most(row: &Row, runner: &mut Runner<'_>, mib: u32) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    let mut of_classes = [0.0; 3];
    for (index, (name, elevator, class)) in WAYS.into_iter().enumerate() {
        let most = most_films(row, runner, |count| films(row, elevator, class, mib, count))?;
        measured = measured.with(name, most);
        if let Some(of_class) = of_classes.get_mut(index) {
            *of_class = most;
        }
    }
    let existing = of_classes[1].max(of_classes[2]);
    Ok(measured.with("more", (of_classes[0] / existing - 1.0) * 100.0))
}

/// How far the head goes for a request of a film, as a part of the disk: with each of the classes.
pub fn head(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    let mut measured = Measured::default();
    let mut parts = [[0.0; 2]; 3];
    for (index, (name, elevator, class)) in WAYS.into_iter().take(3).enumerate() {
        let figures = |run: &Run, _: f64| [distance(run, false), distance(run, true)];
        let [distance, among] = runner.means(films(row, elevator, class, HD, 10)?.recorded(), row.seeds, figures)?;
        parts[index] = [distance, among];
        let gib = distance / f64::from(2 << 20);
        measured = measured.with(name, gib).with(format!("{name}, among films"), among / f64::from(2 << 20));
    }
    Ok(measured
        .with("real time by bandwidth class", parts[1][0] / parts[0][0])
        .with("best effort by bandwidth class", parts[2][0] / parts[0][0]))
}

/// So many films beside the others of the job. Admission is off, and a bucket holds a round: theirs
/// had neither bound.
fn films(row: &Row, elevator: &str, class: Option<u32>, mib: u32, count: u32) -> Result<Experiment, PublishedError> {
    let class = class.unwrap_or(2);
    let apart = DISK_MIB / count.max(1);
    let text = format!("prioclass={class}\noffset_increment={apart}m\nnumjobs={count}");
    let experiment = Experiment::of(row, elevator)?.with_text("prioclass=2\noffset_increment=18g\nnumjobs=10", &text);
    let experiment = experiment.with_text("=3m", &format!("={mib}m"));
    let settings: &[&str] = match elevator {
        "cfq-bw" => &["device_bandwidth=10000000", "device_position=0", "device_return=0", "sweep_horizon=1000"],
        _ => &[],
    };
    Ok(settings.iter().fold(experiment, |experiment, setting| experiment.with(setting)))
}

/// The mean over the seeds of the most films that miss nothing, each by bisection; the seeds go
/// side by side.
fn most_films(
    row: &Row,
    runner: &mut Runner<'_>,
    films: impl Fn(u32) -> Result<Experiment, PublishedError>,
) -> Result<f64, PublishedError> {
    // By seed: so many are carried, so many are too many.
    let mut bounds: Vec<(u32, u32)> = (0..row.seeds.max(1)).map(|_| (0, FILMS_MAX)).collect();
    while bounds.iter().any(|(carried, too_many)| carried + 1 < *too_many) {
        let mut experiments = Vec::new();
        for (bounds, seed) in bounds.iter().zip(1..) {
            experiments.push(Experiment { seed, ..films(middle(*bounds))? });
        }
        let found = runner.compared(&experiments)?;
        for (bounds, comparison) in bounds.iter_mut().zip(found) {
            let count = middle(*bounds);
            if none_late(&comparison) { bounds.0 = count } else { bounds.1 = count }
        }
    }
    Ok(bounds.iter().map(|(carried, _)| f64::from(*carried)).sum::<f64>() / bounds.len() as f64)
}

/// What to try next; where nothing is left to find, what is known.
fn middle((carried, too_many): (u32, u32)) -> u32 {
    ((carried + too_many) / 2).max(1)
}

fn none_late(comparison: &Comparison) -> bool {
    comparison.runs.iter().all(|run| missed(run, "film") == 0.0)
}

/// Rounds that processes of a job missed together.
pub fn missed(run: &Run, job: &str) -> f64 {
    let of_job = run.processes.iter().filter(|process| process.name == job);
    of_job.filter_map(|process| process.deadline_misses).map(|missed| missed as f64).sum()
}

/// The mean distance in sectors from where the head was to where a request of a film begins: of all
/// requests before it, or of those of films alone.
fn distance(run: &Run, among_films: bool) -> f64 {
    let is_film = |pid: u32| run.processes.iter().any(|process| process.pid == pid && process.name == "film");
    let head: Vec<_> = run.head.iter().filter(|sample| !among_films || is_film(sample.pid)).collect();
    let moves = head.windows(2).filter(|pair| is_film(pair[1].pid));
    let (sum, count) = moves
        .fold((0.0, 0.0), |(sum, count), pair| (sum + pair[1].sector.abs_diff(pair[0].sector) as f64, count + 1.0));
    sum / count
}
