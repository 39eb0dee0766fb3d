//! Read and write requests.
//!
//! A read of cached pages is answered at once. Any other request goes through the gate: this thread
//! carries it out, or another thread does so later and sends the reply.

use std::io::{self, IoSlice};
use std::sync::Arc;

use fuser::{ReplyData, ReplyWrite, WriteFlags};
use rustix::fs::{Advice, OFlags, fadvise, fstat};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use super::files::OpenFile;
use super::identity::CallerIdentity;
use super::partial;
use super::{FsState, WriteBack, errno};
use crate::backing::Backing;
use crate::buffer::{Buffer, with_buffer};
use crate::gate::{Admission, Caller, Gate, GateRequest, Job, Operation};
use crate::page_cache;

/// The arguments of a write request.
#[derive(Clone, Copy)]
pub(super) struct WriteRequest<'a> {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) data: &'a [u8],
    pub(super) write_flags: WriteFlags,
    pub(super) flags: i32,
}

/// A write with its target file and identity resolved.
struct PlannedWrite {
    caller: Caller,
    operation: Operation,
    file: Arc<OpenFile>,
    target: Arc<Backing>,
    offset: u64,
    flags: ReadWriteFlags,
}

impl<G: Gate> FsState<G> {
    pub(super) fn read(self: &Arc<Self>, caller: Caller, handle: u64, offset: u64, length: u32, reply: ReplyData) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        let length = length as usize;
        with_buffer(length, |buffer| {
            let buffer = &mut buffer[..length];
            if G::MAY_QUEUE
                && !file.direct
                && let Some(read) = page_cache::read(&file.backing, offset, buffer)
            {
                return reply.data(&buffer[..read]);
            }
            let request = GateRequest {
                caller,
                operation: Operation::Read,
                backing: &file.backing,
                offset,
                length: length as u64,
            };
            match self.gate.admit(&request) {
                Admission::Now(slot) => {
                    let read = file.backing.read_all(offset, buffer);
                    drop(slot);
                    match read {
                        Ok(read) => reply.data(&buffer[..read]),
                        Err(error) => reply.error(errno(error)),
                    }
                }
                Admission::Later(ticket) => self.gate.park(ticket, read_job(&file, offset, length, reply)),
            }
        });
    }

    pub(super) fn write(self: &Arc<Self>, caller: Caller, write: WriteRequest<'_>, reply: ReplyWrite) {
        let file = match self.open_files.get(write.handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        file.note_written();
        let planned = match self.plan(caller, file, &write) {
            Ok(planned) => planned,
            Err(error) => return reply.error(errno(error)),
        };
        self.submit_write(planned, write.data, reply);
    }

    /// Writes data copied from another file on behalf of `caller`.
    pub(super) fn write_copied(
        self: &Arc<Self>,
        caller: Caller,
        file: Arc<OpenFile>,
        offset: u64,
        data: &[u8],
        reply: ReplyWrite,
    ) {
        file.note_written();
        let (operation, target, flags) = (Operation::BufferedWrite, file.backing.clone(), ReadWriteFlags::empty());
        self.submit_write(PlannedWrite { caller, operation, file, target, offset, flags }, data, reply);
    }

    /// Writes when the gate dispatches the write, and replies.
    fn submit_write(self: &Arc<Self>, write: PlannedWrite, data: &[u8], reply: ReplyWrite) {
        let target = write.target.clone();
        let length = data.len() as u64;
        let request = GateRequest {
            caller: write.caller,
            operation: write.operation,
            backing: &target,
            offset: write.offset,
            length,
        };
        match self.gate.admit(&request) {
            Admission::Now(slot) => {
                if let Some(page) = write.missing(length) {
                    drop(slot);
                    return self.read_and_write(write, page, data.into(), reply);
                }
                let written = if write.file.direct {
                    // The FUSE header precedes the data, so they are not aligned for O_DIRECT.
                    with_buffer(data.len(), |buffer| {
                        let buffer = &mut buffer[..data.len()];
                        buffer.copy_from_slice(data);
                        write.write(buffer)
                    })
                } else {
                    write.write(data)
                };
                drop(slot);
                self.reply_written(&write, written, reply);
            }
            Admission::Later(ticket) => self.gate.park(ticket, self.write_job(write, data.into(), reply)),
        }
    }

    /// Reads a partially overwritten page as a scheduled read, then writes and replies.
    fn read_and_write(
        self: &Arc<Self>,
        write: PlannedWrite,
        (offset, length): (u64, u64),
        data: Buffer,
        reply: ReplyWrite,
    ) {
        let (caller, target) = (write.caller, write.target.clone());
        self.run(GateRequest { caller, operation: Operation::Read, backing: &target, offset, length }, move |fs| {
            let written = write.write(&data);
            fs.reply_written(&write, written, reply);
        });
    }

    /// Resolves the identity, the flags and the descriptor of a write.
    fn plan(&self, caller: Caller, file: Arc<OpenFile>, write: &WriteRequest<'_>) -> io::Result<PlannedWrite> {
        let from_kernel_cache = write.write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let caller = if from_kernel_cache { file.shared.state().writer.unwrap_or(caller) } else { caller };
        let target = if from_kernel_cache && file.direct { self.buffered(&file)? } else { file.backing.clone() };
        let direct = file.direct && !from_kernel_cache;
        let open_flags = OFlags::from_bits_retain(write.flags as u32);
        let appends = open_flags.contains(OFlags::APPEND) && !from_kernel_cache;
        // The file below would append pages of a mapping, and data written after O_APPEND was
        // turned off.
        if file.is_append_only && !appends {
            return Err(Errno::PERM.into());
        }
        let mut flags = ReadWriteFlags::empty();
        // The file system below appends at the current end, which other writers may have moved.
        if appends && (self.options.write_back == WriteBack::Ours || file.is_append_only) {
            flags |= ReadWriteFlags::APPEND;
        }
        // After a buffered write to an O_SYNC file the kernel sends an fsync request itself.
        if direct && open_flags.contains(OFlags::SYNC) {
            flags |= ReadWriteFlags::SYNC;
        } else if direct && open_flags.contains(OFlags::DSYNC) {
            flags |= ReadWriteFlags::DSYNC;
        }
        let operation = match (from_kernel_cache, direct) {
            (true, _) => Operation::KernelWriteback,
            (false, true) => Operation::Write,
            (false, false) => Operation::BufferedWrite,
        };
        Ok(PlannedWrite { caller, operation, file, target, offset: write.offset, flags })
    }

    /// Returns a descriptor of the same file without `O_DIRECT`.
    fn buffered(&self, file: &OpenFile) -> io::Result<Arc<Backing>> {
        if let Some(buffered) = file.buffered.get() {
            return Ok(buffered.clone());
        }
        let fd = self.nodes.descriptors.reopen(&file.backing, OFlags::RDWR)?;
        let buffered = Arc::new(file.backing.reopened(fd));
        let _ = fadvise(&buffered, 0, None, Advice::Random);
        Ok(file.buffered.get_or_init(|| buffered).clone())
    }

    fn write_job(self: &Arc<Self>, write: PlannedWrite, data: Buffer, reply: ReplyWrite) -> Job {
        let fs = self.clone();
        if write.is_partial(data.len() as u64) {
            return Job::Call(Box::new(move || match write.missing(data.len() as u64) {
                Some(page) => fs.read_and_write(write, page, data, reply),
                None => {
                    let written = write.write(&data);
                    fs.reply_written(&write, written, reply);
                }
            }));
        }
        if write.is_kernel_writeback() || CallerIdentity::must_assume_for_write(&write.caller) {
            return Job::Call(Box::new(move || {
                let written = write.write(&data);
                fs.reply_written(&write, written, reply);
            }));
        }
        let (file, offset, flags) = (write.target.clone(), write.offset, write.flags.bits());
        Job::Write {
            file,
            offset,
            data,
            flags,
            done: Box::new(move |written| fs.reply_written(&write, written, reply)),
        }
    }

    /// Replies to a write and records the dirty range with the gate.
    fn reply_written(&self, write: &PlannedWrite, written: io::Result<usize>, reply: ReplyWrite) {
        match written {
            Ok(written) => {
                if write.operation != Operation::Write && written > 0 {
                    let PlannedWrite { caller, operation, target, .. } = write;
                    self.gate.note_dirty(&GateRequest {
                        caller: *caller,
                        operation: *operation,
                        backing: target,
                        offset: write.written_at(written),
                        length: written as u64,
                    });
                }
                reply.written(written as u32);
            }
            Err(error) => {
                if write.is_kernel_writeback() && self.options.write_back == WriteBack::Kernel {
                    write.file.shared.state().has_lost_writes = true;
                }
                reply.error(errno(error));
            }
        }
    }
}

