//! The queue and its elevator: which one, how it is set up, and how it is exchanged while the device works.

use hoistway_core::{
    Capacity, ClockConfig, DeviceFigures, ElevatorStorage, Kind, OrderedMode, Owned, QueueConfig, RequestQueue,
    Reservation, Storage, TunableError,
};

use super::tap::Tap;
use super::{Device, DeviceError, figures};
use crate::backend::Backend;
use crate::config::DeviceConfig;

/// What a device's queue holds. Requests beyond this wait in front of it, in order of arrival; connections beyond it are refused. The tables
/// take 7 MiB (noop) to 50 MiB (bfq).
pub const CAPACITY: Capacity = Capacity { requests: 32_768, contexts: 16_384, merged_bios: 32_768, groups: 1024 };

/// The clock that elevators see: older ones count in ticks of 1 ms. Whoever predicts what a device does sets the simulator's clock to this.
pub const CLOCK: ClockConfig = ClockConfig { hz: 1000, uptime_ns: 10_000_000_000 };

/// The tunables with which elevators that can divide a device among groups, and do not unless they are told to, are told to.
const GROUP_SWITCHES: [&str; 2] = ["groups", "key_type"];

/// What has to be set up again when another elevator has taken over.
#[derive(Debug)]
pub(super) struct Settling {
    /// Why this elevator: as a sentence.
    pub reason: String,
    /// The elevator of the configuration, and its tunables.
    configured: Kind,
    file: Vec<(String, i64)>,
    /// The elevator that is there, or that follows, ...
    kind: Kind,
    /// ... and what is set on it and on the layer over it, by the configuration or since.
    set: Vec<(String, i64)>,
    /// It was chosen here, for fairness: what would raise the weight of some for a while is off.
    chosen: bool,
    /// A switch is under way.
    pub pending: bool,
}

/// Why the elevator was not switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// The last switch is not over: requests that the old elevator has dispatched are still in the device.
    #[error("the last switch is not over yet: try again")]
    UnderWay,
}

/// Why a device was not reconfigured. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ReconfigureError {
    /// A value cannot be.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The elevator cannot be switched now.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

/// Whether an elevator of this kind, or the layer of reservations that may come over it, has this tunable, and takes the value.
fn check_tunable(kind: Kind, name: &str, value: i64) -> Result<(), TunableError> {
    let tunable = kind.info().tunables.iter().chain(Reservation::TUNABLES).find(|tunable| tunable.name == name);
    let tunable = tunable.ok_or(TunableError::Unknown)?;
    match (tunable.min..=tunable.max).contains(&value) {
        true => Ok(()),
        false => Err(TunableError::OutOfRange { min: tunable.min, max: tunable.max }),
    }
}

/// Whether all tunables of a configuration can be set.
fn check_tunables(config: &DeviceConfig, kind: Kind) -> Result<(), DeviceError> {
    config.tunables.iter().try_for_each(|(name, value)| {
        check_tunable(kind, name, *value).map_err(|source| super::tunable_error(config, kind, name, source))
    })
}

/// Makes a device's queue.
pub(super) fn make(
    config: &DeviceConfig,
    backend: &Backend,
    is_emulated: bool,
    is_instant: bool,
    now_ns: u64,
) -> Result<(RequestQueue<Owned<Tap>>, Settling), DeviceError> {
    let rotates = config.drive.as_ref().map_or(backend.rotational(), |profile| profile.is_rotational());
    let (kind, reason) = choose(config, rotates, is_emulated);
    check_tunables(config, kind)?;
    let queue_config = QueueConfig {
        layer: kind.info().layer,
        clock: CLOCK,
        plugging: false,
        // Memory has nothing to gain from longer requests: finding neighbours would cost more than it saves.
        merging: config.merge && !is_instant,
        nr_requests: None,
        max_sectors: (config.request_bytes_max / 512).max(1),
        ordered: OrderedMode::None,
        rotational: rotates,
        ..QueueConfig::default()
    };
    let storage = Storage::owned(CAPACITY);
    let mut queue =
        RequestQueue::new(queue_config, storage, ElevatorStorage::owned(kind, CAPACITY), Tap::default(), now_ns);
    let settling = Settling {
        reason,
        configured: kind,
        file: config.tunables.clone(),
        kind,
        set: config.tunables.clone(),
        chosen: config.elevator.is_none(),
        pending: false,
    };
    settling.set_up(&mut queue, &figures::values(config.bandwidth, config.position_ns, rotates));
    Ok((queue, settling))
}

