//! Reads Alibaba's block traces: `device, R|W, offset, length, time`. Offsets and lengths are in
//! bytes, times in us since 1970.

use crate::event::DeviceId;
use crate::text::{
    Epoch, Fields, Head, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, decide_epoch, number,
    read_or_write,
};

/// Parser of the lines.
#[derive(Debug)]
pub struct Alibaba {
    epoch: Epoch,
}

impl Alibaba {
    /// Creates a parser for a text with this beginning. Also returns the assumption that it makes,
    /// if any.
    ///
    /// # Errors
    /// Fails if the unit of the times must be specified.
    pub fn new(head: &[u8], specified: Option<TimeUnit>) -> Result<(RequestLines<Alibaba>, Option<String>), String> {
        let time = |line: &[u8]| number(Fields::split(line, b',').nth(4)?, "").ok();
        let (epoch, remark) = decide_epoch(specified, TimeUnit::Microsecond, &Head::of(head, time))?;
        Ok((RequestLines::new(Alibaba { epoch }), remark))
    }
}

impl RequestFormat for Alibaba {
    fn is_titles(&self, line: &[u8]) -> bool {
        line.starts_with(b"device")
    }

    fn request(&mut self, line: &[u8], _: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let device = DeviceId(number(fields.want("the device")?, "the device")?);
        let op = read_or_write(&mut fields, "r", "w", "R or W")?;
        let offset = number(fields.want("the offset")?, "the offset")?;
        let bytes = number(fields.want("the length")?, "the length")?;
        let time_ns = self.epoch.ns(fields.want("the time")?)?;
        Ok(Request { time_ns, device, op, offset, bytes, ..Request::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::{failure, read};

    fn alibaba(text: &str) -> RequestLines<Alibaba> {
        Alibaba::new(text.as_bytes(), None).unwrap().0
    }

    #[test]
    fn us_since_1970_become_ns() {
        let text = "device_id,opcode,offset,length,timestamp\n419,W,8792731648,16384,1577808144360767\n725,R,512,4096,1577808144360768\n";
        let batch = read(alibaba(text), text);
        let seen: Vec<_> = batch
            .events()
            .iter()
            .map(|event| (event.time_ns, event.device.minor(), event.sector, event.bytes))
            .collect();
        assert_eq!(
            seen,
            [(1_577_808_144_360_767_000, 419, 17_173_304, 16_384), (1_577_808_144_360_768_000, 725, 1, 4_096)]
        );
    }

    #[test]
    fn ns_since_1970_are_detected_by_their_size() {
        let text = "419,W,0,512,1577808144360767001\n419,W,0,512,1577808144360768001\n";
        assert_eq!(read(alibaba(text), text).events()[0].time_ns, 1_577_808_144_360_767_001);
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        let right = "419,W,8792731648,16384,1577808144360767\n";
        for (wrong, message) in [
            ("419,X,0,512,1577808144360767", "a:2: \"X\" stands where R or W should be"),
            ("419,W,-4,512,1577808144360767", "a:2: the offset \"-4\" is no whole number"),
            ("419,W,0,512,now", "a:2: the time \"now\" is no time"),
            ("419,W,0", "a:2: the line ends where the length should be"),
        ] {
            let text = format!("{right}{wrong}\n");
            let failed = failure(alibaba(&text), &text);
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
