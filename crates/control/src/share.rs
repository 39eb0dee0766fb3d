//! What tenants got of a device in the last ten seconds, and what their terms entitle them to.

use std::collections::{BTreeMap, VecDeque};

use hoistway_core::Class;

use crate::target::{AccountView, AdminTarget, ObjectKind};
use hoistway_qos::Terms;

/// How often [`Watch::tick`] is worth calling, in ns.
pub const INTERVAL_NS: u64 = 1_000_000_000;

/// Over how many of these shares are told: a round of slices or budgets on a disk takes seconds,
/// and shares of less than one mean nothing.
pub const INTERVALS: usize = 10;

/// Rounds in which what limits leave over is divided anew: a thousand tenants with a limit each
/// could otherwise ask for a thousand.
const ROUNDS_MAX: usize = 32;

/// What a tenant got of a device in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The part of all bytes that the device moved, 0 to 1.
    pub bytes: Option<f64>,
    /// The part of the device's time that was used, 0 to 1.
    pub time: Option<f64>,
    /// The part that its terms entitle it to, were all who used the device in this interval to ask
    /// for more; none: it did not use it.
    pub entitlement: Option<f64>,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
}

/// Counters at one moment: those that shares are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Time of the device, in ns.
    pub service_ns: u64,
    /// Whether it has requests that are not answered yet.
    pub busy: bool,
}

impl Counters {
    /// Those of an account.
    pub fn of(account: &AccountView<'_>) -> Counters {
        Counters {
            requests: account.ops.iter().map(|op| op.requests).sum(),
            bytes: account.ops.iter().map(|op| op.bytes).sum(),
            service_ns: account.service_ns,
            busy: account.waiting + account.held + account.in_flight > 0,
        }
    }
}

/// What one tenant claims of a device.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Its terms.
    pub terms: &'a Terms,
    /// Whether it uses the device.
    pub active: bool,
}

