//! A workload on a model of a drive, run under what could be set.

use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::JobFile;
use hoistway_sim::whatif::{Machine, Model, WhatifError};
use hoistway_sim::{CompareRequest, HostConfig, Kernel, Run, SimError, run_each};
use rayon::prelude::*;

use crate::choice::Choice;
use crate::objective::{Figure, What, pid_name};

/// What is done.
#[derive(Clone, Debug)]
pub enum Workload {
    /// The jobs of a job file.
    Jobs(JobFile),
    /// What was recorded, on the machine that it was found on; its drive, seed and settings do not count.
    Recorded(Box<Model>, Box<Machine>),
}

/// Where choices are tried.
#[derive(Clone, Debug)]
pub struct Bench {
    /// What is done.
    pub workload: Workload,
    /// The model of the drive.
    pub profile: Profile,
    /// The host, as it is now. Of a recorded workload only the depth counts: the rest is in its think times.
    pub host: HostConfig,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// The simulation of jobs.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The simulation of a recording.
    #[error(transparent)]
    Whatif(#[from] WhatifError),
    /// There is nothing to choose from.
    #[error("nothing could be set: name at least one scheduler")]
    NoChoices,
    /// Spreads need several seeds.
    #[error("{seeds} seeds cannot show a spread: take 2 or more")]
    Seeds {
        /// How many were asked for.
        seeds: u32,
    },
}

impl AdviseError {
    /// Whether somebody asked for the end.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            AdviseError::Sim(SimError::Cancelled) | AdviseError::Whatif(WhatifError::Sim(SimError::Cancelled))
        )
    }
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Measured {
    /// The figures that were asked for, in their order.
    pub figures: Vec<f64>,
    /// What each job got, in the order of the workload; processes of one name are one job.
    pub jobs: Vec<JobFigures>,
    /// The share of the time that the drive spent on seeking and waiting for the platter, 0 to 1.
    pub arm_share: f64,
    /// The share of the time in which the drive had nothing to do, 0 to 1.
    pub idle_share: f64,
}

/// What a job got in one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct JobFigures {
    /// Its name.
    pub name: String,
    /// Bytes a second of all its processes.
    pub bytes_per_s: f64,
    /// The 99th percentile of latency, in ns.
    pub p99_ns: f64,
    /// From its first start to its last end, in ns.
    pub time_ns: f64,
    /// Whether it ends when its work is done, and not when its time is over.
    pub is_bounded: bool,
}

