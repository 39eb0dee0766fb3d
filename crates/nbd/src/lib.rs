//! The NBD protocol as state machines: bytes in, bytes out, no sockets.
//!
//! The server's side is [`server::Handshake`] until a client has chosen an export, then [`server::Session`], which reads requests and
//! writes replies. The client's side ([`client`]) is for tests, checks and replays; [`uri`] reads what names an export. Nothing here
//! allocates in proportion to what a peer claims: every length is checked against [`Limits`] before it is believed.
//!
//! The protocol is that of the NetworkBlockDevice project ("The NBD protocol"), newstyle, with structured replies, extended
//! headers, metadata contexts (`base:allocation`) and STARTTLS.

#![forbid(unsafe_code)]

pub mod client;
pub mod server;
mod unit;
pub mod uri;
pub mod wire;

use wire::transmission_flags as flag;

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
    /// The most bytes of data in one request: at least `block_preferred` and 65,536 (which DF needs); 33,554,432 is what clients
    /// that do not ask expect.
    pub payload_max: u32,
    /// Nobody sees it or enters it in plain text. It matters where TLS is [`server::Tls::Offered`]: elsewhere all exports or none are so.
    pub tls_only: bool,
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
    /// Bytes of option data skipped in all before the connection is closed.
    pub skipped_bytes_max: u64,
    /// Bytes of an export's name; never more than the protocol's 4096.
    pub name_bytes_max: u32,
    /// Bytes of replies in one handshake: LIST and INFO beyond it are answered with "too big".
    pub reply_bytes_max: u64,
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
            reply_bytes_max: 1 << 20,
            discarded_bytes_max: 64 << 20,
        }
    }
}

/// Why an export cannot be told to a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A name or description is too long, or has a NUL in it.
    #[error("the {what} of export {name:?} has {bytes} bytes; at most 4096, none of them NUL, can be sent")]
    Text {
        /// "name" or "description".
        what: &'static str,
        /// The export, as much of its name as fits a line.
        name: String,
        /// How long it is.
        bytes: usize,
    },
    /// The size is beyond what clients can address.
    #[error("export {name:?} has {size} bytes; the most that clients can address is 9223372036854775807")]
    Size {
        /// The export.
        name: String,
        /// Its size.
        size: u64,
    },
    /// The sizes of blocks break the protocol's rules.
    #[error(
        "export {name:?} has blocks of at least {min}, preferably {preferred}, at most {payload} bytes; the least is a power of two up to \
         65536, the preferred a power of two not below it and 512, the most not below the preferred and 65536"
    )]
    Blocks {
        /// The export.
        name: String,
        /// The smallest unit.
        min: u32,
        /// The preferred unit.
        preferred: u32,
        /// The largest payload.
        payload: u32,
    },
}

impl Export {
    /// Whether it can be told to clients as it is.
    ///
    /// # Errors
    /// What the protocol forbids: see [`Unfit`].
    pub fn check(&self) -> Result<(), Unfit> {
        let name = || self.name.chars().take(64).collect::<String>();
        for (what, text) in [("name", &self.name), ("description", &self.description)] {
            if wire::fitting(text).len() != text.len() {
                return Err(Unfit::Text { what, name: name(), bytes: text.len() });
            }
        }
        if i64::try_from(self.size).is_err() {
            return Err(Unfit::Size { name: name(), size: self.size });
        }
        let (min, preferred, payload) = (self.block_min, self.block_preferred, self.payload_max);
        let min_fits = min.is_power_of_two() && min <= 1 << 16;
        let preferred_fits = preferred.is_power_of_two() && preferred >= min.max(512);
        if !min_fits || !preferred_fits || payload < preferred.max(1 << 16) {
            return Err(Unfit::Blocks { name: name(), min, preferred, payload });
        }
        Ok(())
    }

    /// Whether a client that has not asked for sizes would be wrong about them: the defaults are a least unit of 1 and payloads of 32 MiB.
    pub fn has_unusual_blocks(&self) -> bool {
        self.block_min > 1 || self.payload_max < 1 << 25
    }
}

impl Abilities {
    /// The transmission flags; DF belongs to structured replies.
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

    /// What transmission flags say. BLOCK_STATUS is not among them: a client learns of it from metadata contexts.
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
