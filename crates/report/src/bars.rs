//! Bar charts for documents: throughput and latency of each elevator with one workload, as one SVG
//! file.
//!
//! The picture has its own background and follows the light or dark theme of the reader.

use std::fmt::Write;

use hoistway_units::figures::grouped_figure;

use crate::palette::{DARK_BACKGROUND, Pair, palette};
use crate::svg::{escaped, head, text};

/// The content of a bar chart.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// The heading.
    pub title: String,
    /// Throughput of one process alone in bytes a second, a line across the left bars; 0 for no
    /// line.
    pub alone_bytes_per_s: f64,
    /// The elevators from top to bottom.
    pub elevators: Vec<Measured>,
}

/// The results of one elevator.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The name of the elevator.
    pub name: String,
    /// Throughput of all processes together in bytes a second.
    pub bytes_per_s: f64,
    /// The longest latency of a request in ns.
    pub latency_ns_max: u64,
}

/// All lengths are in px.
const WIDTH: f64 = 860.0;
const ROW: f64 = 22.0;
const BAR: f64 = 14.0;
/// Top of the first row.
const TOP: f64 = 76.0;
const BOTTOM: f64 = 22.0;
const NAMES_END: f64 = 116.0;
/// Left ends of the bars in both columns. The space after the longest bar holds its figure.
const STARTS: [f64; 2] = [126.0, 506.0];
const LENGTH: f64 = 285.0;

/// Draws the chart as an SVG file.
pub fn bars_svg(bars: &Bars) -> String {
    let height = TOP + ROW * bars.elevators.len() as f64 + BOTTOM;
    let mut svg = head(&bars.title, WIDTH, height, &style());
    for (x, header) in STARTS.into_iter().zip(["all together, MB/s", "longest latency, ms"]) {
        text(&mut svg, "header", x, TOP - 18.0, header);
    }
    let megabytes = bars.elevators.iter().map(|elevator| elevator.bytes_per_s / 1e6);
    let alone = bars.alone_bytes_per_s / 1e6;
    let most = [megabytes.fold(alone, f64::max), bars.elevators.iter().map(latency_ms).fold(0.0, f64::max)];
    if alone > 0.0 {
        let x = STARTS[0] + length(alone, most[0]);
        let (top, end) = (TOP - 6.0, height - BOTTOM + 2.0);
        line(&mut svg, format_args!("<line class=\"alone\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{end}\"/>"));
        text(&mut svg, "note", x, TOP - 10.0, &format!("one alone: {}", grouped_figure(alone)));
    }
    for (row, elevator) in bars.elevators.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        text(&mut svg, "name", NAMES_END, y + 12.0, &escaped(&elevator.name));
        for (at, value) in [elevator.bytes_per_s / 1e6, latency_ms(elevator)].into_iter().enumerate() {
            bar(&mut svg, at, y, value, most[at]);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn bar(svg: &mut String, at: usize, y: f64, value: f64, most: f64) {
    let (x, length) = (STARTS[at], length(value, most));
    line(
        svg,
        format_args!("<rect class=\"bar{at}\" x=\"{x}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"2\"/>"),
    );
    text(svg, "figure", x + length + 5.0, y + 11.5, &grouped_figure(value));
}

/// The length of a bar; 0 for a value that is not a number.
fn length(value: f64, most: f64) -> f64 {
    let part = value / most;
    if part.is_finite() { LENGTH * part } else { 0.0 }
}

fn latency_ms(elevator: &Measured) -> f64 {
    elevator.latency_ns_max as f64 / 1e6
}

fn line(svg: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "{line}");
}

fn style() -> String {
    let [rate, latency]: [Pair; 2] = [palette(2).swap_remove(0), palette(5).swap_remove(4)];
    let colours = |page: &str, ink: &str, faint: &str, rate: &str, latency: &str| {
        format!(
            ".page{{fill:{page}}} .figure{{stroke:{page}}} text{{fill:{ink}}} .note,.header{{fill:{faint}}} .alone{{stroke:{faint}}} \
             .bar0{{fill:{rate}}} .bar1{{fill:{latency}}}\n"
        )
    };
    let light = colours("#ffffff", "#1b1f27", "#59606c", &rate.light, &latency.light);
    let dark = colours(DARK_BACKGROUND, "#e6e8ec", "#a3a9b4", &rate.dark, &latency.dark);
    format!(
        "text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}} .title{{font-size:16px;font-weight:600}} \
         .header{{font-weight:600}} .name{{text-anchor:end}} .figure,.note{{font-size:12px;font-variant-numeric:tabular-nums}} \
         .note{{text-anchor:end}} .figure{{paint-order:stroke;stroke-width:4px}} .alone{{stroke-dasharray:3 3}}\n{light}@media (prefers-color-scheme:dark){{{dark}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, mb_per_s: f64, ms: u64) -> Measured {
        Measured { name: name.into(), bytes_per_s: mb_per_s * 1e6, latency_ns_max: ms * 1_000_000 }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let elevators = vec![measured("half", 30.0, 500), measured("full", 60.0, 2000)];
        let svg = bars_svg(&Bars { elevators, ..Bars::default() });
        let widths: Vec<&str> =
            svg.split("<rect class=\"bar").skip(1).map(|rest| rest.split("width=\"").nth(1).unwrap()).collect();
        let widths: Vec<f64> = widths.iter().map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
        assert_eq!(widths, [142.5, 71.2, 285.0, 285.0]);
    }

    #[test]
    fn names_and_titles_cannot_break_the_file() {
        let svg =
            bars_svg(&Bars { title: "a < b & c".into(), elevators: vec![measured("<x>", 0.0, 0)], ..Bars::default() });
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("&lt;x&gt;") && !svg.contains("NaN"), "{svg}");
    }
}
