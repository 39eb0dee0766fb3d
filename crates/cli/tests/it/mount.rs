//! `hoistway mount` from outside. Tests that need root, `/dev/fuse` or a missing tool are skipped
//! with a message, and fail with CI=true.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hoistway_trace::{Action, Batch, Event, Input, OpenOptions, Rwbs};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::PATIENCE;

const HOISTWAY: &str = env!("CARGO_BIN_EXE_hoistway");

fn hoistway(args: &[&str]) -> Output {
    Command::new(HOISTWAY).args(args).env_remove("RUST_LOG").output().expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true if this process may mount.
fn can_mount(needs: &[&str]) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
    let has = |tool: &&&str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| folder.join(tool).exists())
    };
    let missing = needs.iter().find(|tool| !has(tool)).copied();
    let why = match (is_root, Path::new("/dev/fuse").exists(), missing) {
        (false, ..) => "root",
        (_, false, _) => "/dev/fuse",
        (.., Some(tool)) => tool,
        _ => return true,
    };
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI has {why}");
    eprintln!("skipped: this needs {why}");
    false
}

/// A mount, which is unmounted on drop.
struct Mounted {
    child: Child,
    at: PathBuf,
}

impl Mounted {
    fn start(source: &Path, at: &Path, args: &[&str]) -> Mounted {
        Mounted::start_program(Path::new(HOISTWAY), source, at, args)
    }

    /// Mounts with another program.
    fn start_program(program: &Path, source: &Path, at: &Path, args: &[&str]) -> Mounted {
        let mut child = Command::new(program)
            .arg("mount")
            .args([source, at])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it is text");
        if !line.starts_with("ready: ") {
            let ended = child.wait_with_output().expect("it has ended");
            panic!("{args:?}: {line}{}", text(&ended.stderr));
        }
        Mounted { child, at: at.to_owned() }
    }

    /// Sends SIGTERM and returns the exit code.
    fn end(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it is there");
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            match self.child.try_wait().expect("it is ours") {
                Some(status) => return status.code(),
                None if Instant::now() > until => return None,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        }
    }
}

/// Unmounts a file system. For a moment it can be busy: the kernel still closes what was written.
/// Returns false if it stays busy.
fn try_unmount(at: &Path) -> bool {
    let begun = Instant::now();
    while !Command::new("umount").arg(at).status().is_ok_and(|status| status.success()) {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

fn unmount(at: &Path) {
    assert!(try_unmount(at), "{} is busy", at.display());
}

fn is_mounted(at: &Path) -> bool {
    let table = fs::read_to_string("/proc/mounts").expect("every Linux has it");
    table.lines().any(|line| line.split(' ').nth(1).map(Path::new) == Some(at))
}

fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, at) = (folder.path().join("source"), folder.path().join("at"));
    fs::create_dir(&source).expect("it is ours");
    fs::create_dir(&at).expect("it is ours");
    (folder, source, at)
}

