//! The timing model: how long a drive takes for the reads of a plan.
//!
//! The reader processes several steps of the plan at once. Each step issues its next read as soon
//! as its previous read has completed. Reads that the drive cannot accept wait in the host. The
//! host dispatches them in one-way sweeps and merges adjacent reads, as all Linux elevators do with
//! the reads of one process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hoistway_drive::{Access, AccessError, Command, Drive, Op, Phases, SECTOR_BYTES, Source};

use crate::read_plan::{DiskRead, ReadPlan};

/// How a program issues the reads of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderModel {
    /// Number of steps in progress at once, at least 1.
    pub depth: usize,
    /// Time from a completion to the next read of the step, in ns: system calls, copies and the
    /// path to the drive.
    pub turnaround_ns: u64,
    /// Largest merged request in bytes.
    pub longest: u64,
}

impl ReaderModel {
    /// One step at a time, without pauses between reads.
    pub const ONE_AT_A_TIME: ReaderModel = ReaderModel { depth: 1, turnaround_ns: 0, longest: 1 << 20 };
}

/// The simulated duration of a plan and its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTime {
    /// Time from the start to the last completion and the following turnaround, in ns.
    pub ns: u64,
    /// Number of commands.
    pub commands: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Commands that were served from the drive's buffer.
    pub from_buffer: u64,
    /// Service time by phase, summed over all commands; `wait_ns` is the time that commands waited
    /// in the drive.
    pub phases: Phases,
}

impl std::ops::AddAssign for ReadTime {
    fn add_assign(&mut self, other: ReadTime) {
        self.ns += other.ns;
        self.commands += other.commands;
        self.bytes += other.bytes;
        self.from_buffer += other.from_buffer;
        add(&mut self.phases, &other.phases);
    }
}

/// A completed command of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    /// First byte on the device.
    pub offset: u64,
    /// Time of completion on the clock of the drive, in ns.
    pub finish_ns: u64,
}

/// Simulates the reads of `plan` on `drive`, starting at `start_ns` on the clock of the drive.
///
/// # Errors
/// [`AccessError`] if a read is beyond the end of the drive, or if the drive never completes a
/// command.
pub fn simulate(
    drive: &mut Drive,
    start_ns: u64,
    plan: &ReadPlan,
    reader: &ReaderModel,
) -> Result<ReadTime, AccessError> {
    simulate_observed(drive, start_ns, plan, reader, &mut |_| {})
}

/// Same as [`simulate`]; `on_finished` receives each completed command.
///
/// # Errors
/// Those of [`simulate`].
pub fn simulate_observed(
    drive: &mut Drive,
    start_ns: u64,
    plan: &ReadPlan,
    reader: &ReaderModel,
    on_finished: &mut dyn FnMut(FinishedCommand),
) -> Result<ReadTime, AccessError> {
    let mut simulation = Simulation {
        reader,
        now_ns: start_ns,
        steps: Vec::new(),
        due: BinaryHeap::new(),
        waiting: BTreeMap::new(),
        head: 0,
        in_flight: Vec::new(),
        time: ReadTime::default(),
        on_finished,
    };
    let mut remaining = plan.steps().filter(|reads| !reads.is_empty());
    for reads in remaining.by_ref().take(reader.depth.max(1)) {
        simulation.begin(reads, start_ns);
    }
    while let Some(at_ns) = simulation.next_event_ns(drive)? {
        simulation.now_ns = simulation.now_ns.max(at_ns);
        simulation.handle_completions(drive, &mut remaining);
        simulation.issue_due_reads();
        simulation.dispatch(drive)?;
    }
    simulation.time.ns = simulation.now_ns - start_ns;
    Ok(simulation.time)
}

