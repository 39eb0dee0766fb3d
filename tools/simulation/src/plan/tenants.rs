//! The derivation of tenants and their groups from a seed.

use hoistway_core::{Class, Priority};

use hoistway_config::GroupConfig;
use hoistway_qos::{Limits, Rate, Reserve, Terms};
use hoistway_reactor::simulated::Prng;

/// The limits of a group in bytes and operations per second, above those of a single tenant.
const GROUP_BYTES: u64 = 8 << 20;
const GROUP_OPERATIONS: u64 = 1_000;

/// Returns random terms with which no tenant starves.
pub(crate) fn random_terms(prng: &mut Prng, groups: &[GroupConfig]) -> Terms {
    let class = prng.pick(&[Class::None, Class::BestEffort, Class::BestEffort, Class::RealTime]);
    let priority = Priority::new(class, prng.between(0, 7) as u8).unwrap_or(Priority::UNSET);
    let limits = random_limits(prng, 4 << 20, 500);
    let reserve = prng.permille(150);
    let reserve = reserve.then(|| Reserve { bytes_per_second: prng.magnitude(4 << 20), request_bytes: 64 << 10 });
    let parent = groups.get(prng.index(groups.len())).filter(|_| prng.permille(700));
    let parent = parent.map(|group| group.name.clone());
    Terms { priority, weight: prng.between(1, 1000) as u16, limits, reserve, parent }
}

fn random_limits(prng: &mut Prng, bytes: u64, operations: u64) -> Limits {
    let rate = |per_second: u64, burst: u64| Some(Rate { per_second, burst });
    match prng.between(0, 5) {
        0 => Limits { bytes: rate(bytes, prng.magnitude(1 << 20)), operations: None },
        1 => Limits { bytes: None, operations: rate(operations, prng.magnitude(100)) },
        _ => Limits::default(),
    }
}

/// Returns a tree of groups, in half of the worlds.
pub(super) fn random_groups(prng: &mut Prng, scale: u64) -> Vec<GroupConfig> {
    let count = if prng.permille(500) { prng.between(1, 1 + scale.min(4)) } else { 0 };
    let mut groups: Vec<GroupConfig> = (0..count).map(|number| random_group(prng, format!("group-{number}"))).collect();
    rearrange(prng, &mut groups);
    groups
}

/// Returns a group without a parent.
pub(crate) fn random_group(prng: &mut Prng, name: String) -> GroupConfig {
    let limits = random_limits(prng, GROUP_BYTES, GROUP_OPERATIONS);
    GroupConfig { name, weight: prng.between(1, 1000) as u16, limits, parent: None }
}

/// Rearranges groups to another tree, some of them with other weights and limits. A parent may
/// become a child.
pub(crate) fn rearrange(prng: &mut Prng, groups: &mut [GroupConfig]) {
    for at in (1..groups.len()).rev() {
        groups.swap(at, prng.index(at + 1));
    }
    for at in 0..groups.len() {
        let parent = groups.get(prng.index(at)).filter(|_| at > 0 && prng.permille(600));
        groups[at].parent = parent.map(|group| group.name.clone());
        if prng.permille(500) {
            let name = groups[at].name.clone();
            groups[at] = GroupConfig { parent: groups[at].parent.clone(), ..random_group(prng, name) };
        }
    }
}
