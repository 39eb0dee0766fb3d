//! What clients ask for, and what they make of the answers.

use std::fmt;

use hoistway_nbd::client::{Collector, Completion, ReplyContent, RequestSpec, Status};
use hoistway_nbd::wire::{Command, CommandFlags, Errno, extent_flags};

use super::Client;
use crate::history::{ChangeId, Content};
use hoistway_reactor::simulated::Sim;

/// A request that was made.
#[derive(Debug)]
pub(super) struct Asked {
    command: Command,
    flags: CommandFlags,
    offset: u64,
    length: u64,
    /// When, on the history's clock.
    begun: u64,
    /// When.
    pub since_ns: u64,
    change: Option<ChangeId>,
    /// The server must refuse it with one of these.
    refused_with: &'static [Errno],
}

impl Asked {
    /// Whether something is durable once this is answered well.
    pub fn makes_durable(&self) -> bool {
        self.command == Command::Flush || (self.change.is_some() && self.flags.fua)
    }
}

impl fmt::Display for Asked {
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
    /// Makes a request.
    pub(super) fn request(&mut self, collector: &mut Collector, out: &mut Vec<u8>, sim: &mut Sim) -> (u64, Asked) {
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
        let asked = Asked { command, flags, offset, length, begun, since_ns: sim.now_ns, change, refused_with: &[] };
        match collector.request(&RequestSpec { command, flags, offset, length }, &data, out) {
            Ok(cookie) => (cookie, asked),
            Err(misuse) => {
                self.wrong(sim, format_args!("{asked}: {misuse}"));
                (u64::MAX, asked)
            }
        }
    }

    fn choose(&mut self, collector: &Collector) -> Command {
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

    /// A range of the region: often of whole sectors or pages, else of any bytes.
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

    /// A request that the protocol forbids but the stream survives.
    fn wrong_request(&mut self, collector: &mut Collector, out: &mut Vec<u8>, sim: &mut Sim) -> (u64, Asked) {
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
        let asked = Asked { command, flags, offset: beyond, length, begun, since_ns, change: None, refused_with };
        let extended = collector.session.replies == hoistway_nbd::server::Replies::Extended;
        let payload_flag = hoistway_nbd::wire::command_flags::PAYLOAD_LEN;
        let bits = if extended && command == Command::Write { payload_flag } else { 0 };
        let cookie = collector.request_unchecked(command, bits, beyond, length, out);
        if command == Command::Write {
            out.resize(out.len() + length as usize, 0xbd);
        }
        (cookie, asked)
    }

    /// An answer has come: is it one that may be?
    pub(super) fn settle(&mut self, asked: &Asked, completion: Completion, sim: &mut Sim) {
        if !asked.refused_with.is_empty() {
            match completion.result {
                Err((errno, _)) if asked.refused_with.contains(&errno) => {}
                Err((Errno::Shutdown, _)) if self.common.draining.get() => {}
                other => {
                    let other = other.map(|_| "success");
                    self.wrong(sim, format_args!("{asked}: {other:?}, but {:?} was due", asked.refused_with));
                }
            }
            return;
        }
        if let Some(change) = asked.change {
            self.history.borrow_mut().end(change, completion.result.is_ok(), asked.flags.fua);
        }
        let checked = match completion.result {
            Ok(ReplyContent::Data(data)) => self.history.borrow_mut().check_read(asked.offset, &data, asked.begun),
            Ok(ReplyContent::Extents(extents)) => self.check_extents(asked, &extents),
            Ok(ReplyContent::Nothing) => {
                if asked.command == Command::Flush {
                    self.history.borrow_mut().flushed(asked.begun);
                }
                Ok(())
            }
            Err((Errno::Io | Errno::NoSpc, _)) if self.plan.faulty => Ok(()),
            Err((Errno::NotSup, _)) if asked.flags.fast_zero => Ok(()),
            Err((Errno::Shutdown, _)) if self.common.draining.get() => Ok(()),
            Err((errno, text)) => Err(format!("{errno} ({text}), and nothing was wrong")),
        };
        if let Err(what) = checked {
            self.wrong(sim, format_args!("{asked}: {what}"));
        }
    }

    fn check_extents(&self, asked: &Asked, contexts: &[(String, Vec<Status>)]) -> Result<(), String> {
        let [(name, extents)] = contexts else { return Err(format!("{} contexts", contexts.len())) };
        if name != "base:allocation" || extents.is_empty() {
            return Err(format!("{} extents of {name}", extents.len()));
        }
        if asked.flags.one_extent && (extents.len() > 1 || extents[0].length > asked.length) {
            return Err(format!("one extent was asked for: {extents:?}"));
        }
        let mut at = asked.offset;
        let end = asked.offset + asked.length;
        for extent in extents {
            if extent.length == 0 || at >= end {
                return Err(format!("an extent that is empty or begins beyond the range: {extents:?}"));
            }
            let stop = (at + extent.length).min(end);
            if extent.flags & u64::from(extent_flags::ZERO) != 0 {
                let zeroes = vec![0; (stop - at) as usize];
                let checked = self.history.borrow_mut().check_read(at, &zeroes, asked.begun);
                checked.map_err(|what| format!("an extent says zero: {what}"))?;
            }
            at += extent.length;
        }
        Ok(())
    }
}
