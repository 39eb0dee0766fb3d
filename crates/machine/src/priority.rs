//! I/O priorities, as `ioprio_get(2)` and `ioprio_set(2)` have them.

use std::fmt;
use std::io;

use serde::Serialize;

/// The class of an I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nothing set: it follows nice and the policy by which the process is given the CPU.
    #[default]
    None,
    /// Real time.
    Realtime,
    /// Best effort.
    BestEffort,
    /// Idle.
    Idle,
}

impl Class {
    /// All, by their numbers.
    pub const ALL: [Class; 4] = [Class::None, Class::Realtime, Class::BestEffort, Class::Idle];

    /// Its name, as `ionice` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::None => "none",
            Class::Realtime => "realtime",
            Class::BestEffort => "best-effort",
            Class::Idle => "idle",
        }
    }

    /// The class of a name in any case, or of a number.
    pub fn from_text(text: &str) -> Option<Class> {
        let by_name = Class::ALL.into_iter().find(|class| class.name().eq_ignore_ascii_case(text));
        by_name.or_else(|| Class::ALL.get(text.parse::<usize>().ok()?).copied())
    }

    /// Whether it has levels: real time and best effort do.
    pub const fn has_levels(self) -> bool {
        matches!(self, Class::Realtime | Class::BestEffort)
    }
}

/// How many levels a class has.
pub const LEVELS: u8 = 8;
/// The level of who has asked for a class and no level: that of a best-effort process of nice 0.
pub const NORMAL_LEVEL: u8 = 4;

/// The policy by which a process is given the CPU, as far as its I/O follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPolicy {
    /// `SCHED_OTHER`, `SCHED_BATCH`.
    #[default]
    Normal,
    /// `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`.
    Realtime,
    /// `SCHED_IDLE`.
    Idle,
}

/// An I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Priority {
    /// The class.
    pub class: Class,
    /// The level within it, 0 (best) to 7.
    pub level: u8,
    /// What the device is told besides (Linux 6.5): 0 nothing, 1 to 7 the number of a limit on the duration of commands.
    pub hint: u16,
}

/// The bits of a priority in the kernel's number: three of class, ten of hint, three of level.
const CLASS_SHIFT: u16 = 13;
const HINT_SHIFT: u16 = 3;
const HINT_MAX: u16 = 0x3ff;

impl Priority {
    /// No priority.
    pub const UNSET: Priority = Priority { class: Class::None, level: 0, hint: 0 };

    /// A priority without a hint. Levels end at 7; unset it has none, and the idle class the last one, whatever is given.
    pub fn new(class: Class, level: u8) -> Priority {
        let level = match class {
            Class::None => 0,
            Class::Idle => LEVELS - 1,
            _ => level.min(LEVELS - 1),
        };
        Priority { class, level, hint: 0 }
    }

    /// The kernel's number for it.
    pub fn encoded(self) -> u16 {
        let class = self.class as u16;
        (class << CLASS_SHIFT) | (self.hint.min(HINT_MAX) << HINT_SHIFT) | u16::from(self.level & 7)
    }

    /// The priority of a number of the kernel's; a class that is none of ours counts as none.
    pub fn from_encoded(number: u16) -> Priority {
        let class = Class::ALL.get(usize::from(number >> CLASS_SHIFT)).copied().unwrap_or_default();
        Priority { class, level: (number & 7) as u8, hint: (number >> HINT_SHIFT) & HINT_MAX }
    }

    /// Whether a class was set.
    pub fn is_set(self) -> bool {
        self.class != Class::None
    }

    /// The priority that counts: of an unset one the class follows the CPU policy and the level is (nice + 20) / 5 (ioprio_set(2), from 2.6.26).
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
    /// As `ionice` prints it: `best-effort: prio 4`, `idle`.
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

/// Whose priority it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A process or a thread, by its number; 0 is the calling thread.
    Process(u32),
    /// All processes of a group.
    Group(u32),
    /// All processes of a user.
    User(u32),
}

impl Who {
    /// What the system calls call it: IOPRIO_WHO_PROCESS, _PGRP, _USER, and the number.
    fn numbers(self) -> (libc::c_long, libc::c_long) {
        match self {
            Who::Process(pid) => (1, libc::c_long::from(pid)),
            Who::Group(group) => (2, libc::c_long::from(group)),
            Who::User(uid) => (3, libc::c_long::from(uid)),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Process(0) => f.write_str("this process"),
            Who::Process(pid) => write!(f, "process {pid}"),
            Who::Group(group) => write!(f, "process group {group}"),
            Who::User(uid) => write!(f, "user {uid}"),
        }
    }
}

