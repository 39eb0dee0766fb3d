//! What may be changed, as ladders of values.

use hoistway_core::{Kind, Tunable, Unit};

use crate::choice::{Choice, kernel_value};

/// A ladder reaches from a sixteenth of the default to sixteen times it, with two rungs to a doubling.
const DOUBLINGS: i32 = 4;
/// Where the default stands for "whatever suits the device", the ladder has these.
const WITHOUT_DEFAULT: [i64; 9] = [8, 16, 32, 64, 128, 512, 2048, 8192, 32_768];

/// The place of a value on each ladder.
pub type Rung = usize;

/// What is changed.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// A tunable of the scheduler.
    Tunable(&'static Tunable),
    /// `read_ahead_kb` of the queue.
    ReadAhead,
    /// `nr_requests` of the queue.
    Requests,
    /// `device/queue_depth`.
    Depth,
}

impl What {
    /// The tunable, if it is one.
    pub fn tunable(&self) -> Option<&'static Tunable> {
        match self {
            What::Tunable(row) => Some(row),
            _ => None,
        }
    }
}

/// A scheduler with what may be changed of it.
#[derive(Clone, Debug)]
pub struct Space {
    /// The scheduler.
    pub kind: Kind,
    /// The ladders: rising values, and the place of the default.
    pub ladders: Vec<(What, Vec<i64>, Rung)>,
}

impl Space {
    /// All tunables of a scheduler that can be set on a machine.
    pub fn of(kind: Kind) -> Space {
        let rows = kind.info().tunables.iter().filter(|row| kernel_value(kind, row.name, row.default.max(1)).is_some());
        Space { kind, ladders: rows.map(ladder).collect() }
    }

    /// The same without tunables that are not named.
    #[must_use]
    pub fn only(mut self, names: &[&str]) -> Space {
        self.ladders.retain(|(what, ..)| matches!(what, What::Tunable(row) if names.contains(&row.name)));
        self
    }

    /// The same with the longest read-ahead, which is `now` KiB.
    #[must_use]
    pub fn with_read_ahead(self, now: u64) -> Space {
        self.with(What::ReadAhead, &[0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], now)
    }

    /// The same with the pool of requests, which has `now`.
    #[must_use]
    pub fn with_requests(self, now: u64) -> Space {
        self.with(What::Requests, &[8, 16, 32, 64, 128, 256, 512, 1024], now)
    }

    /// The same with the drive's depth, which is `now` and at most that.
    #[must_use]
    pub fn with_depth(self, now: u64) -> Space {
        let below: Vec<i64> = [1, 2, 4, 8, 16, 32, 64, 128].into_iter().filter(|depth| (*depth as u64) < now).collect();
        self.with(What::Depth, &below, now)
    }

    fn with(mut self, what: What, values: &[i64], now: u64) -> Space {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let mut values: Vec<i64> = values.iter().copied().chain([now]).collect();
        values.sort_unstable();
        values.dedup();
        let default = values.iter().position(|value| *value == now).unwrap_or(0);
        self.ladders.push((what, values, default));
        self
    }

    /// Where nothing is changed.
    pub fn default_point(&self) -> Vec<Rung> {
        self.ladders.iter().map(|(_, _, default)| *default).collect()
    }

    /// How many points there are; many are too many to count.
    pub fn points(&self) -> usize {
        self.ladders.iter().fold(1usize, |points, (_, values, _)| points.saturating_mul(values.len()))
    }

    /// What stands for a point.
    pub fn choice(&self, point: &[Rung]) -> Choice {
        let mut choice = Choice::plain(self.kind);
        for ((what, values, default), rung) in self.ladders.iter().zip(point) {
            let Some(value) = values.get(*rung).copied().filter(|_| rung != default) else { continue };
            match what {
                What::Tunable(row) => choice = choice.with(row, value),
                What::ReadAhead => choice.read_ahead_kib = u64::try_from(value).ok(),
                What::Requests => choice.nr_requests = u32::try_from(value).ok(),
                What::Depth => choice.queue_depth = u32::try_from(value).ok(),
            }
        }
        choice
    }
}

fn ladder(row: &'static Tunable) -> (What, Vec<i64>, Rung) {
    let mut values: Vec<i64> = match (row.unit, row.default) {
        (Unit::Switch, _) => vec![0, 1],
        (_, default) if default > 0 => (-2 * DOUBLINGS..=2 * DOUBLINGS)
            .map(|half| (default as f64 * 2f64.powf(f64::from(half) / 2.0)).round() as i64)
            .collect(),
        _ => WITHOUT_DEFAULT.into(),
    };
    values.push(row.default);
    // None at all often means something of its own: no waiting, no limit.
    values.push(0);
    values.retain(|value| (row.min..=row.max).contains(value));
    values.sort_unstable();
    values.dedup();
    let default = values.iter().position(|value| *value == row.default).unwrap_or(0);
    (What::Tunable(row), values, default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_lies_in_the_declared_range_and_the_default_is_one() {
        for kind in Kind::ALL {
            let space = Space::of(*kind);
            assert!(space.choice(&space.default_point()).is_plain(), "{}", kind.info().name);
            for (what, values, default) in &space.ladders {
                let What::Tunable(row) = what else { panic!("a tunable") };
                assert_eq!(values[*default], row.default, "{}", row.name);
                assert!(values.iter().all(|value| (row.min..=row.max).contains(value)), "{} {values:?}", row.name);
                assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn what_the_kernel_does_not_have_is_not_searched() {
        let names = |kind| -> Vec<&str> {
            let name = |what: &What| if let What::Tunable(row) = what { row.name } else { "" };
            Space::of(kind).ladders.iter().map(|(what, ..)| name(what)).collect()
        };
        assert!(!names(Kind::MqDeadline).contains(&"rerun_delay"));
        assert!(!names(Kind::Bfq).contains(&"search_fixed") && names(Kind::Bfq).contains(&"slice_idle"));
    }

    #[test]
    fn depth_goes_down_from_what_it_is() {
        let space = Space { kind: Kind::Bfq, ladders: Vec::new() }.with_depth(32);
        assert_eq!(space.ladders[0].1, [1, 2, 4, 8, 16, 32]);
        assert_eq!(space.choice(&[0]).queue_depth, Some(1));
        assert!(space.choice(&[5]).is_plain());
    }
}
