//! Checks of the table `[cloud]`.

use toml::Spanned;

use super::super::raw::{RawBucket, RawCloud, RawLatency};
use super::super::{BucketProfile, CloudProfile, LatencyProfile};
use super::{Check, Checked, MAX_CAPACITY_SECTORS, MAX_US};

/// The largest rate and capacity of a token bucket. Billionths of a token then fit in 128 bits.
const MAX_RATE: u64 = 1 << 40;
const MAX_DEPTH: u64 = 1 << 50;
const MAX_SIGMA: f64 = 3.0;

impl Check<'_> {
    pub(super) fn cloud(&self, raw: &RawCloud) -> Checked<CloudProfile> {
        let unit_bytes = self.within(&raw.unit_bytes, "cloud.unit_bytes", 512, 1 << 30)?;
        if unit_bytes % 512 != 0 {
            return Err(self.value(raw.unit_bytes.span(), "cloud.unit_bytes", unit_bytes, "a multiple of 512"));
        }
        Ok(CloudProfile {
            capacity_sectors: self.within(&raw.capacity_sectors, "cloud.capacity_sectors", 1, MAX_CAPACITY_SECTORS)?,
            depth: self.within(&raw.depth, "cloud.depth", 1, 65_536)?,
            unit_bytes,
            operations: self.bucket(&raw.operations, "cloud.operations", 1)?,
            bytes: self.bucket(&raw.bytes, "cloud.bytes", u64::from(unit_bytes))?,
            latency: self.latency(&raw.latency)?,
        })
    }

    /// A token bucket. The default capacity is `one`, the largest amount that one command draws.
    fn bucket(&self, raw: &RawBucket, key: &str, one: u64) -> Checked<BucketProfile> {
        let rate_per_s = self.within(&raw.rate_per_s, &format!("{key}.rate_per_s"), 1, MAX_RATE)?;
        let depth = match &raw.depth {
            Some(depth) => self.within(depth, &format!("{key}.depth"), 1, MAX_DEPTH)?,
            None => one,
        };
        let start = match &raw.start {
            Some(start) => self.within(start, &format!("{key}.start"), 0, depth)?,
            None => depth,
        };
        let ceiling_per_s = match &raw.ceiling_per_s {
            Some(ceiling) if *ceiling.as_ref() < rate_per_s => {
                let expected = format!("the ceiling is not below the rate: {rate_per_s} or more");
                return Err(self.value(ceiling.span(), &format!("{key}.ceiling_per_s"), ceiling.as_ref(), &expected));
            }
            Some(ceiling) => Some(self.within(ceiling, &format!("{key}.ceiling_per_s"), 1, MAX_RATE)?),
            None => None,
        };
        Ok(BucketProfile { rate_per_s, depth, start, ceiling_per_s })
    }

    fn latency(&self, raw: &RawLatency) -> Checked<LatencyProfile> {
        let floor_us = self.within(&raw.floor_us, "cloud.latency.floor_us", 0.0, MAX_US)?;
        let optional = |value: &Option<Spanned<f64>>, key: &str, high: f64| match value {
            Some(value) => self.within(value, &format!("cloud.latency.{key}"), 0.0, high),
            None => Ok(0.0),
        };
        let median_us = optional(&raw.jitter_median_us, "jitter_median_us", MAX_US)?;
        let sigma = optional(&raw.jitter_sigma, "jitter_sigma", MAX_SIGMA)?;
        Ok(LatencyProfile {
            floor_ns: (floor_us * 1000.0).round() as u64,
            jitter_median_ns: (median_us * 1000.0).round() as u64,
            jitter_sigma_milli: (sigma * 1000.0).round() as u32,
            seed: raw.seed,
        })
    }
}
