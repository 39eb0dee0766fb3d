//! One connection to the remote: the handshake, requests out, replies in.

use std::collections::HashMap;
use std::sync::Arc;

use hoistway_nbd::client::{Event, Handshake, IncomingData, Progress, RequestError, RequestSpec, Session, Status};
use hoistway_nbd::wire::{Command, Errno};
use hoistway_reactor::{Buffer, ConnId, Message, Part};
use hoistway_tls::{Channel, ChannelState};

use super::error::RemoteError;
use super::tls::RemoteTls;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub id: ConnId,
    pub stage: Stage,
    /// TLS, after the server has agreed to it.
    channel: Option<Channel>,
    /// The certificates for TLS.
    tls: Option<RemoteTls>,
    /// The time in ns since when the connection exists.
    pub since_ns: u64,
    pub is_receiving: bool,
    is_sending: bool,
    /// The output that is not sent.
    output: Message,
    /// An empty message, for reuse.
    spare: Message,
    /// The requests in flight, by cookie.
    numbers: HashMap<u64, u64>,
}

/// The stage of a connection.
#[derive(Debug)]
pub(super) enum Stage {
    /// Options are negotiated.
    Handshake(Box<Handshake>),
    /// Requests may be sent.
    Ready(Box<Session>),
}

/// Takes the contents of replies. Requests are identified by their numbers.
pub(super) trait ReplySink {
    /// Takes data of a read.
    fn data(&mut self, number: u64, offset: u64, bytes: &[u8]);
    /// Takes zeroes of a read.
    fn hole(&mut self, number: u64, offset: u64, length: u64);
    /// Takes the allocation of a range.
    fn extents(&mut self, number: u64, extents: Vec<Status>);
    /// Ends a request.
    fn done(&mut self, number: u64, result: Result<(), Errno>);
}

impl Connection {
    pub fn new(id: ConnId, handshake: Handshake, tls: Option<RemoteTls>, now_ns: u64) -> Connection {
        Connection {
            id,
            stage: Stage::Handshake(Box::new(handshake)),
            channel: None,
            tls,
            since_ns: now_ns,
            is_receiving: false,
            is_sending: false,
            output: Message::default(),
            spare: Message::default(),
            numbers: HashMap::new(),
        }
    }

