//! The effect of an I/O priority under a scheduler, in words.

use hoistway_core::{self as core, Kind, PriorityEffect};

use crate::device::BlockDevice;
use crate::priority::{Class, NORMAL_LEVEL, Priority};
use crate::queue::Queue;
use crate::scheduler_names::elevator_of_scheduler;

/// The effect of an I/O priority under a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectText {
    /// True if the priority makes a difference compared with an ordinary process.
    pub counts: bool,
    /// The effect, a sentence without its full stop.
    pub text: String,
}

/// The effect of an effective priority under an elevator with its default tunables.
///
/// ```
/// use hoistway_core::Kind;
/// use hoistway_machine::{Class, Priority, effect_under};
/// assert!(!effect_under(Kind::Kyber, Priority::new(Class::Idle, 0)).counts);
/// ```
pub fn effect_under(kind: Kind, priority: Priority) -> EffectText {
    let effect = kind.priority_effect(to_core(priority));
    let rank = rank(priority.class);
    // The value of an ordinary process, as a reference.
    let normal = |value: &str| {
        if priority.level == NORMAL_LEVEL {
            ", as usual".to_owned()
        } else {
            format!(", {value} at level {NORMAL_LEVEL}")
        }
    };
    let text = match effect {
        PriorityEffect::Unknown => format!("{} decides, a custom elevator", kind.info().name),
        PriorityEffect::Nothing => "nothing: all processes are served alike".to_owned(),
        PriorityEffect::Class => class_effect(kind, priority.class),
        PriorityEffect::Slice { slice_ms, async_requests } => {
            let normal = normal("100 ms");
            format!(
                "{rank}; {slice_ms} ms of the disk at a time{normal}; up to {async_requests} buffered writes a turn"
            )
        }
        PriorityEffect::Weight { weight, normal: normal_weight } => {
            format!("{rank}; weight {weight}{}{}", normal(&normal_weight.to_string()), share(weight, normal_weight))
        }
        PriorityEffect::Share { weight, normal } => {
            let share = share(weight, normal);
            format!("weight {weight} among all processes, {normal} without a priority{share}")
        }
        PriorityEffect::Cost { percent } => {
            format!("{rank}; each request counts as {} of one{}", percent as f64 / 100.0, normal("as 1"))
        }
    };
    EffectText { counts: effect != PriorityEffect::Nothing, text }
}

/// The effect of an effective priority under the active scheduler of a device, with its present
/// tunables where the text depends on them.
pub fn effect_on(device: &BlockDevice, queue: &Queue, priority: Priority) -> EffectText {
    let scheduler = queue.scheduler.as_deref().unwrap_or("none");
    match (scheduler, elevator_of_scheduler(scheduler)) {
        (_, _) if !queue.has_choice() => {
            no_effect(format!("{} has no scheduler: the priority has no effect there", device.name))
        }
        ("none", _) => no_effect(
            "without a scheduler the priority has no effect: requests go to the device in order of arrival".to_owned(),
        ),
        ("kyber", _) => no_effect("kyber ignores priorities".to_owned()),
        ("mq-deadline", _) => {
            let aging = queue.tunable("prio_aging_expire").map(|tunable| tunable.value.as_str());
            EffectText { counts: true, text: mq_deadline(priority, aging) }
        }
        (_, Some(kind)) => effect_under(kind, priority),
        (other, None) => no_effect(format!("the effect under {other} is not known")),
    }
}

fn no_effect(text: String) -> EffectText {
    EffectText { counts: false, text }
}

fn mq_deadline(priority: Priority, aging: Option<&str>) -> String {
    let aged = match aging.and_then(|ms| ms.parse::<u64>().ok()) {
        None => "requests that have waited for long go first".to_owned(),
        Some(0) => "prio_aging_expire is 0, which reverses the order".to_owned(),
        Some(ms) => format!("requests that have waited {} go first (prio_aging_expire)", duration(ms)),
    };
    match priority.class {
        Class::Realtime => format!("it goes before everything else; {aged}; the level has no effect"),
        Class::Idle => format!("its requests wait until no other is queued or in the device; {aged}"),
        _ => format!("it goes after realtime and before idle; {aged}; the level has no effect"),
    }
}

fn class_effect(kind: Kind, class: Class) -> String {
    match (class, kind) {
        (Class::Idle, Kind::MqDeadline) => "served when no other process has requests, or after 10 s".to_owned(),
        (Class::Idle, Kind::Bfq) => {
            "served when no other process has requests; else one request when a turn ends 200 ms after its last"
                .to_owned()
        }
        (Class::Idle, Kind::CfqV3 | Kind::CfqBw) => {
            "served when no other process has requests, from 100 ms after the last of them on".to_owned()
        }
        (Class::Idle, _) => "served when no other process has requests".to_owned(),
        (class, _) => format!("{}; the level has no effect", rank(class)),
    }
}

fn rank(class: Class) -> &'static str {
    match class {
        Class::Realtime => "before all others",
        Class::Idle => "when no other process has requests",
        _ => "after realtime, before idle",
    }
}

fn share(weight: u32, normal: u32) -> String {
    match (weight, normal) {
        (weight, normal) if weight == normal || normal == 0 => String::new(),
        (weight, normal) => format!(" ({} times its share)", f64::from(weight) / f64::from(normal)),
    }
}

fn duration(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

fn to_core(priority: Priority) -> core::Priority {
    let class = match priority.class {
        Class::None => core::Class::None,
        Class::Realtime => core::Class::RealTime,
        Class::BestEffort => core::Class::BestEffort,
        Class::Idle => core::Class::Idle,
    };
    core::Priority::new(class, priority.level.min(core::LEVELS - 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: Kind, class: Class, level: u8) -> String {
        effect_under(kind, Priority::new(class, level)).text
    }

    #[test]
    fn the_effect_of_a_level_has_figures() {
        assert_eq!(
            text(Kind::Bfq, Class::BestEffort, 0),
            "after realtime, before idle; weight 80, 40 at level 4 (2 times its share)"
        );
        assert!(text(Kind::CfqV3, Class::Realtime, 7).starts_with("before all others; 40 ms of the disk at a time"));
        assert_eq!(
            text(Kind::Fiops, Class::BestEffort, 0),
            "after realtime, before idle; each request counts as 0.2 of one, as 1 at level 4"
        );
        assert_eq!(
            text(Kind::MqDeadline, Class::BestEffort, 0),
            "after realtime, before idle; the level has no effect"
        );
        assert_eq!(text(Kind::Deadline, Class::Realtime, 0), "nothing: all processes are served alike");
        assert_eq!(
            text(Kind::Paternoster, Class::Realtime, 4),
            "weight 6400 among all processes, 100 without a priority (64 times its share)"
        );
        assert_eq!(text(Kind::Cfq, Class::Idle, 0), "served when no other process has requests");
        assert!(text(Kind::Bfq, Class::Idle, 0).ends_with("else one request when a turn ends 200 ms after its last"));
    }

    #[test]
    fn a_priority_counts_only_under_elevators_that_use_it() {
        for (kind, counts) in [(Kind::Kyber, false), (Kind::Noop, false), (Kind::Bfq, true), (Kind::MqDeadline, true)] {
            assert_eq!(effect_under(kind, Priority::new(Class::Idle, 0)).counts, counts, "{kind:?}");
        }
    }
}
