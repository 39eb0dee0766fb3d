//! Recorded workloads: the requests of a process in order, each with the event that it waits for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use hoistway_core::{Flags, Op};
use hoistway_fio::{Ioengine, Job, JobFile, Rw};
use hoistway_workload::{Release, ReleaseDelay};

use super::turnaround::WakeUp;

/// Processes that repeat recorded requests, for [`compare_recorded`](crate::compare_recorded).
///
/// The times of the requests are not the recorded ones: each request waits for the event that its
/// [`Release`] names, and then for its think time.
#[derive(Clone, Debug, Default)]
pub struct RecordedWorkload {
    /// One script per process.
    pub scripts: Vec<Arc<RequestScript>>,
    /// Length of each run, in ns. With `None`, a run ends with the completion of the last request;
    /// no script may be endless then.
    pub length_ns: Option<u64>,
}

/// The recorded requests of a process.
#[derive(Clone, Debug)]
pub struct RequestScript {
    /// Name of the process.
    pub name: String,
    /// Process id, which some elevators use.
    pub pid: u32,
    /// Greatest number of requests in flight.
    pub depth: u32,
    /// Time of the first request, in ns since the start of the recording.
    pub start_ns: u64,
    /// The requests, in the order of their release.
    pub requests: Vec<ScriptedRequest>,
    /// True if the process was active at the end of the recording: its requests are then repeated.
    pub is_endless: bool,
    /// Offset in sectors that each repetition adds: the length of the range that a sequential
    /// process read. With 0, requests are repeated at the same sectors.
    pub stride_sectors: u64,
    /// The sector after the last request on the disk.
    pub end_sector: u64,
    /// Think time at the start of a pass of a closed-loop process; the recording has none there.
    pub usual_think_ns: Option<u64>,
    /// Time from the start of a pass to the start of the next one, for open-loop processes.
    pub pass_ns: u64,
    /// The part of the think times that depends on the idle time of the machine before them.
    pub wake_up: WakeUp,
}

/// A request of a script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedRequest {
    /// The operation; a flush of the drive's cache has no sectors.
    pub op: Op,
    /// The flags of the bio, without FUA.
    pub flags: Flags,
    /// True for a write before which the drive's cache is flushed. Such a write is durable at its
    /// completion, as commits of journals are.
    pub preflush: bool,
    /// True for a write that is durable at its completion.
    pub fua: bool,
    /// First sector of 512 bytes on the drive.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// The event that releases the request.
    pub wait: Release,
    /// Recorded idle time of the machine in ns before that event, for [`ReleaseDelay::Think`].
    pub idle_ns: u64,
}

impl RecordedWorkload {
    /// The jobs that describe the processes, one per script: direct I/O on the device, with
    /// the script's depth and start.
    pub fn jobs(&self) -> JobFile {
        let jobs = self.scripts.iter().map(|script| script.job(self.length_ns));
        JobFile { jobs: jobs.collect(), ignored: Vec::new(), differences: Vec::new(), global_options: Vec::new() }
    }

    /// The sector after the last request on the drive; 0 without requests.
    pub fn end_sector(&self) -> u64 {
        self.scripts.iter().map(|script| script.end_sector).max().unwrap_or(0)
    }

    /// The process with the most bytes alone, started at once: the reference of a comparison.
    pub(crate) fn busiest(&self) -> RecordedWorkload {
        let bytes = |script: &&Arc<RequestScript>| {
            script.requests.iter().map(|request| u64::from(request.sectors)).sum::<u64>()
        };
        let busiest = self.scripts.iter().max_by_key(bytes);
        let scripts = busiest.map(|script| Arc::new(RequestScript { start_ns: 0, ..RequestScript::clone(script) }));
        RecordedWorkload { scripts: scripts.into_iter().collect(), length_ns: self.length_ns }
    }
}

