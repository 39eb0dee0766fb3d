//! `hoistway trace record` on a loop device of this machine. The tests need root, a kernel with the
//! tracer `blk`, losetup and fio; otherwise they are skipped with a message.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hoistway_trace::{Action, Batch, Input, OpenOptions, Rwbs};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, Ran, eventually, hoistway, run};

/// Serialises the tests: the machine has one tracer.
static TRACER: Mutex<()> = Mutex::new(());
/// Timeout of waiting for another user of the tracer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A loop device over a file in its own folder, with exclusive use of the tracer.
struct Loop {
    folder: Folder,
    path: String,
    name: String,
    _tracer: MutexGuard<'static, ()>,
}

impl Loop {
    /// Attaches a device of 64 MiB, under bfq if the kernel has it.
    fn new() -> Option<Loop> {
        let tracer = TRACER.lock().unwrap_or_else(PoisonError::into_inner);
        if !rustix::process::geteuid().is_root() {
            return skipped("root is needed to record");
        }
        let folder = Folder::new();
        let file = std::fs::File::create(folder.path("disk")).expect("the folder can be written");
        file.set_len(64 << 20).expect("there is room");
        let Ok(made) = Command::new("losetup").args(["-f", "--show", &folder.name("disk")]).output() else {
            return skipped("losetup is not installed");
        };
        if !made.status.success() {
            return skipped(&format!("no loop device: {}", String::from_utf8_lossy(&made.stderr)));
        }
        let path = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let name = path.trim_start_matches("/dev/").to_owned();
        let device = Loop { folder, path, name, _tracer: tracer };
        if !Path::new("/sys/block").join(&device.name).join("trace").is_dir() {
            return skipped("the kernel has no block tracing");
        }
        // Without bfq, recording is tested nevertheless.
        let _ = std::fs::write(device.queue("scheduler"), "bfq");
        let probe = device.record(&[
            "-o",
            &device.folder.name("probe"),
            "--",
            "dd",
            &device.input(),
            "of=/dev/null",
            "count=1",
        ]);
        if probe.err.contains("nothing can be recorded here") {
            return skipped(&probe.err);
        }
        assert_eq!(probe.code, Some(0), "{}", probe.err);
        Some(device)
    }

    fn queue(&self, attribute: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join("queue").join(attribute)
    }

    /// The argument `if=` of `dd`.
    fn input(&self) -> String {
        format!("if={}", self.path)
    }

    /// Records the device as soon as the tracer is free.
    fn record(&self, args: &[&str]) -> Ran {
        let began = Instant::now();
        loop {
            let ran = run(&[&["trace", "record", &self.path], args].concat());
            if !ran.err.contains("tracefs is in use") || began.elapsed() > PATIENCE {
                return ran;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn is_traced(&self) -> bool {
        let enable = std::fs::read_to_string(Path::new("/sys/block").join(&self.name).join("trace/enable"));
        enable.expect("the device is there").trim() != "0"
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.path]).status();
    }
}

fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED: {}", why.trim());
    None
}

/// Numbers and bytes of the reads and writes of one action in a trace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    reads: (u64, u64),
    writes: (u64, u64),
}

#[derive(Debug, Default)]
struct Found {
    queued: Count,
    completed: Count,
    names: Vec<String>,
    messages: Vec<String>,
    out_of_order: u64,
}

fn read(path: &str) -> Found {
    let opened = hoistway_trace::open(vec![Input::Path(path.into())], &OpenOptions::default());
    let (mut source, mut batch, mut found) = (opened.expect("it is a trace"), Batch::new(), Found::default());
    let mut last_ns = 0;
    loop {
        source.next(&mut batch).expect("it can be read");
        if batch.is_empty() {
            return found;
        }
        for event in batch.events() {
            found.out_of_order += u64::from(event.time_ns < last_ns);
            last_ns = event.time_ns;
            let text = || String::from_utf8_lossy(batch.payload(event)).trim_end_matches('\0').to_owned();
            let count = match event.action {
                Action::Queue => &mut found.queued,
                Action::Complete => &mut found.completed,
                Action::Process => {
                    found.names.push(text());
                    continue;
                }
                Action::Message => {
                    found.messages.push(text());
                    continue;
                }
                _ => continue,
            };
            let side = if event.op.has(Rwbs::WRITE) { &mut count.writes } else { &mut count.reads };
            *side = (side.0 + 1, side.1 + u64::from(event.bytes));
        }
    }
}

fn near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) as f64 <= expected as f64 * 0.01
}

