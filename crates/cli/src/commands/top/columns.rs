//! The columns of the table of tenants.

use std::cmp::Ordering;

use super::view::Row;
use crate::figures::{figure, percent};

/// A column.
pub struct Column {
    /// The two lines of its head.
    pub head: [&'static str; 2],
    /// Its width in columns of the terminal; the first one is as wide as there is room.
    pub width: u16,
    /// The least width of a terminal that it is shown in.
    pub from_width: u16,
    /// What stands in a row.
    pub text: fn(&Row) -> String,
    /// Which of two rows comes first when it is sorted by.
    pub order: fn(&Row, &Row) -> Ordering,
}

/// A column of latencies: the longest first.
macro_rules! latency {
    ($of:literal, $what:literal, $field:ident) => {
        column([$of, $what], 6, 0, |row| time(row.$field), |one, other| other.$field.cmp(&one.$field))
    };
}

/// All columns, from the left.
pub const COLUMNS: [Column; 18] = [
    column(["", "TENANT"], 12, 0, |row| row.name.clone(), |one, other| one.name.cmp(&other.name)),
    column(["", "weight"], 6, 130, |row| row.weight.to_string(), |one, other| other.weight.cmp(&one.weight)),
    column(["", "class"], 11, 130, |row| row.class.clone(), |one, other| one.class.cmp(&other.class)),
    column(
        ["", "MB/s"],
        6,
        0,
        |row| megabytes(row.bytes_per_second),
        |one, other| most(one.bytes_per_second, other.bytes_per_second),
    ),
    column(
        ["read", "MB/s"],
        6,
        130,
        |row| megabytes(row.read_bytes_per_second),
        |one, other| most(one.read_bytes_per_second, other.read_bytes_per_second),
    ),
    column(
        ["write", "MB/s"],
        6,
        130,
        |row| megabytes(row.written_bytes_per_second),
        |one, other| most(one.written_bytes_per_second, other.written_bytes_per_second),
    ),
    column(
        ["", "IOPS"],
        6,
        0,
        |row| count(row.requests_per_second),
        |one, other| most(one.requests_per_second, other.requests_per_second),
    ),
    latency!("QUEUE", "p50", queue_p50_ns),
    latency!("QUEUE", "p99", queue_p99_ns),
    latency!("DEVICE", "p50", device_p50_ns),
    latency!("DEVICE", "p99", device_p99_ns),
    column(["SHARE", "%"], 5, 0, share, |one, other| most(one.share.unwrap_or(-1.0), other.share.unwrap_or(-1.0))),
    column(
        ["of", "time"],
        4,
        130,
        |row| part(row.share_of_time),
        |one, other| most(one.share_of_time.unwrap_or(-1.0), other.share_of_time.unwrap_or(-1.0)),
    ),
    column(
        ["DUE", "%"],
        4,
        0,
        |row| part(row.entitlement),
        |one, other| most(one.entitlement.unwrap_or(-1.0), other.entitlement.unwrap_or(-1.0)),
    ),
    column(["", "IN"], 3, 0, |row| row.in_flight.to_string(), |one, other| other.in_flight.cmp(&one.in_flight)),
    column(
        ["", "WAIT"],
        5,
        0,
        |row| (row.waiting + row.held).to_string(),
        |one, other| (other.waiting + other.held).cmp(&(one.waiting + one.held)),
    ),
    column(["of it", "held"], 5, 130, |row| row.held.to_string(), |one, other| other.held.cmp(&one.held)),
    column(
        ["err", "/s"],
        5,
        130,
        |row| count(row.errors_per_second),
        |one, other| most(one.errors_per_second, other.errors_per_second),
    ),
];

/// The column that a screen is sorted by at first: MB/s.
pub const FIRST_SORT: usize = 3;

const fn column(
    head: [&'static str; 2],
    width: u16,
    from_width: u16,
    text: fn(&Row) -> String,
    order: fn(&Row, &Row) -> Ordering,
) -> Column {
    Column { head, width, from_width, text, order }
}

/// Megabytes (10^6) a second.
pub fn megabytes(bytes_per_second: f64) -> String {
    count(bytes_per_second / 1e6)
}

/// Three digits, in at most six columns.
pub fn count(value: f64) -> String {
    match value {
        v if v >= 999_500.0 => format!("{}M", figure(v / 1e6)),
        v if v < 0.000_05 => "0".to_owned(),
        v => figure(v),
    }
}

/// A time in at most six columns: `740ns`, `12.3us`, `4.56ms`, `7.89s`.
pub fn time(ns: Option<u64>) -> String {
    let Some(ns) = ns else { return "-".to_owned() };
    // The bounds lie where rounding reaches the next unit.
    match ns as f64 {
        ns if ns < 999.5 => format!("{ns:.0}ns"),
        ns if ns < 999.5e3 => format!("{}us", figure(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{}ms", figure(ns / 1e6)),
        ns => format!("{}s", figure(ns / 1e9)),
    }
}

/// A share as per cent.
pub fn part(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), percent)
}

fn share(row: &Row) -> String {
    let mark = if row.is_short() { "!" } else { "" };
    format!("{mark}{}", part(row.share))
}

fn most(one: f64, other: f64) -> Ordering {
    other.total_cmp(&one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_keep_to_their_columns() {
        let times = [0, 40, 850, 999_499, 999_500, 12_345_678, 999_500_000, 7_890_000_000];
        let shown = times.map(|ns| time(Some(ns)));
        assert_eq!(shown, ["0ns", "40ns", "850ns", "999us", "1.00ms", "12.3ms", "1.00s", "7.89s"]);
        assert_eq!([0.0, 0.00001, 4.5, 123_456.7, 999_600.0].map(count), ["0", "0", "4.50", "123457", "1.00M"]);
    }

    #[test]
    fn the_narrow_columns_fit_into_80() {
        let narrow = COLUMNS.iter().filter(|column| column.from_width <= 80);
        let (columns, width) = narrow.fold((0, 0), |(columns, width), column| (columns + 1, width + column.width));
        assert!(width + columns - 1 <= 80, "{width} and {columns}");
        let all: u16 = COLUMNS.iter().map(|column| column.width + 1).sum();
        assert!(all - 1 <= 130, "{all}");
    }
}
