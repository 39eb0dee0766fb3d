//! A job file as the guest and as the simulator need it.
//!
//! A current kernel has no control groups of the kind that fio creates: the guest runs one fio for
//! each group. fio knows no trees of files: programs walk through those in the guest. A comment
//! `#simulated: OPTION` is an option that fio does not know.

/// The mark of an option that only the simulator knows.
const SIMULATED: &str = "#simulated: ";

/// A walk through a tree of files, which a program makes in the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The name of the section.
    pub section: String,
    /// The index of the tree: each clone of a section has a tree of its own.
    pub tree: usize,
    /// The order of the walk, a value of `hoistway_walk`.
    pub order: String,
    /// The seconds after which the walk ends; 0: at the end of the tree.
    pub seconds: u64,
}

impl Walk {
    /// The command for the shell that reads all files of the current directory in the order of the
    /// walk, and prints their contents.
    pub fn command(&self) -> &'static str {
        match self.order.as_str() {
            "name" => "tar -c -f - --sort=name .",
            "find" => "find . -type f -print0 | xargs -0 cat",
            _ => "tar -c -f - .",
        }
    }

    /// Returns true if the command prints an archive.
    pub fn is_archive(&self) -> bool {
        self.command().starts_with("tar")
    }
}

/// The walks of a job.
pub fn walks(text: &str) -> Vec<Walk> {
    let mut walks = Vec::new();
    let mut walk = Walk::default();
    let (mut clones, mut has_tree, mut seconds) = (1, false, 0);
    // The end of the text ends the last section too.
    for line in text.lines().map(str::trim).chain(["[]"]) {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        match name {
            "hoistway_tree" => has_tree = true,
            "hoistway_walk" => walk.order = value.to_owned(),
            "numjobs" => clones = value.parse().unwrap_or(1),
            "runtime" if walk.section.is_empty() => seconds = value.parse().unwrap_or(0),
            "runtime" => walk.seconds = value.parse().unwrap_or(0),
            _ if name.starts_with('[') => {
                for _ in 0..if has_tree { clones } else { 0 } {
                    walks.push(Walk { tree: walks.len(), ..walk.clone() });
                }
                let section = name.trim_matches(['[', ']']).to_owned();
                let section = if section == "global" { String::new() } else { section };
                walk = Walk { section, seconds, ..Walk::default() };
                (clones, has_tree) = (1, false);
            }
            _ => {}
        }
    }
    walks
}

/// A part of a job for fio: the sections of one control group, or those without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The control group and its weight.
    pub group: Option<(String, u64)>,
    /// The job file.
    pub text: String,
}

/// The job file for the simulator.
pub fn simulated(text: &str) -> String {
    let (options, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(SIMULATED));
    let mut lines = Vec::new();
    for line in rest {
        lines.push(line);
        if line.trim() == "[global]" {
            lines.extend(options.iter().filter_map(|option| option.strip_prefix(SIMULATED)));
        }
    }
    lines.join("\n") + "\n"
}

/// The parts of a job for fio, in the order of their first sections, without sections that have a
/// tree.
pub fn parts(text: &str) -> Vec<Part> {
    let mut global = String::new();
    let mut sections: Vec<Part> = Vec::new();
    let mut in_global = true;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') {
            in_global = line == "[global]";
            if !in_global {
                sections.push(Part::default());
            }
        }
        let Some(section) = sections.last_mut().filter(|_| !in_global) else {
            global.push_str(line);
            global.push('\n');
            continue;
        };
        let group = section.group.get_or_insert_with(|| (String::new(), 100));
        if let Some(name) = line.strip_prefix("cgroup=") {
            group.0 = name.to_owned();
        } else if let Some(weight) = line.strip_prefix("cgroup_weight=") {
            group.1 = weight.parse().unwrap_or(group.1);
        } else {
            section.text.push_str(line);
            section.text.push('\n');
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    sections.retain(|section| !section.text.contains("\nhoistway_tree="));
    for mut section in sections {
        section.group = section.group.filter(|(name, _)| !name.is_empty());
        match parts.iter_mut().find(|part| part.group == section.group) {
            Some(part) => part.text.push_str(&section.text),
            None => parts.push(Part { text: format!("{global}{}", section.text), ..section }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::matrix::JOBS;

    #[test]
    fn a_job_without_groups_is_one_part_and_one_with_two_groups_two() {
        let text = "# x\n[global]\nrw=read\n\n[a]\nsize=1m\n[b]\ncgroup=g\ncgroup_weight=300\n[c]\nbs=4k\n";
        let parts = parts(text);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].group, None);
        assert_eq!(parts[0].text, "[global]\nrw=read\n\n[a]\nsize=1m\n[c]\nbs=4k\n");
        assert_eq!(parts[1].group, Some(("g".to_owned(), 300)));
        assert_eq!(parts[1].text, "[global]\nrw=read\n\n[b]\n");
    }

    #[test]
    fn an_option_of_the_simulator_is_in_its_job_file_alone() {
        let text = "# x\n#simulated: hoistway_journal=ext4\n[global]\nrw=read\n[a]\n";
        assert_eq!(simulated(text), "# x\n[global]\nhoistway_journal=ext4\nrw=read\n[a]\n");
        assert!(!parts(text)[0].text.contains("journal"));
    }

    #[test]
    fn a_section_with_a_tree_is_a_walk_for_each_clone_and_no_part_for_fio() {
        let text = "# x\n[global]\nruntime=15\n[a]\nhoistway_tree=files=9\nhoistway_walk=find\nbs=4k\nnumjobs=2\n\
                    [b]\nrw=read\n[c]\nhoistway_tree=dirs=3\nruntime=5\n";
        let walk = |section: &str, tree, order: &str, seconds| {
            let [section, order] = [section, order].map(str::to_owned);
            Walk { section, tree, order, seconds }
        };
        assert_eq!(walks(text), [walk("a", 0, "find", 15), walk("a", 1, "find", 15), walk("c", 2, "", 5)]);
        assert_eq!(parts(text).len(), 1);
        assert_eq!(parts(text)[0].text, "[global]\nruntime=15\n[b]\nrw=read\n");
        assert!(!walks(text)[0].is_archive() && walks(text)[2].is_archive());
    }

    #[test]
    fn no_part_has_an_option_that_fio_refuses() {
        for job in JOBS {
            for part in parts(job.text) {
                assert!(!part.text.contains("cgroup") && !part.text.contains("hoistway_"), "{}", job.name);
            }
        }
    }
}
