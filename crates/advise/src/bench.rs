//! Simulates a workload on a drive model under choices and seeds.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::whatif::{Machine, Model, WhatifError};
use hoistway_drive::Profile;
use hoistway_fio::JobFile;
use hoistway_sim::{CompareRequest, HostConfig, Kernel, Run, SimError, run_each};
use rayon::prelude::*;

use crate::choice::Choice;
use crate::objective::{Figure, Metric, pid_name};

/// A workload to simulate.
#[derive(Clone, Debug)]
pub enum Workload {
    /// The jobs of a job file.
    Jobs(JobFile),
    /// A recorded workload and the block layer of the recording. Drive, seed and settings of the
    /// machine are replaced in each run.
    Recorded(Box<Model>, Box<Machine>),
}

/// A workload, a drive and a host, on which choices are simulated.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The workload.
    pub workload: Workload,
    /// The model of the drive.
    pub profile: Profile,
    /// The host with its current settings. For a recorded workload only the depth counts: its think
    /// times contain the rest.
    pub host: HostConfig,
}

/// A simulation failed, or the request is invalid.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// The simulation of jobs failed or was cancelled.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The simulation of a recording failed or was cancelled.
    #[error(transparent)]
    Whatif(#[from] WhatifError),
    /// There are no choices.
    #[error("nothing could be set: name at least one scheduler")]
    NoChoices,
    /// A spread needs at least two seeds.
    #[error("{seeds} seeds cannot show a spread: take 2 or more")]
    Seeds {
        /// The number of seeds.
        seeds: u32,
    },
}

impl AdviseError {
    /// Returns true if the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            AdviseError::Sim(SimError::Cancelled) | AdviseError::Whatif(WhatifError::Sim(SimError::Cancelled))
        )
    }
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RunFigures {
    /// The requested figures, in order.
    pub figures: Vec<f64>,
    /// The figures of each job, in the order of the workload; processes of one name are one job.
    pub jobs: Vec<JobFigures>,
    /// The share of the time that the drive spent on seeks and on waiting for the platter, 0 to 1.
    pub arm_share: f64,
    /// The share of the time that the drive was idle, 0 to 1.
    pub idle_share: f64,
}

/// The figures of a job in one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct JobFigures {
    /// The name of the job.
    pub name: String,
    /// The throughput of all processes of the job, in bytes a second.
    pub bytes_per_s: f64,
    /// The 99th percentile of request latency, in ns.
    pub p99_ns: f64,
    /// The time from the first start to the last end, in ns.
    pub time_ns: f64,
    /// True if the job ends when its work is done, false if it ends after a time.
    pub is_bounded: bool,
}

