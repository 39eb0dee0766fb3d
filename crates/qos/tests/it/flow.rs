//! Whatever clients, tenants and the elevator do, every request of a present client completes once,
//! and every byte of it is done once.

use std::collections::BTreeMap;

use hoistway_core::Kind;
use hoistway_qos::{CAPACITY, DiskQueueConfig, JoinError, Limits, MemberId, RequestOp, SwitchError, Terms, TermsError};
use proptest::prelude::*;

use crate::host::*;

/// An event of a trial.
#[derive(Clone, Debug)]
enum Step {
    Submit { client: usize, op: RequestOp, offset: u64, length: u64 },
    Pass { us: u64 },
    Join { tenant: usize },
    Leave { client: usize },
    Tenant { tenant: usize, group: usize, weight: u16, limits: Limits },
    Group { group: usize, parent: usize, weight: u16, limits: Limits },
    RemoveTenant { tenant: usize },
    RemoveGroup { group: usize },
    Switch { kind: usize },
    Depth { depth: u32 },
    RequestBytes { pages: u32 },
    Fail { fails: bool },
}

/// Limits that pass 3 MiB in a few hundred seconds, so that a trial ends.
fn limits() -> impl Strategy<Value = Limits> {
    let bytes = prop::option::of((100_000u64..50_000_000, 1u64..200_000).prop_map(|(a, b)| rate(a, b)));
    let operations = prop::option::of((5u64..5_000, 1u64..20).prop_map(|(a, b)| rate(a, b)));
    (bytes, operations)
        .prop_map(|(bytes, operations)| Limits { bytes: bytes.flatten(), operations: operations.flatten() })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        4 => Just(RequestOp::Read),
        4 => Just(RequestOp::Write),
        1 => Just(RequestOp::Cache),
        1 => Just(RequestOp::Zero { punch: true }),
        1 => Just(RequestOp::Trim),
        1 => Just(RequestOp::Status),
        2 => Just(RequestOp::Flush),
    ];
    let offset = prop_oneof![0u64..70 * MIB, (0u64..1000).prop_map(|page| page * 4096)];
    let length = prop_oneof![0u64..20_000, Just(4096), Just(65_536), 900_000u64..3_000_000];
    let submit = (any::<usize>(), op, offset, length).prop_map(|(client, op, offset, length)| Step::Submit {
        client,
        op,
        offset,
        length,
    });
    let tenant = (0usize..3, 0usize..3, 1u16..=1000, limits())
        .prop_map(|(tenant, group, weight, limits)| Step::Tenant { tenant, group, weight, limits });
    let group = (0usize..2, 0usize..3, 1u16..=1000, limits()).prop_map(|(group, parent, weight, limits)| Step::Group {
        group,
        parent,
        weight,
        limits,
    });
    let step = prop_oneof![
        30 => submit,
        10 => (0u64..20_000).prop_map(|us| Step::Pass { us }),
        3 => (0usize..4).prop_map(|tenant| Step::Join { tenant }),
        2 => any::<usize>().prop_map(|client| Step::Leave { client }),
        3 => tenant,
        2 => group,
        1 => (0usize..3).prop_map(|tenant| Step::RemoveTenant { tenant }),
        1 => (0usize..2).prop_map(|group| Step::RemoveGroup { group }),
        1 => (0..Kind::ALL.len()).prop_map(|kind| Step::Switch { kind }),
        1 => (1u32..12).prop_map(|depth| Step::Depth { depth }),
        1 => (1u32..300).prop_map(|pages| Step::RequestBytes { pages }),
        1 => any::<bool>().prop_map(|fails| Step::Fail { fails }),
    ];
    prop::collection::vec(step, 1..100)
}

const TENANTS: [&str; 3] = ["a", "b", "c"];
const GROUPS: [&str; 2] = ["g", "h"];

