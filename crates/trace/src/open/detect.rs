//! Format detection by the first bytes of an input.

use crate::biosnoop;
use crate::cloudphysics;
use crate::csv;
use crate::fiu;
use crate::io_tracer;
use crate::lcs;
use crate::lines::{BYTE_ORDER_MARK, LINE_BYTES_MAX};
use crate::oracle_general;
use crate::source::Format;
use crate::tectonic;
use crate::text::{Fields, decimal_ns, has_titles, number, shown};
use crate::thesios;

/// Maximum number of lines that are examined.
const LINES_MAX: usize = 1000;
/// Magic number of a blktrace record, without its version.
const BLKTRACE_MAGIC: u32 = 0x6561_7400;

/// A format, and what it was recognised by.
type Found = (Format, &'static str);

/// Detects the format of an input by its first bytes. Also returns what it was detected from.
///
/// # Errors
/// Returns a description of the contents if no supported format matches.
pub(super) fn detect(head: &[u8]) -> Result<(Format, String), String> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    if let Some(found) = binary(head) {
        return Ok(found);
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
    let lines = (1..).zip(lines).filter(|(_, line)| !line.is_empty() && line.len() < LINE_BYTES_MAX);
    let mut first = None;
    for (number, line) in lines {
        if let Some(found) = of_line(line) {
            return found.map(|(format, what)| (format, format!("{what} in line {number}, {}", shown(line))));
        }
        first = first.or_else(|| Some(line).filter(|line| !line.starts_with(b"#")));
    }
    if !is_text {
        let first: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        return Err(format!(
            "it is not text, and its first bytes ({}) are those of no binary format. {}",
            first.join(" "),
            conversions()
        ));
    }
    let what = match first {
        Some(line) if cloudphysics::is_untitled(line) => format!(
            "its first line is {}; a table of CloudPhysics in an order of its own needs a line with the names of its \
             columns above it, as in \"ts,lbn,len,cmd\", and --format cloudphysics",
            shown(line)
        ),
        Some(line) => format!("its first line is {}", shown(line)),
        None => "its beginning has only empty lines and comments".to_owned(),
    };
    Err(format!("{what}. {}", conversions()))
}

/// Returns the formats, and how a table of another format can be read.
fn conversions() -> String {
    format!(
        "The formats are {}; --format NAME selects one. Any other table of requests can be read by describing its \
         columns: --columns time=1:s,op=2,offset=3:sectors,size=4:bytes",
        Format::ALL.map(Format::name).join(", ")
    )
}

/// Recognises binary formats.
fn binary(head: &[u8]) -> Option<(Format, String)> {
    if head.starts_with(crate::trace_cmd::MAGIC) {
        let version = head.get(crate::trace_cmd::MAGIC.len()..).unwrap_or_default();
        let version = version.split(|byte| *byte == 0).next().unwrap_or_default();
        let what = format!("trace-cmd's magic number and version {} at byte 0", version.escape_ascii());
        return Some((Format::TraceDat, what));
    }
    if head.starts_with(hoistway_columnar::MAGIC) || head.starts_with(b"PARE") {
        return Some((Format::Parquet, "Parquet's magic number at byte 0".to_owned()));
    }
    if let Some(version) = lcs::version_of(head) {
        let what = match version {
            0 => "the magic numbers of a header of 1024 bytes".to_owned(),
            version => format!("the magic numbers of a header of 8192 bytes and version {version}"),
        };
        return Some((Format::Lcs, what));
    }
    if let Some((at, version)) = blktrace_at(head) {
        return Some((Format::Blktrace, format!("the magic number of a record of version {version} at byte {at}")));
    }
    if let Some(version) = cloudphysics::Version::of(head) {
        let what = format!("records with version {} and SCSI commands for reads or writes", version.number());
        return Some((Format::Vscsi, what));
    }
    let what = "records of 24 bytes whose numbers of next requests lead to the same object";
    oracle_general::is_oracle_general(head).then(|| (Format::OracleGeneral, what.to_owned()))
}

/// Returns the position and the version of the first record of blktrace. The reader skips damage at
/// the very beginning if a record follows.
fn blktrace_at(head: &[u8]) -> Option<(usize, u32)> {
    let magic = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).map_or(0, u32::from_le_bytes);
    head.windows(4).enumerate().find_map(|(at, bytes)| {
        let words = [magic(bytes), magic(bytes).swap_bytes()];
        let version = words.into_iter().map(|word| word ^ BLKTRACE_MAGIC).find(|word| matches!(word, 7 | 8));
        version.map(|version| (at, version))
    })
}

