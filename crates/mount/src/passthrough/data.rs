//! Reading and writing.
//!
//! What lies in memory is read without asking anybody. What does not is the gate's: either this thread reads it now, or somebody else does later and
//! answers then.

use std::io::{self, IoSlice};
use std::sync::Arc;

use fuser::{ReplyData, ReplyWrite, WriteFlags};
use rustix::fs::{Advice, OFlags, fadvise, fstat};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use super::files::OpenFile;
use super::identity::Mask;
use super::partial;
use super::{Through, WriteBack, errno};
use crate::backing::Backing;
use crate::buffer::{Buffer, with_buffer};
use crate::gate::{Ask, Asker, Entered, Gate, Job, Operation};
use crate::memory;

/// A write as it was asked for.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) data: &'a [u8],
    pub(super) how: WriteFlags,
    pub(super) flags: i32,
}

/// A write whose turn has come, or will come.
struct Plan {
    asker: Asker,
    operation: Operation,
    file: Arc<OpenFile>,
    below: Arc<Backing>,
    offset: u64,
    flags: ReadWriteFlags,
}

impl<G: Gate> Through<G> {
    pub(super) fn read(self: &Arc<Self>, asker: Asker, handle: u64, offset: u64, length: u32, reply: ReplyData) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        let length = length as usize;
        with_buffer(length, |buffer| {
            let buffer = &mut buffer[..length];
            if G::HOLDS
                && !file.direct
                && let Some(read) = memory::read(&file.backing, offset, buffer)
            {
                return reply.data(&buffer[..read]);
            }
            let ask = Ask { asker, operation: Operation::Read, backing: &file.backing, offset, length: length as u64 };
            match self.gate.enter(&ask) {
                Entered::Now(pass) => {
                    let read = file.backing.read_all(offset, buffer);
                    drop(pass);
                    match read {
                        Ok(read) => reply.data(&buffer[..read]),
                        Err(error) => reply.error(errno(error)),
                    }
                }
                Entered::Later(ticket) => self.gate.park(ticket, read_job(&file, offset, length, reply)),
            }
        });
    }

    pub(super) fn write(self: &Arc<Self>, asker: Asker, write: Write<'_>, reply: ReplyWrite) {
        let file = match self.open_files.get(write.handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        file.note_written();
        let plan = match self.plan(asker, file, &write) {
            Ok(plan) => plan,
            Err(error) => return reply.error(errno(error)),
        };
        self.put(plan, write.data, reply);
    }

    /// Writes what has been copied from another file, as somebody's own.
    pub(super) fn write_copied(
        self: &Arc<Self>,
        asker: Asker,
        file: Arc<OpenFile>,
        offset: u64,
        data: &[u8],
        reply: ReplyWrite,
    ) {
        file.note_written();
        let (operation, below, flags) = (Operation::Buffered, file.backing.clone(), ReadWriteFlags::empty());
        self.put(Plan { asker, operation, file, below, offset, flags }, data, reply);
    }

    /// Writes when it is the writer's turn, and answers.
    fn put(self: &Arc<Self>, plan: Plan, data: &[u8], reply: ReplyWrite) {
        let below = plan.below.clone();
        let length = data.len() as u64;
        let ask = Ask { asker: plan.asker, operation: plan.operation, backing: &below, offset: plan.offset, length };
        match self.gate.enter(&ask) {
            Entered::Now(pass) => {
                if let Some(page) = plan.missing(length) {
                    drop(pass);
                    return self.read_and_write(plan, page, data.into(), reply);
                }
                let written = if plan.file.direct {
                    // The kernel's message begins with a header: its data lie where O_DIRECT does not take them.
                    with_buffer(data.len(), |buffer| {
                        let buffer = &mut buffer[..data.len()];
                        buffer.copy_from_slice(data);
                        plan.write(buffer)
                    })
                } else {
                    plan.write(data)
                };
                drop(pass);
                self.written(&plan, written, reply);
            }
            Entered::Later(ticket) => self.gate.park(ticket, self.write_job(plan, data.into(), reply)),
        }
    }

    /// Writes when it is the turn of what has to be read for that.
    fn read_and_write(self: &Arc<Self>, plan: Plan, (offset, length): (u64, u64), data: Buffer, reply: ReplyWrite) {
        let (asker, below) = (plan.asker, plan.below.clone());
        self.run(Ask { asker, operation: Operation::Read, backing: &below, offset, length }, move |through| {
            let written = plan.write(&data);
            through.written(&plan, written, reply);
        });
    }

    /// Who writes, how, and to which descriptor.
    fn plan(&self, asker: Asker, file: Arc<OpenFile>, write: &Write<'_>) -> io::Result<Plan> {
        let gathered = write.how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let asker = if gathered { file.shared.state().writer.unwrap_or(asker) } else { asker };
        let below = if gathered && file.direct { self.buffered(&file)? } else { file.backing.clone() };
        let direct = file.direct && !gathered;
        let asked = OFlags::from_bits_retain(write.flags as u32);
        let mut flags = ReadWriteFlags::empty();
        // Where the end is, is known below: somebody beside the mount may append too.
        if asked.contains(OFlags::APPEND) && !gathered && self.options.write_back == WriteBack::Ours {
            flags |= ReadWriteFlags::APPEND;
        }
        // Writes into memory that are to be durable are followed by a request to sync, by the kernel itself.
        if direct && asked.contains(OFlags::SYNC) {
            flags |= ReadWriteFlags::SYNC;
        } else if direct && asked.contains(OFlags::DSYNC) {
            flags |= ReadWriteFlags::DSYNC;
        }
        let operation = match (gathered, direct) {
            (true, _) => Operation::Gathered,
            (false, true) => Operation::Write,
            (false, false) => Operation::Buffered,
        };
        Ok(Plan { asker, operation, file, below, offset: write.offset, flags })
    }

    /// The same file without `O_DIRECT`.
    fn buffered(&self, file: &OpenFile) -> io::Result<Arc<Backing>> {
        if let Some(buffered) = file.buffered.get() {
            return Ok(buffered.clone());
        }
        let fd = self.nodes.descriptors.reopen(&file.backing, OFlags::RDWR)?;
        let buffered = Arc::new(Backing::beside(&file.backing, fd, file.backing.device, file.backing.inode));
        let _ = fadvise(&buffered, 0, None, Advice::Random);
        Ok(file.buffered.get_or_init(|| buffered).clone())
    }

    fn write_job(self: &Arc<Self>, plan: Plan, data: Buffer, reply: ReplyWrite) -> Job {
        let through = self.clone();
        if plan.is_partial(data.len() as u64) {
            return Job::Call(Box::new(move || match plan.missing(data.len() as u64) {
                Some(page) => through.read_and_write(plan, page, data, reply),
                None => {
                    let written = plan.write(&data);
                    through.written(&plan, written, reply);
                }
            }));
        }
        if plan.is_gathered() || Mask::is_needed_to_write(&plan.asker) {
            return Job::Call(Box::new(move || {
                let written = plan.write(&data);
                through.written(&plan, written, reply);
            }));
        }
        let (file, offset, flags) = (plan.below.clone(), plan.offset, plan.flags.bits());
        Job::Write { file, offset, data, flags, done: Box::new(move |written| through.written(&plan, written, reply)) }
    }

    /// Answers a write, and tells the gate what the disk is to get.
    fn written(&self, plan: &Plan, written: io::Result<usize>, reply: ReplyWrite) {
        match written {
            Ok(written) => {
                if plan.operation != Operation::Write && written > 0 {
                    let Plan { asker, operation, below, .. } = plan;
                    self.gate.dirtied(&Ask {
                        asker: *asker,
                        operation: *operation,
                        backing: below,
                        offset: plan.place_of(written),
                        length: written as u64,
                    });
                }
                reply.written(written as u32);
            }
            Err(error) => reply.error(errno(error)),
        }
    }
}

