//! Figures with three significant digits, and the words for differences, for tables and sentences.
//!
//! Differences have one form in all commands: [`change`] with a sign, [`magnitude`] without one,
//! [`agreement`] for several values, [`interval`] for an interval of confidence.

/// Formats a figure with three significant digits, more only before the point: 0.0421, 4.21, 42.1,
/// 421, 4213; a dash for a value that is not finite.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    // The bounds are the values at which rounding reaches the next power of ten.
    let decimals = match value.abs() {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// Formats a figure as [`figure`] does, with commas between groups of three digits before the
/// point: "0.0421", "4.21", "4,213".
pub fn grouped_figure(value: f64) -> String {
    let text = figure(value);
    let start = usize::from(text.starts_with('-'));
    let end = text.find('.').unwrap_or(text.len());
    if end <= start + 3 { text } else { [&text[..start], &separated(&text[start..end]), &text[end..]].concat() }
}

/// Formats a duration in a suitable unit: "0 s", "250 ns", "12.4 µs", "8.00 ms", "60.0 s",
/// "10.0 h".
pub fn duration(ns: u64) -> String {
    // The bounds of 999.5 are those at which three digits are rounded to the next unit.
    match ns as f64 {
        0.0 => "0 s".to_owned(),
        n if n < 999.5 => format!("{} ns", figure(n)),
        n if n < 999.5e3 => format!("{} µs", figure(n / 1e3)),
        n if n < 999.5e6 => format!("{} ms", figure(n / 1e6)),
        n if n < 7200e9 => format!("{} s", grouped_figure(n / 1e9)),
        n => format!("{} h", grouped_figure(n / 3600e9)),
    }
}

/// Formats a whole number with commas between groups of three digits: "1,234,567".
pub fn grouped(count: u64) -> String {
    separated(&count.to_string())
}

/// Puts commas between groups of three digits.
fn separated(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats bytes with a power of 1000: "160 GB", "1.06 GB", "4.00 TB".
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match value {
        v if v < 1e6 => format!("{} kB", figure(v / 1e3)),
        v if v < 1e9 => format!("{} MB", figure(v / 1e6)),
        v if v < 1e12 => format!("{} GB", figure(v / 1e9)),
        v => format!("{} TB", figure(v / 1e12)),
    }
}

/// Formats a share, 0 to 1, as per cent without its sign: "94.9", "0.4", "100".
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "-".to_owned();
    }
    if percent >= 99.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

/// The ratio from which a difference is a factor instead of a percentage.
const FACTOR_MIN: f64 = 3.0;
/// Relative differences below this value are 0.0 % when rounded to a tenth of a percent.
const ROUNDS_TO_ZERO: f64 = 0.0005;

/// Formats a change of a value, given as new / old - 1: "identical", "below 0.1 %", "+3.4 %",
/// "-12 %", "118 times", "1/340". An infinite change, from zero or to no value at all, is "more by
/// any measure" or "less by any measure".
///
/// ```
/// use hoistway_units::figures::change;
/// assert_eq!([0.0, 0.034, 117.14].map(change), ["identical", "+3.4 %", "118 times"]);
/// ```
pub fn change(relative: f64) -> String {
    let ratio = 1.0 + relative;
    match relative {
        r if r.is_nan() => "-".to_owned(),
        r if r == f64::INFINITY => "more by any measure".to_owned(),
        r if r == f64::NEG_INFINITY => "less by any measure".to_owned(),
        0.0 => "identical".to_owned(),
        r if r.abs() < ROUNDS_TO_ZERO => "below 0.1 %".to_owned(),
        _ if ratio >= FACTOR_MIN => format!("{} times", figure(ratio)),
        _ if ratio > 0.0 && ratio < 0.005 => format!("1/{}", figure(1.0 / ratio)),
        r => signed_percent(r),
    }
}

/// Formats the size of a relative difference, without a sign: "0 %", "less than 0.1 %", "3.4 %",
/// "a factor of 118"; "any measure" for an infinite one.
pub fn magnitude(relative: f64) -> String {
    match relative.abs() {
        r if r.is_nan() => "-".to_owned(),
        r if r.is_infinite() => "any measure".to_owned(),
        0.0 => "0 %".to_owned(),
        r if r < ROUNDS_TO_ZERO => "less than 0.1 %".to_owned(),
        r if r >= FACTOR_MIN - 1.0 => format!("a factor of {}", figure(1.0 + r)),
        r => signed_percent(r).trim_start_matches('+').to_owned(),
    }
}

