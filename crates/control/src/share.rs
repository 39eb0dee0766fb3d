//! The shares of tenants in the last ten seconds, and the shares to which their terms entitle them.

use std::collections::{BTreeMap, VecDeque};

use hoistway_core::Class;

use crate::target::{AccountView, AdminTarget, DeviceFacts, ObjectKind};
use hoistway_qos::Terms;

/// The interval of [`Watch::tick`], in ns.
pub const INTERVAL_NS: u64 = 1_000_000_000;

/// The number of intervals that shares cover. A round of slices or budgets on a disk takes seconds,
/// and shares of less than a round mean nothing.
pub const INTERVALS: usize = 10;

/// The maximum number of rounds in which the bandwidth that limits leave unused is divided again.
/// Without this bound a thousand tenants with a limit each could need a thousand rounds.
const ROUNDS_MAX: usize = 32;

/// The share of a tenant of a device in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The share of all bytes that the device transferred, 0 to 1.
    pub bytes: Option<f64>,
    /// The share of the device's busy time, 0 to 1.
    pub time: Option<f64>,
    /// The share to which the terms entitle the tenant if all tenants that used the device in this
    /// interval were backlogged; `None` if the tenant did not use the device.
    pub entitlement: Option<f64>,
    /// The throughput in bytes per second.
    pub bytes_per_second: f64,
    /// The throughput in requests per second.
    pub requests_per_second: f64,
}

/// The counters of an account at one time, from which shares are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of completed requests.
    pub requests: u64,
    /// The number of bytes transferred.
    pub bytes: u64,
    /// The device time, in ns.
    pub service_ns: u64,
    /// True if the tenant has requests in progress.
    pub busy: bool,
}

impl Counters {
    /// Returns the counters of an account.
    pub fn of(account: &AccountView<'_>) -> Counters {
        Counters {
            requests: account.ops.iter().map(|op| op.requests).sum(),
            bytes: account.ops.iter().map(|op| op.bytes).sum(),
            service_ns: account.service_ns,
            busy: account.waiting + account.held + account.in_flight > 0,
        }
    }
}

/// The claim of a tenant to a device.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The terms of the tenant.
    pub terms: &'a Terms,
    /// True if the tenant uses the device.
    pub active: bool,
}

