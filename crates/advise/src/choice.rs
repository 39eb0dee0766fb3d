//! What could be set: a scheduler with tunables, and of the queue what belongs to it.

use hoistway_core::{Kind, Tunable};
use hoistway_sim::{HostConfig, Setting, SimError};

/// A scheduler as it could be set on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The scheduler.
    pub kind: Kind,
    /// Tunables that differ from their defaults: name and value in the tunable's unit. By the order of the scheduler's rows.
    pub tunables: Vec<(&'static str, i64)>,
    /// The longest read-ahead in KiB, where it is not as it is now.
    pub read_ahead_kib: Option<u64>,
    /// The size of the pool of requests, where it is not as it is now.
    pub nr_requests: Option<u32>,
    /// How many requests the drive is given at once at most, where it is not as it is now.
    pub queue_depth: Option<u32>,
}

/// A tick of the slowest clock that kernels are built with, in ms.
const TICK_MS_MAX: i64 = 10;

/// What the kernel calls it: `none` is what stands where no scheduler does.
pub fn scheduler_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Noop => "none",
        kind => kind.info().name,
    }
}

/// Rows that are ours and not the kernel's: they cannot be set on a machine.
fn is_the_kernel_s(kind: Kind, tunable: &str) -> bool {
    !matches!(
        (kind, tunable),
        (Kind::MqDeadline, "rerun_delay") | (Kind::Bfq, "groups" | "search_fixed" | "time_fixed" | "slice_idle_us")
    )
}

/// What is written to the kernel's file for a value; `None` where there is none, as of rows that are not the kernel's, and of 0 for the number of tags,
/// which the kernel has no such word for.
pub fn kernel_value(kind: Kind, tunable: &str, value: i64) -> Option<String> {
    let has_one =
        is_the_kernel_s(kind, tunable) && !(kind == Kind::MqDeadline && tunable == "async_depth" && value == 0);
    has_one.then(|| value.to_string())
}

impl Choice {
    /// A scheduler with its defaults.
    pub fn plain(kind: Kind) -> Choice {
        Choice { kind, tunables: Vec::new(), read_ahead_kib: None, nr_requests: None, queue_depth: None }
    }

    /// The same with a tunable that has another value; at its default it is none that differs.
    pub fn with(mut self, tunable: &'static Tunable, value: i64) -> Choice {
        self.tunables.retain(|(name, _)| *name != tunable.name);
        if value != tunable.default {
            self.tunables.push((tunable.name, value));
        }
        let place = |name: &str| self.kind.info().tunables.iter().position(|row| row.name == name);
        self.tunables.sort_by_key(|(name, _)| place(name));
        self
    }

    /// What a scheduler's files say, as far as they differ from the defaults; names that are not known here are left out and returned.
    pub fn as_set<'a>(kind: Kind, files: impl Iterator<Item = (&'a str, &'a str)>) -> (Choice, Vec<String>) {
        let mut choice = Choice::plain(kind);
        let mut unknown = Vec::new();
        for (name, text) in files {
            let row = kind.info().tunables.iter().find(|row| row.name == name);
            let value = text.trim().parse::<i64>().ok();
            match (row, value) {
                (Some(_), Some(_)) if !is_the_kernel_s(kind, name) => {}
                // All tags, or three quarters of them: what the kernel sets by itself.
                (Some(_), Some(_)) if kind == Kind::MqDeadline && name == "async_depth" => {}
                // The kernel keeps it in ticks: of 125 ms it makes 124 at 250 a second.
                (Some(row), Some(value)) if name == "timeout_sync" && (row.default - value).abs() < TICK_MS_MAX => {}
                (Some(row), Some(value)) if (row.min..=row.max).contains(&value) => choice = choice.with(row, value),
                _ => unknown.push(name.to_owned()),
            }
        }
        (choice, unknown)
    }

    /// Whether nothing differs from the scheduler's defaults.
    pub fn is_plain(&self) -> bool {
        *self == Choice::plain(self.kind)
    }

    /// The scheduler's name as the kernel has it, and what differs: `bfq slice_idle=0`.
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

    /// The tunables as the simulator takes them.
    ///
    /// # Errors
    /// [`SimError`] for a value that is out of its range.
    pub fn settings(&self) -> Result<Vec<Setting>, SimError> {
        let name = self.kind.info().name;
        self.tunables.iter().map(|(tunable, value)| Setting::parse(&format!("{name}.{tunable}={value}"))).collect()
    }

    /// The host with what is set of its queue.
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

/// What is often changed of a scheduler: a few tunables, each alone. A search looks further.
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
    fn a_default_is_nothing_that_differs() {
        let row = |name: &str| Kind::Bfq.info().tunables.iter().find(|row| row.name == name).unwrap();
        let choice = Choice::plain(Kind::Bfq).with(row("timeout_sync"), 250).with(row("slice_idle"), 0);
        assert_eq!(choice.name(), "bfq slice_idle=0 timeout_sync=250");
        assert!(choice.with(row("timeout_sync"), 125).with(row("slice_idle"), 8).is_plain());
    }

    #[test]
    fn files_of_the_kernel_tell_what_differs() {
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
