//! Reads the traces of Tencent's Cloud Block Storage: `time,offset,size,type,volume`.
//!
//! Times are seconds since 1970, sizes sectors of 512 bytes, type 0 is a read and 1 a write. The
//! original has offsets in sectors, and copies that are distributed with other traces have them in
//! bytes. A copy could have its sizes in bytes, too: they are multiples of 512 then.

use crate::event::DeviceId;
use crate::lines::LINE_BYTES_MAX;
use crate::offset_unit::{self, OffsetUnit};
use crate::text::{Fields, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, Units, number, read_or_write};

/// Parser of the lines.
#[derive(Debug)]
pub struct Tencent {
    units: Units,
    offset_unit: OffsetUnit,
    size_unit: OffsetUnit,
}

impl Tencent {
    /// Creates a parser for a text with this beginning, with a remark about the units of offsets
    /// and times. `offset_unit` is the unit of the offsets; None detects it.
    ///
    /// # Errors
    /// Fails for offsets that are numbers of objects.
    pub fn new(
        head: &[u8],
        specified: Option<TimeUnit>,
        sector_bytes: u32,
        offset_unit: Option<OffsetUnit>,
    ) -> Result<(RequestLines<Tencent>, Option<String>), String> {
        let columns = |column: usize| -> Vec<u64> {
            let end = memchr::memrchr(b'\n', head).unwrap_or(0);
            let lines = head.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
            let lines = lines.filter(|line| line.len() < LINE_BYTES_MAX);
            lines.filter_map(|line| number(Fields::split(line, b',').nth(column)?, "").ok()).collect()
        };
        let mut remarks = Vec::new();
        let offset_unit = match offset_unit {
            Some(OffsetUnit::Objects) => {
                return Err("its offsets are addresses: bytes or sectors would be right".into());
            }
            Some(unit) => unit,
            None => {
                let (unit, why) = offset_unit::detect(&columns(1));
                remarks.push(offset_unit::remark(unit, &why));
                unit
            }
        };
        let sizes = columns(2);
        let has_bytes =
            sizes.len() >= offset_unit::OFFSETS_MIN && sizes.iter().all(|size| *size > 0 && size % 512 == 0);
        let size_unit = if has_bytes { OffsetUnit::Bytes } else { OffsetUnit::Sectors };
        if has_bytes {
            remarks.push(format!("assuming sizes in bytes (the first {} sizes are multiples of 512)", sizes.len()));
        }
        if specified.is_none() {
            let what = "times are whole seconds: requests of one second have the same time, in the order of the file";
            remarks.push(what.to_owned());
        }
        let units = Units::new(specified.unwrap_or(TimeUnit::Second), sector_bytes);
        let remark = (!remarks.is_empty()).then(|| remarks.join(". "));
        Ok((RequestLines::new(Tencent { units, offset_unit, size_unit }), remark))
    }

    fn bytes(&self, unit: OffsetUnit, field: &[u8], what: &str) -> Result<u64, String> {
        match unit {
            OffsetUnit::Bytes | OffsetUnit::Objects => number(field, what),
            OffsetUnit::Sectors => self.units.bytes(field, what),
        }
    }
}

impl RequestFormat for Tencent {
    fn is_titles(&self, line: &[u8]) -> bool {
        line.to_ascii_lowercase().starts_with(b"timestamp")
    }

    fn request(&mut self, line: &[u8], _: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let time_ns = self.units.ns(fields.want("the time")?, "the time")?;
        let offset = self.bytes(self.offset_unit, fields.want("the offset")?, "the offset")?;
        let bytes = self.bytes(self.size_unit, fields.want("the size in sectors")?, "the size")?;
        let op = read_or_write(&mut fields, "0", "1", "0 (a read) or 1 (a write)")?;
        let device = DeviceId(number(fields.want("the volume")?, "the volume")?);
        Ok(Request { time_ns, device, op, offset, bytes, ..Request::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::read;

    /// Returns a text of 1,100 requests whose offsets are `offset` of their numbers.
    fn text(offset: impl Fn(u64) -> u64) -> String {
        (0..1100).map(|at| format!("{},{},8,{},1063\n", 1_538_323_205 + at / 100, offset(at), at % 2)).collect()
    }

    fn first_sector(text: &str, unit: Option<OffsetUnit>) -> (u64, u32, String) {
        let (tencent, remark) = Tencent::new(text.as_bytes(), None, 512, unit).unwrap();
        let batch = read(tencent, text);
        (batch.events()[1].sector, batch.events()[1].bytes, remark.unwrap())
    }

    #[test]
    fn the_same_requests_are_read_from_the_original_and_from_the_copy_in_bytes() {
        let sector = |at: u64| 33_554_432 + at * 8;
        let (original, bytes, remark) = first_sector(&text(sector), None);
        assert!(remark.starts_with("assuming offsets in sectors (the first 1100 offsets"), "{remark}");
        let (copy, copied_bytes, remark) = first_sector(&text(|at| sector(at) * 512), None);
        assert!(remark.starts_with("assuming offsets in bytes (the first 1100 offsets"), "{remark}");
        assert_eq!((original, bytes), (sector(1), 4096));
        assert_eq!((copy, copied_bytes), (original, bytes));
    }

    #[test]
    fn a_specified_unit_overrides_the_detection() {
        let in_bytes = text(|at| at * 4096);
        let (sector, _, remark) = first_sector(&in_bytes, Some(OffsetUnit::Sectors));
        assert_eq!(sector, 4096);
        assert!(remark.starts_with("times are whole seconds"), "{remark}");
        assert!(Tencent::new(b"", None, 512, Some(OffsetUnit::Objects)).is_err());
    }
}
