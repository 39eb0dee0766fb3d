//! Reads the texts of the kernel's tracing: of the `blk` tracer (`blk_classic`, which resembles
//! blkparse's text, and the default format of `trace` and `trace_pipe`), and of `block:` events as
//! tracefs, `trace-cmd report` and `perf script` print them.
//!
//! ```text
//!   7,0    1  1781.997780178  2894  Q  RS 0 + 128 [fio]
//!         fio-22180   [000] d..1. 48820.033531:   7,1    Q  RS 3952 + 8 [fio]
//!         fio-22180   [000] d..1. 48820.033569:   7,1   1,0  m   N bfq0A new_ioprio 4
//!   fio-24899   [001]  1306.788584: block_rq_insert:      7,0 R 4096 () 8 + 8 0x2,0,4 [fio]
//!   fio 25114 [000]  1309.556297:      block:block_rq_issue: 7,0 R 4096 () 8 + 8 0x2,0,4 [fio]
//! ```
//!
//! The layout is that of the output of Linux 6.18, trace-cmd 3.1.6 and perf 6.1. The numbers before
//! the action of the `blk` tracer identify the cgroup. The texts have no sequence numbers.

mod block_line;
mod start;

use crate::block_event;
use crate::event::{Action, Event, Rwbs};
use crate::payload::Payload;
use crate::process_names::ProcessNames;
use crate::text::{Fields, LineError, LineFormat, LineOutput, device_of, number, parse_rwbs, shown};
use start::Start;

/// Placeholder of the tracer for a process name that it no longer has.
const NO_NAME: &[u8] = b"<...>";

/// Parser of the lines.
#[derive(Debug, Default)]
pub(crate) struct Ftrace {
    names: ProcessNames,
}

impl LineFormat for Ftrace {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with(b"#") || start::is_title(trimmed) || start::is_stack(line) {
            return Ok(false);
        }
        if let Some(lost) = start::lost_events(trimmed) {
            out.notices
                .count("the tracer's buffer was full and events were lost", out.position, || format!("here {lost}"));
            return Ok(false);
        }
        let start = Start::parse(trimmed)?;
        let event = Event { cpu: start.cpu, pid: start.pid, ..Event::new(start.time_ns, Action::Queue) };
        let (device, rest) = match (start.device, Fields::blanks(start.rest).next()) {
            (Some(device), _) => (device, start.rest),
            (None, Some(word)) if word.ends_with(b":") => {
                return Ok(self.named_event(event, start.name, word, after(start.rest, word), out)?);
            }
            (None, Some(word)) => (device_of(word, b',')?, after(start.rest, word)),
            (None, None) => return Err("the line ends where the device should be".into()),
        };
        self.action(Event { device, ..event }, start.name, rest, out)?;
        Ok(true)
    }
}

impl Ftrace {
    /// Parses the rest of a line after the name of an event such as `block_rq_issue:`. Events of
    /// other tracers are records without a request.
    fn named_event(
        &mut self,
        event: Event,
        name: Option<&[u8]>,
        word: &[u8],
        rest: &[u8],
        out: &mut LineOutput<'_>,
    ) -> Result<bool, String> {
        let title = word.strip_suffix(b":").unwrap_or(word);
        let title = title.strip_prefix(b"block:").unwrap_or(title);
        let Some(action) = block_event::action_of(title) else {
            block_event::note_left_out(title, out);
            return Ok(true);
        };
        let (event, payload, issuer) = block_line::parse(Event { action, ..event }, rest, out)?;
        let name = if action == Action::Complete { name } else { name.or(issuer) };
        self.name(&event, name, out);
        out.batch.push_with(event, payload.bytes());
        Ok(true)
    }

    /// Parses the rest of a line from the action, or from the cgroup before it.
    fn action(
        &mut self,
        mut event: Event,
        name: Option<&[u8]>,
        rest: &[u8],
        out: &mut LineOutput<'_>,
    ) -> Result<(), String> {
        let mut fields = Fields::blanks(rest);
        let mut letters = fields.want("the action")?;
        if let Some(cgroup) = cgroup_of(letters) {
            event.cgroup = cgroup;
            letters = fields.want("the action")?;
        }
        event.action = action_of(letters)?;
        event.op = parse_rwbs(fields.want("the operation")?)?;
        if event.action == Action::Message {
            // One blank separates the action and the text; blanks of the text are kept.
            let text = fields.rest();
            self.name(&event, name, out);
            out.batch.push_with(event, text);
            return Ok(());
        }
        let (numbers, bracket, behind) = brackets(fields.rest());
        let name = if event.action == Action::Complete { name } else { name.or(bracket) };
        self.name(&event, name, out);
        let mut payload = Payload::default();
        match event.action {
            Action::Plug => {}
            Action::Unplug | Action::UnplugTimer => payload = Payload::number(number(behind, "the count of requests")?),
            Action::Remap => payload = remap(numbers, &mut event)?,
            Action::Split => payload = split(numbers, &mut event)?,
            _ => range(numbers, &mut event)?,
        }
        if event.action == Action::Complete
            && let Some(error) = bracket
        {
            event.error = number(error.strip_prefix(b"-").unwrap_or(error), "the error")?;
        }
        out.batch.push_with(event, payload.bytes());
        Ok(())
    }

