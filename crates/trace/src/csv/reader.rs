//! Reads CSV files.

use super::{HEADER, HEADER_BEGINNING};
use crate::event::{Action, Event, Rwbs};
use crate::text::{Fields, LineError, LineFormat, LineOutput, device_of, number, parse_rwbs, shown};

/// Parser of the lines.
#[derive(Debug, Default)]
pub(crate) struct Csv {
    payload: Vec<u8>,
}

impl LineFormat for Csv {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        if line.trim_ascii().is_empty() {
            return Ok(false);
        }
        if line.starts_with(HEADER_BEGINNING) {
            return if line.trim_ascii() == HEADER.as_bytes() {
                Ok(false)
            } else {
                Err(LineError::Input(format!("the columns should be {HEADER}")))
            };
        }
        let mut fields = Fields::split(line, b',');
        let time_ns = number(fields.want("the time")?, "the time")?;
        let letters = fields.want("the action")?;
        let action = action_of(letters)?;
        let event = Event {
            device: device_of(fields.want("the device")?, b':')?,
            cpu: number(fields.want("the CPU")?, "the CPU")?,
            pid: number(fields.want("the process")?, "the process")?,
            sequence: number(fields.want("the sequence")?, "the sequence")?,
            op: op_of(fields.want("the operation")?)?,
            sector: number(fields.want("the sector")?, "the sector")?,
            bytes: number(fields.want("the length")?, "the length")?,
            error: number(fields.want("the error")?, "the error")?,
            cgroup: number(fields.want("the control group")?, "the control group")?,
            ..Event::new(time_ns, action)
        };
        // The name of the process was given by an event of its own.
        let rest = take_text(fields.rest(), &mut self.payload)?;
        let rest = rest.strip_prefix(b",").ok_or("the line ends where the payload should be")?;
        let rest = if matches!(action, Action::Process | Action::Message) {
            take_text(rest, &mut self.payload)?
        } else {
            take_bytes(rest.trim_ascii(), &mut self.payload)?
        };
        if !rest.is_empty() {
            return Err(format!("unexpected {} after the payload", shown(rest)).into());
        }
        out.batch.push_with(event, &self.payload);
        Ok(true)
    }
}

/// Parses the letters of an action.
///
/// # Errors
/// Fails if no action has these letters.
pub(crate) fn action_of(letters: &[u8]) -> Result<Action, String> {
    let action = Action::ALL.into_iter().find(|action| action.letters().as_bytes() == letters);
    action.ok_or_else(|| format!("the action {} is not known: blkparse's letters are, N and T", shown(letters)))
}

/// Parses an operation as [`rwbs_text`](super::rwbs_text) writes it.
///
/// # Errors
/// Fails if a letter is unknown.
pub(crate) fn op_of(letters: &[u8]) -> Result<Rwbs, String> {
    if let Some(digits) = letters.strip_prefix(b"0x") {
        let bits = std::str::from_utf8(digits).ok().and_then(|digits| u16::from_str_radix(digits, 16).ok());
        return bits.map(Rwbs).ok_or_else(|| format!("the operation {} is no hexadecimal number", shown(letters)));
    }
    match letters.strip_suffix(b"P") {
        Some(letters) => Ok(parse_rwbs(letters)?.with(Rwbs::PASS_THROUGH)),
        None => parse_rwbs(letters),
    }
}

