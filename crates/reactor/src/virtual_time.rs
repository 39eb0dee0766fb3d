//! An engine with virtual time, and without sockets and files.

use std::io;
use std::os::fd::OwnedFd;

use crate::buffer::{Buffer, Pool};
use crate::engine::{ConnId, Endpoint, Engine, Event, FileId, Io, IoDone, ListenerId, Message};

/// An engine for devices that need virtual time only: a drive model above a backend that completes
/// every operation at once.
#[derive(Debug)]
pub struct Virtual {
    now_ns: u64,
    pool: Pool,
    refused: Vec<Event>,
}

impl Default for Virtual {
    fn default() -> Virtual {
        Virtual { now_ns: 0, pool: Pool::new(8 << 20), refused: Vec::new() }
    }
}

impl Engine for Virtual {
    fn name(&self) -> &'static str {
        "virtual"
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn buffer(&mut self, len: usize) -> Buffer {
        self.pool.buffer(len)
    }

    fn listen(&mut self, _: OwnedFd) -> ListenerId {
        ListenerId(u32::MAX)
    }

    fn unlisten(&mut self, _: ListenerId) {}

    /// Returns a connection that is broken from the start, because there are no sockets.
    fn adopt(&mut self, _: OwnedFd) -> ConnId {
        let conn = ConnId { slot: u32::MAX, generation: 0 };
        self.refused.push(Event::Broken { conn });
        conn
    }

    /// Refuses every connection, because there are no sockets.
    fn connect(&mut self, tag: u64, _: Endpoint, _: u64) {
        self.refused.push(Event::Connected { tag, result: Err(io::ErrorKind::Unsupported.into()) });
    }

    fn receive(&mut self, _: ConnId) {}

    fn receive_into(&mut self, _: ConnId, _: Buffer, _: usize, _: usize) {}

    fn send(&mut self, _: ConnId, _: Message) {}

    fn close(&mut self, _: ConnId) {}

    fn open(&mut self, _: OwnedFd) -> FileId {
        FileId(u32::MAX)
    }

    /// Fails every operation with EBADF, because there are no files.
    fn start(&mut self, tag: u64, io: Io) {
        let done = IoDone { result: Err(libc::EBADF), buffer: io.buffer, extents: Vec::new(), missing: 0 };
        self.refused.push(Event::Done { tag, done });
    }

    /// Advances the time to `until_ns` at once.
    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        events.append(&mut self.refused);
        match until_ns {
            _ if !events.is_empty() => Ok(()),
            Some(until_ns) => {
                self.now_ns = self.now_ns.max(until_ns);
                Ok(())
            }
            None => Err(io::Error::other("the drive model has no further event")),
        }
    }
}
