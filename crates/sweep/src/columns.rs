//! The columns of results: what identifies a point, its values, and its figures.

use hoistway_compare::JobRun;
use hoistway_sim::{Latency, Run, Setting};

use crate::key::Key;
use crate::plan::{KeyValues, Plan, PointChoice};
use crate::point::{LIBRARY, PointId};
use crate::value::Value;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The values of the rows.
    pub cells: Cells,
}

/// The values of a column; `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Character strings.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Other numbers.
    Float(Vec<Option<f64>>),
    /// True or false.
    Bool(Vec<Option<bool>>),
}

impl Cells {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Cells::Text(cells) => cells.len(),
            Cells::Int(cells) => cells.len(),
            Cells::Float(cells) => cells.len(),
            Cells::Bool(cells) => cells.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell of a row as a number; `None` if it is null, a text, or true or false.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Cells::Int(cells) => cells.get(row)?.map(|number| number as f64),
            Cells::Float(cells) => *cells.get(row)?,
            Cells::Text(_) | Cells::Bool(_) => None,
        }
    }

    /// The cell of a row as text; `None` if it is null.
    pub fn text(&self, row: usize) -> Option<String> {
        match self {
            Cells::Text(cells) => cells.get(row)?.clone(),
            Cells::Int(cells) => cells.get(row)?.map(|number| number.to_string()),
            Cells::Float(cells) => cells.get(row)?.map(|number| number.to_string()),
            Cells::Bool(cells) => cells.get(row)?.map(|flag| flag.to_string()),
        }
    }

    /// Appends rows without a value.
    pub(crate) fn append_nulls(&mut self, rows: usize) {
        let all = self.len() + rows;
        match self {
            Cells::Text(cells) => cells.resize(all, None),
            Cells::Int(cells) => cells.resize(all, None),
            Cells::Float(cells) => cells.resize(all, None),
            Cells::Bool(cells) => cells.resize(all, None),
        }
    }

    /// A column of the same type without rows.
    pub(crate) fn empty(&self) -> Cells {
        match self {
            Cells::Text(_) => Cells::Text(Vec::new()),
            Cells::Int(_) => Cells::Int(Vec::new()),
            Cells::Float(_) => Cells::Float(Vec::new()),
            Cells::Bool(_) => Cells::Bool(Vec::new()),
        }
    }

    /// Keeps the rows for which `keep` is true.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        fn kept<T>(cells: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            cells.retain(|_| keep.next().copied().unwrap_or(true));
        }
        match self {
            Cells::Text(cells) => kept(cells, keep),
            Cells::Int(cells) => kept(cells, keep),
            Cells::Float(cells) => kept(cells, keep),
            Cells::Bool(cells) => kept(cells, keep),
        }
    }

    /// Appends the cells of another file. Whole and other numbers together are numbers; other types
    /// that differ become texts.
    pub(crate) fn append(&mut self, more: Cells) {
        match (&mut *self, more) {
            (Cells::Text(cells), Cells::Text(more)) => cells.extend(more),
            (Cells::Int(cells), Cells::Int(more)) => cells.extend(more),
            (Cells::Float(cells), Cells::Float(more)) => cells.extend(more),
            (Cells::Bool(cells), Cells::Bool(more)) => cells.extend(more),
            (cells, more) => {
                let parts = [&*cells, &more];
                let rows = parts.into_iter().flat_map(|part| (0..part.len()).map(move |row| (part, row)));
                let are_numbers = parts.iter().all(|part| matches!(part, Cells::Int(_) | Cells::Float(_)));
                *self = match are_numbers {
                    true => Cells::Float(rows.map(|(part, row)| part.number(row)).collect()),
                    false => Cells::Text(rows.map(|(part, row)| part.text(row)).collect()),
                };
            }
        }
    }
}

/// The result of a point.
#[derive(Debug)]
pub struct PointResult {
    /// Its name.
    pub id: PointId,
    /// What determines it.
    pub choice: PointChoice,
    /// The run, or the reason for which there is none.
    pub run: Result<Box<Run>, String>,
}

