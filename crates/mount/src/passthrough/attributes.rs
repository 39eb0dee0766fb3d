//! Conversion of attributes between the file system below and FUSE.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Statx, StatxTimestamp, Timespec, UTIME_NOW, UTIME_OMIT, makedev};

/// Converts attributes to those of a file presented as inode `number`.
pub(super) fn attributes(found: &Statx, number: u64) -> FileAttr {
    let mode = u32::from(found.stx_mode);
    FileAttr {
        ino: INodeNo(number),
        size: found.stx_size,
        blocks: found.stx_blocks,
        atime: time(&found.stx_atime),
        mtime: time(&found.stx_mtime),
        ctime: time(&found.stx_ctime),
        crtime: UNIX_EPOCH,
        kind: kind_of(mode),
        perm: (mode & 0o7777) as u16,
        nlink: found.stx_nlink,
        uid: found.stx_uid,
        gid: found.stx_gid,
        rdev: packed_device(found.stx_rdev_major, found.stx_rdev_minor),
        blksize: found.stx_blksize,
        flags: 0,
    }
}

/// Returns the file type in a mode. An unknown type becomes a regular file.
pub(super) fn kind_of(mode: u32) -> FileType {
    use rustix::fs::FileType as Type;
    match Type::from_raw_mode(mode) {
        Type::Directory => FileType::Directory,
        Type::Symlink => FileType::Symlink,
        Type::Fifo => FileType::NamedPipe,
        Type::Socket => FileType::Socket,
        Type::CharacterDevice => FileType::CharDevice,
        Type::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

/// Converts the type of a directory entry (`d_type`).
pub(super) fn kind_of_entry(kind: u8) -> FileType {
    // `d_type` is the file type bits of a mode, shifted by 12 (`DTTOIF`).
    kind_of(u32::from(kind) << 12)
}

/// Packs a device number into 32 bits: 8 bits of the minor number, 12 of the major number, the rest
/// of the minor number.
fn packed_device(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12
}

/// Unpacks a device number that [`packed_device`] has packed.
pub(super) fn device(packed: u32) -> u64 {
    makedev((packed >> 8) & 0xfff, (packed & 0xff) | (packed >> 12) & 0xf_ff00)
}

fn time(time: &StatxTimestamp) -> SystemTime {
    let nanoseconds = Duration::from_nanos(u64::from(time.tv_nsec));
    let whole = Duration::from_secs(time.tv_sec.unsigned_abs());
    let seconds = if time.tv_sec >= 0 { UNIX_EPOCH.checked_add(whole) } else { UNIX_EPOCH.checked_sub(whole) };
    seconds.and_then(|seconds| seconds.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}

/// Converts a time for utimensat(2); `None` leaves the time unchanged.
pub(super) fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let at = match time {
        None => return Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => return Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(at)) => at,
    };
    match at.duration_since(UNIX_EPOCH) {
        Ok(since) => Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() },
        // fuser inverts the nanoseconds of times before 1970: the kernel counts them forward from
        // the second.
        Err(before) => {
            let before = before.duration();
            Timespec { tv_sec: -(before.as_secs() as i64), tv_nsec: before.subsec_nanos().into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacking_a_packed_device_returns_it() {
        for (major, minor) in [(8, 1), (259, 300), (4095, 0xf_ffff), (0, 0)] {
            assert_eq!(device(packed_device(major, minor)), makedev(major, minor));
        }
    }

    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        // SAFETY: the structure is plain data, for which zero is a valid value.
        let mut stamp: StatxTimestamp = unsafe { std::mem::zeroed() };
        (stamp.tv_sec, stamp.tv_nsec) = (-2, 250_000_000);
        assert_eq!(time(&stamp), UNIX_EPOCH - Duration::from_millis(1750));
        // The value that fuser passes for the same time.
        let given = TimeOrNow::SpecificTime(UNIX_EPOCH - Duration::new(2, 250_000_000));
        let Timespec { tv_sec, tv_nsec } = timespec(Some(given));
        assert_eq!((tv_sec, tv_nsec), (-2, 250_000_000));
    }
}
