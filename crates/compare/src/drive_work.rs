//! The work of a drive under an elevator, and the differences between two elevators.

use std::iter::Sum;

use hoistway_sim::Run;
use hoistway_units::figures::duration;

/// The work of a drive in one run, or in the runs of one elevator with several seeds together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveWork {
    /// The number of processes of each run.
    processes: usize,
    runtime_ns: u64,
    idle_ns: u64,
    /// Time of seeks and rotation.
    arm_ns: u64,
    bytes: u64,
    requests: u64,
    /// Times that the drive went from one process's request to another process's.
    turns: u64,
    runs: u64,
}

impl DriveWork {
    /// The work of one run.
    pub fn of(run: &Run) -> DriveWork {
        DriveWork {
            processes: run.processes.len(),
            runtime_ns: run.runtime_ns,
            idle_ns: run.drive_ns.idle,
            arm_ns: run.drive_ns.seek + run.drive_ns.rotation,
            bytes: run.drive_bytes,
            requests: run.drive_requests,
            turns: run.turns,
            runs: 1,
        }
    }

    fn part(&self, ns: u64) -> f64 {
        if self.runtime_ns == 0 { 0.0 } else { ns as f64 / self.runtime_ns as f64 }
    }

    fn idle(&self) -> f64 {
        self.part(self.idle_ns)
    }

    fn arm(&self) -> f64 {
        self.part(self.arm_ns)
    }
}

impl Sum for DriveWork {
    fn sum<I: Iterator<Item = DriveWork>>(all: I) -> DriveWork {
        all.fold(DriveWork::default(), |sum, one| DriveWork {
            processes: sum.processes.max(one.processes),
            runtime_ns: sum.runtime_ns.saturating_add(one.runtime_ns),
            idle_ns: sum.idle_ns.saturating_add(one.idle_ns),
            arm_ns: sum.arm_ns.saturating_add(one.arm_ns),
            bytes: sum.bytes.saturating_add(one.bytes),
            requests: sum.requests.saturating_add(one.requests),
            turns: sum.turns.saturating_add(one.turns),
            runs: sum.runs + one.runs,
        })
    }
}

/// Says how the best and the worst elevator differ in what they do to the drive, or what the only
/// elevator does, in one sentence that begins with the name of an elevator; `None` if they do not
/// differ.
pub fn mechanism(best: (&str, &DriveWork), worst: (&str, &DriveWork), rotational: bool) -> Option<String> {
    let arm = |work: &DriveWork| if rotational { work.arm() } else { 0.0 };
    if best.0 == worst.0 {
        return Some(format!("{}.", does(best.0, best.1, rotational)));
    }
    if worst.1.idle() - best.1.idle() > (arm(worst.1) - arm(best.1)).max(0.05) {
        let idle = [worst, best].map(|(_, work)| percent(work.idle()));
        return Some(format!("{} leaves the drive idle {} of the time, {} {}.", worst.0, idle[0], best.0, idle[1]));
    }
    let texts = [best, worst].map(|(name, work)| does(name, work, rotational));
    let differ = texts[0].strip_prefix(best.0) != texts[1].strip_prefix(worst.0);
    differ.then(|| format!("{}; {}.", texts[0], texts[1]))
}

/// Describes an elevator: how often it turns from process to process, or the size of its requests,
/// and on a disk the share of time that arm and platter cost.
fn does(name: &str, work: &DriveWork, rotational: bool) -> String {
    let share =
        if rotational { format!(": {} of the time is seek and rotation", percent(work.arm())) } else { String::new() };
    // A single process makes no turns; the first request of each process counts as one.
    let firsts = work.runs.saturating_mul(work.processes as u64);
    if work.turns > firsts && work.processes > 1 {
        let each = duration(work.runtime_ns / work.turns);
        let kib = work.bytes / work.turns / 1024;
        let every = if kib >= 1024 { format!("{:.1} MiB", kib as f64 / 1024.0) } else { format!("{kib} KiB") };
        return format!("{name} turns from one process to another every {every} ({each}){share}");
    }
    let kib = work.bytes / work.requests.max(1) / 1024;
    format!("{name} serves requests of {kib} KiB on average{share}")
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: DriveWork = DriveWork {
        processes: 2,
        runtime_ns: 1_000_000_000,
        idle_ns: 0,
        arm_ns: 0,
        bytes: 10 << 20,
        requests: 80,
        turns: 10,
        runs: 1,
    };

    #[test]
    fn several_seeds_give_the_mean_of_all() {
        // 10 turns in the first second and 30 in the next: one every 50 ms and 512 KiB.
        let both: DriveWork = [BUSY, DriveWork { turns: 30, ..BUSY }].into_iter().sum();
        let text = mechanism(("cfq", &both), ("cfq", &both), false);
        assert_eq!(text.as_deref(), Some("cfq turns from one process to another every 512 KiB (50.0 ms)."));
        // An idle second after a busy one: half of the time.
        let idle = DriveWork { idle_ns: 1_000_000_000, ..BUSY };
        let half: DriveWork = [BUSY, idle].into_iter().sum();
        let text = mechanism(("cfq", &both), ("bfq", &half), false);
        assert_eq!(text.as_deref(), Some("bfq leaves the drive idle 50 % of the time, cfq 0.0 %."));
    }

    #[test]
    fn first_requests_of_each_seed_are_no_turns() {
        let once = DriveWork { turns: 2, ..BUSY };
        let both: DriveWork = [once, once].into_iter().sum();
        let text = mechanism(("noop", &both), ("noop", &both), false);
        assert_eq!(text.as_deref(), Some("noop serves requests of 128 KiB on average."));
    }
}
