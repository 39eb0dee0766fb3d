//! The figures of a row as text for a table.

use crate::verdict::RowResult;

/// The maximum number of figures of a row in a table.
const FIGURES_MAX: usize = 4;

impl RowResult {
    /// The published figures with their unit, as in "94.9 / 91.2 / 31 %"; bounds for values without
    /// a published figure.
    pub fn published_text(&self) -> String {
        let figures = self.values.iter().map(|checked| match checked.expected.published {
            Some(published) => plain(published),
            None if checked.expected.bounds().is_none() => "-".to_owned(),
            None => checked.expected.tolerance(),
        });
        self.joined(figures.collect())
    }

    /// The measured figures with their unit, in the form of [`RowResult::published_text`].
    pub fn measured_text(&self) -> String {
        // An exact figure is printed with the digits of the publication.
        let figures = self.values.iter().map(|checked| match checked.expected.published {
            Some(published) if published == checked.measured => plain(published),
            _ => rounded(checked.measured),
        });
        self.joined(figures.collect())
    }

    /// The tolerances, separated by slashes; one if all are equal.
    pub fn tolerance_text(&self) -> String {
        let published = self.values.iter().filter(|checked| checked.expected.published.is_some());
        let mut tolerances: Vec<String> = published.map(|checked| checked.expected.tolerance()).collect();
        if tolerances.windows(2).all(|pair| pair[0] == pair[1]) {
            tolerances.truncate(1);
        }
        shorten(&mut tolerances);
        if !self.orders.is_empty() {
            tolerances.push("order".to_owned());
        }
        tolerances.join(" / ")
    }

    /// Joins the first figures; a unit that all of them share follows the last one.
    fn joined(&self, mut figures: Vec<String>) -> String {
        shorten(&mut figures);
        let mut units = self.values.iter().map(|checked| checked.expected.unit.as_str());
        let first = units.next().unwrap_or_default();
        if units.all(|unit| unit == first) {
            return format!("{} {first}", figures.join(" / ")).trim().to_owned();
        }
        let with_unit = |(index, figure): (usize, &String)| {
            let unit = self.values.get(index).map_or("", |checked| checked.expected.unit.as_str());
            if figure.ends_with(" more") { figure.clone() } else { format!("{figure} {unit}").trim().to_owned() }
        };
        figures.iter().enumerate().map(with_unit).collect::<Vec<_>>().join(" / ")
    }
}

/// Keeps the first texts and counts the others in a last one.
fn shorten(texts: &mut Vec<String>) {
    if texts.len() > FIGURES_MAX {
        let more = texts.len() - FIGURES_MAX + 1;
        texts.truncate(FIGURES_MAX - 1);
        texts.push(format!("{more} more"));
    }
}

/// Formats a published figure as printed, without added digits.
pub fn plain(figure: f64) -> String {
    format!("{figure}")
}

/// Formats a figure with four significant digits, for comparison with figures of three; `-` for a
/// figure that is not finite.
pub fn rounded(figure: f64) -> String {
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
    use super::rounded;

    #[test]
    fn figures_have_four_significant_digits() {
        assert_eq!(
            [0.0, 0.5441, 1.0254, 17.834, 746.04, 2428.03].map(rounded),
            ["0", "0.544", "1.025", "17.83", "746.0", "2428"]
        );
    }
}