/// The part of a device, 0 to 1, that each claim is entitled to, while the device moves so many
/// bytes a second in all. `groups` tells weight and parent of a group by its name.
///
/// First each has what it reserved. What is left goes to the highest class alone (real time before
/// best effort before idle), divided by the weights in the tree of groups. What a limit keeps a
/// tenant from goes to the others.
pub fn entitlements(
    claims: &[Claim<'_>],
    groups: &BTreeMap<String, (u16, Option<String>)>,
    bytes_per_second: f64,
) -> Vec<Option<f64>> {
    let rate = bytes_per_second.max(1.0);
    let reserved: Vec<f64> = claims
        .iter()
        .map(|claim| match claim.terms.reserve {
            Some(reserve) if claim.active => reserve.bytes_per_second as f64 / rate,
            _ => 0.0,
        })
        .collect();
    let promised: f64 = reserved.iter().sum();
    let scale = if promised > 1.0 { 1.0 / promised } else { 1.0 };
    let mut parts: Vec<f64> = reserved.iter().map(|part| part * scale).collect();
    let best = claims.iter().filter(|claim| claim.active).map(|claim| rank(claim.terms)).min();
    let mut open: Vec<usize> =
        (0..claims.len()).filter(|&at| claims[at].active && Some(rank(claims[at].terms)) == best).collect();
    let mut rest = (1.0 - promised * scale).max(0.0);
    // Each round but the last closes a tenant that its limit stops: a few rounds do, unless limits
    // were chosen for that. Then a small rest stays undivided.
    for _ in 0..ROUNDS_MAX {
        if rest <= 1e-9 || open.is_empty() {
            break;
        }
        let ways = divided(&open, claims, groups);
        let room = |at: usize| (ceiling(claims[at].terms, rate) - parts[at]).max(0.0);
        let stopped: Vec<Option<f64>> =
            open.iter().zip(&ways).map(|(&at, way)| Some(room(at)).filter(|room| *room < rest * way)).collect();
        if stopped.iter().all(Option::is_none) {
            open.iter().zip(&ways).for_each(|(&at, way)| parts[at] += rest * way);
            break;
        }
        let mut still = Vec::with_capacity(open.len());
        for (&at, room) in open.iter().zip(&stopped) {
            match room {
                Some(room) => {
                    parts[at] += room;
                    rest -= room;
                }
                None => still.push(at),
            }
        }
        open = still;
    }
    claims.iter().zip(parts).map(|(claim, part)| claim.active.then_some(part)).collect()
}

/// Counters by device and tenant.
type Sample = BTreeMap<(String, String), Counters>;

/// Samples the accounts once an interval, so that shares can be told at any time: of the last ten,
/// or of as many as there were.
#[derive(Debug, Default)]
pub struct Watch {
    /// Counters at the ends of the last intervals, the newest last.
    past: VecDeque<(u64, Sample)>,
    shares: BTreeMap<(String, String), Share>,
}

impl Watch {
    /// Nothing sampled yet.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// When [`tick`](Self::tick) is due, in ns of the host's time; 0: now.
    pub fn due_ns(&self) -> u64 {
        self.past.back().map_or(0, |(at_ns, _)| at_ns.saturating_add(INTERVAL_NS))
    }

    /// Samples, if an interval is over.
    pub fn tick(&mut self, now_ns: u64, steer: &dyn AdminTarget) {
        if now_ns < self.due_ns() {
            return;
        }
        let groups = groups(steer);
        let mut now = BTreeMap::new();
        self.shares.clear();
        for device in steer.names(ObjectKind::Devices) {
            let mut tenants = Vec::new();
            steer.accounts(&device, &mut |tenant, account| tenants.push((tenant.to_owned(), Counters::of(account))));
            self.share_out(&device, &tenants, &groups, now_ns, steer);
            now.extend(tenants.into_iter().map(|(tenant, counters)| ((device.clone(), tenant), counters)));
        }
        self.past.push_back((now_ns, now));
        if self.past.len() > INTERVALS {
            self.past.pop_front();
        }
    }

    /// The shares of one device since the oldest sample.
    fn share_out(
        &mut self,
        device: &str,
        tenants: &[(String, Counters)],
        groups: &BTreeMap<String, (u16, Option<String>)>,
        now_ns: u64,
        steer: &dyn AdminTarget,
    ) {
        let Some((since_ns, before)) = self.past.front() else { return };
        let sampled: Vec<Sampled> = tenants
            .iter()
            .map(|(tenant, now)| Sampled {
                terms: steer.terms(tenant).unwrap_or_default(),
                before: before.get(&(device.to_owned(), tenant.clone())).copied().unwrap_or_default(),
                now: *now,
            })
            .collect();
        let elapsed_s = now_ns.saturating_sub(*since_ns).max(1) as f64 / 1e9;
        let found = shares(&sampled, groups, elapsed_s);
        let keys = tenants.iter().map(|(tenant, _)| (device.to_owned(), tenant.clone()));
        self.shares.extend(keys.zip(found));
    }

    /// What a tenant got of a device in the last intervals.
    pub fn share(&self, device: &str, tenant: &str) -> Share {
        self.shares.get(&(device.to_owned(), tenant.to_owned())).copied().unwrap_or_default()
    }
}

/// A tenant's counters at both ends of an interval.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Its terms.
    pub terms: Terms,
    /// At the beginning.
    pub before: Counters,
    /// At the end.
    pub now: Counters,
}

