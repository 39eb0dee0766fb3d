//! Format detection by the first bytes of an input.

use crate::csv;
use crate::lines::{BYTE_ORDER_MARK, LINE_BYTES_MAX};
use crate::source::Format;
use crate::text::{Fields, decimal_ns, number, shown};

/// Maximum number of lines that are examined.
const LINES_MAX: usize = 1000;
/// Magic number of a blktrace record, without its version.
const BLKTRACE_MAGIC: u32 = 0x6561_7400;

/// Detects the format of an input by its first bytes.
///
/// # Errors
/// Returns a description of the contents if no supported format matches.
pub(super) fn detect(head: &[u8]) -> Result<Format, String> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    if is_blktrace(head) {
        return Ok(Format::Blktrace);
    }
    if let Some(version) = version_of(head) {
        return Err(format!("it has records of blktrace version {version}: supported are 7 and 8"));
    }
    if head.iter().all(|&byte| byte == 0) {
        return Err(format!("its first {} bytes are zeros", head.len()));
    }
    // Zeros after text lines are reported by the reader.
    let text = head.split(|&byte| byte == 0).next().unwrap_or_default();
    let is_text = text.len() == head.len();
    let whole = if is_text { text.len() } else { memchr::memrchr(b'\n', text).unwrap_or_default() };
    let lines = text[..whole].split(|&byte| byte == b'\n').take(LINES_MAX).map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && line.len() < LINE_BYTES_MAX);
    let mut first = None;
    for line in lines {
        if let Some(format) = of_line(line) {
            return format;
        }
        first = first.or_else(|| Some(line).filter(|line| !line.starts_with(b"#")));
    }
    if !is_text {
        let first: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        return Err(format!(
            "it is not text, and its first bytes ({}) are not those of blktrace's records",
            first.join(" ")
        ));
    }
    Err(match first {
        Some(line) => format!("its first line is {}", shown(line)),
        None => "its beginning has only empty lines and comments".to_owned(),
    })
}

fn is_blktrace(head: &[u8]) -> bool {
    let magic = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).map_or(0, u32::from_le_bytes);
    let is_magic = |bytes: &[u8]| {
        [magic(bytes), magic(bytes).swap_bytes()].iter().any(|word| matches!(word ^ BLKTRACE_MAGIC, 7 | 8))
    };
    // The reader skips damage at the very beginning if a record follows.
    head.windows(4).any(is_magic)
}

/// Returns the version of the records at the start of `head`, in either byte order.
fn version_of(head: &[u8]) -> Option<u32> {
    let magic = u32::from_le_bytes(*head.first_chunk()?);
    [magic, magic.swap_bytes()].into_iter().map(|word| word ^ BLKTRACE_MAGIC).find(|version| *version < 16)
}

/// Returns the only format that a line can belong to, an error for a known unsupported format, or
/// None if the line is ambiguous.
fn of_line(line: &[u8]) -> Option<Result<Format, String>> {
    if let Some(version) = line.strip_prefix(b"fio version ").and_then(|rest| rest.strip_suffix(b" iolog")) {
        return Some(match version {
            b"2" | b"3" => Ok(Format::Iolog),
            _ => Err(format!("it is an iolog of version {}: supported are 2 and 3", shown(version))),
        });
    }
    if line.starts_with(csv::HEADER_BEGINNING) {
        return Some(Ok(Format::Csv));
    }
    if line.starts_with(b"# tracer: blk") {
        return Some(Ok(Format::Ftrace));
    }
    if line.starts_with(b"#") {
        return None;
    }
    blanks(line).or_else(|| commas(line)).or_else(|| semicolons(line))
}

fn blanks(line: &[u8]) -> Option<Result<Format, String>> {
    let fields: Vec<&[u8]> = Fields::blanks(line).take(8).collect();
    let is_number = |at: usize| fields.get(at).is_some_and(|field| number::<u64>(field, "").is_ok());
    let is_seconds =
        |at: usize| fields.get(at).is_some_and(|field| field.contains(&b'.') && decimal_ns(field, 1000, "").is_ok());
    if is_device(fields.first()?) && is_number(1) {
        if is_number(2) && is_seconds(3) && is_number(4) {
            return Some(Ok(Format::Blkparse));
        }
        return (is_seconds(2) && is_number(3)).then_some(Ok(Format::Ftrace));
    }
    if is_ftrace_default(line) {
        return Some(Ok(Format::Ftrace));
    }
    if fields.len() == 5 && (0..5).all(is_number) && matches!(fields.get(4), Some(&b"0" | &b"1")) {
        return Some(Ok(Format::Mqsim));
    }
    let disksim = fields.len() == 5 && is_seconds(0) && (1..4).all(is_number);
    disksim.then(|| Err("it looks like DiskSim's text, which is not supported".to_owned()))
}

