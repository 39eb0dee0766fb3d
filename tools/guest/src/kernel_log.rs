//! Reports of errors in the kernel's log.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::Outcome;

/// The lines of a report at most.
const REPORT_LINES_MAX: usize = 80;

/// Beginnings of messages that are reports.
const BEGINNINGS: [(&str, &str); 6] = [
    ("WARNING:", "warning"),
    ("BUG:", "bug"),
    ("BUG ", "bug"),
    ("Oops", "oops"),
    ("INFO: task ", "hung task"),
    ("kernel BUG at", "bug"),
];

/// Parts of messages that are reports.
const PARTS: [(&str, &str); 29] = [
    ("[ cut here ]", "warning"),
    ("kernel BUG at", "bug"),
    ("Oops:", "oops"),
    // Only arm64 has these two.
    ("Internal error:", "oops"),
    ("SError Interrupt", "oops"),
    ("general protection fault", "oops"),
    ("unable to handle", "oops"),
    ("Unable to handle", "oops"),
    ("stack segment:", "oops"),
    ("invalid opcode:", "oops"),
    ("divide error:", "oops"),
    ("Kernel panic", "panic"),
    ("blocked for more than", "hung task"),
    ("soft lockup", "lockup"),
    ("hard LOCKUP", "lockup"),
    ("detected stall", "stall"),
    ("self-detected stall", "stall"),
    ("locking dependency", "lockdep"),
    ("recursive locking", "lockdep"),
    ("inconsistent lock state", "lockdep"),
    ("suspicious RCU usage", "lockdep"),
    ("bad unlock balance", "lockdep"),
    ("KASAN:", "kasan"),
    ("KCSAN:", "kcsan"),
    ("UBSAN:", "ubsan"),
    ("ODEBUG:", "debugobjects"),
    ("new suspected memory leaks", "leak"),
    ("scheduling while atomic", "bug"),
    ("page allocation failure", "allocation"),
];

/// A report of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The kind, such as `warning`.
    pub kind: &'static str,
    /// The lines.
    pub text: String,
}

/// The kind of the report that begins with a message of the kernel, None if it is no report.
pub fn classify(message: &str) -> Option<&'static str> {
    let message = message.trim_start();
    let begins = BEGINNINGS.iter().find(|(beginning, _)| message.starts_with(beginning));
    let contains = || PARTS.iter().find(|(part, _)| message.contains(part));
    begins.or_else(contains).map(|(_, kind)| *kind)
}

/// Functions of the kernel that any number of processors may run at the same time: races in them
/// and in what they call are the kernel's.
const CONCURRENT: [&str; 1] = ["blk_mq_run_hw_queues"];

/// Returns true for the report of a data race in which no function of the module has a part: the
/// kernel tolerates many races of its own code. Frames of modules end with the module's name.
pub fn is_race_without(text: &str, module: &str) -> bool {
    let mut lines = text.lines();
    let title = lines.next().unwrap_or_default();
    let module = format!("[{module}]");
    title.contains("BUG: KCSAN:") && !title.contains(&module) && !has_frame(lines, &module)
}

/// Returns true if one of the stacks of a report has a frame of a module, not below a concurrent
/// function of the kernel. The innermost frame of a stack is first; frames are indented.
fn has_frame<'a>(lines: impl Iterator<Item = &'a str>, module: &str) -> bool {
    let mut is_concurrent = false;
    for line in lines {
        let function = line.trim_start().split('+').next().unwrap_or_default();
        is_concurrent = line.starts_with(' ') && (is_concurrent || CONCURRENT.contains(&function));
        if line.contains(module) && !is_concurrent {
            return true;
        }
    }
    false
}

/// Returns true for the line above and below the reports of sanitizers and of lockdep.
fn is_rule(message: &str) -> bool {
    let message = message.trim();
    message.len() >= 20 && message.bytes().all(|byte| byte == b'=')
}

/// Finds the reports in messages of the kernel. The lines after the first one, up to the end of a
/// trace or a rule, belong to the report.
pub fn reports<'a>(messages: impl IntoIterator<Item = &'a str>) -> Vec<Report> {
    let mut found: Vec<Report> = Vec::new();
    let mut open = 0usize;
    for message in messages {
        if open > 0 && is_rule(message) {
            open = 0;
        } else if open > 0 {
            if let Some(report) = found.last_mut() {
                report.text.push('\n');
                report.text.push_str(message);
            }
            open = if message.contains("end trace") { 0 } else { open - 1 };
        } else if let Some(kind) = classify(message) {
            found.push(Report { kind, text: message.to_owned() });
            open = REPORT_LINES_MAX;
        }
    }
    found
}

/// The message of a line of a console, without the time that begins it.
pub fn console_message(line: &str) -> &str {
    let line = line.trim_end();
    match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, message)) if time.trim().parse::<f64>().is_ok() => message,
        _ => line,
    }
}

/// The message of a record of `/dev/kmsg`: the first line after the semicolon.
pub fn record_message(record: &str) -> &str {
    let first = record.lines().next().unwrap_or_default();
    first.split_once(';').map_or(first, |(_, message)| message)
}

/// A reader of the kernel's log that returns each report once.
#[derive(Debug)]
pub struct LogReader {
    file: File,
}

impl LogReader {
    /// Opens the log at its beginning.
    pub fn open() -> Outcome<LogReader> {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/kmsg").map_err(|error| format!("/dev/kmsg: {error}"))?;
        Ok(LogReader { file })
    }

