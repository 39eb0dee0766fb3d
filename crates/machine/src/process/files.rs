//! The files of one process below `/proc`.

use std::fs;
use std::io;
use std::path::PathBuf;

use procfs_core::process::{Io, Stat};
use procfs_core::{FromBufRead as _, FromRead as _, ProcessCGroups};

use crate::files::{list_names, read_bytes, read_text};
use crate::priority::CpuPolicy;
use crate::root::Root;

/// Reads the files of a process or thread: `/proc/PID`.
///
/// A file that cannot be read gives an empty value, because a process may end at any time.
///
/// ```
/// use hoistway_machine::{ProcessFiles, Root};
/// let own = ProcessFiles::new(&Root::machine(), std::process::id());
/// assert!(own.stat().is_some_and(|stat| stat.start_ticks > 0));
/// ```
#[derive(Clone, Debug)]
pub struct ProcessFiles(PathBuf);

/// The fields of `/proc/PID/stat` (proc(5)) that I/O depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// The nice value, -20 to 19.
    pub nice: i8,
    /// The CPU scheduling policy.
    pub policy: CpuPolicy,
    /// The start time in clock ticks since the machine started.
    pub start_ticks: u64,
    /// True if the process has ended and its parent has not waited for it.
    pub has_ended: bool,
}

/// A set of signals, as `/proc/PID/status` (proc(5)) contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    /// Returns true if the set contains a signal.
    pub fn contains(self, signal: i32) -> bool {
        (1..=64).contains(&signal) && self.0 >> (signal - 1) & 1 == 1
    }

    /// Parses hexadecimal digits, whose lowest bit is signal 1.
    fn parse(digits: &str) -> Option<SignalSet> {
        u64::from_str_radix(digits, 16).ok().map(SignalSet)
    }
}

impl ProcessFiles {
    /// The files of a process or thread; nothing is read yet.
    pub fn new(root: &Root, pid: u32) -> ProcessFiles {
        ProcessFiles(root.path(format!("/proc/{pid}")))
    }

    /// The files of the calling process on the running machine: `/proc/self`.
    pub fn own() -> ProcessFiles {
        ProcessFiles(PathBuf::from("/proc/self"))
    }