/// The state of a simulation.
struct Simulation<'p, 'o> {
    reader: &'p ReaderModel,
    now_ns: u64,
    /// Reads that each step in progress has not issued yet. A finished step is replaced by the next
    /// one.
    steps: Vec<&'p [DiskRead]>,
    /// Times at which steps issue their next read or end.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Reads that wait in the host, with their steps.
    waiting: BTreeMap<(u64, u64), Vec<usize>>,
    /// End of the last command; the next sweep starts there.
    head: u64,
    /// Commands in the drive: tag, offset and waiting steps.
    in_flight: Vec<(u32, u64, Vec<usize>)>,
    time: ReadTime,
    on_finished: &'o mut dyn FnMut(FinishedCommand),
}

impl<'p> Simulation<'p, '_> {
    fn begin(&mut self, reads: &'p [DiskRead], at_ns: u64) {
        self.due.push(Reverse((at_ns, self.steps.len())));
        self.steps.push(reads);
    }

    fn next_event_ns(&self, drive: &Drive) -> Result<Option<u64>, AccessError> {
        let due_ns = self.due.peek().map(|Reverse((at_ns, _))| *at_ns);
        let drive_ns = drive.next_event_ns();
        if due_ns.is_none() && drive_ns.is_none() && !self.in_flight.is_empty() {
            return Err(AccessError::NoAnswer { since_ns: self.now_ns });
        }
        Ok(match (due_ns, drive_ns) {
            (Some(due_ns), Some(drive_ns)) => Some(due_ns.min(drive_ns)),
            (one, other) => one.or(other),
        })
    }

    /// Handles completions. A step without further reads is replaced by the next step.
    fn handle_completions(&mut self, drive: &mut Drive, remaining: &mut impl Iterator<Item = &'p [DiskRead]>) {
        while let Some(completion) = drive.poll(self.now_ns) {
            let Some(at) = self.in_flight.iter().position(|(tag, ..)| *tag == completion.tag) else { continue };
            let (_, offset, steps) = self.in_flight.swap_remove(at);
            (self.on_finished)(FinishedCommand { offset, finish_ns: completion.service.finish_ns });
            add(&mut self.time.phases, &completion.service.phases);
            self.time.from_buffer += u64::from(completion.service.source == Source::Buffer);
            for step in steps {
                if self.steps[step].is_empty() {
                    self.steps[step] = remaining.next().unwrap_or_default();
                }
                self.due.push(Reverse((self.now_ns + self.reader.turnaround_ns, step)));
            }
        }
    }

    /// Issues the reads of all steps that are due.
    fn issue_due_reads(&mut self) {
        while let Some(Reverse((at_ns, step))) =
            self.due.peek().copied().filter(|Reverse((at_ns, _))| *at_ns <= self.now_ns)
        {
            self.due.pop();
            debug_assert!(at_ns <= self.now_ns);
            if let Some((read, rest)) = self.steps[step].split_first() {
                self.steps[step] = rest;
                self.waiting.entry((read.at, read.bytes)).or_default().push(step);
            }
        }
    }

    /// Dispatches as many commands as the drive accepts, in one-way sweeps.
    fn dispatch(&mut self, drive: &mut Drive) -> Result<(), AccessError> {
        while self.in_flight.len() < drive.depth().max(1) as usize {
            let above = self.waiting.range((self.head, 0)..).next().or_else(|| self.waiting.iter().next());
            let Some((&first, _)) = above else { break };
            let (at, mut end) = (first.0, first.0);
            let mut steps = Vec::new();
            let mut next = Some(first);
            while let Some(key) = next {
                steps.extend(self.waiting.remove(&key).unwrap_or_default());
                end = end.max(key.0 + key.1);
                let follows = self.waiting.range((at, 0)..).next().map(|(key, _)| *key);
                next =
                    follows.filter(|(from, bytes)| *from <= end && (from + bytes).max(end) - at <= self.reader.longest);
            }
            let sector = at / SECTOR_BYTES;
            let sectors = (end.div_ceil(SECTOR_BYTES) - sector) as u32;
            let tag = self.time.commands as u32;
            drive.submit(self.now_ns, tag, &Command::from(Access { op: Op::Read, sector, sectors }))?;
            self.head = end;
            self.time.commands += 1;
            self.time.bytes += end - at;
            self.in_flight.push((tag, at, steps));
        }
        Ok(())
    }
}

