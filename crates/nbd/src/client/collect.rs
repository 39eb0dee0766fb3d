//! Replies put together: one completion a request.

use std::collections::BTreeMap;

use crate::client::{Broken, Event, Misuse, Session, Status};
use crate::wire::{Command, CommandFlags, Errno};

/// A [`Session`] whose replies are put together until they are whole.
///
/// It keeps as many bytes as the READs under way asked for, once their first data have come.
#[derive(Debug)]
pub struct Collector {
    /// The connection.
    pub session: Session,
    parts: BTreeMap<u64, Part>,
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its cookie.
    pub cookie: u64,
    /// What it asked for.
    pub command: Command,
    /// The first byte.
    pub offset: u64,
    /// How many.
    pub length: u64,
    /// The answer; or the first error, with the server's words.
    pub result: Result<Outcome, (Errno, String)>,
}

/// What a request brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// That it was done.
    Nothing,
    /// The bytes that a READ asked for.
    Data(Vec<u8>),
    /// The extents of each metadata context, by its name.
    Extents(Vec<(String, Vec<Status>)>),
}

#[derive(Debug)]
struct Part {
    offset: u64,
    length: u64,
    data: Vec<u8>,
    extents: Vec<(String, Vec<Status>)>,
    text: Option<String>,
}

impl Collector {
    /// Puts the replies of a connection together on which nothing was asked yet.
    pub fn new(session: Session) -> Collector {
        Collector { session, parts: BTreeMap::new() }
    }

    /// Appends a request and, of a WRITE, the data, whose length it is. Tells its cookie.
    ///
    /// # Errors
    /// When the protocol forbids to ask for it: see [`Session::request`].
    pub fn request(
        &mut self,
        command: Command,
        flags: CommandFlags,
        offset: u64,
        length: u64,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<u64, Misuse> {
        let written = if command == Command::Write { data.len() as u64 } else { length };
        let cookie = self.session.request(command, flags, offset, written, out)?;
        if command == Command::Write {
            out.extend_from_slice(data);
        }
        if command != Command::Disconnect {
            self.expect(cookie, offset, written);
        }
        Ok(cookie)
    }

    /// Appends a request as it is, without any payload: see [`Session::request_unchecked`].
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

    /// Takes bytes of the server, all of them; adds what is answered by now.
    ///
    /// # Errors
    /// When the server breaks the protocol.
    pub fn receive(&mut self, input: &[u8], completions: &mut Vec<Completion>) -> Result<(), Broken> {
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
        let part = Part { offset, length, data: Vec::new(), extents: Vec::new(), text: None };
        self.parts.insert(cookie, part);
    }

    fn take(&mut self, event: Event<'_>) -> Option<Completion> {
        match event {
            Event::Data { cookie, offset, bytes } => {
                let place = self.parts.get_mut(&cookie)?.place(offset, bytes.len() as u64)?;
                place.copy_from_slice(bytes);
            }
            Event::Hole { cookie, offset, length } => {
                self.parts.get_mut(&cookie)?.place(offset, length)?.fill(0);
            }
            Event::Extents { cookie, context, extents } => {
                let name = self.session.contexts.iter().find(|known| known.id == context)?.name.clone();
                self.parts.get_mut(&cookie)?.extents.push((name, extents));
            }
            Event::Error { cookie, text, .. } => {
                self.parts.get_mut(&cookie)?.text.get_or_insert(text);
            }
            Event::Done { cookie, command, result } => {
                let part = self.parts.remove(&cookie)?;
                let result = match result {
                    Err(errno) => Err((errno, part.text.unwrap_or_default())),
                    Ok(()) if command == Command::Read => Ok(Outcome::Data(part.data)),
                    Ok(()) if command == Command::BlockStatus => Ok(Outcome::Extents(part.extents)),
                    Ok(()) => Ok(Outcome::Nothing),
                };
                return Some(Completion { cookie, command, offset: part.offset, length: part.length, result });
            }
        }
        None
    }
}

impl Part {
    /// Where data of the export belong; the session has seen to it that they are within the request.
    fn place(&mut self, offset: u64, length: u64) -> Option<&mut [u8]> {
        if self.data.is_empty() {
            self.data = vec![0; usize::try_from(self.length).ok()?];
        }
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.data.get_mut(start..start.checked_add(usize::try_from(length).ok()?)?)
    }
}
