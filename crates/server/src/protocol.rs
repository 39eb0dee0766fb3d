//! Translation between block devices and the NBD protocol.

use hoistway_nbd::wire::Errno;
use hoistway_qos::IoError;

/// Returns the protocol's error number for an error of a device.
pub(crate) fn errno_of(error: IoError) -> Errno {
    match error {
        IoError::NotPermitted => Errno::Perm,
        IoError::Io => Errno::Io,
        IoError::NoMemory => Errno::NoMem,
        IoError::InvalidArgument => Errno::Inval,
        IoError::NoSpace => Errno::NoSpc,
        IoError::Overflow => Errno::Overflow,
        IoError::NotSupported => Errno::NotSup,
        IoError::Shutdown => Errno::Shutdown,
    }
}
