//! Why a choice is better, from what each job got: who gains, and who pays.

use crate::bench::{JobFigures, Measured};
use crate::judge::{Difference, FLOOR, Spread};
use crate::objective::{Unit, told};

/// How a job fares under one choice, measured against another.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// The job.
    pub job: String,
    /// What changes: `p99`, `throughput` or `time`.
    pub what: &'static str,
    /// Its mean before, in ns or bytes a second.
    pub before: f64,
    /// Its mean after.
    pub after: f64,
    /// Whether that is better for the job.
    pub is_better: bool,
    /// How much, as a part of what was before.
    pub difference: Difference,
}

/// What changes for the jobs, the greatest change first; only what can be told.
pub(crate) fn changes(after: &[Measured], before: &[Measured]) -> Vec<Change> {
    let Some(first) = after.first() else { return Vec::new() };
    let mut changes: Vec<Change> = Vec::new();
    for (place, job) in first.jobs.iter().enumerate() {
        let values = |of: &[Measured], value: fn(&JobFigures) -> f64| -> Vec<f64> {
            of.iter().filter_map(|run| run.jobs.get(place)).map(value).collect()
        };
        // What a job with an end moves is the same every time: how long it takes tells.
        let rate: (&'static str, fn(&JobFigures) -> f64, bool) = match job.is_bounded {
            true => ("time", |job| job.time_ns, true),
            false => ("throughput", |job| job.bytes_per_s, false),
        };
        for (what, value, least) in [("p99", (|job| job.p99_ns) as fn(&JobFigures) -> f64, true), rate] {
            let (is, was) = (values(after, value), values(before, value));
            let difference = Difference::new(&is, &was, least, FLOOR);
            if difference.is_told {
                changes.push(Change {
                    job: job.name.clone(),
                    what,
                    before: Spread::of(&was).mean,
                    after: Spread::of(&is).mean,
                    is_better: difference.is_better,
                    difference,
                });
            }
        }
    }
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changes
}

/// How large a change is: half is as large as twice.
fn size(change: &Change) -> f64 {
    let factor = change.after / change.before;
    if factor.is_finite() && factor > 0.0 { factor.ln().abs() } else { f64::MAX }
}

/// So many that gain, and that pay, are named.
const NAMED: usize = 2;

/// Who gains and who pays, in a sentence or two, and what the drive's arm has to do with it. Jobs of `first` are named before others. What a job moves, or
/// how long it takes, counts before the latency of its requests.
pub fn why(changes: &[Change], first: &[&str], after: &[Measured], before: &[Measured]) -> String {
    // Who moves more and waits longer for it, or the other way round.
    let but = |change: &Change| {
        let opposite =
            |other: &&Change| other.job == change.job && other.what == "p99" && other.is_better != change.is_better;
        changes.iter().find(opposite).map_or_else(String::new, |p99| {
            format!(" (with a p99 of {} instead of {})", told(p99.after, Unit::Time), told(p99.before, Unit::Time))
        })
    };
    let told_of = |change: &Change| {
        let unit = if change.what == "throughput" { Unit::Rate } else { Unit::Time };
        let (before, after) = (told(change.before, unit), told(change.after, unit));
        match change.what {
            "time" => format!("{} takes {after} instead of {before}{}", change.job, but(change)),
            "p99" => format!("{}'s p99 is {after} instead of {before}", change.job),
            _ => format!("{} gets {after} instead of {before}{}", change.job, but(change)),
        }
    };
    let counts = |change: &&Change| {
        change.what != "p99" || !changes.iter().any(|other| other.job == change.job && other.what != "p99")
    };
    let list = |better: bool| {
        let mut named: Vec<&Change> =
            changes.iter().filter(counts).filter(|change| change.is_better == better).collect();
        named.sort_by_key(|change| !first.contains(&change.job.as_str()));
        named.iter().take(NAMED).map(|change| told_of(change)).collect::<Vec<_>>().join(", and ")
    };
    let (gain, pay) = (list(true), list(false));
    let mut text = match (gain.is_empty(), pay.is_empty()) {
        (true, true) => "No job gains or pays anything that can be told.".to_owned(),
        (false, true) => format!("{gain}; nobody pays for it."),
        (true, false) => format!("Nobody gains; {pay}."),
        (false, false) => format!("{gain}. Paid by: {pay}."),
    };
    if let Some(arm) = arm(after, before) {
        text.push(' ');
        text.push_str(&arm);
    }
    text
}

/// What moved apart by less than this share of the time explains nothing.
const SHARE_MIN: f64 = 0.05;

fn arm(after: &[Measured], before: &[Measured]) -> Option<String> {
    let mean =
        |of: &[Measured], value: fn(&Measured) -> f64| Spread::of(&of.iter().map(value).collect::<Vec<_>>()).mean;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (is, was) = (mean(after, |run| run.arm_share), mean(before, |run| run.arm_share));
    let (idle_is, idle_was) = (mean(after, |run| run.idle_share), mean(before, |run| run.idle_share));
    if (is - was).abs() >= SHARE_MIN {
        let idle = if (idle_is - idle_was).abs() >= SHARE_MIN {
            format!(", and stands idle for {} instead of {}", percent(idle_is), percent(idle_was))
        } else {
            String::new()
        };
        return Some(format!(
            "The drive's arm is on its way for {} of the time instead of {}{idle}.",
            percent(is),
            percent(was)
        ));
    }
    (idle_is - idle_was).abs().ge(&SHARE_MIN).then(|| {
        format!("The drive stands idle for {} of the time instead of {}.", percent(idle_is), percent(idle_was))
    })
}
