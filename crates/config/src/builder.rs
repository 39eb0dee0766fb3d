//! The configuration under construction, and the problems found so far.

use std::path::PathBuf;

use crate::draft::{Entry, Location, Problem};
use crate::environment::Environment;
use crate::model::Config;
use crate::value::{self, Fields};

/// A partly parsed configuration with the locations and facts that later checks need.
pub(crate) struct ConfigBuilder<'a> {
    pub environment: &'a dyn Environment,
    pub config: Config,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Problem>,
    /// Sizes of the devices in bytes; `None` where the size is unknown.
    pub device_bytes: Vec<Option<u64>>,
    /// True for each device that has an arm, as far as the configuration shows.
    pub device_rotates: Vec<bool>,
    pub listen_locations: Vec<Location>,
}

impl<'s> ConfigBuilder<'s> {
    pub fn new(environment: &'s dyn Environment, config: Config) -> ConfigBuilder<'s> {
        ConfigBuilder {
            environment,
            config,
            problems: Vec::new(),
            warnings: Vec::new(),
            device_bytes: Vec::new(),
            device_rotates: Vec::new(),
            listen_locations: Vec::new(),
        }
    }
}

impl ConfigBuilder<'_> {
    pub fn fields<'a>(&'a mut self, entry: &'a Entry) -> Fields<'a> {
        Fields { entry, problems: &mut self.problems }
    }

    /// Parses a path; a relative path is relative to the directory of the file that contains it.
    pub fn path(&mut self, entry: &Entry, key: &str) -> Option<PathBuf> {
        let mut fields = self.fields(entry);
        let path = fields.read(key, value::path)?;
        Some(fields.location(key).resolve(&path))
    }
}
