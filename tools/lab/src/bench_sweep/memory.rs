//! The memory of a sweep by its number of points, of a first run and of one that finds all results.

use std::fmt::Write;

use anyhow::Result;

use super::Bench;
use super::run::{self, SMALL, machine};
use crate::goals::{Goal, grouped};
use crate::sections::Section;

/// The greatest ratio of the memory of the largest sweep to that of the smallest.
const RATIO_MAX: f64 = 1.5;

/// Measures sweeps of 1,000 points, ten times as many, and so on.
pub fn measure(bench: &Bench) -> Result<Section> {
    let mut text = format!(
        "```console no-run\n$ cargo xtask bench-sweep --only memory\n```\n\n{}\n\nPoints of 10 reads of a drive without service times, 2 threads. \
         The second run finds all results.\n\n\
         | points | first run: MB | s | points/s | second run: MB | s | files of results | MB of results |\n|---|---|---|---|---|---|---|---|\n",
        machine()
    );
    let mut memory = Vec::new();
    let mut points = 1000;
    while points <= bench.points {
        let file = SMALL.sweep(bench, points, "")?;
        let results = run::empty(bench)?;
        let first = run::sweep(bench, &file, &results)?;
        let second = run::sweep(bench, &file, &results)?;
        let (files, bytes) = contents(&results)?;
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {} | {} | {:.1} | {files} | {} |",
            grouped(points as f64),
            megabytes(first.memory),
            first.seconds,
            grouped(points as f64 / first.seconds),
            megabytes(second.memory),
            second.seconds,
            megabytes(bytes)
        );
        memory.push(first.memory);
        points *= 10;
    }
    run::empty(bench)?;
    let ratio = match memory[..] {
        [least, .., most] => most as f64 / least.max(1) as f64,
        _ => 1.0,
    };
    let goal = format!("first run: memory of the largest sweep <= {RATIO_MAX} of the smallest");
    Ok(Section { text, goals: vec![Goal::found(&goal, format!("{ratio:.2}"), ratio <= RATIO_MAX)] })
}

/// The number of files of results, and their bytes.
fn contents(results: &std::path::Path) -> Result<(usize, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for part in ["points", "jobs"] {
        for entry in std::fs::read_dir(results.join(part))? {
            files += 1;
            bytes += entry?.metadata()?.len();
        }
    }
    Ok((files, bytes))
}
