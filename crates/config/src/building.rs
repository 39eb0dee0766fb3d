//! The configuration under construction, and the problems found so far.

use std::path::PathBuf;

use crate::draft::{Entry, Place, Problem};
use crate::model::Config;
use crate::surroundings::Surroundings;
use crate::value::{self, Fields};

/// What is being put together, and where it was said.
pub(crate) struct Building<'a> {
    pub surroundings: &'a dyn Surroundings,
    pub config: Config,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Problem>,
    /// Sizes of the devices in bytes, where they are known.
    pub device_bytes: Vec<Option<u64>>,
    /// Whether an arm moves in the devices, as far as the configuration tells.
    pub device_rotates: Vec<bool>,
    pub listen_places: Vec<Place>,
}

impl<'s> Building<'s> {
    pub fn new(surroundings: &'s dyn Surroundings, config: Config) -> Building<'s> {
        Building {
            surroundings,
            config,
            problems: Vec::new(),
            warnings: Vec::new(),
            device_bytes: Vec::new(),
            device_rotates: Vec::new(),
            listen_places: Vec::new(),
        }
    }
}

impl Building<'_> {
    pub fn fields<'a>(&'a mut self, entry: &'a Entry) -> Fields<'a> {
        Fields { entry, problems: &mut self.problems }
    }

    /// A path, found from where it was written.
    pub fn path(&mut self, entry: &Entry, key: &str) -> Option<PathBuf> {
        let mut fields = self.fields(entry);
        let path = fields.read(key, value::path)?;
        Some(fields.place(key).resolve(&path))
    }
}
