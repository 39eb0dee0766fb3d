//! Inputs of a trace: files and named byte streams.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::source::ReadError;

/// An input of [`open`](crate::open()).
#[derive(Debug)]
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// A byte stream from another position.
    Stream(Stream),
}

/// A byte stream with a name.
pub struct Stream {
    /// Name of the stream in messages.
    pub name: String,
    /// Reader of the bytes.
    pub read: Box<dyn Read + Send>,
}

impl Stream {
    /// Reads the available bytes into the buffer; returns 0 at the end.
    ///
    /// # Errors
    /// Returns the error of the operating system with the name of the stream.
    pub(crate) fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            match self.read.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { file: self.name.clone(), source }),
                Ok(read) => return Ok(read),
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.name)
    }
}
