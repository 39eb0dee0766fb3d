//! Writing a dirty range to the disk.

use std::io;

use super::super::system;
use super::table::ChunkWrite;

impl ChunkWrite {
    /// Has the kernel write the range, and waits until it is on the disk.
    ///
    /// # Errors
    /// The error of this write, or of an earlier write of the file that this descriptor has not
    /// reported.
    pub fn write(&self) -> io::Result<()> {
        // The kernel reports a write-back error once per open file description, to any call that
        // waits. Waiting on a second description keeps the error for the fsync calls of the
        // handles, and does not meet errors that a handle has reported before. Without it, the
        // description of a closed handle serves, from which no handle can lose a report.
        let second = self.second_descriptor.get_or_init(|| system::reopen(&self.backing));
        let (fd, waits) = match second {
            Some(second) => (second, true),
            None => (&self.backing.fd, !self.is_open),
        };
        system::write_range(fd, (self.start, self.end), waits)
    }
}
