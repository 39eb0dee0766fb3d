//! Profiles derived from a built-in disk.

use std::ops::Range;

use super::super::raw::RawProfile;
use super::super::{DiskProfile, Kind, Profile, SingleKind};
use super::{Check, Checked};
use crate::builtin;

impl Check<'_> {
    /// The built-in disk named by `base`, with the tables of this profile in place of its own.
    ///
    /// The mechanics cannot be replaced: half of one drive and half of another is no drive.
    pub(super) fn based(&self, raw: &RawProfile) -> Checked<DiskProfile> {
        let Some(base) = &raw.base else {
            return Err(self.value(raw.name.span(), "base", "missing", "the name of a built-in disk"));
        };
        if let Some((span, key)) = mechanics(raw) {
            return Err(self.value(
                span,
                key,
                "given beside `base`",
                "the base's own mechanics; leave the table or `base` out",
            ));
        }
        // From the text, because the compact form of the built-in profiles is made by this reader.
        let builtin = builtin::text(base.as_ref()).and_then(|(file, text)| Profile::from_toml(text, file).ok());
        let builtin = builtin.map(|profile| profile.kind);
        let Some(Kind::Single(SingleKind::Disk(mut disk))) = builtin else {
            let expected = "the name of a built-in disk, such as \"sata-7200-2006\"";
            return Err(self.value(base.span(), "base", base.as_ref(), expected));
        };
        if raw.overhead.is_some() {
            disk.overheads = self.overheads(raw.overhead.as_ref())?;
        }
        if raw.interface.is_some() {
            disk.interface_sector_ns = self.interface_sector_ns(raw.interface.as_ref())?;
        }
        if raw.buffer.is_some() {
            disk.buffer = self.buffer(raw.buffer.as_ref())?;
        }
        if raw.queue.is_some() {
            disk.queue = self.queue(raw.queue.as_ref())?;
        }
        if raw.faults.is_some() {
            disk.faults = self.faults(raw.faults.as_ref(), disk.capacity_sectors)?;
        }
        Ok(*disk)
    }
}

/// The first table that replaces mechanics, if there is one.
fn mechanics(raw: &RawProfile) -> Option<(Range<usize>, &'static str)> {
    let first = |span: Option<Range<usize>>, key| span.map(|span| (span, key));
    first(raw.disk.as_ref().map(toml::Spanned::span), "disk")
        .or_else(|| first(raw.flash.as_ref().map(toml::Spanned::span), "flash"))
        .or_else(|| first(raw.cloud.as_ref().map(toml::Spanned::span), "cloud"))
        .or_else(|| first(raw.array.as_ref().map(toml::Spanned::span), "array"))
        .or_else(|| first(raw.null.as_ref().map(toml::Spanned::span), "null"))
        .or_else(|| first(raw.seek.as_ref().map(toml::Spanned::span), "seek"))
        .or_else(|| first(raw.zone.first().map(toml::Spanned::span), "zone"))
}