#[test]
fn invalid_arguments_are_reported_and_nothing_is_mounted() {
    let (folder, source, at) = folders();
    let bad = folder.path().join("bad.toml");
    fs::write(&bad, "[mount]\nelevator = \"cqf\"\n[[tenant]]\nop = \"x\"\n").expect("it is ours");
    let [source, at, bad] = [&source, &at, &bad].map(|path| path.to_str().expect("it is text"));
    let cases: [(&[&str], i32, &str); 10] = [
        (&["mount"], 2, "SOURCE"),
        (&["mount", source], 2, "MOUNTPOINT"),
        (&["mount", "/nowhere/at/all", at], 1, "the source /nowhere/at/all"),
        (&["mount", source, at, "--elevator", "cqf"], 2, "cfq"),
        (&["mount", source, at, "--device", "nosuchdisk"], 1, "there is no block device `nosuchdisk`"),
        (&["mount", source, at, "--set", "cfq.slice_idle=0"], 2, "add --elevator cfq"),
        (&["mount", source, at, "--config", bad], 2, "bad.toml:2:12: `elevator` is \"cqf\""),
        (&["mount", "--check-config", bad], 2, "bad.toml:4:6: `op` is \"x\""),
        (&["mount", source, at, "--config", "none.toml"], 2, "none.toml: cannot read the configuration"),
        (&["mount", source, at, "--elevator", "none", "--control", "/tmp/x.sock"], 2, "there is no queue to watch"),
    ];
    for (args, code, expected) in cases {
        let output = hoistway(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
    assert!(!is_mounted(Path::new(at)));
}

#[test]
fn a_valid_configuration_is_confirmed() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mount");
    for name in ["media-server.toml", "build-host.toml", "backup.toml"] {
        let path = examples.join(name);
        let output = hoistway(&["mount", "--check-config", path.to_str().expect("it is text")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("valid ("), "{}", text(&output.stdout));
    }
}

#[test]
fn files_are_equal_through_every_kind_of_mount_and_signals_unmount() {
    if !can_mount(&[]) {
        return;
    }
    let kinds: [&[&str]; 4] = [
        &["--elevator", "cfq", "--depth", "1"],
        &["--elevator", "bfq", "--write-back", "kernel"],
        &["--elevator", "none"],
        &["--elevator", "deadline", "--depth", "1", "--threads", "3"],
    ];
    for args in kinds {
        let (_folder, source, at) = folders();
        fs::write(source.join("before"), b"there already").expect("it is ours");
        let mounted = Mounted::start(&source, &at, args);
        assert_eq!(fs::read(at.join("before")).expect("it is seen"), b"there already");
        let data: Vec<u8> = (0..3_000_000u32).map(|n| (n >> 3) as u8).collect();
        fs::create_dir(at.join("sub")).expect("it is made");
        fs::write(at.join("sub/file"), &data).expect("it is written");
        fs::File::open(at.join("sub/file")).and_then(|file| file.sync_all()).expect("it is durable");
        fs::rename(at.join("sub/file"), at.join("moved")).expect("it is renamed");
        assert!(fs::read(at.join("moved")).expect("it is there") == data, "{args:?}");
        assert_eq!(mounted.end(), Some(0), "{args:?}");
        assert!(!is_mounted(&at), "{args:?}");
        assert!(fs::read(source.join("moved")).expect("it is below") == data, "{args:?}");
    }
}

#[test]
fn a_mount_is_monitored_administered_and_recorded() {
    if !can_mount(&[]) {
        return;
    }
    let (folder, source, at) = folders();
    let (socket, record) = (folder.path().join("c.sock"), folder.path().join("trace"));
    let [control, recorded] = [&socket, &record].map(|path| path.to_str().expect("it is text"));
    let args = ["--elevator", "cfq", "--depth", "1", "--control", control, "--record", recorded];
    let mounted = Mounted::start(&source, &at, &args);
    fs::write(at.join("file"), vec![1; 1 << 20]).expect("it is written");
    fs::File::open(at.join("file")).and_then(|file| file.sync_all()).expect("it is durable");
    let ctl = |args: &[&str]| {
        let output = hoistway(&[&["ctl", "--control", control], args].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let device = ctl(&["ls", "devices"]).lines().next().expect("there is one").trim_end_matches('/').to_owned();
    let scheduler = format!("devices/{device}/queue/scheduler");
    assert!(ctl(&["get", &scheduler]).contains("[cfq]"));
    ctl(&["set", &scheduler, "bfq"]);
    assert!(ctl(&["get", &scheduler]).contains("[bfq]"));
    assert!(ctl(&["get", "-r"]).contains("default"), "issuers without a tenant are counted");
    let refused = hoistway(&["ctl", "--control", control, "set", &format!("devices/{device}/queue/depth"), "0"]);
    assert!(!refused.status.success());
    assert_eq!(mounted.end(), Some(0));
    assert!(!socket.exists(), "the socket goes with the mount");
    let described = hoistway(&["trace", "describe", recorded]);
    assert!(described.status.success(), "{}", text(&described.stderr));
}

#[test]
fn a_mount_runs_custom_elevators_and_reports_one_that_breaks_a_rule() {
    if !can_mount(&[]) {
        return;
    }
    for (program, elevator) in [("my-hoistway", "slices"), ("wrong-elevators", "losing")] {
        let (folder, source, at) = folders();
        let socket = folder.path().join("c.sock");
        let control = socket.to_str().expect("it is text");
        let args = ["--elevator", elevator, "--depth", "1", "--control", control];
        let mounted = Mounted::start_program(&crate::common::example(program), &source, &at, &args);
        let contents = |number: u8| vec![number + 1; 300_000];
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = at.join(format!("file-{number}"));
                scope.spawn(move || {
                    fs::write(&path, contents(number)).expect("it is written");
                    fs::File::open(&path).and_then(|file| file.sync_all()).expect("it is durable");
                });
            }
        });
        for number in 0..8 {
            let name = format!("file-{number}");
            assert!(fs::read(at.join(&name)).expect("it is there") == contents(number), "{name} through the mount");
            assert!(fs::read(source.join(&name)).expect("it is there") == contents(number), "{name} below the mount");
        }
        let ctl = |args: &[&str]| text(&hoistway(&[&["ctl", "--control", control], args].concat()).stdout);
        let device = ctl(&["ls", "devices"]).lines().next().expect("there is one").trim_end_matches('/').to_owned();
        assert!(ctl(&["get", &format!("devices/{device}/queue/scheduler")]).contains(&format!("[{elevator}]")));
        let violation = ctl(&["get", &format!("devices/{device}/violation")]);
        if elevator == "losing" {
            assert!(violation.starts_with("elevator losing broke a rule: call "), "{violation}");
        } else {
            assert_eq!(violation, "-\n");
        }
        assert_eq!(mounted.end(), Some(0));
    }
}

#[test]
fn a_service_manager_is_notified_of_start_and_end() {
    if !can_mount(&[]) {
        return;
    }
    let (folder, source, at) = folders();
    let path = folder.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("it can");
    let notification = || {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).expect("a notification");
        text(&message[..length])
    };
    let mut child = Command::new(HOISTWAY)
        .arg("mount")
        .args([&source, &at])
        .env("NOTIFY_SOCKET", &path)
        .stdout(Stdio::null())
        .spawn()
        .expect("it was built");
    let ready = notification();
    assert!(ready.starts_with("READY=1\nSTATUS=mounted at ") && is_mounted(&at), "{ready}");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    assert!(notification().starts_with("STOPPING=1"));
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_busy_mount_ends_in_time_and_leaves_no_files() {
    if !can_mount(&[]) {
        return;
    }
    for write_back in ["ours", "kernel"] {
        let (folder, source, at) = folders();
        let (socket, record) = (folder.path().join("c.sock"), folder.path().join("trace"));
        let [control, recorded] = [&socket, &record].map(|path| path.to_str().expect("it is text"));
        let args = ["--write-back", write_back, "--elevator", "cfq", "--control", control, "--record", recorded];
        let mounted = Mounted::start(&source, &at, &args);
        let mut file = fs::File::create(at.join("file")).expect("it is made");
        file.write_all(&vec![7; 3 << 20]).and_then(|()| file.sync_all()).expect("it is durable");
        file.write_all(b"and more").expect("it is written");
        let begun = Instant::now();
        assert_eq!(mounted.end(), Some(1), "{write_back}");
        let took = begun.elapsed();
        assert!(took > Duration::from_secs(8), "{write_back}: {took:?}");
        assert!(!socket.exists(), "{write_back}: the socket goes with the mount");
        assert!(!is_mounted(&at), "{write_back}");
        let described = hoistway(&["trace", "describe", recorded]);
        assert!(described.status.success(), "{write_back}: {}", text(&described.stderr));
        assert!(text(&described.stdout).contains("write"), "{write_back}: {}", text(&described.stdout));
        drop(file);
        let found = fs::read(source.join("file")).expect("it is there");
        assert!(found.ends_with(b"and more"), "{write_back}: {} bytes", found.len());
    }
}

/// Waits until a file exists.
fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A slow disk: a drive model behind NBD, FUSE and a loop device, with an ext4 file system.
struct SlowDisk {
    folder: tempfile::TempDir,
    server: Child,
    nbdfuse: Option<Child>,
    device: Option<String>,
}

impl SlowDisk {
    fn start() -> Option<SlowDisk> {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("d.sock");
        let server = Command::new(HOISTWAY)
            .args(["serve", "--export", "=mem:1G,depth=32", "--drive", "sata-7200-2006", "--elevator", "noop", "-q"])
            .arg("--socket")
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("it was built");
        let mut disk = SlowDisk { folder, server, nbdfuse: None, device: None };
        wait_for(&socket);
        let path = |name: &str| disk.folder.path().join(name);
        let (shown, below) = (path("nbd"), path("below"));
        fs::create_dir(&shown).expect("it is ours");
        fs::create_dir(&below).expect("it is ours");
        fs::create_dir(path("at")).expect("it is ours");
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        disk.nbdfuse = Some(Command::new("nbdfuse").arg(&shown).arg(uri).spawn().expect("it is there"));
        let image = shown.join("nbd");
        wait_for(&image);
        let found =
            Command::new("losetup").args(["-f", "--show", "--direct-io=on"]).arg(&image).output().expect("a tool");
        if !found.status.success() {
            eprintln!("skipped: no loop device is to be had: {}", text(&found.stderr));
            return None;
        }
        let device = text(&found.stdout).trim().to_owned();
        let _ = fs::write(format!("/sys/block/{}/queue/rotational", device.trim_start_matches("/dev/")), "1");
        disk.device = Some(device.clone());
        let made =
            Command::new("mkfs.ext4").args(["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device]).status();
        assert!(made.expect("a tool").success());
        disk.mount();
        for name in ["0", "1"] {
            fs::write(below.join(name), vec![7; 200 << 20]).expect("there is room");
        }
        Some(disk)
    }

    fn mount(&self) {
        let device = self.device.as_deref().expect("it is there");
        let mounted = Command::new("mount").arg(device).arg(self.folder.path().join("below")).status();
        assert!(mounted.expect("a tool").success());
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let unmount = |name: &str| {
            let at = self.folder.path().join(name);
            if is_mounted(&at) && !try_unmount(&at) {
                eprintln!("{} stays mounted", at.display());
            }
        };
        unmount("below");
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
        unmount("nbd");
        if let Some(nbdfuse) = &mut self.nbdfuse {
            let _ = nbdfuse.kill();
            let _ = nbdfuse.wait();
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A file is read, and meanwhile another one at a realtime priority, both from a slow disk.
#[derive(Debug, Default)]
struct Contest {
    /// Requests of the usual reader that were dispatched while one of the urgent reader was queued.
    inversions: u64,
    /// Requests of the urgent reader that were dispatched while one of the usual reader was queued.
    contested: u64,
    /// Bytes of the usual reader that were dispatched between the first request of the urgent one
    /// and its last.
    usual_bytes: u64,
}

impl Contest {
    /// Both readers read 200 MiB, and the usual one is ended as soon as the urgent one has ended.
    fn run(disk: &SlowDisk) -> Option<Contest> {
        let path = |name: &str| disk.folder.path().join(name);
        let (below, at, record) = (path("below"), path("at"), path("trace.blktrace.0"));
        // Cached data would need no time of the disk.
        unmount(&below);
        disk.mount();
        let recorded = record.to_str().expect("it is text");
        // Without optimisation and on a busy machine, a reader has long think times; the elevator
        // must wait for it nevertheless.
        let args = ["--elevator", "cfq", "--depth", "1", "--set", "cfq.slice_idle=100", "--record", recorded];
        let mounted = Mounted::start(&below, &at, &args);
        let read = |name: &str, class: &str| {
            let command = format!("exec dd if={} of=/dev/null bs=1M 2>/dev/null", at.join(name).display());
            Command::new("ionice").args([class, "sh", "-c", &command]).spawn().expect("a tool")
        };
        let mut usual = read("1", "-c2");
        let begun = Instant::now();
        while bytes_read(&usual) < 1 << 20 && matches!(usual.try_wait(), Ok(None)) {
            assert!(begun.elapsed() < PATIENCE, "the usual reader does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut urgent = read("0", "-c1");
        assert!(urgent.wait().expect("it ends").success());
        let _ = usual.kill();
        let _ = usual.wait();
        assert_eq!(mounted.end(), Some(0));
        Contest::of_recording(&record)
    }

    /// Evaluates a recording, which begins with the usual reader. `None` if it has the numbers of
    /// more than two issuers, so that it does not show which reader a request is of.
    fn of_recording(path: &Path) -> Option<Contest> {
        let events: Vec<Event> = events(path);
        let usual = events.first().expect("the usual reader has begun").pid;
        let is_urgent = |event: &Event| event.pid != usual;
        let first = events.iter().position(is_urgent).expect("the urgent reader has read");
        let last = events.iter().rposition(is_urgent).expect("the urgent reader has read");
        if events.iter().any(|event| is_urgent(event) && event.pid != events[first].pid) {
            return None;
        }
        let (mut contest, mut queued) = (Contest::default(), [0; 2]);
        for (index, event) in events.iter().enumerate() {
            let (own, other) = (usize::from(is_urgent(event)), usize::from(!is_urgent(event)));
            if event.action == Action::Queue {
                queued[own] += event.bytes;
                continue;
            }
            queued[own] -= event.bytes;
            let is_contested = u64::from(queued[other] > 0);
            if is_urgent(event) {
                contest.contested += is_contested;
            } else {
                contest.inversions += is_contested;
                contest.usual_bytes += if (first..last).contains(&index) { u64::from(event.bytes) } else { 0 };
            }
        }
        Some(contest)
    }
}

/// Bytes that a process has read so far; 0 after its end.
fn bytes_read(process: &Child) -> u64 {
    let counts = fs::read_to_string(format!("/proc/{}/io", process.id())).unwrap_or_default();
    let count = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Arrivals and dispatches of reads in a recording, in their order.
fn events(path: &Path) -> Vec<Event> {
    let opened = hoistway_trace::open(vec![Input::Path(path.to_owned())], &OpenOptions::default());
    let (mut source, mut batch, mut events) = (opened.expect("it is a trace"), Batch::new(), Vec::new());
    loop {
        source.next(&mut batch).expect("it can be read");
        if batch.is_empty() {
            return events;
        }
        let of_reads = batch.events().iter().filter(|event| !event.op.has(Rwbs::WRITE));
        events.extend(of_reads.filter(|event| matches!(event.action, Action::Queue | Action::Issue)));
    }
}

#[test]
fn a_realtime_reader_gets_most_of_a_slow_disk() {
    if !can_mount(&["nbdfuse", "losetup", "mkfs.ext4", "ionice"]) {
        return;
    }
    let Some(disk) = SlowDisk::start() else { return };
    let mut contests = Vec::new();
    for _ in 0..10 {
        let Some(contest) = Contest::run(&disk) else { continue };
        assert_eq!(contest.inversions, 0, "{contest:?}");
        // If the urgent reader rests for longer than the elevator waits, the other one gets the
        // disk; if the other one ends early, there is nothing to share.
        if contest.contested > 100 && contest.usual_bytes < 80 << 20 {
            return;
        }
        contests.push(contest);
    }
    panic!("in ten contests, one has read 200 MiB, and the other too much: {contests:?}");
}
