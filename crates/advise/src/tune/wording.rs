//! Sentences about a search that text and page share.

use super::TuneResult;
use crate::advice::Verdict;
use crate::text::value_text;
use crate::wording::change;
use hoistway_compare::Difference;
use hoistway_compare::scheduler_name;

/// The verdict in one line.
pub fn verdict(tuned: &TuneResult) -> String {
    let goal = &tuned.figures[0];
    let mean = |index: usize| value_text(tuned.spreads[index][0].mean, goal.metric.unit());
    match tuned.verdict {
        Verdict::Change => format!("Set {}: {goal} is {} instead of {}.", tuned.winner.name(), mean(0), mean(1)),
        Verdict::Leave if !tuned.keeps => {
            "Leave it as it is: no choice that was found keeps to the constraints on further seeds.".into()
        }
        Verdict::Leave => format!(
            "Leave it as it is: {goal} is {} with the best choice and {} now, which is no significant gain.",
            mean(0),
            mean(1)
        ),
    }
}

/// Explains the parts of chance and of the scheduler in the gain, in one paragraph each.
pub fn reasons(tuned: &TuneResult) -> Vec<String> {
    let goal = &tuned.figures[0];
    let mut reasons = vec![format!(
        "On the seeds of the search {goal} {}; on further seeds it {}.",
        changes(&tuned.found),
        changes(&tuned.holds)
    )];
    if !tuned.winner.is_plain() {
        reasons.push(format!(
            "Against {} with its defaults it is {}{}.",
            scheduler_name(tuned.winner.kind),
            change(&tuned.against_defaults),
            if tuned.against_defaults.is_significant {
                ""
            } else {
                ", which is no significant difference: the defaults are as good"
            }
        ));
    }
    reasons
}

/// The predicate of a figure that differs.
fn changes(difference: &Difference) -> String {
    if difference.mean == 0.0 { "is the same".into() } else { format!("changes by {}", change(difference)) }
}

/// The number of restarts in words.
pub fn restarts(count: usize) -> String {
    match count {
        0 => "never restarted".into(),
        1 => "restarted once".into(),
        count => format!("restarted {count} times"),
    }
}

/// Explains why the advised choice is not on the front; `None` if it is.
pub fn behind_the_front(tuned: &TuneResult) -> Option<String> {
    let is_winner = |index: &usize| tuned.tried[*index].choice == tuned.winner;
    (tuned.verdict == Verdict::Change && !tuned.front.iter().any(is_winner)).then(|| {
        format!(
            "These figures are of the few seeds of the search and partly luck; {} is not on the front, and was the best of the best few on other seeds.",
            tuned.winner.name()
        )
    })
}
