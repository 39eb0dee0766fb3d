//! I/O priorities: class and level, as `ionice` sets them.

/// The class of an I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Not set: best effort, at a level that follows the nice value.
    #[default]
    None = 0,
    /// Real time.
    RealTime = 1,
    /// Best effort.
    BestEffort = 2,
    /// Served only after the disk has been free of other classes for a while.
    Idle = 3,
}

impl Class {
    /// Returns the order of service: 0 real time, 1 best effort, 2 idle. An unset class counts as
    /// best effort.
    #[inline]
    pub(crate) const fn rank(self) -> u8 {
        match self {
            Class::RealTime => 0,
            Class::None | Class::BestEffort => 1,
            Class::Idle => 2,
        }
    }
}

/// An I/O priority: a class and a level from 0 (highest) to 7.
///
/// It is stored in one byte: class times 8 plus level.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Priority(u8);

impl core::fmt::Debug for Priority {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}/{}", self.class(), self.level())
    }
}

/// The CPU scheduling policy of a process, which determines the default I/O class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CpuPolicy {
    /// `SCHED_OTHER`, `SCHED_BATCH`: an unset I/O priority is best effort.
    #[default]
    Normal = 0,
    /// `SCHED_FIFO`, `SCHED_RR`: an unset I/O priority is real time.
    RealTime = 1,
    /// `SCHED_IDLE`: an unset I/O priority is idle.
    Idle = 2,
}

/// The level of a best-effort process of nice 0.
pub const NORMAL_LEVEL: u8 = 4;
/// The number of levels.
pub const LEVELS: u8 = 8;

impl Priority {
    /// No priority; the effective one follows the nice value.
    pub const UNSET: Priority = Priority(0);

    /// Creates a priority; `None` if `level` is above 7. [`Class::None`] ignores the level;
    /// [`Class::Idle`] always has level 7.
    pub const fn new(class: Class, level: u8) -> Option<Priority> {
        if level >= LEVELS {
            return None;
        }
        let level = match class {
            Class::None => 0,
            Class::Idle => LEVELS - 1,
            _ => level,
        };
        Some(Priority::of(class, level))
    }

    const fn of(class: Class, level: u8) -> Priority {
        Priority(((class as u8) << 3) | (level & 7))
    }

    /// The class.
    pub const fn class(self) -> Class {
        match self.0 >> 3 {
            0 => Class::None,
            1 => Class::RealTime,
            2 => Class::BestEffort,
            _ => Class::Idle,
        }
    }

    /// The level, 0 (highest) to 7.
    pub const fn level(self) -> u8 {
        self.0 & 7
    }

    /// The kernel's encoding: class * 2^13 + level.
    pub const fn encoded(self) -> u16 {
        ((self.class() as u16) << 13) | self.level() as u16
    }

    /// Returns true if a class was set.
    pub const fn is_set(self) -> bool {
        !matches!(self.class(), Class::None)
    }

    /// The effective priority: an unset one is best effort at level (nice + 20) / 5, with nice
    /// clamped to -20..=19.
    pub const fn effective(self, nice: i8) -> Priority {
        match self.class() {
            Class::None => Priority::of(Class::BestEffort, nice_level(nice)),
            _ => self,
        }
    }

    /// The effective priority from 2.6.26 on: the class of an unset one follows the CPU scheduling
    /// policy.
    #[inline]
    pub const fn effective_under(self, nice: i8, policy: CpuPolicy) -> Priority {
        if self.is_set() {
            return self;
        }
        match policy {
            CpuPolicy::RealTime => Priority::of(Class::RealTime, nice_level(nice)),
            CpuPolicy::Idle => Priority::of(Class::Idle, LEVELS - 1),
            _ => self.effective(nice),
        }
    }

    /// Returns the better of two priorities, for a request into which another process's bio was
    /// merged: a set one before an unset one, then the higher class, then the lower level.
    pub fn best(self, other: Priority) -> Priority {
        match (self.is_set(), other.is_set()) {
            (false, _) => other,
            (_, false) => self,
            _ if other.0 < self.0 => other,
            _ => self,
        }
    }
}

const fn nice_level(nice: i8) -> u8 {
    let nice = if nice < -20 {
        -20
    } else if nice > 19 {
        19
    } else {
        nice
    };
    (nice.wrapping_add(20) as u8) / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_priority_follows_nice() {
        let levels = [(-20, 0), (-16, 0), (-15, 1), (0, 4), (4, 4), (15, 7), (19, 7), (i8::MIN, 0), (i8::MAX, 7)];
        for (nice, level) in levels {
            assert_eq!(
                Priority::UNSET.effective(nice),
                Priority::new(Class::BestEffort, level).unwrap(),
                "nice {nice}"
            );
        }
    }

    #[test]
    fn the_class_of_an_unset_priority_follows_the_cpu_policy() {
        let under = |policy| Priority::UNSET.effective_under(-20, policy);
        assert_eq!(under(CpuPolicy::Normal), Priority::new(Class::BestEffort, 0).unwrap());
        assert_eq!(under(CpuPolicy::RealTime), Priority::new(Class::RealTime, 0).unwrap());
        assert_eq!(under(CpuPolicy::Idle), Priority::new(Class::Idle, 7).unwrap());
        let set = Priority::new(Class::BestEffort, 3).unwrap();
        assert_eq!(set.effective_under(0, CpuPolicy::RealTime), set);
    }

    #[test]
    fn the_better_of_two_priorities_has_the_lower_class_then_the_lower_level() {
        let of = |class, level| Priority::new(class, level).unwrap();
        let (rt7, be0, be4) = (of(Class::RealTime, 7), of(Class::BestEffort, 0), of(Class::BestEffort, 4));
        assert_eq!(Priority::UNSET.best(be4), be4);
        assert_eq!(be4.best(Priority::UNSET), be4);
        assert_eq!(be0.best(rt7), rt7);
        assert_eq!(be4.best(be0), be0);
        assert_eq!(Priority::new(Class::BestEffort, 8), None);
        assert_eq!(of(Class::Idle, 0).level(), 7);
        assert_eq!(be4.encoded(), (2 << 13) + 4);
    }
}
