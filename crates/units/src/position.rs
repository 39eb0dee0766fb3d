//! Positions in texts, for error messages.

/// Returns the line of a byte of a text, from 1, and the column, in characters from 1.
///
/// ```
/// assert_eq!(hoistway_units::position::line_and_column("a = 1\nb = 2\n", 10), (2, 5));
/// ```
pub fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before.get(line_start..).unwrap_or("").chars().count() + 1)
}
