//! Marks system calls: process, call and file of each, as messages between the requests.
//!
//! The calls come from the tracepoints of system calls, in an instance of tracefs. The file of a
//! descriptor is looked up when the event is read, a few milliseconds later; a process that has
//! ended by then leaves no mark. Calls on files of file systems on the device, and on the device
//! itself, are kept. Page faults of mapped files are no calls; those of io_uring and libaio name no
//! file.

use std::collections::HashMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use hoistway_machine::{ProcessFiles, Root};

use super::CaptureError;
use super::device::TracedDevice;
use super::pipes::{Pipe, settled_ns};
use super::settings::Settings;
use super::sink::Sink;
use super::tracing_files::KernelFiles;

/// The system calls that reach a block device by a descriptor.
const CALLS: [&str; 17] = [
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "fallocate",
    "sendfile64",
    "copy_file_range",
    "getdents64",
];
/// The largest number of remembered files, for processes that end before the lookup.
const KNOWN_FILES_MAX: usize = 65_536;

/// The reader of the events of system calls.
#[derive(Debug)]
pub(super) struct Calls {
    cpus: Vec<Pipe>,
    settings: Settings,
    files: KernelFiles,
    place: String,
    family: Vec<u64>,
    /// The path by process and descriptor; `None` for a file outside the device.
    known_files: HashMap<(u32, u32), Option<PathBuf>>,
    unmarked: u64,
}

/// A system call as a line of tracefs describes it.
#[derive(Debug, PartialEq, Eq)]
struct Call<'a> {
    time_ns: u64,
    cpu: u32,
    pid: u32,
    process: &'a str,
    name: &'a str,
    descriptor: u32,
    offset: Option<u64>,
    length: Option<u64>,
}

impl Calls {
    pub fn start(device: &TracedDevice, buffer_bytes: u64, notices: &mut Vec<String>) -> Result<Calls, CaptureError> {
        let files = KernelFiles::tracefs()?;
        let mut settings = Settings::new("calls")?;
        let place = format!("instances/hoistway-calls-{}", std::process::id());
        settings.make_instance(&files, &place)?;
        let write = |name: &str, value: &str| {
            let path = files.path(&format!("{place}/{name}"));
            std::fs::write(&path, value).map_err(|cause| CaptureError::of(name, cause))
        };
        write("trace_clock", "mono")?;
        write("buffer_size_kb", &buffer_bytes.div_ceil(1024).max(64).to_string())?;
        let mut cpus = Vec::new();
        for number in files.cpus(&place)? {
            let pipe = files.open_pipe(&format!("{place}/per_cpu/cpu{number}/trace_pipe"))?;
            cpus.push(Pipe::new(number, pipe));
        }
        // The calls of this process would outnumber all others.
        let not_us = format!("common_pid != {}", std::process::id());
        let mut missing = Vec::new();
        for call in CALLS {
            let event = format!("events/syscalls/sys_enter_{call}");
            if !files.path(&format!("{place}/{event}")).exists() {
                missing.push(call);
                continue;
            }
            write(&format!("{event}/filter"), &not_us)?;
            write(&format!("{event}/enable"), "1")?;
        }
        if missing.len() == CALLS.len() {
            let what = "the kernel has no tracepoints of system calls (CONFIG_FTRACE_SYSCALLS): calls cannot be marked";
            return Err(CaptureError::InUse(what.to_owned()));
        }
        if !missing.is_empty() {
            notices.push(format!("no marks for {}: the kernel has no tracepoints for these calls", missing.join(", ")));
        }
        let family = device.family.clone();
        Ok(Calls { cpus, settings, files, place, family, known_files: HashMap::new(), unmarked: 0 })
    }

    /// Stops the tracing of further calls.
    pub fn pause(&mut self) -> Result<(), CaptureError> {
        let path = self.files.path(&format!("{}/events/enable", self.place));
        tracing::debug!(settings = ?self.settings, "no more marks");
        std::fs::write(path, "0").map_err(|cause| CaptureError::of("events/enable", cause))
    }

