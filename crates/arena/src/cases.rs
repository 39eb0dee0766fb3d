//! The figures of each case, from a folder of results.

use std::collections::HashMap;
use std::path::Path;

use hoistway_sweep::{Cells as Column, FolderError, Results};
use serde::Serialize;

use crate::drive::Drive;
use crate::matrix::{Matrix, alone_name};
use crate::sample::Sample;
use crate::workload::Workload;

/// The cases of a matrix that have results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cases {
    /// The cases, workload by workload, and within it in the order of the drives.
    #[serde(rename = "cells")]
    pub cases: Vec<Case>,
    /// Errors of runs, each with its workload, drive, elevator and seed.
    pub errors: Vec<String>,
}

/// A workload on a drive.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The name of the workload.
    pub workload: &'static str,
    /// The name of the drive.
    pub drive: &'static str,
    /// The section whose latency counts.
    pub sensitive: Option<&'static str>,
    /// The results of the elevators, in the order of the matrix.
    pub entries: Vec<Entry>,
}

/// The results of an elevator in a case, over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The name of the elevator.
    pub elevator: String,
    /// Bytes a second of all processes.
    pub bytes_per_s: Sample,
    /// 99th percentile of the latency of the sensitive section, in ns: of its syncs, if it makes
    /// any, otherwise of its requests.
    pub p99_ns: Option<Sample>,
    /// 99.9th percentile of the same.
    pub p999_ns: Option<Sample>,
    /// The minimum rate of a process over its share of its rate alone.
    pub isolation: Sample,
    /// The section of that process with the first seed.
    pub least_served: String,
    /// Seconds in which a process with a rate had less than it.
    pub missed: Sample,
}

/// Reasons why results have no cases.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The results cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A column is missing.
    #[error("the results have no column `{0}`: they are not of this version")]
    Column(&'static str),
}

/// The key of a run: job, drive, elevator, seed.
type RunKey = (String, String, String, u64);

/// The figures of a run.
#[derive(Debug, Default)]
struct Figures {
    bytes_per_s: f64,
    missed: f64,
    sections: Vec<Section>,
}

/// The figures of a section of a run.
#[derive(Debug)]
struct Section {
    name: String,
    processes: f64,
    bytes_per_s: f64,
    slowest_bytes_per_s: f64,
    p99_ns: f64,
    p999_ns: f64,
}

impl Cases {
    /// Reads the cases of a matrix from a folder of results. Cases and elevators without a result
    /// are left out.
    ///
    /// # Errors
    /// [`CaseError`] if the folder cannot be read.
    pub fn read(matrix: &Matrix, folder: &Path) -> Result<Cases, CaseError> {
        let (runs, errors) = read_runs(matrix, &Results::read(folder)?, &Results::read_jobs(folder)?)?;
        let cases = matrix.cases().map(|(workload, drive)| {
            let rates = alone_rates(matrix, &runs, workload, drive);
            let entries = matrix.elevators.iter().filter_map(|kind| {
                let name = kind.info().name;
                let seeds = matrix.seeds().map(|seed| (workload.name.into(), drive.name.into(), name.into(), seed));
                let runs: Vec<&Figures> = seeds.filter_map(|key: RunKey| runs.get(&key)).collect();
                Entry::of(workload, name, &runs, &rates)
            });
            let entries: Vec<Entry> = entries.collect();
            Case { workload: workload.name, drive: drive.name, sensitive: workload.sensitive, entries }
        });
        let cases = cases.filter(|case| !case.entries.is_empty()).collect();
        Ok(Cases { cases, errors })
    }
}

