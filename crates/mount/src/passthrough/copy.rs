//! Copying between two open files (`copy_file_range`), which `cp` does.
//!
//! Left to the kernel below, a copy goes through a pipe, which holds 64 KiB: the disk would be kept for sixteen small reads, with a pause behind each, while others
//! wait. So what is not in memory is read in one request and written as any write is: when there is room for it, and as data of who copies. File systems that share
//! what is copied, or copy on a server, do it below.

use std::io;
use std::sync::Arc;

use fuser::ReplyWrite;
use rustix::fs::copy_file_range;

use super::files::OpenFile;
use super::identity::Mask;
use super::{Through, errno};
use crate::backing::{Backing, OVERLAY};
use crate::buffer::{Buffer, with_buffer};
use crate::gate::{Ask, Asker, Entered, Gate, Job, Operation};
use crate::memory;

/// As much is copied between two files in one turn.
const COPY_BYTES: u64 = 1 << 20;

/// Kinds of file systems that need not move what they copy, by the numbers that statfs(2) lists: btrfs, xfs, bcachefs, ocfs2, zfs, overlayfs, nfs, smb, ceph.
const SHARING: [u32; 10] = [
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

/// What two files, and where in them, a copy is between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) from: (u64, u64),
    pub(super) to: (u64, u64),
    pub(super) length: u64,
}

impl<G: Gate> Through<G> {
    /// Copies, and answers how much: at most [`COPY_BYTES`], upon which the kernel is asked for the rest by whoever copies.
    pub(super) fn copy(self: &Arc<Self>, asker: Asker, copy: Copy, reply: ReplyWrite) {
        let files = self.open_files.get(copy.from.0).and_then(|from| Ok((from, self.open_files.get(copy.to.0)?)));
        let (from, to) = match files {
            Ok(files) => files,
            Err(error) => return reply.error(errno(error)),
        };
        let copy = Copy { length: copy.length.min(COPY_BYTES), ..copy };
        if !G::HOLDS || from.direct || to.direct || shares(&from.backing) {
            return self.copy_below(asker, from, to, copy, reply);
        }
        let mut left = Some((to, reply));
        with_buffer(copy.length as usize, |buffer| {
            let buffer = &mut buffer[..copy.length as usize];
            // What lies in memory meets no gate.
            if let Some(read) = memory::read(&from.backing, copy.from.1, buffer)
                && let Some((to, reply)) = left.take()
            {
                self.write_copied(asker, to, copy.to.1, &buffer[..read], reply);
            }
        });
        let Some((to, reply)) = left else { return };
        match self.gate.enter(&reading(asker, &from, copy)) {
            Entered::Now(pass) => self.copy_here(asker, &from, to, copy, pass, reply),
            Entered::Later(ticket) => self.gate.park(ticket, self.copy_job(asker, &from, to, copy, reply)),
        }
    }

    /// Reads and writes. The turn is for the reading: who waits for the disk that it is from does not wait for the one that it goes to.
    fn copy_here(
        self: &Arc<Self>,
        asker: Asker,
        from: &OpenFile,
        to: Arc<OpenFile>,
        copy: Copy,
        turn: G::Pass<'_>,
        reply: ReplyWrite,
    ) {
        with_buffer(copy.length as usize, |buffer| {
            let buffer = &mut buffer[..copy.length as usize];
            let read = from.backing.read_all(copy.from.1, buffer);
            drop(turn);
            match read {
                Ok(read) => self.write_copied(asker, to, copy.to.1, &buffer[..read], reply),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Reads when it is the turn of that, and has somebody write who may wait.
    fn copy_job(
        self: &Arc<Self>,
        asker: Asker,
        from: &OpenFile,
        to: Arc<OpenFile>,
        copy: Copy,
        reply: ReplyWrite,
    ) -> Job {
        let through = self.clone();
        let done = move |read: io::Result<&[u8]>| match read {
            Ok(data) => {
                let (data, gate) = (Buffer::from(data), through.gate.clone());
                gate.hand_on(Box::new(move || through.write_copied(asker, to, copy.to.1, &data, reply)));
            }
            Err(error) => reply.error(errno(error)),
        };
        let (offset, length) = (copy.from.1, copy.length as usize);
        Job::Read { file: from.backing.clone(), offset, length, done: Box::new(done) }
    }

    /// The same, done by the file system below in one call.
    fn copy_below(
        self: &Arc<Self>,
        asker: Asker,
        from: Arc<OpenFile>,
        to: Arc<OpenFile>,
        copy: Copy,
        reply: ReplyWrite,
    ) {
        let on = from.clone();
        // Its reading waits for the disk, its writing does not.
        self.run(reading(asker, &on, copy), move |through| {
            let (mut read_at, mut write_at) = (copy.from.1, copy.to.1);
            let mask = Mask::of_writer(&asker);
            let length = copy.length as usize;
            let copied = copy_file_range(&from.backing, Some(&mut read_at), &to.backing, Some(&mut write_at), length);
            drop(mask);
            match copied {
                Ok(copied) => {
                    to.note_written();
                    through.gate.dirtied(&Ask {
                        asker,
                        operation: Operation::Buffered,
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

fn reading(asker: Asker, from: &Arc<OpenFile>, copy: Copy) -> Ask<'_> {
    Ask { asker, operation: Operation::Read, backing: &from.backing, offset: copy.from.1, length: copy.length }
}

fn shares(file: &Backing) -> bool {
    file.is_of(&SHARING)
}
