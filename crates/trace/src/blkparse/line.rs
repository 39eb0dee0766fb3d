//! Formats lines without allocations.

use crate::event::{Action, DeviceId, Event, Rwbs};

/// Number of values of [`Rwbs`] in the table of actions.
const OPS: usize = 1 << 10;
/// Number of cached line beginnings.
const DEVICES: usize = 64;

/// Cached beginnings of lines.
#[derive(Debug)]
pub(super) struct Heads {
    /// Letters of the action and the operation for each action and [`Rwbs`]; filled on demand.
    what: Vec<Head>,
    /// Device and CPU, indexed by the lowest bits of the CPU number.
    devices: Vec<Device>,
}

/// The beginning of the lines of a device and a CPU.
#[derive(Clone, Debug)]
struct Device {
    device: DeviceId,
    cpu: u32,
    text: Vec<u8>,
}

/// A short text.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    bytes: [u8; 11],
    len: u8,
}

impl Heads {
    pub fn new() -> Heads {
        Heads {
            what: vec![Head::default(); OPS * Action::ALL.len()],
            devices: vec![Device::new(DeviceId(0), 0); DEVICES],
        }
    }

    /// Returns the text of the device and the CPU.
    #[inline]
    pub fn device(&mut self, device: DeviceId, cpu: u32) -> &[u8] {
        match self.devices.get_mut(cpu as usize % DEVICES) {
            Some(known) => {
                if known.device != device || known.cpu != cpu {
                    *known = Device::new(device, cpu);
                }
                &known.text
            }
            None => &[],
        }
    }

    /// Returns the text of the action and the operation.
    #[inline]
    pub fn what(&mut self, action: Action, op: Rwbs) -> &[u8] {
        let at = action as usize * OPS + usize::from(op.0) % OPS;
        let Some(head) = self.what.get_mut(at) else { return &[] };
        if head.len == 0 {
            *head = Head::of(action, op);
        }
        head.bytes.get(..usize::from(head.len)).unwrap_or_default()
    }
}

impl Device {
    fn new(device: DeviceId, cpu: u32) -> Device {
        let text = format!("{:3},{:<3} {cpu:2} ", device.major(), device.minor()).into_bytes();
        Device { device, cpu, text }
    }
}

impl Head {
    fn of(action: Action, op: Rwbs) -> Head {
        let text = format!(" {:>2} {:>3} ", action.letters(), format!("{op:?}"));
        let mut head = Head::default();
        for (to, from) in head.bytes.iter_mut().zip(text.bytes()) {
            *to = from;
            head.len += 1;
        }
        head
    }
}

/// The two decimal digits of each number below 100.
const DIGITS: [[u8; 2]; 100] = {
    let mut digits = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        digits[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    digits
};

/// Appends a number in at least `WIDTH` columns, padded with spaces.
#[inline]
pub(super) fn padded<const WIDTH: usize>(out: &mut Vec<u8>, number: u64) {
    let mut text = [b' '; 20];
    let mut at = text.len();
    let mut rest = number;
    while rest >= 10 {
        at -= 2;
        let [high, low] = DIGITS[(rest % 100) as usize];
        text[at] = high;
        text[at + 1] = low;
        rest /= 100;
    }
    if rest > 0 || number == 0 {
        at -= 1;
        text[at] = b'0' + rest as u8;
    }
    // The last pair is written with two digits: its leading 0 is removed if the pair is below 10.
    if text[at] == b'0' && at + 1 < text.len() {
        text[at] = b' ';
        at += 1;
    }
    out.extend_from_slice(&text[at.min(text.len() - WIDTH)..]);
}

/// Appends a byte in hexadecimal.
fn hexadecimal(out: &mut Vec<u8>, byte: u8) {
    const LETTERS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[LETTERS[usize::from(byte >> 4)], LETTERS[usize::from(byte & 15)]]);
}

/// Appends a time: seconds in 5 columns, a point, and 9 digits. As in blkparse, a time before the
/// first event wraps around in 64 bits, and seconds are cut off at 32 bits.
#[inline]
pub(super) fn time(out: &mut Vec<u8>, ns: u64) {
    let (seconds, ns) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
    padded::<5>(out, u64::from(seconds));
    let mut text = *b".000000000 ";
    let (high, low) = (ns / 10_000, ns % 10_000);
    let pairs = [(high / 1000) % 100, (high / 10) % 100];
    text[1..3].copy_from_slice(&DIGITS[pairs[0] as usize]);
    text[3..5].copy_from_slice(&DIGITS[pairs[1] as usize]);
    text[5] = b'0' + (high % 10) as u8;
    text[6..8].copy_from_slice(&DIGITS[(low / 100) as usize]);
    text[8..10].copy_from_slice(&DIGITS[(low % 100) as usize]);
    out.extend_from_slice(&text);
}