/// The figures of all runs of a matrix, and the errors.
fn read_runs(
    matrix: &Matrix,
    points: &Results,
    jobs: &Results,
) -> Result<(HashMap<RunKey, Figures>, Vec<String>), CaseError> {
    let column = |results: &Results, name: &'static str| -> Result<Column, CaseError> {
        results.column(name).cloned().ok_or(CaseError::Column(name))
    };
    let text = |column: &Column, row: usize| column.text(row).unwrap_or_default();
    let number = |column: &Column, row: usize| column.number(row).unwrap_or(0.0);
    let (name, job, drive) = (column(points, "point")?, column(points, "job")?, column(points, "drive")?);
    let (elevator, seed) = (column(points, "elevator")?, column(points, "seed")?);
    let (rate, missed, error) =
        (column(points, "bytes_per_s")?, column(points, "deadline_misses")?, column(points, "error")?);
    let (mut runs, mut errors, mut of_point) = (HashMap::new(), Vec::new(), HashMap::new());
    // The elevator, the column and the value of each tunable that a point or the matrix sets.
    let names = points.columns().iter().map(|column| &column.name).chain(matrix.settings.iter().map(|(key, _)| key));
    let tunables: Vec<(&str, Option<&Column>, Option<f64>)> =
        names.filter_map(|key| Some((key.split_once('.')?.0, points.column(key), matrix.setting(key)))).collect();
    for row in 0..points.rows() {
        let kind = text(&elevator, row);
        // A point with other tunables than those of the matrix is of another comparison.
        let is_set = |(owner, column, value): &(&str, Option<&Column>, Option<f64>)| {
            *owner != kind || column.and_then(|column| column.number(row)) == *value
        };
        if !tunables.iter().all(is_set) {
            continue;
        }
        let seed = number(&seed, row) as u64;
        if !matrix.seeds().contains(&seed) {
            continue;
        }
        let key = (text(&job, row), text(&drive, row), kind, seed);
        if let Some(error) = error.text(row) {
            errors.push(format!("{} on {}, {}, seed {}: {error}", key.0, key.1, key.2, key.3));
            continue;
        }
        of_point.insert(text(&name, row), key.clone());
        let figures = Figures { bytes_per_s: number(&rate, row), missed: number(&missed, row), sections: Vec::new() };
        runs.insert(key, figures);
    }
    let (point, name) = (column(jobs, "point")?, column(jobs, "name")?);
    let (processes, rate) = (column(jobs, "processes")?, column(jobs, "bytes_per_s")?);
    let slowest = column(jobs, "slowest_bytes_per_s")?;
    let (p99, p999) = (column(jobs, "latency_p99_ns")?, column(jobs, "latency_p999_ns")?);
    let (syncs, sync_p99) = (column(jobs, "syncs")?, column(jobs, "sync_p99_ns")?);
    let sync_p999 = column(jobs, "sync_p999_ns")?;
    for row in 0..jobs.rows() {
        let key = of_point.get(&text(&point, row));
        let Some(run) = key.and_then(|key| runs.get_mut(key)) else { continue };
        // A program that syncs waits for that, and not for its writes to the page cache.
        let (p99, p999) = if number(&syncs, row) > 0.0 { (&sync_p99, &sync_p999) } else { (&p99, &p999) };
        run.sections.push(Section {
            name: text(&name, row),
            processes: number(&processes, row),
            bytes_per_s: number(&rate, row),
            slowest_bytes_per_s: number(&slowest, row),
            p99_ns: number(p99, row),
            p999_ns: number(p999, row),
        });
    }
    errors.sort();
    Ok((runs, errors))
}

/// The rate that a process of each section has alone on a drive, the mean over the seeds.
fn alone_rates(
    matrix: &Matrix,
    runs: &HashMap<RunKey, Figures>,
    workload: &Workload,
    drive: &Drive,
) -> HashMap<String, f64> {
    let rate = |section: &str| {
        let text = workload.alone(section, workload.runtime_ms(drive.class)).ok()?;
        let (name, elevator) = (alone_name(&text), Matrix::ALONE.info().name);
        let key = |seed| (name.clone(), drive.name.to_owned(), elevator.to_owned(), seed);
        let rates: Vec<f64> =
            matrix.seeds().filter_map(|seed| Some(runs.get(&key(seed))?.sections.first()?.bytes_per_s)).collect();
        Sample::of(&rates).map(|sample| sample.mean)
    };
    workload.sections().into_iter().filter_map(|section| Some((section.clone(), rate(&section)?))).collect()
}

