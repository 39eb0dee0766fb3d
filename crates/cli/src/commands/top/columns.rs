//! The columns of the table of tenants.

use hoistway_control::top::{SortBy, TenantView};

use hoistway_units::figures::{figure, percent};

/// A column of the table.
pub struct Column {
    /// The two lines of the column's head.
    pub head: [&'static str; 2],
    /// Width in columns of the terminal; the first column takes the remaining width.
    pub width: u16,
    /// Least width of a terminal that shows the column, in columns.
    pub terminal_width_min: u16,
    /// Formats the cell of a tenant.
    pub text: fn(&TenantView) -> String,
    /// Sort key of the column.
    pub sort: SortBy,
}

/// All columns, from the left.
pub const COLUMNS: [Column; 18] = [
    column(["", "TENANT"], 12, 0, SortBy::Name, |row| row.name.clone()),
    column(["", "weight"], 6, WIDE, SortBy::Weight, |row| row.weight.to_string()),
    column(["", "class"], 11, WIDE, SortBy::Class, |row| row.class.clone()),
    column(["", "MB/s"], 6, 0, SortBy::Bytes, |row| megabytes(row.bytes_per_second)),
    column(["read", "MB/s"], 6, WIDE, SortBy::ReadBytes, |row| megabytes(row.read_bytes_per_second)),
    column(["write", "MB/s"], 6, WIDE, SortBy::WrittenBytes, |row| megabytes(row.written_bytes_per_second)),
    column(["", "IOPS"], 6, 0, SortBy::Requests, |row| count(row.requests_per_second)),
    column(["QUEUE", "p50"], 6, 0, SortBy::QueueP50, |row| time(row.queue_p50_ns)),
    column(["QUEUE", "p99"], 6, 0, SortBy::QueueP99, |row| time(row.queue_p99_ns)),
    column(["DEVICE", "p50"], 6, 0, SortBy::DeviceP50, |row| time(row.device_p50_ns)),
    column(["DEVICE", "p99"], 6, 0, SortBy::DeviceP99, |row| time(row.device_p99_ns)),
    column(["SHARE", "%"], 5, 0, SortBy::Share, share),
    column(["of", "time"], 4, WIDE, SortBy::ShareOfTime, |row| optional_percent(row.share_of_time)),
    column(["DUE", "%"], 4, 0, SortBy::Entitlement, |row| optional_percent(row.entitlement)),
    column(["", "IN"], 3, 0, SortBy::InFlight, |row| row.in_flight.to_string()),
    column(["", "WAIT"], 5, 0, SortBy::Waiting, |row| (row.waiting + row.held).to_string()),
    column(["of it", "held"], 5, WIDE, SortBy::Held, |row| row.held.to_string()),
    column(["err", "/s"], 5, WIDE, SortBy::Errors, |row| count(row.errors_per_second)),
];

/// Width of a terminal, in columns, from which on all columns of the table are shown.
const WIDE: u16 = 130;

/// Index of the column by which the screen is sorted at first: MB/s.
pub const FIRST_SORT: usize = 3;

const fn column(
    head: [&'static str; 2],
    width: u16,
    terminal_width_min: u16,
    sort: SortBy,
    text: fn(&TenantView) -> String,
) -> Column {
    Column { head, width, terminal_width_min, text, sort }
}

/// Megabytes (10^6 bytes) a second.
pub fn megabytes(bytes_per_second: f64) -> String {
    count(bytes_per_second / 1e6)
}

/// Three significant digits in at most six columns.
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
    // The bounds are the values at which rounding reaches the next unit.
    match ns as f64 {
        ns if ns < 999.5 => format!("{ns:.0}ns"),
        ns if ns < 999.5e3 => format!("{}us", figure(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{}ms", figure(ns / 1e6)),
        ns => format!("{}s", figure(ns / 1e9)),
    }
}

/// A share as per cent without its sign, or a dash.
fn optional_percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), percent)
}

/// The share of the bytes, with a mark if it is below the entitlement.
fn share(row: &TenantView) -> String {
    let mark = if row.is_short() { "!" } else { "" };
    format!("{mark}{}", optional_percent(row.share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_fit_their_columns() {
        let times = [0, 40, 850, 999_499, 999_500, 12_345_678, 999_500_000, 7_890_000_000];
        let shown = times.map(|ns| time(Some(ns)));
        assert_eq!(shown, ["0ns", "40ns", "850ns", "999us", "1.00ms", "12.3ms", "1.00s", "7.89s"]);
        assert_eq!([0.0, 0.00001, 4.5, 123_456.7, 999_600.0].map(count), ["0", "0", "4.50", "123457", "1.00M"]);
    }

    #[test]
    fn the_narrow_table_fits_80_columns() {
        let narrow = COLUMNS.iter().filter(|column| column.terminal_width_min <= 80);
        let (columns, width) = narrow.fold((0, 0), |(columns, width), column| (columns + 1, width + column.width));
        assert!(width + columns - 1 <= 80, "{width} and {columns}");
        let all: u16 = COLUMNS.iter().map(|column| column.width + 1).sum();
        assert!(all - 1 <= WIDE, "{all}");
    }
}
