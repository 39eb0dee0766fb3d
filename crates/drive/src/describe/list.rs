//! Descriptions of several drives in one document.

use serde::Serialize;

use super::{Description, describe};
use crate::profile::Profile;

/// Descriptions of drives.
///
/// Its serialised form is the JSON document of `hoistway drives --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveList {
    /// The version of the JSON form: 1.
    pub schema: u32,
    /// One description a drive.
    pub drives: Vec<Description>,
}

impl DriveList {
    /// Describes every built-in drive, in the order of [`Profile::names`].
    pub fn builtin() -> DriveList {
        DriveList::new(Profile::names().filter_map(Profile::builtin))
    }

    /// Describes the drives of `profiles`.
    pub fn new(profiles: impl IntoIterator<Item = Profile>) -> DriveList {
        let drives = profiles.into_iter().map(|profile| describe(&profile)).collect();
        DriveList { schema: 1, drives }
    }
}
