//! The schedule of a die: reads first, then a suspended operation, then programs, garbage
//! collection and erases.

use super::Flash;
use super::buffer::NO_COMMAND;
use super::die::{DieOperation, PageRead};
use super::events::Event;
use super::ftl::Stream;
use crate::command::Op;
use crate::profile::UNIT_SECTORS;

impl Flash {
    /// Queues a page read at its die.
    pub(super) fn add_read(&mut self, read: PageRead, now_ns: u64) {
        let number = self.ftl.die(read.row * self.profile.row_units());
        self.dies[number as usize].reads.push_back(read);
        match self.dies[number as usize].operation {
            DieOperation::Idle => {
                self.next_work(number, now_ns);
            }
            DieOperation::Program | DieOperation::Move | DieOperation::Erase | DieOperation::Gather => {
                self.suspend(number, now_ns)
            }
            DieOperation::Read(_) | DieOperation::Send | DieOperation::Suspend => {}
        }
    }

    /// Suspends the operation of a die if that is possible and worth its cost.
    fn suspend(&mut self, number: u32, now_ns: u64) {
        let die = &mut self.dies[number as usize];
        let left_ns = die.until_ns - now_ns;
        if die.overtakes_left == 0 {
            return;
        }
        if die.operation == DieOperation::Gather && self.turn_dies > 0 {
            return;
        }
        if die.operation == DieOperation::Gather {
            // The suspension takes effect between two pages.
            let page_ns = left_ns % die.gather_row_ns;
            die.suspended = Some((DieOperation::Gather, left_ns - page_ns));
            self.start_operation(number, DieOperation::Suspend, now_ns + page_ns);
            return;
        }
        let is_early = self.turn_dies == 0 && matches!(die.operation, DieOperation::Move | DieOperation::Erase);
        let early_ns = self.profile.background_suspend_ns.filter(|_| is_early);
        let Some(suspend_ns) = early_ns.or(self.profile.suspend_ns) else { return };
        if die.suspend_at_unlock || left_ns <= suspend_ns {
            return;
        }
        if now_ns < die.locked_until_ns {
            die.suspend_at_unlock = true;
            let unlock_ns = die.locked_until_ns;
            self.arm(number, unlock_ns);
            return;
        }
        die.suspended = Some((die.operation, left_ns));
        self.counters.suspends += 1;
        self.start_operation(number, DieOperation::Suspend, now_ns + suspend_ns);
    }

    /// Starts an operation that ends at `until_ns`.
    fn start_operation(&mut self, number: u32, operation: DieOperation, until_ns: u64) {
        let die = &mut self.dies[number as usize];
        (die.operation, die.until_ns) = (operation, until_ns);
        self.arm(number, until_ns);
    }

    /// Schedules the only valid event of a die.
    fn arm(&mut self, number: u32, at_ns: u64) {
        let die = &mut self.dies[number as usize];
        die.event_number = die.event_number.wrapping_add(1);
        self.events.add(at_ns, Event::Die { die: number, event_number: die.event_number });
    }

    pub(super) fn die_event(&mut self, number: u32, event_number: u32, now_ns: u64) {
        let die = &mut self.dies[number as usize];
        if die.event_number != event_number {
            return;
        }
        if std::mem::take(&mut die.suspend_at_unlock) {
            let until_ns = die.until_ns;
            // The remaining time is no longer worth a suspension, so the end is scheduled again.
            self.arm(number, until_ns);
            self.suspend(number, now_ns);
            return;
        }
        match die.operation {
            DieOperation::Read(read) => return self.send(number, read, now_ns),
            DieOperation::Gather => return self.move_gathered(number, now_ns),
            DieOperation::Program => self.host_programmed(number, now_ns),
            DieOperation::Move => self.moved(number),
            DieOperation::Erase => {
                self.counters.erases += 1;
                self.ftl.erased(number);
            }
            DieOperation::Send | DieOperation::Suspend | DieOperation::Idle => {}
        }
        if matches!(
            self.dies[number as usize].operation,
            DieOperation::Program | DieOperation::Move | DieOperation::Erase
        ) {
            self.dies[number as usize].overtakes_left = self.profile.overtakes_max;
        }
        self.next_work(number, now_ns);
        self.dispatch(now_ns);
    }

