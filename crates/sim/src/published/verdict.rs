//! Compares measured figures with published ones.

use super::error::PublishedError;
use super::expectation::{Order, Reason, Row, RowKind, Value};

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
    /// Its name.
    pub name: String,
    /// Its points, x rising.
    pub points: Vec<(f64, f64)>,
    /// True for a published line, which is drawn dashed.
    pub published: bool,
}

impl Measured {
    /// Adds a figure: a value or a reason of the row, by name.
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

    /// Sets the plot; without one, the values are drawn.
    #[must_use]
    pub fn drawn(self, plot: Option<Plot>) -> Measured {
        Measured { plot, ..self }
    }

    fn figure(&self, row: &Row, name: &str) -> Result<f64, PublishedError> {
        let found = self.figures.iter().find(|(known, _)| known == name);
        let lacks = || PublishedError::NoFigure { id: row.id.clone(), name: name.to_owned() };
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
    /// The values, in the row's order.
    pub values: Vec<Checked<&'static Value>>,
    /// The orders.
    pub orders: Vec<Checked<&'static Order>>,
    /// The reasons.
    pub reasons: Vec<Checked<&'static Reason>>,
    /// The verdict.
    pub verdict: Verdict,
    /// The figures, orders and reasons that differ; empty if none does.
    pub out: String,
    /// The plot of the measurement.
    pub plot: Option<Plot>,
}

/// An expectation with its measured figure.
#[derive(Clone, Copy, Debug)]
pub struct Checked<T> {
    /// The expectation.
    pub expected: T,
    /// The measured figure; for an order, the least relative difference between neighbours.
    pub ours: f64,
    /// True if the figure is as expected.
    pub right: bool,
}

impl RowResult {
    /// Compares the figures of a measurement with the row.
    ///
    /// # Errors
    /// [`PublishedError::NoFigure`] if the measurement lacks a figure.
    pub fn judge(row: &'static Row, measured: Measured) -> Result<RowResult, PublishedError> {
        let value = |value: &'static Value| {
            let ours = measured.figure(row, &value.name)?;
            let right = value.bounds().is_none_or(|(low, high)| {
                // Sums such as 0.1 + 0.2 count as exact.
                let slack = 1e-9 * ours.abs();
                (low - slack..=high + slack).contains(&ours)
            });
            Ok(Checked { expected: value, ours, right })
        };
        let order = |order: &'static Order| {
            let figures: Result<Vec<f64>, _> = order.falls.iter().map(|name| measured.figure(row, name)).collect();
            let figures = figures?;
            // NaN is in no order; `min` alone would overlook it.
            let right = figures.windows(2).all(|pair| pair[0] > pair[1]);
            let margin = figures.windows(2).map(|pair| pair[0] / pair[1] - 1.0).fold(f64::INFINITY, f64::min);
            Ok(Checked { expected: order, ours: margin, right })
        };
        let reason = |reason: &'static Reason| {
            let ours = measured.figure(row, &reason.name)?;
            Ok(Checked { expected: reason, ours, right: reason.holds(ours) })
        };
        let values = row.values.iter().map(value).collect::<Result<Vec<_>, PublishedError>>()?;
        let orders = row.orders.iter().map(order).collect::<Result<Vec<_>, PublishedError>>()?;
        let reasons = row.reasons.iter().map(reason).collect::<Result<Vec<_>, PublishedError>>()?;
        let out = out(&values, &orders, &reasons);
        let verdict = match row.kind {
            RowKind::Input => Verdict::Input,
            RowKind::Missing => Verdict::NotReproducible,
            _ if !row.fitted.is_empty() => Verdict::NotReproducible,
            _ if out.is_empty() => Verdict::Reproduced,
            _ => Verdict::Differs,
        };
        Ok(RowResult { row, values, orders, reasons, verdict, out, plot: measured.plot })
    }

    /// Reason why the verdict is not "reproduced": what differs, what was fitted, what is missing.
    pub fn why(&self) -> String {
        let fitted = match self.row.fitted.as_slice() {
            [] => String::new(),
            fitted => format!("fitted: {}", fitted.join(", ")),
        };
        let missing = if self.verdict == Verdict::Reproduced { "" } else { self.row.missing.trim() };
        let parts = [self.out.as_str(), fitted.as_str(), missing];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// Lists what differs, separated by commas.
fn out(values: &[Checked<&Value>], orders: &[Checked<&Order>], reasons: &[Checked<&Reason>]) -> String {
    let values = values.iter().filter(|found| !found.right).map(|found| found.expected.name.clone());
    let orders = orders.iter().filter(|found| !found.right);
    let orders = orders.map(|found| format!("the order {}", found.expected.falls.join(" > ")));
    let reasons = reasons.iter().filter(|found| !found.right);
    let reasons = reasons.map(|found| format!("{} (the reason)", found.expected.name));
    let all: Vec<String> = values.chain(orders).chain(reasons).collect();
    if all.is_empty() { String::new() } else { format!("out: {}", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::expectation::Publication;

    /// A row with a number, an order and a reason.
    fn row(more: &str) -> &'static Row {
        let text = format!(
            "seed='T'\ntitle='t'\nabout='a'\n[[row]]\nid='T-1'\nkind='number'\nwhat='w'\n{more}\n\
             [[row.value]]\nname='a'\npublished=10.0\nwithin_percent=10\n[[row.value]]\nname='b'\npublished=5.0\nwithin=1.0\n\
             [[row.order]]\nfalls=['a','b']\n[[row.reason]]\nname='c'\nat_most=2.0\ntext='t'\n"
        );
        let read: Publication = toml::from_str(&text).expect("right");
        &Box::leak(Box::new(read)).rows[0]
    }

    fn judged(more: &str, a: f64, b: f64, c: f64) -> RowResult {
        let measured = Measured::default().with("a", a).with("b", b).with("c", c);
        RowResult::judge(row(more), measured).expect("all figures")
    }

    #[test]
    fn a_row_is_reproduced_when_figures_orders_and_reasons_are_right() {
        assert_eq!(judged("", 11.0, 4.0, 2.0).verdict, Verdict::Reproduced);
        for (a, b, c, out) in [
            (11.1, 4.0, 2.0, "out: a"),
            (9.0, 6.1, 2.0, "out: b"),
            (9.0, 5.0, 2.1, "out: c (the reason)"),
            (9.0, 9.5, 2.0, "out: b, the order a > b"),
            (9.0, f64::NAN, 2.0, "out: b, the order a > b"),
        ] {
            let outcome = judged("", a, b, c);
            assert_eq!((outcome.verdict, outcome.why().as_str()), (Verdict::Differs, out));
        }
    }

    #[test]
    fn a_fitted_row_is_not_reproduced_however_well_it_fits() {
        let outcome = judged("fitted=['the spindle']", 10.0, 5.0, 1.0);
        assert_eq!((outcome.verdict, outcome.why().as_str()), (Verdict::NotReproducible, "fitted: the spindle"));
    }

    #[test]
    fn a_figure_that_was_left_out_is_named() {
        let error = RowResult::judge(row(""), Measured::default().with("a", 1.0)).unwrap_err();
        assert_eq!(error.to_string(), "defect: the measure of row T-1 gives no `b`");
    }
}
