//! Controls of files: those that tell and set a file's flags. Anything else means something to the file system below alone, or to a device.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use fuser::ReplyIoctl;

use super::{Through, errno};
use crate::backing::Backing;
use crate::gate::{Asker, Gate, Operation};

/// `FS_IOC_GETFLAGS`, `FS_IOC_SETFLAGS`: as they are numbered, with the size of a `long`, though an `int` is moved.
const GET_FLAGS: u32 = 0x8008_6601;
const SET_FLAGS: u32 = 0x4008_6602;
/// `FS_IOC_FSGETXATTR`, `FS_IOC_FSSETXATTR`: a `struct fsxattr` of 28 bytes.
const GET_EXTENDED: u32 = 0x801c_581f;
const SET_EXTENDED: u32 = 0x401c_5820;
/// `FS_IOC_GETVERSION`.
const GET_VERSION: u32 = 0x8008_7601;

/// The most that any of them moves, in bytes.
const MOST: usize = 32;

/// A control as it was asked for.
pub(super) struct Control {
    pub(super) handle: u64,
    pub(super) command: u32,
    pub(super) input: Vec<u8>,
    pub(super) room: usize,
}

impl<G: Gate> Through<G> {
    pub(super) fn control(self: &Arc<Self>, asker: Asker, on_directory: bool, control: Control, reply: ReplyIoctl) {
        let open = if on_directory {
            self.opened_directory(control.handle)
        } else {
            self.open_files.get(control.handle).ok().map(|file| file.backing.clone())
        };
        let Some(open) = open else { return reply.error(fuser::Errno::EBADF) };
        let operation = match control.command {
            GET_FLAGS | GET_EXTENDED | GET_VERSION => Operation::Look,
            SET_FLAGS | SET_EXTENDED => Operation::Change,
            _ => return reply.error(fuser::Errno::ENOTTY),
        };
        self.run_on(asker, operation, &open.clone(), move |_| match carry_out(&open, &control) {
            Ok(output) => reply.ioctl(0, &output[..control.room.min(MOST)]),
            Err(error) => reply.error(errno(error)),
        });
    }
}

fn carry_out(file: &Backing, control: &Control) -> io::Result<[u8; MOST]> {
    let mut memory = [0; MOST];
    let given = control.input.len().min(MOST);
    memory[..given].copy_from_slice(&control.input[..given]);
    // SAFETY: each of the commands that come here moves at most 28 bytes, and there are more.
    let result = unsafe { libc::ioctl(file.fd.as_raw_fd(), control.command as libc::Ioctl, memory.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(memory) }
}
