//! Fields of text lines: splitting, parsing of numbers, and display in errors.

use crate::event::{DeviceId, Rwbs};

/// Maximum number of bytes of a field in an error.
const SHOWN_BYTES_MAX: usize = 40;

/// Iterates over the fields of a line.
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: Separator,
}

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// Any number of blanks and tabs.
    Blanks,
    /// A byte; blanks around fields are removed.
    Byte(u8),
}

impl Separator {
    /// Returns the fields of a line. Fields in quotes lose them, and can contain the separator; a
    /// quote in a field is not unescaped.
    pub fn fields(self, line: &[u8]) -> Vec<&[u8]> {
        let separator = match self {
            Separator::Byte(byte) if memchr::memchr(b'"', line).is_some() => byte,
            separator => return Fields { rest: Some(line), separator }.collect(),
        };
        let (mut fields, mut from, mut in_quotes) = (Vec::new(), 0, false);
        for (at, byte) in line.iter().enumerate() {
            in_quotes ^= *byte == b'"';
            if *byte == separator && !in_quotes {
                fields.push(unquoted(line.get(from..at).unwrap_or_default()));
                from = at + 1;
            }
        }
        fields.push(unquoted(line.get(from..).unwrap_or_default()));
        fields
    }
}

/// Removes blanks and quotes around a field.
fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

impl<'a> Fields<'a> {
    /// Splits at any number of blanks and tabs.
    pub fn blanks(line: &'a [u8]) -> Fields<'a> {
        Fields { rest: Some(line), separator: Separator::Blanks }
    }

    /// Splits at each occurrence of a byte; blanks around fields are removed.
    pub fn split(line: &'a [u8], separator: u8) -> Fields<'a> {
        Fields { rest: Some(line), separator: Separator::Byte(separator) }
    }

    /// Returns the remaining text without leading blanks.
    pub fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or_default().trim_ascii_start()
    }

    /// Returns the next field.
    ///
    /// # Errors
    /// Fails at the end of the line; `what` names the missing field.
    pub fn want(&mut self, what: &str) -> Result<&'a [u8], String> {
        self.next().ok_or_else(|| format!("the line ends where {what} should be"))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self.separator {
            Separator::Blanks => {
                let rest = self.rest?.trim_ascii_start();
                if rest.is_empty() {
                    self.rest = None;
                    return None;
                }
                let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                let (field, rest) = rest.split_at(len);
                self.rest = Some(rest);
                Some(field)
            }
            Separator::Byte(byte) => {
                let rest = self.rest?;
                match memchr::memchr(byte, rest) {
                    Some(at) => {
                        self.rest = rest.get(at + 1..);
                        rest.get(..at).map(<[u8]>::trim_ascii)
                    }
                    None => {
                        self.rest = None;
                        Some(rest.trim_ascii())
                    }
                }
            }
        }
    }
}

/// Parses a whole decimal number.
///
/// # Errors
/// Fails if the field is no number or too large; `what` names the field.
pub fn number<N: TryFrom<u64>>(field: &[u8], what: &str) -> Result<N, String> {
    let digits = |value: u64, &byte: &u8| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    let value = if field.is_empty() { None } else { field.iter().try_fold(0u64, digits) };
    value.and_then(|value| N::try_from(value).ok()).ok_or_else(|| {
        let digits_only = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
        let wrong = if digits_only { "is too large" } else { "is no whole number" };
        format!("{what} {} {wrong}", shown(field))
    })
}

/// Parses a time such as `12` or `12.345` in a unit of `unit_ps` and returns ns. Finer digits are
/// cut off.
///
/// # Errors
/// Fails if the field is no such number, or exceeds 64 bits of ns (584 years).
pub fn decimal_ns(field: &[u8], unit_ps: u64, what: &str) -> Result<u64, String> {
    let (whole, fraction) = match memchr::memchr(b'.', field) {
        Some(at) => (field.get(..at).unwrap_or_default(), field.get(at + 1..).unwrap_or_default()),
        None => (field, &b""[..]),
    };
    let wrong = || format!("{what} {} is no time: expected digits with an optional decimal point", shown(field));
    let whole: u64 = number(whole, what).map_err(|_| wrong())?;
    if !fraction.iter().all(u8::is_ascii_digit) || (fraction.is_empty() && field.ends_with(b".")) {
        return Err(wrong());
    }
    // 18 decimals are finer than any unit divided by ps.
    let (mut part_ps, mut digit_ps) = (0u128, u128::from(unit_ps));
    for &digit in fraction.iter().take(18) {
        part_ps += digit_ps * u128::from(digit - b'0') / 10;
        digit_ps /= 10;
    }
    let ps = u128::from(whole) * u128::from(unit_ps) + part_ps;
    u64::try_from(ps / 1000).map_err(|_| format!("{what} {} is more than 584 years", shown(field)))
}

