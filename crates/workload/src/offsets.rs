//! The next request of a process: direction, file, offset and size.

use std::sync::Arc;

use hoistway_fio::{Direction, Directions, FileService, Ioengine, Job, Sequencer, Size, ZoneMode};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::distribution::Draw;
use crate::files::FileTurn;
use crate::free_blocks::FreeBlocks;
use crate::permutation::Permutation;
use crate::request::{IoUnit, Region};
use crate::syncs::{FileSync, Syncs, Work};
use crate::verification::Verification;
use crate::zones::{StridedZone, WrittenZones};
use crate::{mix, sizes, stream};

/// Generates the requests of one process.
#[derive(Clone, Debug)]
pub struct Generator {
    job: Arc<Job>,
    seed: u64,
    process: u64,
    /// One random stream per purpose, so that an option does not change the draws of another.
    mix_rng: Pcg64,
    offset_rng: Pcg64,
    size_rng: Pcg64,
    priority_rng: Pcg64,
    targets: Vec<Target>,
    ends: Ends,
    turn: FileTurn,
    /// Requests of a random job that still follow earlier ones before the next random offset
    /// (`randread:4`), counted over all files as in fio 3.33.
    run_left: u64,
    /// How often all files were done in this pass; more than once if the pass moves more bytes than
    /// they have.
    rounds: u64,
    verification: Option<Verification>,
    syncs: Syncs,
    /// The file of the last request or sync.
    file: usize,
    /// Bytes and requests generated in all passes. As in fio 3.33, a pass ends at the end of its
    /// files. Passes follow as many as `loops`, and more until `io_size` is moved; `io_size` and
    /// `number_ios`, times `loops`, end the job.
    all_bytes: u64,
    all_ios: u64,
    /// Requests generated in this pass.
    made_ios: u64,
    /// Bytes of the files, or of `io_size`.
    pass_bytes: u64,
    pass: u32,
}

/// A file with the process's position in it.
#[derive(Clone, Debug)]
struct Target {
    region: Region,
    /// Bytes generated in this pass.
    made: u64,
    /// Sequential positions, from the region's start.
    next: Directions<u64>,
    order: Order,
    /// Positions of the last requests.
    last: Directions<u64>,
    /// True once a position had no room for a request, or the map no block:
    /// [`Generator::ends_by_position`], [`Generator::ends_by_map`].
    is_done: bool,
    /// The block that was trimmed and is to be written (`trimwrite`).
    trimmed: Option<IoUnit>,
    strided: Option<StridedZone>,
    written: Option<WrittenZones>,
}

/// What ends a file and a pass, as in fio 3.33.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// Only the number of bytes ends a pass: no file counts as done before. True if requests may
    /// return to blocks that they touched.
    by_bytes: bool,
    /// The last request of a file may reach beyond its end: `filesize` makes no file for the engine
    /// `null`.
    beyond_file: bool,
    /// Bytes that a file must have left for another request.
    least_room: u64,
}

impl Ends {
    fn new(job: &Job, targets: &[Target]) -> Ends {
        let is_drawn = targets.iter().any(|target| matches!(target.order, Order::Drawn(_)));
        let is_mixed =
            job.requests.rw.reads() && job.requests.rw.writes() && !matches!(job.requests.rwmixread, 0 | 100);
        // A file that is drawn by weights may be drawn when it is done.
        let has_weights = matches!(job.files.file_service, FileService::Drawn(_));
        let repeats = match job.requests.rw.is_random() {
            true => is_drawn || job.end.time_based,
            false => is_mixed || job.requests.rw_modifier.is_some(),
        };
        let has_bytes = matches!(job.region.size, Some(Size::Bytes(_)));
        let beyond_file = job.submission.ioengine == Ioengine::Null
            && job.region.filesize.is_some()
            && !has_bytes
            && !job.requests.rw.is_random();
        Ends {
            by_bytes: repeats || has_weights,
            beyond_file,
            least_room: if beyond_file { 1 } else { sizes::smallest_of_all(job) },
        }
    }
}

/// The order of random blocks.
#[derive(Clone, Debug)]
enum Order {
    /// Each block once, then all again in another order.
    Map(Map),
    /// Each block once by requests of different sizes: a drawn block that was touched is left to
    /// the next free one, and a request ends before the next touched one. As in fio 3.33, the
    /// blocks of a direction have the size of its smallest request, and block 3 of any size is the
    /// same block; there are as many as smallest requests of any direction.
    Free(FreeBlocks),
    /// Independent draws.
    Drawn(Draw),
}

/// A permutation of blocks, and another one of the same key after each round.
#[derive(Clone, Debug)]
struct Map {
    permutation: Permutation,
    /// Blocks of all rounds.
    made: u64,
    key: u64,
}

impl Generator {
    /// Creates a generator that moves `io_bytes` bytes in one pass; without an end if the job is
    /// `time_based`.
    pub fn new(job: Arc<Job>, regions: &[Region], io_bytes: u64, seed: u64, process: u64) -> Generator {
        let turn = FileTurn::new(&job.files.file_service, regions.len(), job.files.openfiles, mix(seed ^ process));
        let mut generator = Generator {
            verification: Verification::new(&job, regions.len()),
            syncs: Syncs::new(&job),
            file: 0,
            all_bytes: 0,
            all_ios: 0,
            job,
            seed,
            process,
            mix_rng: stream(seed, process, 1),
            offset_rng: stream(seed, process, 2),
            size_rng: stream(seed, process, 3),
            priority_rng: stream(seed, process, 9),
            targets: Vec::new(),
            ends: Ends::default(),
            turn,
            run_left: 0,
            rounds: 0,
            made_ios: 0,
            pass_bytes: io_bytes,
            pass: 0,
        };
        generator.targets = (0u64..).zip(regions).map(|(file, region)| generator.target(file, *region)).collect();
        generator.ends = Ends::new(&generator.job, &generator.targets);
        generator
    }