/// The shares of all tenants of one device over an interval.
pub fn shares(sampled: &[Sampled], groups: &BTreeMap<String, (u16, Option<String>)>, elapsed_s: f64) -> Vec<Share> {
    let moved = |of: fn(&Counters) -> u64| -> Vec<u64> {
        sampled.iter().map(|sample| of(&sample.now).saturating_sub(of(&sample.before))).collect()
    };
    let (bytes, time, requests) = (moved(|c| c.bytes), moved(|c| c.service_ns), moved(|c| c.requests));
    let (bytes_all, time_all) = (bytes.iter().sum::<u64>(), time.iter().sum::<u64>());
    let active = |at: usize| requests[at] > 0 || sampled[at].now.busy;
    let claims: Vec<Claim<'_>> =
        sampled.iter().enumerate().map(|(at, sample)| Claim { terms: &sample.terms, active: active(at) }).collect();
    let entitled = entitlements(&claims, groups, bytes_all as f64 / elapsed_s);
    let part = |own: u64, all: u64| (all > 0).then(|| own as f64 / all as f64);
    (0..sampled.len())
        .map(|at| Share {
            bytes: part(bytes[at], bytes_all),
            time: part(time[at], time_all),
            entitlement: entitled[at],
            bytes_per_second: bytes[at] as f64 / elapsed_s,
            requests_per_second: requests[at] as f64 / elapsed_s,
        })
        .collect()
}

/// The groups of a server: weight and parent by name.
pub fn groups(steer: &dyn AdminTarget) -> BTreeMap<String, (u16, Option<String>)> {
    let facts = |name: String| steer.group(&name).map(|facts| (name, (facts.weight, facts.parent)));
    steer.names(ObjectKind::Groups).into_iter().filter_map(facts).collect()
}

