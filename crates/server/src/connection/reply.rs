//! The conversion of completions to NBD replies.

use hoistway_blockdev::IoOutput;
use hoistway_nbd::server::{Extent, Replies, Request};
use hoistway_nbd::wire::{Command, Errno};
use hoistway_reactor::Allocation;

use super::transmission::Client;
use crate::outgoing::Outgoing;

impl Client {
    /// Adds the reply to a request to the outgoing message.
    pub(super) fn reply(&mut self, request: &Request, result: Result<IoOutput, Errno>, outgoing: &mut Outgoing) {
        let counts = &mut self.membership.counts;
        match request.command {
            Command::Read if result.is_ok() => counts.read_bytes += request.length,
            Command::Write if result.is_ok() => counts.written_bytes += request.length,
            _ => {}
        }
        let session = &self.session;
        match (request.command, result) {
            (_, Err(errno)) => return self.refuse(request, errno, error_text(errno), outgoing),
            (Command::Read, Ok(answer)) => self.reply_data(request, answer, outgoing),
            (Command::BlockStatus, Ok(IoOutput::Extents(found))) => {
                let end = session.export.size - request.offset;
                let extents = extents_of(&found, request.length, end);
                session.block_status(request, &extents, outgoing.head());
            }
            (Command::BlockStatus, Ok(_)) => {
                let whole = Extent { length: request.length, hole: false, zero: false };
                session.block_status(request, &[whole], outgoing.head());
            }
            (_, Ok(_)) => session.ok(request, outgoing.head()),
        }
        self.membership.counts.requests += 1;
    }

    /// Adds an error to the outgoing message.
    pub(super) fn refuse(&mut self, request: &Request, errno: Errno, text: &str, outgoing: &mut Outgoing) {
        self.membership.counts.requests += 1;
        self.session.error(request, errno, text, outgoing.head());
    }

    /// Adds the reply to a successful read.
    fn reply_data(&self, request: &Request, answer: IoOutput, outgoing: &mut Outgoing) {
        let session = &self.session;
        let has_chunks = session.replies != Replies::Simple;
        match answer {
            // A hole is a single chunk, so that the flag DF allows it.
            IoOutput::Zeroes if has_chunks => {
                session.hole_chunk(request, request.offset, request.length as u32, true, outgoing.head());
            }
            IoOutput::Pieces(parts) if has_chunks && !request.flags.dont_fragment && has_hole(&parts) => {
                let mut offset = request.offset;
                let end = request.offset + request.length;
                for (length, part) in parts {
                    let last = offset + length >= end;
                    if matches!(part, IoOutput::Zeroes) {
                        session.hole_chunk(request, offset, length as u32, last, outgoing.head());
                    } else {
                        session.data_chunk(request, offset, length as u32, last, outgoing.head());
                        outgoing.data(part, length as usize);
                    }
                    offset += length;
                }
            }
            whole => {
                session.data(request, outgoing.head());
                outgoing.data(whole, request.length as usize);
            }
        }
    }
}

/// Returns true if a part of the data is a hole.
fn has_hole(parts: &[(u64, IoOutput)]) -> bool {
    parts.iter().any(|(_, part)| matches!(part, IoOutput::Zeroes))
}

/// Converts allocations to extents of the protocol: adjacent extents of the same kind are merged,
/// the last one ends at `end` at most, and there is at least one.
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

/// Returns the error text that the client receives.
fn error_text(errno: Errno) -> &'static str {
    match errno {
        Errno::Perm => "not permitted",
        Errno::Io => "the device failed",
        Errno::NoMem => "out of memory",
        Errno::Inval => "invalid request",
        Errno::NoSpc => "no space left on the device",
        Errno::Overflow => "too long",
        Errno::NotSup => "not supported",
        Errno::Shutdown => "the server is shutting down",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_merged_and_end_at_the_end_of_the_export() {
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
    fn a_backend_without_allocation_data_reports_one_allocated_extent() {
        assert_eq!(extents_of(&[], 512, 4096), [Extent { length: 512, hole: false, zero: false }]);
    }
}
