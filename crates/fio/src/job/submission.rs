//! Options on the submission of requests, on the page cache, and on syncs.

use super::option::{Subject, option, switch};
use crate::{
    engine::{self, Engine, EngineSupport, Ioengine},
    values::{Fault, Value, put},
};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Submission and the page cache",
    options: &[
        option("ioengine", &[], |job, v| engine::parse(v.text).map(|engine| job.submission.set_engine(engine)), "an engine", "`psync`", "The interface through which requests are submitted; the engines are listed below."),
        option("iodepth", &[], |job, v| put(&mut job.submission.iodepth, v.count_u32(1)), "a number", "`1`", "Requests in flight of an asynchronous engine."),
        option("iodepth_batch", &["iodepth_batch_submit"], |job, v| put(&mut job.submission.batching.submit, v.count_u32(0)), "a number", "`1`", "Requests that are submitted in one call; 0 is `iodepth`."),
        option("iodepth_batch_complete_min", &["iodepth_batch_complete"], |job, v| put(&mut job.submission.batching.complete_min, v.count_u32(0)), "a number", "`1`", "Requests for which a full queue waits."),
        option("iodepth_batch_complete_max", &[], |job, v| put(&mut job.submission.batching.complete_max, v.count_u32(0)), "a number", "all that are complete", "The maximum number of requests that one call reaps."),
        option("iodepth_low", &[], |job, v| put(&mut job.submission.batching.low, v.count_u32(0)), "a number", "`iodepth`", "Requests in flight down to which a full queue drains before it is filled again."),
        option("io_submit_mode", &[], |job, v| put(&mut job.submission.mode, v.word(&[("inline", SubmitMode::Inline), ("offload", SubmitMode::Offload)])), "`inline`, `offload`", "`inline`", "The thread that submits: the job's own, or one of `iodepth` others."),
        switch("direct", &[], |job| &mut job.cache.direct, "`0`", "Requests bypass the page cache."),
        option("buffered", &[], |job, v| put(&mut job.cache.direct, v.boolean().map(|buffered| !buffered)), "`0`, `1`", "`1`", "The opposite of `direct`."),
        switch("invalidate", &[], |job| &mut job.cache.invalidate, "`1`", "Cached pages of the files are dropped before the job starts, and whenever it begins again."),
        option("fadvise_hint", &[], |job, v| put(&mut job.cache.fadvise_hint, advice(v)), "`0`, `1`, `sequential`, `random`", "`1`", "The advice on the access pattern to the kernel: none, that of `rw`, or a given one."),
        option("sync", &[], |job, v| put(&mut job.syncs.sync, v.word(&[("none", WriteSync::None), ("0", WriteSync::None), ("sync", WriteSync::Sync), ("1", WriteSync::Sync), ("dsync", WriteSync::Dsync)])), "`none`, `0`, `sync`, `1`, `dsync`", "`none`", "Writes are synchronous (O_SYNC, O_DSYNC)."),
        switch("writefua", &[], |job| &mut job.syncs.writefua, "`0`", "Writes are forced to the medium."),
        option("fsync", &[], |job, v| put(&mut job.syncs.fsync, v.count_u32(0)), "a number", "`0`", "An fsync after this number of writes; 0 is none. The sync comes before the next request, whenever the number of writes so far is a multiple of this and the last operation was no sync. Therefore reads between two writes are also preceded by syncs, and no sync follows the last write. The sync goes to the file whose turn it is. With direct requests, `io_uring` and `posixaio` have syncs in flight beside requests, and queue further syncs until the first completes; `libaio` waits for each sync while requests are in flight."),
        option("fdatasync", &[], |job, v| put(&mut job.syncs.fdatasync, v.count_u32(0)), "a number", "`0`", "As `fsync`, with fdatasync."),
        switch("end_fsync", &[], |job| &mut job.syncs.end_fsync, "`0`", "The job ends with an fsync."),
        option("fsync_on_close", &[], |job, v| v.boolean().map(|at_close| job.syncs.end_fsync |= at_close), "`0`, `1`", "`0`", "An fsync when a file is closed, which is at the end of the job."),
    ],
};

/// How requests are submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The interface through which requests are submitted.
    pub ioengine: Ioengine,
    /// The engine of the job file, if `ioengine` stands for it or the job is to be left out.
    pub stands_for: Option<&'static Engine>,
    /// Requests in flight, at least 1. A synchronous engine always has one.
    pub iodepth: u32,
    /// The thread that submits the requests.
    pub mode: SubmitMode,
    /// The batches of an asynchronous engine.
    pub batching: Batching,
}

/// How requests use the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCache {
    /// True if requests bypass the page cache (`buffered` is the opposite).
    pub direct: bool,
    /// True if cached pages of the job's files are dropped when the files are opened. Default true.
    pub invalidate: bool,
    /// How the kernel is advised of the access pattern (`posix_fadvise`, `madvise`). By default the
    /// advice follows from `rw`.
    pub fadvise_hint: FadviseHint,
}

