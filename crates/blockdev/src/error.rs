//! Errors of opening a backend and of its I/O.

use std::io;
use std::path::PathBuf;

use hoistway_machine::InUse;
use hoistway_qos::IoError;

use crate::remote::RemoteError;

/// An error of opening a backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The system refused to open the file.
    #[error("{path}: {cause}", path = .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// The path names neither a file nor a block device.
    #[error("{path}: this is {what}; a file or a block device is needed", path = .path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// The kind of the file.
        what: &'static str,
    },
    /// The file is to be written and is in use, for example mounted.
    #[error("{in_use} (--force-in-use overrides this, or `force_in_use` of the device)")]
    InUse {
        /// The file and its use.
        in_use: InUse,
    },
    /// Another process holds a lock on the file.
    #[error("{path}: in use by another server or program (its lock, see flock(2), is held){holder}", path = .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// The holder: `: process 12 (name)`, or empty if it is unknown.
        holder: String,
    },
    /// Direct I/O was requested and is not possible.
    #[error("{path}: direct I/O is not possible: {cause}", path = .path.display())]
    Direct {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
    /// The file is empty.
    #[error("{path}: its size is 0; make it as long as the device is to be (truncate -s 10G)", path = .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The export of another server cannot be used.
    #[error("{uri}: {cause}")]
    Remote {
        /// The URI.
        uri: String,
        /// The reason.
        cause: RemoteError,
    },
    /// The memory cannot be mapped.
    #[error("{bytes} bytes of memory for a device: {cause}")]
    Memory {
        /// The requested size in bytes.
        bytes: u64,
        /// The reason.
        cause: io::Error,
    },
}

/// Maps an error number of the operating system to a request error. A request that reaches the
/// system has been checked, so EINVAL and EOPNOTSUPP are faults of the storage and not of the
/// client.
pub fn io_error_of_os(code: i32) -> IoError {
    match code {
        libc::EPERM | libc::EACCES | libc::EROFS => IoError::NotPermitted,
        libc::ENOMEM => IoError::NoMemory,
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => IoError::NoSpace,
        _ => IoError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_or_write_protected_storage_is_more_than_an_io_error() {
        for code in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG] {
            assert_eq!(io_error_of_os(code), IoError::NoSpace);
        }
        assert_eq!(io_error_of_os(libc::EROFS), IoError::NotPermitted);
        assert_eq!(io_error_of_os(libc::ENOMEM), IoError::NoMemory);
        for code in [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP, libc::EOVERFLOW, libc::ENXIO, libc::ENODEV] {
            assert_eq!(io_error_of_os(code), IoError::Io, "{code}");
        }
    }
}
