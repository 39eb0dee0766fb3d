//! Writes into the buffer, and commands that wait for the buffer.

use super::buffer::NO_COMMAND;
use super::die::PageRead;
use super::ftl::Location;
use super::{Flash, Flush};
use crate::command::Command;
use crate::flash::events::Event;
use crate::profile::UNIT_SECTORS;

impl Flash {
    /// The data of a write have arrived in the drive.
    pub(super) fn arrived(&mut self, number: u32, now_ns: u64) {
        self.stalled.push_back(number);
        self.accept(now_ns);
        self.dispatch(now_ns);
    }

    /// Moves arrived units into the buffer in order while there is space.
    pub(super) fn accept(&mut self, now_ns: u64) {
        while let Some(number) = self.stalled.front().copied() {
            let Command::Transfer { access, fua } = self.commands[number as usize].command else { return };
            let through = self.profile.buffer_units == 0 || (fua && !self.profile.flush.power_loss_protection);
            let end = access.end();
            let first = access.sector / UNIT_SECTORS;
            let units = (end.div_ceil(UNIT_SECTORS) - first) as u32;
            while self.commands[number as usize].accepted < units {
                let unit = first + u64::from(self.commands[number as usize].accepted);
                let whole = unit * UNIT_SECTORS >= access.sector && (unit + 1) * UNIT_SECTORS <= end;
                if !self.accept_unit(unit, whole, if through { number } else { NO_COMMAND }, now_ns) {
                    return;
                }
                self.commands[number as usize].accepted += 1;
            }
            self.stalled.pop_front();
            let command = &mut self.commands[number as usize];
            command.done_ns = now_ns;
            (command.from_media, command.from_buffer) = (through, !through);
            if !through {
                self.complete(number, now_ns);
            }
        }
    }

    /// Adds one unit and returns true if there is space. The rest of a partially written unit is
    /// read first.
    fn accept_unit(&mut self, unit: u64, whole: bool, command: u32, now_ns: u64) -> bool {
        let address = self.address(unit);
        let location = self.ftl.look_up(address);
        if let Location::Buffer(slot) = location
            && command == NO_COMMAND
            && self.buffer.overwrite(slot, unit)
        {
            self.counters.host_units += 1;
            return true;
        }
        if self.buffer.is_full() {
            return false;
        }
        if let (false, Location::Media(location)) = (whole, location) {
            let row = self.ftl.row(location);
            self.add_read(PageRead { command: NO_COMMAND, row, sectors: UNIT_SECTORS as u32 }, now_ns);
        }
        if command != NO_COMMAND {
            self.commands[command as usize].parts += 1;
        }
        self.counters.host_units += 1;
        let slot = self.buffer.add(unit, command);
        self.ftl.buffered(address, slot);
        true
    }

    /// Records that a die has programmed a buffer slot, and completes the commands that waited for
    /// it.
    pub(super) fn slot_programmed(&mut self, slot: u32, location: u32, work_ns: u64, now_ns: u64) {
        let entry = self.buffer.release(slot);
        let address = self.address(entry.unit);
        self.ftl.written(address, slot, location);
        for flush in &mut self.flushes {
            flush.left -= usize::from(entry.arrival <= flush.arrival);
        }
        if entry.command == NO_COMMAND {
            return;
        }
        let command = &mut self.commands[entry.command as usize];
        command.parts -= 1;
        let Command::Transfer { access, .. } = command.command else { return };
        let units = (access.end()).div_ceil(UNIT_SECTORS) - access.sector / UNIT_SECTORS;
        if command.parts == 0 && u64::from(command.accepted) == units {
            command.work_ns = self.profile.link.ns(u64::from(access.sectors)) + work_ns;
            self.complete(entry.command, now_ns);
        }
    }

    /// Starts a flush. With a buffer that survives a power loss it waits for nothing.
    pub(super) fn flush(&mut self, number: u32, now_ns: u64) {
        if self.profile.flush.blocks_commands {
            self.gate = Some(number);
        }
        if self.profile.flush.power_loss_protection {
            self.events.add(now_ns.saturating_add(self.profile.flush.flush_ns), Event::Flushed(number));
            return;
        }
        self.flushes.push(Flush { command: number, arrival: self.buffer.arrivals(), left: self.buffer.len() });
        self.drained(now_ns);
        self.dispatch(now_ns);
    }

    /// Lets drained flushes write the map. A flush without new data completes at once.
    pub(super) fn drained(&mut self, now_ns: u64) {
        while let Some(at) = self.flushes.iter().position(|flush| flush.left == 0) {
            let flush = self.flushes.remove(at);
            let cost_ns = if flush.arrival > self.flushed_arrivals { self.profile.flush.flush_ns } else { 0 };
            self.flushed_arrivals = self.flushed_arrivals.max(flush.arrival);
            self.events.add(now_ns.saturating_add(cost_ns), Event::Flushed(flush.command));
        }
    }

    /// Completes a flush and admits the commands up to the next flush.
    pub(super) fn flushed(&mut self, number: u32, now_ns: u64) {
        let command = &mut self.commands[number as usize];
        // The buffer is emptied all the time.
        (command.from_media, command.work_ns) = (true, now_ns - command.submitted_ns);
        self.complete(number, now_ns);
        if self.gate == Some(number) {
            self.gate = None;
            for held in std::mem::take(&mut self.held) {
                self.ready(held, now_ns);
            }
        }
    }
}