    /// Makes the process write the zones of a zoned device that other processes write, too.
    pub fn share_zones(&mut self, file: usize, zones: &WrittenZones) {
        if let Some(target) = self.targets.get_mut(file) {
            target.written = Some(zones.clone());
        }
    }

    /// The next request of a job without caps; see [`Self::next_of`].
    #[expect(clippy::should_implement_trait, reason = "a pass ends, and the next one follows")]
    pub fn next(&mut self) -> Option<IoUnit> {
        self.next_of(|drawn| drawn)
    }

    /// The next request; `None` after the last byte of the pass. If the job verifies what it wrote,
    /// [`Self::begin_verification`] follows.
    ///
    /// `choose` gets the direction that was drawn for a job that reads and writes, and returns the
    /// direction to take ([`crate::pacing::Pacing::direction`]).
    pub fn next_of(&mut self, choose: impl Fn(Direction) -> Direction) -> Option<IoUnit> {
        let mut unit = match self.verification.as_mut().and_then(Verification::next) {
            Some(unit) => unit,
            None => {
                let unit = self.fresh(choose).or_else(|| self.last_of_trimmed())?;
                self.syncs.made(&unit);
                self.file = unit.file;
                unit
            }
        };
        if unit.direction == Direction::Write
            && let Some(verification) = &mut self.verification
        {
            verification.wrote(&unit);
        }
        let priorities = self.job.priority.cmdprio.get(unit.direction);
        if priorities.percent > 0 || !priorities.by_size.is_empty() {
            unit.priority = priorities.of(unit.bytes, self.priority_rng.random_range(0..100));
        }
        Some(unit)
    }

    /// The sync that is due before the next request; it takes the turn of a file, as in fio 3.33.
    /// Until [`Self::completed`] reports that a sync has ended, further ones are due.
    pub fn next_sync(&mut self) -> Option<FileSync> {
        if self.has_ended_job() || self.verification.as_ref().is_some_and(Verification::is_due) {
            return None;
        }
        let data_only = self.syncs.due()?;
        self.file = self.choose_file().unwrap_or(self.file);
        Some(FileSync { file: self.file, data_only })
    }

    /// Records that a sync, or a request, completed: the next sync is due after a request.
    pub fn completed(&mut self, work: Work) {
        self.syncs.completed(work);
    }

    /// Begins the verification of what the pass wrote. Returns false if there is nothing to verify,
    /// and for a `time_based` job, whose time is over before, as in fio 3.33.
    pub fn begin_verification(&mut self) -> bool {
        !self.job.end.time_based && self.verification.as_mut().is_some_and(Verification::begin)
    }

    /// Starts the next pass of the job (`loops`, `time_based`, `io_size`); `None` after the last
    /// pass.
    pub fn next_pass(&mut self) -> Option<u32> {
        self.pass += 1;
        let is_due = self.job.end.time_based || self.pass < self.job.amount.loops || self.lacks_bytes();
        if self.made_ios == 0 || !is_due || self.has_ended_job() {
            return None;
        }
        self.syncs.begin_pass();
        (self.made_ios, self.rounds) = (0, 0);
        self.turn.reset(self.targets.len());
        self.rewind();
        // A sequential job goes on where the pass ended: after the last byte at the start.
        self.targets.iter_mut().for_each(|target| target.made = 0);
        if self.job.end.time_based && !self.job.requests.rw.is_random() {
            // The time ends the job, and not the files: the draws go on, too.
            return Some(self.pass);
        }
        self.targets.iter_mut().for_each(|target| target.order.restart());
        self.run_left = 0;
        self.mix_rng = stream(self.seed, self.process, 1);
        self.offset_rng = stream(self.seed, self.process, 2);
        self.size_rng = stream(self.seed, self.process, 3);
        Some(self.pass)
    }

    /// Returns true if the largest request would not yet reach the bytes of `io_size`.
    fn lacks_bytes(&self) -> bool {
        let largest = Direction::ALL.into_iter().map(|direction| self.job.blocks.bs.get(direction).max()).max();
        // Blocks that are trimmed and written count twice.
        let times = if self.job.requests.rw.trims_before_writes() { 2 } else { 1 };
        let left = self.pass_bytes.saturating_sub(self.all_bytes.saturating_mul(times));
        matches!(self.job.amount.io_size, Some(Size::Bytes(_))) && left >= largest.unwrap_or(0)
    }

    /// Returns true if the bytes or the requests of all passes are made.
    fn has_ended_job(&self) -> bool {
        let passes = u64::from(self.job.amount.loops.max(1));
        let has_all_ios = self.job.amount.number_ios.is_some_and(|most| self.all_ios >= most.saturating_mul(passes));
        !self.job.end.time_based && (has_all_ios || self.all_bytes >= self.pass_bytes.saturating_mul(passes))
    }

    fn target(&self, file: u64, region: Region) -> Target {
        let grain = sizes::grain(&self.job);
        let zones = self.job.zones;
        let strided = (zones.mode == ZoneMode::Strided).then(|| StridedZone::new(zones));
        // Offsets are drawn within a strided zone.
        let bytes = strided.as_ref().map_or(region.len, |zone| zone.len(region.len));
        let blocks = self.blocks(bytes);
        let key = mix(self.seed ^ mix(self.process << 20 | file));
        let order = match strided.is_none() && self.job.touches_blocks_once() {
            true if sizes::is_one(&self.job) => Order::Map(Map::new(blocks, key)),
            true => Order::Free(FreeBlocks::new(bytes / sizes::map_unit(&self.job))),
            false => Order::Drawn(Draw::of_bytes(&self.job.requests.random_distribution, blocks, grain, key)),
        };
        let first = self.first_position(region);
        Target {
            region,
            made: 0,
            next: Directions::both(first),
            order,
            last: Directions::default(),
            is_done: false,
            trimmed: None,
            strided,
            written: None,
        }
    }

