//! The elevator of a queue: its choice, its setup, and switching it while requests are in progress.

use hoistway_core::{
    Capacity, ClockConfig, DeviceFigures, ElevatorStorage, Kind, OrderedMode, QueueConfig, RequestQueue, Reservation,
    Storage, TunableError,
};

use super::{DiskQueueConfig, DiskScheduler, Queue, QueueError, check_values};
use crate::figures;
use crate::medium::MediumProperties;
use crate::recorder::QueueSink;

/// The capacity of a device's request queue. Further requests wait in front of it in order of
/// arrival; further clients are refused. The tables take 7 MiB (noop) to 50 MiB (bfq).
pub const CAPACITY: Capacity = Capacity { requests: 32_768, contexts: 16_384, merged_bios: 32_768, groups: 1024 };

/// The clock of the elevators: those that count in jiffies see ticks of 1 ms. A simulation of a
/// device has to use it.
pub const CLOCK: ClockConfig = ClockConfig { hz: 1000, uptime_ns: 10_000_000_000 };

/// Tunables that switch on the division of a device among groups, for elevators that have it off by
/// default.
const GROUP_SWITCHES: [&str; 2] = ["groups", "key_type"];

/// The elevator's setup, which is applied again after each switch.
#[derive(Debug)]
pub(super) struct ElevatorState {
    /// Why this elevator was chosen, as a sentence.
    reason: String,
    /// The configured elevator.
    configured: Kind,
    /// The configured tunables.
    configured_tunables: Vec<(String, i64)>,
    /// The current elevator, or the one that a switch in progress installs.
    kind: Kind,
    /// The tunables that are set on `kind` and on the reservation layer, by the configuration or at
    /// run time.
    set: Vec<(String, i64)>,
    /// Whether a switch is in progress.
    is_switching: bool,
    /// Whether the violation of the current elevator was logged.
    has_logged_violation: bool,
}

/// Why an elevator was not switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// A switch is in progress: requests that the old elevator dispatched are still in the device.
    #[error("the last switch is not over yet: try again")]
    UnderWay,
}

/// Why a queue was not reconfigured. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ReconfigureError {
    /// A value is invalid.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The elevator cannot be switched now.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

/// Checks that an elevator, or the reservation layer above it, has a tunable and accepts a value.
fn check_tunable(kind: Kind, name: &str, value: i64) -> Result<(), TunableError> {
    let tunable = kind.info().tunables.iter().chain(Reservation::TUNABLES).find(|tunable| tunable.name == name);
    let tunable = tunable.ok_or(TunableError::Unknown)?;
    match (tunable.min..=tunable.max).contains(&value) {
        true => Ok(()),
        false => Err(TunableError::OutOfRange { min: tunable.min, max: tunable.max }),
    }
}

/// Checks that all tunables of a configuration can be set.
fn check_tunables(config: &DiskQueueConfig, kind: Kind) -> Result<(), QueueError> {
    config.tunables.iter().try_for_each(|(name, value)| {
        check_tunable(kind, name, *value).map_err(|source| QueueError::Tunable {
            device: config.name.clone(),
            elevator: kind.info().name,
            tunable: name.clone(),
            source,
        })
    })
}

/// Creates a device's request queue.
pub(super) fn create(
    config: &DiskQueueConfig,
    medium: &MediumProperties,
    now_ns: u64,
) -> Result<(Queue, ElevatorState), QueueError> {
    let (kind, reason) = choose(config, medium);
    check_tunables(config, kind)?;
    let queue_config = QueueConfig {
        layer: kind.info().layer,
        clock: CLOCK,
        plugging: false,
        // A synchronous medium gains nothing from longer requests: the search would cost more than
        // it saves.
        merging: config.merge && !medium.is_synchronous,
        nr_requests: None,
        max_sectors: (config.request_bytes_max / 512).max(1),
        ordered: OrderedMode::None,
        rotational: medium.rotational,
        ..QueueConfig::default()
    };
    let storage = Storage::owned(CAPACITY);
    let mut queue =
        RequestQueue::new(queue_config, storage, ElevatorStorage::owned(kind, CAPACITY), QueueSink::default(), now_ns);
    let state = ElevatorState {
        reason,
        configured: kind,
        configured_tunables: config.tunables.clone(),
        kind,
        set: config.tunables.clone(),
        is_switching: false,
        has_logged_violation: false,
    };
    state.apply(&mut queue, &figures::layer_tunables(config.bandwidth, config.position_ns, medium.rotational));
    Ok((queue, state))
}

/// The elevator of a device that rotates, if the configuration names none.
pub const DEFAULT_ROTATING: Kind = Kind::Paternoster;
/// The elevator of any other device, if the configuration names none.
pub const DEFAULT: Kind = Kind::Fiops;

/// Returns the elevator of a device, and the reason for it as a sentence.
fn choose(config: &DiskQueueConfig, medium: &MediumProperties) -> (Kind, String) {
    if let Some(kind) = config.elevator {
        return (kind, "the configuration names it".to_owned());
    }
    let device = if medium.is_emulated { "the emulated drive" } else { "the device" };
    match medium.rotational {
        true => (
            DEFAULT_ROTATING,
            format!("{device} rotates: paternoster shares its time and serves streams in turns, which saves seeks"),
        ),
        false => (DEFAULT, format!("{device} does not rotate: idling gains nothing, and fiops shares requests fairly")),
    }
}