    /// Opens the log at its end.
    pub fn open_at_end() -> Outcome<LogReader> {
        let mut reader = LogReader::open()?;
        reader.file.seek(SeekFrom::End(0)).map_err(|error| format!("/dev/kmsg: {error}"))?;
        Ok(reader)
    }

    /// The reports that were logged since the last call.
    pub fn reports(&mut self) -> Vec<Report> {
        reports(self.messages().iter().map(String::as_str))
    }

    /// The messages that were logged since the last call.
    pub fn messages(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        let mut record = vec![0; 16 << 10];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => break,
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(record.get(..bytes).unwrap_or_default());
                    messages.push(record_message(&text).to_owned());
                }
                // Records were overwritten before they were read; the next read continues.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_the_kernel_are_found() {
        let lines = [
            ("WARNING: CPU: 1 PID: 77 at block/elevator.c:12 elv_x+0x1/0x2", "warning"),
            ("------------[ cut here ]------------", "warning"),
            ("BUG: unable to handle page fault for address: ffff8", "bug"),
            ("BUG kmalloc-64 (Tainted: G O): Right Redzone overwritten", "bug"),
            ("Oops: 0000 [#1] PREEMPT SMP NOPTI", "oops"),
            ("Internal error: Oops - BTI: 0000000036000001 [#1] SMP", "oops"),
            ("SError Interrupt on CPU1, code 0x00000000bf000002 -- SError", "oops"),
            ("INFO: task worker:12 blocked for more than 30 seconds.", "hung task"),
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s!", "lockup"),
            ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "stall"),
            ("WARNING: possible circular locking dependency detected", "warning"),
            ("BUG: KASAN: slab-use-after-free in x", "bug"),
            ("general protection fault, probably for non-canonical address", "oops"),
        ];
        for (line, kind) in lines {
            assert_eq!(classify(line), Some(kind), "{line}");
        }
    }

    #[test]
    fn ordinary_messages_are_no_reports() {
        let lines = [
            "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on",
            "hoistway_iosched: loading out-of-tree module taints kernel.",
            "sd 2:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK",
            "I/O error, dev sda, sector 4660 op 0x0:(READ)",
            "scsi_debug:sdebug_driver_probe: DEBUG: x",
        ];
        for line in lines {
            assert_eq!(classify(line), None, "{line}");
        }
    }

    #[test]
    fn the_lines_of_a_trace_belong_to_one_report() {
        let lines =
            ["ok", "------------[ cut here ]------------", "WARNING: CPU: 0", "---[ end trace ]---", "BUG: other"];
        let found = reports(lines);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].text.lines().count(), 3);
        assert_eq!(found[1].kind, "bug");
    }

    #[test]
    fn races_count_if_the_module_has_a_part_in_them() {
        let rule = "==================================================================";
        let lines = [
            rule,
            "BUG: KCSAN: data-race in one / other",
            "",
            "write to 0xffff888003a1c0b8 of 4 bytes by task 77 on cpu 0:",
            " one+0x10/0x80",
            " vfs_write+0x1d/0x60",
            "read to 0xffff888003a1c0b8 of 4 bytes by task 78 on cpu 1:",
            " other+0x1/0x80",
            "Reported by Kernel Concurrency Sanitizer on:",
            rule,
            rule,
            "BUG: KCSAN: data-race in hw_bio_merge / one",
            "",
            "write to 0xffff888003a1c0b8 of 4 bytes by task 77 on cpu 0:",
            " one+0x10/0x80",
            "read to 0xffff888003a1c0b8 of 4 bytes by task 78 on cpu 1:",
            " hw_bio_merge+0x1/0x80 [hoistway_iosched]",
            rule,
            "BUG: KASAN: slab-use-after-free in one+0x10/0x80",
        ];
        let found = reports(lines);
        let counts: Vec<bool> = found.iter().map(|report| !is_race_without(&report.text, "hoistway_iosched")).collect();
        assert_eq!(counts, [false, true, true], "{found:?}");
        assert!(is_race_without(&found[1].text, "bfq"));
        assert_eq!(found[0].text.lines().count(), 8);
    }

    #[test]
    fn races_below_a_concurrent_function_of_the_kernel_are_its_own() {
        let race = |inner: &str| {
            format!(
                "BUG: KCSAN: data-race in one / one\n\nwrite to 0xff of 4 bytes by task 51 on cpu 1:\n one+0xc1/0x2f0\n \
                 blk_mq_run_hw_queues+0x96/0x1f0\n hw_insert+0x5/0x7 [m]\n\nread to 0xff of 4 bytes by task 54 on cpu 0:\n \
                 one+0xaf/0x2f0\n {inner}+0x96/0x1f0\n hw_insert+0x5/0x7 [m]\n\nReported by x\n"
            )
        };
        assert!(is_race_without(&race("blk_mq_run_hw_queues"), "m"));
        assert!(!is_race_without(&race("elv_rqhash_add"), "m"));
        assert!(!is_race_without("BUG: KCSAN: data-race in hw_bio_merge [m] / one\n", "m"));
    }

    #[test]
    fn the_times_and_headers_of_messages_are_removed() {
        assert_eq!(console_message("[   12.345678] WARNING: CPU: 0\r"), "WARNING: CPU: 0");
        assert_eq!(console_message("[sda] attached"), "[sda] attached");
        assert_eq!(record_message("4,512,98765,-;WARNING: CPU: 0\n SUBSYSTEM=x"), "WARNING: CPU: 0");
    }
}
