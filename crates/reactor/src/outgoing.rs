//! A message that is being sent: the pieces of memory that the kernel has not taken yet.

use libc::{iovec, msghdr};

use crate::engine::{Message, Part};

/// Maximum number of pieces of one sendmsg(2) (`IOV_MAX`).
const PIECES_MAX: usize = 1024;

/// A message that is being sent. It owns the memory of its pieces.
pub(crate) struct OutgoingMessage {
    message: Message,
    /// The pieces in order; the first `at` of them are sent.
    pieces: Vec<iovec>,
    at: usize,
    header: msghdr,
}

impl OutgoingMessage {
    /// Creates an empty message. The box keeps the header in place.
    pub fn new() -> Box<OutgoingMessage> {
        // SAFETY: all fields are integers and pointers, for which zero is a valid value.
        let header = unsafe { std::mem::zeroed() };
        Box::new(OutgoingMessage { message: Message::default(), pieces: Vec::new(), at: 0, header })
    }

    /// Loads the next message.
    pub fn load(&mut self, message: Message) {
        self.message = message;
        self.pieces.clear();
        self.at = 0;
        let mut head = self.message.head.as_slice();
        for part in &self.message.parts {
            let (start, len) = match part {
                Part::Head { len } => {
                    let (own, rest) = head.split_at((*len).min(head.len()));
                    head = rest;
                    (own.as_ptr(), own.len())
                }
                Part::Buffer { buffer, len } => (buffer.as_ptr(), (*len).min(buffer.len())),
                Part::Kept { buffer, len } => (buffer.as_ptr(), (*len).min(buffer.len())),
                Part::Shared(shared) => (shared.as_ptr(), shared.len()),
            };
            if len > 0 {
                self.pieces.push(iovec { iov_base: start.cast_mut().cast(), iov_len: len });
            }
        }
    }

    /// Returns true if all bytes are sent.
    pub fn is_sent(&self) -> bool {
        self.at == self.pieces.len()
    }

    /// Returns the argument of sendmsg(2) for the remaining pieces, at most [`PIECES_MAX`]. It is
    /// valid until the next call of `load` or `advance`.
    pub fn header(&mut self) -> *mut msghdr {
        let rest = &mut self.pieces[self.at..];
        self.header.msg_iov = rest.as_mut_ptr();
        self.header.msg_iovlen = rest.len().min(PIECES_MAX) as _;
        &raw mut self.header
    }

    /// Counts sent bytes.
    pub fn advance(&mut self, bytes: usize) {
        let mut left = bytes;
        while let Some(piece) = self.pieces.get_mut(self.at) {
            if left < piece.iov_len {
                // SAFETY: the piece is longer than `left` bytes.
                piece.iov_base = unsafe { piece.iov_base.cast::<u8>().add(left).cast() };
                piece.iov_len -= left;
                return;
            }
            left -= piece.iov_len;
            self.at += 1;
        }
        debug_assert_eq!(left, 0, "more bytes were sent than the message has");
    }

    /// Returns the message, emptied for reuse.
    pub fn unload(&mut self) -> Message {
        self.pieces.clear();
        self.at = 0;
        self.message.head.clear();
        self.message.parts.clear();
        std::mem::take(&mut self.message)
    }
}
