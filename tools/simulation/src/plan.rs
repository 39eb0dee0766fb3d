//! The derivation of a world from a seed. Small seeds are small worlds.

mod device;
mod tenants;

use std::fmt;

use hoistway_core::Kind;
use hoistway_nbd::server::Replies;

use super::client::{ClientPlan, Misbehavior};
use hoistway_blockdev::remote::Sabotage as RemoteSabotage;
use hoistway_config::{Config, ExportConfig, GroupConfig, Rule, TenantConfig};
use hoistway_qos::Terms;
use hoistway_reactor::simulated::LinkPlan;
use hoistway_reactor::simulated::{Prng, Sabotage};
use hoistway_reactor::{Address, Peer, Process};
use hoistway_server::Bounds;

pub use device::{DevicePlan, Medium};
pub(super) use device::{device_name, random_figures, random_tunable};
use tenants::random_groups;
pub(super) use tenants::{random_group, random_terms, rearrange};

/// The properties of a world that are fixed before it starts.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The devices, 1 to 3, with the exports.
    pub devices: Vec<DevicePlan>,
    /// The clients, each with the first byte and the length of its region.
    pub clients: Vec<(ClientPlan, u64, u64)>,
    /// Misbehaving clients, and the times in ns at which they leave.
    pub misbehaving: Vec<(Misbehavior, LinkPlan, u64)>,
    /// The times of power failures, in ns after the start of a server.
    pub crashes_ns: Vec<u64>,
    /// True if the power may fail directly after an acknowledgement.
    pub crash_after_acknowledgement: bool,
    /// The elevators to which the operator switches.
    pub switches: Vec<Kind>,
    /// The longest time between two actions of the operator, in ns.
    pub switch_ns_max: u64,
    /// The number of shutdowns and restarts with connected clients.
    pub drains: u32,
    /// The groups, each after its parent.
    pub groups: Vec<GroupConfig>,
    /// The terms of the tenants, by user id.
    pub tenants: Vec<Terms>,
    /// The bounds of the server.
    pub bounds: Bounds,
    /// The deliberate fault of the engine.
    pub sabotage: Sabotage,
    /// The deliberate fault of the recovery after lost connections to remotes.
    pub remote_sabotage: RemoteSabotage,
}

/// The export that misbehaving clients use, on the first device.
pub const SCRATCH: &str = "scratch";

const MS: u64 = 1_000_000;
/// Distinguishes the seed of remotes from that of the rest of a world.
const REMOTES: u64 = 0x0072_656d_6f74_6573;
/// Devices of a thousand that are behind a remote server.
const REMOTES_PERMILLE: u64 = 350;

impl Plan {
    /// Derives the plan of a seed.
    pub fn new(seed: u64) -> Plan {
        let mut prng = Prng::new(seed);
        let prng = &mut prng;
        let scale = (seed + 2).ilog2().min(10) as u64;
        let calm = prng.permille(400);
        let count = if scale > 2 { prng.pick(&[1, 1, 1, 2, 2, 3]) } else { 1 };
        let mut devices: Vec<DevicePlan> = (0..count).map(|number| DevicePlan::new(prng, number, calm)).collect();
        // Numbers of their own, so that remotes change no other world.
        let mut of_remotes = Prng::new(seed ^ REMOTES);
        for device in &mut devices {
            if of_remotes.permille(REMOTES_PERMILLE) {
                device.make_remote(&mut of_remotes);
            }
        }
        let count = prng.between(1, 1 + scale);
        let mut clients = clients(prng, count, scale, calm, &devices);
        for (client, ..) in clients.iter_mut().filter(|(client, ..)| devices[client.device].remote.is_some()) {
            client.use_remote(&mut of_remotes);
        }
        for (number, device) in devices.iter_mut().enumerate() {
            let on = clients.iter().filter(|(client, ..)| client.device == number);
            device.lay_out(on.map(|(_, start, len)| start + len).max().unwrap_or(1), calm, prng);
        }
        let simulated = devices.iter().any(DevicePlan::is_simulated);
        let lives = if simulated { prng.between(0, scale.min(3)) } else { 0 };
        let groups = random_groups(prng, scale);
        let tenants = (0..prng.between(0, 3)).map(|_| {
            let terms = random_terms(prng, &groups);
            // The initial reservations must fit.
            if devices.iter().any(DevicePlan::may_refuse) { Terms { reserve: None, ..terms } } else { terms }
        });
        Plan {
            seed,
            tenants: tenants.collect(),
            groups,
            misbehaving: (0..if calm { 0 } else { prng.between(0, scale / 2) }).map(|_| misbehaving(prng)).collect(),
            crashes_ns: (0..lives).map(|_| 2 * MS + prng.magnitude(500 * MS)).collect(),
            crash_after_acknowledgement: simulated && prng.permille(500),
            switches: (0..prng.between(0, scale)).map(|_| prng.pick(Kind::ALL)).collect(),
            switch_ns_max: prng.magnitude(200 * MS),
            drains: u32::from(prng.permille(200)),
            bounds: bounds(prng),
            sabotage: Sabotage::None,
            remote_sabotage: RemoteSabotage::None,
            clients,
            devices,
        }
    }

