//! Transmission: requests in. What goes out is in `replies.rs`.

use crate::server::Violation;
use crate::wire::{
    Command, CommandFlags, EXTENDED_REQUEST_BYTES, EXTENDED_REQUEST_MAGIC, Errno, REQUEST_BYTES, REQUEST_MAGIC,
    RequestHeader, command_flags as flag,
};
use crate::{Export, Limits};

/// How replies look on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// As in the first NBD.
    Simple,
    /// In chunks, with texts for errors and holes.
    Structured,
    /// Structured, with lengths of 64 bits in both directions.
    Extended,
}

/// A request as it was read and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub command: Command,
    /// Its marks.
    pub flags: CommandFlags,
    /// The client's name for it.
    pub cookie: u64,
    /// The first byte.
    pub offset: u64,
    /// How many bytes it is about.
    pub length: u64,
    /// How many bytes of payload follow the header, also when it is refused: they have to be read in any case.
    pub payload_bytes: u32,
    /// Why it is not carried out: beyond the end, not aligned, a flag that does not belong there, read-only, too long, with a text.
    pub refused: Option<(Errno, &'static str)>,
}

/// What the next bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not yet a whole header: so many bytes are needed in all.
    Need(usize),
    /// A request; its header took so many bytes.
    Request(Request, usize),
    /// The stream makes no sense any more: close.
    Violated(Violation),
}

/// A connection in transmission: what was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The export.
    pub export: Export,
    /// How replies look.
    pub replies: Replies,
    /// Whether `base:allocation` was chosen.
    pub base_allocation: bool,
    /// What is put up with.
    pub limits: Limits,
}

impl Session {
    /// Reads the next request's header. [`Command::Disconnect`] comes out as a request, and is never refused.
    ///
    /// A request that is [`refused`](Request::refused) is to be answered with [`Session::error`] once its payload was read.
    pub fn parse(&self, input: &[u8]) -> Parsed {
        if self.replies == Replies::Extended {
            match input.first_chunk() {
                Some(bytes) => self.request(input, RequestHeader::from_extended(bytes), EXTENDED_REQUEST_BYTES),
                None => self.part(input, EXTENDED_REQUEST_BYTES),
            }
        } else {
            match input.first_chunk() {
                Some(bytes) => self.request(input, RequestHeader::from_compact(bytes), REQUEST_BYTES),
                None => self.part(input, REQUEST_BYTES),
            }
        }
    }

    /// Less than a header: what is wrong already, or how much it takes.
    fn part(&self, input: &[u8], bytes: usize) -> Parsed {
        self.wrong_magic(input).map_or(Parsed::Need(bytes), Parsed::Violated)
    }

    fn wrong_magic(&self, input: &[u8]) -> Option<Violation> {
        let found = u32::from_be_bytes(*input.first_chunk()?);
        let wanted = if self.replies == Replies::Extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC };
        (found != wanted).then_some(Violation::Magic { found: found.into(), wanted: wanted.into() })
    }

    fn request(&self, input: &[u8], header: RequestHeader, header_bytes: usize) -> Parsed {
        if let Some(violation) = self.wrong_magic(input) {
            return Parsed::Violated(violation);
        }
        let command = Command::from_number(header.command);
        let payload = self.payload(command, &header);
        let most = self.export.payload_max.max(self.limits.discarded_bytes_max);
        let Some(payload_bytes) = u32::try_from(payload).ok().filter(|payload| *payload <= most) else {
            return Parsed::Violated(Violation::Payload { bytes: payload, bytes_max: most });
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

    /// How many bytes follow the header. With extended headers a flag alone says it, for any command; else it is the command.
    fn payload(&self, command: Command, header: &RequestHeader) -> u64 {
        let follows = match self.replies {
            Replies::Extended => header.flags & flag::PAYLOAD_LEN != 0,
            Replies::Simple | Replies::Structured => command == Command::Write,
        };
        if follows { header.length } else { 0 }
    }

    fn refusal(&self, command: Command, header: &RequestHeader) -> Option<(Errno, &'static str)> {
        let can = &self.export.abilities;
        if command == Command::Disconnect {
            return None;
        }
        if can.read_only && command.changes() {
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
            return Some((Errno::Inval, "a WRITE with extended headers must say that it has a payload"));
        }
        self.out_of_range(command, header)
    }

    fn unavailable(&self, command: Command) -> Option<&'static str> {
        let can = &self.export.abilities;
        match command {
            Command::Flush if !can.flush => Some("FLUSH was not advertised"),
            Command::Trim if !can.trim => Some("TRIM was not advertised"),
            Command::Cache if !can.cache => Some("CACHE was not advertised"),
            Command::WriteZeroes if !can.write_zeroes => Some("WRITE_ZEROES was not advertised"),
            Command::BlockStatus if !self.base_allocation => Some("no metadata context was chosen for this export"),
            Command::Other(_) => Some("the command is unknown"),
            _ => None,
        }
    }

    /// The flags that a command may carry here. FUA is allowed on all, once it is advertised.
    fn flags_allowed(&self, command: Command) -> u16 {
        let can = &self.export.abilities;
        let own = match command {
            Command::Read if self.replies != Replies::Simple => flag::DF,
            Command::Write if self.replies == Replies::Extended => flag::PAYLOAD_LEN,
            Command::WriteZeroes if can.fast_zero => flag::NO_HOLE | flag::FAST_ZERO,
            Command::WriteZeroes => flag::NO_HOLE,
            Command::BlockStatus => flag::REQ_ONE,
            _ => 0,
        };
        if can.fua { own | flag::FUA } else { own }
    }

    fn out_of_range(&self, command: Command, header: &RequestHeader) -> Option<(Errno, &'static str)> {
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
        // A chunk's length of 32 bits counts the eight bytes of its offset, too.
        if length > u64::from(self.export.payload_max.min(u32::MAX - 8)) {
            return self.too_long(command);
        }
        None
    }

    /// EOVERFLOW is for replies that the server might have cut in pieces; where the client broke the limit that it was told, it is EINVAL.
    fn too_long(&self, command: Command) -> Option<(Errno, &'static str)> {
        let errno = match command {
            Command::Read if self.replies != Replies::Simple => Errno::Overflow,
            Command::Read | Command::Write => Errno::Inval,
            _ => return None,
        };
        Some((errno, "the length is beyond the maximum payload size"))
    }
}
