//! The choice of a drive by `NAME|FILE.toml`: a built-in drive, or a profile file.

use std::path::{Path, PathBuf};

use hoistway_units::names::suggestion;

use crate::profile::{Profile, ProfileError};

/// Reasons why a choice is no drive.
#[derive(Debug, thiserror::Error)]
pub enum DriveChoiceError {
    /// The choice is neither the name of a built-in drive nor that of a file.
    #[error(
        "there is no drive `{choice}`{}, and any FILE.toml is one",
        suggestion(choice, Profile::names(), "hoistway drives")
    )]
    Unknown {
        /// The choice.
        choice: String,
    },
    /// The profile file cannot be read, or is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// The error for a name that no built-in drive has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no drive `{name}`{}", suggestion(name, Profile::names(), "hoistway drives"))]
pub struct UnknownDriveError {
    /// The name.
    pub name: String,
}

/// The text of a chosen profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileText {
    /// The name of the file in errors; for a built-in drive its name and `.toml`.
    pub file: String,
    /// The profile as TOML.
    pub toml: String,
}

impl Profile {
    /// Loads the built-in drive of this name, or the profile in this file.
    ///
    /// # Errors
    /// [`DriveChoiceError::Unknown`] with drives of similar names if the choice is neither.
    pub fn choose(choice: &str) -> Result<Profile, DriveChoiceError> {
        match Profile::builtin(choice) {
            Some(profile) => Ok(profile),
            None => Ok(Profile::load(&file(choice, Path::new(""))?)?),
        }
    }

    /// Loads the built-in drive of this name. A program that uses this and no drive files does not
    /// contain their reader.
    ///
    /// # Errors
    /// [`UnknownDriveError`] with drives of similar names if there is none.
    pub fn choose_builtin(name: &str) -> Result<Profile, UnknownDriveError> {
        Profile::builtin(name).ok_or_else(|| UnknownDriveError { name: name.to_owned() })
    }

    /// Returns the text of the built-in drive of this name, or of the profile in this file, whose
    /// name is relative to `directory`.
    ///
    /// # Errors
    /// [`DriveChoiceError::Unknown`] with drives of similar names if the choice is neither, and
    /// [`ProfileError::Read`] for a file that cannot be read.
    pub fn choose_text(choice: &str, directory: &Path) -> Result<ProfileText, DriveChoiceError> {
        if let Some(toml) = Profile::builtin_toml(choice) {
            return Ok(ProfileText { file: format!("{choice}.toml"), toml: toml.to_owned() });
        }
        let path = file(choice, directory)?;
        match std::fs::read_to_string(&path) {
            Ok(toml) => Ok(ProfileText { file: path.display().to_string(), toml }),
            Err(source) => Err(ProfileError::Read { path, source }.into()),
        }
    }
}

/// The file that a choice names, if it looks like a file name or exists.
fn file(choice: &str, directory: &Path) -> Result<PathBuf, DriveChoiceError> {
    let path = directory.join(choice);
    let names_a_file = choice.contains('/') || path.extension().is_some_and(|extension| extension == "toml");
    let unknown = || DriveChoiceError::Unknown { choice: choice.to_owned() };
    (names_a_file || path.exists()).then_some(path).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_names_the_nearest_drive() {
        let message = Profile::choose("cmr-9tb").unwrap_err().to_string();
        assert!(message.starts_with("there is no drive `cmr-9tb` (did you mean `cmr-"), "{message}");
        assert!(message.ends_with(", and any FILE.toml is one"), "{message}");
        let builtin = Profile::choose_builtin("cmr-9tb").unwrap_err().to_string();
        assert_eq!(Some(builtin.as_str()), message.strip_suffix(", and any FILE.toml is one"));
    }

    #[test]
    fn a_file_is_relative_to_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), "text").unwrap();
        assert_eq!(Profile::choose_text("mine.toml", folder.path()).unwrap().toml, "text");
        let missing = Profile::choose_text("none.toml", folder.path()).unwrap_err();
        assert!(missing.to_string().contains("none.toml: cannot read the profile"), "{missing}");
        assert_eq!(Profile::choose_text("null", folder.path()).unwrap().file, "null.toml");
    }
}
