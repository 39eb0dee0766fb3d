//! The parameters of a flash model, and the sizes that its checks and its model share.

use serde::Deserialize;

/// Sectors of a mapping unit: 4 KiB.
pub(crate) const UNIT_SECTORS: u64 = 8;
/// Bytes of a mapping unit.
pub(crate) const UNIT_BYTES: u32 = 4096;

/// The parameters of a flash drive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlashProfile {
    /// The number of submission queues, of which each processor uses one.
    pub(crate) queues: u32,
    /// The depth of a queue.
    pub(crate) depth: u32,
    pub(crate) capacity_sectors: u64,
    /// Processing time of the controller for a command. It processes one command at a time.
    pub(crate) command_ns: u64,
    /// Additional latency of every command. It overlaps with that of other commands.
    pub(crate) interface_ns: u64,
    pub(crate) link: Rate,
    /// Time on the link that each unit of a command except one costs besides its transfer.
    pub(crate) further_unit_ns: u64,
    /// Time of a write on its way to the buffer besides the transfer. One write passes at a time.
    pub(crate) write_ns: u64,
    /// Additional latency of a write. It overlaps with that of other writes.
    pub(crate) write_latency_ns: u64,
    /// True if the link transfers data in both directions at the same time.
    pub(crate) link_full_duplex: bool,
    pub(crate) channels: u32,
    pub(crate) channel: Rate,
    /// The number of dies on all channels.
    pub(crate) dies: u32,
    pub(crate) planes: u32,
    pub(crate) blocks_per_plane: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) page_bytes: u32,
    /// Consecutive units on one die in the state at time 0; `None` for as many as a die programs
    /// together.
    pub(crate) stripe_units: Option<u32>,
    /// Page read times, one for each kind of page. The pages of a block have the kinds in turn.
    pub(crate) page_read_ns: Vec<u64>,
    /// Pages of a plane that are programmed together.
    pub(crate) wordline_pages: u32,
    pub(crate) program_ns: u64,
    pub(crate) erase_ns: u64,
    /// Time to suspend a program or an erase for reads; `None` if reads wait for its end.
    pub(crate) suspend_ns: Option<u64>,
    /// The largest number of reads that overtake other work of a die, or for which it is suspended.
    pub(crate) overtakes_max: u32,
    /// The share of the blocks with data that has no address.
    pub(crate) spare_factor: f64,
    /// Programs of the host on each die for which garbage collection makes room in one turn of all
    /// dies; `None` if each die collects on its own, a step for each program of the host.
    pub(crate) gc_turn_programs: Option<u32>,
    /// Time to suspend garbage collection outside turns for reads; `None` if there is none.
    pub(crate) background_suspend_ns: Option<u64>,
    /// Free blocks of a die at which garbage collection starts, and at which host writes wait.
    pub(crate) gc_start_blocks: u32,
    pub(crate) gc_hard_blocks: u32,
    /// Simulated blocks of a plane without the reserve; `None` for all blocks.
    pub(crate) slice_blocks: Option<u32>,
    pub(crate) precondition: Precondition,
    /// Capacity of the write buffer in units. With 0 a write completes when its pages are
    /// programmed.
    pub(crate) buffer_units: u32,
    pub(crate) flush: FlushProfile,
}

/// The cost of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushProfile {
    pub(crate) flush_ns: u64,
    /// True if the buffer survives a power loss. A flush then does not empty it.
    pub(crate) power_loss_protection: bool,
    /// True if commands that arrive during a flush wait for its end.
    pub(crate) blocks_commands: bool,
}

/// The state of the drive at time 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Precondition {
    /// All blocks are erased.
    Fresh,
    /// Every sector has been written once in sequential order.
    Sequential,
    /// After a sequential fill, random units have been written until the write amplification is
    /// constant.
    Steady,
}

/// A transfer rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(super) sector_ps: u64,
}

impl Rate {
    /// Converts from MB/s (10^6 bytes a second); `mb_s` is above 0.
    pub(crate) fn from_mb_s(mb_s: f64) -> Rate {
        Rate { sector_ps: (512e6 / mb_s).round() as u64 }
    }

    pub(crate) fn ns(self, sectors: u64) -> u64 {
        sectors.saturating_mul(self.sector_ps) / 1000
    }

    pub(crate) fn mb_s(self) -> f64 {
        512e6 / self.sector_ps as f64
    }
}

impl FlashProfile {
    /// Units of the pages with the same number on all planes of a die, which are read together.
    pub(crate) fn row_units(&self) -> u32 {
        self.planes * (self.page_bytes / UNIT_BYTES)
    }

    /// Units that a die programs together.
    pub(crate) fn program_units(&self) -> u32 {
        self.row_units() * self.wordline_pages
    }

    /// Consecutive units on one die in the state at time 0.
    pub(crate) fn stripe_units(&self) -> u32 {
        self.stripe_units.unwrap_or_else(|| self.program_units())
    }

    /// Units of a block on every plane of a die, which are erased together.
    pub(crate) fn block_units(&self) -> u32 {
        self.pages_per_block * self.row_units()
    }

    /// Units with an address.
    pub(crate) fn capacity_units(&self) -> u64 {
        self.capacity_sectors.div_ceil(UNIT_SECTORS)
    }

    /// Simulated units with an address: a whole number of programs on every die.
    pub(crate) fn live_units(&self) -> u64 {
        let stripe = u64::from(self.dies) * u64::from(self.program_units());
        match self.slice_blocks {
            Some(blocks) => {
                let units = u64::from(blocks) * u64::from(self.block_units());
                let live = (units as f64 * (1.0 - self.spare_factor)) as u64 / u64::from(self.program_units());
                live.max(1) * stripe
            }
            None => self.capacity_units().div_ceil(stripe) * stripe,
        }
    }

    /// Simulated blocks of a die that hold data when the drive is full: addressable and spare
    /// units.
    pub(crate) fn data_blocks(&self) -> u64 {
        let die_units = self.live_units() as f64 / f64::from(self.dies);
        let blocks = die_units / (1.0 - self.spare_factor) / f64::from(self.block_units());
        self.slice_blocks.map_or(blocks.ceil() as u64, u64::from)
    }

    /// Simulated blocks of a die: those with data, the free blocks for garbage collection, and the
    /// open block.
    ///
    /// The spare factor counts the blocks with data alone, as the closed forms of write
    /// amplification do.
    pub(crate) fn die_blocks(&self) -> u64 {
        self.data_blocks() + u64::from(self.gc_start_blocks) + 1
    }

    /// Mean page read time in ns.
    pub(crate) fn page_read_mean_ns(&self) -> f64 {
        self.page_read_ns.iter().sum::<u64>() as f64 / self.page_read_ns.len() as f64
    }
}
