//! Pictures of measurements with confidence intervals: one row for each choice, or points of two
//! figures.

use std::fmt::Write;

use hoistway_units::figures::grouped_figure;

use crate::figures::round_ticks;
use crate::palette::{DARK_BACKGROUND, palette};
use crate::svg::{Space, escaped, head, text, tick_text};

/// Means with intervals, one row for each choice.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// The heading.
    pub title: String,
    /// The label of the axis, with its unit. The axis begins at 0.
    pub x: String,
    /// The rows from top to bottom.
    pub rows: Vec<Interval>,
    /// The position of a bound, if there is one.
    pub bound: Option<f64>,
}

/// The measurement of one choice.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The name of the choice.
    pub name: String,
    /// The mean.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// True for an emphasised row.
    pub is_marked: bool,
}

/// Points of two figures, and the line through the Pareto-optimal ones.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// The heading.
    pub title: String,
    /// The label of the x axis, with its unit.
    pub x: String,
    /// The label of the y axis, with its unit.
    pub y: String,
    /// The names of the kinds of points.
    pub kinds: Vec<String>,
    /// The points: x, y, and the index of the kind.
    pub points: Vec<(f64, f64, usize)>,
    /// The points of the Pareto front by x.
    pub front: Vec<(f64, f64)>,
    /// Emphasised points with their names.
    pub marked: Vec<(f64, f64, String)>,
}

/// All lengths are in px.
const TOP: f64 = 64.0;

