//! The next request of a process: direction, file, offset and size.

use std::sync::Arc;

use hoistway_fio::{BlockSize, Direction, Directions, Job, Sequencer};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::distribution::Draw;
use super::permutation::Permutation;
use super::{mix, stream};

/// A request of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IoUnit {
    pub direction: Direction,
    /// Index of the file among the process's files.
    pub file: usize,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// The part of a file that a process works on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub start: u64,
    pub len: u64,
}

/// Generates the requests of one process.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    job: Arc<Job>,
    seed: u64,
    process: u64,
    /// One random stream per purpose, so that an option does not change the draws of another.
    mix_rng: Pcg64,
    offset_rng: Pcg64,
    size_rng: Pcg64,
    targets: Vec<Target>,
    turn: usize,
    /// Bytes and requests generated in this pass (of `loops`).
    made_bytes: u64,
    made_ios: u64,
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
    /// Requests still to generate at or after the last random offset.
    repeats: u64,
    last: u64,
}

/// The order of random blocks.
#[derive(Clone, Debug)]
enum Order {
    /// Each block once, then all again in another order.
    Map { permutation: Permutation, index: u64, round: u64 },
    /// Independent draws.
    Drawn(Draw),
}

impl Generator {
    /// Creates a generator that moves `io_bytes` bytes in one pass; without an end if the job is
    /// `time_based`.
    pub fn new(job: Arc<Job>, regions: &[Region], io_bytes: u64, seed: u64, process: u64) -> Generator {
        let mut generator = Generator {
            job,
            seed,
            process,
            mix_rng: stream(seed, process, 1),
            offset_rng: stream(seed, process, 2),
            size_rng: stream(seed, process, 3),
            targets: Vec::new(),
            turn: 0,
            made_bytes: 0,
            made_ios: 0,
            pass_bytes: io_bytes,
            pass: 0,
        };
        generator.targets = (0u64..).zip(regions).map(|(file, region)| generator.target(file, *region)).collect();
        generator
    }

    /// The next request; `None` after the last byte of the pass.
    pub fn next(&mut self) -> Option<IoUnit> {
        if self.job.number_ios.is_some_and(|most| self.made_ios >= most) {
            return None;
        }
        let direction = self.direction();
        let file = self.choose_file()?;
        let left = self.pass_bytes.saturating_sub(self.made_bytes);
        let unit = match self.job.rw.is_random() && self.rolls_random(direction) {
            true => self.random(file, direction, left),
            false => self.sequential(file, direction, left),
        }?;
        self.made_bytes = self.made_bytes.saturating_add(unit.bytes);
        self.made_ios += 1;
        self.targets[file].made = self.targets[file].made.saturating_add(unit.bytes);
        Some(unit)
    }

    /// Starts the next pass of the job (`loops`, `time_based`); `None` after the last pass.
    pub fn next_pass(&mut self) -> Option<u32> {
        self.pass += 1;
        let worthwhile = self.made_bytes > 0 && self.job.number_ios.is_none_or(|most| self.made_ios < most);
        if !worthwhile || (self.pass >= self.job.loops && !self.job.time_based) {
            return None;
        }
        self.made_bytes = 0;
        for target in &mut self.targets {
            target.made = 0;
            target.next = Directions::default();
            target.repeats = 0;
        }
        Some(self.pass)
    }

    fn target(&self, file: u64, region: Region) -> Target {
        let grain = self.grain();
        let blocks = (region.len / grain).max(1);
        let key = mix(self.seed ^ mix(self.process << 20 | file));
        let even = matches!(self.job.random_distribution, hoistway_fio::Distribution::Random);
        let order = match even && !self.job.norandommap {
            true => Order::Map { permutation: Permutation::new(blocks, key), index: 0, round: key },
            false => Order::Drawn(Draw::new(&self.job.random_distribution, blocks, key)),
        };
        Target { region, made: 0, next: Directions::default(), order, repeats: 0, last: 0 }
    }

    /// Random offsets are multiples of the smallest block that the job uses.
    fn grain(&self) -> u64 {
        let (read, write) = (self.job.bs.read.min().max(1), self.job.bs.write.min().max(1));
        match (self.job.rw.reads(), self.job.rw.writes()) {
            (true, true) => read.min(write),
            (false, _) => write,
            _ => read,
        }
    }

