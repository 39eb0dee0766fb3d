//! What a seed makes of tenants and the groups that they are part of.

use hoistway_core::{Class, Priority};

use crate::config::GroupConfig;
use crate::tenant::{Limits, Rate, Reserve, Terms};
use crate::world::Dice;

/// What all of a group, or of several groups of one, may have: above what one tenant is limited to.
const GROUP_BYTES: u64 = 8 << 20;
const GROUP_OPERATIONS: u64 = 1_000;

/// Terms that leave everybody something.
pub(in crate::world) fn random_terms(dice: &mut Dice, groups: &[GroupConfig]) -> Terms {
    let class = dice.pick(&[Class::None, Class::BestEffort, Class::BestEffort, Class::RealTime]);
    let priority = Priority::new(class, dice.between(0, 7) as u8).unwrap_or(Priority::UNSET);
    let limits = random_limits(dice, 4 << 20, 500);
    let reserve = dice.permille(150);
    let reserve = reserve.then(|| Reserve { bytes_per_second: dice.magnitude(4 << 20), request_bytes: 64 << 10 });
    let parent = groups.get(dice.index(groups.len())).filter(|_| dice.permille(700));
    let parent = parent.map(|group| group.name.clone());
    Terms { priority, weight: dice.between(1, 1000) as u16, limits, reserve, parent }
}

fn random_limits(dice: &mut Dice, bytes: u64, operations: u64) -> Limits {
    let rate = |per_second: u64, burst: u64| Some(Rate { per_second, burst });
    match dice.between(0, 5) {
        0 => Limits { bytes: rate(bytes, dice.magnitude(1 << 20)), operations: None },
        1 => Limits { bytes: None, operations: rate(operations, dice.magnitude(100)) },
        _ => Limits::default(),
    }
}

/// A tree of groups, in half of the worlds.
pub(super) fn random_groups(dice: &mut Dice, scale: u64) -> Vec<GroupConfig> {
    let count = if dice.permille(500) { dice.between(1, 1 + scale.min(4)) } else { 0 };
    let mut groups: Vec<GroupConfig> = (0..count).map(|number| random_group(dice, format!("group-{number}"))).collect();
    rearrange(dice, &mut groups);
    groups
}

/// A group that is part of none.
pub(in crate::world) fn random_group(dice: &mut Dice, name: String) -> GroupConfig {
    let limits = random_limits(dice, GROUP_BYTES, GROUP_OPERATIONS);
    GroupConfig { name, weight: dice.between(1, 1000) as u16, limits, parent: None }
}

/// Makes another tree of the same groups, some of them with other weights and limits. What lay above may lie below now.
pub(in crate::world) fn rearrange(dice: &mut Dice, groups: &mut [GroupConfig]) {
    for at in (1..groups.len()).rev() {
        groups.swap(at, dice.index(at + 1));
    }
    for at in 0..groups.len() {
        let parent = groups.get(dice.index(at)).filter(|_| at > 0 && dice.permille(600));
        groups[at].parent = parent.map(|group| group.name.clone());
        if dice.permille(500) {
            let name = groups[at].name.clone();
            groups[at] = GroupConfig { parent: groups[at].parent.clone(), ..random_group(dice, name) };
        }
    }
}
