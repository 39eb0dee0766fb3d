//! A job file as the guest and as the simulator need it.
//!
//! A current kernel has no control groups of the kind that fio creates: the guest runs one fio for
//! each group. A comment `#simulated: OPTION` is an option that fio does not know.

/// The mark of an option that only the simulator knows.
const SIMULATED: &str = "#simulated: ";

/// A part of a job: the sections of one control group, or those without one.
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

/// The parts of a job for the guest, in the order of their first sections.
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
    use crate::matrix::JOBS;

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
    fn no_part_has_an_option_that_fio_refuses() {
        for job in JOBS {
            for part in parts(job.text) {
                assert!(!part.text.contains("cgroup") && !part.text.contains("hoistway_"), "{}", job.name);
            }
        }
    }
}