    /// Transfers the pages in the register of a die over its channel and the link.
    fn send(&mut self, number: u32, read: PageRead, now_ns: u64) {
        let sectors = u64::from(read.sectors);
        let sent_ns = self.cross_channel(number, sectors, now_ns);
        self.start_operation(number, DieOperation::Send, sent_ns);
        if read.command == NO_COMMAND {
            return;
        }
        let further_units = sectors.div_ceil(UNIT_SECTORS) - u64::from(self.commands[read.command as usize].parts <= 1);
        let crossed_ns = self.cross_link(Op::Read, sectors, further_units, sent_ns);
        let work_ns = self.page_read_ns(read.row) + self.profile.channel.ns(sectors) + self.profile.link.ns(sectors);
        self.part_done(read.command, crossed_ns, work_ns);
        let command = &mut self.commands[read.command as usize];
        command.parts -= 1;
        if command.parts == 0 {
            let done_ns = command.done_ns;
            self.complete(read.command, done_ns);
        }
    }

    /// The read time of the pages with number `row`. The kinds of pages alternate within a block.
    fn page_read_ns(&self, row: u32) -> u64 {
        let kinds = &self.profile.page_read_ns;
        let page = row % self.profile.pages_per_block;
        kinds.get(page as usize % kinds.len()).copied().unwrap_or(0)
    }

    /// Distributes buffered units to idle dies in turn.
    pub(super) fn dispatch(&mut self, now_ns: u64) {
        for _ in 0..self.profile.dies {
            if !self.has_program() {
                return;
            }
            let Some(number) = self.idle.next(self.next_die) else { return };
            self.next_die = (number + 1) % self.profile.dies;
            self.next_work(number, now_ns);
        }
    }

    /// Returns true if the buffer has a whole program, or less if a command waits for it.
    fn has_program(&self) -> bool {
        let waiting = self.buffer.waiting();
        waiting >= self.profile.program_units() as usize
            || (waiting > 0 && (self.buffer.is_urgent() || !self.flushes.is_empty()))
    }

    /// Starts the next operation of a die.
    fn next_work(&mut self, number: u32, now_ns: u64) {
        self.idle.set(number, false);
        if self.dies[number as usize].overtakes_left > 0 && self.begin_read(number, now_ns) {
            self.dies[number as usize].overtakes_left -= 1;
            return;
        }
        if let Some((operation, left_ns)) = self.dies[number as usize].suspended.take() {
            return self.start_operation(number, operation, now_ns + left_ns);
        }
        self.dies[number as usize].overtakes_left = self.profile.overtakes_max;
        if self.profile.gc_turn_programs.is_some() && self.take_turn(number, now_ns) {
            return;
        }
        let host = self.turn_dies == 0 && self.has_program() && self.ftl.has_room(number);
        if self.profile.gc_turn_programs.is_none()
            && self.ftl.has_garbage(number)
            && (!host || self.ftl.garbage_first(number))
        {
            self.collect(number, now_ns);
        } else if !(host && self.program(number, now_ns)
            || self.begin_read(number, now_ns)
            || self.collect_early(number, now_ns))
        {
            self.dies[number as usize].operation = DieOperation::Idle;
            self.idle.set(number, true);
        }
    }

    /// Collects garbage before a turn has to, if nothing else is to do.
    fn collect_early(&mut self, number: u32, now_ns: u64) -> bool {
        if self.profile.background_suspend_ns.is_none() || self.turn_dies > 0 || !self.ftl.has_early_garbage(number) {
            return false;
        }
        self.collect(number, now_ns);
        true
    }

    /// Collects garbage for a die's part of a turn, which begins when a die lacks space for data of
    /// the host. Returns false if the die has nothing to collect.
    fn take_turn(&mut self, number: u32, now_ns: u64) -> bool {
        if self.turn_dies == 0 {
            if !self.has_program() || !self.ftl.has_garbage(number) || !self.ftl.garbage_first(number) {
                return false;
            }
            self.turn_dies = self.profile.dies;
            self.ftl.set_turn(true);
            self.dies.iter_mut().for_each(|die| die.in_turn = true);
            for other in 0..self.profile.dies {
                if other != number && self.dies[other as usize].operation == DieOperation::Idle {
                    self.next_work(other, now_ns);
                }
            }
        }
        if self.ftl.has_garbage(number) && self.ftl.garbage_first(number) {
            self.collect(number, now_ns);
            return true;
        }
        if std::mem::take(&mut self.dies[number as usize].in_turn) {
            self.turn_dies -= 1;
            if self.turn_dies == 0 {
                self.ftl.set_turn(false);
                self.dispatch(now_ns);
            }
        }
        false
    }

