//! Reads the traces of Tencent's Cloud Block Storage: `time, offset, size, type, volume`.
//!
//! Times are seconds since 1970. Offsets and sizes count sectors of 512 bytes, type 0 is a read and
//! 1 a write.

use crate::event::DeviceId;
use crate::text::{Fields, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, Units, number, read_or_write};

/// Parser of the lines.
#[derive(Debug)]
pub(crate) struct Tencent {
    units: Units,
}

impl Tencent {
    /// Creates a parser, with a remark about the resolution of the times.
    pub fn new(specified: Option<TimeUnit>, sector_bytes: u32) -> (RequestLines<Tencent>, Option<String>) {
        let remark = "times are whole seconds: requests of one second have the same time, in the order of the file";
        let tencent = Tencent { units: Units::new(specified.unwrap_or(TimeUnit::Second), sector_bytes) };
        (RequestLines::new(tencent), specified.is_none().then(|| remark.to_owned()))
    }
}

impl RequestFormat for Tencent {
    fn is_titles(&self, line: &[u8]) -> bool {
        line.to_ascii_lowercase().starts_with(b"timestamp")
    }

    fn request(&mut self, line: &[u8], _: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let time_ns = self.units.ns(fields.want("the time")?, "the time")?;
        let offset = self.units.bytes(fields.want("the offset in sectors")?, "the offset")?;
        let bytes = self.units.bytes(fields.want("the size in sectors")?, "the size")?;
        let op = read_or_write(&mut fields, "0", "1", "0 (a read) or 1 (a write)")?;
        let device = DeviceId(number(fields.want("the volume")?, "the volume")?);
        Ok(Request { time_ns, device, op, offset, bytes, ..Request::default() })
    }
}
