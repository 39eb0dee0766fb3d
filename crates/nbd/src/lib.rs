//! The NBD protocol as state machines: bytes in, bytes out, no sockets.
//!
//! The server's side is [`server::Handshake`] until a client has chosen an export, then [`server::Session`], which reads requests and
//! writes replies. The client's side ([`client`]) is for tests, checks and replays. Nothing here allocates in proportion to what a peer
//! claims: every length is checked against [`Limits`] before it is believed.
//!
//! The protocol is that of the NetworkBlockDevice project ("The NBD protocol"), newstyle, with structured replies, extended
//! headers, metadata contexts (`base:allocation`) and STARTTLS.

#![forbid(unsafe_code)]

pub mod client;
pub mod server;
pub mod wire;

/// What a server tells of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name: UTF-8, at most 4096 bytes; empty is the default export.
    pub name: String,
    /// A line for people, or nothing.
    pub description: String,
    /// Its size in bytes.
    pub size: u64,
    /// What it can do.
    pub abilities: Abilities,
    /// The smallest unit of offset and length in bytes: a power of two, 1 to 65,536.
    pub block_min: u32,
    /// The preferred unit in bytes: a power of two, at least 512 and `block_min`.
    pub block_preferred: u32,
    /// The most bytes of data in one request.
    pub payload_max: u32,
}

/// What an export can do: each is a transmission flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Writes are refused.
    pub read_only: bool,
    /// FLUSH.
    pub flush: bool,
    /// FUA on writes.
    pub fua: bool,
    /// The medium rotates.
    pub rotational: bool,
    /// TRIM.
    pub trim: bool,
    /// WRITE_ZEROES, with NO_HOLE.
    pub write_zeroes: bool,
    /// FAST_ZERO on WRITE_ZEROES.
    pub fast_zero: bool,
    /// Flushes cover what other connections wrote.
    pub multi_conn: bool,
    /// CACHE.
    pub cache: bool,
    /// BLOCK_STATUS for `base:allocation`.
    pub block_status: bool,
}

/// What a server puts up with from one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Options before the server gives up on a client that never comes to the point.
    pub options_max: u32,
    /// Bytes of data of one option: longer ones are skipped and answered with an error.
    pub option_bytes_max: u32,
    /// Bytes of option data skipped before the connection is closed.
    pub skipped_bytes_max: u64,
    /// Bytes of an export's name.
    pub name_bytes_max: u32,
    /// Bytes of payload of a refused write that are read and thrown away; longer ones close the connection.
    pub discarded_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            options_max: 128,
            option_bytes_max: 64 << 10,
            skipped_bytes_max: 1 << 20,
            name_bytes_max: 4096,
            discarded_bytes_max: 64 << 20,
        }
    }
}
