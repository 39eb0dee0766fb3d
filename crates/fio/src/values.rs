//! The value of an option, and parsers that many options share: numbers with units, words, comma
//! lists, ranges.

use std::ops::RangeInclusive;

use crate::{
    direction::Directions,
    size::Size,
    units::{KbBase, TimeUnit, UnitError, parse_size, parse_time_ns},
};

/// Message for options and values that fio has and hoistway does not.
pub(crate) const NOT_SUPPORTED: &str = "known to fio, not supported by hoistway";

/// The error in a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub message: String,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Self {
        Fault { message: message.into(), help: None }
    }

    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Fault { message: message.into(), help: Some(help.into()) }
    }
}

impl From<UnitError> for Fault {
    fn from(error: UnitError) -> Self {
        Fault { message: error.to_string(), help: error.help() }
    }
}

/// The units of sizes in a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeUnits {
    /// The base of prefixes.
    pub base: KbBase,
    /// True if the job has the zones of a zoned device (`zonemode=zbd`), whose number may be given.
    pub is_zoned: bool,
    /// Bytes of a zone; 0 if the job does not say.
    pub zone_bytes: u64,
}

/// The value of an option, or a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    pub text: &'a str,
    pub units: SizeUnits,
}

impl<'a> Value<'a> {
    /// A value with the units of this one, such as a part of it.
    pub fn part<'b>(self, text: &'b str) -> Value<'b> {
        Value { text, units: self.units }
    }

    /// Parses 0 or 1.
    pub fn boolean(self) -> Result<bool, Fault> {
        match self.text {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(Fault::with_help(format!("`{other}` is neither 0 nor 1"), "write 1 for yes, 0 for no")),
        }
    }

    /// Parses a count, at least `least`.
    pub fn count(self, least: u64) -> Result<u64, Fault> {
        self.count_within(least..=u64::MAX)
    }

    /// Parses a count and checks its range.
    pub fn count_within(self, range: RangeInclusive<u64>) -> Result<u64, Fault> {
        let number = parse_size(self.text, self.units.base)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let (least, most) = (range.start(), range.end());
        let help = if *most >= u64::from(u32::MAX) {
            format!("at least {least}, at most {most}")
        } else {
            format!("from {least} to {most}")
        };
        Err(Fault::with_help(format!("{number} is out of range"), help))
    }

    /// Parses a count of 32 bits, at least `least`.
    pub fn count_u32(self, least: u32) -> Result<u32, Fault> {
        let number = self.count_within(u64::from(least)..=u64::from(u32::MAX))?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Parses a count of 8 bits and checks its range.
    pub fn count_u8(self, range: RangeInclusive<u8>) -> Result<u8, Fault> {
        let number = self.count_within(u64::from(*range.start())..=u64::from(*range.end()))?;
        Ok(u8::try_from(number).unwrap_or(*range.end()))
    }

    /// Parses a percentage from 0 to 100; the sign is optional.
    pub fn percent(self) -> Result<u8, Fault> {
        let digits = self.text.strip_suffix('%').unwrap_or(self.text).trim();
        let number = parse_size(digits, KbBase::Compatible)?;
        match u8::try_from(number) {
            Ok(percent) if percent <= 100 => Ok(percent),
            _ => Err(Fault::with_help(format!("{number} is more than 100 percent"), "from 0 to 100")),
        }
    }

    /// Parses a decimal number, at least 0.
    pub fn decimal(self) -> Result<f64, Fault> {
        let number = self.text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| Fault::with_help(format!("`{}` is not a number", self.text), "write it as in 99.9"))
    }

    /// Parses a number of bytes, a number of zones (`4z`), or a percentage. 0 % is 0 bytes.
    pub fn size(self) -> Result<Size, Fault> {
        match (self.text.strip_suffix('%'), self.text.strip_suffix(['z', 'Z'])) {
            (Some(_), _) => {
                self.percent().map(|percent| if percent == 0 { Size::Bytes(0) } else { Size::Percent(percent) })
            }
            (None, Some(number)) => self.zones(number).map(Size::Bytes),
            (None, None) => Ok(Size::Bytes(parse_size(self.text, self.units.base)?)),
        }
    }

    /// Parses a number of zones, as the bytes that they have.
    fn zones(self, number: &str) -> Result<u64, Fault> {
        let (text, number) = (self.text, parse_size(number, KbBase::Compatible)?);
        if !self.units.is_zoned {
            let help = "give zonemode=zbd and zonesize= too, or write the size in bytes";
            return Err(Fault::with_help(format!("`{text}` is a number of zones, and the job has none"), help));
        }
        if self.units.zone_bytes == 0 {
            let help = "give zonesize=, as in zonesize=256m: a simulation cannot ask the device";
            return Err(Fault::with_help(format!("`{text}` is a number of zones of unknown size"), help));
        }
        let too_large = || UnitError::TooLarge { text: text.into(), most: "18446744073709551615 bytes" }.into();
        number.checked_mul(self.units.zone_bytes).ok_or_else(too_large)
    }

    /// Parses a duration in seconds unless it has a unit. Returns nanoseconds.
    pub fn seconds(self) -> Result<u64, Fault> {
        Ok(parse_time_ns(self.text, TimeUnit::Seconds)?)
    }

    /// Parses a duration in microseconds unless it has a unit. Returns nanoseconds.
    pub fn microseconds(self) -> Result<u64, Fault> {
        Ok(parse_time_ns(self.text, TimeUnit::Microseconds)?)
    }

    /// Parses one of these words.
    pub fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, Fault> {
        let found = words.iter().find(|(word, _)| *word == self.text);
        found
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| one_of(self.text, &words.iter().map(|(word, _)| *word).collect::<Vec<_>>()))
    }

    /// Parses `a-b`, `a:b` or a single value; swapped ends are exchanged, as the manual promises.
    pub fn range(self, parse: impl Fn(Value) -> Result<u64, Fault>) -> Result<RangeInclusive<u64>, Fault> {
        match self.text.split_once(['-', ':']) {
            // A leading minus is a sign, which the number parser reports.
            Some((low, high)) if !low.trim().is_empty() => {
                let (low, high) = (parse(self.part(low))?, parse(self.part(high))?);
                Ok(low.min(high)..=low.max(high))
            }
            _ => parse(self).map(|one| one..=one),
        }
    }

    /// Parses a comma list for reads, writes and trims. A value applies to the following types
    /// unless a comma ends it; a blank keeps the default.
    pub fn directions<T: Clone>(
        self,
        parse: impl Fn(Value) -> Result<T, Fault>,
    ) -> Result<Directions<Option<T>>, Fault> {
        let parts: Vec<&str> = self.text.split(',').map(str::trim).collect();
        if parts.len() > 3 {
            let message = format!("`{}` has {} values", self.text, parts.len());
            let help = "at most three, for reads, writes and trims, with commas between them";
            return Err(Fault::with_help(message, help));
        }
        if parts.iter().all(|part| part.is_empty()) {
            return Err(Fault::new("the value is empty"));
        }
        let mut parsed = Vec::new();
        for part in parts {
            parsed.push(if part.is_empty() { None } else { Some(parse(self.part(part))?) });
        }
        let read = parsed.first().cloned().flatten();
        let write = if parsed.len() > 1 { parsed[1].clone() } else { read.clone() };
        let trim = if parsed.len() > 2 { parsed[2].clone() } else { write.clone() };
        Ok(Directions { read, write, trim })
    }

    /// Parses a comma list, and replaces the values that it gives.
    pub fn each<T: Clone>(
        self,
        onto: &mut Directions<T>,
        parse: impl Fn(Value) -> Result<T, Fault>,
    ) -> Result<(), Fault> {
        let given = self.directions(parse)?;
        onto.read = given.read.unwrap_or_else(|| onto.read.clone());
        onto.write = given.write.unwrap_or_else(|| onto.write.clone());
        onto.trim = given.trim.unwrap_or_else(|| onto.trim.clone());
        Ok(())
    }
}

