//! Choices: a scheduler with tunables and queue settings.

use hoistway_compare::scheduler_name;
use hoistway_core::{Kind, Tunable};
use hoistway_sim::{HostConfig, Setting, SimError};

/// A scheduler with the settings that differ from the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The scheduler.
    pub kind: Kind,
    /// Tunables that differ from their defaults: name and value in the tunable's unit, in the order
    /// of the scheduler's tunables.
    pub tunables: Vec<(&'static str, i64)>,
    /// The longest read-ahead in KiB; `None` for the current one.
    pub read_ahead_kib: Option<u64>,
    /// The number of requests in the queue; `None` for the current one.
    pub nr_requests: Option<u32>,
    /// The largest number of requests in the drive; `None` for the current one.
    pub queue_depth: Option<u32>,
}

/// The tick of the slowest kernel clock (100 Hz), in ms.
const TICK_MS_MAX: i64 = 10;

/// Returns true for tunables that the kernel has too; the others exist only in the simulator.
fn is_kernel_tunable(kind: Kind, tunable: &str) -> bool {
    !matches!(
        (kind, tunable),
        (Kind::MqDeadline, "rerun_delay") | (Kind::Bfq, "groups" | "search_fixed" | "time_fixed" | "slice_idle_us")
    )
}

/// The text to write to the kernel's file for a value; `None` if the kernel has no such tunable, or
/// does not take the value, as 0 for `async_depth`.
pub fn kernel_value(kind: Kind, tunable: &str, value: i64) -> Option<String> {
    let is_settable =
        is_kernel_tunable(kind, tunable) && !(kind == Kind::MqDeadline && tunable == "async_depth" && value == 0);
    is_settable.then(|| value.to_string())
}

impl Choice {
    /// A scheduler with default tunables.
    pub fn plain(kind: Kind) -> Choice {
        Choice { kind, tunables: Vec::new(), read_ahead_kib: None, nr_requests: None, queue_depth: None }
    }

    /// Sets a tunable. A tunable at its default is not stored.
    pub fn with(mut self, tunable: &'static Tunable, value: i64) -> Choice {
        self.tunables.retain(|(name, _)| *name != tunable.name);
        if value != tunable.default {
            self.tunables.push((tunable.name, value));
        }
        let place = |name: &str| self.kind.info().tunables.iter().position(|row| row.name == name);
        self.tunables.sort_by_key(|(name, _)| place(name));
        self
    }

    /// The choice that the files of a scheduler's tunables amount to, and the names of files that
    /// are unknown or have values out of range.
    pub fn as_set<'a>(kind: Kind, files: impl Iterator<Item = (&'a str, &'a str)>) -> (Choice, Vec<String>) {
        let mut choice = Choice::plain(kind);
        let mut unknown = Vec::new();
        for (name, text) in files {
            let row = kind.info().tunables.iter().find(|row| row.name == name);
            let value = text.trim().parse::<i64>().ok();
            match (row, value) {
                (Some(_), Some(_)) if !is_kernel_tunable(kind, name) => {}
                // The kernel sets it by itself: all tags, or three quarters of them.
                (Some(_), Some(_)) if kind == Kind::MqDeadline && name == "async_depth" => {}
                // The kernel stores ticks: 125 ms becomes 124 ms at 250 Hz.
                (Some(row), Some(value)) if name == "timeout_sync" && (row.default - value).abs() < TICK_MS_MAX => {}
                (Some(row), Some(value)) if (row.min..=row.max).contains(&value) => choice = choice.with(row, value),
                _ => unknown.push(name.to_owned()),
            }
        }
        (choice, unknown)
    }

    /// Returns true if nothing differs from the defaults.
    pub fn is_plain(&self) -> bool {
        *self == Choice::plain(self.kind)
    }

    /// The kernel's name of the scheduler and the differing settings: `bfq slice_idle=0`.
    pub fn name(&self) -> String {
        let mut name = scheduler_name(self.kind).to_owned();
        for (tunable, value) in &self.tunables {
            name.push_str(&format!(" {tunable}={value}"));
        }
        let queue = [
            ("read_ahead_kb", self.read_ahead_kib),
            ("nr_requests", self.nr_requests.map(u64::from)),
            ("queue_depth", self.queue_depth.map(u64::from)),
        ];
        for (file, value) in queue {
            if let Some(value) = value {
                name.push_str(&format!(" {file}={value}"));
            }
        }
        name
    }

    /// The tunables as settings of the simulator.
    ///
    /// # Errors
    /// [`SimError`] for a value out of range.
    pub fn settings(&self) -> Result<Vec<Setting>, SimError> {
        let name = self.kind.info().name;
        self.tunables.iter().map(|(tunable, value)| Setting::parse(&format!("{name}.{tunable}={value}"))).collect()
    }

    /// The host with the queue settings of the choice.
    pub fn host(&self, host: &HostConfig) -> HostConfig {
        let mut host = host.clone();
        host.read_ahead_kib = self.read_ahead_kib.unwrap_or(host.read_ahead_kib);
        if let Some(requests) = self.nr_requests {
            host.queue.nr_requests = Some(requests);
            host.pool_follows_drive = false;
        }
        host.depth_max = self.queue_depth.or(host.depth_max);
        host
    }
}

