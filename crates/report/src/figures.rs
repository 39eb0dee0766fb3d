//! Pictures of results for documents: found against expected figures, and line charts, each as one
//! SVG file.
//!
//! The pictures have their own background and follow the light or dark theme of the reader.

use std::fmt::Write;

use hoistway_units::figures::grouped_figure;

use crate::palette::{DARK_BACKGROUND, palette};
use crate::svg::{Space, escaped, head, pushed_apart, text, tick_text};

/// Found figures against expected ones, each on its own scale.
#[derive(Clone, Debug, Default)]
pub struct Against {
    /// The heading.
    pub title: String,
    /// The figures from top to bottom.
    pub rows: Vec<AgainstRow>,
}

/// One figure.
#[derive(Clone, Debug, Default)]
pub struct AgainstRow {
    /// The name with its unit.
    pub name: String,
    /// The found value.
    pub found: f64,
    /// The expected value, if there is one.
    pub expected: Option<f64>,
    /// The lower bound; minus infinity for none.
    pub low: f64,
    /// The upper bound; infinity for none.
    pub high: f64,
}

/// A line chart.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The heading.
    pub title: String,
    /// The label of the x axis, with its unit.
    pub x: String,
    /// The label of the y axis, with its unit. The axis begins at 0.
    pub y: String,
    /// Labels of the x axis by position; evenly spaced numbers if empty.
    pub ticks: Vec<(f64, String)>,
    /// The lines.
    pub lines: Vec<LineOf>,
}

/// A line of a chart.
#[derive(Clone, Debug, Default)]
pub struct LineOf {
    /// The name of the line.
    pub name: String,
    /// The points by rising x.
    pub points: Vec<(f64, f64)>,
    /// True for a dashed line, which shows expected values.
    pub dashed: bool,
}

/// All lengths are in px.
const WIDTH: f64 = 860.0;
const ROW: f64 = 30.0;
const TOP: f64 = 66.0;
const NAMES_END: f64 = 300.0;
const LEFT: f64 = 312.0;
const LENGTH: f64 = 380.0;

/// Draws found figures against expected ones: the bar is the found value, the tick the expected
/// one, the band the tolerance.
pub fn against_svg(against: &Against) -> String {
    let height = TOP + ROW * against.rows.len() as f64 + 14.0;
    let mut svg = head(&against.title, WIDTH, height, &style());
    text(&mut svg, "note", LEFT, 50.0, "bar: simulated; tick: published; band: within the tolerance");
    for (index, row) in against.rows.iter().map(AgainstRow::above_zero).enumerate() {
        let (label, row) = row;
        let y = TOP + ROW * index as f64;
        let finite = [row.found, row.expected.unwrap_or(0.0), row.low, row.high];
        let most = finite.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max) * 1.1;
        let at = |value: f64| if most > 0.0 { LENGTH * (value / most).clamp(0.0, 1.0) } else { 0.0 };
        let (low, high) = (at(row.low.max(0.0)), at(if row.high.is_finite() { row.high } else { most }));
        let width = (high - low).max(2.0);
        text(&mut svg, "name", NAMES_END, y + 16.0, &escaped(&row.name));
        if row.low.is_finite() || row.high.is_finite() {
            let x = LEFT + low;
            rect(&mut svg, "band", x, y, width, 24.0);
        }
        if row.found.is_finite() {
            rect(&mut svg, "found", LEFT, y + 6.0, at(row.found), 12.0);
        }
        if let Some(expected) = row.expected {
            let x = LEFT + at(expected);
            line(&mut svg, "tick", (x, y), (x, y + 24.0));
        }
        text(&mut svg, "figure", LEFT + LENGTH + 10.0, y + 16.0, &label);
    }
    svg.push_str("</svg>\n");
    svg
}

impl AgainstRow {
    /// The label after the bar, and the row with magnitudes in place of negative figures.
    fn above_zero(&self) -> (String, AgainstRow) {
        let expected = self.expected.map_or_else(String::new, |value| format!(" ({})", grouped_figure(value)));
        let label = format!("{}{expected}", grouped_figure(self.found));
        if self.expected.is_none_or(|expected| expected >= 0.0) {
            return (label, self.clone());
        }
        let expected = self.expected.map(|value| -value);
        (label, AgainstRow { name: self.name.clone(), found: -self.found, expected, low: -self.high, high: -self.low })
    }
}

/// Draws a line chart with the name of each line at its end.
pub fn lines_svg(plot: &Lines) -> String {
    lines_drawing(plot, Space::Wide)
}

/// Distance of the names of lines in px.
const NAMES_APART: f64 = 18.0;