    pub fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready(_))
    }

    /// Returns true if a message was not sent completely.
    pub fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the session, if the handshake is over.
    pub fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Ready(session) => Some(session),
            Stage::Handshake(_) => None,
        }
    }

    /// Adds a request to the output. `data` are those of a write.
    pub fn request(&mut self, number: u64, spec: &RequestSpec, data: Option<&Arc<Buffer>>) -> Result<(), RequestError> {
        let Stage::Ready(session) = &mut self.stage else { return Err(RequestError::Command(spec.command)) };
        let before = self.output.head.len();
        let cookie = session.request(spec, &mut self.output.head)?;
        self.numbers.insert(cookie, number);
        self.add_head(before);
        if let (Command::Write, Some(data)) = (spec.command, data) {
            self.output.parts.push(Part::Kept { buffer: data.clone(), len: spec.length as usize });
        }
        Ok(())
    }

    /// Adds the bytes of the head from `before` on as a part, or to the last part.
    fn add_head(&mut self, before: usize) {
        let added = self.output.head.len() - before;
        match self.output.parts.last_mut() {
            _ if added == 0 => {}
            Some(Part::Head { len }) => *len += added,
            _ => self.output.parts.push(Part::Head { len: added }),
        }
    }

    /// Returns the message to send now, if there is one.
    pub fn next_message(&mut self) -> Option<Message> {
        if self.is_sending {
            return None;
        }
        if let Some(channel) = &mut self.channel {
            seal(channel, &mut self.output);
        }
        if self.output.parts.is_empty() {
            return None;
        }
        self.is_sending = true;
        Some(std::mem::replace(&mut self.output, std::mem::take(&mut self.spare)))
    }

    /// Takes back a message that was sent.
    pub fn sent(&mut self, message: Message) {
        self.is_sending = false;
        self.spare = message;
    }

    /// Processes bytes of the server. Returns true if the handshake ended with them.
    ///
    /// # Errors
    /// The handshake failed, or the server violated the protocol.
    pub fn receive(&mut self, bytes: &[u8], sink: &mut impl ReplySink) -> Result<bool, RemoteError> {
        let Some(channel) = &mut self.channel else { return self.receive_plain(bytes, sink) };
        let mut plain = Vec::new();
        let state = channel.receive(bytes, &mut plain);
        let is_entered = self.receive_plain(&plain, sink)?;
        match state? {
            ChannelState::Open => Ok(is_entered),
            ChannelState::Closed => Err(RemoteError::Closed),
        }
    }

    fn receive_plain(&mut self, bytes: &[u8], sink: &mut impl ReplySink) -> Result<bool, RemoteError> {
        let handshake = match &mut self.stage {
            Stage::Handshake(handshake) => handshake,
            Stage::Ready(_) => return self.replies(bytes, sink).map(|()| false),
        };
        let before = self.output.head.len();
        let progress = handshake.receive(bytes, &mut self.output.head);
        self.add_head(before);
        match progress?.1 {
            Progress::More => Ok(false),
            Progress::Ready(session) => {
                self.stage = Stage::Ready(session);
                Ok(true)
            }
            Progress::StartTls => {
                let Some(RemoteTls { client, name }) = self.tls.take() else { return Err(RemoteError::Closed) };
                self.channel = Some(Channel::client(client, name)?);
                let before = self.output.head.len();
                if let Stage::Handshake(handshake) = &mut self.stage {
                    handshake.encrypted(&mut self.output.head);
                }
                self.add_head(before);
                Ok(false)
            }
            Progress::Over(_) => Err(RemoteError::Closed),
        }
    }

    fn replies(&mut self, bytes: &[u8], sink: &mut impl ReplySink) -> Result<(), RemoteError> {
        let Stage::Ready(session) = &mut self.stage else { return Ok(()) };
        let mut rest = bytes;
        loop {
            let (used, event) = session.next(rest)?;
            rest = rest.get(used..).unwrap_or_default();
            let Some(event) = event else { return Ok(()) };
            let number = |cookie: &u64| self.numbers.get(cookie).copied().unwrap_or(u64::MAX);
            match event {
                Event::Data { cookie, offset, bytes } => sink.data(number(&cookie), offset, bytes),
                Event::Hole { cookie, offset, length } => sink.hole(number(&cookie), offset, length),
                Event::Extents { cookie, extents, .. } => sink.extents(number(&cookie), extents),
                Event::Error { errno, text, .. } => tracing::debug!(%errno, text, "the remote replied with an error"),
                Event::Done { cookie, result, .. } => {
                    if let Some(number) = self.numbers.remove(&cookie) {
                        sink.done(number, result);
                    }
                }
            }
        }
    }

    /// Returns the data that the next bytes of the server are, with the number of their request;
    /// `None` under TLS, whose records have to be decrypted first.
    pub fn incoming_data(&self) -> Option<(u64, IncomingData)> {
        if self.channel.is_some() {
            return None;
        }
        let incoming = self.session()?.incoming_data()?;
        Some((*self.numbers.get(&incoming.cookie)?, incoming))
    }

    /// Counts bytes of [`Connection::incoming_data`] that were received into the memory of their
    /// request.
    pub fn skip_data(&mut self, bytes: u64) {
        if let Stage::Ready(session) = &mut self.stage {
            session.skip_data(bytes);
        }
    }
}

/// Encrypts the output: its parts become records.
fn seal(channel: &mut Channel, output: &mut Message) {
    let head = std::mem::take(&mut output.head);
    let mut rest = head.as_slice();
    for part in output.parts.drain(..) {
        match part {
            Part::Head { len } => {
                let (plain, behind) = rest.split_at(len.min(rest.len()));
                channel.send(plain);
                rest = behind;
            }
            Part::Kept { buffer, len } => channel.send(&buffer[..len]),
            // Requests have no other parts.
            Part::Buffer { .. } | Part::Shared(_) => {}
        }
    }
    channel.records(&mut output.head);
    if !output.head.is_empty() {
        output.parts.push(Part::Head { len: output.head.len() });
    }
}
