//! The effect of an I/O priority on each elevator, computed by the elevators' own functions.

use crate::elevators::shared::slice_tunables::{async_requests_at_level, slice_at_level};
use crate::elevators::{bfq, bfq_v0, cfq_wf2q, fiops, paternoster};
use crate::priority::{Class, NORMAL_LEVEL, Priority};
use crate::registry::Kind;

/// The effect of an I/O priority on an elevator with default tunables. Where classes count, real
/// time precedes best effort, and best effort precedes idle, unless they are shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityEffect {
    /// No effect.
    Nothing,
    /// Not known: a custom elevator decides.
    Unknown,
    /// Only the class counts, or only the class counts within this class.
    Class,
    /// The class, and within it the level, which sets the length of a slice.
    Slice {
        /// The length of a sync slice, in ms.
        slice_ms: u64,
        /// The maximum of async requests in a slice.
        async_requests: u32,
    },
    /// The class, and within it the level, which sets a weight.
    Weight {
        /// The weight at this level.
        weight: u32,
        /// The weight at level 4.
        normal: u32,
    },
    /// Class and level together, which set a weight among all processes.
    Share {
        /// The weight of this priority.
        weight: u32,
        /// The weight of the best-effort class at level 4.
        normal: u32,
    },
    /// The class, and within it the level, which scales the cost of a request.
    Cost {
        /// The cost in percent of the cost at level 4.
        percent: u64,
    },
}

impl Kind {
    /// The effect of a priority on the elevator. An unset priority must be made
    /// [effective](Priority::effective_under) first.
    pub fn priority_effect(self, priority: Priority) -> PriorityEffect {
        match self {
            Kind::Linus | Kind::Noop | Kind::Deadline | Kind::Anticipatory | Kind::Sfq | Kind::CfqV1 | Kind::CfqV2 => {
                PriorityEffect::Nothing
            }
            Kind::Kyber => PriorityEffect::Nothing,
            Kind::Custom(_) => PriorityEffect::Unknown,
            Kind::MqDeadline => PriorityEffect::Class,
            Kind::Paternoster => {
                let normal = Priority::new(Class::BestEffort, NORMAL_LEVEL).unwrap_or_default();
                PriorityEffect::Share {
                    weight: paternoster::weight_of(priority),
                    normal: paternoster::weight_of(normal),
                }
            }
            _ if priority.class() == Class::Idle => PriorityEffect::Class,
            Kind::CfqV3 | Kind::CfqTree | Kind::CfqBw | Kind::Cfq => PriorityEffect::Slice {
                slice_ms: slice_at_level(self.default_of("slice_sync"), priority.level()),
                async_requests: async_requests_at_level(self.default_of("slice_async_rq") as u32, priority.level()),
            },
            Kind::Bfq => weight(priority, bfq::weight_of),
            Kind::BfqV0 => weight(priority, bfq_v0::weight_of),
            Kind::CfqWf2q => weight(priority, |priority| cfq_wf2q::weight_of(priority, false)),
            Kind::Fiops => PriorityEffect::Cost { percent: fiops::cost_at_level(100, priority.level()) },
        }
    }

    /// The default of the tunable `name`, which is not negative; 0 if there is none of this name.
    fn default_of(self, name: &str) -> u64 {
        let row = self.info().tunables.iter().find(|row| row.name == name);
        row.map_or(0, |row| row.default.unsigned_abs())
    }
}

fn weight(priority: Priority, of: impl Fn(Priority) -> u32) -> PriorityEffect {
    let normal = Priority::new(priority.class(), NORMAL_LEVEL).unwrap_or_default();
    PriorityEffect::Weight { weight: of(priority), normal: of(normal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best_effort(level: u8) -> Priority {
        Priority::new(Class::BestEffort, level).unwrap()
    }

    #[test]
    fn slices_are_a_fifth_longer_or_shorter_a_level() {
        // Of 100 ms: 100 + 4 * 20 at level 0, 100 - 3 * 20 at level 7; async requests 2 * (2 + 2 *
        // 7) and 2 * 2.
        for kind in [Kind::CfqV3, Kind::CfqTree, Kind::CfqBw, Kind::Cfq] {
            let of = |level| kind.priority_effect(best_effort(level));
            assert_eq!(of(0), PriorityEffect::Slice { slice_ms: 180, async_requests: 32 }, "{kind:?}");
            assert_eq!(of(7), PriorityEffect::Slice { slice_ms: 40, async_requests: 4 }, "{kind:?}");
        }
    }

    #[test]
    fn weights_fall_from_level_to_level() {
        let of = |kind: Kind, level| match kind.priority_effect(best_effort(level)) {
            PriorityEffect::Weight { weight, normal } => (weight, normal),
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 4, 7].map(|level| of(Kind::Bfq, level)), [(80, 40), (40, 40), (10, 40)]);
        assert_eq!([0, 4, 7].map(|level| of(Kind::BfqV0, level)), [(8, 4), (4, 4), (1, 4)]);
        assert_eq!([0, 4, 7].map(|level| of(Kind::CfqWf2q, level)), [(80, 40), (40, 40), (10, 40)]);
    }

    #[test]
    fn fiops_charges_the_lower_levels_more() {
        let of = |level| Kind::Fiops.priority_effect(best_effort(level));
        assert_eq!([of(0), of(4), of(7)], [20, 100, 160].map(|percent| PriorityEffect::Cost { percent }));
    }

    #[test]
    fn the_idle_class_has_no_levels_where_priorities_have_an_effect() {
        let idle = Priority::new(Class::Idle, 0).unwrap();
        for kind in Kind::ALL {
            let (of_idle, of_best) = (kind.priority_effect(idle), kind.priority_effect(best_effort(0)));
            assert_eq!(of_idle == PriorityEffect::Nothing, of_best == PriorityEffect::Nothing, "{kind:?}");
            let has_no_levels = matches!(of_idle, PriorityEffect::Nothing | PriorityEffect::Class);
            assert!(has_no_levels || *kind == Kind::Paternoster, "{kind:?}");
        }
    }

    #[test]
    fn classes_are_shares_under_paternoster() {
        let of = |class, level| Kind::Paternoster.priority_effect(Priority::new(class, level).unwrap());
        let share = |weight| PriorityEffect::Share { weight, normal: 100 };
        assert_eq!(of(Class::BestEffort, 4), share(100));
        assert_eq!(of(Class::BestEffort, 0), share(200));
        assert_eq!(of(Class::RealTime, 4), share(6400));
        assert_eq!(of(Class::Idle, 7), share(1));
    }
}
