//! What a seed makes of a world: small seeds are small worlds.

use std::fmt;

use hoistway_core::{Class, Kind, Priority};
use hoistway_drive::{Faults, Hang, Profile};
use hoistway_nbd::server::Replies;

use super::client::{ClientPlan, RudePlan};
use super::disk::DiskPlan;
use super::links::LinkPlan;
use super::{Dice, Sabotage};
use crate::config::{BackendConfig, Config, DeviceConfig, ExportConfig, Rule, TenantConfig};
use crate::engine::{Address, Peer, Process};
use crate::server::Bounds;
use crate::tenant::{Limits, Rate, Reserve, Terms};

/// What lies below the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory.
    Memory,
    /// Nothing.
    Null,
    /// A simulated disk, through the page cache.
    Buffered,
    /// A simulated disk, with direct I/O where the real file that stands for it can do that.
    Direct,
}

/// Everything that is decided before a world begins.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// What lies below the device.
    pub medium: Medium,
    /// The disk, of simulated ones.
    pub disk: DiskPlan,
    /// Bytes of the export that clients use, of that which rude ones use, and where it begins.
    pub export_bytes: u64,
    /// See there.
    pub scratch_bytes: u64,
    /// Where the clients' export begins on the device.
    pub export_offset: u64,
    /// Clients, each with its region: first byte and length.
    pub clients: Vec<(ClientPlan, u64, u64)>,
    /// Rude clients, and when they leave, in ns from the beginning.
    pub rude: Vec<(RudePlan, LinkPlan, u64)>,
    /// When the power fails: at most once for each of these times, in ns after a server has started.
    pub crashes_ns: Vec<u64>,
    /// The power may fail at once after an acknowledgement.
    pub crash_after_acknowledgement: bool,
    /// The elevators that the operator switches to, and the longest time between two, in ns.
    pub switches: Vec<Kind>,
    /// See there.
    pub switch_ns_max: u64,
    /// How many times it leaves with clients there, to be started again.
    pub drains: u32,
    /// What is put before the device.
    pub drive: Option<Profile>,
    /// The device's elevator, depth, largest request, merging.
    pub elevator: Option<Kind>,
    /// See there.
    pub depth: Option<u32>,
    /// See there.
    pub request_bytes_max: u32,
    /// See there.
    pub merge: bool,
    /// Tenants may have reserved bandwidth: the device says what it sustains.
    pub reserves: bool,
    /// What tenants are there: by the user's number.
    pub tenants: Vec<Terms>,
    /// What may be under way.
    pub bounds: Bounds,
    /// What is wrong on purpose.
    pub sabotage: Sabotage,
}

/// The export that clients use.
pub const EXPORT: &str = "shared";
/// The one that rude clients use.
pub const SCRATCH: &str = "scratch";
/// A second name for the clients' export, under which nothing can be written.
pub const READ_ONLY: &str = "frozen";

