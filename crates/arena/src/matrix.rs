//! The simulations of the arena as sweeps.

use std::ops::Range;
use std::path::Path;

use hoistway_core::Kind;
use hoistway_fio::SetOptionError;
use hoistway_sweep::{Plan, SpecError, SweepSpec, TooManyPoints};
use toml::{Table, Value};

use crate::drive::Drive;
use crate::workload::Workload;

/// The host of all runs: the page cache, read-ahead, write-back and block layer of this kernel,
/// with little memory, so that a process alone is served by the drive after a moment, and not by
/// memory.
const HOST: &str = "kernel = \"6.12\"\nmemory = \"256 MiB\"\n";
/// The name of that host.
const HOST_NAME: &str = "6.12, 256 MiB";

/// The part of the arena that is run. Elevators are designed with one part and tested on the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// Workloads and drives with which elevators are designed.
    #[default]
    Design,
    /// Cases whose workload or drive was not used in the design.
    Test,
    /// All cases.
    All,
}

/// The runs: combinations of workloads, drives, elevators and seeds.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The drives.
    pub drives: Vec<Drive>,
    /// The part of the cases of workloads and drives.
    pub split: Split,
    /// The elevators.
    pub elevators: Vec<Kind>,
    /// The first seed.
    pub first_seed: u64,
    /// The number of seeds, at least 1.
    pub seed_count: u64,
    /// Tunables that are not at their defaults: the key, as `cfq.slice_idle`, and the value in the
    /// tunable's own unit.
    pub settings: Vec<(String, i64)>,
}

