//! Tunables. Each is declared once, beside the code that uses it.

/// The unit of a tunable's value; the same as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times in milliseconds.
    Milliseconds,
    /// Times in nanoseconds.
    Nanoseconds,
    /// Times in microseconds.
    Microseconds,
    /// A number of requests.
    Requests,
    /// Sizes in KiB.
    Kibibytes,
    /// A number of sectors of 512 bytes.
    Sectors,
    /// Rates in units of 1000 bytes a second.
    KilobytesPerSecond,
    /// A share in hundredths.
    Percent,
    /// A number of times.
    Times,
    /// A factor.
    Factor,
    /// A number without a unit.
    Number,
    /// A switch: 0 is off, 1 is on.
    Switch,
    /// One of several variants, which the tunable's description lists.
    Form,
}

impl Unit {
    /// The unit as printed after a value: "ms", "requests", "KiB" ...
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
    /// The kernel's name, as in `queue/iosched/`.
    pub name: &'static str,
    /// The unit of the value.
    pub unit: Unit,
    /// The default value.
    pub default: i64,
    /// The minimum.
    pub min: i64,
    /// The maximum.
    pub max: i64,
    /// The effect of the tunable.
    pub meaning: &'static str,
    /// The benefits and costs of changing the value.
    pub trade_off: &'static str,
}

/// Errors of setting a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableError {
    /// The elevator has no tunable of this name.
    Unknown,
    /// The value is outside the range `min..=max`.
    OutOfRange {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
}

impl core::fmt::Display for TunableError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            TunableError::Unknown => f.write_str("no tunable of this name"),
            TunableError::OutOfRange { min, max } => write!(f, "out of range: {min} to {max} are allowed"),
        }
    }
}

impl core::error::Error for TunableError {}
