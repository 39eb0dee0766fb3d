//! A valid job file.

use std::collections::HashMap;

use crate::job::Job;

/// A valid job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The jobs in the order of the file; clones (`numjobs`) are not multiplied out.
    pub jobs: Vec<Job>,
    /// Accepted options without effect on a simulation, each once, in the order of the file.
    pub ignored: Vec<Ignored>,
    /// Where the simulation differs from what the file says, in whole sentences that begin with
    /// file and line: engines that stand for others, jobs that are left out, assumed sizes.
    pub differences: Vec<String>,
    /// The options of all `[global]` sections under fio's canonical names; a later value replaces
    /// an earlier one. Flags without a value have an empty value. fio's JSON prints those with a
    /// value as `global options`.
    pub global_options: Vec<(String, String)>,
}

/// An option that was accepted and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The canonical name of the option.
    pub name: String,
    /// The file of the first occurrence.
    pub file: String,
    /// Line in `file`, from 1.
    pub line: u32,
}

/// A control group of the job file: one that jobs run in, or an ancestor of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Path of the group from the root, with slashes between the names.
    pub path: String,
    /// Weight of the group among its siblings, 1 to 1000, if a job sets it.
    pub weight: Option<u32>,
}

impl JobFile {
    /// Where the simulation differs from what the file says: one sentence for all options without
    /// effect, and one for each other difference.
    pub fn notes(&self) -> Vec<String> {
        let names: Vec<String> = self
            .ignored
            .iter()
            .map(|option| {
                let (name, line) = (&option.name, option.line);
                let is_first = self.ignored.iter().find(|other| other.file == option.file) == Some(option);
                if is_first { format!("{}:{line} `{name}`", option.file) } else { format!("{line} `{name}`") }
            })
            .collect();
        let options =
            (!names.is_empty()).then(|| format!("accepted without effect on a simulation: {}", names.join(", ")));
        options.into_iter().chain(self.differences.iter().cloned()).collect()
    }

    /// All control groups of the jobs except the root, each once: parents before their children,
    /// otherwise in the order of the file.
    pub fn cgroups(&self) -> Vec<Cgroup> {
        let mut groups: Vec<Cgroup> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (path, weight) in self.jobs.iter().flat_map(|job| job.cgroup.way()) {
            let place = *places.entry(path).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.weight = group.weight.or(weight),
                None => groups.push(Cgroup { path: path.into(), weight }),
            }
        }
        groups
    }
}
