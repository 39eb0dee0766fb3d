//! Parses replies: data, holes, errors and extents in order of arrival, each checked against its
//! request.

use crate::client::decoder::{ChunkHeader, ProtocolError, Stage};
use crate::client::session::{Context, Pending, Session};
use crate::server::Replies;
use crate::wire::{
    Command, EXTENDED_REPLY_BYTES, EXTENDED_REPLY_MAGIC, EXTENTS_MAX, Errno, Reader, SIMPLE_REPLY_BYTES,
    SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX, STRUCTURED_REPLY_BYTES, STRUCTURED_REPLY_MAGIC, chunk,
};

/// Maximum number of separate ranges of a READ's content, and of errors at offsets.
const PIECES_MAX: usize = 1 << 16;
/// Maximum length of the payload of an error chunk: numbers, a string, and a reserve for unknown
/// types.
const ERROR_BYTES_MAX: u64 = 2 * STRING_BYTES_MAX as u64;

/// An item of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Data of a READ, in the pieces in which they arrive.
    Data {
        /// Cookie of the request.
        cookie: u64,
        /// Offset in the export.
        offset: u64,
        /// The data.
        bytes: &'a [u8],
    },
    /// Zeroes of a READ.
    Hole {
        /// Cookie of the request.
        cookie: u64,
        /// Offset in the export.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Extents of a metadata context, starting at the offset of the request.
    Extents {
        /// Cookie of the request.
        cookie: u64,
        /// Id of the context.
        context: u32,
        /// The extents.
        extents: Vec<Status>,
    },
    /// An error of a request.
    Error {
        /// Cookie of the request.
        cookie: u64,
        /// Error number.
        errno: Errno,
        /// Offset of the error, if the server reports it.
        offset: Option<u64>,
        /// Error text of the server.
        text: String,
    },
    /// The end of a reply.
    Done {
        /// Cookie of the request.
        cookie: u64,
        /// Command of the request.
        command: Command,
        /// The first error, if there was any.
        result: Result<(), Errno>,
    },
}

/// An extent of a metadata context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Length in bytes.
    pub length: u64,
    /// Status flags; for `base:allocation` see [`extent_flags`](crate::wire::extent_flags).
    pub flags: u64,
}

