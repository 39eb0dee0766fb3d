//! Collects the notices of a reader: repeated findings become one line with a count.

use crate::source::{InputPosition, Notice};

/// Maximum number of different repeated findings; more would bury the important ones.
const KINDS_MAX: usize = 12;

/// Collects the notices of one input.
#[derive(Debug, Default)]
pub struct NoticeCollector {
    file: String,
    ready: Vec<Notice>,
    counted: Vec<RepeatedFinding>,
}

/// A finding that can occur many times.
#[derive(Debug)]
struct RepeatedFinding {
    kind: &'static str,
    first: InputPosition,
    example: String,
    times: u64,
}

impl NoticeCollector {
    /// Creates a collector for the input of this name.
    pub fn new(file: &str) -> NoticeCollector {
        NoticeCollector { file: file.to_owned(), ..NoticeCollector::default() }
    }

    /// Adds a notice that occurs once.
    pub fn add(&mut self, position: InputPosition, what: impl Into<String>) {
        self.ready.push(Notice { file: self.file.clone(), position, what: what.into() });
    }

    /// Counts a finding that can occur again. The notice appears after [`NoticeCollector::end`],
    /// with the first position and an example.
    pub fn count(&mut self, kind: &'static str, position: InputPosition, example: impl FnOnce() -> String) {
        if let Some(counted) = self.counted.iter_mut().find(|counted| counted.kind == kind) {
            counted.times += 1;
        } else if self.counted.len() < KINDS_MAX {
            self.counted.push(RepeatedFinding { kind, first: position, example: example(), times: 1 });
        }
    }

    /// Ends the input: turns the counted findings into notices.
    pub fn end(&mut self) {
        for counted in std::mem::take(&mut self.counted) {
            let count = if counted.times == 1 { String::new() } else { format!(", {} times in all", counted.times) };
            let what = format!("{} ({}{count})", counted.kind, counted.example);
            self.add(counted.first, what);
        }
    }

    /// Takes the notices that are ready.
    pub fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_finding_is_one_line_with_its_first_position() {
        let mut notices = NoticeCollector::new("a.csv");
        for line in 3..10 {
            notices.count("an offset is cut", InputPosition::Line(line), || format!("line {line}"));
        }
        assert_eq!(notices.take(), []);
        notices.end();
        let lines: Vec<String> = notices.take().iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["a.csv:3: an offset is cut (line 3, 7 times in all)"]);
    }
}
