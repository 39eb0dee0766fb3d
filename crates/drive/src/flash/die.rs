//! One die: what it does, what it was doing, and what waits for it.

use std::collections::VecDeque;

/// Reading the pages of one number on all planes, for one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRead {
    /// The command, or [`super::buffer::NO_COMMAND`] when the drive reads for itself.
    pub(super) command: u32,
    /// Which pages.
    pub(super) row: u32,
    /// How many sectors of them are wanted.
    pub(super) sectors: u32,
}

/// What a die does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing.
    Idle,
    /// Reads pages for a command.
    Read(PageRead),
    /// Its register is read out over the channel.
    Send,
    /// Programs the host's data, after they have come over the channel.
    Program,
    /// Reads what garbage collection moves.
    Gather,
    /// Programs what garbage collection moves, after it has gone over the channel to the controller and back.
    Move,
    /// Erases a block.
    Erase,
    /// Stops what it was doing.
    Suspend,
}

/// A die.
#[derive(Debug, Clone)]
pub(super) struct Die {
    pub(super) doing: Doing,
    /// When that ends, if no read suspends it.
    pub(super) until_ns: u64,
    /// Until then data cross the channel to it, and it cannot be suspended.
    pub(super) locked_until_ns: u64,
    /// The number of the event that is in force; others have been overtaken.
    pub(super) plan: u32,
    /// The event in force is the end of the lock: the die is suspended then.
    pub(super) suspend_at_unlock: bool,
    /// What was suspended, and how long it takes yet, in ns.
    pub(super) suspended: Option<(Doing, u64)>,
    /// How many reads may still go before what else it has to do: however many come, that is done in the end.
    pub(super) overtakes_left: u32,
    pub(super) reads: VecDeque<PageRead>,
    /// The slots of the buffer, or the places, that it programs; and where to.
    pub(super) slots: Vec<u32>,
    pub(super) places: Vec<u32>,
    pub(super) to: u32,
    /// What reading one row takes on the average while it gathers, in ns.
    pub(super) gather_row_ns: u64,
}

impl Die {
    pub(super) fn new() -> Die {
        Die {
            doing: Doing::Idle,
            until_ns: 0,
            locked_until_ns: 0,
            plan: 0,
            suspend_at_unlock: false,
            suspended: None,
            overtakes_left: 0,
            reads: VecDeque::new(),
            slots: Vec::new(),
            places: Vec::new(),
            to: 0,
            gather_row_ns: 1,
        }
    }
}

/// Which dies have nothing to do: a bit each.
#[derive(Debug, Clone)]
pub(super) struct IdleDies {
    bits: Vec<u64>,
    dies: u32,
}

impl IdleDies {
    pub(super) fn all(dies: u32) -> IdleDies {
        let mut idle = IdleDies { bits: vec![0; dies.div_ceil(64) as usize], dies };
        (0..dies).for_each(|die| idle.set(die, true));
        idle
    }

    pub(super) fn set(&mut self, die: u32, idle: bool) {
        let bit = 1 << (die % 64);
        let word = &mut self.bits[(die / 64) as usize];
        *word = if idle { *word | bit } else { *word & !bit };
    }

    /// The first idle die from `die` on, up to the last.
    fn from(&self, die: u32) -> Option<u32> {
        let mut word = (die / 64) as usize;
        let mut bits = self.bits.get(word)? & (u64::MAX << (die % 64));
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// The first idle die from `die` on, round from the last to the first.
    pub(super) fn next(&self, die: u32) -> Option<u32> {
        self.from(die % self.dies).or_else(|| self.from(0))
    }
}
