//! Disks that fail: errors, timeouts and resets of scsi_debug, and disks that disappear.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{Context, Failure, Verdict, add, verify};
use crate::load::{Load, Setup};
use crate::plan::Device;
use crate::prng::Prng;
use crate::protocol::Counts;
use crate::scsi::{self, Fault};
use crate::system::{self, ScsiReset};
use crate::{Outcome, device};

/// The bytes of the disk that a load uses.
const BYTES: u64 = 12 << 20;
const DISK: Device = Device::Scsi { queues: 2, depth: 16 };

/// Runs verified load under each kind of fault; at the end all cells of completed writes are as
/// they were written. The disk of the virtual machine is only reset: it cannot inject faults.
pub fn faults(context: &mut Context, elevator: &str, seconds: u64, hosts: bool) -> Verdict {
    let device = context.device(&DISK, elevator)?;
    let mut counts = Counts::new();
    if scsi::can_inject() {
        inject_all(context, &device, seconds, &mut counts)?;
    }
    let setup = Setup { bytes: BYTES, errors_allowed: true, ..Setup::new(&device.path(), context.prng.number()) };
    let load = Load::start(setup)?;
    let extents: &[ScsiReset] = if hosts && scsi::can_inject() {
        &[ScsiReset::Device, ScsiReset::Bus, ScsiReset::Host]
    } else {
        &[ScsiReset::Device]
    };
    let resets = reset(&device.path(), extents, seconds, &mut context.prng);
    add(&mut counts, load.finish().map_err(|message| format!("resets: {message}"))?);
    counts.insert("resets".to_owned(), resets?);
    Ok(counts)
}

/// Injects each kind of fault in turn under load.
fn inject_all(context: &mut Context, disk: &device::Device, seconds: u64, counts: &mut Counts) -> Outcome<()> {
    scsi::set_timeout(disk.name(), 1)?;
    for (fault, name) in Fault::ALL {
        let setup = Setup { bytes: BYTES, errors_allowed: true, ..Setup::new(&disk.path(), context.prng.number()) };
        let load = Load::start(setup)?;
        let injected = scsi::inject(Some(fault));
        thread::sleep(Duration::from_secs(seconds));
        scsi::inject(None)?;
        let part = load.finish().map_err(|message| format!("fault {name}: {message}"))?;
        counts.insert(format!("{name}_errors"), part.get("io_errors").copied().unwrap_or(0));
        counts.insert(format!("{name}_requests"), part.get("reads").unwrap_or(&0) + part.get("writes").unwrap_or(&0));
        add(counts, part);
        // A kernel may lack a kind of fault.
        if injected.is_err() {
            counts.insert(format!("{name}_unknown"), 1);
        }
    }
    Ok(())
}

/// Resets the disk and what it belongs to in turn under load. Returns the number of resets.
fn reset(path: &Path, extents: &[ScsiReset], seconds: u64, prng: &mut Prng) -> Outcome<u64> {
    let begun = Instant::now();
    let mut resets = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        for extent in extents {
            system::reset_scsi(path, *extent)?;
            resets += 1;
            thread::sleep(Duration::from_millis(prng.between(20, 200)));
        }
    }
    Ok(resets)
}

/// Removes the disk under load again and again, during switches of its elevator.
pub fn unplug(context: &mut Context, rounds: u64) -> Verdict {
    let first = context.device(&DISK, "none")?;
    let mut counts = Counts::new();
    for _ in 0..rounds {
        let name = scsi::wait_for_disk()?;
        let path = Path::new("/dev").join(&name);
        let queue = device::Queue::new(&name);
        verify::one_switch(context, &queue, 0, &mut counts)?;
        let setup = Setup { bytes: BYTES, errors_allowed: true, ..Setup::new(&path, context.prng.number()) };
        let load = Load::start(setup)?;
        let until = Instant::now() + Duration::from_millis(context.prng.between(100, 600));
        while Instant::now() < until {
            verify::one_switch(context, &queue, 20, &mut counts)?;
        }
        let removal = thread::spawn({
            let name = name.clone();
            move || scsi::unplug(&name)
        });
        // Switches that meet the removal fail with an error of the kernel; they must not hang.
        while !removal.is_finished() {
            let _ = verify::one_switch(context, &queue, 1, &mut Counts::new());
        }
        removal.join().map_err(|_| Failure::Failed("the removal panicked".to_owned()))??;
        thread::sleep(Duration::from_millis(50));
        add(&mut counts, load.abandon()?);
        scsi::scan()?;
        add(&mut counts, Counts::from([("unplugged".to_owned(), 1)]));
    }
    drop(first);
    Ok(counts)
}
