//! Operations that a mount cannot pass through: each fails as on a file system without the feature,
//! so that programs fall back. `docs/mount-files.md` lists them.

use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use hoistway_mount::{Options, Unscheduled, WriteBack};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, StatxFlags, fallocate, flock, openat, statx,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::support::{MountProcess, MountVariant, Mounted, Volume, can_mount, has, run, scratch};

#[test]
fn unsupported_operations_fail_with_their_error() {
    if !can_mount("limits") {
        return;
    }
    let source = scratch();
    let mounted = Mounted::new(source.path(), Arc::new(Unscheduled), Options::default());
    let path = mounted.path().join("a");
    fs::write(&path, vec![1; 65_536]).expect("it is written");
    let file = File::options().read(true).write(true).open(&path).expect("it is there");

    let nameless = openat(CWD, mounted.path(), OFlags::TMPFILE | OFlags::RDWR, Mode::from_raw_mode(0o600)).map(drop);
    assert_eq!(nameless, Err(Errno::OPNOTSUPP), "a file without a name");
    for flags in [FallocateFlags::COLLAPSE_RANGE, FallocateFlags::INSERT_RANGE] {
        assert_eq!(fallocate(&file, flags, 4096, 4096), Err(Errno::OPNOTSUPP), "{flags:?}");
    }
    let other = File::create(mounted.path().join("b")).expect("it is created");
    assert_eq!(rustix::fs::ioctl_ficlone(&other, &file), Err(Errno::OPNOTSUPP), "a clone");
    let born = statx(CWD, &path, AtFlags::empty(), StatxFlags::BTIME).expect("it is there");
    assert_eq!(born.stx_mask & StatxFlags::BTIME.bits(), 0, "the time of birth");
    let mut extents = [0u64; 64];
    // SAFETY: the request's header is 32 zero bytes, which ask for no extents.
    let mapped = unsafe { libc::ioctl(file.as_raw_fd(), 0xc020_660b, extents.as_mut_ptr()) };
    assert_eq!((mapped, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EOPNOTSUPP)), "FIEMAP");
}

#[test]
fn flags_of_a_read_or_write_that_fuse_lacks_are_refused() {
    if !can_mount("flags of reads and writes") {
        return;
    }
    let source = scratch();
    let mounted = Mounted::new(source.path(), Arc::new(Unscheduled), Options::default());
    let path = mounted.path().join("a");
    fs::write(&path, vec![1; 8192]).expect("it is written");
    let file = File::options().read(true).write(true).open(&path).expect("it is there");
    let mut memory = [0; 4096];
    for (name, flags) in [("RWF_NOWAIT", 0x08), ("RWF_DONTCACHE", 0x80)] {
        let flags = ReadWriteFlags::from_bits_retain(flags);
        let read = preadv2(&file, &mut [IoSliceMut::new(&mut memory)], 0, flags);
        assert_eq!(read, Err(Errno::OPNOTSUPP), "{name}");
        let written = pwritev2(&file, &[IoSlice::new(&[2; 4096])], 0, flags);
        assert_eq!(written, Err(Errno::OPNOTSUPP), "{name}");
    }
    assert_eq!(fs::read(&path).expect("it is there"), vec![1; 8192]);
}

/// Calls an ioctl with an argument of 256 bytes, and returns the argument or the error.
fn ioctl(file: &File, command: u32, mut argument: [u8; 256]) -> Result<[u8; 256], Option<i32>> {
    // SAFETY: each of the commands used here transfers at most 256 bytes.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), command as libc::Ioctl, argument.as_mut_ptr()) };
    if result < 0 { Err(std::io::Error::last_os_error().raw_os_error()) } else { Ok(argument) }
}