/// A queue beside a model of its tenants and groups: which exist, and their parents.
struct Trial {
    host: Host,
    /// The present clients with the names of their tenants.
    clients: Vec<(MemberId, &'static str)>,
    tenants: BTreeMap<&'static str, Option<&'static str>>,
    groups: BTreeMap<&'static str, Option<&'static str>>,
}

impl Trial {
    fn step(&mut self, step: Step) {
        let now_ns = self.host.now_ns;
        match step {
            Step::Submit { client, op, offset, length } => {
                if let Some((member, tenant)) = self.client(client).map(|at| self.clients[at]) {
                    self.host.submit(member, tenant, op, offset, length);
                }
            }
            Step::Pass { us } => self.host.run_until(now_ns + us * US),
            Step::Join { tenant } => self.join(TENANTS.get(tenant).copied()),
            Step::Leave { client } => {
                if let Some(at) = self.client(client) {
                    let (member, _) = self.clients.swap_remove(at);
                    self.host.leave(member);
                }
            }
            Step::Tenant { tenant, group, weight, limits } => {
                let (name, parent) = (TENANTS[tenant], GROUPS.get(group).copied());
                let terms = Terms { weight, limits, parent: parent.map(str::to_owned), ..Terms::default() };
                let result = self.host.queue.scheduler_mut().set_tenant(name, &terms, now_ns).map(|_| ());
                assert_eq!(result, self.parent_exists(parent));
                // A new tenant has a new account.
                if result.is_ok() && self.tenants.insert(name, parent).is_none() {
                    self.host.counts.remove(name);
                }
            }
            Step::Group { group, parent, weight, limits } => self.set_group(GROUPS[group], parent, weight, &limits),
            Step::RemoveTenant { tenant } => {
                let name = TENANTS[tenant];
                let in_use = self.clients.iter().any(|(_, of)| *of == name);
                let expected = removed(name, self.tenants.contains_key(name), in_use);
                assert_eq!(self.host.queue.scheduler_mut().remove_tenant(name, now_ns), expected);
                if expected.is_ok() {
                    self.tenants.remove(name);
                }
            }
            Step::RemoveGroup { group } => {
                let name = GROUPS[group];
                let in_use = self.tenants.values().chain(self.groups.values()).any(|parent| *parent == Some(name));
                let expected = removed(name, self.groups.contains_key(name), in_use);
                assert_eq!(self.host.queue.scheduler_mut().remove_group(name, now_ns), expected);
                if expected.is_ok() {
                    self.groups.remove(name);
                }
            }
            Step::Switch { kind } => {
                let scheduler = self.host.queue.scheduler_mut();
                let expected = if scheduler.is_switching() { Err(SwitchError::UnderWay) } else { Ok(()) };
                assert_eq!(scheduler.switch(Kind::ALL[kind], now_ns), expected);
            }
            Step::Depth { depth } => self.host.queue.scheduler_mut().set_depth(depth),
            Step::RequestBytes { pages } => {
                let scheduler = self.host.queue.scheduler_mut();
                let merges = scheduler.merges();
                scheduler.set_requests(merges, pages * 4096).expect("a multiple of a page");
            }
            Step::Fail { fails } => self.host.disk.fails = fails,
        }
    }

    fn client(&self, number: usize) -> Option<usize> {
        (!self.clients.is_empty()).then(|| number % self.clients.len())
    }

    fn join(&mut self, tenant: Option<&'static str>) {
        let now_ns = self.host.now_ns;
        let result = self.host.queue.scheduler_mut().join(tenant, None, now_ns);
        match tenant.filter(|name| !self.tenants.contains_key(name)) {
            Some(name) => assert_eq!(result, Err(JoinError::NoTenant(name.to_owned()))),
            None => self.clients.push((result.expect("there is room"), tenant.unwrap_or(DEFAULT))),
        }
    }

    fn parent_exists(&self, parent: Option<&str>) -> Result<(), TermsError> {
        match parent.filter(|parent| !self.groups.contains_key(parent)) {
            Some(parent) => Err(TermsError::NoGroup(parent.to_owned())),
            None => Ok(()),
        }
    }