/// Returns the share of a device, 0 to 1, to which each claim is entitled if the device transfers
/// `bytes_per_second` in total. `groups` maps the name of a group to its weight and parent.
///
/// Each tenant first gets its reservation. The highest class (real time before best effort before
/// idle) gets the rest, divided by the weights in the tree of groups. A share that a limit denies
/// to a tenant goes to the others.
///
/// Best-effort tenants with a reservation take part in that division only if `shares_excess` is
/// true (the tunable `excess` of the reservation layer), or if no other tenant of the class uses
/// the device: otherwise their requests beyond the reservation are served after all others.
pub fn entitlements(
    claims: &[Claim<'_>],
    groups: &BTreeMap<String, (u16, Option<String>)>,
    bytes_per_second: f64,
    shares_excess: bool,
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
    let gets_excess_last = |at: usize| claims[at].terms.reserve.is_some() && rank(claims[at].terms) == 1;
    if !shares_excess && !open.iter().all(|&at| gets_excess_last(at)) {
        open.retain(|&at| !gets_excess_last(at));
    }
    let mut rest = (1.0 - promised * scale).max(0.0);
    // Each round but the last removes a tenant at its limit. A few rounds suffice for ordinary
    // limits; otherwise a small rest stays undivided.
    for _ in 0..ROUNDS_MAX {
        if rest <= 1e-9 || open.is_empty() {
            break;
        }
        let paths = divided(&open, claims, groups);
        let room = |at: usize| (ceiling(claims[at].terms, rate) - parts[at]).max(0.0);
        let stopped: Vec<Option<f64>> =
            open.iter().zip(&paths).map(|(&at, path)| Some(room(at)).filter(|room| *room < rest * path)).collect();
        if stopped.iter().all(Option::is_none) {
            open.iter().zip(&paths).for_each(|(&at, path)| parts[at] += rest * path);
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

/// The counters by device and tenant.
type Sample = BTreeMap<(String, String), Counters>;

/// Samples the accounts once per interval and computes the shares of the last ten intervals, or of
/// all intervals if there are fewer.
#[derive(Debug, Default)]
pub struct Watch {
    /// The counters at the ends of the last intervals, the newest last.
    past: VecDeque<(u64, Sample)>,
    shares: BTreeMap<(String, String), Share>,
}

impl Watch {
    /// Creates a watch without samples.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// Returns the time in ns at which [`tick`](Self::tick) is due; 0 means now.
    pub fn due_ns(&self) -> u64 {
        self.past.back().map_or(0, |(at_ns, _)| at_ns.saturating_add(INTERVAL_NS))
    }

    /// Takes a sample if an interval has elapsed.
    pub fn tick(&mut self, now_ns: u64, target: &dyn AdminTarget) {
        if now_ns < self.due_ns() {
            return;
        }
        let groups = groups(target);
        let mut now = BTreeMap::new();
        self.shares.clear();
        for device in target.names(ObjectKind::Devices) {
            let mut tenants = Vec::new();
            target.accounts(&device, &mut |tenant, account| tenants.push((tenant.to_owned(), Counters::of(account))));
            self.update_shares(&device, &tenants, &groups, now_ns, target);
            now.extend(tenants.into_iter().map(|(tenant, counters)| ((device.clone(), tenant), counters)));
        }
        self.past.push_back((now_ns, now));
        if self.past.len() > INTERVALS {
            self.past.pop_front();
        }
    }

    /// Computes the shares of one device since the oldest sample.
    fn update_shares(
        &mut self,
        device: &str,
        tenants: &[(String, Counters)],
        groups: &BTreeMap<String, (u16, Option<String>)>,
        now_ns: u64,
        target: &dyn AdminTarget,
    ) {
        let Some((since_ns, before)) = self.past.front() else { return };
        let sampled: Vec<Sampled> = tenants
            .iter()
            .map(|(tenant, now)| Sampled {
                terms: target.terms(tenant).unwrap_or_default(),
                before: before.get(&(device.to_owned(), tenant.clone())).copied().unwrap_or_default(),
                now: *now,
            })
            .collect();
        let elapsed_s = now_ns.saturating_sub(*since_ns).max(1) as f64 / 1e9;
        let shares_excess = target.device(device).is_some_and(|facts| shares_excess(&facts));
        let found = shares(&sampled, groups, shares_excess, elapsed_s);
        let keys = tenants.iter().map(|(tenant, _)| (device.to_owned(), tenant.clone()));
        self.shares.extend(keys.zip(found));
    }

    /// Returns the share of a tenant of a device in the last intervals.
    pub fn share(&self, device: &str, tenant: &str) -> Share {
        self.shares.get(&(device.to_owned(), tenant.to_owned())).copied().unwrap_or_default()
    }
}

/// The counters of a tenant at both ends of an interval.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The terms of the tenant.
    pub terms: Terms,
    /// The counters at the start.
    pub before: Counters,
    /// The counters at the end.
    pub now: Counters,
}

/// Returns the shares of all tenants of one device over an interval. [`entitlements`] describes
/// `shares_excess`.
pub fn shares(
    sampled: &[Sampled],
    groups: &BTreeMap<String, (u16, Option<String>)>,
    shares_excess: bool,
    elapsed_s: f64,
) -> Vec<Share> {
    let moved = |of: fn(&Counters) -> u64| -> Vec<u64> {
        sampled.iter().map(|sample| of(&sample.now).saturating_sub(of(&sample.before))).collect()
    };
    let (bytes, time, requests) = (moved(|c| c.bytes), moved(|c| c.service_ns), moved(|c| c.requests));
    let (bytes_all, time_all) = (bytes.iter().sum::<u64>(), time.iter().sum::<u64>());
    let active = |at: usize| requests[at] > 0 || sampled[at].now.busy;
    let claims: Vec<Claim<'_>> =
        sampled.iter().enumerate().map(|(at, sample)| Claim { terms: &sample.terms, active: active(at) }).collect();
    let entitled = entitlements(&claims, groups, bytes_all as f64 / elapsed_s, shares_excess);
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

/// Returns true if requests beyond a reservation have their turn beside best effort on a device.
fn shares_excess(facts: &DeviceFacts) -> bool {
    facts.tunables.iter().any(|(tunable, value)| tunable.name == "excess" && *value == 1)
}

/// Returns the weight and the parent of all groups by name.
pub fn groups(target: &dyn AdminTarget) -> BTreeMap<String, (u16, Option<String>)> {
    let facts = |name: String| target.group(&name).map(|facts| (name, (facts.weight, facts.parent)));
    target.names(ObjectKind::Groups).into_iter().filter_map(facts).collect()
}

/// Returns the shares, with the sum 1, that the tree of groups gives to the claims at these
/// indices.
fn divided(open: &[usize], claims: &[Claim<'_>], groups: &BTreeMap<String, (u16, Option<String>)>) -> Vec<f64> {
    let paths: Vec<Vec<&str>> = open.iter().map(|&at| group_path(claims[at].terms, groups)).collect();
    // The sum of the weights below each group with an active tenant; each child group counts once.
    let mut below: BTreeMap<&[&str], f64> = BTreeMap::new();
    let mut counted: BTreeMap<&[&str], ()> = BTreeMap::new();
    for (&at, path) in open.iter().zip(&paths) {
        *below.entry(path).or_default() += f64::from(claims[at].terms.weight.max(1));
        for depth in (0..path.len()).rev() {
            if counted.insert(&path[..=depth], ()).is_none() {
                *below.entry(&path[..depth]).or_default() += weight_of(path[depth], groups);
            }
        }
    }
    let fraction = |own: f64, parent: &[&str]| below.get(parent).map_or(0.0, |all| own / all.max(1.0));
    open.iter()
        .zip(&paths)
        .map(|(&at, path)| {
            let of_groups: f64 =
                (0..path.len()).map(|depth| fraction(weight_of(path[depth], groups), &path[..depth])).product();
            of_groups * fraction(f64::from(claims[at].terms.weight.max(1)), path)
        })
        .collect()
}

/// Returns the groups from the root to a tenant. A cycle of parents, which a valid configuration
/// does not have, ends at the first repetition.
fn group_path<'a>(terms: &'a Terms, groups: &'a BTreeMap<String, (u16, Option<String>)>) -> Vec<&'a str> {
    let mut path: Vec<&str> = Vec::new();
    let mut next = terms.parent.as_deref();
    while let Some(name) = next.filter(|name| !path.contains(name)) {
        path.push(name);
        next = groups.get(name).and_then(|(_, parent)| parent.as_deref());
    }
    path.reverse();
    path
}

fn weight_of(group: &str, groups: &BTreeMap<String, (u16, Option<String>)>) -> f64 {
    groups.get(group).map_or(100.0, |(weight, _)| f64::from((*weight).max(1)))
}

/// Returns the largest share that a tenant's limit in bytes allows.
fn ceiling(terms: &Terms, rate: f64) -> f64 {
    terms.limits.bytes.map_or(1.0, |limit| limit.per_second as f64 / rate)
}

/// Returns the rank of a class: 0 is served first.
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
        entitled_with(terms, groups, rate, false)
    }

    fn entitled_with(
        terms: &[Terms],
        groups: &[(&str, u16, Option<&str>)],
        rate: f64,
        shares_excess: bool,
    ) -> Vec<f64> {
        let groups = groups
            .iter()
            .map(|(name, weight, parent)| ((*name).to_owned(), (*weight, parent.map(str::to_owned))))
            .collect();
        let claims: Vec<_> = terms.iter().map(|terms| Claim { terms, active: true }).collect();
        entitlements(&claims, &groups, rate, shares_excess)
            .into_iter()
            .map(|part| (part.unwrap() * 1000.0).round() / 1000.0)
            .collect()
    }

    #[test]
    fn weights_divide_a_device_among_its_active_tenants() {
        assert_eq!(entitled(&[terms(300), terms(100)], &[], 100.0), [0.75, 0.25]);
        let (a, b, c) = (terms(300), terms(100), terms(600));
        let claims = [(&a, true), (&b, true), (&c, false)].map(|(terms, active)| Claim { terms, active });
        assert_eq!(entitlements(&claims, &BTreeMap::new(), 1.0, false), [Some(0.75), Some(0.25), None]);
    }

    #[test]
    fn the_weight_of_a_group_does_not_depend_on_its_members() {
        // vm (200) and backup (100) share 2:1; in vm, 1:3; web is in vm/front, which has the
        // weight of its sibling db.
        let within = |weight, parent: &str| Terms { parent: Some(parent.to_owned()), ..terms(weight) };
        let groups = [("vm", 200, None), ("front", 300, Some("vm"))];
        let parts = entitled(&[within(100, "vm"), within(50, "front"), within(50, "front"), terms(100)], &groups, 1.0);
        assert_eq!(parts, [0.167, 0.25, 0.25, 0.333]);
    }

    #[test]
    fn a_reservation_comes_before_the_weights() {
        let reserve = Some(Reserve { bytes_per_second: 40, request_bytes: 1 });
        let reserving = || Terms { reserve, ..terms(100) };
        // 40 of 100 bytes a second are reserved; the other 60 go 1:1 if the tunable says so.
        assert_eq!(entitled(&[reserving(), terms(100)], &[], 100.0), [0.4, 0.6]);
        assert_eq!(entitled_with(&[reserving(), terms(100)], &[], 100.0, true), [0.7, 0.3]);
        // No other tenant of the class uses the device, so the rest is divided.
        assert_eq!(entitled(&[reserving(), reserving()], &[], 100.0), [0.5, 0.5]);
        let idle = Terms { priority: Priority::new(Class::Idle, 7).unwrap(), ..terms(100) };
        assert_eq!(entitled(&[reserving(), idle], &[], 100.0), [1.0, 0.0]);
        // The device transfers less than the reservation: nothing is left.
        assert_eq!(entitled(&[reserving(), terms(100)], &[], 20.0), [1.0, 0.0]);
    }

    #[test]
    fn the_share_beyond_a_limit_goes_to_the_others() {
        let bytes = Some(Rate { per_second: 10, burst: 10 });
        let limited = Terms { limits: Limits { bytes, operations: None }, ..terms(200) };
        assert_eq!(entitled(&[limited, terms(100), terms(200)], &[], 100.0), [0.1, 0.3, 0.6]);
    }

    #[test]
    fn the_highest_class_gets_the_whole_device() {
        let real_time = Terms { priority: Priority::new(Class::RealTime, 4).unwrap(), ..terms(1) };
        let idle = Terms { priority: Priority::new(Class::Idle, 7).unwrap(), ..terms(1000) };
        assert_eq!(entitled(&[real_time, terms(1000), idle.clone()], &[], 1.0), [1.0, 0.0, 0.0]);
        assert_eq!(entitled(&[idle.clone(), idle], &[], 1.0), [0.5, 0.5]);
    }

    #[test]
    fn shares_are_fractions_of_the_transfers_in_the_interval() {
        let counters = |requests, bytes, service_ns| Counters { requests, bytes, service_ns, busy: false };
        let sampled = [
            Sampled { terms: terms(100), before: counters(10, 1000, 50), now: counters(40, 4000, 60) },
            Sampled { terms: terms(100), before: counters(0, 0, 0), now: counters(10, 1000, 30) },
            Sampled { terms: terms(100), before: counters(9, 9, 9), now: counters(9, 9, 9) },
        ];
        let shares = shares(&sampled, &BTreeMap::new(), false, 2.0);
        assert_eq!((shares[0].bytes, shares[0].time, shares[0].entitlement), (Some(0.75), Some(0.25), Some(0.5)));
        assert_eq!((shares[0].bytes_per_second, shares[0].requests_per_second), (1500.0, 15.0));
        assert_eq!((shares[2].bytes, shares[2].entitlement), (Some(0.0), None));
    }
}