#[test]
fn the_label_is_that_of_the_file_system_below_and_other_requests_to_it_are_refused() {
    if !can_mount("the label") || !has("the label", "mkfs.ext4") {
        return;
    }
    const GET_LABEL: u32 = 0x8100_9431;
    const SET_LABEL: u32 = 0x4100_9432;
    let volume = Volume::new("ext4", 32);
    let below = File::open(volume.path()).expect("it is there");
    let mut label = [0; 256];
    label[..5].copy_from_slice(b"music");
    ioctl(&below, SET_LABEL, label).expect("ext4 supports it");
    let mounted = Mounted::new(&volume.path(), Arc::new(Unscheduled), Options::default());
    fs::write(mounted.path().join("a"), "x").expect("it is written");
    for path in [mounted.path().to_owned(), mounted.path().join("a")] {
        let file = File::open(path).expect("it is there");
        assert_eq!(ioctl(&file, GET_LABEL, [0; 256]), Ok(label));
        for (name, command) in [
            ("FS_IOC_SETFSLABEL", SET_LABEL),
            ("FITRIM", 0xc018_5879),
            ("FS_IOC_GETFSUUID", 0x8011_1500),
            ("FS_IOC_GETFSSYSFSPATH", 0x8081_1501),
        ] {
            assert_eq!(ioctl(&file, command, [0xff; 256]), Err(Some(libc::ENOTTY)), "{name}");
        }
    }
}

#[test]
fn stores_to_an_append_only_file_and_into_a_hole_of_a_full_disk_are_reported_by_msync() {
    if !can_mount("stores to a mapping") || !has("stores to a mapping", "mkfs.ext4") {
        return;
    }
    let volume = Volume::new("ext4", 16);
    let mounted = MountProcess::new(&volume.path(), MountVariant::open(WriteBack::Ours));
    let path = |name| mounted.path().join(name);
    fs::write(path("log"), vec![1; 4096]).expect("it is written");
    run("chattr", &["+a", path("log").to_str().expect("a path")]);
    let log = File::options().read(true).append(true).open(path("log")).expect("it opens");
    assert_eq!(store(&log), Err(Errno::PERM), "the store would overwrite");
    rustix::fs::fcntl_setfl(&log, OFlags::empty()).expect("the kernel does not know the flag");
    assert_eq!(rustix::io::pwrite(&log, b"x", 0), Err(Errno::PERM), "the write would overwrite");
    drop(log);
    assert_eq!(fs::read(path("log")).expect("it is there"), vec![1; 4096]);
    run("chattr", &["-a", path("log").to_str().expect("a path")]);

    let hole = File::options().read(true).write(true).create_new(true).open(path("hole")).expect("it is created");
    hole.set_len(4096).expect("a hole takes no block");
    let much = File::create(path("much")).expect("it is created");
    while rustix::io::write(&much, &[2; 4096]).is_ok() {}
    assert_eq!(store(&hole), Err(Errno::NOSPC));
    drop(hole);
    assert_eq!(fs::read(volume.path().join("hole")).expect("it is there"), vec![0; 4096]);
}

/// Stores a byte through a mapping of the first page of a file, and returns the result of msync.
fn store(file: &File) -> rustix::io::Result<()> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping of one page at an address of the kernel's choice, which is unmapped
    // after its last use.
    unsafe {
        let page = mmap(std::ptr::null_mut(), 4096, protection, MapFlags::SHARED, file, 0)?;
        page.cast::<u8>().write_volatile(7);
        let written = msync(page, 4096, MsyncFlags::SYNC);
        munmap(page, 4096)?;
        written
    }
}

#[test]
fn locks_are_local_to_the_mount() {
    if !can_mount("locks") {
        return;
    }
    let source = scratch();
    let mounted = Mounted::new(source.path(), Arc::new(Unscheduled), Options::default());
    let inside = File::create(mounted.path().join("a")).expect("it is created");
    let below = File::open(source.path().join("a")).expect("it is there");
    let again = File::open(mounted.path().join("a")).expect("it is there");
    flock(&inside, FlockOperation::NonBlockingLockExclusive).expect("the file is not locked");
    assert_eq!(
        flock(&again, FlockOperation::NonBlockingLockExclusive),
        Err(Errno::AGAIN),
        "users of the mount see the lock"
    );
    assert_eq!(flock(&below, FlockOperation::NonBlockingLockExclusive), Ok(()), "other users do not");
}

#[test]
fn the_root_is_presented_with_its_own_inode_number() {
    if !can_mount("the root") {
        return;
    }
    let source = scratch();
    let mounted = Mounted::new(source.path(), Arc::new(Unscheduled), Options::default());
    let (below, inside) = (fs::metadata(source.path()).expect("there"), fs::metadata(mounted.path()).expect("there"));
    assert_eq!((below.ino(), below.mode(), below.uid()), (inside.ino(), inside.mode(), inside.uid()));
    assert_ne!(below.dev(), inside.dev());
}