    /// The first position of a sequential job. With a negative step and an offset, fio 3.33 begins
    /// the step before the end of a region that starts at 0.
    fn first_position(&self, region: Region) -> u64 {
        let step = self.job.requests.rw_modifier.unwrap_or(0);
        if self.job.requests.rw.is_random() || step >= 0 || region.start == 0 {
            return 0;
        }
        let last = region.len.saturating_add_signed(step);
        last.checked_sub(region.start).unwrap_or(last)
    }

    /// Number of random offsets among this many bytes.
    fn blocks(&self, bytes: u64) -> u64 {
        let grain = sizes::grain(&self.job);
        if !self.job.has_other_alignment() {
            return (bytes / grain).max(1);
        }
        // A request at the last offset is whole.
        bytes.saturating_sub(sizes::smallest_of_all(&self.job)) / grain + 1
    }

    /// A write of a block that was not yet written when the pass trimmed its last block.
    fn last_of_trimmed(&mut self) -> Option<IoUnit> {
        let file = self.targets.iter().position(|target| target.trimmed.is_some())?;
        self.rest_of_trimmed(file)
    }

    /// A write of the block of a file that was trimmed before.
    fn rest_of_trimmed(&mut self, file: usize) -> Option<IoUnit> {
        let trimmed = self.targets.get_mut(file)?.trimmed.as_mut()?;
        let size = sizes::draw(&self.job, Direction::Write, self.job.requests.rw.is_random(), &mut self.size_rng);
        let unit = IoUnit::new(Direction::Write, trimmed.file, trimmed.offset, size.min(trimmed.bytes));
        trimmed.offset += unit.bytes;
        trimmed.bytes -= unit.bytes;
        if trimmed.bytes == 0 {
            self.targets[file].trimmed = None;
        }
        Some(unit)
    }

    fn fresh(&mut self, choose: impl Fn(Direction) -> Direction) -> Option<IoUnit> {
        if self.has_ended_job() {
            return None;
        }
        let direction = self.direction(choose);
        let unit = loop {
            let file = self.choose_file()?;
            if let Some(unit) = self.rest_of_trimmed(file) {
                return Some(unit);
            }
            match self.next_of_file(file, direction) {
                Some(unit) => break unit,
                None if self.ends_by_position() || self.ends_by_map(file) => self.targets[file].is_done = true,
                None => return None,
            }
        };
        let file = unit.file;
        let unit = self.in_zone(unit)?;
        self.made_ios += 1;
        self.all_bytes = self.all_bytes.saturating_add(unit.bytes);
        self.all_ios += 1;
        let target = &mut self.targets[file];
        target.made = target.made.saturating_add(unit.bytes);
        if let Some(zone) = &mut target.strided {
            zone.moved(unit.bytes);
        }
        if self.job.requests.rw.trims_before_writes() {
            self.targets[file].trimmed = Some(IoUnit { direction: Direction::Write, ..unit });
        }
        Some(unit)
    }

    fn next_of_file(&mut self, file: usize, direction: Direction) -> Option<IoUnit> {
        let is_random = self.job.requests.rw.is_random() && self.begins_run() && self.rolls_random(direction);
        let target = &mut self.targets[file];
        if let Some(zone) = &mut target.strided
            && zone.advance(target.region.len, sizes::smallest(&self.job, direction))
        {
            *target.next.get_mut(direction) = zone.start;
        }
        match is_random {
            true => self.random(file, direction),
            false => self.sequential(file, direction),
        }
    }

    /// Returns true if a file is done when a position has no room for a request: with steps between
    /// requests (`read:8k`), and for requests of a random job that follow others.
    fn ends_by_position(&self) -> bool {
        match self.job.requests.rw.is_random() {
            true => {
                let percent = |direction| *self.job.requests.percentage_random.get(direction);
                self.job.requests.rw_modifier.is_some()
                    || self.job.directions().any(|direction| percent(direction) < 100)
            }
            false => self.job.requests.rw_modifier.is_some_and(|step| step > 0),
        }
    }

    /// Returns true if a file is done when its map has no block for a request.
    fn ends_by_map(&self, file: usize) -> bool {
        matches!(self.targets[file].order, Order::Free(_))
    }

    /// Begins again at the start of the files that positions or maps ended.
    fn rewind(&mut self) {
        for target in self.targets.iter_mut().filter(|target| target.is_done) {
            target.is_done = false;
            target.next = Directions::default();
        }
    }

    /// Moves a request to where the zones of a zoned device allow it.
    fn in_zone(&mut self, unit: IoUnit) -> Option<IoUnit> {
        let target = &self.targets[unit.file];
        let Some(zones) = &target.written else { return Some(unit) };
        let start = target.region.start;
        let position = unit.offset - start;
        let placed = |(at, bytes): (u64, u64)| IoUnit { offset: start + at, bytes: unit.bytes.min(bytes), ..unit };
        match unit.direction {
            Direction::Write => Some(placed(zones.write(position, unit.bytes, &mut self.offset_rng))),
            Direction::Read if self.job.zones.read_beyond => Some(unit),
            Direction::Read => match zones.read(position, sizes::grain(&self.job)) {
                Some(place) => Some(placed(place)),
                None if self.job.requests.rw.writes() => {
                    let unit = IoUnit { direction: Direction::Write, ..unit };
                    let (at, bytes) = zones.write(position, unit.bytes, &mut self.offset_rng);
                    Some(IoUnit { offset: start + at, bytes, ..unit })
                }
                None => None,
            },
            Direction::Trim => zones.reset(position).map(|(at, bytes)| IoUnit { offset: start + at, bytes, ..unit }),
        }
    }

