//! The answer as text.

use anyhow::Result;
use hoistway_advise::facts::{Effect, Standing, effect_of_priorities};
use hoistway_advise::{Advice, Difference, Figure, Spread, Verdict, told};
use hoistway_core::Kind as Scheduler;

use super::apply::Plan;
use super::case::{Case, WorkloadKind};
use super::confidence::word;
use super::{Answer, Depth};
use crate::failure::tell as tell_on_stderr;
use crate::output::{Out, best, table, width, wrap};

/// What was asked, on what, by which measure.
pub fn heading(case: &Case, out: &mut Out) -> Result<()> {
    match &case.subject {
        Some(subject) => {
            out.heading(format_args!("Advice for {}", subject.line()))?;
            if let Some(named) = &subject.named {
                let alike: Vec<&str> = subject.alike.iter().map(|device| device.name.as_str()).collect();
                let alike = match alike.as_slice() {
                    [] => String::new(),
                    alike => format!(" (and for {}, which it lies on as well)", alike.join(", ")),
                };
                out.paragraph(
                    0,
                    &format!("{} lies on {}: that is the queue that counts{alike}.", named.name, subject.device.name),
                )?;
            }
        }
        None => out.heading(format_args!("Advice for a drive like {}", case.bench.profile.name()))?,
    }
    out.line("")?;
    for (label, value) in facts(case) {
        let mut lines = wrap(&value, 0, out.columns().saturating_sub(11)).into_iter();
        out.line(format_args!("{label:<10} {}", lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| out.line(format_args!("{:10} {line}", "")))?;
    }
    out.line("")?;
    Ok(())
}

/// What was asked, as names and values.
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
        (false, None) => format!("{}, which Linux sets by itself", case.now.name()),
    };
    vec![
        ("Workload", format!("{} ({kind})", case.workload)),
        ("Good is", format!("{}{merit}", case.objective.text)),
        ("Drive", format!("{}: {}", case.bench.profile.name(), case.drive.why)),
        ("Host", host(case)),
        ("Now", now),
    ]
}

fn host(case: &Case) -> String {
    let host = &case.bench.host;
    let own = hoistway_drive::describe(&case.bench.profile).depth;
    let depth = host.depth_max.map_or(own, |most| most.min(own));
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

/// All of it.
pub fn advice(case: &Case, answer: &Answer, plan: &Plan, out: &mut Out) -> Result<()> {
    heading(case, out)?;
    let advice = &answer.advice;
    rows(advice, out)?;
    out.line("")?;
    for line in wrap(&verdict(case, answer), 0, out.columns()) {
        out.heading(line)?;
    }
    for paragraph in reasons(case, answer) {
        out.paragraph(2, &paragraph)?;
    }
    let confidence = case.confidence();
    out.paragraph(2, &format!("Confidence {}: {}.", word(confidence.level), confidence.reasons.join("; ")))?;
    plan.print(out)?;
    let warnings = warnings(case, answer);
    if !warnings.is_empty() {
        out.line("")?;
        out.heading("To be known")?;
        warnings.iter().try_for_each(|warning| out.paragraph(2, &format!("- {warning}")))?;
    }
    case.notes.iter().for_each(|note| tell_on_stderr(&format!("note: {note}")));
    Ok(())
}

/// The verdict in a line.
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

/// Who gains and pays, and what was checked, a paragraph each.
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
            true => format!("Checked on {seeds} other seeds, by which nothing was chosen{found}."),
            false => format!("Checked on {seeds} other seeds, {name} does not hold what it promised{found}."),
        });
    }
    paragraphs.extend(answer.depth.as_ref().and_then(|depth| of_depth(case, answer, depth)));
    paragraphs
}