impl RequestScript {
    /// The job that describes the process in a run of `length_ns`, or in one without an end.
    fn job(&self, length_ns: Option<u64>) -> Job {
        let data = || self.requests.iter().filter(|request| request.op != Op::Flush);
        let has = |reads: bool| data().any(|request| (request.op == Op::Read) == reads);
        let mut job = Job { name: self.name.clone(), file: "the trace".into(), ..Job::default() };
        job.requests.rw = match (has(true), has(false)) {
            (true, true) => Rw::Readwrite,
            (false, true) => Rw::Write,
            _ => Rw::Read,
        };
        job.files.filename = vec!["/dev/recorded".into()];
        job.cache.direct = true;
        (job.submission.ioengine, job.submission.iodepth) = (Ioengine::Libaio, self.depth);
        job.end.runtime_ns = length_ns.map(|length_ns| length_ns.saturating_sub(self.start_ns).max(1));
        job.end.time_based = self.is_endless && length_ns.is_some();
        job.start.startdelay_ns = self.start_ns..=self.start_ns;
        job
    }
}

/// Replays the requests of one process.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    script: Arc<RequestScript>,
    /// Number of repetitions that fit on the drive; then the offset starts at 0 again.
    strides_max: u64,
    /// Requests of all passes that only wait for their due time.
    released: u64,
    /// Completed requests.
    completed: u64,
    /// Due time of the last released request.
    last_due_ns: u64,
    /// Due times of the releases that were not taken. They belong to no request: a process makes
    /// its requests in their order, whichever of two pauses ends first.
    due: BinaryHeap<Reverse<u64>>,
    /// Number of requests that were taken.
    taken: u64,
    /// Idle time of the machine in ns before the last completion.
    idle_ns: u64,
}

impl Player {
    /// Creates a player for a drive of this many sectors.
    pub fn new(script: Arc<RequestScript>, capacity_sectors: u64) -> Player {
        let room_sectors = capacity_sectors.saturating_sub(script.end_sector);
        let strides_max = room_sectors.checked_div(script.stride_sectors).unwrap_or(0);
        Player {
            script,
            strides_max,
            released: 0,
            completed: 0,
            last_due_ns: 0,
            due: BinaryHeap::new(),
            taken: 0,
            idle_ns: 0,
        }
    }

    /// Counts requests that completed since the last call, after the machine was idle for
    /// `idle_ns`.
    pub fn completed(&mut self, count: u64, idle_ns: u64) {
        self.completed += count;
        self.idle_ns = idle_ns;
    }

    /// Computes the due times of requests that are released now. The process started at `start_ns`.
    pub fn release(&mut self, start_ns: u64, now_ns: u64) {
        while let Some((request, pass)) = self.request(self.released) {
            let outstanding = self.released.saturating_sub(self.completed);
            // One request beyond the due ones is enough.
            let is_ahead = request.wait.outstanding_max == u32::MAX && self.last_due_ns > now_ns;
            if outstanding > request.wait.outstanding_max.into() || is_ahead {
                return;
            }
            let due_ns = match (request.wait.then, self.script.usual_think_ns) {
                (ReleaseDelay::Think(ns), _) => {
                    now_ns.saturating_add(self.script.wake_up.think_ns(ns, request.idle_ns, self.idle_ns))
                }
                (ReleaseDelay::At(_), Some(ns)) if pass > 0 => now_ns.saturating_add(ns),
                (ReleaseDelay::Gap(ns), _) => self.last_due_ns.saturating_add(ns).max(now_ns),
                (ReleaseDelay::At(ns), _) => {
                    start_ns.saturating_add(pass.saturating_mul(self.script.pass_ns)).saturating_add(ns).max(now_ns)
                }
            };
            self.due.push(Reverse(due_ns));
            self.released += 1;
            self.last_due_ns = due_ns;
        }
    }