    /// Emits the name of a process if it is new.
    fn name(&mut self, event: &Event, name: Option<&[u8]>, out: &mut LineOutput<'_>) {
        let Some(name) = name.filter(|name| !name.is_empty() && *name != NO_NAME && event.pid != 0) else { return };
        if self.names.set(event.pid, name) {
            let named = Event { pid: event.pid, cpu: event.cpu, ..Event::new(event.time_ns, Action::Process) };
            out.batch.push_with(named, name);
        }
    }
}

/// Returns the text after a word at the beginning of `rest`.
fn after<'a>(rest: &'a [u8], word: &[u8]) -> &'a [u8] {
    rest.trim_ascii_start().get(word.len()..).unwrap_or_default()
}

/// Parses `1,0`: the lower and the upper half of the cgroup id in hexadecimal digits.
fn cgroup_of(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let (low, high) = text.split_once(',')?;
    let half = |digits: &str| u32::from_str_radix(digits, 16).ok();
    Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
}

fn action_of(letters: &[u8]) -> Result<Action, String> {
    Action::ALL
        .into_iter()
        // Process names and clocks do not occur in this text.
        .filter(|action| !matches!(action, Action::Process | Action::Timestamp | Action::Zone | Action::DriverData))
        .find(|action| action.letters().as_bytes() == letters)
        .ok_or_else(|| {
            format!(
                "the action {} is not known: Q, G, I, D, C, M, F, P, U, UT, S, R, X, A, B and m are",
                shown(letters)
            )
        })
}

/// Splits `0 + 128 [fio] 1` into the text before, in and after the brackets. A name may contain
/// brackets.
fn brackets(rest: &[u8]) -> (&[u8], Option<&[u8]>, &[u8]) {
    let (Some(open), Some(close)) = (memchr::memchr(b'[', rest), memchr::memrchr(b']', rest)) else {
        return (rest, None, b"");
    };
    let part = |range: std::ops::Range<usize>| rest.get(range).unwrap_or_default();
    (part(0..open), rest.get(open + 1..close), part(close + 1..rest.len()).trim_ascii())
}

/// Parses `sector + sectors`, `sector` alone, or nothing.
fn range(numbers: &[u8], event: &mut Event) -> Result<(), String> {
    let mut fields = Fields::blanks(numbers);
    let Some(sector) = fields.next() else { return Ok(()) };
    if sector.starts_with(b"(") {
        // The command of a passed-through request, in hexadecimal digits; it has no sectors.
        event.op = event.op.with(Rwbs::PASS_THROUGH);
        return Ok(());
    }
    event.sector = number(sector, "the sector")?;
    match fields.next() {
        None => Ok(()),
        Some(b"+") => {
            let sectors: u32 = number(fields.want("the length")?, "the length")?;
            event.bytes = sectors
                .checked_mul(512)
                .ok_or_else(|| format!("the length {sectors} is too large: 8388607 sectors are the most"))?;
            Ok(())
        }
        Some(other) => Err(format!("{} stands where a + and the length should be", shown(other))),
    }
}

/// Parses `sector / sector`.
fn split(numbers: &[u8], event: &mut Event) -> Result<Payload, String> {
    let mut fields = Fields::blanks(numbers);
    event.sector = number(fields.want("the sector")?, "the sector")?;
    match fields.want("a / and the sector of the split")? {
        b"/" => Ok(Payload::number(number(fields.want("the sector of the split")?, "the sector of the split")?)),
        other => Err(format!("{} stands where a / and the sector of the split should be", shown(other))),
    }
}

/// Parses `sector + sectors <- (8,1) sector`.
fn remap(numbers: &[u8], event: &mut Event) -> Result<Payload, String> {
    let arrow = memchr::memmem::find(numbers, b"<-")
        .ok_or_else(|| format!("{} has no <- and no source of the mapping", shown(numbers)))?;
    range(numbers.get(..arrow).unwrap_or_default(), event)?;
    let mut fields = Fields::blanks(numbers.get(arrow + 2..).unwrap_or_default());
    let from = fields.want("the device from which it was mapped")?;
    let pair = from.strip_prefix(b"(").and_then(|from| from.strip_suffix(b")"));
    let device = device_of(pair.ok_or_else(|| format!("the device {} is not in parentheses", shown(from)))?, b',')?;
    let sector: u64 =
        number(fields.want("the sector from which it was mapped")?, "the sector from which it was mapped")?;
    Ok(Payload::remap(device, event.device, sector))
}
