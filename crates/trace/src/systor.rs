//! Reads the traces of the SYSTOR '17 paper on virtual desktops (C. Lee et al.): `time, response,
//! type, LUN, offset, size`.
//!
//! Times are seconds since 1970 with a fraction, responses are seconds, offsets and sizes bytes. A
//! time is that of the submission.

use crate::event::{DeviceId, Rwbs};
use crate::text::{Fields, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, decimal_ns, number, shown};

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Systor {
    unit_ps: u64,
    requests: RequestSorter,
}

impl Systor {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>) -> Systor {
        Systor { unit_ps: specified.unwrap_or(TimeUnit::Second).ps(), requests: RequestSorter::default() }
    }
}

impl LineFormat for Systor {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") || line.to_ascii_lowercase().starts_with(b"timestamp") {
            return Ok(false);
        }
        let mut fields = Fields::split(line, b',');
        let time_ns = decimal_ns(fields.want("the time")?, self.unit_ps, "the time")?;
        let response_ns = match fields.want("the response time")? {
            b"" => {
                let kind = "requests without a response time have no completion";
                out.notices.count(kind, out.position, || shown(line));
                None
            }
            field => Some(decimal_ns(field, self.unit_ps, "the response time")?),
        };
        let op = match fields.want("R or W")? {
            b"R" | b"r" => Rwbs::READ,
            b"W" | b"w" => Rwbs::WRITE,
            other => return Err(format!("{} stands where R or W should be", shown(other))),
        };
        let device = DeviceId(number(fields.want("the LUN")?, "the LUN")?);
        let offset = number(fields.want("the offset in bytes")?, "the offset")?;
        let bytes = number(fields.want("the size in bytes")?, "the size")?;
        self.requests.take(&Request { time_ns, response_ns, device, op, offset, bytes, ..Request::default() }, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}
