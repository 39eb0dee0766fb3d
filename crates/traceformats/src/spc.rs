//! Reads the trace format of the Storage Performance Council (SPC), in which the University of
//! Massachusetts publishes its traces: `ASU, LBA, size, opcode, time` and optional further fields.
//!
//! The address counts blocks of 512 bytes, the size counts bytes, and times are seconds since the
//! start of the trace. An ASU is a unit of storage, which becomes a device.

use crate::event::DeviceId;
use crate::text::{Fields, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, Units, number, read_or_write};

/// Parser of the lines.
#[derive(Debug)]
pub struct Spc {
    units: Units,
}

impl Spc {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> RequestLines<Spc> {
        RequestLines::new(Spc { units: Units::new(specified.unwrap_or(TimeUnit::Second), sector_bytes) })
    }
}

impl RequestFormat for Spc {
    fn request(&mut self, line: &[u8], _: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let asu = number(fields.want("the ASU")?, "the ASU")?;
        let offset = self.units.bytes(fields.want("the address")?, "the address")?;
        let bytes = number(fields.want("the size in bytes")?, "the size")?;
        let op = read_or_write(&mut fields, "r", "w", "R or W")?;
        let time_ns = self.units.ns(fields.want("the time")?, "the time")?;
        Ok(Request { time_ns, device: DeviceId(asu), op, offset, bytes, ..Request::default() })
    }
}