    fn direction(&mut self, choose: impl Fn(Direction) -> Direction) -> Direction {
        if self.job.requests.rw.trims() {
            return Direction::Trim;
        }
        match (self.job.requests.rw.reads(), self.job.requests.rw.writes()) {
            (true, true) => {
                let reads = self.mix_rng.random_range(0..100u8) < self.job.requests.rwmixread;
                let drawn = if reads { Direction::Read } else { Direction::Write };
                // A share of 100 % leaves nothing to choose, not even to a cap.
                if matches!(self.job.requests.rwmixread, 0 | 100) { drawn } else { choose(drawn) }
            }
            (true, false) => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// A file whose region is done is skipped, unless the bytes of the pass decide alone.
    fn choose_file(&mut self) -> Option<usize> {
        let again = self.ends.by_bytes;
        let is_limited = self.job.files.openfiles > 0 && (self.job.files.openfiles as usize) < self.targets.len();
        let chosen = self.choose_unfinished(again && !is_limited);
        if chosen.is_some() || !again || !is_limited {
            return chosen;
        }
        // All files are done and closed, and are opened again.
        self.rounds += 1;
        self.turn.reset(self.targets.len());
        self.choose_unfinished(false)
    }

    /// Chooses a file with room for another request in this round; any file with `again`.
    fn choose_unfinished(&mut self, again: bool) -> Option<usize> {
        let (targets, rounds, smallest) = (&self.targets, self.rounds, self.ends.least_room);
        self.turn.choose(targets.len(), &mut self.mix_rng, |file| {
            let target = &targets[file];
            let fits = target.region.len >= smallest;
            let goal = target.region.len.saturating_mul(rounds + 1);
            fits && !target.is_done && (again || target.trimmed.is_some() || goal - target.made.min(goal) >= smallest)
        })
    }

    /// Counts a request of a random job. Returns false for one that follows an earlier one.
    fn begins_run(&mut self) -> bool {
        let begins = self.run_left == 0;
        let run = self.job.requests.rw_modifier.and_then(|count| u64::try_from(count).ok()).unwrap_or(1).max(1);
        self.run_left = if begins { run - 1 } else { self.run_left - 1 };
        begins
    }

    fn rolls_random(&mut self, direction: Direction) -> bool {
        let percent = *self.job.requests.percentage_random.get(direction);
        percent >= 100 || self.mix_rng.random_range(0..100u8) < percent
    }

    fn sequential(&mut self, file: usize, direction: Direction) -> Option<IoUnit> {
        let size = sizes::draw(&self.job, direction, false, &mut self.size_rng);
        let step = if self.job.requests.rw.is_random() { 0 } else { self.job.requests.rw_modifier.unwrap_or(0) };
        let smallest = sizes::smallest(&self.job, direction);
        let unit = sizes::unit(&self.job, direction, false);
        let target = &mut self.targets[file];
        let Region { start, len } = target.region;
        let (from, to, room) = match &target.strided {
            Some(zone) => (zone.start, zone.start + zone.len(len), zone.left().max(smallest)),
            None if self.ends.beyond_file => (0, len.next_multiple_of(smallest), u64::MAX),
            None => (0, len, u64::MAX),
        };
        let next = target.next.get_mut(direction);
        if self.job.requests.rw.is_random() && self.job.requests.rw_sequencer == Sequencer::Identical {
            *next = *target.last.get(direction);
        }
        let follows_step = step > 0 && target.strided.is_none() && *next > 0;
        if follows_step {
            *next = after_step(*next, step, smallest, target.region)?;
        } else if *next < from || *next >= to || to - *next < smallest {
            if self.job.requests.rw.is_random() {
                let is_at_end = *next >= to || *next < from || target.strided.is_some();
                return if is_at_end { self.random(file, direction) } else { None };
            }
            *next = from;
        }
        let bytes = whole_blocks(size, (to - *next).min(room), unit)?;
        let position = *next;
        *target.last.get_mut(direction) = position;
        *next = position + bytes;
        if step < 0 || target.strided.is_some() {
            // From an offset before the region's start a negative step leads to the region's end
            // less the step.
            *next = next.checked_add_signed(step).unwrap_or_else(|| len.saturating_add_signed(step));
        }
        Some(IoUnit::new(direction, file, start + position, bytes))
    }

    fn random(&mut self, file: usize, direction: Direction) -> Option<IoUnit> {
        let size = sizes::draw(&self.job, direction, true, &mut self.size_rng);
        let grain = sizes::grain(&self.job);
        let smallest = sizes::smallest(&self.job, direction);
        let align = match *self.job.blocks.blockalign.get(direction) {
            0 => smallest,
            align => align,
        };
        let unit = sizes::unit(&self.job, direction, true);
        let target = &mut self.targets[file];
        let Region { start, len } = target.region;
        let (from, to, room) = match &target.strided {
            Some(zone) => (zone.start, zone.start + zone.len(len), zone.left().max(smallest)),
            None => (0, len, u64::MAX),
        };
        let (position, free) = match &mut target.order {
            Order::Map(map) => (map.next() * grain, u64::MAX),
            Order::Drawn(draw) => (draw.draw(&mut self.offset_rng) * grain / align * align, u64::MAX),
            Order::Free(map) => {
                let blocks = (to - from) / smallest;
                let drawn = self.offset_rng.random_range(0..blocks.max(1));
                let mut found = map.find(drawn);
                if found.is_none() && self.job.end.time_based {
                    // The time ends the job, and not the map.
                    map.clear();
                    found = map.find(drawn);
                }
                let (block, free) = found.filter(|(block, _)| *block < blocks)?;
                (block * smallest, free.saturating_mul(smallest))
            }
        };
        let position = from + if (to - from).saturating_sub(position) < smallest { 0 } else { position };
        let bytes = whole_blocks(size, (to - position).min(free).min(room), unit)?;
        if let Order::Free(map) = &mut target.order {
            map.take((position - from) / smallest, bytes.div_ceil(smallest));
        }
        *target.last.get_mut(direction) = position;
        *target.next.get_mut(direction) = position + bytes;
        Some(IoUnit::new(direction, file, start + position, bytes))
    }
}

impl Order {
    /// Begins again with all blocks untouched, in the same order.
    fn restart(&mut self) {
        match self {
            Order::Map(map) => *map = Map::new(map.permutation.len(), map.key),
            Order::Free(map) => map.clear(),
            Order::Drawn(_) => {}
        }
    }
}

impl Map {
    fn new(blocks: u64, key: u64) -> Map {
        Map { permutation: Permutation::new(blocks, key), made: 0, key }
    }

    fn next(&mut self) -> u64 {
        let (round, at) = (self.made / self.permutation.len(), self.made % self.permutation.len());
        if round > 0 && at == 0 {
            self.permutation = Permutation::new(self.permutation.len(), mix(self.key.wrapping_add(round)));
        }
        self.made += 1;
        self.permutation.get(at)
    }
}

/// The position of a request a step after the end of the one before, as in fio 3.33: a step over
/// the end leads to the start, at the offset of the region once more. `None` if the request before
/// ended there, or if there is no room.
fn after_step(end: u64, step: i64, smallest: u64, region: Region) -> Option<u64> {
    if end >= region.len {
        return None;
    }
    let position = end.saturating_add_signed(step);
    let position = if position >= region.start + region.len { region.start } else { position };
    (position.saturating_add(smallest) <= region.len).then_some(position)
}

/// The size of a request where there is room for this many bytes: a size that does not fit is
/// rounded down to a multiple of the smallest block. `None` if nothing is left.
fn whole_blocks(size: u64, room: u64, smallest: u64) -> Option<u64> {
    let whole = if size <= room { size } else { room / smallest * smallest };
    (whole > 0).then_some(whole)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use hoistway_fio::{BlockSize, Distribution, FileService, Rw, SplitEntry, Zones};

    const REGION: Region = Region { start: 1 << 20, len: 1 << 20 };

    fn of(rw: Rw) -> Job {
        with(Job::default(), |job| job.requests.rw = rw)
    }

    fn with(mut job: Job, change: impl FnOnce(&mut Job)) -> Job {
        change(&mut job);
        job
    }

    fn units(job: &Job, io_bytes: u64) -> Vec<IoUnit> {
        let mut generator = Generator::new(Arc::new(job.clone()), &[REGION], io_bytes, 42, 0);
        let mut next = || generator.next().or_else(|| generator.next_pass().and_then(|_| generator.next()));
        std::iter::from_fn(&mut next).take(100_000).collect()
    }

    fn offsets(job: &Job) -> Vec<u64> {
        units(job, 1 << 20).iter().map(|unit| unit.offset - REGION.start).collect()
    }

    #[test]
    fn sequential_reads_go_through_the_region_in_order() {
        assert!(offsets(&Job::default()).into_iter().eq((0..256).map(|block| block * 4096)));
    }

    #[test]
    fn random_reads_touch_every_block_once_unless_norandommap_is_set() {
        let job = of(Rw::Randread);
        let mut once = offsets(&job);
        assert!(!once.is_sorted());
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), 256);
        let mut drawn = offsets(&with(job.clone(), |job| job.requests.norandommap = true));
        drawn.sort_unstable();
        drawn.dedup();
        // Of 256 draws among 256 blocks about 1 - 1/e, 162, are different.
        assert!((140..185).contains(&drawn.len()), "{}", drawn.len());
        let zipf = with(job, |job| job.requests.random_distribution = Distribution::Zipf(1.5));
        let mut popular = offsets(&zipf);
        popular.sort_unstable();
        popular.dedup();
        assert!(popular.len() < 100, "{}", popular.len());
    }

