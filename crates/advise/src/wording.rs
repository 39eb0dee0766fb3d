//! The sentences and cells of advice that text and page share.

use hoistway_units::figures::change as relative;

use crate::advice::{Advice, Verdict};
use crate::answer::{Answer, DepthComparison};
use crate::case::{Case, WorkloadKind};
use crate::objective::Figure;
use crate::text::value_text;
use hoistway_compare::scheduler_name;
use hoistway_compare::{Difference, Spread};

/// The request as labels and values.
pub fn facts(case: &Case) -> Vec<(&'static str, String)> {
    let kind = match case.kind {
        WorkloadKind::Trace => "a trace",
        WorkloadKind::Job => "a job file",
        WorkloadKind::Use => "a typical use",
    };
    let merit = case.merit.map_or_else(String::new, |merit| format!(": {merit}"));
    let now = match (case.now_is_set, &case.recorded) {
        (true, _) => format!("{}, as it is set", case.now.name()),
        (false, Some(_)) => format!("{}, under which the trace was recorded", case.now.name()),
        (false, None) => format!("{}, the default of Linux", case.now.name()),
    };
    vec![
        ("Workload", format!("{} ({kind})", case.workload)),
        ("Good is", format!("{}{merit}", case.objective.text)),
        ("Drive", format!("{}: {}", case.bench.profile.name(), case.drive.why)),
        ("Host", host(case)),
        ("Now", now),
    ]
}

/// The simulated host in a few words.
fn host(case: &Case) -> String {
    let host = &case.bench.host;
    let depth = case.depth();
    if case.recorded.is_some() {
        let layer =
            case.bench.kernel().map_or("hoistway's server".to_owned(), |kernel| format!("Linux {}", kernel.name()));
        return format!("the block layer of {layer}, depth {depth}; processors and memory are in the recorded pauses");
    }
    let layer = case
        .bench
        .kernel()
        .map_or("each scheduler's own kernel".to_owned(), |kernel| format!("Linux {}", kernel.name()));
    let gib = host.page_cache_mib as f64 / 0.9 / 1024.0;
    let requests = if host.pool_follows_drive {
        String::new()
    } else {
        host.queue.nr_requests.map_or_else(String::new, |n| format!(", nr_requests {n}"))
    };
    format!(
        "the block layer of {layer}, {} processors, {gib:.0} GiB, read-ahead {} KiB, depth {depth}{requests}",
        host.cpus, host.read_ahead_kib
    )
}

/// The verdict in one line.
pub fn verdict(case: &Case, answer: &Answer) -> String {
    let advice = &answer.advice;
    match advice.verdict {
        Verdict::Change => format!("Set {}: {}.", answer.chosen().name(), advice.because),
        Verdict::Leave => {
            let what = if case.now_is_set { "what is set" } else { "it" };
            format!("Leave {what} as it is ({}): {}.", answer.chosen().name(), advice.because)
        }
    }
}

/// The jobs that gain and lose, the check, and the effect of depth; a paragraph each.
pub fn reasons(case: &Case, answer: &Answer) -> Vec<String> {
    let advice = &answer.advice;
    let mut paragraphs = Vec::new();
    if !advice.why.is_empty() {
        paragraphs.push(format!("Why: {}", advice.why));
    }
    if let Some(checked) = &advice.checked {
        let difference = checked.against_now.get(checked.figure);
        let figure = advice.figures.get(checked.figure).map(ToString::to_string).unwrap_or_default();
        let (name, seeds) = (advice.judged[checked.choice].choice.name(), checked.seeds.len());
        let found = difference.map_or_else(String::new, |difference| format!(": {figure} {}", change(difference)));
        paragraphs.push(match checked.holds {
            true => format!("Checked on {seeds} further seeds{found}."),
            false => format!("Checked on {seeds} further seeds, the gain of {name} does not hold{found}."),
        });
    }
    paragraphs.extend(answer.depth.as_ref().and_then(|depth| depth_text(case, answer, depth)));
    paragraphs
}

/// How far the drive's own queue hides the scheduler.
fn depth_text(case: &Case, answer: &Answer, of: &DepthComparison) -> Option<String> {
    let goal = &answer.advice.figures[0];
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let [many, one] = of.apart;
    let name = case.subject.as_ref().map_or("DEVICE", |subject| &subject.device.name);
    let apart = (many.is_finite() && one.is_finite()).then(|| {
        format!(
            "The drive takes {} requests at once and orders them itself: in {goal} the schedulers differ by {} with that, and by {} with one request \
             at a time.",
            of.depth,
            percent(many),
            percent(one)
        )
    });
    if of.advice.verdict != Verdict::Change {
        return apart.filter(|_| one > 2.0 * many && one > 0.2);
    }
    let chosen = &of.advice.judged[of.advice.chosen].choice;
    let gain = of.advice.because.clone();
    Some(format!(
        "{} Better still would be {}: {gain} (`echo 1 > /sys/block/{name}/device/queue_depth`, and {} as the scheduler).",
        apart.unwrap_or_default(),
        chosen.name(),
        scheduler_name(chosen.kind)
    ))
}

/// The name of a choice, with a mark for the current one and for one that cannot be set.
pub fn name(advice: &Advice, index: usize) -> String {
    let judged = &advice.judged[index];
    match (index == advice.now, judged.can_be_set) {
        (true, _) => format!("{} (now)", judged.choice.name()),
        (false, true) => judged.choice.name(),
        (false, false) => format!("[{}]", judged.choice.name()),
    }
}

/// The names of all choices, with marks for the current one and for those that cannot be set.
pub fn names(advice: &Advice) -> Vec<String> {
    (0..advice.judged.len()).map(|index| name(advice, index)).collect()
}

/// The choices that break each constraint, a sentence each.
pub fn broken(advice: &Advice) -> Vec<String> {
    let mut sentences: Vec<(String, Vec<String>)> = Vec::new();
    for (index, judged) in advice.judged.iter().enumerate() {
        for constraint in &judged.broken {
            let constraint = constraint.to_string();
            match sentences.iter_mut().find(|(known, _)| *known == constraint) {
                Some((_, names)) => names.push(name(advice, index)),
                None => sentences.push((constraint, vec![name(advice, index)])),
            }
        }
    }
    sentences.into_iter().map(|(constraint, names)| format!("Break {constraint}: {}.", names.join(", "))).collect()
}

/// A mean with its interval as text.
pub fn cell(spread: &Spread, figure: &Figure, with_spread: bool) -> String {
    let unit = figure.metric.unit();
    let mean = value_text(spread.mean, unit);
    if !with_spread || !spread.plus_minus.is_finite() {
        return mean;
    }
    if spread.plus_minus == 0.0 || spread.mean == 0.0 {
        return if spread.plus_minus == 0.0 {
            format!("{mean} +-0")
        } else {
            format!("{mean} +-{}", value_text(spread.plus_minus, unit))
        };
    }
    format!("{mean} +-{:.0} %", (spread.plus_minus / spread.mean).abs() * 100.0)
}

/// A difference in percent as text.
pub fn change(difference: &Difference) -> String {
    let mean = relative(difference.mean);
    difference.interval_text().map_or_else(|| mean.clone(), |interval| format!("{mean} ({interval})"))
}
