//! A plot of two distributions of service times, readable on light and dark pages.

use std::fmt::Write;

/// Width and height of the plot in SVG units.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// Margins around the axes in SVG units.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 44.0;
/// The time axis ends at this share of the slower distribution. The slowest requests would
/// compress the rest of the plot.
const SHARE_MAX: f64 = 0.99;

const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif} .title{font-size:15px;font-weight:600} .tick{font-size:12px} .end{text-anchor:end} \
.middle{text-anchor:middle} polyline{fill:none;stroke-width:2} .model{stroke-dasharray:6 3}
.page{fill:#ffffff} text{fill:#1b1f27} .tick{fill:#59606c} .grid{stroke:#dfe3ea} .drive{stroke:#235fea} .model{stroke:#b0700a} .key-drive{fill:#235fea} .key-model{fill:#8a5a0a}
@media (prefers-color-scheme:dark){.page{fill:#15181e} text{fill:#e6e8ec} .tick{fill:#a3a9b4} .grid{stroke:#2c323d} .drive{stroke:#6b9bff} .model{stroke:#f0a63a} .key-drive{fill:#6b9bff} .key-model{fill:#f0a63a}}";

/// One point of two cumulative distributions of service times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributionPoint {
    /// The share of requests with at most this service time, 0 to 1.
    pub share: f64,
    /// The recorded service time in ms.
    pub recorded_ms: f64,
    /// The service time of the model in ms.
    pub predicted_ms: f64,
}

/// Draws the recorded and the modelled distribution of the service times of the drive `name`.
pub fn distribution_svg(name: &str, curve: &[DistributionPoint]) -> String {
    let within = curve.iter().filter(|point| point.share <= SHARE_MAX);
    let slowest = within.map(|point| point.recorded_ms.max(point.predicted_ms)).fold(1.0, f64::max);
    let step = step(slowest);
    let end = (slowest / step).ceil() * step;
    let x = |ms: f64| LEFT + ms / end * (WIDTH - LEFT - RIGHT);
    let y = |share: f64| HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
    let line = |of: fn(&DistributionPoint) -> f64| {
        let points = curve.iter().filter(|point| of(point) <= end);
        points.map(|point| format!("{:.1},{:.1}", x(of(point)), y(point.share))).collect::<Vec<_>>().join(" ")
    };
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{name}: service times, recorded and modelled</title>\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\"/>\n<text class=\"title\" x=\"16\" y=\"26\">{name}</text>\n\
         <text class=\"key-drive end\" x=\"{:.1}\" y=\"26\">recorded</text>\n<text class=\"key-model end\" x=\"{:.1}\" y=\"26\">model (dashed)</text>\n",
        WIDTH - RIGHT - 112.0,
        WIDTH - RIGHT
    );
    for percent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(percent) / 100.0);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{percent} %</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    for index in 0..=(end / step).round() as u32 {
        let ms = f64::from(index) * step;
        let _ = writeln!(
            svg,
            "<text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{ms}</text>",
            x(ms),
            HEIGHT - BOTTOM + 18.0
        );
    }
    let _ = write!(
        svg,
        "<text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">service time in ms, and the share of requests within it</text>\n\
         <polyline class=\"drive\" points=\"{}\"/>\n<polyline class=\"model\" points=\"{}\"/>\n</svg>\n",
        WIDTH - RIGHT,
        HEIGHT - 8.0,
        line(|point| point.recorded_ms),
        line(|point| point.predicted_ms)
    );
    svg
}

/// The distance of ticks on the time axis in ms: the smallest step with at most ten ticks.
fn step(slowest_ms: f64) -> f64 {
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0].into_iter().find(|step| slowest_ms / step <= 10.0).unwrap_or(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_drawn_and_nothing_leaves_the_page() {
        let point = |index: u32| {
            let share = f64::from(index) / 10.0;
            DistributionPoint { share, recorded_ms: 20.0 * share, predicted_ms: 10.0 * share }
        };
        let svg = distribution_svg("a", &(0..=10).map(point).collect::<Vec<_>>());
        assert_eq!(svg.matches("<polyline").count(), 2);
        // 90 % of the requests take up to 18 ms (model: 9 ms), so the axis ends at 18.
        assert!(svg.contains(">18</text>") && !svg.contains(">20</text>"), "{svg}");
        let numbers = svg.split(['"', ' ', ',']).filter_map(|word| word.parse::<f64>().ok());
        assert!(numbers.into_iter().all(|number| (0.0..=WIDTH).contains(&number)));
    }
}