/// The data of a READ that the next bytes of the server are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingData {
    /// Cookie of the request.
    pub cookie: u64,
    /// Offset of the next byte in the export.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Session {
    /// Returns the data that the next bytes of the server are; `None` if a header is next. The
    /// caller may receive them without [`Session::next`], and then calls
    /// [`Session::skip_data`].
    pub fn incoming_data(&self) -> Option<IncomingData> {
        match self.decoder.stage {
            Stage::Data { cookie, offset, left, .. } => Some(IncomingData { cookie, offset, length: left }),
            _ => None,
        }
    }

    /// Counts bytes of [`Session::incoming_data`] that the caller has received itself; at most
    /// those are counted.
    pub fn skip_data(&mut self, bytes: u64) {
        if let Stage::Data { cookie, offset, left, last } = self.decoder.stage {
            self.advance_data(cookie, offset, left, last, bytes.min(left));
        }
    }

    /// Processes input of the server. Returns the number of consumed bytes and the next event. Call
    /// it again with the remaining bytes until it returns no event; the input is then consumed. It
    /// buffers only what precedes content: a header, an error text (8 KiB) or extents (16 MiB).
    ///
    /// # Errors
    /// Fails if the server violates the protocol.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Option<Event<'a>>), ProtocolError> {
        if let Some(broken) = &self.decoder.broken {
            return Err(broken.clone());
        }
        let mut rest = input;
        match self.step(&mut rest) {
            Ok(event) => Ok((input.len() - rest.len(), event)),
            Err(broken) => {
                self.decoder.broken = Some(broken.clone());
                Err(broken)
            }
        }
    }

    /// Memory for incomplete input in bytes.
    pub fn buffered_bytes(&self) -> usize {
        self.decoder.unit.capacity()
    }

    fn step<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Option<Event<'a>>, ProtocolError> {
        loop {
            if let Some(cookie) = self.decoder.finished.take() {
                return self.finish(cookie).map(Some);
            }
            if let Stage::Data { cookie, offset, left, last } = self.decoder.stage {
                return Ok(self.data(cookie, offset, left, last, rest));
            }
            let wanted = match self.decoder.stage {
                Stage::Magic => 4,
                Stage::Header(SIMPLE_REPLY_MAGIC) => SIMPLE_REPLY_BYTES - 4,
                Stage::Header(STRUCTURED_REPLY_MAGIC) => STRUCTURED_REPLY_BYTES - 4,
                Stage::Header(_) => EXTENDED_REPLY_BYTES - 4,
                Stage::Payload(ChunkHeader { kind: chunk::OFFSET_DATA, .. }) => 8,
                Stage::Payload(head) => head.bytes as usize,
                Stage::Data { .. } => 0,
            };
            if !self.decoder.unit.collect(rest, wanted) {
                return Ok(None);
            }
            let unit = self.decoder.unit.take();
            let step = match self.decoder.stage {
                Stage::Magic => self.magic(&unit),
                Stage::Header(SIMPLE_REPLY_MAGIC) => self.simple(&unit),
                Stage::Header(magic) => self.header(magic, &unit),
                Stage::Payload(head) => self.payload(head, &unit),
                Stage::Data { .. } => Ok(None),
            };
            self.decoder.unit.reuse(unit);
            if let Some(event) = step? {
                return Ok(Some(event));
            }
        }
    }

    fn magic(&mut self, unit: &[u8]) -> Result<Option<Event<'static>>, ProtocolError> {
        let found = Reader(unit).u32().unwrap_or_default();
        let fits = match self.replies {
            Replies::Simple => found == SIMPLE_REPLY_MAGIC,
            Replies::Structured => found == SIMPLE_REPLY_MAGIC || found == STRUCTURED_REPLY_MAGIC,
            Replies::Extended => found == EXTENDED_REPLY_MAGIC,
        };
        if !fits {
            return Err(ProtocolError::Magic { found });
        }
        self.decoder.stage = Stage::Header(found);
        Ok(None)
    }

    fn simple(&mut self, unit: &[u8]) -> Result<Option<Event<'static>>, ProtocolError> {
        let mut reader = Reader(unit);
        let error = reader.u32().unwrap_or_default();
        let cookie = reader.u64().unwrap_or_default();
        let structured = self.replies != Replies::Simple;
        let pending = self.pending.get_mut(&cookie).ok_or(ProtocolError::Cookie { cookie })?;
        let head = ChunkHeader { cookie, kind: chunk::NONE, last: true, bytes: 0 };
        if structured && matches!(pending.command, Command::Read | Command::BlockStatus) {
            return head.wrong("a simple reply where a structured one belongs");
        }
        if structured && (pending.error.is_some() || pending.contents > 0) {
            return head.wrong("a simple reply after chunks");
        }
        self.decoder.stage = Stage::Magic;
        if error != 0 {
            let errno = Errno::from_number(error);
            pending.error = Some(errno);
            self.decoder.finished = Some(cookie);
            return Ok(Some(Event::Error { cookie, errno, offset: None, text: String::new() }));
        }
        if pending.command == Command::Read && pending.length > 0 {
            let (offset, left) = (pending.offset, pending.length);
            pending.cover(&head, offset, left)?;
            self.decoder.stage = Stage::Data { cookie, offset, left, last: true };
        } else {
            self.decoder.finished = Some(cookie);
        }
        Ok(None)
    }

    fn header(&mut self, magic: u32, unit: &[u8]) -> Result<Option<Event<'static>>, ProtocolError> {
        let mut reader = Reader(unit);
        let flags = reader.u16().unwrap_or_default();
        let kind = reader.u16().unwrap_or_default();
        let cookie = reader.u64().unwrap_or_default();
        let offset = if magic == EXTENDED_REPLY_MAGIC { reader.u64() } else { None };
        let bytes = match magic {
            EXTENDED_REPLY_MAGIC => reader.u64().unwrap_or_default(),
            _ => reader.u32().unwrap_or_default().into(),
        };
        let head = ChunkHeader { cookie, kind, last: flags & chunk::FLAG_DONE != 0, bytes };
        let pending = self.pending.get(&cookie).ok_or(ProtocolError::Cookie { cookie })?;
        if offset.is_some_and(|offset| offset != pending.offset) {
            return head.wrong("its offset is not that of the request");
        }
        head.check(pending, self.replies)?;
        self.decoder.stage = Stage::Payload(head);
        Ok(None)
    }

    fn payload(&mut self, head: ChunkHeader, unit: &[u8]) -> Result<Option<Event<'static>>, ProtocolError> {
        let ChunkHeader { cookie, kind, last, bytes } = head;
        let extended = self.replies == Replies::Extended;
        let pending = self.pending.get_mut(&cookie).ok_or(ProtocolError::Cookie { cookie })?;
        let mut reader = Reader(unit);
        self.decoder.stage = Stage::Magic;
        let event = match kind {
            chunk::NONE => None,
            chunk::OFFSET_DATA => {
                let offset = reader.u64().unwrap_or_default();
                pending.cover(&head, offset, bytes - 8)?;
                self.decoder.stage = Stage::Data { cookie, offset, left: bytes - 8, last };
                return Ok(None);
            }
            chunk::OFFSET_HOLE => {
                let offset = reader.u64().unwrap_or_default();
                let length = reader.u32().unwrap_or_default().into();
                pending.cover(&head, offset, length)?;
                Some(Event::Hole { cookie, offset, length })
            }
            chunk::BLOCK_STATUS | chunk::BLOCK_STATUS_EXT => {
                let (context, extents) = statuses(&head, reader, extended)?;
                pending.check_statuses(&head, context, &self.contexts, &extents)?;
                Some(Event::Extents { cookie, context, extents })
            }
            _ => Some(pending.failed(&head, reader)?),
        };
        if last {
            self.decoder.finished = Some(cookie);
        }
        Ok(event)
    }

    /// Returns the available data.
    fn data<'a>(&mut self, cookie: u64, offset: u64, left: u64, last: bool, rest: &mut &'a [u8]) -> Option<Event<'a>> {
        let (bytes, tail) = rest.split_at(left.min(rest.len() as u64) as usize);
        if bytes.is_empty() {
            return None;
        }
        *rest = tail;
        self.advance_data(cookie, offset, left, last, bytes.len() as u64);
        Some(Event::Data { cookie, offset, bytes })
    }

    /// Counts received data of a chunk that has `left` bytes.
    fn advance_data(&mut self, cookie: u64, offset: u64, left: u64, last: bool, bytes: u64) {
        let (offset, left) = (offset + bytes, left - bytes);
        self.decoder.stage = if left > 0 { Stage::Data { cookie, offset, left, last } } else { Stage::Magic };
        if left == 0 && last {
            self.decoder.finished = Some(cookie);
        }
    }

    fn finish(&mut self, cookie: u64) -> Result<Event<'static>, ProtocolError> {
        let pending = self.pending.remove(&cookie).ok_or(ProtocolError::Cookie { cookie })?;
        let end = pending.offset.saturating_add(pending.length);
        let complete = match pending.command {
            Command::Read => pending.length == 0 || pending.covered.get(&pending.offset) == Some(&end),
            Command::BlockStatus => pending.statuses.len() == self.contexts.len(),
            _ => true,
        };
        if pending.error.is_none() && !complete {
            return Err(ProtocolError::Incomplete { cookie });
        }
        Ok(Event::Done { cookie, command: pending.command, result: pending.error.map_or(Ok(()), Err) })
    }
}

