//! Comparison of measured with published figures.

use crate::error::ReproduceError;
use crate::expectation::{Order, Reason, Row, RowKind, Value};
use crate::unknown::{Trial, Unknown};

/// The figures of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    figures: Vec<(String, f64)>,
    plot: Option<Plot>,
}

/// A plot of lines.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Label of the x axis, with its unit.
    pub x: String,
    /// Label of the y axis, with its unit.
    pub y: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of a plot.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// The points, in ascending order of x.
    pub points: Vec<(f64, f64)>,
    /// True for a published line, which is drawn dashed.
    pub published: bool,
}

impl Measured {
    /// Adds the figure of a value or a reason of the row, by its name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, figure: f64) -> Measured {
        self.figures.push((name.into(), figure));
        self
    }

    /// Adds several figures.
    #[must_use]
    pub fn with_all<N: Into<String>>(mut self, figures: impl IntoIterator<Item = (N, f64)>) -> Measured {
        self.figures.extend(figures.into_iter().map(|(name, figure)| (name.into(), figure)));
        self
    }

    /// Sets the plot; without one, a page draws the values.
    #[must_use]
    pub fn with_plot(self, plot: Option<Plot>) -> Measured {
        Measured { plot, ..self }
    }

    fn figure(&self, row: &Row, name: &str) -> Result<f64, ReproduceError> {
        let found = self.figures.iter().find(|(known, _)| known == name);
        let lacks = || ReproduceError::NoFigure { id: row.id.clone(), name: name.to_owned() };
        found.map(|(_, figure)| *figure).ok_or_else(lacks)
    }
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every figure is within its tolerance, every order, rule and reason holds, and no parameter
    /// was fitted.
    Reproduced,
    /// A figure, an order, a rule or a reason differs.
    Differs,
    /// The figure was not published, or a parameter was fitted to it.
    NotReproducible,
    /// The row describes the drive or the machine and is not counted.
    Input,
}

impl Verdict {
    /// The name of the verdict in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::NotReproducible => "not reproducible",
            Verdict::Input => "input",
        }
    }
}

/// A row with its measured figures.
#[derive(Debug)]
pub struct RowResult {
    /// The row.
    pub row: &'static Row,
    /// The values, in the order of the row.
    pub values: Vec<Checked<&'static Value>>,
    /// The orders.
    pub orders: Vec<Checked<&'static Order>>,
    /// The reasons.
    pub reasons: Vec<Checked<&'static Reason>>,
    /// The verdict.
    pub verdict: Verdict,
    /// The figures, orders and reasons that differ, as text; empty if none differs.
    pub differences: String,
    /// The plot of the measurement.
    pub plot: Option<Plot>,
    /// The experiments on what the publication does not state, if the row differs.
    pub unknowns: Vec<UnknownResult>,
}

/// The experiment on a property that a publication does not state.
#[derive(Debug)]
pub struct UnknownResult {
    /// The property.
    pub unknown: &'static Unknown,
    /// The row with each value of the property.
    pub trials: Vec<TrialResult>,
    /// The effect of the property on the row.
    pub effect: Effect,
}

/// A row with one value of an unknown.
#[derive(Debug)]
pub struct TrialResult {
    /// The value.
    pub trial: &'static Trial,
    /// The row's figures with this value.
    pub result: RowResult,
}

/// The effect of a property that a publication does not state on a row that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// With one of the values every figure, order, rule and reason of the row holds.
    Decides,
    /// Something that differs holds with one of the values, or a figure that differs moves by more
    /// than its tolerance; but no value makes all hold.
    Moves,
    /// Differences remain, and none of their figures moves by more than its tolerance.
    DoesNotDecide,
}

impl Effect {
    /// The name of the effect in tables.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Decides => "decides",
            Effect::Moves => "moves",
            Effect::DoesNotDecide => "does not decide",
        }
    }

    /// Compares the row with the trials of an unknown.
    fn of(row: &RowResult, trials: &[TrialResult]) -> Effect {
        if trials.iter().any(|trial| trial.result.differences.is_empty()) {
            return Effect::Decides;
        }
        let tried = || trials.iter().map(|trial| &trial.result);
        let moves_value = |(index, own): (usize, &Checked<&Value>)| {
            let room = own.expected.bounds().map_or(f64::INFINITY, |(low, high)| (high - low) / 2.0);
            let moves = |tried: &Checked<&Value>| tried.holds || (tried.measured - own.measured).abs() > room;
            !own.holds && tried().filter_map(|tried| tried.values.get(index)).any(moves)
        };
        let moves_order =
            |(index, own): (usize, &Checked<&Order>)| !own.holds && tried().any(|tried| holds(&tried.orders, index));
        let moves_reason =
            |(index, own): (usize, &Checked<&Reason>)| !own.holds && tried().any(|tried| holds(&tried.reasons, index));
        let moves = row.values.iter().enumerate().any(moves_value)
            || row.orders.iter().enumerate().any(moves_order)
            || row.reasons.iter().enumerate().any(moves_reason);
        if moves { Effect::Moves } else { Effect::DoesNotDecide }
    }
}

