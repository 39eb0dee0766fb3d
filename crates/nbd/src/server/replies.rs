//! Writes replies of the transmission phase. They are appended to a `Vec<u8>`, so that one send can
//! carry many.

use crate::server::session::{Replies, Request, Session};
use crate::wire::{
    EXTENDED_REPLY_BYTES, EXTENDED_REPLY_MAGIC, EXTENTS_MAX, Errno, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_BYTES, STRUCTURED_REPLY_MAGIC, chunk, extent_flags, fitting,
};

/// Context id of `base:allocation` in replies to SET_META_CONTEXT and BLOCK_STATUS.
pub(super) const BASE_ALLOCATION_ID: u32 = 1;

/// Longest extent of a 32-bit descriptor: a multiple of every minimum block size.
const SHORT_EXTENT_MAX: u64 = 0xffff_0000;

/// An extent of a reply to BLOCK_STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes.
    pub length: u64,
    /// True if the extent is not allocated.
    pub hole: bool,
    /// True if the extent reads as zeroes.
    pub zero: bool,
}

impl Extent {
    fn flags(&self) -> u32 {
        (u32::from(self.hole) * extent_flags::HOLE) | (u32::from(self.zero) * extent_flags::ZERO)
    }
}

impl Session {
    /// Writes the reply of a successful request without data.
    pub fn ok(&self, request: &Request, out: &mut Vec<u8>) {
        match self.replies {
            Replies::Simple => simple(request, 0, out),
            _ => self.chunk(request, chunk::NONE, true, 0, out),
        }
    }

    /// Writes an error reply. The text is for humans, at most 4096 bytes; simple replies have no
    /// text.
    pub fn error(&self, request: &Request, errno: Errno, text: &str, out: &mut Vec<u8>) {
        if self.replies == Replies::Simple {
            return simple(request, errno.number(), out);
        }
        let text = fitting(text);
        self.chunk(request, chunk::ERROR, true, 6 + text.len() as u64, out);
        error_text(errno, text, out);
    }

    /// Writes an error at an offset within the request (structured and extended replies). A simple
    /// reply has no room for the offset and reports the error for the whole request.
    pub fn error_at(&self, request: &Request, errno: Errno, offset: u64, text: &str, last: bool, out: &mut Vec<u8>) {
        if self.replies == Replies::Simple {
            return simple(request, errno.number(), out);
        }
        let text = fitting(text);
        self.chunk(request, chunk::ERROR_OFFSET, last, 14 + text.len() as u64, out);
        error_text(errno, text, out);
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// Writes the header before the data of a successful READ in one piece: `request.length` bytes
    /// follow.
    pub fn data(&self, request: &Request, out: &mut Vec<u8>) {
        match self.replies {
            Replies::Simple => simple(request, 0, out),
            _ => self.content(request, request.offset, request.length, true, out),
        }
    }

    /// Writes the header of a data chunk of a READ (structured and extended replies only). `length`
    /// bytes (not 0) of data follow.
    pub fn data_chunk(&self, request: &Request, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        debug_assert!(self.replies != Replies::Simple, "a simple reply has one piece");
        debug_assert!(length > 0, "a chunk has at least a byte");
        self.content(request, offset, length.into(), last, out);
    }

    /// Writes a hole chunk of a READ (structured and extended replies only) of `length` bytes (not
    /// 0). No data follow.
    pub fn hole_chunk(&self, request: &Request, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        debug_assert!(self.replies != Replies::Simple, "a simple reply has one piece");
        debug_assert!(length > 0, "a chunk has at least a byte");
        self.chunk(request, chunk::OFFSET_HOLE, last, 12, out);
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
    }

    /// Writes the reply to BLOCK_STATUS, starting at the offset of the request. With REQ_ONE, only
    /// the first extent is sent, cut to the requested length. Adjacent extents of the same state
    /// are combined. Without extents, the state is unknown, which is reported as data.
    ///
    /// The reply may be partial: at most 2^20 extents and `payload_max` bytes of descriptors;
    /// without extended headers, it ends after an extent of 4 GiB. Clients continue with another
    /// request.
    pub fn block_status(&self, request: &Request, extents: &[Extent], out: &mut Vec<u8>) {
        let extended = self.replies == Replies::Extended;
        let (kind, fixed, each): (u16, usize, usize) =
            if extended { (chunk::BLOCK_STATUS_EXT, 8, 16) } else { (chunk::BLOCK_STATUS, 4, 8) };
        let start = out.len();
        self.chunk(request, kind, true, 0, out);
        out.extend_from_slice(&BASE_ALLOCATION_ID.to_be_bytes());
        if extended {
            out.extend_from_slice(&0u32.to_be_bytes());
        }
        let most =
            if request.flags.one_extent { 1 } else { EXTENTS_MAX.min(self.export.payload_max as usize / each).max(1) };
        let count = self.descriptors(request, extents, most, out);
        let length = fixed + each * count;
        let header = out.len() - length;
        debug_assert_eq!(header - start, self.chunk_header_bytes());
        if extended {
            patch(out, header - 8, &(length as u64).to_be_bytes());
            patch(out, header + 4, &(count as u32).to_be_bytes());
        } else {
            patch(out, header - 4, &(length as u32).to_be_bytes());
        }
    }

    /// Appends descriptors until the length of the request is covered, at least one. Returns the
    /// number of descriptors.
    fn descriptors(&self, request: &Request, extents: &[Extent], most: usize, out: &mut Vec<u8>) -> usize {
        let end = self.export.size.saturating_sub(request.offset).max(1);
        let reach = if request.flags.one_extent { end.min(request.length.max(1)) } else { end };
        let unknown = [Extent { length: request.length.max(1), hole: false, zero: false }];
        let known = extents.iter().any(|extent| extent.length > 0);
        let mut rest = if known { extents } else { &unknown }.iter().filter(|extent| extent.length > 0).peekable();
        let (mut covered, mut count) = (0u64, 0usize);
        while count < most && covered < request.length.max(1).min(reach) {
            let Some(first) = rest.next() else { break };
            let mut length = first.length;
            while let Some(next) = rest.next_if(|next| next.flags() == first.flags()) {
                length = length.saturating_add(next.length);
            }
            let whole = length.min(reach - covered);
            let short = if self.replies == Replies::Extended { whole } else { whole.min(SHORT_EXTENT_MAX) };
            self.descriptor(short, first.flags(), out);
            count += 1;
            covered += short;
            if short < whole {
                break;
            }
        }
        count
    }

    fn descriptor(&self, length: u64, flags: u32, out: &mut Vec<u8>) {
        if self.replies == Replies::Extended {
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&u64::from(flags).to_be_bytes());
        } else {
            out.extend_from_slice(&(length as u32).to_be_bytes());
            out.extend_from_slice(&flags.to_be_bytes());
        }
    }

