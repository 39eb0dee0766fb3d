//! What fio or hoistway did for a job.

use hoistway_fio::results::{DirectionReport, JobReport};
use hoistway_fio::{Direction, Directions};

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Index among the files of the process.
    pub file: usize,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// 0 for a read, 1 for a write, 2 for a trim.
    pub way: u8,
}

impl Request {
    /// Creates a request.
    pub fn new(direction: Direction, file: usize, offset: u64, bytes: u64) -> Request {
        let way = match direction {
            Direction::Read => 0,
            Direction::Write => 1,
            Direction::Trim => 2,
        };
        Request { file, offset, bytes, way }
    }
}

/// The figures of one direction of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of requests.
    pub ios: u64,
    /// Bytes of all requests.
    pub bytes: u64,
}

/// A process: a clone of the job.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The directions.
    pub moved: Directions<Moved>,
    /// Number of syncs.
    pub syncs: u64,
    /// The time that it ran, in ms.
    pub runtime_ms: f64,
}

impl Process {
    /// The figures of a process in a report of fio's form.
    pub fn of(job: &JobReport) -> Process {
        let moved = |direction: &Option<DirectionReport>| {
            direction.as_ref().map_or(Moved::default(), |one| Moved { ios: one.total_ios, bytes: one.io_bytes })
        };
        let runtime = [&job.read, &job.write, &job.trim].into_iter().flatten().map(|one| one.runtime).max();
        Process {
            moved: Directions { read: moved(&job.read), write: moved(&job.write), trim: moved(&job.trim) },
            syncs: job.sync.as_ref().map_or(0, |sync| sync.total_ios),
            runtime_ms: runtime.unwrap_or(0) as f64,
        }
    }
}
