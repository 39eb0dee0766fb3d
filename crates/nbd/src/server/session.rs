//! Parses and checks the requests of the transmission phase. Replies are in `replies.rs`.

use crate::server::violation::Violation;
use crate::wire::{
    Command, CommandFlags, EXTENDED_REQUEST_BYTES, EXTENDED_REQUEST_MAGIC, Errno, REQUEST_BYTES, REQUEST_MAGIC,
    RequestHeader, command_flags as flag,
};
use crate::{Export, Limits};

/// Format of the replies on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Simple replies, as in the first version of NBD.
    Simple,
    /// Structured replies: chunks with error texts and holes.
    Structured,
    /// Structured replies with 64-bit lengths in both directions (extended headers).
    Extended,
}

/// A parsed and checked request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Command of the request.
    pub command: Command,
    /// Flags of the request.
    pub flags: CommandFlags,
    /// The client's identifier of the request.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
    /// Length in bytes of the payload after the header. The server must read the payload even if it
    /// refuses the request.
    pub payload_bytes: u32,
    /// The error and its text if the request must be refused: for the range, alignment, length,
    /// flags or command, or for a write to a read-only export.
    pub refused: Option<(Errno, &'static str)>,
}

/// Result of parsing the next bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The header is incomplete: parse again with at least this total number of bytes.
    Need(usize),
    /// A request, and the length of its header in bytes.
    Request(Request, usize),
    /// The stream violates the protocol: close the connection.
    Violated(Violation),
}

/// The transmission phase of a connection, with the negotiated options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Export of the connection.
    pub export: Export,
    /// Format of the replies.
    pub replies: Replies,
    /// True if the client selected the metadata context `base:allocation`, which BLOCK_STATUS
    /// needs.
    pub base_allocation: bool,
    /// Limits of the connection.
    pub limits: Limits,
}

impl Session {
    /// Parses the header at the start of `input`. [`Command::Disconnect`] is returned as a request
    /// and is never refused.
    ///
    /// The server must read the payload of a [`refused`](Request::refused) request, and then reply
    /// with [`Session::error`].
    pub fn parse(&self, input: &[u8]) -> Parsed {
        if self.replies == Replies::Extended {
            match input.first_chunk() {
                Some(bytes) => self.request(input, RequestHeader::from_extended(bytes), EXTENDED_REQUEST_BYTES),
                None => self.incomplete(input, EXTENDED_REQUEST_BYTES),
            }
        } else {
            match input.first_chunk() {
                Some(bytes) => self.request(input, RequestHeader::from_compact(bytes), REQUEST_BYTES),
                None => self.incomplete(input, REQUEST_BYTES),
            }
        }
    }

    /// Handles an incomplete header: reports a wrong magic number, or the number of bytes needed.
    fn incomplete(&self, input: &[u8], bytes: usize) -> Parsed {
        self.wrong_magic(input).map_or(Parsed::Need(bytes), Parsed::Violated)
    }

