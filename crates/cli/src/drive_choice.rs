//! `NAME|FILE.toml`: a built-in drive or a profile of one's own.

use std::path::Path;

use anyhow::Result;
use hoistway_drive::Profile;

use crate::failure::UsageError;
use crate::names::did_you_mean;

/// The drive that is taken when none is named.
pub const DEFAULT: &str = "sata-7200-2006";

/// The built-in drive of this name, or else the profile in this file.
///
/// # Errors
/// A [`UsageError`] with the drives that there are when it is neither, and [`hoistway_drive::ProfileError`] for a file.
pub fn load(choice: &str) -> Result<Profile> {
    if let Some(profile) = Profile::builtin(choice) {
        return Ok(profile);
    }
    let path = Path::new(choice);
    let names_a_file = choice.contains('/') || path.extension().is_some_and(|extension| extension == "toml");
    if names_a_file || path.exists() {
        return Ok(Profile::load(path)?);
    }
    let known = Profile::names().collect::<Vec<_>>().join(", ");
    let nearest = did_you_mean(choice, Profile::names());
    let text = format!("there is no drive `{choice}`{nearest}; there are {known}, and any FILE.toml");
    Err(UsageError(text).into())
}
