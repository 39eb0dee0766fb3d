//! The jobs that gain and that lose by a choice.

use crate::bench::{JobFigures, RunFigures};
use crate::objective::Unit;
use crate::text::value_text;
use hoistway_compare::{Difference, MIN_DIFFERENCE, Spread};

/// A significant difference of a job between two choices.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct JobChange {
    /// The name of the job.
    pub job: String,
    /// The figure: `p99`, `throughput` or `time`.
    #[serde(rename = "what")]
    pub figure: &'static str,
    /// The mean before, in ns or bytes per second.
    pub before: f64,
    /// The mean after.
    pub after: f64,
    /// True if the job gains.
    pub is_better: bool,
    /// The relative difference.
    pub difference: Difference,
}

/// The significant changes of all jobs, the largest first.
pub(crate) fn changes(after: &[RunFigures], before: &[RunFigures]) -> Vec<JobChange> {
    let Some(first) = after.first() else { return Vec::new() };
    let mut changes: Vec<JobChange> = Vec::new();
    for (index, job) in first.jobs.iter().enumerate() {
        let values = |of: &[RunFigures], value: fn(&JobFigures) -> f64| -> Vec<f64> {
            of.iter().filter_map(|run| run.jobs.get(index)).map(value).collect()
        };
        // A bounded job always moves the same amount of data: its duration differs.
        let rate: (&'static str, fn(&JobFigures) -> f64, bool) = match job.is_bounded {
            true => ("time", |job| job.time_ns, true),
            false => ("throughput", |job| job.bytes_per_s, false),
        };
        for (figure, value, least) in [("p99", (|job| job.p99_ns) as fn(&JobFigures) -> f64, true), rate] {
            let (is, was) = (values(after, value), values(before, value));
            let difference = Difference::new(&is, &was, least, MIN_DIFFERENCE);
            if difference.is_significant {
                changes.push(JobChange {
                    job: job.name.clone(),
                    figure,
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

/// The size of a change: a half is as large as a double.
fn size(change: &JobChange) -> f64 {
    let factor = change.after / change.before;
    if factor.is_finite() && factor > 0.0 { factor.ln().abs() } else { f64::MAX }
}

/// The number of gaining and of losing jobs that are named.
const NAMED: usize = 2;

/// The jobs that gain and lose in a sentence or two, and the time that the drive spends on seeks.
/// Jobs in `first` are named before others. The throughput or duration of a job counts before the
/// latency of its requests.
pub(crate) fn summary(changes: &[JobChange], first: &[&str], after: &[RunFigures], before: &[RunFigures]) -> String {
    // A latency that changes in the opposite direction.
    let but = |change: &JobChange| {
        let opposite = |other: &&JobChange| {
            other.job == change.job && other.figure == "p99" && other.is_better != change.is_better
        };
        changes.iter().find(opposite).map_or_else(String::new, |p99| {
            format!(
                " (with a p99 of {} instead of {})",
                value_text(p99.after, Unit::Time),
                value_text(p99.before, Unit::Time)
            )
        })
    };
    let text_of = |change: &JobChange| {
        let unit = if change.figure == "throughput" { Unit::Rate } else { Unit::Time };
        let (before, after) = (value_text(change.before, unit), value_text(change.after, unit));
        match change.figure {
            "time" => format!("{} takes {after} instead of {before}{}", change.job, but(change)),
            "p99" => format!("{}'s p99 is {after} instead of {before}", change.job),
            _ => format!("{} gets {after} instead of {before}{}", change.job, but(change)),
        }
    };
    let counts = |change: &&JobChange| {
        change.figure != "p99" || !changes.iter().any(|other| other.job == change.job && other.figure != "p99")
    };
    let list = |better: bool| {
        let mut named: Vec<&JobChange> =
            changes.iter().filter(counts).filter(|change| change.is_better == better).collect();
        named.sort_by_key(|change| !first.contains(&change.job.as_str()));
        named.iter().take(NAMED).map(|change| text_of(change)).collect::<Vec<_>>().join(", and ")
    };
    let (gain, loss) = (list(true), list(false));
    let mut text = match (gain.is_empty(), loss.is_empty()) {
        (true, true) => "No job gains or loses significantly.".to_owned(),
        (false, true) => format!("{gain}; no job loses."),
        (true, false) => format!("No job gains; {loss}."),
        (false, false) => format!("{gain}. At the cost of: {loss}."),
    };
    if let Some(drive) = drive_time(after, before) {
        text.push(' ');
        text.push_str(&drive);
    }
    text
}

/// Shares of the time that differ by less than this explain nothing.
const SHARE_MIN: f64 = 0.05;

/// How the drive's time on seeks and its idle time change, in a sentence.
fn drive_time(after: &[RunFigures], before: &[RunFigures]) -> Option<String> {
    let mean =
        |of: &[RunFigures], value: fn(&RunFigures) -> f64| Spread::of(&of.iter().map(value).collect::<Vec<_>>()).mean;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (is, was) = (mean(after, |run| run.arm_share), mean(before, |run| run.arm_share));
    let (idle_is, idle_was) = (mean(after, |run| run.idle_share), mean(before, |run| run.idle_share));
    if (is - was).abs() >= SHARE_MIN {
        let idle = if (idle_is - idle_was).abs() >= SHARE_MIN {
            format!(", and is idle for {} instead of {}", percent(idle_is), percent(idle_was))
        } else {
            String::new()
        };
        return Some(format!(
            "The drive seeks and waits for the platter for {} of the time instead of {}{idle}.",
            percent(is),
            percent(was)
        ));
    }
    (idle_is - idle_was)
        .abs()
        .ge(&SHARE_MIN)
        .then(|| format!("The drive is idle for {} of the time instead of {}.", percent(idle_is), percent(idle_was)))
}
