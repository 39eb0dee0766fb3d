//! Figures of a point: their names, units, and which direction is better.

/// A figure of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The column of the results.
    pub column: String,
    /// The name in text.
    pub name: String,
    /// The unit; empty for a plain number.
    unit: &'static str,
    /// The factor from the column's unit to this one.
    pub factor: f64,
    /// True if less is better; `None` if neither is known to be.
    less_is_better: Option<bool>,
}

/// The throughput and the latency that a page draws unless another figure is named.
pub const THROUGHPUT: &str = "bytes_per_s";
/// See [`THROUGHPUT`].
pub const LATENCY: &str = "latency_p99_ns";

/// Columns whose names say less than these.
const NAMED: [(&str, &str); 11] = [
    (THROUGHPUT, "throughput"),
    ("slowest_bytes_per_s", "rate of the slowest process"),
    ("fastest_bytes_per_s", "rate of the fastest process"),
    ("jain", "Jain's index"),
    ("latency_mean_ns", "mean latency"),
    ("latency_stddev_ns", "standard deviation of latency"),
    ("latency_p50_ns", "median latency"),
    ("latency_p90_ns", "90th percentile of latency"),
    (LATENCY, "99th percentile of latency"),
    ("latency_p999_ns", "99.9th percentile of latency"),
    ("latency_max_ns", "maximum latency"),
];

impl Measure {
    /// The measure in a column of numbers.
    pub fn of(column: &str) -> Measure {
        let named = NAMED.iter().find(|(known, _)| *known == column);
        let name = named.map_or(column, |(_, name)| name).to_owned();
        let (unit, factor) = match column {
            column if column.ends_with("bytes_per_s") => ("MB/s", 1e-6),
            column if column.ends_with("_ns") => ("ms", 1e-6),
            column if column.contains("bytes") => ("MB", 1e-6),
            _ => ("", 1.0),
        };
        let less_is_better = match column {
            "jain" => Some(false),
            column if column.ends_with("bytes_per_s") => Some(false),
            column if column.starts_with("latency_") => Some(true),
            "failed_requests" | "lost_pages" | "deadline_misses" => Some(true),
            _ => None,
        };
        Measure { column: column.to_owned(), name, unit, factor, less_is_better }
    }

    /// The unit, and which direction is better; empty if neither is known.
    pub fn note(&self) -> String {
        let better = self.less_is_better.map(|less| if less { "less is better" } else { "more is better" });
        let unit = Some(self.unit).filter(|unit| !unit.is_empty());
        unit.into_iter().chain(better).collect::<Vec<_>>().join("; ")
    }

    /// The name, the unit, and which direction is better.
    pub fn title(&self) -> String {
        match self.note() {
            note if note.is_empty() => self.name.clone(),
            note => format!("{}, {note}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_unit_and_direction() {
        assert_eq!(Measure::of(THROUGHPUT).title(), "throughput, MB/s; more is better");
        assert_eq!(Measure::of(LATENCY).title(), "99th percentile of latency, ms; less is better");
        assert_eq!(Measure::of("drive_seek_ns").title(), "drive_seek_ns, ms");
        assert_eq!(Measure::of("turns").title(), "turns");
        assert_eq!(Measure::of("jain").note(), "more is better");
    }
}
