//! Transmission: requests in, replies out.

use crate::server::Violation;
use crate::wire::{Command, CommandFlags, Errno};
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

/// An extent for BLOCK_STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its length in bytes.
    pub length: u64,
    /// Not allocated.
    pub hole: bool,
    /// Reads as zeroes.
    pub zero: bool,
}

/// A connection in transmission: what was agreed on.
#[derive(Clone, Debug)]
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
    /// Reads the next request's header. [`Command::Disconnect`] comes out as a request.
    pub fn parse(&self, input: &[u8]) -> Parsed {
        let _ = input;
        Parsed::Need(28)
    }

    /// The answer to anything that went well and has no data.
    pub fn ok(&self, request: &Request, out: &mut Vec<u8>) {
        let _ = (request, out);
    }

    /// The answer to anything that did not. The text is for people; it is left out where the reply has no room for one.
    pub fn error(&self, request: &Request, errno: Errno, text: &str, out: &mut Vec<u8>) {
        let _ = (request, errno, text, out);
    }

    /// What stands before the data of a READ that went well in one piece: `request.length` bytes of data follow.
    pub fn data(&self, request: &Request, out: &mut Vec<u8>) {
        let _ = (request, out);
    }

    /// One chunk of a READ in several (structured and extended replies only): data, of which `length` bytes follow.
    pub fn data_chunk(&self, request: &Request, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        let _ = (request, offset, length, last, out);
    }

    /// One chunk of a READ in several: a hole. Nothing follows.
    pub fn hole_chunk(&self, request: &Request, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        let _ = (request, offset, length, last, out);
    }

    /// The whole answer to BLOCK_STATUS, beginning at the request's offset. At least one extent; with REQ_ONE the first alone is told, cut to the length
    /// asked for.
    pub fn block_status(&self, request: &Request, extents: &[Extent], out: &mut Vec<u8>) {
        let _ = (request, extents, out);
    }
}
