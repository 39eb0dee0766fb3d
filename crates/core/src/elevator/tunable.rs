//! Tunables: declared once, beside the code that they tune.

/// The unit that a tunable is read and written in: the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Requests.
    Requests,
    /// KiB.
    Kibibytes,
    /// Sectors of 512 bytes.
    Sectors,
    /// 1000 bytes a second.
    KilobytesPerSecond,
    /// Hundredths.
    Percent,
    /// A number of times.
    Times,
    /// A factor.
    Factor,
    /// A number without a unit.
    Number,
    /// 0 or 1.
    Switch,
    /// One of several forms, told in the tunable's description.
    Form,
}

impl Unit {
    /// What stands behind a value: "ms", "requests", "KiB" ...
    pub const fn label(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Nanoseconds => "ns",
            Unit::Requests => "requests",
            Unit::Kibibytes => "KiB",
            Unit::Sectors => "sectors",
            Unit::Microseconds => "us",
            Unit::KilobytesPerSecond => "KB/s",
            Unit::Percent => "%",
            Unit::Times => "times",
            Unit::Factor => "factor",
            Unit::Number => "number",
            Unit::Switch => "0/1",
            Unit::Form => "form",
        }
    }
}

/// The declaration of a tunable.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// The kernel's name, as under `queue/iosched/`.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: Unit,
    /// The value it starts with.
    pub default: i64,
    /// The least value it takes.
    pub min: i64,
    /// The greatest value it takes.
    pub max: i64,
    /// What it does.
    pub meaning: &'static str,
    /// What one wins and loses by changing it.
    pub trade_off: &'static str,
}

/// Why a tunable was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableError {
    /// The elevator has no tunable of this name.
    Unknown,
    /// The value lies outside the range `min..=max`.
    OutOfRange {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
}

impl core::fmt::Display for TunableError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            TunableError::Unknown => f.write_str("no tunable of this name"),
            TunableError::OutOfRange { min, max } => write!(f, "out of range: it takes {min} to {max}"),
        }
    }
}

impl core::error::Error for TunableError {}
