//! Renders the templates of pages.

use minijinja::{AutoEscape, Environment, Value};

/// Renders a template. Values are escaped for HTML unless they are marked as safe.
///
/// # Errors
/// The template is invalid, or a value does not fit it.
pub fn render(template: &str, context: Value) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.render_named_str("page.html", template, context)
}