/// Recognises `fio-2894    [001] d..1.  1781.997780:   7,0    Q  RS 0 + 128 [fio]`.
fn is_ftrace_default(line: &[u8]) -> bool {
    let Some(open) = line.windows(2).position(|pair| pair == b" [") else { return false };
    let mut fields = Fields::blanks(line.get(open..).unwrap_or_default());
    let cpu = fields.next().and_then(|cpu| cpu.strip_prefix(b"[")?.strip_suffix(b"]"));
    let is_cpu = cpu.is_some_and(|cpu| number::<u32>(cpu, "").is_ok());
    let mut rest = fields.take(2);
    is_cpu && rest.any(|time| time.strip_suffix(b":").is_some_and(|time| decimal_ns(time, 1000, "").is_ok()))
}

fn commas(line: &[u8]) -> Option<Result<Format, String>> {
    let fields: Vec<&[u8]> = Fields::split(line, b',').take(8).collect();
    let is = |at: usize, words: &[&str]| {
        fields.get(at).is_some_and(|field| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes())))
    };
    match fields.len() {
        7 if is(3, &["Read", "Write", "Type"]) => Some(Ok(Format::Msr)),
        5 if is(1, &["R", "W", "opcode"]) => Some(Ok(Format::Alibaba)),
        5 | 6 if is(3, &["R", "W"]) => Some(Err("it looks like SPC's trace format, which is not supported".to_owned())),
        _ => None,
    }
}

fn semicolons(line: &[u8]) -> Option<Result<Format, String>> {
    let fields: Vec<&[u8]> = Fields::split(line, b';').take(7).collect();
    let is_header = fields.first() == Some(&&b"start"[..]) && fields.get(1) == Some(&&b"sector"[..]);
    let is_record = fields.len() >= 4
        && decimal_ns(fields.first()?, 1000, "").is_ok()
        && number::<u64>(fields.get(1)?, "").is_ok()
        && number::<u64>(fields.get(2)?, "").is_ok();
    (is_header || is_record).then_some(Ok(Format::Blkreplay))
}

/// Recognises a device such as `254,0`.
fn is_device(field: &[u8]) -> bool {
    let mut numbers = field.split(|&byte| byte == b',');
    let mut is_number = || numbers.next().is_some_and(|part| number::<u32>(part, "").is_ok());
    is_number() && is_number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_detected_by_a_line() {
        for (line, format) in [
            ("fio version 2 iolog\n/dev/sda add\n", Format::Iolog),
            ("\u{feff}fio version 3 iolog\n", Format::Iolog),
            ("254,0    1        1     0.000000000   113  Q   R 30880 + 8 [fio]", Format::Blkparse),
            ("  7,0    0  1781.997769913  2896  Q  WS 102888 + 8 [<...>]\n", Format::Ftrace),
            ("# tracer: blk\n#\n", Format::Ftrace),
            (" fio test-2894    [001] d..1.  1781.997780:   7,0    Q  RS 0 + 128 [fio]\n", Format::Ftrace),
            (" kworker/0:1H-50 [001] 1781.997780:   7,0    Q  RS 0 + 128 [x]\n", Format::Ftrace),
            ("128166372003061629,hm,1,Read,383496192,32768,413\n", Format::Msr),
            ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n", Format::Msr),
            ("419,W,8792731648,16384,1577808144360767\n", Format::Alibaba),
            ("938513000 4 264719034 16 0\n", Format::Mqsim),
            ("Copyright\n\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n", Format::Blkreplay),
            ("      0.000000000 ;      6293576 ;    8 ; W ; 0.0 ; 0.0\n", Format::Blkreplay),
        ] {
            assert_eq!(detect(line.as_bytes()), Ok(format), "{line}");
        }
        assert_eq!(detect(b"0 0 8 8 1\n90000 0 8 8 1\n\0\0\0"), Ok(Format::Mqsim), "the reader reports the zeros");
        assert_eq!(detect(&[&[9, 9, 0, 1][..], &0x6561_7408u32.to_be_bytes()].concat()), Ok(Format::Blktrace));
    }

    #[test]
    fn an_unknown_input_is_described() {
        for (head, message) in [
            (&[0; 64][..], "its first 64 bytes are zeros"),
            (b"hello world\n", "its first line is \"hello world\""),
            (b"\x7fELF\x02\x01\x01\x00\x00", "7f 45 4c 46"),
            (&0x6561_7405u32.to_le_bytes(), "records of blktrace version 5: supported are 7 and 8"),
            (&0x6561_7409u32.to_be_bytes(), "records of blktrace version 9: supported are 7 and 8"),
            (b"fio version 1 iolog\n", "iolog of version \"1\": supported are 2 and 3"),
            (b"0,20941264,8192,W,0.551706\n", "SPC"),
            (b"0.000000 0 12345 8 1\n", "DiskSim"),
            (b"# nothing\n\n", "only empty lines"),
        ] {
            let what = detect(head).unwrap_err();
            assert!(what.contains(message), "{what}");
        }
    }
}
