//! Reads the trace format of the Storage Performance Council (SPC), in which the University of
//! Massachusetts publishes its traces: `ASU, LBA, size, opcode, time` and optional further fields.
//!
//! The address counts blocks of 512 bytes, the size counts bytes, and times are seconds since the
//! start of the trace. An ASU is a unit of storage, which becomes a device.

use crate::event::{DeviceId, Rwbs};
use crate::mqsim::sectors;
use crate::text::{
    Fields, Head, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, decide_unit, decimal_ns, number, shown,
};

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Spc {
    unit_ps: u64,
    sector_bytes: u64,
    requests: RequestSorter,
}

impl Spc {
    /// Creates a parser for a text with this beginning. Also returns the assumption that it makes,
    /// if any.
    ///
    /// # Errors
    /// Fails if the unit of the times must be specified.
    pub fn new(head: &[u8], specified: Option<TimeUnit>, sector_bytes: u32) -> Result<(Spc, Option<String>), String> {
        let ms = |line: &[u8]| {
            Some(decimal_ns(Fields::split(line, b',').nth(4)?, TimeUnit::Second.ps(), "").ok()? / 1_000_000)
        };
        // The head is in ms, because its times are whole numbers.
        let unit = specified.map_or_else(
            || decide_unit(None, TimeUnit::Millisecond, "seconds, as SPC defines them", &Head::of(head, ms)),
            |unit| Ok((unit, None)),
        )?;
        let unit_ps = specified.unwrap_or(TimeUnit::Second).ps();
        Ok((Spc { unit_ps, sector_bytes: u64::from(sector_bytes), requests: RequestSorter::default() }, unit.1))
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
