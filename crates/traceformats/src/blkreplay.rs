//! Reads load files of blkreplay: a preface, a line of titles, and `start ; sector ; length ; op ;
//! delay ; duration`.
//!
//! Times are in seconds, lengths in sectors of 512 bytes. Delay and duration exist only for
//! requests that were replayed; the delay is the lateness of the submission.

use crate::event::{DeviceId, Rwbs};
use crate::text::{
    Fields, LineError, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, Units, parse_rwbs, shown,
};

/// Parser of the lines.
#[derive(Debug)]
pub struct Blkreplay {
    units: Units,
    /// True after the titles or the first record; earlier lines are a preface.
    is_begun: bool,
    /// The first line of the preface, with which the header of a second load begins.
    preface: Vec<u8>,
    requests: RequestSorter,
}

impl Blkreplay {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> Blkreplay {
        Blkreplay {
            units: Units::new(specified.unwrap_or(TimeUnit::Second), sector_bytes),
            is_begun: false,
            preface: Vec::new(),
            requests: RequestSorter::default(),
        }
    }
}

impl LineFormat for Blkreplay {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(false);
        }
        let mut fields = Fields::split(line, b';');
        let start = fields.want("the start")?;
        if start == b"start" {
            self.is_begun = true;
            return Ok(false);
        }
        if self.is_begun && !self.preface.is_empty() && line == self.preface {
            let kind = "the header of a load stands again: times of a second load begin at 0 again";
            out.notices.count(kind, out.position, || shown(line));
            self.is_begun = false;
        }
        let time_ns = match self.units.ns(start, "the start") {
            Err(_) if !self.is_begun => {
                if self.preface.is_empty() {
                    self.preface = line.to_vec();
                }
                return Ok(false);
            }
            time => time?,
        };
        self.is_begun = true;
        let offset = self.units.bytes(fields.want("the sector")?, "the sector")?;
        let bytes = self.units.bytes(fields.want("the length")?, "the length")?;
        let letters = fields.want("R or W")?;
        let op = parse_rwbs(letters)?;
        if op.0 & (Rwbs::READ.0 | Rwbs::WRITE.0 | Rwbs::DISCARD.0 | Rwbs::FLUSH.0) == 0 {
            return Err(format!("{} stands where R or W should be", shown(letters)).into());
        }
        let mut duration = |what: &str| fields.next().map_or(Ok(0), |field| self.units.ns(field, what));
        let delay_ns = duration("the delay")?;
        let duration_ns = duration("the duration")?;
        let request = Request {
            time_ns: time_ns.saturating_add(delay_ns),
            response_ns: (duration_ns > 0).then_some(duration_ns),
            device: DeviceId::default(),
            op,
            offset,
            bytes,
            ..Request::default()
        };
        self.requests.take(&request, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;
    use crate::text::test_support::{events, failure, read};

    const START: &str = "Copyright: anybody\n\nUse it; as you like\n####\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";

    #[test]
    fn a_load_yields_submissions_and_replayed_requests_yield_completions() {
        let text = format!("{START}  0.000000001 ;  6293576 ;  5 ; W ; 0.0 ; 0.0\n  2.5 ; 8 ; 1 ; RA ; 0.25 ; 0.001\n");
        let batch = read(Blkreplay::new(None, 512), &text);
        let seen: Vec<_> =
            batch.events().iter().map(|event| (event.time_ns, event.action, event.sector, event.bytes)).collect();
        assert_eq!(
            seen,
            [
                (1, Action::Queue, 6_293_576, 2_560),
                (2_750_000_000, Action::Queue, 8, 512),
                (2_751_000_000, Action::Complete, 8, 512)
            ]
        );
    }

    #[test]
    fn a_header_that_stands_twice_is_skipped_with_a_notice() {
        let record = "  0.5 ; 8 ; 1 ; R ; 0.0 ; 0.0\n";
        for text in [format!("{START}{START}{record}"), format!("{START}{record}{START}{record}")] {
            let (count, notices) = events(Blkreplay::new(None, 512), &text);
            assert_eq!(count, Ok(text.matches(record).count()));
            assert!(notices[0].contains("the header of a load stands again"), "{notices:?}");
        }
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        for (wrong, message) in [
            ("abc ; 8 ; 8 ; R", "a:6: the start \"abc\" is no time"),
            ("1.0 ; 8.5 ; 8 ; R", "a:6: the sector \"8.5\" is no whole number"),
            ("1.0 ; 8 ; 8 ; X", "a:6: \"X\" is no operation of a request"),
            ("1.0 ; 8 ; 8 ; R ; late", "a:6: the delay \"late\" is no time"),
            ("1.0 ; 8", "a:6: the line ends where the length should be"),
        ] {
            let failed = failure(Blkreplay::new(None, 512), &format!("{START}{wrong}\n"));
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
