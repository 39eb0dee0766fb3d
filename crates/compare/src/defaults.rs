//! The drive, the elevators and the host of a comparison that names none.

use hoistway_core::Kind;
use hoistway_drive::{DEFAULT_DRIVE, Profile};
use hoistway_fio::JobFile;
use hoistway_sim::{HostConfig, Kernel, elevator_of_name};

/// The schedulers of Linux 6.
pub const KERNEL_SCHEDULERS: [Kind; 4] = [Kind::Noop, Kind::MqDeadline, Kind::Kyber, Kind::Bfq];

/// The kernel's name of an elevator: `none` for noop.
pub fn scheduler_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Noop => "none",
        kind => kind.info().name,
    }
}

/// The drive and the elevators of a comparison for which the user names none.
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
    /// The defaults for these jobs without a machine: a device that a job names does not exist.
    pub fn without_machine(jobs: &JobFile) -> CompareDefaults {
        CompareDefaults::of_no_device(match named_devices(jobs).first() {
            Some(name) => format!("a SATA SSD: {name} is no device of this machine"),
            None => "a SATA SSD: no job names a device of this machine".to_owned(),
        })
    }

    /// The profile of the drive.
    ///
    /// # Panics
    /// Never: every drive of the defaults is a built-in one.
    pub fn profile(&self) -> Profile {
        Profile::builtin(self.drive).expect("the drive is a built-in one")
    }

    /// The defaults without a device; `why` is the reason for the drive, a clause.
    pub fn of_no_device(why: String) -> CompareDefaults {
        CompareDefaults {
            drive: DEFAULT_DRIVE,
            device: None,
            why,
            elevators: KERNEL_SCHEDULERS.to_vec(),
            why_elevators: "those of a current kernel".to_owned(),
        }
    }
}

/// The devices that the jobs name (`filename=/dev/sda`), each once, in the order of the job file.
pub fn named_devices(jobs: &JobFile) -> Vec<&str> {
    let mut named: Vec<&str> = Vec::new();
    for name in jobs.jobs.iter().flat_map(|job| &job.files.filename).filter(|name| name.starts_with("/dev/")) {
        if !named.contains(&name.as_str()) {
            named.push(name);
        }
    }
    named
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
        let plain = CompareDefaults::without_machine(&jobs("[a]\nsize=1m\n"));
        assert_eq!((plain.drive, plain.device, plain.elevators.len()), (DEFAULT_DRIVE, None, 4));
        let absent = CompareDefaults::without_machine(&jobs("[a]\nfilename=/dev/sdq\n"));
        assert!(absent.why.contains("/dev/sdq is no device of this machine"), "{}", absent.why);
        assert!(hoistway_drive::Profile::builtin(DEFAULT_DRIVE).is_some());
    }
}
