//! The table `[flash]` before its checks.

use toml::Spanned;

use super::table::table;
use crate::profile::flash::Precondition;

table! {
    /// A flash drive.
    RawFlash, "flash" {
        /// Submission queues; each processor of a host uses one of them.
        queues: Option<Spanned<u32>> = "1 to 1024", "1";
        /// The largest number of commands in flight in each queue.
        depth: Spanned<u32> = "1 to 65536", "required";
        /// Sectors with an address.
        capacity_sectors: Spanned<u64> = "1 to 36028797018963968", "required";
        /// The processing time of the controller for a command, one at a time.
        command_us: Spanned<f64> = "0 to 1000000", "required";
        /// Additional latency of every command, which overlaps with that of others.
        interface_us: Option<Spanned<f64>> = "0 to 1000000", "0";
        /// The rate of the link to the host.
        link_mb_s: Spanned<f64> = "0.1 to 1000000", "required";
        /// The link transfers in both directions at the same time.
        #[serde(default)]
        link_full_duplex: bool = "`true`, `false`", "`false`";
        /// The time on the link of each 4 KiB of a command but one, besides the transfer.
        further_unit_us: Option<Spanned<f64>> = "0 to 1000000", "0";
        /// The time of a write on its way to the buffer, besides the transfer; one write at a time.
        write_us: Option<Spanned<f64>> = "0 to 1000000", "0";
        /// Additional latency of a write, which overlaps with that of others.
        write_latency_us: Option<Spanned<f64>> = "0 to 1000000", "0";
        /// Channels between controller and dies.
        channels: Spanned<u32> = "1 to 1024", "required";
        /// The rate of a channel.
        channel_mb_s: Spanned<f64> = "0.1 to 1000000", "required";
        /// The number of dies on all channels: a multiple of `channels`.
        dies: Spanned<u32> = "1 to 4096", "required";
        /// Planes of a die, which read, program and erase together.
        planes: Option<Spanned<u32>> = "1 to 16", "1";
        /// Blocks of a plane, including spare ones.
        blocks_per_plane: Spanned<u32> = "1 to 16777216", "required";
        /// Pages of a block: a multiple of `wordline_pages`.
        pages_per_block: Spanned<u32> = "1 to 65536", "required";
        /// The bytes of a page.
        page_bytes: Spanned<u32> = "a power of two, 4096 to 1048576", "required";
        /// Consecutive data on one die in the state at time 0: a multiple of 4 that divides what a
        /// die programs together.
        stripe_kib: Option<Spanned<u32>> = "4 to 1048576", "what a die programs together";
        /// The read time, one for each kind of page: `[75.0]`, `[25.0, 51.0, 103.0]`.
        page_read_us: Spanned<Vec<Spanned<f64>>> = "1 to 64 times", "required";
        /// Pages of a plane that are programmed together.
        wordline_pages: Option<Spanned<u32>> = "1 to 64", "1";
        /// The program time.
        program_us: Spanned<f64> = "0 to 1000000", "required";
        /// The time to erase a block.
        erase_us: Spanned<f64> = "0 to 1000000", "required";
        /// The time to suspend a program or an erase for reads.
        suspend_us: Option<Spanned<f64>> = "0 to 1000000", "never";
        /// The largest number of reads that overtake other work of a die.
        overtakes_max: Option<Spanned<u32>> = "1 to 1000000", "64";
        /// The share of the blocks with data that has no address.
        spare_factor: Spanned<f64> = "more than 0 and at most 0.9", "required";
        /// Free blocks of a die at which garbage collection starts: more than `gc_hard_blocks`.
        gc_start_blocks: Option<Spanned<u32>> = "1 to 4096", "`gc_hard_blocks` + 2";
        /// Free blocks of a die below which host writes wait.
        gc_hard_blocks: Option<Spanned<u32>> = "1 to 1024", "1";
        /// All dies collect garbage in turns, during which host writes wait and reads do not
        /// interrupt; a turn makes room for this many programs of the host on each die. Without it
        /// each die collects a step for each program of the host.
        gc_turn_programs: Option<Spanned<u32>> = "1 to 65536", "none";
        /// With turns: idle dies collect before a turn has to, and reads suspend them in this time.
        background_suspend_us: Option<Spanned<f64>> = "0 to 1000000", "never";
        /// Simulated blocks of a plane; addresses are folded into them.
        slice_blocks: Option<Spanned<u32>> = "1 to 16777216", "all";
        /// The state at time 0: never written, written once in order, or written at random for a
        /// long time.
        precondition: Precondition = "`\"fresh\"`, `\"sequential\"`, `\"steady\"`", "required";
        /// The capacity of the write buffer; with 0 a write completes when it is programmed.
        buffer_kib: Spanned<u32> = "0 to 4194304", "required";
        /// The time of a flush in addition to emptying the buffer.
        flush_us: Option<Spanned<f64>> = "0 to 1000000", "0";
        /// The buffer survives a power loss, so a flush does not empty it.
        #[serde(default)]
        power_loss_protection: bool = "`true`, `false`", "`false`";
        /// Commands that arrive during a flush wait for its end.
        #[serde(default)]
        flush_blocks_commands: bool = "`true`, `false`", "`false`";
    }
}
