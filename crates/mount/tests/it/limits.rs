//! Operations that a mount cannot pass through: each fails as on a file system without the feature,
//! so that programs fall back. `docs/mount-files.md` lists them.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use hoistway_mount::{Options, Unscheduled};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, StatxFlags, fallocate, flock, openat, statx,
};
use rustix::io::Errno;

use crate::support::{Mounted, can_mount, scratch};

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
