//! A drive file before its checks, with the position of every value that can be invalid. Each table
//! of the file is declared once: its type, and its keys for the reference in docs/drive-files.md.

mod array;
mod cloud;
mod disk;
mod faults;
mod flash;
mod table;

use toml::Spanned;

pub(super) use array::{RawArray, RawArrayCache, RawMember};
pub(super) use cloud::{RawBucket, RawCloud, RawLatency};
pub(super) use disk::{RawBuffer, RawDisk, RawForm, RawInterface, RawMapping, RawOverhead, RawQueue, RawSeek, RawZone};
pub(super) use faults::{RawFaults, RawHang};
pub(super) use flash::RawFlash;
use table::table;

table! {
    /// The file.
    RawProfile, "" {
        /// The name of the drive.
        name: Spanned<String> = "text", "required";
        /// The drive in one line.
        what: String = "text", "required";
        /// The sources of the figures.
        source: String = "text", "required";
        /// The licence of the figures.
        licence: Option<String> = "text", "none";
        /// Assumed figures, each with its reason.
        #[serde(default)]
        inputs: Vec<String> = "a list of texts", "none";
        /// The host may send writes with FUA (forced unit access), as to SCSI and NVMe drives.
        /// Without it a durable write is a write and a flush, as Linux does with SATA drives.
        #[serde(default)]
        fua: bool = "`true`, `false`", "`false`";
        /// A built-in disk with the same mechanics. `overhead`, `interface`, `buffer`, `queue` and
        /// `faults` can be replaced.
        base: Option<Spanned<String>> = "a built-in disk", "none";
        /// A disk. A file has exactly one of `disk`, `flash`, `cloud`, `array`, `null` and `base`.
        disk: Option<Spanned<RawDisk>> = "a table", "none";
        /// A flash drive.
        flash: Option<Spanned<RawFlash>> = "a table", "none";
        /// A cloud volume.
        cloud: Option<Spanned<RawCloud>> = "a table", "none";
        /// Several drives behind a controller.
        array: Option<Spanned<RawArray>> = "a table", "none";
        /// A device of constant service time.
        null: Option<Spanned<RawNull>> = "a table", "none";
        /// The seek curve of a disk.
        seek: Option<Spanned<RawSeek>> = "a table", "required by `disk`";
        /// The zones of a disk, outermost first.
        #[serde(default)]
        zone: Vec<Spanned<RawZone>> = "1 to 4096 tables", "required by `disk`";
        /// The command overheads of a disk.
        overhead: Option<RawOverhead> = "a table", "all 0";
        /// The interface of a disk.
        interface: Option<RawInterface> = "a table", "no time";
        /// The read-ahead buffer and write cache of a disk.
        buffer: Option<RawBuffer> = "a table", "none";
        /// The command queue of a disk.
        queue: Option<Spanned<RawQueue>> = "a table", "one command at a time";
        /// The faults of a disk.
        faults: Option<Spanned<RawFaults>> = "a table", "none";
    }
}

table! {
    /// A device of constant service time.
    RawNull, "null" {
        /// The service time of every command.
        service_ns: Spanned<u64> = "0 to 1000000000000", "required";
        /// The largest number of commands in flight.
        depth: Spanned<u32> = "1 to 65536", "required";
        /// The capacity.
        capacity_sectors: Spanned<u64> = "1 to 36028797018963968", "required";
    }
}
