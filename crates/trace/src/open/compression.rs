//! Compressed inputs, told by their first bytes.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream as XzStream};

/// What a decoder of xz may take: its strongest preset (-9) needs 65 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;
/// The longest window of zstd, as a power of two: 128 MiB, what its own tool takes without being told (`--long` is 27).
const ZSTD_WINDOW_LOG: u32 = 27;
/// What is handed to a decoder at a time.
const INPUT_BYTES: usize = 128 << 10;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
    /// One that is not read, by the name of its tool.
    Other(&'static str),
}

impl Compression {
    /// From the first bytes, of which there should be six.
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

    /// The decoder over an input. Where the input ends too early, what came out ends there, and `cut` is set.
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

/// A decoder whose input may end too early.
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
            outcome => outcome,
        }
    }
}

/// Reads the first bytes of an input, at most so many, and gives the input back with them before it.
pub(super) fn peek(mut read: Box<dyn Read + Send>, bytes_max: usize) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    (&mut read).take(bytes_max as u64).read_to_end(&mut head)?;
    let again = Cursor::new(head.clone()).chain(read);
    Ok((head, Box::new(again)))
}