/// Puts a parsed value into a field.
pub(crate) fn put<T>(field: &mut T, parsed: Result<T, Fault>) -> Result<(), Fault> {
    *field = parsed?;
    Ok(())
}

/// The number unless it is 0, which stands for no limit.
pub(crate) fn unless_zero(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

/// The error for an unknown word, with the known ones.
pub(crate) fn one_of(value: &str, words: &[&str]) -> Fault {
    Fault::with_help(format!("`{value}` is not known"), format!("one of {}", words.join(", ")))
}

/// Shares what given percentages leave of 100 among the blank ones. If it does not divide evenly,
/// the earlier ones get one more.
pub(crate) fn with_blanks(given: &[Option<u8>]) -> Vec<u8> {
    let sum: u64 = given.iter().flatten().map(|share| u64::from(*share)).sum();
    let mut left = 100u64.saturating_sub(sum);
    let mut blanks = given.iter().filter(|share| share.is_none()).count() as u64;
    let mut shares = Vec::with_capacity(given.len());
    for share in given {
        shares.push(share.unwrap_or_else(|| {
            // At least this blank is left, so the divisor is not 0; a share is at most 100.
            let share = left.div_ceil(blanks.max(1));
            left -= share.min(left);
            blanks = blanks.saturating_sub(1);
            u8::try_from(share).unwrap_or(100)
        }));
    }
    shares
}
