//! The line of a class: the cost as a function of the size, by least squares over decayed sums.

use crate::collections::Count;

/// The number of samples at which all sums are halved.
const SAMPLES_MAX: u64 = 64;
/// The number of samples from which a line is valid.
const SAMPLES_MIN: u64 = 4;
/// A line is fitted again after this many samples.
const SAMPLES_A_FIT: u64 = 8;

/// A cost as a function of the size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub base_ns: u64,
    pub unit_ns: u64,
}

impl Line {
    /// The cost of a size in units, in ns.
    pub fn at(self, units: u64) -> u64 {
        self.base_ns.saturating_add(self.unit_ns.saturating_mul(units))
    }
}

/// The decayed sums of a class, and its line as of the last fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    pub line: Line,
    pub count: u64,
    /// Samples since the last fit.
    fresh: u64,
    units: u64,
    ns: u64,
    units_squared: u64,
    units_ns: u64,
}

impl Samples {
    /// Adds a sample. Returns true if the line is to be fitted again.
    pub fn add(&mut self, units: u64, ns: u64) -> bool {
        if self.count >= SAMPLES_MAX {
            for sum in [&mut self.count, &mut self.units, &mut self.ns, &mut self.units_squared, &mut self.units_ns] {
                *sum /= 2;
            }
        }
        self.count.increment();
        self.fresh.increment();
        self.units = self.units.saturating_add(units);
        self.ns = self.ns.saturating_add(ns);
        self.units_squared = self.units_squared.saturating_add(units.saturating_mul(units));
        self.units_ns = self.units_ns.saturating_add(units.saturating_mul(ns));
        self.fresh >= SAMPLES_A_FIT || self.count <= SAMPLES_A_FIT
    }

    /// Returns true if there are enough samples for a line.
    pub fn are_enough(&self) -> bool {
        self.count >= SAMPLES_MIN
    }

    pub fn mean_units(&self) -> u64 {
        self.units / self.count.max(1)
    }

    pub fn mean_ns(&self) -> u64 {
        self.ns / self.count.max(1)
    }

    /// The slope of the least-squares line, if sizes vary enough to have one: their standard
    /// deviation is at least a quarter of their root mean square.
    pub fn slope(&self) -> Option<u64> {
        let squares = self.count.saturating_mul(self.units_squared);
        let spread = squares.saturating_sub(self.units.saturating_mul(self.units));
        if spread.saturating_mul(16) < squares || spread == 0 {
            return None;
        }
        let products = self.count.saturating_mul(self.units_ns);
        products.saturating_sub(self.units.saturating_mul(self.ns)).checked_div(spread)
    }

    /// Fits the line; `slope` is used if the sizes do not vary.
    pub fn fit(&mut self, slope: u64) {
        let slope = self.slope().unwrap_or(slope);
        let unit_ns = slope.min(self.mean_ns().checked_div(self.mean_units()).unwrap_or(slope));
        let transfer_ns = unit_ns.saturating_mul(self.units);
        self.line = Line { base_ns: self.ns.saturating_sub(transfer_ns) / self.count.max(1), unit_ns };
        self.fresh = 0;
    }
}
