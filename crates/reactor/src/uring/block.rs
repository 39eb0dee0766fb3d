//! Block I/O on io_uring.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, FsyncFlags};

use super::{BLOCK_FILES, Of, Uring};
use crate::buffer::BLOCK_BYTES_MAX;
use crate::engine::{Event, FileId, Io, IoDone, IoOp};
use crate::files::BlockFile;
use crate::helpers::Job;

/// The most bytes of one read or write (the kernel's own limit is just below 2 GiB).
const PIECE_BYTES_MAX: u64 = 1 << 30;
/// From so many bytes on what is written to a file in memory, or read from it, is copied by a
/// thread of the ring and not by the server's own.
const COPY_BYTES_MAX: u64 = 128 << 10;

/// Block I/O under way.
pub(super) struct Flight {
    tag: u64,
    io: Io,
    /// How many bytes are done.
    at: u64,
}

/// Builds an operation on a block file: on its registered place, or on its descriptor.
macro_rules! on_file {
    ($engine:expr, $file:expr, $fd:ident => $build:expr) => {
        if $engine.files_registered.get($file.0 as usize) == Some(&true) {
            let $fd = Fixed($file.0);
            $build
        } else {
            let $fd = Fd($engine.files[$file.0 as usize].fd.as_raw_fd());
            $build
        }
    };
}