/// Draws means as dots and intervals as lines. In a narrow picture the name of a row is above its
/// line.
pub fn intervals_drawing(of: &Intervals, space: Space) -> String {
    let row = space.pick(26.0, 40.0);
    let (left, length) = space.pick((304.0, 430.0), (16.0, 270.0));
    let height = TOP + row * of.rows.len() as f64 + 34.0;
    let mut svg = head(&of.title, space.width(), height, &style());
    text(&mut svg, "note x-title", 16.0, 48.0, &escaped(&of.x));
    let ends = of.rows.iter().flat_map(|row| [row.mean, row.high]).chain(of.bound);
    let most = ends.filter(|value| value.is_finite()).fold(0.0, f64::max) * 1.05;
    let at = |value: f64| left + if most > 0.0 { length * (value / most).clamp(0.0, 1.0) } else { 0.0 };
    let bottom = TOP + row * of.rows.len() as f64;
    for tick in round_ticks(0.0, most) {
        line(&mut svg, "grid", (at(tick), TOP - 4.0), (at(tick), bottom));
        text(&mut svg, "below", at(tick), bottom + 18.0, &tick_text(tick));
    }
    if let Some(bound) = of.bound.filter(|bound| bound.is_finite()) {
        line(&mut svg, "bound", (at(bound), TOP - 6.0), (at(bound), bottom + 4.0));
    }
    for (index, of) in of.rows.iter().enumerate() {
        let top = TOP + row * index as f64;
        let y = top + space.pick(row / 2.0, 28.0);
        let (class, x, above) = space.pick(("name", left - 14.0, y + 4.0), ("row", left, top + 14.0));
        let class = if of.is_marked { format!("{class} marked") } else { class.to_owned() };
        text(&mut svg, &class, x, above, &escaped(&of.name));
        if !of.mean.is_finite() {
            text(&mut svg, "figure", left, y + 4.0, "nothing was measured");
            continue;
        }
        if of.low.is_finite() && of.high.is_finite() {
            line(&mut svg, "spread", (at(of.low), y), (at(of.high), y));
        }
        let class = if of.is_marked { "dot marked" } else { "dot" };
        dot(&mut svg, class, (at(of.mean), y), 5.0);
        text(&mut svg, "figure", left + length + 14.0, y + 4.0, &grouped_figure(of.mean));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The smallest and the largest of the values with a margin.
fn with_margin(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let margin = ((high - low) * 0.05).max(high.abs() * 0.01).max(f64::MIN_POSITIVE);
    if low.is_finite() { ((low - margin).max(0.0), high + margin) } else { (0.0, 1.0) }
}

/// Draws the points, the Pareto front and the emphasised points. A narrow picture has the names
/// below the plot.
pub fn scatter_drawing(of: &Scatter, space: Space) -> String {
    let names = of.kinds.len() + of.marked.len();
    let area: [f64; 4] = space.pick([70.0, 68.0, 640.0, 348.0], [64.0, 68.0, 344.0, 288.0]);
    let height = area[3] + 52.0 + space.pick(0.0, 20.0 * names as f64);
    let is_finite = |x: f64, y: f64| x.is_finite() && y.is_finite();
    let all = || of.points.iter().map(|(x, y, _)| (*x, *y)).chain(of.front.iter().copied());
    let finite = || all().filter(|(x, y)| is_finite(*x, *y));
    let ((x_low, x_high), (y_low, y_high)) = (with_margin(finite().map(|p| p.0)), with_margin(finite().map(|p| p.1)));
    let x_of = |x: f64| area[0] + (area[2] - area[0]) * (x - x_low) / (x_high - x_low);
    let y_of = |y: f64| area[3] - (area[3] - area[1]) * (y - y_low) / (y_high - y_low);
    let mut svg = head(&of.title, space.width(), height, &style());
    text(&mut svg, "note y-title", 16.0, 50.0, &escaped(&of.y));
    text(&mut svg, "below x-title", (area[0] + area[2]) / 2.0, area[3] + 40.0, &escaped(&of.x));
    for tick in round_ticks(y_low, y_high) {
        line(&mut svg, "grid", (area[0], y_of(tick)), (area[2], y_of(tick)));
        text(&mut svg, "left", area[0] - 8.0, y_of(tick) + 4.0, &tick_text(tick));
    }
    for tick in round_ticks(x_low, x_high) {
        line(&mut svg, "grid", (x_of(tick), area[1]), (x_of(tick), area[3]));
        text(&mut svg, "below", x_of(tick), area[3] + 18.0, &tick_text(tick));
    }
    let front: Vec<String> = of.front.iter().map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y))).collect();
    let _ = writeln!(svg, "<polyline class=\"front\" points=\"{}\"/>", front.join(" "));
    for (x, y, kind) in of.points.iter().filter(|(x, y, _)| is_finite(*x, *y)) {
        dot(&mut svg, &format!("c{kind}"), (x_of(*x), y_of(*y)), 3.5);
    }
    // The names follow one another: first the kinds, then the emphasised points.
    let (x, y) = space.pick((area[2] + 20.0, area[1] + 8.0), (22.0, area[3] + 62.0));
    let mut places = (0..names).map(|index| y + 20.0 * index as f64);
    for (index, (kind, y)) in of.kinds.iter().zip(&mut places).enumerate() {
        dot(&mut svg, &format!("c{index}"), (x, y), 5.0);
        text(&mut svg, "key", x + 14.0, y + 4.0, &escaped(kind));
    }
    let marked = of.marked.iter().filter(|(x, y, _)| is_finite(*x, *y));
    for (index, ((at_x, at_y, name), y)) in marked.zip(places).enumerate() {
        let (at_x, at_y) = (x_of(*at_x), y_of(*at_y));
        dot(&mut svg, "ring", (at_x, at_y), 7.0);
        // The number is within the plot at its right edge, too.
        let right = at_x + 10.0 < area[2] - 8.0;
        text(
            &mut svg,
            if right { "mark" } else { "mark end" },
            at_x + if right { 10.0 } else { -10.0 },
            at_y - 8.0,
            &(index + 1).to_string(),
        );
        text(&mut svg, "key", x - 4.0, y + 4.0, &escaped(&format!("{} {name}", index + 1)));
    }
    let colours = palette(of.kinds.len().max(1));
    let fill = |pick: fn(&crate::palette::Pair) -> &String| {
        colours
            .iter()
            .enumerate()
            .map(|(i, pair)| format!(".c{i}{{fill:{};fill-opacity:.75}} ", pick(pair)))
            .collect::<String>()
    };
    let (light, dark) = (fill(|pair| &pair.light), fill(|pair| &pair.dark));
    let _ = writeln!(svg, "<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>\n</svg>");
    svg
}