    #[test]
    fn the_modifier_makes_holes_or_runs() {
        let holes = with(Job::default(), |job| job.requests.rw_modifier = Some(4096));
        assert_eq!(offsets(&holes)[..3], [0, 8192, 16384]);
        let runs = with(of(Rw::Randread), |job| job.requests.rw_modifier = Some(4));
        let seen = offsets(&runs);
        let follows = seen.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
        // Three of four requests follow the previous one; a run that reaches the region's end
        // starts again.
        assert!((180..=195).contains(&follows), "{follows} of 255");
        let same = with(runs, |job| job.requests.rw_sequencer = Sequencer::Identical);
        assert!(offsets(&same).chunks(4).all(|run| run.iter().all(|offset| *offset == run[0])));
    }

    #[test]
    fn rwmixread_is_the_share_of_reads() {
        let job = with(of(Rw::Randrw), |job| {
            job.requests.rwmixread = 80;
            job.requests.norandommap = true;
        });
        let reads = units(&job, 40 << 20).iter().filter(|unit| unit.direction == Direction::Read).count();
        assert!((8000..8400).contains(&reads), "{reads} of 10240");
    }

    #[test]
    fn percentage_random_leaves_the_rest_sequential() {
        let job = with(of(Rw::Randread), |job| {
            job.requests.percentage_random = Directions::both(25);
            job.requests.norandommap = true;
        });
        let seen = offsets(&job);
        let follows = seen.windows(2).filter(|pair| pair[1] == (pair[0] + 4096) % REGION.len).count();
        assert!((170..215).contains(&follows), "{follows} of 255");
    }