/// Returns the version of the records at the start of `head`, in either byte order.
fn version_of(head: &[u8]) -> Option<u32> {
    let magic = u32::from_le_bytes(*head.first_chunk()?);
    [magic, magic.swap_bytes()].into_iter().map(|word| word ^ BLKTRACE_MAGIC).find(|version| *version < 16)
}

/// Returns the only format that a line can belong to, an error for a known unsupported format, or
/// None if the line is ambiguous.
fn of_line(line: &[u8]) -> Option<Result<Found, String>> {
    if let Some(version) = line.strip_prefix(b"fio version ").and_then(|rest| rest.strip_suffix(b" iolog")) {
        return Some(match version {
            b"2" | b"3" => Ok((Format::Iolog, "the title of an iolog")),
            _ => Err(format!("it is an iolog of version {}: supported are 2 and 3", shown(version))),
        });
    }
    if line.starts_with(csv::HEADER_BEGINNING) {
        return Some(Ok((Format::Csv, "the columns time_ns, action")));
    }
    if line.starts_with(b"# tracer: blk") {
        return Some(Ok((Format::Ftrace, "the name of the tracer blk")));
    }
    if line.starts_with(b"#") {
        return None;
    }
    if biosnoop::is_titles(line) {
        return Some(Ok((Format::Biosnoop, "the titles TIME and LAT")));
    }
    if let Some(found) = titles(line) {
        return Some(Ok(found));
    }
    if cloudphysics::is_titles(line) {
        return Some(Ok((Format::CloudPhysics, "the titles of time, block, length and command")));
    }
    if cloudphysics::has_order_of_records(line) {
        let what = "version, SCSI command, whole sectors, block and time in the order of a record of CloudPhysics";
        return Some(Ok((Format::CloudPhysics, what)));
    }
    let found = kernel(line).or_else(|| commas(line)).or_else(|| semicolons(line));
    found.map(Ok).or_else(|| blanks(line))
}

/// Recognises tables by their titles.
fn titles(line: &[u8]) -> Option<Found> {
    if has_titles(line, &thesios::SIGNATURE) {
        return Some((Format::Thesios, "the titles filename, file_offset and service_class"));
    }
    if has_titles(line, &tectonic::SIGNATURE) {
        return Some((Format::Tectonic, "the titles op_time, block_id and op_name"));
    }
    has_titles(line, &io_tracer::SIGNATURE)
        .then_some((Format::IoTracer, "the titles timestamp, pid, command, sector and operation"))
}

/// Recognises the texts of blkparse and of the kernel's tracing.
fn kernel(line: &[u8]) -> Option<Found> {
    let fields: Vec<&[u8]> = Fields::blanks(line).take(8).collect();
    let is_number = |at: usize| fields.get(at).is_some_and(|field| number::<u64>(field, "").is_ok());
    let is_seconds = |at: usize| fields.get(at).is_some_and(|field| is_decimal(field));
    if is_device(fields.first()?) && is_number(1) {
        if is_number(2) && is_seconds(3) && is_number(4) {
            return Some((Format::Blkparse, "device, CPU, sequence number, seconds and process"));
        }
        let what = "device, CPU, seconds and process";
        return (is_seconds(2) && is_number(3)).then_some((Format::Ftrace, what));
    }
    named_event(line)
}

