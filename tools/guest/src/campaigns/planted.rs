//! Faults that tests plant, to show that the harness finds them.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::{Context, Verdict, leak};
use crate::load::{Load, Planted, Setup};
use crate::plan::{Device, Fault};
use crate::protocol::Counts;
use crate::system;

/// Plants a fault. A verdict without failure shows that it was not found here.
pub fn run(context: &mut Context, fault: Fault) -> Verdict {
    match fault {
        Fault::LostWrite => load(context, Planted::Lost),
        Fault::MisplacedWrite => load(context, Planted::Misplaced),
        Fault::Warning => {
            // The kernel shows a line without a line feed to readers only after the next one.
            system::write("/dev/kmsg", "<4>WARNING: CPU: 0 PID: 1 at planted.rs:1 planted+0x0/0x1\n")?;
            Ok(Counts::new())
        }
        Fault::Hang => loop {
            thread::sleep(Duration::from_secs(3600));
        },
        Fault::Crash => {
            system::write("/proc/sysrq-trigger", "c")?;
            Ok(Counts::new())
        }
        // Directories of control groups hold memory of the kernel.
        Fault::Leak => leak::run(context, &Device::Disk("vda".to_owned()), 4, Some(hold_memory)),
    }
}

fn load(context: &mut Context, planted: Planted) -> Verdict {
    let device = context.device(&Device::Disk("vda".to_owned()), "none")?;
    let load = Load::start(Setup { planted: Some(planted), ..Setup::new(&device.path(), context.prng.number()) })?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) && !load.has_failed() {
        thread::sleep(Duration::from_millis(50));
    }
    Ok(load.finish()?)
}

/// Holds memory of the kernel: directories of control groups that stay.
fn hold_memory() {
    let base = fs::read_dir("/sys/fs/cgroup").map_or(0, Iterator::count);
    for number in 0..60 {
        let _ = fs::create_dir(format!("/sys/fs/cgroup/held-{base}-{number}"));
    }
}
