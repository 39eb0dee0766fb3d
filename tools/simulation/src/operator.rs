//! The operator of a world's server: changes every setting while clients send requests.

use super::plan::{Plan, device_name, random_figures, random_group, random_terms, random_tunable, rearrange};
use hoistway_config::{BackendConfig, Config, DeviceConfig, Rule, TenantConfig};
use hoistway_control::{AdminTarget, Change, Refused};
use hoistway_qos::{DiskQueueConfig, is_layer_tunable};
use hoistway_reactor::simulated::{Prng, SimEngine};
use hoistway_server::{ReloadError, Server};

/// An operator of the server.
pub(super) struct Operator {
    prng: Prng,
    /// The current configuration file.
    config: Config,
    /// The elevators of the remaining switches, the next one last.
    switches: Vec<hoistway_core::Kind>,
    next_ns: u64,
    pause_ns_max: u64,
    /// True if reservations may be refused, because a device has a low bandwidth.
    may_refuse: bool,
    /// True after a change of a tunable by which reservations are admitted.
    changed_figures: bool,
    /// The number of actions.
    pub done: u64,
}

impl Operator {
    /// Creates the operator of a server with this configuration.
    pub fn new(plan: &Plan, config: Config, mut prng: Prng, now_ns: u64) -> Operator {
        let switches = plan.switches.iter().rev().copied().collect();
        let next_ns = now_ns + prng.magnitude(plan.switch_ns_max);
        let may_refuse = plan.devices.iter().any(|device| device.may_refuse());
        Operator {
            prng,
            config,
            switches,
            next_ns,
            pause_ns_max: plan.switch_ns_max,
            may_refuse,
            changed_figures: false,
            done: 0,
        }
    }

    /// Changes a setting if the time has come, and returns a description.
    ///
    /// # Errors
    /// When a valid change was refused.
    pub fn act(&mut self, server: &mut Server<SimEngine>, now_ns: u64) -> Result<Option<String>, String> {
        let Some(kind) = self.switches.last().copied().filter(|_| now_ns >= self.next_ns) else { return Ok(None) };
        self.next_ns = now_ns + self.prng.magnitude(self.pause_ns_max);
        self.done += 1;
        let device = device_name(
            self.prng.index(self.config.devices.iter().filter(|device| device.queue.name != UNUSED).count()),
        );
        let change = match self.prng.between(0, 11) {
            0 => Change::Depth { device, depth: self.prng.magnitude(64) as u32 },
            1 => Change::Merge { device, merge: self.prng.permille(500) },
            2 => Change::RequestBytesMax { device, bytes: self.prng.pick(&[4096, 12_288, 1 << 20]) },
            3 | 4 if !self.config.tenants.is_empty() => return self.set_terms(server),
            5 if !self.config.groups.is_empty() => {
                let at = self.prng.index(self.config.groups.len());
                let group = self.config.groups[at].name.clone();
                Change::GroupWeight { group, weight: self.prng.between(1, 1000) as u16 }
            }
            6 => {
                let Some(change) = self.tunable(server, device) else { return Ok(None) };
                change
            }
            7 | 8 => return self.reload(server),
            _ => {
                self.switches.pop();
                Change::Elevator { device, kind }
            }
        };
        let what = format!("{change:?}");
        self.changed_figures |= matches!(&change, Change::Tunable { name, .. } if is_layer_tunable(name));
        // During a switch a tunable of the old elevator may be refused.
        let is_leaving = match &change {
            Change::Tunable { device, .. } => server.device(device).is_some_and(|facts| facts.switching),
            _ => false,
        };
        match server.change(change) {
            Ok(_) => Ok(Some(what)),
            Err(Refused::Busy(why)) => Ok(Some(format!("{what}: not now: {why}"))),
            Err(Refused::No(why)) if is_leaving => Ok(Some(format!("{what}: not now: {why}"))),
            Err(other) => Err(format!("{what}: {other}")),
        }
    }

    /// Returns a change of a tunable of a device's present elevator.
    fn tunable(&mut self, server: &Server<SimEngine>, device: String) -> Option<Change> {
        let kind = server.device(&device)?.elevator;
        let (name, value) = random_tunable(&mut self.prng, kind)?;
        let name = kind.info().tunables.iter().find(|tunable| tunable.name == name)?.name;
        Some(Change::Tunable { device, name, value })
    }

