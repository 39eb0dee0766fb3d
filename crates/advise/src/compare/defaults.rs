//! The drive, the elevators and the host of a comparison that names none: those of the device that
//! a job names, or those of a current machine.

use hoistway_core::Kind;
use hoistway_drive::{DEFAULT_DRIVE, Profile};
use hoistway_fio::JobFile;
use hoistway_machine::{BlockDevice, Queue, Root, devices, find, queues_below};
use hoistway_sim::{HostConfig, Kernel, elevator_of_name};

use crate::bench::KERNEL_SCHEDULERS;
use crate::device_facts::{candidates, drive_model_below};

/// What a comparison runs on if the user names neither drive nor elevators.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CompareDefaults {
    /// The name of a built-in drive.
    pub drive: &'static str,
    /// The device of this machine that the drive stands for; `None` for the default drive.
    pub device: Option<String>,
    /// The reason for the drive, a clause.
    pub why: String,
    /// The elevators that the device offers, or those of a current kernel.
    #[serde(skip)]
    pub elevators: Vec<Kind>,
    /// The reason for the elevators, a clause.
    pub why_elevators: String,
}

/// The built-in drive that stands for a device of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestDrive {
    /// The name of the drive.
    pub drive: &'static str,
    /// The whole device; the disk of a partition.
    pub device: BlockDevice,
    /// The reason for the drive, a clause.
    pub why: String,
}

impl NearestDrive {
    /// Finds the drive model nearest to the device that `name` names ([`find`]).
    ///
    /// # Errors
    /// The reason, a clause, if there is no such device, or no drive behind it.
    pub fn new(root: &Root, name: &str) -> Result<NearestDrive, String> {
        let device = find(root, name).map_err(|_| format!("{name} is no device of this machine"))?;
        let all = devices(root).unwrap_or_default();
        NearestDrive::of_device(root, &all, name, device)
    }

    fn of_device(root: &Root, all: &[BlockDevice], name: &str, device: BlockDevice) -> Result<NearestDrive, String> {
        let disk = device.disk.as_ref().and_then(|disk| all.iter().find(|other| other.name == *disk));
        let device = disk.cloned().unwrap_or(device);
        let model = drive_model_below(root, all, &device).ok_or_else(|| format!("{name} has no drive behind it"))?;
        let why = format!("the model nearest to {} of this machine: {}", device.name, model.why);
        Ok(NearestDrive { drive: model.profile, device, why })
    }
}

/// Lists of elevators with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EveryElevator {
    /// Every elevator that a version of Linux contained, in the order of the versions.
    History,
    /// Those, the elevators that were only posted or are extensions, and registered custom ones.
    All,
}

impl EveryElevator {
    /// The elevators of the list, in the order in which they appeared.
    pub fn kinds(self) -> Vec<Kind> {
        let was_in_linux = |kind: &Kind| !matches!(kind.info().in_linux.split(' ').next(), Some("posted" | "never"));
        let is_listed = |kind: &Kind| self == EveryElevator::All || was_in_linux(kind);
        hoistway_custom::all().into_iter().filter(is_listed).collect()
    }
}

/// An entry of a list of elevators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A list with a name: `history`, `all`.
    Every(EveryElevator),
    /// One elevator.
    One(Kind),
}

impl Named {
    /// Parses an entry of a list: an elevator, `history` or `all`.
    ///
    /// # Errors
    /// A message with the names near to this one.
    pub fn parse(name: &str) -> Result<Named, String> {
        match name {
            "all" => Ok(Named::Every(EveryElevator::All)),
            "history" => Ok(Named::Every(EveryElevator::History)),
            _ => elevator_of_name(name).map(Named::One).map_err(|error| error.to_string()),
        }
    }
}

/// The named elevators; those of `default` if none is named.
///
/// # Errors
/// The end of a sentence about the list, if it names an elevator twice, or a whole list beside
/// others.
pub fn named_elevators(named: &[Named], default: impl FnOnce() -> Vec<Kind>) -> Result<Vec<Kind>, String> {
    match named {
        [] => return Ok(default()),
        [Named::Every(list)] => return Ok(list.kinds()),
        _ => {}
    }
    let mut elevators = Vec::with_capacity(named.len());
    for named in named {
        match *named {
            Named::Every(list) => {
                let name = if list == EveryElevator::All { "all" } else { "history" };
                return Err(format!("names `{name}` beside others: it stands alone"));
            }
            Named::One(kind) if elevators.contains(&kind) => {
                return Err(format!("names `{}` twice: name each once", kind.info().name));
            }
            Named::One(kind) => elevators.push(kind),
        }
    }
    Ok(elevators)
}

/// The host for these elevators: that of a current kernel if it has all of them. Otherwise each
/// elevator runs in the block layer of its own kernel, on the host of 2.6.18.
pub fn default_host(elevators: &[Kind]) -> HostConfig {
    if elevators.iter().all(|kind| KERNEL_SCHEDULERS.contains(kind)) {
        HostConfig::kernel(Kernel::V6_1)
    } else {
        HostConfig::default()
    }
}

