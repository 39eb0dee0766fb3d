//! Recorded runs: the module under test records every call of the core and its answer, and the host
//! repeats the calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

use super::cgroup::Group;
use super::processes::{self, Load as ProcessLoad};
use super::{Context, Failure, Verdict, cgroup};
use crate::device::Device;
use crate::load::{Load, Setup};
use crate::protocol::Counts;
use crate::{Outcome, plan, system, transfer};

const RECORDER: &str = "/sys/kernel/debug/hoistway";
/// The length of a recording's buffer: 16 MiB.
const RECORDS_MAX: u64 = 1 << 18;
/// The time of a run before and after its changes.
const HALF: Duration = Duration::from_millis(120);
/// The processes of each control group.
const MEMBERS: u64 = 2;

/// The changes during a run beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// Threads of all I/O classes.
    Classes,
    /// Also processes in control groups, whose weights change, and one of which moves.
    Groups,
    /// Also changes of tunables and of the number of requests.
    Settings,
    /// All of it, and reservations if the elevator has them.
    Everything,
}

const VARIANTS: [Variant; 4] = [Variant::Classes, Variant::Groups, Variant::Settings, Variant::Everything];

/// Records runs, each with the next elevator of the plan, and hands the recordings to the host.
pub fn record(context: &mut Context, device: &plan::Device, runs: u64) -> Verdict {
    if !Path::new(RECORDER).is_dir() {
        return Err(Failure::Skipped("the module has no recorder".to_owned()));
    }
    cgroup::require_controller("io")?;
    let Some(subject) = context.plan.subject.clone() else {
        return Err(Failure::Skipped("the plan has no module under test".to_owned()));
    };
    let device = context.device(device, "none")?;
    system::write(Path::new(RECORDER).join("buffer_records"), &RECORDS_MAX.to_string())?;
    let (mut bytes, mut lost) = (0, 0);
    let elevators = subject.elevators.len().max(1) as u64;
    for run in 0..runs {
        let Some(elevator) = subject.elevators.get((run % elevators) as usize) else { break };
        // Every elevator meets every variant, whatever the number of elevators is.
        let variant = VARIANTS[((run / elevators + run) % VARIANTS.len() as u64) as usize];
        let recording = one_run(context, &device, elevator, variant).map_err(|error| format!("{elevator}: {error}"))?;
        let name = format!("{}-{elevator}-{variant:?}-{run:03}.rec", device.name()).to_lowercase();
        transfer::send(&name, &recording)?;
        bytes += recording.len() as u64;
        let control = system::read(Path::new(RECORDER).join(device.name()).join("control"))?;
        lost += u64::from(!control.lines().any(|line| line == "lost 0"));
    }
    if lost > 0 {
        return Err(Failure::Failed(format!("{lost} recordings did not fit in {RECORDS_MAX} records")));
    }
    let counts = [("recordings", runs), ("recorded_kib", bytes >> 10)];
    Ok(Counts::from(counts.map(|(name, figure)| (name.to_owned(), figure))))
}

/// Hands the recordings that have not ended to the host, after a campaign hung.
pub fn send_unfinished() {
    for disk in fs::read_dir(RECORDER).into_iter().flatten().flatten() {
        if let Ok(recording) = fs::read(disk.path().join("recording"))
            && !recording.is_empty()
        {
            let _ = transfer::send(&format!("{}-unfinished.rec", disk.file_name().to_string_lossy()), &recording);
        }
    }
}

/// Records one run: from the selection of the elevator until that of another one.
fn one_run(context: &mut Context, device: &Device, elevator: &str, variant: Variant) -> Outcome<Vec<u8>> {
    let queue = device.queue();
    system::write(Path::new(RECORDER).join("record_next"), "1")?;
    let selected = queue.select(elevator);
    system::write(Path::new(RECORDER).join("record_next"), "0")?;
    selected?;
    let setup = Setup { bytes: 8 << 20, writers: 4, readers: 5, ..Setup::new(&device.path(), context.prng.number()) };
    let load = Load::start(setup)?;
    let members = during_load(context, device, variant);
    let loaded = load.finish();
    // Members of the idle class may get nothing before the load ends.
    members?.map_or(Ok(()), Members::finish)?;
    loaded?;
    // The last request of a process may be older than its end.
    queue.select("none")?;
    let path = recording_path(device);
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn recording_path(device: &Device) -> PathBuf {
    Path::new(RECORDER).join(device.name()).join("recording")
}

fn during_load(context: &mut Context, device: &Device, variant: Variant) -> Outcome<Option<Members>> {
    let with_groups = matches!(variant, Variant::Groups | Variant::Everything);
    let with_settings = matches!(variant, Variant::Settings | Variant::Everything);
    let mut members = if with_groups { Some(Members::start(context, device)?) } else { None };
    thread::sleep(HALF);
    if variant == Variant::Everything {
        reserve(device, members.as_ref())?;
    }
    if with_settings {
        let queue = device.queue();
        for _ in 0..3 {
            queue.exercise_tunables(&mut context.prng, &mut context.settings)?;
        }
        queue.set_requests(context.prng.between(4, 512))?;
    }
    if let Some(members) = &mut members {
        members.change(context)?;
    }
    thread::sleep(HALF);
    Ok(members)
}

/// Reserves bandwidth for a process and for a group, if the elevator takes reservations.
fn reserve(device: &Device, members: Option<&Members>) -> Outcome<()> {
    let path = Path::new("/sys/block").join(device.name()).join("queue/iosched/reservations");
    let Some(members) = members.filter(|_| path.exists()) else { return Ok(()) };
    for (child, group) in members.children.iter().map(|(_, child)| child).zip(&members.groups) {
        // A reservation for which the device has no capacity is refused, which is recorded too.
        let _ = system::try_write(&path, &format!("pid {} 1000000", child.id()));
        let _ = system::try_write(&path, &format!("group {} 500000", group.path()));
    }
    Ok(())
}

/// Processes in control groups below one another.
struct Members {
    groups: Vec<Group>,
    children: Vec<(u64, Child)>,
}

impl Members {
    fn start(context: &mut Context, device: &Device) -> Outcome<Members> {
        let parent = Group::create("record")?;
        parent.set("cgroup.subtree_control", "+io")?;
        let groups = ["record/one", "record/two", "record/three"];
        let mut groups: Vec<Group> = groups.iter().map(|name| Group::create(name)).collect::<Outcome<_>>()?;
        let mut children = Vec::new();
        for (index, group) in (0u64..).zip(&groups) {
            for member in 0..MEMBERS {
                let number = index * MEMBERS + member;
                let load = ProcessLoad { processes: 1, operations: 10, kill: false, stable: member == 1 };
                // Their cells are after those of the load.
                let mut command = processes::worker(&device.path(), 512 + number, load, context.prng.number());
                let child = command.spawn().map_err(|error| format!("cannot start a worker: {error}"))?;
                group.add(&child)?;
                children.push((number + 1, child));
            }
        }
        groups.push(parent);
        Ok(Members { groups, children })
    }

    fn change(&mut self, context: &mut Context) -> Outcome<()> {
        for group in &self.groups {
            // Kernels without room for another I/O policy have no such file.
            let _ = group.set("io.hoistway.weight", &context.prng.between(1, 1000).to_string());
        }
        if let (Some((_, child)), Some(group)) = (self.children.first(), self.groups.get(1)) {
            // The process may have ended.
            let _ = group.add(child);
        }
        Ok(())
    }

    fn finish(self) -> Outcome<()> {
        processes::wait(self.children, false)?;
        self.groups.iter().try_for_each(Group::remove)
    }
}