    /// Sets the terms of a tenant. A refused reservation leaves the terms unchanged.
    fn set_terms(&mut self, server: &mut Server<SimEngine>) -> Result<Option<String>, String> {
        let at = self.prng.index(self.config.tenants.len());
        let tenant = self.config.tenants[at].name.clone();
        let terms = random_terms(&mut self.prng, &self.config.groups);
        let what = format!("terms of {tenant}: {terms:?}");
        let before = server.terms(&tenant);
        match server.change(Change::Terms { tenant: tenant.clone(), terms: terms.clone() }) {
            Ok(_) if server.terms(&tenant).as_ref() == Some(&terms) => Ok(Some(what)),
            Ok(_) => Err(format!("{what}: other terms are in force")),
            Err(Refused::No(why)) if (self.may_refuse || self.changed_figures) && terms.reserve.is_some() => {
                if server.terms(&tenant) != before {
                    return Err(format!("{what}: refused ({why}), and the terms have changed"));
                }
                Ok(Some(format!("{what}: refused: {why}")))
            }
            Err(other) => Err(format!("{what}: {other}")),
        }
    }

    /// Reloads a changed configuration: another tree of groups, other terms, and an unused device,
    /// export, group and tenant that are added or removed.
    fn reload(&mut self, server: &mut Server<SimEngine>) -> Result<Option<String>, String> {
        let mut config = self.config.clone();
        self.change_groups(&mut config);
        for tenant in &mut config.tenants {
            tenant.terms = random_terms(&mut self.prng, &config.groups);
        }
        match config.tenants.iter().position(|tenant| tenant.name == UNUSED) {
            Some(at) => drop(config.tenants.remove(at)),
            None => {
                let terms = random_terms(&mut self.prng, &config.groups);
                config.tenants.push(TenantConfig { name: UNUSED.into(), rules: vec![Rule::Uid(12_345)], terms });
            }
        }
        self.change_devices(&mut config);
        match server.reload(config.clone(), None) {
            Ok(()) => {
                self.config = config;
                Ok(Some("reload".to_owned()))
            }
            Err(ReloadError::Busy(why)) => Ok(Some(format!("reload: not now: {why}"))),
            Err(error) => Err(format!("reload: {error}")),
        }
    }

    /// Adds or removes a group with tenants, and sometimes rearranges the tree.
    fn change_groups(&mut self, config: &mut Config) {
        match config.groups.iter().position(|group| group.name == UNUSED) {
            Some(at) => {
                let removed = config.groups.remove(at);
                // Its members move to its parent.
                for group in config.groups.iter_mut().filter(|group| group.parent.as_deref() == Some(UNUSED)) {
                    group.parent.clone_from(&removed.parent);
                }
            }
            None if self.prng.permille(500) => config.groups.push(random_group(&mut self.prng, UNUSED.into())),
            None => {}
        }
        if self.prng.permille(500) {
            rearrange(&mut self.prng, &mut config.groups);
        }
    }

    fn change_devices(&mut self, config: &mut Config) {
        let at = self.prng.index(config.devices.len());
        let device = &mut config.devices[at];
        device.queue.depth = self.prng.permille(500).then(|| self.prng.magnitude(32) as u32);
        if let Some(kind) = device.queue.elevator {
            let count = self.prng.between(0, 2);
            device.queue.tunables = (0..count).filter_map(|_| random_tunable(&mut self.prng, kind)).collect();
        }
        self.changed_figures |= device.queue.tunables.iter().any(|(name, _)| is_layer_tunable(name));
        if self.may_refuse && device.queue.name != UNUSED {
            let figures = random_figures(&mut self.prng);
            (device.queue.bandwidth, device.queue.position_ns) = figures.unzip();
        }
        match config.exports.iter().position(|export| export.name == UNUSED) {
            Some(at) => {
                config.exports.remove(at);
                config.devices.retain(|device| device.queue.name != UNUSED);
            }
            None => {
                let mut export = config.exports[0].clone();
                export.name = UNUSED.into();
                if self.prng.permille(300) {
                    config.devices.push(spare(&config.devices[0]));
                    (export.device, export.offset, export.size) = (UNUSED.into(), 0, None);
                }
                config.exports.push(export);
            }
        }
    }
}

/// The name of all unused objects.
const UNUSED: &str = "unused";

fn spare(like: &DeviceConfig) -> DeviceConfig {
    let backend = BackendConfig::Memory { bytes: 10_000 };
    DeviceConfig { queue: DiskQueueConfig { name: UNUSED.into(), ..like.clone().queue }, backend, drive: None }
}