    /// Returns true if the process or thread exists.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.0).is_ok()
    }

    /// The command name: `/proc/PID/comm`.
    pub fn comm(&self) -> String {
        let comm = read_bytes(&self.0.join("comm")).unwrap_or_default();
        String::from_utf8_lossy(&comm).trim_end_matches('\n').to_owned()
    }

    /// The words of the command line: `/proc/PID/cmdline`. Empty for a kernel thread.
    pub fn command(&self) -> Vec<String> {
        let line = read_bytes(&self.0.join("cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// The command line as one text, with a space between two words. Empty for a kernel thread.
    pub fn command_line(&self) -> String {
        let line = read_bytes(&self.0.join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.join(" ").trim_end().to_owned()
    }

    /// The control group: the path in the unified hierarchy unless that is the root group, else the
    /// path of the version 1 controller `blkio`. Where both hierarchies exist, all processes are in
    /// the root group of the one that is not in use.
    pub fn control_group(&self) -> String {
        control_group(&read_bytes(&self.0.join("cgroup")).unwrap_or_default())
    }

    /// Nice value, scheduling policy and start time; `None` if the process has ended.
    pub fn stat(&self) -> Option<ProcessStat> {
        self.read_stat().ok()
    }

    /// As [`ProcessFiles::stat`], with the system's error. A line of another form gives defaults.
    pub(super) fn read_stat(&self) -> io::Result<ProcessStat> {
        Ok(parse_stat(&fs::read(self.0.join("stat"))?))
    }

    /// The real user id, from `/proc/PID/status`.
    pub fn uid(&self) -> Option<u32> {
        self.status_field("Uid:")?.split_whitespace().next()?.parse().ok()
    }

    /// The supplementary group ids, from `/proc/PID/status`. Empty if the process has ended.
    pub fn groups(&self) -> Vec<u32> {
        let groups = self.status_field("Groups:").unwrap_or_default();
        groups.split_whitespace().filter_map(|group| group.parse().ok()).collect()
    }

    /// The signals pending for the thread, from `/proc/PID/status`; `None` if the thread has ended.
    pub fn pending_signals(&self) -> Option<SignalSet> {
        SignalSet::parse(&self.status_field("SigPnd:")?)
    }

    /// The signals that the process ignores, from `/proc/PID/status`; `None` if the process has
    /// ended.
    pub fn ignored_signals(&self) -> Option<SignalSet> {
        SignalSet::parse(&self.status_field("SigIgn:")?)
    }

    /// The value of a field of `/proc/PID/status`. `name` includes the colon.
    fn status_field(&self, name: &str) -> Option<String> {
        let status = read_bytes(&self.0.join("status"))?;
        let mut lines = status.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
        Some(std::str::from_utf8(value).ok()?.trim().to_owned())
    }

    /// Bytes read from devices, and bytes written to them, from `/proc/PID/io`; `None` if the
    /// caller may not read the file.
    pub fn moved_bytes(&self) -> Option<(u64, u64)> {
        let io = Io::from_buf_read(&*read_bytes(&self.0.join("io"))?).ok()?;
        Some((io.read_bytes, io.write_bytes))
    }

    /// The link of an open file descriptor, `/proc/PID/fd/DESCRIPTOR`. `stat` of this path returns
    /// the status of the open file.
    pub fn descriptor(&self, descriptor: i32) -> PathBuf {
        self.0.join(format!("fd/{descriptor}"))
    }

    /// The target of an open file descriptor: a path, or a name such as `socket:[42]`. `None` if
    /// the descriptor is not open or may not be read.
    pub fn open_file(&self, descriptor: i32) -> Option<PathBuf> {
        fs::read_link(self.descriptor(descriptor)).ok()
    }

    /// The id of the mount through which a file descriptor was opened, as [`MountEntry::id`] has
    /// it, from `/proc/PID/fdinfo`.
    ///
    /// [`MountEntry::id`]: crate::MountEntry::id
    pub fn mount_id(&self, descriptor: i32) -> Option<u64> {
        let info = read_text(&self.0.join(format!("fdinfo/{descriptor}")))?;
        info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
    }

    /// The targets of all open file descriptors: paths, or names such as `socket:[42]`.
    pub fn open_files(&self) -> Vec<PathBuf> {
        self.descriptors().iter().filter_map(|link| fs::read_link(link).ok()).collect()
    }

    /// The links of `/proc/PID/fd`; empty if the caller may not read the directory.
    pub(super) fn descriptors(&self) -> Vec<PathBuf> {
        let directory = self.0.join("fd");
        list_names(&directory).iter().map(|name| directory.join(name)).collect()
    }

    /// Returns true if the caller may list the open files.
    pub(super) fn may_list_descriptors(&self) -> bool {
        fs::read_dir(self.0.join("fd")).is_ok()
    }

    /// The link to the working directory.
    pub(super) fn working_directory(&self) -> PathBuf {
        self.0.join("cwd")
    }

    /// The link to the executable.
    pub(super) fn executable(&self) -> PathBuf {
        self.0.join("exe")
    }
}

fn parse_stat(line: &[u8]) -> ProcessStat {
    let Ok(stat) = Stat::from_read(line) else { return ProcessStat::default() };
    let policy = match stat.policy.and_then(|policy| i32::try_from(policy).ok()) {
        Some(libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) => CpuPolicy::Realtime,
        Some(libc::SCHED_IDLE) => CpuPolicy::Idle,
        _ => CpuPolicy::Normal,
    };
    ProcessStat {
        nice: i8::try_from(stat.nice).unwrap_or(0),
        policy,
        start_ticks: stat.starttime,
        has_ended: matches!(stat.state, 'Z' | 'X'),
    }
}

fn control_group(text: &[u8]) -> String {
    // Line by line: one line of another form must not hide the others.
    let lines = text.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let groups = lines.filter_map(|line| ProcessCGroups::from_buf_read(line.as_bytes()).ok()).flatten();
    let (mut unified, mut blkio) = (None, None);
    for group in groups {
        if group.controllers.is_empty() {
            unified = Some(group.pathname);
        } else if group.controllers.iter().any(|controller| controller == "blkio") {
            blkio = Some(group.pathname);
        }
    }
    let unified_in_use = unified.clone().filter(|path| path != "/");
    unified_in_use.or(blkio).or(unified).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_group_is_that_of_the_hierarchy_in_use() {
        let group = |text: &str| control_group(text.as_bytes());
        assert_eq!(group("0::/user.slice/a:b\n"), "/user.slice/a:b");
        assert_eq!(group("5:blkio:/docker/x\n2:cpu,cpuacct:/y\n0::/\n"), "/docker/x");
        assert_eq!(group("5:blkio:/docker/x\n0::/z\n"), "/z");
        assert_eq!(group("nonsense\n0::/\n"), "/");
        assert_eq!(group(""), "");
    }

    #[test]
    fn fields_of_status_are_parsed() {
        let folder = tempfile::tempdir().expect("a directory");
        let process = folder.path().join("proc/7");
        fs::create_dir_all(&process).expect("it is a new directory");
        let status = "Name:\tcat\nUid:\t5\t6\t6\t6\nGroups:\t4 24 1000 \nSigQ:\t0/96000\n\
                      SigPnd:\t0000000000000100\nShdPnd:\t0000000000000001\nSigIgn:\t0000000000000001\n";
        fs::write(process.join("status"), status).expect("it is a new file");
        let files = ProcessFiles::new(&Root::at(folder.path()), 7);
        assert_eq!((files.uid(), files.groups()), (Some(5), vec![4, 24, 1000]));
        let pending = files.pending_signals().expect("the field is there");
        assert_eq!(
            [1, 9, 10, 0, 65, -1].map(|signal| pending.contains(signal)),
            [false, true, false, false, false, false]
        );
        assert!(files.ignored_signals().is_some_and(|ignored| ignored.contains(libc::SIGHUP)));
        let ended = ProcessFiles::new(&Root::at(folder.path()), 8);
        assert_eq!((ended.groups(), ended.pending_signals(), ended.ignored_signals()), (Vec::new(), None, None));
    }

    #[test]
    fn a_command_line_keeps_empty_words() {
        let folder = tempfile::tempdir().expect("a directory");
        let process = folder.path().join("proc/7");
        fs::create_dir_all(&process).expect("it is a new directory");
        fs::write(process.join("cmdline"), b"cp\0\0-a\0/x y\0").expect("it is a new file");
        let files = ProcessFiles::new(&Root::at(folder.path()), 7);
        assert_eq!(files.command_line(), "cp  -a /x y");
        assert_eq!(files.command(), ["cp", "-a", "/x y"]);
    }

    #[test]
    fn an_own_descriptor_leads_to_its_file_and_mount() {
        let own = ProcessFiles::own();
        let file = fs::File::open("/proc").expect("every Linux has it");
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!(own.open_file(descriptor), Some("/proc".into()));
        let id = own.mount_id(descriptor).expect("the descriptor is open");
        assert!(crate::mounts(&Root::machine(), "self").iter().any(|mount| mount.id == id));
        assert_eq!((own.open_file(-1), own.mount_id(-1)), (None, None));
    }

    #[test]
    fn stat_is_parsed_after_any_command_name() {
        let head = "1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 25 -5 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0 5 0 0 0";
        let stat = parse_stat(format!("12 (a) b (c)) S {head}").as_bytes());
        assert_eq!((stat.nice, stat.policy, stat.start_ticks), (-5, CpuPolicy::Idle, 99));
        assert!(!stat.has_ended);
        assert!(parse_stat(format!("12 (a) b (c)) Z {head}").as_bytes()).has_ended);
        for garbage in ["nonsense", "1 (x) S", ""] {
            assert_eq!(parse_stat(garbage.as_bytes()), ProcessStat::default(), "{garbage}");
        }
    }
}