impl Plan {
    /// Whether it is pages that the kernel gathered: it does not take less than all of it for an answer.
    fn is_gathered(&self) -> bool {
        self.operation == Operation::Gathered
    }

    /// Where so many bytes were written. What was appended went to the file's end, wherever that is by now: the kernel's own is where it was when it looked.
    fn place_of(&self, written: usize) -> u64 {
        if !self.flags.contains(ReadWriteFlags::APPEND) {
            return self.offset;
        }
        fstat(&self.below).map_or(self.offset, |found| (found.st_size as u64).saturating_sub(written as u64))
    }

    /// What has to be read from the disk before so many bytes can be written into memory. Of what the kernel has gathered it has read the rest itself.
    #[inline]
    fn missing(&self, length: u64) -> Option<(u64, u64)> {
        self.is_partial(length).then(|| partial::missing(&self.below, self.offset, length)).flatten()
    }

    /// Whether such a write covers parts of pages.
    #[inline]
    fn is_partial(&self, length: u64) -> bool {
        self.operation == Operation::Buffered && partial::is_partial(self.offset, length)
    }

    fn write(&self, data: &[u8]) -> io::Result<usize> {
        let _mask = Mask::of_writer(&self.asker);
        let mut done = 0;
        loop {
            match pwritev2(&self.below, &[IoSlice::new(&data[done..])], self.offset + done as u64, self.flags) {
                Ok(written) => done += written,
                Err(Errno::INTR) => continue,
                Err(error) if done == 0 || self.is_gathered() => return Err(error.into()),
                // What was written is written: the writer learns of the error when it goes on.
                Err(_) => return Ok(done),
            }
            if done >= data.len() || !self.is_gathered() {
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
