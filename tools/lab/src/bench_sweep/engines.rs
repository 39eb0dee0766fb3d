//! The overhead of Dask and Ray, against a run of the same sweep on as many threads, and the memory
//! of their processes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::{cargo, programs, python, repository};

use super::Bench;
use super::run::{self, PROCESSORS, SMALL, machine, median};
use crate::goals::{Goal, grouped};
use crate::sections::Section;

/// The script that runs a sweep on an engine.
const SCRIPT: &str = "python/benchmarks/engines.py";
/// The engines: the name in the script, that in the table, and whether the goals are for it.
const ENGINES: [(&str, &str, bool); 3] =
    [("processes", "`ProcessPoolExecutor`", false), ("dask", "Dask", true), ("ray", "Ray", true)];
/// The workers of an engine, and the threads of the run without one.
const WORKERS: f64 = 2.0;
/// The minimum number of points of a sweep.
const POINTS_MIN: u64 = 100;
/// The duration of a point in the goal, in ms.
const POINT_MS: f64 = 50.0;
/// The greatest overhead, as a part of such a point.
const OVERHEAD_MAX: f64 = 0.05;
/// The greatest ratio of the memory of the largest sweep to that of the smallest.
const RATIO_MAX: f64 = 1.5;

/// The figures of a run: those that the script prints.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    /// The greatest resident memory of the process that calls `sweep`, in bytes.
    driver: f64,
    /// That of a worker.
    worker: f64,
}

/// The figures of an engine with a number of points.
struct Found {
    run: Run,
    /// The median over the rounds of the overhead a point, in ms of one worker.
    overhead_ms: f64,
}

/// Measures sweeps of 100 points, ten times as many, and so on, on all engines.
pub fn measure(bench: &Bench) -> Result<Section> {
    let script = Script::prepare()?;
    let mut text = head(bench);
    let mut engines: [Vec<Found>; ENGINES.len()] = Default::default();
    let mut points = POINTS_MIN;
    while points <= bench.points {
        let (local, found) = rounds(bench, &script, points)?;
        let batches = run::batches(bench, &SMALL.sweep(bench, points, "")?)?;
        for ((engine, (_, name, _)), found) in engines.iter_mut().zip(ENGINES).zip(found) {
            let Found { run, overhead_ms } = found;
            let _ = writeln!(
                text,
                "| {} | {} | {local:.2} | {name} | {:.2} | {overhead_ms:.2} | {:.1} % | {:.0} | {:.0} |",
                grouped(points as f64),
                grouped(batches),
                run.seconds,
                overhead_ms / POINT_MS * 100.0,
                run.driver / 1e6,
                run.worker / 1e6
            );
            engine.push(found);
        }
        points *= 10;
    }
    run::empty(bench)?;
    text.push('\n');
    let goals = ENGINES.iter().zip(&engines).filter(|((_, _, has_goals), _)| *has_goals);
    Ok(Section { text, goals: goals.flat_map(|((_, name, _), found)| judge(name, found)).collect() })
}

fn head(bench: &Bench) -> String {
    format!(
        "```console no-run\n$ cargo xtask bench-sweep --only engines\n```\n\n{}\n\n\
         Medians of {} rounds in which `hoistway.sweep` runs the same sweep on 2 threads of its own process and on the engines with 2 worker processes each, \
         all on the same 2 processors. Points of 10 reads of a drive without service times; each run has a new driver, \
         which is the process that calls `sweep`, and new workers, which have loaded the package before. \
         The time is that of `sweep` alone. The overhead of a point is the time of one worker that it costs more than on a thread: \
         (time on the engine - time on threads) x 2 / points; it is below 0 where the four threads with which the driver writes files outweigh it. The driver of Dask contains the scheduler (`LocalCluster`).\n\n\
         | points | batches | threads, s | engine | s | overhead a point, ms | of a 50 ms point | driver, MB | worker, MB |\n|---|---|---|---|---|---|---|---|---|\n",
        machine(),
        bench.rounds
    )
}

