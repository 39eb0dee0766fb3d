//! Advice as a page with charts.

use hoistway_report::{BarRow, BarTable, Fact, Interval, Intervals, Scatter, Sheet, SheetSection, Table};

use crate::advice::{Advice, EvaluatedChoice, Verdict};
use crate::answer::Answer;
use crate::case::Case;
use crate::change_plan::ChangePlan;
use crate::objective::{Figure, Unit};
use crate::text::value_text;
use crate::tune::{TuneResult, wording as tune_wording};
use crate::wording;
use hoistway_compare::Spread;
use hoistway_compare::scheduler_name;

/// The page of an answer.
pub fn advice_page(case: &Case, answer: &Answer, plan: &ChangePlan) -> Sheet {
    let advice = &answer.advice;
    let mut sections = vec![SheetSection {
        title: "Results of each scheduler".into(),
        intro: format!(
            "Means over {} seeds, and the intervals that hold the true ones with a probability of 95 %. {}",
            advice.seeds.len(),
            wording::broken(advice).join(" ")
        ),
        table: Some(rows(advice)),
        intervals: advice.figures.iter().enumerate().map(|(index, figure)| intervals(advice, index, figure)).collect(),
        ..SheetSection::default()
    }];
    sections.extend(changes(advice));
    sections.extend(commands(plan));
    Sheet {
        command: "hoistway advise".into(),
        title: title(case),
        subtitle: case.workload.clone(),
        verdict: paragraph(wording::verdict(case, answer), wording::reasons(case, answer)),
        answer: vec![answer_bars(advice)],
        facts: facts(case),
        sections,
        notes: answer.warnings(case).into_iter().chain(case.notes.iter().cloned()).collect(),
    }
}

