//! Sizes, times and rates in fio's notation: parsing for job files, printing for reports.
//!
//! hoistway-units does the parsing, which the server's configuration shares; the notation of fio's
//! report is here. The rounding of printed figures was observed by running fio 3.33.

pub use hoistway_units::{KbBase, TimeUnit, UnitError, parse_size, parse_time_ns, print_size, print_time};

/// The prefixes of a printed figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefixes {
    /// KiB, MiB: powers of 1024.
    Binary,
    /// kB, MB: powers of 1000.
    Decimal,
}

/// Prints a number of bytes as fio's report does: `24.0KiB`, `977MiB`, `1431MiB`, `9999B`.
pub fn human_size(bytes: u64, prefixes: Prefixes) -> String {
    human(bytes, prefixes, "B")
}

/// Prints a bandwidth as fio's report does, both ways side by side: `23.4MiB/s (24.6MB/s)`.
pub fn human_rate(bytes_per_s: u64) -> String {
    format!("{}/s ({}/s)", human_size(bytes_per_s, Prefixes::Binary), human_size(bytes_per_s, Prefixes::Decimal))
}

/// Prints a number of operations a second as fio's report does: `6000`, `999k`, `8333k`.
pub fn human_iops(iops: u64) -> String {
    human(iops, Prefixes::Decimal, "")
}

/// Prints a figure with a prefix: four digits are kept; five digits move to the next prefix and
/// show three.
fn human(value: u64, prefixes: Prefixes, unit: &str) -> String {
    let (step, names): (u64, [&str; 7]) = match prefixes {
        Prefixes::Binary => (1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
        Prefixes::Decimal => (1000, ["", "k", "M", "G", "T", "P", "E"]),
    };
    // fio keeps four digits of IOPS too, so one rule covers bytes and operations.
    let mut divisor: u64 = 1;
    let mut name = 0;
    while value / divisor >= 10_000 && name + 1 < names.len() {
        divisor = divisor.saturating_mul(step);
        name += 1;
    }
    let shown = value as f64 / divisor as f64;
    let decimals = match shown {
        _ if divisor == 1 => 0,
        s if s < 10.0 => 2,
        s if s < 100.0 => 1,
        _ => 0,
    };
    format!("{shown:.decimals$}{}{unit}", names[name])
}