/// Parses a device from its two numbers, separated by a byte.
///
/// # Errors
/// Fails if the numbers are no valid device number.
pub fn device_of(field: &[u8], separator: u8) -> Result<DeviceId, String> {
    let mut numbers = field.splitn(2, |&byte| byte == separator);
    let mut part = |max: u32| numbers.next().and_then(|part| number::<u32>(part, "").ok()).filter(|part| *part <= max);
    match (part(0xFFF), part(0xF_FFFF)) {
        (Some(major), Some(minor)) => Ok(DeviceId::new(major, minor)),
        _ => Err(format!(
            "the device {} is no pair of numbers such as 8{}0 (below 4096 and 1048576)",
            shown(field),
            char::from(separator)
        )),
    }
}

/// Splits a `name-number` pair into the name and the process id.
pub fn pid_of(field: &[u8]) -> Option<(&[u8], u32)> {
    let at = memchr::memrchr(b'-', field)?;
    let pid = number(field.get(at + 1..)?, "").ok()?;
    Some((field.get(..at)?, pid))
}

/// Parses the operation and flags from blkparse's letters.
///
/// # Errors
/// Fails on an unknown letter.
pub fn parse_rwbs(letters: &[u8]) -> Result<Rwbs, String> {
    let mut op = Rwbs(0);
    for letter in letters {
        let operation_seen = op.0 & (Rwbs::READ.0 | Rwbs::WRITE.0 | Rwbs::DISCARD.0 | Rwbs::NONE.0) != 0;
        op = op.with(match letter {
            b'R' => Rwbs::READ,
            b'W' => Rwbs::WRITE,
            b'D' => Rwbs::DISCARD,
            b'N' => Rwbs::NONE,
            // Before the letter of the operation it is a flush, after it FUA.
            b'F' if operation_seen => Rwbs::FUA,
            b'F' => Rwbs::FLUSH,
            b'A' => Rwbs::AHEAD,
            b'S' => Rwbs::SYNC,
            b'M' => Rwbs::META,
            // B was the barrier of kernels before 2.6.37; E (erase) is a secure discard.
            b'B' => Rwbs::FLUSH,
            b'E' => Rwbs::DISCARD,
            _ => {
                return Err(format!(
                    "{} is no operation of a request: expected letters of RWDFNASM, such as WS or FWS",
                    shown(letters)
                ));
            }
        });
    }
    Ok(op)
}

/// Formats a field for an error: quoted, escaped and truncated.
pub fn shown(field: &[u8]) -> String {
    let cut = field.get(..SHOWN_BYTES_MAX).unwrap_or(field);
    let dots = if cut.len() < field.len() { "..." } else { "" };
    format!("\"{}{dots}\"", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_between_blanks_and_between_commas() {
        let fields: Vec<&[u8]> = Fields::blanks(b"  7,0\t 1  x ").collect();
        assert_eq!(fields, [&b"7,0"[..], b"1", b"x"]);
        let fields: Vec<&[u8]> = Fields::split(b" a ;; b", b';').collect();
        assert_eq!(fields, [&b"a"[..], b"", b"b"]);
        assert_eq!(Fields::split(b"", b',').count(), 1);
    }

    #[test]
    fn invalid_numbers_are_explained() {
        assert_eq!(number::<u32>(b"4294967295", "the length"), Ok(u32::MAX));
        assert_eq!(number::<u32>(b"4294967296", "the length").unwrap_err(), "the length \"4294967296\" is too large");
        assert_eq!(number::<u64>(b"-1", "the sector").unwrap_err(), "the sector \"-1\" is no whole number");
        assert_eq!(number::<u64>(b"", "the sector").unwrap_err(), "the sector \"\" is no whole number");
    }

    #[test]
    fn times_of_any_unit_are_converted_to_ns_exactly() {
        const SECOND_PS: u64 = 1_000_000_000_000;
        assert_eq!(decimal_ns(b"1781.997769913", SECOND_PS, "time"), Ok(1_781_997_769_913));
        assert_eq!(decimal_ns(b"0.0000000019", SECOND_PS, "time"), Ok(1));
        assert_eq!(decimal_ns(b"7", 100_000, "time"), Ok(700));
        assert_eq!(decimal_ns(b"1500", 1, "time"), Ok(1));
        for wrong in [&b""[..], b"1.", b".5", b"-1", b"1.2.3", b"1e3", b"99999999999"] {
            assert!(decimal_ns(wrong, SECOND_PS, "time").is_err(), "{}", shown(wrong));
        }
    }

    #[test]
    fn letters_have_the_meaning_of_blkparse() {
        assert_eq!(parse_rwbs(b"FWS"), Ok(Rwbs::FLUSH.with(Rwbs::WRITE).with(Rwbs::SYNC)));
        assert_eq!(parse_rwbs(b"WFS"), Ok(Rwbs::WRITE.with(Rwbs::FUA).with(Rwbs::SYNC)));
        assert_eq!(parse_rwbs(b"FN"), Ok(Rwbs::FLUSH.with(Rwbs::NONE)));
        assert!(parse_rwbs(b"WX").unwrap_err().contains("\"WX\""));
    }
}
