//! Lines, formatted without an allocation each.

use crate::event::{Action, DeviceId, Event, Rwbs};

/// All ways in which requests do something: so many tables have an entry each.
const OPS: usize = 1 << 10;
/// So many beginnings of lines are kept.
const DEVICES: usize = 64;

/// What lines begin with, made once.
#[derive(Debug)]
pub(super) struct Heads {
    /// The action's letters in front of those of what the request does, for each action and [`Rwbs`]: made when they are first needed.
    what: Vec<Head>,
    /// The device and the CPU, by the CPU's lowest bits.
    devices: Vec<Device>,
}

/// What a line of a device and a CPU begins with.
#[derive(Clone, Debug)]
struct Device {
    device: DeviceId,
    cpu: u32,
    text: Vec<u8>,
}

/// A few letters.
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

    /// The device and the CPU.
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

    /// The action, and what the request does.
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

/// Two decimal digits of each number below 100.
const DIGITS: [[u8; 2]; 100] = {
    let mut digits = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        digits[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    digits
};

/// A number of at least `WIDTH` columns, padded with spaces.
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
    // Two digits were written for a last pair below 10 as for any: its 0 is none of the number's.
    if text[at] == b'0' && at + 1 < text.len() {
        text[at] = b' ';
        at += 1;
    }
    out.extend_from_slice(&text[at.min(text.len() - WIDTH)..]);
}

/// A number in hexadecimal, as the bytes of a command are written.
fn hexadecimal(out: &mut Vec<u8>, byte: u8) {
    const LETTERS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[LETTERS[usize::from(byte >> 4)], LETTERS[usize::from(byte & 15)]]);
}

/// Seconds in 5 columns, a point, and 9 digits. A time before the first event is as large as 64 bits make it, and seconds are cut off at 32, as blkparse has it.
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

/// The bytes of a command in parentheses; of zeros at its end only the first.
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

/// `sector + sectors `, or nothing for what has no length.
#[inline]
fn extent(out: &mut Vec<u8>, event: &Event) {
    if event.bytes >= 512 {
        padded::<1>(out, event.sector);
        out.extend_from_slice(b" + ");
        padded::<1>(out, u64::from(event.bytes / 512));
        out.push(b' ');
    }
}

/// What comes behind the head of a line, with its end.
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

/// The name at the end of a line.
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

/// The device to which it was mapped, which blkparse prints as the line's.
pub(super) fn remapped_to(payload: &[u8]) -> DeviceId {
    DeviceId(payload.get(4..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes)))
}

/// The payload's number, cut off at 32 bits as blkparse has it.
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
    fn of_zeros_at_the_end_of_a_command_the_first_is_told() {
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
