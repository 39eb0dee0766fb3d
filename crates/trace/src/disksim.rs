//! Reads DiskSim's ASCII traces: `time device block size flags`.
//!
//! Times are ms with a fraction, blocks and sizes count blocks of 512 bytes. Flags are hexadecimal
//! digits, in which bit 0 is set for a read.

use crate::event::{DeviceId, Rwbs};
use crate::mqsim::sectors;
use crate::text::{Fields, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, decimal_ns, number, shown};

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Disksim {
    unit_ps: u64,
    sector_bytes: u64,
    requests: RequestSorter,
}

impl Disksim {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> Disksim {
        let unit_ps = specified.unwrap_or(TimeUnit::Millisecond).ps();
        Disksim { unit_ps, sector_bytes: u64::from(sector_bytes), requests: RequestSorter::default() }
    }
}

impl LineFormat for Disksim {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(false);
        }
        let mut fields = Fields::blanks(line);
        let time_ns = decimal_ns(fields.want("the time")?, self.unit_ps, "the time")?;
        let device = DeviceId(number(fields.want("the device")?, "the device")?);
        let offset = sectors(fields.want("the block")?, "the block", self.sector_bytes)?;
        let bytes = sectors(fields.want("the size in blocks")?, "the size", self.sector_bytes)?;
        let flags = fields.want("the flags")?;
        let digits = flags.strip_prefix(b"0x").unwrap_or(flags);
        let bits = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let bits = bits.ok_or_else(|| {
            format!("the flags {} are no hexadecimal number: 1 (a read) or 0 (a write) would be right", shown(flags))
        })?;
        let op = if bits & 1 == 1 { Rwbs::READ } else { Rwbs::WRITE };
        self.requests.take(&Request { time_ns, device, op, offset, bytes, ..Request::default() }, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}
