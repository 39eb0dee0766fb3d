//! Block devices: their creation, and the files of their queues in sysfs.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::module::Modules;
use crate::prng::Prng;
use crate::wait::wait_for;
use crate::{Outcome, plan, scsi, system};

/// The bytes of the devices that this program creates.
const BYTES: u64 = 64 << 20;

/// A block device that a campaign uses. Dropping it selects no elevator and removes the device if
/// this program created it.
#[derive(Debug)]
pub struct Device {
    name: String,
    created: Created,
}

/// What the end of a device undoes.
#[derive(Debug)]
enum Created {
    Nothing,
    Null(PathBuf),
    Loop(i32),
    Scsi,
}

impl Device {
    /// Creates or finds a device. Returns None if the kernel lacks its driver.
    pub fn open(wanted: &plan::Device, modules: &Modules) -> Outcome<Option<Device>> {
        let device = match wanted {
            plan::Device::Disk(name) => Device { name: name.clone(), created: Created::Nothing },
            plan::Device::Null { queues, depth, completion_ns } => {
                match null_device(*queues, *depth, *completion_ns, modules)? {
                    Some(device) => device,
                    None => return Ok(None),
                }
            }
            plan::Device::Scsi { queues, depth } => match scsi::insert(*queues, *depth, modules)? {
                Some(name) => Device { name, created: Created::Scsi },
                None => return Ok(None),
            },
            plan::Device::Loop => match loop_device(modules)? {
                Some(device) => device,
                None => return Ok(None),
            },
        };
        wait_for(&device.path(), true)?;
        Ok(Some(device))
    }

    /// The name in `/sys/block`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device file.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// The queue of the device.
    pub fn queue(&self) -> Queue {
        Queue::new(&self.name)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // A device that disappeared has no queue any more.
        let _ = self.queue().select("none");
        match &self.created {
            Created::Nothing => {}
            Created::Null(directory) => {
                let _ = system::write(directory.join("power"), "0");
                let _ = fs::remove_dir(directory);
            }
            Created::Loop(number) => {
                let _ = system::detach_loop(*number);
                let _ = fs::remove_file("/tmp/loop");
            }
            Created::Scsi => scsi::remove(),
        }
    }
}

fn null_device(queues: u32, depth: u32, completion_ns: u64, modules: &Modules) -> Outcome<Option<Device>> {
    modules.insert("null_blk", "nr_devices=0")?;
    let root = Path::new("/sys/kernel/config/nullb");
    if !root.is_dir() {
        return Ok(None);
    }
    let directory = root.join("nullb0");
    let _ = fs::remove_dir(&directory);
    fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for (key, value) in [
        ("size", BYTES >> 20),
        ("memory_backed", 1),
        ("queue_mode", 2),
        ("submit_queues", u64::from(queues)),
        ("irqmode", if completion_ns == 0 { 0 } else { 2 }),
        ("completion_nsec", completion_ns),
        ("hw_queue_depth", u64::from(depth)),
        ("power", 1),
    ] {
        system::write(directory.join(key), &value.to_string())?;
    }
    Ok(Some(Device { name: "nullb0".to_owned(), created: Created::Null(directory) }))
}

fn loop_device(modules: &Modules) -> Outcome<Option<Device>> {
    modules.insert("loop", "max_loop=1")?;
    if wait_for(Path::new("/dev/loop-control"), true).is_err() {
        return Ok(None);
    }
    let file = File::options().read(true).write(true).create(true).truncate(true).open("/tmp/loop");
    let file = file.map_err(|error| format!("/tmp/loop: {error}"))?;
    file.set_len(BYTES).map_err(|error| format!("/tmp/loop: {error}"))?;
    let number = system::attach_loop(&file)?;
    Ok(Some(Device { name: format!("loop{number}"), created: Created::Loop(number) }))
}

/// The queue of a block device in sysfs.
#[derive(Clone, Debug)]
pub struct Queue {
    directory: PathBuf,
}

impl Queue {
    /// The queue of a device by its name.
    pub fn new(name: &str) -> Queue {
        Queue { directory: Path::new("/sys/block").join(name).join("queue") }
    }

    /// The elevators that can be selected.
    pub fn elevators(&self) -> Outcome<Vec<String>> {
        Ok(parse_schedulers(&system::read(self.directory.join("scheduler"))?).0)
    }

    /// The selected elevator.
    pub fn selected(&self) -> Outcome<String> {
        let text = system::read(self.directory.join("scheduler"))?;
        parse_schedulers(&text).1.ok_or_else(|| format!("no elevator is selected: {text}"))
    }

    /// Selects an elevator and checks that it is selected then.
    pub fn select(&self, elevator: &str) -> Outcome<()> {
        let path = self.directory.join("scheduler");
        system::write(&path, elevator)?;
        match parse_schedulers(&system::read(&path)?).1 {
            Some(selected) if selected == elevator => Ok(()),
            selected => Err(format!(
                "{} has {} selected after `{elevator}` was written",
                path.display(),
                selected.as_deref().unwrap_or("nothing")
            )),
        }
    }

