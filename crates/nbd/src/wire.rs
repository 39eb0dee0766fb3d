//! Numbers of the protocol, and the headers of requests.
//!
//! All numbers are sent most significant byte first.

use std::fmt;

/// "NBDMAGIC": the first eight bytes that a server sends.
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": the next eight of a newstyle server, and the first of each option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// What an oldstyle server sends in that place.
pub const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Begins a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins a request with extended headers.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Begins a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Begins a chunk of an extended reply.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an extended request's header.
pub const EXTENDED_REQUEST_BYTES: usize = 32;
/// Bytes of a simple reply's header.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of a structured chunk's header.
pub const STRUCTURED_REPLY_BYTES: usize = 20;
/// Bytes of an extended chunk's header.
pub const EXTENDED_REPLY_BYTES: usize = 32;
/// Bytes of an option's header.
pub const OPTION_BYTES: usize = 16;
/// Bytes of the header of a reply to an option.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Zeroes that end the reply to EXPORT_NAME, unless both sides do without.
pub const EXPORT_NAME_ZEROES: usize = 124;
/// The longest string, in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// The most extents in a chunk.
pub const EXTENTS_MAX: usize = 1 << 20;
/// The one metadata context that the protocol itself defines.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// Flags that the server greets with.
pub mod handshake_flags {
    /// Options other than EXPORT_NAME are understood.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The zeroes after EXPORT_NAME can be left out.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Flags that the client answers with.
pub mod client_flags {
    /// Replies to options are understood.
    pub const FIXED_NEWSTYLE: u32 = 1 << 0;
    /// The zeroes after EXPORT_NAME are to be left out.
    pub const NO_ZEROES: u32 = 1 << 1;
}

/// What an export can do, as the server tells it.
pub mod transmission_flags {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The medium rotates.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES and NO_HOLE.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// DF: structured replies in one piece.
    pub const SEND_DF: u16 = 1 << 7;
    /// Flushes cover what other connections wrote.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// FAST_ZERO.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options.
pub mod option {
    /// Enters transmission; cannot be refused but by closing.
    pub const EXPORT_NAME: u32 = 1;
    /// Goodbye.
    pub const ABORT: u32 = 2;
    /// Which exports are there?
    pub const LIST: u32 = 3;
    /// TLS from here on.
    pub const STARTTLS: u32 = 5;
    /// What is this export like?
    pub const INFO: u32 = 6;
    /// Enters transmission.
    pub const GO: u32 = 7;
    /// Replies in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Which metadata contexts are there?
    pub const LIST_META_CONTEXT: u32 = 9;
    /// These metadata contexts, please.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Lengths of 64 bits in both directions.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options.
pub mod rep {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// All errors have it.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// An unknown option.
    pub const ERR_UNSUP: u32 = ERROR_BIT | 1;
    /// It is known, and not allowed.
    pub const ERR_POLICY: u32 = ERROR_BIT | 2;
    /// It makes no sense.
    pub const ERR_INVALID: u32 = ERROR_BIT | 3;
    /// Not on this platform.
    pub const ERR_PLATFORM: u32 = ERROR_BIT | 4;
    /// Not without TLS.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT | 5;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = ERROR_BIT | 6;
    /// The server is going away.
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT | 7;
    /// Not without asking for block sizes.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT | 8;
    /// The request or its reply is too large.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT | 9;
    /// Not without extended headers.
    pub const ERR_EXT_HEADER_REQD: u32 = ERROR_BIT | 10;

    /// The protocol's name of an error reply.
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

/// What INFO and GO can tell.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// The canonical name.
    pub const NAME: u16 = 1;
    /// A line for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum sizes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Marks of a request.
pub mod command_flags {
    /// Durable before it is answered.
    pub const FUA: u16 = 1 << 0;
    /// Zeroes are to be allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes only if that is fast.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// With extended headers: the length is that of a payload that follows.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunks of structured and extended replies.
pub mod chunk {
    /// Marks the last chunk of a reply.
    pub const FLAG_DONE: u16 = 1 << 0;
    /// Nothing more to say.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents with lengths of 32 bits.
    pub const BLOCK_STATUS: u16 = 5;
    /// Extents with lengths of 64 bits.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// All errors have it.
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

/// An error as the protocol numbers it.
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
    /// The server is going away.
    Shutdown = 108,
}

impl Errno {
    /// All of them, by number.
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