/// Why a priority was not told or not set.
#[derive(Debug, thiserror::Error)]
pub enum PriorityError {
    /// It has gone, or there never was one.
    #[error("{who}: {}", none_there(*who))]
    NoProcess {
        /// Whose priority.
        who: Who,
    },
    /// The caller may not.
    #[error("{who}: this needs root: {why}")]
    NotPermitted {
        /// Whose priority.
        who: Who,
        /// What needs root.
        why: &'static str,
    },
    /// Anything else.
    #[error("{who}: {cause}")]
    Other {
        /// Whose priority.
        who: Who,
        /// What the kernel says.
        cause: io::Error,
    },
}

fn none_there(who: Who) -> &'static str {
    match who {
        Who::Process(_) => "there is no such process",
        Who::Group(_) => "there is no process in it",
        Who::User(_) => "there is no process of this user",
    }
}

/// The priority of a process, or the best of several.
///
/// # Errors
/// When there is none, or the kernel does not tell.
pub fn get(who: Who) -> Result<Priority, PriorityError> {
    let (sort, number) = who.numbers();
    // SAFETY: a call with numbers alone.
    let got = unsafe { libc::syscall(libc::SYS_ioprio_get, sort, number) };
    u16::try_from(got).map(Priority::from_encoded).map_err(|_| refused(who, None))
}

/// Sets the priority of a process, or of several.
///
/// # Errors
/// When there is none, or the caller may not: real time is root's to give (CAP_SYS_ADMIN or CAP_SYS_NICE), and others' processes are.
pub fn set(who: Who, priority: Priority) -> Result<(), PriorityError> {
    let (sort, number) = who.numbers();
    // SAFETY: a call with numbers alone.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, sort, number, libc::c_long::from(priority.encoded())) };
    if done == 0 { Ok(()) } else { Err(refused(who, Some(priority))) }
}

fn refused(who: Who, wanted: Option<Priority>) -> PriorityError {
    let cause = io::Error::last_os_error();
    match cause.raw_os_error() {
        Some(libc::ESRCH) => PriorityError::NoProcess { who },
        Some(libc::EPERM) => {
            let why = match (wanted.map(|priority| priority.class), who) {
                (Some(Class::Realtime), Who::Process(0)) => "the class realtime is root's to give (CAP_SYS_NICE)",
                (Some(Class::Realtime), _) => {
                    "the class realtime (CAP_SYS_NICE) and other users' processes are root's to change"
                }
                _ => "it is another user's",
            };
            PriorityError::NotPermitted { who, why }
        }
        _ => PriorityError::Other { who, cause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_the_kernels_number_and_back() {
        let best_effort = Priority::new(Class::BestEffort, 4);
        assert_eq!(best_effort.encoded(), (2 << 13) + 4);
        let hinted = Priority { hint: 3, ..Priority::new(Class::Realtime, 7) };
        assert_eq!(hinted.encoded(), (1 << 13) | (3 << 3) | 7);
        for priority in [best_effort, hinted, Priority::UNSET, Priority::new(Class::Idle, 5)] {
            assert_eq!(Priority::from_encoded(priority.encoded()), priority);
        }
        // Classes 4 to 7 are nobody's.
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
    fn a_class_is_read_by_name_or_number() {
        assert_eq!(["none", "Realtime", "BEST-EFFORT", "3"].map(Class::from_text), Class::ALL.map(Some));
        assert_eq!(["4", "", "-1", "rt", "best effort"].map(Class::from_text), [None; 5]);
    }

    #[test]
    fn the_priority_of_a_thread_of_ones_own_can_be_set_and_is_told() {
        // A thread of its own: what it sets is nobody else's.
        std::thread::spawn(|| {
            set(Who::Process(0), Priority::new(Class::BestEffort, 6)).expect("this may be done by anybody");
            assert_eq!(get(Who::Process(0)).unwrap().to_string(), "best-effort: prio 6");
            set(Who::Process(0), Priority::new(Class::Idle, 0)).expect("so may this");
            assert_eq!(get(Who::Process(0)).unwrap().to_string(), "idle");
        })
        .join()
        .expect("the thread ends well");
    }

    #[test]
    fn a_process_that_does_not_exist_is_named() {
        // Numbers of processes end at 2^22 (proc(5)).
        let said = get(Who::Process(5_000_000)).unwrap_err().to_string();
        assert_eq!(said, "process 5000000: there is no such process");
        let said = set(Who::Group(5_000_000), Priority::UNSET).unwrap_err().to_string();
        assert_eq!(said, "process group 5000000: there is no process in it");
    }
}
