//! The search space: a ladder of values for each tunable.

use hoistway_core::{Kind, Tunable, Unit};

use crate::choice::{Choice, kernel_value};

/// A ladder reaches from a sixteenth of the default to sixteen times the default, in steps of the
/// square root of 2.
const DOUBLINGS: i32 = 4;
/// The ladder of a tunable whose default depends on the device.
const WITHOUT_DEFAULT: [i64; 9] = [8, 16, 32, 64, 128, 512, 2048, 8192, 32_768];

/// The index of a value on a ladder.
pub type Rung = usize;

/// A tunable or setting that a search changes.
#[derive(Clone, Copy, Debug)]
pub enum Dimension {
    /// A tunable of the scheduler.
    Tunable(&'static Tunable),
    /// `read_ahead_kb` of the queue.
    ReadAhead,
    /// `nr_requests` of the queue.
    Requests,
    /// `device/queue_depth` of the device.
    Depth,
}

impl Dimension {
    /// The tunable of the scheduler; `None` for a setting of the queue.
    pub fn tunable(&self) -> Option<&'static Tunable> {
        match self {
            Dimension::Tunable(row) => Some(row),
            _ => None,
        }
    }
}

/// A scheduler and the ladders that a search moves on.
#[derive(Clone, Debug)]
pub struct Space {
    /// The scheduler.
    pub kind: Kind,
    /// The ladders.
    pub ladders: Vec<Ladder>,
}

/// The values of a tunable or setting.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// The tunable or setting.
    pub dimension: Dimension,
    /// The values, rising.
    pub values: Vec<i64>,
    /// The index of the default.
    pub default: Rung,
}

impl Space {
    /// All tunables of a scheduler that the kernel has.
    pub fn of(kind: Kind) -> Space {
        let rows = kind.info().tunables.iter().filter(|row| kernel_value(kind, row.name, row.default.max(1)).is_some());
        Space { kind, ladders: rows.map(ladder).collect() }
    }

    /// Keeps only the named tunables.
    #[must_use]
    pub fn only(mut self, names: &[&str]) -> Space {
        self.ladders.retain(|ladder| ladder.dimension.tunable().is_some_and(|row| names.contains(&row.name)));
        self
    }

    /// Adds the longest read-ahead, which is `now` KiB.
    #[must_use]
    pub fn with_read_ahead(self, now: u64) -> Space {
        self.with(Dimension::ReadAhead, &[0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], now)
    }

    /// Adds the number of requests in the queue, which is `now`.
    #[must_use]
    pub fn with_requests(self, now: u64) -> Space {
        self.with(Dimension::Requests, &[8, 16, 32, 64, 128, 256, 512, 1024], now)
    }

    /// Adds the depth of the drive, from 1 to `now`.
    #[must_use]
    pub fn with_depth(self, now: u64) -> Space {
        let below: Vec<i64> = [1, 2, 4, 8, 16, 32, 64, 128].into_iter().filter(|depth| (*depth as u64) < now).collect();
        self.with(Dimension::Depth, &below, now)
    }

    fn with(mut self, dimension: Dimension, values: &[i64], now: u64) -> Space {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let mut values: Vec<i64> = values.iter().copied().chain([now]).collect();
        values.sort_unstable();
        values.dedup();
        let default = values.iter().position(|value| *value == now).unwrap_or(0);
        self.ladders.push(Ladder { dimension, values, default });
        self
    }

    /// The point of the default values.
    pub fn default_point(&self) -> Vec<Rung> {
        self.ladders.iter().map(|ladder| ladder.default).collect()
    }

    /// The number of points, saturating.
    pub fn points(&self) -> usize {
        self.ladders.iter().fold(1usize, |points, ladder| points.saturating_mul(ladder.values.len()))
    }

    /// The choice at a point.
    pub fn choice(&self, point: &[Rung]) -> Choice {
        let mut choice = Choice::plain(self.kind);
        for (ladder, rung) in self.ladders.iter().zip(point) {
            let value = ladder.values.get(*rung).copied().filter(|_| *rung != ladder.default);
            let Some(value) = value else { continue };
            match ladder.dimension {
                Dimension::Tunable(row) => choice = choice.with(row, value),
                Dimension::ReadAhead => choice.read_ahead_kib = u64::try_from(value).ok(),
                Dimension::Requests => choice.nr_requests = u32::try_from(value).ok(),
                Dimension::Depth => choice.queue_depth = u32::try_from(value).ok(),
            }
        }
        choice
    }
}

fn ladder(row: &'static Tunable) -> Ladder {
    let mut values: Vec<i64> = match (row.unit, row.default) {
        (Unit::Switch, _) => vec![0, 1],
        (_, default) if default > 0 => (-2 * DOUBLINGS..=2 * DOUBLINGS)
            .map(|half| (default as f64 * 2f64.powf(f64::from(half) / 2.0)).round() as i64)
            .collect(),
        _ => WITHOUT_DEFAULT.into(),
    };
    values.push(row.default);
    // 0 often has a meaning of its own: no waiting, no limit.
    values.push(0);
    values.retain(|value| (row.min..=row.max).contains(value));
    values.sort_unstable();
    values.dedup();
    let default = values.iter().position(|value| *value == row.default).unwrap_or(0);
    Ladder { dimension: Dimension::Tunable(row), values, default }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_is_in_the_declared_range_and_one_is_the_default() {
        for kind in Kind::ALL {
            let space = Space::of(*kind);
            assert!(space.choice(&space.default_point()).is_plain(), "{}", kind.info().name);
            for Ladder { dimension, values, default } in &space.ladders {
                let Dimension::Tunable(row) = dimension else { panic!("a tunable") };
                assert_eq!(values[*default], row.default, "{}", row.name);
                assert!(values.iter().all(|value| (row.min..=row.max).contains(value)), "{} {values:?}", row.name);
                assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn tunables_that_the_kernel_lacks_are_not_searched() {
        let names = |kind| -> Vec<&str> {
            Space::of(kind).ladders.iter().filter_map(|ladder| Some(ladder.dimension.tunable()?.name)).collect()
        };
        assert!(!names(Kind::MqDeadline).contains(&"rerun_delay"));
        assert!(!names(Kind::Bfq).contains(&"search_fixed") && names(Kind::Bfq).contains(&"slice_idle"));
    }

    #[test]
    fn the_depth_ladder_ends_at_the_present_depth() {
        let space = Space { kind: Kind::Bfq, ladders: Vec::new() }.with_depth(32);
        assert_eq!(space.ladders[0].values, [1, 2, 4, 8, 16, 32]);
        assert_eq!(space.choice(&[0]).queue_depth, Some(1));
        assert!(space.choice(&[5]).is_plain());
    }
}
