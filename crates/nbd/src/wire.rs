//! Constants of the protocol and the headers of requests.
//!
//! All numbers are big-endian.

use std::fmt;

/// "NBDMAGIC": the first eight bytes of a server.
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": the next eight bytes of a newstyle server, and the first of each option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The next eight bytes of an oldstyle server.
pub const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Magic number of a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number of a request with extended headers.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Magic number of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic number of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Magic number of a chunk of an extended reply.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Length of a request header in bytes.
pub const REQUEST_BYTES: usize = 28;
/// Length of an extended request header in bytes.
pub const EXTENDED_REQUEST_BYTES: usize = 32;
/// Length of a simple reply header in bytes.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Length of a structured chunk header in bytes.
pub const STRUCTURED_REPLY_BYTES: usize = 20;
/// Length of an extended chunk header in bytes.
pub const EXTENDED_REPLY_BYTES: usize = 32;
/// Length of an option header in bytes.
pub const OPTION_BYTES: usize = 16;
/// Length of the header of a reply to an option in bytes.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Number of zero bytes after the reply to EXPORT_NAME, unless both sides support NO_ZEROES.
pub const EXPORT_NAME_ZEROES: usize = 124;
/// Maximum length of a string in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// Maximum number of extents in a chunk.
pub const EXTENTS_MAX: usize = 1 << 20;
/// The only metadata context that the protocol defines.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// Handshake flags of the server.
pub mod handshake_flags {
    /// The server supports options other than EXPORT_NAME.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The server can omit the zeroes after EXPORT_NAME.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Handshake flags of the client.
pub mod client_flags {
    /// The client supports replies to options.
    pub const FIXED_NEWSTYLE: u32 = 1 << 0;
    /// The client wants the zeroes after EXPORT_NAME omitted.
    pub const NO_ZEROES: u32 = 1 << 1;
}

/// Transmission flags: the features of an export.
pub mod transmission_flags {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// The export is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The export supports FLUSH.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The export supports FUA.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The medium rotates.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// The export supports TRIM.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The export supports WRITE_ZEROES and NO_HOLE.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The export supports DF: unfragmented structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush covers the writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// The export supports CACHE.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The export supports FAST_ZERO.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Numbers of options.
pub mod option {
    /// Enters transmission; the server can refuse only by closing the connection.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the handshake.
    pub const ABORT: u32 = 2;
    /// Requests the list of exports.
    pub const LIST: u32 = 3;
    /// Starts TLS.
    pub const STARTTLS: u32 = 5;
    /// Requests information about an export.
    pub const INFO: u32 = 6;
    /// Enters transmission.
    pub const GO: u32 = 7;
    /// Negotiates structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Requests the list of metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Selects metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Negotiates 64-bit lengths in both directions.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Types of replies to options.
pub mod rep {
    /// The option is acknowledged.
    pub const ACK: u32 = 1;
    /// An entry of the list of exports.
    pub const SERVER: u32 = 2;
    /// Information about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// The bit that all error types have.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// The option is unknown.
    pub const ERR_UNSUP: u32 = ERROR_BIT | 1;
    /// The option is forbidden by policy.
    pub const ERR_POLICY: u32 = ERROR_BIT | 2;
    /// The option is invalid.
    pub const ERR_INVALID: u32 = ERROR_BIT | 3;
    /// The option is not supported on the platform.
    pub const ERR_PLATFORM: u32 = ERROR_BIT | 4;
    /// TLS is required.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT | 5;
    /// The export is unknown.
    pub const ERR_UNKNOWN: u32 = ERROR_BIT | 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT | 7;
    /// The client must request block sizes.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT | 8;
    /// The request or its reply is too large.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT | 9;
    /// Extended headers are required.
    pub const ERR_EXT_HEADER_REQD: u32 = ERROR_BIT | 10;

