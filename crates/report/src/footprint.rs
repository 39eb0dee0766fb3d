//! The footprint of a disk's head: position over time, one panel for each variant of the same work.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::figures::round_ticks;
use crate::format::figure;
use crate::palette::{DARK_BACKGROUND, palette};
use crate::svg::{escaped, head, text};

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
const WIDTH: f64 = 860.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 660.0;
const TOP: f64 = 62.0;
const PANEL: f64 = 112.0;
const GAP: f64 = 14.0;
/// Distance of the outermost points from the edges of a panel.
const MARGIN: f64 = 4.0;
const NAMES: f64 = RIGHT + 18.0;
/// Points for each px.
const FINE: f64 = 2.0;

/// Draws the panels with common axes, so that a shorter run is narrower and fewer seeks are
/// visible.
pub fn footprint_svg(footprint: &Footprint) -> String {
    let height = TOP + (PANEL + GAP) * footprint.panels.len() as f64 + 34.0;
    let points = || {
        let all = footprint.panels.iter().flat_map(|panel| &panel.points);
        all.copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let longest = points().map(|(x, _)| x).fold(0.0, f64::max);
    let (low, high) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (_, y)| (l.min(y), h.max(y)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 0.0) };
    let mut svg = head(&footprint.title, WIDTH, height, &style());
    text(&mut svg, "note", 16.0, 48.0, &escaped(&footprint.y));
    for (index, panel) in footprint.panels.iter().enumerate() {
        let top = TOP + (PANEL + GAP) * index as f64;
        let _ = writeln!(
            svg,
            "<rect class=\"area\" x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{PANEL}\"/>",
            RIGHT - LEFT
        );
        text(&mut svg, "left", LEFT - 8.0, top + 10.0, &figure(high));
        text(&mut svg, "left", LEFT - 8.0, top + PANEL, &figure(low));
        text(&mut svg, "key", NAMES, top + 16.0, &escaped(&panel.name));
        text(&mut svg, "note", NAMES, top + 36.0, &escaped(&panel.note));
        let at = |(x, y): (f64, f64)| {
            let part = |value: f64, span: f64| if span > 0.0 { (value / span).clamp(0.0, 1.0) } else { 0.0 };
            let x = LEFT + MARGIN + (RIGHT - LEFT - 2.0 * MARGIN) * part(x, longest);
            let y = top + MARGIN + (PANEL - 2.0 * MARGIN) * (1.0 - part(y - low, high - low));
            ((x * FINE) as i64, (y * FINE) as i64)
        };
        let drawn: BTreeSet<(i64, i64)> =
            panel.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).map(at).collect();
        let _ = writeln!(svg, "<path class=\"points\" d=\"{}\"/>", path(&drawn));
    }
    let below = height - 32.0;
    for tick in round_ticks(0.0, longest) {
        text(
            &mut svg,
            "below",
            LEFT + MARGIN + (RIGHT - LEFT - 2.0 * MARGIN) * tick / longest,
            below,
            &tick.to_string(),
        );
    }
    text(&mut svg, "below", (LEFT + RIGHT) / 2.0, height - 12.0, &escaped(&footprint.x));
    svg.push_str("</svg>\n");
    svg
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
            ".page{{fill:{page}}} text{{fill:{ink}}} .note,.left,.below{{fill:{faint}}} .area{{fill:{area}}} .points{{stroke:{points}}}\n"
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
        let svg = footprint_svg(&Footprint { panels: vec![slow, fast], ..Footprint::default() });
        // The first panel is 112 px high from 62 on and 584 px wide from 76 on, with a margin of
        // 4 px: no point touches an edge.
        assert!(svg.contains("d=\"M80,170h0m576,-104h0\""), "{svg}");
        // The middle of both axes of the second panel, which is 126 px below.
        assert!(svg.contains("d=\"M368,244h0\""), "{svg}");
        assert!(svg.contains("&lt;name&gt;") && !svg.contains("<name>"));
    }

    #[test]
    fn values_that_are_not_numbers_and_empty_panels_draw_no_points() {
        let svg = footprint_svg(&Footprint { panels: vec![panel(&[(f64::NAN, 1.0)])], ..Footprint::default() });
        assert!(svg.contains("d=\"\"") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