fn holds<T>(all: &[Checked<T>], index: usize) -> bool {
    all.get(index).is_some_and(|checked| checked.holds)
}

impl UnknownResult {
    /// Compares the row with the trials of an unknown.
    pub fn new(row: &RowResult, unknown: &'static Unknown, trials: Vec<TrialResult>) -> UnknownResult {
        let effect = Effect::of(row, &trials);
        UnknownResult { unknown, trials, effect }
    }

    /// The values with which all of the row holds.
    pub fn deciding(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.trials.iter().filter(|trial| trial.result.differences.is_empty()).map(|trial| trial.trial.value())
    }
}

/// An expectation with its measured figure.
#[derive(Clone, Copy, Debug)]
pub struct Checked<T> {
    /// The expectation.
    pub expected: T,
    /// The measured figure; for an order, the least relative difference between neighbours.
    pub measured: f64,
    /// True if the measured figure meets the expectation.
    pub holds: bool,
}

impl RowResult {
    /// Compares the figures of a measurement with the row.
    ///
    /// # Errors
    /// [`ReproduceError::NoFigure`] if the measurement lacks a figure.
    pub fn new(row: &'static Row, measured: Measured) -> Result<RowResult, ReproduceError> {
        let value = |value: &'static Value| {
            let figure = measured.figure(row, &value.name)?;
            let holds = value.bounds().is_none_or(|(low, high)| {
                // Sums such as 0.1 + 0.2 count as exact.
                let slack = 1e-9 * figure.abs();
                (low - slack..=high + slack).contains(&figure)
            });
            Ok(Checked { expected: value, measured: figure, holds })
        };
        let order = |order: &'static Order| {
            let figures: Result<Vec<f64>, _> = order.falls.iter().map(|name| measured.figure(row, name)).collect();
            let figures = figures?;
            // A comparison with NaN is false; `min` alone would ignore NaN.
            let holds = figures.windows(2).all(|pair| pair[0] > pair[1]);
            let margin = figures.windows(2).map(|pair| pair[0] / pair[1] - 1.0).fold(f64::INFINITY, f64::min);
            Ok(Checked { expected: order, measured: margin, holds })
        };
        let reason = |reason: &'static Reason| {
            let figure = measured.figure(row, &reason.name)?;
            Ok(Checked { expected: reason, measured: figure, holds: reason.holds(figure) })
        };
        let values = row.values.iter().map(value).collect::<Result<Vec<_>, ReproduceError>>()?;
        let orders = row.orders.iter().map(order).collect::<Result<Vec<_>, ReproduceError>>()?;
        let reasons = row.reasons.iter().map(reason).collect::<Result<Vec<_>, ReproduceError>>()?;
        let differences = differences(&values, &orders, &reasons);
        let verdict = match row.kind {
            RowKind::Input => Verdict::Input,
            RowKind::Missing => Verdict::NotReproducible,
            _ if !row.fitted.is_empty() => Verdict::NotReproducible,
            _ if differences.is_empty() => Verdict::Reproduced,
            _ => Verdict::Differs,
        };
        Ok(RowResult { row, values, orders, reasons, verdict, differences, plot: measured.plot, unknowns: Vec::new() })
    }

    /// The first unknown that decides the row.
    pub fn decided_by(&self) -> Option<&UnknownResult> {
        self.unknowns.iter().find(|unknown| unknown.effect == Effect::Decides)
    }

    /// The verdict in a table: its name, and the unknown that decides the row.
    pub fn verdict_text(&self) -> String {
        match self.decided_by() {
            Some(decided) => format!("{}: decided by {}", self.verdict.name(), decided.unknown.name),
            None => self.verdict.name().to_owned(),
        }
    }

    /// The reason why the verdict is not "reproduced": differing figures, fitted parameters, and
    /// the row's explanation; empty for a reproduced row.
    pub fn why(&self) -> String {
        let fitted = match self.row.fitted.as_slice() {
            [] => String::new(),
            fitted => format!("fitted: {}", fitted.join(", ")),
        };
        let missing = if self.verdict == Verdict::Reproduced { "" } else { self.row.missing.trim() };
        let parts = [self.differences.as_str(), fitted.as_str(), missing];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// Lists the names of differing figures, orders and reasons, separated by commas.
fn differences(values: &[Checked<&Value>], orders: &[Checked<&Order>], reasons: &[Checked<&Reason>]) -> String {
    let values = values.iter().filter(|checked| !checked.holds).map(|checked| checked.expected.name.clone());
    let orders = orders.iter().filter(|checked| !checked.holds);
    let orders = orders.map(|checked| format!("the order {}", checked.expected.falls.join(" > ")));
    let reasons = reasons.iter().filter(|checked| !checked.holds);
    let reasons = reasons.map(|checked| format!("{} (the reason)", checked.expected.name));
    let all: Vec<String> = values.chain(orders).chain(reasons).collect();
    if all.is_empty() { String::new() } else { format!("out: {}", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::Publication;

    /// A row with a number, an order and a reason.
    fn row(more: &str) -> &'static Row {
        let text = format!(
            "seed='T'\ntitle='t'\nabout='a'\n[[row]]\nid='T-1'\nkind='number'\nwhat='w'\n{more}\n\
             [[row.value]]\nname='a'\npublished=10.0\nwithin_percent=10\n[[row.value]]\nname='b'\npublished=5.0\nwithin=1.0\n\
             [[row.order]]\nfalls=['a','b']\n[[row.reason]]\nname='c'\nat_most=2.0\ntext='t'\n"
        );
        let read: Publication = toml::from_str(&text).expect("valid rows");
        &Box::leak(Box::new(read)).rows[0]
    }

    fn result(more: &str, a: f64, b: f64, c: f64) -> RowResult {
        let measured = Measured::default().with("a", a).with("b", b).with("c", c);
        RowResult::new(row(more), measured).expect("all figures")
    }

    #[test]
    fn a_row_is_reproduced_if_figures_orders_and_reasons_hold() {
        assert_eq!(result("", 11.0, 4.0, 2.0).verdict, Verdict::Reproduced);
        for (a, b, c, differences) in [
            (11.1, 4.0, 2.0, "out: a"),
            (9.0, 6.1, 2.0, "out: b"),
            (9.0, 5.0, 2.1, "out: c (the reason)"),
            (9.0, 9.5, 2.0, "out: b, the order a > b"),
            (9.0, f64::NAN, 2.0, "out: b, the order a > b"),
        ] {
            let result = result("", a, b, c);
            assert_eq!((result.verdict, result.why().as_str()), (Verdict::Differs, differences));
        }
    }

    /// The effect of an unknown with these trials on a row with `a` = 12, which is out.
    fn effect(trials: &[(f64, f64, f64)]) -> UnknownResult {
        let values: Vec<String> = (0..trials.len()).map(|index| format!("{{value='{index}'}}")).collect();
        let text = format!("name='n'\nhere='h'\nstated='s'\ntrial=[{}]\n", values.join(","));
        let unknown: &'static Unknown = Box::leak(Box::new(toml::from_str(&text).expect("a valid unknown")));
        let tried = unknown
            .trials
            .iter()
            .zip(trials)
            .map(|(trial, &(a, b, c))| TrialResult { trial, result: result("", a, b, c) });
        UnknownResult::new(&result("", 12.0, 5.0, 1.0), unknown, tried.collect())
    }

    #[test]
    fn an_unknown_decides_if_one_of_its_values_makes_all_hold() {
        let decides = effect(&[(12.0, 5.0, 1.0), (10.5, 5.0, 2.0), (9.5, 5.0, 2.0)]);
        assert_eq!(decides.effect, Effect::Decides);
        assert_eq!(decides.deciding().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn an_unknown_moves_a_row_if_what_differs_holds_alone_or_moves_by_its_tolerance() {
        // In, while b, the order or the reason is out; then out on the other side.
        for trial in [(10.5, 8.0, 1.0), (10.5, 10.6, 1.0), (10.5, 5.0, 3.0), (13.1, 5.0, 1.0), (8.0, 5.0, 1.0)] {
            assert_eq!(effect(&[(12.1, 5.0, 1.0), trial]).effect, Effect::Moves, "{trial:?}");
        }
        // The tolerance of a is 1.
        assert_eq!(effect(&[(11.5, 5.0, 1.0), (12.9, 5.0, 1.0)]).effect, Effect::DoesNotDecide);
        // What holds in the row itself may move.
        assert_eq!(effect(&[(11.5, 9.0, 9.0)]).effect, Effect::DoesNotDecide);
        assert_eq!(effect(&[(f64::NAN, 5.0, 1.0)]).effect, Effect::DoesNotDecide);
    }

    #[test]
    fn a_row_that_an_unknown_decides_still_differs() {
        let row = RowResult { unknowns: vec![effect(&[(10.0, 5.0, 1.0)])], ..result("", 12.0, 5.0, 1.0) };
        assert_eq!((row.verdict, row.verdict_text().as_str()), (Verdict::Differs, "differs: decided by n"));
        let row = RowResult { unknowns: vec![effect(&[(11.5, 5.0, 1.0)])], ..row };
        assert_eq!(row.verdict_text(), "differs");
        assert!(row.decided_by().is_none());
    }

    #[test]
    fn a_row_with_fitted_parameters_is_not_reproduced() {
        let result = result("fitted=['the spindle']", 10.0, 5.0, 1.0);
        assert_eq!((result.verdict, result.why().as_str()), (Verdict::NotReproducible, "fitted: the spindle"));
    }

    #[test]
    fn a_missing_figure_is_named() {
        let error = RowResult::new(row(""), Measured::default().with("a", 1.0)).unwrap_err();
        assert_eq!(error.to_string(), "defect: the measurement of row T-1 lacks the figure `b`");
    }
}