/// Recognises lines with a process, a time that ends with a colon, and an event:
/// `fio-2894 [001] d..1. 1781.997780: 7,0 Q RS 0 + 128 [fio]` and
/// `fio 2894 [001] 1781.997780: block:block_rq_issue: 7,0 R 4096 () 0 + 8 [fio]`.
fn named_event(line: &[u8]) -> Option<Found> {
    let mut fields = Fields::blanks(line);
    let (mut before, mut has_cpu) = (Vec::new(), false);
    loop {
        let field = fields.next()?;
        if field.strip_suffix(b":").is_some_and(is_decimal) {
            break;
        }
        let cpu = field.strip_prefix(b"[").and_then(|field| field.strip_suffix(b"]"));
        has_cpu |= cpu.is_some_and(|cpu| number::<u32>(cpu, "").is_ok());
        before.push(field);
    }
    let mut event = fields.next()?;
    if event.iter().all(u8::is_ascii_digit) {
        event = fields.next()?;
    }
    let is_name = |word: &[u8]| {
        !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let title = event.strip_suffix(b":").unwrap_or_default();
    let system = memchr::memchr(b':', title).and_then(|at| Some((title.get(..at)?, title.get(at + 1..)?)));
    if before.len() >= 2 && system.is_some_and(|(system, name)| is_name(system) && is_name(name)) {
        return Some((Format::Perf, "process, seconds, and subsystem and name of an event"));
    }
    if has_cpu {
        return Some((Format::Ftrace, "process, CPU in brackets and seconds"));
    }
    let has_flags = before.last().is_some_and(|word| word.len() > 4 && word.first().is_some_and(u8::is_ascii_digit));
    (before.len() >= 2 && has_flags && is_name(title))
        .then_some((Format::Ftrace, "process, CPU with flags and seconds"))
}

fn blanks(line: &[u8]) -> Option<Result<Found, String>> {
    let fields: Vec<&[u8]> = Fields::blanks(line).take(64).collect();
    let is_number = |at: usize| fields.get(at).is_some_and(|field| number::<u64>(field, "").is_ok());
    let is_seconds = |at: usize| fields.get(at).is_some_and(|field| is_decimal(field));
    if fields.len() == 5 && (0..5).all(is_number) && matches!(fields.get(4), Some(&b"0" | &b"1")) {
        return Some(Ok((Format::Mqsim, "five whole numbers, the last of which is 0 or 1,")));
    }
    let is_hexadecimal = |field: &&[u8]| field.strip_prefix(b"0x").unwrap_or(field).iter().all(u8::is_ascii_hexdigit);
    if fields.len() == 5 && is_seconds(0) && (1..4).all(is_number) && fields.get(4).is_some_and(is_hexadecimal) {
        return Some(Ok((Format::Disksim, "a time with a fraction, three whole numbers and flags")));
    }
    if tectonic::is_baleen(line) {
        return Some(Ok((Format::Baleen, "8 to 10 numbers with a time since 1970 and an operation from 1 to 6")));
    }
    if fields.len() == 6 && matches!(fields.get(1), Some(&b"Hit" | &b"Miss")) {
        let what = "it looks like a validation trace of DiskSim: `hoistway drives --fit` reads it";
        return Some(Err(what.to_owned()));
    }
    let is_fiu = fields.len() >= 7 && is_number(0) && is_number(1) && fiu::operation_at(&fields).is_some();
    is_fiu.then_some(Ok((Format::Fiu, "time, process, address, size, R or W and device")))
}

fn commas(line: &[u8]) -> Option<Found> {
    let fields: Vec<&[u8]> = Fields::split(line, b',').take(9).collect();
    let is = |at: usize, words: &[&str]| {
        fields.get(at).is_some_and(|field| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes())))
    };
    let is_number = |at: usize| fields.get(at).is_some_and(|field| number::<u64>(field, "").is_ok());
    let is_time = |at: usize| fields.get(at).is_some_and(|field| decimal_ns(field, 1000, "").is_ok());
    let number_at = |at: usize| fields.get(at).and_then(|field| number::<u64>(field, "").ok());
    match fields.len() {
        7 if is(3, &["Read", "Write", "Type"]) => Some((Format::Msr, "seven columns with Read or Write as the fourth")),
        5 if is(2, &["R", "W"]) && is_number(0) && is_time(1) && is_number(3) && is_number(4) => {
            Some((Format::K5cloud, "volume, time, R or W, offset and length"))
        }
        5 if is(1, &["R", "W", "opcode"]) => Some((Format::Alibaba, "five columns with R or W as the second")),
        6 if is(2, &["IOType"]) && is(3, &["LUN"]) => Some((Format::Systor, "the titles IOType and LUN")),
        6 if is(2, &["R", "W"]) && is_time(0) && is_number(3) => {
            Some((Format::Systor, "six columns with R or W as the third"))
        }
        5.. if is(3, &["R", "W"]) && (0..3).all(is_number) && is_time(4) => {
            Some((Format::Spc, "R or W as the fourth column, and a time as the fifth,"))
        }
        // Seconds since 1970 from 2001 to 2100.
        5 if (0..5).all(is_number)
            && is(3, &["0", "1"])
            && number_at(0).is_some_and(|time| (1_000_000_000..4_102_444_800).contains(&time)) =>
        {
            Some((Format::Tencent, "seconds since 1970, and 0 or 1 as the fourth of five columns,"))
        }
        4..=7
            if is_time(0) && is_number(1) && is(2, &["0", "1", "2"]) && number_at(3).is_some_and(|size| size != 1) =>
        {
            Some((Format::FioLog, "time, latency, direction (0, 1 or 2) and size"))
        }
        _ => None,
    }
}