/// How the tree of groups divides 1 among the claims of these places.
fn divided(open: &[usize], claims: &[Claim<'_>], groups: &BTreeMap<String, (u16, Option<String>)>) -> Vec<f64> {
    let ways: Vec<Vec<&str>> = open.iter().map(|&at| way_to(claims[at].terms, groups)).collect();
    // The sum of weights below each group that has an active tenant in it: each child group counts
    // once.
    let mut below: BTreeMap<&[&str], f64> = BTreeMap::new();
    let mut counted: BTreeMap<&[&str], ()> = BTreeMap::new();
    for (&at, way) in open.iter().zip(&ways) {
        *below.entry(way).or_default() += f64::from(claims[at].terms.weight.max(1));
        for depth in (0..way.len()).rev() {
            if counted.insert(&way[..=depth], ()).is_none() {
                *below.entry(&way[..depth]).or_default() += weight_of(way[depth], groups);
            }
        }
    }
    let fraction = |own: f64, parent: &[&str]| below.get(parent).map_or(0.0, |all| own / all.max(1.0));
    open.iter()
        .zip(&ways)
        .map(|(&at, way)| {
            let of_groups: f64 =
                (0..way.len()).map(|depth| fraction(weight_of(way[depth], groups), &way[..depth])).product();
            of_groups * fraction(f64::from(claims[at].terms.weight.max(1)), way)
        })
        .collect()
}

/// The groups from the root to a tenant. A loop of parents, which no configuration has, ends where
/// it closes.
fn way_to<'a>(terms: &'a Terms, groups: &'a BTreeMap<String, (u16, Option<String>)>) -> Vec<&'a str> {
    let mut way: Vec<&str> = Vec::new();
    let mut next = terms.parent.as_deref();
    while let Some(name) = next.filter(|name| !way.contains(name)) {
        way.push(name);
        next = groups.get(name).and_then(|(_, parent)| parent.as_deref());
    }
    way.reverse();
    way
}

fn weight_of(group: &str, groups: &BTreeMap<String, (u16, Option<String>)>) -> f64 {
    groups.get(group).map_or(100.0, |(weight, _)| f64::from((*weight).max(1)))
}

/// The part that a tenant's limit in bytes leaves it.
fn ceiling(terms: &Terms, rate: f64) -> f64 {
    terms.limits.bytes.map_or(1.0, |limit| limit.per_second as f64 / rate)
}

/// The order of classes: 0 is served first.
fn rank(terms: &Terms) -> u8 {
    match terms.priority.class() {
        Class::RealTime => 0,
        Class::None | Class::BestEffort => 1,
        Class::Idle => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_core::Priority;
    use hoistway_qos::{Limits, Rate, Reserve};

    fn terms(weight: u16) -> Terms {
        Terms { weight, ..Terms::default() }
    }

    fn entitled(terms: &[Terms], groups: &[(&str, u16, Option<&str>)], rate: f64) -> Vec<f64> {
        let groups = groups
            .iter()
            .map(|(name, weight, parent)| ((*name).to_owned(), (*weight, parent.map(str::to_owned))))
            .collect();
        let claims: Vec<_> = terms.iter().map(|terms| Claim { terms, active: true }).collect();
        entitlements(&claims, &groups, rate).into_iter().map(|part| (part.unwrap() * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn weights_divide_a_device_among_those_who_use_it() {
        assert_eq!(entitled(&[terms(300), terms(100)], &[], 100.0), [0.75, 0.25]);
        let (a, b, c) = (terms(300), terms(100), terms(600));
        let claims = [(&a, true), (&b, true), (&c, false)].map(|(terms, active)| Claim { terms, active });
        assert_eq!(entitlements(&claims, &BTreeMap::new(), 1.0), [Some(0.75), Some(0.25), None]);
    }

    #[test]
    fn a_group_has_its_weight_once_however_many_are_in_it() {
        // vm (200) and backup (100) share 2:1; in vm, 1:3; web lies in vm/front, which weighs as
        // much as its sibling db.
        let within = |weight, parent: &str| Terms { parent: Some(parent.to_owned()), ..terms(weight) };
        let groups = [("vm", 200, None), ("front", 300, Some("vm"))];
        let parts = entitled(&[within(100, "vm"), within(50, "front"), within(50, "front"), terms(100)], &groups, 1.0);
        assert_eq!(parts, [0.167, 0.25, 0.25, 0.333]);
    }

    #[test]
    fn a_reservation_comes_before_the_weights() {
        // 40 of 100 bytes a second are reserved; the other 60 go 1:1.
        let reserve = Some(Reserve { bytes_per_second: 40, request_bytes: 1 });
        assert_eq!(entitled(&[Terms { reserve, ..terms(100) }, terms(100)], &[], 100.0), [0.7, 0.3]);
        // A device that moves less than was reserved: nothing is left.
        assert_eq!(entitled(&[Terms { reserve, ..terms(100) }, terms(100)], &[], 20.0), [1.0, 0.0]);
    }

    #[test]
    fn what_a_limit_forbids_goes_to_the_others() {
        let bytes = Some(Rate { per_second: 10, burst: 10 });
        let limited = Terms { limits: Limits { bytes, operations: None }, ..terms(200) };
        assert_eq!(entitled(&[limited, terms(100), terms(200)], &[], 100.0), [0.1, 0.3, 0.6]);
    }

    #[test]
    fn the_higher_class_has_all() {
        let real_time = Terms { priority: Priority::new(Class::RealTime, 4).unwrap(), ..terms(1) };
        let idle = Terms { priority: Priority::new(Class::Idle, 7).unwrap(), ..terms(1000) };
        assert_eq!(entitled(&[real_time, terms(1000), idle.clone()], &[], 1.0), [1.0, 0.0, 0.0]);
        assert_eq!(entitled(&[idle.clone(), idle], &[], 1.0), [0.5, 0.5]);
    }

    #[test]
    fn shares_are_parts_of_what_was_moved_in_the_interval() {
        let counters = |requests, bytes, service_ns| Counters { requests, bytes, service_ns, busy: false };
        let sampled = [
            Sampled { terms: terms(100), before: counters(10, 1000, 50), now: counters(40, 4000, 60) },
            Sampled { terms: terms(100), before: counters(0, 0, 0), now: counters(10, 1000, 30) },
            Sampled { terms: terms(100), before: counters(9, 9, 9), now: counters(9, 9, 9) },
        ];
        let shares = shares(&sampled, &BTreeMap::new(), 2.0);
        assert_eq!((shares[0].bytes, shares[0].time, shares[0].entitlement), (Some(0.75), Some(0.25), Some(0.5)));
        assert_eq!((shares[0].bytes_per_second, shares[0].requests_per_second), (1500.0, 15.0));
        assert_eq!((shares[2].bytes, shares[2].entitlement), (Some(0.0), None));
    }
}
