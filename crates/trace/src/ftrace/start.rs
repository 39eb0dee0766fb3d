//! The beginning of a line: process, CPU and time.

use crate::event::DeviceId;
use crate::text::{Fields, decimal_ns, device_of, number, pid_of, shown};

/// Times are in seconds with a fraction.
const SECOND_PS: u64 = 1_000_000_000_000;

/// The fields before the action.
pub(super) struct Start<'a> {
    pub time_ns: u64,
    pub cpu: u32,
    pub pid: u32,
    pub name: Option<&'a [u8]>,
    /// The rest of the line: from the action in the classic format of the `blk` tracer, otherwise
    /// from the device or the name of the event.
    pub rest: &'a [u8],
    pub device: Option<DeviceId>,
}

impl<'a> Start<'a> {
    /// Parses the beginning of a line in any of the formats.
    ///
    /// # Errors
    /// Fails if the line has none of them.
    pub fn parse(line: &'a [u8]) -> Result<Start<'a>, String> {
        match classic(line)? {
            Some(start) => Ok(start),
            None => named(line),
        }
    }
}

/// Parses `CPU:1 [LOST 123 EVENTS]` (tracefs) and `CPU:1 [123 EVENTS DROPPED]` (trace-cmd).
pub(super) fn lost_events(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"CPU:")?;
    let (_, rest) = rest.split_at(memchr::memchr(b'[', rest)?);
    let count = Fields::blanks(rest).find_map(|word| number(word.strip_prefix(b"[").unwrap_or(word), "").ok());
    let is_loss = [&b"LOST"[..], b"DROPPED"].iter().any(|word| memchr::memmem::find(rest, word).is_some());
    count.filter(|_| is_loss)
}

/// Returns true for the lines with which `trace-cmd report` begins.
pub(super) fn is_title(line: &[u8]) -> bool {
    let is_empty_cpu = || line.starts_with(b"CPU ") && line.ends_with(b" is empty");
    line.starts_with(b"cpus=") || line.starts_with(b"version = ") || is_empty_cpu()
}

/// Returns true for a line of a call chain, which perf prints below an event: blanks, an address in
/// hexadecimal digits and a symbol.
pub(super) fn is_stack(line: &[u8]) -> bool {
    let address = Fields::blanks(line).next().unwrap_or_default();
    line.starts_with(b"\t") && address.len() >= 8 && address.iter().all(u8::is_ascii_hexdigit)
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

/// Parses `name-pid [cpu] flags seconds:` (tracefs, trace-cmd), `name pid/tid [cpu] seconds:`
/// (perf) and `name-pid cpuflags seconds:` (`trace-cmd report -l`). The name may contain blanks.
fn named(line: &[u8]) -> Result<Start<'_>, String> {
    let wrong = || {
        format!(
            "the line begins with {}: \"8,0  1  12.345678901  697\" (blk_classic), \"name-697 [001] d..1. 12.345678:\" \
             or \"name 697 [001] 12.345678:\" (perf) would be right",
            shown(line)
        )
    };
    let cpu_at = |at: &usize| line.get(at + 2).is_some_and(u8::is_ascii_digit);
    let Some(at) = memchr::memmem::find_iter(line, b" [").find(cpu_at) else {
        return without_brackets(line).ok_or_else(wrong);
    };
    let (name, pid) = process_of(line.get(..at).unwrap_or_default().trim_ascii()).ok_or_else(wrong)?;
    let mut fields = Fields::blanks(line.get(at..).unwrap_or_default());
    let cpu = fields.next().and_then(|cpu| cpu.strip_prefix(b"[")?.strip_suffix(b"]")).ok_or_else(wrong)?;
    // The flags are absent if the tracer's option irq-info is off, and in perf's text.
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
        rest: without_period(fields.rest()),
        device: None,
    })
}

/// Parses a line without a CPU in brackets: `name-pid 1d..1. seconds:` or perf's `name pid
/// seconds:`.
fn without_brackets(line: &[u8]) -> Option<Start<'_>> {
    let mut fields = Fields::blanks(line);
    let (time_ns, head) = loop {
        let field = fields.next()?;
        let seconds = field.strip_suffix(b":").filter(|field| field.contains(&b'.'));
        if let Some(time_ns) = seconds.and_then(|field| decimal_ns(field, SECOND_PS, "").ok()) {
            let before = line.get(..line.len() - fields.rest().len())?.trim_ascii_end();
            break (time_ns, before.strip_suffix(field)?.trim_ascii());
        }
    };
    let start = |name, pid, cpu| {
        Some(Start { time_ns, cpu, pid, name: Some(name), rest: without_period(fields.rest()), device: None })
    };
    // The last word has the CPU and the flags, unless it is the process.
    let flags = Fields::blanks(head).last()?;
    let digits = flags.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let has_flags = digits > 0 && flags.len() >= digits + 4 && !flags.contains(&b'/');
    if has_flags && let Ok(cpu) = number(flags.get(..digits)?, "") {
        let (name, pid) = process_of(head.strip_suffix(flags)?.trim_ascii())?;
        return start(name, pid, cpu);
    }
    let (name, pid) = process_of(head)?;
    start(name, pid, 0)
}

/// Splits `name-pid`, `name-pid (tgid)`, `name pid` and `name pid/tid` into name and thread.
fn process_of(field: &[u8]) -> Option<(&[u8], u32)> {
    let field = match memchr::memrchr(b'(', field) {
        Some(open) if open > 0 && field.ends_with(b")") => {
            let group = field.get(open + 1..field.len() - 1)?;
            let is_group = group.trim_ascii().iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
            if is_group { field.get(..open)?.trim_ascii() } else { field }
        }
        _ => field,
    };
    if let Some(at) = field.iter().rposition(u8::is_ascii_whitespace) {
        let ids = field.get(at + 1..)?;
        let thread = ids.rsplit(|byte| *byte == b'/').next()?;
        if ids.iter().all(|byte| byte.is_ascii_digit() || *byte == b'/')
            && let Ok(pid) = number(thread, "")
        {
            return Some((field.get(..at)?.trim_ascii(), pid));
        }
    }
    pid_of(field)
}

/// Removes the period that perf prints before the name of an event with the option `-F +period`.
fn without_period(rest: &[u8]) -> &[u8] {
    let mut fields = Fields::blanks(rest);
    let is_period = fields.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    let is_event = fields.rest().iter().take_while(|byte| !byte.is_ascii_whitespace()).any(|byte| *byte == b':');
    if is_period && is_event { fields.rest() } else { rest }
}
