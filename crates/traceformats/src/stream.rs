//! Inputs of a trace: files and named byte streams.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::source::{InputPosition, ReadError};

/// Largest input in bytes of which [`Stream::read_whole`] keeps all bytes in memory.
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// An input of a trace.
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
    pub fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            match self.read.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { file: self.name.clone(), source }),
                Ok(read) => return Ok(read),
            }
        }
    }

    /// Reads all bytes into memory, for formats that are read at any position.
    ///
    /// # Errors
    /// Fails if the input is longer than 1 GiB, or with the error of the operating system.
    pub fn read_whole(self) -> Result<Vec<u8>, ReadError> {
        let Stream { name, read } = self;
        let mut bytes = Vec::new();
        let read = read.take(WHOLE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|source| ReadError::Io { file: name.clone(), source })?;
        if bytes.len() as u64 > WHOLE_BYTES_MAX {
            let what = "more than 1 GiB from a pipe or a compressed file: unpack it and name the file".to_owned();
            return Err(ReadError::Bad { file: name, position: InputPosition::All, what });
        }
        Ok(bytes)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.name)
    }
}
