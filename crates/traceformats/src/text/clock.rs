//! Units of time in texts: specified by the user, known from the format, or assumed with a
//! plausibility check.

use super::fields::{decimal_ns, number, shown};
use crate::lines::LINE_BYTES_MAX;

/// Largest plausible mean interval between requests, in ns.
const GAP_NS_MAX: f64 = 100e9;
/// Smallest plausible mean interval between requests, in ns: 20 M requests a second.
const GAP_NS_MIN: f64 = 50.0;

/// Time from the epoch of Windows (1601) to 1970, in ticks of 100 ns.
const TICKS_1601_TO_1970: u64 = 11_644_473_600 * 10_000_000;

/// Unit of the times in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `ps`: 10^-12 s.
    Picosecond,
    /// `ns`: 10^-9 s.
    Nanosecond,
    /// `100ns`: the ticks of Windows.
    Tick,
    /// `us`: 10^-6 s.
    Microsecond,
    /// `ms`: 10^-3 s.
    Millisecond,
    /// `s`: seconds.
    Second,
}

impl TimeUnit {
    /// All units, finest first.
    pub const ALL: [TimeUnit; 6] = [
        TimeUnit::Picosecond,
        TimeUnit::Nanosecond,
        TimeUnit::Tick,
        TimeUnit::Microsecond,
        TimeUnit::Millisecond,
        TimeUnit::Second,
    ];

    /// Name of the unit on the command line, such as `us`.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Picosecond => "ps",
            TimeUnit::Nanosecond => "ns",
            TimeUnit::Tick => "100ns",
            TimeUnit::Microsecond => "us",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Second => "s",
        }
    }

    /// Returns the unit with a name.
    pub fn from_name(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Length of the unit in ps.
    pub const fn ps(self) -> u64 {
        match self {
            TimeUnit::Picosecond => 1,
            TimeUnit::Nanosecond => 1_000,
            TimeUnit::Tick => 100_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Millisecond => 1_000_000_000,
            TimeUnit::Second => 1_000_000_000_000,
        }
    }
}

impl std::str::FromStr for TimeUnit {
    type Err = String;

    fn from_str(name: &str) -> Result<TimeUnit, String> {
        TimeUnit::from_name(name).ok_or_else(|| {
            let known = TimeUnit::ALL.map(TimeUnit::name).join(", ");
            format!("unknown unit `{name}`: expected one of {known}")
        })
    }
}

/// Parses a time as written by a user and returns ns. `1.5` and `1.5s` are seconds; other examples
/// are `20ms` and `500ns`.
///
/// ```
/// assert_eq!(hoistway_traceformats::text::time_ns("1.5"), Ok(1_500_000_000));
/// assert_eq!(hoistway_traceformats::text::time_ns("20ms"), Ok(20_000_000));
/// ```
///
/// # Errors
/// Returns a message that shows the expected form.
pub fn time_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let unit = if unit.is_empty() { Some(TimeUnit::Second) } else { TimeUnit::from_name(unit.trim_start()) };
    unit.and_then(|unit| decimal_ns(count.as_bytes(), unit.ps(), "").ok())
        .ok_or_else(|| format!("`{text}` is no time: expected seconds such as 1.5, or a number with ns, us, ms or s"))
}

/// Parses a time in a unit and returns ns. Windows' ticks of 100 ns since 1601 become ns since
/// 1970, if they are times after 1970.
///
/// # Errors
/// Fails if the field is no time.
pub fn ticks_ns(field: &[u8], unit: TimeUnit) -> Result<u64, String> {
    match number::<u64>(field, "") {
        Ok(ticks @ TICKS_1601_TO_1970..) if unit == TimeUnit::Tick => {
            let since = ticks - TICKS_1601_TO_1970;
            since.checked_mul(100).ok_or_else(|| format!("the time {} is too large", shown(field)))
        }
        _ => decimal_ns(field, unit.ps(), "the time"),
    }
}

/// Parses a date and a time of the day such as `2026-03-01 10:00:00.123456` (or with a `T` between
/// them), which are taken as UTC, and returns ns since 1970.
///
/// # Errors
/// Fails if the field is no such time, or a time before 1970.
pub fn date_ns(field: &[u8]) -> Result<u64, String> {
    date_of(field)
        .ok_or_else(|| format!("the time {} is no date such as 2026-03-01 10:00:00.123456 from 1970 on", shown(field)))
}

