//! ioctl requests that read and set inode flags, and that read the label of the file system. Other
//! requests depend on the file system below or on a device, and return `ENOTTY`.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use fuser::ReplyIoctl;

use super::{FsState, errno};
use crate::backing::Backing;
use crate::gate::{Caller, Gate, Operation};

/// `FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS`: their numbers encode a `long`, although an `int` is
/// transferred.
const GET_FLAGS: u32 = 0x8008_6601;
const SET_FLAGS: u32 = 0x4008_6602;
/// `FS_IOC_FSGETXATTR` and `FS_IOC_FSSETXATTR`, which transfer a `struct fsxattr` of 28 bytes.
const GET_EXTENDED: u32 = 0x801c_581f;
const SET_EXTENDED: u32 = 0x401c_5820;
/// `FS_IOC_GETVERSION`, which returns the inode generation.
const GET_VERSION: u32 = 0x8008_7601;
/// `FS_IOC_GETFSLABEL`, which returns the label of the file system, `FSLABEL_MAX` (256) bytes.
const GET_LABEL: u32 = 0x8100_9431;

/// Size of the transfer buffer in bytes, that of the largest argument.
const BUFFER_BYTES: usize = 256;

/// The arguments of an ioctl request.
pub(super) struct IoctlRequest {
    pub(super) handle: u64,
    pub(super) command: u32,
    pub(super) input: Vec<u8>,
    pub(super) output_size: usize,
}

impl<G: Gate> FsState<G> {
    pub(super) fn ioctl(
        self: &Arc<Self>,
        caller: Caller,
        on_directory: bool,
        request: IoctlRequest,
        reply: ReplyIoctl,
    ) {
        let open = if on_directory {
            self.opened_directory(request.handle)
        } else {
            self.open_files.get(request.handle).ok().map(|file| file.backing.clone())
        };
        let Some(open) = open else { return reply.error(fuser::Errno::EBADF) };
        let operation = match request.command {
            GET_FLAGS | GET_EXTENDED | GET_VERSION | GET_LABEL => Operation::MetadataRead,
            SET_FLAGS | SET_EXTENDED => Operation::MetadataWrite,
            _ => return reply.error(fuser::Errno::ENOTTY),
        };
        self.run_on(caller, operation, &open.clone(), move |_| match run_ioctl(&open, &request) {
            Ok(output) => reply.ioctl(0, &output[..request.output_size.min(BUFFER_BYTES)]),
            Err(error) => reply.error(errno(error)),
        });
    }
}

fn run_ioctl(file: &Backing, request: &IoctlRequest) -> io::Result<[u8; BUFFER_BYTES]> {
    let mut memory = [0; BUFFER_BYTES];
    let given = request.input.len().min(BUFFER_BYTES);
    memory[..given].copy_from_slice(&request.input[..given]);
    // SAFETY: each of the supported commands transfers at most 256 bytes, the size of the buffer.
    let result = unsafe { libc::ioctl(file.fd.as_raw_fd(), request.command as libc::Ioctl, memory.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(memory) }
}