impl ChunkHeader {
    /// Checks that the chunk is valid for the request.
    fn check(&self, pending: &Pending, replies: Replies) -> Result<(), ProtocolError> {
        let (fixed, each) = if replies == Replies::Extended { (8, 16) } else { (4, 8) };
        let status = if replies == Replies::Extended { chunk::BLOCK_STATUS_EXT } else { chunk::BLOCK_STATUS };
        match self.kind {
            chunk::NONE if self.bytes != 0 => self.wrong("it has a payload"),
            chunk::NONE if !self.last => self.wrong("it is not the last one"),
            chunk::OFFSET_DATA | chunk::OFFSET_HOLE if pending.command != Command::Read => {
                self.wrong("content for something else than a READ")
            }
            chunk::OFFSET_DATA if self.bytes < 9 => self.wrong("it has no data"),
            chunk::OFFSET_HOLE if self.bytes != 12 => self.wrong("its length is not 12"),
            kind if kind == status => {
                let extents = self.bytes.saturating_sub(fixed) / each;
                if pending.command != Command::BlockStatus {
                    return self.wrong("extents for something else than BLOCK_STATUS");
                }
                if extents == 0 || self.bytes != fixed + each * extents {
                    return self.wrong("its length is not that of whole extents");
                }
                if extents > EXTENTS_MAX as u64 { self.wrong("too many extents") } else { Ok(()) }
            }
            kind if kind & chunk::ERROR_BIT != 0 => {
                let least = if kind == chunk::ERROR_OFFSET { 14 } else { 6 };
                if self.bytes < least || self.bytes > ERROR_BYTES_MAX {
                    return self.wrong("an error of that length");
                }
                Ok(())
            }
            chunk::NONE | chunk::OFFSET_DATA | chunk::OFFSET_HOLE => Ok(()),
            _ => self.wrong("its type is unknown, or not for these replies"),
        }
    }
}

