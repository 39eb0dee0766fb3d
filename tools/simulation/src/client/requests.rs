//! The requests of clients, and the checks of their replies.

use std::fmt;

use hoistway_nbd::client::{Collector, Completion, ReplyContent, RequestSpec, Status};
use hoistway_nbd::wire::{Command, CommandFlags, Errno, extent_flags};

use super::Client;
use crate::history::{ChangeId, Content};
use hoistway_reactor::simulated::Sim;

/// A request without a reply.
#[derive(Debug)]
pub(super) struct PendingRequest {
    command: Command,
    flags: CommandFlags,
    offset: u64,
    length: u64,
    /// The start on the clock of the history.
    begun: u64,
    /// The start in ns of virtual time.
    pub since_ns: u64,
    change: Option<ChangeId>,
    /// The errors of which the server must return one; empty for a valid request.
    refused_with: &'static [Errno],
}

impl PendingRequest {
    /// Returns true if the success of the request makes data durable.
    pub fn makes_durable(&self) -> bool {
        self.command == Command::Flush || (self.change.is_some() && self.flags.fua)
    }
}

impl fmt::Display for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} length {}", self.command, self.offset, self.length)?;
        let flags = [
            (self.flags.fua, " fua"),
            (self.flags.no_hole, " no-hole"),
            (self.flags.dont_fragment, " df"),
            (self.flags.one_extent, " one"),
            (self.flags.fast_zero, " fast"),
            (!self.refused_with.is_empty(), " (wrong)"),
        ];
        flags.iter().filter(|(is, _)| *is).try_for_each(|(_, name)| f.write_str(name))
    }
}

impl Client {
    /// Appends a random request.
    pub(super) fn request(
        &mut self,
        collector: &mut Collector,
        out: &mut Vec<u8>,
        sim: &mut Sim,
    ) -> (u64, PendingRequest) {
        if self.prng.permille(self.plan.wrong_permille) {
            return self.wrong_request(collector, out, sim);
        }
        let command = self.choose(collector);
        let (offset, length) = if command == Command::Flush { (0, 0) } else { self.range() };
        let flags = self.flags(command, collector);
        let mut history = self.history.borrow_mut();
        let begun = history.tick();
        let content = match command {
            Command::Write => Some(Content::Data(0)),
            Command::WriteZeroes => Some(Content::Zeroes),
            Command::Trim => Some(Content::Trimmed),
            _ => None,
        };
        let change = content.map(|content| history.begin(offset, length, content));
        let data = match (command, change) {
            (Command::Write, Some(change)) => history.data(change),
            _ => Vec::new(),
        };
        drop(history);
        let request =
            PendingRequest { command, flags, offset, length, begun, since_ns: sim.now_ns, change, refused_with: &[] };
        match collector.request(&RequestSpec { command, flags, offset, length }, &data, out) {
            Ok(cookie) => (cookie, request),
            Err(misuse) => {
                self.violation(sim, format_args!("{request}: {misuse}"));
                (u64::MAX, request)
            }
        }
    }

    fn choose(&mut self, collector: &Collector) -> Command {
        let flushes = self.plan.flushes_permille;
        if flushes > 0 && self.prng.permille(flushes) && collector.session.abilities().flush {
            return Command::Flush;
        }
        if self.prng.permille(self.plan.reads_permille) {
            return Command::Read;
        }
        let can = collector.session.abilities();
        let command = if self.prng.permille(self.plan.writes_permille) {
            Command::Write
        } else {
            let any = [Command::Flush, Command::Trim, Command::Cache, Command::WriteZeroes, Command::BlockStatus];
            self.prng.pick(&any)
        };
        let possible = match command {
            Command::Flush => can.flush,
            Command::Trim => can.trim,
            Command::Cache => can.cache,
            Command::WriteZeroes => can.write_zeroes,
            Command::BlockStatus => can.block_status,
            _ => true,
        };
        let allowed = possible && !(command.changes() && (self.plan.read_only || can.read_only));
        if allowed { command } else { Command::Read }
    }

    /// Returns a range of the region, often of whole sectors or pages, else of any bytes.
    fn range(&mut self) -> (u64, u64) {
        let (start, len) = {
            let history = self.history.borrow();
            (history.start, history.len())
        };
        let mut length = self.prng.magnitude(self.plan.length_max.min(len));
        let mut at = self.prng.between(0, len - length);
        let unit = self.prng.pick(&[1, 1, 512, 512, 4096]);
        if unit > 1 {
            let from = (start + at).next_multiple_of(unit);
            let long = length.next_multiple_of(unit);
            if from + long <= start + len {
                (at, length) = (from - start, long);
            }
        }
        (start + at, length)
    }