    #[test]
    fn sizes_come_from_the_range_or_the_split() {
        let mut job = with(of(Rw::Randread), |job| job.requests.norandommap = true);
        job.blocks.bs.read = BlockSize::Range { min: 4096, max: 16384 };
        let ranged = units(&job, 40 << 20);
        for bytes in [4096, 8192, 12288, 16384] {
            let share = ranged.iter().filter(|unit| unit.bytes == bytes).count() as f64 / ranged.len() as f64;
            assert!((share - 0.25).abs() < 0.03, "{bytes}: {share}");
        }
        let entries = [(4096, 90), (65536, 10)].map(|(bytes, percent)| SplitEntry { bytes, percent });
        job.blocks.bs.read = BlockSize::Split(entries.to_vec());
        let split = units(&job, 40 << 20);
        let large = split.iter().filter(|unit| unit.bytes > 4096).count() as f64 / split.len() as f64;
        assert!((large - 0.1).abs() < 0.03, "{large}");
    }

    #[test]
    fn number_ios_and_io_size_end_the_job_and_a_larger_io_size_wraps() {
        let job = with(Job::default(), |job| job.amount.number_ios = Some(10));
        assert_eq!(units(&job, 1 << 20).len(), 10);
        assert_eq!(units(&Job::default(), 40960).len(), 10);
        let large = with(Job::default(), |job| job.amount.io_size = Some(Size::Bytes(2 << 20)));
        let twice = units(&large, 2 << 20);
        assert_eq!((twice.len(), twice[256].offset), (512, REGION.start));
    }

    #[test]
    fn loops_repeat_the_pass() {
        let job = with(Job::default(), |job| job.amount.loops = 3);
        let mut generator = Generator::new(Arc::new(job), &[REGION], 1 << 20, 42, 0);
        let mut count = 0;
        loop {
            while generator.next().is_some() {
                count += 1;
            }
            if generator.next_pass().is_none() {
                break;
            }
        }
        assert_eq!(count, 3 * 256);
    }

    /// fio 3.33 printed the same offsets and sizes in each of three loops, and other offsets with
    /// `norandommap`.
    #[test]
    fn loops_repeat_the_random_numbers_unless_norandommap_is_set() {
        let mut sizes = with(Job::default(), |job| job.amount.loops = 3);
        sizes.blocks.bs.read = BlockSize::Range { min: 4096, max: 16384 };
        let random = with(of(Rw::Randread), |job| job.amount.loops = 3);
        for job in [&random, &sizes, &with(sizes.clone(), |job| job.requests.norandommap = true)] {
            let mut generator = Generator::new(Arc::new(job.clone()), &[REGION], 1 << 20, 42, 0);
            let mut passes: Vec<Vec<(u64, u64)>> = Vec::new();
            loop {
                passes.push(std::iter::from_fn(|| generator.next()).map(|unit| (unit.offset, unit.bytes)).collect());
                if generator.next_pass().is_none() {
                    break;
                }
            }
            assert_eq!((passes.len(), passes[0] == passes[1], passes[1] == passes[2]), (3, true, true));
        }
        let drawn = units(&with(random.clone(), |job| job.requests.norandommap = true), 1 << 20);
        assert!(drawn.len() == 768 && drawn[..256].iter().zip(&drawn[256..]).any(|(one, other)| one != other));
        let large = Some(Size::Bytes(2 << 20));
        let wrapped = units(
            &with(random, |job| {
                job.amount.loops = 1;
                job.amount.io_size = large;
            }),
            2 << 20,
        );
        assert!(wrapped[..256].iter().zip(&wrapped[256..]).all(|(one, other)| one.offset == other.offset));
    }

    /// fio 3.33 printed each block once in every round of the file, in another order each time, for
    /// 300 ms. With `number_ios=50` it did the same, and a round of requests that follow others
    /// (`randread:2`) was twice as long.
    #[test]
    fn a_job_of_a_given_time_draws_other_offsets_in_each_round() {
        let job = with(of(Rw::Randread), |job| {
            job.end.time_based = true;
            job.amount.number_ios = Some(50);
        });
        let rounds = units(&job, 1 << 20);
        let round = |number: usize| rounds[number * 256..][..256].iter().map(|unit| unit.offset).collect::<Vec<_>>();
        let sorted = |mut offsets: Vec<u64>| {
            offsets.sort_unstable();
            offsets
        };
        assert_eq!(rounds.len(), 100_000);
        assert_ne!(round(0), round(1));
        assert_eq!(sorted(round(0)), sorted(round(7)));
        let runs = units(&with(job, |job| job.requests.rw_modifier = Some(2)), 1 << 20);
        let draws: BTreeSet<u64> = runs.iter().step_by(2).take(256).map(|unit| unit.offset).collect();
        // The request after the last block is a draw, too.
        assert!(draws.len() >= 255, "{}", draws.len());
    }

