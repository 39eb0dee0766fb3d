//! Where events go.

use std::io;

use crate::batch::Batch;

/// A trace that is being written.
pub trait Sink {
    /// Writes the events of a batch, in their order; batches come in the order of time.
    ///
    /// # Errors
    /// Those of the output.
    fn write(&mut self, batch: &Batch) -> io::Result<()>;

    /// Ends the trace: writes what stands at its end, and whatever was held back. Nothing may be written afterwards.
    ///
    /// # Errors
    /// Those of the output.
    fn finish(&mut self) -> io::Result<()>;
}
