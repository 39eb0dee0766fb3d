//! Typical uses of a machine as workloads, for users without a trace or a job file.
//!
//! Each use is a fio job file in `uses/` with an objective. Its duration follows the drive: the
//! figures of a rotating disk need half a minute to settle, those of flash a few seconds, and flash
//! has a hundred thousand requests per second to simulate.

use hoistway_drive::Profile;
use hoistway_fio::{Diagnostics, JobFile};

/// A typical use of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// A program starts while a file is copied and an indexer runs.
    Desktop,
    /// Random readers, a log with syncs, and checkpoints.
    Database,
    /// Several virtual machines, each in a control group.
    VmHost,
    /// A sequential read of everything beside light interactive work.
    Backup,
    /// Video streams beside a torrent and a copy.
    Media,
}

/// A use in words, with its objective and jobs.
#[derive(Clone, Copy, Debug)]
pub struct UseInfo {
    /// The activity, in a clause.
    pub description: &'static str,
    /// The objective, for [`Objective::parse`](crate::Objective::parse).
    pub objective: &'static str,
    /// The objective in words.
    pub merit: &'static str,
    /// The job file with the variables `${SECONDS}` and `${BEFORE}`.
    pub text: &'static str,
}

impl Use {
    /// All uses.
    pub const ALL: [Use; 5] = [Use::Desktop, Use::Database, Use::VmHost, Use::Backup, Use::Media];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Use::Desktop => "desktop",
            Use::Database => "database",
            Use::VmHost => "vm-host",
            Use::Backup => "backup",
            Use::Media => "media",
        }
    }

    /// The use of this name.
    pub fn from_name(name: &str) -> Option<Use> {
        Use::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Words, objective and jobs of the use.
    pub const fn info(self) -> UseInfo {
        match self {
            Use::Desktop => UseInfo {
                description: "a program starts while a large file is copied and an indexer runs",
                objective: "time(start) min, throughput >= 60%",
                merit: "how long the program takes to start, with six tenths of the best total throughput kept",
                text: include_str!("uses/desktop.fio"),
            },
            Use::Database => UseInfo {
                description: "readers here and there, a log that is synced at every commit, checkpoints",
                objective: "p99(reader) min, throughput(reader) >= 80%, throughput(log) >= 40%",
                merit: "the 99th percentile of the readers' latency, with eight tenths of the best rate of reads and four tenths of the best rate \
                        of commits kept",
                text: include_str!("uses/database.fio"),
            },
            Use::VmHost => UseInfo {
                description: "guests of several kinds, each in a control group of equal weight: a web server, a mail server, a build, a backup",
                objective: "p99(web) min, p99(mail) min, throughput(build) >= 80%, throughput(dump) >= 10%",
                merit: "the 99th percentile of latency of the web server's guest, then of the mail server's; the build keeps eight tenths of the \
                        most it can get, and the backup, which takes whatever the others leave, a tenth",
                text: include_str!("uses/vm-host.fio"),
            },
            Use::Backup => UseInfo {
                description: "a backup reads everything while a few people work lightly",
                objective: "p99(people) min, throughput(backup) >= 10%",
                merit: "the 99th percentile of the people's latency, while the backup keeps a tenth of the best rate that it can have",
                text: include_str!("uses/backup.fio"),
            },
            Use::Media => UseInfo {
                description: "four films are watched while a torrent is filled and another film arrives over the network",
                objective: "misses(film) min, p99(film) min, throughput >= 80%",
                merit: "how many seconds of the films come late, then the 99th percentile of their reads' latency, with eight tenths of the best total \
                        throughput kept",
                text: include_str!("uses/media.fio"),
            },
        }
    }

    /// The jobs for a drive, and the text of the job file with its variables replaced.
    ///
    /// # Errors
    /// [`Diagnostics`] for an invalid job file; a test parses all of them.
    pub fn jobs(self, profile: &Profile) -> Result<(JobFile, String), Diagnostics> {
        self.jobs_for(seconds_on(profile))
    }

    /// The jobs for a duration in seconds, whatever the drive.
    ///
    /// # Errors
    /// As for [`Use::jobs`].
    pub fn jobs_for(self, seconds: u64) -> Result<(JobFile, String), Diagnostics> {
        let variables = [("SECONDS", seconds), ("BEFORE", (seconds / 5).max(1))];
        let mut text = self.info().text.to_owned();
        for (name, value) in variables {
            text = text.replace(&format!("${{{name}}}"), &value.to_string());
        }
        let name = format!("{}.fio", self.name());
        let no_includes = |path: &str, _: &str| Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.to_owned()));
        Ok((hoistway_fio::parse(&text, &name, &|_| None, &no_includes)?, text))
    }
}

/// The duration of a use on a drive, in seconds.
fn seconds_on(profile: &Profile) -> u64 {
    if profile.is_rotational() { 30 } else { 5 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Objective;

    #[test]
    fn every_use_parses_and_its_objective_names_its_jobs() {
        for drive in ["sata-7200-2006", "ssd-nvme-tlc", "cloud-gp3"] {
            let profile = Profile::builtin(drive).unwrap();
            for use_ in Use::ALL {
                let (jobs, text) = use_.jobs(&profile).unwrap_or_else(|error| panic!("{}: {error}", use_.name()));
                assert!(!text.contains("${"), "{text}");
                assert!(jobs.ignored.is_empty(), "{}: {:?}", use_.name(), jobs.ignored);
                let names: Vec<&str> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
                Objective::parse(use_.info().objective, &names).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(Use::from_name(use_.name()), Some(use_));
            }
        }
    }
}
