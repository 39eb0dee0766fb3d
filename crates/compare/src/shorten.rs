//! Shorter versions of jobs, for a first look.

use hoistway_fio::{Direction, Job, JobFile, Size};
use hoistway_units::figures::duration;

/// How much shorter jobs become.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shortening {
    /// The longest runtime of a job in ns, ramp time not included.
    pub runtime_ns: Option<u64>,
    /// The part of its requests and of its time that a job makes, above 0 and at most 1.
    pub scale: Option<f64>,
}

impl Shortening {
    /// Parses a runtime, in seconds if it has no unit; the value is in ns.
    ///
    /// # Errors
    /// A message with the valid form.
    pub fn parse_runtime(text: &str) -> Result<u64, String> {
        match hoistway_units::parse_time_ns(text, hoistway_units::TimeUnit::Seconds) {
            Ok(0) => Err("a runtime is longer than nothing, as in 30s".to_owned()),
            Ok(ns) => Ok(ns),
            Err(error) => Err(format!("{error}; write a time, as in 30s")),
        }
    }

    /// Parses the part of a job to run.
    ///
    /// # Errors
    /// A message with the valid range.
    pub fn parse_scale(text: &str) -> Result<f64, String> {
        let part = text.parse::<f64>().ok().filter(|part| *part > 0.0 && *part <= 1.0);
        part.ok_or_else(|| "it takes a number above 0 and at most 1, as in 0.1".to_owned())
    }

    /// The shortening in words.
    pub fn texts(&self) -> impl Iterator<Item = String> + use<> {
        let runtime = self.runtime_ns.map(|ns| format!("jobs of {} at most", duration(ns)));
        let scale = self.scale.map(|scale| format!("{scale} of the requests and of the time of each job"));
        runtime.into_iter().chain(scale)
    }

    /// Shortens the jobs. Files keep their sizes, so that seeks and hits in the page cache stay
    /// those of the whole job; with `scale` each process moves that part of its bytes and makes
    /// that part of its requests, and runtime, ramp time and start delay shrink alike.
    ///
    /// Returns notes on jobs that cannot be scaled.
    pub fn apply(&self, jobs: &mut JobFile) -> Vec<String> {
        let mut notes = Vec::new();
        for job in &mut jobs.jobs {
            if let Some(scale) = self.scale {
                scale_job(job, scale);
                if job.hoistway.tree.is_some() {
                    let Job { file, line, name, .. } = job;
                    notes
                        .push(format!("{file}:{line}: job `{name}`: --scale does not shorten the walk through a tree"));
                }
            }
            if let Some(most_ns) = self.runtime_ns {
                job.end.runtime_ns = Some(job.end.runtime_ns.map_or(most_ns, |runtime_ns| runtime_ns.min(most_ns)));
            }
        }
        notes
    }
}

fn scale_job(job: &mut Job, scale: f64) {
    let part = |whole: u64| (whole as f64 * scale).round() as u64;
    let percent = |whole: u8| Size::Percent((f64::from(whole) * scale).round().clamp(1.0, 100.0) as u8);
    // One block at least, so that a process makes a request.
    let least = job.min_bs(Direction::Read).max(job.min_bs(Direction::Write));
    job.end.runtime_ns = job.end.runtime_ns.map(|runtime_ns| part(runtime_ns).max(1));
    job.start.ramp_time_ns = part(job.start.ramp_time_ns);
    job.start.startdelay_ns = part(*job.start.startdelay_ns.start())..=part(*job.start.startdelay_ns.end());
    job.amount.number_ios = job.amount.number_ios.map(|count| part(count).max(1));
    job.amount.io_size = Some(match (job.amount.io_size, job.region.size) {
        (Some(Size::Bytes(bytes)), _) => Size::Bytes(part(bytes).max(least)),
        (Some(Size::Percent(whole)), _) => percent(whole),
        (None, Some(Size::Bytes(bytes))) => Size::Bytes(part(bytes).max(least)),
        (None, _) => percent(100),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(text: &str, by: Shortening) -> JobFile {
        let mut jobs = hoistway_fio::parse(text, "a.fio", &|_| None, &|_, _| unreachable!()).expect("jobs");
        by.apply(&mut jobs);
        jobs
    }

    #[test]
    fn a_runtime_has_a_unit_or_is_in_seconds_and_a_scale_is_a_part() {
        let runtime = Shortening::parse_runtime;
        assert_eq!(
            (runtime("30"), runtime("2m"), runtime("500ms")),
            (Ok(30_000_000_000), Ok(120_000_000_000), Ok(500_000_000))
        );
        assert!(runtime("0").is_err() && runtime("soon").is_err());
        assert_eq!(Shortening::parse_scale("0.1"), Ok(0.1));
        assert!(["0", "1.5", "-1", "nan", "x"].iter().all(|text| Shortening::parse_scale(text).is_err()));
    }

    #[test]
    fn a_runtime_bounds_every_job_and_lengthens_none() {
        let by = Shortening { runtime_ns: Some(10_000_000_000), scale: None };
        let jobs = shortened("[a]\nsize=1m\n[b]\nsize=1m\nruntime=60\n[c]\nsize=1m\nruntime=3\n", by);
        let seconds: Vec<_> = jobs.jobs.iter().map(|job| job.end.runtime_ns.map(|ns| ns / 1_000_000_000)).collect();
        assert_eq!(seconds, [Some(10), Some(10), Some(3)]);
    }

    #[test]
    fn a_scale_shrinks_requests_and_times_and_no_file() {
        let by = Shortening { runtime_ns: None, scale: Some(0.25) };
        let text = "[a]\nsize=64m\nruntime=60\nramp_time=8\nstartdelay=4\n[b]\nsize=64m\nio_size=16m\nnumber_ios=100\n";
        let jobs = shortened(text, by).jobs;
        assert_eq!(
            (jobs[0].region.size, jobs[0].amount.io_size),
            (Some(Size::Bytes(64 << 20)), Some(Size::Bytes(16 << 20)))
        );
        assert_eq!((jobs[0].end.runtime_ns, jobs[0].start.ramp_time_ns), (Some(15_000_000_000), 2_000_000_000));
        assert_eq!(jobs[0].start.startdelay_ns, 1_000_000_000..=1_000_000_000);
        assert_eq!((jobs[1].amount.io_size, jobs[1].amount.number_ios), (Some(Size::Bytes(4 << 20)), Some(25)));
        let tiny = shortened("[a]\nbs=64k\nsize=1m\n", Shortening { runtime_ns: None, scale: Some(0.001) });
        assert_eq!(tiny.jobs[0].amount.io_size, Some(Size::Bytes(64 << 10)));
    }
}