/// How far the runs have come: how many are over, of how many.
pub type Headway<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Bench {
    /// The names of the jobs, each once.
    pub fn job_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let all: Box<dyn Iterator<Item = &str>> = match &self.workload {
            Workload::Jobs(jobs) => Box::new(jobs.jobs.iter().map(|job| job.name.as_str())),
            Workload::Recorded(model, _) => {
                Box::new(model.recording().processes.iter().map(|process| process.name.as_str()))
            }
        };
        for name in all {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What an objective may speak of: the jobs, and the processes of a recording by their ids (`pid 812`).
    pub fn names(&self) -> Vec<String> {
        let pids = match &self.workload {
            Workload::Jobs(_) => &[][..],
            Workload::Recorded(model, _) => &model.recording().processes,
        };
        let names = self.job_names().into_iter().map(str::to_owned);
        names.chain(pids.iter().map(|process| pid_name(process.pid))).collect()
    }

    /// Runs each choice with each seed, side by side on all cores: a row a choice, a column a seed.
    ///
    /// # Errors
    /// The first of [`AdviseError`].
    pub fn measure(
        &self,
        choices: &[Choice],
        seeds: &[u64],
        figures: &[Figure],
        headway: Headway<'_>,
        cancel: &AtomicBool,
    ) -> Result<Vec<Vec<Measured>>, AdviseError> {
        let tasks: Vec<(usize, u64)> =
            (0..choices.len()).flat_map(|choice| seeds.iter().map(move |seed| (choice, *seed))).collect();
        let over = std::sync::atomic::AtomicUsize::new(0);
        let runs: Result<Vec<Measured>, AdviseError> = tasks
            .par_iter()
            .map(|(choice, seed)| {
                if cancel.load(Ordering::Relaxed) {
                    return Err(SimError::Cancelled.into());
                }
                let run = self.run(&choices[*choice], *seed, cancel)?;
                headway(over.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
                Ok(self.measured(&run, figures))
            })
            .collect();
        let mut runs = runs?.into_iter();
        Ok(choices.iter().map(|_| runs.by_ref().take(seeds.len()).collect()).collect())
    }

    /// One run.
    ///
    /// # Errors
    /// [`AdviseError`].
    pub fn run(&self, choice: &Choice, seed: u64, cancel: &AtomicBool) -> Result<Run, AdviseError> {
        let runs = match &self.workload {
            Workload::Jobs(jobs) => run_each(
                &CompareRequest {
                    jobs: jobs.clone(),
                    profile: self.profile.clone(),
                    host: choice.host(&self.host),
                    elevators: vec![choice.kind],
                    settings: choice.settings()?,
                    seed,
                    record: false,
                },
                &|_| {},
                cancel,
            )?,
            Workload::Recorded(model, machine) => {
                let depth_max = choice.queue_depth.or(self.host.depth_max);
                let machine = Machine {
                    profile: turned(&self.profile, seed),
                    depth_max: depth_max.into_iter().chain(machine.depth_max).min(),
                    settings: choice.settings()?,
                    seed,
                    ..Machine::clone(machine)
                };
                model.with_pauses_turned(seed).run_each(&[choice.kind], &machine, cancel)?
            }
        };
        runs.into_iter().next().ok_or(AdviseError::NoChoices)
    }

    fn measured(&self, run: &Run, figures: &[Figure]) -> Measured {
        let jobs = self.job_names().into_iter().map(|name| {
            let of = |what| Figure { what, job: Some(name.to_owned()) }.of(run);
            JobFigures {
                name: name.to_owned(),
                bytes_per_s: of(What::Throughput),
                p99_ns: of(What::Percentile(99.0)),
                time_ns: of(What::Time),
                is_bounded: self.is_bounded(name),
            }
        });
        Measured {
            figures: figures.iter().map(|figure| self.figure(figure, run)).collect(),
            jobs: jobs.collect(),
            arm_share: run.arm_share(),
            idle_share: if run.runtime_ns == 0 { 0.0 } else { run.drive_ns.idle as f64 / run.runtime_ns as f64 },
        }
    }

    /// What a figure is in a run. Where some jobs end with their work and others with their time, total throughput is the sum of the rates that each has
    /// while it works: what is moved until the last one ends would call a run slow in which one of them takes longer.
    fn figure(&self, figure: &Figure, run: &Run) -> f64 {
        let Workload::Jobs(jobs) = &self.workload else { return figure.of(run) };
        let works_beside = |time_based: bool| jobs.jobs.iter().any(|job| job.time_based == time_based);
        let one_by_one = jobs.jobs.iter().any(|job| job.stonewall);
        match figure {
            Figure { what: What::Throughput, job: None }
                if !one_by_one && works_beside(true) && works_beside(false) =>
            {
                run.processes.iter().map(|process| process.bytes_per_s).sum()
            }
            figure => figure.of(run),
        }
    }

    /// Whether a job ends when its work is done.
    fn is_bounded(&self, name: &str) -> bool {
        match &self.workload {
            Workload::Jobs(jobs) => jobs.jobs.iter().any(|job| job.name == name && !job.time_based),
            Workload::Recorded(..) => false,
        }
    }

    /// The kernel whose block layer the schedulers run in, `None` for hoistway's own server.
    pub fn kernel(&self) -> Option<Kernel> {
        match &self.workload {
            Workload::Jobs(_) => self.host.kernel,
            Workload::Recorded(_, machine) => machine.kernel,
        }
    }

    /// Whether a job asks for an I/O priority, or a nice level, which counts for one.
    pub fn asks_for_priorities(&self) -> bool {
        match &self.workload {
            Workload::Jobs(jobs) => jobs.jobs.iter().any(|job| job.prioclass.is_some() || job.prio.is_some()),
            Workload::Recorded(..) => false,
        }
    }
}

/// The drive with its platter at another angle when the work begins: of what was recorded nothing else is left to chance.
fn turned(profile: &Profile, seed: u64) -> Profile {
    match profile.revolution_ns() {
        // Multiples of the golden ratio lie as far from each other as they can.
        Some(revolution_ns) => {
            let angle = (seed as f64 * 0.618_033_988_749_894_9).fract();
            profile.clone().with_rotation(revolution_ns as f64, angle)
        }
        None => profile.clone(),
    }
}

/// The schedulers that Linux 6 has.
pub const TODAY: [Kind; 4] = [Kind::Noop, Kind::MqDeadline, Kind::Kyber, Kind::Bfq];