/// When written data are on the medium.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Syncs {
    /// What a write waits for (`sync`).
    pub sync: WriteSync,
    /// True if writes are forced to the medium (`writefua`).
    pub writefua: bool,
    /// An fsync after this many writes; 0 for none.
    pub fsync: u32,
    /// An fdatasync after this many writes; 0 for none.
    pub fdatasync: u32,
    /// True if the job ends with an fsync of what it wrote.
    pub end_fsync: bool,
}

impl Default for Submission {
    fn default() -> Self {
        Submission {
            ioengine: Ioengine::Psync,
            stands_for: None,
            iodepth: 1,
            mode: SubmitMode::Inline,
            batching: Batching::default(),
        }
    }
}

impl Default for PageCache {
    fn default() -> Self {
        PageCache { direct: false, invalidate: true, fadvise_hint: FadviseHint::Pattern }
    }
}

impl Submission {
    fn set_engine(&mut self, engine: &'static Engine) {
        self.stands_for = Some(engine);
        match engine.support {
            EngineSupport::Simulated(simulated) => (self.ioengine, self.stands_for) = (simulated, None),
            EngineSupport::Direct(like, _) | EngineSupport::Like(like, _) => self.ioengine = like,
            EngineSupport::NoData(_) | EngineSupport::Refused(_) => {}
        }
    }

    /// Requests in flight that the engine allows: `iodepth`, or 1 for a synchronous engine whose
    /// requests no other threads submit.
    pub fn effective_iodepth(&self) -> u32 {
        if self.ioengine.is_synchronous() && !self.is_offloaded() { 1 } else { self.iodepth }
    }

    /// Returns true if other threads submit the requests.
    pub fn is_offloaded(&self) -> bool {
        self.mode == SubmitMode::Offload
    }
}

impl Syncs {
    /// Returns true if syncs come between requests: `fsync` or `fdatasync`.
    pub fn are_between_requests(&self) -> bool {
        self.fsync > 0 || self.fdatasync > 0
    }
}

/// The thread that submits requests: fio's `io_submit_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitMode {
    /// `inline`: the job's own.
    #[default]
    Inline,
    /// `offload`: one of `iodepth` others.
    Offload,
}

/// The batches in which an asynchronous engine submits and reaps requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Requests submitted in one call: `iodepth_batch`. 0 means `iodepth`.
    pub submit: u32,
    /// Requests that a full queue waits for: `iodepth_batch_complete_min`. 0 waits for none until
    /// the queue is full.
    pub complete_min: u32,
    /// Most requests that one call reaps: `iodepth_batch_complete_max`. 0 reaps all that are
    /// complete.
    pub complete_max: u32,
    /// Requests in flight down to which a full queue drains before it is filled again:
    /// `iodepth_low`. 0 means `iodepth`.
    pub low: u32,
}

impl Default for Batching {
    fn default() -> Self {
        Batching { submit: 1, complete_min: 1, complete_max: 0, low: 0 }
    }
}

/// The advice on the access pattern that a job gives to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadviseHint {
    /// No advice.
    None,
    /// The pattern of `rw`: random or sequential.
    #[default]
    Pattern,
    /// Sequential access.
    Sequential,
    /// Random access.
    Random,
}

impl FadviseHint {
    /// The advice of a job whose accesses are random, or sequential: [`FadviseHint::Sequential`],
    /// [`FadviseHint::Random`] or [`FadviseHint::None`].
    pub fn of(self, is_random: bool) -> FadviseHint {
        match self {
            FadviseHint::Pattern if is_random => FadviseHint::Random,
            FadviseHint::Pattern => FadviseHint::Sequential,
            given => given,
        }
    }
}

/// The flag with which a job opens its files for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteSync {
    /// No flag: a write ends when its data are in the page cache, or in the drive with `direct=1`.
    #[default]
    None,
    /// O_DSYNC: until its data, and the metadata needed to read them, are on stable storage.
    Dsync,
    /// O_SYNC: until its data and all metadata of the file are on stable storage.
    Sync,
}

/// Parses the advice on access patterns for the kernel: by what the job does (1), none (0), or a
/// given one.
fn advice(v: Value) -> Result<FadviseHint, Fault> {
    match v.text {
        "sequential" => Ok(FadviseHint::Sequential),
        "random" => Ok(FadviseHint::Random),
        _ => match v.boolean() {
            Ok(true) => Ok(FadviseHint::Pattern),
            Ok(false) => Ok(FadviseHint::None),
            Err(_) => Err(Fault::with_help(
                format!("`{}` is not an advice on the access pattern", v.text),
                "0 for none, 1 for that of rw, sequential or random",
            )),
        },
    }
}