/// The elevator of a device, and why.
fn choose(config: &DeviceConfig, rotates: bool, is_emulated: bool) -> (Kind, String) {
    if let Some(kind) = config.elevator {
        return (kind, "it was asked for".to_owned());
    }
    let what = if is_emulated { "the emulated drive" } else { "the device" };
    match rotates {
        true => (Kind::Bfq, format!("{what} rotates: budgets keep each client's requests together and the arm busy")),
        false => (
            Kind::Fiops,
            format!("{what} does not rotate: nothing is gained by keeping others waiting, and requests are shared"),
        ),
    }
}

impl Settling {
    /// Sets an elevator up: what has it divide the device among groups, then what the layer of reservations is told of the device, then what
    /// was set, which has the last word. There is no other place where that is done.
    fn set_up(&self, queue: &mut RequestQueue<Owned<Tap>>, figures: &[(&str, i64)]) {
        for name in GROUP_SWITCHES {
            let switch = queue.kind().info().tunables.iter().find(|tunable| tunable.name == name);
            if queue.kind().info().groups && switch.is_some() {
                // In range: 1 is what switches them on.
                let _ = queue.set_tunable(name, 1);
            }
        }
        if self.chosen && queue.kind() == Kind::Bfq && self.configured == Kind::Bfq {
            // Raised weights favour whoever is new or interactive: that breaks what weights promise.
            let _ = queue.set_tunable("low_latency", 0);
        }
        for (name, value) in if queue.is_reserving() { figures } else { &[] } {
            let _ = queue.set_tunable(name, *value);
        }
        for (name, value) in &self.set {
            // In range; of the layer's, there may be no layer now.
            let _ = queue.set_tunable(name, *value);
        }
    }

    /// Another elevator follows: with what was set on the layer, which stays, and the configuration's tunables, if it is the configuration's.
    fn turn_to(&mut self, kind: Kind) {
        self.set.retain(|(name, _)| figures::is_layers(name));
        if kind == self.configured {
            self.set.extend(self.file.iter().filter(|(name, _)| !figures::is_layers(name)).cloned());
        }
        self.kind = kind;
    }
}

impl Device {
    /// Why it has the elevator that it started with: as the end of a sentence.
    pub fn elevator_reason(&self) -> &str {
        &self.settling.reason
    }

    /// What is wrong with the elevator that it has, or that follows, on this device, if anything is.
    ///
    /// Measured on a null drive of 1 ms, a tenant with 4 requests under way beside one with 64, 10 s each: cfq-v1 serves it nothing at depths 1 and 8;
    /// cfq nothing and cfq-tree a hundredth at depths 8 and 32, and half at depth 1. The other elevators serve it a sixteenth, which is its part of the
    /// requests, or more.
    pub fn elevator_warning(&self) -> Option<String> {
        let kind = self.settling.kind;
        let at_charging_time =
            kind == Kind::Cfq && self.settling.set.iter().any(|(name, value)| name == "slice_idle" && *value > 0);
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

    /// Whether an elevator is being drained for another one.
    pub fn is_switching(&self) -> bool {
        self.queue.is_switching()
    }

    /// Takes up another configuration while it works: elevator (none: chosen again), tunables, depth (none: the default), merging, the largest request,
    /// bandwidth and position. Backend and drive stay as they are. What comes back is what should be known.
    ///
    /// # Errors
    /// When a value is out of its range, the elevator has no such tunable, or a switch is under way; then nothing has changed.
    pub fn reconfigure(&mut self, config: &DeviceConfig, now_ns: u64) -> Result<Vec<String>, ReconfigureError> {
        super::check_values(config)?;
        let (kind, reason) = choose(config, self.is_rotational(), self.emulated.is_some());
        check_tunables(config, kind)?;
        let is_other = kind != self.settling.kind;
        if is_other && self.queue.is_switching() {
            return Err(SwitchError::UnderWay.into());
        }
        let is_lost: Vec<String> = self.settling.set.iter().map(|(name, _)| name.clone()).collect();
        self.settling.configured = kind;
        self.settling.reason = reason;
        self.settling.chosen = config.elevator.is_none();
        self.settling.kind = kind;
        self.settling.file = config.tunables.clone();
        self.settling.set = config.tunables.clone();
        self.set_requests(config.merge, config.request_bytes_max)?;
        self.set_depth(config.depth.unwrap_or_else(|| self.default_depth()));
        (self.bandwidth, self.position_ns) = (config.bandwidth, config.position_ns);
        if is_other {
            self.switch_to(kind, self.tenants.any_reserves(), now_ns)?;
        } else if !self.queue.is_switching() {
            self.reset_tunables(&is_lost);
        }
        let mut warnings = Vec::new();
        warnings.extend(self.elevator_warning().filter(|_| is_other));
        if is_other && self.queue.is_switching() {
            warnings.push(format!(
                "device {}: {} follows when what {} has dispatched is done",
                self.name,
                kind.info().name,
                self.queue.kind().info().name
            ));
        }
        Ok(warnings)
    }

    /// Tunables that were set and are not any more take their defaults; the others what is configured.
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
        self.settling.set_up(&mut self.queue, &figures);
        self.kicked = true;
    }

