//! Traces of the module's elevators by blktrace: insertions, and the elevators' notes.

use std::os::unix::fs::FileExt;
use std::thread;

use super::removal::own_subject;
use super::{Context, Failure, Verdict};
use crate::blktrace::{Action, Event, Trace};
use crate::cell::SIZE;
use crate::device::Device;
use crate::prng::Prng;
use crate::protocol::Counts;
use crate::system::{self, AlignedBuffer, Caching};
use crate::{Outcome, plan};

/// The readers, so that requests queue.
const READERS: u64 = 6;
/// The reads of each.
const READS: u64 = 18;

/// Traces a device under each elevator. Every request must be inserted once, and at least one
/// message must begin with the elevator's name.
pub fn run(context: &mut Context, device: &plan::Device) -> Verdict {
    let subject = own_subject(context)?;
    let device = context.device(device, "none")?;
    let mut counts = Counts::new();
    for elevator in &subject.elevators {
        device.queue().select(elevator)?;
        let Some(trace) = Trace::start(&device.path())? else {
            return Err(Failure::Skipped("the kernel has no debugfs or no blktrace".to_owned()));
        };
        read(&device, context.prng.number())?;
        let events = trace.finish()?;
        judge(elevator, &events, &mut counts)?;
        // The elevator finds that the trace has ended.
        read(&device, context.prng.number())?;
        let state = device.queue().elevator_state();
        if !state.is_empty() && !state.lines().any(|line| line == "notes 0") {
            return Err(Failure::Failed(format!("{elevator} goes on recording notes after the trace:\n{state}")));
        }
    }
    device.queue().select("none")?;
    Ok(counts)
}

/// Reads cells at random from several threads, each with an I/O context of its own.
fn read(device: &Device, seed: u64) -> Outcome<()> {
    let one = |number: u64| -> Outcome<()> {
        let file = system::open_device(&device.path(), Caching::Direct)?;
        let mut prng = Prng::new(seed.wrapping_add(number));
        let mut buffer = AlignedBuffer::new(SIZE);
        for _ in 0..READS {
            let at = prng.below(8192) * SIZE as u64;
            file.read_exact_at(buffer.first(SIZE), at).map_err(|error| format!("read at {at}: {error}"))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..READERS).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a reader panicked".to_owned())?)
    })
}

/// Compares the numbers of events: each read comes as a bio; those that are not merged into others
/// are inserted, issued and completed as requests.
fn judge(elevator: &str, events: &[Event], counts: &mut Counts) -> Outcome<()> {
    let of = |action| events.iter().filter(|event| **event == Event::Read(action)).count() as u64;
    let [queued, merged, inserted, issued, completed] =
        [Action::Queue, Action::Merge, Action::Insert, Action::Issue, Action::Complete].map(of);
    let requests = (READERS * READS).saturating_sub(merged);
    if queued != READERS * READS || [inserted, issued, completed] != [requests; 3] {
        return Err(format!(
            "{elevator}: of {} reads, {queued} came, {merged} were merged; {inserted} requests were inserted, {issued} \
             issued and {completed} completed",
            READERS * READS
        ));
    }
    let messages: Vec<&str> = events
        .iter()
        .filter_map(|event| if let Event::Message(text) = event { Some(text.as_str()) } else { None })
        .collect();
    let prefix = format!("{elevator} ");
    let own = messages.iter().filter(|text| text.starts_with(&prefix)).count() as u64;
    if own == 0 {
        return Err(format!("no message begins with {elevator}: {messages:?}"));
    }
    for (name, figure) in [("inserted", inserted), ("merged", merged), ("messages", own)] {
        *counts.entry(name.to_owned()).or_default() += figure;
    }
    Ok(())
}
