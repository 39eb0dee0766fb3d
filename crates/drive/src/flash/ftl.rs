//! The map from addresses to flash locations, and the blocks.
//!
//! An address is the number of a 4 KiB unit. A location is a unit of flash: die, block, and unit in
//! the block. Addresses whose data have not moved since time 0 have no entry; [`InitialState`]
//! computes their location.

use std::collections::VecDeque;

use super::start::InitialState;
use crate::profile::FlashProfile;

/// The location of the data of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    /// The address has no data.
    Unwritten,
    /// A slot of the write buffer.
    Buffer(u32),
    /// A location on the flash.
    Media(u32),
}

/// The origin of the data of a block. Host data and data moved by garbage collection use separate
/// blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Host,
    Moved,
}

/// The map entry of an address whose data have not moved since time 0.
const UNMOVED: u32 = 0;
/// The map entry of an address without data.
const UNWRITTEN: u32 = u32::MAX;
/// Flag of a map entry that holds a slot of the write buffer.
const IN_BUFFER: u32 = 1 << 31;
/// Flag in the valid count of a block that is not full. It makes the count larger than that of any
/// full block.
const NOT_FULL: u32 = 1 << 31;

/// The map and the blocks.
#[derive(Debug, Clone)]
pub(super) struct Ftl {
    start: InitialState,
    /// By address: one of the constants above, a slot of the buffer, or a location plus 1.
    map: Vec<u32>,
    /// By location: the address of the data written there plus 1, or 0 for data from time 0.
    owners: Vec<u32>,
    /// By location: a bit that is set while the data are valid.
    valid: Vec<u64>,
    /// By block: the number of valid units, and the flag of a block that is not full.
    counts: Vec<u32>,
    pools: Vec<Pool>,
    die_blocks: u32,
    block_units: u32,
    row_units: u32,
    program_units: u32,
    gc_start_blocks: u32,
    gc_hard_blocks: u32,
    /// Units of the host on each die for which a turn of garbage collection makes room.
    turn_units: u64,
    /// True during a turn.
    in_turn: bool,
}

/// The free, open and victim blocks of one die.
#[derive(Debug, Clone, Default)]
struct Pool {
    /// Erased blocks by number; the one erased first is used first.
    free: VecDeque<u32>,
    host: Option<Open>,
    moved: Option<Open>,
    victim: Option<Victim>,
    /// True if the last search found no block worth collecting and no unit has become stale since.
    without_victim: bool,
}

/// A block that is being filled.
#[derive(Debug, Clone, Copy)]
struct Open {
    block: u32,
    next_unit: u32,
}

/// The block that garbage collection empties.
#[derive(Debug, Clone, Copy)]
struct Victim {
    block: u32,
    /// The first unit that has not been examined.
    next_unit: u32,
    /// The number of valid units at its choice.
    valid_units: u32,
}

impl Ftl {
    pub(super) fn new(profile: &FlashProfile) -> Ftl {
        let start = InitialState::new(profile);
        let die_blocks = profile.die_blocks() as u32;
        let block_units = profile.block_units();
        let blocks = profile.dies * die_blocks;
        let locations = blocks as usize * block_units as usize;
        let rows = start.rows() as u32;
        let mut ftl = Ftl {
            map: vec![UNMOVED; profile.live_units() as usize],
            owners: vec![0; locations],
            valid: vec![0; locations.div_ceil(64)],
            counts: vec![NOT_FULL; blocks as usize],
            pools: vec![Pool::default(); profile.dies as usize],
            start,
            die_blocks,
            block_units,
            row_units: profile.row_units(),
            program_units: profile.program_units(),
            gc_start_blocks: profile.gc_start_blocks,
            gc_hard_blocks: profile.gc_hard_blocks,
            turn_units: u64::from(profile.gc_turn_programs.unwrap_or(0)) * u64::from(profile.program_units()),
            in_turn: false,
        };
        for row in 0..rows {
            ftl.fill_row(row);
        }
        for (die, pool) in (0..).zip(&mut ftl.pools) {
            pool.free = (rows..die_blocks).map(|row| die * die_blocks + row).collect();
            let programmed = |row: &u32| ftl.start.programmed_units(*row as usize);
            let mut open = (0..rows).filter(|row| programmed(row) < block_units);
            let mut next =
                || open.next().map(|row| Open { block: die * die_blocks + row, next_unit: programmed(&row) });
            (pool.host, pool.moved) = (next(), next());
        }
        ftl
    }