    /// Returns the configuration of the server with disks at these paths.
    pub fn config(&self, paths: &[String]) -> Config {
        let numbered = || self.devices.iter().enumerate();
        let export = |name: String, number: usize, offset: u64, size: u64, read_only: bool| ExportConfig {
            name,
            description: String::new(),
            device: device_name(number),
            offset,
            size: Some(size),
            read_only,
            tenants: Vec::new(),
        };
        let mut exports: Vec<ExportConfig> = Vec::new();
        for (number, device) in numbered() {
            let (offset, bytes) = (device.export_offset, device.export_bytes);
            exports.push(export(export_name(number, false), number, offset, bytes, false));
            exports.push(export(export_name(number, true), number, offset, bytes, true));
            if number == 0 {
                exports.push(export(SCRATCH.to_owned(), number, offset + bytes, device.scratch_bytes, false));
            }
        }
        let tenants = self.tenants.iter().enumerate().map(|(number, terms)| TenantConfig {
            name: format!("tenant-{number}"),
            rules: vec![Rule::Uid(number as u32)],
            terms: terms.clone(),
        });
        Config {
            devices: numbered().map(|(number, device)| device.config(number, &paths[number])).collect(),
            exports,
            groups: self.groups.clone(),
            tenants: tenants.collect(),
            ..Config::default()
        }
    }
}

/// Returns the name of a device's export for clients, or of the same export without writes.
pub fn export_name(device: usize, read_only: bool) -> String {
    format!("{}-{device}", if read_only { "frozen" } else { "shared" })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        self.devices.iter().try_for_each(|device| writeln!(f, "  {device}"))?;
        writeln!(f, "  {:?}", self.bounds)?;
        writeln!(
            f,
            "  crashes {:?} ns, after acknowledgements: {}",
            self.crashes_ns, self.crash_after_acknowledgement
        )?;
        let switches: Vec<&str> = self.switches.iter().map(|kind| kind.info().name).collect();
        writeln!(f, "  switches to {switches:?}, {} drains", self.drains)?;
        for group in &self.groups {
            writeln!(f, "  group: {group:?}")?;
        }
        for terms in &self.tenants {
            writeln!(f, "  tenant: {terms:?}")?;
        }
        for (client, start, len) in &self.clients {
            writeln!(f, "  region {start}+{len}: {client:?}")?;
        }
        self.misbehaving.iter().try_for_each(|misbehaving| writeln!(f, "  misbehaving: {misbehaving:?}"))
    }
}

fn bounds(prng: &mut Prng) -> Bounds {
    Bounds {
        connections_max: 64,
        requests_max: prng.pick(&[1, 4, 64, 1024]),
        connection_bytes_max: prng.pick(&[64 << 10, 1 << 20]),
        bytes_max: prng.pick(&[128 << 10, 1 << 20, 64 << 20]),
        handshake_ns_max: 3_000 * MS,
        drain_ns_max: 20_000 * MS,
        stall_ns_max: 4_000 * MS,
        slow_bytes_per_second: 256 << 10,
    }
}

fn link(prng: &mut Prng) -> LinkPlan {
    LinkPlan {
        latency_ns_max: prng.pick(&[1_000, 30_000, MS, 40 * MS]),
        capacity: prng.pick(&[600, 8_000, 200_000, 1 << 20]),
        piece_max: prng.pick(&[7, 600, 40_000, 1 << 20, 1 << 20]),
    }
}

fn peer(prng: &mut Prng) -> Peer {
    let uid = prng.between(0, 4) as u32;
    let ioprio = (prng.between(0, 2) << 13 | prng.between(0, 7)) as u16;
    let process = Process { pid: 1000 + uid, uid, gid: uid, comm: "client".to_owned(), ioprio, ..Process::default() };
    Peer { address: Address::Unix, process: Some(process) }
}

