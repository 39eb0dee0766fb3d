//! Reads the traces of Tencent's Cloud Block Storage: `time, offset, size, type, volume`.
//!
//! Times are seconds since 1970. Offsets and sizes count sectors of 512 bytes, type 0 is a read and
//! 1 a write.

use crate::event::{DeviceId, Rwbs};
use crate::mqsim::sectors;
use crate::text::{Fields, LineFormat, LineOutput, Request, RequestSorter, TimeUnit, decimal_ns, number, shown};

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Tencent {
    unit_ps: u64,
    sector_bytes: u64,
    requests: RequestSorter,
}

impl Tencent {
    /// Creates a parser, with a remark about the resolution of the times.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> (Tencent, Option<String>) {
        let remark = "times are whole seconds: requests of one second have the same time, in the order of the file";
        let unit_ps = specified.unwrap_or(TimeUnit::Second).ps();
        let tencent = Tencent { unit_ps, sector_bytes: u64::from(sector_bytes), requests: RequestSorter::default() };
        (tencent, specified.is_none().then(|| remark.to_owned()))
    }
}

impl LineFormat for Tencent {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") || line.to_ascii_lowercase().starts_with(b"timestamp") {
            return Ok(false);
        }
        let mut fields = Fields::split(line, b',');
        let time_ns = decimal_ns(fields.want("the time")?, self.unit_ps, "the time")?;
        let offset = sectors(fields.want("the offset in sectors")?, "the offset", self.sector_bytes)?;
        let bytes = sectors(fields.want("the size in sectors")?, "the size", self.sector_bytes)?;
        let op = match fields.want("0 (a read) or 1 (a write)")? {
            b"0" => Rwbs::READ,
            b"1" => Rwbs::WRITE,
            other => return Err(format!("{} stands where 0 (a read) or 1 (a write) should be", shown(other))),
        };
        let device = DeviceId(number(fields.want("the volume")?, "the volume")?);
        self.requests.take(&Request { time_ns, device, op, offset, bytes, ..Request::default() }, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}
