//! Formats the notes of elevators, one line each.

use hoistway_core::{Expiry, Kind, Note, Op};

/// Returns the queue of a note; 0 if it has none.
pub fn note_queue(note: &Note) -> u32 {
    match note {
        Note::Activate { queue, .. }
        | Note::SliceSet { queue, .. }
        | Note::SliceExpired { queue, .. }
        | Note::IdleArmed { queue, .. }
        | Note::IdleHit { queue }
        | Note::IdleTimeout { queue }
        | Note::Preempt { queue, .. }
        | Note::Charge { queue, .. }
        | Note::BudgetExpired { queue, .. }
        | Note::WeightRaised { queue, .. }
        | Note::QueuesMerged { queue, .. }
        | Note::QueueSplit { queue }
        | Note::Injected { queue, .. } => *queue,
        Note::Anticipate { pid, .. } | Note::AnticipationBroken { pid } | Note::AnticipationTimeout { pid } => *pid,
        _ => 0,
    }
}

/// Formats a note. Times are those of the trace, in ns. The texts are part of the recording format:
/// `hoistway_trace::overview` parses them.
pub fn text(note: &Note) -> String {
    match note {
        Note::Activate { queue, level } => format!("slice of {queue} begins, level {level}"),
        Note::SliceSet { queue, until_ns } => format!("slice of {queue} ends at {until_ns}"),
        Note::SliceExpired { queue, left_ns, preempted } => {
            let how = if *preempted { "is taken away" } else { "is over" };
            format!("slice of {queue} {how}, {left_ns} left")
        }
        Note::IdleArmed { queue, until_ns } => format!("idle for {queue} until {until_ns}"),
        Note::IdleHit { queue } => format!("idle for {queue}: its request came"),
        Note::IdleTimeout { queue } => format!("idle for {queue}: in vain"),
        Note::Preempt { queue, victim } => format!("{queue} preempts {victim}"),
        Note::Batch { op } => format!("batch of {}", if *op == Op::Read { "reads" } else { "writes" }),
        Note::Overdue { token } => format!("request {token} is overdue"),
        Note::Anticipate { pid, until_ns } => format!("anticipates {pid} until {until_ns}"),
        Note::AnticipationBroken { pid } => format!("anticipation of {pid} ends"),
        Note::AnticipationTimeout { pid } => format!("anticipation of {pid}: in vain"),
        Note::Charge { queue, amount } => format!("{queue} is charged {amount}"),
        Note::BudgetExpired { queue, reason, served, budget } => {
            format!("budget of {queue} is over ({}), {served} of {budget} sectors", why(*reason))
        }
        Note::WeightRaised { queue, coefficient } => format!("weight of {queue} times {coefficient}"),
        Note::QueuesMerged { queue, into } => format!("{queue} shares the queue of {into}"),
        Note::QueueSplit { queue } => format!("{queue} has a queue of its own"),
        Note::Injected { queue, into } => format!("{queue} is let in while {into} is idled for"),
        Note::TokenDepth { domain, depth } => format!("depth of domain {domain} is {depth}"),
        Note::Aged { token } => format!("request {token} has waited long enough"),
        Note::Workload { class, kind, until_ns } => format!("class {class}, kind {kind} is served until {until_ns}"),
        Note::Postponed => "requests are held back".to_owned(),
        Note::SweepBegun { bytes } => format!("sweep of {bytes} bytes begins"),
        Note::Degraded { bound_ns } => format!("reservations are late: bound {bound_ns}"),
        Note::Switched { elevator } => {
            let name = Kind::ALL.get(usize::from(*elevator)).map_or("of the program", |kind| kind.info().name);
            format!("elevator {name}")
        }
    }
}

fn why(reason: Expiry) -> &'static str {
    match reason {
        Expiry::TooIdle => "too idle",
        Expiry::TimedOut => "timed out",
        Expiry::Exhausted => "exhausted",
        Expiry::NoMoreRequests => "no more requests",
        Expiry::Preempted => "preempted",
    }
}