/// What the drive's own queue hides.
fn of_depth(case: &Case, answer: &Answer, of: &Depth) -> Option<String> {
    let goal = &answer.advice.figures[0];
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let [many, one] = of.apart;
    let name = case.subject.as_ref().map_or("DEVICE", |subject| &subject.device.name);
    let apart = (many.is_finite() && one.is_finite()).then(|| {
        format!(
            "The drive takes {} requests at once and chooses among them by itself: in {goal} the schedulers differ by {} with that, and by {} if it is given one \
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
        hoistway_advise::scheduler_name(chosen.kind)
    ))
}

/// What should be known of the device, and of what was asked.
pub fn warnings(case: &Case, answer: &Answer) -> Vec<String> {
    let mut all: Vec<String> =
        case.subject.iter().flat_map(|subject| &subject.warnings).map(|warning| warning.text.clone()).collect();
    let chosen = answer.chosen().kind;
    if case.bench.asks_for_priorities() && effect_of_priorities(chosen) == Effect::None {
        all.push(format!(
            "the workload asks for I/O priorities, and {} does not look at them",
            hoistway_advise::scheduler_name(chosen)
        ));
    }
    if answer.advice.verdict == Verdict::Change {
        all.extend(priorities_after(case.now.kind, chosen));
    }
    if case.drive.standing == Standing::Unknown && case.subject.is_none() {
        all.push("nobody knows what lies below".into());
    }
    if !case.missing.is_empty() {
        all.push(format!(
            "not offered by this kernel now, and so not judged: {} (`modprobe {}` may bring it)",
            case.missing.join(", "),
            case.missing.iter().find(|name| **name != "none").map_or("bfq".to_owned(), |name| match *name {
                "kyber" => "kyber-iosched".to_owned(),
                name => name.to_owned(),
            })
        ));
    }
    all
}

/// What becomes of I/O priorities when the scheduler is changed, where that is less than now.
fn priorities_after(now: Scheduler, chosen: Scheduler) -> Option<String> {
    let name = hoistway_advise::scheduler_name(chosen);
    match (effect_of_priorities(now), effect_of_priorities(chosen)) {
        (Effect::Class | Effect::ClassAndLevel, Effect::None) => {
            Some(format!("once {name} is set `ionice` has no effect any more: it does not look at priorities"))
        }
        (Effect::ClassAndLevel, Effect::Class) => Some(format!(
            "once {name} is set only the class of `ionice` counts (-c1, -c2, -c3), and the level (-n) no more"
        )),
        _ => None,
    }
}

/// The choices and their figures.
fn rows(advice: &Advice, out: &mut Out) -> Result<()> {
    let heads: Vec<String> = advice.figures.iter().map(ToString::to_string).collect();
    let head: Vec<&str> = ["", "scheduler"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let make = |with_spread: bool| {
        let mut rows = table(&head, 2);
        for (place, judged) in advice.judged.iter().enumerate() {
            let mark = if place == advice.chosen { ">" } else { "" };
            let name = name(advice, place);
            let cells =
                judged.spreads.iter().zip(&advice.figures).map(|(spread, figure)| cell(spread, figure, with_spread));
            let mut row = vec![mark.into(), if place == advice.chosen { best(&name) } else { name.into() }];
            row.extend(cells.map(Into::into));
            rows.add_row(row);
        }
        rows
    };
    let mut full = make(true);
    if out.takes(width(&full)) {
        out.table(&mut full)?
    } else {
        out.table(&mut make(false))?
    }
    let broken = broken(advice);
    if !broken.is_empty() {
        out.line("")?;
        broken.iter().try_for_each(|line| out.paragraph(0, line))?;
    }
    if advice.judged.iter().any(|judged| !judged.can_be_set) {
        out.paragraph(0, "In brackets: schedulers of other kernels, which cannot be set and are only told.")?;
    }
    Ok(())
}

fn name(advice: &Advice, place: usize) -> String {
    let judged = &advice.judged[place];
    match (place == advice.now, judged.can_be_set) {
        (true, _) => format!("{} (now)", judged.choice.name()),
        (false, true) => judged.choice.name(),
        (false, false) => format!("[{}]", judged.choice.name()),
    }
}

/// Names of the choices, as the page has them.
pub fn names(advice: &Advice) -> Vec<String> {
    (0..advice.judged.len()).map(|place| name(advice, place)).collect()
}

/// Who does not keep to which constraint, a sentence each.
pub fn broken(advice: &Advice) -> Vec<String> {
    let mut sentences: Vec<(String, Vec<String>)> = Vec::new();
    for (place, judged) in advice.judged.iter().enumerate() {
        for constraint in &judged.broken {
            let constraint = constraint.to_string();
            match sentences.iter_mut().find(|(known, _)| *known == constraint) {
                Some((_, names)) => names.push(name(advice, place)),
                None => sentences.push((constraint, vec![name(advice, place)])),
            }
        }
    }
    sentences
        .into_iter()
        .map(|(constraint, names)| format!("Do not keep to {constraint}: {}.", names.join(", ")))
        .collect()
}

/// A mean with its interval.
pub fn cell(spread: &Spread, figure: &Figure, with_spread: bool) -> String {
    let unit = figure.what.unit();
    let mean = told(spread.mean, unit);
    if !with_spread || !spread.plus_minus.is_finite() {
        return mean;
    }
    if spread.plus_minus == 0.0 || spread.mean == 0.0 {
        return if spread.plus_minus == 0.0 {
            format!("{mean} +-0")
        } else {
            format!("{mean} +-{}", told(spread.plus_minus, unit))
        };
    }
    format!("{mean} +-{:.0} %", (spread.plus_minus / spread.mean).abs() * 100.0)
}

/// A difference as people read it.
pub fn change(difference: &Difference) -> String {
    let signed = |part: f64| {
        if part.is_finite() {
            format!("{:+.0} %", part * 100.0)
        } else if part > 0.0 {
            "more by any measure".into()
        } else {
            "less by any measure".into()
        }
    };
    if difference.low.is_finite() && difference.high.is_finite() {
        format!("{} (95 % between {} and {})", signed(difference.mean), signed(difference.low), signed(difference.high))
    } else {
        signed(difference.mean)
    }
}