    fn content(&self, request: &Request, offset: u64, length: u64, last: bool, out: &mut Vec<u8>) {
        self.chunk(request, chunk::OFFSET_DATA, last, length.saturating_add(8), out);
        out.extend_from_slice(&offset.to_be_bytes());
    }

    const fn chunk_header_bytes(&self) -> usize {
        match self.replies {
            Replies::Simple => SIMPLE_REPLY_BYTES,
            Replies::Structured => STRUCTURED_REPLY_BYTES,
            Replies::Extended => EXTENDED_REPLY_BYTES,
        }
    }

    /// Writes the header of a chunk. An extended header repeats the offset of the request.
    fn chunk(&self, request: &Request, kind: u16, last: bool, length: u64, out: &mut Vec<u8>) {
        let flags = if last { chunk::FLAG_DONE } else { 0 };
        if self.replies == Replies::Extended {
            let mut header = [0u8; EXTENDED_REPLY_BYTES];
            header[0..4].copy_from_slice(&EXTENDED_REPLY_MAGIC.to_be_bytes());
            header[4..6].copy_from_slice(&flags.to_be_bytes());
            header[6..8].copy_from_slice(&kind.to_be_bytes());
            header[8..16].copy_from_slice(&request.cookie.to_be_bytes());
            header[16..24].copy_from_slice(&request.offset.to_be_bytes());
            header[24..32].copy_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&header);
        } else {
            let mut header = [0u8; STRUCTURED_REPLY_BYTES];
            header[0..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
            header[4..6].copy_from_slice(&flags.to_be_bytes());
            header[6..8].copy_from_slice(&kind.to_be_bytes());
            header[8..16].copy_from_slice(&request.cookie.to_be_bytes());
            header[16..20].copy_from_slice(&(length as u32).to_be_bytes());
            out.extend_from_slice(&header);
        }
    }
}

fn simple(request: &Request, error: u32, out: &mut Vec<u8>) {
    let mut header = [0u8; SIMPLE_REPLY_BYTES];
    header[0..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&error.to_be_bytes());
    header[8..16].copy_from_slice(&request.cookie.to_be_bytes());
    out.extend_from_slice(&header);
}

fn error_text(errno: Errno, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&errno.number().to_be_bytes());
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn patch(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = out.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}