    /// Starts the oldest queued read; false without one.
    fn begin_read(&mut self, number: u32, now_ns: u64) -> bool {
        let Some(read) = self.dies[number as usize].reads.pop_front() else { return false };
        let until_ns = now_ns + self.page_read_ns(read.row);
        self.start_operation(number, DieOperation::Read(read), until_ns);
        true
    }

    /// Programs the oldest units of the buffer.
    fn program(&mut self, number: u32, now_ns: u64) -> bool {
        let Some(to) = self.ftl.allocate(number, Stream::Host) else { return false };
        let units = self.profile.program_units();
        let die = &mut self.dies[number as usize];
        die.to = to;
        self.buffer.take(units as usize, &mut die.slots);
        self.counters.host_programmed_units += u64::from(units);
        let loaded_ns = self.cross_channel(number, u64::from(units) * UNIT_SECTORS, now_ns);
        self.dies[number as usize].locked_until_ns = loaded_ns;
        self.start_operation(number, DieOperation::Program, loaded_ns + self.profile.program_ns);
        true
    }

    fn host_programmed(&mut self, number: u32, now_ns: u64) {
        let slots = std::mem::take(&mut self.dies[number as usize].slots);
        let to = self.dies[number as usize].to;
        let sectors = u64::from(self.profile.program_units()) * UNIT_SECTORS;
        let work_ns = self.profile.channel.ns(sectors) + self.profile.program_ns;
        for (slot, location) in slots.iter().zip(to..) {
            self.slot_programmed(*slot, location, work_ns, now_ns);
        }
        self.dies[number as usize].slots = slots;
        self.ftl.programmed(number, Stream::Host);
        self.drained(now_ns);
        self.accept(now_ns);
    }

    /// Performs the next step of garbage collection: reads pages of the victim, or erases it if it
    /// has no valid units left.
    fn collect(&mut self, number: u32, now_ns: u64) {
        let die = &mut self.dies[number as usize];
        let rows = self.ftl.gather(number, &mut die.locations);
        if rows == 0 {
            die.locked_until_ns = now_ns;
            return self.start_operation(number, DieOperation::Erase, now_ns + self.profile.erase_ns);
        }
        let row_units = self.profile.row_units();
        let locations = &self.dies[number as usize].locations;
        let row_of = |location: &u32| location / row_units;
        let read_ns = locations.chunk_by(|one, other| row_of(one) == row_of(other)).filter_map(|row| row.first());
        let read_ns: u64 = read_ns.map(|location| self.page_read_ns(row_of(location))).sum();
        self.dies[number as usize].gather_row_ns = (read_ns / u64::from(rows)).max(1);
        self.start_operation(number, DieOperation::Gather, now_ns + read_ns);
    }

    /// Transfers the gathered units to the controller, which corrects errors, and back.
    fn move_gathered(&mut self, number: u32, now_ns: u64) {
        let Some(to) = self.ftl.allocate(number, Stream::Moved) else {
            debug_assert!(false, "a block is kept free for moved units");
            return;
        };
        let units = self.profile.program_units();
        let valid = self.dies[number as usize].locations.len() as u64;
        let sectors = (valid + u64::from(units)) * UNIT_SECTORS;
        let loaded_ns = self.cross_channel(number, sectors, now_ns);
        let die = &mut self.dies[number as usize];
        (die.to, die.locked_until_ns) = (to, loaded_ns);
        self.counters.moved_units += u64::from(units);
        self.start_operation(number, DieOperation::Move, loaded_ns + self.profile.program_ns);
    }

    fn moved(&mut self, number: u32) {
        let die = &self.dies[number as usize];
        self.ftl.moved(&die.locations, die.to);
        self.ftl.programmed(number, Stream::Moved);
    }
}