    /// Returns the protocol's name of an error reply.
    pub fn error_name(kind: u32) -> &'static str {
        match kind {
            ERR_UNSUP => "ERR_UNSUP",
            ERR_POLICY => "ERR_POLICY",
            ERR_INVALID => "ERR_INVALID",
            ERR_PLATFORM => "ERR_PLATFORM",
            ERR_TLS_REQD => "ERR_TLS_REQD",
            ERR_UNKNOWN => "ERR_UNKNOWN",
            ERR_SHUTDOWN => "ERR_SHUTDOWN",
            ERR_BLOCK_SIZE_REQD => "ERR_BLOCK_SIZE_REQD",
            ERR_TOO_BIG => "ERR_TOO_BIG",
            ERR_EXT_HEADER_REQD => "ERR_EXT_HEADER_REQD",
            _ => "an unknown error",
        }
    }
}

/// Information items of INFO and GO.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Canonical name.
    pub const NAME: u16 = 1;
    /// Description for humans.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of a request.
pub mod command_flags {
    /// The write is durable before the reply.
    pub const FUA: u16 = 1 << 0;
    /// Zeroes must be allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply must have one chunk.
    pub const DF: u16 = 1 << 2;
    /// Only one extent is requested.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes only if they are faster than writing.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// With extended headers: the length is that of a following payload.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunk types of structured and extended replies.
pub mod chunk {
    /// Flag of the last chunk of a reply.
    pub const FLAG_DONE: u16 = 1 << 0;
    /// No content.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents with lengths of 32 bits.
    pub const BLOCK_STATUS: u16 = 5;
    /// Extents with lengths of 64 bits.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// The bit that all error types have.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// An error.
    pub const ERROR: u16 = ERROR_BIT | 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// States of an extent in `base:allocation`.
pub mod extent_flags {
    /// Not allocated.
    pub const HOLE: u32 = 1 << 0;
    /// Reads as zeroes.
    pub const ZERO: u32 = 1 << 1;
}

/// An error number of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Errno {
    /// Operation not permitted: a write to a read-only export.
    Perm = 1,
    /// Input/output error.
    Io = 5,
    /// Out of memory.
    NoMem = 12,
    /// Invalid argument.
    Inval = 22,
    /// No space left.
    NoSpc = 28,
    /// Value too large.
    Overflow = 75,
    /// Operation not supported.
    NotSup = 95,
    /// The server is shutting down.
    Shutdown = 108,
}

impl Errno {
    /// All error numbers in ascending order.
    pub const ALL: [Errno; 8] = [
        Errno::Perm,
        Errno::Io,
        Errno::NoMem,
        Errno::Inval,
        Errno::NoSpc,
        Errno::Overflow,
        Errno::NotSup,
        Errno::Shutdown,
    ];

    /// Returns the number on the wire.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the error of a number in a reply. Undefined numbers count as EINVAL, as the protocol
    /// requires.
    pub fn from_number(number: u32) -> Errno {
        Errno::ALL.into_iter().find(|errno| errno.number() == number).unwrap_or(Errno::Inval)
    }

    /// Converts an error of Linux: EDQUOT and EFBIG become ENOSPC, EROFS and EACCES become EPERM,
    /// and errors without a number in the protocol become EIO.
    pub fn from_os(number: i32) -> Errno {
        match number {
            1 | 13 | 30 => Errno::Perm,
            12 => Errno::NoMem,
            22 => Errno::Inval,
            27 | 28 | 122 => Errno::NoSpc,
            75 => Errno::Overflow,
            95 => Errno::NotSup,
            108 => Errno::Shutdown,
            _ => Errno::Io,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Perm => "EPERM",
            Errno::Io => "EIO",
            Errno::NoMem => "ENOMEM",
            Errno::Inval => "EINVAL",
            Errno::NoSpc => "ENOSPC",
            Errno::Overflow => "EOVERFLOW",
            Errno::NotSup => "ENOTSUP",
            Errno::Shutdown => "ESHUTDOWN",
        })
    }
}

/// A command of the transmission phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Ends the connection.
    Disconnect,
    /// Makes all completed writes durable.
    Flush,
    /// Discards a range.
    Trim,
    /// Announces that a range will be read soon.
    Cache,
    /// Fills a range with zeroes.
    WriteZeroes,
    /// Requests the status of a range.
    BlockStatus,
    /// An unknown command, which a server refuses.
    Other(u16),
}

impl Command {
    /// Returns the number on the wire.
    pub const fn number(self) -> u16 {
        match self {
            Command::Read => 0,
            Command::Write => 1,
            Command::Disconnect => 2,
            Command::Flush => 3,
            Command::Trim => 4,
            Command::Cache => 5,
            Command::WriteZeroes => 6,
            Command::BlockStatus => 7,
            Command::Other(number) => number,
        }
    }

