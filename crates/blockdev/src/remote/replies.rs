//! Replies: the data of reads, and what follows from the end of a request.

use hoistway_nbd::client::Status;
use hoistway_nbd::wire::{Errno, extent_flags};
use hoistway_qos::{IoError, RequestOp};
use hoistway_reactor::{Allocation, Buffer, ConnId, Engine};

use super::connection::ReplySink;
use super::requests::{Purpose, Request, Requests, Step};
use super::{Ended, Recovery, Remote};
use crate::error_log::Cause;
use crate::output::IoOutput;

/// The minimum number of bytes of data that are received directly into the memory of their request.
/// Fewer arrive together with other replies.
const DIRECT_BYTES_MIN: u64 = 16 << 10;

/// Puts the contents of replies into their requests.
struct Assembler<'a, E> {
    requests: &'a mut Requests,
    engine: &'a mut E,
    done: Vec<(u64, Result<(), Errno>)>,
}

impl<E: Engine> ReplySink for Assembler<'_, E> {
    fn data(&mut self, number: u64, offset: u64, bytes: &[u8]) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let start = (offset - request.from) as usize;
        request.memory(self.engine)[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn hole(&mut self, number: u64, offset: u64, length: u64) {
        let Some(request) = self.requests.get_mut(number) else { return };
        if (offset, offset + length) == (request.from, request.to) && request.step == Step::Whole {
            request.is_hole = true;
            return;
        }
        let start = (offset - request.from) as usize;
        request.memory(self.engine)[start..start + length as usize].fill(0);
    }

    fn extents(&mut self, number: u64, extents: Vec<Status>) {
        if let Some(request) = self.requests.get_mut(number) {
            request.extents = extents;
        }
    }

    fn done(&mut self, number: u64, result: Result<(), Errno>) {
        self.done.push((number, result));
    }
}

impl Remote {
    /// Processes received bytes of a connection.
    pub(super) fn received<E: Engine>(&mut self, engine: &mut E, conn: ConnId, bytes: &[u8]) {
        let Some(slot) = self.slots.of(conn) else { return };
        if bytes.is_empty() {
            return self.lose(engine, slot, "the server closed it");
        }
        self.process(engine, slot, bytes);
    }

    /// Processes data that were received into the memory of their request.
    pub(super) fn filled<E: Engine>(&mut self, engine: &mut E, conn: ConnId, buffer: Buffer, filled: usize) {
        let Some(slot) = self.slots.of(conn) else { return };
        let Some(connection) = self.slots.open_mut(slot) else { return };
        let Some((number, incoming)) = connection.incoming_data() else { return };
        let Some(request) = self.requests.get_mut(number) else { return };
        let from = (incoming.offset - request.from) as usize;
        request.buffer = Some(buffer);
        connection.skip_data((filled - from) as u64);
        if filled < from + incoming.length as usize {
            return self.lose(engine, slot, "the server closed it");
        }
        self.process(engine, slot, &[]);
    }

    fn process<E: Engine>(&mut self, engine: &mut E, slot: usize, bytes: &[u8]) {
        let Some(connection) = self.slots.open_mut(slot) else { return };
        let mut assembler = Assembler { requests: &mut self.requests, engine, done: Vec::new() };
        let received = connection.receive(bytes, &mut assembler);
        let done = assembler.done;
        let is_shutting_down = done.iter().any(|(_, result)| *result == Err(Errno::Shutdown));
        for (number, result) in done {
            self.request_done(number, result);
        }
        match received {
            Err(error) => return self.lose(engine, slot, &error.to_string()),
            Ok(true) => self.entered(engine, slot),
            Ok(false) if is_shutting_down => return self.lose(engine, slot, "the server shuts down"),
            Ok(false) => {}
        }
        self.receive_more(engine, slot);
    }

    /// Starts the next receive of a connection.
    fn receive_more<E: Engine>(&mut self, engine: &mut E, slot: usize) {
        let Some(connection) = self.slots.open_mut(slot) else { return };
        connection.is_receiving = true;
        if let Some((number, incoming)) = connection.incoming_data()
            && incoming.length >= DIRECT_BYTES_MIN
            && let Some(request) = self.requests.get_mut(number)
        {
            request.memory(engine);
            if let Some(buffer) = request.buffer.take() {
                let from = (incoming.offset - request.from) as usize;
                return engine.receive_into(connection.id, buffer, from, from + incoming.length as usize);
            }
        }
        engine.receive(connection.id);
    }