/// Draws a line chart. Lines with equal points are one line with all their names. Names are at the
/// ends of the lines, in a narrow picture below the plot.
pub fn lines_drawing(plot: &Lines, space: Space) -> String {
    let lines = merged(&plot.lines);
    let keys = space.pick(0.0, NAMES_APART * lines.len() as f64);
    let area: [f64; 4] = space.pick([72.0, 68.0, 640.0, 324.0], [64.0, 68.0, 344.0, 268.0]);
    let height = area[3] + 46.0 + keys;
    let points = || lines.iter().flat_map(|(_, line)| &line.points).filter(|(x, y)| x.is_finite() && y.is_finite());
    let (least, most) = points().fold((f64::INFINITY, 0.0f64), |(l, m), (x, _)| (l.min(*x), m.max(*x)));
    let top = nice(points().fold(0.0f64, |top, (_, y)| top.max(*y)));
    let x_of = |x: f64| area[0] + (area[2] - area[0]) * if most > least { (x - least) / (most - least) } else { 0.0 };
    let y_of = |y: f64| area[3] - (area[3] - area[1]) * (y / top).clamp(0.0, 1.0);
    let mut svg = head(&plot.title, space.width(), height, &style());
    text(&mut svg, "note y-title", 16.0, 50.0, &escaped(&plot.y));
    text(&mut svg, "below x-title", (area[0] + area[2]) / 2.0, area[3] + 36.0, &escaped(&plot.x));
    for tick in round_ticks(0.0, top) {
        line(&mut svg, "grid", (area[0], y_of(tick)), (area[2], y_of(tick)));
        text(&mut svg, "left", area[0] - 8.0, y_of(tick) + 4.0, &tick_text(tick));
    }
    let ticks: Vec<(f64, String)> = match plot.ticks.as_slice() {
        [] => round_ticks(least, most).into_iter().map(|x| (x, tick_text(x))).collect(),
        given => given.iter().filter(|(x, _)| (least..=most).contains(x)).cloned().collect(),
    };
    let mut free = 0.0;
    for (x, shown) in ticks {
        // The width of a letter is at most 7 px.
        let half = 3.5 * shown.chars().count() as f64;
        let at = x_of(x).min(space.width() - 8.0 - half);
        if at - half >= free {
            text(&mut svg, "below", at, area[3] + 18.0, &escaped(&shown));
            free = at + half + 6.0;
        }
    }
    let ends: Vec<f64> = lines.iter().map(|(_, line)| line.points.last().map_or(area[1], |(_, y)| y_of(*y))).collect();
    let ends = space.pick(
        pushed_apart(&ends, NAMES_APART, (area[1], area[3])),
        (0..lines.len()).map(|index| area[3] + 56.0 + NAMES_APART * index as f64).collect(),
    );
    for (index, (name, of)) in lines.iter().enumerate() {
        let class = if of.dashed { format!("line c{index} dashed") } else { format!("line c{index}") };
        let points: Vec<String> = of
            .points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y)))
            .collect();
        let _ = writeln!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
        let (x, y) = (space.pick(area[2] + 10.0, 16.0), ends[index]);
        line(&mut svg, &class, (x, y), (x + 20.0, y));
        text(&mut svg, "key", x + 26.0, y + 4.0, &escaped(name));
    }
    svg.push_str(&line_colours(lines.len()));
    svg
}

/// The lines without those whose points another line has; that line has all their names.
fn merged(lines: &[LineOf]) -> Vec<(String, &LineOf)> {
    let mut merged: Vec<(String, &LineOf)> = Vec::new();
    for line in lines {
        match merged.iter_mut().find(|(_, other)| other.points == line.points) {
            Some((name, _)) => *name = format!("{name}, {}", line.name),
            None => merged.push((line.name.clone(), line)),
        }
    }
    merged
}

/// The end of a picture with the colours of its lines.
fn line_colours(lines: usize) -> String {
    let colours = palette(lines.max(1));
    let of = |pick: fn(&crate::palette::Pair) -> &String| {
        colours.iter().enumerate().map(|(i, pair)| format!(".c{i}{{stroke:{}}} ", pick(pair))).collect::<String>()
    };
    let (light, dark) = (of(|pair| &pair.light), of(|pair| &pair.dark));
    format!("<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>\n</svg>\n")
}

/// Three to eight ticks from `least` to `most`: multiples of 1, 2 or 5 times a power of ten.
pub(crate) fn round_ticks(least: f64, most: f64) -> Vec<f64> {
    if !(least.is_finite() && most > least) {
        return Vec::new();
    }
    let exponent = ((most - least) / 8.0).log10().ceil();
    let fits = |step: f64| (most / step).floor() - (least / step).ceil() >= 2.0;
    let step = |exponent: f64, of: f64| of * 10f64.powi(exponent as i32);
    let steps = [
        step(exponent, 5.0),
        step(exponent, 2.0),
        step(exponent, 1.0),
        step(exponent - 1.0, 5.0),
        step(exponent - 1.0, 2.0),
    ];
    let step = steps.into_iter().find(|step| fits(*step)).unwrap_or(step(exponent - 1.0, 1.0));
    let count = (most / step).floor() - (least / step).ceil();
    // Rounded to the digits of the step: 0.1 three times is 0.3.
    let digits = 10f64.powi((2.0 - step.log10().floor()).clamp(0.0, 15.0) as i32);
    (0..=count as u32)
        .map(|index| (((least / step).ceil() + f64::from(index)) * step * digits).round() / digits)
        .collect()
}

