//! What a connection has to say: replies are put together until the one before is on its way, then
//! all go as one message.

use crate::budget::Charge;
use crate::tls::Channel;
use hoistway_blockdev::IoOutput;
use hoistway_reactor::Shared;
use hoistway_reactor::{Message, Part};

/// What is to be sent, and what is being sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    message: Message,
    /// Bytes of the head that parts speak of already.
    marked: usize,
    /// What the requests take up that the message answers.
    queued: Charge,
    /// The message on its way, if there is one.
    sending: Option<Sending>,
    /// Bytes at the beginning of the head that were put there before encryption began, and go out
    /// as they are.
    plain: usize,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
struct Sending {
    /// What the requests take up that it answers.
    charge: Charge,
    /// Its bytes.
    bytes: u64,
    since_ns: u64,
}

impl Outgoing {
    /// Where replies' bytes are added.
    pub(crate) fn head(&mut self) -> &mut Vec<u8> {
        &mut self.message.head
    }

    /// Adds what was read after the bytes so far: `len` bytes of it.
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

    /// A request has been answered: what it takes up is given back once the answer is sent.
    pub(crate) fn answered(&mut self, charge: Charge) {
        self.queued.add(charge);
    }

    /// Everything so far goes out as it is, what follows is encrypted.
    pub(crate) fn encrypt_from_here(&mut self) {
        self.plain = self.message.head.len();
    }

    /// Bytes that wait, those of data not counted.
    pub(crate) fn waiting(&self) -> usize {
        self.message.head.len()
    }

    /// Whether there is nothing to be sent and nothing on its way.
    pub(crate) fn is_done(&self) -> bool {
        self.sending.is_none() && self.message.head.is_empty()
    }

    /// Since when a message is on its way, and its bytes, if one is.
    pub(crate) fn sending(&self) -> Option<(u64, u64)> {
        self.sending.map(|sending| (sending.since_ns, sending.bytes))
    }

    /// The message to be sent now: none while one is on its way, or when there is nothing to say.
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

    /// The message was sent; answers what is given back.
    pub(crate) fn sent(&mut self) -> Charge {
        self.sending.take().map(|sending| sending.charge).unwrap_or_default()
    }

    /// Takes memory for the next message, if it has none.
    pub(crate) fn supply(&mut self, spare: &mut Vec<Message>) {
        if self.message.head.capacity() == 0
            && let Some(message) = spare.pop()
        {
            self.message = message;
        }
    }

    fn mark(&mut self) {
        let len = self.message.head.len() - self.marked;
        if len > 0 {
            self.message.parts.push(Part::Head { len });
            self.marked = self.message.head.len();
        }
    }

    /// Turns the message into records.
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
        keep(spare, sealed);
    }
}

/// Keeps an empty message for later use, unless there are enough or it has grown too large to lie
/// about.
pub(crate) fn keep(spare: &mut Vec<Message>, mut message: Message) {
    const KEPT_MAX: usize = 64;
    const HEAD_BYTES_MAX: usize = 256 << 10;
    const PARTS_MAX: usize = 4096;
    if spare.len() < KEPT_MAX && message.head.capacity() <= HEAD_BYTES_MAX && message.parts.capacity() <= PARTS_MAX {
        message.head.clear();
        message.parts.clear();
        spare.push(message);
    }
}