    /// Ends the current step of a request.
    fn request_done(&mut self, number: u64, result: Result<(), Errno>) {
        let Some(request) = self.requests.get_mut(number) else { return };
        // A server that shuts down has not executed the request.
        if request.is_stale || result == Err(Errno::Shutdown) {
            return self.requests.wait(number);
        }
        if let Err(errno) = result {
            return self.request_failed(number, errno);
        }
        match request.step {
            Step::Load => {
                if let Some(blocks) = request.buffer.take() {
                    request.replace_parts(blocks);
                }
                return self.requests.wait(number);
            }
            Step::Whole | Step::Store if request.op.writes() => {
                let is_durable = request.is_durable && self.facts.fua;
                let needs_flush = request.is_durable && !is_durable && self.facts.flush;
                if request.purpose != Purpose::Replay && self.facts.flush {
                    let op = if request.step == Step::Store { RequestOp::Write } else { request.op };
                    self.journal.add(op, (request.from, request.to), request.data.clone(), is_durable);
                }
                if needs_flush {
                    request.step = Step::Flush;
                    return self.requests.wait(number);
                }
            }
            Step::Whole if request.op != RequestOp::Flush => {}
            Step::Whole | Step::Store | Step::Flush => {
                let covers = request.covers;
                self.journal.flushed(covers);
            }
        }
        let Some(request) = self.requests.remove(number) else { return };
        match (request.purpose, self.recovery) {
            (Purpose::Host { io }, _) => {
                self.ended.push(Ended { io, result: Ok(output(request)), cause: Cause::Refused });
            }
            (Purpose::Replay, Recovery::Running { left }) => {
                self.recovery = if left > 1 { Recovery::Running { left: left - 1 } } else { Recovery::None };
            }
            (Purpose::Replay | Purpose::OwnFlush, _) => {}
        }
    }

    fn request_failed(&mut self, number: u64, errno: Errno) {
        let Some(request) = self.requests.remove(number) else { return };
        let error = error_of(errno);
        let is_flush = request.op == RequestOp::Flush || request.step == Step::Flush;
        if request.purpose == Purpose::Replay {
            self.lose_writes("the remote refused one of them after it had lost it");
        } else if is_flush || (request.is_durable && error == IoError::Io) {
            self.lose_writes("the remote could not make them durable");
        }
        if let Purpose::Host { io } = request.purpose {
            self.ended.push(Ended { io, result: Err(error), cause: Cause::Reply(errno) });
        }
    }

    /// Gives up the changes of the journal: completed writes are lost.
    pub(super) fn lose_writes(&mut self, why: &'static str) {
        self.loss.get_or_insert(why);
        self.journal.clear();
        self.requests.remove_waiting_replays();
        self.recovery = Recovery::None;
    }
}

/// Returns the output of a successful operation.
fn output(mut request: Request) -> IoOutput {
    let (offset, length) = request.asked;
    // The range of a trim may begin later than the operation.
    let skip = offset.saturating_sub(request.from);
    match (request.op, request.buffer.take()) {
        (RequestOp::Read, _) if request.is_hole => IoOutput::Zeroes,
        (RequestOp::Read, Some(mut buffer)) => {
            if skip > 0 {
                buffer.copy_within(skip as usize..(skip + length) as usize, 0);
            }
            IoOutput::Buffer(buffer)
        }
        (RequestOp::Status, _) => IoOutput::Extents(allocations(&request.extents, skip)),
        _ => IoOutput::Nothing,
    }
}

/// Converts extents, without the first `skip` bytes. A hole reads as zeroes.
fn allocations(extents: &[Status], mut skip: u64) -> Vec<Allocation> {
    const HOLE: u64 = (extent_flags::HOLE | extent_flags::ZERO) as u64;
    let mut list = Vec::with_capacity(extents.len());
    for extent in extents {
        let skipped = skip.min(extent.length);
        skip -= skipped;
        if extent.length > skipped {
            list.push(Allocation { length: extent.length - skipped, hole: extent.flags & HOLE == HOLE });
        }
    }
    list
}

/// Maps an error of the remote to one for the client. The requests were checked, so that EINVAL and
/// the like are faults of the remote.
fn error_of(errno: Errno) -> IoError {
    match errno {
        Errno::Perm => IoError::NotPermitted,
        Errno::NoMem => IoError::NoMemory,
        Errno::NoSpc => IoError::NoSpace,
        _ => IoError::Io,
    }
}
