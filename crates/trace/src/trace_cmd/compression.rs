//! Compression of sections and of trace data in files of version 7.

use std::io::Read;

/// Largest unpacked block in bytes. trace-cmd compresses ten pages at a time; sections of metadata
/// have at most some ten MiB.
pub(super) const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// Returns the compression with the name in the header of a file.
    pub fn of(name: &[u8]) -> Option<Compression> {
        match name {
            b"none" => Some(Compression::None),
            b"zlib" => Some(Compression::Zlib),
            b"zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Unpacks a block of a known unpacked size.
    ///
    /// # Errors
    /// Returns a message if the block is damaged or has another size.
    pub fn unpack(self, packed: &[u8], size: usize) -> Result<Vec<u8>, String> {
        if size > UNPACKED_BYTES_MAX {
            return Err(format!("a compressed block has {size} bytes unpacked: {UNPACKED_BYTES_MAX} is the most"));
        }
        let limit = size as u64 + 1;
        let mut unpacked = Vec::new();
        let read = match self {
            Compression::None => packed.take(limit).read_to_end(&mut unpacked),
            Compression::Zlib => flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut unpacked),
            Compression::Zstd => {
                zstd::Decoder::with_buffer(packed).and_then(|decoder| decoder.take(limit).read_to_end(&mut unpacked))
            }
        };
        match read {
            Err(error) => Err(format!("a compressed block cannot be unpacked: {error}")),
            Ok(found) if found != size => {
                Err(format!("a compressed block has another size than the {size} bytes that its header states"))
            }
            Ok(_) => Ok(unpacked),
        }
    }
}