/// Says how far values are apart, for the end of "the bandwidths are ...": "identical", "within
/// 2.3 % of each other". `apart` is (most - least) / most.
pub fn agreement(apart: f64) -> String {
    match apart.abs() {
        0.0 => "identical".to_owned(),
        // "Within" holds only if the bound is not rounded down to zero.
        apart if apart < ROUNDS_TO_ZERO => "within 0.1 % of each other".to_owned(),
        apart => format!("within {} of each other", magnitude(apart)),
    }
}

/// Formats an interval of changes, each given as new / old - 1, for values that are never negative:
/// "between -12 % and +40 %". A symmetric interval around a mean may reach below -100 %, which such
/// a value cannot lose: the lower end is -100 % then.
pub fn interval(low: f64, high: f64) -> String {
    let end = |relative: f64| if relative == 0.0 { "0 %".to_owned() } else { change(relative.max(-1.0)) };
    format!("between {} and {}", end(low), end(high))
}

/// Formats a relative value as per cent with its sign: a tenth below 10 %, none above.
fn signed_percent(relative: f64) -> String {
    let percent = relative * 100.0;
    if percent.abs() < 9.95 { format!("{percent:+.1} %") } else { format!("{percent:+.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_percentage_or_a_factor() {
        let shown = [0.0004, -0.0004, 0.0994, 0.0996, 1.5, 2.0, 117.14, -0.5, -0.999, -1.0].map(change);
        let small = ["below 0.1 %", "below 0.1 %", "+9.9 %", "+10 %", "+150 %"];
        let large = ["3.00 times", "118 times", "-50 %", "1/1000", "-100 %"];
        assert_eq!(shown, [small, large].concat().as_slice());
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY].map(change), ["more by any measure", "less by any measure"]);
        assert_eq!((change(0.0).as_str(), change(f64::NAN).as_str()), ("identical", "-"));
    }

    #[test]
    fn a_magnitude_has_no_sign() {
        let shown = [0.0, 0.0003, -0.034, 0.2, 1.42, 117.14, f64::INFINITY].map(magnitude);
        assert_eq!(shown, ["0 %", "less than 0.1 %", "3.4 %", "20 %", "142 %", "a factor of 118", "any measure"]);
    }

    #[test]
    fn equal_values_are_identical_and_never_within_nothing() {
        let shown = [0.0, 0.0001, 0.023].map(agreement);
        assert_eq!(shown, ["identical", "within 0.1 % of each other", "within 2.3 % of each other"]);
    }

    #[test]
    fn an_interval_ends_at_the_loss_of_everything() {
        assert_eq!(interval(-1.73, 0.4), "between -100 % and +40 %");
        assert_eq!(interval(-0.12, 117.14), "between -12 % and 118 times");
        assert_eq!(interval(0.0, 0.05), "between 0 % and +5.0 %");
    }

    #[test]
    fn figures_have_three_significant_digits() {
        let shown = [0.0, 0.04213, 0.4213, 9.999, 42.134, 99.99, 4213.4, f64::INFINITY].map(figure);
        assert_eq!(shown, ["0", "0.0421", "0.421", "10.0", "42.1", "100", "4213", "-"]);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let figures = [0.04213, 421.3, 4213.4, -4213.4, -421.3, 1e9, f64::NAN].map(grouped_figure);
        assert_eq!(figures, ["0.0421", "421", "4,213", "-4,213", "-421", "1,000,000,000", "-"]);
    }

    #[test]
    fn bytes_have_the_suitable_prefix() {
        assert_eq!([42_000, 160_000_000_000, 4_000_000_000_000].map(bytes), ["42.0 kB", "160 GB", "4.00 TB"]);
    }

    #[test]
    fn times_have_the_suitable_unit() {
        let times = [0, 250, 12_400, 33_000, 999_900, 4_212_000, 11_585_000_000, 3_600_000_000_000, 36_000_000_000_000];
        let shown = ["0 s", "250 ns", "12.4 µs", "33.0 µs", "1.00 ms", "4.21 ms", "11.6 s", "3,600 s", "10.0 h"];
        assert_eq!(times.map(duration), shown);
    }

    #[test]
    fn shares_have_a_tenth_of_a_percent() {
        assert_eq!([0.0, 0.9493, 0.9996, 1.042].map(percent), ["0.0", "94.9", "100", "104"]);
    }
}
