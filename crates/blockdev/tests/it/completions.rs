//! Every request completes exactly once, whatever the sequence of operations.

use hoistway_qos::DiskQueueConfig;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use hoistway_blockdev::BlockRequest;
use hoistway_config::DeviceConfig;
use hoistway_core::Kind;
use hoistway_qos::{Limits, Rate, Reserve, Terms};
use hoistway_qos::{MemberId, RequestOp};
use proptest::prelude::*;

use crate::testbed::*;

/// An event of a trial.
#[derive(Clone, Debug)]
enum Step {
    Submit { client: usize, op: RequestOp, offset: u64, length: u64, durable: bool },
    Pass { us: u64 },
    Leave { client: usize },
    Switch { kind: usize },
    Depth { depth: u32 },
    Terms { tenant: usize, weight: u16, limit: Option<u64>, reserve: Option<u64> },
    Fail { fails: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        4 => Just(RequestOp::Read),
        4 => Just(RequestOp::Write),
        1 => Just(RequestOp::Cache),
        1 => Just(RequestOp::Zero { punch: true }),
        1 => Just(RequestOp::Trim),
        1 => Just(RequestOp::Status),
        1 => Just(RequestOp::Flush),
    ];
    let length = prop_oneof![1u64..20_000, Just(4096), Just(65_536), 900_000u64..3_000_000];
    let execute = (0usize..6, op, 0u64..9 << 20, length, any::<bool>())
        .prop_map(|(client, op, offset, length, durable)| Step::Submit { client, op, offset, length, durable });
    let terms = (0usize..3, 1u16..1000, prop::option::of(100_000u64..50_000_000), prop::option::of(1u64..20_000_000))
        .prop_map(|(tenant, weight, limit, reserve)| Step::Terms { tenant, weight, limit, reserve });
    let step = prop_oneof![
        20 => execute,
        8 => (0u64..30_000).prop_map(|us| Step::Pass { us }),
        1 => (0usize..6).prop_map(|client| Step::Leave { client }),
        1 => (0usize..Kind::ALL.len()).prop_map(|kind| Step::Switch { kind }),
        1 => (1u32..40).prop_map(|depth| Step::Depth { depth }),
        1 => terms,
        1 => any::<bool>().prop_map(|fails| Step::Fail { fails }),
    ];
    prop::collection::vec(step, 1..120)
}

/// A device over a file of 8 MiB, with or without an emulated drive.
fn make(kind: usize, emulated: bool) -> Testbed {
    let config = DeviceConfig {
        queue: DiskQueueConfig {
            elevator: Some(Kind::ALL[kind % Kind::ALL.len()]),
            bandwidth: Some(100_000_000),
            position_ns: Some(100_000),
            ..config("d").queue
        },
        drive: emulated.then(|| constant_drive(300_000, 4)),
        ..config("d")
    };
    Testbed::on_file(&config, 8 << 20, 700_000)
}

const TENANTS: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];

struct Trial {
    testbed: Testbed,
    members: Vec<MemberId>,
    /// Tickets without a completion so far, by client.
    open: Vec<BTreeSet<u64>>,
    tickets: u64,
}

impl Trial {
    fn new(kind: usize, emulated: bool) -> Trial {
        let mut testbed = make(kind, emulated);
        for tenant in TENANTS.iter().flatten() {
            testbed.device.scheduler_mut().set_tenant(tenant, &Terms::default(), 0).expect("good terms");
        }
        let members = (0..6)
            .map(|at| testbed.device.scheduler_mut().join(TENANTS[at % 4], None, 0).expect("the client can join"));
        let members = members.collect();
        Trial { testbed, members, open: vec![BTreeSet::new(); 6], tickets: 0 }
    }

    fn step(&mut self, step: Step) {
        let now_ns = self.testbed.now();
        let device = &mut self.testbed.device;
        match step {
            Step::Submit { client, op, offset, length, durable } => {
                self.tickets += 1;
                let ticket = self.tickets << 8 | client as u64;
                let data = (op == RequestOp::Write).then(|| hoistway_reactor::Buffer::alone(length as usize));
                self.open[client].insert(ticket);
                let work = BlockRequest { durable, data, ..BlockRequest::plain(ticket, op, offset, length) };
                device.submit(self.members[client], work, now_ns);
            }
            Step::Pass { us } => self.pass(us * 1000),
            Step::Leave { client } => {
                device.leave(self.members[client], now_ns);
                self.open[client].clear();
                self.members[client] =
                    device.scheduler_mut().join(TENANTS[client % 4], None, now_ns).expect("the client can join");
            }
            // A second switch during a switch is refused.
            Step::Switch { kind } => drop(device.scheduler_mut().switch(Kind::ALL[kind], now_ns)),
            Step::Depth { depth } => device.scheduler_mut().set_depth(depth),
            Step::Terms { tenant, weight, limit, reserve } => {
                let bytes = limit.map(|per_second| Rate { per_second, burst: 100_000 });
                let reserve = reserve.map(|bytes_per_second| Reserve { bytes_per_second, request_bytes: 65_536 });
                let limits = Limits { bytes, operations: None };
                let terms = Terms { weight, limits, reserve, ..Terms::default() };
                // A reservation beyond the device's capacity is refused.
                drop(device.scheduler_mut().set_tenant(["a", "b", "c"][tenant], &terms, now_ns));
            }
            Step::Fail { fails } => self.testbed.engine.write_error = fails.then_some(5),
        }
    }

    /// Lets time pass; every completion must belong to an open ticket.
    fn pass(&mut self, ns: u64) {
        let until_ns = self.testbed.now() + ns;
        let open = &mut self.open;
        self.testbed.run_device(until_ns, |completion| {
            let client = (completion.ticket & 0xff) as usize;
            let is_open = open[client].remove(&completion.ticket);
            assert!(is_open, "{} completed twice or after its client left", completion.ticket);
            ControlFlow::Continue(())
        });
        self.testbed.engine.now_ns = until_ns;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_request_completes_exactly_once(kind in 0usize..32, emulated: bool, steps in steps()) {
        let mut trial = Trial::new(kind, emulated);
        for step in steps {
            trial.step(step);
        }
        // The lowest limit is 100 kB/s: 120 requests of 3 MB end within an hour.
        trial.pass(3_600 * SECOND);
        prop_assert!(trial.open.iter().all(BTreeSet::is_empty), "never answered: {:?}", trial.open);
        prop_assert!(trial.testbed.device.is_idle());
        prop_assert_eq!(trial.testbed.device.scheduler().waiting(), (0, 0));
        prop_assert_eq!(trial.testbed.device.scheduler().in_flight(), 0);
        prop_assert!(trial.testbed.device.scheduler().accounts().all(|(_, account)| account.in_flight == 0));
    }
}
