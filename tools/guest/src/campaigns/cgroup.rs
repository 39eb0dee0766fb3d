//! Control groups: writers with little memory, and groups of the io controller that come and go.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::processes::{self, Load};
use super::{Context, Failure, Verdict};
use crate::protocol::Counts;
use crate::{Outcome, plan, system};

const ROOT: &str = "/sys/fs/cgroup";

/// A control group. Dropping it removes it.
#[derive(Debug)]
pub struct Group {
    directory: PathBuf,
}

impl Group {
    /// The path of the group from the root of the hierarchy.
    pub fn path(&self) -> String {
        let below = self.directory.strip_prefix(ROOT).unwrap_or(&self.directory);
        format!("/{}", below.display())
    }

    /// Creates a group below the root, or below another one that is part of the name.
    pub fn create(name: &str) -> Outcome<Group> {
        let directory = Path::new(ROOT).join(name);
        fs::create_dir(&directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        Ok(Group { directory })
    }

    /// Writes a file of the group.
    pub fn set(&self, file: &str, value: &str) -> Outcome<()> {
        system::write(self.directory.join(file), value)
    }

    /// Moves a process into the group.
    pub fn add(&self, child: &Child) -> Outcome<()> {
        self.set("cgroup.procs", &child.id().to_string())
    }

    /// Removes the group. Its processes may still be on their way out.
    pub fn remove(&self) -> Outcome<()> {
        let begun = Instant::now();
        loop {
            match fs::remove_dir(&self.directory) {
                Ok(()) => return Ok(()),
                Err(error) if begun.elapsed() > Duration::from_secs(20) => {
                    return Err(format!("cannot remove {}: {error}", self.directory.display()));
                }
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Enables a controller for the groups below the root. Skips the campaign if the kernel lacks it.
pub fn require_controller(name: &str) -> Result<(), Failure> {
    let controllers = system::read(Path::new(ROOT).join("cgroup.controllers"))?;
    if !controllers.split(' ').any(|controller| controller == name) {
        return Err(Failure::Skipped(format!("the kernel has no {name} controller")));
    }
    Ok(system::write(Path::new(ROOT).join("cgroup.subtree_control"), &format!("+{name}"))?)
}

/// Runs buffered writers in a group with little memory, beside a process that touches memory.
pub fn memory(context: &mut Context, device: &plan::Device, elevator: &str, seconds: u64, limit_mib: u64) -> Verdict {
    require_controller("memory")?;
    let device = context.device(device, elevator)?;
    let group = Group::create("memory")?;
    group.set("memory.max", &(limit_mib << 20).to_string())?;
    let spawn = |arguments: &[String]| -> Outcome<Child> {
        let mut command = Command::new("/init");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("cannot start a worker: {error}"))?;
        group.add(&child)?;
        Ok(child)
    };
    let mut hog = spawn(&["hog".to_owned(), (limit_mib / 3).to_string()])?;
    let begun = Instant::now();
    let (mut rounds, mut outcome) = (0, Ok(()));
    while begun.elapsed() < Duration::from_secs(seconds) && outcome.is_ok() {
        rounds += 1;
        let mut children = Vec::new();
        for number in 0..4u64 {
            let path = device.path().display().to_string();
            let arguments = ["dirty".to_owned(), path, (number * 10).to_string(), "10".to_owned(), "1".to_owned()];
            children.push((number + 1, spawn(&arguments)?));
        }
        outcome = processes::wait(children, false).map(drop);
    }
    let _ = hog.kill();
    let _ = hog.wait();
    let events = system::read(group.directory.join("memory.events"))?;
    group.remove()?;
    outcome?;
    let limited = events.lines().find_map(|line| line.strip_prefix("max ")?.parse::<u64>().ok()).unwrap_or(0);
    if limited == 0 {
        return Err(Failure::Failed("the memory limit was never reached".to_owned()));
    }
    let counts = [("rounds", rounds), ("mib_written", rounds * 40), ("limit_reached", limited)];
    Ok(Counts::from(counts.map(|(name, figure)| (name.to_owned(), figure))))
}

/// Creates groups with processes, changes their weights, and removes them as soon as the processes
/// have ended; a part of the processes moves to another group during its I/O.
pub fn groups(context: &mut Context, device: &plan::Device, elevator: &str, seconds: u64) -> Verdict {
    require_controller("io")?;
    let device = context.device(device, elevator)?;
    let number = system::read(Path::new("/sys/block").join(device.name()).join("dev"))?;
    let begun = Instant::now();
    let (mut created, mut weights, mut moved) = (0u64, 0u64, 0u64);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let groups: Vec<Group> =
            (0..6).map(|index| Group::create(&format!("io-{created}-{index}"))).collect::<Outcome<_>>()?;
        created += groups.len() as u64;
        let mut children = Vec::new();
        for (index, group) in (0u64..).zip(&groups) {
            for member in 0..2 {
                let load = Load { processes: 1, operations: 12, kill: false, stable: member == 1 };
                let spawned =
                    processes::worker(&device.path(), index * 2 + member, load, context.prng.number()).spawn();
                let child = spawned.map_err(|error| format!("cannot start a worker: {error}"))?;
                group.add(&child)?;
                children.push((index * 2 + member + 1, child));
            }
            let weight = context.prng.between(1, 1000);
            for file in ["io.weight", "io.bfq.weight"] {
                weights += u64::from(system::try_write(&group.directory.join(file), &weight.to_string()).is_ok());
            }
            let limit = format!("{number} wiops={}", context.prng.between(500, 50_000));
            let _ = system::try_write(&group.directory.join("io.max"), &limit);
        }
        if let (Some((_, child)), Some(last)) = (children.first(), groups.last()) {
            moved += u64::from(last.add(child).is_ok());
        }
        processes::wait(children, false)?;
        for group in &groups {
            group.remove()?;
        }
    }
    let counts = [("groups", created), ("weights_set", weights), ("moves", moved)];
    Ok(Counts::from(counts.map(|(name, figure)| (name.to_owned(), figure))))
}
