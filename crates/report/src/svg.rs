//! What the pictures for documents have in common: files with a background of their own that follow the reader's choice of light or dark.

use std::fmt::Write;

/// The beginning of a picture of so many px, up to and with its title; `style` is what it has of CSS.
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

/// Text that is escaped already.
pub fn text(svg: &mut String, class: &str, x: f64, y: f64, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
}

/// Text that cannot open a tag.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
