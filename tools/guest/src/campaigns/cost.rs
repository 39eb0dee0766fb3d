//! The cost of a request: the time that it takes on a device that costs next to nothing itself.
//!
//! The host counts instructions: its virtual clock advances by 1 ns for each, so that a time
//! measured here is a number of instructions. Elevators keep the device idle for no process, and
//! the time in which the processor is idle nevertheless is left out.

use std::path::Path;
use std::thread;
use std::time::Instant;

use super::{Context, Failure, Verdict};
use crate::Outcome;
use crate::async_io::Batch;
use crate::device::Device;
use crate::plan::{self, CostLoad};
use crate::prng::Prng;
use crate::protocol::Counts;
use crate::system::{self, AlignedBuffer, Caching};

/// The bytes of a request.
const REQUEST_BYTES: u64 = 512;
/// The part of the device that is read.
const REGION_BYTES: u64 = 32 << 20;
/// The tunables that keep a device idle for a process.
const IDLING: [&str; 5] = ["slice_idle", "group_idle", "antic_expire", "slice_idle_us", "bw_idle"];

/// Measures each elevator with a load.
pub fn run(
    context: &mut Context,
    device: &plan::Device,
    elevators: &[String],
    requests: u64,
    load: CostLoad,
) -> Verdict {
    let device = context.device(device, "none")?;
    let mut counts = Counts::new();
    for elevator in elevators {
        device.queue().select(elevator)?;
        disable_idling(&device)?;
        measure(&device, requests / 10, load, context.prng.number())?;
        let (idle, begun) = (system::idle_time()?, Instant::now());
        measure(&device, requests, load, context.prng.number())?;
        let (elapsed, idle) = (begun.elapsed(), system::idle_time()?.saturating_sub(idle));
        let busy = elapsed.saturating_sub(idle);
        if busy < elapsed / 3 {
            let message = format!("under {elevator} the processor was idle for {idle:?} of {elapsed:?}");
            return Err(Failure::Failed(message));
        }
        let nanoseconds = u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX);
        counts.insert(elevator.clone(), nanoseconds / requests.max(1));
    }
    device.queue().select("none")?;
    Ok(counts)
}

fn disable_idling(device: &Device) -> Outcome<()> {
    let directory = Path::new("/sys/block").join(device.name()).join("queue/iosched");
    for name in IDLING {
        let path = directory.join(name);
        if path.exists() {
            system::write(&path, "0")?;
        }
    }
    Ok(())
}

/// Makes a number of requests.
fn measure(device: &Device, requests: u64, load: CostLoad, seed: u64) -> Outcome<()> {
    match load {
        CostLoad::Synchronous { threads } => thread::scope(|scope| {
            let each = requests / threads.max(1);
            let spawn = |number| scope.spawn(move || read_synchronously(device, each, seed.wrapping_add(number)));
            let threads: Vec<_> = (0..threads).map(spawn).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Outcome<()>>| {
                thread.join().unwrap_or_else(|_| Err("a thread of the load panicked".to_owned()))
            };
            threads.into_iter().try_for_each(join)
        }),
        CostLoad::Batches { depth } => read_batches(device, requests, depth, seed),
    }
}

fn offset(prng: &mut Prng) -> u64 {
    prng.below(REGION_BYTES / REQUEST_BYTES) * REQUEST_BYTES
}

fn read_synchronously(device: &Device, requests: u64, seed: u64) -> Outcome<()> {
    use std::os::unix::fs::FileExt;
    let file = system::open_device(&device.path(), Caching::Direct)?;
    let mut buffer = AlignedBuffer::new(REQUEST_BYTES as usize);
    let mut prng = Prng::new(seed);
    for _ in 0..requests {
        let bytes = buffer.first(REQUEST_BYTES as usize);
        file.read_exact_at(bytes, offset(&mut prng)).map_err(|error| format!("a read: {error}"))?;
    }
    Ok(())
}

/// Submits requests in batches and waits for all of a batch.
fn read_batches(device: &Device, requests: u64, depth: u64, seed: u64) -> Outcome<()> {
    let file = system::open_device(&device.path(), Caching::Direct)?;
    let mut batch = Batch::new(depth as usize, REQUEST_BYTES as usize)?;
    let mut prng = Prng::new(seed);
    for _ in 0..requests / depth.max(1) {
        let offsets: Vec<u64> = (0..depth).map(|_| offset(&mut prng)).collect();
        batch.read(&file, &offsets)?;
    }
    Ok(())
}
