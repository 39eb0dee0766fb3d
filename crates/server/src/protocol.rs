//! Translation between block devices and the NBD protocol.

use hoistway_blockdev::Capabilities;
use hoistway_nbd::Abilities;
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

/// Returns what a device can do, as the protocol announces it.
pub(crate) fn abilities_of(device: Capabilities) -> Abilities {
    Abilities {
        read_only: device.read_only,
        flush: device.flush,
        fua: device.fua,
        rotational: device.rotational,
        trim: device.trim,
        write_zeroes: device.write_zeroes,
        fast_zero: device.fast_zero,
        multi_conn: device.multi_conn,
        cache: device.cache,
        block_status: device.block_status,
    }
}