/// The columns of the points: a row for each.
pub fn points(plan: &Plan, results: &[PointResult]) -> Vec<Column> {
    let spec = plan.spec();
    let text = |name: &str, of: &dyn Fn(&PointResult) -> Option<String>| Column {
        name: name.to_owned(),
        cells: Cells::Text(results.iter().map(of).collect()),
    };
    let mut columns = vec![
        text("point", &|result| Some(result.id.to_string())),
        text("library", &|_| Some(LIBRARY.to_owned())),
        text("job", &|result| Some(spec.jobs[result.choice.job].name.clone())),
        text("drive", &|result| Some(spec.drives[result.choice.drive].name.clone())),
        text("host", &|result| Some(spec.hosts[result.choice.host].name.clone())),
        text("elevator", &|result| Some(spec.elevators[result.choice.elevator].info().name.to_owned())),
        Column {
            name: "seed".to_owned(),
            cells: Cells::Int(results.iter().map(|result| i64::try_from(result.choice.seed).ok()).collect()),
        },
    ];
    columns.extend(plan.keys().into_iter().map(|key| value_column(plan, key, results)));
    columns.push(text("error", &|result| result.run.as_ref().err().cloned()));
    let runs: Vec<Option<&Run>> = results.iter().map(|result| result.run.as_deref().ok()).collect();
    columns.extend(run_figures(&runs));
    columns
}

/// The columns of the figures of runs: a row for each, null for a run that failed.
pub fn run_figures(runs: &[Option<&Run>]) -> Vec<Column> {
    let mut columns = figures(runs, &RUN_FIGURES);
    let latencies: Vec<Option<&Latency>> = runs.iter().map(|run| run.map(|run| &run.latency_ns)).collect();
    columns.extend(figures(&latencies, &LATENCY_FIGURES));
    columns
}

/// The columns of the jobs: a row for each job of each point that ran.
pub fn jobs(results: &[PointResult]) -> Vec<Column> {
    let ran = results.iter().filter_map(|result| Some((result.id, result.run.as_deref().ok()?)));
    let rows: Vec<(PointId, JobRun)> =
        ran.flat_map(|(id, run)| JobRun::of_run(run).into_iter().map(move |job| (id, job))).collect();
    let text = |name: &str, of: &dyn Fn(&(PointId, JobRun)) -> String| Column {
        name: name.to_owned(),
        cells: Cells::Text(rows.iter().map(|row| Some(of(row))).collect()),
    };
    let mut columns = vec![text("point", &|(id, _)| id.to_string()), text("name", &|(_, job)| job.name.clone())];
    columns.extend(job_figures(&rows.iter().map(|(_, job)| job).collect::<Vec<_>>()));
    columns
}

/// The columns of the figures of jobs: a row for each.
pub fn job_figures(jobs: &[&JobRun]) -> Vec<Column> {
    let all: Vec<Option<&JobRun>> = jobs.iter().map(|job| Some(*job)).collect();
    let mut columns = figures(&all, &JOB_FIGURES);
    let latencies: Vec<Option<&Latency>> = jobs.iter().map(|job| Some(&job.latency_ns)).collect();
    columns.extend(figures(&latencies, &LATENCY_FIGURES));
    columns
}

/// A figure of a result.
enum Figure<T> {
    /// A count, a number of bytes, or a time in ns.
    Whole(fn(&T) -> u64),
    /// A rate or another number; `None` if the result has none.
    Number(fn(&T) -> Option<f64>),
}

