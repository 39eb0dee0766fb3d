//! Which elevator, in which kernel's block layer, has to take the decisions of which source.

use hoistway_core::{BlockLayer, GroupWeights, Kind};

use super::error::ScenarioError;

/// Whose decisions a source's are.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The kernel and its scheduler, as the field `source` has them.
    pub source: &'static str,
    /// hoistway's elevator.
    pub elevator: &'static str,
    /// The block layer around it.
    pub layer: BlockLayer,
    /// Tunables that make the elevator the one of that kernel; set before those of a scenario.
    pub tunables: &'static [(&'static str, i64)],
    /// The weights of that kernel's root group, where they are not the usual ones.
    pub root_weights: Option<GroupWeights>,
    /// Whether all that the source needs is here; if not, its scenarios are refused as not built yet.
    pub built: bool,
}

const fn built(source: &'static str, elevator: &'static str, layer: BlockLayer) -> Target {
    Target { source, elevator, layer, tunables: &[], root_weights: None, built: true }
}

const fn missing(source: &'static str, elevator: &'static str, layer: BlockLayer) -> Target {
    Target { source, elevator, layer, tunables: &[], root_weights: None, built: false }
}

/// The table: the place to add a source.
const TARGETS: &[Target] = &[
    built("linux-2.6.18 noop", "noop", BlockLayer::V2_6_18),
    built("linux-2.6.18 deadline", "deadline", BlockLayer::V2_6_18),
    built("linux-2.6.18 anticipatory", "anticipatory", BlockLayer::V2_6_18),
    built("linux-2.6.18 cfq", "cfq-v3", BlockLayer::V2_6_18),
    built("linux-2.6.24 cfq", "cfq-tree", BlockLayer::V2_6_24),
    built("linux-2.6.29 bfq", "bfq-v0", BlockLayer::V2_6_29),
    built("linux-3.4 fiops", "fiops", BlockLayer::V3_4),
    built("linux-4.19 noop", "noop", BlockLayer::V4_19),
    // Form 2: the batch is counted in requests, wherever they lie.
    Target { tunables: &[("form", 2)], ..built("linux-4.19 deadline", "deadline", BlockLayer::V4_19) },
    // A kernel without groups does not wait for them either.
    Target { tunables: &[("groups", 0), ("group_idle", 0)], ..built("linux-4.19 cfq", "cfq", BlockLayer::V4_19) },
    // In a hierarchy of the first version of control groups, CFQ's root weighs twice the default of 500.
    Target { root_weights: Some(GroupWeights::of(1000)), ..built("linux-4.19 cfq (groups)", "cfq", BlockLayer::V4_19) },
    // Without CONFIG_BFQ_GROUP_IOSCHED, and with.
    Target { tunables: &[("groups", 0)], ..built("linux-6.1 bfq", "bfq", BlockLayer::V6_1) },
    Target { tunables: &[("groups", 1)], ..built("linux-6.1 bfq (groups)", "bfq", BlockLayer::V6_1) },
    // The recording ran the queue at arrivals and completions only.
    Target { tunables: &[("rerun_delay", 0)], ..built("linux-6.1 mq-deadline", "mq-deadline", BlockLayer::V6_1) },
    built("linux-6.1 kyber", "kyber", BlockLayer::V6_1),
];

/// All sources that are known, those whose elevator is not built yet included.
pub fn targets() -> &'static [Target] {
    TARGETS
}

impl Target {
    /// The target of a source, and the kind of its elevator.
    pub(crate) fn of_source(name: &str) -> Result<(&'static Target, Kind), ScenarioError> {
        let Some(target) = TARGETS.iter().find(|target| target.source == name) else {
            let known = TARGETS.iter().map(|target| target.source).collect::<Vec<_>>().join(", ");
            return Err(ScenarioError::UnknownSource { name: name.to_owned(), known });
        };
        match Kind::from_name(target.elevator) {
            Some(kind) if target.built => Ok((target, kind)),
            _ => Err(ScenarioError::NotBuilt { name: name.to_owned(), elevator: target.elevator.to_owned() }),
        }
    }
}
