//! A flash drive, checked, and the sums that its checks and its model share.

use serde::Deserialize;

/// Sectors in a unit of the map: 4 KiB.
pub(crate) const UNIT_SECTORS: u64 = 8;
/// Bytes in a unit of the map.
pub(crate) const UNIT_BYTES: u32 = 4096;

/// A flash drive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlashProfile {
    pub(crate) depth: u32,
    pub(crate) capacity_sectors: u64,
    /// The controller's time for a command; it does one at a time.
    pub(crate) command_ns: u64,
    /// What every command takes beside that, side by side with others.
    pub(crate) interface_ns: u64,
    pub(crate) link: Rate,
    /// Whether data cross the link both ways at once.
    pub(crate) link_full_duplex: bool,
    pub(crate) channels: u32,
    pub(crate) channel: Rate,
    /// Dies on all channels together.
    pub(crate) dies: u32,
    pub(crate) planes: u32,
    pub(crate) blocks_per_plane: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) page_bytes: u32,
    /// By kind of page: the pages of a block take the kinds in turn.
    pub(crate) page_read_ns: Vec<u64>,
    /// Pages of a plane that are programmed at once.
    pub(crate) wordline_pages: u32,
    pub(crate) program_ns: u64,
    pub(crate) erase_ns: u64,
    /// What it takes to suspend a program or an erase for reads; `None`: reads wait for its end.
    pub(crate) suspend_ns: Option<u64>,
    /// How many reads at most go before what else a die has to do, or is suspended for them.
    pub(crate) overtakes_max: u32,
    /// The part of the flash that holds blocks with data and has no address.
    pub(crate) spare_factor: f64,
    /// Free blocks of a die that garbage collection keeps, and at which the host's data wait.
    pub(crate) gc_start_blocks: u32,
    pub(crate) gc_hard_blocks: u32,
    /// Blocks of a plane that are simulated, without the reserve; `None`: all.
    pub(crate) slice_blocks: Option<u32>,
    pub(crate) precondition: Precondition,
    /// Units that the write buffer holds; 0: a write is over when its pages are programmed.
    pub(crate) buffer_units: u32,
    pub(crate) flush: FlushProfile,
}

/// What a flush costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushProfile {
    pub(crate) flush_ns: u64,
    /// The buffer survives a loss of power, so that a flush need not empty it.
    pub(crate) power_loss_protection: bool,
    /// Commands that come during a flush wait for its end.
    pub(crate) blocks_commands: bool,
}

/// What was done to the drive before the time begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Precondition {
    /// Nothing: all blocks are erased.
    Fresh,
    /// Every sector was written once, in order.
    Sequential,
    /// Then random units were written until the write amplification no longer changed.
    Steady,
}

/// How fast sectors cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    sector_ps: u64,
}

impl Rate {
    /// From 10^6 bytes a second, more than 0.
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
    /// Units in the pages of one number on all planes of a die: what is read at once.
    pub(crate) fn row_units(&self) -> u32 {
        self.planes * (self.page_bytes / UNIT_BYTES)
    }

    /// Units that a die programs at once.
    pub(crate) fn program_units(&self) -> u32 {
        self.row_units() * self.wordline_pages
    }

    /// Units in a block of every plane of a die: what is erased at once.
    pub(crate) fn block_units(&self) -> u32 {
        self.pages_per_block * self.row_units()
    }

    /// Units that the host can address.
    pub(crate) fn capacity_units(&self) -> u64 {
        self.capacity_sectors.div_ceil(UNIT_SECTORS)
    }

    /// Units with an address that are simulated, a whole number of programs on every die.
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

    /// Simulated blocks of a die that hold data when all is written: live units and spare ones.
    pub(crate) fn data_blocks(&self) -> u64 {
        let die_units = self.live_units() as f64 / f64::from(self.dies);
        let blocks = die_units / (1.0 - self.spare_factor) / f64::from(self.block_units());
        self.slice_blocks.map_or(blocks.ceil() as u64, u64::from)
    }

    /// Simulated blocks of a die. The free blocks that garbage collection wants, and what is open, come on top of the spare
    /// factor: it counts the blocks with data alone, as the closed forms of write amplification do.
    pub(crate) fn die_blocks(&self) -> u64 {
        self.data_blocks() + u64::from(self.gc_start_blocks) + 1
    }

    /// The mean time of reading a page, in ns.
    pub(crate) fn page_read_mean_ns(&self) -> f64 {
        self.page_read_ns.iter().sum::<u64>() as f64 / self.page_read_ns.len() as f64
    }
}
