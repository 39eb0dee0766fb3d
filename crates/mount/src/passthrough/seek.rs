//! Seeks to data and holes (`SEEK_DATA`, `SEEK_HOLE`).
//!
//! With write-back by the kernel the file below lacks the data that the kernel caches, and has
//! holes in their place. A copy that skips holes would lose them, so they are written first.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use fuser::{INodeNo, ReplyLseek};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::files::OpenFile;
use super::{FsState, WriteBack, errno};
use crate::gate::{Caller, Gate, Operation};

impl<G: Gate> FsState<G> {
    /// Seeks to data or holes. The kernel handles the other modes itself.
    pub(super) fn seek(self: &Arc<Self>, caller: Caller, handle: u64, offset: i64, whence: i32, reply: ReplyLseek) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        // Cached data of a file are written before its last handle for writing is released.
        if self.options.write_back == WriteBack::Kernel && file.shared.state().writers > 0 {
            return self.flush_and_seek(caller, file, offset, whence, reply);
        }
        self.seek_below(caller, &file, offset, whence, reply);
    }

    /// Has the kernel write its cached data of a file, and seeks then. A separate thread does so,
    /// because the session threads have to receive these writes.
    fn flush_and_seek(
        self: &Arc<Self>,
        caller: Caller,
        file: Arc<OpenFile>,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let fs = self.clone();
        let spawned = thread::Builder::new().name("mount-seek".into()).spawn(move || {
            fs.write_cached_pages(file.number);
            fs.seek_below(caller, &file, offset, whence, reply);
        });
        // The reply was dropped with the closure, which answers with an error.
        if let Err(error) = spawned {
            tracing::warn!("a seek to data failed: {error}");
        }
    }

    /// Has the kernel write all dirty pages of an inode, and drop its pages. A page that a mapping
    /// changes meanwhile is written as well, but not dropped, which the kernel reports as an error.
    fn write_cached_pages(&self, number: u64) {
        if let Some(notifier) = self.notifier.get()
            && let Err(error) = notifier.inval_inode(INodeNo(number), 0, 0)
        {
            tracing::debug!("not all cached pages of inode {number} were dropped: {error}");
        }
    }

    fn seek_below(self: &Arc<Self>, caller: Caller, file: &Arc<OpenFile>, offset: i64, whence: i32, reply: ReplyLseek) {
        let backing = file.backing.clone();
        self.run_on(caller, Operation::MetadataRead, &backing.clone(), move |_| match seek(&backing, offset, whence) {
            Ok(offset) => reply.offset(offset as i64),
            Err(error) => reply.error(errno(error)),
        });
    }
}

fn seek(file: impl AsFd, offset: i64, whence: i32) -> io::Result<u64> {
    let from = match whence {
        libc::SEEK_DATA => SeekFrom::Data(offset as u64),
        libc::SEEK_HOLE => SeekFrom::Hole(offset as u64),
        libc::SEEK_END => SeekFrom::End(offset),
        _ => return Err(Errno::INVAL.into()),
    };
    // A negative offset arrives unchanged; as an unsigned number it would be beyond every file.
    if offset < 0 && whence != libc::SEEK_END {
        return Err(Errno::NXIO.into());
    }
    Ok(rustix::fs::seek(file, from)?)
}