/// The end of an axis: the next of 1, 2, 5 x 10^n (with 1.5, 3, 4, 6, 8 between).
fn nice(most: f64) -> f64 {
    if !(most.is_finite() && most > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(most.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|end| *end >= most).unwrap_or(10.0 * power)
}

fn rect(svg: &mut String, class: &str, x: f64, y: f64, width: f64, height: f64) {
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" rx=\"2\"/>"
    );
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(svg, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
}

fn style() -> String {
    let bar = palette(1).swap_remove(0);
    let colours = |page: &str, ink: &str, faint: &str, band: &str, bar: &str| {
        format!(
            ".page{{fill:{page}}} text{{fill:{ink}}} .note,.left,.below{{fill:{faint}}} .band{{fill:{band}}} .found{{fill:{bar}}} \
             .tick{{stroke:{ink}}} .grid{{stroke:{band}}}\n"
        )
    };
    let light = colours("#ffffff", "#1b1f27", "#59606c", "#dfe4ec", &bar.light);
    let dark = colours(DARK_BACKGROUND, "#e6e8ec", "#a3a9b4", "#323945", &bar.dark);
    format!(
        "text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}} .title{{font-size:16px;font-weight:600}} \
         .name,.left{{text-anchor:end}} .below{{text-anchor:middle}} .figure,.note,.left,.below{{font-size:12px;font-variant-numeric:tabular-nums}} \
         .tick{{stroke-width:2}} .line{{fill:none;stroke-width:1.8}} .dashed{{stroke-dasharray:5 4}}\n{light}@media (prefers-color-scheme:dark){{{dark}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_below_expectation_ends_before_its_tick() {
        let row = AgainstRow { name: "a".into(), found: 5.0, expected: Some(10.0), low: 9.0, high: 11.0 };
        let svg = against_svg(&Against { title: "t".into(), rows: vec![row] });
        // The scale ends 10 % beyond the largest value: 12.1 on 380 px.
        assert!(svg.contains("<rect class=\"found\" x=\"312.0\" y=\"72.0\" width=\"157.0\""), "{svg}");
        assert!(svg.contains("<line class=\"tick\" x1=\"626.0\""), "{svg}");
    }

    #[test]
    fn negative_values_are_drawn_by_magnitude_with_their_figure() {
        let row = AgainstRow { name: "a".into(), found: -5.0, expected: Some(-10.0), low: -11.0, high: -9.0 };
        let svg = against_svg(&Against { title: "t".into(), rows: vec![row] });
        assert!(svg.contains("width=\"157.0\"") && svg.contains("-5.00 (-10.0)"), "{svg}");
    }

    #[test]
    fn values_that_are_not_numbers_are_not_drawn() {
        let row = AgainstRow {
            name: "<x>".into(),
            found: f64::NAN,
            expected: None,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        let svg = against_svg(&Against { title: "a < b".into(), rows: vec![row] });
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("&lt;x&gt;"), "{svg}");
        let line = LineOf { name: "n".into(), points: vec![(0.0, f64::NAN), (1.0, 2.0)], dashed: true };
        let svg = lines_svg(&Lines { lines: vec![line], ..Lines::default() });
        assert!(!svg.contains("NaN") && svg.contains("dashed"), "{svg}");
    }

    #[test]
    fn equal_lines_are_one_line_with_both_names() {
        let line = |name: &str| LineOf { name: name.into(), points: vec![(0.0, 1.0), (1.0, 2.0)], dashed: false };
        for space in [Space::Wide, Space::Narrow] {
            let svg = lines_drawing(&Lines { lines: vec![line("a"), line("b")], ..Lines::default() }, space);
            assert!(svg.matches("<polyline").count() == 1 && svg.contains(">a, b</text>"), "{svg}");
        }
    }

    #[test]
    fn axes_end_at_round_figures() {
        assert_eq!([0.0, 0.7, 1.2, 9.5, 63.0, 250.0].map(nice), [1.0, 0.8, 1.5, 10.0, 80.0, 300.0]);
    }

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(round_ticks(0.0, 7.0), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(round_ticks(0.501, 17.9), [5.0, 10.0, 15.0]);
        assert_eq!(round_ticks(24.0, 96.0), [40.0, 60.0, 80.0]);
        assert_eq!(round_ticks(0.1, 0.45), [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(round_ticks(3.0, 3.0), [0.0; 0]);
    }
}
