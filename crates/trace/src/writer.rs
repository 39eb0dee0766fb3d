//! The trait that all trace writers implement.

use std::io;

use crate::batch::Batch;

/// Writes events to an output in one format.
pub trait EventWriter {
    /// Writes the events of a batch in order. Batches must be passed in order of time.
    ///
    /// # Errors
    /// Returns the error of the output.
    fn write(&mut self, batch: &Batch) -> io::Result<()>;

    /// Ends the trace: writes buffered events and the trailer of the format. `write` must not be
    /// called afterwards.
    ///
    /// # Errors
    /// Returns the error of the output.
    fn finish(&mut self) -> io::Result<()>;
}