    /// The number that is sent.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// What a number in a reply means. Numbers that the protocol does not define are to be taken as EINVAL.
    pub fn from_number(number: u32) -> Errno {
        Errno::ALL.into_iter().find(|errno| errno.number() == number).unwrap_or(Errno::Inval)
    }

    /// The protocol's number for an error of Linux: EDQUOT and EFBIG are ENOSPC, EROFS and EACCES are EPERM, and what has no number
    /// of its own is EIO.
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

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Data, please.
    Read,
    /// Data to be kept.
    Write,
    /// The client is leaving.
    Disconnect,
    /// All that was written and answered is to be durable.
    Flush,
    /// A range is not needed any more.
    Trim,
    /// A range will be read soon.
    Cache,
    /// A range is to read as zeroes.
    WriteZeroes,
    /// What is known of a range.
    BlockStatus,
    /// Nothing that the protocol knows; a server refuses it.
    Other(u16),
}

impl Command {
    /// The number that is sent.
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

    /// What a number means.
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

    /// Whether it changes what an export holds.
    pub const fn changes(self) -> bool {
        matches!(self, Command::Write | Command::Trim | Command::WriteZeroes)
    }
}

/// Marks of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandFlags {
    /// Durable before it is answered.
    pub fua: bool,
    /// Zeroes are to be allocated, not punched.
    pub no_hole: bool,
    /// The reply in one chunk.
    pub dont_fragment: bool,
    /// One extent.
    pub one_extent: bool,
    /// Zeroes only if that is faster than writing them.
    pub fast_zero: bool,
}

impl CommandFlags {
    /// The bits that are sent.
    pub const fn bits(self) -> u16 {
        (self.fua as u16 * command_flags::FUA)
            | (self.no_hole as u16 * command_flags::NO_HOLE)
            | (self.dont_fragment as u16 * command_flags::DF)
            | (self.one_extent as u16 * command_flags::REQ_ONE)
            | (self.fast_zero as u16 * command_flags::FAST_ZERO)
    }

    /// What bits mean; those that are unknown are not told.
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

/// A request's header as it stands on the wire, after its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Marks: [`command_flags`].
    pub flags: u16,
    /// The command's number.
    pub command: u16,
    /// The client's name for it.
    pub cookie: u64,
    /// The first byte.
    pub offset: u64,
    /// Bytes; at most 32 bits where headers are not extended.
    pub length: u64,
}

impl RequestHeader {
    /// Reads a header of [`REQUEST_BYTES`]; its magic number is not looked at.
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

    /// Reads a header of [`EXTENDED_REQUEST_BYTES`]; its magic number is not looked at.
    pub fn from_extended(bytes: &[u8; EXTENDED_REQUEST_BYTES]) -> RequestHeader {
        let [m0, m1, m2, m3, head @ .., l0, l1, l2, l3, l4, l5, l6, l7] = *bytes;
        let mut compact = [0; REQUEST_BYTES];
        compact[..4].copy_from_slice(&[m0, m1, m2, m3]);
        compact[4..24].copy_from_slice(&head);
        let length = u64::from_be_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        RequestHeader { length, ..RequestHeader::from_compact(&compact) }
    }

    /// Appends a header of [`REQUEST_BYTES`]. Lengths beyond 32 bits are cut: they cannot be said.
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

/// Reads numbers and strings from the front of bytes; what is not there is `None`.
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

    /// Bytes whose number stands before them in 32 bits.
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

/// As much of a text as the protocol allows in a string: no NUL, at most [`STRING_BYTES_MAX`] bytes, whole characters.
pub(crate) fn fitting(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    let mut end = text.len().min(STRING_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
