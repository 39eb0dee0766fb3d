//! Common parts of SVG pictures with their own background that follow the light or dark theme of
//! the reader.

use std::fmt::Write;

/// The beginning of a picture up to its title. Sizes are in px; `style` is additional CSS.
pub fn head(title: &str, width: f64, height: f64, style: &str) -> String {
    let title = escaped(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-labelledby=\"title\">\n<title id=\"title\">{title}</title>\n<style>\n{style}</style>\n\
         <rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n"
    );
    text(&mut svg, "title", 16.0, 28.0, &title);
    svg
}

/// Adds text that is already escaped.
pub fn text(svg: &mut String, class: &str, x: f64, y: f64, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
}

/// Escapes text for XML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
