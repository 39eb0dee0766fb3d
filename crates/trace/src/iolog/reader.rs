//! Reads iologs.

use crate::event::Rwbs;
use crate::text::{
    Fields, Head, LineError, LineFormat, LineOutput, NamedDevices, Request, RequestSorter, SharedNames, TimeUnit,
    decide_unit, decimal_ns, number, shown,
};

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Without times.
    Two,
    /// With the time of each line.
    Three,
}

/// Parser of an iolog.
#[derive(Debug)]
pub(crate) struct Iolog {
    version: Version,
    unit_ps: u64,
    files: NamedDevices,
    /// Current time according to the waits, in ns (version 2).
    now_ns: u64,
    is_first: bool,
    requests: RequestSorter,
}

impl Iolog {
    /// Creates a parser for a log with this beginning. Also returns the assumption that it makes,
    /// if any.
    ///
    /// # Errors
    /// Fails if the unit of the times must be specified.
    pub fn new(
        head: &[u8],
        files: &SharedNames,
        specified: Option<TimeUnit>,
    ) -> Result<(Iolog, Option<String>), String> {
        let version = if head.trim_ascii_start().starts_with(b"fio version 3") { Version::Three } else { Version::Two };
        let (unit, remark) = match version {
            Version::Three => {
                let time = |line: &[u8]| number(Fields::blanks(line).next()?, "").ok();
                decide_unit(
                    specified,
                    TimeUnit::Microsecond,
                    "as fio writes iologs of version 3",
                    &Head::of(head, time),
                )?
            }
            Version::Two => {
                let remark = "an iolog of version 2 has no times: requests between two waits have the same time";
                (specified.unwrap_or(TimeUnit::Microsecond), Some(remark.to_owned()))
            }
        };
        let log = Iolog {
            version,
            unit_ps: unit.ps(),
            files: NamedDevices::new(files),
            now_ns: 0,
            is_first: true,
            requests: RequestSorter::default(),
        };
        Ok((log, remark))
    }

    fn request(
        &mut self,
        file: &[u8],
        op: Rwbs,
        fields: &mut Fields<'_>,
        out: &mut LineOutput<'_>,
    ) -> Result<(), LineError> {
        let device = self.files.device(file, out)?;
        let is_sync = op.has(Rwbs::FLUSH);
        // In some logs syncs have an offset and a length without a meaning.
        let (offset, bytes) = if is_sync {
            (0, 0)
        } else {
            (number(fields.want("the offset")?, "the offset")?, number(fields.want("the length")?, "the length")?)
        };
        let request = Request { time_ns: self.now_ns, device, op, offset, bytes, ..Request::default() };
        self.requests.take(&request, out)
    }
}

impl LineFormat for Iolog {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        if line.trim_ascii().is_empty() {
            return Ok(false);
        }
        if std::mem::take(&mut self.is_first) && line.starts_with(b"fio version ") {
            return Ok(false);
        }
        let mut fields = Fields::blanks(line);
        if self.version == Version::Three {
            self.now_ns = decimal_ns(fields.want("the time")?, self.unit_ps, "the time")?;
        }
        let file = fields.want("the name of a file")?;
        let action = fields.want("the action")?;
        let op = match action {
            b"add" | b"open" | b"close" => {
                self.files.device(file, out)?;
                return Ok(false);
            }
            b"wait" if self.version == Version::Two => {
                let wait_ns = decimal_ns(fields.want("the time to wait")?, self.unit_ps, "the time to wait")?;
                self.now_ns = self.now_ns.saturating_add(wait_ns);
                return Ok(true);
            }
            b"read" => Rwbs::READ,
            b"write" => Rwbs::WRITE,
            b"trim" => Rwbs::DISCARD,
            b"sync" | b"datasync" => Rwbs::FLUSH.with(Rwbs::WRITE).with(Rwbs::SYNC),
            other => {
                let wait = if self.version == Version::Two { ", wait" } else { "" };
                return Err(format!(
                    "the action {} is not known: add, open, close, read, write, trim, sync, datasync{wait} are",
                    shown(other)
                )
                .into());
            }
        };
        self.request(file, op, &mut fields, out)?;
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
    use crate::text::test_support::{failure, read};

    fn log(text: &str) -> Iolog {
        Iolog::new(text.as_bytes(), &SharedNames::default(), None).unwrap().0
    }

    #[test]
    fn waits_of_version_2_advance_the_clock() {
        let text = "fio version 2 iolog\n/a add\n/b add\n/a open\n/b open\n/a read 4096 8192\n/a wait 1500 0\n/b write 512 512\n/b sync 0 0\n/a close\n";
        let batch = read(log(text), text);
        let seen: Vec<_> =
            batch.events().iter().map(|event| (event.time_ns, event.device.0, event.sector, event.bytes)).collect();
        assert_eq!(seen, [(0, 0, 8, 8192), (1_500_000, 1, 1, 512), (1_500_000, 1, 0, 0)]);
        assert!(batch.events().iter().all(|event| event.action == Action::Queue));
    }

    #[test]
    fn times_of_version_3_are_us_and_the_assumption_is_reported() {
        let text =
            "fio version 3 iolog\n0 /a add\n19 /a open\n185 /a read 0 4096\n231 /a trim 4096 1048576\n300 /a close\n";
        let (log, remark) = Iolog::new(text.as_bytes(), &SharedNames::default(), None).unwrap();
        assert!(
            remark
                .unwrap()
                .starts_with("assuming times in us (as fio writes iologs of version 3): the first 5 requests")
        );
        let batch = read(log, text);
        let seen: Vec<_> = batch.events().iter().map(|event| (event.time_ns, event.op)).collect();
        assert_eq!(seen, [(185_000, Rwbs::READ), (231_000, Rwbs::DISCARD)]);
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        for (version, wrong, message) in [
            (
                2,
                "/a wrote 0 4096",
                "a:3: the action \"wrote\" is not known: add, open, close, read, write, trim, sync, datasync, wait are",
            ),
            (3, "5 /a wait 100", "a:3: the action \"wait\" is not known"),
            (2, "/a read 0x10 4096", "a:3: the offset \"0x10\" is no whole number"),
            (2, "/a read 0 5000000000", "a:3: the length of 5000000000 bytes is too large: 4294967295 is the most"),
            (3, "x /a read 0 5", "a:3: the time \"x\" is no time"),
            (2, "/a read 0", "a:3: the line ends where the length should be"),
        ] {
            let time = if version == 3 { "0 " } else { "" };
            let text = format!("fio version {version} iolog\n{time}/a add\n{wrong}\n");
            let failed = failure(log(&text), &text);
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