impl Entry {
    fn of(workload: &Workload, elevator: &str, runs: &[&Figures], alone: &HashMap<String, f64>) -> Option<Entry> {
        let each = |figure: &dyn Fn(&Figures) -> f64| {
            Sample::of(&runs.iter().map(|figures| figure(figures)).collect::<Vec<f64>>())
        };
        let latency = |figure: fn(&Section) -> f64| {
            let section = workload.sensitive?;
            let of = |figures: &&Figures| {
                figures.sections.iter().find(|other| other.name == section).map(figure).filter(|ns| *ns > 0.0)
            };
            Sample::of(&runs.iter().filter_map(of).collect::<Vec<f64>>())
        };
        let isolations: Vec<(f64, &str)> =
            runs.iter().filter_map(|figures| isolation(workload, figures, alone)).collect();
        let least: Vec<f64> = isolations.iter().map(|(least, _)| *least).collect();
        Some(Entry {
            elevator: elevator.to_owned(),
            bytes_per_s: each(&|figures| figures.bytes_per_s)?,
            p99_ns: latency(|section| section.p99_ns),
            p999_ns: latency(|section| section.p999_ns),
            isolation: Sample::of(&least)?,
            least_served: isolations.first().map(|(_, section)| (*section).to_owned()).unwrap_or_default(),
            missed: each(&|figures| figures.missed)?,
        })
    }
}

/// The minimum rate of a process over its share of its rate alone, and the section of that process.
fn isolation<'a>(workload: &Workload, figures: &'a Figures, alone: &HashMap<String, f64>) -> Option<(f64, &'a str)> {
    let sections = || figures.sections.iter().map(|section| (section, workload.weight(&section.name)));
    let all: f64 = sections().map(|(section, weight)| section.processes * weight).sum();
    let owed = sections().filter(|(_, weight)| *weight > 0.0).filter_map(|(section, weight)| {
        let due = alone.get(&section.name)? * weight / all;
        (due > 0.0).then(|| (section.slowest_bytes_per_s / due, section.name.as_str()))
    });
    owed.min_by(|one, other| one.0.total_cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &str, processes: f64, slowest_bytes_per_s: f64) -> Section {
        let bytes_per_s = processes * slowest_bytes_per_s;
        Section { name: name.to_owned(), processes, bytes_per_s, slowest_bytes_per_s, p99_ns: 5e6, p999_ns: 6e6 }
    }

    #[test]
    fn isolation_is_the_least_rate_over_the_share_of_the_rate_alone() {
        let workload = Workload::from_name("classes").expect("a workload");
        let alone =
            HashMap::from([("urgent".to_owned(), 4.0), ("normal".to_owned(), 100.0), ("background".to_owned(), 100.0)]);
        let sections = vec![section("urgent", 1.0, 3.0), section("normal", 3.0, 20.0), section("background", 1.0, 0.0)];
        let figures = Figures { bytes_per_s: 63.0, missed: 0.0, sections };
        // Four processes that are owed something: a quarter of 4, and a quarter of 100. The idle
        // class is owed nothing.
        assert_eq!(isolation(&workload, &figures, &alone), Some((0.8, "normal")));
        let entry = Entry::of(&workload, "noop", &[&figures, &figures], &alone).expect("an entry");
        assert_eq!(entry.p99_ns, Some(Sample { mean: 5e6, min: 5e6, max: 5e6 }));
        assert_eq!((entry.isolation.mean, entry.least_served.as_str()), (0.8, "normal"));
        assert_eq!(Entry::of(&workload, "noop", &[], &alone), None);
    }
}
