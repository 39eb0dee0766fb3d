//! What schedulers make of a priority, in words.

use hoistway_core::{self as core, Kind, PriorityEffect};
use hoistway_machine::priority::NORMAL_LEVEL;
use hoistway_machine::{Attribute, BlockDevice, Class, Priority, Queue};

/// What a scheduler makes of a priority.
pub struct Effect {
    /// Whether the priority changes anything against that of an ordinary process.
    pub counts: bool,
    /// In a sentence without its full stop.
    pub text: String,
}

/// What an elevator makes of an effective priority, with its tunables as they are shipped.
pub fn of_elevator(kind: Kind, priority: Priority) -> Effect {
    let effect = kind.priority_effect(as_core(priority));
    let rank = rank(priority.class);
    // What an ordinary process gets, for who does not know the scale.
    let beside = |normal: &str| {
        if priority.level == NORMAL_LEVEL {
            ", as usual".to_owned()
        } else {
            format!(", {normal} at level {NORMAL_LEVEL}")
        }
    };
    let text = match effect {
        PriorityEffect::Nothing => "nothing: all processes are served alike".to_owned(),
        PriorityEffect::Class => class(kind, priority.class),
        PriorityEffect::Slice { slice_ms, async_requests } => {
            let beside = beside("100 ms");
            format!(
                "{rank}; {slice_ms} ms of the disk at a time{beside}; up to {async_requests} buffered writes a turn"
            )
        }
        PriorityEffect::Weight { weight, normal } => {
            format!("{rank}; weight {weight}{}{}", beside(&normal.to_string()), times(weight, normal))
        }
        PriorityEffect::Cost { percent } => {
            format!("{rank}; each request counts as {} of one{}", percent as f64 / 100.0, beside("as 1"))
        }
    };
    Effect { counts: effect != PriorityEffect::Nothing, text }
}

/// What the scheduler that is set on a device makes of it, by its tunables as they are now.
pub fn of_device(device: &BlockDevice, queue: &Queue, priority: Priority) -> Effect {
    let scheduler = queue.scheduler.as_deref().unwrap_or("none");
    let value = |name: &str| queue.tunable(name).map(|Attribute { value, .. }| value.as_str());
    match (scheduler, Kind::from_name(scheduler)) {
        (_, _) if !queue.has_choice() => {
            nothing(format!("{} has no scheduler: the priority counts for nothing there", device.name))
        }
        ("none", _) => nothing(
            "without a scheduler the priority counts for nothing: requests go to the device as they come".to_owned(),
        ),
        ("kyber", _) => nothing("kyber looks at no priority: it counts for nothing".to_owned()),
        ("mq-deadline", _) => Effect { counts: true, text: mq_deadline(priority, value("prio_aging_expire")) },
        (_, Some(kind)) => of_elevator(kind, priority),
        (other, None) => nothing(format!("what {other} makes of it is not known")),
    }
}

fn nothing(text: String) -> Effect {
    Effect { counts: false, text }
}

fn mq_deadline(priority: Priority, aging: Option<&str>) -> String {
    let aged = match aging.and_then(|ms| ms.parse::<u64>().ok()) {
        None => "what has waited for long goes first".to_owned(),
        Some(0) => "prio_aging_expire is 0, which turns the order round".to_owned(),
        Some(ms) => format!("what has waited {} goes first (prio_aging_expire)", seconds(ms)),
    };
    match priority.class {
        Class::Realtime => format!("it goes before everything else; {aged}; the level counts for nothing"),
        Class::Idle => format!("its requests wait until no other is queued or in the device; {aged}"),
        _ => format!("it goes after realtime and before idle; {aged}; the level counts for nothing"),
    }
}

fn class(kind: Kind, class: Class) -> String {
    let ages = if kind == Kind::MqDeadline { ", or 10 s have passed" } else { "" };
    match class {
        Class::Idle => format!("served when nobody else asks{ages}"),
        class => format!("{}; the level counts for nothing", rank(class)),
    }
}

fn rank(class: Class) -> &'static str {
    match class {
        Class::Realtime => "before all others",
        Class::Idle => "when nobody else asks",
        _ => "after realtime, before idle",
    }
}

fn times(weight: u32, normal: u32) -> String {
    match (weight, normal) {
        (weight, normal) if weight == normal || normal == 0 => String::new(),
        (weight, normal) => format!(" ({} times its share)", f64::from(weight) / f64::from(normal)),
    }
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

fn as_core(priority: Priority) -> core::Priority {
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
        of_elevator(kind, Priority::new(class, level)).text
    }

    #[test]
    fn elevators_say_what_a_level_is_worth() {
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
            "after realtime, before idle; the level counts for nothing"
        );
        assert_eq!(text(Kind::Deadline, Class::Realtime, 0), "nothing: all processes are served alike");
        assert_eq!(text(Kind::Cfq, Class::Idle, 0), "served when nobody else asks");
    }

    #[test]
    fn only_those_that_look_at_priorities_count() {
        for (kind, counts) in [(Kind::Kyber, false), (Kind::Noop, false), (Kind::Bfq, true), (Kind::MqDeadline, true)] {
            assert_eq!(of_elevator(kind, Priority::new(Class::Idle, 0)).counts, counts, "{kind:?}");
        }
    }
}
