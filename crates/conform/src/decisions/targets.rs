//! The elevator and block layer that have to reproduce each source of decisions.

use hoistway_core::{BlockLayer, GroupWeights, Kind};

use super::error::ScenarioError;

/// A source of recorded decisions, with hoistway's elevator for it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Kernel and scheduler in the form of the field `source`.
    pub source: &'static str,
    /// The elevator of hoistway.
    pub elevator: Kind,
    /// The block layer of the elevator.
    pub layer: BlockLayer,
    /// Tunables that give the elevator the form of that kernel; a scenario's own tunables are set
    /// later.
    pub tunables: &'static [(&'static str, i64)],
    /// Weights of that kernel's root group, if they are not the default.
    pub root_weights: Option<GroupWeights>,
}

const fn target(source: &'static str, elevator: Kind, layer: BlockLayer) -> Target {
    Target { source, elevator, layer, tunables: &[], root_weights: None }
}

/// The table of sources; new sources are added here.
const TARGETS: &[Target] = &[
    target("linux-2.6.18 noop", Kind::Noop, BlockLayer::V2_6_18),
    target("linux-2.6.18 deadline", Kind::Deadline, BlockLayer::V2_6_18),
    target("linux-2.6.18 anticipatory", Kind::Anticipatory, BlockLayer::V2_6_18),
    target("linux-2.6.18 cfq", Kind::CfqV3, BlockLayer::V2_6_18),
    target("linux-2.6.24 cfq", Kind::CfqTree, BlockLayer::V2_6_24),
    target("linux-2.6.29 bfq", Kind::BfqV0, BlockLayer::V2_6_29),
    target("linux-3.4 fiops", Kind::Fiops, BlockLayer::V3_4),
    target("linux-4.19 noop", Kind::Noop, BlockLayer::V4_19),
    // Form 2: the batch is counted in requests, at any positions.
    Target { tunables: &[("form", 2)], ..target("linux-4.19 deadline", Kind::Deadline, BlockLayer::V4_19) },
    // A kernel without groups does not wait for them either.
    Target { tunables: &[("groups", 0), ("group_idle", 0)], ..target("linux-4.19 cfq", Kind::Cfq, BlockLayer::V4_19) },
    // In a hierarchy of the first version of control groups, CFQ's root weighs twice the default of
    // 500.
    Target {
        root_weights: Some(GroupWeights::of(1000)),
        ..target("linux-4.19 cfq (groups)", Kind::Cfq, BlockLayer::V4_19)
    },
    // Without CONFIG_BFQ_GROUP_IOSCHED, and with.
    Target { tunables: &[("groups", 0)], ..target("linux-6.1 bfq", Kind::Bfq, BlockLayer::V6_1) },
    Target { tunables: &[("groups", 1)], ..target("linux-6.1 bfq (groups)", Kind::Bfq, BlockLayer::V6_1) },
    // The recording ran the queue at arrivals and completions only.
    Target { tunables: &[("rerun_delay", 0)], ..target("linux-6.1 mq-deadline", Kind::MqDeadline, BlockLayer::V6_1) },
    target("linux-6.1 kyber", Kind::Kyber, BlockLayer::V6_1),
];

/// All known sources.
pub fn targets() -> &'static [Target] {
    TARGETS
}

impl Target {
    /// Finds the target of a source.
    pub(crate) fn of_source(name: &str) -> Result<&'static Target, ScenarioError> {
        let Some(target) = TARGETS.iter().find(|target| target.source == name) else {
            let known = TARGETS.iter().map(|target| target.source).collect::<Vec<_>>().join(", ");
            return Err(ScenarioError::UnknownSource { name: name.to_owned(), known });
        };
        Ok(target)
    }
}
