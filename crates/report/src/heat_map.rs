//! Heat maps: a figure over two variables, a cell for each pair of their values.

use std::fmt::Write;

use hoistway_units::figures::grouped_figure;

use crate::palette::{DARK_BACKGROUND, palette};
use crate::svg::{Space, escaped, head, text};

/// A figure over two variables.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// The heading: the figure.
    pub title: String,
    /// The unit of the figure, and which direction is better; may be empty.
    pub note: String,
    /// The variable of the columns.
    pub x: String,
    /// The variable of the rows.
    pub y: String,
    /// The values of the columns from left to right.
    pub columns: Vec<String>,
    /// The values of the rows from top to bottom.
    pub rows: Vec<String>,
    /// The figures, row after row; not finite where there is none.
    pub cells: Vec<f64>,
}

/// All lengths are in px. The widest letter of a label, and the size of a row.
const LETTER: f64 = 7.4;
const ROW: f64 = 28.0;
const TOP: f64 = 64.0;
/// The greatest width of a cell, and the least one with a figure in it.
const CELL_MAX: f64 = 160.0;
const CELL_WITH_FIGURE: f64 = 46.0;
/// The minimum distance of the numbers of columns.
const NUMBERS_APART: f64 = 22.0;
/// Ratio of the greatest figure to the least from which on colours follow the logarithm.
const LOGARITHMIC_FROM: f64 = 20.0;
/// The opacity of the least and of the greatest figure. Text on the strongest colour has a contrast
/// of more than 4.5:1 in both themes.
const OPACITY: (f64, f64) = (0.06, 0.54);
/// Number of colours in the key.
const KEY_CELLS: usize = 5;

/// The positions of cells and labels.
struct Layout {
    left: f64,
    cell: f64,
    /// True if columns have numbers that a list below the picture explains.
    is_numbered: bool,
    /// Letters of a row's label.
    letters: usize,
    bottom: f64,
}

impl Layout {
    fn of(map: &HeatMap, space: Space) -> Layout {
        let longest = |labels: &[String]| labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64;
        let left = (longest(&map.rows) * LETTER + 28.0).clamp(60.0, space.pick(260.0, 132.0));
        let cell = ((space.width() - left - 16.0) / map.columns.len().max(1) as f64).min(CELL_MAX);
        Layout {
            left,
            cell,
            is_numbered: longest(&map.columns) * LETTER + 8.0 > cell,
            letters: ((left - 28.0) / LETTER) as usize + 1,
            bottom: TOP + ROW * map.rows.len() as f64,
        }
    }
}

/// Draws the cells with their figures, where there is room for them, and the key of the colours. If
/// the names of the columns are too long, the columns have numbers, which a list explains.
pub fn heat_map_drawing(map: &HeatMap, space: Space) -> String {
    let layout = Layout::of(map, space);
    let names = if layout.is_numbered { explained(&map.columns, space) } else { Vec::new() };
    let key = layout.bottom + 66.0 + 20.0 * names.len() as f64;
    let mut svg = head(&map.title, space.width(), key + 46.0, &style());
    text(&mut svg, "note y-title", 16.0, 50.0, &escaped(&map.y));
    draw_cells(&mut svg, map, &layout);
    for (index, name) in map.rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5) + 4.0;
        text(&mut svg, "left", layout.left - 8.0, y, &escaped(&shortened(name, layout.letters)));
    }
    let stride = (NUMBERS_APART / layout.cell).ceil().max(1.0) as usize;
    for (index, name) in map.columns.iter().enumerate() {
        let x = layout.left + layout.cell * (index as f64 + 0.5);
        match layout.is_numbered {
            false => text(&mut svg, "below", x, layout.bottom + 18.0, &escaped(name)),
            true if index % stride == 0 => {
                text(&mut svg, "below", x, layout.bottom + 18.0, &(index + 1).to_string());
            }
            true => {}
        }
    }
    let middle = layout.left + layout.cell * map.columns.len() as f64 / 2.0;
    // A long title stays within the picture.
    let half = map.x.chars().count() as f64 * LETTER / 2.0 + 8.0;
    let middle = middle.min(space.width() - half).max(half);
    text(&mut svg, "below x-title", middle, layout.bottom + 40.0, &escaped(&map.x));
    for (index, line) in names.iter().enumerate() {
        text(&mut svg, "note", 16.0, layout.bottom + 62.0 + 20.0 * index as f64, &escaped(line));
    }
    draw_key(&mut svg, map, key);
    text(&mut svg, "note", 16.0, key + 34.0, &escaped(&map.note));
    svg.push_str("</svg>\n");
    svg
}

fn draw_cells(svg: &mut String, map: &HeatMap, layout: &Layout) {
    let scale = Scale::of(&map.cells);
    let figures: Vec<String> = map.cells.iter().map(|value| grouped_figure(*value)).collect();
    let longest = figures.iter().map(String::len).max().unwrap_or(0) as f64;
    let has_figures = layout.cell >= CELL_WITH_FIGURE.max(longest * LETTER + 2.0);
    for (index, (value, figure)) in map.cells.iter().zip(figures).enumerate() {
        let columns = map.columns.len().max(1);
        let x = layout.left + layout.cell * (index % columns) as f64;
        let y = TOP + ROW * (index / columns) as f64;
        if value.is_finite() {
            cell(svg, (x, y), (layout.cell - 1.5, ROW - 1.5), scale.part(*value));
        }
        if has_figures {
            text(svg, "in", x + layout.cell / 2.0, y + ROW / 2.0 + 4.0, &figure);
        }
    }
}

