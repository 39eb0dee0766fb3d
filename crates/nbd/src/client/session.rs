//! Transmission as a client sees it: requests out. What comes in is in `replies.rs`.

use std::collections::BTreeMap;

use crate::Abilities;
use crate::client::Told;
use crate::client::replies::Decoder;
use crate::server::Replies;
use crate::wire::{Command, CommandFlags, RequestHeader, command_flags, transmission_flags};

/// A metadata context that a server chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The server's number for it.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// A connection in transmission: what was agreed on, and what is under way.
#[derive(Debug)]
pub struct Session {
    /// What the server told of the export.
    pub told: Told,
    /// How replies look.
    pub replies: Replies,
    /// The metadata contexts that BLOCK_STATUS tells of.
    pub contexts: Vec<Context>,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) decoder: Decoder,
    next_cookie: u64,
}

/// A request that is not answered, or not wholly.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub command: Command,
    pub flags: CommandFlags,
    pub offset: u64,
    pub length: u64,
    /// What content has come: ranges that do not touch, by their beginning.
    pub covered: BTreeMap<u64, u64>,
    /// Pieces of content.
    pub contents: u32,
    /// Contexts that were told.
    pub statuses: Vec<u32>,
    /// Where errors are.
    pub error_offsets: Vec<u64>,
    pub error: Option<crate::wire::Errno>,
}

/// What a client must not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// The server has not advertised the command.
    #[error("the server has not advertised {0:?}")]
    Command(Command),
    /// A flag that the server has not advertised, or that is not for the command.
    #[error("a flag that the server has not advertised or that does not belong to the command")]
    Flag,
    /// The export is read-only.
    #[error("the export is read-only")]
    ReadOnly,
    /// Beyond the end, or nothing, or more than can be said.
    #[error("the range is empty, beyond the end or longer than can be sent")]
    Range,
    /// Not a multiple of the minimum block size.
    #[error("offset or length is not a multiple of the minimum block size")]
    Alignment,
}

impl Session {
    /// A connection on which this was agreed.
    pub fn new(told: Told, replies: Replies, contexts: Vec<Context>) -> Session {
        Session { told, replies, contexts, pending: BTreeMap::new(), decoder: Decoder::default(), next_cookie: 1 }
    }

    /// What the export can do.
    pub fn abilities(&self) -> Abilities {
        Abilities { block_status: !self.contexts.is_empty(), ..Abilities::from_flags(self.told.flags) }
    }

    /// How many requests wait for their replies' ends.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Appends a request; the data of a WRITE are to follow. Tells its cookie, which no request before had.
    ///
    /// # Errors
    /// When the protocol forbids to ask for it.
    pub fn request(
        &mut self,
        command: Command,
        flags: CommandFlags,
        offset: u64,
        length: u64,
        out: &mut Vec<u8>,
    ) -> Result<u64, Misuse> {
        self.check(command, flags, offset, length)?;
        let payload = command == Command::Write && self.replies == Replies::Extended;
        let bits = flags.bits() | if payload { command_flags::PAYLOAD_LEN } else { 0 };
        Ok(self.request_unchecked(command, bits, offset, length, out))
    }

    /// Appends a request as it is, whatever the protocol says of it; for tests of servers.
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

    /// Appends the request that ends the connection; nothing may be sent after it, and it has no reply.
    pub fn disconnect(&mut self, out: &mut Vec<u8>) {
        self.request_unchecked(Command::Disconnect, 0, 0, 0, out);
    }

    /// Minimum and maximum sizes of requests in bytes: what the server told, or the protocol's defaults.
    pub fn size_limits(&self) -> (u32, u32) {
        self.told.block_sizes.map_or((1, 1 << 25), |(min, _, most)| (min, most))
    }

    fn check(&self, command: Command, flags: CommandFlags, offset: u64, length: u64) -> Result<(), Misuse> {
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
            return Err(Misuse::Command(command));
        }
        if can.read_only && command.changes() {
            return Err(Misuse::ReadOnly);
        }
        let df = self.told.flags & transmission_flags::SEND_DF != 0;
        let allowed = CommandFlags {
            fua: can.fua,
            no_hole: command == Command::WriteZeroes,
            dont_fragment: command == Command::Read && df,
            one_extent: command == Command::BlockStatus,
            fast_zero: command == Command::WriteZeroes && can.fast_zero,
        };
        if flags.bits() & !allowed.bits() != 0 {
            return Err(Misuse::Flag);
        }
        if matches!(command, Command::Flush | Command::Disconnect) {
            return if offset == 0 && length == 0 { Ok(()) } else { Err(Misuse::Range) };
        }
        let (min, most) = self.size_limits();
        let carried = matches!(command, Command::Read | Command::Write);
        let too_long =
            (carried && length > most.into()) || (self.replies != Replies::Extended && length > u32::MAX.into());
        if length == 0 || too_long || offset.checked_add(length).is_none_or(|end| end > self.told.size) {
            return Err(Misuse::Range);
        }
        if !(offset | length).is_multiple_of(min.max(1).into()) {
            return Err(Misuse::Alignment);
        }
        Ok(())
    }
}
