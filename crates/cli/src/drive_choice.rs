//! The argument `NAME|FILE.toml`: a built-in drive, or a profile file.

use std::path::Path;

use anyhow::{Context, Error, Result};
use hoistway_drive::Profile;
use hoistway_units::names::suggestion;

use crate::failure::UsageError;

/// Loads the built-in drive of this name, or the profile in this file.
///
/// # Errors
/// A [`UsageError`] with drives of similar names if it is neither, and
/// [`hoistway_drive::ProfileError`] for a file.
pub fn load(choice: &str) -> Result<Profile> {
    if let Some(profile) = Profile::builtin(choice) {
        return Ok(profile);
    }
    match file(choice) {
        Some(path) => Ok(Profile::load(path)?),
        None => Err(unknown(choice)),
    }
}

/// The text of a profile, with its name for error messages.
///
/// # Errors
/// A [`UsageError`] with drives of similar names for an unknown one, and the error of the operating
/// system for an unreadable file.
pub fn text(choice: &str) -> Result<(String, String)> {
    if let Some(text) = Profile::builtin_toml(choice) {
        return Ok((text.to_owned(), format!("{choice}.toml")));
    }
    let path = file(choice).ok_or_else(|| unknown(choice))?;
    let text = std::fs::read_to_string(path).with_context(|| format!("{choice}: cannot read the profile"))?;
    Ok((text, choice.to_owned()))
}

/// The file that a choice names, if it looks like a file name.
fn file(choice: &str) -> Option<&Path> {
    let path = Path::new(choice);
    let names_a_file = choice.contains('/') || path.extension().is_some_and(|extension| extension == "toml");
    (names_a_file || path.exists()).then_some(path)
}

fn unknown(choice: &str) -> Error {
    let near = suggestion(choice, Profile::names(), "hoistway drives");
    UsageError(format!("there is no drive `{choice}`{near}, and any FILE.toml is one")).into()
}
