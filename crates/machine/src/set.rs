//! Setting a device's scheduler, its tunables and its queue: checked first, then written, read back, and put back if anything fails.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::device::BlockDevice;
use crate::kind::Kind;
use crate::queue::{Attribute, Queue, choice};
use crate::root::{Root, text};
use crate::rows::{self, Row};
use crate::stack::hidden_paths;

/// A name and the value that it shall have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The name: `scheduler`, a tunable, a setting of the queue.
    pub name: String,
    /// The value, as the kernel takes it.
    pub value: String,
}

impl Assignment {
    /// Reads `name=value`; `queue/` and `iosched/` may stand before the name.
    ///
    /// # Errors
    /// When it has another form.
    pub fn parse(text: &str) -> Result<Assignment, PlanError> {
        let form = || PlanError::Form { text: text.to_owned() };
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let (name, value) = (name.trim(), value.trim());
        let name = name.strip_prefix("queue/").unwrap_or(name);
        let name = name.strip_prefix("iosched/").unwrap_or(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || value.is_empty() || value.contains(char::is_control) {
            return Err(form());
        }
        Ok(Assignment { name: name.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for Assignment {
    /// As a word of a shell's command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:+%".contains(c);
        if self.value.chars().all(plain) {
            write!(f, "{}={}", self.name, self.value)
        } else {
            write!(f, "'{}={}'", self.name, self.value.replace('\'', r"'\''"))
        }
    }
}

/// Why something cannot be set: found before anything is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A word is no assignment.
    #[error("`{text}` is no setting; it would be NAME=VALUE, as in scheduler=bfq or read_ahead_kb=128")]
    Form {
        /// The word.
        text: String,
    },
    /// Nothing is to be set.
    #[error("nothing is to be set; it would be NAME=VALUE, as in scheduler=bfq or read_ahead_kb=128")]
    Nothing,
    /// A name stands there twice.
    #[error("`{name}` is set twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// The device has no queue of its own.
    #[error("{device} is a partition: the queue is its disk's, {disk}")]
    Partition {
        /// The partition.
        device: String,
        /// Its disk.
        disk: String,
    },
    /// The device has no scheduler.
    #[error("{device} has no scheduler to choose: {why}")]
    NoChoice {
        /// The device.
        device: String,
        /// What it is, and where its requests are scheduled.
        why: String,
    },
    /// The kernel does not have this scheduler for it.
    #[error("{device} has no scheduler `{scheduler}`; it has {}{hint}", available.join(", "))]
    Scheduler {
        /// The device.
        device: String,
        /// The scheduler.
        scheduler: String,
        /// What there is.
        available: Vec<String>,
        /// Why it may be missing, and what would be right.
        hint: String,
    },
    /// There is no such file.
    #[error("{device} under {scheduler} has no setting `{name}`; {}", told_names(scheduler, tunables, settings))]
    Name {
        /// The device.
        device: String,
        /// The scheduler that it would have.
        scheduler: String,
        /// The name.
        name: String,
        /// That scheduler's tunables.
        tunables: Vec<String>,
        /// The queue's settings that can be set.
        settings: Vec<String>,
    },
    /// It can only be read.
    #[error("`{name}` of {device} can only be read: it is {value}")]
    ReadOnly {
        /// The device.
        device: String,
        /// The name.
        name: String,
        /// What it says.
        value: String,
    },
    /// A value is not what the file takes.
    #[error("`{value}` is no value of {name}: {takes}")]
    Value {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it takes.
        takes: String,
    },
}

fn told_names(scheduler: &str, tunables: &[String], settings: &[String]) -> String {
    let of_queue = format!("the queue has {}", settings.join(", "));
    match tunables {
        [] => format!("{scheduler} has no tunables, {of_queue}"),
        tunables => format!("{scheduler} has {}; {of_queue}", tunables.join(", ")),
    }
}

/// The rows of a scheduler's tunables, from whoever knows them; none of those it does not know.
pub type Rows<'a> = &'a dyn Fn(&str) -> Vec<Row>;

/// What is going to be written, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The device.
    device: BlockDevice,
    /// What is written, and where below the device's directory in sysfs; the scheduler first.
    steps: Vec<(Assignment, String)>,
}

const SCHEDULER: &str = "scheduler";

impl Plan {
    /// Checks assignments against what the device has and the rows that are known. A scheduler in a module counts as there if the module is.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn new(root: &Root, device: &BlockDevice, words: &[Assignment], rows: Rows<'_>) -> Result<Plan, PlanError> {
        let name = device.name.clone();
        if let Some(disk) = &device.disk {
            return Err(PlanError::Partition { device: name, disk: disk.clone() });
        }
        let Some(queue) = &device.queue else {
            return Err(PlanError::NoChoice { device: name, why: "it has no queue".to_owned() });
        };
        if words.is_empty() {
            return Err(PlanError::Nothing);
        }
        if let Some(twice) =
            words.iter().enumerate().find(|(at, word)| words[..*at].iter().any(|o| o.name == word.name))
        {
            return Err(PlanError::Twice { name: twice.1.name.clone() });
        }
        let asked = words.iter().find(|word| word.name == SCHEDULER);
        if let Some(asked) = asked {
            check_scheduler(root, device, queue, &asked.value)?;
        }
        let switched =
            asked.map(|asked| asked.value.as_str()).filter(|asked| Some(*asked) != queue.scheduler.as_deref());
        let scheduler = switched.or(queue.scheduler.as_deref()).unwrap_or("none");
        let known = rows(scheduler);
        let mut steps: Vec<_> = asked.map(|asked| (asked.clone(), format!("queue/{SCHEDULER}"))).into_iter().collect();
        for word in words.iter().filter(|word| word.name != SCHEDULER) {
            let place = Place::of(device, queue, scheduler, switched.is_some(), &word.name)?;
            let row = known.iter().find(|row| row.name == word.name && place.is_tunable);
            let row = row.or_else(|| rows::setting(&word.name).filter(|_| !place.is_tunable));
            let value = checked(queue, word, row)?;
            steps.push((Assignment { name: word.name.clone(), value }, place.file));
        }
        Ok(Plan { device: device.clone(), steps })
    }

    /// What is written, in this order, and where below the device's directory in sysfs.
    pub fn steps(&self) -> impl Iterator<Item = (&Assignment, &str)> {
        self.steps.iter().map(|(word, file)| (word, file.as_str()))
    }

    /// The device.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }
}

fn check_scheduler(root: &Root, device: &BlockDevice, queue: &Queue, scheduler: &str) -> Result<(), PlanError> {
    if !queue.has_choice() && rows::module(scheduler).is_none_or(|_| queue.hardware_queues.is_none()) {
        return Err(PlanError::NoChoice { device: device.name.clone(), why: why_no_choice(root, device) });
    }
    let is_there = queue.schedulers.iter().any(|name| name == scheduler);
    if is_there || rows::module(scheduler).is_some_and(|module| has_module(root, module)) {
        return Ok(());
    }
    let hint = match (rows::successor(scheduler), rows::module(scheduler)) {
        (Some(successor), _) => format!(" ({scheduler} is of kernels before 5.0; what comes nearest is {successor})"),
        (_, Some(module)) => {
            format!(" (the kernel was built without it, or its module {module} is not installed below /lib/modules)")
        }
        _ => String::new(),
    };
    let available = queue.schedulers.clone();
    Err(PlanError::Scheduler { device: device.name.clone(), scheduler: scheduler.to_owned(), available, hint })
}

/// Why a device has no scheduler to choose, and where its requests are scheduled.
pub fn why_no_choice(root: &Root, device: &BlockDevice) -> String {
    let below = device.slaves.join(", ");
    let paths = hidden_paths(root, device);
    match device.kind {
        Kind::Zram | Kind::Ram | Kind::Pmem => "it is memory, and nothing is queued for it".to_owned(),
        _ if !below.is_empty() => format!("it hands requests on at once, and they are scheduled below: set {below}"),
        _ if !paths.is_empty() => {
            let names = paths.join(", ");
            format!(
                "it has several paths, and requests are scheduled on these, which the kernel hides: {names} (as in /sys/block/{}/queue/scheduler)",
                paths[0]
            )
        }
        _ => "its driver hands requests on at once".to_owned(),
    }
}

/// Whether a module is installed for the running kernel, or built in.
fn has_module(root: &Root, module: &str) -> bool {
    let Some(release) = text(&root.path("/proc/sys/kernel/osrelease")).filter(|release| !release.is_empty()) else {
        return false;
    };
    let folder = root.path("/lib/modules").join(release);
    let listed = ["modules.dep", "modules.builtin"].iter().filter_map(|name| text(&folder.join(name)));
    // Lines begin with the module's path: kernel/block/bfq.ko.xz: ...
    let is_it = |line: &str| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        file.split(".ko").next() == Some(module)
    };
    listed.into_iter().any(|text| text.lines().any(is_it))
}