fn semicolons(line: &[u8]) -> Option<Found> {
    let fields: Vec<&[u8]> = Fields::split(line, b';').take(7).collect();
    if fields.first() == Some(&&b"start"[..]) && fields.get(1) == Some(&&b"sector"[..]) {
        return Some((Format::Blkreplay, "the titles start and sector"));
    }
    let is_record = fields.len() >= 4
        && decimal_ns(fields.first()?, 1000, "").is_ok()
        && number::<u64>(fields.get(1)?, "").is_ok()
        && number::<u64>(fields.get(2)?, "").is_ok();
    is_record.then_some((Format::Blkreplay, "start, sector and length between semicolons"))
}

/// Returns true for a number with a fraction.
fn is_decimal(field: &[u8]) -> bool {
    field.contains(&b'.') && decimal_ns(field, 1000, "").is_ok()
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
            ("cpus=2\n fio-24899 [001]  1306.78: block_rq_issue: 7,0 R 4096 () 8 + 8 0x2,0,4 [fio]\n", Format::Ftrace),
            (" fio-25085   1...1.  1308.22: block_rq_insert:      7,0 R 4096 () 7408 + 8 [fio]\n", Format::Ftrace),
            (" a b 25114 [000]  1309.55:      block:block_rq_issue: 7,0 R 4096 () 7408 + 8 [fio]\n", Format::Perf),
            (" fio 25114/25115 1309.55:  1  block:block_rq_issue: 7,0 R 4096 () 7408 + 8 [fio]\n", Format::Perf),
            (
                "Attaching 4 probes...\nTIME(ms)     DISK             COMM             PID    LAT(ms)\n",
                Format::Biosnoop,
            ),
            ("TIME(ms)     DISK ID        COMM             PID    LAT(ms)\n", Format::Biosnoop),
            ("0, 149908, 1, 8192, 0\n", Format::FioLog),
            ("0, 165356, 1, 8192, 3792896, 0x2004\n", Format::FioLog),
            ("128166372003061629,hm,1,Read,383496192,32768,413\n", Format::Msr),
            ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n", Format::Msr),
            ("419,W,8792731648,16384,1577808144360767\n", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
            ("0,20941264,8192,W,0.551706\n", Format::Spc),
            ("0,20941264,8192,w,0.551706,5,9\n", Format::Spc),
            ("Timestamp,Response,IOType,LUN,Offset,Size\n", Format::Systor),
            ("1455592207.110738000,,R,1,4096,8192\n", Format::Systor),
            ("0 4892 kjournald two 904265560 8 W 6 0 531e779c\n", Format::Fiu),
            ("sn,len,cmd,ver,lbn,ts\n", Format::CloudPhysics),
            ("2,65536,16,42,256,1048576,1000250\n", Format::CloudPhysics),
            ("3,0,0,0x35,0x100,0,1000300\n4,8192,2,0x88,0x100,2056,1003000\n", Format::CloudPhysics),
            ("40,512,1,4096,1,2048,1000000,700\n", Format::CloudPhysics),
            ("1,1000000,42,4096,2048\n", Format::CloudPhysics),
            ("1,5633898,2a,512,42932745\n", Format::CloudPhysics),
            ("2264,86400.121837000,R,48195870720,4096\n", Format::K5cloud),
            ("310 262144 4325376 1572074461.57806 1 24 3 5\n", Format::Baleen),
            ("filename,file_offset,application,op_type,service_class\n", Format::Thesios),
            ("op_name,op_time,block_id,io_size,io_offset\n", Format::Tectonic),
            ("timestamp,pid,command,sector,operation,size\n", Format::IoTracer),
            ("0.000000 0 12345 8 1\n", Format::Disksim),
            ("938513000 4 264719034 16 0\n", Format::Mqsim),
            ("Copyright\n\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n", Format::Blkreplay),
            ("      0.000000000 ;      6293576 ;    8 ; W ; 0.0 ; 0.0\n", Format::Blkreplay),
        ] {
            assert_eq!(detect(line.as_bytes()).map(|found| found.0), Ok(format), "{line}");
        }
        let found = |head: &[u8]| detect(head).unwrap().0;
        assert_eq!(found(b"0 0 8 8 1\n90000 0 8 8 1\n\0\0\0"), Format::Mqsim, "the reader reports the zeros");
        assert_eq!(found(&[&[9, 9, 0, 1][..], &0x6561_7408u32.to_be_bytes()].concat()), Format::Blktrace);
    }

    #[test]
    fn the_reason_names_the_line_or_the_bytes() {
        let reason = |head: &[u8]| detect(head).unwrap().1;
        assert_eq!(
            reason(b"# x\n\n1538323200,12910952,128,0,1063\n"),
            "seconds since 1970, and 0 or 1 as the fourth of five columns, in line 3, \"1538323200,12910952,128,0,1063\""
        );
        assert_eq!(reason(b"PAR1\x15\x04"), "Parquet's magic number at byte 0");
        assert_eq!(reason(b"\x17\x08\x44tracing6\0"), "trace-cmd's magic number and version 6 at byte 0");
        let record = [&[9, 9][..], &0x6561_7407u32.to_le_bytes()].concat();
        assert_eq!(reason(&record), "the magic number of a record of version 7 at byte 2");
    }

    #[test]
    fn an_unknown_input_is_described() {
        for (head, message) in [
            (&[0; 64][..], "its first 64 bytes are zeros"),
            (b"100,8,4096,40\n", "its first line is \"100,8,4096,40\"; a table of CloudPhysics"),
            (b"hello world\n", "its first line is \"hello world\""),
            (b"\x7fELF\x02\x01\x01\x00\x00", "7f 45 4c 46"),
            (&0x6561_7405u32.to_le_bytes(), "records of blktrace version 5: supported are 7 and 8"),
            (&0x6561_7409u32.to_be_bytes(), "records of blktrace version 9: supported are 7 and 8"),
            (b"fio version 1 iolog\n", "iolog of version \"1\": supported are 2 and 3"),
            (b"R Hit    7563004   4  14368.00000  28778.00000\n", "drives --fit"),
            (b"# nothing\n\n", "only empty lines"),
        ] {
            let what = detect(head).unwrap_err();
            assert!(what.contains(message), "{what}");
        }
    }
}