    /// Selects the elevator that takes requests in their order: `none`, or `noop` on a kernel whose
    /// block layer has a single queue.
    pub fn select_fifo(&self) -> Outcome<()> {
        self.select(if self.elevators()?.iter().any(|name| name == "none") { "none" } else { "noop" })
    }

    /// The files of debugfs about the queue; empty without debugfs. During a switch some of them
    /// can be read only after it.
    pub fn state(&self) -> String {
        let mut text = String::new();
        collect(&self.debug_directory(), 0, &mut text);
        text
    }

    /// The files of debugfs about the elevator.
    pub fn elevator_state(&self) -> String {
        let mut text = String::new();
        collect(&self.debug_directory().join("sched"), 0, &mut text);
        text
    }

    fn debug_directory(&self) -> PathBuf {
        let name = self.directory.parent().and_then(Path::file_name).unwrap_or_default();
        Path::new("/sys/kernel/debug/block").join(name)
    }

    /// Sets the number of requests. Returns false if the kernel refuses the number.
    pub fn set_requests(&self, requests: u64) -> Outcome<bool> {
        let path = self.directory.join("nr_requests");
        match system::try_write(&path, &requests.to_string()) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
            Err(error) => Err(format!("cannot write {requests} to {}: {error}", path.display())),
        }
    }

    /// Reads all tunables of the elevator and writes one of them. Returns the numbers of tunables
    /// that were read, written and refused, and adds what was written to a list.
    pub fn exercise_tunables(&self, prng: &mut Prng, written: &mut Vec<String>) -> Outcome<[u64; 3]> {
        let directory = self.directory.join("iosched");
        let Ok(entries) = fs::read_dir(&directory) else { return Ok([0; 3]) };
        let (mut figures, mut writable) = ([0; 3], Vec::new());
        for entry in entries.flatten() {
            let path = entry.path();
            let value = system::read(&path)?;
            figures[0] += 1;
            if entry.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o200 != 0) {
                writable.push((path, value));
            }
        }
        writable.sort();
        let Some((path, value)) = prng.pick(&writable) else { return Ok(figures) };
        let new = plausible_value(value, prng);
        match system::try_write(path, &new) {
            Ok(()) => {
                figures[1] += 1;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                written.push(format!("{name}={new} (was {value})"));
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ERANGE)) => figures[2] += 1,
            Err(error) => return Err(format!("cannot write {}: {error}", path.display())),
        }
        system::read(path)?;
        Ok(figures)
    }
}

/// Adds the files of a directory and of those below it to a text.
fn collect(directory: &Path, depth: u32, text: &mut String) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && depth < 2 {
            collect(&path, depth + 1, text);
        } else if let Ok(contents) = system::read(&path)
            && !contents.is_empty()
            && contents.len() < 4096
        {
            text.push_str(&format!("{}: {contents}\n", path.display()));
        }
    }
}

/// A value near the current one of a tunable: the same text if it is no number.
fn plausible_value(current: &str, prng: &mut Prng) -> String {
    let Ok(value) = current.trim().parse::<u64>() else { return current.trim().to_owned() };
    let choices = [value, value / 2, value.saturating_mul(2), value.saturating_add(1), 1, 0];
    // Zeros are rare: a queue that serves nothing for a time is slow, not wrong.
    let last = if prng.below(8) == 0 { choices.len() } else { choices.len() - 1 };
    prng.pick(&choices[..last]).copied().unwrap_or(value).min(1_000_000_000).to_string()
}

/// The elevators in a scheduler file, and the selected one, which is in brackets.
fn parse_schedulers(text: &str) -> (Vec<String>, Option<String>) {
    let (mut names, mut selected) = (Vec::new(), None);
    for word in text.split_whitespace() {
        let name = word.trim_start_matches('[').trim_end_matches(']');
        if name.len() != word.len() {
            selected = Some(name.to_owned());
        }
        names.push(name.to_owned());
    }
    (names, selected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_elevator_is_in_brackets() {
        let (names, selected) = parse_schedulers("none mq-deadline [cfq]\n");
        assert_eq!(names, ["none", "mq-deadline", "cfq"]);
        assert_eq!(selected.as_deref(), Some("cfq"));
        assert_eq!(parse_schedulers("none").1, None);
    }

    #[test]
    fn values_of_tunables_stay_near_the_current_one() {
        let mut prng = Prng::new(1);
        let values: Vec<u64> = (0..200).map(|_| plausible_value("100", &mut prng).parse().expect("a number")).collect();
        assert!(values.iter().all(|value| [0, 1, 50, 100, 101, 200].contains(value)), "{values:?}");
        assert!(values.iter().filter(|value| **value == 0).count() < 20);
        assert_eq!(plausible_value("[auto] on off", &mut prng), "[auto] on off");
    }
}
