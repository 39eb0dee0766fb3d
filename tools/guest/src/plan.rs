//! The plan of a boot: modules, elevators and campaigns. The host writes it as JSON into the
//! initial RAM disk.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The path of the plan in the initial RAM disk.
pub const PATH: &str = "/plan.json";

/// The plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The files of modules by name.
    pub modules: BTreeMap<String, ModuleFile>,
    /// The modules that are inserted first, with those that they need.
    pub boot: Vec<String>,
    /// The module under test.
    pub subject: Option<Subject>,
    /// The elevators that devices are switched among.
    pub elevators: Vec<String>,
    /// The campaigns in their order.
    pub steps: Vec<Step>,
    /// The seed of the random choices.
    pub seed: u64,
    /// Commands for a shell on the console instead of campaigns; an empty text is an interactive
    /// shell.
    pub shell: Option<String>,
    /// True if the guest itself ends campaigns that hang; otherwise only the host does.
    pub watchdog: bool,
    /// The factor of the limits of requests, of switches and of the kernel's search for hung tasks;
    /// 0 stands for 1.
    pub patience: u64,
}

impl Plan {
    /// Multiplies the limits of all times: kernels with sanitizers are slower.
    pub fn set_patience(&mut self, factor: u64) {
        self.patience = factor;
        for step in &mut self.steps {
            step.limit_seconds *= factor;
        }
    }

    /// Multiplies a limit by the factor of the plan.
    pub fn limit(&self, most: u64) -> u64 {
        most * self.patience.max(1)
    }
}

/// A module in the initial RAM disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFile {
    /// The path of the file.
    pub path: String,
    /// The names of the modules that are inserted before it.
    pub needs: Vec<String>,
}

/// The module whose insertion and removal are tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The name of the module.
    pub name: String,
    /// The parameters, as insmod takes them.
    pub parameters: String,
    /// The elevators that the module registers.
    pub elevators: Vec<String>,
}

/// A campaign with its name and its time limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The name in reports.
    pub name: String,
    /// The seconds after which the campaign counts as hung.
    pub limit_seconds: u64,
    /// The campaign.
    pub campaign: Campaign,
}

/// A block device that a campaign creates or uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// A device of the virtual machine, such as `vda`.
    Disk(String),
    /// A device of null_blk.
    Null {
        /// The number of submission queues.
        queues: u32,
        /// The depth of a hardware queue.
        depth: u32,
        /// The time of a request in nanoseconds; 0: requests complete at their submission.
        completion_ns: u64,
    },
    /// A device of scsi_debug; without that module the SCSI disk of the virtual machine.
    Scsi {
        /// The number of submission queues of scsi_debug.
        queues: u32,
        /// The depth of the queue of scsi_debug.
        depth: u32,
    },
    /// A loop device over a file in memory.
    Loop,
}

/// An elevator and its lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElevatorLock {
    /// The elevator.
    pub elevator: String,
    /// A text in the name of the lock's row in `/proc/lock_stat`.
    pub lock: String,
}

/// A campaign and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Campaign {
    /// The module under test is inserted, and its elevators are registered.
    Insert,
    /// Verified load under one elevator.
    Verify {
        /// The device.
        device: Device,
        /// The elevator.
        elevator: String,
        /// The duration.
        seconds: u64,
    },
    /// Verified load during switches among all elevators, with changes of the number of requests
    /// and of tunables.
    Switch {
        /// The device.
        device: Device,
        /// The number of switches.
        switches: u64,
        /// The longest pause between two switches in milliseconds.
        pause_ms: u64,
    },
    /// Many processes, each with requests of its own, I/O classes included.
    Processes {
        /// The device.
        device: Device,
        /// The elevator.
        elevator: String,
        /// The number of processes at the same time.
        processes: u64,
        /// The writes and reads of each.
        operations: u64,
        /// True if a part of the processes is killed during its I/O.
        kill: bool,
    },
    /// Buffered writers in a control group with little memory.
    Memory {
        /// The device.
        device: Device,
        /// The elevator.
        elevator: String,
        /// The duration.
        seconds: u64,
        /// The memory of the group in MiB.
        limit_mib: u64,
    },
    /// Writers that flush after every write.
    Flushes {
        /// The device.
        device: Device,
        /// The elevator.
        elevator: String,
        /// The number of processes.
        processes: u64,
        /// The writes of each.
        operations: u64,
    },
    /// Control groups of the io controller that come and go during their processes' I/O.
    Groups {
        /// The device.
        device: Device,
        /// The elevator.
        elevator: String,
        /// The duration.
        seconds: u64,
    },
    /// Errors, aborted commands, timeouts and resets of scsi_debug under verified load.
    Faults {
        /// The elevator.
        elevator: String,
        /// The duration of each kind of fault.
        seconds: u64,
        /// True if buses and hosts are reset as well as the disk: kernels may wait 10 s after each.
        hosts: bool,
    },
    /// Disks of scsi_debug that disappear under load.
    Unplug {
        /// The number of removals.
        rounds: u64,
    },
    /// The times for which the locks of elevators are held, from the kernel's statistics of locks.
    LockStat {
        /// The device.
        device: Device,
        /// The elevators with their locks, measured one after the other under the same load.
        elevators: Vec<ElevatorLock>,
        /// The duration for each.
        seconds: u64,
    },
    /// fio with verification.
    Fio {
        /// The device.
        device: Device,
        /// The elevator.
        elevator: String,
        /// The duration.
        seconds: u64,
    },
    /// The module under test cannot be removed while it is used, and can be afterwards; removals
    /// race with switches.
    Remove {
        /// A device whose elevators are switched.
        device: Device,
        /// The duration of the race.
        race_seconds: u64,
    },
    /// Bad parameters, bad values of tunables, more processes than contexts, and queues without
    /// memory: all are refused, and nothing else changes.
    Refusals,
    /// A trace of a device under each elevator has its insertions and its elevator's notes.
    Blktrace {
        /// The device.
        device: Device,
    },
    /// Insertions, switches and removals, after which the kernel must have as much memory as
    /// before.
    Leak {
        /// A device whose elevators are switched.
        device: Device,
        /// The number of cycles.
        cycles: u64,
    },
    /// The cost of a request under each of some elevators.
    Cost {
        /// The device.
        device: Device,
        /// The elevators.
        elevators: Vec<String>,
        /// The number of requests under each.
        requests: u64,
        /// The load.
        load: CostLoad,
    },
    /// A job of fio.
    Job(JobSetup),
    /// A player beside copies.
    Player(PlayerSetup),
    /// Runs with the elevators of the module under test, one after the other, which the module
    /// records. The recordings are files for the host.
    Record {
        /// The device.
        device: Device,
        /// The number of runs.
        runs: u64,
    },
    /// A fault that a test plants, which must be found.
    Planted {
        /// The fault.
        fault: Fault,
    },
}

