//! Checks of a flash drive's profile.

use toml::Spanned;

use super::super::FlashProfile;
use super::super::raw::RawFlash;
use super::{Check, Checked, MAX_CAPACITY_SECTORS, MAX_US};

impl Check<'_> {
    pub(super) fn flash(&self, raw: &RawFlash) -> Checked<FlashProfile> {
        self.within(&raw.depth, "flash.depth", 1, 65_536)?;
        self.within(&raw.capacity_sectors, "flash.capacity_sectors", 1, MAX_CAPACITY_SECTORS)?;
        self.within(&raw.command_us, "flash.command_us", 0.0, MAX_US)?;
        self.within(&raw.dies, "flash.dies", 1, 65_536)?;
        self.within(&raw.page_bytes, "flash.page_bytes", 512, 1 << 24)?;
        if raw.page_bytes.as_ref() % 512 != 0 {
            let found = raw.page_bytes.as_ref();
            return Err(self.value(raw.page_bytes.span(), "flash.page_bytes", found, "a multiple of 512"));
        }
        self.within(&raw.page_read_us, "flash.page_read_us", 0.0, MAX_US)?;
        self.within(&raw.page_program_us, "flash.page_program_us", 0.0, MAX_US)?;
        self.within(&raw.link_sector_ns, "flash.link_sector_ns", 0, 1_000_000)?;
        let ns = |us: &Spanned<f64>| (us.as_ref() * 1000.0).round() as u64;
        Ok(FlashProfile {
            depth: *raw.depth.as_ref(),
            capacity_sectors: *raw.capacity_sectors.as_ref(),
            command_ns: ns(&raw.command_us),
            dies: *raw.dies.as_ref(),
            page_bytes: *raw.page_bytes.as_ref(),
            page_read_ns: ns(&raw.page_read_us),
            page_program_ns: ns(&raw.page_program_us),
            link_sector_ns: *raw.link_sector_ns.as_ref(),
        })
    }
}