    fn direction(&mut self) -> Direction {
        match (self.job.rw.reads(), self.job.rw.writes()) {
            (true, true) if self.mix_rng.random_range(0..100u8) < self.job.rwmixread => Direction::Read,
            (true, false) => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// Files take turns. A file whose region is done is skipped, unless the pass moves more bytes
    /// than all regions hold.
    fn choose_file(&mut self) -> Option<usize> {
        if self.made_bytes >= self.pass_bytes {
            return None;
        }
        let total: u64 = self.targets.iter().map(|target| target.region.len).sum();
        let again = self.pass_bytes > total;
        for _ in 0..self.targets.len() {
            let file = self.turn;
            self.turn = (self.turn + 1) % self.targets.len();
            let target = &self.targets[file];
            let fits = target.region.len >= self.grain();
            if fits && (again || target.region.len - target.made.min(target.region.len) >= self.grain()) {
                return Some(file);
            }
        }
        None
    }

    fn rolls_random(&mut self, direction: Direction) -> bool {
        let percent = *self.job.percentage_random.get(direction);
        percent >= 100 || self.mix_rng.random_range(0..100u8) < percent
    }

    fn size(&mut self, direction: Direction) -> u64 {
        let rng = &mut self.size_rng;
        match self.job.bs.get(direction) {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { min, max } => {
                let min = (*min).max(1);
                rng.random_range(1..=(*max / min).max(1)) * min
            }
            BlockSize::Split(entries) => {
                let mut ticket = rng.random_range(0..100u8);
                for entry in entries {
                    if ticket < entry.percent {
                        return entry.bytes;
                    }
                    ticket -= entry.percent;
                }
                entries.last().map_or(4096, |entry| entry.bytes)
            }
        }
    }

    fn sequential(&mut self, file: usize, direction: Direction, left: u64) -> Option<IoUnit> {
        let size = self.size(direction);
        let step = if self.job.rw.is_random() { 0 } else { self.job.rw_modifier.unwrap_or(0) };
        let smallest = self.job.min_bs(direction).max(1);
        let target = &mut self.targets[file];
        let Region { start, len } = target.region;
        let next = match direction {
            Direction::Read => &mut target.next.read,
            Direction::Write => &mut target.next.write,
        };
        if *next >= len || len - *next < smallest {
            *next = 0;
        }
        let bytes = whole_blocks(size.min(len - *next).min(left.max(smallest)), smallest)?;
        let offset = start + *next;
        // A hole may have a negative length: before the region's start, the offset continues from
        // the end.
        *next = match next.saturating_add(bytes).checked_add_signed(step) {
            Some(position) => position,
            None => (len - smallest) / smallest * smallest,
        };
        Some(IoUnit { direction, file, offset, bytes })
    }

    fn random(&mut self, file: usize, direction: Direction, left: u64) -> Option<IoUnit> {
        let size = self.size(direction);
        let grain = self.grain();
        let smallest = self.job.min_bs(direction).max(1);
        let run = self.job.rw_modifier.and_then(|count| u64::try_from(count).ok()).unwrap_or(1).max(1);
        let target = &mut self.targets[file];
        let Region { start, len } = target.region;
        let position = if target.repeats > 0 && len.saturating_sub(target.last) >= smallest {
            target.repeats -= 1;
            target.last
        } else {
            target.repeats = run - 1;
            target.order.choose(&mut self.offset_rng) * grain
        };
        let position = if len - position < smallest { 0 } else { position };
        let bytes = whole_blocks(size.min(len - position).min(left.max(smallest)), smallest)?;
        let identical = self.job.rw_sequencer == Sequencer::Identical;
        target.last = if identical { position } else { position + bytes };
        match direction {
            Direction::Read => target.next.read = position + bytes,
            Direction::Write => target.next.write = position + bytes,
        }
        Some(IoUnit { direction, file, offset: start + position, bytes })
    }
}

impl Order {
    fn choose(&mut self, rng: &mut Pcg64) -> u64 {
        match self {
            Order::Map { permutation, index, round } => {
                if *index >= permutation.len() {
                    *round = mix(*round);
                    *permutation = Permutation::new(permutation.len(), *round);
                    *index = 0;
                }
                *index += 1;
                permutation.get(*index - 1)
            }
            Order::Drawn(draw) => draw.draw(rng),
        }
    }
}

/// Rounds a size down to a multiple of the smallest block; `None` if nothing is left.
fn whole_blocks(bytes: u64, smallest: u64) -> Option<u64> {
    let whole = bytes / smallest * smallest;
    (whole > 0).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_fio::{Distribution, Rw, SplitEntry};

    const REGION: Region = Region { start: 1 << 20, len: 1 << 20 };

    fn units(job: &Job, io_bytes: u64) -> Vec<IoUnit> {
        let mut generator = Generator::new(Arc::new(job.clone()), &[REGION], io_bytes, 42, 0);
        std::iter::from_fn(|| generator.next()).take(100_000).collect()
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
        let job = Job { rw: Rw::Randread, ..Job::default() };
        let mut once = offsets(&job);
        assert!(!once.is_sorted());
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), 256);
        let mut drawn = offsets(&Job { norandommap: true, ..job.clone() });
        drawn.sort_unstable();
        drawn.dedup();
        // Of 256 draws among 256 blocks about 1 - 1/e, 162, are different.
        assert!((140..185).contains(&drawn.len()), "{}", drawn.len());
        let zipf = Job { random_distribution: Distribution::Zipf(1.5), ..job };
        let mut popular = offsets(&zipf);
        popular.sort_unstable();
        popular.dedup();
        assert!(popular.len() < 100, "{}", popular.len());
    }

