//! One die: its current operation, its suspended operation and its queue.

use std::collections::VecDeque;

/// A read of the pages with one number on all planes, for one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRead {
    /// The command, or [`super::buffer::NO_COMMAND`] for a read of the drive itself.
    pub(super) command: u32,
    /// The number of the pages.
    pub(super) row: u32,
    /// The number of sectors to transfer.
    pub(super) sectors: u32,
}

/// The operation of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DieOperation {
    /// No operation.
    Idle,
    /// Reads pages for a command.
    Read(PageRead),
    /// Transfers its register over the channel.
    Send,
    /// Programs data of the host after their transfer over the channel.
    Program,
    /// Reads pages for garbage collection.
    Gather,
    /// Programs units of garbage collection after their transfer over the channel to the controller
    /// and back.
    Move,
    /// Erases a block.
    Erase,
    /// Suspends an operation.
    Suspend,
}

/// The state of a die.
#[derive(Debug, Clone)]
pub(super) struct Die {
    pub(super) operation: DieOperation,
    /// The end of the operation unless a read suspends it.
    pub(super) until_ns: u64,
    /// The end of a channel transfer to the die. It cannot be suspended before.
    pub(super) locked_until_ns: u64,
    /// The number of the valid event; earlier events are obsolete.
    pub(super) event_number: u32,
    /// True if the valid event is the end of the transfer, at which the die is suspended.
    pub(super) suspend_at_unlock: bool,
    /// The suspended operation and its remaining time in ns.
    pub(super) suspended: Option<(DieOperation, u64)>,
    /// The number of reads that may still overtake other work. It bounds the delay of that work.
    pub(super) overtakes_left: u32,
    pub(super) reads: VecDeque<PageRead>,
    /// True if the die has not done its part of the current turn of garbage collection.
    pub(super) in_turn: bool,
    /// The buffer slots or the flash locations that the die programs, and their destination.
    pub(super) slots: Vec<u32>,
    pub(super) locations: Vec<u32>,
    pub(super) to: u32,
    /// The mean read time of one row in garbage collection, in ns.
    pub(super) gather_row_ns: u64,
}

impl Die {
    pub(super) fn new() -> Die {
        Die {
            operation: DieOperation::Idle,
            until_ns: 0,
            locked_until_ns: 0,
            event_number: 0,
            suspend_at_unlock: false,
            suspended: None,
            overtakes_left: 0,
            reads: VecDeque::new(),
            in_turn: false,
            slots: Vec::new(),
            locations: Vec::new(),
            to: 0,
            gather_row_ns: 1,
        }
    }
}

/// A bit set of the idle dies.
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

    /// The first idle die at or after `die`.
    fn from(&self, die: u32) -> Option<u32> {
        let mut word = (die / 64) as usize;
        let mut bits = self.bits.get(word)? & (u64::MAX << (die % 64));
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// The first idle die at or after `die`, in circular order.
    pub(super) fn next(&self, die: u32) -> Option<u32> {
        self.from(die % self.dies).or_else(|| self.from(0))
    }
}
