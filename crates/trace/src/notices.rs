//! What readers noticed, a line a kind and not a line a case.

use crate::source::{Notice, Place};

/// So many different things are told; more would bury them.
const KINDS_MAX: usize = 12;

/// What one input's reader noticed.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    file: String,
    ready: Vec<Notice>,
    counted: Vec<Counted>,
}

/// Something that may come up often.
#[derive(Debug)]
struct Counted {
    kind: &'static str,
    first: Place,
    example: String,
    times: u64,
}

impl Notices {
    /// Of the input of that name.
    pub fn new(file: &str) -> Notices {
        Notices { file: file.to_owned(), ..Notices::default() }
    }

    /// Tells something that comes up once.
    pub fn tell(&mut self, place: Place, what: impl Into<String>) {
        self.ready.push(Notice { file: self.file.clone(), place, what: what.into() });
    }

    /// Counts something that may come up again: it is told at the end, with the first place and what stood there.
    pub fn count(&mut self, kind: &'static str, place: Place, example: impl FnOnce() -> String) {
        if let Some(counted) = self.counted.iter_mut().find(|counted| counted.kind == kind) {
            counted.times += 1;
        } else if self.counted.len() < KINDS_MAX {
            self.counted.push(Counted { kind, first: place, example: example(), times: 1 });
        }
    }

    /// The input is over: what was counted can be told.
    pub fn end(&mut self) {
        for counted in std::mem::take(&mut self.counted) {
            let often = if counted.times == 1 { String::new() } else { format!(", {} times in all", counted.times) };
            let what = format!("{} ({}{often})", counted.kind, counted.example);
            self.tell(counted.first, what);
        }
    }

    /// What can be told by now.
    pub fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_up_often_is_one_line_with_its_first_place() {
        let mut notices = Notices::new("a.csv");
        for line in 3..10 {
            notices.count("an offset is cut", Place::Line(line), || format!("line {line}"));
        }
        assert_eq!(notices.take(), []);
        notices.end();
        let told: Vec<String> = notices.take().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["a.csv:3: an offset is cut (line 3, 7 times in all)"]);
    }
}