fn date_of(field: &[u8]) -> Option<u64> {
    let field = field.strip_suffix(b"Z").unwrap_or(field);
    let (date, time) = field.split_at_checked(10)?;
    let time = time.strip_prefix(b" ").or_else(|| time.strip_prefix(b"T"))?;
    let part = |text: &[u8], from: usize, to: usize| number::<u64>(text.get(from..to)?, "").ok();
    let is_separated = [(date, 4, b'-'), (date, 7, b'-'), (time, 2, b':'), (time, 5, b':')];
    if !is_separated.into_iter().all(|(text, at, byte): (&[u8], usize, u8)| text.get(at) == Some(&byte)) {
        return None;
    }
    let (year, month, day) = (part(date, 0, 4)?, part(date, 5, 7)?, part(date, 8, 10)?);
    let (hour, minute) = (part(time, 0, 2)?, part(time, 3, 5)?);
    if !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
    {
        return None;
    }
    let second_ns = decimal_ns(time.get(6..)?, TimeUnit::Second.ps(), "").ok().filter(|ns| *ns < 61_000_000_000)?;
    // Days since 1970 in the Gregorian calendar; the year begins in March, so that the leap day is
    // its last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60;
    seconds.checked_mul(1_000_000_000)?.checked_add(second_ns)
}

/// Times at the beginning of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Smallest time, in the unit of the text.
    pub least: u64,
    /// Largest time, in the unit of the text.
    pub greatest: u64,
    /// Number of times.
    pub records: u64,
}

impl Head {
    /// Scans the first bytes of a text; `time` extracts the time from a line.
    pub fn of(head: &[u8], time: impl Fn(&[u8]) -> Option<u64>) -> Head {
        // The last line may be incomplete.
        let end = memchr::memrchr(b'\n', head).unwrap_or(0);
        let whole = head.get(..end).unwrap_or_default();
        let mut seen = Head::default();
        for at in whole
            .split(|&byte| byte == b'\n')
            .filter(|line| line.len() < LINE_BYTES_MAX)
            .filter_map(|line| time(line.trim_ascii()))
        {
            seen.least = if seen.records == 0 { at } else { seen.least.min(at) };
            seen.greatest = seen.greatest.max(at);
            seen.records += 1;
        }
        seen
    }

    /// Returns the mean interval between records in ns; None for fewer than two records, or if all
    /// have the same time.
    fn gap_ns(&self, unit: TimeUnit) -> Option<f64> {
        let span = self.greatest - self.least;
        (self.records > 1 && span > 0).then(|| span as f64 * unit.ps() as f64 / 1e3 / (self.records - 1) as f64)
    }

    fn is_plausible(&self, unit: TimeUnit) -> bool {
        self.gap_ns(unit).is_none_or(|gap| (GAP_NS_MIN..=GAP_NS_MAX).contains(&gap))
    }

    /// Describes the times if they have this unit, as in `the first 2000 requests take 3.2 s, 625 a
    /// second`.
    fn describe(&self, unit: TimeUnit) -> String {
        match self.gap_ns(unit) {
            None => "too few requests to judge".to_owned(),
            Some(gap) => {
                let span = (self.greatest - self.least) as f64 * unit.ps() as f64 / 1e3;
                let rate = 1e9 / gap;
                let digits = if rate < 10.0 { 2 } else { 0 };
                let span = if span < 1e9 { format!("{:.3} ms", span / 1e6) } else { format!("{:.1} s", span / 1e9) };
                format!("the first {} requests take {span}, {rate:.digits$} a second", self.records)
            }
        }
    }
}

/// Determines the unit of a text's times: the specified unit, or the usual unit of the format if it
/// is plausible, with a remark about the assumption.
///
/// # Errors
/// Fails if the usual unit is not plausible; the message shows the meaning of each unit.
pub fn decide_unit(
    specified: Option<TimeUnit>,
    usual: TimeUnit,
    why: &str,
    head: &Head,
) -> Result<(TimeUnit, Option<String>), String> {
    if let Some(unit) = specified {
        return Ok((unit, None));
    }
    if head.is_plausible(usual) {
        let name = usual.name();
        return Ok((
            usual,
            Some(format!("assuming times in {name} ({why}): {}; --time-unit overrides this", head.describe(usual))),
        ));
    }
    Err(undetermined(head, &format!("as {} ({why}), {}", usual.name(), head.describe(usual))))
}

/// A clock with a known epoch: converts times to ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    unit: TimeUnit,
    /// Reading of the clock at the start of 1970; 0 if the clock has no known epoch.
    zero: u64,
}

impl Epoch {
    /// Converts a time to ns.
    ///
    /// # Errors
    /// Fails if the field is not a valid time.
    pub fn ns(&self, field: &[u8]) -> Result<u64, String> {
        if self.zero == 0 {
            return decimal_ns(field, self.unit.ps(), "the time");
        }
        let ticks: u64 = number(field, "the time")?;
        let since = ticks.checked_sub(self.zero).ok_or_else(|| format!("the time {} is before 1970", shown(field)))?;
        since.checked_mul(self.unit.ps() / 1000).ok_or_else(|| format!("the time {} is too large", shown(field)))
    }

