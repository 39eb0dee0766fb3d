//! The text of an event of the `block` subsystem after its name.
//!
//! ```text
//! 7,0 R 7408 + 8 [fio]                        of bios
//! 7,0 R 4096 () 7408 + 8 be,0,4 [fio]         of requests: bytes, command, I/O priority
//! 7,0 R () 7408 + 8 0x2,0,4 [0]               completion: error number instead of a name
//! 7,0 R 7408 + 8 <- (8,1) 5360                remap
//! 7,0 R 0 / 1024 [fio]                        split
//! ```

use super::{after, brackets, remap, split};
use crate::block_event::{operation, set_range};
use crate::event::{Action, Event, Rwbs};
use crate::payload::Payload;
use crate::text::{Fields, LineOutput, device_of, number, shown};

/// Parses the text of an event whose action is known. Returns the event, its payload and the name
/// of the process.
pub(super) fn parse<'a>(
    mut event: Event,
    rest: &'a [u8],
    out: &mut LineOutput<'_>,
) -> Result<(Event, Payload, Option<&'a [u8]>), String> {
    let mut fields = Fields::blanks(rest);
    event.device = device_of(fields.want("the device")?, b',')?;
    event.op = operation(fields.want("the operation")?, out);
    let rest = fields.rest();
    if event.action == Action::Remap {
        let payload = remap(rest, &mut event)?;
        return Ok((event, payload, None));
    }
    let (rest, is_command) = without_command(rest)?;
    let (numbers, bracket, _) = brackets(rest);
    if event.action == Action::Split {
        let payload = split(numbers, &mut event)?;
        return Ok((event, payload, bracket));
    }
    if is_command {
        event.op = event.op.with(Rwbs::PASS_THROUGH);
    }
    let mut fields = Fields::blanks(numbers);
    let sector = number(fields.want("the sector")?, "the sector")?;
    match fields.want("a + and the length")? {
        b"+" => set_range(&mut event, sector, number(fields.want("the length")?, "the length")?)?,
        other => return Err(format!("{} stands where a + and the length should be", shown(other))),
    }
    if event.action != Action::Complete {
        return Ok((event, Payload::default(), bracket));
    }
    if let Some(error) = bracket {
        event.error = number(error.strip_prefix(b"-").unwrap_or(error), "the error")?;
    }
    Ok((event, Payload::default(), None))
}

/// Removes the bytes and the command of a request: `4096 ()` or `()`. Returns true if there is a
/// command.
fn without_command(rest: &[u8]) -> Result<(&[u8], bool), String> {
    let first = Fields::blanks(rest).next().unwrap_or_default();
    let behind = if first.starts_with(b"(") { rest } else { after(rest, first).trim_ascii_start() };
    let Some(command) = behind.strip_prefix(b"(") else { return Ok((rest, false)) };
    let close = memchr::memchr(b')', command).ok_or("the parenthesis of the command is not closed")?;
    Ok((command.get(close + 1..).unwrap_or_default(), close > 0))
}
