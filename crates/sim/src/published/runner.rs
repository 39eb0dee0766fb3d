//! Runs the simulations of published results, each distinct one once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hoistway_drive::Profile;
use rayon::prelude::*;

use super::error::PublishedError;
use super::expectation::{self, Row};
use crate::compare::{CompareRequest, Comparison, Run, compare};
use crate::config::{HostConfig, Kernel};
use crate::settings::{Setting, elevator_of_name};

/// The progress of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowProgress {
    /// Index of the row, from 0.
    pub row: usize,
    /// Number of finished runs among the known ones.
    pub done: usize,
    /// Number of known runs of the row.
    pub of: usize,
}

/// Runs experiments and caches their results.
pub struct Runner<'a> {
    cancel: &'a AtomicBool,
    progress: &'a (dyn Fn(RowProgress) + Sync),
    row: usize,
    known: HashMap<String, Arc<Comparison>>,
}

/// One simulation: a job file, a drive, a machine, an elevator, a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Id of the row, for messages.
    pub id: String,
    /// The job file's text.
    pub job: String,
    /// The drive's profile.
    pub drive: String,
    /// The kernel of the host.
    pub kernel: String,
    /// The elevator.
    pub elevator: String,
    /// Tunables, as in `slice_idle=0`.
    pub settings: Vec<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Size of the request pool, if it differs from the kernel's default.
    pub nr_requests: Option<u32>,
    /// True if slices and the head's positions are kept.
    pub record: bool,
}

impl Experiment {
    /// The first job of a row under an elevator, on its drive and kernel, with seed 1.
    ///
    /// # Errors
    /// [`PublishedError`] for what the row does not name.
    pub fn of(row: &Row, elevator: &str) -> Result<Experiment, PublishedError> {
        let lacks = |what| PublishedError::NoInput { id: row.id.clone(), what, name: String::new() };
        let job = expectation::job(row.jobs.first().ok_or_else(|| lacks("job"))?)?;
        Ok(Experiment {
            id: row.id.clone(),
            job: job.to_owned(),
            drive: row.drive.clone().ok_or_else(|| lacks("drive"))?,
            kernel: row.kernel.clone().ok_or_else(|| lacks("kernel"))?,
            elevator: elevator.to_owned(),
            settings: Vec::new(),
            seed: 1,
            nr_requests: None,
            record: false,
        })
    }

    /// The same with another job of the row's, counted from 0.
    ///
    /// # Errors
    /// [`PublishedError::NoInput`] when it has not as many.
    pub fn with_job(self, row: &Row, index: usize) -> Result<Experiment, PublishedError> {
        let name = row.jobs.get(index);
        let lacks = || PublishedError::NoInput { id: row.id.clone(), what: "job", name: index.to_string() };
        Ok(Experiment { job: expectation::job(name.ok_or_else(lacks)?)?.to_owned(), ..self })
    }

    /// The same with another value somewhere in the job file.
    #[must_use]
    pub fn with_text(self, old: &str, new: &str) -> Experiment {
        Experiment { job: self.job.replace(old, new), ..self }
    }

    /// The same with a tunable of its elevator: `slice_idle=0`.
    #[must_use]
    pub fn with(mut self, setting: &str) -> Experiment {
        self.settings.push(setting.to_owned());
        self
    }

    /// The same with slices and the head's positions kept.
    #[must_use]
    pub fn recorded(self) -> Experiment {
        Experiment { record: true, ..self }
    }

    /// The same with each of so many seeds, from 1.
    pub fn seeds(self, count: u64) -> Vec<Experiment> {
        (1..=count.max(1)).map(|seed| Experiment { seed, ..self.clone() }).collect()
    }

