//! blktrace's ioctls on a block device: the kernel's user interface, `linux/blktrace_api.h`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `_IOWR(0x12, 115, struct blk_user_trace_setup)` of 72 bytes, and `_IO(0x12, 116..=118)`: the
/// kernel's user interface.
const SETUP: libc::c_ulong = 0xc048_1273;
pub(super) const START: libc::c_ulong = 0x1274;
pub(super) const STOP: libc::c_ulong = 0x1275;
const TEARDOWN: libc::c_ulong = 0x1276;

/// `struct blk_user_trace_setup` of `linux/blktrace_api.h`.
#[repr(C)]
pub(super) struct Setup {
    /// The kernel's name of the device, which the kernel fills in.
    pub name: [u8; 32],
    pub action_mask: u16,
    pub part_bytes: u32,
    pub parts: u32,
    pub start_sector: u64,
    pub end_sector: u64,
    pub pid: u32,
}

const _: () = assert!(size_of::<Setup>() == 72);

/// Sets up the tracing of a device; the kernel fills in the name of `setup`.
pub(super) fn set_up(device: &File, setup: &mut Setup) -> io::Result<()> {
    // SAFETY: the kernel reads and writes the struct, whose layout is its own, and keeps no
    // pointer.
    if unsafe { libc::ioctl(device.as_raw_fd(), SETUP as _, &raw mut *setup) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Ends the tracing of a device, if it is being traced.
pub(super) fn tear_down(device: &Path) -> io::Result<()> {
    let file = match File::open(device) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    for number in [STOP, TEARDOWN] {
        match call(&file, number) {
            // The device is not traced, or tracing is stopped.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            other => other?,
        }
    }
    Ok(())
}

/// Executes a blktrace ioctl without a pointer argument.
pub(super) fn call(device: &File, number: libc::c_ulong) -> io::Result<()> {
    // SAFETY: calls without a pointer argument.
    if unsafe { libc::ioctl(device.as_raw_fd(), number as _) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
