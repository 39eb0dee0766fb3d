//! What a device has answered, as the protocol says it.

use hoistway_nbd::server::{Extent, Replies, Request};
use hoistway_nbd::wire::{Command, Errno};

use super::{Connection, Phase};
use hoistway_blockdev::IoOutput;
use hoistway_reactor::Allocation;

impl Connection {
    /// Puts the reply to a request into the outgoing message.
    pub(super) fn reply(&mut self, request: &Request, result: Result<IoOutput, Errno>) {
        let Phase::Serving(serving) = &self.phase else { return };
        let session = &serving.session;
        if request.command == Command::Read && result.is_ok() {
            self.counts.read_bytes += request.length;
        }
        match (request.command, result) {
            (_, Err(errno)) => session.error(request, errno, text_of(errno), self.outgoing.head()),
            (Command::Read, Ok(answer)) => self.data(request, answer),
            (Command::BlockStatus, Ok(IoOutput::Extents(found))) => {
                let end = session.export.size - request.offset;
                let extents = extents_of(&found, request.length, end);
                session.block_status(request, &extents, self.outgoing.head());
            }
            (Command::BlockStatus, Ok(_)) => {
                let whole = Extent { length: request.length, hole: false, zero: false };
                session.block_status(request, &[whole], self.outgoing.head());
            }
            (_, Ok(_)) => session.ok(request, self.outgoing.head()),
        }
    }

    /// The reply to a READ that went well.
    fn data(&mut self, request: &Request, answer: IoOutput) {
        let Phase::Serving(serving) = &self.phase else { return };
        let session = &serving.session;
        let has_chunks = session.replies != Replies::Simple;
        match answer {
            // A hole is one chunk as well: DF allows it.
            IoOutput::Zeroes if has_chunks => {
                session.hole_chunk(request, request.offset, request.length as u32, true, self.outgoing.head());
            }
            IoOutput::Pieces(parts) if has_chunks && !request.flags.dont_fragment && has_hole(&parts) => {
                let mut offset = request.offset;
                let end = request.offset + request.length;
                for (length, part) in parts {
                    let last = offset + length >= end;
                    if matches!(part, IoOutput::Zeroes) {
                        session.hole_chunk(request, offset, length as u32, last, self.outgoing.head());
                    } else {
                        session.data_chunk(request, offset, length as u32, last, self.outgoing.head());
                        self.outgoing.data(part, length as usize);
                    }
                    offset += length;
                }
            }
            whole => {
                session.data(request, self.outgoing.head());
                self.outgoing.data(whole, request.length as usize);
            }
        }
    }
}

/// Whether a part of what was read is a hole.
fn has_hole(parts: &[(u64, IoOutput)]) -> bool {
    parts.iter().any(|(_, part)| matches!(part, IoOutput::Zeroes))
}

/// What was found, for the client: neighbours of one kind are one extent, nothing lies beyond the
/// end of the export, and there is at least one.
fn extents_of(found: &[Allocation], wanted: u64, end: u64) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::with_capacity(found.len().max(1));
    let mut left = end;
    for allocation in found {
        let length = allocation.length.min(left);
        if length == 0 {
            continue;
        }
        left -= length;
        match extents.last_mut() {
            Some(last) if last.hole == allocation.hole => last.length += length,
            _ => extents.push(Extent { length, hole: allocation.hole, zero: allocation.hole }),
        }
    }
    if extents.is_empty() {
        extents.push(Extent { length: wanted, hole: false, zero: false });
    }
    extents
}

/// A sentence for people.
fn text_of(errno: Errno) -> &'static str {
    match errno {
        Errno::Perm => "not permitted",
        Errno::Io => "the device could not do it",
        Errno::NoMem => "out of memory",
        Errno::Inval => "the request makes no sense",
        Errno::NoSpc => "no space left on the device",
        Errno::Overflow => "too long",
        Errno::NotSup => "not supported",
        Errno::Shutdown => "the server is leaving",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_end_where_the_export_ends_and_neighbours_of_one_kind_are_one() {
        let found = [
            Allocation { length: 4096, hole: true },
            Allocation { length: 4096, hole: true },
            Allocation { length: 8192, hole: false },
        ];
        assert_eq!(
            extents_of(&found, 16384, 12288),
            [Extent { length: 8192, hole: true, zero: true }, Extent { length: 4096, hole: false, zero: false }]
        );
    }

    #[test]
    fn a_backend_that_knows_nothing_has_everything_allocated() {
        assert_eq!(extents_of(&[], 512, 4096), [Extent { length: 512, hole: false, zero: false }]);
    }
}
