//! Bad input: parameters, names and numbers that the module must refuse, processes beyond its
//! tables, and queues for which there is no memory.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::removal::{own_subject, remove_unused};
use super::{Context, Failure, Verdict};
use crate::device::Device;
use crate::kernel_log::LogReader;
use crate::load::{Load, Setup};
use crate::plan::{self, Subject};
use crate::protocol::Counts;
use crate::wait::wait_until;
use crate::{Outcome, module, system};

/// Parameters with which the insertion must fail, and what the kernel's log must say.
const PARAMETERS: [(&str, &str); 7] = [
    ("elevators=nonsense", "there is no elevator nonsense; there are "),
    ("elevators=cfq,nonsense", "there is no elevator nonsense; there are "),
    ("elevators=cfq,cfq", "elevators= names cfq twice"),
    ("elevators=", "elevators= names no elevator"),
    ("elevators=,,", "elevators= names no elevator"),
    ("contexts=3", "contexts=3: 16 to 65536 would be right"),
    ("groups=0", "groups=0: 1 to 4096 would be right"),
];

/// Texts that no tunable accepts.
const NO_VALUES: [&str; 8] = ["garbage", "\n", " ", "1 2", "0x", "1.5", "-9223372036854775808", "9223372036854775808"];

/// Texts that are no reservations.
const NO_RESERVATIONS: [&str; 10] = [
    "garbage",
    "\n",
    "pid",
    "pid 1",
    "pid 0 1000000",
    "pid -1 1000000",
    "pid one 1000000",
    "pid 1 18446744073709551616",
    "pid 1 1000000 2 3 4",
    "user 1 1000000",
];

/// Names of elevators that do not exist.
const NO_ELEVATORS: [&str; 3] = ["nonsense", "cfq2", "a-name-that-is-longer-than-any-elevator's"];

/// The processes that share the tables of 16.
const PROCESSES: u64 = 64;
/// The time for which they run at least. A processor may have given some of them no time by then.
const SHARING: Duration = Duration::from_millis(400);
/// The memory in KiB that is left for the rest of the system when a queue must not get its tables
/// of 55 MiB: less if the kernel had more than it said.
const LEFT_KIB: [u64; 3] = [40 << 10, 28 << 10, 20 << 10];

/// Refuses bad input, and inserts the module as before at the end.
pub fn run(context: &mut Context) -> Verdict {
    let subject = own_subject(context)?;
    let mut counts = Counts::new();
    let refused = refuse(context, &subject, &mut counts);
    let restored = remove_if_inserted(&subject).and_then(|()| context.insert_subject());
    refused?;
    restored?;
    Ok(counts)
}

fn refuse(context: &mut Context, subject: &Subject, counts: &mut Counts) -> Result<(), Failure> {
    let device = context.device(&plan::Device::Disk("vdb".to_owned()), "none")?;
    values(&device, subject, counts)?;
    remove_unused(subject)?;
    parameters(context, &device, subject, counts)?;
    contexts(context, &device, subject, counts)?;
    remove_unused(subject)?;
    memory(context, &device, subject, counts)?;
    Ok(())
}

fn remove_if_inserted(subject: &Subject) -> Outcome<()> {
    if module::is_inserted(&subject.name) { remove_unused(subject) } else { Ok(()) }
}

fn count(counts: &mut Counts, name: &str, figure: u64) {
    *counts.entry(name.to_owned()).or_default() += figure;
}

/// Tries to insert the module with bad parameters.
fn parameters(context: &Context, device: &Device, subject: &Subject, counts: &mut Counts) -> Outcome<()> {
    let before = device.queue().elevators()?;
    for (parameters, expected) in PARAMETERS {
        let mut log = LogReader::open_at_end()?;
        match context.modules.try_insert(&subject.name, parameters) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(format!("insertion with {parameters}: {error} instead of EINVAL")),
            Ok(()) => return Err(format!("the module was inserted with {parameters}")),
        }
        let messages = log.messages();
        if !messages.iter().any(|message| message.contains(expected)) {
            let messages = messages.join("\n");
            return Err(format!("after {parameters} the log does not say `{expected}`, but\n{messages}"));
        }
        let after = device.queue().elevators()?;
        if after != before || module::is_inserted(&subject.name) {
            return Err(format!("insertion with {parameters} failed, and left {}", after.join(", ")));
        }
        count(counts, "insertions_refused", 1);
    }
    Ok(())
}

