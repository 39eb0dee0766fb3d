//! Sizes, times and rates as fio writes them: what a job file says, and what a report prints.
//!
//! Reading is hoistway-units', which the server's configuration is read with too; what fio's report prints is here. The rounding of
//! printed figures was observed by running fio 3.33.

pub use hoistway_units::{KbBase, TimeUnit, UnitError, parse_size, parse_time_ns, print_size, print_time};

/// Which prefixes a printed figure takes.
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

/// A figure with a prefix: four digits are kept whole, five move to the next prefix and show three digits.
fn human(value: u64, prefixes: Prefixes, unit: &str) -> String {
    let (step, names): (u64, [&str; 7]) = match prefixes {
        Prefixes::Binary => (1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
        Prefixes::Decimal => (1000, ["", "k", "M", "G", "T", "P", "E"]),
    };
    // fio's IOPS leave four digits alone too, so one rule does for bytes and operations.
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
