//! I/O priorities of processes: `ioprio_get(2)` and `ioprio_set(2)`.

use std::fmt;
use std::io;

use serde::Serialize;

/// The class of an I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Unset: the effective class follows from the nice value and the CPU scheduling policy.
    #[default]
    None,
    /// Real time.
    Realtime,
    /// Best effort.
    BestEffort,
    /// Idle: served while no other process has requests.
    Idle,
}

impl Class {
    /// All, by their numbers.
    pub const ALL: [Class; 4] = [Class::None, Class::Realtime, Class::BestEffort, Class::Idle];

    /// The name that `ionice` uses.
    pub const fn name(self) -> &'static str {
        match self {
            Class::None => "none",
            Class::Realtime => "realtime",
            Class::BestEffort => "best-effort",
            Class::Idle => "idle",
        }
    }

    /// Parses a name in any case, or the number of a class.
    pub fn from_text(text: &str) -> Option<Class> {
        let by_name = Class::ALL.into_iter().find(|class| class.name().eq_ignore_ascii_case(text));
        by_name.or_else(|| Class::ALL.get(text.parse::<usize>().ok()?).copied())
    }

    /// Returns true for real time and best effort, which have levels.
    pub const fn has_levels(self) -> bool {
        matches!(self, Class::Realtime | Class::BestEffort)
    }
}

/// The number of levels in a class.
pub const LEVELS: u8 = 8;
/// The level of a class without a given level: that of a best-effort process of nice 0.
pub const NORMAL_LEVEL: u8 = 4;

/// The CPU scheduling policy of a process, as far as its I/O priority depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPolicy {
    /// `SCHED_OTHER`, `SCHED_BATCH`.
    #[default]
    Normal,
    /// `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`.
    Realtime,
    /// The policy `SCHED_IDLE`.
    Idle,
}

/// An I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Priority {
    /// The class.
    pub class: Class,
    /// The level within it, 0 (best) to 7.
    pub level: u8,
    /// The hint to the device (Linux 6.5): 0 for none, 1 to 7 for a command duration limit.
    pub hint: u16,
}

/// The kernel's encoding of a priority: three bits of class, ten of hint, three of level.
const CLASS_SHIFT: u16 = 13;
const HINT_SHIFT: u16 = 3;
const HINT_MAX: u16 = 0x3ff;

impl Priority {
    /// The unset priority.
    pub const UNSET: Priority = Priority { class: Class::None, level: 0, hint: 0 };

    /// A priority without a hint. Levels above 7 become 7; the class none has level 0 and the class
    /// idle level 7, whatever is given.
    pub fn new(class: Class, level: u8) -> Priority {
        let level = match class {
            Class::None => 0,
            Class::Idle => LEVELS - 1,
            _ => level.min(LEVELS - 1),
        };
        Priority { class, level, hint: 0 }
    }

    /// Encodes the priority as the kernel does.
    pub fn encoded(self) -> u16 {
        let class = self.class as u16;
        (class << CLASS_SHIFT) | (self.hint.min(HINT_MAX) << HINT_SHIFT) | u16::from(self.level & 7)
    }

    /// Decodes the kernel's number; an unknown class counts as none.
    pub fn from_encoded(number: u16) -> Priority {
        let class = Class::ALL.get(usize::from(number >> CLASS_SHIFT)).copied().unwrap_or_default();
        Priority { class, level: (number & 7) as u8, hint: (number >> HINT_SHIFT) & HINT_MAX }
    }

    /// Returns true if a class is set.
    pub fn is_set(self) -> bool {
        self.class != Class::None
    }

    /// The effective priority. For an unset priority the class follows the CPU policy and the level
    /// is (nice + 20) / 5. Source: ioprio_set(2), from 2.6.26.
    pub fn effective(self, nice: i8, policy: CpuPolicy) -> Priority {
        if self.is_set() {
            return self;
        }
        let level = (i16::from(nice.clamp(-20, 19)) + 20) / 5;
        let class = match policy {
            CpuPolicy::Normal => Class::BestEffort,
            CpuPolicy::Realtime => Class::Realtime,
            CpuPolicy::Idle => Class::Idle,
        };
        Priority { hint: self.hint, ..Priority::new(class, u8::try_from(level).unwrap_or(NORMAL_LEVEL)) }
    }
}

impl fmt::Display for Priority {
    /// Formats the priority as `ionice` does: `best-effort: prio 4`, `idle`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.name())?;
        if self.class != Class::Idle {
            write!(f, ": prio {}", self.level)?;
        }
        match self.hint {
            0 => Ok(()),
            limit @ 1..=7 => write!(f, ", hint duration-limit-{limit}"),
            other => write!(f, ", hint {other}"),
        }
    }
}

/// The processes whose priority is read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityTarget {
    /// A process or thread by id; 0 is the calling thread.
    Process(u32),
    /// All processes of a process group.
    Group(u32),
    /// All processes of a user.
    User(u32),
}

impl PriorityTarget {
    /// The arguments of the system calls: IOPRIO_WHO_PROCESS, _PGRP or _USER, and the id.
    fn numbers(self) -> (libc::c_long, libc::c_long) {
        match self {
            PriorityTarget::Process(pid) => (1, libc::c_long::from(pid)),
            PriorityTarget::Group(group) => (2, libc::c_long::from(group)),
            PriorityTarget::User(uid) => (3, libc::c_long::from(uid)),
        }
    }
}

impl fmt::Display for PriorityTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PriorityTarget::Process(0) => f.write_str("this process"),
            PriorityTarget::Process(pid) => write!(f, "process {pid}"),
            PriorityTarget::Group(group) => write!(f, "process group {group}"),
            PriorityTarget::User(uid) => write!(f, "user {uid}"),
        }
    }
}

