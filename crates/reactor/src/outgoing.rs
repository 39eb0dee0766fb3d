//! A message on its way: what of it the kernel has taken, and where the rest lies.

use libc::{iovec, msghdr};

use crate::engine::{Message, Part};

/// The most pieces that the kernel takes at once (`IOV_MAX`, sendmsg(2)).
const PIECES_MAX: usize = 1024;

/// A message on its way. It owns what it points at.
pub(crate) struct Sending {
    message: Message,
    /// The pieces, in order; the first that are sent are `at`.
    pieces: Vec<iovec>,
    at: usize,
    header: msghdr,
}

impl Sending {
    pub fn new() -> Box<Sending> {
        // SAFETY: all of its fields are numbers and pointers, which may be 0.
        let header = unsafe { std::mem::zeroed() };
        Box::new(Sending { message: Message::default(), pieces: Vec::new(), at: 0, header })
    }

    /// Takes a message; the one before is done.
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
                Part::Shared(shared) => (shared.as_ptr(), shared.len()),
            };
            if len > 0 {
                self.pieces.push(iovec { iov_base: start.cast_mut().cast(), iov_len: len });
            }
        }
    }

    pub fn is_sent(&self) -> bool {
        self.at == self.pieces.len()
    }

    /// What sendmsg takes: the pieces that are left, as many as it takes at once. It holds until
    /// the next call of `load` or `advance`.
    pub fn header(&mut self) -> *mut msghdr {
        let rest = &mut self.pieces[self.at..];
        self.header.msg_iov = rest.as_mut_ptr();
        self.header.msg_iovlen = rest.len().min(PIECES_MAX) as _;
        &raw mut self.header
    }

    /// Notes that so many more bytes are sent.
    pub fn advance(&mut self, bytes: usize) {
        let mut left = bytes;
        while let Some(piece) = self.pieces.get_mut(self.at) {
            if left < piece.iov_len {
                // SAFETY: the piece is longer than that.
                piece.iov_base = unsafe { piece.iov_base.cast::<u8>().add(left).cast() };
                piece.iov_len -= left;
                return;
            }
            left -= piece.iov_len;
            self.at += 1;
        }
        debug_assert_eq!(left, 0, "more was sent than there is");
    }

    /// The message, empty, to be used again.
    pub fn unload(&mut self) -> Message {
        self.pieces.clear();
        self.at = 0;
        self.message.head.clear();
        self.message.parts.clear();
        std::mem::take(&mut self.message)
    }
}
