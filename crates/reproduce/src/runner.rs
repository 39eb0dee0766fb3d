//! Runs the simulations of published results, each distinct simulation once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hoistway_drive::Profile;
use rayon::prelude::*;

use crate::error::ReproduceError;
use crate::expectation::{self, Row};
use crate::unknown::{Trial, changed_profile, with_key, with_option};
use hoistway_sim::{
    CompareRequest, Comparison, HostConfig, HostFileError, Kernel, Run, Setting, compare, elevator_of_name, run_each,
};

/// The progress of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowProgress {
    /// Index of the row, from 0.
    pub row: usize,
    /// Number of finished runs.
    pub done: usize,
    /// Number of runs that the row has asked for so far.
    pub of: usize,
}

/// Runs experiments and caches their results.
pub struct Runner<'a> {
    cancel: &'a AtomicBool,
    progress: &'a (dyn Fn(RowProgress) + Sync),
    row: usize,
    known: HashMap<String, Arc<Comparison>>,
    /// The trial that changes all experiments, with a flag for each of its changes that applied.
    trial: Option<(&'static Trial, Vec<bool>)>,
}

/// One simulation: a job file, a drive, a machine, an elevator, a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Id of the row, for error messages.
    pub id: String,
    /// The job file's text.
    pub job: String,
    /// The drive's profile.
    pub drive: String,
    /// The kernel of the host.
    pub kernel: String,
    /// The elevator.
    pub elevator: String,
    /// Tunables of the elevator, as in `slice_idle=0`.
    pub settings: Vec<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Size of the request pool, if it differs from the kernel's default.
    pub nr_requests: Option<u32>,
    /// Number of processors, if it differs from the kernel's default.
    pub cpus: Option<u32>,
    /// Number of drives.
    pub drives: u32,
    /// True if the jobs also run alone as references.
    pub alone: bool,
    /// True if slices and head positions are recorded.
    pub record: bool,
    /// Lines of a host file that change the kernel's host.
    pub host: Vec<String>,
    /// Keys of the drive's profile that are changed.
    pub profile: Vec<String>,
}

impl Experiment {
    /// The first job of a row under an elevator, on its drive and kernel, with seed 1.
    ///
    /// # Errors
    /// [`ReproduceError`] if the row names no job or no drive.
    pub fn of(row: &Row, elevator: &str) -> Result<Experiment, ReproduceError> {
        let lacks = |what| ReproduceError::NoInput { id: row.id.clone(), what, name: String::new() };
        let job = expectation::job_text(row.jobs.first().ok_or_else(|| lacks("job"))?)?;
        Ok(Experiment {
            id: row.id.clone(),
            job: job.to_owned(),
            drive: row.drive.clone().ok_or_else(|| lacks("drive"))?,
            kernel: row.kernel.clone().ok_or_else(|| lacks("kernel"))?,
            elevator: elevator.to_owned(),
            settings: Vec::new(),
            seed: 1,
            nr_requests: None,
            cpus: None,
            drives: 1,
            alone: true,
            record: false,
            host: Vec::new(),
            profile: Vec::new(),
        })
    }

    /// The experiment with another job of the row, by its index from 0.
    ///
    /// # Errors
    /// [`ReproduceError::NoInput`] if the row has fewer jobs.
    pub fn with_job(self, row: &Row, index: usize) -> Result<Experiment, ReproduceError> {
        let name = row.jobs.get(index);
        let lacks = || ReproduceError::NoInput { id: row.id.clone(), what: "job", name: index.to_string() };
        Ok(Experiment { job: expectation::job_text(name.ok_or_else(lacks)?)?.to_owned(), ..self })
    }

    /// The experiment with a text of the job file replaced by another.
    #[must_use]
    pub fn with_text(self, old: &str, new: &str) -> Experiment {
        Experiment { job: self.job.replace(old, new), ..self }
    }

    /// The experiment with a tunable of its elevator, as in `slice_idle=0`.
    #[must_use]
    pub fn with(mut self, setting: &str) -> Experiment {
        self.settings.push(setting.to_owned());
        self
    }

    /// The experiment with slices and head positions recorded.
    #[must_use]
    pub fn recorded(self) -> Experiment {
        Experiment { record: true, ..self }
    }

