//! Reads numbers, strings and blocks of the byte order of a file.

use std::io::{self, Read};

use super::Error;

/// Largest block of a header in bytes. The largest part of real files is the table of the kernel's
/// symbols, about 20 MiB.
pub(super) const BLOCK_BYTES_MAX: u64 = 256 << 20;
/// Longest string in bytes.
const STRING_BYTES_MAX: usize = 4096;

/// Reads fields in sequence.
#[derive(Debug)]
pub(super) struct FieldReader<R> {
    read: R,
    is_big_endian: bool,
    position: u64,
}

impl<R: Read> FieldReader<R> {
    /// Creates a reader whose first byte is at a position of the file.
    pub fn new(read: R, is_big_endian: bool, position: u64) -> FieldReader<R> {
        FieldReader { read, is_big_endian, position }
    }

    /// Sets the byte order of the following numbers.
    pub fn set_big_endian(&mut self, is_big_endian: bool) {
        self.is_big_endian = is_big_endian;
    }

    /// Position of the next field in the file.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Creates an error at the position of the next field.
    pub fn bad(&self, what: impl Into<String>) -> Error {
        Error::Bad { position: self.position, what: what.into() }
    }

    /// Reads a fixed number of bytes; `what` names them.
    ///
    /// # Errors
    /// Fails if the file ends before.
    pub fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        match self.read.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.bad(format!("the file ends where {what} should be")))
            }
            Err(error) => Err(error.into()),
            Ok(()) => {
                self.position += N as u64;
                Ok(bytes)
            }
        }
    }

    /// Reads a number of 16 bits.
    pub fn u16(&mut self, what: &str) -> Result<u16, Error> {
        let bytes = self.array(what)?;
        Ok(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// Reads a number of 32 bits.
    pub fn u32(&mut self, what: &str) -> Result<u32, Error> {
        let bytes = self.array(what)?;
        Ok(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Reads a number of 64 bits.
    pub fn u64(&mut self, what: &str) -> Result<u64, Error> {
        let bytes = self.array(what)?;
        Ok(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// Reads a block of bytes. Memory grows only with the bytes that the file has.
    ///
    /// # Errors
    /// Fails if the block exceeds [`BLOCK_BYTES_MAX`], or the file ends before.
    pub fn block(&mut self, bytes: u64, what: &str) -> Result<Vec<u8>, Error> {
        if bytes > BLOCK_BYTES_MAX {
            return Err(self.bad(format!("{what} has {bytes} bytes: {BLOCK_BYTES_MAX} is the most")));
        }
        let mut block = Vec::new();
        (&mut self.read).take(bytes).read_to_end(&mut block)?;
        if (block.len() as u64) < bytes {
            return Err(self.bad(format!("the file ends within {what}")));
        }
        self.position += bytes;
        Ok(block)
    }

    /// Reads a string that ends with a zero byte.
    ///
    /// # Errors
    /// Fails if the string is longer than 4 KiB, or the file ends before.
    pub fn string(&mut self, what: &str) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        loop {
            match self.array(what)? {
                [0] => return Ok(text),
                [byte] if text.len() < STRING_BYTES_MAX => text.push(byte),
                _ => return Err(self.bad(format!("{what} is longer than {STRING_BYTES_MAX} bytes"))),
            }
        }
    }

    /// Reads a string and compares it.
    ///
    /// # Errors
    /// Fails if the file has another string here.
    pub fn expect(&mut self, text: &[u8]) -> Result<(), Error> {
        let found = self.string(&text.escape_ascii().to_string())?;
        if found == text {
            return Ok(());
        }
        Err(self.bad(format!(
            "before this position stands \"{}\": \"{}\" would be right",
            found.escape_ascii(),
            text.escape_ascii()
        )))
    }
}