/// Writes bad values to each tunable of each elevator, bad reservations and unknown elevators.
fn values(device: &Device, subject: &Subject, counts: &mut Counts) -> Outcome<()> {
    for elevator in &subject.elevators {
        device.queue().select(elevator)?;
        let directory = Path::new("/sys/block").join(device.name()).join("queue/iosched");
        let entries = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_writable(path)) {
            let texts = if path.ends_with("reservations") { NO_RESERVATIONS.as_slice() } else { &NO_VALUES };
            for text in texts {
                refused(&path, text, &[libc::EINVAL, libc::ERANGE])?;
                count(counts, "values_refused", 1);
            }
            nothing(&path)?;
            if path.ends_with("reservations") {
                refused(&path, "group /no-such-group 1000000", &[libc::ENOENT])?;
            }
        }
        for name in NO_ELEVATORS {
            refused(&directory.with_file_name("scheduler"), name, &[libc::EINVAL])?;
            count(counts, "elevators_refused", 1);
        }
        if device.queue().selected()? != *elevator {
            return Err(format!("{elevator} is no longer selected after bad input"));
        }
    }
    device.queue().select("none")
}

fn is_writable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o200 != 0)
}

/// Writes a text. Fails unless the kernel refuses it with one of the errors and the file reads as
/// before.
fn refused(path: &Path, text: &str, errors: &[i32]) -> Outcome<()> {
    let before = system::read(path)?;
    let at = || format!("`{}` written to {}", text.escape_debug(), path.display());
    match system::try_write(path, text) {
        Err(error) if error.raw_os_error().is_some_and(|number| errors.contains(&number)) => {}
        Err(error) => return Err(format!("{}: {error}", at())),
        Ok(()) => return Err(format!("{} is accepted; it was {before} and is {}", at(), system::read(path)?)),
    }
    let after = system::read(path)?;
    if after == before { Ok(()) } else { Err(format!("{} changed {before} to {after}", at())) }
}

/// Writes no byte at all, which may succeed, but must change nothing.
fn nothing(path: &Path) -> Outcome<()> {
    let before = system::read(path)?;
    let file = File::options().write(true).open(path);
    let _ = file.and_then(|mut file| file.write(&[]));
    let after = system::read(path)?;
    if after == before { Ok(()) } else { Err(format!("a write of no byte to {} changed it", path.display())) }
}

/// Runs more processes than the module has contexts for.
fn contexts(context: &mut Context, device: &Device, subject: &Subject, counts: &mut Counts) -> Outcome<()> {
    context.modules.insert(&subject.name, &format!("{} contexts=16", subject.parameters))?;
    let elevator = context.prng.pick(&subject.elevators).cloned().unwrap_or_default();
    device.queue().select(&elevator)?;
    // Each thread is a process to the block layer.
    let setup =
        Setup { writers: PROCESSES / 2, readers: PROCESSES / 2, ..Setup::new(&device.path(), context.prng.number()) };
    let load = Load::start(setup)?;
    thread::sleep(SHARING);
    let (mut state, mut shared) = (String::new(), 0);
    let waited = wait_until(&format!("{PROCESSES} processes of {elevator} do not share 16 contexts"), || {
        state = device.queue().elevator_state();
        shared = figure(&state, "total_shared_contexts");
        // A kernel without debugfs shows no state.
        Ok(shared > 0 || state.is_empty())
    });
    super::add(counts, load.finish()?);
    waited.map_err(|message| format!("{message}; the state is\n{state}"))?;
    count(counts, "shared_contexts", shared);
    device.queue().select("none")
}

/// A number in a file of debugfs.
fn figure(state: &str, name: &str) -> u64 {
    let value = state.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0)
}

/// Selects elevators with the largest tables while there is no memory for them.
fn memory(context: &mut Context, device: &Device, subject: &Subject, counts: &mut Counts) -> Outcome<()> {
    context.modules.insert(&subject.name, &format!("{} contexts=65536 groups=4096", subject.parameters))?;
    let setup = Setup { bytes: 4 << 20, writers: 3, readers: 3, ..Setup::new(&device.path(), context.prng.number()) };
    let load = Load::start(setup)?;
    let scarce = Scarce::new()?;
    let mut tried = Ok(());
    let elevator = subject.elevators.first().map_or("none", String::as_str);
    for before in FORMER.into_iter().filter(|before| *before == "none" || !keeps_directories()) {
        tried = without_memory(&scarce, device, before, elevator, counts);
        if tried.is_err() {
            break;
        }
    }
    drop(scarce);
    super::add(counts, load.finish()?);
    tried?;
    // With memory, the same selection succeeds.
    device.queue().select(elevator)?;
    device.queue().select("none")
}

