//! docs/advise-checked.md from what was measured.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

use super::case::{Case, From};
use super::runs::Outcome;
use crate::repository;

const PAGE: &str = "docs/advise-checked.md";
/// What is lost against the best that was measured, up to which the advice is as good as that.
const AS_GOOD: f64 = 0.1;

/// Writes the page.
pub fn write(text: &str) -> Result<()> {
    let path = repository::root().join(PAGE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// What an advice came to.
struct Judged {
    /// The figure under what was set, what was advised, and the best; the name of the best.
    now: f64,
    advised: f64,
    best: (String, f64),
    /// What is given away by following the advice, as a part of the best.
    lost: f64,
    is_as_good: bool,
}

fn judged(outcome: &Outcome) -> Option<Judged> {
    let advice = outcome.advice.as_ref()?;
    let (_, least) = outcome.case.goal();
    let of = |name: &str| outcome.measured.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let better = |one: f64, other: f64| if least { one.total_cmp(&other) } else { other.total_cmp(&one) };
    let best = outcome.measured.iter().min_by(|one, other| better(one.1, other.1))?.clone();
    let advised = of(advice["advice"]["name"].as_str()?)?;
    let now = of(outcome.case.now)?;
    let lost = if least { advised / best.1 - 1.0 } else { 1.0 - advised / best.1 };
    Some(Judged { now, advised, best, lost, is_as_good: lost <= AS_GOOD })
}

/// The page.
pub fn text(outcomes: &[Outcome], seconds: u64) -> String {
    let all: Vec<(&Outcome, Option<Judged>)> = outcomes.iter().map(|outcome| (outcome, judged(outcome))).collect();
    let answered = all.iter().filter(|(_, judged)| judged.is_some()).count();
    let good = all.iter().filter(|(_, judged)| judged.as_ref().is_some_and(|judged| judged.is_as_good)).count();
    let asked = outcomes.iter().filter(|outcome| outcome.whatif.is_some() && outcome.advice.is_some()).count();
    let same = outcomes.iter().filter(|outcome| agrees(outcome) == Some(true)).count();
    let mut text = format!(
        "# The advice of `hoistway advise`, checked\n\n\
         `cargo xtask check-advise --write` makes this page. Each case is advised on from a recording of {seconds} s (or from a job file), and then run in real \
         time under each scheduler that could have been set, and under the advice with its tunables: `hoistway serve --drive sata-7200-2006`, whose emulated \
         disk takes as long as the model says, with clients over its socket or fio's `nbd` engine. A recording is also given to `hoistway trace whatif`.\n\n\
         Of {} cases {answered} were answered. In {good} of these the advice is within {:.0} % of the best that was measured, in the figure that decides. In {same} of {asked} \
         `trace whatif` finds the same scheduler best in that figure (it knows no constraints and no seeds, and calls something best even where nothing \
         can be told apart). `p99(NAME)` is of the first client of that name.\n\n\
         | case | good is | set now | advice | now, measured | advised, measured | best measured | lost | `whatif` says |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        outcomes.len(),
        AS_GOOD * 100.0
    );
    for (outcome, judged) in &all {
        row(&mut text, outcome, judged.as_ref());
    }
    text.push_str("\n## What happened\n");
    for (outcome, judged) in &all {
        details(&mut text, outcome, judged.as_ref());
    }
    text
}

/// Whether `trace whatif` finds best what is advised.
fn agrees(outcome: &Outcome) -> Option<bool> {
    Some(outcome.advice.as_ref()?["advice"]["scheduler"].as_str()? == outcome.whatif.as_deref()?)
}

fn row(text: &mut String, outcome: &Outcome, judged: Option<&Judged>) {
    let Case { name, now, objective, .. } = outcome.case;
    let whatif = outcome.whatif.as_deref().unwrap_or("-");
    // Writing to a string cannot fail.
    let _ = match judged {
        None => writeln!(text, "| {name} | `{objective}` | {now} | refused | | | | | {whatif} |"),
        Some(judged) => {
            let told = |value: f64| told(outcome.case, value);
            writeln!(
                text,
                "| {name} | `{objective}` | {now} | {} | {} | {} | {} {} | {:.0} % | {whatif} |",
                advised(outcome),
                told(judged.now),
                told(judged.advised),
                judged.best.0,
                told(judged.best.1),
                judged.lost * 100.0
            )
        }
    };
}

/// "bfq", or "leave mq-deadline".
fn advised(outcome: &Outcome) -> String {
    let Some(advice) = &outcome.advice else { return "refused".into() };
    let name = advice["advice"]["name"].as_str().unwrap_or_default();
    if advice["verdict"] == "leave" { format!("leave {name}") } else { name.to_owned() }
}

fn details(text: &mut String, outcome: &Outcome, judged: Option<&Judged>) {
    let _ = write!(text, "\n### {}\n\n", outcome.case.name);
    let from = match outcome.case.from {
        From::Clients(workload, seed) => {
            format!("clients of `recorded_clients {workload}`, seed {seed}, recorded under {}", outcome.case.now)
        }
        From::Job(job) => format!("[{job}](../{job})"),
    };
    let _ = writeln!(text, "The workload: {from}.");
    let Some(advice) = &outcome.advice else {
        let _ = writeln!(text, "There is no advice: the model misses the recording by more than 20 %.");
        return;
    };
    let because = advice["because"].as_str().unwrap_or_default();
    let _ = writeln!(
        text,
        "The advice: {}, for {because}. {}",
        advised(outcome),
        advice["why"].as_str().unwrap_or_default()
    );
    if let Some(judged) = judged {
        let verdict = match judged.is_as_good {
            true => "Right: nothing that was measured is better by more than a tenth.",
            false => "Not the best that was measured.",
        };
        let _ = writeln!(text, "{verdict}");
    }
    let goal = outcome.case.goal().0;
    let _ = write!(text, "\n| scheduler | {goal}, measured | predicted by the advice |\n|---|---|---|\n");
    for (name, value) in &outcome.measured {
        let predicted = predicted(advice, name).map_or("-".into(), |value| told(outcome.case, value));
        let _ = writeln!(text, "| {name} | {} | {predicted} |", told(outcome.case, *value));
    }
}

/// What the advice said of a scheduler, in the figure that decides.
fn predicted(advice: &Value, name: &str) -> Option<f64> {
    let choice = advice["choices"].as_array()?.iter().find(|choice| choice["name"] == name)?;
    choice["figures"].as_array()?.first()?["mean"].as_f64()
}

fn told(case: &Case, value: f64) -> String {
    if case.goal().0.starts_with("throughput") {
        format!("{:.2} MB/s", value / 1e6)
    } else {
        format!("{:.1} ms", value / 1e6)
    }
}
