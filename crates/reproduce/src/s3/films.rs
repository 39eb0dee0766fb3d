//! Films with a deadline each second, and the number of films that an elevator sustains.

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::figures::processes;
use crate::runner::{Experiment, Runner};
use crate::verdict::{Line, Measured, Plot};
use hoistway_sim::{Comparison, Run};

/// The bandwidth of a film in HD and in SD, in MiB/s.
pub const HD: u32 = 3;
pub const SD: u32 = 1;
/// More films than any drive of the rows sustains.
const FILMS_MAX: u32 = 128;
/// The range of the disk that holds the films, in MiB: ten films are 18 GiB apart, as in the job
/// file.
const DISK_MIB: u32 = 180 << 10;

/// The means to prefer films over other readers: name, elevator, and I/O priority class.
const PREFERENCES: [(&str, &str, Option<u32>); 6] = [
    ("bandwidth class", "cfq-bw", None),
    ("real time", "cfq-tree", Some(1)),
    ("best effort", "cfq-tree", Some(2)),
    ("anticipatory", "anticipatory", None),
    ("deadline", "deadline", None),
    ("noop", "noop", None),
];

/// Rounds that films miss, by the number of films; the figures are those of the published number.
pub fn misses(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let counts = [4u32, 7, 10, 13, 16];
    let mut measured = Measured::default();
    let mut lines = Vec::new();
    for (name, elevator, class) in PREFERENCES.into_iter().take(3) {
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
    Ok(measured.with_plot(Some(plot)))
}

/// The largest number of films without a missed deadline, for each preference.
pub fn most(row: &Row, runner: &mut Runner<'_>, mib: u32) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    let mut of_classes = [0.0; 3];
    for (index, (name, elevator, class)) in PREFERENCES.into_iter().enumerate() {
        let most = most_films(row, runner, |count| films(row, elevator, class, mib, count))?;
        measured = measured.with(name, most);
        if let Some(of_class) = of_classes.get_mut(index) {
            *of_class = most;
        }
    }
    let existing = of_classes[1].max(of_classes[2]);
    Ok(measured.with("more", (of_classes[0] / existing - 1.0) * 100.0))
}

/// The mean head movement for a request of a film in GiB, for each class.
pub fn head(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let mut measured = Measured::default();
    let mut parts = [[0.0; 2]; 3];
    for (index, (name, elevator, class)) in PREFERENCES.into_iter().take(3).enumerate() {
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

/// `count` films of `mib` MiB/s beside the other readers of the job. Admission control is off and a
/// bucket holds a round, because the published elevator had neither bound.
fn films(row: &Row, elevator: &str, class: Option<u32>, mib: u32, count: u32) -> Result<Experiment, ReproduceError> {
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

/// The largest number of films without a missed deadline, found by bisection and averaged over the
/// seeds, which run in parallel.
fn most_films(
    row: &Row,
    runner: &mut Runner<'_>,
    films: impl Fn(u32) -> Result<Experiment, ReproduceError>,
) -> Result<f64, ReproduceError> {
    // For each seed, a number of films that is sustained and one that is not.
    let mut bounds: Vec<(u32, u32)> = (0..row.seeds.max(1)).map(|_| (0, FILMS_MAX)).collect();
    while bounds.iter().any(|(sustained, too_many)| sustained + 1 < *too_many) {
        let mut experiments = Vec::new();
        for (bounds, seed) in bounds.iter().zip(1..) {
            experiments.push(Experiment { seed, ..films(middle(*bounds))? });
        }
        let found = runner.compared(&experiments)?;
        for (bounds, comparison) in bounds.iter_mut().zip(found) {
            let count = middle(*bounds);
            if none_missed(&comparison) { bounds.0 = count } else { bounds.1 = count }
        }
    }
    Ok(bounds.iter().map(|(sustained, _)| f64::from(*sustained)).sum::<f64>() / bounds.len() as f64)
}

/// The number of films to try next; the known answer once the bounds are adjacent.
fn middle((sustained, too_many): (u32, u32)) -> u32 {
    ((sustained + too_many) / 2).max(1)
}

fn none_missed(comparison: &Comparison) -> bool {
    comparison.runs.iter().all(|run| missed(run, "film") == 0.0)
}

/// Rounds that the processes of a job missed, in total.
pub fn missed(run: &Run, job: &str) -> f64 {
    processes(run, job).filter_map(|process| process.deadline_misses).map(|missed| missed as f64).sum()
}

/// The mean distance in sectors from the previous head position to the start of a film's request.
/// With `among_films`, only the requests of films count as previous positions.
fn distance(run: &Run, among_films: bool) -> f64 {
    let is_film = |pid: u32| run.processes.iter().any(|process| process.pid == pid && process.name == "film");
    let head: Vec<_> = run.head.iter().filter(|sample| !among_films || is_film(sample.pid)).collect();
    let moves = head.windows(2).filter(|pair| is_film(pair[1].pid));
    let (sum, count) = moves
        .fold((0.0, 0.0), |(sum, count), pair| (sum + pair[1].sector.abs_diff(pair[0].sector) as f64, count + 1.0));
    sum / count
}
