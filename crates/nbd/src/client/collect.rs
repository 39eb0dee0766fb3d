//! Assembles replies: one completion for each request.

use std::collections::BTreeMap;

use crate::client::decoder::ProtocolError;
use crate::client::replies::{Event, Status};
use crate::client::session::{RequestError, RequestSpec, Session};
use crate::wire::{Command, Errno};

/// A [`Session`] that assembles complete replies.
///
/// It buffers the requested bytes of each READ after its first data arrived.
#[derive(Debug)]
pub struct Collector {
    /// The session.
    pub session: Session,
    pending: BTreeMap<u64, PartialReply>,
}

/// A completed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Cookie of the request.
    pub cookie: u64,
    /// Command of the request.
    pub command: Command,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Content of the reply; or the first error, with the server's text.
    pub result: Result<ReplyContent, (Errno, String)>,
}

/// Content of a successful reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyContent {
    /// No content.
    Nothing,
    /// The data of a READ.
    Data(Vec<u8>),
    /// The extents of each metadata context, by name.
    Extents(Vec<(String, Vec<Status>)>),
}

#[derive(Debug)]
struct PartialReply {
    offset: u64,
    length: u64,
    data: Vec<u8>,
    extents: Vec<(String, Vec<Status>)>,
    text: Option<String>,
}

impl Collector {
    /// Creates a collector for a session without requests.
    pub fn new(session: Session) -> Collector {
        Collector { session, pending: BTreeMap::new() }
    }

    /// Appends a request and, for a WRITE, its data, whose length replaces `length`. Returns its
    /// cookie.
    ///
    /// # Errors
    /// Fails if the protocol forbids the request: see [`Session::request`].
    pub fn request(&mut self, request: &RequestSpec, data: &[u8], out: &mut Vec<u8>) -> Result<u64, RequestError> {
        let RequestSpec { command, offset, length, .. } = *request;
        let written = if command == Command::Write { data.len() as u64 } else { length };
        let cookie = self.session.request(&RequestSpec { length: written, ..*request }, out)?;
        if command == Command::Write {
            out.extend_from_slice(data);
        }
        if command != Command::Disconnect {
            self.expect(cookie, offset, written);
        }
        Ok(cookie)
    }

    /// Appends a request without checks and payload: see [`Session::request_unchecked`].
    pub fn request_unchecked(
        &mut self,
        command: Command,
        flags: u16,
        offset: u64,
        length: u64,
        out: &mut Vec<u8>,
    ) -> u64 {
        let cookie = self.session.request_unchecked(command, flags, offset, length, out);
        if command != Command::Disconnect {
            self.expect(cookie, offset, length);
        }
        cookie
    }

    /// Processes all of `input` and appends the completed requests.
    ///
    /// # Errors
    /// Fails if the server violates the protocol.
    pub fn receive(&mut self, input: &[u8], completions: &mut Vec<Completion>) -> Result<(), ProtocolError> {
        let mut rest = input;
        loop {
            let (used, event) = self.session.next(rest)?;
            rest = rest.get(used..).unwrap_or_default();
            match event {
                Some(event) => completions.extend(self.take(event)),
                None => return Ok(()),
            }
        }
    }

    fn expect(&mut self, cookie: u64, offset: u64, length: u64) {
        let reply = PartialReply { offset, length, data: Vec::new(), extents: Vec::new(), text: None };
        self.pending.insert(cookie, reply);
    }

    fn take(&mut self, event: Event<'_>) -> Option<Completion> {
        match event {
            Event::Data { cookie, offset, bytes } => {
                let buffer = self.pending.get_mut(&cookie)?.buffer(offset, bytes.len() as u64)?;
                buffer.copy_from_slice(bytes);
            }
            Event::Hole { cookie, offset, length } => {
                self.pending.get_mut(&cookie)?.buffer(offset, length)?.fill(0);
            }
            Event::Extents { cookie, context, extents } => {
                let name = self.session.contexts.iter().find(|known| known.id == context)?.name.clone();
                self.pending.get_mut(&cookie)?.extents.push((name, extents));
            }
            Event::Error { cookie, text, .. } => {
                self.pending.get_mut(&cookie)?.text.get_or_insert(text);
            }
            Event::Done { cookie, command, result } => {
                let reply = self.pending.remove(&cookie)?;
                let result = match result {
                    Err(errno) => Err((errno, reply.text.unwrap_or_default())),
                    Ok(()) if command == Command::Read => Ok(ReplyContent::Data(reply.data)),
                    Ok(()) if command == Command::BlockStatus => Ok(ReplyContent::Extents(reply.extents)),
                    Ok(()) => Ok(ReplyContent::Nothing),
                };
                return Some(Completion { cookie, command, offset: reply.offset, length: reply.length, result });
            }
        }
        None
    }
}

impl PartialReply {
    /// Returns the buffer of a range of the export. The session ensures that the range is within
    /// the request.
    fn buffer(&mut self, offset: u64, length: u64) -> Option<&mut [u8]> {
        if self.data.is_empty() {
            self.data = vec![0; usize::try_from(self.length).ok()?];
        }
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.data.get_mut(start..start.checked_add(usize::try_from(length).ok()?)?)
    }
}
