//! A FUSE file system with one file, `file`, that bypasses the page cache.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

/// The validity of attributes: the kernel does not notice that the file shrinks.
const TTL: Duration = Duration::from_secs(3600);

/// The mounted file system. Dropping it unmounts it.
pub struct Uncached {
    contents: Arc<Mutex<Vec<u8>>>,
    directory: tempfile::TempDir,
    /// None after the end of the mount.
    session: Option<BackgroundSession>,
}

impl Drop for Uncached {
    fn drop(&mut self) {
        // A session that is dropped leaves a dead mount. The unmount is lazy, because io_uring
        // closes files some time after the ring.
        let status = Command::new("umount").arg("--lazy").arg(self.directory.path()).status();
        if !std::thread::panicking() {
            assert!(status.is_ok_and(|status| status.success()), "it is unmounted");
            self.session.take().expect("a session").join().expect("it ends");
        }
    }
}

impl Uncached {
    /// Mounts the file system; `None` if this process may not mount.
    pub fn mount(contents: Vec<u8>) -> Option<Uncached> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "needs root and /dev/fuse");
            eprintln!("SKIPPED: needs root and /dev/fuse");
            return None;
        }
        let contents = Arc::new(Mutex::new(contents));
        let directory = tempfile::tempdir().expect("a directory");
        let session = fuser::spawn_mount(Contents(contents.clone()), directory.path(), &fuser::Config::default());
        Some(Uncached { contents, directory, session: Some(session.expect("it mounts")) })
    }

    /// Opens the file.
    pub fn open(&self) -> File {
        File::options().read(true).write(true).open(self.directory.path().join("file")).expect("it is there")
    }

    /// The contents of the file, which tests change behind the kernel's back.
    pub fn contents(&self) -> MutexGuard<'_, Vec<u8>> {
        self.contents.lock().expect("no thread has panicked")
    }
}

struct Contents(Arc<Mutex<Vec<u8>>>);

impl Contents {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let size = self.0.lock().expect("no thread has panicked").len() as u64;
        FileAttr {
            ino: number,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if number.0 == 1 { FileType::Directory } else { FileType::RegularFile },
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        }
    }
}

impl Filesystem for Contents {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some("file") => reply.entry(&TTL, &self.attributes(INodeNo(2)), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let file = self.0.lock().expect("no thread has panicked");
        let start = file.len().min(offset as usize);
        reply.data(&file[start..file.len().min(start + size as usize)]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut file = self.0.lock().expect("no thread has panicked");
        let (start, end) = (offset as usize, offset as usize + data.len());
        let longer = file.len().max(end);
        file.resize(longer, 0);
        file[start..end].copy_from_slice(data);
        reply.written(data.len() as u32);
    }
}
