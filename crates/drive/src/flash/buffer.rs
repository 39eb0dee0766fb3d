//! The write buffer: units that the host has written and that are not programmed yet.

use std::collections::VecDeque;

/// The command index of a slot without a waiting command.
pub(super) const NO_COMMAND: u32 = u32::MAX;

/// One unit of the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// The number of the unit on the drive.
    pub(super) unit: u64,
    /// The sequence number of its arrival.
    pub(super) arrival: u64,
    /// The command that completes when the unit is programmed, or [`NO_COMMAND`].
    pub(super) command: u32,
    /// True while a die programs the unit.
    programming: bool,
}

/// The write buffer.
#[derive(Debug, Clone)]
pub(super) struct WriteBuffer {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots that wait for a die, by arrival.
    waiting: VecDeque<u32>,
    /// Capacity in units.
    capacity: usize,
    /// The number of waiting slots for which a command waits.
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

    /// Units that wait for a die.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if a command waits for a unit that no die programs yet.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// The number of units that have arrived so far.
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Returns true if the slot holds this unit.
    pub(super) fn holds(&self, slot: u32, unit: u64) -> bool {
        self.slots[slot as usize].unit == unit
    }

    /// Adds a unit to the buffer, which must not be full.
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

    /// Replaces the data of a waiting unit. Returns false if a die programs the unit or a command
    /// waits for it.
    pub(super) fn overwrite(&mut self, slot: u32, unit: u64) -> bool {
        let entry = &self.slots[slot as usize];
        let fits = entry.unit == unit && !entry.programming && entry.command == NO_COMMAND;
        self.arrivals += u64::from(fits);
        fits
    }

    /// Moves up to `most` of the oldest waiting units to a die.
    pub(super) fn take(&mut self, most: usize, slots: &mut Vec<u32>) {
        slots.clear();
        slots.extend(self.waiting.drain(..most.min(self.waiting.len())));
        for slot in slots.iter() {
            let entry = &mut self.slots[*slot as usize];
            entry.programming = true;
            self.urgent -= usize::from(entry.command != NO_COMMAND);
        }
    }

    /// Frees the slot of a programmed unit.
    pub(super) fn release(&mut self, slot: u32) -> Slot {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}
