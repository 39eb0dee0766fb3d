//! The limiter against buckets in exact arithmetic: the times at which requests pass, and the
//! bounds over every window.

use std::collections::VecDeque;

use hoistway_qos::limiter::{Cost, Limiter};
use hoistway_qos::{IoId, Limits, Rate};
use proptest::prelude::*;

use crate::host::SECOND;

/// A token bucket that counts in 10^-9 tokens, without rounding.
#[derive(Clone, Debug)]
struct Bucket {
    rate: i128,
    depth: i128,
    level: i128,
    at_ns: u64,
}

const TOKEN: i128 = 1_000_000_000;

impl Bucket {
    fn full(rate: Rate, now_ns: u64) -> Bucket {
        let depth = i128::from(rate.burst) * TOKEN;
        Bucket { rate: rate.per_second.into(), depth, level: depth, at_ns: now_ns }
    }

    fn refill(&mut self, now_ns: u64) {
        self.level = (self.level + self.rate * i128::from(now_ns - self.at_ns)).min(self.depth);
        self.at_ns = now_ns;
    }

    /// Returns the first time at which the bucket holds `units`, or is full.
    fn holds_at(&self, units: u64) -> u64 {
        let missing = (i128::from(units) * TOKEN).min(self.depth) - self.level;
        self.at_ns + u64::try_from((missing.max(0) + self.rate - 1) / self.rate).expect("small rates")
    }
}

/// A tenant or a group: its parent and its buckets, bytes first.
#[derive(Clone, Debug, Default)]
struct Node {
    parent: Option<usize>,
    buckets: [Option<Bucket>; 2],
}

/// The buckets of all tenants and groups.
#[derive(Clone, Debug, Default)]
struct Model {
    nodes: Vec<Node>,
}

impl Model {
    fn set(&mut self, node: usize, parent: Option<usize>, limits: &Limits, now_ns: u64) {
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, Node::default());
        }
        let entry = &mut self.nodes[node];
        entry.parent = parent;
        for (bucket, rate) in entry.buckets.iter_mut().zip([limits.bytes, limits.operations]) {
            *bucket = match (bucket.take(), rate) {
                (Some(mut old), Some(rate)) => {
                    old.refill(now_ns);
                    let new = Bucket::full(rate, now_ns);
                    Some(Bucket { level: old.level.min(new.depth), ..new })
                }
                (_, rate) => rate.map(|rate| Bucket::full(rate, now_ns)),
            };
        }
    }

    fn path(&self, node: usize) -> Vec<usize> {
        std::iter::successors(Some(node), |at| self.nodes[*at].parent).collect()
    }

    /// Returns the time from which a tenant's request may pass: its own buckets hold tokens for all
    /// of it or are full, and those of its groups have no debt.
    fn may_pass_at(&self, tenant: usize, cost: Cost, now_ns: u64) -> u64 {
        let mut at_ns = now_ns;
        for node in self.path(tenant) {
            for (bucket, units) in self.nodes[node].buckets.iter().zip([cost.bytes, cost.operations]) {
                if let (Some(bucket), true) = (bucket, units > 0) {
                    at_ns = at_ns.max(bucket.holds_at(if node == tenant { units } else { 0 }));
                }
            }
        }
        at_ns
    }

    fn pay(&mut self, tenant: usize, cost: Cost, now_ns: u64) {
        for node in self.path(tenant) {
            for (bucket, units) in self.nodes[node].buckets.iter_mut().zip([cost.bytes, cost.operations]) {
                if let Some(bucket) = bucket {
                    bucket.refill(now_ns);
                    bucket.level -= i128::from(units) * TOKEN;
                }
            }
        }
    }
}

/// A limiter beside its model. A request passes only if the model lets it pass, and as soon as the
/// model does.
struct Pair {
    limiter: Limiter,
    model: Model,
    /// The requests that wait, by tenant, oldest first.
    waiting: Vec<VecDeque<(u32, Cost)>>,
    /// The requests that have passed: time, tenant, number, cost.
    passed: Vec<(u64, usize, u32, Cost)>,
    next: u32,
    now_ns: u64,
}

impl Pair {
    fn new(nodes: usize) -> Pair {
        Pair {
            limiter: Limiter::default(),
            model: Model::default(),
            waiting: vec![VecDeque::new(); nodes],
            passed: Vec::new(),
            next: 0,
            now_ns: 0,
        }
    }