/// Where a name lies.
struct Place {
    file: String,
    is_tunable: bool,
}

impl Place {
    fn of(
        device: &BlockDevice,
        queue: &Queue,
        scheduler: &str,
        switches: bool,
        name: &str,
    ) -> Result<Place, PlanError> {
        let present = |attribute: &Attribute, is_tunable| {
            if attribute.writable {
                return Ok(Place { file: attribute.file.clone(), is_tunable });
            }
            let (device, name, value) = (device.name.clone(), attribute.name.clone(), attribute.value.clone());
            Err(PlanError::ReadOnly { device, name, value })
        };
        let tunables: Vec<String> = match rows::kernel_tunables(scheduler) {
            _ if !switches => queue.tunables.iter().map(|tunable| tunable.name.clone()).collect(),
            Some(names) => names.iter().map(|name| (*name).to_owned()).collect(),
            // A scheduler that nobody here knows: what it has shows when it is there.
            None => vec![name.to_owned()],
        };
        if let Some(setting) = queue.setting(name) {
            return present(setting, false);
        }
        if let Some(tunable) = queue.tunable(name).filter(|_| !switches) {
            return present(tunable, true);
        }
        if tunables.iter().any(|known| known == name) {
            return Ok(Place { file: format!("queue/iosched/{name}"), is_tunable: true });
        }
        let settings = queue.settings.iter().filter(|setting| setting.writable).map(|setting| setting.name.clone());
        let (device, scheduler, settings) = (device.name.clone(), scheduler.to_owned(), settings.collect());
        Err(PlanError::Name { device, scheduler, name: name.to_owned(), tunables, settings })
    }
}