    #[test]
    fn the_modifier_makes_holes_or_runs() {
        let holes = Job { rw_modifier: Some(4096), ..Job::default() };
        assert_eq!(offsets(&holes)[..3], [0, 8192, 16384]);
        let runs = Job { rw: Rw::Randread, rw_modifier: Some(4), ..Job::default() };
        let seen = offsets(&runs);
        let follows = seen.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
        // Three of four requests follow the previous one; a run that reaches the region's end
        // starts again.
        assert!((180..=195).contains(&follows), "{follows} of 255");
        let same = Job { rw_sequencer: Sequencer::Identical, ..runs };
        assert!(offsets(&same).chunks(4).all(|run| run.iter().all(|offset| *offset == run[0])));
    }

    #[test]
    fn rwmixread_is_the_share_of_reads() {
        let job = Job { rw: Rw::Randrw, rwmixread: 80, norandommap: true, ..Job::default() };
        let reads = units(&job, 40 << 20).iter().filter(|unit| unit.direction == Direction::Read).count();
        assert!((8000..8400).contains(&reads), "{reads} of 10240");
    }

    #[test]
    fn percentage_random_leaves_the_rest_sequential() {
        let job =
            Job { rw: Rw::Randread, percentage_random: Directions::both(25), norandommap: true, ..Job::default() };
        let seen = offsets(&job);
        let follows = seen.windows(2).filter(|pair| pair[1] == (pair[0] + 4096) % REGION.len).count();
        assert!((170..215).contains(&follows), "{follows} of 255");
    }

    #[test]
    fn sizes_come_from_the_range_or_the_split() {
        let mut job = Job { rw: Rw::Randread, norandommap: true, ..Job::default() };
        job.bs.read = BlockSize::Range { min: 4096, max: 16384 };
        let ranged = units(&job, 40 << 20);
        for bytes in [4096, 8192, 12288, 16384] {
            let share = ranged.iter().filter(|unit| unit.bytes == bytes).count() as f64 / ranged.len() as f64;
            assert!((share - 0.25).abs() < 0.03, "{bytes}: {share}");
        }
        let entries = [(4096, 90), (65536, 10)].map(|(bytes, percent)| SplitEntry { bytes, percent });
        job.bs.read = BlockSize::Split(entries.to_vec());
        let split = units(&job, 40 << 20);
        let large = split.iter().filter(|unit| unit.bytes > 4096).count() as f64 / split.len() as f64;
        assert!((large - 0.1).abs() < 0.03, "{large}");
    }

    #[test]
    fn number_ios_and_io_size_end_the_job_and_a_larger_io_size_wraps() {
        let job = Job { number_ios: Some(10), ..Job::default() };
        assert_eq!(units(&job, 1 << 20).len(), 10);
        assert_eq!(units(&Job::default(), 40960).len(), 10);
        let twice = units(&Job::default(), 2 << 20);
        assert_eq!((twice.len(), twice[256].offset), (512, REGION.start));
    }

    #[test]
    fn loops_repeat_the_pass() {
        let job = Job { loops: 3, ..Job::default() };
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

    #[test]
    fn files_take_turns_and_each_is_read_to_its_end() {
        let regions = [Region { start: 0, len: 8192 }, Region { start: 0, len: 16384 }];
        let mut generator = Generator::new(Arc::default(), &regions, 24576, 42, 0);
        let seen: Vec<_> = std::iter::from_fn(|| generator.next()).map(|unit| (unit.file, unit.offset)).collect();
        assert_eq!(seen, [(0, 0), (1, 0), (0, 4096), (1, 4096), (1, 8192), (1, 12288)]);
    }
}
