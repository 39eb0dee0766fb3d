//! The JSON document of `hoistway reproduce --json`.

use hoistway_sim::published::{RowKind, RowResult, Verdict};
use serde::Serialize;

use super::Summary;

/// The whole document.
#[derive(Serialize)]
pub struct Document<'a> {
    /// The version of this form: 1. Keys may be added within a version; none is taken away or changes its meaning.
    schema: u32,
    /// How many came out.
    summary: Summary,
    /// The rows, in the order of the publications.
    rows: Vec<Row<'a>>,
}

/// One published result.
#[derive(Serialize)]
struct Row<'a> {
    /// `S1-06`.
    id: &'a str,
    /// `number`, `order`, `rule`, `input` or `missing`.
    kind: RowKind,
    /// The workload and what was measured.
    what: &'a str,
    /// The published figures and bounds, as the table has them.
    published: String,
    /// What came out, likewise.
    ours: String,
    /// The tolerances, likewise.
    tolerance: String,
    /// `reproduced`, `differs`, `not-reproducible` or `input`.
    verdict: Verdict,
    /// Why it is not reproduced; empty when it is.
    why: String,
    /// Parameters that were chosen because they make the row fit; a row that has any is not reproduced.
    parameters_fitted: &'a [String],
    /// What was given.
    inputs: &'a [String],
    /// The job files.
    jobs: &'a [String],
    /// The drive's profile.
    drive: Option<&'a str>,
    /// The host's kernel.
    kernel: Option<&'a str>,
    /// The elevators that were run.
    elevators: &'a [String],
    /// How many seeds a figure is the mean of.
    seeds: u64,
    /// The figures, one by one.
    values: Vec<Value<'a>>,
    /// The orders.
    orders: Vec<Order<'a>>,
    /// Whether it comes out for the right reason.
    reasons: Vec<Reason<'a>>,
}

/// One figure.
#[derive(Serialize)]
struct Value<'a> {
    name: &'a str,
    unit: &'a str,
    /// The published figure; none where only bounds are known.
    published: Option<f64>,
    ours: f64,
    /// The least that is right; none when there is no least.
    at_least: Option<f64>,
    /// The most that is right; none when there is no most.
    at_most: Option<f64>,
    within: bool,
    note: &'a str,
}

/// One order.
#[derive(Serialize)]
struct Order<'a> {
    /// Names of values, the greatest first.
    falls: &'a [String],
    /// By what part each exceeds the next at least.
    margin: f64,
    holds: bool,
}

/// The mark of a mechanism.
#[derive(Serialize)]
struct Reason<'a> {
    name: &'a str,
    unit: &'a str,
    ours: f64,
    at_least: Option<f64>,
    at_most: Option<f64>,
    holds: bool,
    /// The mechanism.
    text: &'a str,
}

impl<'a> Document<'a> {
    /// The document of these rows.
    pub fn new(outcomes: &'a [RowResult]) -> Document<'a> {
        Document { schema: 1, summary: Summary::new(outcomes), rows: outcomes.iter().map(Row::new).collect() }
    }
}

impl<'a> Row<'a> {
    fn new(outcome: &'a RowResult) -> Row<'a> {
        let row = outcome.row;
        Row {
            id: &row.id,
            kind: row.kind,
            what: &row.what,
            published: super::published(outcome),
            ours: super::ours(outcome),
            tolerance: super::tolerance(outcome),
            verdict: outcome.verdict,
            why: outcome.why(),
            parameters_fitted: &row.fitted,
            inputs: &row.inputs,
            jobs: &row.jobs,
            drive: row.drive.as_deref(),
            kernel: row.kernel.as_deref(),
            elevators: &row.elevators,
            seeds: row.seeds,
            values: outcome.values.iter().map(Value::new).collect(),
            orders: outcome.orders.iter().map(Order::new).collect(),
            reasons: outcome.reasons.iter().map(Reason::new).collect(),
        }
    }
}

type Checked<T> = hoistway_sim::published::Checked<&'static T>;

impl Value<'_> {
    fn new(found: &Checked<hoistway_sim::published::Value>) -> Value<'static> {
        let value = found.expected;
        let bounds = value.bounds();
        Value {
            name: &value.name,
            unit: &value.unit,
            published: value.published,
            ours: found.ours,
            at_least: bounds.map(|(low, _)| low).filter(|low| low.is_finite()),
            at_most: bounds.map(|(_, high)| high).filter(|high| high.is_finite()),
            within: found.right,
            note: &value.note,
        }
    }
}

impl Order<'_> {
    fn new(found: &Checked<hoistway_sim::published::Order>) -> Order<'static> {
        Order { falls: &found.expected.falls, margin: found.ours, holds: found.right }
    }
}

impl Reason<'_> {
    fn new(found: &Checked<hoistway_sim::published::Reason>) -> Reason<'static> {
        let reason = found.expected;
        Reason {
            name: &reason.name,
            unit: &reason.unit,
            ours: found.ours,
            at_least: reason.at_least,
            at_most: reason.at_most,
            holds: found.right,
            text: &reason.text,
        }
    }
}
