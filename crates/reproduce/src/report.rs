//! The answer of `hoistway reproduce`: a summary and the rows, as one JSON document.

use serde::Serialize;

use crate::expectation::{Order, Reason, RowKind, Value};
use crate::verdict::{Checked, Effect, RowResult, UnknownResult, Verdict};

/// The JSON document.
#[derive(Serialize)]
pub struct Reproduction<'a> {
    /// Version of the document's format: 1. Within a version, keys may be added; no key is removed
    /// or changes its meaning.
    schema: u32,
    /// Counts of reproduced rows.
    summary: Summary,
    /// The rows, in the order of the publications.
    rows: Vec<RowReport<'a>>,
}

/// One published result.
#[derive(Serialize)]
struct RowReport<'a> {
    /// Id of the row, such as `S1-06`.
    id: &'a str,
    /// `number`, `order`, `rule`, `input` or `missing`.
    kind: RowKind,
    /// The workload and the measured quantity.
    what: &'a str,
    /// The published figures and bounds, in the form of the table.
    published: String,
    /// The measured figures, in the form of the table.
    ours: String,
    /// The tolerances, in the form of the table.
    tolerance: String,
    /// `reproduced`, `differs`, `not-reproducible` or `input`.
    verdict: Verdict,
    /// Reason why the row is not reproduced; empty if it is.
    why: String,
    /// Parameters that were chosen to make the row fit; a row with any is not reproduced.
    parameters_fitted: &'a [String],
    /// Known inputs.
    inputs: &'a [String],
    /// The job files.
    jobs: &'a [String],
    /// The drive's profile.
    drive: Option<&'a str>,
    /// The host's kernel.
    kernel: Option<&'a str>,
    /// The elevators that were run.
    elevators: &'a [String],
    /// Number of seeds over which figures are averaged.
    seeds: u64,
    /// The figures, one by one.
    values: Vec<ValueReport<'a>>,
    /// The orders.
    orders: Vec<OrderReport<'a>>,
    /// The marks of the mechanism.
    reasons: Vec<ReasonReport<'a>>,
    /// The experiments on what the publication does not state; empty unless the row differs.
    unknowns: Vec<UnknownReport<'a>>,
    /// The name of the first unknown that decides the row; null if none does.
    decided_by: Option<&'a str>,
}

/// One figure.
#[derive(Serialize)]
struct ValueReport<'a> {
    name: &'a str,
    unit: &'a str,
    /// The published figure; null if only bounds are known.
    published: Option<f64>,
    ours: f64,
    /// Lower bound; null if there is none.
    at_least: Option<f64>,
    /// Upper bound; null if there is none.
    at_most: Option<f64>,
    within: bool,
    note: &'a str,
}

/// One order.
#[derive(Serialize)]
struct OrderReport<'a> {
    /// Names of values, the greatest first.
    falls: &'a [String],
    /// The minimum relative difference between neighbours.
    margin: f64,
    holds: bool,
}

/// The experiment on a property that the publication does not state.
#[derive(Serialize)]
struct UnknownReport<'a> {
    /// The property.
    name: &'a str,
    /// The value of the row itself.
    here: &'a str,
    /// What the publication states.
    stated: &'a str,
    /// `decides`, `moves` or `does-not-decide`.
    effect: Effect,
    /// The row with each value.
    trials: Vec<TrialReport<'a>>,
}

/// A row with one value of an unknown.
#[derive(Serialize)]
struct TrialReport<'a> {
    /// The value.
    value: &'a str,
    /// What differs, as text; empty if all holds.
    differences: &'a str,
    values: Vec<ValueReport<'a>>,
    orders: Vec<OrderReport<'a>>,
    reasons: Vec<ReasonReport<'a>>,
}

/// The mark of a mechanism.
#[derive(Serialize)]
struct ReasonReport<'a> {
    name: &'a str,
    unit: &'a str,
    ours: f64,
    at_least: Option<f64>,
    at_most: Option<f64>,
    holds: bool,
    /// The mechanism.
    text: &'a str,
}