/// The schedulers that a selection without memory is to replace.
const FORMER: [&str; 2] = ["none", "mq-deadline"];

/// Returns true if the kernel keeps the directory `iosched` of a former elevator after a selection
/// that failed, as Linux 7.2 does for each new elevator: no further one can be selected then.
fn keeps_directories() -> bool {
    let release = super::release();
    release.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= 7)
}

/// Selects an elevator instead of another one, with less and less memory until it fails.
fn without_memory(scarce: &Scarce, device: &Device, before: &str, elevator: &str, counts: &mut Counts) -> Outcome<()> {
    for left_kib in LEFT_KIB {
        device.queue().select(before)?;
        scarce.leave(left_kib)?;
        if fails_for_memory(device, before, elevator, counts)? {
            return Ok(());
        }
    }
    Err(format!("{elevator} was selected; there is {} KiB of memory", free_kib()?))
}

/// Selects an elevator. Returns false if it gets its memory; otherwise the selection must fail with
/// the error and the message of missing memory.
fn fails_for_memory(device: &Device, before: &str, elevator: &str, counts: &mut Counts) -> Outcome<bool> {
    let mut log = LogReader::open_at_end()?;
    let scheduler = Path::new("/sys/block").join(device.name()).join("queue/scheduler");
    match system::try_write(&scheduler, elevator) {
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {}
        Err(error) => return Err(format!("{elevator} without memory: {error} instead of ENOMEM")),
        Ok(()) => return Ok(false),
    }
    let messages = log.messages();
    if !messages.iter().any(|message| message.contains("no memory for a queue of")) {
        return Err(format!("the log does not say `no memory for a queue`, but\n{}", messages.join("\n")));
    }
    let after = device.queue().selected()?;
    match after == before {
        true => count(counts, "kept_schedulers", 1),
        // The kernel ends the former elevator before it makes the new one.
        false if after == "none" => count(counts, "fell_to_none", 1),
        false => return Err(format!("{after} is selected instead of {before}")),
    }
    Ok(true)
}

/// The memory that is free, in KiB.
fn free_kib() -> Outcome<u64> {
    let text = system::read("/proc/meminfo")?;
    Ok(figure(&text.replace(" kB", ""), "MemFree:"))
}

/// The memory that the kernel keeps for itself, in KiB.
const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";

/// The part of the memory that the processors' lists of free pages may hold; 0 is the default.
const LISTS: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";

/// A kernel that keeps almost all free memory for itself. Dropping it ends that.
struct Scarce {
    before: String,
    /// A process that the kernel may kill for its memory: it must not kill the first one.
    victim: Child,
}

impl Scarce {
    fn new() -> Outcome<Scarce> {
        let mut victim = Command::new("/init");
        victim.args(["hog", "4"]).stdin(Stdio::null()).stdout(Stdio::null());
        let victim = victim.spawn().map_err(|error| format!("cannot start a worker: {error}"))?;
        let scarce = Scarce { before: system::read(RESERVE)?, victim };
        system::write(format!("/proc/{}/oom_score_adj", scarce.victim.id()), "1000")?;
        Ok(scarce)
    }

    /// Leaves some memory to the rest of the system.
    fn leave(&self, left_kib: u64) -> Outcome<()> {
        system::write(RESERVE, &self.before)?;
        system::drop_caches()?;
        // The processors' lists do not count as free, and would take most of what is left.
        // Compaction empties them.
        let _ = system::try_write(Path::new(LISTS), "100000");
        let _ = system::try_write(Path::new("/proc/sys/vm/compact_memory"), "1");
        system::write(RESERVE, &free_kib()?.saturating_sub(left_kib).to_string())
    }
}

impl Drop for Scarce {
    fn drop(&mut self) {
        let _ = system::write(RESERVE, &self.before);
        let _ = system::try_write(Path::new(LISTS), "0");
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
