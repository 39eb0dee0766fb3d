//! `copy_file_range` between two open files, the system call behind `cp`.
//!
//! The kernel's generic copy uses a pipe of 64 KiB and would hold the disk for sixteen small reads
//! with a pause after each. Uncached data are therefore read in one request and written like any
//! other write: subject to the limit of dirty memory and charged to the caller. A file system that
//! shares extents or copies on a server does the copy itself.

use std::io;
use std::sync::Arc;

use fuser::ReplyWrite;
use rustix::fs::copy_file_range;

use super::files::OpenFile;
use super::identity::CallerIdentity;
use super::{FsState, errno};
use crate::backing::{Backing, OVERLAY};
use crate::buffer::{Buffer, with_buffer};
use crate::gate::{Admission, Caller, Gate, GateRequest, Job, Operation};
use crate::page_cache;

/// Maximum length of one copy request, in bytes.
const COPY_BYTES: u64 = 1 << 20;

/// Magic numbers (statfs(2)) of file systems that can copy without moving data: btrfs, xfs,
/// bcachefs, ocfs2, zfs, overlayfs, nfs, smb, ceph.
const EXTENT_SHARING: [u32; 10] = [
    0x9123_683e,
    0x5846_5342,
    0xca45_1a4e,
    0x7461_636f,
    0x2fc1_2fc1,
    OVERLAY,
    0x6969,
    0xff53_4d42,
    0xfe53_4d42,
    0x00c3_6400,
];

/// The arguments of a copy request; `from` and `to` are a file handle and an offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyRequest {
    pub(super) from: (u64, u64),
    pub(super) to: (u64, u64),
    pub(super) length: u64,
}

impl<G: Gate> FsState<G> {
    /// Copies at most [`COPY_BYTES`] and replies with the length; the calling process requests the
    /// rest.
    pub(super) fn copy(self: &Arc<Self>, caller: Caller, copy: CopyRequest, reply: ReplyWrite) {
        let files = self.open_files.get(copy.from.0).and_then(|from| Ok((from, self.open_files.get(copy.to.0)?)));
        let (from, to) = match files {
            Ok(files) => files,
            Err(error) => return reply.error(errno(error)),
        };
        let copy = CopyRequest { length: copy.length.min(COPY_BYTES), ..copy };
        if !G::MAY_QUEUE || from.direct || to.direct || can_share_extents(&from.backing) {
            return self.copy_below(caller, from, to, copy, reply);
        }
        let mut pending = Some((to, reply));
        with_buffer(copy.length as usize, |buffer| {
            let buffer = &mut buffer[..copy.length as usize];
            // Cached data need no dispatch slot.
            if let Some(read) = page_cache::read(&from.backing, copy.from.1, buffer)
                && let Some((to, reply)) = pending.take()
            {
                self.write_copied(caller, to, copy.to.1, &buffer[..read], reply);
            }
        });
        let Some((to, reply)) = pending else { return };
        match self.gate.admit(&reading(caller, &from, copy)) {
            Admission::Now(slot) => self.copy_now(caller, &from, to, copy, slot, reply),
            Admission::Later(ticket) => self.gate.park(ticket, self.copy_job(caller, &from, to, copy, reply)),
        }
    }

    /// Reads, releases the dispatch slot, and writes: requests to the source disk must not wait for
    /// the target disk.
    fn copy_now(
        self: &Arc<Self>,
        caller: Caller,
        from: &OpenFile,
        to: Arc<OpenFile>,
        copy: CopyRequest,
        slot: G::Slot<'_>,
        reply: ReplyWrite,
    ) {
        with_buffer(copy.length as usize, |buffer| {
            let buffer = &mut buffer[..copy.length as usize];
            let read = from.backing.read_all(copy.from.1, buffer);
            drop(slot);
            match read {
                Ok(read) => self.write_copied(caller, to, copy.to.1, &buffer[..read], reply),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Returns a job that reads and then starts the write on a thread that may block.
    fn copy_job(
        self: &Arc<Self>,
        caller: Caller,
        from: &OpenFile,
        to: Arc<OpenFile>,
        copy: CopyRequest,
        reply: ReplyWrite,
    ) -> Job {
        let fs = self.clone();
        let done = move |read: io::Result<&[u8]>| match read {
            Ok(data) => {
                let (data, gate) = (Buffer::from(data), fs.gate.clone());
                gate.spawn(Box::new(move || fs.write_copied(caller, to, copy.to.1, &data, reply)));
            }
            Err(error) => reply.error(errno(error)),
        };
        let (offset, length) = (copy.from.1, copy.length as usize);
        Job::Read { file: from.backing.clone(), offset, length, done: Box::new(done) }
    }

    /// Has the file system below copy the range in one system call.
    fn copy_below(
        self: &Arc<Self>,
        caller: Caller,
        from: Arc<OpenFile>,
        to: Arc<OpenFile>,
        copy: CopyRequest,
        reply: ReplyWrite,
    ) {
        let source = from.clone();
        // The read waits for the disk; the write goes to the page cache.
        self.run(reading(caller, &source, copy), move |fs| {
            let (mut read_at, mut write_at) = (copy.from.1, copy.to.1);
            let identity = CallerIdentity::assume_for_write(&caller);
            let length = copy.length as usize;
            let copied = copy_file_range(&from.backing, Some(&mut read_at), &to.backing, Some(&mut write_at), length);
            drop(identity);
            match copied {
                Ok(copied) => {
                    to.note_written();
                    fs.gate.note_dirty(&GateRequest {
                        caller,
                        operation: Operation::BufferedWrite,
                        backing: &to.backing,
                        offset: copy.to.1,
                        length: copied as u64,
                    });
                    reply.written(copied as u32);
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }
}

fn reading(caller: Caller, from: &Arc<OpenFile>, copy: CopyRequest) -> GateRequest<'_> {
    GateRequest { caller, operation: Operation::Read, backing: &from.backing, offset: copy.from.1, length: copy.length }
}

fn can_share_extents(file: &Backing) -> bool {
    file.is_on(&EXTENT_SHARING)
}
