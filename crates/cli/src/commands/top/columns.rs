//! The columns of the table of tenants.

use hoistway_control::top::{SortBy, TenantView};

use hoistway_units::figures::{figure, percent};

/// A column of the table.
pub struct Column {
    /// The two lines of the column's head.
    pub head: [&'static str; 2],
    /// The minimum width in columns of the terminal; the first column takes the remaining width.
    pub width: u16,
    /// Order in which columns are left out on a narrow terminal: the greatest rank first.
    pub rank: u8,
    /// Formats the cell of a tenant.
    pub text: fn(&TenantView) -> String,
    /// Sort key of the column.
    pub sort: SortBy,
}

/// All columns, from the left.
pub const COLUMNS: [Column; 18] = [
    column(["", "TENANT"], 12, 0, SortBy::Name, |row| row.name.clone()),
    column(["", "weight"], 6, 15, SortBy::Weight, |row| row.weight.to_string()),
    column(["", "class"], 11, 16, SortBy::Class, |row| row.class.clone()),
    column(["", "MB/s"], 6, 1, SortBy::Bytes, |row| megabytes(row.bytes_per_second)),
    column(["read", "MB/s"], 6, 11, SortBy::ReadBytes, |row| megabytes(row.read_bytes_per_second)),
    column(["write", "MB/s"], 6, 12, SortBy::WrittenBytes, |row| megabytes(row.written_bytes_per_second)),
    column(["", "IOPS"], 6, 4, SortBy::Requests, |row| count(row.requests_per_second)),
    column(["QUEUE", "p50"], 6, 8, SortBy::QueueP50, |row| time(row.queue_p50_ns)),
    column(["QUEUE", "p99"], 6, 5, SortBy::QueueP99, |row| time(row.queue_p99_ns)),
    column(["DEVICE", "p50"], 6, 10, SortBy::DeviceP50, |row| time(row.device_p50_ns)),
    column(["DEVICE", "p99"], 6, 7, SortBy::DeviceP99, |row| time(row.device_p99_ns)),
    column(["SHARE", "%"], 5, 2, SortBy::Share, share),
    column(["of", "time"], 4, 14, SortBy::ShareOfTime, |row| optional_percent(row.share_of_time)),
    column(["DUE", "%"], 4, 3, SortBy::Entitlement, |row| optional_percent(row.entitlement)),
    column(["", "IN"], 3, 9, SortBy::InFlight, |row| row.in_flight.to_string()),
    column(["", "WAIT"], 5, 6, SortBy::Waiting, |row| (row.waiting + row.held).to_string()),
    column(["of it", "held"], 5, 13, SortBy::Held, |row| row.held.to_string()),
    column(["err", "/s"], 5, 17, SortBy::Errors, |row| count(row.errors_per_second)),
];

/// The rank of the first column that a name of usual length precedes: names are shortened to
/// [`COLUMNS`]' first width for the columns of lower ranks only.
const FIRST_DETAIL: u8 = 11;

/// Greatest width of names beside columns from [`FIRST_DETAIL`] on.
const NAME_WIDTH_MAX: u16 = 32;

/// Width of the gap between two columns.
pub const GAP: u16 = 1;

/// A column that a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownColumn {
    /// Index in [`COLUMNS`].
    pub index: usize,
    /// Width that holds its head and every cell; of the first column the remaining width.
    pub width: u16,
}

/// Selects the columns for a terminal of this width, from the left. A column has its whole width or
/// is left out, so that no figure loses digits; the columns of the greatest rank are left out
/// first. Only the names of the first column are shortened.
pub fn shown_columns(rows: &[&TenantView], terminal_width: u16) -> Vec<ShownColumn> {
    let needed = |column: &Column| {
        let longest = rows.iter().map(|row| (column.text)(row).chars().count()).max().unwrap_or(0);
        column.width.max(u16::try_from(longest).unwrap_or(u16::MAX))
    };
    let mut by_rank: Vec<usize> = (1..COLUMNS.len()).collect();
    by_rank.sort_by_key(|index| COLUMNS[*index].rank);
    let mut free = terminal_width.saturating_sub(COLUMNS[0].width);
    let mut name_width = COLUMNS[0].width.min(terminal_width);
    let mut shown = Vec::new();
    for index in by_rank {
        let column = &COLUMNS[index];
        if column.rank == FIRST_DETAIL {
            // One more for the mark before a name.
            let wanted = needed(&COLUMNS[0]).saturating_add(1).min(NAME_WIDTH_MAX) - COLUMNS[0].width;
            name_width += wanted.min(free);
            free = free.saturating_sub(wanted);
        }
        let width = needed(column);
        let Some(left) = free.checked_sub(width.saturating_add(GAP)) else { break };
        free = left;
        shown.push(ShownColumn { index, width });
    }
    name_width += free;
    shown.push(ShownColumn { index: 0, width: name_width });
    shown.sort_by_key(|column| column.index);
    shown
}

/// Index of the column by which the screen is sorted at first: MB/s.
pub const FIRST_SORT: usize = 3;

const fn column(
    head: [&'static str; 2],
    width: u16,
    rank: u8,
    sort: SortBy,
    text: fn(&TenantView) -> String,
) -> Column {
    Column { head, width, rank, text, sort }
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
    fn columns_are_left_out_by_rank_and_every_rank_is_used_once() {
        let mut ranks: Vec<u8> = COLUMNS.iter().map(|column| column.rank).collect();
        ranks.sort_unstable();
        assert!(ranks.iter().map(|rank| usize::from(*rank)).eq(0..COLUMNS.len()), "{ranks:?}");
        for width in 0..200 {
            let [narrow, wide] = [width, width + 1].map(|width| shown_columns(&[], width));
            assert!(narrow.iter().all(|column| wide.iter().any(|other| other.index == column.index)), "{width}");
            let taken: u16 = narrow.iter().map(|column| column.width + GAP).sum();
            assert!(taken - GAP <= width, "{taken} at {width}");
        }
        let heads =
            |width| shown_columns(&[], width).iter().map(|column| COLUMNS[column.index].head[1]).collect::<Vec<_>>();
        assert_eq!(heads(60), ["TENANT", "MB/s", "IOPS", "p99", "p99", "%", "%", "WAIT"]);
        assert_eq!(heads(80), ["TENANT", "MB/s", "IOPS", "p50", "p99", "p50", "p99", "%", "%", "IN", "WAIT"]);
        assert_eq!(heads(130).len(), COLUMNS.len());
    }
}
