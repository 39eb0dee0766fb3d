//! Points a second, against a loop of the shell over `hoistway compare` for the same points.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use super::Bench;
use super::run::{self, Kind, Measured, SMALL, TYPICAL, machine, median};
use crate::goals::{Goal, grouped};
use crate::sections::Section;

/// The minimum ratio of the sweep's rate to that of two loops at a time.
const RATIO_MIN: f64 = 1.0;

/// The figures of one kind of point.
struct Found {
    points: u64,
    sweep: f64,
    one_loop: f64,
    two_loops: f64,
    /// The median of the ratios of the rounds.
    ratio: f64,
}

/// Measures both kinds of points.
pub fn measure(bench: &Bench) -> Result<Section> {
    let mut text = format!(
        "```console no-run\n$ cargo xtask bench-sweep --only rate\n```\n\n{}\n\n\
         Medians of {} rounds in which the three ways alternate. A loop runs `hoistway compare JOB --elevators NAME --seed N --json > FILE` for each point; \
         two loops at a time are those of `xargs --max-procs 2`. `compare` also runs each job alone, as the reference of its verdict.\n\n\
         | point | points | `hoistway sweep`, points/s | a loop | two loops at a time | ratio to two loops |\n|---|---|---|---|---|---|\n",
        machine(),
        bench.rounds
    );
    let mut goals = Vec::new();
    for (kind, points, what) in [
        (SMALL, 400, "10 reads of a drive without service times"),
        (TYPICAL, 100, "8 readers of 16 MiB each under cfq on a disk of 2006"),
    ] {
        let found = compare(bench, &kind, points)?;
        let _ = writeln!(
            text,
            "| {}: {what} | {} | {} | {} | {} | {:.1} |",
            kind.name,
            found.points,
            grouped(found.sweep),
            grouped(found.one_loop),
            grouped(found.two_loops),
            found.ratio
        );
        let goal = format!("{} points: rate >= {RATIO_MIN} of two loops", kind.name);
        goals.push(Goal::found(&goal, format!("{:.2}", found.ratio), found.ratio >= RATIO_MIN));
    }
    Ok(Section { text, goals })
}

fn compare(bench: &Bench, kind: &Kind, points: u64) -> Result<Found> {
    let file = kind.sweep(bench, points, "")?;
    let (mut sweeps, mut ones, mut twos, mut ratios) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let rate = |measured: Measured| points as f64 / measured.seconds;
        let sweep = rate(run::sweep(bench, &file, &run::empty(bench)?)?);
        let one = rate(shell_loop(bench, kind, points, 1)?);
        let two = rate(shell_loop(bench, kind, points, 2)?);
        sweeps.push(sweep);
        ones.push(one);
        twos.push(two);
        ratios.push(sweep / two);
    }
    let [sweep, one_loop, two_loops, ratio] = [sweeps, ones, twos, ratios].map(median);
    Ok(Found { points, sweep, one_loop, two_loops, ratio })
}

/// Runs `hoistway compare` once for each seed, this many at a time, with a file of JSON each.
fn shell_loop(bench: &Bench, kind: &Kind, points: u64, processes: u32) -> Result<Measured> {
    let results = run::empty(bench)?;
    std::fs::create_dir_all(&results)?;
    let job = kind.job(bench)?;
    let one = format!(
        "{} compare {} --drive {} --elevators {} --seed $1 --json > {}/$1.json",
        bench.hoistway.display(),
        job.display(),
        kind.drive,
        kind.elevator,
        results.display()
    );
    let script = format!("seq {points} | xargs --max-procs {processes} --max-args 1 sh -c '{one}' point");
    run::run(Path::new("bash"), &["-c", &script])
}
