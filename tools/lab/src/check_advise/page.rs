//! Renders docs/advise-checked.md.

use std::fmt::Write;

use anyhow::{Context, Result};
use hoistway_workspace::repository;
use serde_json::Value;

use super::case::{Case, From};
use super::runs::Outcome;

const PAGE: &str = "docs/advise-checked.md";
/// The largest loss, as a part of the best measured figure, at which an advice counts as as good.
const AS_GOOD: f64 = 0.1;

/// The section on deviations between predicted and measured figures.
const SIZES: &str = "\n## How far sizes can be trusted\n\n\
    The advice is about the order of schedulers. The size of a gain is less certain where a scheduler serves one process for long, as `bfq \
    low_latency=0` does for streams. There are two reasons:\n\n\
    - The first requests of a process decide for a long time whether bfq waits for it. The same clients got 31, 37, 42 and 47 MB/s in four real runs of 15 s \
    (`streams`), and 17, 33, 37 and 40 MB/s (`thinker`). A single run is therefore no measure of such a choice: the check makes three runs, and the advice draws \
    the pauses of processes again with each seed and shows the spread in brackets.\n\
    - Pauses are taken from the recording, and they include the time that the machine needs to wake a process that has slept for long. The streams pause for \
    300 to 510 us in a recording under mq-deadline, where each request takes 84 ms, and for 160 to 430 us under bfq, which serves them in bursts. With \
    pauses 0.55 times as long, like the shortest of these, the prediction for `streams` is 30 MB/s (27 to 36 over eight seeds) instead of 24 (15 to 29), and \
    that for `thinker` 38 (34 to 42) instead of 30 (29 to 31). A recording does not show which part of a pause is due to the process, so the advice understates rather than overstates the gain of schedulers that serve in bursts.\n\n\
    The model of the drive, its depth and its write cache are not a reason: the emulated drive is the model, the clients read, and the prediction for the \
    scheduler of the recording is within 1 %.\n";

/// Writes the page.
pub fn write(text: &str) -> Result<()> {
    let path = repository::root().join(PAGE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The advice of a case compared with the measurements.
struct Judged {
    /// The measured figure under the current scheduler, under the advised one, and the best with
    /// its name.
    now: f64,
    advised: f64,
    best: (String, f64),
    /// The loss of the advice against the best, as a part of the best.
    lost: f64,
    is_as_good: bool,
}

fn judged(outcome: &Outcome) -> Option<Judged> {
    let advice = outcome.advice.as_ref()?;
    let (_, least) = outcome.case.goal();
    let all = || outcome.measured.iter().map(|measured| (measured.name.clone(), measured.median()));
    let of = |name: &str| all().find(|(known, _)| known == name).map(|(_, value)| value);
    let better = |one: f64, other: f64| if least { one.total_cmp(&other) } else { other.total_cmp(&one) };
    let best = all().min_by(|one, other| better(one.1, other.1))?;
    let advised = of(advice["advice"]["name"].as_str()?)?;
    let now = of(outcome.case.now)?;
    let lost = if least { advised / best.1 - 1.0 } else { 1.0 - advised / best.1 };
    Some(Judged { now, advised, best, lost, is_as_good: lost <= AS_GOOD })
}

/// Renders the page.
pub fn text(outcomes: &[Outcome], seconds: u64) -> String {
    let all: Vec<(&Outcome, Option<Judged>)> = outcomes.iter().map(|outcome| (outcome, judged(outcome))).collect();
    let answered = all.iter().filter(|(_, judged)| judged.is_some()).count();
    let good = all.iter().filter(|(_, judged)| judged.as_ref().is_some_and(|judged| judged.is_as_good)).count();
    let asked = outcomes.iter().filter(|outcome| outcome.whatif.is_some() && outcome.advice.is_some()).count();
    let same = outcomes.iter().filter(|outcome| agrees(outcome) == Some(true)).count();
    let mut text = format!(
        "# The advice of `hoistway advise`, checked\n\n\
         `cargo xtask check-advise --write` writes this page. Each case has an advice from a recording of {seconds} s (or from a job file). It is then run in real \
         time under each candidate scheduler, and under the advice with its tunables: `hoistway serve --drive sata-7200-2006`, whose emulated disk has the service \
         times of the model, with clients over its socket or fio's `nbd` engine. The advised choice is run three times, and the median run counts. A recording is \
         also given to `hoistway trace whatif`.\n\n\
         {answered} of {} cases have an advice. In {good} of these the advice is within {:.0} % of the best measurement of the deciding figure. In {same} of {asked} \
         `trace whatif` finds the same scheduler best in that figure (it has no constraints and no seeds, and names a best scheduler even where \
         no difference is significant). `p99(NAME)` is that of the first client of that name.\n\n\
         | case | objective | present | advice | present, measured | advised, measured | best measured | loss | best by `whatif` |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        outcomes.len(),
        AS_GOOD * 100.0
    );
    for (outcome, judged) in &all {
        row(&mut text, outcome, judged.as_ref());
    }
    text.push_str(SIZES);
    text.push_str("\n## Cases\n");
    for (outcome, judged) in &all {
        details(&mut text, outcome, judged.as_ref());
    }
    text
}

/// Returns true if the best scheduler of `trace whatif` is the advised one; `None` without both.
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
            let formatted = |value: f64| formatted(outcome.case, value);
            writeln!(
                text,
                "| {name} | `{objective}` | {now} | {} | {} | {} | {} {} | {:.0} % | {whatif} |",
                advised(outcome),
                formatted(judged.now),
                formatted(judged.advised),
                judged.best.0,
                formatted(judged.best.1),
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
        let _ = writeln!(text, "There is no advice: the error of the model on the recording exceeds 20 %.");
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
            true => "The advice is right: no measurement is better by more than a tenth.",
            false => "The advice is not the best measurement.",
        };
        let _ = writeln!(text, "{verdict}");
    }
    let goal = outcome.case.goal().0;
    let _ = write!(text, "\n| scheduler | {goal}, measured | predicted by the advice |\n|---|---|---|\n");
    for measured in &outcome.measured {
        let formatted = |value: f64| formatted(outcome.case, value);
        let range = match measured.values.as_slice() {
            [least, .., most] => format!(" ({} to {})", formatted(*least), formatted(*most)),
            _ => String::new(),
        };
        let predicted = predicted(advice, &measured.name).map_or("-".into(), |figures| range_of(outcome.case, figures));
        let _ = writeln!(text, "| {} | {}{range} | {predicted} |", measured.name, formatted(measured.median()));
    }
}

/// The advice's prediction of the deciding figure for a scheduler.
fn predicted<'a>(advice: &'a Value, name: &str) -> Option<&'a Value> {
    let choice = advice["choices"].as_array()?.iter().find(|choice| choice["name"] == name)?;
    choice["figures"].as_array()?.first()
}

/// The mean over the seeds, with their range if they differ.
fn range_of(case: &Case, figures: &Value) -> String {
    let [mean, min, max] =
        ["mean", "min", "max"].map(|field| formatted(case, figures[field].as_f64().unwrap_or(f64::NAN)));
    if min == max { mean } else { format!("{mean} ({min} to {max})") }
}

fn formatted(case: &Case, value: f64) -> String {
    if case.goal().0.starts_with("throughput") {
        format!("{:.2} MB/s", value / 1e6)
    } else {
        format!("{:.1} ms", value / 1e6)
    }
}
