//! Renders the templates of pages: each fills the blocks of one frame.

use hoistway_units::printable::lines;
use minijinja::{AutoEscape, Environment, Error, Output, State, Value, context, escape_formatter};

use crate::web::{THEME_SCRIPT, style_sheet};

/// Renders the template of a page, which extends the frame. Values are escaped for HTML and have
/// no unprintable characters, unless they are marked as safe.
///
/// # Errors
/// A template is invalid, or a value does not fit it.
pub fn render(template: &str, content: Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(printable);
    environment.add_template("frame.html", include_str!("../templates/frame.html"))?;
    environment.add_template("parts.html", include_str!("../templates/parts.html"))?;
    environment.add_template("page.html", template)?;
    let frame = context! {
        style => Value::from_safe_string(style_sheet()),
        theme_script => Value::from_safe_string(THEME_SCRIPT.to_owned()),
    };
    environment.get_template("page.html")?.render(context! { ..content, ..frame })
}

/// Writes a value, which may be a name of unknown origin.
fn printable(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str().filter(|_| !value.is_safe()) {
        Some(text) => escape_formatter(out, state, &Value::from(lines(text).to_string())),
        None => escape_formatter(out, state, value),
    }
}
