//! Reads the text of the kernel's `blk` tracer: `blk_classic`, which resembles blkparse's text, and
//! the default format of `trace` and `trace_pipe`.
//!
//! ```text
//!   7,0    1  1781.997780178  2894  Q  RS 0 + 128 [fio]
//!         fio-22180   [000] d..1. 48820.033531:   7,1    Q  RS 3952 + 8 [fio]
//!         fio-22180   [000] d..1. 48820.033569:   7,1   1,0  m   N bfq0A new_ioprio 4
//! ```
//!
//! The layout is that of the output of Linux 6.18. The numbers before the action identify the
//! cgroup. The text has no sequence numbers.

use crate::event::{Action, DeviceId, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::text::{Fields, LineFormat, LineOutput, decimal_ns, device_of, number, parse_rwbs, pid_of, shown};

/// Times are in seconds with a fraction.
const SECOND_PS: u64 = 1_000_000_000_000;
/// Placeholder of the tracer for a process name that it no longer has.
const NO_NAME: &[u8] = b"<...>";

/// Parser of the lines.
#[derive(Debug, Default)]
pub(crate) struct Ftrace {
    names: ProcessNames,
}

/// The fields before the action.
struct Start<'a> {
    time_ns: u64,
    cpu: u32,
    pid: u32,
    name: Option<&'a [u8]>,
    /// The rest of the line: from the device in the default format, from the action in the classic
    /// one.
    rest: &'a [u8],
    device: Option<DeviceId>,
}

impl LineFormat for Ftrace {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String> {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with(b"#") {
            return Ok(false);
        }
        if let Some(lost) = lost_events(trimmed) {
            out.notices
                .count("the tracer's buffer was full and events were lost", out.position, || format!("here {lost}"));
            return Ok(false);
        }
        let start = match classic(trimmed)? {
            Some(start) => start,
            None => default(trimmed)?,
        };
        let (device, rest) = match (start.device, Fields::blanks(start.rest).next()) {
            (Some(device), _) => (device, start.rest),
            (None, Some(word)) if word.ends_with(b":") => {
                out.notices.count("events of other tracers are left out", out.position, || shown(word));
                return Ok(false);
            }
            (None, Some(word)) => (device_of(word, b',')?, after(start.rest, word)),
            (None, None) => return Err("the line ends where the device should be".to_owned()),
        };
        let event = Event { cpu: start.cpu, pid: start.pid, device, ..Event::new(start.time_ns, Action::Queue) };
        self.action(event, start.name, rest, out)?;
        Ok(true)
    }
}

impl Ftrace {
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
            Action::Unplug | Action::UnplugTimer => {
                payload = Payload::of(&number::<u64>(behind, "the count of requests")?.to_be_bytes())
            }
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

/// A payload of up to 16 bytes.
#[derive(Default)]
struct Payload {
    held: [u8; 16],
    len: usize,
}

impl Payload {
    fn of(bytes: &[u8]) -> Payload {
        let mut payload = Payload::default();
        for (to, from) in payload.held.iter_mut().zip(bytes) {
            *to = *from;
            payload.len += 1;
        }
        payload
    }

    fn bytes(&self) -> &[u8] {
        self.held.get(..self.len).unwrap_or_default()
    }
}

/// Parses `CPU:1 [LOST 123 EVENTS]`.
fn lost_events(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"CPU:")?;
    let mut fields = Fields::blanks(rest).skip_while(|field| *field != b"[LOST");
    fields.next()?;
    number(fields.next()?, "").ok()
}

/// Parses `maj,min cpu seconds pid`, if the line begins with a device.
fn classic(line: &[u8]) -> Result<Option<Start<'_>>, String> {
    let mut fields = Fields::blanks(line);
    let Some(Ok(device)) = fields.next().map(|field| device_of(field, b',')) else { return Ok(None) };
    let cpu = number(fields.want("the CPU")?, "the CPU")?;
    let time_ns = decimal_ns(fields.want("the time")?, SECOND_PS, "the time")?;
    let pid = number(fields.want("the process")?, "the process")?;
    Ok(Some(Start { time_ns, cpu, pid, name: None, rest: fields.rest(), device: Some(device) }))
}