    fn set(&mut self, node: usize, parent: Option<usize>, weight: u16, limits: &Limits) {
        self.limiter.set(node as u32, parent.map(|parent| parent as u32), weight, limits, self.now_ns);
        self.model.set(node, parent, limits, self.now_ns);
    }

    fn request(&mut self, tenant: usize, cost: Cost) {
        let number = self.next;
        self.next += 1;
        self.waiting[tenant].push_back((number, cost));
        if self.limiter.admit(tenant as u32, cost, IoId::of_number(number), self.now_ns) {
            self.pass(number);
        }
        assert_eq!(self.limiter.held(tenant as u32), self.waiting[tenant].len());
    }

    /// Counts a request that the limiter lets pass now.
    fn pass(&mut self, number: u32) {
        let tenant = self.waiting.iter().position(|waiting| waiting.iter().any(|(of, _)| *of == number));
        let tenant = tenant.unwrap_or_else(|| panic!("request {number} passes twice"));
        let (first, cost) = self.waiting[tenant].pop_front().expect("it is in the list");
        assert_eq!(first, number, "request {first} of tenant {tenant} arrived before");
        let may_ns = self.model.may_pass_at(tenant, cost, self.now_ns);
        assert!(may_ns <= self.now_ns, "request {number} passes {} ns too early", may_ns - self.now_ns);
        self.model.pay(tenant, cost, self.now_ns);
        self.passed.push((self.now_ns, tenant, number, cost));
    }

    /// Releases what may pass now. Nothing that the model lets pass may stay.
    fn release(&mut self) {
        while let Some(io) = self.limiter.release(self.now_ns) {
            self.pass(io.number());
        }
        let firsts = self.waiting.iter().enumerate().filter_map(|(tenant, waiting)| Some((tenant, waiting.front()?.1)));
        let next_ns = firsts.map(|(tenant, cost)| self.model.may_pass_at(tenant, cost, self.now_ns)).min();
        assert!(next_ns.is_none_or(|next_ns| next_ns > self.now_ns), "a request that may pass waits");
        let wake_ns = self.limiter.next_ns();
        assert!(wake_ns.is_none_or(|wake_ns| wake_ns > self.now_ns), "a wake-up without effect");
        assert!(next_ns.is_none() || wake_ns.is_some_and(|wake_ns| Some(wake_ns) <= next_ns), "a late wake-up");
    }

    /// Lets time pass up to `until_ns`, and releases requests whenever the limiter asks for it, but
    /// not at `until_ns` itself: what happens then comes first.
    fn run_before(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.limiter.next_ns().filter(|&at_ns| at_ns < until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            self.release();
        }
        self.now_ns = until_ns;
    }

    fn run_out(&mut self) {
        self.run_before(u64::MAX / 4);
        assert!(self.waiting.iter().all(VecDeque::is_empty), "they never pass: {:?}", self.waiting);
    }
}

/// An event at a tenant or a group.
#[derive(Clone, Debug)]
enum Step {
    Request { tenant: usize, cost: Cost },
    Terms { node: usize, weight: u16, limits: Limits },
    Release,
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    let burst = prop_oneof![Just(1u64), 1u64..50, 1_000u64..100_000];
    let per_second = prop_oneof![1u64..10, 1_000u64..1_000_000];
    prop::option::of((per_second, burst).prop_map(|(per_second, burst)| Rate { per_second, burst }))
}

fn limits() -> impl Strategy<Value = Limits> {
    (rate(), rate()).prop_map(|(bytes, operations)| Limits { bytes, operations })
}

fn cost() -> impl Strategy<Value = Cost> {
    let bytes = prop_oneof![Just(0u64), 1u64..100, 500u64..200_000];
    bytes.prop_map(|bytes| Cost { bytes, operations: 1 })
}

/// Steps with the pauses before them. A pause of 0 is one in which nothing is released.
fn steps(tenants: std::ops::Range<usize>, nodes: usize) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        8 => (tenants, cost()).prop_map(|(tenant, cost)| Step::Request { tenant, cost }),
        1 => (0..nodes, 1u16..1000, limits()).prop_map(|(node, weight, limits)| Step::Terms { node, weight, limits }),
        1 => Just(Step::Release),
    ];
    let pause_ns = prop_oneof![3 => Just(0u64), 3 => 1u64..1_000_000, 1 => 0u64..3 * SECOND];
    prop::collection::vec((pause_ns, step), 1..80)
}

