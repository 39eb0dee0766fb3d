//! Reads MQSim's text: `time device sector sectors type`, where type 0 is a write and 1 a read.
//!
//! The unit of the times is part of MQSim's configuration (`Time_Unit`), not of the trace. The
//! default is ns. Sectors have 512 bytes.

use crate::event::DeviceId;
use crate::text::{
    Fields, Head, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, Units, decide_unit, number, read_or_write,
};

/// Parser of MQSim's lines.
#[derive(Debug)]
pub struct Mqsim {
    units: Units,
}

impl Mqsim {
    /// Creates a parser for a text with this beginning. Also returns the assumption that it makes,
    /// if any.
    ///
    /// # Errors
    /// Fails if the unit of the times must be specified.
    pub fn new(
        head: &[u8],
        specified: Option<TimeUnit>,
        sector_bytes: u32,
    ) -> Result<(RequestLines<Mqsim>, Option<String>), String> {
        let time = |line: &[u8]| number(Fields::blanks(line).next()?, "").ok();
        let (unit, remark) = decide_unit(specified, TimeUnit::Nanosecond, "MQSim's own", &Head::of(head, time))?;
        Ok((RequestLines::new(Mqsim { units: Units::new(unit, sector_bytes) }), remark))
    }
}

impl RequestFormat for Mqsim {
    fn request(&mut self, line: &[u8], _: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::blanks(line);
        let time_ns = self.units.ns(fields.want("the time")?, "the time")?;
        let device = DeviceId(number(fields.want("the device")?, "the device")?);
        let offset = self.units.bytes(fields.want("the sector")?, "the sector")?;
        let bytes = self.units.bytes(fields.want("the length")?, "the length")?;
        let op = read_or_write(&mut fields, "1", "0", "0 (a write) or 1 (a read)")?;
        Ok(Request { time_ns, device, op, offset, bytes, ..Request::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Rwbs;
    use crate::text::test_support::{failure, read};

    fn mqsim(text: &str) -> RequestLines<Mqsim> {
        Mqsim::new(text.as_bytes(), None, 512).unwrap().0
    }

    #[test]
    fn a_1_is_a_read_and_times_are_ns() {
        let text = "938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n";
        let batch = read(mqsim(text), text);
        let seen: Vec<_> =
            batch.events().iter().map(|event| (event.time_ns, event.device.minor(), event.sector, event.op)).collect();
        assert_eq!(seen, [(938_513_000, 4, 264_719_034, Rwbs::WRITE), (938_828_000, 3, 197_570_570, Rwbs::READ)]);
    }

    #[test]
    fn ps_must_be_specified() {
        // 1,000 requests in 1,000,000 s if the unit were ns.
        let text: String = (0..1000).map(|at| format!("{} 0 8 8 1\n", at * 1_000_000_000_000u64)).collect();
        let asked = Mqsim::new(text.as_bytes(), None, 512).unwrap_err();
        assert!(asked.contains("with ps, the first"), "{asked}");
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        for (wrong, message) in [
            ("938513000 4 264719034 16 2", "a:2: \"2\" stands where 0 (a write) or 1 (a read) should be"),
            ("938513000 4 99999999999999999999 16 1", "a:2: the sector \"99999999999999999999\" is too large"),
            ("938513000 4 8", "a:2: the line ends where the length should be"),
        ] {
            let text = format!("938513000 4 264719034 16 0\n{wrong}\n");
            let failed = failure(mqsim(&text), &text);
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
