//! The first process of the virtual machine.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::campaigns::{self, Context, Failure, Verdict, record};
use crate::device::Queue;
use crate::kernel_log::LogReader;
use crate::kmemleak;
use crate::module::Modules;
use crate::plan::{self, Plan, Step};
use crate::prng::{Prng, mix};
use crate::protocol::{Counts, Event, Status};
use crate::{Outcome, system};

/// The shell of an interactive boot.
const BUSYBOX: &str = "/bin/busybox";
/// The second serial port, on which the host reads events; the first one is the console. The
/// machines for arm64 have ports of two kinds.
const EVENTS: &str = if cfg!(target_arch = "aarch64") { "/dev/ttyS0" } else { "/dev/ttyS1" };

/// Runs the plan and powers the machine off.
pub fn run() -> ! {
    let outcome = prepare().and_then(|()| run_plan());
    if let Err(message) = outcome {
        println!("the guest cannot run its plan: {message}");
        send(&Event::Ended {
            name: "guest".to_owned(),
            status: Status::Failed,
            detail: message,
            counts: Counts::new(),
            milliseconds: 0,
        });
    }
    system::power_off();
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Mounts the file systems of the kernel.
fn prepare() -> Outcome<()> {
    for (kind, at) in [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/tmp")] {
        // The kernel may have mounted /dev.
        let mounted = system::mount(kind, at);
        if at != "/dev" {
            mounted?;
        }
    }
    // Kernels before 4.5 do not have it; campaigns that need groups look for their controllers.
    let _ = system::mount("cgroup2", "/sys/fs/cgroup");
    // Not every kernel has it; only dumps read it.
    let _ = system::mount("debugfs", "/sys/kernel/debug");
    for (file, value) in [
        ("/proc/sys/kernel/hung_task_warnings", "20"),
        ("/proc/sys/kernel/panic_on_oops", "0"),
        ("/proc/sys/kernel/sysrq", "1"),
        ("/proc/sys/vm/dirty_writeback_centisecs", "100"),
    ] {
        // A kernel without the check has no file.
        let _ = system::try_write(Path::new(file), value);
    }
    Ok(())
}

fn run_plan() -> Outcome<()> {
    let text = fs::read_to_string(plan::PATH).map_err(|error| format!("{}: {error}", plan::PATH))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", plan::PATH))?;
    // A kernel without the check has no file.
    let _ = system::try_write(Path::new("/proc/sys/kernel/hung_task_timeout_secs"), &plan.limit(40).to_string());
    let modules = Modules::new(plan.modules.clone());
    for name in &plan.boot {
        modules.insert(name, "")?;
    }
    let _ = system::mount("configfs", "/sys/kernel/config");
    crate::wait::wait_for(Path::new("/dev/vda"), true)?;
    if let Some(commands) = &plan.shell {
        return run_shell(commands, &plan, &modules);
    }
    let mut log = LogReader::open()?;
    send(&Event::Started { release: campaigns::release(), campaigns: plan.steps.len() });
    send_reports("boot", &mut log);
    let mut ran = 0;
    for step in &plan.steps {
        let context = Context {
            plan: plan.clone(),
            modules: modules.clone(),
            prng: prng(plan.seed, &step.name),
            settings: Vec::new(),
        };
        let goes_on = run_step(step, context, plan.watchdog, &mut log);
        ran += 1;
        if !goes_on {
            send(&Event::Finished { campaigns: ran });
            return Ok(());
        }
    }
    if kmemleak::is_present() {
        send_leaks(&mut log)?;
    }
    send(&Event::Finished { campaigns: ran });
    Ok(())
}

/// The random choices of a campaign. They do not depend on which other campaigns run.
fn prng(seed: u64, name: &str) -> Prng {
    Prng::new(name.bytes().fold(seed, |state, byte| mix(state ^ u64::from(byte))))
}

/// Inserts the module under test and runs busybox on the console, interactively if there are no
/// commands.
fn run_shell(commands: &str, plan: &Plan, modules: &Modules) -> Outcome<()> {
    if let Some(subject) = &plan.subject {
        modules.insert(&subject.name, &subject.parameters)?;
    }
    let busybox = |arguments: &[&str]| {
        let mut command = Command::new(BUSYBOX);
        command.args(arguments).env("PATH", "/bin").env("HOME", "/").env("TERM", "linux");
        command.status().map_err(|error| format!("cannot start {BUSYBOX}: {error}"))
    };
    busybox(&["--install", "-s", "/bin"])?;
    // cttyhack opens the terminal of the console, so that the shell has job control.
    let status = if commands.is_empty() { busybox(&["cttyhack", "sh"])? } else { busybox(&["sh", "-c", commands])? };
    println!("the shell ended: {status}");
    Ok(())
}

/// Runs a campaign in a thread of its own. Returns false if it hung: its threads cannot be ended.
fn run_step(step: &Step, mut context: Context, watchdog: bool, log: &mut LogReader) -> bool {
    send(&Event::Begun { name: step.name.clone() });
    let begun = Instant::now();
    let (sender, receiver) = mpsc::channel();
    let campaign = step.campaign.clone();
    thread::spawn(move || {
        let verdict = campaigns::run(&campaign, &mut context);
        let _ = sender.send(verdict);
    });
    let limit = if watchdog { Duration::from_secs(step.limit_seconds) } else { Duration::from_secs(1 << 20) };
    let verdict = receiver.recv_timeout(limit);
    let (status, detail, counts) = match verdict {
        Ok(verdict) => outcome(verdict),
        Err(RecvTimeoutError::Disconnected) => (Status::Failed, "the campaign panicked".to_owned(), Counts::new()),
        Err(RecvTimeoutError::Timeout) => {
            let detail = format!("no end after {} s", step.limit_seconds);
            (Status::Hung, detail, Counts::new())
        }
    };
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    send_reports(&step.name, log);
    send(&Event::Ended { name: step.name.clone(), status, detail, counts, milliseconds });
    if status == Status::Hung {
        dump();
    }
    status != Status::Hung
}

fn outcome(verdict: Verdict) -> (Status, String, Counts) {
    match verdict {
        Ok(counts) => (Status::Passed, String::new(), counts),
        Err(Failure::Failed(message)) => (Status::Failed, message, Counts::new()),
        Err(Failure::Skipped(message)) => (Status::Skipped, message, Counts::new()),
    }
}

fn send_reports(name: &str, log: &mut LogReader) {
    for report in log.reports() {
        send(&Event::Report { name: name.to_owned(), kind: report.kind.to_owned(), text: report.text });
    }
}

/// Lets the kernel search for leaks, as a campaign of its own.
fn send_leaks(log: &mut LogReader) -> Outcome<()> {
    let name = "kmemleak".to_owned();
    send(&Event::Begun { name: name.clone() });
    let begun = Instant::now();
    let found = kmemleak::search()?;
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = if found.is_empty() { Status::Passed } else { Status::Failed };
    send_reports(&name, log);
    send(&Event::Ended { name, status, detail: found, counts: Counts::new(), milliseconds });
    Ok(())
}

/// Prints an event on the second serial port, on the console if there is none.
fn send(event: &Event) {
    let line = format!("{}\n", event.line());
    let written = File::options().write(true).open(EVENTS).and_then(|mut port| port.write_all(line.as_bytes()));
    if written.is_err() {
        print!("{line}");
    }
}

/// Sends the blocked tasks of the kernel, the state of the queues and the recordings under way.
fn dump() {
    record::send_unfinished();
    for request in ["w", "l"] {
        let _ = system::write("/proc/sysrq-trigger", request);
        thread::sleep(Duration::from_secs(2));
    }
    for device in fs::read_dir("/sys/kernel/debug/block").into_iter().flatten().flatten() {
        let name = device.file_name().to_string_lossy().into_owned();
        if ["loop", "nullb", "sd", "vd"].iter().any(|prefix| name.starts_with(prefix)) {
            let text = Queue::new(&name).state();
            send(&Event::Dump { name, text });
        }
    }
}