#[test]
fn recordings_of_four_jobs_agree_with_fio() {
    let Some(device) = Loop::new() else { return };
    let (trace, results) = (device.folder.name("trace"), device.folder.name("fio.json"));
    let mut args: Vec<String> =
        ["-o", &trace, "--", "fio", "--direct=1", "--size=16m", "--number_ios=200"].map(String::from).to_vec();
    args.extend([format!("--filename={}", device.path), "--output-format=json".into(), format!("--output={results}")]);
    let jobs =
        [("a", "randread", "4k", 0), ("b", "read", "64k", 16), ("c", "randwrite", "4k", 32), ("d", "write", "32k", 48)];
    for (name, how, size, offset) in jobs {
        args.extend([
            format!("--name={name}"),
            format!("--rw={how}"),
            format!("--bs={size}"),
            format!("--offset={offset}m"),
            "--rate_iops=300".into(),
        ]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = device.record(&args);
    if ran.err.contains("fio: cannot be run") {
        return skipped("fio is not installed").unwrap_or_default();
    }
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let text = std::fs::read_to_string(&results).expect("fio has written it");
    // Notes of fio's may stand before the document.
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("JSON");
    let sum = |side: &str, key: &str| -> u64 {
        json["jobs"].as_array().expect("jobs").iter().filter_map(|job| job[side][key].as_u64()).sum()
    };
    let found = read(&trace);
    for (what, of) in [("queued", &found.queued), ("completed", &found.completed)] {
        for (side, (count, bytes)) in [("read", of.reads), ("write", of.writes)] {
            let (ios, io_bytes) = (sum(side, "total_ios"), sum(side, "io_bytes"));
            assert!(ios > 100, "{side}: {ios}");
            assert!(near(bytes, io_bytes), "{what} {side}: {bytes} bytes recorded, {io_bytes} by fio");
            // Requests may be merged before they complete.
            assert!(
                near(count, ios) || (what == "completed" && count < ios),
                "{what} {side}: {count} recorded, {ios} by fio"
            );
        }
    }
    let described = run(&["trace", "describe", "--json", &trace]).json();
    for (side, counts) in [("read", "reads"), ("write", "writes")] {
        let of = |what: &str| described["counts"][counts][what].as_u64().expect("a count");
        let (ios, io_bytes) = (sum(side, "total_ios"), sum(side, "io_bytes"));
        assert!(near(of("queued"), ios), "{side}: {} described, {ios} by fio", of("queued"));
        assert!(near(of("queued_bytes"), io_bytes) && near(of("completed_bytes"), io_bytes), "{side}: {described}");
    }
    assert_eq!(found.out_of_order, 0);
    assert!(found.names.iter().any(|name| name == "fio"), "{:?}", found.names);
    assert!(!device.is_traced());
}

#[test]
fn blkparse_reads_the_files_of_each_cpu() {
    let Some(device) = Loop::new() else { return };
    let name = device.folder.name("cpus");
    let ran = device.record(&[
        "--per-cpu",
        "-o",
        &name,
        "--",
        "dd",
        &device.input(),
        "of=/dev/null",
        "bs=64k",
        "count=50",
        "iflag=direct",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let Ok(Output { status, stdout, .. }) = Command::new("blkparse").args(["-i", &name]).output() else {
        return skipped("blkparse is not installed").unwrap_or_default();
    };
    let text = String::from_utf8_lossy(&stdout);
    assert!(status.success(), "{text}");
    assert!(text.contains("Reads Completed:       50,     3200KiB"), "{text}");
    assert!(text.contains("Skips: 0 forward"), "{text}");
    assert!(text.contains("[dd]"), "{text}");
}

#[test]
fn a_recording_stores_the_scheduler_the_queue_and_synchronous_writes() {
    let Some(device) = Loop::new() else { return };
    let [trace, converted] = ["trace", "trace.csv"].map(|name| device.folder.name(name));
    let scheduler = ["mq-deadline", "bfq"].into_iter().find(|name| {
        let chosen = std::fs::write(device.queue("scheduler"), name);
        chosen.is_ok()
    });
    let tunables = device.queue("iosched");
    let tunable = ["read_expire", "slice_idle"].into_iter().find(|name| {
        // Both take 8 ms; the defaults are 500 ms and 8 ms.
        std::fs::write(tunables.join(name), "8").is_ok()
    });
    let (Some(scheduler), Some(tunable)) = (scheduler, tunable) else {
        return skipped("the kernel has neither mq-deadline nor bfq").unwrap_or_default();
    };
    // The kernel rounds times to its ticks.
    let attribute = |path: PathBuf| std::fs::read_to_string(path).expect("an attribute").trim().to_owned();
    let value = attribute(tunables.join(tunable));
    let output = format!("of={}", device.path);
    let ran =
        device.record(&["-o", &trace, "--", "dd", "if=/dev/zero", &output, "bs=4k", "count=5", "oflag=direct,dsync"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(run(&["trace", "convert", &trace, "--as", "csv", "-o", &converted]).code, Some(0));
    for trace in [&trace, &converted] {
        let json = run(&["trace", "describe", "--json", trace]).json();
        let settings = &json["devices"][0]["settings"];
        assert_eq!(settings["schedulers"][0]["name"], scheduler, "{json}");
        assert_eq!(settings["schedulers"][0]["tunables"][tunable], value, "{json}");
        assert_eq!(settings["queue"]["rotational"], attribute(device.queue("rotational")));
        assert!(settings["queue"]["nr_requests"].is_string(), "{json}");
        // Each write is durable: by FUA, by a flush after it, or by both.
        let (mix, phases) = (&json["all"]["mix"], &json["all"]["phases"]);
        assert_eq!(mix["writes"], 5, "{json}");
        let durable = mix["fua"].as_u64().unwrap() + mix["flushes"].as_u64().unwrap();
        assert!(durable >= 5 || settings["queue"]["write_cache"] == "through", "{json}");
        assert_eq!(phases["postflush_ns"]["count"], mix["fua"], "a loop device has no FUA: {json}");
        assert_eq!(json["all"]["unfinished"], 0, "{json}");
        let text = run(&["trace", "describe", trace]).out;
        assert!(text.contains(&format!("was recorded under {scheduler} (")), "{text}");
    }
}

/// A descriptor is looked up while its process exists, which a busy machine may be too slow for:
/// then the program runs for longer.
#[test]
fn marks_name_the_system_call_of_a_request() {
    // The number of the first PID namespace is fixed (PROC_PID_INIT_INO).
    if std::fs::read_link("/proc/self/ns/pid").is_ok_and(|space| space != Path::new("pid:[4026531836]")) {
        eprintln!("SKIPPED: in a PID namespace, tracepoints have other process ids than /proc");
        return;
    }
    let Some(device) = Loop::new() else { return };
    let mut last = None;
    for seconds in [1, 4, 16, 60] {
        let Some(messages) = recorded_with_calls(&device, seconds) else { return };
        let mark = messages.iter().find(|text| text.starts_with("call ") && text.contains(&device.path));
        if mark.is_some_and(|mark| mark.contains("read") && mark.contains("length ")) {
            return;
        }
        last = Some((mark.cloned(), messages.len()));
    }
    panic!("the mark and the number of messages: {last:?}");
}

/// Records a program that reads from the device for some time, with its system calls. Returns the
/// messages; `None` if the system has no tracepoints of system calls.
#[track_caller]
fn recorded_with_calls(device: &Loop, seconds: u32) -> Option<Vec<String>> {
    let trace = device.folder.name("trace");
    let command = format!(
        "exec 3<{}; for i in 1 2 3 4 5; do dd bs=4k count=1 iflag=direct <&3 2>/dev/null >&2; sleep 0.05; done; sleep {seconds}",
        device.path
    );
    let (reader, runtime) = (format!("--filename={}", device.path), format!("--runtime={seconds}"));
    let fio = [
        "--name=a",
        &reader,
        "--ioengine=psync",
        "--rw=randread",
        "--bs=8k",
        "--direct=1",
        &runtime,
        "--time_based",
        "--size=8m",
        "--rate_iops=100",
        "--thread",
    ];
    let args = [&["-o", &trace, "--vfs", "--", "fio"], fio.as_slice()].concat();
    let mut ran = device.record(&args);
    if ran.err.contains("fio: cannot be run") {
        ran = device.record(&["-o", &trace, "--vfs", "--", "sh", "-c", &command]);
    }
    if ran.err.contains("no tracepoints of system calls") {
        return skipped(&ran.err);
    }
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    Some(read(&trace).messages)
}

#[test]
fn signals_end_a_recording_and_settings_of_a_killed_one_are_restored() {
    let Some(device) = Loop::new() else { return };
    let start = || {
        let mut command = hoistway(&["trace", "record", &device.path, "-o", &device.folder.name("trace")]);
        let child = command.stderr(Stdio::null()).spawn().expect("the binary starts");
        let began = Instant::now();
        while !device.is_traced() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(device.is_traced(), "it does not begin");
        // One request, so that the recording is not empty.
        let read = Command::new("dd")
            .args([&device.input(), "of=/dev/null", "count=1", "iflag=direct"])
            .stderr(Stdio::null())
            .status();
        assert!(read.expect("dd is there").success());
        child
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut child = start();
        kill_process(Pid::from_child(&child), signal).expect("it is there");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{signal:?}");
        assert!(!device.is_traced(), "{signal:?}");
    }
    let mut child = start();
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    assert!(device.is_traced(), "a killed recording leaves its settings");
    let undone = run(&["trace", "record", "--undo"]);
    assert_eq!(undone.code, Some(0), "{}", undone.err);
    assert!(undone.out.contains("current_tracer") && undone.out.contains("all restored"), "{}", undone.out);
    assert!(!device.is_traced());
    assert_eq!(run(&["trace", "record", "--undo"]).out, "nothing to restore\n");
}

#[test]
fn empty_and_incomplete_recordings_fail() {
    let Some(device) = Loop::new() else { return };
    let trace = device.folder.name("trace");
    // Where udev runs, it reads from each new device.
    let _ = Command::new("udevadm").arg("settle").status();
    let idle = device.record(&["-o", &trace, "-d", "300ms"]);
    assert_eq!(idle.code, Some(1), "{}", idle.err);
    assert!(idle.err.contains(" had no requests in "), "{}", idle.err);
    let input = device.input();
    let many = ["dd", &input, "of=/dev/null", "bs=4k", "count=16384", "iflag=direct"];
    let small = device.record(&[&["-o", &trace, "--buffer", "64k", "--"], many.as_slice()].concat());
    assert_eq!(small.code, Some(1), "{}", small.err);
    assert!(small.err.contains("events were dropped") && small.err.contains("--buffer"), "{}", small.err);
    let code = device.record(&[
        "-o",
        &trace,
        "--",
        "sh",
        "-c",
        &format!("dd {input} of=/dev/null count=1 iflag=direct; exit 7"),
    ]);
    assert_eq!(code.code, Some(7), "{}", code.err);
    // A command that outlives the duration receives SIGTERM, which is no failure.
    let long = device.record(&[
        "-o",
        &trace,
        "-d",
        "500ms",
        "--",
        "sh",
        "-c",
        &format!("dd {input} of=/dev/null count=1 iflag=direct; exec sleep 100"),
    ]);
    assert_eq!(long.code, Some(0), "{}", long.err);
    let absent = device.record(&["-o", &device.folder.name("no/where"), "-d", "1"]);
    absent.refused(1, &["no/where", "No such file"]);
    assert!(!device.is_traced());
}

#[test]
fn a_mounted_device_is_not_written_to() {
    let Some(device) = Loop::new() else { return };
    let made = Command::new("mkfs.ext4").args(["-q", &device.path]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skipped("mkfs.ext4 is not installed").unwrap_or_default();
    }
    let place = device.folder.path("mounted");
    std::fs::create_dir(&place).expect("the folder can be written");
    let trace = device.folder.name("trace");
    let write = format!("of={}", device.path);
    let ran = device.record(&[
        "-o",
        &trace,
        "--",
        "dd",
        "if=/dev/zero",
        &write,
        "bs=4k",
        "count=1",
        "seek=9000",
        "oflag=direct",
        "conv=notrunc",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mounted = Command::new("mount").arg(&device.path).arg(&place).status().expect("mount is there");
    if !mounted.success() {
        return skipped("nothing can be mounted").unwrap_or_default();
    }
    let replay = |target: &str| run(&["trace", "replay", &trace, "--on", target, "--write"]);
    let refused = replay(&device.path);
    let behind = replay(&device.folder.name("disk"));
    let unmounted = Command::new("umount").arg(&place).status().expect("umount is there");
    assert!(unmounted.success());
    refused.refused(1, &["is mounted at", "writing to it would destroy data"]);
    behind.refused(1, &["behind the loop device", "writing to it would destroy data"]);
    // A process of another test may have a copy of the mount in its namespace until it ends.
    let free = eventually(|| match replay(&device.path) {
        Ran { code: Some(0), .. } => Ok(()),
        Ran { err, .. } => Err(err),
    });
    assert_eq!(free, Ok(()), "now it is free");
}

#[test]
fn an_argument_that_is_not_a_device_is_refused() {
    let folder = Folder::new();
    let file = folder.file("file", "x");
    run(&["trace", "record", &file, "-o", "x"]).refused(1, &[&file, "this is not a block device"]);
    run(&["trace", "record", &folder.name("nothing"), "-o", "x"]).refused(1, &["nothing", "No such file"]);
    run(&["trace", "record", "sda"]).refused(2, &["--output"]);
    run(&["trace", "record", "sda", "-o", "x", "-d", "0"]).refused(2, &["must not be 0"]);
    run(&["trace", "record", "sda", "-o", "x", "--buffer", "1k"]).refused(2, &["64K to 4G"]);
}
