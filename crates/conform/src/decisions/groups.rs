//! The control groups of a scenario, validated and sorted so that parents come first.

use std::collections::HashMap;

use hoistway_core::GroupWeights;

use super::error::ScenarioError;
use super::format::RawGroup;

/// Id of the root group, which files do not list.
pub(super) const ROOT_ID: u32 = 0;

/// Index of a group: 0 is the root, n is entry n - 1 of the scenario's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupIndex(pub usize);

/// A group below the root.
#[derive(Debug)]
pub(super) struct Group {
    /// The group's id in the file.
    pub id: u32,
    /// The group's parent, which comes earlier in the list.
    pub parent: GroupIndex,
    pub weights: GroupWeights,
}

/// The index of each group by its id.
pub(super) struct GroupTable(HashMap<u32, GroupIndex>);

impl GroupTable {
    /// Finds the group with an id; `field` is the path of the field with that id.
    pub fn find(&self, field: &str, id: u32) -> Result<GroupIndex, ScenarioError> {
        self.0.get(&id).copied().ok_or_else(|| unknown(field, id))
    }
}

/// The groups of a file, parents before children and otherwise in the file's order.
pub(super) fn groups(raw: &[RawGroup]) -> Result<(Vec<Group>, GroupTable), ScenarioError> {
    let by_id = by_id(raw)?;
    let mut table: HashMap<u32, GroupIndex> = HashMap::with_capacity(raw.len() + 1);
    table.insert(ROOT_ID, GroupIndex(0));
    let mut groups = Vec::with_capacity(raw.len());
    for (index, group) in raw.iter().enumerate() {
        // The groups from this one up to the nearest ancestor that is in the list already.
        let mut path = Vec::new();
        let (mut id, mut field) = (group.id, String::new());
        while !table.contains_key(&id) {
            let Some(&at) = by_id.get(&id) else { return Err(unknown(&field, id)) };
            if path.len() == raw.len() {
                return Err(group_loop(raw, &by_id, index));
            }
            path.push(at);
            (id, field) = (raw[at].parent, format!("groups[{at}].parent"));
        }
        for at in path.into_iter().rev() {
            let Some(&parent) = table.get(&raw[at].parent) else { continue };
            groups.push(Group { id: raw[at].id, parent, weights: weights(raw, at)? });
            table.insert(raw[at].id, GroupIndex(groups.len()));
        }
    }
    Ok((groups, GroupTable(table)))
}

/// The index in the file of each group by its id.
fn by_id(raw: &[RawGroup]) -> Result<HashMap<u32, usize>, ScenarioError> {
    let mut by_id = HashMap::with_capacity(raw.len());
    for (index, group) in raw.iter().enumerate() {
        let field = || format!("groups[{index}].id");
        if group.id == ROOT_ID {
            return Err(ScenarioError::value(
                field(),
                ROOT_ID,
                "that is the root, which is always there; 1 or more would be right",
            ));
        }
        if by_id.insert(group.id, index).is_some() {
            return Err(ScenarioError::value(field(), group.id, "an earlier group has this id"));
        }
    }
    Ok(by_id)
}

fn unknown(field: &str, id: u32) -> ScenarioError {
    ScenarioError::value(field, id, "no group has this id; 0 (the root) or the id of one in groups would be right")
}

/// The error for a loop of parents above the group at `index`, with the ids in the loop.
fn group_loop(raw: &[RawGroup], by_id: &HashMap<u32, usize>, index: usize) -> ScenarioError {
    let parent = |at: usize| by_id.get(&raw[at].parent).copied().unwrap_or(at);
    // After as many steps as there are groups, one is within the loop.
    let within = (0..raw.len()).fold(index, |at, _| parent(at));
    let mut ids = vec![raw[within].id.to_string()];
    let mut at = parent(within);
    while at != within {
        ids.push(raw[at].id.to_string());
        at = parent(at);
    }
    ids.push(raw[within].id.to_string());
    let right = format!("a group loop ({}); parents that lead to 0, the root, would be right", ids.join(" in "));
    ScenarioError::value(format!("groups[{within}].parent"), raw[within].parent, right)
}

fn weights(raw: &[RawGroup], at: usize) -> Result<GroupWeights, ScenarioError> {
    let checked = |name: &str, weight: u32| {
        let allowed = GroupWeights::MIN..=GroupWeights::MAX;
        let right = || format!("{} to {} would be right", GroupWeights::MIN, GroupWeights::MAX);
        let narrow = u16::try_from(weight).ok().filter(|weight| allowed.contains(weight));
        narrow.ok_or_else(|| ScenarioError::value(format!("groups[{at}].{name}"), weight, right()))
    };
    let weight = checked("weight", raw[at].weight)?;
    let leaf_weight = raw[at].leaf_weight.map_or(Ok(GroupWeights::DEFAULT), |weight| checked("leaf_weight", weight))?;
    Ok(GroupWeights { weight, leaf_weight })
}