    /// Unit of the clock in ps.
    pub fn unit_ps(&self) -> u64 {
        self.unit.ps()
    }
}

/// Determines the clock of a text whose times usually count from an epoch. Times between 1990 and
/// 2100 match only one clock.
///
/// # Errors
/// Fails if no clock matches and no unit was specified; the message shows the meaning of each unit.
pub fn decide_epoch(
    specified: Option<TimeUnit>,
    usual: TimeUnit,
    head: &Head,
) -> Result<(Epoch, Option<String>), String> {
    let detected = EPOCH_CLOCKS.into_iter().find(|(unit, _)| {
        // Starts of the years 1990 and 2100, in s since 1970.
        let year = |seconds: u64| zero_of(*unit) + seconds * (TimeUnit::Second.ps() / unit.ps());
        let years = year(631_152_000)..year(4_102_444_800);
        head.records > 0 && years.contains(&head.least) && years.contains(&head.greatest)
    });
    match (specified, detected) {
        (None, Some((unit, what))) => {
            let remark = (unit != usual).then(|| format!("assuming times in {what}: {}", head.describe(unit)));
            Ok((Epoch { unit, zero: zero_of(unit) }, remark))
        }
        (Some(unit), Some((detected, _))) if unit == detected => Ok((Epoch { unit, zero: zero_of(unit) }, None)),
        (Some(unit), _) => Ok((Epoch { unit, zero: 0 }, None)),
        (None, None) => {
            let usual = EPOCH_CLOCKS.iter().find(|(unit, _)| *unit == usual).map_or(usual.name(), |(_, what)| what);
            Err(undetermined(head, &format!("{} is not between the years 1990 and 2100 in {usual}", head.least)))
        }
    }
}

/// Units of clocks with a known epoch, and their descriptions.
const EPOCH_CLOCKS: [(TimeUnit, &str); 4] = [
    (TimeUnit::Tick, "Windows' ticks of 100 ns since 1601"),
    (TimeUnit::Nanosecond, "ns since 1970"),
    (TimeUnit::Microsecond, "us since 1970"),
    (TimeUnit::Millisecond, "ms since 1970"),
];

/// Reading of the clock of a unit at the start of 1970.
const fn zero_of(unit: TimeUnit) -> u64 {
    match unit {
        TimeUnit::Tick => TICKS_1601_TO_1970,
        _ => 0,
    }
}

/// Builds the error message for an undetermined unit.
fn undetermined(head: &Head, doubt: &str) -> String {
    let plausible = |unit: &TimeUnit| head.gap_ns(*unit).is_some() && head.is_plausible(*unit);
    let candidates: Vec<String> = TimeUnit::ALL
        .into_iter()
        .filter(plausible)
        .map(|unit| format!("with {}, {}", unit.name(), head.describe(unit)))
        .collect();
    let candidates = if candidates.is_empty() {
        format!("one of {}", TimeUnit::ALL.map(TimeUnit::name).join(", "))
    } else {
        candidates.join("; ")
    };
    format!("cannot determine the unit of the times: {doubt}. Specify it with --time-unit: {candidates}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const THOUSAND_A_SECOND_IN_US: Head = Head { least: 0, greatest: 999_000, records: 1000 };

    #[test]
    fn the_usual_unit_is_assumed_and_reported_if_plausible() {
        let (unit, remark) =
            decide_unit(None, TimeUnit::Microsecond, "as fio has them", &THOUSAND_A_SECOND_IN_US).unwrap();
        assert_eq!(unit, TimeUnit::Microsecond);
        assert!(remark.unwrap().contains("1000 a second"));
        let specified = decide_unit(Some(TimeUnit::Second), TimeUnit::Microsecond, "", &THOUSAND_A_SECOND_IN_US);
        assert_eq!(specified, Ok((TimeUnit::Second, None)));
    }

    #[test]
    fn an_implausible_unit_must_be_specified() {
        // 1,000 requests a second in ps, read as us: one in 1,000 s.
        let head = Head { least: 0, greatest: 999_000_000_000, records: 1000 };
        let refused = decide_unit(None, TimeUnit::Microsecond, "as fio has them", &head).unwrap_err();
        assert!(
            refused.contains("--time-unit") && refused.contains("with ps") && refused.contains("with ns"),
            "{refused}"
        );
        assert!(!refused.contains("with s,"), "{refused}");
    }

    #[test]
    fn the_incomplete_last_line_is_ignored() {
        let head = Head::of(b"head\n5\n3\n9\n1", |line| std::str::from_utf8(line).ok()?.parse().ok());
        assert_eq!(head, Head { least: 3, greatest: 9, records: 3 });
    }
}