/// Parses a text up to a comma or the end and returns the rest of the line.
fn take_text<'a>(field: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], String> {
    text.clear();
    let (quoted, mut rest) = match field.strip_prefix(b"\"") {
        Some(rest) => (true, rest),
        None => (false, field),
    };
    loop {
        rest = match rest {
            [] if quoted => return Err(format!("the quote before {} is not closed", shown(text))),
            [] => return Ok(rest),
            [b',', ..] if !quoted => return Ok(rest),
            [b'"', b'"', behind @ ..] if quoted => {
                text.push(b'"');
                behind
            }
            [b'"', behind @ ..] if quoted => return Ok(behind),
            [b'\\', b'\\', behind @ ..] => {
                text.push(b'\\');
                behind
            }
            [b'\\', b'x', digits @ ..] => {
                let byte = digits.get(..2).and_then(byte_of);
                text.push(
                    byte.ok_or_else(|| format!("two hexadecimal digits should follow \\x behind {}", shown(text)))?,
                );
                digits.get(2..).unwrap_or_default()
            }
            [b'\\', ..] => return Err(format!("\\\\ or \\xNN should follow {}", shown(text))),
            [byte, behind @ ..] => {
                text.push(*byte);
                behind
            }
        };
    }
}

/// Parses hexadecimal digits up to the end.
fn take_bytes<'a>(digits: &'a [u8], bytes: &mut Vec<u8>) -> Result<&'a [u8], String> {
    bytes.clear();
    for pair in digits.chunks(2) {
        bytes.push(
            byte_of(pair).ok_or_else(|| format!("the payload {} is no row of hexadecimal digits", shown(digits)))?,
        );
    }
    Ok(b"")
}

fn byte_of(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::csv::Writer;
    use crate::event::DeviceId;
    use crate::text::test_support::{failure, read};
    use crate::writer::EventWriter;

    #[test]
    fn written_events_are_read_back() {
        let mut batch = Batch::new();
        let event = Event {
            sector: 1 << 60,
            bytes: 4096,
            pid: 7,
            sequence: 3,
            cpu: 1,
            device: DeviceId::new(259, 1 << 19),
            op: Rwbs::FLUSH.with(Rwbs::WRITE).with(Rwbs::FUA).with(Rwbs::SYNC).with(Rwbs::PASS_THROUGH),
            cgroup: u64::MAX,
            ..Event::new(u64::MAX, Action::Queue)
        };
        batch.push_with(Event { action: Action::Process, ..event }, b" a, \"b\"\\\n\xff");
        batch.push_with(Event { action: Action::Unplug, ..event }, &12u64.to_be_bytes());
        batch.push(Event { action: Action::Complete, error: 5, ..event });
        batch.push_with(Event { action: Action::Message, op: Rwbs(0), ..event }, b"bfq7S add_request 1");
        let mut writer = Writer::new(Vec::new());
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let text = String::from_utf8(writer.into_inner()).unwrap();
        assert_eq!(text.lines().count(), 5);
        let again = read(Csv::default(), &text);
        assert_eq!(again.events(), batch.events());
        assert!(again.events().iter().zip(batch.events()).all(|(a, b)| again.payload(a) == batch.payload(b)));
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        for (wrong, message) in [
            ("1,Y,8:0,0,0,0,R,0,0,0,0,,", "a:2: the action \"Y\" is not known"),
            (
                "1,Q,8,0,0,0,R,0,0,0,0,,",
                "a:2: the device \"8\" is no pair of numbers such as 8:0 (below 4096 and 1048576)",
            ),
            ("1,Q,8:0,0,0,0,R,0,0,70000,0,,", "a:2: the error \"70000\" is too large"),
            ("1,m,8:0,0,0,0,N,0,0,0,0,,\"x", "a:2: the quote before \"x\" is not closed"),
            ("1,m,8:0,0,0,0,N,0,0,0,0,,\\q", "a:2: \\\\ or \\xNN should follow \"\""),
            ("1,U,8:0,0,0,0,N,0,0,0,0,,123", "a:2: the payload \"123\" is no row of hexadecimal digits"),
            ("1,Q,8:0,0,0,0,R,0,0,0,0", "a:2: the line ends where the payload should be"),
            ("time_ns,action,pid", "a:2: the columns should be time_ns,action,device"),
        ] {
            let failed = failure(Csv::default(), &format!("{HEADER}\n{wrong}\n"));
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