const MS: u64 = 1_000_000;

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let dice = &mut dice;
        let scale = (seed + 2).ilog2().min(10) as u64;
        let medium = dice.pick(&[
            Medium::Memory,
            Medium::Null,
            Medium::Buffered,
            Medium::Buffered,
            Medium::Buffered,
            Medium::Direct,
            Medium::Direct,
        ]);
        let calm = dice.permille(400);
        let drive = drive(dice, calm);
        let count = dice.between(1, 1 + scale);
        let clients = clients(dice, count, scale, calm, drive.is_some());
        let export_bytes = clients.iter().map(|(_, start, len)| start + len).max().unwrap_or(1);
        let export_offset = dice.pick(&[0, 512, 4096, 12_345]);
        // Direct I/O is done to files of whole units only.
        let unit = if medium == Medium::Direct { 4096 } else { 1 };
        let size = (export_offset + export_bytes + 8192).next_multiple_of(unit);
        let scratch_bytes = size - export_offset - export_bytes;
        let size = size as usize;
        let simulated = matches!(medium, Medium::Buffered | Medium::Direct);
        let lives = if simulated { dice.between(0, scale.min(3)) } else { 0 };
        let reserves = dice.permille(300);
        let tenants = (0..dice.between(0, 3)).map(|_| random_terms(dice, reserves)).collect();
        Plan {
            seed,
            medium,
            disk: disk(dice, size, calm),
            export_bytes,
            scratch_bytes,
            export_offset,
            rude: (0..if calm { 0 } else { dice.between(0, scale / 2) }).map(|_| rude(dice)).collect(),
            crashes_ns: (0..lives).map(|_| 2 * MS + dice.magnitude(500 * MS)).collect(),
            crash_after_acknowledgement: simulated && dice.permille(500),
            switches: (0..dice.between(0, scale)).map(|_| dice.pick(Kind::ALL)).collect(),
            switch_ns_max: dice.magnitude(200 * MS),
            drains: u32::from(dice.permille(200)),
            drive,
            elevator: dice.permille(800).then(|| dice.pick(Kind::ALL)),
            depth: dice.permille(600).then(|| dice.magnitude(64) as u32),
            request_bytes_max: dice.pick(&[4096, 8192, 65536, 1 << 20]),
            merge: dice.permille(700),
            reserves,
            tenants,
            bounds: bounds(dice),
            sabotage: Sabotage::None,
            clients,
        }
    }

    /// Whether requests may fail although nothing is wrong with them.
    pub fn is_faulty(&self) -> bool {
        self.disk.errors_permille > 0 || self.disk.no_space_permille > 0 || self.drive.is_some()
    }

    /// The configuration of the server, whose file is at this path.
    pub fn config(&self, path: &str) -> Config {
        let bytes = self.disk.size as u64;
        let backend = match self.medium {
            Medium::Memory => BackendConfig::Memory { bytes },
            Medium::Null => BackendConfig::Null { bytes },
            Medium::Buffered => BackendConfig::File { path: path.into(), direct: Some(false), read_only: false },
            Medium::Direct => BackendConfig::File { path: path.into(), direct: None, read_only: false },
        };
        let device = DeviceConfig {
            name: "disk".to_owned(),
            backend,
            drive: self.drive.clone(),
            elevator: self.elevator,
            depth: self.depth,
            tunables: Vec::new(),
            merge: self.merge,
            request_bytes_max: self.request_bytes_max,
            bandwidth: self.reserves.then_some(1 << 30),
            position_ns: self.reserves.then_some(0),
        };
        let export = |name: &str, offset: u64, size: u64, read_only: bool| ExportConfig {
            name: name.to_owned(),
            description: String::new(),
            device: "disk".to_owned(),
            offset,
            size: Some(size),
            read_only,
            tenants: Vec::new(),
        };
        let tenants = self.tenants.iter().enumerate().map(|(number, terms)| TenantConfig {
            name: format!("tenant-{number}"),
            rules: vec![Rule::Uid(number as u32)],
            terms: terms.clone(),
        });
        Config {
            devices: vec![device],
            exports: vec![
                export(EXPORT, self.export_offset, self.export_bytes, false),
                export(READ_ONLY, self.export_offset, self.export_bytes, true),
                export(SCRATCH, self.export_offset + self.export_bytes, self.scratch_bytes, false),
            ],
            tenants: tenants.collect(),
            ..Config::default()
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elevator = self.elevator.map_or("chosen by the device", |kind| kind.info().name);
        let (medium, bytes) = (self.medium, self.disk.size);
        writeln!(f, "seed {}: {medium:?} of {bytes} bytes, elevator {elevator}, depth {:?}", self.seed, self.depth)?;
        if self.drive.is_some() {
            writeln!(f, "  the model of a drive in front")?;
        }
        writeln!(f, "  {:?}", self.disk)?;
        writeln!(f, "  {:?}", self.bounds)?;
        writeln!(
            f,
            "  crashes {:?} ns, after acknowledgements: {}",
            self.crashes_ns, self.crash_after_acknowledgement
        )?;
        let switches: Vec<&str> = self.switches.iter().map(|kind| kind.info().name).collect();
        writeln!(f, "  switches to {switches:?}, {} drains", self.drains)?;
        for terms in &self.tenants {
            writeln!(f, "  tenant: {terms:?}")?;
        }
        for (client, start, len) in &self.clients {
            writeln!(f, "  region {start}+{len}: {client:?}")?;
        }
        self.rude.iter().try_for_each(|rude| writeln!(f, "  rude: {rude:?}"))
    }
}

fn disk(dice: &mut Dice, size: usize, calm: bool) -> DiskPlan {
    let faulty = !calm && dice.permille(400);
    DiskPlan {
        size,
        latency_ns_max: dice.pick(&[2_000, 50_000, MS, 10 * MS]),
        hangs_permille: if calm { 0 } else { dice.pick(&[0, 0, 2, 20]) },
        hang_ns_max: dice.pick(&[10 * MS, 500 * MS, 3_000 * MS]),
        errors_permille: if faulty { dice.pick(&[0, 2, 30]) } else { 0 },
        no_space_permille: if faulty { dice.pick(&[0, 0, 20]) } else { 0 },
        failed_flush_loses: dice.permille(500),
        trim_keeps: dice.permille(300),
    }
}

/// The model of a drive, in one world of six; disks have bad sectors and hangs.
fn drive(dice: &mut Dice, calm: bool) -> Option<Profile> {
    if !dice.permille(160) {
        return None;
    }
    let name = dice.pick(&["null", "sata-7200-2006", "ssd-sata-consumer"]);
    let profile = Profile::builtin(name)?;
    if calm || name != "sata-7200-2006" {
        return Some(profile);
    }
    let bad_sectors = (0..dice.between(0, 2)).map(|at| (at * 64 + dice.between(0, 50), 1)).collect();
    let hangs =
        (0..dice.between(0, 2)).map(|at| Hang { at_ms: (at * 1000) as f64, for_ms: dice.between(1, 900) as f64 });
    let faults = Faults { bad_sectors, hangs: hangs.collect(), retries: 3, ..Faults::default() };
    profile.with_faults(faults).ok()
}

