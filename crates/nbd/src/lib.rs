//! The NBD protocol as state machines without I/O: bytes in, bytes out, no sockets.
//!
//! ```text
//! server: greeting, options ─▶ server::Handshake ─▶ server::Session: requests in, replies out
//! client: client::Handshake ─▶ client::Session ─▶ client::Collector: one completion per request
//! ```
//!
//! The caller moves bytes between a socket and a state machine: `receive` or `parse` consumes input
//! and reports progress, and output is appended to a `Vec<u8>`. The client side is for tests,
//! checks and replays; [`uri`] parses the URIs of exports. No allocation is proportional to a
//! length that a peer claims: every length is checked against [`Limits`] first.
//!
//! The protocol is that of the NetworkBlockDevice project ("The NBD protocol"): newstyle, with
//! structured replies, extended headers, metadata contexts (`base:allocation`) and STARTTLS.
//!
//! # Where to change what
//!
//! - Numbers, magic values, headers: [`wire`].
//! - Options of the handshake: `server/handshake.rs`, their data in `server/option.rs`.
//! - Checks of requests (ranges, flags, alignment): `server/session.rs`.
//! - Replies, including BLOCK_STATUS: `server/replies.rs`.
//! - A new feature of an export: [`Abilities`], its transmission flag in [`wire`], then both
//!   sessions.
//! - Limits against misbehaving clients: [`Limits`].
//! - URIs: [`uri`].
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod client;
mod frame_buffer;
pub mod server;
pub mod uri;
pub mod wire;

use wire::transmission_flags as flag;

/// The properties of an export as sent to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name: UTF-8, at most 4096 bytes; the empty name is the default export.
    pub name: String,
    /// Description for humans; may be empty.
    pub description: String,
    /// Size in bytes.
    pub size: u64,
    /// Features of the export.
    pub abilities: Abilities,
    /// Minimum block size in bytes: a power of two, 1 to 65,536.
    pub block_min: u32,
    /// Preferred block size in bytes: a power of two, at least 512 and `block_min`.
    pub block_preferred: u32,
    /// Maximum payload of a request in bytes: at least `block_preferred` and 65,536 (which DF
    /// needs).
    /// Clients that do not request block sizes assume 33,554,432.
    pub payload_max: u32,
    /// Hides the export from unencrypted connections. Relevant with [`server::Tls::Offered`];
    /// otherwise all exports are treated alike.
    pub tls_only: bool,
}

/// Features of an export: each is a transmission flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// The export is read-only.
    pub read_only: bool,
    /// FLUSH is supported.
    pub flush: bool,
    /// FUA is supported on writes.
    pub fua: bool,
    /// The medium rotates.
    pub rotational: bool,
    /// TRIM is supported.
    pub trim: bool,
    /// WRITE_ZEROES with NO_HOLE is supported.
    pub write_zeroes: bool,
    /// FAST_ZERO on WRITE_ZEROES is supported.
    pub fast_zero: bool,
    /// A flush covers the writes of all connections.
    pub multi_conn: bool,
    /// CACHE is supported.
    pub cache: bool,
    /// BLOCK_STATUS for `base:allocation` is supported.
    pub block_status: bool,
}

/// Limits of a server for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of options before the connection is closed.
    pub options_max: u32,
    /// Maximum length of an option's data in bytes; longer data are skipped and answered with an
    /// error.
    pub option_bytes_max: u32,
    /// Maximum number of skipped bytes of option data before the connection is closed.
    pub skipped_bytes_max: u64,
    /// Maximum length of an export name in bytes; the protocol allows 4096.
    pub name_bytes_max: u32,
    /// Maximum number of reply bytes in a handshake; beyond it, LIST and INFO are answered with
    /// ERR_TOO_BIG.
    pub reply_bytes_max: u64,
    /// Maximum payload of a refused write that is read and discarded; longer payloads close the
    /// connection.
    pub discarded_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            options_max: 128,
            option_bytes_max: 64 << 10,
            skipped_bytes_max: 1 << 20,
            name_bytes_max: 4096,
            reply_bytes_max: 1 << 20,
            discarded_bytes_max: 64 << 20,
        }
    }
}

