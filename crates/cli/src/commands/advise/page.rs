//! The answer as a page.

use hoistway_advise::{Advice, Figure, Tuned, Unit};
use hoistway_report::{Fact, Interval, Intervals, Scatter, Sheet, SheetSection, SheetTable};

use super::apply::Plan;
use super::case::Case;
use super::confidence::word;
use super::{Answer, tell, tune};

/// The page of an advice.
pub fn advice(case: &Case, answer: &Answer) -> Sheet {
    let plan = Plan::new(case, answer.chosen());
    let advice = &answer.advice;
    let mut sections = vec![first(case, tell::verdict(case, answer), tell::reasons(case, answer))];
    sections.push(SheetSection {
        title: "What each scheduler makes of it".into(),
        intro: format!(
            "Means over {} seeds, and the intervals that hold the true ones with a probability of 95 %. {}",
            advice.seeds.len(),
            tell::broken(advice).join(" ")
        ),
        table: Some(rows(advice)),
        intervals: advice.figures.iter().enumerate().map(|(place, figure)| intervals(advice, place, figure)).collect(),
        ..SheetSection::default()
    });
    sections.extend(changes(advice));
    sections.extend(commands(&plan));
    Sheet {
        command: "hoistway advise".into(),
        title: title(case),
        subtitle: case.workload.clone(),
        sections,
        notes: tell::warnings(case, answer).into_iter().chain(case.notes.iter().cloned()).collect(),
    }
}

/// The page of a search.
pub fn tuned(case: &Case, tuned: &Tuned, plan: &Plan) -> Sheet {
    let mut sections = vec![first(case, tune::verdict(tuned), tune::reasons(tuned))];
    let (goal, other) = (&tuned.figures[0], &tuned.figures[tuned.other]);
    let rows = tuned.front.iter().map(|place| {
        let tried = &tuned.tried[*place];
        let keeps = if tried.score.violation > 0.0 { "broken" } else { "kept" };
        vec![
            tried.choice.name(),
            hoistway_advise::told(tried.spreads[0].mean, goal.what.unit()),
            hoistway_advise::told(tried.spreads[tuned.other].mean, other.what.unit()),
            keeps.to_owned(),
        ]
    });
    let head = vec!["what".into(), goal.to_string(), other.to_string(), "constraints".into()];
    sections.push(SheetSection {
        title: "What was tried".into(),
        intro: format!(
            "{} things, each a point; nothing that was tried is better in both figures than what lies on the line. {}",
            tuned.tried.len(),
            tune::behind_the_front(tuned).unwrap_or_default()
        ),
        scatters: vec![scatter(tuned)],
        table: Some(SheetTable { head, rows: rows.collect(), marked: None }),
        ..SheetSection::default()
    });
    sections.extend(commands(plan));
    let warnings = case.subject.iter().flat_map(|subject| &subject.warnings).map(|warning| warning.text.clone());
    Sheet {
        command: "hoistway advise --tune".into(),
        title: title(case),
        subtitle: case.workload.clone(),
        sections,
        notes: warnings.chain(case.notes.iter().cloned()).collect(),
    }
}

fn title(case: &Case) -> String {
    match &case.subject {
        Some(subject) => format!("Advice for {}", subject.line()),
        None => format!("Advice for a drive like {}", case.bench.profile.name()),
    }
}

fn first(case: &Case, verdict: String, reasons: Vec<String>) -> SheetSection {
    let confidence = case.confidence();
    let mut facts: Vec<Fact> =
        tell::facts(case).into_iter().map(|(label, value)| Fact { label: label.into(), value }).collect();
    let value = format!("{}: {}", word(confidence.level), confidence.reasons.join("; "));
    facts.push(Fact { label: "Confidence".into(), value });
    let intro = std::iter::once(verdict).chain(reasons).collect::<Vec<_>>().join(" ");
    SheetSection { title: "The advice".into(), intro, facts, ..SheetSection::default() }
}

fn commands(plan: &Plan) -> Option<SheetSection> {
    if plan.words.is_empty() {
        return None;
    }
    let section =
        |title: &str, lines: Vec<String>| std::iter::once(format!("# {title}")).chain(lines).chain([String::new()]);
    let code = section("until the next start", plan.commands())
        .chain(section("for good", plan.for_good()))
        .chain(section("and back", plan.way_back()));
    let intro = "Nothing of this was done.".to_owned();
    Some(SheetSection { title: "How to set it".into(), intro, code: code.collect(), ..SheetSection::default() })
}

