//! Numbers for names of devices and processes, shared by all inputs that are read together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{LineOutput, number, shown};
use crate::event::{Action, DeviceId, Event};

/// Maximum number of names: a minor device number has 20 bits.
const NAMES_MAX: u32 = 1 << 20;
/// Maximum number of names whose device numbers are reported.
const NAMES_REPORTED_MAX: usize = 8;

/// Numbers of names, counted from 0 in the order of their first use. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct SharedNames(Arc<Mutex<HashMap<Vec<u8>, u32>>>);

impl SharedNames {
    /// Returns the number of a name; None if there are 1,048,576 other names.
    fn number(&self, name: &[u8]) -> Option<u32> {
        // The lock is never held across a panic; if it were, the names would still be consistent.
        let mut names = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let next = names.len() as u32;
        match names.get(name) {
            Some(number) => Some(*number),
            None if next >= NAMES_MAX => None,
            None => {
                names.insert(name.to_owned(), next);
                Some(next)
            }
        }
    }
}

/// Devices of the names of one input. The number of a name is the minor device number.
#[derive(Debug, Default)]
pub struct NamedDevices {
    names: SharedNames,
    known: HashMap<Vec<u8>, DeviceId>,
}

/// Processes of the names of one input, for formats with names of tenants or applications and
/// without process ids.
#[derive(Debug, Default)]
pub struct NamedProcesses {
    names: SharedNames,
    known: HashMap<Vec<u8>, u32>,
}

/// Returns the device with these numbers, which stand in two fields.
///
/// # Errors
/// Fails if a field is no number, or if Linux has no such device.
pub fn device_of_numbers(major: &[u8], minor: &[u8]) -> Result<DeviceId, String> {
    match (number(major, "the major device number")?, number(minor, "the minor device number")?) {
        (major @ 0..=0xFFF, minor @ 0..=0xF_FFFF) => Ok(DeviceId::new(major, minor)),
        (major, minor) => Err(format!("the device {major} {minor} does not exist: below 4096 and 1048576 are right")),
    }
}

impl NamedDevices {
    /// Creates the table of an input.
    pub fn new(names: &SharedNames) -> NamedDevices {
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
        let minor = self.names.number(name);
        let minor = minor.ok_or_else(|| format!("there are more than {NAMES_MAX} files or disks here"))?;
        let device = DeviceId::new(0, minor);
        self.known.insert(name.to_owned(), device);
        if self.known.len() <= NAMES_REPORTED_MAX {
            out.notices.add(out.position, format!("device {device} stands for {}", shown(name)));
        }
        Ok(device)
    }
}

impl NamedProcesses {
    /// Creates the table of an input.
    pub fn new(names: &SharedNames) -> NamedProcesses {
        NamedProcesses { names: names.clone(), known: HashMap::new() }
    }

    /// Returns the process id of a name, counted from 1; 0 if there are too many names. Emits the
    /// name at `time_ns` on its first occurrence.
    pub fn pid(&mut self, name: &[u8], time_ns: u64, out: &mut LineOutput<'_>) -> u32 {
        if let Some(pid) = self.known.get(name) {
            return *pid;
        }
        let Some(number) = self.names.number(name) else {
            let kind = "requests of further processes have no process: there are more than 1,048,576 names";
            out.notices.count(kind, out.position, || shown(name));
            return 0;
        };
        let pid = number + 1;
        self.known.insert(name.to_owned(), pid);
        out.batch.push_with(Event { pid, ..Event::new(time_ns, Action::Process) }, name);
        pid
    }
}
