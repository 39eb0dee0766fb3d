//! Sizes, times and rates in text form: one parser for fio's job files, the server's configuration
//! and command lines.
//!
//! `k` is 1024, as in fio, unless a job file sets `kb_base=1000`. `ki` and `kib` differ. In a job
//! file they follow fio ([`parse_size`]: 1000, with `kb_base=1000` 1024). In hoistway's own files
//! and options they follow IEC 80000-13 ([`parse_bytes`]: 1024).
//!
//! Source: sections "Parameter types" and "Units" of the manual of fio 3.33.
//!
//! Where to change: every parser splits its text in `split_number` and finds its unit in
//! `size_factor` or `time_factor_ns`. Exact printing is `print_size` and `print_time`. Figures with
//! three significant digits are in [`figures`]. [`names`] suggests names for mistyped ones.
//! [`position`] finds the line of an error, [`sort`] sorts in little code. [`printable`] escapes
//! names from outside.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod errors;
pub mod figures;
pub mod names;
pub mod position;
pub mod printable;
pub mod sort;

use std::fmt;

/// The factor of the prefix `k`: fio's `kb_base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KbBase {
    /// `kb_base=1024`, the default: `k` is 1024 and `ki` is 1000. That is the opposite of the
    /// standard, for the sake of old job files.
    #[default]
    Compatible,
    /// `kb_base=1000`: `k` is 1000 and `ki` is 1024, as in SI and IEC 80000-13.
    Standard,
}

/// The unit of a number without one; it differs between options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `runtime`, `startdelay`, `ramp_time`, `thinktime_iotime`.
    Seconds,
    /// `thinktime`, `thinktime_spin`.
    Microseconds,
}

/// Reasons why a text is not a size or a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text is empty.
    #[error("the value is empty")]
    Empty,
    /// The text starts with a minus sign.
    #[error("`{0}` is negative")]
    Negative(String),
    /// The text does not start with a digit.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// The number has a decimal point.
    #[error("`{0}` is not a whole number")]
    Fraction(String),
    /// The text is an arithmetic expression, or one of fio's words for the machine.
    #[error("`{0}` is an expression, which hoistway does not work out")]
    Expression(String),
    /// The unit does not exist for this kind of value.
    #[error("`{unit}` in `{text}` is not a unit of {kind}")]
    Unit {
        /// The whole text.
        text: String,
        /// The text after the digits.
        unit: String,
        /// The kind of value, `size` or `time`.
        kind: &'static str,
    },
    /// The value does not fit 64 bits.
    #[error("`{text}` is too large: the most is {most}")]
    TooLarge {
        /// The whole text.
        text: String,
        /// The largest value, with its unit.
        most: &'static str,
    },
}

/// The largest size or count.
const SIZE_MOST: &str = "18446744073709551615 (in bytes, if it is a size)";
/// The largest duration, in which nanoseconds fill 64 bits.
const TIME_MOST: &str = "18446744073 s (584 years)";

impl UnitError {
    /// The correction, in one sentence.
    pub fn help(&self) -> Option<String> {
        match self {
            UnitError::Fraction(_) => Some("use a smaller unit, as in 1500ms for 1.5s or 1536k for 1.5m".into()),
            UnitError::Expression(_) => Some("write the result as a number".into()),
            UnitError::Unit { kind: "time", .. } => Some("the units are us, ms, s, m, h and d".into()),
            UnitError::Unit { unit, .. } if unit.eq_ignore_ascii_case("z") => {
                Some("hoistway has no zones: give the size in bytes".into())
            }
            UnitError::Unit { .. } => Some("the units are k, m, g, t, p, each also as ki or kib, and b".into()),
            _ => None,
        }
    }
}