/// A priority was not read or not set.
#[derive(Debug, thiserror::Error)]
pub enum PriorityError {
    /// There is no such process.
    #[error("{target}: {}", nothing_found(*target))]
    NoProcess {
        /// The processes.
        target: PriorityTarget,
    },
    /// The caller lacks the permission.
    #[error("{target}: this needs root: {why}")]
    NotPermitted {
        /// The processes.
        target: PriorityTarget,
        /// The part that needs root.
        why: &'static str,
    },
    /// Any other error.
    #[error("{target}: {cause}")]
    Other {
        /// The processes.
        target: PriorityTarget,
        /// The system's error.
        cause: io::Error,
    },
}

fn nothing_found(target: PriorityTarget) -> &'static str {
    match target {
        PriorityTarget::Process(_) => "there is no such process",
        PriorityTarget::Group(_) => "there is no process in it",
        PriorityTarget::User(_) => "there is no process of this user",
    }
}

/// Reads the priority of a process, or the highest of several processes.
///
/// # Errors
/// [`PriorityError`] if there is no such process, or the kernel refuses.
pub fn get(target: PriorityTarget) -> Result<Priority, PriorityError> {
    let (kind, number) = target.numbers();
    // SAFETY: the system call takes numbers only.
    let encoded = unsafe { libc::syscall(libc::SYS_ioprio_get, kind, number) };
    u16::try_from(encoded).map(Priority::from_encoded).map_err(|_| last_error(target, None))
}

/// Sets the priority of one or more processes.
///
/// # Errors
/// [`PriorityError`] if there is no such process, or the caller lacks the permission: the class
/// real time (CAP_SYS_ADMIN or CAP_SYS_NICE) and processes of other users need root.
pub fn set(target: PriorityTarget, priority: Priority) -> Result<(), PriorityError> {
    let (kind, number) = target.numbers();
    // SAFETY: the system call takes numbers only.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, kind, number, libc::c_long::from(priority.encoded())) };
    if done == 0 { Ok(()) } else { Err(last_error(target, Some(priority))) }
}

fn last_error(target: PriorityTarget, wanted: Option<Priority>) -> PriorityError {
    let cause = io::Error::last_os_error();
    match cause.raw_os_error() {
        Some(libc::ESRCH) => PriorityError::NoProcess { target },
        Some(libc::EPERM) => {
            let why = match (wanted.map(|priority| priority.class), target) {
                (Some(Class::Realtime), PriorityTarget::Process(0)) => {
                    "only root may set the class realtime (CAP_SYS_NICE)"
                }
                (Some(Class::Realtime), _) => {
                    "only root may set the class realtime (CAP_SYS_NICE) and change other users' processes"
                }
                _ => "the process is another user's",
            };
            PriorityError::NotPermitted { target, why }
        }
        _ => PriorityError::Other { target, cause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_encoded_and_decoded() {
        let best_effort = Priority::new(Class::BestEffort, 4);
        assert_eq!(best_effort.encoded(), (2 << 13) + 4);
        let hinted = Priority { hint: 3, ..Priority::new(Class::Realtime, 7) };
        assert_eq!(hinted.encoded(), (1 << 13) | (3 << 3) | 7);
        for priority in [best_effort, hinted, Priority::UNSET, Priority::new(Class::Idle, 5)] {
            assert_eq!(Priority::from_encoded(priority.encoded()), priority);
        }
        // Classes 4 to 7 are not assigned.
        assert_eq!(Priority::from_encoded(5 << 13).class, Class::None);
    }

    #[test]
    fn an_unset_priority_follows_nice_and_the_cpu_policy() {
        let of = |nice, policy| Priority::UNSET.effective(nice, policy).to_string();
        assert_eq!(of(0, CpuPolicy::Normal), "best-effort: prio 4");
        assert_eq!(of(-20, CpuPolicy::Normal), "best-effort: prio 0");
        assert_eq!(of(19, CpuPolicy::Normal), "best-effort: prio 7");
        assert_eq!(of(i8::MAX, CpuPolicy::Realtime), "realtime: prio 7");
        assert_eq!(of(0, CpuPolicy::Idle), "idle");
        let set = Priority::new(Class::BestEffort, 1);
        assert_eq!(set.effective(19, CpuPolicy::Idle), set);
    }

    #[test]
    fn a_class_is_parsed_from_name_or_number() {
        assert_eq!(["none", "Realtime", "BEST-EFFORT", "3"].map(Class::from_text), Class::ALL.map(Some));
        assert_eq!(["4", "", "-1", "rt", "best effort"].map(Class::from_text), [None; 5]);
    }

    #[test]
    fn a_thread_sets_and_reads_its_own_priority() {
        // In a separate thread, so that no other test is affected.
        std::thread::spawn(|| {
            set(PriorityTarget::Process(0), Priority::new(Class::BestEffort, 6)).expect("lowering needs no permission");
            assert_eq!(get(PriorityTarget::Process(0)).unwrap().to_string(), "best-effort: prio 6");
            set(PriorityTarget::Process(0), Priority::new(Class::Idle, 0)).expect("idle needs no permission");
            assert_eq!(get(PriorityTarget::Process(0)).unwrap().to_string(), "idle");
        })
        .join()
        .expect("the thread does not panic");
    }

    #[test]
    fn a_missing_process_is_named_in_the_error() {
        // Process ids end at 2^22 (proc(5)).
        let error = get(PriorityTarget::Process(5_000_000)).unwrap_err().to_string();
        assert_eq!(error, "process 5000000: there is no such process");
        let error = set(PriorityTarget::Group(5_000_000), Priority::UNSET).unwrap_err().to_string();
        assert_eq!(error, "process group 5000000: there is no process in it");
    }
}
