//! The footprint of a disk's head: position over time, one panel for each variant of the same work.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::figures::round_ticks;
use crate::palette::{DARK_BACKGROUND, palette};
use crate::svg::{Space, escaped, head, text, tick_text};

/// The footprints of several variants.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// The heading.
    pub title: String,
    /// The label of the x axis, with its unit. The axis begins at 0.
    pub x: String,
    /// The label of the y axis, with its unit.
    pub y: String,
    /// The panels from top to bottom.
    pub panels: Vec<FootprintPanel>,
}

/// The footprint of one variant.
#[derive(Clone, Debug, Default)]
pub struct FootprintPanel {
    /// The name of the variant.
    pub name: String,
    /// The result in a few words.
    pub note: String,
    /// Positions of the head as (x, y). Points that coincide in the picture are drawn once.
    pub points: Vec<(f64, f64)>,
}

/// All lengths are in px.
const TOP: f64 = 62.0;
const PANEL: f64 = 112.0;
const GAP: f64 = 14.0;
/// Distance of the outermost points from the edges of a panel.
const MARGIN: f64 = 4.0;
/// The minimum distance of two ticks.
const TICKS_APART: f64 = 16.0;
/// Points for each px.
const FINE: f64 = 2.0;

/// The lengths that depend on the space: the left and right edges of the panels, and the height of
/// the names above each.
struct Places {
    left: f64,
    right: f64,
    names: f64,
}

impl Places {
    fn of(space: Space) -> Places {
        space.pick(Places { left: 76.0, right: 640.0, names: 0.0 }, Places { left: 60.0, right: 344.0, names: 36.0 })
    }
}

/// Draws the panels with common axes, so that a shorter run is narrower and fewer seeks are
/// visible.
pub fn footprint_drawing(footprint: &Footprint, space: Space) -> String {
    let Places { left, right, names } = Places::of(space);
    let step = PANEL + GAP + names;
    let height = TOP + step * footprint.panels.len() as f64 + 34.0;
    let points = || {
        let all = footprint.panels.iter().flat_map(|panel| &panel.points);
        all.copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let longest = points().map(|(x, _)| x).fold(0.0, f64::max);
    let (low, high) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (_, y)| (l.min(y), h.max(y)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 0.0) };
    let mut svg = head(&footprint.title, space.width(), height, &style());
    text(&mut svg, "note y-title", 16.0, 48.0, &escaped(&footprint.y));
    let part = |value: f64, span: f64| if span > 0.0 { (value / span).clamp(0.0, 1.0) } else { 0.0 };
    let x_of = |x: f64| left + MARGIN + (right - left - 2.0 * MARGIN) * part(x, longest);
    let y_of = |y: f64, top: f64| top + MARGIN + (PANEL - 2.0 * MARGIN) * (1.0 - part(y - low, high - low));
    for (index, panel) in footprint.panels.iter().enumerate() {
        let top = TOP + step * index as f64 + names;
        let _ = writeln!(
            svg,
            "<rect class=\"area\" x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{PANEL}\"/>",
            right - left
        );
        for (y, shown) in position_ticks(low, high, |y| y_of(y, top)) {
            line(&mut svg, (left - 4.0, y), (left, y));
            text(&mut svg, "left", left - 8.0, y + 4.0, &shown);
        }
        let (name, note) = space
            .pick(((right + 18.0, top + 16.0), (right + 18.0, top + 36.0)), ((left, top - 22.0), (left, top - 6.0)));
        text(&mut svg, "key", name.0, name.1, &escaped(&panel.name));
        text(&mut svg, "note", note.0, note.1, &escaped(&panel.note));
        let at = |(x, y): (f64, f64)| ((x_of(x) * FINE) as i64, (y_of(y, top) * FINE) as i64);
        let drawn: BTreeSet<(i64, i64)> =
            panel.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).map(at).collect();
        let _ = writeln!(svg, "<path class=\"points\" d=\"{}\"/>", path(&drawn));
    }
    for tick in round_ticks(0.0, longest) {
        text(&mut svg, "below", x_of(tick), height - 32.0, &tick_text(tick));
    }
    text(&mut svg, "below x-title", (left + right) / 2.0, height - 12.0, &escaped(&footprint.x));
    svg.push_str("</svg>\n");
    svg
}