fn bounds(dice: &mut Dice) -> Bounds {
    Bounds {
        connections_max: 64,
        requests_max: dice.pick(&[1, 4, 64, 1024]),
        connection_bytes_max: dice.pick(&[64 << 10, 1 << 20]),
        bytes_max: dice.pick(&[128 << 10, 1 << 20, 64 << 20]),
        handshake_ns_max: 3_000 * MS,
        drain_ns_max: 20_000 * MS,
        stall_ns_max: 4_000 * MS,
        slow_bytes_per_second: 256 << 10,
    }
}

/// Terms that leave everybody something.
pub(super) fn random_terms(dice: &mut Dice, reserves: bool) -> Terms {
    let class = dice.pick(&[Class::None, Class::BestEffort, Class::BestEffort, Class::RealTime]);
    let priority = Priority::new(class, dice.between(0, 7) as u8).unwrap_or(Priority::UNSET);
    let rate = |per_second: u64, burst: u64| Some(Rate { per_second, burst });
    let limits = match dice.between(0, 5) {
        0 => Limits { bytes: rate(4 << 20, dice.magnitude(1 << 20)), operations: None },
        1 => Limits { bytes: None, operations: rate(500, dice.magnitude(100)) },
        _ => Limits::default(),
    };
    let reserve = reserves && dice.permille(500);
    let reserve = reserve.then(|| Reserve { bytes_per_second: dice.magnitude(4 << 20), request_bytes: 64 << 10 });
    Terms { priority, weight: dice.between(1, 1000) as u16, limits, reserve, ..Terms::default() }
}

fn link(dice: &mut Dice) -> LinkPlan {
    LinkPlan {
        latency_ns_max: dice.pick(&[1_000, 30_000, MS, 40 * MS]),
        capacity: dice.pick(&[600, 8_000, 200_000, 1 << 20]),
        piece_max: dice.pick(&[7, 600, 40_000, 1 << 20, 1 << 20]),
    }
}

fn peer(dice: &mut Dice) -> Peer {
    let uid = dice.between(0, 4) as u32;
    let ioprio = (dice.between(0, 2) << 13 | dice.between(0, 7)) as u16;
    let process = Process { pid: 1000 + uid, uid, gid: uid, comm: "client".to_owned(), ioprio, ..Process::default() };
    Peer { address: Address::Unix, process: Some(process) }
}

fn clients(dice: &mut Dice, count: u64, scale: u64, calm: bool, slow: bool) -> Vec<(ClientPlan, u64, u64)> {
    let mut clients: Vec<(ClientPlan, u64, u64)> = Vec::new();
    let mut start = 0;
    for number in 0..count {
        let length = dice.magnitude(64 << 10).max(700);
        // Some look at what others write.
        let spied = number > 0 && dice.permille(150);
        let (from, len) = match clients.get(dice.index(clients.len())) {
            Some((_, from, len)) if spied => (*from, *len),
            _ => (start, length),
        };
        if from == start {
            start += length;
        }
        let greedy = number > 0 && dice.permille(150);
        let plan = ClientPlan {
            name: format!("client {number}{}", if greedy { " (greedy)" } else { "" }),
            export: if spied { READ_ONLY } else { EXPORT }.to_owned(),
            read_only: spied,
            connections: dice.pick(&[1, 1, 1, 2, 4]),
            depth: dice.magnitude(64) as usize,
            requests: if greedy { 600 } else { dice.magnitude((20 * scale).min(if slow { 60 } else { 150 })) as u32 },
            replies: dice.pick(&[Replies::Simple, Replies::Structured, Replies::Extended]),
            by_name: dice.permille(200),
            think_ns_max: dice.pick(&[0, 0, 20_000, 5 * MS]),
            length_max: dice.pick(&[512, 4096, 20_000, 64 << 10]),
            reads_permille: dice.pick(&[100, 400, 400, 900]),
            writes_permille: dice.pick(&[0, 600, 800, 950]),
            mishaps_permille: if calm { 0 } else { dice.pick(&[0, 0, 5, 40]) },
            pauses_permille: if calm { 0 } else { dice.pick(&[0, 0, 30]) },
            pause_ns_max: dice.pick(&[MS, 300 * MS, 2_000 * MS]),
            wrong_permille: dice.pick(&[0, 0, 50]),
            greedy,
            link: link(dice),
            peer: peer(dice),
            patience_ns: 120_000 * MS,
        };
        clients.push((plan, from, len));
    }
    clients
}

fn rude(dice: &mut Dice) -> (RudePlan, LinkPlan, u64) {
    let plan =
        dice.pick(&[RudePlan::Silent, RudePlan::Garbage, RudePlan::LateGarbage, RudePlan::Flips, RudePlan::NeverReads]);
    (plan, link(dice), 2 * MS + dice.magnitude(20_000 * MS))
}
