//! Reads DiskSim's ASCII traces: `time device block size flags`.
//!
//! Times are ms with a fraction, blocks and sizes count blocks of 512 bytes. Flags are hexadecimal
//! digits, in which bit 0 is set for a read.

use crate::event::{DeviceId, Rwbs};
use crate::text::{Fields, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, Units, number, shown};

/// Parser of the lines.
#[derive(Debug)]
pub struct Disksim {
    units: Units,
}

impl Disksim {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> RequestLines<Disksim> {
        RequestLines::new(Disksim { units: Units::new(specified.unwrap_or(TimeUnit::Millisecond), sector_bytes) })
    }
}

impl RequestFormat for Disksim {
    fn request(&mut self, line: &[u8], _: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::blanks(line);
        let time_ns = self.units.ns(fields.want("the time")?, "the time")?;
        let device = DeviceId(number(fields.want("the device")?, "the device")?);
        let offset = self.units.bytes(fields.want("the block")?, "the block")?;
        let bytes = self.units.bytes(fields.want("the size in blocks")?, "the size")?;
        let flags = fields.want("the flags")?;
        let digits = flags.strip_prefix(b"0x").unwrap_or(flags);
        let bits = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let bits = bits.ok_or_else(|| {
            format!("the flags {} are no hexadecimal number: 1 (a read) or 0 (a write) would be right", shown(flags))
        })?;
        let op = if bits & 1 == 1 { Rwbs::READ } else { Rwbs::WRITE };
        Ok(Request { time_ns, device, op, offset, bytes, ..Request::default() })
    }
}
