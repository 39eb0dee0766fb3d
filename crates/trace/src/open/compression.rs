//! Decompression of inputs, detected by their first bytes.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream as XzStream};

/// Memory limit of an xz decoder in bytes: the strongest preset (-9) needs 65 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;
/// Largest window of zstd, as a power of two: 128 MiB, the limit of the zstd tool without options.
const ZSTD_WINDOW_LOG: u32 = 27;
/// Size of a decoder's input buffer in bytes.
const INPUT_BYTES: usize = 128 << 10;

/// Compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
    /// An unsupported compression, with the name of its tool.
    Other(&'static str),
}

impl Compression {
    /// Detects the compression from the first bytes; six are sufficient.
    pub fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Other("bzip2"),
            [b'P', b'K', 3, 4, ..] => Compression::Other("unzip"),
            [4, 0x22, 0x4d, 0x18, ..] => Compression::Other("lz4"),
            [b'7', b'z', 0xbc, 0xaf, ..] => Compression::Other("7z"),
            _ => Compression::None,
        }
    }

    /// Name of the tool that unpacks the compression; None without compression.
    pub fn tool(self) -> Option<&'static str> {
        match self {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Zstd => Some("zstd"),
            Compression::Xz => Some("xz"),
            Compression::Other(tool) => Some(tool),
        }
    }

    /// Creates a decoder. If the input ends early, the decoded data end there and `cut` is set.
    pub fn decode(self, read: Box<dyn Read + Send>, cut: &Arc<AtomicBool>) -> io::Result<Box<dyn Read + Send>> {
        let buffered = BufReader::with_capacity(INPUT_BYTES, read);
        let decoded: Box<dyn Read + Send> = match self {
            Compression::None | Compression::Other(_) => return Ok(Box::new(buffered)),
            Compression::Gzip => Box::new(MultiGzDecoder::new(buffered)),
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(buffered)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
            Compression::Xz => {
                let stream = XzStream::new_stream_decoder(XZ_MEMORY_BYTES, CONCATENATED).map_err(io::Error::from)?;
                Box::new(XzDecoder::new_stream(buffered, stream))
            }
        };
        Ok(Box::new(Forgiving { decoded, cut: Arc::clone(cut) }))
    }
}

/// A decoder that accepts an input that ends early.
struct Forgiving {
    decoded: Box<dyn Read + Send>,
    cut: Arc<AtomicBool>,
}

impl Read for Forgiving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.decoded.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut.store(true, Ordering::Relaxed);
                Ok(0)
            }
            result => result,
        }
    }
}

/// Reads up to `bytes_max` bytes and returns them with a reader of the whole input.
pub(super) fn peek(mut read: Box<dyn Read + Send>, bytes_max: usize) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    (&mut read).take(bytes_max as u64).read_to_end(&mut head)?;
    let again = Cursor::new(head.clone()).chain(read);
    Ok((head, Box::new(again)))
}