/// Error of an export whose properties the protocol cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// A name or description is too long or contains a NUL.
    #[error("the {what} of export {name:?} has {bytes} bytes; at most 4096, none of them NUL, can be sent")]
    Text {
        /// "name" or "description".
        what: &'static str,
        /// Beginning of the export's name.
        name: String,
        /// Length in bytes.
        bytes: usize,
    },
    /// The size exceeds the address range of clients.
    #[error("export {name:?} has {size} bytes; the most that clients can address is 9223372036854775807")]
    Size {
        /// Name of the export.
        name: String,
        /// Size in bytes.
        size: u64,
    },
    /// The block sizes violate the protocol's rules.
    #[error(
        "export {name:?} has blocks of at least {min}, preferably {preferred}, at most {payload} bytes; the least is a power of two up to \
         65536, the preferred a power of two not below it and 512, the most not below the preferred and 65536"
    )]
    Blocks {
        /// Name of the export.
        name: String,
        /// Minimum block size in bytes.
        min: u32,
        /// Preferred block size in bytes.
        preferred: u32,
        /// Maximum payload in bytes.
        payload: u32,
    },
}

impl Export {
    /// Checks that the protocol can represent the export.
    ///
    /// # Errors
    /// Returns the violated rule: see [`ExportError`].
    pub fn check(&self) -> Result<(), ExportError> {
        let name = || self.name.chars().take(64).collect::<String>();
        for (what, text) in [("name", &self.name), ("description", &self.description)] {
            if wire::fitting(text).len() != text.len() {
                return Err(ExportError::Text { what, name: name(), bytes: text.len() });
            }
        }
        if i64::try_from(self.size).is_err() {
            return Err(ExportError::Size { name: name(), size: self.size });
        }
        let (min, preferred, payload) = (self.block_min, self.block_preferred, self.payload_max);
        let min_fits = min.is_power_of_two() && min <= 1 << 16;
        let preferred_fits = preferred.is_power_of_two() && preferred >= min.max(512);
        if !min_fits || !preferred_fits || payload < preferred.max(1 << 16) {
            return Err(ExportError::Blocks { name: name(), min, preferred, payload });
        }
        Ok(())
    }

    /// Returns true if the defaults that clients assume (minimum block size 1, payloads of 32 MiB)
    /// do not apply to the export.
    pub fn has_unusual_blocks(&self) -> bool {
        self.block_min > 1 || self.payload_max < 1 << 25
    }
}

impl Abilities {
    /// Returns the transmission flags; DF requires structured replies.
    pub fn flags(self, structured: bool) -> u16 {
        let bits = [
            (true, flag::HAS_FLAGS),
            (self.read_only, flag::READ_ONLY),
            (self.flush, flag::SEND_FLUSH),
            (self.fua, flag::SEND_FUA),
            (self.rotational, flag::ROTATIONAL),
            (self.trim, flag::SEND_TRIM),
            (self.write_zeroes, flag::SEND_WRITE_ZEROES),
            (structured, flag::SEND_DF),
            (self.multi_conn, flag::CAN_MULTI_CONN),
            (self.cache, flag::SEND_CACHE),
            (self.write_zeroes && self.fast_zero, flag::SEND_FAST_ZERO),
        ];
        bits.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit)
    }

    /// Decodes transmission flags. BLOCK_STATUS has no flag: a client learns it from metadata
    /// contexts.
    pub fn from_flags(flags: u16) -> Abilities {
        let has = |bit| flags & flag::HAS_FLAGS != 0 && flags & bit != 0;
        Abilities {
            read_only: has(flag::READ_ONLY),
            flush: has(flag::SEND_FLUSH),
            fua: has(flag::SEND_FUA),
            rotational: has(flag::ROTATIONAL),
            trim: has(flag::SEND_TRIM),
            write_zeroes: has(flag::SEND_WRITE_ZEROES),
            fast_zero: has(flag::SEND_FAST_ZERO),
            multi_conn: has(flag::CAN_MULTI_CONN),
            cache: has(flag::SEND_CACHE),
            block_status: false,
        }
    }
}