impl ElevatorState {
    /// Applies the setup to an elevator: division among groups, then the figures of the reservation
    /// layer, then the tunables that are set, which override the others.
    fn apply(&self, queue: &mut Queue, figures: &[(&str, i64)]) {
        for name in GROUP_SWITCHES {
            let switch = queue.kind().info().tunables.iter().find(|tunable| tunable.name == name);
            if queue.kind().info().groups && switch.is_some() {
                // The value 1 is within the range of each of these switches.
                let _ = queue.set_tunable(name, 1);
            }
        }
        for (name, value) in if queue.is_reserving() { figures } else { &[] } {
            let _ = queue.set_tunable(name, *value);
        }
        for (name, value) in &self.set {
            // The value was checked when it was set. A tunable of the layer has no effect while
            // there is no layer.
            let _ = queue.set_tunable(name, *value);
        }
    }

    /// Replaces the elevator. Tunables of the reservation layer stay; the configured elevator gets
    /// its configured tunables.
    fn change_kind(&mut self, kind: Kind) {
        self.set.retain(|(name, _)| figures::is_layer_tunable(name));
        if kind == self.configured {
            let own = self.configured_tunables.iter().filter(|(name, _)| !figures::is_layer_tunable(name));
            self.set.extend(own.cloned());
        }
        self.kind = kind;
    }
}

impl DiskScheduler {
    /// Returns why the device has the elevator that it started with, as the end of a sentence.
    pub fn elevator_reason(&self) -> &str {
        &self.elevator.reason
    }

    /// Returns a warning if the present or the next elevator can starve a client on this device.
    ///
    /// Measured on a null drive of 1 ms, for 10 s, with a tenant that keeps 4 requests in flight
    /// beside one with 64: cfq-v1 serves the first tenant nothing at depths 1 and 8. At depths 8
    /// and 32, cfq serves it nothing and cfq-tree a hundredth; at depth 1 both serve it half. All
    /// other elevators serve it a sixteenth, its part of the requests, or more.
    pub fn elevator_warning(&self) -> Option<String> {
        let kind = self.elevator.kind;
        let at_charging_time =
            kind == Kind::Cfq && self.elevator.set.iter().any(|(name, value)| name == "slice_idle" && *value > 0);
        let starves = match kind {
            Kind::CfqV1 => true,
            Kind::Cfq | Kind::CfqTree => self.depth > 1 && !at_charging_time,
            _ => false,
        };
        let mend = match kind {
            Kind::Cfq => ", set slice_idle, or set the depth to 1",
            Kind::CfqTree => ", or set the depth to 1",
            _ => "",
        };
        (starves && !self.is_rotational()).then(|| {
            format!(
                "device {}: under {} a client with few requests can get nothing beside one with many where nothing rotates: choose fiops{mend}",
                self.name,
                kind.info().name
            )
        })
    }

    /// Returns the first answer of the current custom elevator that broke a rule of the request
    /// queue, the consequence, and what to do. `None` if the elevator works.
    pub fn violation(&self) -> Option<String> {
        let violation = self.queue.violation()?;
        let (elevator, device) = (self.queue.kind().info().name, &self.name);
        Some(format!(
            "elevator {elevator} broke a rule: {violation}. No request is lost: they are dispatched in order of arrival until devices/{device}/queue/scheduler is set to another elevator"
        ))
    }

    /// Logs the violation of the current elevator, once.
    pub(crate) fn log_violation(&mut self) {
        if !self.elevator.has_logged_violation
            && let Some(violation) = self.violation()
        {
            self.elevator.has_logged_violation = true;
            tracing::error!(device = self.name, "{violation}");
        }
    }

    /// Returns true while the old elevator is drained for a switch.
    pub fn is_switching(&self) -> bool {
        self.queue.is_switching()
    }

    /// Applies another configuration while requests are in progress. Returns warnings.
    ///
    /// # Errors
    /// When a value is out of its range, the elevator has no such tunable, or a switch is in
    /// progress; nothing has changed then.
    pub fn reconfigure(&mut self, config: &DiskQueueConfig, now_ns: u64) -> Result<Vec<String>, ReconfigureError> {
        check_values(config)?;
        let (kind, reason) = choose(config, &self.medium);
        check_tunables(config, kind)?;
        let is_other = kind != self.elevator.kind;
        if is_other && self.queue.is_switching() {
            return Err(SwitchError::UnderWay.into());
        }
        let were_set: Vec<String> = self.elevator.set.iter().map(|(name, _)| name.clone()).collect();
        self.elevator.configured = kind;
        self.elevator.reason = reason;
        self.elevator.kind = kind;
        self.elevator.configured_tunables = config.tunables.clone();
        self.elevator.set = config.tunables.clone();
        self.set_requests(config.merge, config.request_bytes_max)?;
        self.set_depth(config.depth.unwrap_or_else(|| self.default_depth()));
        (self.bandwidth, self.position_ns) = (config.bandwidth, config.position_ns);
        self.log_slow_ns = config.log_slow_ns;
        if is_other {
            self.switch_to(kind, self.tenants.any_reserves(), now_ns)?;
        } else if !self.queue.is_switching() {
            self.reset_tunables(&were_set);
        }
        let mut warnings = Vec::new();
        warnings.extend(self.elevator_warning().filter(|_| is_other));
        if is_other && self.queue.is_switching() {
            warnings.push(format!(
                "device {}: {} takes over when the requests that {} dispatched have completed",
                self.name,
                kind.info().name,
                self.queue.kind().info().name
            ));
        }
        Ok(warnings)
    }

