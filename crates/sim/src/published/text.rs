//! A row's figures as a table shows them.

use super::verdict::RowResult;

/// Figures of a row that a table shows at most.
const FIGURES_MAX: usize = 4;

impl RowResult {
    /// The published figures with their unit: "94.9 / 91.2 / 31 %"; bounds where there are no
    /// figures.
    pub fn published_text(&self) -> String {
        let figures = self.values.iter().map(|checked| match checked.expected.published {
            Some(published) => plain(published),
            None if checked.expected.bounds().is_none() => "-".to_owned(),
            None => checked.expected.tolerance(),
        });
        self.joined(figures.collect())
    }

    /// The measured figures with their unit, in the form of [`RowResult::published_text`].
    pub fn ours_text(&self) -> String {
        // A figure that has to be exact is printed with the digits of the publication.
        let figures = self.values.iter().map(|checked| match checked.expected.published {
            Some(published) if published == checked.ours => plain(published),
            _ => rounded(checked.ours),
        });
        self.joined(figures.collect())
    }

    /// The tolerances; one if all are alike.
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

/// Keeps the first texts and says how many more there are.
fn shorten(texts: &mut Vec<String>) {
    if texts.len() > FIGURES_MAX {
        let more = texts.len() - FIGURES_MAX + 1;
        texts.truncate(FIGURES_MAX - 1);
        texts.push(format!("{more} more"));
    }
}

/// A published figure as it was printed, without added digits.
pub fn plain(figure: f64) -> String {
    format!("{figure}")
}

/// A figure with four significant digits, for comparison with figures of three.
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
