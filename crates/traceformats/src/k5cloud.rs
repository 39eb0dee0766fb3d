//! Reads the traces of Fujitsu's K5 cloud: `volume,time,R|W,offset,length`.
//!
//! Times are seconds with a fraction since the start of the trace, offsets and lengths bytes.

use crate::text::{
    Fields, LineOutput, NamedDevices, Request, RequestFormat, RequestLines, SharedNames, TimeUnit, decimal_ns, number,
    read_or_write,
};

/// Parser of the lines.
#[derive(Debug)]
pub struct K5cloud {
    unit_ps: u64,
    volumes: NamedDevices,
}

impl K5cloud {
    /// Creates a parser.
    pub fn new(specified: Option<TimeUnit>, names: &SharedNames) -> RequestLines<K5cloud> {
        let unit_ps = specified.unwrap_or(TimeUnit::Second).ps();
        RequestLines::new(K5cloud { unit_ps, volumes: NamedDevices::new(names) })
    }
}

impl RequestFormat for K5cloud {
    fn request(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let volume = fields.want("the volume")?;
        let time_ns = decimal_ns(fields.want("the time")?, self.unit_ps, "the time")?;
        let op = read_or_write(&mut fields, "r", "w", "R or W")?;
        let offset = number(fields.want("the offset in bytes")?, "the offset")?;
        let bytes = number(fields.want("the length in bytes")?, "the length")?;
        let device = self.volumes.device(volume, out)?;
        Ok(Request { time_ns, device, op, offset, bytes, ..Request::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::{failure, read};

    #[test]
    fn seconds_bytes_and_the_third_column_are_read() {
        let text = "2264,86400.121837000,R,48195870720,4096\n2265,86400.2,W,512,512\n";
        let batch = read(K5cloud::new(None, &SharedNames::default()), text);
        let seen: Vec<_> =
            batch.events().iter().map(|event| (event.time_ns, event.device.minor(), event.sector)).collect();
        assert_eq!(seen, [(86_400_121_837_000, 0, 94_132_560), (86_400_200_000_000, 1, 1)]);
        let wrong = "2264,86400.1,X,0,4096\n";
        let failed = failure(K5cloud::new(None, &SharedNames::default()), wrong);
        assert_eq!(failed, "a:1: \"X\" stands where R or W should be");
    }
}
