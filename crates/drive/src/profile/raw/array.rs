//! The table `[array]` before its checks.

use toml::Spanned;

use super::super::DestageOrder;
use super::RawProfile;
use super::table::table;

table! {
    /// Several drives behind a controller.
    RawArray, "array" {
        /// The largest number of commands in flight.
        depth: Spanned<u32> = "1 to 65536", "required";
        /// The processing time of the controller for a command.
        command_us: Spanned<f64> = "0 to 1000000", "required";
        /// The transfer time of a sector on the link to the host.
        link_sector_ns: Spanned<u32> = "0 to 1000000000", "required";
        /// The number of members with the same data.
        copies: Option<Spanned<u32>> = "a divisor of the number of members", "1";
        /// Consecutive sectors on one member: a multiple of 8.
        chunk_sectors: Option<Spanned<u32>> = "8 to 2097152", "required for striping";
        /// The write cache of the controller.
        cache: Option<Spanned<RawArrayCache>> = "a table", "none";
        /// The members.
        #[serde(default)]
        member: Vec<Spanned<RawMember>> = "1 to 64 tables", "required";
    }
}

table! {
    /// The write cache of the controller.
    RawArrayCache, "array.cache" {
        /// The capacity.
        sectors: Spanned<u64> = "8 to 134217728", "required";
        /// The cache survives a power loss, so flushes are free.
        battery: bool = "`true`, `false`", "required";
        /// The fill level at which write-back starts.
        high_part: Spanned<f64> = "0 to 1", "required";
        /// The fill level at which it ends.
        low_part: Spanned<f64> = "0 to `high_part`", "required";
        /// The idle time after which write-back starts.
        idle_ms: Spanned<f64> = "0 to 1000000", "required";
        /// The order of write-back: upwards over each member, or that of the writes.
        order: DestageOrder = "`\"sweep\"`, `\"fifo\"`", "required";
    }
}

table! {
    /// A member of the array.
    RawMember, "[array.member]" {
        /// The name of a built-in drive.
        drive: Option<Spanned<String>> = "a built-in drive", "this or `profile`";
        /// A profile of the member's own; it is no array.
        profile: Option<Spanned<Box<RawProfile>>> = "a table: a drive file", "this or `drive`";
        /// The number of copies of this member.
        count: Option<Spanned<u32>> = "1 to 64", "1";
    }
}
