//! The keys of a drive file, for the reference in docs/drive-files.md. `raw` declares them.

use std::fmt::Write as _;

pub use super::keys::{Key, KeyTable};
use super::raw::{
    RawArray, RawArrayCache, RawBucket, RawBuffer, RawCloud, RawDisk, RawFaults, RawFlash, RawHang, RawInterface,
    RawLatency, RawMember, RawNull, RawOverhead, RawProfile, RawQueue, RawSeek, RawZone,
};

/// All tables of a drive file, in the order of the reference.
static TABLES: [KeyTable; 18] = [
    RawProfile::KEYS,
    RawDisk::KEYS,
    RawSeek::KEYS,
    RawZone::KEYS,
    RawOverhead::KEYS,
    RawInterface::KEYS,
    RawBuffer::KEYS,
    RawQueue::KEYS,
    RawFaults::KEYS,
    RawHang::KEYS,
    RawFlash::KEYS,
    RawCloud::KEYS,
    RawBucket::KEYS,
    RawLatency::KEYS,
    RawArray::KEYS,
    RawArrayCache::KEYS,
    RawMember::KEYS,
    RawNull::KEYS,
];

/// Lists all tables of a drive file with their keys.
pub fn key_tables() -> &'static [KeyTable] {
    &TABLES
}

/// Renders all keys as Markdown: the reference of docs/drive-files.md.
pub fn markdown() -> String {
    let mut text = String::new();
    for table in key_tables() {
        let heading = if table.heading.is_empty() { "The file".to_owned() } else { format!("`[{}]`", table.heading) };
        let about = table.about.trim();
        let _ = write!(text, "## {heading}\n\n");
        if !table.heading.is_empty() {
            let _ = write!(text, "{about}\n\n");
        }
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in table.keys {
            let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name, key.takes, key.default, key.meaning.trim());
        }
        text.push('\n');
    }
    text
}