impl<'a> Reproduction<'a> {
    /// Builds the document of these rows.
    pub fn new(results: &'a [RowResult]) -> Reproduction<'a> {
        Reproduction { schema: 1, summary: Summary::new(results), rows: results.iter().map(RowReport::new).collect() }
    }
}

impl<'a> RowReport<'a> {
    fn new(result: &'a RowResult) -> RowReport<'a> {
        let row = result.row;
        RowReport {
            id: &row.id,
            kind: row.kind,
            what: &row.what,
            published: result.published_text(),
            ours: result.measured_text(),
            tolerance: result.tolerance_text(),
            verdict: result.verdict,
            why: result.why(),
            parameters_fitted: &row.fitted,
            inputs: &row.inputs,
            jobs: &row.jobs,
            drive: row.drive.as_deref(),
            kernel: row.kernel.as_deref(),
            elevators: &row.elevators,
            seeds: row.seeds,
            values: result.values.iter().map(ValueReport::new).collect(),
            orders: result.orders.iter().map(OrderReport::new).collect(),
            reasons: result.reasons.iter().map(ReasonReport::new).collect(),
            unknowns: result.unknowns.iter().map(UnknownReport::new).collect(),
            decided_by: result.decided_by().map(|decided| decided.unknown.name.as_str()),
        }
    }
}

impl<'a> UnknownReport<'a> {
    fn new(experiment: &'a UnknownResult) -> UnknownReport<'a> {
        let trials = experiment.trials.iter().map(|tried| TrialReport {
            value: tried.trial.value(),
            differences: &tried.result.differences,
            values: tried.result.values.iter().map(ValueReport::new).collect(),
            orders: tried.result.orders.iter().map(OrderReport::new).collect(),
            reasons: tried.result.reasons.iter().map(ReasonReport::new).collect(),
        });
        UnknownReport {
            name: &experiment.unknown.name,
            here: &experiment.unknown.here,
            stated: &experiment.unknown.stated,
            effect: experiment.effect,
            trials: trials.collect(),
        }
    }
}

impl ValueReport<'_> {
    fn new(checked: &Checked<&'static Value>) -> ValueReport<'static> {
        let value = checked.expected;
        let bounds = value.bounds();
        ValueReport {
            name: &value.name,
            unit: &value.unit,
            published: value.published,
            ours: checked.measured,
            at_least: bounds.map(|(low, _)| low).filter(|low| low.is_finite()),
            at_most: bounds.map(|(_, high)| high).filter(|high| high.is_finite()),
            within: checked.holds,
            note: &value.note,
        }
    }
}

impl OrderReport<'_> {
    fn new(checked: &Checked<&'static Order>) -> OrderReport<'static> {
        OrderReport { falls: &checked.expected.falls, margin: checked.measured, holds: checked.holds }
    }
}

impl ReasonReport<'_> {
    fn new(checked: &Checked<&'static Reason>) -> ReasonReport<'static> {
        let reason = checked.expected;
        ReasonReport {
            name: &reason.name,
            unit: &reason.unit,
            ours: checked.measured,
            at_least: reason.at_least,
            at_most: reason.at_most,
            holds: checked.holds,
            text: &reason.text,
        }
    }
}

/// Counts of reproduced rows and figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Rows that state a number.
    pub numbers: Count,
    /// Rows that state a number and differ, and that an unknown decides.
    pub numbers_decided: usize,
    /// Rows that state an order or a rule.
    pub orders_and_rules: Count,
    /// Rows that state an order or a rule and differ, and that an unknown decides.
    pub orders_and_rules_decided: usize,
    /// The figures of the rows that state a number.
    pub figures: Count,
    /// Rows whose figure was not published.
    pub missing: usize,
    /// Rows that describe a drive.
    pub inputs: usize,
}

/// A number of reproduced rows or figures, with the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The number of reproduced ones.
    pub reproduced: usize,
    /// The total.
    pub of: usize,
}

impl Summary {
    /// Counts the reproduced rows and figures among these results.
    pub fn new(results: &[RowResult]) -> Summary {
        let mut summary = Summary::default();
        for result in results {
            let (count, decided) = match result.row.kind {
                RowKind::Input => {
                    summary.inputs += 1;
                    continue;
                }
                RowKind::Missing => {
                    summary.missing += 1;
                    continue;
                }
                RowKind::Number => (&mut summary.numbers, &mut summary.numbers_decided),
                RowKind::Order | RowKind::Rule => {
                    (&mut summary.orders_and_rules, &mut summary.orders_and_rules_decided)
                }
            };
            *decided += usize::from(result.decided_by().is_some());
            count.of += 1;
            count.reproduced += usize::from(result.verdict == Verdict::Reproduced);
            if result.row.kind != RowKind::Number {
                continue;
            }
            for checked in result.values.iter().filter(|checked| checked.expected.published.is_some()) {
                summary.figures.of += 1;
                summary.figures.reproduced += usize::from(checked.holds);
            }
        }
        summary
    }

    /// The summary in a sentence.
    pub fn text(&self) -> String {
        let Summary { numbers, orders_and_rules, figures, missing, inputs, .. } = self;
        let decided = |rows: usize| match rows {
            0 => String::new(),
            rows => format!(", {rows} more decided by an unpublished value"),
        };
        format!(
            "Numbers: {} of {} rows reproduced{} ({} of {} figures within tolerance). Orders and rules: {} of {}{}. \
             Outside the count: {inputs} that describe a drive, {missing} whose figure was not published.",
            numbers.reproduced,
            numbers.of,
            decided(self.numbers_decided),
            figures.reproduced,
            figures.of,
            orders_and_rules.reproduced,
            orders_and_rules.of,
            decided(self.orders_and_rules_decided),
        )
    }
}
