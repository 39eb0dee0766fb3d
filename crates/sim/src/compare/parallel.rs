//! Runs on several threads, or one after the other where there are no threads.

#[cfg(not(target_family = "wasm"))]
use rayon::prelude::*;

/// Runs `work` so that its comparisons use at most this many threads, and memory for as many runs
/// at a time.
#[cfg(not(target_family = "wasm"))]
pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build() {
        Ok(pool) => pool.install(work),
        // Without further threads the calling one does the work.
        Err(_) => work(),
    }
}

/// Runs `work`. WebAssembly has no threads.
#[cfg(target_family = "wasm")]
pub fn with_threads<T: Send>(_: usize, work: impl FnOnce() -> T + Send) -> T {
    work()
}

/// The results of `run` for the numbers below `runs`, in their order.
#[cfg(not(target_family = "wasm"))]
pub(super) fn map<T: Send>(runs: usize, run: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..runs).into_par_iter().map(run).collect()
}

/// The results of `run` for the numbers below `runs`, in their order.
#[cfg(target_family = "wasm")]
pub(super) fn map<T: Send>(runs: usize, run: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..runs).map(run).collect()
}