    fn flags(&mut self, command: Command, collector: &Collector) -> CommandFlags {
        let can = collector.session.abilities();
        CommandFlags {
            fua: command.changes() && can.fua && self.prng.permille(150),
            no_hole: command == Command::WriteZeroes && self.prng.permille(300),
            dont_fragment: command == Command::Read
                && collector.session.replies != hoistway_nbd::server::Replies::Simple
                && self.prng.permille(200),
            one_extent: command == Command::BlockStatus && self.prng.permille(300),
            fast_zero: command == Command::WriteZeroes && can.fast_zero && self.prng.permille(200),
        }
    }

    /// Appends an invalid request after which the stream continues.
    fn wrong_request(&mut self, collector: &mut Collector, out: &mut Vec<u8>, sim: &mut Sim) -> (u64, PendingRequest) {
        let size = collector.session.info.size;
        let command = self.prng.pick(&[Command::Read, Command::Write, Command::Trim, Command::Other(77)]);
        let length = self.prng.between(1, 5000);
        let beyond = self.prng.pick(&[size, size - length.min(size) + 1, u64::MAX - 3]);
        let flags = CommandFlags::default();
        let refused_with: &[Errno] = match command {
            Command::Write => &[Errno::NoSpc, Errno::Perm, Errno::Inval],
            Command::Trim => &[Errno::Inval, Errno::Perm, Errno::NoSpc],
            _ => &[Errno::Inval],
        };
        let begun = self.history.borrow_mut().tick();
        let since_ns = sim.now_ns;
        let request =
            PendingRequest { command, flags, offset: beyond, length, begun, since_ns, change: None, refused_with };
        let extended = collector.session.replies == hoistway_nbd::server::Replies::Extended;
        let payload_flag = hoistway_nbd::wire::command_flags::PAYLOAD_LEN;
        let bits = if extended && command == Command::Write { payload_flag } else { 0 };
        let cookie = collector.request_unchecked(command, bits, beyond, length, out);
        if command == Command::Write {
            out.resize(out.len() + length as usize, 0xbd);
        }
        (cookie, request)
    }

    /// Checks the completion of a request.
    pub(super) fn check_completion(&mut self, request: &PendingRequest, completion: Completion, sim: &mut Sim) {
        if !request.refused_with.is_empty() {
            match completion.result {
                Err((errno, _)) if request.refused_with.contains(&errno) => {}
                Err((Errno::Shutdown, _)) if self.shared.draining.get() => {}
                other => {
                    let other = other.map(|_| "success");
                    self.violation(sim, format_args!("{request}: {other:?}, expected {:?}", request.refused_with));
                }
            }
            return;
        }
        if let Some(change) = request.change {
            self.history.borrow_mut().end(change, completion.result.is_ok(), request.flags.fua);
        }
        let checked = match completion.result {
            Ok(ReplyContent::Data(data)) => self.history.borrow_mut().check_read(request.offset, &data, request.begun),
            Ok(ReplyContent::Extents(extents)) => self.check_extents(request, &extents),
            Ok(ReplyContent::Nothing) => {
                if request.command == Command::Flush {
                    self.history.borrow_mut().flushed(request.begun);
                }
                Ok(())
            }
            Err((Errno::Io | Errno::NoSpc, _)) if self.plan.faulty => Ok(()),
            Err((Errno::NotSup, _)) if request.flags.fast_zero => Ok(()),
            Err((Errno::Shutdown, _)) if self.shared.draining.get() => Ok(()),
            Err((errno, text)) => Err(format!("{errno} ({text}) for a valid request")),
        };
        if let Err(what) = checked {
            self.violation(sim, format_args!("{request}: {what}"));
        }
    }

    fn check_extents(&self, request: &PendingRequest, contexts: &[(String, Vec<Status>)]) -> Result<(), String> {
        let [(name, extents)] = contexts else { return Err(format!("{} contexts", contexts.len())) };
        if name != "base:allocation" || extents.is_empty() {
            return Err(format!("{} extents of {name}", extents.len()));
        }
        if request.flags.one_extent && (extents.len() > 1 || extents[0].length > request.length) {
            return Err(format!("one extent was requested: {extents:?}"));
        }
        let mut at = request.offset;
        let end = request.offset + request.length;
        for extent in extents {
            if extent.length == 0 || at >= end {
                return Err(format!("an extent that is empty or begins beyond the range: {extents:?}"));
            }
            let stop = (at + extent.length).min(end);
            if extent.flags & u64::from(extent_flags::ZERO) != 0 {
                let zeroes = vec![0; (stop - at) as usize];
                let checked = self.history.borrow_mut().check_read(at, &zeroes, request.begun);
                checked.map_err(|what| format!("an extent says zero: {what}"))?;
            }
            at += extent.length;
        }
        Ok(())
    }
}
