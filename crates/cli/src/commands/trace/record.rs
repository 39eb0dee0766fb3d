//! `hoistway trace record`: records the requests of a block device until Ctrl-C, a duration or the
//! end of a command.

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use hoistway_record::capture::{
    Capture, CaptureSummary, Interface, Options, Output, Sink, SinkSummary, TracedDevice, stale_captures,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::trace::{ByChoice, RecordArgs};
use crate::failure::{Exit, UsageError, print_message};
use crate::output::Out;

/// Interval of reading the buffers of the kernel.
const PAUSE: Duration = Duration::from_millis(10);
/// Interval with marks for calls: a descriptor can be resolved only while its process exists.
const PAUSE_OF_CALLS: Duration = Duration::from_millis(1);
/// Timeout of a command after SIGTERM.
const END_MAX: Duration = Duration::from_secs(10);
/// Interval of progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Output path for `-o -`.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Error of an empty or incomplete recording.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Incomplete(String);

pub fn run(args: &RecordArgs, out: &mut Out) -> Result<Exit> {
    if args.undo {
        return undo(out);
    }
    let (Some(device), Some(output)) = (&args.device, &args.output) else {
        return Err(UsageError("a DEVICE and -o FILE are needed".to_owned()).into());
    };
    restore_left_settings();
    let device = TracedDevice::find(device)?;
    let output = output_of(args, output)?;
    // From here on, signals end the recording regularly.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot register signal handlers")?;
    }
    if let Output::One(path) | Output::PerCpu(path) = &output
        && device.holds(path)
    {
        print_message(&format!(
            "note: {} is on {}: the recording includes its own writes",
            path.display(),
            device.name
        ));
    }
    let by = args.by.map(|by| match by {
        ByChoice::Tracefs => Interface::Tracefs,
        ByChoice::Ioctl => Interface::Ioctl,
    });
    let options = Options { by, buffer_bytes: args.buffer, calls: args.vfs };
    let done_before = device.requests_done();
    let capture = Capture::start(&device, &options)?;
    capture.notices().iter().for_each(|line| print_message(&format!("note: {line}")));
    if capture.interface() == Interface::Ioctl {
        print_message("note: recording through blktrace's ioctls");
    }
    let mut recording = Recording {
        capture,
        sink: Sink::create(output, &device)?,
        begun: Instant::now(),
        pause: if args.vfs { PAUSE_OF_CALLS } else { PAUSE },
    };
    let command = match args.command.split_first() {
        Some((program, rest)) => {
            let child = Command::new(program).args(rest).spawn();
            Some(child.with_context(|| format!("{}: cannot be run", Path::new(program).display()))?)
        }
        None => None,
    };
    let status = recording.attend(command, args.duration.map(Duration::from_nanos), &stop)?;
    let (written, stopped, seconds) = recording.finish()?;
    let done = device.requests_done().zip(done_before).map(|(now, before)| now.saturating_sub(before));
    print_end(&device, &written, seconds);
    if stopped.unmarked > 0 {
        print_message(&format!(
            "note: {} calls have no mark because their processes or files ended before the lookup",
            stopped.unmarked
        ));
    }
    check(args, &device, &written, stopped.lost, done, seconds)?;
    Ok(status.map_or(Exit::Success, exit_of))
}

/// A recording and its output.
struct Recording {
    capture: Capture,
    sink: Sink,
    begun: Instant,
    pause: Duration,
}