fn dot(svg: &mut String, class: &str, (x, y): (f64, f64), radius: f64) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>");
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(svg, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
}

fn style() -> String {
    let bar = palette(1).swap_remove(0);
    let colours = |page: &str, ink: &str, faint: &str, grid: &str, bar: &str| {
        format!(
            ".page{{fill:{page}}} text{{fill:{ink}}} .note,.left,.below{{fill:{faint}}} .grid{{stroke:{grid}}} .dot{{fill:{faint}}} \
             .dot.marked{{fill:{bar}}} .spread{{stroke:{faint}}} .bound,.front,.ring{{stroke:{ink}}}\n"
        )
    };
    let light = colours("#ffffff", "#1b1f27", "#59606c", "#dfe4ec", &bar.light);
    let dark = colours(DARK_BACKGROUND, "#e6e8ec", "#a3a9b4", "#323945", &bar.dark);
    format!(
        "text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}} .title{{font-size:16px;font-weight:600}} .marked{{font-weight:700}} \
         .name,.left,.end{{text-anchor:end}} .below{{text-anchor:middle}} .figure,.note,.left,.below,.mark{{font-size:12px;font-variant-numeric:tabular-nums}} \
         .spread{{stroke-width:2}} .bound{{stroke-width:1.5;stroke-dasharray:5 4}} .front{{fill:none;stroke-width:1.2}} .ring{{fill:none;stroke-width:1.6}}\n\
         {light}@media (prefers-color-scheme:dark){{{dark}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_between_the_ends_of_its_interval() {
        let row = Interval { name: "a < b".into(), mean: 5.0, low: 4.0, high: 10.0, is_marked: true };
        let svg =
            intervals_drawing(&Intervals { title: "t".into(), rows: vec![row], ..Intervals::default() }, Space::Wide);
        // The axis ends at 10.5, on 430 px from 304 on.
        assert!(svg.contains("<circle class=\"dot marked\" cx=\"508.8\""), "{svg}");
        assert!(svg.contains("<line class=\"spread\" x1=\"467.8\"") && svg.contains("x2=\"713.5\""), "{svg}");
        assert!(svg.contains("a &lt; b"));
    }

    #[test]
    fn values_that_are_not_numbers_are_not_drawn() {
        let row = Interval { name: "n".into(), mean: f64::INFINITY, low: f64::NAN, high: f64::NAN, is_marked: false };
        let svg = intervals_drawing(
            &Intervals { rows: vec![row], bound: Some(f64::NAN), ..Intervals::default() },
            Space::Narrow,
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("nothing was measured"), "{svg}");
        let nothing = Scatter { points: vec![(f64::NAN, 1.0, 0)], kinds: vec!["k".into()], ..Scatter::default() };
        let svg = scatter_drawing(&nothing, Space::Narrow);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn points_are_within_the_axes_and_the_front_connects_its_points() {
        let of = Scatter {
            points: vec![(1.0, 10.0, 0), (3.0, 30.0, 0)],
            front: vec![(1.0, 10.0)],
            kinds: vec!["k".into()],
            marked: vec![(3.0, 30.0, "best".into())],
            ..Scatter::default()
        };
        let svg = scatter_drawing(&of, Space::Wide);
        // x from 0.9 to 3.1, y from 9 to 31.
        assert!(svg.contains("<circle class=\"c0\" cx=\"95.9\" cy=\"335.3\" r=\"3.5\"/>"), "{svg}");
        assert!(svg.contains("points=\"95.9,335.3\"") && svg.contains("1 best"), "{svg}");
    }
}
