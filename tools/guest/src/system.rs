//! Calls of the kernel that the standard library lacks, and the reading and writing of its files.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::Outcome;

/// The alignment of buffers for direct I/O.
const ALIGNMENT: usize = 4096;

/// A buffer for direct I/O.
#[derive(Debug)]
pub struct AlignedBuffer {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// Creates a buffer of zeros.
    pub fn new(length: usize) -> AlignedBuffer {
        let storage = vec![0; length + ALIGNMENT];
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        AlignedBuffer { storage, start, length }
    }

    /// The first bytes of the buffer; all of them if it is shorter.
    pub fn first(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.start + bytes.min(self.length);
        self.storage.get_mut(self.start..end).unwrap_or_default()
    }
}

/// How a device is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache.
    Buffered,
    /// Past the page cache.
    Direct,
    /// Past the page cache; a write ends when the data are stable.
    Stable,
}

/// Opens a block device for reading and writing.
pub fn open_device(path: &Path, caching: Caching) -> Outcome<File> {
    let flags = match caching {
        Caching::Buffered => 0,
        Caching::Direct => libc::O_DIRECT,
        Caching::Stable => libc::O_DIRECT | libc::O_DSYNC,
    };
    let mut options = File::options();
    options.read(true).write(true).custom_flags(flags);
    options.open(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file of the kernel, without the line feed at its end.
pub fn read(path: impl AsRef<Path>) -> Outcome<String> {
    let path = path.as_ref();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

/// Writes a file of the kernel.
pub fn write(path: impl AsRef<Path>, text: &str) -> Outcome<()> {
    let path = path.as_ref();
    try_write(path, text).map_err(|error| format!("cannot write `{text}` to {}: {error}", path.display()))
}

/// Does the same, and returns the error of the kernel.
pub fn try_write(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    // One write: the kernel takes each as a whole value.
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

fn c_string(text: &str) -> Outcome<CString> {
    CString::new(text).map_err(|_| format!("a zero byte in `{text}`"))
}

fn check(result: libc::c_long, what: impl FnOnce() -> String) -> Outcome<()> {
    if result < 0 { Err(format!("{}: {}", what(), io::Error::last_os_error())) } else { Ok(()) }
}

/// Mounts a file system of the kernel.
pub fn mount(kind: &str, at: &str) -> Outcome<()> {
    let _ = fs::create_dir_all(at);
    let (kind_c, at_c) = (c_string(kind)?, c_string(at)?);
    // SAFETY: the strings end with zeros and live during the call; no data are passed.
    let result = unsafe { libc::mount(kind_c.as_ptr(), at_c.as_ptr(), kind_c.as_ptr(), 0, std::ptr::null()) };
    check(result.into(), || format!("cannot mount {kind} at {at}"))
}

/// Mounts a block device. Without access times, reads of files change nothing.
pub fn mount_device(device: &str, kind: &str, at: &str, access_times: bool) -> Outcome<()> {
    let flags = if access_times { 0 } else { libc::MS_NOATIME };
    let _ = fs::create_dir_all(at);
    let (device_c, kind_c, at_c) = (c_string(device)?, c_string(kind)?, c_string(at)?);
    // SAFETY: the strings end with zeros and live during the call; no data are passed.
    let result = unsafe { libc::mount(device_c.as_ptr(), at_c.as_ptr(), kind_c.as_ptr(), flags, std::ptr::null()) };
    check(result.into(), || format!("cannot mount {device} at {at}"))
}

/// Unmounts a file system.
pub fn unmount(at: &str) -> Outcome<()> {
    let at_c = c_string(at)?;
    // SAFETY: the string ends with a zero and lives during the call.
    let result = unsafe { libc::umount2(at_c.as_ptr(), 0) };
    check(result.into(), || format!("cannot unmount {at}"))
}

/// Drops the clean pages of a file from the page cache.
pub fn forget_pages(file: &File) -> Outcome<()> {
    // SAFETY: the descriptor is open; the call takes numbers only.
    let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if error == 0 { Ok(()) } else { Err(format!("posix_fadvise: {}", io::Error::from_raw_os_error(error))) }
}

/// Returns the name of the disk with a serial number, such as `vdc`.
pub fn disk_with_serial(serial: &str) -> Outcome<Option<String>> {
    let entries = fs::read_dir("/sys/block").map_err(|error| format!("/sys/block: {error}"))?;
    let has_serial = |entry: &fs::DirEntry| {
        // SCSI disks have it in a page of binary data.
        let page = fs::read(entry.path().join("device/vpd_pg80")).unwrap_or_default();
        read(entry.path().join("serial")).is_ok_and(|found| found == serial) || page.ends_with(serial.as_bytes())
    };
    let found = entries.flatten().find(has_serial);
    Ok(found.map(|entry| entry.file_name().to_string_lossy().into_owned()))
}

/// Inserts a module. A module that is present already is no error.
pub fn insert_module(path: &str, parameters: &str) -> Outcome<()> {
    match try_insert_module(path, parameters) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => {
            Err(format!("cannot insert {path} {parameters}: {error}"))
        }
        _ => Ok(()),
    }
}

/// Inserts a module and returns the error of the kernel.
pub fn try_insert_module(path: &str, parameters: &str) -> io::Result<()> {
    let file = File::open(path)?;
    let parameters = CString::new(parameters)?;
    // SAFETY: the descriptor is open, and the string ends with a zero and lives during the call.
    let result = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Removes a module and returns the error of the kernel.
pub fn remove_module(name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: the string ends with a zero and lives during the call.
    let result = unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), libc::O_NONBLOCK) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the I/O class (1 is real time, 2 best effort, 3 idle) and level of the calling thread.
pub fn set_io_priority(class: u64, level: u64) -> Outcome<()> {
    const WHO_PROCESS: libc::c_int = 1;
    let value = (class << 13) | level;
    // SAFETY: the call takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    check(result, || format!("cannot set the I/O class {class} with level {level}"))
}

/// Attaches a file to the loop device that is free, and returns the number of the device.
pub fn attach_loop(file: &File) -> Outcome<i32> {
    const LOOP_CTL_GET_FREE: u64 = 0x4c82;
    const LOOP_SET_FD: u64 = 0x4c00;
    let control = File::options().read(true).write(true).open("/dev/loop-control");
    let control = control.map_err(|error| format!("/dev/loop-control: {error}"))?;
    // SAFETY: the descriptor is open; the call takes no pointer.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as libc::Ioctl) };
    check(number.into(), || "no loop device is free".to_owned())?;
    let device = File::options().read(true).write(true).open(format!("/dev/loop{number}"));
    let device = device.map_err(|error| format!("/dev/loop{number}: {error}"))?;
    // SAFETY: both descriptors are open; the kernel keeps its own reference to the file.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD as libc::Ioctl, file.as_raw_fd()) };
    check(result.into(), || format!("cannot attach a file to /dev/loop{number}"))?;
    Ok(number)
}

/// Detaches the file of a loop device.
pub fn detach_loop(number: i32) -> Outcome<()> {
    const LOOP_CLR_FD: u64 = 0x4c01;
    let path = format!("/dev/loop{number}");
    let device = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
    // SAFETY: the descriptor is open; the call takes no pointer.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as libc::Ioctl, 0) };
    check(result.into(), || format!("cannot detach the file of {path}"))
}

/// Calls an ioctl that takes no argument, or a pointer to a buffer that the kernel reads and
/// writes. The number says how long the argument is; a shorter buffer is an error.
pub fn control(file: &File, number: u32, argument: &mut [u8]) -> io::Result<()> {
    let length = (number >> 16 & 0x3fff) as usize;
    if argument.len() < length {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: the descriptor is open; the buffer lives during the call and has the length that the
    // number of the ioctl states.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number as libc::Ioctl, argument.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The extent of a reset of SCSI devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScsiReset {
    /// One disk.
    Device = 1,
    /// All disks on the bus.
    Bus = 2,
    /// The host with all its buses.
    Host = 3,
}

/// Resets a SCSI disk, its bus or its host.
pub fn reset_scsi(path: &Path, reset: ScsiReset) -> Outcome<()> {
    const SG_SCSI_RESET: u64 = 0x2284;
    let device = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut extent = reset as libc::c_int;
    // SAFETY: the descriptor is open, and the pointer is to a number that lives during the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), SG_SCSI_RESET as libc::Ioctl, &raw mut extent) };
    check(result.into(), || format!("cannot reset {} ({reset:?})", path.display()))
}

/// Writes all dirty data and drops the caches of pages, inodes and directories.
pub fn drop_caches() -> Outcome<()> {
    // SAFETY: the call takes nothing.
    unsafe { libc::sync() };
    write("/proc/sys/vm/drop_caches", "3")
}

/// The time in which the processors were idle since the boot, to 10 ms.
pub fn idle_time() -> Outcome<Duration> {
    let stat = read("/proc/stat")?;
    // The first line adds all processors up: user, nice, system, idle, and waiting for I/O.
    let fields: Vec<u64> = stat.lines().next().unwrap_or_default().split_whitespace().flat_map(str::parse).collect();
    let ticks = fields.get(3).zip(fields.get(4)).map(|(idle, waiting)| idle + waiting);
    Ok(Duration::from_millis(10 * ticks.ok_or("/proc/stat has no times of the processors")?))
}

/// Powers the machine off. Returns only if the kernel refuses.
pub fn power_off() {
    // SAFETY: the calls take no pointers.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_has_its_length() {
        let mut buffer = AlignedBuffer::new(8192);
        assert_eq!(buffer.first(8192).as_ptr().align_offset(ALIGNMENT), 0);
        assert_eq!(buffer.first(8192).len(), 8192);
        assert_eq!(buffer.first(100_000).len(), 8192);
    }
}