/// Appends the bytes of a command in parentheses. Trailing zeros are shortened to the first.
fn command(out: &mut Vec<u8>, payload: &[u8]) {
    let len = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    out.push(b'(');
    for (place, byte) in payload.iter().take(len).enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        hexadecimal(out, *byte);
    }
    if len < payload.len() {
        out.extend_from_slice(if len > 0 { b" 00 .." } else { b"00 .." });
    }
    out.extend_from_slice(b") ");
}

/// Appends `sector + sectors `, or nothing for an event without a length.
#[inline]
fn extent(out: &mut Vec<u8>, event: &Event) {
    if event.bytes >= 512 {
        padded::<1>(out, event.sector);
        out.extend_from_slice(b" + ");
        padded::<1>(out, u64::from(event.bytes / 512));
        out.push(b' ');
    }
}

/// Appends the rest of a line after its head, including the line end.
#[inline]
pub(super) fn tail(out: &mut Vec<u8>, event: &Event, payload: &[u8], name: &[u8]) {
    let is_command = event.op.has(Rwbs::PASS_THROUGH);
    match event.action {
        Action::Queue | Action::Issue | Action::Insert if is_command => {
            padded::<1>(out, u64::from(event.bytes));
            out.push(b' ');
            if event.action != Action::Queue && !payload.is_empty() {
                command(out, payload);
            }
            named(out, name);
        }
        Action::Complete | Action::Requeue => {
            if !is_command && event.bytes >= 512 {
                extent(out, event);
            } else if !is_command {
                padded::<1>(out, event.sector);
                out.push(b' ');
            } else if event.action == Action::Complete && !payload.is_empty() {
                command(out, payload);
            }
            out.push(b'[');
            padded::<1>(out, u64::from(event.error));
            out.extend_from_slice(b"]\n");
        }
        Action::Unplug | Action::UnplugTimer => {
            in_brackets(out, name);
            out.push(b' ');
            padded::<1>(out, u64::from(low_half(payload)));
            out.push(b'\n');
        }
        Action::Split => {
            padded::<1>(out, event.sector);
            out.extend_from_slice(b" / ");
            padded::<1>(out, u64::from(low_half(payload)));
            out.push(b' ');
            named(out, name);
        }
        Action::Remap => remap(out, event, payload),
        Action::Message => {
            out.extend_from_slice(payload);
            out.push(b'\n');
        }
        Action::Plug => named(out, name),
        _ => {
            extent(out, event);
            named(out, name);
        }
    }
}

#[inline]
fn in_brackets(out: &mut Vec<u8>, name: &[u8]) {
    out.push(b'[');
    out.extend_from_slice(name);
    out.push(b']');
}

/// Appends the name at the end of a line.
#[inline]
fn named(out: &mut Vec<u8>, name: &[u8]) {
    in_brackets(out, name);
    out.push(b'\n');
}

fn remap(out: &mut Vec<u8>, event: &Event, payload: &[u8]) {
    let from = DeviceId(payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)));
    let sector = payload.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_be_bytes(*bytes));
    padded::<1>(out, event.sector);
    out.extend_from_slice(b" + ");
    padded::<1>(out, u64::from(event.bytes / 512));
    out.extend_from_slice(b" <- (");
    padded::<1>(out, u64::from(from.major()));
    out.push(b',');
    padded::<1>(out, u64::from(from.minor()));
    out.extend_from_slice(b") ");
    padded::<1>(out, sector);
    out.push(b'\n');
}

/// Returns the target device of a remap, which blkparse prints as the device of the line.
pub(super) fn remapped_to(payload: &[u8]) -> DeviceId {
    DeviceId(payload.get(4..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes)))
}

/// Returns the number in a payload, cut off at 32 bits as in blkparse.
fn low_half(payload: &[u8]) -> u32 {
    payload.get(4..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_padded_to_their_width_and_never_cut() {
        for number in [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 1009, 12_345, 100_000, u64::MAX / 10, u64::MAX] {
            let mut out = Vec::new();
            padded::<1>(&mut out, number);
            padded::<8>(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{number}{number:8}"));
        }
    }

    #[test]
    fn times_are_seconds_and_nine_digits() {
        for (ns, expected) in [
            (0, "    0.000000000 "),
            (1, "    0.000000001 "),
            (12_123_456_789, "   12.123456789 "),
            (987_654_321_900_000_010, "987654321.900000010 "),
            // blkparse printed this for 500 ns before the first event.
            (500u64.wrapping_neg(), "1266874889.709551116 "),
        ] {
            let mut out = Vec::new();
            time(&mut out, ns);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn trailing_zeros_of_a_command_are_shortened_to_the_first() {
        for (payload, expected) in [
            (&[1, 0][..], "(01 00 ..) "),
            (&[0], "(00 ..) "),
            (&[0, 0, 0], "(00 ..) "),
            (&[1], "(01) "),
            (&[1, 2, 0, 3, 0, 0, 0], "(01 02 00 03 00 ..) "),
        ] {
            let mut out = Vec::new();
            command(&mut out, payload);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