    /// The experiment with each seed from 1 to `count`, at least one.
    pub fn seeds(self, count: u64) -> Vec<Experiment> {
        (1..=count.max(1)).map(|seed| Experiment { seed, ..self.clone() }).collect()
    }

    /// The experiment with the changes of a trial. `used` has a flag for each of
    /// [`Trial::changes`], which becomes true if the simulation has what the change names.
    fn with_trial(mut self, trial: &Trial, used: &mut [bool]) -> Result<Experiment, ReproduceError> {
        let mut used = used.iter_mut();
        let mut set = |applies: bool| {
            if let Some(used) = used.next() {
                *used |= applies;
            }
        };
        for option in trial.job() {
            let text = with_option(&self.job, option).ok_or_else(|| {
                trial.error(&self.id, format!("`{option}` is no option of a job: write `section.option=value`"))
            })?;
            set(text.is_some());
            self.job = text.unwrap_or(self.job);
        }
        for setting in trial.settings() {
            Setting::parse(setting).map_err(|error| trial.error(&self.id, error.to_string()))?;
            let own = setting.split_once('.').filter(|(elevator, _)| *elevator == self.elevator);
            set(own.is_some());
            self.settings.extend(own.map(|(_, setting)| setting.to_owned()));
        }
        let drive = Profile::builtin_toml(&self.drive).unwrap_or_default();
        for key in trial.profile() {
            let applies = with_key(drive, key).map_err(|problem| trial.error(&self.id, problem))?.is_some();
            set(applies);
            if applies {
                self.profile.push(key.clone());
            }
        }
        self.host.extend(trial.host().iter().cloned());
        Ok(self)
    }

    fn request(&self) -> Result<CompareRequest, ReproduceError> {
        let unknown = |what, name: &str| ReproduceError::NoInput { id: self.id.clone(), what, name: name.to_owned() };
        let jobs = hoistway_fio::parse(&self.job, &self.id, &|_| None, &|path, _| {
            Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.to_owned()))
        });
        let kind = elevator_of_name(&self.elevator)?;
        let setting = |text: &String| Setting::parse(&format!("{}.{text}", self.elevator));
        Ok(CompareRequest {
            jobs: jobs.map_err(|error| ReproduceError::Job { id: self.id.clone(), problem: error.to_string() })?,
            profile: changed_profile(&self.drive, &self.profile)
                .map_err(|problem| ReproduceError::Job { id: self.id.clone(), problem })?
                .ok_or_else(|| unknown("drive", &self.drive))?,
            host: self.host()?.ok_or_else(|| unknown("kernel", &self.kernel))?,
            elevators: vec![kind],
            settings: self.settings.iter().map(setting).collect::<Result<_, _>>()?,
            seed: self.seed,
            record: self.record,
        })
    }

    /// Runs the simulation. Without the references, its figures that compare with them are 0.
    fn compare(&self, cancel: &AtomicBool) -> Result<Comparison, ReproduceError> {
        let request = self.request()?;
        if self.alone {
            return Ok(compare(&request, &|_| {}, cancel)?);
        }
        let runs = run_each(&request, &|_| {}, cancel)?;
        Ok(Comparison {
            drive: request.profile.name().into(),
            seed: request.seed,
            rotational: request.profile.is_rotational(),
            single_stream_bytes_per_s: 0.0,
            alone_bytes_per_s: Vec::new(),
            simulated_requests: 0,
            is_partial: false,
            runs,
            notes: Vec::new(),
        })
    }

    /// The host of the kernel, with the size of the request pool. All elevators run in the block
    /// layer of that kernel.
    fn host(&self) -> Result<Option<HostConfig>, ReproduceError> {
        let Some(kernel) = Kernel::from_name(&self.kernel) else { return Ok(None) };
        let mut host = HostConfig::kernel(kernel);
        if !self.host.is_empty() {
            let text = format!("kernel = \"{}\"\n{}", self.kernel, self.host.join("\n"));
            host = HostConfig::from_toml(&text, "host").map_err(|error| {
                let problem = match error {
                    HostFileError::Wrong { problem, .. } => problem,
                    other => other.to_string(),
                };
                ReproduceError::Job { id: self.id.clone(), problem }
            })?;
        }
        if self.nr_requests.is_some() {
            host.queue.nr_requests = self.nr_requests;
        }
        host.cpus = self.cpus.unwrap_or(host.cpus);
        if self.drives > 1 {
            host.drives = self.drives;
        }
        Ok(Some(host))
    }

    /// Identifies the simulation: all fields except the row.
    fn key(&self) -> String {
        format!("{:?}", Experiment { id: String::new(), ..self.clone() })
    }
}

