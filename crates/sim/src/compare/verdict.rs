//! The verdict of a comparison: a sentence made of its figures.

use super::answer::Run;

/// Relative difference in bandwidth below which bandwidths count as equal.
const SAME: f64 = 0.03;

/// The verdict. If bandwidths differ: how far the fastest and the slowest elevator moved the arm
/// apart, and the cost. If they are equal: the other difference. `single_arm` is the arm's share in
/// the single stream.
pub(super) fn decided_by(runs: &[Run], single_arm: f64) -> String {
    let by_rate = |a: &&Run, b: &&Run| a.bytes_per_s.total_cmp(&b.bytes_per_s);
    let (Some(best), Some(worst)) = (runs.iter().max_by(by_rate), runs.iter().min_by(by_rate)) else {
        return String::new();
    };
    if runs.len() == 1 {
        return format!("{} (single stream: {}).", costs(best), percent(single_arm));
    }
    if best.bytes_per_s <= 0.0 || (best.bytes_per_s - worst.bytes_per_s) / best.bytes_per_s >= SAME {
        let (idle_best, idle_worst) = (part(best, best.drive_ns.idle), part(worst, worst.drive_ns.idle));
        let (arm_best, arm_worst) = (best.arm_share(), worst.arm_share());
        if idle_worst - idle_best > arm_worst - arm_best {
            return format!(
                "{} leaves the drive idle {} of the time, {} {}: that is more than the arm makes up for.",
                worst.elevator,
                percent(idle_worst),
                best.elevator,
                percent(idle_best)
            );
        }
        return format!("{}; {} (single stream: {}).", costs(best), costs(worst), percent(single_arm));
    }
    alike(runs, best, worst)
}

/// Describes how an elevator moved the arm, and the share of time that this cost.
fn costs(run: &Run) -> String {
    let requests = run.drive_requests.max(1);
    let bytes = run.drive_bytes;
    let share = percent(run.arm_share());
    match run.turns {
        // A single process makes no turns; the first request of each process counts as one.
        turns if turns as usize > run.processes.len() && run.processes.len() > 1 => {
            let each_ns = run.runtime_ns / turns;
            let kib = bytes / turns / 1024;
            let every = if kib >= 1024 { format!("{:.1} MiB", kib as f64 / 1024.0) } else { format!("{kib} KiB") };
            let ms = each_ns as f64 / 1e6;
            format!(
                "{} turns from one process to another every {every} ({ms:.0} ms): {share} of the time is seek and rotation",
                run.elevator
            )
        }
        _ => format!(
            "{} serves requests of {} KiB on average: {share} of the time is seek and rotation",
            run.elevator,
            bytes / requests / 1024
        ),
    }
}

/// The verdict for equal bandwidths: fairness or latency may differ.
fn alike(runs: &[Run], best: &Run, worst: &Run) -> String {
    let apart = percent((best.bytes_per_s - worst.bytes_per_s) / best.bytes_per_s);
    let p99 = |run: &Run| run.latency_ns.p99;
    let (Some(quick), Some(slow)) = (runs.iter().min_by_key(|run| p99(run)), runs.iter().max_by_key(|run| p99(run)))
    else {
        return String::new();
    };
    if p99(slow) as f64 > 1.2 * p99(quick) as f64 {
        return format!(
            "bandwidths are within {apart} of each other; the 99th percentile of latency decides: {} under {}, {} under {}.",
            ms(p99(quick)),
            quick.elevator,
            ms(p99(slow)),
            slow.elevator
        );
    }
    let by_jain = |a: &&Run, b: &&Run| a.jain.total_cmp(&b.jain);
    match (runs.iter().max_by(by_jain), runs.iter().min_by(by_jain)) {
        (Some(fair), Some(unfair)) if fair.jain - unfair.jain > 0.02 => format!(
            "bandwidths are within {apart} of each other; fairness decides: Jain's index is {:.3} under {}, {:.3} under {}.",
            fair.jain, fair.elevator, unfair.jain, unfair.elevator
        ),
        _ => format!(
            "no elevator is better: bandwidths are within {apart} of each other, latencies and shares are equal."
        ),
    }
}

fn part(run: &Run, ns: u64) -> f64 {
    if run.runtime_ns == 0 { 0.0 } else { ns as f64 / run.runtime_ns as f64 }
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

fn ms(ns: u64) -> String {
    if ns < 1_000_000 { format!("{:.0} us", ns as f64 / 1e3) } else { format!("{:.0} ms", ns as f64 / 1e6) }
}
