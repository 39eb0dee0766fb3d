//! The write buffer: units that the host has written and no die has programmed.

use std::collections::VecDeque;

/// No command waits for the slot.
pub(super) const NO_COMMAND: u32 = u32::MAX;

/// One unit in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Its number on the whole drive.
    pub(super) unit: u64,
    /// Which in the order of arrival.
    pub(super) arrival: u64,
    /// The command that is over when it is programmed, or [`NO_COMMAND`].
    pub(super) command: u32,
    /// A die has it.
    programming: bool,
}

/// The buffer.
#[derive(Debug, Clone)]
pub(super) struct WriteBuffer {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots that no die has, by arrival.
    waiting: VecDeque<u32>,
    /// How many units it holds at most.
    capacity: usize,
    /// Waiting slots that have to be programmed soon: a command waits for them.
    urgent: usize,
    arrivals: u64,
}

impl WriteBuffer {
    pub(super) fn new(capacity: usize) -> WriteBuffer {
        WriteBuffer { slots: Vec::new(), free: Vec::new(), waiting: VecDeque::new(), capacity, urgent: 0, arrivals: 0 }
    }

    /// Units in the buffer.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Units that no die has.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a command waits for a unit that no die has.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// How many units have ever come.
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Whether the slot has this unit.
    pub(super) fn holds(&self, slot: u32, unit: u64) -> bool {
        self.slots[slot as usize].unit == unit
    }

    /// Takes a unit in; the buffer is not full.
    pub(super) fn add(&mut self, unit: u64, command: u32) -> u32 {
        self.arrivals += 1;
        let entry = Slot { unit, arrival: self.arrivals, command, programming: false };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() as u32 - 1
            }
        };
        self.waiting.push_back(slot);
        self.urgent += usize::from(command != NO_COMMAND);
        slot
    }

    /// New data for a unit that waits take the place of the old; not when a die has these, or a command waits for them.
    pub(super) fn overwrite(&mut self, slot: u32, unit: u64) -> bool {
        let entry = &self.slots[slot as usize];
        let fits = entry.unit == unit && !entry.programming && entry.command == NO_COMMAND;
        self.arrivals += u64::from(fits);
        fits
    }

    /// Gives the oldest units that wait, `most` of them, to a die.
    pub(super) fn take(&mut self, most: usize, slots: &mut Vec<u32>) {
        slots.clear();
        slots.extend(self.waiting.drain(..most.min(self.waiting.len())));
        for slot in slots.iter() {
            let entry = &mut self.slots[*slot as usize];
            entry.programming = true;
            self.urgent -= usize::from(entry.command != NO_COMMAND);
        }
    }

    /// A slot's unit is programmed.
    pub(super) fn release(&mut self, slot: u32) -> Slot {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}