/// Reasons why the simulations cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// A workload cannot have a runtime.
    #[error(transparent)]
    Option(#[from] SetOptionError),
    /// A sweep is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The matrix is too large.
    #[error(transparent)]
    Points(#[from] TooManyPoints),
}

impl Split {
    /// Returns true if a case is in this part.
    pub fn has(self, workload: &Workload, drive: &Drive) -> bool {
        let is_test = workload.is_test || drive.is_test;
        match self {
            Split::Design => !is_test,
            Split::Test => is_test,
            Split::All => true,
        }
    }
}

impl Matrix {
    /// The elevator under which a process runs alone: first come, first served.
    pub const ALONE: Kind = Kind::Noop;

    /// The seeds.
    pub fn seeds(&self) -> Range<u64> {
        self.first_seed..self.first_seed.saturating_add(self.seed_count.max(1))
    }

    /// The value of a tunable, by its key, if it is set.
    pub(crate) fn setting(&self, key: &str) -> Option<f64> {
        self.settings.iter().find(|(other, _)| other == key).map(|(_, value)| *value as f64)
    }

    /// The cases: each workload on each drive that is in the split.
    pub fn cases(&self) -> impl Iterator<Item = (&Workload, &Drive)> {
        let pairs = self.workloads.iter().flat_map(|workload| self.drives.iter().map(move |drive| (workload, drive)));
        pairs.filter(|(workload, drive)| self.split.has(workload, drive))
    }

    /// The sweeps of all simulations: workloads under the elevators, and processes alone. A drive
    /// has sweeps of its own, because the split can leave out workloads on it.
    ///
    /// # Errors
    /// [`MatrixError`] if a job, a drive or the number of seeds is not possible.
    pub fn sweeps(&self) -> Result<Vec<Plan>, MatrixError> {
        let mut plans = Vec::new();
        for drive in &self.drives {
            let workloads: Vec<&Workload> =
                self.workloads.iter().filter(|workload| self.split.has(workload, drive)).collect();
            if workloads.is_empty() {
                continue;
            }
            let (mut together, mut alone, mut names) = (Vec::new(), Vec::new(), Vec::new());
            for workload in workloads {
                let runtime_ms = workload.runtime_ms(drive.class);
                together.push(job(workload.name, &workload.lasting(runtime_ms)?));
                for section in workload.sections() {
                    let text = workload.alone(&section, runtime_ms)?;
                    let name = alone_name(&text);
                    if !names.contains(&name) {
                        alone.push(job(&name, &text));
                        names.push(name);
                    }
                }
            }
            plans.push(self.plan(drive, together, &self.elevators)?);
            plans.push(self.plan(drive, alone, &[Matrix::ALONE])?);
        }
        Ok(plans)
    }

    fn plan(&self, drive: &Drive, jobs: Vec<Value>, elevators: &[Kind]) -> Result<Plan, MatrixError> {
        let seeds = self.seeds();
        let names = elevators.iter().map(|kind| Value::from(kind.info().name)).collect();
        let mut sweep = Table::new();
        sweep.insert("jobs".into(), Value::Array(jobs));
        sweep.insert("drives".into(), Value::Array(vec![drive.name.into()]));
        sweep.insert("hosts".into(), Value::Array(vec![host()]));
        sweep.insert("elevators".into(), Value::Array(names));
        let is_of_plan = |key: &str| {
            key.split_once('.').is_some_and(|(name, _)| elevators.iter().any(|kind| kind.info().name == name))
        };
        let settings = self.settings.iter().filter(|(key, _)| is_of_plan(key));
        let vary: Table = settings.map(|(key, value)| (key.clone(), Value::Array(vec![(*value).into()]))).collect();
        if !vary.is_empty() {
            sweep.insert("vary".into(), Value::Table(vary));
        }
        sweep.insert("seeds".into(), format!("{}-{}", seeds.start, seeds.end - 1).into());
        let file = format!("arena on {}", drive.name);
        Ok(Plan::new(SweepSpec::from_toml(&sweep.to_string(), &file, Path::new(""))?)?)
    }
}

/// The name of the job in which one process of a section runs alone: the words of its job file.
/// Sections of several workloads can be alike; their runs are one point of a sweep, with one name.
pub(crate) fn alone_name(text: &str) -> String {
    format!("alone: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn host() -> Value {
    let mut table = Table::new();
    table.insert("name".into(), HOST_NAME.into());
    table.insert("toml".into(), HOST.into());
    Value::Table(table)
}

fn job(name: &str, text: &str) -> Value {
    let mut table = Table::new();
    table.insert("name".into(), name.into());
    table.insert("text".into(), text.into());
    Value::Table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::DriveClass;

    fn matrix(split: Split) -> Matrix {
        Matrix {
            workloads: Workload::ALL.to_vec(),
            drives: Drive::ALL.to_vec(),
            split,
            elevators: Kind::ALL.to_vec(),
            first_seed: 1,
            seed_count: 8,
            settings: Vec::new(),
        }
    }

    #[test]
    fn the_parts_have_all_cases_once() {
        let [design, test, all] = [Split::Design, Split::Test, Split::All].map(|split| matrix(split).cases().count());
        assert_eq!(design + test, all);
        assert!(design * 2 > all && test * 4 > all, "{design} and {test} of {all}");
    }

    #[test]
    fn each_case_has_runs_of_all_elevators_and_of_each_process_alone() {
        let matrix =
            Matrix { workloads: vec![Workload::ALL[0]], drives: Drive::ALL[..2].to_vec(), ..matrix(Split::All) };
        let points: u64 = matrix.sweeps().expect("a plan").iter().map(Plan::points).sum();
        assert_eq!(points, 2 * 8 * (Kind::ALL.len() as u64 + 1));
    }

    #[test]
    fn equal_jobs_of_two_workloads_share_their_runs_alone() {
        let workloads = ["reader-and-1-writer", "reader-and-16-writers"];
        let workloads = workloads.map(|name| Workload::from_name(name).expect("a workload"));
        let name = |workload: &Workload| alone_name(&workload.alone("reader", 500).expect("a job file"));
        assert_eq!(name(&workloads[0]), name(&workloads[1]));
        let drives = Drive::ALL[..1].to_vec();
        let matrix = Matrix { workloads: workloads.to_vec(), drives, ..matrix(Split::All) };
        let points: Vec<u64> = matrix.sweeps().expect("a plan").iter().map(Plan::points).collect();
        assert_eq!(points, [2 * 8 * Kind::ALL.len() as u64, 2 * 8], "two workloads, and a reader and a writer alone");
    }

    #[test]
    fn crowds_run_longer_on_disks_only() {
        let [usual, crowd] = ["streams", "crowd"].map(|name| Workload::from_name(name).expect("a workload"));
        let on = |workload: Workload| DriveClass::ALL.map(|class| workload.runtime_ms(class));
        assert_eq!((on(usual), on(crowd)), ([15_000, 1_000], [120_000, 1_000]));
        assert!(matrix(Split::All).sweeps().is_ok());
    }
}
