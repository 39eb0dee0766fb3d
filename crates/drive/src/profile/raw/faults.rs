//! The table `[faults]` before its checks.

use toml::Spanned;

use super::table::table;

table! {
    /// The faults of a disk.
    RawFaults, "faults" {
        /// Sectors that cannot be read until a write remaps them.
        #[serde(default)]
        bad_sectors: Vec<Spanned<(u64, u32)>> = "a list of `[sector, count]`", "none";
        /// Sectors that are read after retries.
        #[serde(default)]
        slow_sectors: Vec<Spanned<(u64, u32)>> = "a list of `[sector, count]`", "none";
        /// The probability that a physical sector of 4 KiB is bad.
        bad_share: Option<Spanned<f64>> = "0 to 1", "0";
        /// The probability that it is slow.
        slow_share: Option<Spanned<f64>> = "0 to 1", "0";
        /// The seed of the random sectors.
        seed: Option<u64> = "a number", "1";
        /// Revolutions of retries.
        retries: Option<Spanned<u32>> = "0 to 1000 revolutions", "20";
        /// The number of spare sectors for remapping.
        spare_sectors: Option<u32> = "a number", "4096";
        /// Periods in which no command completes: `hangs = [{ at_ms = 1000, for_ms = 2000 }]`.
        #[serde(default)]
        hangs: Vec<Spanned<RawHang>> = "a list of tables", "none";
    }
}

table! {
    /// A period in which no command completes. Hangs follow one another and do not overlap.
    RawHang, "[faults.hangs]" {
        /// The begin of the hang.
        at_ms: f64 = "0 to 1000000000000", "required";
        /// The duration of the hang; `inf` for ever.
        for_ms: Option<f64> = "more than 0", "required";
    }
}
