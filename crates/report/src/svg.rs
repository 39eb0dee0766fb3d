//! Common parts of SVG pictures with their own background that follow the light or dark theme of
//! the reader.

use std::fmt::Write;

use hoistway_units::figures::grouped;
use hoistway_units::printable::one_line;

/// The space for which a picture is laid out. A narrow picture has its names above or below the
/// plot, so that its text stays readable on a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// 860 px, for a document or a window of a desktop.
    Wide,
    /// 360 px, for a phone.
    Narrow,
}

impl Space {
    /// Chooses between the value for wide and that for narrow pictures.
    pub fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Space::Wide => wide,
            Space::Narrow => narrow,
        }
    }

    /// The width in px.
    pub fn width(self) -> f64 {
        self.pick(860.0, 360.0)
    }
}

/// The label of a round tick of an axis: 0.25, 40, 150,000.
pub fn tick_text(tick: f64) -> String {
    if tick >= 1000.0 && tick.fract() == 0.0 { grouped(tick as u64) } else { tick.to_string() }
}

/// Moves positions apart, in the order of their values, so that neighbours have at least `distance`
/// and all are within `low` and `high` if there is room.
pub fn pushed_apart(positions: &[f64], distance: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by(|&a, &b| positions[a].total_cmp(&positions[b]));
    let mut moved = positions.to_vec();
    let mut least = low;
    for &at in &order {
        moved[at] = moved[at].max(least);
        least = moved[at] + distance;
    }
    let mut most = high;
    for &at in order.iter().rev() {
        moved[at] = moved[at].min(most);
        most = moved[at] - distance;
    }
    moved
}

/// The beginning of a picture up to its title. Sizes are in px; `style` is additional CSS.
pub fn head(title: &str, width: f64, height: f64, style: &str) -> String {
    let title = escaped(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-labelledby=\"title\">\n<title id=\"title\">{title}</title>\n<style>\n{style}</style>\n\
         <rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n"
    );
    // A letter of the heading is at most 0.62 of its size wide; a long heading has smaller letters.
    let size = ((width - 32.0) / (0.62 * title.chars().count().max(1) as f64)).clamp(11.0, 16.0);
    let smaller = if size < 16.0 { format!(" style=\"font-size:{size:.1}px\"") } else { String::new() };
    let _ = writeln!(svg, "<text class=\"title\" x=\"16.0\" y=\"28.0\"{smaller}>{title}</text>");
    svg
}

/// Adds text that is already escaped.
pub fn text(svg: &mut String, class: &str, x: f64, y: f64, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
}

/// Escapes text for XML, which has no control characters.
pub fn escaped(text: &str) -> String {
    let text = one_line(text).to_string();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_close_are_pushed_apart_within_the_bounds() {
        assert_eq!(pushed_apart(&[5.0, 50.0, 6.0], 10.0, (0.0, 100.0)), [5.0, 50.0, 15.0]);
        assert_eq!(pushed_apart(&[98.0, 99.0], 10.0, (0.0, 100.0)), [90.0, 100.0]);
    }

    #[test]
    fn large_ticks_have_separators() {
        assert_eq!([0.0, 0.25, 40.0, 164.96, 150_000.0].map(tick_text), ["0", "0.25", "40", "164.96", "150,000"]);
    }
}
