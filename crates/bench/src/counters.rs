//! The processor's event counters, read around a measurement.

use std::io;

use perf_event::events::{Cache, CacheOp, CacheResult, Event, Hardware, WhichCache};
use perf_event::{Builder, Counter};
use serde::Serialize;

/// Events of the program's own code, without the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// Executed instructions.
    pub instructions: f64,
    /// Reads that miss the first-level data cache.
    pub l1_misses: f64,
    /// Accesses that miss the last-level cache.
    pub cache_misses: f64,
    /// Mispredicted branches.
    pub branch_misses: f64,
}

impl Counts {
    /// The names of [`figures`](Self::figures).
    pub const NAMES: [&str; 4] = [
        "Instructions",
        "Reads that miss the first-level data cache",
        "Accesses that miss the last-level cache",
        "Mispredicted branches",
    ];

    /// All counts, in the order of [`NAMES`](Self::NAMES).
    pub fn figures(self) -> [f64; 4] {
        [self.instructions, self.l1_misses, self.cache_misses, self.branch_misses]
    }
}

/// Counters of this thread, which count from [`start`](Counters::start) to
/// [`stop`](Counters::stop).
pub(crate) struct Counters {
    counters: [Counter; 4],
}

impl Counters {
    /// Opens the counters. The error says why the machine does not count.
    pub fn open() -> Result<Counters, String> {
        let l1_misses = Cache { which: WhichCache::L1D, operation: CacheOp::READ, result: CacheResult::MISS };
        let open = |event: Event| Builder::new().kind(event).build().map_err(|error| reason(&error));
        Ok(Counters {
            counters: [
                open(Hardware::INSTRUCTIONS.into())?,
                open(l1_misses.into())?,
                open(Hardware::CACHE_MISSES.into())?,
                open(Hardware::BRANCH_MISSES.into())?,
            ],
        })
    }

    /// Sets the counters to zero and starts them.
    pub fn start(&mut self) -> io::Result<()> {
        self.counters.iter_mut().try_for_each(|counter| counter.reset().and_then(|()| counter.enable()))
    }

    /// Stops the counters and returns the events per request.
    pub fn stop(&mut self, requests: u64) -> io::Result<Counts> {
        self.counters.iter_mut().try_for_each(Counter::disable)?;
        let [instructions, l1_misses, cache_misses, branch_misses] = &mut self.counters;
        let per_request = |counter: &mut Counter| counter.read().map(|count| count as f64 / requests as f64);
        Ok(Counts {
            instructions: per_request(instructions)?,
            l1_misses: per_request(l1_misses)?,
            cache_misses: per_request(cache_misses)?,
            branch_misses: per_request(branch_misses)?,
        })
    }
}

/// The reason why a counter cannot be opened, with the remedy if there is one.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "perf_event_open is not permitted (kernel.perf_event_paranoid above 2, or a sandbox)".to_owned()
        }
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "the processor's event counters are not available here, as in many virtual machines".to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}