fn clients(prng: &mut Prng, count: u64, scale: u64, calm: bool, devices: &[DevicePlan]) -> Vec<(ClientPlan, u64, u64)> {
    let mut clients: Vec<(ClientPlan, u64, u64)> = Vec::new();
    // The start of the next region of each device.
    let mut starts = vec![0; devices.len()];
    for number in 0..count {
        let length = prng.magnitude(64 << 10).max(700);
        // Some clients read the region of another.
        let spied = number > 0 && prng.permille(150);
        let (device, from, len) = match clients.get(prng.index(clients.len())) {
            Some((other, from, len)) if spied => (other.device, *from, *len),
            _ => {
                let device = prng.index(devices.len());
                let from = starts[device];
                starts[device] += length;
                (device, from, length)
            }
        };
        let slow = devices[device].drive.is_some();
        let greedy = number > 0 && prng.permille(150);
        let plan = ClientPlan {
            name: format!("client {number}{}", if greedy { " (greedy)" } else { "" }),
            device,
            faulty: devices[device].is_faulty(),
            export: export_name(device, spied),
            read_only: spied,
            connections: prng.pick(&[1, 1, 1, 2, 4]),
            depth: prng.magnitude(64) as usize,
            requests: if greedy { 600 } else { prng.magnitude((20 * scale).min(if slow { 60 } else { 150 })) as u32 },
            replies: prng.pick(&[Replies::Simple, Replies::Structured, Replies::Extended]),
            by_name: prng.permille(200),
            think_ns_max: prng.pick(&[0, 0, 20_000, 5 * MS]),
            length_max: prng.pick(&[512, 4096, 20_000, 64 << 10]),
            flushes_permille: 0,
            reads_permille: prng.pick(&[100, 400, 400, 900]),
            writes_permille: prng.pick(&[0, 600, 800, 950]),
            mishaps_permille: if calm { 0 } else { prng.pick(&[0, 0, 5, 40]) },
            pauses_permille: if calm { 0 } else { prng.pick(&[0, 0, 30]) },
            pause_ns_max: prng.pick(&[MS, 300 * MS, 2_000 * MS]),
            wrong_permille: prng.pick(&[0, 0, 50]),
            greedy,
            link: link(prng),
            peer: peer(prng),
            patience_ns: 120_000 * MS,
        };
        clients.push((plan, from, len));
    }
    clients
}

fn misbehaving(prng: &mut Prng) -> (Misbehavior, LinkPlan, u64) {
    let plan = prng.pick(&[
        Misbehavior::Silent,
        Misbehavior::Garbage,
        Misbehavior::LateGarbage,
        Misbehavior::Flips,
        Misbehavior::NeverReads,
    ]);
    (plan, link(prng), 2 * MS + prng.magnitude(20_000 * MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_worlds_have_every_feature() {
        let plans: Vec<Plan> = (0..200).map(Plan::new).collect();
        let count = |what: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| what(plan)).count();
        let any = |what: &'static dyn Fn(&DevicePlan) -> bool| count(&|plan| plan.devices.iter().any(what));
        let depth = |plan: &Plan| plan.groups.iter().filter(|group| group.parent.is_some()).count();
        let limited = |plan: &Plan| plan.groups.iter().any(|group| group.limits != hoistway_qos::Limits::default());
        for (what, found) in [
            ("two devices", count(&|plan| plan.devices.len() == 2)),
            ("three devices", count(&|plan| plan.devices.len() == 3)),
            ("clients of two devices", count(&|plan| plan.clients.iter().any(|(client, ..)| client.device == 1))),
            ("groups in groups", count(&|plan| depth(plan) > 0)),
            ("limits of groups", count(&limited)),
            ("tenants in groups", count(&|plan| plan.tenants.iter().any(|terms| terms.parent.is_some()))),
            ("tunables", any(&|device| !device.tunables.is_empty())),
            ("refused reservations", any(&DevicePlan::may_refuse)),
            ("sound drives", any(&|device| device.drive.is_some() && !device.is_faulty())),
            ("bad sectors", any(&|device| device.drive_has_bad_sectors)),
            ("remotes", any(&|device| device.remote.is_some())),
            (
                "remotes with several connections",
                any(&|device| device.remote.is_some_and(|remote| remote.multi_conn && remote.connections > 1)),
            ),
            (
                "remotes that are away for too long",
                any(&|device| device.remote.is_some_and(|remote| remote.timeout_ns < 10_000 * MS)),
            ),
        ] {
            assert!(found >= 4, "{what}: in {found} worlds of 200");
        }
    }
}