impl<'a> Runner<'a> {
    /// Creates a runner with an empty cache. `progress` is called from several threads. When
    /// `cancel` becomes true, runs end soon.
    pub fn new(progress: &'a (dyn Fn(RowProgress) + Sync), cancel: &'a AtomicBool) -> Runner<'a> {
        Runner { cancel, progress, row: 0, known: HashMap::new(), trial: None }
    }

    /// Reports progress for this row from now on; `row` counts from 0.
    pub fn begin(&mut self, row: usize) {
        self.row = row;
        (self.progress)(RowProgress { row, done: 0, of: 1 });
    }

    /// A runner with the same cache that changes all experiments by this trial, until
    /// [`Runner::end_trial`].
    pub fn for_trial(&self, trial: &'static Trial) -> Runner<'a> {
        let trial = Some((trial, vec![false; trial.changes().count()]));
        Runner { trial, known: self.known.clone(), ..*self }
    }

    /// Ends a trial.
    ///
    /// # Errors
    /// [`ReproduceError::Trial`] if a change of the trial applied to no experiment.
    pub fn end_trial(&mut self, id: &str) -> Result<(), ReproduceError> {
        self.trial.take().map_or(Ok(()), |(trial, used)| trial.check_used(id, &used))
    }

    /// The results of these experiments, in their order, changed by the trial. Those that are not
    /// in the cache run in parallel.
    ///
    /// # Errors
    /// The [`ReproduceError`] of the first experiment that failed.
    pub fn compared(&mut self, experiments: &[Experiment]) -> Result<Vec<Arc<Comparison>>, ReproduceError> {
        let experiments = match &mut self.trial {
            None => experiments.to_vec(),
            Some((trial, used)) => {
                let apply = |experiment: &Experiment| experiment.clone().with_trial(trial, used);
                experiments.iter().map(apply).collect::<Result<_, _>>()?
            }
        };
        let mut wanted: Vec<&Experiment> = Vec::new();
        for experiment in &experiments {
            let key = experiment.key();
            if !self.known.contains_key(&key) && !wanted.iter().any(|other| other.key() == key) {
                wanted.push(experiment);
            }
        }
        let (done, of) = (AtomicUsize::new(0), wanted.len());
        let run = |experiment: &&Experiment| {
            let comparison = experiment.compare(self.cancel)?;
            (self.progress)(RowProgress { row: self.row, done: done.fetch_add(1, Ordering::Relaxed) + 1, of });
            Ok((experiment.key(), Arc::new(comparison)))
        };
        let finished: Result<Vec<_>, ReproduceError> = wanted.par_iter().map(run).collect();
        self.known.extend(finished?);
        let found = |experiment: &Experiment| {
            let known = self.known.get(&experiment.key()).cloned();
            known.ok_or_else(|| ReproduceError::NoMeasure { id: experiment.id.clone() })
        };
        experiments.iter().map(found).collect()
    }

    /// Averages of figures over the seeds from 1 to `seeds` of one experiment. `figures` gets a run
    /// and the rate of the single stream in bytes a second.
    ///
    /// # Errors
    /// The errors of [`Runner::compared`].
    pub fn means<const N: usize>(
        &mut self,
        experiment: Experiment,
        seeds: u64,
        figures: impl Fn(&Run, f64) -> [f64; N],
    ) -> Result<[f64; N], ReproduceError> {
        let comparisons = self.compared(&experiment.seeds(seeds))?;
        let mut sums = [0.0; N];
        for comparison in &comparisons {
            for run in &comparison.runs {
                let figures = figures(run, comparison.single_stream_bytes_per_s);
                sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
            }
        }
        Ok(sums.map(|sum| sum / comparisons.len() as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::{Publication, parse};

    /// A publication with a row that has one unknown with this trial, on line 14.
    fn with_trial(trial: &str) -> &'static Publication {
        let text = format!(
            "seed='T'\ntitle='t'\nabout='a'\n[[row]]\nid='T-1'\nkind='number'\nwhat='w'\n\
             jobs=['examples/competing-readers.fio']\ndrive='sata-7200-2006'\nkernel='2.6.18'\n\
             [[row.unknown]]\nname='n'\nhere='h'\ntrial=[{{value='v',{trial}}}]\nstated='s'\n"
        );
        Box::leak(Box::new(parse("t.toml", &text).expect("a valid file")))
    }

    /// Runs the row's job under `deadline` with the trial.
    fn outcome(trial: &str) -> Result<(), ReproduceError> {
        let row = &with_trial(trial).rows[0];
        let trial = &row.unknowns[0].trials[0];
        let cancel = AtomicBool::new(false);
        let mut runner = Runner::new(&|_| {}, &cancel).for_trial(trial);
        let tried = row.tried(&row.unknowns[0], trial);
        // A short job, so that valid trials are quick.
        let run = Experiment::of(&tried, "deadline")?.with_text("size=128m", "size=1m");
        runner.compared(&[run]).map_err(|error| trial.wrap(&row.id, error))?;
        runner.end_trial(&row.id)
    }

    #[test]
    fn valid_trials_run() {
        for trial in [
            "job=['global.bs=8k']",
            "job=['files.numjobs=2', 'global.startdelay=1ms']",
            "settings=['deadline.fifo_batch=1']",
            "host=['hz = 100', 'read_ahead_kib = 64']",
            "drive='slide-7200'",
            "profile=['buffer.segments=4', 'faults.hangs=[{at_ms=5.0,for_ms=5.0}]', 'disk.rpm=*0.99']",
        ] {
            assert!(outcome(trial).is_ok(), "{trial}: {:?}", outcome(trial));
        }
    }

    #[test]
    fn invalid_trials_are_refused_with_file_line_value_and_what_is_right() {
        for (trial, problem) in [
            ("", "it changes nothing: set `job`, `settings`, `host`, `drive` or `profile`"),
            ("job=['bs']", "`bs` is no option of a job: write `section.option=value`"),
            ("job=['reader.bs=8k']", "`reader.bs=8k` changes nothing: no simulation of the row has this section"),
            ("job=['global.bs=small']", "small"),
            ("settings=['noop.x=1']", "noop"),
            ("settings=['cfq-v3.quantum=8']", "`cfq-v3.quantum=8` changes nothing"),
            ("host=['hz = 2000']", "`hz` is 2000: it takes 1 to 1000"),
            ("host=['hertz = 100']", "there is no host setting `hertz`; there are kernel, memory"),
            ("drive='sata-7200'", "no drive `sata-7200`"),
            ("profile=['segments=4']", "`segments=4` is no key of a drive: write `table.key=value`"),
            ("profile=['array.depth=4']", "`array.depth=4` changes nothing"),
            ("profile=['buffer.read_ahead_until=\"never\"']", "expected one of `segment`, `track`"),
            ("profile=['disk.mapping=*2']", "`disk.mapping=*2` multiplies a key that is no number of the drive"),
            ("profile=['disk.rpm=*fast']", "`disk.rpm=*fast` is no key of a drive"),
        ] {
            let error = outcome(trial).expect_err(trial).to_string();
            let place = "defect: crates/reproduce/published/t.toml:14: row T-1, trial `v`: ";
            assert!(error.starts_with(place) && error.contains(problem), "{trial}: {error}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = parse(
            "t.toml",
            "seed='T'\ntitle='t'\nabout='a'\n[[row]]\nid='T-1'\nkind='number'\nwhat='w'\n\
             [[row.unknown]]\nname='n'\nhere='h'\nstated='s'\ntrial=[{value='v',tick=1}]\n",
        );
        let problem = error.map(|_| ()).unwrap_err();
        assert!(problem.contains("line 12") && problem.contains("unknown field `tick`, expected one of"), "{problem}");
    }
}