    /// Reads the available calls. Returns the time in ns before which all calls have been read.
    pub fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        let mut complete_to_ns = settled_ns();
        for at in 0..self.cpus.len() {
            let Some(cpu) = self.cpus.get_mut(at) else { break };
            let is_all = cpu.fill()?;
            let pending = std::mem::take(&mut cpu.pending);
            let whole = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            cpu.pending = pending[whole..].to_vec();
            let text = String::from_utf8_lossy(&pending[..whole]);
            for call in text.lines().filter_map(read_line) {
                self.take(&call, sink);
                if let Some(cpu) = self.cpus.get_mut(at) {
                    cpu.last_ns = call.time_ns;
                }
            }
            if !is_all {
                complete_to_ns = complete_to_ns.min(self.cpus.get(at).map_or(0, |cpu| cpu.last_ns));
            }
        }
        Ok(complete_to_ns)
    }

    /// Returns the number of calls whose process or descriptor was gone before the lookup.
    pub fn unmarked(&self) -> u64 {
        self.unmarked
    }

    fn take(&mut self, call: &Call<'_>, sink: &mut Sink) {
        let file = self.file_of(call.pid, call.descriptor);
        if let Some(file) = file {
            sink.message(call.time_ns, call.cpu, call.pid, &mark_text(call, &file));
        }
    }

    /// Returns the file of a descriptor if it is on the device.
    fn file_of(&mut self, pid: u32, descriptor: u32) -> Option<PathBuf> {
        let link = ProcessFiles::new(&Root::machine(), pid).descriptor(i32::try_from(descriptor).ok()?);
        let found = match std::fs::metadata(&link) {
            Ok(metadata) => {
                let device = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
                if self.family.contains(&device) { std::fs::read_link(&link).ok() } else { None }
            }
            // The descriptor has been closed or the process has ended: the last known file counts.
            Err(_) => {
                let known = self.known_files.get(&(pid, descriptor));
                self.unmarked += u64::from(known.is_none());
                return known.cloned().flatten();
            }
        };
        if self.known_files.len() >= KNOWN_FILES_MAX {
            self.known_files.clear();
        }
        self.known_files.insert((pid, descriptor), found.clone());
        found
    }
}

/// Formats the mark: `call dd[123] pread64 /data/file offset 4096 length 4096`.
fn mark_text(call: &Call<'_>, file: &Path) -> String {
    let mut text = format!("call {}[{}] {} {}", call.process, call.pid, call.name, file.display());
    if let Some(offset) = call.offset {
        text.push_str(&format!(" offset {offset}"));
    } else if call.length.is_some() {
        text.push_str(" at its position");
    }
    if let Some(length) = call.length {
        text.push_str(&format!(" length {length}"));
    }
    text
}

/// Parses a line such as `  dd-17328   [001] ..... 48463.233773: sys_pread64(fd: 3, buf: 0x7f00,
/// count: 0x310, pos: 0x40)`.
fn read_line(line: &str) -> Option<Call<'_>> {
    let (head, call) = line.split_once(": sys_")?;
    let (process, rest) = head.rsplit_once(" [")?;
    let (process, pid) = process.trim().rsplit_once('-')?;
    let (cpu, rest) = rest.split_once(']')?;
    let (seconds, fraction) = rest.rsplit_once(' ')?.1.split_once('.')?;
    let micros: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let (name, arguments) = call.split_once('(')?;
    let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
    // Kernels that mark hexadecimal numbers also write decimal ones; other kernels write all
    // numbers in hexadecimal.
    let marked = arguments.contains("0x");
    let value = |names: &[&str]| {
        let mut pairs = arguments.split(", ").filter_map(|pair| pair.split_once(": "));
        let (_, value) = pairs.find(|(key, _)| names.contains(key))?;
        let value = value.split(' ').next().unwrap_or(value);
        match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None if marked => value.parse().ok(),
            None => u64::from_str_radix(value, 16).ok(),
        }
    };
    let vectored = name.contains('v') && !name.contains("range");
    Some(Call {
        time_ns: seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(micros * 1000)?,
        cpu: cpu.parse().ok()?,
        pid: pid.trim().parse().ok()?,
        process: process.trim(),
        name,
        descriptor: u32::try_from(value(&["fd", "in_fd", "fd_in"])?).ok()?,
        offset: value(&["pos", "offset", "pos_l"]).filter(|_| name != "sendfile64"),
        // Vectored calls only show the number of parts.
        length: if vectored { None } else { value(&["count", "len", "nbytes"]) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_call_is_read() {
        let line = "              dd-17328   [001] ..... 48463.233773: sys_pread64(fd: 3, buf: 0x7ffc4fcda640, count: 0x310, pos: 0x40)";
        let call = read_line(line).unwrap();
        assert_eq!((call.time_ns, call.cpu, call.pid, call.process), (48_463_233_773_000, 1, 17_328, "dd"));
        let text = mark_text(&call, Path::new("/data/a b"));
        assert_eq!(text, "call dd[17328] pread64 /data/a b offset 64 length 784");
    }

    #[test]
    fn kernels_that_write_all_in_hexadecimal_are_parsed() {
        let line = "   Web Content-a-7 [000] d..1.  12.5: sys_write(fd: 1f, buf: 55aa, count: 1000)";
        let call = read_line(line).unwrap();
        assert_eq!((call.process, call.descriptor, call.length, call.offset), ("Web Content-a", 31, Some(4096), None));
        assert_eq!(call.time_ns, 12_500_000_000);
        assert_eq!(mark_text(&call, Path::new("f")), "call Web Content-a[7] write f at its position length 4096");
    }

    #[test]
    fn other_lines_are_skipped() {
        for line in
            ["", "CPU:0 [LOST 3 EVENTS]", "dd-1 [000] ..... 1.0: sys_sync()", "dd-1 [000] ..... x: sys_read(fd: 1)"]
        {
            assert_eq!(read_line(line), None, "{line}");
        }
    }
}
