//! Reads the traces of the SYSTOR '17 paper on virtual desktops (C. Lee et al.): `time, response,
//! type, LUN, offset, size`.
//!
//! Times are seconds since 1970 with a fraction, responses are seconds, offsets and sizes bytes. A
//! time is that of the submission.

use crate::event::DeviceId;
use crate::text::{
    Fields, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, decimal_ns, number, read_or_write, shown,
};

/// Parser of the lines.
#[derive(Debug)]
pub struct Systor {
    unit_ps: u64,
}

impl Systor {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>) -> RequestLines<Systor> {
        RequestLines::new(Systor { unit_ps: specified.unwrap_or(TimeUnit::Second).ps() })
    }
}

impl RequestFormat for Systor {
    fn is_titles(&self, line: &[u8]) -> bool {
        line.to_ascii_lowercase().starts_with(b"timestamp")
    }

    fn request(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<Request, String> {
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
        let op = read_or_write(&mut fields, "r", "w", "R or W")?;
        let device = DeviceId(number(fields.want("the LUN")?, "the LUN")?);
        let offset = number(fields.want("the offset in bytes")?, "the offset")?;
        let bytes = number(fields.want("the size in bytes")?, "the size")?;
        Ok(Request { time_ns, response_ns, device, op, offset, bytes, ..Request::default() })
    }
}