/// Parses `name-pid [cpu] flags seconds:`. The name may contain blanks.
fn default(line: &[u8]) -> Result<Start<'_>, String> {
    let wrong = || {
        format!(
            "the line begins with {}: \"8,0  1  12.345678901  697\" (blk_classic) or \"name-697 [001] d..1. 12.345678:\" would be right",
            shown(line)
        )
    };
    let cpu_at = |at: &usize| line.get(at + 2).is_some_and(u8::is_ascii_digit);
    let at = memchr::memmem::find_iter(line, b" [").find(cpu_at).ok_or_else(wrong)?;
    let (name, pid) = pid_of(line.get(..at).unwrap_or_default().trim_ascii()).ok_or_else(wrong)?;
    let mut fields = Fields::blanks(line.get(at..).unwrap_or_default());
    let cpu = fields.next().and_then(|cpu| cpu.strip_prefix(b"[")?.strip_suffix(b"]")).ok_or_else(wrong)?;
    // The flags are absent if the tracer's option irq-info is off.
    let mut time = fields.next().ok_or_else(wrong)?;
    if !time.ends_with(b":") {
        time = fields.next().ok_or_else(wrong)?;
    }
    let time = time.strip_suffix(b":").ok_or_else(wrong)?;
    Ok(Start {
        time_ns: decimal_ns(time, SECOND_PS, "the time")?,
        cpu: number(cpu, "the CPU")?,
        pid,
        name: Some(name),
        rest: fields.rest(),
        device: None,
    })
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
        b"/" => Ok(Payload::of(
            &number::<u64>(fields.want("the sector of the split")?, "the sector of the split")?.to_be_bytes(),
        )),
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
    let mut payload = Payload::of(&device.0.to_be_bytes());
    let rest = event.device.0.to_be_bytes().into_iter().chain(sector.to_be_bytes());
    for (to, from) in payload.held.iter_mut().skip(4).zip(rest) {
        *to = from;
    }
    payload.len = 16;
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::{events, failure, read};

    fn one(line: &str) -> (Event, Vec<u8>) {
        let batch = read(Ftrace::default(), line);
        let event = *batch.events().iter().find(|event| event.action != Action::Process).unwrap();
        (event, batch.payload(&event).to_vec())
    }

    #[test]
    fn classic_lines_are_read_to_the_nanosecond() {
        let (event, _) = one("  7,0    1  1781.997780178  2894  Q  RS 8 + 128 [fio]\n");
        let expected = Event {
            sector: 8,
            bytes: 65_536,
            pid: 2894,
            cpu: 1,
            device: DeviceId::new(7, 0),
            op: Rwbs::READ.with(Rwbs::SYNC),
            ..Event::new(1_781_997_780_178, Action::Queue)
        };
        assert_eq!(event, expected);
        let (event, _) = one("  7,1    1 48886.330894606    22  C  FN 0 [-5]\n");
        assert_eq!(
            (event.action, event.error, event.bytes, event.op),
            (Action::Complete, 5, 0, Rwbs::FLUSH.with(Rwbs::NONE))
        );
        let (event, payload) = one("  7,0    1  1781.998073596  2894  U   N [fio] 1\n");
        assert_eq!((event.action, payload), (Action::Unplug, vec![0, 0, 0, 0, 0, 0, 0, 1]));
        let (event, payload) = one("  7,1    0 48886.364761725 26037  X   R 0 / 1024 [dd]\n");
        assert_eq!((event.action, event.sector, payload), (Action::Split, 0, vec![0, 0, 0, 0, 0, 0, 4, 0]));
        let (event, payload) = one("  253,0  0 1.5 26037  A   R 2056 + 8 <- (8,1) 8 [dd]\n");
        assert_eq!((event.action, event.sector, event.bytes), (Action::Remap, 2056, 4096));
        let device = |major, minor| DeviceId::new(major, minor).0.to_be_bytes();
        assert_eq!(payload, [&device(8, 1)[..], &device(253, 0), &[0, 0, 0, 0, 0, 0, 0, 8]].concat());
    }

    #[test]
    fn lines_of_trace_pipe_have_names_with_blanks_and_cgroups() {
        let batch = read(
            Ftrace::default(),
            " my [odd] job-22180   [000] d..1. 48820.033569:   7,1   1a,2  m   N bfq0A  new_ioprio 4\n",
        );
        let [name, note] = batch.events() else { panic!("{:?}", batch.events()) };
        assert_eq!((name.action, batch.payload(name)), (Action::Process, &b"my [odd] job"[..]));
        assert_eq!((note.time_ns, note.pid, note.cgroup), (48_820_033_569_000, 22_180, 2 << 32 | 0x1a));
        assert_eq!(batch.payload(note), b"bfq0A  new_ioprio 4");
    }

    #[test]
    fn events_of_other_tracers_and_lost_events_are_reported() {
        let text = "# tracer: blk\n  x-1 [000] d..1. 1.0: 7,1 Q R 0 + 8 [x]\nCPU:1 [LOST 123 EVENTS]\n  x-1 [000] .... 1.1: sys_close(fd: 3)\n  \
                    x-1 [000] d..1. 1.2: block_rq_issue: 7,1 R 4096 () 0 + 8 [x]\n";
        let (count, notices) = events(Ftrace::default(), text);
        assert_eq!(count, Ok(1));
        assert_eq!(
            notices,
            [
                "a:3: the tracer's buffer was full and events were lost (here 123)",
                "a:4: events of other tracers are left out (\"sys_close(fd:\", 2 times in all)"
            ]
        );
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        let right = "  7,0    1  1781.997780178  2894  Q  RS 0 + 128 [fio]\n";
        for (wrong, message) in [
            ("  7,0    1  17x  2894  Q  RS 0 + 128 [fio]", "a:2: the time \"17x\" is no time"),
            ("  7,0    1  1.0  2894  q  RS 0 + 128 [fio]", "a:2: the action \"q\" is not known: Q, G, I"),
            ("  7,0    1  1.0  2894  Q  RZ 0 + 128 [fio]", "a:2: \"RZ\" is no operation of a request"),
            ("  7,0    1  1.0  2894  Q  R 0 - 128 [fio]", "a:2: \"-\" stands where a + and the length"),
            ("  7,0    1  1.0  2894  Q  R 0 + 99999999 [fio]", "a:2: the length 99999999 is too large"),
            ("  7,0    1  1.0", "a:2: the line ends where the process should be"),
            ("rubbish", "a:2: the line begins with \"rubbish\": \"8,0  1  12.345678901  697\" (blk_classic)"),
        ] {
            let failed = failure(Ftrace::default(), &format!("{right}{wrong}\n{right}"));
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