/// The page of a search.
pub fn tune_page(case: &Case, tuned: &TuneResult, plan: &ChangePlan) -> Sheet {
    let (goal, other) = (&tuned.figures[0], &tuned.figures[tuned.other]);
    let rows = tuned.front.iter().map(|index| {
        let tried = &tuned.tried[*index];
        let keeps = if tried.score.violation > 0.0 { "broken" } else { "kept" };
        vec![
            tried.choice.name(),
            value_text(tried.spreads[0].mean, goal.metric.unit()),
            value_text(tried.spreads[tuned.other].mean, other.metric.unit()),
            keeps.to_owned(),
        ]
    });
    let head = vec!["what".into(), goal.to_string(), other.to_string(), "constraints".into()];
    let mut sections = vec![SheetSection {
        title: "Trials".into(),
        intro: format!(
            "{} trials, each a point; no trial is better in both figures than those on the line. {}",
            tuned.tried.len(),
            tune_wording::behind_the_front(tuned).unwrap_or_default()
        ),
        scatters: vec![scatter(tuned)],
        table: Some(Table { head, rows: rows.collect(), marked: None }),
        ..SheetSection::default()
    }];
    sections.extend(commands(plan));
    let warnings = case.subject.iter().flat_map(|subject| &subject.warnings).map(|warning| warning.text.clone());
    Sheet {
        command: "hoistway advise --tune".into(),
        title: title(case),
        subtitle: case.workload.clone(),
        verdict: paragraph(tune_wording::verdict(tuned), tune_wording::reasons(tuned)),
        answer: vec![tuned_bars(tuned)],
        facts: facts(case),
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

fn paragraph(verdict: String, reasons: Vec<String>) -> String {
    std::iter::once(verdict).chain(reasons).collect::<Vec<_>>().join(" ")
}

fn facts(case: &Case) -> Vec<Fact> {
    let confidence = case.confidence();
    let mut facts: Vec<Fact> =
        wording::facts(case).into_iter().map(|(label, value)| Fact { label: label.into(), value }).collect();
    let value = format!("{}: {}", confidence.level.name(), confidence.reasons.join("; "));
    facts.push(Fact { label: "Confidence".into(), value });
    facts
}

/// The bars of the schedulers with their defaults, of the current settings and of the advised ones.
fn answer_bars(advice: &Advice) -> BarTable {
    let names = wording::names(advice);
    let is_shown = |index: usize, judged: &EvaluatedChoice| {
        judged.choice.is_plain() || index == advice.chosen || index == advice.now
    };
    let shown = advice.judged.iter().enumerate().filter(|(index, judged)| is_shown(*index, judged));
    let rows = shown.map(|(index, judged)| {
        let note = if judged.broken.is_empty() { "" } else { "breaks a constraint" };
        (names[index].clone(), note, index == advice.chosen, judged.spreads.as_slice())
    });
    bars("schedulers", &advice.figures, rows.collect())
}

/// The bars of the current settings and of the best trial.
fn tuned_bars(tuned: &TuneResult) -> BarTable {
    let [best, now, _] = &tuned.spreads;
    let is_change = tuned.verdict == Verdict::Change;
    let rows = vec![
        ("now".to_owned(), "", !is_change, now.as_slice()),
        (tuned.winner.name(), "best trial", is_change, best.as_slice()),
    ];
    bars("settings", &tuned.figures, rows)
}

/// Rows of bars: name, remark, whether it is the advice, and the spread of each figure.
fn bars(caption: &str, figures: &[Figure], rows: Vec<(String, &str, bool, &[Spread])>) -> BarTable {
    let scales: Vec<(f64, &str)> = figures
        .iter()
        .enumerate()
        .map(|(index, figure)| scale(figure, greatest(rows.iter().map(|(.., spreads)| spreads[index].mean))))
        .collect();
    let row = |(name, note, is_marked, spreads): (String, &str, bool, &[Spread])| BarRow {
        name,
        note: note.to_owned(),
        is_marked,
        values: spreads.iter().zip(&scales).map(|(spread, (factor, _))| spread.mean * factor).collect(),
    };
    BarTable {
        caption: caption.to_owned(),
        rows_are: "choice".to_owned(),
        figures: figures.iter().zip(&scales).map(|(figure, (_, unit))| axis(figure, unit)).collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn commands(plan: &ChangePlan) -> Option<SheetSection> {
    if plan.assignments.is_empty() {
        return None;
    }
    let section =
        |title: &str, lines: Vec<String>| std::iter::once(format!("# {title}")).chain(lines).chain([String::new()]);
    let code = section("until the next start", plan.commands())
        .chain(section("for good", plan.persistent_commands()))
        .chain(section("and back", plan.way_back()));
    let intro = "The advice has changed nothing; these commands carry it out.".to_owned();
    Some(SheetSection { title: "How to set it".into(), intro, code: code.collect(), ..SheetSection::default() })
}

fn rows(advice: &Advice) -> Table {
    let head = std::iter::once("scheduler".to_owned()).chain(advice.figures.iter().map(ToString::to_string));
    let head = head.chain(["constraints".to_owned()]).collect();
    let row = |(judged, name): (&EvaluatedChoice, String)| {
        let cells = judged.spreads.iter().zip(&advice.figures);
        let cells = cells.map(|(spread, figure)| wording::cell(spread, figure, true).replace("+-", "± "));
        let broken = if judged.broken.is_empty() { "kept" } else { "broken" }.to_owned();
        std::iter::once(name).chain(cells).chain([broken]).collect()
    };
    let rows = advice.judged.iter().zip(wording::names(advice)).map(row).collect();
    Table { head, rows, marked: Some(advice.chosen) }
}

/// The factor and unit that suit all values of a figure.
fn scale(figure: &Figure, greatest: f64) -> (f64, &'static str) {
    match figure.metric.unit() {
        Unit::Number => (1.0, ""),
        Unit::Rate => (1e-6, "MB/s"),
        Unit::Time if greatest >= 2e9 => (1e-9, "s"),
        Unit::Time if greatest >= 2e6 => (1e-6, "ms"),
        Unit::Time => (1e-3, "µs"),
    }
}

/// The title of an axis: figure, unit, and which direction is better.
fn axis(figure: &Figure, unit: &str) -> String {
    let better = if figure.metric.less_is_better() { "less is better" } else { "more is better" };
    if unit.is_empty() { format!("{figure}; {better}") } else { format!("{figure}, {unit}; {better}") }
}

fn intervals(advice: &Advice, index: usize, figure: &Figure) -> Intervals {
    let spreads = || advice.judged.iter().map(|judged| &judged.spreads[index]);
    let (factor, unit) = scale(figure, greatest(spreads().map(|spread| spread.mean)));
    let names = wording::names(advice);
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
        let unit = if change.figure == "throughput" { Unit::Rate } else { Unit::Time };
        vec![
            change.job.clone(),
            change.figure.to_owned(),
            value_text(change.before, unit),
            value_text(change.after, unit),
            wording::change(&change.difference),
            if change.is_better { "gains" } else { "loses" }.to_owned(),
        ]
    });
    let head = ["job", "figure", "now", "then", "change", ""].map(str::to_owned).into();
    Some(SheetSection {
        title: "Jobs that gain and lose".into(),
        intro: "Significant changes of the jobs, the largest first.".into(),
        table: Some(Table { head, rows: rows.collect(), marked: None }),
        ..SheetSection::default()
    })
}

fn scatter(tuned: &TuneResult) -> Scatter {
    let (goal, other) = (&tuned.figures[0], &tuned.figures[tuned.other]);
    let means = |figure: usize| tuned.tried.iter().map(move |tried| tried.spreads[figure].mean);
    let (x_factor, x_unit) = scale(goal, greatest(means(0)));
    let (y_factor, y_unit) = scale(other, greatest(means(tuned.other)));
    let mut kinds: Vec<String> = Vec::new();
    let mut points = Vec::with_capacity(tuned.tried.len());
    for tried in &tuned.tried {
        let name = scheduler_name(tried.choice.kind).to_owned();
        let kind = kinds.iter().position(|known| *known == name).unwrap_or_else(|| {
            kinds.push(name);
            kinds.len() - 1
        });
        points.push((tried.spreads[0].mean * x_factor, tried.spreads[tuned.other].mean * y_factor, kind));
    }
    let at = |index: usize| (points[index].0, points[index].1);
    let winner = tuned.tried.iter().position(|tried| tried.choice == tuned.winner);
    let mut marked = vec![(at(0).0, at(0).1, "now".to_owned())];
    marked.extend(winner.filter(|index| *index != 0).map(|index| (at(index).0, at(index).1, "the winner".to_owned())));
    Scatter {
        title: format!("{goal} against {other}"),
        x: axis(goal, x_unit),
        y: axis(other, y_unit),
        front: tuned.front.iter().map(|index| at(*index)).collect(),
        kinds,
        points,
        marked,
    }
}
