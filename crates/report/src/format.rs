//! Number formats: three significant digits, thousands separators, one unit.

/// Formats three significant digits with thousands separators: 0.0421, 4.21, 42.1, 421, 4,213.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", thousands(whole)),
        None => thousands(&text),
    }
}

/// Formats a count with thousands separators: 1,234,567.
pub fn count(value: u64) -> String {
    thousands(&value.to_string())
}

/// Formats a duration in a suitable unit: "0 s", "250 ns", "12.4 µs", "8.00 ms", "60.0 s".
pub fn duration(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        0.0 => "0 s".to_owned(),
        n if n < 1e3 => format!("{} ns", figure(n)),
        n if n < 1e6 => format!("{} µs", figure(n / 1e3)),
        n if n < 1e9 => format!("{} ms", figure(n / 1e6)),
        n => format!("{} s", figure(n / 1e9)),
    }
}

/// Formats a rate in MB/s (10^6 bytes a second).
pub fn rate(bytes_per_s: f64) -> String {
    format!("{} MB/s", figure(bytes_per_s / 1e6))
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let mut out = String::from(sign);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_significant_digits() {
        let shown: Vec<String> =
            [0.0, 0.04213, 0.4213, 4.2134, 42.134, 421.34, 4213.4, 1e9, 9.999, 99.99].map(figure).into();
        assert_eq!(shown, ["0", "0.0421", "0.421", "4.21", "42.1", "421", "4,213", "1,000,000,000", "10.0", "100"]);
    }

    #[test]
    fn durations_choose_their_unit() {
        let shown = [0, 250, 12_400, 8_000_000, 60_000_000_000].map(duration);
        assert_eq!(shown, ["0 s", "250 ns", "12.4 µs", "8.00 ms", "60.0 s"]);
    }

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
