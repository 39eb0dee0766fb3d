//! By the tracer `blk` of tracefs.
//!
//! Facts, tried on Linux 6.18: with the option `bin` and without `context-info`, `trace_pipe` of a
//! CPU gives records of blktrace's version 7 one after the other, with the sequence 0; where events
//! were lost there is a line of text between them. The tracer is one of the main buffer: instances
//! know it on no kernel seen so far, but are asked first.

use super::CaptureError;
use super::device::Traced;
use super::pipes::{Pipe, take_records};
use super::settings::Settings;
use super::sink::Sink;
use super::tracing_files::KernelFiles;

/// Processes whose names the kernel keeps.
const NAMES: u32 = 4096;

/// A recording by tracefs.
#[derive(Debug)]
pub(super) struct ByTracefs {
    files: KernelFiles,
    /// The buffer's directory: empty, or that of an instance, with a slash behind it.
    place: String,
    cpus: Vec<Cpu>,
    settings: Settings,
    device: Traced,
    told: Vec<String>,
}

#[derive(Debug)]
struct Cpu {
    pipe: Pipe,
    /// Events lost before the recording began.
    lost_before: u64,
}

impl ByTracefs {
    pub fn start(device: &Traced, buffer_bytes: u64) -> Result<ByTracefs, CaptureError> {
        let files = KernelFiles::tracefs()?;
        if !files.read("available_tracers")?.split_whitespace().any(|tracer| tracer == "blk") {
            let what = "this kernel has no tracer `blk` (CONFIG_BLK_DEV_IO_TRACE)";
            return Err(CaptureError::InUse(what.to_owned()));
        }
        if let Ok(enabled) = std::fs::read_to_string(device.trace_file("enable"))
            && enabled.trim() != "0"
        {
            return Err(CaptureError::InUse(format!(
                "{} is being traced already; if nobody is at it, `echo 0 > {}` ends that",
                device.name,
                device.trace_file("enable").display()
            )));
        }
        let mut settings = Settings::new("requests")?;
        let place = place(&files, &mut settings)?;
        let mut recording =
            ByTracefs { files, place, cpus: Vec::new(), settings, device: device.clone(), told: Vec::new() };
        recording.set_up(buffer_bytes)?;
        Ok(recording)
    }

    pub fn told(&self) -> &[String] {
        &self.told
    }

    /// Reads what is there of each CPU; answers the time before which nothing more will come.
    pub fn read(&mut self, sink: &mut Sink) -> Result<u64, CaptureError> {
        take_records(self.cpus.iter_mut().map(|cpu| &mut cpu.pipe), sink)
    }

    /// Ends the recording of further events.
    pub fn pause(&mut self) -> Result<(), CaptureError> {
        let path = self.device.trace_file("enable");
        std::fs::write(&path, "0").map_err(|cause| CaptureError::of(path.display().to_string(), cause))
    }

    /// Tells the names of processes that are gone, as far as the kernel kept them.
    pub fn saved_names(&self, sink: &mut Sink) {
        if !sink.has_nameless() {
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

    /// Events that the buffers could not hold.
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
        // The clock of the whole machine: those of its CPUs may be apart, and other tools know this
        // one.
        set("trace_clock", "mono")?;
        set("buffer_size_kb", &buffer_kib.to_string())?;
        set("options/bin", "1")?;
        set("options/context-info", "0")?;
        set("tracing_on", "1")?;
        if place.is_empty() {
            // More names than that are lost, and no harm is done where the file is missing.
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
        self.told.push(if place.is_empty() {
            "recording through tracefs' tracer `blk`, in the main buffer".to_owned()
        } else {
            "recording through tracefs' tracer `blk`, in a buffer of its own".to_owned()
        });
        Ok(())
    }
}

/// An instance where the tracer works in one, else the main buffer, if nobody uses it.
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

/// Events that a CPU's buffer could not hold so far.
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
    fn events_that_found_no_room_are_counted() {
        let stats = "entries: 12\noverrun: 3\ncommit overrun: 1\nbytes: 480\noldest event ts:  1.0\ndropped events: 2\nread events: 7";
        assert_eq!(lost_in(stats), 6);
    }
}
