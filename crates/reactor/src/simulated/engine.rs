//! The engine of a simulated server.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::OFlags;

use super::sim::{File, Sim};
use crate::{Buffer, ConnId, Endpoint, Engine, Event, FileId, Io, ListenerId, Message};

/// An [`Engine`] over a [`Sim`]. Time passes and actors run only in [`Engine::turn`].
#[derive(Clone)]
pub struct SimEngine {
    sim: Rc<RefCell<Sim>>,
}

impl SimEngine {
    /// Creates the engine of a simulation.
    pub fn new(sim: Rc<RefCell<Sim>>) -> SimEngine {
        SimEngine { sim }
    }
}

impl Engine for SimEngine {
    fn now_ns(&self) -> u64 {
        self.sim.borrow().now_ns
    }

    fn buffer(&mut self, len: usize) -> Buffer {
        self.sim.borrow().pool.buffer(len)
    }

    fn listen(&mut self, _socket: OwnedFd) -> ListenerId {
        self.sim.borrow_mut().add_listener()
    }

    fn unlisten(&mut self, listener: ListenerId) {
        self.sim.borrow_mut().close_listener(listener);
    }

    fn adopt(&mut self, _socket: OwnedFd) -> ConnId {
        let mut sim = self.sim.borrow_mut();
        sim.violated("a simulation has no sockets to adopt".to_owned());
        ConnId { slot: u32::MAX, generation: 0 }
    }

    fn connect(&mut self, tag: u64, to: Endpoint, timeout_ns: u64) {
        self.sim.borrow_mut().start_connect(tag, &to, timeout_ns);
    }

    fn receive(&mut self, conn: ConnId) {
        self.sim.borrow_mut().receive(conn, None);
    }

    fn receive_into(&mut self, conn: ConnId, buffer: Buffer, from: usize, to: usize) {
        self.sim.borrow_mut().receive(conn, Some((buffer, from, to)));
    }

    fn send(&mut self, conn: ConnId, message: Message) {
        self.sim.borrow_mut().send(conn, message);
    }

    fn close(&mut self, conn: ConnId) {
        self.sim.borrow_mut().close(conn);
    }

    fn open(&mut self, file: OwnedFd) -> FileId {
        let mut sim = self.sim.borrow_mut();
        let id = rustix::fs::fstat(&file).map(|stat| (stat.st_dev, stat.st_ino));
        let direct = rustix::fs::fcntl_getfl(&file).is_ok_and(|flags| flags.contains(OFlags::DIRECT));
        let disk = id.ok().and_then(|id| sim.disk_files.iter().find(|(known, _)| *known == id)).map(|(_, disk)| *disk);
        let Some(disk) = disk else {
            sim.violated("a file was opened that represents no simulated disk".to_owned());
            return FileId(u32::MAX);
        };
        sim.files.push(File { disk, direct });
        FileId(sim.files.len() as u32 - 1)
    }

    fn start(&mut self, tag: u64, io: Io) {
        self.sim.borrow_mut().start(tag, io);
    }

    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> std::io::Result<()> {
        self.sim.borrow_mut().turn(until_ns, events)
    }
}