impl Pending {
    /// Records a range of content. It must lie within the request and must not overlap earlier
    /// content.
    fn cover(&mut self, head: &ChunkHeader, offset: u64, length: u64) -> Result<(), ProtocolError> {
        let end = offset.checked_add(length).filter(|_| length > 0);
        let request_end = self.offset.saturating_add(self.length);
        let Some(end) = end.filter(|end| offset >= self.offset && *end <= request_end) else {
            return head.wrong("content outside of the request, or none");
        };
        self.contents += 1;
        if self.flags.dont_fragment && self.contents > 1 {
            return head.wrong("a second piece of what was not to be fragmented");
        }
        let before = self.covered.range(..=offset).next_back().map(|(start, end)| (*start, *end));
        let after = self.covered.range(offset..).next().map(|(start, end)| (*start, *end));
        let overlaps = before.is_some_and(|(_, before_end)| before_end > offset)
            || after.is_some_and(|(start, _)| start < end)
            || self.error_offsets.iter().any(|error| (offset..end).contains(error));
        if overlaps {
            return head.wrong("content or an error came for that before");
        }
        let start = before.filter(|(_, before_end)| *before_end == offset).map_or(offset, |(start, _)| start);
        let end = after.filter(|(start, _)| *start == end).map_or(end, |(start, after_end)| {
            self.covered.remove(&start);
            after_end
        });
        self.covered.insert(start, end);
        if self.covered.len() > PIECES_MAX { head.wrong("too many separate pieces") } else { Ok(()) }
    }

    fn check_statuses(
        &mut self,
        head: &ChunkHeader,
        context: u32,
        known: &[Context],
        extents: &[Status],
    ) -> Result<(), ProtocolError> {
        if !known.iter().any(|known| known.id == context) || self.statuses.contains(&context) {
            return head.wrong("a context that was not chosen, or came before");
        }
        self.statuses.push(context);
        let (last, others) = extents.split_last().map_or((0, extents), |(last, others)| (last.length, others));
        if extents.iter().any(|extent| extent.length == 0) {
            return head.wrong("an extent of nothing");
        }
        let sum = others.iter().fold(0u64, |sum, extent| sum.saturating_add(extent.length));
        if !others.is_empty() && sum >= self.length {
            return head.wrong("extents after the requested range");
        }
        if self.flags.one_extent && (extents.len() > 1 || last > self.length) {
            return head.wrong("more than one extent, or a longer one than requested");
        }
        Ok(())
    }

    fn failed(&mut self, head: &ChunkHeader, mut reader: Reader<'_>) -> Result<Event<'static>, ProtocolError> {
        let cookie = head.cookie;
        let number = reader.u32().unwrap_or_default();
        let len = reader.u16().unwrap_or_default();
        let Some(text) = reader.bytes(len.into()).filter(|text| text.len() <= STRING_BYTES_MAX) else {
            return head.wrong("an error's text that does not fit");
        };
        if number == 0 {
            return head.wrong("an error without a number");
        }
        let mut at = None;
        if head.kind == chunk::ERROR_OFFSET {
            let Some(offset) = reader.u64() else { return head.wrong("an error's text that does not fit") };
            if offset < self.offset || offset - self.offset >= self.length {
                return head.wrong("an error outside of the request");
            }
            if self.error_offsets.len() >= PIECES_MAX {
                return head.wrong("too many errors");
            }
            self.error_offsets.push(offset);
            at = Some(offset);
        }
        let errno = Errno::from_number(number);
        self.error.get_or_insert(errno);
        Ok(Event::Error { cookie, errno, offset: at, text: String::from_utf8_lossy(text).into_owned() })
    }
}

/// Parses the context and the extents of a status chunk.
fn statuses(head: &ChunkHeader, mut reader: Reader<'_>, extended: bool) -> Result<(u32, Vec<Status>), ProtocolError> {
    let context = reader.u32().unwrap_or_default();
    let mut extents = Vec::new();
    if extended {
        let count = reader.u32().unwrap_or_default();
        while let (Some(length), Some(flags)) = (reader.u64(), reader.u64()) {
            extents.push(Status { length, flags });
        }
        if extents.len() != count as usize {
            return head.wrong("the number of extents is not what it says");
        }
    } else {
        while let (Some(length), Some(flags)) = (reader.u32(), reader.u32()) {
            extents.push(Status { length: length.into(), flags: flags.into() });
        }
    }
    Ok((context, extents))
}
