//! Captures by the tracer `blk` of tracefs.
//!
//! Verified on Linux 6.18: with the option `bin` and without `context-info`, `trace_pipe` of a CPU
//! returns consecutive records of blktrace's version 7, with the sequence number 0. Lost events
//! appear as a line of text between records. The tracer belongs to the main buffer: on all kernels
//! seen so far, instances do not offer it, but they are tried first.

use super::CaptureError;
use super::device::TracedDevice;
use super::pipes::{Pipe, take_records};
use super::settings::Settings;
use super::sink::Sink;
use super::tracing_files::KernelFiles;

/// The number of process names that the kernel keeps.
const NAMES: u32 = 4096;

/// A capture by tracefs.
#[derive(Debug)]
pub(super) struct TracefsTracer {
    files: KernelFiles,
    /// The buffer's directory: empty, or that of an instance with a slash at its end.
    place: String,
    cpus: Vec<Cpu>,
    settings: Settings,
    device: TracedDevice,
    notices: Vec<String>,
}

#[derive(Debug)]
struct Cpu {
    pipe: Pipe,
    /// Events that were lost before the capture began.
    lost_before: u64,
}

impl TracefsTracer {
    pub fn start(device: &TracedDevice, buffer_bytes: u64) -> Result<TracefsTracer, CaptureError> {
        let files = KernelFiles::tracefs()?;
        if !files.read("available_tracers")?.split_whitespace().any(|tracer| tracer == "blk") {
            let what = "this kernel has no tracer `blk` (CONFIG_BLK_DEV_IO_TRACE)";
            return Err(CaptureError::InUse(what.to_owned()));
        }
        if let Ok(enabled) = std::fs::read_to_string(device.trace_file("enable"))
            && enabled.trim() != "0"
        {
            return Err(CaptureError::InUse(format!(
                "{} is already being traced; if no other tool uses the trace, `echo 0 > {}` ends it",
                device.name,
                device.trace_file("enable").display()
            )));
        }
        let mut settings = Settings::new("requests")?;
        let place = place(&files, &mut settings)?;
        let mut recording =
            TracefsTracer { files, place, cpus: Vec::new(), settings, device: device.clone(), notices: Vec::new() };
        recording.set_up(buffer_bytes)?;
        Ok(recording)
    }

    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Reads the available events of each CPU. Returns the time in ns before which all events have
    /// been read.
    pub fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        take_records(self.cpus.iter_mut().map(|cpu| &mut cpu.pipe), sink)
    }

    /// Stops the tracing of further events.
    pub fn pause(&mut self) -> Result<(), CaptureError> {
        let path = self.device.trace_file("enable");
        std::fs::write(&path, "0").map_err(|cause| CaptureError::of(path.display().to_string(), cause))
    }

    /// Reports the names of ended processes that the kernel has kept.
    pub fn saved_names(&self, sink: &mut Sink) {
        if !sink.has_unnamed() {
            return;
        }
        let Ok(names) = self.files.read("saved_cmdlines") else { return };
        for line in names.lines() {
            let Some((pid, name)) = line.trim_start().split_once(' ') else { continue };
            let Ok(pid) = pid.parse() else { continue };
            if name != "<...>" && sink.name(pid, name).is_err() {
                return;
            }
        }
    }

    /// Returns the number of events that the buffers could not hold.
    pub fn lost(&self) -> Result<u64, CaptureError> {
        let mut lost = 0;
        for cpu in &self.cpus {
            lost += lost_of(&self.files, &self.place, cpu.pipe.number)?.saturating_sub(cpu.lost_before);
        }
        Ok(lost)
    }

    fn set_up(&mut self, buffer_bytes: u64) -> Result<(), CaptureError> {
        let place = self.place.clone();
        let mut set = |name: &str, value: &str| self.settings.set(&self.files, &format!("{place}{name}"), value);
        let buffer_kib = buffer_bytes.div_ceil(1024).max(64);
        // The clock of the whole machine: CPU clocks may differ, and other tools know this one.
        set("trace_clock", "mono")?;
        set("buffer_size_kb", &buffer_kib.to_string())?;
        set("options/bin", "1")?;
        set("options/context-info", "0")?;
        set("tracing_on", "1")?;
        if place.is_empty() {
            // A smaller value loses names only, so that a missing file does no harm.
            let known = self.files.read("saved_cmdlines_size").ok().and_then(|size| size.parse::<u32>().ok());
            if known.is_some_and(|size| size < NAMES) {
                self.settings.set(&self.files, "saved_cmdlines_size", &NAMES.to_string())?;
            }
        }
        self.settings.set(&self.files, &format!("{place}current_tracer"), "blk")?;
        let clear = self.files.path(&format!("{place}trace"));
        std::fs::write(&clear, "").map_err(|cause| CaptureError::of("trace", cause))?;
        for number in self.files.cpus(&place)? {
            let pipe = self.files.open_pipe(&format!("{place}per_cpu/cpu{number}/trace_pipe"))?;
            let lost_before = lost_of(&self.files, &place, number)?;
            self.cpus.push(Cpu { pipe: Pipe::new(number, pipe), lost_before });
        }
        let enable = self.device.trace_file("enable");
        self.settings.set_file(&enable, "1")?;
        self.notices.push(if place.is_empty() {
            "recording through tracefs' tracer `blk`, in the main buffer".to_owned()
        } else {
            "recording through tracefs' tracer `blk`, in a buffer of its own".to_owned()
        });
        Ok(())
    }
}

/// Returns an instance in which the tracer works, else the main buffer if it is not in use.
fn place(files: &KernelFiles, settings: &mut Settings) -> Result<String, CaptureError> {
    let instance = format!("instances/hoistway-blk-{}", std::process::id());
    if settings.make_instance(files, &instance).is_ok() {
        let tracers = files.read(&format!("{instance}/available_tracers")).unwrap_or_default();
        if tracers.split_whitespace().any(|tracer| tracer == "blk") {
            return Ok(format!("{instance}/"));
        }
        settings.remove_instance(files, &instance);
    }
    let tracer = files.read("current_tracer")?;
    if tracer != "nop" {
        return Err(CaptureError::InUse(format!(
            "tracefs is in use: its tracer is `{tracer}`; wait until that ends, or `echo nop > /sys/kernel/tracing/current_tracer`"
        )));
    }
    let events = files.read("set_event")?;
    if let Some(event) = events.lines().next() {
        return Err(CaptureError::InUse(format!(
            "tracefs is in use: {} events are switched on in its main buffer (`{event}`, ...), which would lie between the records; \
             `echo > /sys/kernel/tracing/set_event` switches them off",
            events.lines().count()
        )));
    }
    Ok(String::new())
}

/// Returns the number of events that a CPU's buffer could not hold so far.
fn lost_of(files: &KernelFiles, place: &str, cpu: u32) -> Result<u64, CaptureError> {
    let stats = files.read(&format!("{place}per_cpu/cpu{cpu}/stats"))?;
    Ok(lost_in(&stats))
}

fn lost_in(stats: &str) -> u64 {
    let lost = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = lost.filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_events_are_counted() {
        let stats = "entries: 12\noverrun: 3\ncommit overrun: 1\nbytes: 480\noldest event ts:  1.0\ndropped events: 2\nread events: 7";
        assert_eq!(lost_in(stats), 6);
    }
}
