//! Device numbers for names of files and disks, shared by all inputs that are read together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{LineOutput, number, shown};
use crate::event::DeviceId;

/// Maximum number of names: a minor device number has 20 bits.
const NAMES_MAX: u32 = 1 << 20;
/// Maximum number of names whose device numbers are reported.
const NAMES_REPORTED_MAX: usize = 8;

/// Names of all inputs that are read together. The value is the minor device number.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceNames(Arc<Mutex<HashMap<Vec<u8>, u32>>>);

/// Devices of the names of one input.
#[derive(Debug, Default)]
pub(crate) struct NamedDevices {
    names: DeviceNames,
    known: HashMap<Vec<u8>, DeviceId>,
}

/// Returns the device with these numbers, which stand in two fields.
///
/// # Errors
/// Fails if a field is no number, or if Linux has no such device.
pub(crate) fn device_of_numbers(major: &[u8], minor: &[u8]) -> Result<DeviceId, String> {
    match (number(major, "the major device number")?, number(minor, "the minor device number")?) {
        (major @ 0..=0xFFF, minor @ 0..=0xF_FFFF) => Ok(DeviceId::new(major, minor)),
        (major, minor) => Err(format!("the device {major} {minor} does not exist: below 4096 and 1048576 are right")),
    }
}

impl NamedDevices {
    /// Creates the table of an input.
    pub fn new(names: &DeviceNames) -> NamedDevices {
        NamedDevices { names: names.clone(), known: HashMap::new() }
    }

    /// Returns the device with a name. Reports it on its first occurrence.
    ///
    /// # Errors
    /// Fails if there are too many names.
    pub fn device(&mut self, name: &[u8], out: &mut LineOutput<'_>) -> Result<DeviceId, String> {
        if let Some(device) = self.known.get(name) {
            return Ok(*device);
        }
        // The lock is never held across a panic; if it were, the names would still be consistent.
        let mut names = self.names.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let next = names.len() as u32;
        if next >= NAMES_MAX && !names.contains_key(name) {
            return Err(format!("there are more than {NAMES_MAX} files or disks here"));
        }
        let minor = *names.entry(name.to_owned()).or_insert(next);
        drop(names);
        let device = DeviceId::new(0, minor);
        self.known.insert(name.to_owned(), device);
        if self.known.len() <= NAMES_REPORTED_MAX {
            out.notices.add(out.position, format!("device {device} stands for {}", shown(name)));
        }
        Ok(device)
    }
}
