//! Reads the trace format of the Storage Performance Council (SPC), in which the University of
//! Massachusetts publishes its traces: `ASU, LBA, size, opcode, time` and optional further fields.
//!
//! The address counts blocks of 512 bytes, the size counts bytes, and times are seconds since the
//! start of the trace. An ASU is a unit of storage, which becomes a device.

use crate::event::{DeviceId, Rwbs};
use crate::mqsim::sectors;
use crate::text::{Fields, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, decimal_ns, number, shown};

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Spc {
    unit_ps: u64,
    sector_bytes: u64,
    requests: RequestSorter,
}

impl Spc {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> Spc {
        let unit_ps = specified.unwrap_or(TimeUnit::Second).ps();
        Spc { unit_ps, sector_bytes: u64::from(sector_bytes), requests: RequestSorter::default() }
    }
}

impl LineFormat for Spc {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(false);
        }
        let mut fields = Fields::split(line, b',');
        let asu = number(fields.want("the ASU")?, "the ASU")?;
        let offset = sectors(fields.want("the address")?, "the address", self.sector_bytes)?;
        let bytes = number(fields.want("the size in bytes")?, "the size")?;
        let op = match fields.want("R or W")? {
            b"R" | b"r" => Rwbs::READ,
            b"W" | b"w" => Rwbs::WRITE,
            other => return Err(format!("{} stands where R or W should be", shown(other))),
        };
        let time_ns = decimal_ns(fields.want("the time")?, self.unit_ps, "the time")?;
        let request = Request { time_ns, device: DeviceId(asu), op, offset, bytes, ..Request::default() };
        self.requests.take(&request, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}
