//! The command queue and the faults of a disk in words.

use crate::faults::Faults;
use crate::profile::{QueuePolicy, QueueProfile};

/// The rule of the command queue; empty for a queue of one command.
pub(crate) fn queue(queue: &QueueProfile) -> String {
    if queue.depth == 1 {
        return String::new();
    }
    let mut words = match queue.policy {
        QueuePolicy::Fifo => return "in the order of arrival".to_string(),
        QueuePolicy::Satf if queue.window < queue.depth => {
            format!("shortest access time first among the {} oldest", queue.window)
        }
        QueuePolicy::Satf => "shortest access time first".to_string(),
    };
    if queue.age_weight > 0.0 {
        words.push_str(&format!(", {} ms of credit for each ms of waiting", queue.age_weight));
    }
    if let Some(limit_ms) = queue.max_wait_ms {
        words.push_str(&format!(", the oldest first after {limit_ms} ms"));
    }
    words
}

/// One sentence for each kind of fault.
pub(crate) fn faults(faults: &Faults) -> Vec<String> {
    let mut texts = Vec::new();
    let tries = format!("{} revolutions of retries", faults.retries);
    for (ranges, what) in [(&faults.bad_sectors, "cannot be read"), (&faults.slow_sectors, "are read")] {
        let count: u64 = ranges.iter().map(|range| u64::from(range.1)).sum();
        if let Some(first) = ranges.iter().map(|range| range.0).min() {
            texts.push(format!("{count} sectors, the first of them {first}, {what} after {tries}"));
        }
    }
    for (share, what) in [(faults.bad_share, "cannot be read"), (faults.slow_share, "is read")] {
        if share > 0.0 {
            texts.push(format!(
                "one of {:.0} physical sectors {what} after {tries} (seed {})",
                1.0 / share,
                faults.seed
            ));
        }
    }
    for hang in &faults.hangs {
        let how_long = if hang.for_ms.is_finite() { format!("for {} ms", hang.for_ms) } else { "for ever".to_string() };
        texts.push(format!("hangs at {} ms {how_long}", hang.at_ms));
    }
    texts
}