    /// Switches to another elevator. What the old one holds is dispatched first and what comes meanwhile waits for its turn in order of arrival, so that
    /// nothing is lost; flushes wait for none of it. The new one starts with its defaults (and groups, where it can), or with the configuration's
    /// tunables if it is the configuration's elevator. The block layer stays that of the first elevator.
    ///
    /// # Errors
    /// When the last switch is not over.
    pub fn switch(&mut self, kind: Kind, now_ns: u64) -> Result<(), SwitchError> {
        if kind == self.queue.kind() && !self.queue.is_switching() {
            return Ok(());
        }
        if self.queue.is_switching() {
            return Err(SwitchError::UnderWay);
        }
        self.settling.turn_to(kind);
        self.switch_to(kind, self.tenants.any_reserves(), now_ns)
    }

    /// The same, with or without the layer of reservations.
    pub(super) fn switch_to(&mut self, kind: Kind, reserving: bool, now_ns: u64) -> Result<(), SwitchError> {
        if self.queue.is_switching() {
            return Err(SwitchError::UnderWay);
        }
        let storage = match reserving {
            true => ElevatorStorage::owned_reserving(kind, CAPACITY),
            false => ElevatorStorage::owned(kind, CAPACITY),
        };
        self.now_ns = self.now_ns.max(now_ns);
        let _ = self.queue.switch(storage, self.now_ns);
        self.told();
        self.settling.pending = true;
        self.settle();
        Ok(())
    }

    /// Sets the new elevator up, once it is there.
    pub(super) fn settle(&mut self) {
        if !self.settling.pending || self.queue.is_switching() {
            return;
        }
        self.settling.pending = false;
        while self.queue.take_retired_storage().is_some() {}
        let figures = self.figures();
        self.settling.set_up(&mut self.queue, &figures);
        if self.queue.is_reserving() {
            self.reserve_again();
        } else if self.tenants.any_reserves() {
            // Somebody has reserved something since this switch began. No other can be under way.
            let _ = self.switch_to(self.queue.kind(), true, self.now_ns);
        }
    }

    /// What the admission of reservations reckons with.
    pub(super) fn device_figures(&self) -> DeviceFigures {
        figures::reckoned(&self.figures(), &self.settling.set)
    }

    /// What the layer of reservations is told of the device.
    fn figures(&self) -> [(&'static str, i64); 4] {
        figures::values(self.bandwidth, self.position_ns, self.is_rotational())
    }

    /// Sets a tunable by the kernel's name, in the kernel's unit: of the elevator that is there or follows, or of the layer of reservations.
    /// It holds until another elevator is switched to; the layer's until the configuration is read anew. What comes back is what should be known.
    ///
    /// # Errors
    /// When the elevator has none of this name, or the value is out of its range.
    pub fn set_tunable(&mut self, name: &str, value: i64) -> Result<Vec<String>, TunableError> {
        check_tunable(self.settling.kind, name, value)?;
        self.settling.set.retain(|(known, _)| known != name);
        self.settling.set.push((name.to_owned(), value));
        if self.settling.kind == self.queue.kind() {
            // Of the layer's, there may be no layer now.
            let _ = self.queue.set_tunable(name, value);
        }
        self.told();
        Ok(if figures::is_layers(name) { self.examine_promises() } else { Vec::new() })
    }

    /// The tunables that are not left to their defaults, as a configuration would have them.
    pub fn tunables_set(&self) -> &[(String, i64)] {
        &self.settling.set
    }
}