/// Reads a number of bytes, or of anything else that is counted: `4k`, `0x1000`, `1GiB`, `128M`.
///
/// ```
/// use hoistway_units::{KbBase, parse_size};
/// assert_eq!(parse_size("4k", KbBase::Compatible), Ok(4096));
/// assert_eq!(parse_size("4ki", KbBase::Compatible), Ok(4000));
/// assert_eq!(parse_size("4kB", KbBase::Standard), Ok(4000));
/// ```
///
/// # Errors
/// Every text that is not digits (or `0x` and hexadecimal digits) followed by a unit of size, and
/// every value that does not fit 64 bits.
pub fn parse_size(text: &str, base: KbBase) -> Result<u64, UnitError> {
    let (number, unit) = split_number(text, SIZE_MOST)?;
    let factor = size_factor(unit, base).ok_or_else(|| wrong_unit(text, unit, "size"))?;
    number.checked_mul(factor).ok_or_else(|| too_large(text, SIZE_MOST))
}

/// Reads a duration, in nanoseconds. fio's own grain is a microsecond.
///
/// ```
/// use hoistway_units::{TimeUnit, parse_time_ns};
/// assert_eq!(parse_time_ns("5", TimeUnit::Microseconds), Ok(5_000));
/// assert_eq!(parse_time_ns("10m", TimeUnit::Seconds), Ok(600_000_000_000));
/// ```
///
/// # Errors
/// Every text that is not digits followed by `us`, `ms`, `s`, `m`, `h`, `d` or a longer form of
/// them, and every duration that does not fit 64 bits of nanoseconds (584 years).
pub fn parse_time_ns(text: &str, default: TimeUnit) -> Result<u64, UnitError> {
    let (number, unit) = split_number(text, TIME_MOST)?;
    let factor = time_factor_ns(unit, default).ok_or_else(|| wrong_unit(text, unit, "time"))?;
    number.checked_mul(factor).ok_or_else(|| too_large(text, TIME_MOST))
}

/// Reads a number of bytes in a file or option of hoistway's own: `4k`, `4KiB` and `4kb` are all
/// 4096, prefixes up to `p`, in either case.
///
/// ```
/// use hoistway_units::parse_bytes;
/// assert_eq!((parse_bytes("256M"), parse_bytes("256MiB")), (Ok(256 << 20), Ok(256 << 20)));
/// assert_eq!((parse_bytes("1t"), parse_bytes("0x200")), (Ok(1 << 40), Ok(512)));
/// ```
///
/// # Errors
/// Those of [`parse_size`].
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split_number(text, SIZE_MOST)?;
    let unit = unit.trim_start();
    let prefix = unit.to_ascii_lowercase();
    let prefix = prefix.strip_suffix("ib").or_else(|| prefix.strip_suffix(['i', 'b'])).unwrap_or(&prefix);
    let bare_i = prefix.is_empty() && unit.to_ascii_lowercase().starts_with('i');
    let factor = if bare_i { None } else { size_factor(prefix, KbBase::Compatible) };
    let factor = factor.ok_or_else(|| wrong_unit(text, unit, "size"))?;
    number.checked_mul(factor).ok_or_else(|| too_large(text, SIZE_MOST))
}

/// Reads bytes a second: a size as [`parse_bytes`] reads it, with or without `/s` after it.
///
/// ```
/// assert_eq!(hoistway_units::parse_rate("150M"), hoistway_units::parse_rate("150 MiB/s"));
/// ```
///
/// # Errors
/// Those of [`parse_size`].
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    parse_bytes(text.trim_end().strip_suffix("/s").unwrap_or(text))
}

/// Reads a duration in a file or option of hoistway's own, in nanoseconds: `12ms`, `60us`, `500ns`,
/// `2s`. A unit has to be there.
///
/// ```
/// assert_eq!(hoistway_units::parse_duration_ns("12ms"), Ok(12_000_000));
/// assert!(hoistway_units::parse_duration_ns("12").is_err());
/// ```
///
/// # Errors
/// Those of [`parse_time_ns`], and a number without a unit.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split_number(text, TIME_MOST)?;
    let unit = unit.trim_start();
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => None,
        "ns" | "nsec" => Some(1),
        _ => time_factor_ns(unit, TimeUnit::Seconds),
    };
    let factor = factor.ok_or_else(|| wrong_unit(text, unit, "time"))?;
    number.checked_mul(factor).ok_or_else(|| too_large(text, TIME_MOST))
}