    /// fio 3.33 without `norandommap` on a file of 200 blocks of 8 KiB: 150 requests with
    /// `bs=8k,4k` and 200 with `bs=8k`; 158 and 197 requests with `rw=randrw bs=4k,8k` and two
    /// seeds, of which some overlap.
    #[test]
    fn a_map_of_smaller_blocks_ends_a_pass_early() {
        let bytes = 200 * 8192;
        let count = |rw, read: u64, write: u64, seed| {
            let mut job = of(rw);
            (job.blocks.bs.read, job.blocks.bs.write) = (BlockSize::Fixed(read), BlockSize::Fixed(write));
            job.blocks.bs.trim = job.blocks.bs.write.clone();
            let region = Region { start: 0, len: bytes };
            let mut generator = Generator::new(Arc::new(job), &[region], bytes, seed, 0);
            let units: Vec<IoUnit> = std::iter::from_fn(|| generator.next()).collect();
            assert!(units.iter().all(|unit| unit.offset + unit.bytes <= bytes));
            units.len()
        };
        assert_eq!([count(Rw::Randread, 8192, 8192, 1), count(Rw::Randread, 8192, 16384, 1)], [200, 200]);
        let mean = |rw, read, write| (0..40).map(|seed| count(rw, read, write, seed)).sum::<usize>() / 40;
        let (one_way, mixed) = (mean(Rw::Randread, 8192, 4096), mean(Rw::Randrw, 4096, 8192));
        assert!((120..190).contains(&one_way) && (140..230).contains(&mixed), "{one_way} {mixed}");
    }

    /// fio 3.33 ended `randread` with `bsrange=2k-3k` on a file of 1613824 bytes after 1472512,
    /// with `io_size=100%`, too, and after 1614848 with `io_size=1613824`.
    #[test]
    fn requests_of_odd_sizes_end_with_the_last_free_block() {
        let region = Region { start: 0, len: 1_613_824 };
        let bytes = |io_size| {
            let mut job = with(of(Rw::Randread), |job| job.amount.io_size = io_size);
            for bs in [&mut job.blocks.bs.read, &mut job.blocks.bs.write, &mut job.blocks.bs.trim] {
                *bs = BlockSize::Range { min: 2048, max: 3072 };
            }
            let mut generator = Generator::new(Arc::new(job), &[region], region.len, 42, 0);
            let mut next = || generator.next().or_else(|| generator.next_pass().and_then(|_| generator.next()));
            std::iter::from_fn(&mut next).map(|unit| unit.bytes).sum::<u64>()
        };
        let part = bytes(None);
        assert!((1_420_000..1_520_000).contains(&part), "{part}");
        assert_eq!(bytes(Some(Size::Percent(100))), part);
        assert!((1_613_824..1_617_000).contains(&bytes(Some(Size::Bytes(1_613_824)))));
    }

    #[test]
    fn files_take_turns_and_each_is_read_to_its_end() {
        let regions = [Region { start: 0, len: 8192 }, Region { start: 0, len: 16384 }];
        let mut generator = Generator::new(Arc::default(), &regions, 24576, 42, 0);
        let seen: Vec<_> = std::iter::from_fn(|| generator.next()).map(|unit| (unit.file, unit.offset)).collect();
        assert_eq!(seen, [(0, 0), (1, 0), (0, 4096), (1, 4096), (1, 8192), (1, 12288)]);
    }

    fn starts(job: &Job, io_bytes: u64) -> Vec<u64> {
        units(job, io_bytes).iter().map(|unit| (unit.offset - REGION.start) >> 10).collect()
    }

    /// The offsets that fio 3.33 printed with `--write_iolog` for these zones, in KiB.
    #[test]
    fn strided_zones_follow_one_another_as_in_fio() {
        let zones = |size, range, skip| Job {
            zones: Zones { mode: ZoneMode::Strided, size, range, skip, ..Zones::default() },
            ..Job::default()
        };
        let narrow = starts(&zones(16 << 10, 64 << 10, 0), 1 << 20);
        assert_eq!(narrow[..10], [0, 4, 8, 12, 64, 68, 72, 76, 128, 132]);
        // 1 MiB holds 16 zones of 64 KiB; the size is moved nevertheless.
        assert_eq!((narrow.len(), narrow[64]), (256, 0));
        assert_eq!(starts(&zones(16 << 10, 0, 48 << 10), 1 << 20), narrow);
        let twice = starts(&zones(64 << 10, 32 << 10, 32 << 10), 1 << 20);
        assert_eq!(twice[..18], [0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28, 64, 68]);
        let random = with(zones(16 << 10, 64 << 10, 64 << 10), |job| job.requests.rw = Rw::Randread);
        let zone_of: Vec<u64> = starts(&random, 1 << 20).iter().map(|at| at / 128).collect();
        assert!(
            zone_of.chunks(4).enumerate().all(|(i, zone)| zone.iter().all(|at| *at == i as u64 % 8)),
            "{zone_of:?}"
        );
    }

    #[test]
    fn zones_of_a_zoned_device_are_written_from_start_to_end() {
        let zones = Zones { mode: ZoneMode::Zbd, size: 32 << 10, open_max: 2, ..Zones::default() };
        let job = with(of(Rw::Randwrite), |job| {
            job.requests.norandommap = true;
            job.zones = zones;
        });
        let shared = WrittenZones::new(zones, REGION.len, false);
        let make = |process| {
            let mut generator = Generator::new(Arc::new(job.clone()), &[REGION], 1 << 20, 42, process);
            generator.share_zones(0, &shared);
            generator
        };
        let mut processes = [make(0), make(1)];
        let mut written = std::collections::HashMap::new();
        let mut open = std::collections::HashSet::new();
        for turn in 0..256 {
            let unit = processes[turn % 2].next().expect("half of the device each");
            let at = unit.offset - REGION.start;
            let end = written.entry(at / (32 << 10)).or_insert(0);
            assert_eq!(at % (32 << 10), *end, "not at the end of the zone");
            *end += unit.bytes;
            match *end == 32 << 10 {
                true => open.remove(&(at / (32 << 10))),
                false => open.insert(at / (32 << 10)),
            };
            assert!(open.len() <= 2);
        }
        assert!(written.len() == 32 && written.values().all(|end| *end == 32 << 10));
    }