/// The value as the kernel takes it, within its range. A unit may stand behind a number, if it is the file's own.
fn checked(queue: &Queue, word: &Assignment, row: Option<&Row>) -> Result<String, PlanError> {
    let Some(row) = row else { return Ok(word.value.clone()) };
    let wrong = |takes: String| PlanError::Value { name: word.name.clone(), value: word.value.clone(), takes };
    if !row.words.is_empty() {
        let plain = word.value.replace(['-', '_'], " ");
        let known = row.words.iter().find(|known| **known == plain);
        return known
            .map(|known| (*known).to_owned())
            .ok_or_else(|| wrong(format!("it takes {}", row.words.join(" or "))));
    }
    let max = hardware_limit(queue, row).unwrap_or(row.max);
    let range = match (row.min, max) {
        (0, 1) => "0 or 1".to_owned(),
        (min, _) if min <= i64::from(i32::MIN) => "a number".to_owned(),
        (min, max) if max >= i64::from(i32::MAX) => format!("{min} or more"),
        (min, max) => format!("{min} to {max}"),
    };
    let takes = || match row.unit {
        "" | "0/1" | "factor" | "number" | "form" | "times" => format!("it takes {range}"),
        unit => format!("it takes {range} {unit}"),
    };
    let number = word.value.strip_suffix(row.unit).unwrap_or(&word.value).trim_end();
    match number.parse::<i64>() {
        Ok(number) if (row.min..=max).contains(&number) => Ok(number.to_string()),
        _ => Err(wrong(takes())),
    }
}