impl CompareDefaults {
    /// The defaults for these jobs: if a job names a device of the machine (`filename=/dev/sda`),
    /// the drive model nearest to it and the schedulers that it offers.
    pub fn new(root: &Root, jobs: &JobFile) -> CompareDefaults {
        let mut named: Vec<&str> = Vec::new();
        for name in jobs.jobs.iter().flat_map(|job| &job.filename).filter(|name| name.starts_with("/dev/")) {
            if !named.contains(&name.as_str()) {
                named.push(name);
            }
        }
        let found = named.iter().find_map(|name| Some((*name, find(root, name).ok()?)));
        match found {
            Some((name, device)) => CompareDefaults::of_device(root, name, device, &named),
            None => CompareDefaults::of_no_device(match named.first() {
                Some(name) => format!("a SATA SSD: {name} is no device of this machine"),
                None => "a SATA SSD: no job names a device of this machine".to_owned(),
            }),
        }
    }

    /// The profile of the drive.
    ///
    /// # Panics
    /// Never: every drive of the defaults is a built-in one.
    pub fn profile(&self) -> Profile {
        Profile::builtin(self.drive).expect("the drive is a built-in one")
    }

    /// The defaults without a device.
    fn of_no_device(why: String) -> CompareDefaults {
        CompareDefaults {
            drive: DEFAULT_DRIVE,
            device: None,
            why,
            elevators: KERNEL_SCHEDULERS.to_vec(),
            why_elevators: "those of a current kernel".to_owned(),
        }
    }

    /// The defaults for a device that the jobs name as `name`; `named` are all devices that the
    /// jobs name.
    fn of_device(root: &Root, name: &str, device: BlockDevice, named: &[&str]) -> CompareDefaults {
        let all = devices(root).unwrap_or_default();
        let (drive, device, why) = match NearestDrive::of_device(root, &all, name, device) {
            Ok(NearestDrive { drive, device, why }) => (drive, device, why),
            Err(why) => return CompareDefaults::of_no_device(format!("a SATA SSD: {why}")),
        };
        let others = match named.len() {
            0 | 1 => String::new(),
            _ => format!("; one drive stands for all of {}", named.join(", ")),
        };
        let (elevators, why_elevators) = offered(root, &all, &device)
            .unwrap_or_else(|| (KERNEL_SCHEDULERS.to_vec(), "those of a current kernel".to_owned()));
        CompareDefaults { drive, why: format!("{why}{others}"), device: Some(device.name), elevators, why_elevators }
    }
}

/// The schedulers that can be set on the queue of a device, or on the first queue below it, in the
/// order of the kernel's documentation; `None` if there is no such queue.
fn offered(root: &Root, all: &[BlockDevice], device: &BlockDevice) -> Option<(Vec<Kind>, String)> {
    let has_choice = |device: &&BlockDevice| device.queue.as_ref().is_some_and(Queue::has_choice);
    let below = || queues_below(root, all, device).into_iter().find(has_choice);
    let scheduled = Some(device).filter(has_choice).or_else(below)?;
    let (can, _) = candidates(root, scheduled, scheduled.queue.as_ref()?);
    let elevators: Vec<Kind> = KERNEL_SCHEDULERS.into_iter().filter(|kind| can.contains(kind)).collect();
    (!elevators.is_empty()).then(|| (elevators, format!("those that {} can be set to", scheduled.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_has_the_elevators_of_linux_and_all_has_the_posted_ones_too() {
        let names = |list: EveryElevator| list.kinds().iter().map(|kind| kind.info().name).collect::<Vec<_>>();
        let history = names(EveryElevator::History);
        assert_eq!((history.first(), history.last()), (Some(&"linus"), Some(&"kyber")));
        assert!(history.contains(&"cfq-tree") && !history.contains(&"sfq") && !history.contains(&"cfq-bw"));
        assert_eq!(EveryElevator::All.kinds(), Kind::ALL);
    }

    #[test]
    fn a_host_of_today_takes_only_elevators_of_today() {
        assert_eq!(default_host(&[Kind::Noop, Kind::Bfq]).kernel, Some(Kernel::V6_1));
        assert_eq!(default_host(&[Kind::Noop, Kind::CfqV3]).kernel, None);
    }

    #[test]
    fn jobs_without_a_device_of_the_machine_get_the_default_drive() {
        let jobs = |text: &str| hoistway_fio::parse(text, "a.fio", &|_| None, &|_, _| unreachable!()).expect("jobs");
        let nothing = Root::at("/nothing/here");
        let plain = CompareDefaults::new(&nothing, &jobs("[a]\nsize=1m\n"));
        assert_eq!((plain.drive, plain.device, plain.elevators.len()), (DEFAULT_DRIVE, None, 4));
        let absent = CompareDefaults::new(&nothing, &jobs("[a]\nfilename=/dev/sdq\n"));
        assert!(absent.why.contains("/dev/sdq is no device of this machine"), "{}", absent.why);
        assert!(hoistway_drive::Profile::builtin(DEFAULT_DRIVE).is_some());
    }
}
