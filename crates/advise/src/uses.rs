//! Typical uses of a machine as workloads, for who has no trace and no job file.
//!
//! Each is a fio job file that stands in `uses/`, with what is to be good about it. How long it runs follows the drive: a disk needs half a minute to
//! show what it makes of it, flash shows it in a few seconds, and simulating its hundred thousand requests a second takes as long.

use hoistway_drive::Profile;
use hoistway_fio::{Diagnostics, JobFile};

/// What a machine is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// A program starts while a file is copied and an indexer runs.
    Desktop,
    /// Readers here and there, a log that is synced, checkpoints.
    Database,
    /// Guests of several kinds, each in a control group.
    VmHost,
    /// A stream over everything beside people at light work.
    Backup,
    /// Streams that must not stutter beside a torrent and a copy.
    Media,
}

/// What there is to know of a use.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What goes on, in a clause.
    pub what: &'static str,
    /// What is to be good, and what must not be lost over it, as [`Objective::parse`](crate::Objective::parse) reads it.
    pub objective: &'static str,
    /// That in words.
    pub merit: &'static str,
    /// The job file, with `${SECONDS}` and the like in it.
    pub text: &'static str,
}

impl Use {
    /// All of them.
    pub const ALL: [Use; 5] = [Use::Desktop, Use::Database, Use::VmHost, Use::Backup, Use::Media];

    /// What it is called on the command line.
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

    /// What there is to know of it.
    pub const fn about(self) -> About {
        match self {
            Use::Desktop => About {
                what: "a program starts while a large file is copied and an indexer runs",
                objective: "time(start) min, throughput >= 60%",
                merit: "how long the program takes to start, with six tenths of the best total throughput kept",
                text: include_str!("uses/desktop.fio"),
            },
            Use::Database => About {
                what: "readers here and there, a log that is synced at every commit, checkpoints",
                objective: "p99(reader) min, throughput(reader) >= 80%, throughput(log) >= 40%",
                merit: "the 99th percentile of the readers' latency, with eight tenths of the best rate of reads and four tenths of the best rate \
                        of commits kept",
                text: include_str!("uses/database.fio"),
            },
            Use::VmHost => About {
                what: "guests of several kinds, each in a control group of equal weight: a web server, a mail server, a build, a backup",
                objective: "p99(web) min, p99(mail) min, throughput(build) >= 80%, throughput(dump) >= 10%",
                merit: "the 99th percentile of latency of the web server's guest, then of the mail server's; the build keeps eight tenths of the \
                        most it can get, and the backup, which takes whatever the others leave, a tenth",
                text: include_str!("uses/vm-host.fio"),
            },
            Use::Backup => About {
                what: "a backup reads everything while a few people work lightly",
                objective: "p99(people) min, throughput(backup) >= 10%",
                merit: "the 99th percentile of the people's latency, while the backup keeps a tenth of the best rate that it can have",
                text: include_str!("uses/backup.fio"),
            },
            Use::Media => About {
                what: "four films are watched while a torrent is filled and another film arrives over the network",
                objective: "misses(film) min, p99(film) min, throughput >= 80%",
                merit: "how many seconds of the films come late, then the 99th percentile of their reads' latency, with eight tenths of the best total \
                        throughput kept",
                text: include_str!("uses/media.fio"),
            },
        }
    }

    /// Its jobs on this drive, and the text of the job file as it is run there.
    ///
    /// # Errors
    /// None for the files that are here; a test reads them all.
    pub fn jobs(self, profile: &Profile) -> Result<(JobFile, String), Diagnostics> {
        self.jobs_for(seconds_on(profile))
    }

    /// The same for so many seconds, whatever the drive.
    ///
    /// # Errors
    /// As for [`Use::jobs`].
    pub fn jobs_for(self, seconds: u64) -> Result<(JobFile, String), Diagnostics> {
        let variables = [("SECONDS", seconds), ("BEFORE", (seconds / 5).max(1))];
        let mut text = self.about().text.to_owned();
        for (name, value) in variables {
            text = text.replace(&format!("${{{name}}}"), &value.to_string());
        }
        let name = format!("{}.fio", self.name());
        let nothing = |path: &str, _: &str| Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.to_owned()));
        Ok((hoistway_fio::parse(&text, &name, &|_| None, &nothing)?, text))
    }
}

/// How long a use runs on a drive, in seconds.
fn seconds_on(profile: &Profile) -> u64 {
    if profile.is_rotational() { 30 } else { 5 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Objective;

    #[test]
    fn every_use_is_a_job_file_whose_objective_speaks_of_its_jobs() {
        for drive in ["sata-7200-2006", "ssd-nvme-tlc", "cloud-gp3"] {
            let profile = Profile::builtin(drive).unwrap();
            for use_ in Use::ALL {
                let (jobs, text) = use_.jobs(&profile).unwrap_or_else(|error| panic!("{}: {error}", use_.name()));
                assert!(!text.contains("${"), "{text}");
                assert!(jobs.ignored.is_empty(), "{}: {:?}", use_.name(), jobs.ignored);
                let names: Vec<&str> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
                Objective::parse(use_.about().objective, &names).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(Use::from_name(use_.name()), Some(use_));
            }
        }
    }
}