/// What the device itself bounds.
fn hardware_limit(queue: &Queue, row: &Row) -> Option<i64> {
    let limit = match row.name {
        "max_sectors_kb" => "max_hw_sectors_kb",
        "discard_max_bytes" => "discard_max_hw_bytes",
        _ => return None,
    };
    queue.setting(limit)?.value.parse().ok()
}

/// What became of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The name.
    pub name: String,
    /// What it was; nothing if it was not there.
    pub before: Option<String>,
    /// What was asked for; nothing if nobody asked, and the kernel changed it with something else.
    pub asked: Option<String>,
    /// What it is now; nothing if it is not there any more.
    pub after: Option<String>,
}

impl Change {
    /// Whether it is now what was asked for.
    pub fn is_as_asked(&self) -> bool {
        self.asked.is_none() || self.asked == self.after
    }

    /// Whether it was that already.
    pub fn is_none(&self) -> bool {
        self.before == self.after
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// What was asked for, in the order of writing, and what the kernel made of it.
    pub changes: Vec<Change>,
    /// What the kernel changed besides.
    pub besides: Vec<Change>,
    /// What brings everything back.
    pub back: Vec<Assignment>,
}

/// Why something was not set, though it seemed right.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The kernel did not take a value.
    #[error("{device}: {name}={value} was not taken: {}{}", told(cause), put_back(not_restored))]
    Write {
        /// The device.
        device: String,
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What the kernel says.
        cause: io::Error,
        /// What could not be put back: where everything could, nothing.
        not_restored: Vec<String>,
    },
    /// The device has gone.
    #[error("{device}: it has gone")]
    Gone {
        /// The device.
        device: String,
    },
}

fn told(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
            format!("this needs root, and a /sys that can be written ({cause})")
        }
        Some(libc::EINVAL) => format!("the kernel finds it invalid ({cause})"),
        Some(libc::ENOENT) => format!("there is no such setting ({cause})"),
        _ => cause.to_string(),
    }
}

fn put_back(not_restored: &[String]) -> String {
    match not_restored {
        [] => "; everything is as it was".to_owned(),
        names => format!("; these could not be put back: {}", names.join(", ")),
    }
}

impl Plan {
    /// Writes it all: the scheduler first, then the others in their order, each read back. What is so already is not written. `rows` tells which of the
    /// former scheduler's tunables were not at their defaults, for the way back.
    ///
    /// # Errors
    /// When the kernel does not take a value; then all is put back.
    pub fn apply(&self, rows: Rows<'_>) -> Result<Applied, ApplyError> {
        let sysfs = &self.device.sysfs;
        let gone = || ApplyError::Gone { device: self.device.name.clone() };
        let former = Queue::read(sysfs).ok_or_else(gone)?;
        let mut changes = Vec::new();
        for (word, file) in &self.steps {
            let path = sysfs.join(file);
            let before = if word.name == SCHEDULER { former.scheduler.clone() } else { shown(&path, &word.name) };
            let done = if before.as_deref() == Some(&word.value) { Ok(()) } else { write(&path, &word.value) };
            let after = shown(&path, &word.name);
            let refused = match done {
                Ok(()) if word.name == SCHEDULER && after.as_deref() != Some(&word.value) => {
                    Some(io::Error::from_raw_os_error(libc::EINVAL))
                }
                Ok(()) => None,
                Err(cause) => Some(cause),
            };
            if let Some(cause) = refused {
                let (name, value) = (word.name.clone(), word.value.clone());
                let not_restored = restore(sysfs, &former);
                return Err(ApplyError::Write { device: self.device.name.clone(), name, value, cause, not_restored });
            }
            // A tunable of the former scheduler by the same name is another's.
            let before = before.filter(|_| !file.starts_with("queue/iosched/") || !self.switches(&former));
            changes.push(Change { name: word.name.clone(), before, asked: Some(word.value.clone()), after });
        }
        let now = Queue::read(sysfs).ok_or_else(gone)?;
        let besides = besides(&former, &now, &changes);
        let back = self.way_back(&former, &changes, &besides, rows);
        Ok(Applied { changes, besides, back })
    }

