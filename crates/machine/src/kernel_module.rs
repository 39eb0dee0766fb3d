//! The kernel module `hoistway_iosched`, which registers hoistway's elevators with the block layer.

use hoistway_core::Kind;

use crate::files::read_nonempty;
use crate::installed_modules::is_module_installed;
use crate::queue::Queue;
use crate::root::Root;
use crate::scheduler_names::{PREFIX, elevator_of_scheduler, is_of_module};

/// The name of the module.
pub const MODULE: &str = "hoistway_iosched";

/// The elevators that the module registers unless its parameter `elevators` says otherwise.
pub const MODULE_ELEVATORS: [&str; 8] =
    ["cfq", "anticipatory", "fiops", "cfq-bw", "cfq-wf2q", "bfq-v0", "cfq-v3", "paternoster"];

/// The state of the module `hoistway_iosched` on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleState {
    /// The module is not installed for the running kernel.
    Absent,
    /// The module is installed for the running kernel and not loaded.
    Installed,
    /// The module is loaded.
    Loaded {
        /// Its version; `None` if the kernel does not report it.
        version: Option<String>,
    },
}

impl ModuleState {
    /// Reads the state from `/sys/module` and from `/lib/modules` of the running kernel.
    pub fn read(root: &Root) -> ModuleState {
        let directory = root.path("/sys/module").join(MODULE);
        if directory.is_dir() {
            return ModuleState::Loaded { version: read_nonempty(&directory.join("version")) };
        }
        if is_module_installed(root, MODULE) { ModuleState::Installed } else { ModuleState::Absent }
    }

    /// The state in a sentence with the module's elevators of a queue, or of all devices without
    /// one; `None` if the module is absent.
    pub fn sentence(&self, queue: Option<&Queue>) -> Option<String> {
        match self {
            ModuleState::Absent => None,
            ModuleState::Installed => Some(format!(
                "The kernel module {MODULE} is installed and not loaded: `modprobe {MODULE}` adds the schedulers {}.",
                MODULE_ELEVATORS.join(", ")
            )),
            ModuleState::Loaded { version } => {
                let version = version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
                let names: Vec<&str> = queue.map_or_else(Vec::new, |queue| self.elevators(queue).collect());
                let names = match names.as_slice() {
                    [] => String::new(),
                    names => format!(": {} come from it", names.join(", ")),
                };
                Some(format!("The kernel module {MODULE}{version} is loaded{names}."))
            }
        }
    }

    /// The schedulers of a queue that come from the module: none unless it is loaded.
    pub fn elevators<'a>(&self, queue: &'a Queue) -> impl Iterator<Item = &'a str> {
        let is_loaded = matches!(self, ModuleState::Loaded { .. });
        queue.schedulers.iter().map(String::as_str).filter(move |name| is_loaded && is_of_module(name))
    }
}

/// The name of an elevator in `queue/scheduler`: its own name if the queue lists it, or with the
/// prefix `h-`; `None` if the queue lists neither.
pub fn scheduler_of_elevator(queue: &Queue, kind: Kind) -> Option<&str> {
    let is_own = |name: &&str| !name.starts_with(PREFIX) && Kind::from_name(name) == Some(kind);
    let is_prefixed = |name: &&str| name.starts_with(PREFIX) && elevator_of_scheduler(name) == Some(kind);
    let names = || queue.schedulers.iter().map(String::as_str);
    names().find(is_own).or_else(|| names().find(is_prefixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(schedulers: &[&str]) -> Queue {
        Queue { schedulers: schedulers.iter().map(|name| (*name).to_owned()).collect(), ..Queue::default() }
    }

    #[test]
    fn every_default_elevator_of_the_module_is_one_of_hoistway() {
        for name in MODULE_ELEVATORS {
            assert!(Kind::from_name(name).is_some() && is_of_module(name), "{name}");
        }
    }

    #[test]
    fn elevators_come_from_the_module_only_while_it_is_loaded() {
        let queue = queue(&["none", "mq-deadline", "bfq", "cfq", "h-bfq", "adios"]);
        let loaded = ModuleState::Loaded { version: None };
        assert_eq!(loaded.elevators(&queue).collect::<Vec<_>>(), ["cfq", "h-bfq"]);
        assert_eq!(ModuleState::Installed.elevators(&queue).count(), 0);
    }

    #[test]
    fn the_kernels_own_scheduler_goes_before_the_one_of_the_module() {
        let both = queue(&["none", "h-bfq", "bfq", "h-kyber", "cfq"]);
        let name = |kind| scheduler_of_elevator(&both, kind);
        assert_eq!(name(Kind::Bfq), Some("bfq"));
        assert_eq!(name(Kind::Kyber), Some("h-kyber"));
        assert_eq!(name(Kind::Cfq), Some("cfq"));
        assert_eq!(name(Kind::Noop), Some("none"));
        assert_eq!(name(Kind::Deadline), None);
    }
}
