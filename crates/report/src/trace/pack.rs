//! Numbers, packed: seven bits a byte, the lowest first, then deflated (RFC 1951), which browsers inflate by themselves.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Level 4 of deflate: a tenth longer than the highest, in a fraction of the time.
const LEVEL: u32 = 4;

/// Numbers in a row.
#[derive(Debug, Default)]
pub struct Numbers {
    bytes: Vec<u8>,
}

impl Numbers {
    /// A number of 0 or more.
    pub fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// The step from one number to the next, forwards or backwards: the sign is the lowest bit.
    pub fn put_step(&mut self, from: u64, to: u64) {
        let step = to.wrapping_sub(from) as i64;
        self.put((step << 1 ^ step >> 63) as u64);
    }

    /// A column of numbers.
    pub fn column(&mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.put(value));
    }

    /// A column of numbers that lie near each other.
    pub fn steps(&mut self, values: impl Iterator<Item = u64>) {
        let mut before = 0;
        for value in values {
            self.put_step(before, value);
            before = value;
        }
    }

    /// All of them, deflated.
    pub fn deflated(&self) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(self.bytes.len() / 2), Compression::new(LEVEL));
        // Writing to memory cannot fail.
        let written = encoder.write_all(&self.bytes).and_then(|()| encoder.finish());
        written.unwrap_or_default()
    }
}

/// As text that can stand in a page.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
