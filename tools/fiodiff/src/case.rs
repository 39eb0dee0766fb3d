//! A generated job.

use std::fmt::Write;

/// A generated job: one section of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The seed that it was generated from.
    pub seed: u64,
    /// Options and values, in the order of the job file.
    pub options: Vec<(&'static str, String)>,
}

impl Case {
    /// The name of the section, with which the names of its files begin.
    pub fn name(&self) -> String {
        format!("c{}", self.seed)
    }

    /// The section, as text.
    pub fn text(&self) -> String {
        let mut text = format!("[{}]\n", self.name());
        for (option, value) in &self.options {
            let _ = writeln!(text, "{option}={value}");
        }
        text
    }

    /// The value of an option.
    pub fn get(&self, option: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// Returns true if the clock has a say in what the job does.
    pub fn is_paced(&self) -> bool {
        let paced = ["rate", "rate_iops", "thinktime", "thinktime_iotime", "runtime", "ramp_time", "startdelay"];
        paced.iter().any(|option| self.get(option).is_some())
    }
}
