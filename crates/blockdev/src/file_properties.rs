//! Detects the properties of a file or block device: its size, its medium, the operations that it
//! supports.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use hoistway_machine::{DeviceNumber, Root, queue_directory};
use rustix::fs::{AtFlags, FallocateFlags, FsWord, StatxFlags, fallocate, fstatfs, statx};

use crate::error::BackendError;

/// The kind of medium below a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumKind {
    /// Memory (tmpfs).
    Memory,
    /// A rotating disk.
    Rotational,
    /// Any other medium.
    Flash,
}

/// The properties of a file or block device.
#[derive(Clone, Copy, Debug)]
pub struct FileProperties {
    /// The size in bytes.
    pub size: u64,
    /// True for a block device, false for a regular file.
    pub block_device: bool,
    /// The kind of medium.
    pub medium: MediumKind,
    /// The unit of direct I/O in bytes; `None` without support for direct I/O.
    pub direct_unit: Option<u32>,
    /// Ranges can be deallocated.
    pub trim: bool,
    /// Ranges can be zeroed without writing data.
    pub fast_zero: bool,
}

/// The largest supported unit of direct I/O in bytes; buffers are aligned to it.
const DIRECT_UNIT_MAX: u32 = 4096;

const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// Returns true for a block device and false for a regular file; other kinds are an error.
pub fn check_kind(path: &Path, file: &File) -> Result<bool, BackendError> {
    let kind = file.metadata().map_err(|cause| BackendError::Open { path: path.into(), cause })?.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(false),
        _ if kind.is_block_device() => return Ok(true),
        _ if kind.is_dir() => "a directory",
        _ if kind.is_char_device() => "a character device",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "something else",
    };
    Err(BackendError::Kind { path: path.into(), what })
}

/// Detects the properties. The file is not changed: hole punching is tried beyond its end.
pub fn examine(file: &File, block_device: bool, read_only: bool) -> io::Result<FileProperties> {
    let metadata = file.metadata()?;
    let size = if block_device { rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))? } else { metadata.len() };
    let device = if block_device { metadata.rdev() } else { metadata.dev() };
    let queue = queue_directory(&Root::machine(), DeviceNumber::from_stat(device));
    let tmpfs = !block_device && fstatfs(file).is_ok_and(|system| system.f_type == TMPFS_MAGIC);
    let rotates = queue.as_deref().and_then(|queue| number(queue, "rotational")) == Some(1);
    let medium = match (tmpfs, rotates) {
        (true, _) => MediumKind::Memory,
        (false, true) => MediumKind::Rotational,
        (false, false) => MediumKind::Flash,
    };
    let (trim, fast_zero) = match &queue {
        _ if read_only => (false, false),
        Some(queue) if block_device => (
            number(queue, "discard_max_bytes").unwrap_or(0) > 0,
            number(queue, "write_zeroes_max_bytes").unwrap_or(0) > 0,
        ),
        _ if block_device => (false, false),
        _ => {
            let punches = can_punch(file, size);
            (punches, punches)
        }
    };
    let direct_unit = if tmpfs { None } else { direct_unit(file, block_device, queue.as_deref()) };
    Ok(FileProperties { size, block_device, medium, direct_unit, trim, fast_zero })
}

/// Tries to punch a hole beyond the end of the file, which shows whether the file system supports
/// it.
fn can_punch(file: &File, size: u64) -> bool {
    let behind = size.next_multiple_of(1 << 20);
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, behind, 4096).is_ok()
}

/// Returns the unit of direct I/O: from `statx` where the kernel reports it (6.1), else the logical
/// block size.
fn direct_unit(file: &File, block_device: bool, queue: Option<&Path>) -> Option<u32> {
    let reported = statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let reported = reported.filter(|reported| reported.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let unit = match reported {
        Some(reported) => reported.stx_dio_offset_align.max(reported.stx_dio_mem_align),
        None if block_device => rustix::fs::ioctl_blksszget(file).unwrap_or(DIRECT_UNIT_MAX),
        None => queue.and_then(|queue| number(queue, "logical_block_size")).map_or(DIRECT_UNIT_MAX, |size| size as u32),
    };
    (unit.is_power_of_two() && unit <= DIRECT_UNIT_MAX).then_some(unit.max(512))
}

fn number(queue: &Path, attribute: &str) -> Option<u64> {
    fs::read_to_string(queue.join(attribute)).ok()?.trim().parse().ok()
}
