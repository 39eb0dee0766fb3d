//! A mount above another FUSE file system whose files bypass the page cache.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use crate::support::can_mount;
use crate::support::scheduled::Scheduling;

const TTL: Duration = Duration::from_secs(60);
const FILES: u64 = 12;
/// The size of each file below: in the middle of a page.
const BYTES: usize = 5000;

/// A file system in memory with files named `0`, `1` and so on, which have inode numbers from 2 on.
#[derive(Clone)]
struct Uncached(Arc<Mutex<Vec<Vec<u8>>>>);

impl Uncached {
    fn files(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().expect("no thread has panicked")
    }

    fn attributes(&self, number: INodeNo) -> FileAttr {
        let size = number.0.checked_sub(2).map_or(4096, |index| self.files()[index as usize].len() as u64);
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

impl Filesystem for Uncached {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_EXPORT_SUPPORT);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let number = match name.to_str() {
            // An inode that is opened by its file handle.
            Some(".") => Some(parent.0),
            Some("..") => Some(1),
            name => name.and_then(|name| name.parse().ok()).filter(|index| *index < FILES).map(|index: u64| index + 2),
        };
        match number {
            Some(number) => reply.entry(&TTL, &self.attributes(INodeNo(number)), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(number));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if let Some(size) = size {
            self.files()[number.0 as usize - 2].resize(size as usize, 0);
        }
        reply.attr(&TTL, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let files = self.files();
        let file = &files[number.0 as usize - 2];
        let start = file.len().min(offset as usize);
        reply.data(&file[start..file.len().min(start + size as usize)]);
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let file = &mut self.files()[number.0 as usize - 2];
        let (start, end) = (offset as usize, offset as usize + data.len());
        file.resize(file.len().max(end), 0);
        file[start..end].copy_from_slice(data);
        reply.written(data.len() as u32);
    }
}

/// With the kernel's write-back cache a file is larger than below, so reads cross the end below.
#[test]
fn a_queued_read_across_the_end_of_a_file_below_returns_zeroes_behind_it() {
    if !can_mount("a mount above FUSE") {
        return;
    }
    let below = tempfile::tempdir().expect("a directory");
    let files = Uncached(Arc::new(Mutex::new(vec![vec![7; BYTES]; FILES as usize])));
    let session = fuser::spawn_mount(files, below.path(), &fuser::Config::default()).expect("it mounts");
    // Requests wait in the queue: the limit permits a hundred in a second.
    let config = "[mount]\nwrite_back = \"kernel\"\nelevator = \"noop\"\ndepth = 1\n\
                  [[tenant]]\nname = \"all\"\ncomm = \"*\"\nlimit_iops = 100\n";
    let mounted = Scheduling::new(below.path(), config);
    let open = |number| File::options().read(true).write(true).open(mounted.path().join(format!("{number}")));
    std::thread::scope(|scope| {
        for number in 0..FILES {
            scope.spawn(move || {
                let file = open(number).expect("it is there");
                file.write_all_at(b"end", 200_000).expect("it is cached");
                let mut found = vec![1; 200_000];
                file.read_exact_at(&mut found, 0).expect("it can be read");
                assert!(found[..BYTES].iter().all(|byte| *byte == 7), "the data of file {number}");
                let wrong = found[BYTES..].iter().filter(|byte| **byte != 0).count();
                assert_eq!(wrong, 0, "bytes behind the end of file {number} below");
            });
        }
    });
    drop(mounted);
    // The unmount is lazy, because io_uring closes the files of the mount above some time after the
    // ring.
    let status = Command::new("umount").arg("--lazy").arg(below.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "it is unmounted");
    session.join().expect("it ends");
}
