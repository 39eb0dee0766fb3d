//! What a block device can do.

/// The operations and guarantees of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Writes are refused.
    pub read_only: bool,
    /// Flush is supported.
    pub flush: bool,
    /// Durable writes (force unit access) are supported.
    pub fua: bool,
    /// The medium rotates.
    pub rotational: bool,
    /// Trim is supported.
    pub trim: bool,
    /// Writing zeroes is supported.
    pub write_zeroes: bool,
    /// Writing zeroes is faster than writing data.
    pub fast_zero: bool,
    /// A flush on one connection covers the writes of all connections.
    pub multi_conn: bool,
    /// Reading into a cache is supported.
    pub cache: bool,
    /// Queries of allocated ranges are supported.
    pub block_status: bool,
}
