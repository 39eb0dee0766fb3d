//! Checks of the table `[array]`.

use hoistway_units::names::suggestion;
use toml::Spanned;

use super::super::raw::{RawArray, RawArrayCache, RawMember};
use super::super::{ArrayCacheProfile, ArrayProfile, CACHE_LINE_SECTORS, MemberProfile};
use super::{Check, Checked, MAX_CAPACITY_SECTORS, MAX_US};
use crate::builtin;

const MAX_MEMBERS: u32 = 64;
const MAX_CHUNK_SECTORS: u32 = 1 << 21;
/// 64 GiB: the controller needs a table entry for every 4 KiB.
const MAX_CACHE_SECTORS: u64 = 1 << 27;
const MAX_IDLE_MS: f64 = 1e6;

impl Check<'_> {
    pub(super) fn array(&self, spanned: &Spanned<RawArray>) -> Checked<ArrayProfile> {
        let raw = spanned.as_ref();
        let members = self.members(spanned)?;
        let count = members.len() as u32;
        let copies = match &raw.copies {
            Some(copies) => self.within(copies, "array.copies", 1, count)?,
            None => 1,
        };
        if !count.is_multiple_of(copies)
            && let Some(given) = &raw.copies
        {
            let expected = format!("{count} members are not a multiple of it: a divisor of {count}");
            return Err(self.value(given.span(), "array.copies", copies, &expected));
        }
        let chunk_sectors = self.chunk_sectors(spanned, count / copies)?;
        let smallest = members.iter().map(|member| member.kind.capacity_sectors()).min().unwrap_or(0);
        if smallest < u64::from(chunk_sectors) {
            let expected = format!("the smallest member has {smallest} sectors: at most that many");
            return Err(self.value(spanned.span(), "array.chunk_sectors", chunk_sectors, &expected));
        }
        if smallest.saturating_mul(u64::from(count / copies)) > MAX_CAPACITY_SECTORS {
            let expected = format!("{MAX_CAPACITY_SECTORS} sectors in all at most: fewer or smaller members");
            return Err(self.value(spanned.span(), "array.member", format!("{count} drives"), &expected));
        }
        Ok(ArrayProfile {
            depth: self.within(&raw.depth, "array.depth", 1, 65_536)?,
            command_ns: (self.within(&raw.command_us, "array.command_us", 0.0, MAX_US)? * 1000.0).round() as u64,
            link_sector_ns: self.within(&raw.link_sector_ns, "array.link_sector_ns", 0, 1_000_000_000)?,
            copies,
            chunk_sectors,
            cache: raw.cache.as_ref().map(|cache| self.array_cache(cache.as_ref())).transpose()?,
            members,
        })
    }

    fn chunk_sectors(&self, spanned: &Spanned<RawArray>, columns: u32) -> Checked<u32> {
        let key = "array.chunk_sectors";
        let Some(chunk) = &spanned.as_ref().chunk_sectors else {
            if columns == 1 {
                return Ok(CACHE_LINE_SECTORS as u32);
            }
            let expected = "striping needs the number of consecutive sectors on one member, such as 128";
            return Err(self.value(spanned.span(), key, "missing", expected));
        };
        let sectors = self.within(chunk, key, CACHE_LINE_SECTORS as u32, MAX_CHUNK_SECTORS)?;
        if !u64::from(sectors).is_multiple_of(CACHE_LINE_SECTORS) {
            return Err(self.value(chunk.span(), key, sectors, &format!("a multiple of {CACHE_LINE_SECTORS}")));
        }
        Ok(sectors)
    }

    fn members(&self, spanned: &Spanned<RawArray>) -> Checked<Vec<MemberProfile>> {
        let mut members = Vec::new();
        for member in &spanned.as_ref().member {
            let profile = self.member(member)?;
            let count = match &member.as_ref().count {
                Some(count) => self.within(count, "array.member.count", 1, MAX_MEMBERS)?,
                None => 1,
            };
            members.extend((0..count).map(|_| profile.clone()));
            if members.len() > MAX_MEMBERS as usize {
                let expected = format!("at most {MAX_MEMBERS}");
                return Err(self.value(member.span(), "array.member", format!("drive {}", members.len()), &expected));
            }
        }
        if members.is_empty() {
            let expected = "an array has at least one [[array.member]]";
            return Err(self.value(spanned.span(), "array.member", "missing", expected));
        }
        Ok(members)
    }

    fn member(&self, spanned: &Spanned<RawMember>) -> Checked<MemberProfile> {
        match (&spanned.as_ref().drive, &spanned.as_ref().profile) {
            (Some(name), None) => {
                let Some((file, text)) = builtin::text(name.as_ref()) else {
                    let near = suggestion(name.as_ref(), builtin::names(), "hoistway drives");
                    let expected = format!("there is no such drive{near}");
                    return Err(self.value(name.span(), "array.member.drive", name.as_ref(), &expected));
                };
                let refused = |error| match error {
                    super::ProfileError::Value { ref key, .. } if key == "array" => {
                        self.value(name.span(), "array.member.drive", name.as_ref(), super::NO_ARRAY_OF_ARRAYS)
                    }
                    error => error,
                };
                super::member(text, file).map_err(refused)
            }
            (None, Some(profile)) => Check { member: true, ..*self }.member_profile(profile.as_ref()),
            (Some(_), Some(profile)) => {
                let expected = "a member is a built-in drive or has a profile of its own";
                Err(self.value(profile.span(), "array.member.profile", "given beside `drive`", expected))
            }
            (None, None) => {
                let expected = "a member needs the name of a built-in drive, or a table `profile` of its own";
                Err(self.value(spanned.span(), "array.member.drive", "missing", expected))
            }
        }
    }

    fn array_cache(&self, raw: &RawArrayCache) -> Checked<ArrayCacheProfile> {
        let sectors = self.within(&raw.sectors, "array.cache.sectors", CACHE_LINE_SECTORS, MAX_CACHE_SECTORS)?;
        let high = self.within(&raw.high_part, "array.cache.high_part", 0.0, 1.0)?;
        let low = self.within(&raw.low_part, "array.cache.low_part", 0.0, high)?;
        let part = |part: f64| (sectors as f64 * part).round() as u64;
        let idle_ms = self.within(&raw.idle_ms, "array.cache.idle_ms", 0.0, MAX_IDLE_MS)?;
        Ok(ArrayCacheProfile {
            sectors,
            battery: raw.battery,
            high_sectors: part(high),
            low_sectors: part(low),
            idle_ns: (idle_ms * 1e6).round() as u64,
            order: raw.order,
        })
    }
}