/// The parameters of a job of fio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSetup {
    /// The serial number of the SCSI disk.
    pub serial: String,
    /// The requests that the disk gets at a time.
    pub depth: u64,
    /// The elevator.
    pub elevator: String,
    /// True if the job works on files of an ext4 file system on the disk, in the current directory.
    pub on_files: bool,
    /// Trees of files on that file system, which parts of the job walk through.
    #[serde(default)]
    pub trees: Vec<TreeFiles>,
    /// The parts of the job, which begin at the same time.
    pub parts: Vec<JobPart>,
}

/// The directories and files of a tree, in the order of their creation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFiles {
    /// The paths of the directories below the root of the tree.
    pub directories: Vec<String>,
    /// The paths and the lengths in bytes of the files.
    pub files: Vec<(String, u64)>,
}

/// A walk through a tree of files by programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// The name of the section in the results.
    pub section: String,
    /// The index of the tree.
    pub tree: usize,
    /// The command for the shell, which prints the contents of all files of the current directory.
    pub command: String,
    /// True if it prints an archive of tar; otherwise it prints nothing but the contents.
    pub is_archive: bool,
    /// The seconds after which the walk ends; 0: at the end of the tree.
    pub seconds: u64,
}

/// A part of a job of fio: all its processes, or those of a control group; or a walk of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPart {
    /// The control group and its weight.
    pub group: Option<(String, u64)>,
    /// The text of the job file; `${DISK}` is the path of the disk.
    pub job: String,
    /// The walk that runs instead of fio.
    #[serde(default)]
    pub walk: Option<Walk>,
    /// The name of the file with the results that the host gets.
    pub results: String,
}

/// The parameters of the campaign with a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerSetup {
    /// The serial number of the disk.
    pub serial: String,
    /// The elevator.
    pub elevator: String,
    /// Files below `queue` of the disk, such as `iosched/slice_idle`, and what is written to them.
    pub tunables: Vec<(String, String)>,
    /// The I/O class of the player: 1 is real time, 2 best effort.
    pub io_class: u64,
    /// The rate of the player.
    pub bytes_per_second: u64,
    /// The bandwidth that is reserved for the player; 0: none.
    pub reserved_bytes_per_second: u64,
    /// The duration.
    pub seconds: u64,
}

/// The load of a measurement of costs: random reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostLoad {
    /// Threads with one request each at a time.
    Synchronous {
        /// The number of threads.
        threads: u64,
    },
    /// One thread that submits requests in batches.
    Batches {
        /// The number of requests in a batch.
        depth: u64,
    },
}

/// A fault that shows that the harness finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A writer leaves out a write.
    LostWrite,
    /// A cell is written to another address.
    MisplacedWrite,
    /// A line like that of a warning is in the kernel's log.
    Warning,
    /// A campaign does not end.
    Hang,
    /// The kernel crashes.
    Crash,
    /// Memory of the kernel is not freed.
    Leak,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_writing_and_reading() {
        let device = Device::Null { queues: 2, depth: 8, completion_ns: 10_000 };
        let campaign = Campaign::Switch { device, switches: 1_000, pause_ms: 20 };
        let step = Step { name: "switch".to_owned(), limit_seconds: 60, campaign };
        let plan = Plan { steps: vec![step], seed: 7, ..Plan::default() };
        let text = serde_json::to_string(&plan).expect("a plan has string keys");
        assert_eq!(serde_json::from_str::<Plan>(&text).expect("it was just written"), plan);
    }

    #[test]
    fn limits_are_multiplied() {
        let step = Step { name: "insert".to_owned(), limit_seconds: 60, campaign: Campaign::Insert };
        let mut plan = Plan { steps: vec![step], ..Plan::default() };
        assert_eq!(plan.limit(5_000), 5_000);
        plan.set_patience(4);
        assert_eq!((plan.limit(5_000), plan.steps[0].limit_seconds), (20_000, 240));
    }
}
