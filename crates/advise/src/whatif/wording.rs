//! Words for the findings in a trace that text and page share.

use hoistway_trace::dependencies::{Pattern, PatternAnalysis};
use hoistway_units::figures::figure;

use super::model::Machine;

/// Name and id of a process; a name made of the id is enough alone.
pub fn title(name: &str, pid: u32) -> String {
    if name == format!("pid {pid}") { name.to_owned() } else { format!("{name} ({pid})") }
}

/// The simulated host. Its processors take no time: the recorded pauses include that of the
/// recorded ones.
pub fn host(machine: &Machine) -> String {
    let kernel = machine.kernel.map(|kernel| format!("the block layer of Linux {}", kernel.name()));
    kernel.unwrap_or_else(|| "each elevator in the block layer of its own kernel".to_owned())
}

/// The dependency rule of a process in words.
pub fn rule(finding: &PatternAnalysis) -> String {
    match finding.pattern {
        Pattern::Closed { depth: 1 } => "the request before".into(),
        Pattern::Closed { depth } => format!("one of {depth} under way"),
        Pattern::Batches { depth } => format!("all of a batch of up to {depth}"),
        Pattern::Timer { period_ns, .. } => format!("a timer of {}", time(period_ns)),
        Pattern::Open => "nothing visible in the trace".into(),
    }
}

/// The text as a sentence: with a capital letter and a full stop.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// A time in a suitable unit.
pub fn time(ns: u64) -> String {
    match ns {
        ns if ns < 1_000_000 => format!("{} us", figure(ns as f64 / 1e3)),
        ns if ns < 1_000_000_000 => format!("{} ms", figure(ns as f64 / 1e6)),
        ns => format!("{} s", figure(ns as f64 / 1e9)),
    }
}