/// Commonly changed tunables of a scheduler, one changed tunable in each choice.
pub fn usual_variants(kind: Kind) -> Vec<Choice> {
    let row = |name: &str| kind.info().tunables.iter().find(|row| row.name == name);
    let changes: &[(&str, i64)] = match kind {
        Kind::Bfq => &[("slice_idle", 0), ("low_latency", 0), ("timeout_sync", 250)],
        Kind::MqDeadline => &[("fifo_batch", 1), ("fifo_batch", 64), ("read_expire", 100), ("writes_starved", 8)],
        Kind::Kyber => &[("read_lat_nsec", 20_000_000)],
        _ => &[],
    };
    changes.iter().filter_map(|(name, value)| Some(Choice::plain(kind).with(row(name)?, *value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_at_its_default_is_not_stored() {
        let row = |name: &str| Kind::Bfq.info().tunables.iter().find(|row| row.name == name).unwrap();
        let choice = Choice::plain(Kind::Bfq).with(row("timeout_sync"), 250).with(row("slice_idle"), 0);
        assert_eq!(choice.name(), "bfq slice_idle=0 timeout_sync=250");
        assert!(choice.with(row("timeout_sync"), 125).with(row("slice_idle"), 8).is_plain());
    }

    #[test]
    fn tunable_files_become_a_choice() {
        let files =
            [("slice_idle", "0\n"), ("low_latency", "1"), ("slice_idle_us", "0"), ("back_seek_max", "x"), ("odd", "1")];
        let (choice, unknown) = Choice::as_set(Kind::Bfq, files.into_iter());
        assert_eq!(choice.name(), "bfq slice_idle=0");
        assert_eq!(unknown, ["back_seek_max", "odd"]);
        let (choice, _) = Choice::as_set(Kind::Bfq, [("timeout_sync", "124")].into_iter());
        assert!(choice.is_plain(), "124 is 125 in ticks of 4");
        let (choice, _) = Choice::as_set(Kind::MqDeadline, [("async_depth", "192"), ("fifo_batch", "1")].into_iter());
        assert_eq!(choice.name(), "mq-deadline fifo_batch=1");
    }

    #[test]
    fn every_usual_variant_differs_from_the_defaults_and_can_be_set() {
        for kind in [Kind::Noop, Kind::MqDeadline, Kind::Kyber, Kind::Bfq] {
            for variant in usual_variants(kind) {
                assert!(!variant.is_plain() && variant.settings().is_ok(), "{}", variant.name());
                for (name, value) in &variant.tunables {
                    assert!(kernel_value(kind, name, *value).is_some(), "{name}");
                }
            }
        }
        assert_eq!(kernel_value(Kind::Bfq, "search_fixed", 1), None);
    }
}