    /// Returns the command of a number.
    pub const fn from_number(number: u16) -> Command {
        match number {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            5 => Command::Cache,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            other => Command::Other(other),
        }
    }

    /// Returns true if the command modifies the export.
    pub const fn changes(self) -> bool {
        matches!(self, Command::Write | Command::Trim | Command::WriteZeroes)
    }
}

/// Flags of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandFlags {
    /// The write is durable before the reply.
    pub fua: bool,
    /// Zeroes must be allocated instead of punched.
    pub no_hole: bool,
    /// The reply must have one chunk.
    pub dont_fragment: bool,
    /// Only one extent is requested.
    pub one_extent: bool,
    /// Zeroes only if they are faster than writing.
    pub fast_zero: bool,
}

impl CommandFlags {
    /// Returns the bits on the wire.
    pub const fn bits(self) -> u16 {
        (self.fua as u16 * command_flags::FUA)
            | (self.no_hole as u16 * command_flags::NO_HOLE)
            | (self.dont_fragment as u16 * command_flags::DF)
            | (self.one_extent as u16 * command_flags::REQ_ONE)
            | (self.fast_zero as u16 * command_flags::FAST_ZERO)
    }

    /// Decodes flag bits; unknown bits are ignored.
    pub const fn from_bits(bits: u16) -> CommandFlags {
        CommandFlags {
            fua: bits & command_flags::FUA != 0,
            no_hole: bits & command_flags::NO_HOLE != 0,
            dont_fragment: bits & command_flags::DF != 0,
            one_extent: bits & command_flags::REQ_ONE != 0,
            fast_zero: bits & command_flags::FAST_ZERO != 0,
        }
    }
}

/// The fields of a request header after its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Flag bits: [`command_flags`].
    pub flags: u16,
    /// Number of the command.
    pub command: u16,
    /// The client's identifier of the request.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes; at most 32 bits without extended headers.
    pub length: u64,
}

impl RequestHeader {
    /// Parses a header of [`REQUEST_BYTES`] without checking its magic number.
    pub fn from_compact(bytes: &[u8; REQUEST_BYTES]) -> RequestHeader {
        let [_, _, _, _, f0, f1, c0, c1, rest @ ..] = *bytes;
        let [k0, k1, k2, k3, k4, k5, k6, k7, o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] = rest;
        RequestHeader {
            flags: u16::from_be_bytes([f0, f1]),
            command: u16::from_be_bytes([c0, c1]),
            cookie: u64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            length: u64::from(u32::from_be_bytes([l0, l1, l2, l3])),
        }
    }

    /// Parses a header of [`EXTENDED_REQUEST_BYTES`] without checking its magic number.
    pub fn from_extended(bytes: &[u8; EXTENDED_REQUEST_BYTES]) -> RequestHeader {
        let [m0, m1, m2, m3, head @ .., l0, l1, l2, l3, l4, l5, l6, l7] = *bytes;
        let mut compact = [0; REQUEST_BYTES];
        compact[..4].copy_from_slice(&[m0, m1, m2, m3]);
        compact[4..24].copy_from_slice(&head);
        let length = u64::from_be_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        RequestHeader { length, ..RequestHeader::from_compact(&compact) }
    }

    /// Appends a header of [`REQUEST_BYTES`]. Lengths beyond 32 bits are reduced to the maximum.
    pub fn write_compact(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        self.write_middle(out);
        out.extend_from_slice(&u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes());
    }

    /// Appends a header of [`EXTENDED_REQUEST_BYTES`].
    pub fn write_extended(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&EXTENDED_REQUEST_MAGIC.to_be_bytes());
        self.write_middle(out);
        out.extend_from_slice(&self.length.to_be_bytes());
    }

    fn write_middle(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.command.to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
    }
}

/// Reads numbers and strings from the front of a byte slice; returns None if bytes are missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a byte string preceded by its 32-bit length.
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).ok()?)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }
}

/// Returns the part of a text that fits into a string of the protocol: no NUL, at most
/// [`STRING_BYTES_MAX`] bytes, whole characters.
pub(crate) fn fitting(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    let mut end = text.len().min(STRING_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
