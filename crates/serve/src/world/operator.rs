//! Whoever runs the server of a world: changes everything that can be changed while clients are at work.

use super::plan::{Plan, random_terms};
use super::{Dice, SimEngine};
use crate::config::{Config, Rule, TenantConfig};
use crate::control::{Change, Refused, Steer};
use crate::server::{ReloadError, Server};

/// An operator.
pub(super) struct Operator {
    dice: Dice,
    /// The configuration as it is by now.
    config: Config,
    /// Elevators that are still to be switched to, the next one last.
    switches: Vec<hoistway_core::Kind>,
    next_ns: u64,
    pause_ns_max: u64,
    reserves: bool,
    /// What was done.
    pub done: u64,
}

impl Operator {
    /// An operator of a server with this configuration.
    pub fn new(plan: &Plan, config: Config, mut dice: Dice, now_ns: u64) -> Operator {
        let switches = plan.switches.iter().rev().copied().collect();
        let next_ns = now_ns + dice.magnitude(plan.switch_ns_max);
        Operator { dice, config, switches, next_ns, pause_ns_max: plan.switch_ns_max, reserves: plan.reserves, done: 0 }
    }

    /// Does something, if it is time; answers what.
    ///
    /// # Errors
    /// When it should have been possible and was not.
    pub fn act(&mut self, server: &mut Server<SimEngine>, now_ns: u64) -> Result<Option<String>, String> {
        let Some(kind) = self.switches.last().copied().filter(|_| now_ns >= self.next_ns) else { return Ok(None) };
        self.next_ns = now_ns + self.dice.magnitude(self.pause_ns_max);
        self.done += 1;
        let device = "disk".to_owned();
        let change = match self.dice.between(0, 7) {
            0 => Change::Depth { device, depth: self.dice.magnitude(64) as u32 },
            1 => Change::Merge { device, merge: self.dice.permille(500) },
            2 => Change::RequestBytesMax { device, bytes: self.dice.pick(&[4096, 12_288, 1 << 20]) },
            3 if !self.config.tenants.is_empty() => {
                let at = self.dice.index(self.config.tenants.len());
                let tenant = self.config.tenants[at].name.clone();
                Change::Terms { tenant, terms: random_terms(&mut self.dice, self.reserves) }
            }
            4 => return self.reload(server),
            _ => {
                self.switches.pop();
                Change::Elevator { device, kind }
            }
        };
        let what = format!("{change:?}");
        match server.change(change) {
            Ok(_) => Ok(Some(what)),
            Err(Refused::Busy(why)) => Ok(Some(format!("{what}: not now: {why}"))),
            Err(other) => Err(format!("{what}: {other}")),
        }
    }

    /// Reads a configuration anew in which weights and limits differ, and in which an export and a tenant come or go that nobody uses.
    fn reload(&mut self, server: &mut Server<SimEngine>) -> Result<Option<String>, String> {
        let mut config = self.config.clone();
        for tenant in &mut config.tenants {
            tenant.terms = random_terms(&mut self.dice, self.reserves);
        }
        match config.tenants.iter().position(|tenant| tenant.name == NOBODY) {
            Some(at) => drop(config.tenants.remove(at)),
            None => {
                let terms = random_terms(&mut self.dice, self.reserves);
                config.tenants.push(TenantConfig { name: NOBODY.into(), rules: vec![Rule::Uid(12_345)], terms });
            }
        }
        match config.exports.iter().position(|export| export.name == NOBODY) {
            Some(at) => drop(config.exports.remove(at)),
            None => {
                let mut export = config.exports[0].clone();
                export.name = NOBODY.into();
                config.exports.push(export);
            }
        }
        config.devices[0].depth = self.dice.permille(500).then(|| self.dice.magnitude(32) as u32);
        match server.reload(config.clone(), None) {
            Ok(()) => {
                self.config = config;
                Ok(Some("reload".to_owned()))
            }
            Err(ReloadError::Busy(why)) => Ok(Some(format!("reload: not now: {why}"))),
            Err(error) => Err(format!("reload: {error}")),
        }
    }
}

/// What nobody uses is called so.
const NOBODY: &str = "nobody";