/// Prints a number of bytes for a job file: the largest prefix that divides it, in the compatible
/// base.
///
/// [`parse_size`] with [`KbBase::Compatible`] reads the same number back.
///
/// ```
/// assert_eq!(hoistway_units::print_size(128 << 20), "128m");
/// assert_eq!(hoistway_units::print_size(1000), "1000");
/// ```
pub fn print_size(bytes: u64) -> String {
    let prefixes = [("p", 50), ("t", 40), ("g", 30), ("m", 20), ("k", 10)];
    for (prefix, shift) in prefixes {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{prefix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Prints a duration for a job file in the largest unit from `us` to `s` that divides it; below a
/// microsecond it is rounded down, since fio has nothing finer.
///
/// [`parse_time_ns`] reads the same duration back when it is whole microseconds.
///
/// ```
/// assert_eq!(hoistway_units::print_time(1_500_000_000), "1500ms");
/// ```
pub fn print_time(ns: u64) -> String {
    let us = ns / 1_000;
    match us {
        0 => "0s".into(),
        us if us % 1_000_000 == 0 => format!("{}s", us / 1_000_000),
        us if us % 1_000 == 0 => format!("{}ms", us / 1_000),
        us => format!("{us}us"),
    }
}

impl fmt::Display for KbBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KbBase::Compatible => "1024",
            KbBase::Standard => "1000",
        })
    }
}

/// The number at the start of a text, and the rest of the text. `most` is the largest value.
fn split_number<'a>(text: &'a str, most: &'static str) -> Result<(u64, &'a str), UnitError> {
    let text = text.trim();
    let Some(first) = text.chars().next() else { return Err(UnitError::Empty) };
    if first == '-' {
        return Err(UnitError::Negative(text.into()));
    }
    if first == '(' || text.contains('$') || text.contains('*') {
        return Err(UnitError::Expression(text.into()));
    }
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return Err(UnitError::NotANumber(text.into()));
    }
    if rest.starts_with('.') {
        return Err(UnitError::Fraction(text.into()));
    }
    // The digits were checked above, so only an overflow fails here.
    let number = u64::from_str_radix(number, radix).map_err(|_| too_large(text, most))?;
    Ok((number, rest))
}

fn too_large(text: &str, most: &'static str) -> UnitError {
    UnitError::TooLarge { text: text.trim().into(), most }
}

fn wrong_unit(text: &str, unit: &str, kind: &'static str) -> UnitError {
    UnitError::Unit { text: text.trim().into(), unit: unit.into(), kind }
}

fn size_factor(unit: &str, base: KbBase) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (prefix, with_i) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, true),
        None => (unit, false),
    };
    let power = match prefix {
        "" if with_i => return None,
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let binary = (base == KbBase::Compatible) != with_i;
    let factor: u64 = if binary { 1024 } else { 1000 };
    Some(factor.pow(power))
}

fn time_factor_ns(unit: &str, default: TimeUnit) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" => match default {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Microseconds => 1_000,
        },
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_prefix_are_powers_of_1024_in_files_of_our_own() {
        for (text, bytes) in [
            ("1k", 1 << 10),
            ("1K", 1 << 10),
            ("1kb", 1 << 10),
            ("1ki", 1 << 10),
            ("1KiB", 1 << 10),
            ("3g", 3 << 30),
            ("7", 7),
            ("7b", 7),
            ("2 MiB", 2 << 20),
            ("1p", 1 << 50),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "1i", "1ib", "1kk", "1.5M", "-1", "99999999999999999999", "20000p", "1z"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(parse_size("1ki", KbBase::Compatible), Ok(1000), "a job file's is fio's");
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(
            [parse_duration_ns("500ns"), parse_duration_ns("60us"), parse_duration_ns("2 s")],
            [Ok(500), Ok(60_000), Ok(2_000_000_000)]
        );
        for text in ["12", "", "12 parsecs", "18446744073709551615s"] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_time_ns("18446744073709551615", TimeUnit::Seconds).unwrap_err().to_string(),
            "`18446744073709551615` is too large: the most is 18446744073 s (584 years)"
        );
    }
}