    fn switches(&self, former: &Queue) -> bool {
        self.steps.iter().any(|(word, _)| word.name == SCHEDULER && former.scheduler.as_deref() != Some(&word.value))
    }

    fn way_back(&self, former: &Queue, changes: &[Change], besides: &[Change], rows: Rows<'_>) -> Vec<Assignment> {
        let mut back: Vec<Assignment> = Vec::new();
        let mut add = |name: &str, value: &str| {
            if !back.iter().any(|word| word.name == name) {
                back.push(Assignment { name: name.to_owned(), value: value.to_owned() });
            }
        };
        for change in changes.iter().filter(|change| !change.is_none()) {
            if let Some(before) = &change.before {
                add(&change.name, before);
            }
        }
        if self.switches(former) {
            let known = rows(former.scheduler.as_deref().unwrap_or("none"));
            for tunable in former.tunables.iter().filter(|tunable| tunable.writable) {
                let default = known.iter().find(|row| row.name == tunable.name).and_then(|row| row.default);
                // The same time in two units, and the coarser one has it.
                let is_repeated = tunable.name == "slice_idle_us"
                    && former
                        .tunable("slice_idle")
                        .is_some_and(|coarse| format!("{}000", coarse.value) == tunable.value);
                if !is_repeated && default.is_none_or(|default| default.to_string() != tunable.value) {
                    add(&tunable.name, &tunable.value);
                }
            }
        }
        for change in besides {
            if let Some(before) = &change.before {
                add(&change.name, before);
            }
        }
        back
    }
}

/// The settings that the kernel changed though nobody asked, as far as they can be set; tunables come and go with their scheduler.
fn besides(former: &Queue, now: &Queue, changes: &[Change]) -> Vec<Change> {
    let asked = |name: &str| changes.iter().any(|change| change.name == name);
    let same_scheduler = former.scheduler == now.scheduler;
    let pairs = |of: &Queue| -> BTreeMap<String, String> {
        let tunables = of.tunables.iter().filter(|_| same_scheduler);
        let all = of.settings.iter().chain(tunables).filter(|attribute| attribute.writable);
        all.map(|attribute| (attribute.name.clone(), attribute.value.clone())).collect()
    };
    let (former, now) = (pairs(former), pairs(now));
    let differs = |(name, before): (&String, &String)| {
        let after = now.get(name);
        (after != Some(before) && !asked(name)).then(|| Change {
            name: name.clone(),
            before: Some(before.clone()),
            asked: None,
            after: after.cloned(),
        })
    };
    former.iter().filter_map(differs).collect()
}

/// Puts a queue back to what it was; answers what could not be.
fn restore(sysfs: &Path, former: &Queue) -> Vec<String> {
    let mut failed = Vec::new();
    let mut put = |name: &str, file: &str, value: &str| {
        let path = sysfs.join(file);
        if shown(&path, name).as_deref() != Some(value)
            && (write(&path, value).is_err() || shown(&path, name).as_deref() != Some(value))
        {
            failed.push(format!("{name}={value}"));
        }
    };
    if let Some(scheduler) = &former.scheduler {
        put(SCHEDULER, "queue/scheduler", scheduler);
    }
    for attribute in former.tunables.iter().chain(&former.settings).filter(|attribute| attribute.writable) {
        put(&attribute.name, &attribute.file, &attribute.value);
    }
    failed
}

/// What a file says: of the scheduler's the one in brackets.
fn shown(path: &Path, name: &str) -> Option<String> {
    let text = text(path)?;
    if name == SCHEDULER { choice(&text).1 } else { Some(text) }
}

/// One write, as sysfs wants it: a file that is not there is not made.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() < 4096) {
        // Files of sysfs say that they are a page long, and have nothing to cut off; those of another tree do.
        let _ = file.set_len(0);
    }
    file.write_all(format!("{value}\n").as_bytes())
}
