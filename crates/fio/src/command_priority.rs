//! Priorities of single requests: fio's `cmdprio_percentage`, `cmdprio_class`, `cmdprio` and
//! `cmdprio_bssplit`.

/// The priority of some requests of a direction; the others have that of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPriority {
    /// Percentage of the requests with the priority of `class` and `level`.
    pub percent: u8,
    /// The class: 1 real time, 2 best effort, 3 idle. Default 1.
    pub class: u8,
    /// The level in the class, 0 to 7.
    pub level: u8,
    /// The requests with a priority by their size, instead of `percent`.
    pub by_size: Vec<SizePriority>,
}

/// The priority of some requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizePriority {
    /// The size of the requests, in bytes.
    pub bytes: u64,
    /// Percentage of the requests of this size.
    pub percent: u8,
    /// Class and level, if they are not those of `cmdprio_class` and `cmdprio`.
    pub priority: Option<(u8, u8)>,
}

impl CommandPriority {
    /// The class and level of a request of this size, for a ticket from 0 to 99; `None` for the
    /// priority of the process.
    pub fn of(&self, bytes: u64, ticket: u8) -> Option<(u8, u8)> {
        let own = (self.class.max(1), self.level);
        if self.by_size.is_empty() {
            return (ticket < self.percent).then_some(own);
        }
        let mut bound = 0u16;
        for entry in self.by_size.iter().filter(|entry| entry.bytes == bytes) {
            bound += u16::from(entry.percent);
            if u16::from(ticket) < bound {
                return Some(entry.priority.unwrap_or(own));
            }
        }
        None
    }

    /// All classes and levels that requests may have.
    pub fn all(&self) -> Vec<(u8, u8)> {
        let own = (self.class.max(1), self.level);
        if self.by_size.is_empty() {
            return if self.percent > 0 { vec![own] } else { Vec::new() };
        }
        self.by_size.iter().filter(|entry| entry.percent > 0).map(|entry| entry.priority.unwrap_or(own)).collect()
    }
}