/// Round ticks between two positions with their places, as many as there is room for; the lower end
/// if no round number is between them.
fn position_ticks(low: f64, high: f64, y_of: impl Fn(f64) -> f64) -> Vec<(f64, String)> {
    let mut ticks = round_ticks(low, high);
    if ticks.is_empty() {
        ticks.push(low);
    }
    let mut free = f64::INFINITY;
    ticks.retain(|tick| {
        let fits = free - y_of(*tick) >= TICKS_APART;
        if fits {
            free = y_of(*tick);
        }
        fits
    });
    ticks.into_iter().map(|tick| (y_of(tick), tick_text(tick))).collect()
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(svg, "<line class=\"mark\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
}

/// The points as strokes of zero length with round ends, relative to the previous point. This form
/// is compact.
fn path(points: &BTreeSet<(i64, i64)>) -> String {
    let mut path = String::with_capacity(points.len() * 8);
    let mut before: Option<(i64, i64)> = None;
    for &(x, y) in points {
        let _ = match before {
            None => write!(path, "M{},{}h0", x as f64 / FINE, y as f64 / FINE),
            Some((x0, y0)) => write!(path, "m{},{}h0", (x - x0) as f64 / FINE, (y - y0) as f64 / FINE),
        };
        before = Some((x, y));
    }
    path
}

fn style() -> String {
    let colour = palette(1).swap_remove(0);
    let colours = |page: &str, ink: &str, faint: &str, area: &str, points: &str| {
        format!(
            ".page{{fill:{page}}} text{{fill:{ink}}} .note,.left,.below{{fill:{faint}}} .area{{fill:{area}}} .mark{{stroke:{faint}}} .points{{stroke:{points}}}\n"
        )
    };
    let light = colours("#ffffff", "#1b1f27", "#59606c", "#f1f3f7", &colour.light);
    let dark = colours(DARK_BACKGROUND, "#e6e8ec", "#a3a9b4", "#20252e", &colour.dark);
    format!(
        "text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}} .title{{font-size:16px;font-weight:600}} .key{{font-weight:600}} \
         .left{{text-anchor:end}} .below{{text-anchor:middle}} .note,.left,.below{{font-size:12px;font-variant-numeric:tabular-nums}} \
         .points{{fill:none;stroke-width:1.1;stroke-linecap:round}}\n{light}@media (prefers-color-scheme:dark){{{dark}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(points: &[(f64, f64)]) -> FootprintPanel {
        FootprintPanel { name: "<name>".into(), note: "note".into(), points: points.to_vec() }
    }

    #[test]
    fn panels_share_both_axes_and_points_that_coincide_are_drawn_once() {
        let slow = panel(&[(0.0, 0.0), (0.01, 0.0), (100.0, 50.0), (100.0, 50.0)]);
        let fast = panel(&[(50.0, 25.0)]);
        let svg = footprint_drawing(&Footprint { panels: vec![slow, fast], ..Footprint::default() }, Space::Wide);
        // The first panel is 112 px high from 62 on and 564 px wide from 76 on, with a margin of
        // 4 px: no point touches an edge.
        assert!(svg.contains("d=\"M80,170h0m556,-104h0\""), "{svg}");
        // The middle of both axes of the second panel, which is 126 px below.
        assert!(svg.contains("d=\"M358,244h0\""), "{svg}");
        assert!(svg.contains("&lt;name&gt;") && !svg.contains("<name>"));
    }

    #[test]
    fn positions_that_are_close_have_different_ticks() {
        let ticks = position_ticks(164.96, 165.05, |y| 100.0 - (y - 164.96) * 1000.0);
        let shown: Vec<&str> = ticks.iter().map(|(_, shown)| shown.as_str()).collect();
        assert_eq!(shown, ["164.96", "164.98", "165", "165.02", "165.04"]);
        assert_eq!(position_ticks(7.0, 7.0, |_| 3.0), [(3.0, "7".to_owned())]);
    }

    #[test]
    fn values_that_are_not_numbers_and_empty_panels_draw_no_points() {
        let svg = footprint_drawing(
            &Footprint { panels: vec![panel(&[(f64::NAN, 1.0)])], ..Footprint::default() },
            Space::Narrow,
        );
        assert!(svg.contains("d=\"\"") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
