//! A server of constant tables, for tests.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hoistway_core::Kind;

use super::*;
use hoistway_qos::{Reserve, Terms};

/// A server with one device, two exports, two tenants and a number of clients.
pub struct FakeTarget {
    pub elevator: Kind,
    pub tunables: BTreeMap<&'static str, i64>,
    pub depth: u32,
    pub tenants: BTreeMap<String, Terms>,
    pub clients: u64,
    pub served: u64,
    pub latency: Histogram<u64>,
    pub refuses: Option<Refused>,
    pub changes: Vec<Change>,
    /// The number of walks over all accounts.
    pub walks: std::cell::Cell<u64>,
}

impl FakeTarget {
    /// Creates a server with two clients.
    pub fn new() -> FakeTarget {
        let mut latency = Histogram::new_with_bounds(1, 60_000_000_000, 2).unwrap();
        (1..=100).for_each(|ms| latency.record(ms * 1_000_000).unwrap());
        let reserve = Some(Reserve { bytes_per_second: 20 << 20, request_bytes: 128 << 10 });
        let tenants = [
            ("backup".to_owned(), Terms { weight: 100, ..Terms::default() }),
            ("data base".to_owned(), Terms { weight: 300, reserve, ..Terms::default() }),
        ];
        FakeTarget {
            elevator: Kind::Cfq,
            tunables: BTreeMap::new(),
            depth: 2,
            tenants: tenants.into(),
            clients: 2,
            served: 1,
            latency,
            refuses: None,
            changes: Vec::new(),
            walks: std::cell::Cell::default(),
        }
    }
}

impl AdminTarget for FakeTarget {
    fn server(&self) -> ServerFacts {
        ServerFacts {
            version: "0.1.0".into(),
            engine: "simulated".into(),
            uptime_ns: 61_250_000_000,
            connections: 3,
            connections_max: 16_384,
            connections_total: 9,
            reload: "never".into(),
            readings: ConfigReadings { at_unix_ms: Some(1_700_000_000_500), failed: 2, ..ConfigReadings::default() },
            log: None,
        }
    }

    fn names(&self, kind: ObjectKind) -> Vec<String> {
        match kind {
            ObjectKind::Devices => vec!["sda".into()],
            ObjectKind::Exports => vec!["".into(), "vm/1".into()],
            ObjectKind::Tenants => self.tenants.keys().cloned().collect(),
            ObjectKind::Groups => vec!["vms".into()],
            ObjectKind::Clients => (0..self.clients).map(|number| number.to_string()).collect(),
        }
    }

    fn device(&self, name: &str) -> Option<DeviceFacts> {
        let tunable = |tunable: &'static hoistway_core::Tunable| {
            (tunable, self.tunables.get(tunable.name).copied().unwrap_or(tunable.default))
        };
        (name == "sda").then(|| DeviceFacts {
            bytes: 1 << 30,
            backend: "mem:1g".into(),
            drive: Some("sata-7200-2006".into()),
            elevator: self.elevator,
            violation: None,
            switching: false,
            tunables: self.elevator.info().tunables.iter().map(tunable).collect(),
            depth: self.depth,
            rotational: true,
            merge: true,
            request_bytes_max: 1 << 20,
            block_bytes: 512,
            bandwidth: None,
            position_ns: Some(12_000_000),
            reserved: None,
            in_flight: [2, 0],
            waiting: 5,
            busy_ns: 7_000_000,
            merges: [3, 4],
            slice: Some(SliceFacts { holder: "backup".into(), age_ns: 30_000_000, left_ns: Some(10_000_000) }),
            has_slices: true,
            late: vec![("data base".into(), 250_000_000)],
            lateness: Some(Lateness { count: 10, p50_ns: 20_000, p99_ns: 90_000, max_ns: 150_000 }),
        })
    }

    fn export(&self, name: &str) -> Option<ExportFacts> {
        self.names(ObjectKind::Exports).iter().any(|known| known == name).then(|| ExportFacts {
            device: "sda".into(),
            offset: 0,
            bytes: 1 << 29,
            read_only: name.is_empty(),
            description: "two\nlines".into(),
            clients: 1,
        })
    }

    fn tenant(&self, name: &str) -> Option<TenantFacts> {
        self.tenants.get(name).map(|terms| TenantFacts { terms: terms.clone(), clients: 1 })
    }

    fn group(&self, name: &str) -> Option<GroupFacts> {
        (name == "vms").then_some(GroupFacts { weight: 100, parent: None })
    }

    fn client(&self, number: u64) -> Option<ClientFacts> {
        let comm = Some("fio\u{1b}[2J".to_owned());
        (number < self.clients).then(|| ClientFacts {
            tenant: "data base".into(),
            address: "unix".into(),
            comm,
            ..ClientFacts::default()
        })
    }

    fn accounts(&self, device: &str, visit: &mut dyn FnMut(&str, &AccountView<'_>)) {
        self.walks.set(self.walks.get() + 1);
        for name in ["backup", "data base"] {
            self.account(device, name, &mut |view| visit(name, view));
        }
    }

    fn account(&self, _: &str, tenant: &str, visit: &mut dyn FnMut(&AccountView<'_>)) {
        if let Some((_, times)) = [("backup", 1), ("data base", 3)].into_iter().find(|(name, _)| *name == tenant) {
            let op = |requests, bytes| OpView {
                requests,
                bytes,
                errors: 0,
                queue_ns: Some(&self.latency),
                device_ns: None,
                total_ns: Some(&self.latency),
            };
            let served = self.served * times;
            let ops = [op(served, served << 12), op(0, 0), op(0, 0), op(0, 0)];
            let view = AccountView {
                ops,
                waiting: 4,
                held: 0,
                in_flight: 1,
                service_ns: served * 1000,
                reservation_missed: served,
                reservation_late_ns: served * 500_000_000,
                held_ns: served * 2_000_000_000,
                slices: served * 2,
                slice_ns: served * 80_000_000,
            };
            visit(&view);
        }
    }

    fn change(&mut self, change: Change) -> Result<Option<String>, Refused> {
        if let Some(refused) = &self.refuses {
            return Err(refused.clone());
        }
        match change.clone() {
            Change::Elevator { kind, .. } => self.elevator = kind,
            Change::Tunable { name, value, .. } => drop(self.tunables.insert(name, value)),
            Change::Depth { depth, .. } => self.depth = depth,
            Change::Terms { tenant, terms } => drop(self.tenants.insert(tenant, terms)),
            other => self.changes.push(other),
        }
        let weightless = matches!(&change, Change::Terms { .. } if !self.elevator.info().groups);
        Ok(weightless.then(|| "the elevator does not support groups".to_owned()))
    }
}