impl PlannedWrite {
    /// Returns true for pages from the kernel's write-back cache: the kernel treats a short write
    /// of them as an error.
    fn is_kernel_writeback(&self) -> bool {
        self.operation == Operation::KernelWriteback
    }

    /// Returns the offset at which `written` bytes went. Appended data are at the end of the file;
    /// the offset in the request is the end at the time of the kernel's check.
    fn written_at(&self, written: usize) -> u64 {
        if !self.flags.contains(ReadWriteFlags::APPEND) {
            return self.offset;
        }
        fstat(&self.target).map_or(self.offset, |found| (found.st_size as u64).saturating_sub(written as u64))
    }

    /// Returns the range that has to be read from disk before `length` bytes can be written into
    /// the page cache. The kernel has already filled pages of its own write-back cache.
    #[inline]
    fn missing(&self, length: u64) -> Option<(u64, u64)> {
        self.is_partial(length).then(|| partial::missing(&self.target, self.offset, length)).flatten()
    }

    /// Returns true if a buffered write covers a part of a page.
    #[inline]
    fn is_partial(&self, length: u64) -> bool {
        self.operation == Operation::BufferedWrite && partial::is_partial(self.offset, length)
    }

    fn write(&self, data: &[u8]) -> io::Result<usize> {
        let _identity = CallerIdentity::assume_for_write(&self.caller);
        let mut done = 0;
        loop {
            match pwritev2(&self.target, &[IoSlice::new(&data[done..])], self.offset + done as u64, self.flags) {
                Ok(written) => done += written,
                Err(Errno::INTR) => continue,
                Err(error) if done == 0 || self.is_kernel_writeback() => return Err(error.into()),
                // A short write is returned; the next write reports the error.
                Err(_) => return Ok(done),
            }
            if done >= data.len() || !self.is_kernel_writeback() {
                return Ok(done);
            }
        }
    }
}

fn read_job(file: &Arc<OpenFile>, offset: u64, length: usize, reply: ReplyData) -> Job {
    let done = move |read: io::Result<&[u8]>| match read {
        Ok(read) => reply.data(read),
        Err(error) => reply.error(errno(error)),
    };
    Job::Read { file: file.backing.clone(), offset, length, done: Box::new(done) }
}
