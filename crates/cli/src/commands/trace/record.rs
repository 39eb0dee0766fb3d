//! `hoistway trace record`: what passes through a block device, until Ctrl-C, a time or a command's end.

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use hoistway_serve::capture::{By, Capture, Options, Output, Sink, Stopped, Traced, Written, left_behind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::trace::{ByChoice, RecordArgs};
use crate::failure::{Exit, UsageError, tell};
use crate::output::Out;

/// How long what is recorded may wait in the kernel's buffers.
const PAUSE: Duration = Duration::from_millis(10);
/// The same with marks for calls: what file a descriptor stands for can be asked only while its process is there.
const PAUSE_OF_CALLS: Duration = Duration::from_millis(1);
/// How long a command may take to end once it is asked to.
const END_MAX: Duration = Duration::from_secs(10);
/// How often the progress is told.
const TELL: Duration = Duration::from_millis(200);

/// What `-o -` writes to.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Nothing came, or not all of it.
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
    put_back_what_was_left();
    let device = Traced::find(device)?;
    let output = output_of(args, output)?;
    // Signals end the recording in order from here on.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("signals cannot be caught")?;
    }
    if let Output::One(path) | Output::PerCpu(path) = &output
        && device.holds(path)
    {
        tell(&format!("note: {} lies on {}: the recording's own writes will be in it", path.display(), device.name));
    }
    let by = args.by.map(|by| match by {
        ByChoice::Tracefs => By::Tracefs,
        ByChoice::Ioctl => By::Ioctl,
    });
    let options = Options { by, buffer_bytes: args.buffer, calls: args.vfs };
    let done_before = device.requests_done();
    let capture = Capture::start(&device, &options)?;
    capture.told().iter().for_each(|line| tell(&format!("note: {line}")));
    if capture.by() == By::Ioctl {
        tell("note: recording through blktrace's ioctls");
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
    tell_end(&device, &written, seconds);
    if stopped.unmarked > 0 {
        tell(&format!(
            "note: {} calls have no mark: their processes or files were gone before they were looked up",
            stopped.unmarked
        ));
    }
    check(args, &device, &written, stopped.lost, done, seconds)?;
    Ok(status.map_or(Exit::Success, exit_of))
}

/// A recording with what it is written to.
struct Recording {
    capture: Capture,
    sink: Sink,
    begun: Instant,
    pause: Duration,
}

impl Recording {
    /// Records until it is time to stop; answers how the command ended by itself, or by a signal that came.
    fn attend(
        &mut self,
        mut command: Option<Child>,
        duration: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>> {
        let shows = std::io::stderr().is_terminal() && command.is_none();
        let (mut told, mut asked_to_end) = (Instant::now(), None);
        let ended = loop {
            if let Err(error) = self.capture.take(&mut self.sink) {
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
            // What was started with the recording does not outlive it, and is recorded to its end.
            if let Some(child) = command.as_mut().filter(|_| is_over || stop.load(Ordering::Relaxed)) {
                let asked: &mut Instant = asked_to_end.get_or_insert_with(|| {
                    ask_to_end(child);
                    Instant::now()
                });
                if asked.elapsed() >= END_MAX {
                    child.kill()?;
                }
            }
            if shows && told.elapsed() >= TELL {
                told = Instant::now();
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

    /// Stops; answers what was written, what was not, and for how long it recorded.
    fn finish(mut self) -> Result<(Written, Stopped, f64)> {
        let stopped = self.capture.stop(&mut self.sink)?;
        let seconds = self.begun.elapsed().as_secs_f64();
        Ok((self.sink.finish()?, stopped, seconds))
    }
}

fn ask_to_end(command: &Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(command.id().cast_signed()) {
        // That it is gone already is what was wanted.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    // As shells have it: 128 and the signal's number.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    if code == 0 { Exit::Success } else { Exit::Code(u8::try_from(code).unwrap_or(1)) }
}

fn output_of(args: &RecordArgs, output: &Path) -> Result<Output> {
    if output == Path::new("-") {
        if args.per_cpu {
            return Err(UsageError("--per-cpu needs files: -o - is one stream".to_owned()).into());
        }
        if std::io::stdout().is_terminal() {
            return Err(UsageError(
                "a recording is not for a terminal: -o FILE, or | hoistway trace describe -".to_owned(),
            )
            .into());
        }
        return Ok(Output::One(PathBuf::from(STANDARD_OUTPUT)));
    }
    Ok(if args.per_cpu { Output::PerCpu(output.into()) } else { Output::One(output.into()) })
}

/// What killed recordings left behind would be in the way, and nobody else will put it back.
fn put_back_what_was_left() {
    for left in left_behind() {
        tell(&format!(
            "note: the recording of process {} was killed and left this behind, which is put back now:",
            left.pid()
        ));
        left.lines().iter().for_each(|line| tell(&format!("  {line}")));
        left.put_back().iter().for_each(|failed| tell(&format!("  could not be put back: {failed}")));
    }
}

fn undo(out: &mut Out) -> Result<Exit> {
    let (mut found, mut failed) = (0, 0);
    for left in left_behind() {
        found += 1;
        out.line(format_args!("the recording of process {} was killed and left behind:", left.pid()))?;
        left.lines().iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
        let errors = left.put_back();
        failed += errors.len();
        errors.iter().for_each(|error| tell(&format!("error: could not be put back: {error}")));
        if errors.is_empty() {
            out.line("  all of it is put back")?;
        }
    }
    if found == 0 {
        out.line("nothing is left behind")?;
    }
    Ok(if failed == 0 { Exit::Success } else { Exit::Failed })
}

fn tell_end(device: &Traced, written: &Written, seconds: f64) {
    let files = match written.files.as_slice() {
        [one] if one == Path::new(STANDARD_OUTPUT) => "standard output".to_owned(),
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} to {}", first.display(), last.display()),
        [] => "no file".to_owned(),
    };
    tell(&format!(
        "recorded {} events of {} in {seconds:.1} s: {files} ({:.1} MB)",
        written.records,
        device.name,
        written.bytes as f64 / 1e6
    ));
    if written.garbage_bytes > 0 {
        tell(&format!("note: {} bytes of the kernel's were no records and were left out", written.garbage_bytes));
    }
}

/// A recording with holes, or with nothing in it, is none.
fn check(
    args: &RecordArgs,
    device: &Traced,
    written: &Written,
    lost: u64,
    done: Option<u64>,
    seconds: f64,
) -> Result<()> {
    if lost > 0 {
        return Err(Incomplete(format!(
            "{lost} events were dropped: the trace has holes. The buffer of {} KiB a CPU was too small for what came; --buffer makes it larger",
            args.buffer >> 10
        ))
        .into());
    }
    if written.requests > 0 {
        return Ok(());
    }
    let why = match done {
        Some(0) => format!("no request came to {} in {seconds:.1} s", device.name),
        Some(done) => format!(
            "{} completed {done} requests meanwhile: tracing does not work here; try --by {}",
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
