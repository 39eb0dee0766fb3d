//! Sends requests of the transmission phase. Replies are parsed in `replies.rs`.

use std::collections::BTreeMap;

use crate::Abilities;
use crate::client::decoder::Decoder;
use crate::client::export_info::ExportInfo;
use crate::server::Replies;
use crate::wire::{Command, CommandFlags, RequestHeader, command_flags, transmission_flags};

/// A metadata context that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Id of the context, assigned by the server.
    pub id: u32,
    /// Name of the context.
    pub name: String,
}

/// The transmission phase of a connection: negotiated options and requests in flight.
#[derive(Debug)]
pub struct Session {
    /// Properties of the export.
    pub info: ExportInfo,
    /// Format of the replies.
    pub replies: Replies,
    /// Metadata contexts of BLOCK_STATUS.
    pub contexts: Vec<Context>,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) decoder: Decoder,
    next_cookie: u64,
}

/// A request without a complete reply.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub command: Command,
    pub flags: CommandFlags,
    pub offset: u64,
    pub length: u64,
    /// Received content: separate ranges, from start to end.
    pub covered: BTreeMap<u64, u64>,
    /// Number of pieces of content.
    pub contents: u32,
    /// Ids of the contexts that were received.
    pub statuses: Vec<u32>,
    /// Offsets of errors.
    pub error_offsets: Vec<u64>,
    pub error: Option<crate::wire::Errno>,
}

/// Error of an invalid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The server did not advertise the command.
    #[error("the server has not advertised {0:?}")]
    Command(Command),
    /// A flag that the server did not advertise or that is invalid for the command.
    #[error("a flag was not advertised by the server or does not belong to the command")]
    Flag,
    /// The export is read-only.
    #[error("the export is read-only")]
    ReadOnly,
    /// The range is empty, beyond the end, or too long.
    #[error("the range is empty, beyond the end or longer than can be sent")]
    Range,
    /// Offset or length is not a multiple of the minimum block size.
    #[error("offset or length is not a multiple of the minimum block size")]
    Alignment,
}

/// A request of a client: what to do with which range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    /// Command of the request.
    pub command: Command,
    /// Flags of the request.
    pub flags: CommandFlags,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
}

impl Session {
    /// Creates a session with negotiated options.
    pub fn new(info: ExportInfo, replies: Replies, contexts: Vec<Context>) -> Session {
        Session { info, replies, contexts, pending: BTreeMap::new(), decoder: Decoder::default(), next_cookie: 1 }
    }

    /// Features of the export.
    pub fn abilities(&self) -> Abilities {
        Abilities { block_status: !self.contexts.is_empty(), ..Abilities::from_flags(self.info.flags) }
    }

    /// Number of requests without a complete reply.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Appends a request; the caller appends the data of a WRITE. Returns its unique cookie.
    ///
    /// # Errors
    /// Fails if the protocol forbids the request.
    pub fn request(&mut self, request: &RequestSpec, out: &mut Vec<u8>) -> Result<u64, RequestError> {
        let RequestSpec { command, flags, offset, length } = *request;
        self.check(command, flags, offset, length)?;
        let payload = command == Command::Write && self.replies == Replies::Extended;
        let bits = flags.bits() | if payload { command_flags::PAYLOAD_LEN } else { 0 };
        Ok(self.request_unchecked(command, bits, offset, length, out))
    }

    /// Appends a request without checks, for tests of servers.
    pub fn request_unchecked(
        &mut self,
        command: Command,
        flags: u16,
        offset: u64,
        length: u64,
        out: &mut Vec<u8>,
    ) -> u64 {
        let cookie = self.next_cookie;
        self.next_cookie = self.next_cookie.wrapping_add(1);
        let header = RequestHeader { flags, command: command.number(), cookie, offset, length };
        if self.replies == Replies::Extended {
            header.write_extended(out);
        } else {
            header.write_compact(out);
        }
        if command != Command::Disconnect {
            let pending = Pending {
                command,
                flags: CommandFlags::from_bits(flags),
                offset,
                length,
                covered: BTreeMap::new(),
                contents: 0,
                statuses: Vec::new(),
                error_offsets: Vec::new(),
                error: None,
            };
            self.pending.insert(cookie, pending);
        }
        cookie
    }

    /// Appends the request that ends the connection. It has no reply, and no request may follow.
    pub fn disconnect(&mut self, out: &mut Vec<u8>) {
        self.request_unchecked(Command::Disconnect, 0, 0, 0, out);
    }

    /// Returns the minimum and maximum sizes of requests in bytes: those of the server, or the
    /// defaults of the protocol.
    pub fn size_limits(&self) -> (u32, u32) {
        self.info.block_sizes.map_or((1, 1 << 25), |(min, _, most)| (min, most))
    }

    fn check(&self, command: Command, flags: CommandFlags, offset: u64, length: u64) -> Result<(), RequestError> {
        let can = self.abilities();
        let advertised = match command {
            Command::Read | Command::Write | Command::Disconnect => true,
            Command::Flush => can.flush,
            Command::Trim => can.trim,
            Command::Cache => can.cache,
            Command::WriteZeroes => can.write_zeroes,
            Command::BlockStatus => can.block_status,
            Command::Other(_) => false,
        };
        if !advertised {
            return Err(RequestError::Command(command));
        }
        if can.read_only && command.changes() {
            return Err(RequestError::ReadOnly);
        }
        let df = self.info.flags & transmission_flags::SEND_DF != 0;
        let allowed = CommandFlags {
            fua: can.fua,
            no_hole: command == Command::WriteZeroes,
            dont_fragment: command == Command::Read && df,
            one_extent: command == Command::BlockStatus,
            fast_zero: command == Command::WriteZeroes && can.fast_zero,
        };
        if flags.bits() & !allowed.bits() != 0 {
            return Err(RequestError::Flag);
        }
        if matches!(command, Command::Flush | Command::Disconnect) {
            return if offset == 0 && length == 0 { Ok(()) } else { Err(RequestError::Range) };
        }
        let (min, most) = self.size_limits();
        let carried = matches!(command, Command::Read | Command::Write);
        let too_long =
            (carried && length > most.into()) || (self.replies != Replies::Extended && length > u32::MAX.into());
        if length == 0 || too_long || offset.checked_add(length).is_none_or(|end| end > self.info.size) {
            return Err(RequestError::Range);
        }
        if !(offset | length).is_multiple_of(min.max(1).into()) {
            return Err(RequestError::Alignment);
        }
        Ok(())
    }
}
