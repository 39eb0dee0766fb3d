//! Checks of the table `[buffer]`: read-ahead segments and write cache.

use toml::Spanned;

use super::super::raw::RawBuffer;
use super::super::{BufferProfile, ReadAheadUntil, ReadAheadWhen, Replacement, WriteCacheProfile};
use super::disk::MAX_MS;
use super::{Check, Checked};

const MAX_SEGMENTS: u32 = 65_536;
const MAX_SEGMENT_SECTORS: u32 = 1 << 24;
/// Default fill levels at which forced write-back starts and ends. Half of the cache remains: a
/// part for gathering adjacent writes, and a part for bursts.
const HIGH: f64 = 0.75;
const LOW: f64 = 0.25;

impl Check<'_> {
    pub(super) fn buffer(&self, raw: Option<&RawBuffer>) -> Checked<BufferProfile> {
        let Some(raw) = raw else {
            return Ok(BufferProfile {
                enabled: false,
                segments: 0,
                segment_sectors: 0,
                read_ahead_sectors: 0,
                read_ahead_min_sectors: 0,
                read_ahead_until: ReadAheadUntil::Segment,
                read_ahead_when: ReadAheadWhen::Always,
                immediate_read: false,
                replacement: Replacement::Lru,
                keep_read: true,
                keep_after_write: true,
                keep_written: true,
                write_cache: None,
            });
        };
        let segment_sectors = self.within(&raw.segment_sectors, "buffer.segment_sectors", 1, MAX_SEGMENT_SECTORS)?;
        let segments = self.within(&raw.segments, "buffer.segments", 1, MAX_SEGMENTS)?;
        let read_ahead_sectors = match &raw.read_ahead_sectors {
            Some(sectors) => self.within(sectors, "buffer.read_ahead_sectors", 0, MAX_SEGMENT_SECTORS)?,
            None => segment_sectors,
        };
        let most = read_ahead_sectors.min(segment_sectors);
        Ok(BufferProfile {
            enabled: raw.enabled,
            segments,
            segment_sectors,
            read_ahead_sectors,
            read_ahead_min_sectors: match &raw.read_ahead_min_sectors {
                Some(sectors) => self.within(sectors, "buffer.read_ahead_min_sectors", 0, most)?,
                None => 0,
            },
            read_ahead_until: raw.read_ahead_until,
            read_ahead_when: raw.read_ahead_when,
            immediate_read: raw.immediate_read,
            replacement: raw.replacement,
            keep_read: raw.keep_read,
            keep_after_write: raw.keep_after_write,
            keep_written: raw.keep_written,
            write_cache: self.write_cache(raw, segments, segment_sectors)?,
        })
    }

    /// The write cache: segments for one run of sectors each, or sectors in any number of runs.
    fn write_cache(&self, raw: &RawBuffer, segments: u32, segment_sectors: u32) -> Checked<Option<WriteCacheProfile>> {
        let segment_sectors = u64::from(segment_sectors);
        let (sectors, runs) = match (&raw.write_segments, &raw.write_sectors) {
            (Some(_), Some(both)) => {
                let expected = "the size is given once, as `write_segments` or as `write_sectors`";
                return Err(self.value(both.span(), "buffer.write_sectors", "given beside `write_segments`", expected));
            }
            (Some(segments), None) => {
                let segments = self.within(segments, "buffer.write_segments", 1, MAX_SEGMENTS)?;
                (u64::from(segments) * segment_sectors, segments as usize)
            }
            (None, Some(sectors)) => {
                let sectors = self.within(sectors, "buffer.write_sectors", 1, MAX_SEGMENT_SECTORS)?;
                (u64::from(sectors), sectors as usize)
            }
            (None, None) => (u64::from(segments) * segment_sectors, segments as usize),
        };
        let share = |value: &Option<Spanned<f64>>, key: &str, default: f64| match value {
            Some(value) => self.within(value, key, 0.0, 1.0),
            None => Ok(default),
        };
        let high = share(&raw.write_high, "buffer.write_high", HIGH)?;
        let low = share(&raw.write_low, "buffer.write_low", LOW.min(high))?;
        if let Some(given) = raw.write_low.as_ref().filter(|_| low > high) {
            let expected = format!("write-back ends at or below its start level: at most `write_high`, {high}");
            return Err(self.value(given.span(), "buffer.write_low", low, &expected));
        }
        let idle_ms = match &raw.write_idle_ms {
            Some(idle) => self.within(idle, "buffer.write_idle_ms", 0.0, MAX_MS)?,
            None => 0.0,
        };
        let idle_ns = (idle_ms * 1e6).round() as u64;
        let turn_sectors = segment_sectors;
        Ok(raw.write_cache.then_some(WriteCacheProfile { sectors, runs, high, low, idle_ns, turn_sectors }))
    }
}