/// Runs a sweep without an engine and on each, in rounds. Returns the median time without an
/// engine, and the figures of the engines.
fn rounds(bench: &Bench, script: &Script, points: u64) -> Result<(f64, Vec<Found>)> {
    let file = SMALL.sweep(bench, points, "")?;
    let mut local = Vec::new();
    let mut runs: [Vec<Run>; ENGINES.len()] = Default::default();
    for _ in 0..bench.rounds {
        local.push(script.run("local", &file, &run::empty(bench)?)?.seconds);
        for (runs, (engine, ..)) in runs.iter_mut().zip(ENGINES) {
            runs.push(script.run(engine, &file, &run::empty(bench)?)?);
        }
    }
    let found = runs.iter().map(|runs| {
        let of = |figure: fn(&Run) -> f64| median(runs.iter().map(figure).collect());
        let overheads =
            runs.iter().zip(&local).map(|(run, local)| (run.seconds - local) * WORKERS / points as f64 * 1e3);
        Found {
            run: Run { seconds: of(|run| run.seconds), driver: of(|run| run.driver), worker: of(|run| run.worker) },
            overhead_ms: median(overheads.collect()),
        }
    });
    let found = found.collect();
    Ok((median(local), found))
}

/// The goals of an engine with its figures by the number of points.
fn judge(name: &str, found: &[Found]) -> Vec<Goal> {
    let most = found.iter().map(|found| found.overhead_ms).fold(f64::NEG_INFINITY, f64::max);
    let goal_ms = OVERHEAD_MAX * POINT_MS;
    let overhead =
        format!("{name}: overhead a point < {:.0} % of {POINT_MS} ms, with any number of points", OVERHEAD_MAX * 100.0);
    let mut goals = vec![Goal::found(&overhead, format!("{most:.2} ms of {goal_ms} ms"), most < goal_ms)];
    if let [least, .., most] = found {
        for (process, memory) in
            [("the driver", most.run.driver / least.run.driver), ("a worker", most.run.worker / least.run.worker)]
        {
            let goal =
                format!("{name}: memory of {process} with the most points <= {RATIO_MAX} of that with the fewest");
            goals.push(Goal::found(&goal, format!("{memory:.2}"), memory <= RATIO_MAX));
        }
    }
    goals
}

/// The interpreter and the package for the script.
struct Script {
    interpreter: PathBuf,
    site: PathBuf,
}

impl Script {
    /// Makes the environment, and builds the package with the profile `release`.
    fn prepare() -> Result<Script> {
        let system = programs::find("python3").context("there is no python3: apt-get install python3-venv")?;
        let base = python::directory()?;
        let interpreter = python::environment(&system, &base.join("venv"), &[python::TESTS, python::CLUSTERS])?;
        let build = ["build", "--quiet", "--release", "-p", "hoistway-python"];
        programs::run(cargo::command().args(build))?;
        let site = base.join("release-site");
        python::package(repository::root(), &cargo::target_directory()?.join("release/lib_hoistway.so"), &site)?;
        Ok(Script { interpreter, site })
    }

    /// Runs a sweep on an engine, in a new process.
    fn run(&self, engine: &str, sweep: &Path, results: &Path) -> Result<Run> {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", PROCESSORS]).arg(&self.interpreter).arg(repository::root().join(SCRIPT));
        command.arg(engine).arg(sweep).arg(results).env("PYTHONPATH", &self.site);
        let printed = programs::output(&mut command)?;
        // Engines print lines of their own.
        let last = printed.lines().last().unwrap_or_default();
        let figures: serde_json::Value = serde_json::from_str(last).unwrap_or_default();
        let figure = |key: &str| figures[key].as_f64().with_context(|| format!("{SCRIPT} printed {last:?}"));
        Ok(Run { seconds: figure("seconds")?, driver: figure("driver")?, worker: figure("worker")? })
    }
}