/// Receives the number of finished runs and the number of all runs.
pub type RunProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Bench {
    /// The names of all jobs, each once.
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

    /// The names that an objective may use: jobs, and processes of a recording as `pid 812`.
    pub fn names(&self) -> Vec<String> {
        let pids = match &self.workload {
            Workload::Jobs(_) => &[][..],
            Workload::Recorded(model, _) => &model.recording().processes,
        };
        let names = self.job_names().into_iter().map(str::to_owned);
        names.chain(pids.iter().map(|process| pid_name(process.pid))).collect()
    }

    /// Simulates each choice with each seed, in parallel on all cores. Returns one row for each
    /// choice, one column for each seed.
    ///
    /// # Errors
    /// The [`AdviseError`] of the first simulation that failed or was cancelled.
    pub fn measure(
        &self,
        choices: &[Choice],
        seeds: &[u64],
        figures: &[Figure],
        progress: RunProgress<'_>,
        cancel: &AtomicBool,
    ) -> Result<Vec<Vec<RunFigures>>, AdviseError> {
        let tasks: Vec<(usize, u64)> =
            (0..choices.len()).flat_map(|choice| seeds.iter().map(move |seed| (choice, *seed))).collect();
        let finished = std::sync::atomic::AtomicUsize::new(0);
        let runs: Result<Vec<RunFigures>, AdviseError> = tasks
            .par_iter()
            .map(|(choice, seed)| {
                if cancel.load(Ordering::Relaxed) {
                    return Err(SimError::Cancelled.into());
                }
                let run = self.run(&choices[*choice], *seed, cancel)?;
                progress(finished.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
                Ok(self.figures_of(&run, figures))
            })
            .collect();
        let mut runs = runs?.into_iter();
        Ok(choices.iter().map(|_| runs.by_ref().take(seeds.len()).collect()).collect())
    }

    /// Simulates one choice with one seed.
    ///
    /// # Errors
    /// [`AdviseError`] if the simulation fails or is cancelled.
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
                    profile: with_start_angle(&self.profile, seed),
                    depth_max: depth_max.into_iter().chain(machine.depth_max).min(),
                    settings: choice.settings()?,
                    seed,
                    ..Machine::clone(machine)
                };
                model.with_rotated_think_times(seed).run_each(&[choice.kind], &machine, cancel)?
            }
        };
        runs.into_iter().next().ok_or(AdviseError::NoChoices)
    }

    fn figures_of(&self, run: &Run, figures: &[Figure]) -> RunFigures {
        let jobs = self.job_names().into_iter().map(|name| {
            let of = |metric| Figure { metric, job: Some(name.to_owned()) }.of(run);
            JobFigures {
                name: name.to_owned(),
                bytes_per_s: of(Metric::Throughput),
                p99_ns: of(Metric::Percentile(99.0)),
                time_ns: of(Metric::Time),
                is_bounded: self.is_bounded(name),
            }
        });
        RunFigures {
            figures: figures.iter().map(|figure| self.figure(figure, run)).collect(),
            jobs: jobs.collect(),
            arm_share: run.arm_share(),
            idle_share: if run.runtime_ns == 0 { 0.0 } else { run.drive_ns.idle as f64 / run.runtime_ns as f64 },
        }
    }

    /// The value of a figure in a run. If some jobs end with their work and others after a time,
    /// the total throughput is the sum of the rates of the processes while they run: otherwise one
    /// long job would make the whole run look slow.
    fn figure(&self, figure: &Figure, run: &Run) -> f64 {
        let Workload::Jobs(jobs) = &self.workload else { return figure.of(run) };
        let has_jobs = |time_based: bool| jobs.jobs.iter().any(|job| job.end.time_based == time_based);
        let is_sequential = jobs.jobs.iter().any(|job| job.start.stonewall);
        match figure {
            Figure { metric: Metric::Throughput, job: None } if !is_sequential && has_jobs(true) && has_jobs(false) => {
                run.processes.iter().map(|process| process.bytes_per_s).sum()
            }
            figure => figure.of(run),
        }
    }

    /// Returns true if a job ends when its work is done.
    fn is_bounded(&self, name: &str) -> bool {
        match &self.workload {
            Workload::Jobs(jobs) => jobs.jobs.iter().any(|job| job.name == name && !job.end.time_based),
            Workload::Recorded(..) => false,
        }
    }

    /// The kernel whose block layer is simulated; `None` for hoistway's own server.
    pub fn kernel(&self) -> Option<Kernel> {
        match &self.workload {
            Workload::Jobs(_) => self.host.kernel,
            Workload::Recorded(_, machine) => machine.kernel,
        }
    }

    /// Returns true if a job sets an I/O priority.
    pub fn asks_for_priorities(&self) -> bool {
        match &self.workload {
            Workload::Jobs(jobs) => {
                jobs.jobs.iter().any(|job| job.priority.prioclass.is_some() || job.priority.prio.is_some())
            }
            Workload::Recorded(..) => false,
        }
    }
}

/// The drive with the platter at another angle at the start: the only random part of a recorded
/// workload.
fn with_start_angle(profile: &Profile, seed: u64) -> Profile {
    match profile.revolution_ns() {
        // Multiples of the golden ratio spread evenly over the revolution.
        Some(revolution_ns) => {
            let angle = (seed as f64 * 0.618_033_988_749_894_9).fract();
            profile.clone().with_rotation(revolution_ns as f64, angle)
        }
        None => profile.clone(),
    }
}
