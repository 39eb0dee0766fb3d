//! The CPU time of a program, and the machine of a measurement, from procfs.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::getpriority_process;

/// An amount of CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    pub user_s: f64,
    pub system_s: f64,
}

impl Cpu {
    /// The CPU time of a process with all of its threads and of its children, running or waited
    /// for.
    pub fn of(pid: u32) -> Result<Cpu> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let mut cpu = Cpu::of_stat(&text, true).context("a short /proc/PID/stat")?;
        for child in children(pid) {
            // One that has just left is among those that were waited for at the next look.
            let text = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            let own = Cpu::of_stat(&text, false).unwrap_or_default();
            cpu = Cpu { user_s: cpu.user_s + own.user_s, system_s: cpu.system_s + own.system_s };
        }
        Ok(cpu)
    }

    /// Reads /proc/PID/stat: the CPU time of the process and, if requested, of the children that it
    /// has waited for.
    fn of_stat(text: &str, with_children: bool) -> Option<Cpu> {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1) as f64;
        let fields = fields(text);
        let ticks = |field: usize| -> Option<f64> { fields.get(field - 3)?.parse().ok() };
        // utime is the 14th and stime the 15th, cutime and cstime the two after them.
        let (mut user, mut system) = (ticks(14)?, ticks(15)?);
        if with_children {
            user += ticks(16)?;
            system += ticks(17)?;
        }
        Some(Cpu { user_s: user / ticks_per_second, system_s: system / ticks_per_second })
    }

    /// The CPU time since another reading, in s.
    pub fn since(self, before: Cpu) -> f64 {
        self.user_s + self.system_s - before.user_s - before.system_s
    }
}

/// The child processes of a server; some servers fork one per client.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The fields of /proc/PID/stat after the name, which may hold anything, blanks and brackets too.
/// The first is the third of the file.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect()
}

/// The processor, the kernel, the load and a priority that is not the usual one, as a sentence of a
/// page. `used` follows the number of processors.
pub fn machine(used: &str) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let priority = match (fields(&own).get(40 - 3), getpriority_process(None)) {
        (Some(&real_time), _) if real_time != "0" => format!("; measured with real-time priority {real_time}"),
        (_, Ok(nice)) if nice != 0 => format!("; measured with priority nice {nice}"),
        _ => String::new(),
    };
    format!(
        "{}, {processors} processors{used}, Linux {}; load average at the start: {}{priority}.",
        model.unwrap_or("unknown processor"),
        kernel.trim(),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_children_that_were_waited_for_is_counted_once_asked() {
        let text = "77 (a ) b) S 1 77 77 0 -1 4194560 9 8 7 6 300 200 50 25 20 0 4 0 123";
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let cpu = |user: f64, system: f64| Some(Cpu { user_s: user / per_second, system_s: system / per_second });
        assert_eq!(Cpu::of_stat(text, false), cpu(300.0, 200.0));
        assert_eq!(Cpu::of_stat(text, true), cpu(350.0, 225.0));
        assert_eq!(Cpu::of_stat("77 (a) S 1", true), None);
    }
}
