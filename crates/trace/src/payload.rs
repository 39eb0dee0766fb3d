//! Payloads of events: the number of plugged requests, the target of a split, the source of a
//! remap.

use crate::event::DeviceId;

/// A payload of up to 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    held: [u8; 16],
    len: usize,
}

impl Payload {
    /// A big-endian number.
    pub fn number(number: u64) -> Payload {
        let mut payload = Payload::default();
        payload.add(&number.to_be_bytes());
        payload
    }

    /// The source of a bio that was mapped from `from` to `to`.
    pub fn remap(from: DeviceId, to: DeviceId, sector: u64) -> Payload {
        let mut payload = Payload::default();
        payload.add(&from.0.to_be_bytes());
        payload.add(&to.0.to_be_bytes());
        payload.add(&sector.to_be_bytes());
        payload
    }

    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        self.held.get(..self.len).unwrap_or_default()
    }

    fn add(&mut self, bytes: &[u8]) {
        for (to, from) in self.held.iter_mut().skip(self.len).zip(bytes) {
            *to = *from;
            self.len += 1;
        }
    }
}