    /// Marks the valid units of a row of blocks at time 0. The pattern is the same in each block.
    fn fill_row(&mut self, row: u32) {
        let count = self.start.valid_units(row as usize);
        let open = self.start.programmed_units(row as usize) < self.block_units;
        let mut pattern = vec![0_u64; self.block_units.div_ceil(64) as usize];
        for unit in (0..self.block_units).filter(|unit| self.start.is_valid(row as usize, *unit)) {
            pattern[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        for die in 0..self.pools.len() as u32 {
            let block = die * self.die_blocks + row;
            let (word, shift) = ((block * self.block_units / 64) as usize, block * self.block_units % 64);
            self.counts[block as usize] = if open { count | NOT_FULL } else { count };
            for (number, bits) in (word..).zip(&pattern) {
                self.valid[number] |= bits << shift;
                if shift > 0
                    && let Some(next) = self.valid.get_mut(number + 1)
                {
                    *next |= bits >> (64 - shift);
                }
            }
        }
    }

    /// Number of addresses.
    pub(super) fn addresses(&self) -> u32 {
        self.map.len() as u32
    }

    #[inline]
    pub(super) fn look_up(&self, address: u32) -> Location {
        match self.map[address as usize] {
            UNMOVED => self.initial_location(address).map_or(Location::Unwritten, Location::Media),
            UNWRITTEN => Location::Unwritten,
            entry if entry & IN_BUFFER != 0 => Location::Buffer(entry & !IN_BUFFER),
            entry => Location::Media(entry - 1),
        }
    }

    /// The location of the data of an address at time 0.
    pub(super) fn initial_location(&self, address: u32) -> Option<u32> {
        let (die, row, unit) = self.start.location(address)?;
        Some((die * self.die_blocks + row) * self.block_units + unit)
    }

    /// The die of a location.
    #[inline]
    pub(super) fn die(&self, location: u32) -> u32 {
        location / (self.die_blocks * self.block_units)
    }

    /// The page number of a location. The pages with this number on all planes are read together.
    #[inline]
    pub(super) fn row(&self, location: u32) -> u32 {
        location / self.row_units
    }

    /// Records that the newest data of an address are in a buffer slot. The data on flash become
    /// stale.
    pub(super) fn buffered(&mut self, address: u32, slot: u32) {
        self.forget(address);
        self.map[address as usize] = IN_BUFFER | slot;
    }

    /// Removes the data of an address.
    pub(super) fn discard(&mut self, address: u32) {
        self.forget(address);
        self.map[address as usize] = UNWRITTEN;
    }

    fn forget(&mut self, address: u32) {
        if let Location::Media(location) = self.look_up(address) {
            self.make_stale(location);
        }
    }

    fn make_stale(&mut self, location: u32) {
        self.valid[(location / 64) as usize] &= !(1 << (location % 64));
        let block = location / self.block_units;
        self.counts[block as usize] -= 1;
        self.pools[(block / self.die_blocks) as usize].without_victim = false;
    }

    #[inline]
    fn is_valid(&self, location: u32) -> bool {
        self.valid[(location / 64) as usize] >> (location % 64) & 1 != 0
    }

    /// Returns true if a die has space for host data.
    pub(super) fn has_room(&self, die: u32) -> bool {
        let pool = &self.pools[die as usize];
        pool.host.is_some() || pool.free.len() > self.gc_hard_blocks as usize
    }

    /// Allocates the locations of the next program and returns the first; `None` if the die has no
    /// block for them.
    pub(super) fn allocate(&mut self, die: u32, stream: Stream) -> Option<u32> {
        let pool = &mut self.pools[die as usize];
        let open = match stream {
            Stream::Host => &mut pool.host,
            Stream::Moved => &mut pool.moved,
        };
        if open.is_none() {
            *open = Some(Open { block: pool.free.pop_front()?, next_unit: 0 });
        }
        let open = open.as_mut()?;
        let location = open.block * self.block_units + open.next_unit;
        open.next_unit += self.program_units;
        Some(location)
    }

    /// Records that the data of a buffer slot are programmed at a location. They may have been
    /// overwritten in the meantime.
    pub(super) fn written(&mut self, address: u32, slot: u32, location: u32) {
        if self.map[address as usize] == IN_BUFFER | slot {
            self.settle(address, location);
        }
    }

    fn settle(&mut self, address: u32, location: u32) {
        self.map[address as usize] = location + 1;
        self.owners[location as usize] = address + 1;
        self.valid[(location / 64) as usize] |= 1 << (location % 64);
        self.counts[(location / self.block_units) as usize] += 1;
    }

    /// Completes a program. A block that is full becomes a candidate for garbage collection.
    pub(super) fn programmed(&mut self, die: u32, stream: Stream) {
        let pool = &mut self.pools[die as usize];
        let open = match stream {
            Stream::Host => &mut pool.host,
            Stream::Moved => &mut pool.moved,
        };
        if let Some(full) = open.filter(|open| open.next_unit >= self.block_units) {
            *open = None;
            pool.without_victim = false;
            self.counts[full.block as usize] &= !NOT_FULL;
        }
    }

    /// Begins or ends a turn of garbage collection.
    pub(super) fn set_turn(&mut self, in_turn: bool) {
        self.in_turn = in_turn;
    }

    /// Returns true if a die has garbage to collect: it has a victim, or it lacks space and a block
    /// is worth collecting.
    pub(super) fn has_garbage(&mut self, die: u32) -> bool {
        if self.pools[die as usize].victim.is_none() && self.lacks_room(die) {
            self.choose_victim(die);
        }
        self.pools[die as usize].victim.is_some()
    }

    /// Returns true if a die has garbage that the next turn would collect.
    pub(super) fn has_early_garbage(&mut self, die: u32) -> bool {
        let in_turn = std::mem::replace(&mut self.in_turn, true);
        let is_early = self.has_garbage(die) && self.garbage_first(die);
        self.in_turn = in_turn;
        is_early
    }

    /// Returns true if garbage collection precedes host data: the die lacks space, has no free
    /// block, or only the erase remains.
    pub(super) fn garbage_first(&self, die: u32) -> bool {
        let pool = &self.pools[die as usize];
        let Some(victim) = pool.victim else { return false };
        self.lacks_room(die)
            || pool.free.len() <= self.gc_hard_blocks as usize
            || self.counts[victim.block as usize] & !NOT_FULL == 0
    }

    /// Returns true if a die has less space than the free blocks that garbage collection keeps plus
    /// one block.
    ///
    /// Space is the free units in free and open blocks, and the share of the victim that
    /// corresponds to the valid units already moved. A program of the host uses space, and a move
    /// returns as much as the victim yields for it. Garbage collection therefore keeps pace with
    /// the host, and the occupancy is constant as in the closed form.
    fn lacks_room(&self, die: u32) -> bool {
        let pool = &self.pools[die as usize];
        let free = pool.free.len() as u64 * u64::from(self.block_units);
        let turn = if self.in_turn { self.turn_units } else { 0 };
        let wanted = u64::from(self.gc_start_blocks + 1) * u64::from(self.block_units) + turn;
        if free >= wanted {
            return false;
        }
        let open =
            [pool.host, pool.moved].into_iter().flatten().map(|open| u64::from(self.block_units - open.next_unit));
        let freed = pool.victim.map_or(0, |victim| {
            let left = self.counts[victim.block as usize] & !NOT_FULL;
            let moved = u64::from(victim.valid_units.saturating_sub(left));
            moved * u64::from(self.block_units) / u64::from(victim.valid_units.max(1))
        });
        free + open.sum::<u64>() + freed < wanted
    }

    /// The full block with the fewest valid units, if its collection frees at least one program.
    fn choose_victim(&mut self, die: u32) {
        let pool = &self.pools[die as usize];
        if pool.without_victim {
            return;
        }
        let first = die * self.die_blocks;
        let counts = &self.counts[first as usize..(first + self.die_blocks) as usize];
        let least = counts.iter().copied().min().unwrap_or(NOT_FULL);
        let found = (least.saturating_add(self.program_units) <= self.block_units)
            .then(|| counts.iter().position(|count| *count == least))
            .flatten();
        let pool = &mut self.pools[die as usize];
        pool.without_victim = found.is_none();
        if let Some(number) = found {
            let block = first + number as u32;
            pool.victim = Some(Victim { block, next_unit: 0, valid_units: least });
            self.counts[block as usize] |= NOT_FULL;
        }
    }

    /// Gathers the next valid units of a victim, at most one program, and returns the number of
    /// rows to read for them.
    pub(super) fn gather(&mut self, die: u32, locations: &mut Vec<u32>) -> u32 {
        locations.clear();
        let Some(mut victim) = self.pools[die as usize].victim else { return 0 };
        let base = victim.block * self.block_units;
        let (mut rows, mut last_row) = (0, None);
        while victim.next_unit < self.block_units && locations.len() < self.program_units as usize {
            let location = base + victim.next_unit;
            let rest = self.valid[(location / 64) as usize] >> (location % 64);
            if rest == 0 {
                victim.next_unit += 64 - location % 64;
                continue;
            }
            let location = location + rest.trailing_zeros();
            victim.next_unit = location - base + 1;
            if victim.next_unit > self.block_units {
                break;
            }
            locations.push(location);
            if last_row.replace(location / self.row_units) != Some(location / self.row_units) {
                rows += 1;
            }
        }
        self.pools[die as usize].victim = Some(victim);
        rows
    }

    /// Records that gathered units are programmed from `to` on and returns how many moved. Units
    /// that became stale in the meantime stay stale.
    pub(super) fn moved(&mut self, locations: &[u32], to: u32) -> u32 {
        let mut moved = 0;
        for (from, to) in locations.iter().zip(to..) {
            if self.is_valid(*from) {
                let address = self.owner(*from);
                self.make_stale(*from);
                self.settle(address, to);
                moved += 1;
            }
        }
        moved
    }

    /// The address of the data at a valid location.
    fn owner(&self, location: u32) -> u32 {
        match self.owners[location as usize] {
            0 => {
                let block = location / self.block_units;
                self.start.address(block / self.die_blocks, block % self.die_blocks, location % self.block_units)
            }
            address => address - 1,
        }
    }

    /// Frees the erased victim of a die.
    pub(super) fn erased(&mut self, die: u32) {
        let pool = &mut self.pools[die as usize];
        if let Some(victim) = pool.victim.take() {
            debug_assert_eq!(self.counts[victim.block as usize] & !NOT_FULL, 0, "an erased block has no valid units");
            pool.free.push_back(victim.block);
        }
    }
}

#[cfg(test)]
impl Ftl {
    /// Asserts that every valid location is that of exactly one address, that blocks count their
    /// valid units, and that no block has two roles.
    pub(super) fn check(&self) {
        let locations = self.counts.len() as u32 * self.block_units;
        let mut counted = vec![0; self.counts.len()];
        let mut valid = 0;
        for location in (0..locations).filter(|location| self.is_valid(*location)) {
            counted[(location / self.block_units) as usize] += 1;
            valid += 1;
            assert_eq!(
                self.look_up(self.owner(location)),
                Location::Media(location),
                "location {location} belongs to the address that maps to it"
            );
        }
        let media_location =
            (0..self.addresses()).filter(|address| matches!(self.look_up(*address), Location::Media(_)));
        assert_eq!(media_location.count(), valid, "as many addresses on the flash as valid locations");
        for (block, (count, found)) in self.counts.iter().zip(counted).enumerate() {
            assert_eq!(count & !NOT_FULL, found, "block {block}");
        }
        for (die, pool) in (0..).zip(&self.pools) {
            let open = [pool.host, pool.moved].into_iter().flatten().map(|open| open.block);
            let roles: Vec<u32> =
                pool.free.iter().copied().chain(open).chain(pool.victim.map(|victim| victim.block)).collect();
            let distinct: std::collections::BTreeSet<u32> = roles.iter().copied().collect();
            assert_eq!(distinct.len(), roles.len(), "a block has one role");
            for block in die * self.die_blocks..(die + 1) * self.die_blocks {
                assert_eq!(
                    self.counts[block as usize] & NOT_FULL != 0,
                    distinct.contains(&block),
                    "block {block} is full"
                );
            }
            assert!(
                pool.free.iter().all(|block| self.counts[*block as usize] == NOT_FULL),
                "free blocks have no valid units"
            );
        }
    }

    /// The addresses with data, in the buffer or on flash.
    pub(super) fn written_addresses(&self) -> std::collections::BTreeSet<u32> {
        (0..self.addresses()).filter(|address| self.look_up(*address) != Location::Unwritten).collect()
    }
}