fn add(sum: &mut Phases, more: &Phases) {
    sum.wait_ns += more.wait_ns;
    sum.overhead_ns += more.overhead_ns;
    sum.seek_ns += more.seek_ns;
    sum.rotation_ns += more.rotation_ns;
    sum.transfer_ns += more.transfer_ns;
}

#[cfg(test)]
mod tests {
    use hoistway_drive::Profile;

    use super::*;

    /// Creates a drive with a service time of 1 ms and the given queue depth.
    fn drive(depth: u32) -> Drive {
        let text = format!(
            "name = \"even\"\nwhat = \"a test's\"\nsource = \"none\"\n[null]\nservice_ns = 1000000\ndepth = {depth}\ncapacity_sectors = 1048576\n"
        );
        Drive::new(&Profile::from_toml(&text, "even.toml").expect("a profile"))
    }

    fn plan(steps: &[&[u64]]) -> ReadPlan {
        // 4 KiB each; offsets in KiB.
        let reads = |step: &[u64]| step.iter().map(|at| DiskRead { at: at * 1024, bytes: 4096 }).collect::<Vec<_>>();
        let mut plan = ReadPlan::default();
        steps.iter().for_each(|step| plan.push(reads(step)));
        plan
    }

    fn time(depth: u32, plan: &ReadPlan, reader: &ReaderModel) -> (u64, u64, u64) {
        let time = simulate(&mut drive(depth), 5, plan, reader).expect("within the drive");
        (time.ns / 1000, time.commands, time.bytes / 1024)
    }

    #[test]
    fn one_step_at_a_time_waits_for_each_completion_and_turnaround() {
        let reader = ReaderModel { turnaround_ns: 100_000, ..ReaderModel::ONE_AT_A_TIME };
        assert_eq!(time(1, &plan(&[&[100, 500], &[], &[300]]), &reader), (3300, 3, 12));
        assert_eq!(
            time(32, &plan(&[&[100, 500], &[], &[300]]), &reader),
            (3300, 3, 12),
            "the drive's depth is of no use"
        );
        assert_eq!(time(1, &ReadPlan::default(), &reader), (0, 0, 0));
    }

    #[test]
    fn parallel_steps_fill_the_drive_queue_and_the_reads_of_one_step_are_sequential() {
        let reader = ReaderModel { depth: 3, ..ReaderModel::ONE_AT_A_TIME };
        let six = plan(&[&[100], &[300], &[500], &[700], &[900], &[1100]]);
        assert_eq!(time(3, &six, &reader), (2000, 6, 24));
        assert_eq!(time(2, &six, &reader), (3000, 6, 24));
        let one_long = plan(&[&[100, 300, 500]]);
        assert_eq!(time(3, &one_long, &reader), (3000, 3, 12));
    }

    #[test]
    fn waiting_adjacent_reads_are_merged_and_dispatched_in_a_sweep() {
        let reader = ReaderModel { depth: 5, ..ReaderModel::ONE_AT_A_TIME };
        // All five reads wait for the first dispatch: 100, 104 and 108 KiB are one command; 300
        // follows, and 20 in the next sweep.
        let together = plan(&[&[104], &[300], &[20], &[100], &[108]]);
        assert_eq!(time(1, &together, &reader), (3000, 3, 20));
        let short = ReaderModel { longest: 8192, ..reader };
        assert_eq!(time(1, &together, &short), (4000, 4, 20));
    }

    #[test]
    fn a_plan_beyond_the_drive_is_refused() {
        let plan = plan(&[&[1 << 20]]);
        let error = simulate(&mut drive(1), 0, &plan, &ReaderModel::ONE_AT_A_TIME).unwrap_err();
        assert!(matches!(error, AccessError::BeyondEnd { .. }), "{error}");
    }
}