    #[test]
    fn each_block_is_trimmed_and_then_written() {
        let job = with(of(Rw::Randtrimwrite), |job| job.amount.number_ios = Some(5));
        let seen = units(&job, 1 << 20);
        assert_eq!(seen.len(), 10);
        for pair in seen.chunks(2) {
            assert_eq!((pair[0].direction, pair[1].direction), (Direction::Trim, Direction::Write));
            assert_eq!((pair[0].offset, pair[0].bytes), (pair[1].offset, pair[1].bytes));
        }
        let mut wide = of(Rw::Trimwrite);
        wide.blocks.bs.trim = BlockSize::Fixed(8192);
        let sizes: Vec<u64> = units(&wide, 16384).iter().map(|unit| unit.bytes).collect();
        assert_eq!(sizes, [8192, 4096, 4096, 8192, 4096, 4096]);
        let trims = of(Rw::Randtrim);
        assert!(units(&trims, 1 << 20).iter().all(|unit| unit.direction == Direction::Trim));
    }

    /// The multiples and the repetitions that fio 3.33 showed with `ba=8k`, and with `ba=1k`.
    #[test]
    fn blockalign_sets_the_multiples_of_random_offsets() {
        for (align, repeats) in [(8192, true), (1024, false)] {
            let mut job = of(Rw::Randread);
            job.blocks.blockalign = Directions::both(align);
            let seen = offsets(&job);
            assert!(seen.iter().all(|at| at.is_multiple_of(align) && at + 4096 <= REGION.len));
            assert!(seen.iter().any(|at| at % 4096 != 0) != repeats);
        }
    }

    #[test]
    fn what_was_written_is_read_again_after_the_pass_or_after_some_blocks() {
        let job = with(of(Rw::Randwrite), |job| job.verification.verifies = true);
        let mut generator = Generator::new(Arc::new(job.clone()), &[REGION], 65536, 42, 0);
        let written: Vec<u64> = std::iter::from_fn(|| generator.next()).map(|unit| unit.offset).collect();
        assert!(written.len() == 16 && generator.begin_verification());
        let read: Vec<_> = std::iter::from_fn(|| generator.next()).collect();
        assert!(read.iter().all(|unit| unit.direction == Direction::Read));
        assert_eq!(read.iter().map(|unit| unit.offset).collect::<Vec<_>>(), written, "in the order of the writes");
        assert!(!generator.begin_verification());
        // fio 3.33 printed wwwrrrwwwrrr for 3 blocks, and wwwwrrwwrr for 4 and 2.
        for (backlog, batch, expected) in [(3, 0, "wwwrrrwwwrrr"), (4, 2, "wwwwrrwwrrwwrr")] {
            let job = with(job.clone(), |job| {
                job.verification.verify_backlog = backlog;
                job.verification.verify_backlog_batch = batch;
                job.requests.rw = Rw::Write;
            });
            let seen: String = units(&job, 1 << 20)
                .iter()
                .take(expected.len())
                .map(|unit| if unit.direction == Direction::Read { 'r' } else { 'w' })
                .collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn requests_get_the_priority_of_their_share_and_size() {
        let mut job = of(Rw::Randread);
        job.priority.cmdprio.read.percent = 20;
        let high = units(&job, 1 << 20).iter().filter(|unit| unit.priority == Some((1, 0))).count();
        assert!((30..75).contains(&high), "{high} of 256");
        let entries = [(4096, 50), (8192, 50)].map(|(bytes, percent)| SplitEntry { bytes, percent });
        job.blocks.bs.read = BlockSize::Split(entries.to_vec());
        let of = |percent, priority| hoistway_fio::SizePriority { bytes: 4096, percent, priority };
        job.priority.cmdprio.read = hoistway_fio::CommandPriority {
            by_size: vec![of(25, Some((1, 1))), of(75, Some((3, 2)))],
            ..Default::default()
        };
        for unit in units(&job, 1 << 20) {
            assert_eq!(unit.priority.is_some(), unit.bytes == 4096, "{unit:?}");
        }
    }

    #[test]
    fn sizes_may_be_any_number_of_bytes_or_go_by_the_kind_of_offset() {
        let mut job = with(Job::default(), |job| job.blocks.bs_unaligned = true);
        job.blocks.bs.read = BlockSize::Range { min: 1024, max: 4096 };
        let seen = units(&job, 1 << 20);
        assert!(
            seen.windows(2)
                .all(|pair| pair[1].offset == pair[0].offset + pair[0].bytes || pair[1].offset == REGION.start)
        );
        assert!(seen.iter().any(|unit| unit.bytes % 2 == 1));
        let mut job = with(of(Rw::Randread), |job| job.blocks.bs_is_seq_rand = true);
        job.requests.percentage_random = Directions::both(50);
        job.blocks.bs.write = BlockSize::Fixed(8192);
        let large = units(&job, 1 << 20).iter().filter(|unit| unit.bytes == 8192).count();
        assert!(large > 30, "{large}");
    }

    #[test]
    fn a_file_is_finished_before_the_next_if_the_job_says_so() {
        let job = with(Job::default(), |job| job.files.file_service = FileService::Sequential);
        let mut generator = Generator::new(Arc::new(job), &[REGION, REGION], 2 << 20, 42, 0);
        let files: Vec<usize> = std::iter::from_fn(|| generator.next()).map(|unit| unit.file).collect();
        assert!(files.is_sorted() && files.len() == 512);
    }
}