    fn set_group(&mut self, name: &'static str, parent: usize, weight: u16, limits: &Limits) {
        let (parent, now_ns) = (GROUPS.get(parent).copied(), self.host.now_ns);
        let result = self.host.queue.scheduler_mut().set_group(name, parent, weight, limits, now_ns);
        let mut above = std::iter::successors(parent, |at| self.groups.get(at).copied().flatten());
        let is_loop = self.groups.contains_key(name) && above.any(|at| at == name);
        let looped = if is_loop { Err(TermsError::Loop(name.to_owned())) } else { Ok(()) };
        assert_eq!(result, self.parent_exists(parent).and(looped));
        if result.is_ok() {
            self.groups.insert(name, parent);
        }
    }
}

fn removed(name: &str, exists: bool, in_use: bool) -> Result<(), TermsError> {
    match (exists, in_use) {
        (false, _) => Err(TermsError::Unknown(name.to_owned())),
        (true, true) => Err(TermsError::InUse(name.to_owned())),
        (true, false) => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_of_every_request_is_done_once_and_counted(
        kind in 0..Kind::ALL.len(),
        ends in prop_oneof![Just(Ends::AtOnce), Just(Ends::Later), Just(Ends::InDrive)],
        merge: bool,
        steps in steps(),
    ) {
        let config = DiskQueueConfig { merge, ..plain(Kind::ALL[kind], 4) };
        let host = Host::new(&config, ends, 300 * US);
        let mut trial = Trial { host, clients: Vec::new(), tenants: BTreeMap::new(), groups: BTreeMap::new() };
        trial.join(None);
        for step in steps {
            trial.step(step);
        }
        trial.host.drain();
        trial.host.check_accounts();
        let scheduler = trial.host.queue.scheduler();
        prop_assert!(!scheduler.is_switching());
        let names: Vec<&str> = scheduler.accounts().map(|(name, _)| name).filter(|name| *name != DEFAULT).collect();
        prop_assert_eq!(names.len(), trial.tenants.len());
        prop_assert!(names.iter().all(|name| trial.tenants.contains_key(name)));
    }
}

#[test]
fn no_more_ios_are_in_the_disk_than_the_depth_allows_even_after_it_falls() {
    let mut host = Host::new(&plain(Kind::Deadline, 6), Ends::Later, MS);
    let member = host.join(None);
    for at in 0..60 {
        host.submit(member, DEFAULT, RequestOp::Read, at * 8192, 4096);
    }
    host.run();
    assert_eq!(host.disk.in_progress(), 6);
    host.queue.scheduler_mut().set_depth(2);
    let mut seen = vec![6];
    while !host.queue.is_idle() {
        let until_ns = host.now_ns + 100 * US;
        host.run_until(until_ns);
        seen.push(host.disk.in_progress());
    }
    let fell = seen.iter().position(|&ios| ios <= 2).expect("it falls");
    assert!(seen[..fell].is_sorted_by(|one, next| one >= next), "none begins while more than 2 are there: {seen:?}");
    assert!(seen[fell..].iter().all(|&ios| ios <= 2) && host.done.len() == 60, "{seen:?}");
}

#[test]
fn a_leaving_client_cancels_its_requests_at_every_stage() {
    let mut host = Host::new(&plain(Kind::Noop, 2), Ends::Later, MS);
    host.tenant("capped", &limited(rate(8 * MIB, 8 * MIB), None));
    let (leaver, stayer) = (host.join(Some("capped")), host.join(None));
    // Two pieces in the disk and six in the queue, then a request in the queue, one that its limit
    // holds back, a flush that waits for another, and a status query that has not begun.
    host.submit(leaver, "capped", RequestOp::Write, 0, 8 * MIB - 4096);
    host.submit(leaver, "capped", RequestOp::Read, 16 * MIB, 4096);
    host.submit(leaver, "capped", RequestOp::Read, 20 * MIB, 4096);
    let flush = host.submit(stayer, DEFAULT, RequestOp::Flush, 0, 0);
    host.run();
    host.submit(leaver, "capped", RequestOp::Flush, 0, 0);
    host.submit(leaver, "capped", RequestOp::Status, 0, 4096);
    let account = host.queue.scheduler().account("capped").expect("it has an account");
    assert_eq!((account.held, account.waiting, account.in_flight), (1, 7, 2));
    host.leave(leaver);
    let read = host.submit(stayer, DEFAULT, RequestOp::Read, 0, 4096);
    let begun = host.disk.begun.len();
    host.drain();
    assert_eq!(host.done.iter().map(|(_, ticket, _)| *ticket).collect::<Vec<_>>(), [flush, read]);
    assert_eq!(host.disk.begun.len(), begun + 1, "of the leaver nothing else begins");
    let account = host.queue.scheduler().account("capped").expect("it has an account");
    assert_eq!((account.requests(), account.bytes()), (0, 0), "what nobody receives is not counted");
    let now_ns = host.now_ns;
    host.queue.scheduler_mut().remove_tenant("capped", now_ns).expect("it has no clients");
}

#[test]
fn requests_of_a_client_that_left_do_not_pass_to_the_next_one_with_its_number() {
    let mut host = Host::new(&plain(Kind::Bfq, 1), Ends::Later, MS);
    let first = host.join(None);
    for at in 0..8 {
        host.submit(first, DEFAULT, RequestOp::Write, at * 8192, 4096);
    }
    host.run();
    host.leave(first);
    let second = host.join(None);
    assert!(first != second && first.number() == second.number());
    let own = host.submit(second, DEFAULT, RequestOp::Read, 0, 4096);
    // Of a handle that is out of date, neither requests nor a second leave have an effect.
    assert_eq!(host.queue.submit(first, hoistway_qos::IoRequest::plain(99, RequestOp::Read, 0, 4096), 0), None);
    host.queue.leave(first, 0);
    host.drain();
    assert_eq!(host.done.iter().map(|(_, ticket, _)| *ticket).collect::<Vec<_>>(), [own]);
}

#[test]
fn a_client_with_more_requests_than_the_queue_holds_can_leave() {
    let mut host = Host::new(&plain(Kind::Fiops, 4), Ends::Later, MS);
    let (leaver, stayer) = (host.join(None), host.join(None));
    for at in 0..u64::from(CAPACITY.requests) + 100 {
        host.submit(leaver, DEFAULT, RequestOp::Read, at * 512, 512);
    }
    let last = host.submit(stayer, DEFAULT, RequestOp::Read, 0, 4096);
    host.run();
    assert_eq!(host.queue.scheduler().waiting().0, u64::from(CAPACITY.requests) + 101 - 4);
    host.leave(leaver);
    host.drain();
    assert_eq!(host.done.iter().map(|(_, ticket, _)| *ticket).collect::<Vec<_>>(), [last]);
    assert!(host.now_ns > 0 && host.disk.begun.len() == 5, "four were in the disk");
}

#[test]
fn a_request_that_fails_in_one_piece_fails_once_and_begins_no_further_pieces() {
    let mut host = Host::new(&plain(Kind::Noop, 8), Ends::Later, MS);
    let member = host.join(None);
    let ticket = host.submit(member, DEFAULT, RequestOp::Read, 0, 20 * MIB);
    host.disk.fails = true;
    host.run();
    host.disk.fails = false;
    host.drain();
    assert_eq!(host.done.iter().map(|done| (done.1, done.2)).collect::<Vec<_>>(), [(ticket, false)]);
    assert_eq!(host.disk.begun.len(), 8, "the pieces in progress at the first failure");
    host.check_accounts();
}

#[test]
fn a_late_host_does_not_lose_the_time_of_the_drive() {
    // Four commands of a millisecond each, one after the other, and a host that comes after 10 ms:
    // the drive has taken each when the one before ended.
    let mut host = Host::new(&plain(Kind::Noop, 1), Ends::InDrive, MS);
    host.disk.io_ns = 7 * MS;
    let member = host.join(None);
    for at in 0..4 {
        host.submit(member, DEFAULT, RequestOp::Read, at * 8192, 4096);
    }
    host.run();
    host.now_ns = SECOND;
    host.queue.catch_up(&mut host.disk, SECOND);
    let times: Vec<u64> = host.disk.begun.iter().map(|begun| begun.at_ns / MS).collect();
    // A drive takes 8, 9, 10 and 11 ms for its first commands.
    assert_eq!(times, [0, 8, 17, 27]);
    host.drain();
    assert_eq!(host.queue.scheduler().busy_ns(2 * SECOND), 38 * MS);
}
