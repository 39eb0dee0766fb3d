//! `hoistway reproduce`: published results, run.

mod json;
mod markdown;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use hoistway_sim::SimError;
use hoistway_sim::published::{PublishedError, Row, RowKind, RowProgress, RowResult, Verdict, reproduce, select};

use crate::cli::ReproduceArgs;
use crate::failure::{Exit, Interrupted, UsageError};
use crate::interrupt;
use crate::output::Out;
use crate::progress::Bar;

/// Steps of the bar for each row.
const STEPS: u64 = 100;

/// Runs the rows, and prints the table with its summary or the JSON.
pub fn run(args: &ReproduceArgs, out: &mut Out) -> Result<Exit> {
    let rows = match select(&args.ids) {
        Err(error @ PublishedError::UnknownId { .. }) => return Err(UsageError(error.to_string()).into()),
        selected => selected?,
    };
    let outcomes = outcomes(&rows)?;
    if let Some(folder) = &args.page {
        markdown::write(folder, &outcomes)?;
    }
    if args.json {
        out.json(&json::Document::new(&outcomes))?;
    } else {
        table::print(&outcomes, out)?;
        if let Some(folder) = &args.page {
            out.line(format_args!("\nThe page is in {}.", folder.join(markdown::PAGE).display()))?;
        }
    }
    Ok(Exit::Success)
}

/// Ctrl-C stops the runs; a second one ends the process on the spot.
fn outcomes(rows: &[&'static Row]) -> Result<Vec<RowResult>> {
    let cancel = interrupt::watch()?;
    let bar = Bar::new(STEPS * rows.len() as u64, "reproducing");
    let furthest = AtomicU64::new(0);
    let progress = |step: RowProgress| {
        // A row may find that it needs more runs: the bar never goes back.
        let of_row = STEPS * step.done as u64 / step.of.max(1) as u64;
        let steps = STEPS * step.row as u64 + of_row.min(STEPS);
        bar.set(furthest.fetch_max(steps, Ordering::Relaxed).max(steps));
    };
    let result = reproduce(rows, &progress, &cancel);
    bar.clear();
    match result {
        Err(PublishedError::Run(SimError::Cancelled)) => Err(Interrupted.into()),
        result => Ok(result?),
    }
}

/// How many of the rows came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Rows that state a number.
    numbers: Count,
    /// Rows that state an order or a rule.
    orders_and_rules: Count,
    /// The figures of the rows that state a number.
    figures: Count,
    /// Rows whose figure is not in what was published.
    missing: usize,
    /// Rows that describe a drive.
    inputs: usize,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Those that came out.
    reproduced: usize,
    /// All.
    of: usize,
}

impl Summary {
    fn new(outcomes: &[RowResult]) -> Summary {
        let mut summary = Summary::default();
        for outcome in outcomes {
            let count = match outcome.row.kind {
                RowKind::Input => {
                    summary.inputs += 1;
                    continue;
                }
                RowKind::Missing => {
                    summary.missing += 1;
                    continue;
                }
                RowKind::Number => &mut summary.numbers,
                RowKind::Order | RowKind::Rule => &mut summary.orders_and_rules,
            };
            count.of += 1;
            count.reproduced += usize::from(outcome.verdict == Verdict::Reproduced);
            if outcome.row.kind != RowKind::Number {
                continue;
            }
            for found in outcome.values.iter().filter(|found| found.expected.published.is_some()) {
                summary.figures.of += 1;
                summary.figures.reproduced += usize::from(found.right);
            }
        }
        summary
    }

    /// The summary in a sentence.
    fn text(&self) -> String {
        let Summary { numbers, orders_and_rules, figures, missing, inputs } = self;
        format!(
            "Numbers: {} of {} rows reproduced ({} of {} figures within tolerance). Orders and rules: {} of {}. Outside the count: {inputs} \
             that describe a drive, {missing} whose figure was not published.",
            numbers.reproduced,
            numbers.of,
            figures.reproduced,
            figures.of,
            orders_and_rules.reproduced,
            orders_and_rules.of,
        )
    }
}

/// How many figures of a row a table shows.
const SHOWN: usize = 4;

/// Published figures with their unit, as a table has them: "94.9 / 91.2 / 31 %"; bounds where there are no figures.
fn published(outcome: &RowResult) -> String {
    let told = outcome.values.iter().map(|found| match found.expected.published {
        Some(published) => plain(published),
        None if found.expected.bounds().is_none() => "-".to_owned(),
        None => found.expected.tolerance(),
    });
    joined(outcome, told.collect())
}

/// The same of what came out.
fn ours(outcome: &RowResult) -> String {
    // What has to be exact is told as it was published.
    let told = outcome.values.iter().map(|found| match found.expected.published {
        Some(published) if published == found.ours => plain(published),
        _ => near(found.ours),
    });
    joined(outcome, told.collect())
}

/// The tolerances, one if all are alike.
fn tolerance(outcome: &RowResult) -> String {
    let mut told: Vec<String> = Vec::new();
    for value in outcome.values.iter().filter(|found| found.expected.published.is_some()) {
        told.push(value.expected.tolerance());
    }
    if told.windows(2).all(|pair| pair[0] == pair[1]) {
        told.truncate(1);
    }
    shorten(&mut told);
    if !outcome.orders.is_empty() {
        told.push("order".to_owned());
    }
    told.join(" / ")
}

/// The first figures, with one unit behind them when they have one in common.
fn joined(outcome: &RowResult, mut figures: Vec<String>) -> String {
    shorten(&mut figures);
    let mut units = outcome.values.iter().map(|found| found.expected.unit.as_str());
    let first = units.next().unwrap_or_default();
    if units.all(|unit| unit == first) {
        return format!("{} {first}", figures.join(" / ")).trim().to_owned();
    }
    let with_unit = |(index, figure): (usize, &String)| {
        let unit = outcome.values.get(index).map_or("", |found| found.expected.unit.as_str());
        if figure.ends_with(" more") { figure.clone() } else { format!("{figure} {unit}").trim().to_owned() }
    };
    figures.iter().enumerate().map(with_unit).collect::<Vec<_>>().join(" / ")
}

/// The first, and how many more there are.
fn shorten(told: &mut Vec<String>) {
    if told.len() > SHOWN {
        let more = told.len() - SHOWN + 1;
        told.truncate(SHOWN - 1);
        told.push(format!("{more} more"));
    }
}

/// A published figure as it was printed: no digits are added.
fn plain(figure: f64) -> String {
    format!("{figure}")
}

/// Four significant digits, for comparing with figures of three.
fn near(figure: f64) -> String {
    if !figure.is_finite() {
        return "-".to_owned();
    }
    let magnitude = figure.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 999.5 => 0,
        m if m >= 99.95 => 1,
        m if m >= 9.995 => 2,
        _ => 3,
    };
    format!("{figure:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn figures_have_four_significant_digits() {
        assert_eq!(
            [0.0, 0.5441, 1.0254, 17.834, 746.04, 2428.03].map(near),
            ["0", "0.544", "1.025", "17.83", "746.0", "2428"]
        );
    }
}