fn rows(advice: &Advice) -> SheetTable {
    let head = std::iter::once("scheduler".to_owned()).chain(advice.figures.iter().map(ToString::to_string));
    let head = head.chain(["constraints".to_owned()]).collect();
    let row = |(judged, name): (&hoistway_advise::Judged, String)| {
        let cells = judged.spreads.iter().zip(&advice.figures).map(|(spread, figure)| tell::cell(spread, figure, true));
        let broken = if judged.broken.is_empty() { "kept" } else { "broken" }.to_owned();
        std::iter::once(name).chain(cells).chain([broken]).collect()
    };
    let rows = advice.judged.iter().zip(tell::names(advice)).map(row).collect();
    SheetTable { head, rows, marked: Some(advice.chosen) }
}

/// A figure in the unit that suits all its values, and that unit.
fn scale(figure: &Figure, greatest: f64) -> (f64, &'static str) {
    match figure.what.unit() {
        Unit::Number => (1.0, ""),
        Unit::Rate => (1e-6, "MB/s"),
        Unit::Time if greatest >= 2e9 => (1e-9, "s"),
        Unit::Time if greatest >= 2e6 => (1e-6, "ms"),
        Unit::Time => (1e-3, "us"),
    }
}

/// A figure with its unit and which way is better.
fn axis(figure: &Figure, unit: &str) -> String {
    let better = if figure.what.less_is_better() { "less is better" } else { "more is better" };
    if unit.is_empty() { format!("{figure}; {better}") } else { format!("{figure}, {unit}; {better}") }
}

fn intervals(advice: &Advice, place: usize, figure: &Figure) -> Intervals {
    let spreads = || advice.judged.iter().map(|judged| &judged.spreads[place]);
    let greatest = spreads().map(|spread| spread.mean).filter(|mean| mean.is_finite()).fold(0.0, f64::max);
    let (factor, unit) = scale(figure, greatest);
    let names = tell::names(advice);
    let rows = spreads().zip(names).enumerate().map(|(row, (spread, name))| Interval {
        name,
        mean: spread.mean * factor,
        low: (spread.mean - spread.plus_minus) * factor,
        high: (spread.mean + spread.plus_minus) * factor,
        is_marked: row == advice.chosen,
    });
    Intervals { title: figure.to_string(), x: axis(figure, unit), rows: rows.collect(), bound: None }
}

fn changes(advice: &Advice) -> Option<SheetSection> {
    if advice.changes.is_empty() {
        return None;
    }
    let rows = advice.changes.iter().map(|change| {
        let unit = if change.what == "throughput" { Unit::Rate } else { Unit::Time };
        vec![
            change.job.clone(),
            change.what.to_owned(),
            hoistway_advise::told(change.before, unit),
            hoistway_advise::told(change.after, unit),
            tell::change(&change.difference),
            if change.is_better { "gains" } else { "pays" }.to_owned(),
        ]
    });
    let head = ["job", "figure", "now", "then", "change", ""].map(str::to_owned).into();
    Some(SheetSection {
        title: "Who gains, and who pays".into(),
        intro: "What changes for the jobs, as far as it can be told from chance; the greatest change first.".into(),
        table: Some(SheetTable { head, rows: rows.collect(), marked: None }),
        ..SheetSection::default()
    })
}

fn scatter(tuned: &Tuned) -> Scatter {
    let (goal, other) = (&tuned.figures[0], &tuned.figures[tuned.other]);
    let greatest = |figure: usize| {
        let means = tuned.tried.iter().map(|tried| tried.spreads[figure].mean).filter(|mean| mean.is_finite());
        means.fold(0.0, f64::max)
    };
    let (x_factor, x_unit) = scale(goal, greatest(0));
    let (y_factor, y_unit) = scale(other, greatest(tuned.other));
    let mut kinds: Vec<String> = Vec::new();
    let mut points = Vec::with_capacity(tuned.tried.len());
    for tried in &tuned.tried {
        let name = hoistway_advise::scheduler_name(tried.choice.kind).to_owned();
        let kind = kinds.iter().position(|known| *known == name).unwrap_or_else(|| {
            kinds.push(name);
            kinds.len() - 1
        });
        points.push((tried.spreads[0].mean * x_factor, tried.spreads[tuned.other].mean * y_factor, kind));
    }
    let at = |place: usize| (points[place].0, points[place].1);
    let winner = tuned.tried.iter().position(|tried| tried.choice == tuned.winner);
    let mut marked = vec![(at(0).0, at(0).1, "now".to_owned())];
    marked.extend(winner.filter(|place| *place != 0).map(|place| (at(place).0, at(place).1, "the winner".to_owned())));
    Scatter {
        title: format!("{goal} against {other}"),
        x: axis(goal, x_unit),
        y: axis(other, y_unit),
        front: tuned.front.iter().map(|place| at(*place)).collect(),
        kinds,
        points,
        marked,
    }
}