impl Uring {
    pub(super) fn add_file(&mut self, file: OwnedFd) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.register_pool();
        let mut registered = id.0 < BLOCK_FILES;
        if registered && let Err(error) = self.ring.submitter().register_files_update(id.0, &[file.as_raw_fd()]) {
            tracing::warn!(%error, "a file cannot be registered: it is used by its descriptor, which costs more an operation");
            registered = false;
        }
        self.files_registered.push(registered);
        self.files.push(BlockFile::new(file));
        id
    }

    /// Registers the pool, or as much of it as may be pinned (`RLIMIT_MEMLOCK`), so that the kernel
    /// need not look its pages up for every operation.
    fn register_pool(&mut self) {
        if self.pool_registered.is_some() {
            return;
        }
        let (start, len) = self.pool.region();
        let mut try_len = len;
        while try_len >= BLOCK_BYTES_MAX {
            let memory = [libc::iovec { iov_base: start.cast(), iov_len: try_len }];
            // SAFETY: the pool stays mapped until the ring is gone; the kernel reaches only what
            // operations name.
            match unsafe { self.ring.submitter().register_buffers(&memory) } {
                Ok(()) => {
                    tracing::debug!(bytes = try_len, of = len, "buffers are registered");
                    self.pool_registered = Some(try_len);
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, bytes = try_len, "so many buffers cannot be registered (ulimit -l)");
                    try_len /= 2;
                }
            }
        }
        self.pool_registered = Some(0);
    }

    pub(super) fn start_io(&mut self, tag: u64, io: Io) {
        let Some(file) = self.files.get(io.file.0 as usize) else {
            let done = IoDone { result: Err(libc::EBADF), buffer: io.buffer, extents: Vec::new() };
            self.ready.push(Event::Done { tag, done });
            return;
        };
        let carries_data = matches!(io.op, IoOp::Read | IoOp::Write { .. });
        if carries_data && io.buffer.as_ref().is_none_or(|buffer| (buffer.len() as u64) < io.length) {
            let done = IoDone { result: Err(libc::EINVAL), buffer: io.buffer, extents: Vec::new() };
            self.ready.push(Event::Done { tag, done });
        } else if io.op == IoOp::Status || (io.op == IoOp::Trim && file.block_device) {
            self.help(tag, io, 0);
        } else if carries_data && file.in_memory && io.length < COPY_BYTES_MAX {
            // It is a copy, and io_uring would have a thread do it: worth while only for one that
            // takes longer than waking that.
            let done = file.perform(io, 0);
            self.ready.push(Event::Done { tag, done });
        } else {
            let key = self.flights.insert(Flight { tag, io, at: 0 });
            self.push_flight(key);
        }
    }

    fn help(&mut self, tag: u64, io: Io, at: u64) {
        if let Some(file) = self.files.get(io.file.0 as usize) {
            self.helpers.start(Job { tag, file: file.clone(), io, at });
        }
    }

    fn push_flight(&mut self, key: usize) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let io = &mut flight.io;
        let (file, offset) = (io.file, io.offset + flight.at);
        let entry = match io.op {
            IoOp::Read | IoOp::Write { .. } => self.transfer(key),
            IoOp::Flush => Some(on_file!(self, file, fd => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build())),
            IoOp::Zero { punch } => {
                let way = if punch { libc::FALLOC_FL_PUNCH_HOLE } else { libc::FALLOC_FL_ZERO_RANGE };
                let mode = way | libc::FALLOC_FL_KEEP_SIZE;
                let length = io.length;
                Some(on_file!(self, file, fd => opcode::Fallocate::new(fd, length).offset(offset).mode(mode).build()))
            }
            IoOp::Trim => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let length = io.length;
                Some(on_file!(self, file, fd => opcode::Fallocate::new(fd, length).offset(offset).mode(mode).build()))
            }
            IoOp::Status => None,
        };
        if let Some(entry) = entry {
            self.push(entry.user_data(Of::File.number(key as u32)));
        }
    }

    /// A read or write of what is left.
    fn transfer(&mut self, key: usize) -> Option<Entry> {
        let Flight { io, at, .. } = self.flights.get_mut(key)?;
        let (region, _) = self.pool.region();
        let buffer = io.buffer.as_mut()?;
        let registered = buffer.lies_in(region, self.pool_registered.unwrap_or(0));
        let rest = buffer.get_mut(*at as usize..io.length as usize)?;
        let (file, offset) = (io.file, io.offset + *at);
        let (start, len) = (rest.as_mut_ptr(), (rest.len() as u64).min(PIECE_BYTES_MAX) as u32);
        Some(match io.op {
            IoOp::Write { durable } => {
                let flags = if durable { libc::RWF_DSYNC } else { 0 };
                match registered {
                    true => {
                        on_file!(self, file, fd => opcode::WriteFixed::new(fd, start, len, 0).offset(offset).rw_flags(flags as _).build())
                    }
                    false => {
                        on_file!(self, file, fd => opcode::Write::new(fd, start, len).offset(offset).rw_flags(flags as _).build())
                    }
                }
            }
            _ if registered => {
                on_file!(self, file, fd => opcode::ReadFixed::new(fd, start, len, 0).offset(offset).build())
            }
            _ => on_file!(self, file, fd => opcode::Read::new(fd, start, len).offset(offset).build()),
        })
    }

    pub(super) fn flight_ended(&mut self, key: u32, result: i32, events: &mut Vec<Event>) {
        let key = key as usize;
        let Some(flight) = self.flights.get_mut(key) else { return };
        if matches!(-result, libc::EINTR | libc::EAGAIN) {
            return self.push_flight(key);
        }
        let left = match flight.io.op {
            IoOp::Read | IoOp::Write { .. } if result >= 0 => {
                flight.at += result as u64;
                flight.io.length - flight.at
            }
            _ => 0,
        };
        let mut error = (result < 0).then_some(-result);
        if left > 0 {
            let file = self.files.get(flight.io.file.0 as usize);
            let reached = flight.io.offset + flight.at;
            let at_end = result == 0 || file.is_some_and(|file| file.is_end(reached, false));
            match flight.io.op {
                IoOp::Read if at_end => {
                    if let Some(buffer) = &mut flight.io.buffer {
                        buffer[flight.at as usize..flight.io.length as usize].fill(0);
                    }
                }
                IoOp::Write { .. } if result == 0 => error = Some(libc::EIO),
                _ => return self.push_flight(key),
            }
        }
        let flight = self.flights.remove(key);
        // What the medium cannot do at a stroke is done by writing.
        let unable = matches!(error, Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL));
        if unable && matches!(flight.io.op, IoOp::Zero { .. }) {
            return self.help(flight.tag, flight.io, 0);
        }
        let done = IoDone { result: error.map_or(Ok(()), Err), buffer: flight.io.buffer, extents: Vec::new() };
        events.push(Event::Done { tag: flight.tag, done });
    }
}