    /// Returns the violation if the magic number is complete and wrong.
    fn wrong_magic(&self, input: &[u8]) -> Option<Violation> {
        let found = u32::from_be_bytes(*input.first_chunk()?);
        let wanted = if self.replies == Replies::Extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC };
        (found != wanted).then_some(Violation::Magic { found: found.into(), wanted: wanted.into() })
    }

    /// Checks a complete header.
    fn request(&self, input: &[u8], header: RequestHeader, header_bytes: usize) -> Parsed {
        if let Some(violation) = self.wrong_magic(input) {
            return Parsed::Violated(violation);
        }
        let command = Command::from_number(header.command);
        let payload = self.payload(command, &header);
        // The payload of a refused request is read and discarded, up to a limit of its own.
        let payload_max = self.export.payload_max.max(self.limits.discarded_bytes_max);
        let Some(payload_bytes) = u32::try_from(payload).ok().filter(|payload| *payload <= payload_max) else {
            return Parsed::Violated(Violation::Payload { bytes: payload, bytes_max: payload_max });
        };
        let request = Request {
            command,
            flags: CommandFlags::from_bits(header.flags),
            cookie: header.cookie,
            offset: header.offset,
            length: header.length,
            payload_bytes,
            refused: self.refusal(command, &header),
        };
        Parsed::Request(request, header_bytes)
    }

    /// Returns the length of the payload in bytes. With extended headers, a flag announces a
    /// payload of any command. Otherwise only WRITE has a payload.
    fn payload(&self, command: Command, header: &RequestHeader) -> u64 {
        let follows = match self.replies {
            Replies::Extended => header.flags & flag::PAYLOAD_LEN != 0,
            Replies::Simple | Replies::Structured => command == Command::Write,
        };
        if follows { header.length } else { 0 }
    }

    /// Returns the error of a request that must be refused, or `None`.
    fn refusal(&self, command: Command, header: &RequestHeader) -> Option<(Errno, &'static str)> {
        let abilities = &self.export.abilities;
        if command == Command::Disconnect {
            return None;
        }
        if abilities.read_only && command.changes() {
            return Some((Errno::Perm, "the export is read-only"));
        }
        if header.flags & !self.flags_allowed(command) != 0 {
            return Some((Errno::Inval, "a flag is unknown, does not belong to the command or was not advertised"));
        }
        if let Some(text) = self.unavailable(command) {
            return Some((Errno::Inval, text));
        }
        if command == Command::Flush {
            let zero = header.offset == 0 && header.length == 0;
            return (!zero).then_some((Errno::Inval, "FLUSH has an offset or a length"));
        }
        if command == Command::Write && self.replies == Replies::Extended && header.flags & flag::PAYLOAD_LEN == 0 {
            return Some((Errno::Inval, "a WRITE with extended headers lacks the flag PAYLOAD_LEN"));
        }
        self.range_error(command, header)
    }

    /// Returns the reason if the command is unknown or was not negotiated.
    fn unavailable(&self, command: Command) -> Option<&'static str> {
        let abilities = &self.export.abilities;
        match command {
            Command::Flush if !abilities.flush => Some("FLUSH was not advertised"),
            Command::Trim if !abilities.trim => Some("TRIM was not advertised"),
            Command::Cache if !abilities.cache => Some("CACHE was not advertised"),
            Command::WriteZeroes if !abilities.write_zeroes => Some("WRITE_ZEROES was not advertised"),
            Command::BlockStatus if !self.base_allocation => Some("no metadata context was chosen for this export"),
            Command::Other(_) => Some("the command is unknown"),
            _ => None,
        }
    }

    /// Returns the bits of the flags that a command may have. FUA is allowed on all commands if the
    /// export advertises it.
    fn flags_allowed(&self, command: Command) -> u16 {
        let abilities = &self.export.abilities;
        let own = match command {
            Command::Read if self.replies != Replies::Simple => flag::DF,
            Command::Write if self.replies == Replies::Extended => flag::PAYLOAD_LEN,
            Command::WriteZeroes if abilities.fast_zero => flag::NO_HOLE | flag::FAST_ZERO,
            Command::WriteZeroes => flag::NO_HOLE,
            Command::BlockStatus => flag::REQ_ONE,
            _ => 0,
        };
        if abilities.fua { own | flag::FUA } else { own }
    }

    /// Returns the error of a range that is empty, beyond the end, misaligned or too long.
    fn range_error(&self, command: Command, header: &RequestHeader) -> Option<(Errno, &'static str)> {
        let (offset, length) = (header.offset, header.length);
        if length == 0 {
            return Some((Errno::Inval, "the length is 0"));
        }
        if offset.checked_add(length).is_none_or(|end| end > self.export.size) {
            let errno = match command {
                Command::Write | Command::WriteZeroes => Errno::NoSpc,
                _ => Errno::Inval,
            };
            return Some((errno, "the range is not within the export"));
        }
        let unit = u64::from(self.export.block_min.max(1));
        if (offset | length) & (unit - 1) != 0 {
            return Some((Errno::Inval, "offset or length is not a multiple of the minimum block size"));
        }
        // The 32-bit length of a chunk includes the eight bytes of its offset.
        if length > u64::from(self.export.payload_max.min(u32::MAX - 8)) {
            return self.too_long(command);
        }
        None
    }

    /// Returns the error of a command whose length exceeds the maximum payload: EOVERFLOW for a
    /// READ whose reply could consist of several chunks, EINVAL for WRITE and for a READ with a
    /// simple reply. Other commands transfer no data and have no such limit.
    fn too_long(&self, command: Command) -> Option<(Errno, &'static str)> {
        let errno = match command {
            Command::Read if self.replies != Replies::Simple => Errno::Overflow,
            Command::Read | Command::Write => Errno::Inval,
            _ => return None,
        };
        Some((errno, "the length is beyond the maximum payload size"))
    }
}