    /// Resets the tunables that were set to their defaults, and applies the configured ones.
    fn reset_tunables(&mut self, were_set: &[String]) {
        let defaults: Vec<(&str, i64)> = self
            .queue
            .tunables()
            .filter(|(tunable, _)| were_set.iter().any(|name| name == tunable.name))
            .map(|(tunable, _)| (tunable.name, tunable.default))
            .collect();
        for (name, value) in defaults {
            let _ = self.queue.set_tunable(name, value);
        }
        let figures = self.figures();
        self.elevator.apply(&mut self.queue, &figures);
        self.kicked = true;
    }

    /// Switches to another elevator.
    ///
    /// The old elevator dispatches its requests first; new requests wait in order of arrival, and
    /// flushes do not wait. The new elevator starts with its defaults and with groups, or with the
    /// configured tunables if it is the configured elevator. The block layer stays that of the
    /// first elevator.
    ///
    /// # Errors
    /// When another switch is in progress.
    pub fn switch(&mut self, kind: Kind, now_ns: u64) -> Result<(), SwitchError> {
        if kind == self.queue.kind() && !self.queue.is_switching() {
            return Ok(());
        }
        if self.queue.is_switching() {
            return Err(SwitchError::UnderWay);
        }
        self.elevator.change_kind(kind);
        self.switch_to(kind, self.tenants.any_reserves(), now_ns)
    }

    /// Switches to an elevator with or without the reservation layer.
    pub(super) fn switch_to(&mut self, kind: Kind, reserving: bool, now_ns: u64) -> Result<(), SwitchError> {
        if self.queue.is_switching() {
            return Err(SwitchError::UnderWay);
        }
        let storage = match reserving {
            true => ElevatorStorage::owned_reserving(kind, CAPACITY),
            false => ElevatorStorage::owned(kind, CAPACITY),
        };
        let now_ns = self.advance(now_ns);
        let _ = self.queue.switch(storage, now_ns);
        // The old elevator may refuse to be drained.
        self.log_violation();
        self.kick();
        self.elevator.is_switching = true;
        self.finish_switch();
        Ok(())
    }

    /// Applies the setup to the new elevator when a switch has ended.
    pub(crate) fn finish_switch(&mut self) {
        if !self.elevator.is_switching || self.queue.is_switching() {
            return;
        }
        self.elevator.is_switching = false;
        self.elevator.has_logged_violation = false;
        while self.queue.take_retired_storage().is_some() {}
        let figures = self.figures();
        self.elevator.apply(&mut self.queue, &figures);
        if self.queue.is_reserving() {
            self.reserve_again();
        } else if self.tenants.any_reserves() {
            // A reservation was made since this switch began. No other switch can be in progress.
            let _ = self.switch_to(self.queue.kind(), true, self.now_ns);
        }
    }

    /// Returns the figures by which reservations are admitted.
    pub(super) fn device_figures(&self) -> DeviceFigures {
        figures::device_figures(&self.figures(), &self.elevator.set)
    }

    /// Returns the tunables of the reservation layer that follow from the device's figures.
    fn figures(&self) -> [(&'static str, i64); 4] {
        figures::layer_tunables(self.bandwidth, self.position_ns, self.is_rotational())
    }

    /// Sets a tunable of the elevator or of the reservation layer, by the kernel's name and in the
    /// kernel's unit.
    ///
    /// It holds until the next switch of the elevator; a tunable of the layer holds until the
    /// configuration is reloaded. Returns warnings.
    ///
    /// # Errors
    /// When there is no tunable of this name, or the value is out of its range.
    pub fn set_tunable(&mut self, name: &str, value: i64) -> Result<Vec<String>, TunableError> {
        check_tunable(self.elevator.kind, name, value)?;
        self.elevator.set.retain(|(known, _)| known != name);
        self.elevator.set.push((name.to_owned(), value));
        if self.elevator.kind == self.queue.kind() {
            // A tunable of the layer has no effect while there is no layer.
            let _ = self.queue.set_tunable(name, value);
        }
        self.kick();
        Ok(if figures::is_layer_tunable(name) { self.recheck_reservations() } else { Vec::new() })
    }

    /// Returns the tunables that are set, in the form of [`DiskQueueConfig::tunables`].
    pub fn tunables_set(&self) -> &[(String, i64)] {
        &self.elevator.set
    }
}
