//! The workloads of the arena.

use hoistway_fio::{JobSource, SetOptionError};

use crate::drive::DriveClass;

/// A workload: jobs that compete for a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Its name, that of the job file.
    pub name: &'static str,
    /// The job file. Its first line is a comment that describes it.
    pub text: &'static str,
    /// The section whose latency counts, if there is one.
    pub sensitive: Option<&'static str>,
    /// The weights of the processes of sections, relative to each other; a process of another
    /// section weighs 1. Sections of weight 0 are owed nothing: the idle class.
    pub weights: &'static [(&'static str, f64)],
    /// The length of its runs on disks, as a multiple of the usual one: many processes take long to
    /// have some requests each.
    pub length: u64,
    /// True if it is kept for the final test of an elevator.
    pub is_test: bool,
}

/// A workload of the file of that name.
macro_rules! workload {
    ($name:literal) => {
        Workload {
            name: $name,
            text: include_str!(concat!("../workloads/", $name, ".fio")),
            sensitive: None,
            weights: &[],
            length: 1,
            is_test: false,
        }
    };
}

impl Workload {
    /// All workloads, in the order of tables.
    pub const ALL: &[Workload] = &[
        workload!("eight-readers"),
        workload!("streams"),
        workload!("dss").of_test(),
        workload!("equal-requests"),
        workload!("crowd").longer(8).of_test(),
        workload!("mixed-sizes").of_test(),
        workload!("levels").weighing(&[("level0", 8.0), ("level2", 6.0), ("level4", 4.0), ("level6", 2.0)]),
        workload!("weights").weighing(&[("group1", 1.0), ("group2", 2.0), ("group3", 3.0), ("group4", 4.0)]).of_test(),
        workload!("hierarchy").weighing(&[("database", 8.0), ("web", 4.0), ("alice", 3.0), ("bob", 3.0)]),
        workload!("one-against-a-hundred").weighing(&[("hundred", 0.01), ("one", 1.0)]).longer(4),
        workload!("classes").sensitive_to("urgent").weighing(&[("background", 0.0)]),
        workload!("reserved-readers").sensitive_to("film"),
        workload!("dependent-reads").sensitive_to("program"),
        workload!("hundred-thinkers").longer(4).sensitive_to("thinker"),
        workload!("bursts").sensitive_to("burst").of_test(),
        workload!("start-beside-copies").sensitive_to("start"),
        workload!("reader-and-writer").sensitive_to("reader"),
        workload!("reader-and-1-writer").sensitive_to("reader"),
        workload!("reader-and-16-writers").sensitive_to("reader").of_test(),
        workload!("log-and-scans").sensitive_to("log"),
        workload!("oltp").sensitive_to("user"),
        workload!("archive").sensitive_to("user"),
    ];

    const fn sensitive_to(self, section: &'static str) -> Workload {
        Workload { sensitive: Some(section), ..self }
    }

    const fn weighing(self, weights: &'static [(&'static str, f64)]) -> Workload {
        Workload { weights, ..self }
    }

    const fn longer(self, length: u64) -> Workload {
        Workload { length, ..self }
    }

    const fn of_test(self) -> Workload {
        Workload { is_test: true, ..self }
    }

    /// The workload of this name.
    pub fn from_name(name: &str) -> Option<Workload> {
        Workload::ALL.iter().copied().find(|workload| workload.name == name)
    }

    /// The description, without a full stop.
    pub fn title(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.trim_start_matches("# ").trim_end_matches('.')
    }

    /// The length of a run in ms of virtual time.
    pub fn runtime_ms(&self, class: DriveClass) -> u64 {
        let length = if class == DriveClass::Disk { self.length } else { 1 };
        class.runtime_ms() * length
    }

    /// The weight of a process of a section.
    pub fn weight(&self, section: &str) -> f64 {
        self.weights.iter().find(|(name, _)| *name == section).map_or(1.0, |(_, weight)| *weight)
    }

    /// The sections, each of which is a job.
    pub fn sections(&self) -> Vec<String> {
        let source = self.source();
        source.sections().filter(|section| *section != "global").map(str::to_owned).collect()
    }

    /// The job file with a runtime of each section.
    ///
    /// # Errors
    /// [`SetOptionError`] if a section cannot have a runtime.
    pub fn lasting(&self, runtime_ms: u64) -> Result<String, SetOptionError> {
        with_runtime(self.source(), runtime_ms)
    }

    /// The job file of one process of a section alone, with a runtime.
    ///
    /// # Errors
    /// [`SetOptionError`] if the section cannot have a runtime.
    pub fn alone(&self, section: &str, runtime_ms: u64) -> Result<String, SetOptionError> {
        let source = self.source();
        let mut text = String::new();
        for part in source.sections().filter(|part| *part == "global" || *part == section) {
            text.push_str(&format!("[{part}]\n"));
            for (option, value) in source.options(part).filter(|(option, _)| *option != "numjobs") {
                match value {
                    Some(value) => text.push_str(&format!("{option}={value}\n")),
                    None => text.push_str(&format!("{option}\n")),
                }
            }
        }
        with_runtime(source_of(self.name, &text), runtime_ms)
    }

    fn source(&self) -> JobSource {
        source_of(self.name, self.text)
    }
}

fn source_of(name: &str, text: &str) -> JobSource {
    let none = |path: &str, _: &str| Err(std::io::Error::other(format!("{path} cannot be included")));
    JobSource::new(text, name, &|_| None, &none)
}

fn with_runtime(mut source: JobSource, runtime_ms: u64) -> Result<String, SetOptionError> {
    let sections: Vec<String> = source.sections().filter(|section| *section != "global").map(str::to_owned).collect();
    for section in sections {
        source.set(&section, "runtime", Some(&format!("{runtime_ms}ms")), ("the length of a run", 1))?;
    }
    Ok(source.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_correct_and_their_sections_are_those_of_the_table() {
        for workload in Workload::ALL {
            let jobs = workload.source().jobs();
            assert!(jobs.is_ok(), "{}: {:?}", workload.name, jobs.err().map(|faults| faults.to_string()));
            let sections = workload.sections();
            let named = workload.weights.iter().map(|(section, _)| *section).chain(workload.sensitive);
            for section in named {
                assert!(sections.iter().any(|other| other == section), "{}: no section {section}", workload.name);
            }
            assert!(workload.text.starts_with("# ") && workload.title().len() > 20, "{}", workload.name);
        }
    }

    #[test]
    fn a_process_alone_has_the_options_of_its_section_and_of_all() {
        let workload = Workload::from_name("hundred-thinkers").expect("a workload");
        let text = workload.alone("thinker", 500).expect("a job file");
        assert!(text.contains("thinktime=50ms") && text.contains("runtime=500ms"), "{text}");
        assert!(!text.contains("numjobs") && !text.contains("stream"), "{text}");
        let workload = Workload::from_name("levels").expect("a workload");
        let text = workload.alone("level6", 500).expect("a job file");
        assert!(text.contains("rw=read") && text.contains("prio=6") && !text.contains("level0"), "{text}");
    }
}