/// The key: the colours between the least and the greatest figure.
fn draw_key(svg: &mut String, map: &HeatMap, y: f64) {
    let scale = Scale::of(&map.cells);
    let Some((low, high)) = scale.ends else { return };
    text(svg, "left", 60.0, y + 12.0, &grouped_figure(low));
    for index in 0..KEY_CELLS {
        let part = index as f64 / (KEY_CELLS - 1) as f64;
        cell(svg, (68.0 + 22.0 * index as f64, y), (20.5, 16.0), part);
    }
    let end = 68.0 + 22.0 * KEY_CELLS as f64 + 6.0;
    let form = if scale.is_logarithmic { " (logarithmic)" } else { "" };
    text(svg, "note", end, y + 12.0, &format!("{}{form}", grouped_figure(high)));
}

fn cell(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), part: f64) {
    let opacity = OPACITY.0 + (OPACITY.1 - OPACITY.0) * part;
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill-opacity=\"{opacity:.3}\"/>"
    );
}

/// The scale of the colours.
struct Scale {
    /// The smallest and the largest figure.
    ends: Option<(f64, f64)>,
    is_logarithmic: bool,
}

impl Scale {
    fn of(cells: &[f64]) -> Scale {
        let finite = cells.iter().copied().filter(|value| value.is_finite());
        let ends = finite.fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        Scale { ends, is_logarithmic: ends.is_some_and(|(low, high)| low > 0.0 && high / low >= LOGARITHMIC_FROM) }
    }

    /// The position of a value between the ends, 0 to 1; the middle if all values are equal.
    fn part(&self, value: f64) -> f64 {
        let (low, high) = self.ends.unwrap_or_default();
        if low >= high {
            return 0.5;
        }
        let part = match self.is_logarithmic {
            true => (value / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        };
        part.clamp(0.0, 1.0)
    }
}

/// The numbers of the columns with their names, as many on a line as there is room for.
fn explained(columns: &[String], space: Space) -> Vec<String> {
    let letters = ((space.width() - 32.0) / LETTER) as usize;
    let mut lines: Vec<String> = Vec::new();
    for (index, name) in columns.iter().enumerate() {
        let item = shortened(&format!("{} {name}", index + 1), letters);
        match lines.last_mut().filter(|line| line.chars().count() + item.chars().count() + 3 <= letters) {
            Some(line) => {
                line.push_str(" · ");
                line.push_str(&item);
            }
            None => lines.push(item),
        }
    }
    lines
}

/// The text with at most this many letters; an ellipsis stands for its middle.
fn shortened(text: &str, letters: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= letters || letters < 3 {
        return text.to_owned();
    }
    let end = (letters - 1) / 2;
    let begin = letters - 1 - end;
    all[..begin].iter().chain(&['…']).chain(&all[all.len() - end..]).collect()
}

fn style() -> String {
    let colour = palette(1).swap_remove(0);
    let colours = |page: &str, ink: &str, faint: &str, cell: &str| {
        format!(".page{{fill:{page}}} text{{fill:{ink}}} .note,.below,.left{{fill:{faint}}} .cell{{fill:{cell}}}\n")
    };
    let light = colours("#ffffff", "#1b1f27", "#59606c", &colour.light);
    let dark = colours(DARK_BACKGROUND, "#e6e8ec", "#a3a9b4", &colour.dark);
    format!(
        "text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}} .title{{font-size:16px;font-weight:600}} \
         .left{{text-anchor:end}} .below,.in{{text-anchor:middle}} .in,.note,.left,.below{{font-size:12px;font-variant-numeric:tabular-nums}}\n\
         {light}@media (prefers-color-scheme:dark){{{dark}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(columns: &[&str], cells: &[f64]) -> HeatMap {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        HeatMap {
            title: "rate".into(),
            note: "MB/s".into(),
            x: "depth".into(),
            y: "elevator".into(),
            columns: owned(columns),
            rows: owned(&["bfq", "<cfq>"]),
            cells: cells.to_vec(),
        }
    }

    #[test]
    fn a_cell_without_a_figure_has_a_dash_and_no_colour() {
        let svg = heat_map_drawing(&map(&["1", "8"], &[1.0, 2.0, f64::NAN, 3.0]), Space::Wide);
        assert_eq!(svg.matches("class=\"cell\"").count(), 3 + KEY_CELLS);
        assert!(svg.contains(">-</text>") && svg.contains(">3.00</text>") && svg.contains("&lt;cfq&gt;"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn long_names_of_columns_become_numbers_with_a_list() {
        let columns: Vec<String> = (0..12).map(|index| format!("mq-deadline-{index}")).collect();
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let svg = heat_map_drawing(&map(&names, &[1.0; 24]), Space::Narrow);
        assert!(svg.contains(">1 mq-deadline-0 · 2 mq-deadline-1</text>"), "{svg}");
        assert!(svg.contains("10 mq-deadline-9") && !svg.contains(">mq-deadline-0</text>"), "{svg}");
    }

    #[test]
    fn figures_over_a_wide_range_have_logarithmic_colours() {
        let scale = Scale::of(&[1.0, 100.0, f64::INFINITY]);
        assert!(scale.is_logarithmic && (scale.part(10.0) - 0.5).abs() < 1e-9);
        let scale = Scale::of(&[1.0, 3.0]);
        assert_eq!((scale.is_logarithmic, scale.part(2.0)), (false, 0.5));
        assert_eq!(Scale::of(&[7.0]).part(7.0), 0.5);
    }

    #[test]
    fn the_middle_of_a_long_name_is_left_out() {
        assert_eq!(shortened("sata-7200-2006", 9), "sata…2006");
        assert_eq!(shortened("bfq", 9), "bfq");
    }
}