    /// Due time of the next request.
    pub fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse(due_ns)| *due_ns)
    }

    /// Takes the next request.
    pub fn take(&mut self) -> Option<ScriptedRequest> {
        self.due.pop()?;
        let number = self.taken;
        self.taken += 1;
        self.request(number).map(|(request, _)| request)
    }

    /// The request of a number, with its pass.
    fn request(&self, number: u64) -> Option<(ScriptedRequest, u64)> {
        let count = self.script.requests.len() as u64;
        let (pass, index) = (number.checked_div(count)?, number.checked_rem(count)?);
        if pass > 0 && !self.script.is_endless {
            return None;
        }
        let mut request = *self.script.requests.get(index as usize)?;
        let strides = pass % (self.strides_max + 1);
        request.sector = request.sector.saturating_add(strides.saturating_mul(self.script.stride_sectors));
        Some((request, pass))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(waits: &[Release], is_endless: bool) -> Arc<RequestScript> {
        let request = |wait: &Release| ScriptedRequest {
            op: Op::Read,
            flags: Flags::NONE,
            preflush: false,
            fua: false,
            sector: 8,
            sectors: 8,
            wait: *wait,
            idle_ns: 0,
        };
        Arc::new(RequestScript {
            name: "a".into(),
            pid: 1,
            depth: 1,
            start_ns: 0,
            requests: waits.iter().map(request).collect(),
            is_endless,
            stride_sectors: 100,
            end_sector: 16,
            usual_think_ns: Some(7),
            pass_ns: 1000,
            wake_up: WakeUp::default(),
        })
    }

    fn wait(outstanding_max: u32, then: ReleaseDelay) -> Release {
        Release { outstanding_max, then }
    }

    #[test]
    fn a_window_of_two_makes_the_next_request_after_a_completion_and_the_pause() {
        let waits = [
            wait(1, ReleaseDelay::At(0)),
            wait(1, ReleaseDelay::At(3)),
            wait(1, ReleaseDelay::Think(5)),
            wait(1, ReleaseDelay::Think(6)),
        ];
        let mut player = Player::new(script(&waits, false), 1000);
        player.release(100, 100);
        assert_eq!((player.next_ns(), player.released), (Some(100), 2));
        assert!(player.take().is_some());
        assert_eq!(player.next_ns(), Some(103));
        player.completed(1, 0);
        player.release(100, 200);
        assert_eq!(player.released, 3);
        player.take();
        assert_eq!(player.next_ns(), Some(205));
        player.completed(2, 0);
        player.release(100, 300);
        player.take();
        assert_eq!((player.next_ns(), player.released), (Some(306), 4));
        player.take();
        player.completed(2, 0);
        player.release(100, 400);
        assert_eq!(player.next_ns(), None, "it is finite");
    }

    #[test]
    fn requests_are_taken_in_their_order_even_if_a_later_pause_is_shorter() {
        let waits = [
            wait(1, ReleaseDelay::At(0)),
            wait(1, ReleaseDelay::At(0)),
            wait(1, ReleaseDelay::Think(600)),
            wait(1, ReleaseDelay::Think(200)),
        ];
        let mut two_deep = RequestScript::clone(&script(&waits, false));
        for (number, request) in (0..).zip(&mut two_deep.requests) {
            request.sector = 8 * number;
        }
        let mut player = Player::new(Arc::new(two_deep), 1000);
        player.release(0, 0);
        let mut taken = vec![player.take(), player.take()];
        player.completed(1, 0);
        player.release(0, 1000);
        player.completed(1, 0);
        player.release(0, 1100);
        assert_eq!(player.next_ns(), Some(1300), "the pause after the second completion ends first");
        taken.push(player.take());
        assert_eq!(player.next_ns(), Some(1600));
        taken.push(player.take());
        let sectors: Vec<u64> = taken.into_iter().flatten().map(|request| request.sector).collect();
        assert_eq!(sectors, [0, 8, 16, 24]);
    }

    #[test]
    fn a_think_time_follows_the_idle_time_before_the_completion() {
        let waits =
            [wait(0, ReleaseDelay::At(0)), wait(0, ReleaseDelay::Think(300)), wait(0, ReleaseDelay::Think(300))];
        let mut learned = RequestScript::clone(&script(&waits, false));
        learned.wake_up = WakeUp { growth: 10.0, recorded_max_ns: 10_000 };
        learned.requests.iter_mut().for_each(|request| request.idle_ns = 10_000);
        let mut player = Player::new(Arc::new(learned), 1000);
        player.release(0, 0);
        player.take();
        player.completed(1, 10_000);
        player.release(0, 20_000);
        assert_eq!(player.next_ns(), Some(20_300));
        player.take();
        // The fourth roots of 10,000 and of 16 are 10 and 2.
        player.completed(1, 16);
        player.release(0, 30_000);
        assert_eq!(player.next_ns(), Some(30_220));
    }

    #[test]
    fn a_process_that_was_active_at_the_end_continues_after_the_recorded_range() {
        let waits = [wait(0, ReleaseDelay::At(0)), wait(0, ReleaseDelay::Think(5))];
        let mut player = Player::new(script(&waits, true), 116);
        let mut sectors = Vec::new();
        for now_ns in 0..6 {
            player.release(0, now_ns * 100);
            if now_ns == 2 {
                assert_eq!(player.next_ns(), Some(207), "the usual pause, where a pass begins");
            }
            sectors.extend(player.take().map(|request| request.sector));
            player.completed(1, 0);
        }
        assert_eq!(sectors, [8, 8, 108, 108, 8, 8]);
    }

    #[test]
    fn open_loop_requests_are_released_one_beyond_the_due_ones() {
        let waits: Vec<Release> = (0..100).map(|number| wait(u32::MAX, ReleaseDelay::At(number * 10))).collect();
        let mut endless = RequestScript::clone(&script(&waits, true));
        endless.usual_think_ns = None;
        let mut player = Player::new(Arc::new(endless), 1000);
        player.release(0, 25);
        // Those of 0, 10 and 20 are late; that of 30 is the next.
        assert_eq!((player.released, player.next_ns()), (4, Some(25)));
        player.release(0, 26);
        assert_eq!(player.released, 4);
        for _ in 0..3 {
            let _ = player.take();
        }
        assert_eq!(player.next_ns(), Some(30));
        player.release(0, 1_005);
        assert_eq!(player.released, 102, "two of the next pass, which begins at 1000");
    }

    #[test]
    fn a_gap_counts_from_the_previous_release_and_ends_with_the_completion_at_the_earliest() {
        let waits = [0, 10, 10, 10].map(|gap_ns| wait(0, ReleaseDelay::Gap(gap_ns)));
        let mut player = Player::new(script(&waits, false), 1000);
        player.release(100, 100);
        assert_eq!(player.next_ns(), Some(100));
        player.take();
        player.completed(1, 0);
        // The completion after 4 ns leaves 6 ns of the gap; that after 25 ns leaves nothing.
        player.release(100, 104);
        assert_eq!(player.next_ns(), Some(110));
        player.take();
        player.completed(1, 0);
        player.release(100, 135);
        assert_eq!(player.next_ns(), Some(135));
        player.take();
        player.completed(1, 0);
        player.release(100, 136);
        assert_eq!(player.next_ns(), Some(145), "the delay is not made up for");
    }

    #[test]
    fn a_timer_keeps_its_times_and_its_depth_at_any_latency() {
        let waits = [wait(0, ReleaseDelay::At(0)), wait(0, ReleaseDelay::At(10)), wait(0, ReleaseDelay::At(20))];
        let mut player = Player::new(script(&waits, false), 1000);
        player.release(0, 0);
        player.take();
        player.completed(1, 0);
        player.release(0, 4);
        assert_eq!(player.next_ns(), Some(10));
        player.take();
        player.completed(1, 0);
        player.release(0, 25);
        assert_eq!(player.next_ns(), Some(25), "late, as the one before it was");
    }
}
