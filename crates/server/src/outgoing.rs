//! The output of a connection: replies are collected during a send, then sent as one message.

use hoistway_blockdev::IoOutput;
use hoistway_reactor::{Message, Part, Shared};
use hoistway_tls::Channel;

use crate::budget::Charge;

/// The message that is being collected and the one that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    message: Message,
    /// The bytes of the head that `message.parts` covers.
    marked: usize,
    /// The charge of the requests that the collected message answers.
    queued: Charge,
    /// The message that is being sent.
    sending: Option<Sending>,
    /// The bytes at the start of the head from before STARTTLS, which are sent in plain text.
    plain: usize,
}

/// A message that is being sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    /// The charge of the requests that the message answers.
    charge: Charge,
    /// The length of the message in bytes.
    bytes: u64,
    /// When the send began, in ns.
    since_ns: u64,
}

impl Outgoing {
    /// Returns the bytes to which headers and small replies are appended.
    pub(crate) fn head(&mut self) -> &mut Vec<u8> {
        &mut self.message.head
    }

    /// Appends `len` bytes of the data of a read.
    pub(crate) fn data(&mut self, answer: IoOutput, len: usize) {
        self.mark();
        match answer {
            IoOutput::Buffer(buffer) => self.message.parts.push(Part::Buffer { buffer, len }),
            IoOutput::Shared(shared) => self.message.parts.push(Part::Shared(shared)),
            IoOutput::Pieces(parts) => {
                for (len, part) in parts {
                    self.data(part, len as usize);
                }
            }
            IoOutput::Zeroes | IoOutput::Nothing | IoOutput::Extents(_) => {
                let mut left = len;
                while left > 0 {
                    let zeroes = Shared::zeroes(left);
                    left -= zeroes.len();
                    self.message.parts.push(Part::Shared(zeroes));
                }
            }
        }
    }

    /// Accounts for a reply in the message. Its charge is released when the message is sent.
    pub(crate) fn reply_added(&mut self, charge: Charge) {
        self.queued.add(charge);
    }

    /// Sends the output so far in plain text, and encrypts all output that follows.
    pub(crate) fn encrypt_from_here(&mut self) {
        self.plain = self.message.head.len();
    }

    /// Returns the bytes of headers and small replies that are not yet being sent.
    pub(crate) fn pending(&self) -> usize {
        self.message.head.len()
    }

    /// Returns true if there is no output and no send in progress.
    pub(crate) fn is_empty(&self) -> bool {
        self.sending.is_none() && self.message.head.is_empty()
    }

    /// Returns the start in ns and the length in bytes of the send in progress.
    pub(crate) fn sending(&self) -> Option<(u64, u64)> {
        self.sending.map(|sending| (sending.since_ns, sending.bytes))
    }

    /// Returns the message to be sent now; `None` without output or during a send.
    pub(crate) fn next(
        &mut self,
        channel: Option<&mut Channel>,
        spare: &mut Vec<Message>,
        now_ns: u64,
    ) -> Option<Message> {
        if self.sending.is_some() {
            return None;
        }
        if let Some(channel) = channel {
            self.seal(channel, spare);
        }
        if self.message.head.is_empty() {
            return None;
        }
        self.mark();
        self.marked = 0;
        let bytes = self.message.parts.iter().map(|part| part.len() as u64).sum();
        self.sending = Some(Sending { charge: std::mem::take(&mut self.queued), bytes, since_ns: now_ns });
        Some(std::mem::take(&mut self.message))
    }

    /// Ends a send and returns the charge of the requests that the message answered.
    pub(crate) fn sent(&mut self) -> Charge {
        self.sending.take().map(|sending| sending.charge).unwrap_or_default()
    }

    /// Takes the allocations of a spare message if the current message has none.
    pub(crate) fn supply(&mut self, spare: &mut Vec<Message>) {
        if self.message.head.capacity() == 0
            && let Some(message) = spare.pop()
        {
            self.message = message;
        }
    }

    /// Covers the head with a part up to its current end.
    fn mark(&mut self) {
        let len = self.message.head.len() - self.marked;
        if len > 0 {
            self.message.parts.push(Part::Head { len });
            self.marked = self.message.head.len();
        }
    }

    /// Replaces the message by its TLS records.
    fn seal(&mut self, channel: &mut Channel, spare: &mut Vec<Message>) {
        self.mark();
        let mut sealed = spare.pop().unwrap_or_default();
        let mut at = 0;
        for part in self.message.parts.drain(..) {
            match part {
                Part::Head { len } => {
                    let plain = self.plain.clamp(at, at + len);
                    sealed.head.extend_from_slice(&self.message.head[at..plain]);
                    channel.send(&self.message.head[plain..at + len]);
                    at += len;
                }
                Part::Buffer { buffer, len } => channel.send(&buffer[..len]),
                Part::Kept { buffer, len } => channel.send(&buffer[..len]),
                Part::Shared(shared) => {
                    let mut copy = vec![0; shared.len()];
                    shared.copy_to(&mut copy);
                    channel.send(&copy);
                }
            }
        }
        self.plain = 0;
        self.marked = 0;
        channel.records(&mut sealed.head);
        std::mem::swap(&mut self.message, &mut sealed);
        sealed.head.clear();
        recycle(spare, sealed);
    }
}

/// Clears a message and keeps its allocations for reuse, unless there are enough spare messages or
/// the allocations are too large.
pub(crate) fn recycle(spare: &mut Vec<Message>, mut message: Message) {
    const KEPT_MAX: usize = 64;
    const HEAD_BYTES_MAX: usize = 256 << 10;
    const PARTS_MAX: usize = 4096;
    if spare.len() < KEPT_MAX && message.head.capacity() <= HEAD_BYTES_MAX && message.parts.capacity() <= PARTS_MAX {
        message.head.clear();
        message.parts.clear();
        spare.push(message);
    }
}
