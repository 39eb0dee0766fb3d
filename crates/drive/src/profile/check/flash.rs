//! Checks of the table `[flash]`.

use toml::Spanned;

use super::super::flash::{FlashProfile, FlushProfile, Rate, UNIT_BYTES, UNIT_SECTORS};
use super::super::raw::RawFlash;
use super::{Check, Checked, MAX_CAPACITY_SECTORS, MAX_US};

/// The largest number of simulated units: the map needs 8 bytes for each.
const MAX_UNITS: u64 = 1 << 27;
/// The largest write buffer in KiB: 4 GiB.
const MAX_BUFFER_KIB: u32 = 1 << 22;
/// The lowest and the highest rate of a link or a channel, in MB/s.
const MB_S: (f64, f64) = (0.1, 1e6);

impl Check<'_> {
    pub(super) fn flash(&self, raw: &RawFlash) -> Checked<FlashProfile> {
        let optional = |value: &Option<Spanned<u32>>, key: &str, default: u32, low: u32, high: u32| match value {
            Some(value) => self.within(value, key, low, high),
            None => Ok(default),
        };
        let us = |value: &Spanned<f64>, key: &str| {
            self.within(value, key, 0.0, MAX_US).map(|us| (us * 1000.0).round() as u64)
        };
        let optional_us =
            |value: &Option<Spanned<f64>>, key: &str| value.as_ref().map(|value| us(value, key)).transpose();
        let rate = |value: &Spanned<f64>, key: &str| self.within(value, key, MB_S.0, MB_S.1).map(Rate::from_mb_s);
        let gc_hard_blocks = optional(&raw.gc_hard_blocks, "flash.gc_hard_blocks", 1, 1, 1024)?;
        let profile = FlashProfile {
            queues: optional(&raw.queues, "flash.queues", 1, 1, 1024)?,
            depth: self.within(&raw.depth, "flash.depth", 1, 65_536)?,
            capacity_sectors: self.within(&raw.capacity_sectors, "flash.capacity_sectors", 1, MAX_CAPACITY_SECTORS)?,
            command_ns: us(&raw.command_us, "flash.command_us")?,
            interface_ns: optional_us(&raw.interface_us, "flash.interface_us")?.unwrap_or(0),
            link: rate(&raw.link_mb_s, "flash.link_mb_s")?,
            write_ns: optional_us(&raw.write_us, "flash.write_us")?.unwrap_or(0),
            write_latency_ns: optional_us(&raw.write_latency_us, "flash.write_latency_us")?.unwrap_or(0),
            further_unit_ns: optional_us(&raw.further_unit_us, "flash.further_unit_us")?.unwrap_or(0),
            link_full_duplex: raw.link_full_duplex,
            channels: self.within(&raw.channels, "flash.channels", 1, 1024)?,
            channel: rate(&raw.channel_mb_s, "flash.channel_mb_s")?,
            dies: self.within(&raw.dies, "flash.dies", 1, 4096)?,
            planes: optional(&raw.planes, "flash.planes", 1, 1, 16)?,
            blocks_per_plane: self.within(&raw.blocks_per_plane, "flash.blocks_per_plane", 1, 1 << 24)?,
            pages_per_block: self.within(&raw.pages_per_block, "flash.pages_per_block", 1, 65_536)?,
            page_bytes: self.page_bytes(&raw.page_bytes)?,
            stripe_units: match &raw.stripe_kib {
                Some(kib) => Some(self.within(kib, "flash.stripe_kib", 4, 1 << 20)? / (UNIT_BYTES / 1024)),
                None => None,
            },
            page_read_ns: self.page_reads(&raw.page_read_us)?,
            wordline_pages: optional(&raw.wordline_pages, "flash.wordline_pages", 1, 1, 64)?,
            program_ns: us(&raw.program_us, "flash.program_us")?,
            erase_ns: us(&raw.erase_us, "flash.erase_us")?,
            suspend_ns: optional_us(&raw.suspend_us, "flash.suspend_us")?,
            overtakes_max: optional(&raw.overtakes_max, "flash.overtakes_max", 64, 1, 1_000_000)?,
            spare_factor: self.spare_factor(&raw.spare_factor)?,
            gc_start_blocks: optional(&raw.gc_start_blocks, "flash.gc_start_blocks", gc_hard_blocks + 2, 1, 4096)?,
            gc_hard_blocks,
            gc_turn_programs: match &raw.gc_turn_programs {
                Some(programs) => Some(self.within(programs, "flash.gc_turn_programs", 1, 1 << 16)?),
                None => None,
            },
            background_suspend_ns: optional_us(&raw.background_suspend_us, "flash.background_suspend_us")?,
            slice_blocks: match &raw.slice_blocks {
                Some(blocks) => Some(self.within(blocks, "flash.slice_blocks", 1, 1 << 24)?),
                None => None,
            },
            precondition: raw.precondition,
            buffer_units: self.within(&raw.buffer_kib, "flash.buffer_kib", 0, MAX_BUFFER_KIB)? / (UNIT_BYTES / 1024),
            flush: FlushProfile {
                flush_ns: optional_us(&raw.flush_us, "flash.flush_us")?.unwrap_or(0),
                power_loss_protection: raw.power_loss_protection,
                blocks_commands: raw.flush_blocks_commands,
            },
        };
        self.flash_parts(raw, &profile)?;
        self.flash_space(raw, &profile)?;
        Ok(profile)
    }

    fn page_bytes(&self, raw: &Spanned<u32>) -> Checked<u32> {
        let bytes = *raw.as_ref();
        if bytes.is_power_of_two() && (UNIT_BYTES..=1 << 20).contains(&bytes) {
            return Ok(bytes);
        }
        Err(self.value(raw.span(), "flash.page_bytes", bytes, "a power of two, 4096 to 1048576"))
    }

    fn page_reads(&self, raw: &Spanned<Vec<Spanned<f64>>>) -> Checked<Vec<u64>> {
        if raw.as_ref().is_empty() || raw.as_ref().len() > 64 {
            let expected = "1 to 64 times, one for each kind of page, such as [75.0]";
            return Err(self.value(
                raw.span(),
                "flash.page_read_us",
                format!("{} times", raw.as_ref().len()),
                expected,
            ));
        }
        let ns = |us: &Spanned<f64>| {
            self.within(us, "flash.page_read_us", 0.0, MAX_US).map(|us| (us * 1000.0).round() as u64)
        };
        raw.as_ref().iter().map(ns).collect()
    }

    fn spare_factor(&self, raw: &Spanned<f64>) -> Checked<f64> {
        let factor = *raw.as_ref();
        if factor > 0.0 && factor <= 0.9 {
            return Ok(factor);
        }
        let expected = "more than 0 and at most 0.9: the part of the flash beyond the capacity";
        Err(self.value(raw.span(), "flash.spare_factor", factor, expected))
    }

    /// Whether the numbers of parts go into each other.
    fn flash_parts(&self, raw: &RawFlash, profile: &FlashProfile) -> Checked<()> {
        if !profile.dies.is_multiple_of(profile.channels) {
            let expected = format!("a multiple of the {} channels", profile.channels);
            return Err(self.value(raw.dies.span(), "flash.dies", profile.dies, &expected));
        }
        if !profile.pages_per_block.is_multiple_of(profile.wordline_pages) {
            let expected = format!("a multiple of the {} pages programmed together", profile.wordline_pages);
            let found = profile.pages_per_block;
            return Err(self.value(raw.pages_per_block.span(), "flash.pages_per_block", found, &expected));
        }
        if let Some(kib) = raw.stripe_kib.as_ref()
            && (!kib.as_ref().is_multiple_of(UNIT_BYTES / 1024)
                || !profile.program_units().is_multiple_of(profile.stripe_units()))
        {
            let most = profile.program_units() * (UNIT_BYTES / 1024);
            let expected = format!("a multiple of 4 that divides the {most} KiB that a die programs together");
            return Err(self.value(kib.span(), "flash.stripe_kib", kib.as_ref(), &expected));
        }
        if let (Some(us), None) = (&raw.background_suspend_us, profile.gc_turn_programs) {
            let expected = "no value without `gc_turn_programs`: there is nothing outside turns";
            return Err(self.value(us.span(), "flash.background_suspend_us", us.as_ref(), expected));
        }
        if profile.gc_start_blocks <= profile.gc_hard_blocks {
            let expected = format!(
                "garbage collection starts at more free blocks than the {} at which the host waits",
                profile.gc_hard_blocks
            );
            let span = raw.gc_start_blocks.as_ref().map_or(raw.dies.span(), Spanned::span);
            return Err(self.value(span, "flash.gc_start_blocks", profile.gc_start_blocks, &expected));
        }
        if (1..profile.program_units()).contains(&profile.buffer_units) {
            let kib = profile.program_units() * (UNIT_BYTES / 1024);
            let expected = format!("0, or at least the {kib} KiB that a die programs together");
            return Err(self.value(raw.buffer_kib.span(), "flash.buffer_kib", raw.buffer_kib.as_ref(), &expected));
        }
        Ok(())
    }

    /// Checks that the blocks hold the capacity and leave garbage collection enough free space.
    fn flash_space(&self, raw: &RawFlash, profile: &FlashProfile) -> Checked<()> {
        let dies = u64::from(profile.dies);
        let block_units = u64::from(profile.block_units());
        let reserve = u64::from(profile.gc_start_blocks) + 1;
        let full = profile.capacity_units() as f64 / (1.0 - profile.spare_factor) / (dies * block_units) as f64;
        let needed = full.ceil() as u64 + reserve;
        if needed > u64::from(profile.blocks_per_plane) {
            let usable = u64::from(profile.blocks_per_plane).saturating_sub(reserve) * dies * block_units;
            let sectors = (usable as f64 * (1.0 - profile.spare_factor)) as u64 * UNIT_SECTORS;
            let expected = format!(
                "at most {sectors}, which {} blocks a plane hold besides the spare factor; or {needed} blocks a plane",
                profile.blocks_per_plane
            );
            let found = profile.capacity_sectors;
            return Err(self.value(raw.capacity_sectors.span(), "flash.capacity_sectors", found, &expected));
        }
        if let Some(slice) = raw.slice_blocks.as_ref().filter(|slice| *slice.as_ref() as u64 + reserve > needed) {
            let expected = format!("at most {}, all blocks with data, or no value", needed - reserve);
            return Err(self.value(slice.span(), "flash.slice_blocks", slice.as_ref(), &expected));
        }
        let simulated = profile.die_blocks().saturating_mul(dies).saturating_mul(block_units);
        if simulated > MAX_UNITS {
            let most = (MAX_UNITS / (dies * block_units)).saturating_sub(reserve);
            let expected = format!("more than {MAX_UNITS} units of 4 KiB to simulate: `slice_blocks = {most}` or less");
            let span = raw.slice_blocks.as_ref().map_or(raw.capacity_sectors.span(), Spanned::span);
            return Err(self.value(span, "flash.slice_blocks", profile.data_blocks(), &expected));
        }
        self.flash_room(raw, profile)
    }

    /// Checks that garbage collection always finds a block worth collecting.
    ///
    /// Such a block has stale units for at least one program. One must exist whenever the host
    /// waits for a free block, however the stale units are distributed.
    fn flash_room(&self, raw: &RawFlash, profile: &FlashProfile) -> Checked<()> {
        let blocks = profile.die_blocks();
        let stale = (blocks - u64::from(profile.gc_hard_blocks)) * u64::from(profile.block_units());
        let stale = stale.saturating_sub(profile.live_units() / u64::from(profile.dies));
        let strewn = blocks * u64::from(profile.program_units() - 1) + u64::from(profile.block_units());
        if stale > strewn {
            return Ok(());
        }
        let expected = format!(
            "too little: {stale} spare units a die can be spread over {blocks} blocks, {} or fewer in each; a larger factor, \
             or more pages in a block",
            profile.program_units() - 1
        );
        Err(self.value(raw.spare_factor.span(), "flash.spare_factor", profile.spare_factor, &expected))
    }
}
