//! The results of the commands.

use std::fmt;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// It failed, with the reason.
    Failed(String),
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Row {
    /// The document with its line.
    pub(crate) place: String,
    pub(crate) command: String,
    pub(crate) seconds: f64,
    pub(crate) outcome: Outcome,
    /// The lines that say what was skipped, each once.
    pub(crate) skipped: Vec<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.outcome == Outcome::Passed { "ok" } else { "FAILED" };
        write!(f, "{word:<6} {:>7.1} s  {:<14} {}", self.seconds, self.place, self.command)
    }
}

/// The results of all commands.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// The commands that failed.
    pub(crate) fn failed(&self) -> Vec<&str> {
        let failed = self.rows.iter().filter(|row| row.outcome != Outcome::Passed);
        failed.map(|row| row.command.as_str()).collect()
    }
}

impl fmt::Display for Report {
    /// A table of all commands, then what was skipped, then the reasons of failures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        for row in self.rows.iter().filter(|row| !row.skipped.is_empty()) {
            writeln!(f, "\nskipped by `{}`:\n  {}", row.command, row.skipped.join("\n  "))?;
        }
        for row in &self.rows {
            if let Outcome::Failed(reason) = &row.outcome {
                writeln!(f, "\n`{}` fails: {reason}", row.command)?;
            }
        }
        Ok(())
    }
}

/// The lines of an output that say what was skipped, in their order and each once.
pub(crate) fn skipped(printed: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in printed.lines().map(str::trim).filter(|line| line.contains("SKIPPED")) {
        if !lines.iter().any(|known| known == line) {
            lines.push(line.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_times_skipped_parts_and_the_reasons_of_failures() {
        let row = |command: &str, outcome: Outcome, printed: &str| Row {
            place: "README.md:7".to_owned(),
            command: command.to_owned(),
            seconds: 12.34,
            outcome,
            skipped: skipped(printed),
        };
        let printed = "a\n  SKIPPED: no fio\nb\nSKIPPED: no fio\n";
        let rows =
            vec![row("good", Outcome::Passed, printed), row("bad", Outcome::Failed("exits with 3".to_owned()), "")];
        let report = Report { rows };
        assert_eq!(report.failed(), ["bad"]);
        let expected = "ok        12.3 s  README.md:7    good\nFAILED    12.3 s  README.md:7    bad\n\n\
                        skipped by `good`:\n  SKIPPED: no fio\n\n`bad` fails: exits with 3\n";
        assert_eq!(report.to_string(), expected);
    }
}
