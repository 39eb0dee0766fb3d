//! Units of time: known, told, or assumed with what speaks for them.

use super::fields::{decimal_ns, number, shown};
use crate::lines::LINE_BYTES_MAX;

/// Less often than once in so many ns, on average, is no trace that anybody would keep.
const GAP_NS_MAX: f64 = 100e9;
/// More often than that, on average, no device does anything (20 M a second).
const GAP_NS_MIN: f64 = 50.0;

/// From Windows' beginning of time to Unix's, in ticks of 100 ns.
const TICKS_1601_TO_1970: u64 = 11_644_473_600 * 10_000_000;

/// What the times of a text count.
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
    /// `s`.
    Second,
}

impl TimeUnit {
    /// All, from the finest on.
    pub const ALL: [TimeUnit; 6] = [
        TimeUnit::Picosecond,
        TimeUnit::Nanosecond,
        TimeUnit::Tick,
        TimeUnit::Microsecond,
        TimeUnit::Millisecond,
        TimeUnit::Second,
    ];

    /// As it is written: `us`.
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

    /// By its name.
    pub fn from_name(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// How many ps it has.
    pub(crate) const fn ps(self) -> u64 {
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

/// Reads a time as people write it, in ns: `1.5` and `1.5s` are seconds, `20ms`, `500ns`.
///
/// ```
/// assert_eq!(hoistway_trace::time_ns("1.5"), Ok(1_500_000_000));
/// assert_eq!(hoistway_trace::time_ns("20ms"), Ok(20_000_000));
/// ```
///
/// # Errors
/// What is no such time, with what would be one.
pub fn time_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let unit = if unit.is_empty() { Some(TimeUnit::Second) } else { TimeUnit::from_name(unit.trim_start()) };
    unit.and_then(|unit| decimal_ns(count.as_bytes(), unit.ps(), "").ok()).ok_or_else(|| {
        format!("`{text}` is no time: seconds, as in 1.5, or a number with ns, us, ms or s would be right")
    })
}

/// What the beginning of a text shows of its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The least, in whatever unit.
    pub least: u64,
    /// The greatest.
    pub greatest: u64,
    /// How many.
    pub records: u64,
}

impl Head {
    /// From the first bytes of a text, and what finds the time in a line.
    pub fn of(head: &[u8], time: impl Fn(&[u8]) -> Option<u64>) -> Head {
        // The last line may be cut.
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

    /// From one record to the next on average, in ns; none of fewer than two, or where all have the same time.
    fn gap_ns(&self, unit: TimeUnit) -> Option<f64> {
        let span = self.greatest - self.least;
        (self.records > 1 && span > 0).then(|| span as f64 * unit.ps() as f64 / 1e3 / (self.records - 1) as f64)
    }

    fn is_plausible(&self, unit: TimeUnit) -> bool {
        self.gap_ns(unit).is_none_or(|gap| (GAP_NS_MIN..=GAP_NS_MAX).contains(&gap))
    }

    /// As in `2,000 requests in 3.2 s, 625 a second`.
    fn told(&self, unit: TimeUnit) -> String {
        match self.gap_ns(unit) {
            None => "too few to judge by".to_owned(),
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

/// The unit of a text's times: what was told, or what is usual for the format if it makes sense of this text, with a remark about that.
///
/// # Errors
/// When the usual unit makes no sense of the text: what has to be told, and what each unit would mean.
pub(crate) fn decide_unit(
    told: Option<TimeUnit>,
    usual: TimeUnit,
    why: &str,
    head: &Head,
) -> Result<(TimeUnit, Option<String>), String> {
    if let Some(unit) = told {
        return Ok((unit, None));
    }
    if head.is_plausible(usual) {
        let name = usual.name();
        return Ok((
            usual,
            Some(format!("times are taken as {name} ({why}): {}; --time-unit tells another", head.told(usual))),
        ));
    }
    Err(ask(head, &format!("as {} ({why}), {}", usual.name(), head.told(usual))))
}

/// A clock that may count from a day on: ns since 1970 are what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    unit: TimeUnit,
    /// What it shows at the beginning of 1970, or where there is no day at its 0.
    zero: u64,
}

impl Epoch {
    /// A time, in ns.
    ///
    /// # Errors
    /// When it is none.
    pub fn ns(&self, field: &[u8]) -> Result<u64, String> {
        if self.zero == 0 {
            return decimal_ns(field, self.unit.ps(), "the time");
        }
        let ticks: u64 = number(field, "the time")?;
        let since =
            ticks.checked_sub(self.zero).ok_or_else(|| format!("the time {} lies before 1970", shown(field)))?;
        since.checked_mul(self.unit.ps() / 1000).ok_or_else(|| format!("the time {} is too large", shown(field)))
    }

    /// The unit of it, in ps.
    pub fn unit_ps(&self) -> u64 {
        self.unit.ps()
    }
}

/// The clock of a text whose times are most often those of a day: a time of the years 1990 to 2100 can be of one clock only.
///
/// # Errors
/// When it is none of those and no unit was told: what has to be told, and what each unit would mean.
pub(crate) fn decide_epoch(
    told: Option<TimeUnit>,
    usual: TimeUnit,
    head: &Head,
) -> Result<(Epoch, Option<String>), String> {
    let of_a_day = DAYS.into_iter().find(|(unit, _)| {
        // The beginnings of the years 1990 and 2100, in s since 1970.
        let year = |seconds: u64| zero_of(*unit) + seconds * (TimeUnit::Second.ps() / unit.ps());
        let years = year(631_152_000)..year(4_102_444_800);
        head.records > 0 && years.contains(&head.least) && years.contains(&head.greatest)
    });
    match (told, of_a_day) {
        (None, Some((unit, what))) => {
            let remark = (unit != usual).then(|| format!("times are taken as {what}: {}", head.told(unit)));
            Ok((Epoch { unit, zero: zero_of(unit) }, remark))
        }
        (Some(unit), Some((of_a_day, _))) if unit == of_a_day => Ok((Epoch { unit, zero: zero_of(unit) }, None)),
        (Some(unit), _) => Ok((Epoch { unit, zero: 0 }, None)),
        (None, None) => {
            let usual = DAYS.iter().find(|(unit, _)| *unit == usual).map_or(usual.name(), |(_, what)| what);
            Err(ask(head, &format!("{} is not of the years 1990 to 2100 in {usual}", head.least)))
        }
    }
}

/// The clocks that count from a day on.
const DAYS: [(TimeUnit, &str); 4] = [
    (TimeUnit::Tick, "Windows' ticks of 100 ns since 1601"),
    (TimeUnit::Nanosecond, "ns since 1970"),
    (TimeUnit::Microsecond, "us since 1970"),
    (TimeUnit::Millisecond, "ms since 1970"),
];

/// What the clock of a unit shows at the beginning of 1970.
const fn zero_of(unit: TimeUnit) -> u64 {
    match unit {
        TimeUnit::Tick => TICKS_1601_TO_1970,
        _ => 0,
    }
}

/// What is asked when the unit cannot be told from a text.
fn ask(head: &Head, doubt: &str) -> String {
    let plausible = |unit: &TimeUnit| head.gap_ns(*unit).is_some() && head.is_plausible(*unit);
    let candidates: Vec<String> = TimeUnit::ALL
        .into_iter()
        .filter(plausible)
        .map(|unit| format!("with {}, {}", unit.name(), head.told(unit)))
        .collect();
    let candidates = if candidates.is_empty() {
        format!("one of {}", TimeUnit::ALL.map(TimeUnit::name).join(", "))
    } else {
        candidates.join("; ")
    };
    format!("the unit of its times cannot be told from the text: {doubt}. Tell it with --time-unit: {candidates}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const THOUSAND_A_SECOND_IN_US: Head = Head { least: 0, greatest: 999_000, records: 1000 };

    #[test]
    fn the_usual_unit_is_taken_and_told_where_it_makes_sense() {
        let (unit, remark) =
            decide_unit(None, TimeUnit::Microsecond, "as fio has them", &THOUSAND_A_SECOND_IN_US).unwrap();
        assert_eq!(unit, TimeUnit::Microsecond);
        assert!(remark.unwrap().contains("1000 a second"));
        let told = decide_unit(Some(TimeUnit::Second), TimeUnit::Microsecond, "", &THOUSAND_A_SECOND_IN_US);
        assert_eq!(told, Ok((TimeUnit::Second, None)));
    }

    #[test]
    fn a_unit_that_makes_no_sense_is_asked_for_with_what_each_would_mean() {
        // 1,000 requests a second in ps, read as us: one in 1,000 s.
        let head = Head { least: 0, greatest: 999_000_000_000, records: 1000 };
        let asked = decide_unit(None, TimeUnit::Microsecond, "as fio has them", &head).unwrap_err();
        assert!(asked.contains("--time-unit") && asked.contains("with ps") && asked.contains("with ns"), "{asked}");
        assert!(!asked.contains("with s,"), "{asked}");
    }

    #[test]
    fn the_head_of_a_text_leaves_its_last_line_out() {
        let head = Head::of(b"head\n5\n3\n9\n1", |line| std::str::from_utf8(line).ok()?.parse().ok());
        assert_eq!(head, Head { least: 3, greatest: 9, records: 3 });
    }
}