impl Recording {
    /// Records until the end. Returns the exit status of the command, unless the duration ended it.
    fn attend(
        &mut self,
        mut command: Option<Child>,
        duration: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>> {
        let shows = std::io::stderr().is_terminal() && command.is_none();
        let (mut shown, mut asked_to_end) = (Instant::now(), None);
        let ended = loop {
            if let Err(error) = self.capture.drain(&mut self.sink) {
                command.as_mut().inspect(|child| ask_to_end(child));
                return Err(error.into());
            }
            let is_over = duration.is_some_and(|duration| self.begun.elapsed() >= duration);
            match &mut command {
                Some(child) => {
                    if let Some(status) = child.try_wait()? {
                        break if is_over { None } else { Some(status) };
                    }
                }
                None if is_over || stop.load(Ordering::Relaxed) => break None,
                None => {}
            }
            // The command ends with the recording and is recorded until its end.
            if let Some(child) = command.as_mut().filter(|_| is_over || stop.load(Ordering::Relaxed)) {
                let asked: &mut Instant = asked_to_end.get_or_insert_with(|| {
                    ask_to_end(child);
                    Instant::now()
                });
                if asked.elapsed() >= END_MAX {
                    child.kill()?;
                }
            }
            if shows && shown.elapsed() >= PROGRESS_INTERVAL {
                shown = Instant::now();
                self.progress();
            }
            std::thread::sleep(self.pause);
        };
        if shows {
            eprint!("\r\x1b[K");
        }
        Ok(ended)
    }

    fn progress(&self) {
        let megabytes = self.sink.written_bytes() as f64 / 1e6;
        let lost = self.sink.lost();
        let dropped = if lost > 0 { format!(", {lost} dropped") } else { String::new() };
        let seconds = self.begun.elapsed().as_secs();
        eprint!(
            "\r\x1b[Krecording for {seconds} s: {} events, {megabytes:.1} MB{dropped} (Ctrl-C ends it)",
            self.sink.records()
        );
    }

    /// Stops the recording. Returns statistics of the output, of the capture, and the duration in
    /// seconds.
    fn finish(mut self) -> Result<(SinkSummary, CaptureSummary, f64)> {
        let stopped = self.capture.stop(&mut self.sink)?;
        let seconds = self.begun.elapsed().as_secs_f64();
        Ok((self.sink.finish()?, stopped, seconds))
    }
}

fn ask_to_end(command: &Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(command.id().cast_signed()) {
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    // The convention of shells: 128 plus the number of the signal.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    if code == 0 { Exit::Success } else { Exit::Code(u8::try_from(code).unwrap_or(1)) }
}

fn output_of(args: &RecordArgs, output: &Path) -> Result<Output> {
    if output == Path::new("-") {
        if args.per_cpu {
            return Err(UsageError("--per-cpu needs files: -o - is one stream".to_owned()).into());
        }
        if std::io::stdout().is_terminal() {
            return Err(
                UsageError("a recording is binary: use -o FILE, or | hoistway trace describe -".to_owned()).into()
            );
        }
        return Ok(Output::One(PathBuf::from(STANDARD_OUTPUT)));
    }
    Ok(if args.per_cpu { Output::PerCpu(output.into()) } else { Output::One(output.into()) })
}

/// Restores the settings that killed recordings left changed, because they interfere with a new
/// one.
fn restore_left_settings() {
    for left in stale_captures() {
        print_message(&format!(
            "note: the recording of process {} was killed; restoring the settings that it left changed:",
            left.pid()
        ));
        left.lines().iter().for_each(|line| print_message(&format!("  {line}")));
        left.restore().iter().for_each(|failed| print_message(&format!("  cannot be restored: {failed}")));
    }
}

fn undo(out: &mut Out) -> Result<Exit> {
    let (mut found, mut failed) = (0, 0);
    for left in stale_captures() {
        found += 1;
        out.line(format_args!("the recording of process {} was killed and left changed:", left.pid()))?;
        left.lines().iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
        let errors = left.restore();
        failed += errors.len();
        errors.iter().for_each(|error| print_message(&format!("error: cannot be restored: {error}")));
        if errors.is_empty() {
            out.line("  all restored")?;
        }
    }
    if found == 0 {
        out.line("nothing to restore")?;
    }
    Ok(if failed == 0 { Exit::Success } else { Exit::Failed })
}

fn print_end(device: &TracedDevice, written: &SinkSummary, seconds: f64) {
    let files = match written.files.as_slice() {
        [one] if one == Path::new(STANDARD_OUTPUT) => "standard output".to_owned(),
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} to {}", first.display(), last.display()),
        [] => "no file".to_owned(),
    };
    print_message(&format!(
        "recorded {} events of {} in {seconds:.1} s: {files} ({:.1} MB)",
        written.records,
        device.name,
        written.bytes as f64 / 1e6
    ));
    if written.garbage_bytes > 0 {
        print_message(&format!("note: skipped {} bytes of the kernel that are no records", written.garbage_bytes));
    }
}

/// Fails for a recording that is empty or lacks events.
fn check(
    args: &RecordArgs,
    device: &TracedDevice,
    written: &SinkSummary,
    lost: u64,
    done: Option<u64>,
    seconds: f64,
) -> Result<()> {
    if lost > 0 {
        return Err(Incomplete(format!(
            "{lost} events were dropped: the trace is incomplete. The buffer of {} KiB per CPU was too small; --buffer sets a larger one",
            args.buffer >> 10
        ))
        .into());
    }
    if written.requests > 0 {
        return Ok(());
    }
    let why = match done {
        Some(0) => format!("{} had no requests in {seconds:.1} s", device.name),
        Some(done) => format!(
            "{} completed {done} requests meanwhile: tracing does not work on this system; try --by {}",
            device.name,
            match args.by {
                Some(ByChoice::Tracefs) | None => "ioctl",
                Some(ByChoice::Ioctl) => "tracefs",
            }
        ),
        None => format!("{} may have been idle for {seconds:.1} s", device.name),
    };
    Err(Incomplete(format!("nothing was recorded: {why}")).into())
}