/// A group of all, a group in it, and four tenants: two in the inner group, one in the outer, one
/// without a group.
const PARENTS: [Option<usize>; 6] = [None, Some(0), Some(1), Some(1), Some(0), None];
const TENANTS: std::ops::Range<usize> = 2..6;

fn pair_of_tree(all: &[Limits]) -> Pair {
    let mut pair = Pair::new(PARENTS.len());
    for (node, limits) in all.iter().enumerate() {
        pair.set(node, PARENTS[node], 100, limits);
    }
    pair
}

fn play(pair: &mut Pair, steps: Vec<(u64, Step)>) {
    for (pause_ns, step) in steps {
        if pause_ns > 0 {
            pair.run_before(pair.now_ns + pause_ns);
        }
        match step {
            Step::Request { tenant, cost } => pair.request(tenant, cost),
            Step::Terms { node, weight, limits } => pair.set(node, PARENTS[node], weight, &limits),
            Step::Release => pair.release(),
        }
    }
    pair.run_out();
}

/// Returns the first window in which the requests of a node exceed a limit that was never changed.
/// Before the last request of a window the bucket held at least `needed` of its tokens.
fn excess(passed: &[(u64, usize, u32, Cost)], rate: Rate, units: impl Fn(Cost) -> u64, own: bool) -> Option<String> {
    let costs: Vec<(u64, u64)> = passed.iter().map(|(at_ns, _, _, cost)| (*at_ns, units(*cost))).collect();
    for (from, &(from_ns, _)) in costs.iter().enumerate() {
        let mut before = 0u128;
        for &(at_ns, units) in &costs[from..] {
            let needed = if own { units.min(rate.burst) } else { 0 };
            let most =
                u128::from(rate.burst) * TOKEN as u128 + u128::from(rate.per_second) * u128::from(at_ns - from_ns);
            if units > 0 && (before + u128::from(needed)) * TOKEN as u128 > most {
                return Some(format!("{before} and {needed} units from {from_ns} to {at_ns} ns, at {rate:?}"));
            }
            before += u128::from(units);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_pass_in_order_when_the_buckets_allow_it(
        all in prop::collection::vec(limits(), PARENTS.len()),
        steps in steps(TENANTS, PARENTS.len()),
    ) {
        play(&mut pair_of_tree(&all), steps);
    }

    #[test]
    fn a_lone_tenant_passes_at_the_times_of_exact_arithmetic(
        all in prop::collection::vec(limits(), 3),
        requests in prop::collection::vec((0u64..2_000_000_000, cost()), 1..40),
    ) {
        let mut pair = pair_of_tree(&all);
        let mut expected = Vec::new();
        let (mut arrival_ns, mut last_ns) = (0, 0);
        let mut model = pair.model.clone();
        for (pause_ns, cost) in requests {
            arrival_ns += pause_ns;
            pair.run_before(arrival_ns);
            pair.request(2, cost);
            last_ns = model.may_pass_at(2, cost, arrival_ns.max(last_ns));
            model.pay(2, cost, last_ns);
            expected.push(last_ns);
        }
        pair.run_out();
        let times: Vec<u64> = pair.passed.iter().map(|(at_ns, ..)| *at_ns).collect();
        prop_assert_eq!(times, expected);
    }

    #[test]
    fn no_limit_is_exceeded_in_any_window(
        all in prop::collection::vec(limits(), PARENTS.len()),
        steps in steps(TENANTS, PARENTS.len()),
    ) {
        let mut pair = pair_of_tree(&all);
        play(&mut pair, steps.into_iter().filter(|(_, step)| !matches!(step, Step::Terms { .. })).collect());
        for (node, limits) in all.iter().enumerate() {
            let below: Vec<_> =
                pair.passed.iter().filter(|(_, tenant, ..)| pair.model.path(*tenant).contains(&node)).copied().collect();
            let own = TENANTS.contains(&node);
            let of_bytes = limits.bytes.and_then(|rate| excess(&below, rate, |cost| cost.bytes, own));
            let of_operations = limits.operations.and_then(|rate| excess(&below, rate, |cost| cost.operations, own));
            prop_assert_eq!(of_bytes.or(of_operations), None, "node {}", node);
        }
    }

    /// The bound of start-time fair queueing: in every interval in which two tenants wait, their
    /// bytes by weight differ by at most one request of each by its weight.
    #[test]
    fn waiting_tenants_share_the_limit_of_their_group_by_weight(
        weights in prop::collection::vec(1u16..=1000, 2..5),
        sizes in prop::collection::vec(1u64..100_000, 2..5),
        per_second in 1_000u64..10_000_000,
        burst in 1u64..1_000_000,
    ) {
        let tenants = weights.len().min(sizes.len());
        let mut pair = Pair::new(tenants + 2);
        pair.set(0, None, 100, &Limits { bytes: Some(Rate { per_second, burst }), operations: None });
        for (at, weight) in weights.iter().enumerate().take(tenants) {
            pair.set(at + 1, Some(0), *weight, &Limits::default());
        }
        // One more tenant takes the burst, before anything waits.
        pair.set(tenants + 1, Some(0), 100, &Limits::default());
        pair.request(tenants + 1, Cost { bytes: burst + 1, operations: 1 });
        let bytes = |tenant: usize, number: u32| 1 + sizes[tenant] * u64::from(number % 3 + 1) / 3;
        for number in 0..60 {
            for tenant in 0..tenants {
                pair.request(tenant + 1, Cost { bytes: bytes(tenant, number), operations: 1 });
            }
        }
        let first = pair.passed.len();
        while pair.waiting[1..=tenants].iter().all(|waiting| !waiting.is_empty()) {
            pair.now_ns = pair.limiter.next_ns().expect("requests wait");
            pair.release();
        }
        // A tag is rounded down by less than a thousandth of a byte at weight 1 for each request.
        let by_weight = |tenant: usize, bytes: u64| bytes as f64 / f64::from(weights[tenant]);
        let mut given = vec![0.0; tenants];
        let largest = |tenant: usize| by_weight(tenant, 1 + sizes[tenant]) + 0.06;
        let (mut most, mut least) = (vec![vec![0.0f64; tenants]; tenants], vec![vec![0.0f64; tenants]; tenants]);
        for (_, tenant, _, cost) in &pair.passed[first..] {
            given[tenant - 1] += by_weight(tenant - 1, cost.bytes);
            for one in 0..tenants {
                for other in 0..tenants {
                    let difference: f64 = given[one] - given[other];
                    most[one][other] = most[one][other].max(difference);
                    least[one][other] = least[one][other].min(difference);
                    let widest = most[one][other] - least[one][other];
                    let bound = largest(one) + largest(other);
                    prop_assert!(widest <= bound, "tenants {one} and {other}: {widest} of at most {bound}");
                }
            }
        }
    }
}

fn io(number: u32) -> IoId {
    IoId::of_number(number)
}

#[test]
fn a_request_does_not_overtake_those_that_wait_when_the_limit_is_removed() {
    let mut limiter = Limiter::default();
    let cost = Cost { bytes: 100, operations: 1 };
    limiter.set(0, None, 100, &Limits { bytes: Some(Rate { per_second: 1, burst: 100 }), operations: None }, 0);
    assert!(limiter.admit(0, cost, io(1), 0), "the burst");
    assert!(!limiter.admit(0, cost, io(2), 0));
    limiter.set(0, None, 100, &Limits::default(), 10);
    assert!(!limiter.admit(0, cost, io(3), 10), "request 2 has not passed");
    assert_eq!([limiter.release(10), limiter.release(10), limiter.release(10)], [Some(io(2)), Some(io(3)), None]);
    assert!(limiter.admit(0, cost, io(4), 10));
}

#[test]
fn requests_that_left_leave_their_tokens_to_the_others() {
    let mut limiter = Limiter::default();
    let group = Limits { bytes: Some(Rate { per_second: 100, burst: 100 }), operations: None };
    limiter.set(0, None, 100, &group, 0);
    limiter.set(1, Some(0), 100, &Limits::default(), 0);
    limiter.set(2, Some(0), 100, &Limits::default(), 0);
    let cost = Cost { bytes: 200, operations: 1 };
    assert!(limiter.admit(1, cost, io(10), 0), "the burst, and a debt of a second");
    assert!(
        !limiter.admit(1, cost, io(11), 0) && !limiter.admit(1, cost, io(12), 0) && !limiter.admit(2, cost, io(20), 0)
    );
    limiter.retain(1, |number| number != io(11), 0);
    assert_eq!((limiter.held(1), limiter.held(2)), (1, 1));
    assert_eq!(limiter.release(SECOND - 1), None);
    let passed: Vec<IoId> = [1, 3].iter().filter_map(|second| limiter.release(second * SECOND)).collect();
    assert_eq!(passed, [io(20), io(12)], "tenant 1 had the burst");
    assert_eq!((limiter.release(99 * SECOND), limiter.next_ns()), (None, None));
}