type Figures<T, const N: usize> = [(&'static str, Figure<T>); N];

const RUN_FIGURES: Figures<Run, 18> = [
    ("bytes_per_s", Figure::Number(|run| Some(run.bytes_per_s))),
    ("slowest_bytes_per_s", Figure::Number(|run| Some(run.process_bytes_per_s.min))),
    ("fastest_bytes_per_s", Figure::Number(|run| Some(run.process_bytes_per_s.max))),
    ("jain", Figure::Number(|run| run.jain)),
    ("processes", Figure::Whole(|run| run.processes.len() as u64)),
    ("runtime_ns", Figure::Whole(|run| run.runtime_ns)),
    ("turns", Figure::Whole(|run| run.turns)),
    ("drive_requests", Figure::Whole(|run| run.drive_requests)),
    ("drive_bytes", Figure::Whole(|run| run.drive_bytes)),
    ("drive_overhead_ns", Figure::Whole(|run| run.drive_ns.overhead)),
    ("drive_seek_ns", Figure::Whole(|run| run.drive_ns.seek)),
    ("drive_rotation_ns", Figure::Whole(|run| run.drive_ns.rotation)),
    ("drive_transfer_ns", Figure::Whole(|run| run.drive_ns.transfer)),
    ("drive_idle_ns", Figure::Whole(|run| run.drive_ns.idle)),
    ("dirty_bytes_max", Figure::Whole(|run| run.dirty_bytes_max)),
    ("failed_requests", Figure::Whole(|run| run.failed_requests)),
    ("lost_pages", Figure::Whole(|run| run.lost_pages)),
    ("deadline_misses", Figure::Whole(|run| run.processes.iter().filter_map(|process| process.deadline_misses).sum())),
];

const JOB_FIGURES: Figures<JobRun, 9> = [
    ("job_index", Figure::Whole(|job| job.job as u64)),
    ("processes", Figure::Whole(|job| job.processes as u64)),
    ("bytes_per_s", Figure::Number(|job| Some(job.bytes_per_s))),
    ("slowest_bytes_per_s", Figure::Number(|job| Some(job.process_bytes_per_s.min))),
    ("fastest_bytes_per_s", Figure::Number(|job| Some(job.process_bytes_per_s.max))),
    ("syncs", Figure::Whole(|job| job.sync_ns.n)),
    ("sync_p99_ns", Figure::Whole(|job| job.sync_ns.p99)),
    ("sync_p999_ns", Figure::Whole(|job| job.sync_ns.p999)),
    ("longest_starved_wait_ns", Figure::Whole(|job| job.starved.and_then(|starved| starved.wait_ns).unwrap_or(0))),
];

const LATENCY_FIGURES: Figures<Latency, 8> = [
    ("requests", Figure::Whole(|latency| latency.n)),
    ("latency_mean_ns", Figure::Number(|latency| Some(latency.mean))),
    ("latency_stddev_ns", Figure::Number(|latency| Some(latency.stddev))),
    ("latency_p50_ns", Figure::Whole(|latency| latency.p50)),
    ("latency_p90_ns", Figure::Whole(|latency| latency.p90)),
    ("latency_p99_ns", Figure::Whole(|latency| latency.p99)),
    ("latency_p999_ns", Figure::Whole(|latency| latency.p999)),
    ("latency_max_ns", Figure::Whole(|latency| latency.max)),
];

fn figures<T, const N: usize>(rows: &[Option<&T>], figures: &Figures<T, N>) -> Vec<Column> {
    let column = |(name, figure): &(&str, Figure<T>)| Column {
        name: (*name).to_owned(),
        cells: match figure {
            Figure::Whole(of) => Cells::Int(rows.iter().map(|row| i64::try_from(of((*row)?)).ok()).collect()),
            Figure::Number(of) => Cells::Float(rows.iter().map(|row| of((*row)?)).collect()),
        },
    };
    figures.iter().map(column).collect()
}

/// The values of a key at the points; null where it does not apply. The type is that of all values
/// that the key has in the sweep, so that all files of a sweep have the same columns.
fn value_column(plan: &Plan, key: &Key, results: &[PointResult]) -> Column {
    let of = |result: &PointResult| -> Option<Value> {
        let last = result.choice.values.iter().rfind(|chosen| chosen.key == *key)?;
        Some(in_unit(key, &last.value))
    };
    let all: Vec<KeyValues<'_>> = plan.values_of(key);
    let every = |is: fn(&Value) -> bool, range: fn(bool) -> bool| {
        all.iter().all(|values| match values {
            KeyValues::One(value) => is(&in_unit(key, value)),
            KeyValues::Range(values) => range(values.whole),
        })
    };
    let values = results.iter().map(of);
    let cells = if every(|value| matches!(value, Value::Int(_)), |whole| whole) {
        Cells::Int(values.map(|value| if let Some(Value::Int(number)) = value { Some(number) } else { None }).collect())
    } else if every(|value| matches!(value, Value::Int(_) | Value::Float(_)), |_| true) {
        let number = |value: Option<Value>| match value? {
            Value::Int(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            Value::Bool(_) | Value::Text(_) => None,
        };
        Cells::Float(values.map(number).collect())
    } else if every(|value| matches!(value, Value::Bool(_)), |_| false) {
        Cells::Bool(values.map(|value| if let Some(Value::Bool(flag)) = value { Some(flag) } else { None }).collect())
    } else {
        Cells::Text(values.map(|value| value.map(|value| value.to_string())).collect())
    };
    Column { name: key.to_string(), cells }
}

/// A value of a tunable in the tunable's own unit; other values as they are.
fn in_unit(key: &Key, value: &Value) -> Value {
    match (key, Setting::parse(&format!("{key}={value}"))) {
        (Key::Tunable { .. }, Ok(setting)) => Value::Int(setting.value),
        _ => value.clone(),
    }
}
