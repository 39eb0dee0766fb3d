//! Watches the size of an open file or block device, so that bytes which another program cut off
//! are not read as zeroes.

use std::fs::File;
use std::path::Path;

/// The longest time between two checks while requests arrive, in ns: 1 s.
const INTERVAL_NS: u64 = 1_000_000_000;

/// The size of an open file or block device.
#[derive(Debug)]
pub struct SizeWatch {
    file: File,
    block_device: bool,
    /// The size at the opening in bytes, which is the size of the device.
    opened_bytes: u64,
    /// The size at the last check.
    last_bytes: u64,
    /// The smallest size of all checks. The bytes beyond it were lost: if the file grows again,
    /// they read as zeroes.
    intact_bytes: u64,
    checked_ns: u64,
}

impl SizeWatch {
    /// Watches an open file; `None` if its descriptor cannot be duplicated.
    pub fn new(file: &File, block_device: bool, bytes: u64) -> Option<SizeWatch> {
        let file = file.try_clone().ok()?;
        Some(SizeWatch {
            file,
            block_device,
            opened_bytes: bytes,
            last_bytes: bytes,
            intact_bytes: bytes,
            checked_ns: 0,
        })
    }

    /// Returns the number of bytes from the first on that the file has had at every check, at most
    /// its size at the opening.
    pub fn intact_bytes(&self) -> u64 {
        self.intact_bytes
    }

    /// Returns true if the file was smaller at a check than at the opening.
    pub fn has_shrunk(&self) -> bool {
        self.intact_bytes < self.opened_bytes
    }

    /// Checks the size before a request. A write to a regular file would extend a file that has
    /// become shorter, so it is checked once a turn of the engine; other requests once a second.
    pub fn check_before(&mut self, path: &Path, writes: bool, now_ns: u64) {
        let interval_ns = if writes && !self.block_device { 1 } else { INTERVAL_NS };
        if now_ns >= self.checked_ns.saturating_add(interval_ns) {
            self.check(path, now_ns);
        }
    }

    /// Checks the size, and logs a change.
    pub fn check(&mut self, path: &Path, now_ns: u64) {
        self.checked_ns = now_ns;
        let found = match self.block_device {
            true => rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0)).ok(),
            false => self.file.metadata().ok().map(|metadata| metadata.len()),
        };
        let Some(bytes) = found else { return };
        let before = std::mem::replace(&mut self.last_bytes, bytes);
        self.intact_bytes = self.intact_bytes.min(bytes);
        if bytes == before {
            return;
        }
        let (path, opened, intact) = (path.display(), self.opened_bytes, self.intact_bytes);
        if bytes < before && bytes < opened {
            tracing::error!(
                %path,
                "the file shrank from {before} to {bytes} bytes: requests beyond byte {intact} and all flushes fail with EIO until the device is opened again"
            );
        } else if intact < opened {
            tracing::error!(
                %path,
                "the file grew from {before} to {bytes} bytes: its data beyond byte {intact} were lost, and requests there fail with EIO until the device is opened again"
            );
        } else if bytes > before {
            tracing::warn!(
                %path,
                "the file grew from {before} to {bytes} bytes: the device keeps its {opened} bytes until it is opened again"
            );
        } else {
            tracing::warn!(%path, "the file shrank from {before} to {bytes} bytes, of which the device has {opened}");
        }
    }
}