    fn request(&self) -> Result<CompareRequest, PublishedError> {
        let lacks = |what, name: &str| PublishedError::NoInput { id: self.id.clone(), what, name: name.to_owned() };
        let jobs = hoistway_fio::parse(&self.job, &self.id, &|_| None, &|path, _| {
            Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.to_owned()))
        });
        let kind = elevator_of_name(&self.elevator)?;
        let setting = |text: &String| Setting::parse(&format!("{}.{text}", self.elevator));
        Ok(CompareRequest {
            jobs: jobs.map_err(|error| PublishedError::Job { id: self.id.clone(), problem: error.to_string() })?,
            profile: Profile::builtin(&self.drive).ok_or_else(|| lacks("drive", &self.drive))?,
            host: self.host().ok_or_else(|| lacks("kernel", &self.kernel))?,
            elevators: vec![kind],
            settings: self.settings.iter().map(setting).collect::<Result<_, _>>()?,
            seed: self.seed,
            record: self.record,
        })
    }

    /// The kernel's host, with the pool that is wanted. The block layer is that kernel's for all
    /// elevators.
    fn host(&self) -> Option<HostConfig> {
        let mut host = HostConfig::kernel(Kernel::from_name(&self.kernel)?);
        if self.nr_requests.is_some() {
            host.queue.nr_requests = self.nr_requests;
        }
        Some(host)
    }

    /// What tells it from others: everything but the row.
    fn key(&self) -> String {
        format!("{:?}", Experiment { id: String::new(), ..self.clone() })
    }
}

impl<'a> Runner<'a> {
    /// A runner that has run nothing yet. `progress` is called from several threads; when `cancel`
    /// becomes true, runs end soon.
    pub fn new(progress: &'a (dyn Fn(RowProgress) + Sync), cancel: &'a AtomicBool) -> Runner<'a> {
        Runner { cancel, progress, row: 0, known: HashMap::new() }
    }

    /// Says which row is being measured, counted from 0.
    pub fn begin(&mut self, row: usize) {
        self.row = row;
        (self.progress)(RowProgress { row, done: 0, of: 1 });
    }

    /// What comes out of these, in their order; those that are not known yet run side by side.
    ///
    /// # Errors
    /// [`PublishedError`], of the first that failed.
    pub fn compared(&mut self, experiments: &[Experiment]) -> Result<Vec<Arc<Comparison>>, PublishedError> {
        let mut wanted: Vec<&Experiment> = Vec::new();
        for experiment in experiments {
            let key = experiment.key();
            if !self.known.contains_key(&key) && !wanted.iter().any(|other| other.key() == key) {
                wanted.push(experiment);
            }
        }
        let (done, of) = (AtomicUsize::new(0), wanted.len());
        let run = |experiment: &&Experiment| {
            let comparison = compare(&experiment.request()?, &|_| {}, self.cancel)?;
            (self.progress)(RowProgress { row: self.row, done: done.fetch_add(1, Ordering::Relaxed) + 1, of });
            Ok((experiment.key(), Arc::new(comparison)))
        };
        let ran: Result<Vec<_>, PublishedError> = wanted.par_iter().map(run).collect();
        self.known.extend(ran?);
        let found = |experiment: &Experiment| {
            let known = self.known.get(&experiment.key()).cloned();
            known.ok_or_else(|| PublishedError::NoMeasure { id: experiment.id.clone() })
        };
        experiments.iter().map(found).collect()
    }

    /// The means of some figures over the seeds of one experiment.
    ///
    /// # Errors
    /// As for [`Runner::compared`].
    pub fn means<const N: usize>(
        &mut self,
        experiment: Experiment,
        seeds: u64,
        of: impl Fn(&Run, f64) -> [f64; N],
    ) -> Result<[f64; N], PublishedError> {
        let comparisons = self.compared(&experiment.seeds(seeds))?;
        let mut sums = [0.0; N];
        for comparison in &comparisons {
            for run in &comparison.runs {
                let figures = of(run, comparison.single_stream_bytes_per_s);
                sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
            }
        }
        Ok(sums.map(|sum| sum / comparisons.len() as f64))
    }
}
