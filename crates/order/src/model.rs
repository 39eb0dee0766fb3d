//! How long a disk takes for a plan.
//!
//! The reader has so many steps of the plan under way, and gives the next read of a step as soon as the one before has been answered. What the disk does not take at once waits in
//! the host, which hands it over in one-way sweeps and puts together what lies together, as every elevator of Linux does with the reads of one process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hoistway_drive::{Access, AccessError, Command, Drive, Op, Phases, SECTOR_BYTES, Source};

use crate::plan::{Plan, Read};

/// How a plan is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Steps under way at once, at least 1.
    pub depth: usize,
    /// From an answer of the disk to the next request of the reader: what system calls, copies and everything between reader and disk take.
    pub turnaround_ns: u64,
    /// The longest request that is put together, in bytes.
    pub longest: u64,
}

impl Reader {
    /// One step at a time, without pauses between them.
    pub const ONE_AT_A_TIME: Reader = Reader { depth: 1, turnaround_ns: 0, longest: 1 << 20 };
}

/// What a plan took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// From the beginning to the last answer and what follows it.
    pub ns: u64,
    /// Commands that the disk was given.
    pub commands: u64,
    /// What they brought.
    pub bytes: u64,
    /// How many came from the disk's buffer alone.
    pub from_buffer: u64,
    /// Where the disk's time went; `wait_ns` is what commands waited in the disk for others.
    pub phases: Phases,
}

impl std::ops::AddAssign for Taken {
    fn add_assign(&mut self, other: Taken) {
        self.ns += other.ns;
        self.commands += other.commands;
        self.bytes += other.bytes;
        self.from_buffer += other.from_buffer;
        add(&mut self.phases, &other.phases);
    }
}

/// Has `drive` do `plan`, beginning at `start_ns` on its clock.
///
/// # Errors
/// [`AccessError`] when the plan reaches beyond the drive, or the drive never answers.
pub fn take(drive: &mut Drive, start_ns: u64, plan: &Plan, reader: &Reader) -> Result<Taken, AccessError> {
    let mut run = Run {
        reader,
        now_ns: start_ns,
        steps: Vec::new(),
        due: BinaryHeap::new(),
        waiting: BTreeMap::new(),
        head: 0,
        under_way: Vec::new(),
        taken: Taken::default(),
    };
    let mut left = plan.steps().filter(|reads| !reads.is_empty());
    for reads in left.by_ref().take(reader.depth.max(1)) {
        run.begin(reads, start_ns);
    }
    while let Some(at_ns) = run.next_event_ns(drive)? {
        run.now_ns = run.now_ns.max(at_ns);
        run.answer(drive, &mut left);
        run.ask();
        run.hand_over(drive)?;
    }
    run.taken.ns = run.now_ns - start_ns;
    Ok(run.taken)
}

/// A plan being done.
struct Run<'p> {
    reader: &'p Reader,
    now_ns: u64,
    /// The reads of the steps under way that are still to be asked for; a place is taken over by the step that follows.
    steps: Vec<&'p [Read]>,
    /// When which of them asks for its next read, or is over.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Reads that wait in the host, with the step of each.
    waiting: BTreeMap<(u64, u64), Vec<usize>>,
    /// Where the last command ends: sweeps go up from there.
    head: u64,
    /// The commands in the drive by their tags, with the steps that wait for them.
    under_way: Vec<(u32, Vec<usize>)>,
    taken: Taken,
}

impl<'p> Run<'p> {
    fn begin(&mut self, reads: &'p [Read], at_ns: u64) {
        self.due.push(Reverse((at_ns, self.steps.len())));
        self.steps.push(reads);
    }

    fn next_event_ns(&self, drive: &Drive) -> Result<Option<u64>, AccessError> {
        let due_ns = self.due.peek().map(|Reverse((at_ns, _))| *at_ns);
        let drive_ns = drive.next_event_ns();
        if due_ns.is_none() && drive_ns.is_none() && !self.under_way.is_empty() {
            return Err(AccessError::NoAnswer { since_ns: self.now_ns });
        }
        Ok(match (due_ns, drive_ns) {
            (Some(due_ns), Some(drive_ns)) => Some(due_ns.min(drive_ns)),
            (one, other) => one.or(other),
        })
    }

    /// Takes the drive's answers; a step that has no other read makes way for the next one.
    fn answer(&mut self, drive: &mut Drive, left: &mut impl Iterator<Item = &'p [Read]>) {
        while let Some(completion) = drive.poll(self.now_ns) {
            let Some(at) = self.under_way.iter().position(|(tag, _)| *tag == completion.tag) else { continue };
            let (_, steps) = self.under_way.swap_remove(at);
            add(&mut self.taken.phases, &completion.service.phases);
            self.taken.from_buffer += u64::from(completion.service.source == Source::Buffer);
            for step in steps {
                if self.steps[step].is_empty() {
                    self.steps[step] = left.next().unwrap_or_default();
                }
                self.due.push(Reverse((self.now_ns + self.reader.turnaround_ns, step)));
            }
        }
    }

    /// Lets the steps ask whose time has come.
    fn ask(&mut self) {
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

    /// Gives the drive as many commands as it takes, in one-way sweeps.
    fn hand_over(&mut self, drive: &mut Drive) -> Result<(), AccessError> {
        while self.under_way.len() < drive.depth().max(1) as usize {
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
            let tag = self.taken.commands as u32;
            drive.submit(self.now_ns, tag, &Command::from(Access { op: Op::Read, sector, sectors }))?;
            self.head = end;
            self.taken.commands += 1;
            self.taken.bytes += end - at;
            self.under_way.push((tag, steps));
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

    /// 1 ms for everything; so many at once.
    fn drive(depth: u32) -> Drive {
        let text = format!(
            "name = \"even\"\nwhat = \"a test's\"\nsource = \"none\"\n[null]\nservice_ns = 1000000\ndepth = {depth}\ncapacity_sectors = 1048576\n"
        );
        Drive::new(&Profile::from_toml(&text, "even.toml").expect("a profile"))
    }

    fn plan(steps: &[&[u64]]) -> Plan {
        // 4 KiB each, at so many KiB.
        let reads = |step: &[u64]| step.iter().map(|at| Read { at: at * 1024, bytes: 4096 }).collect::<Vec<_>>();
        let mut plan = Plan::default();
        steps.iter().for_each(|step| plan.push(reads(step)));
        plan
    }

    fn taken(depth: u32, plan: &Plan, reader: &Reader) -> (u64, u64, u64) {
        let taken = take(&mut drive(depth), 5, plan, reader).expect("within the drive");
        (taken.ns / 1000, taken.commands, taken.bytes / 1024)
    }

    #[test]
    fn one_step_at_a_time_waits_for_each_answer_and_turns_around() {
        let reader = Reader { turnaround_ns: 100_000, ..Reader::ONE_AT_A_TIME };
        assert_eq!(taken(1, &plan(&[&[100, 500], &[], &[300]]), &reader), (3300, 3, 12));
        assert_eq!(
            taken(32, &plan(&[&[100, 500], &[], &[300]]), &reader),
            (3300, 3, 12),
            "the drive's depth is of no use"
        );
        assert_eq!(taken(1, &Plan::default(), &reader), (0, 0, 0));
    }

    #[test]
    fn steps_under_way_at_once_keep_the_drive_s_queue_full_and_reads_of_one_wait_for_each_other() {
        let reader = Reader { depth: 3, ..Reader::ONE_AT_A_TIME };
        let six = plan(&[&[100], &[300], &[500], &[700], &[900], &[1100]]);
        assert_eq!(taken(3, &six, &reader), (2000, 6, 24));
        assert_eq!(taken(2, &six, &reader), (3000, 6, 24));
        let one_long = plan(&[&[100, 300, 500]]);
        assert_eq!(taken(3, &one_long, &reader), (3000, 3, 12));
    }

    #[test]
    fn what_waits_and_lies_together_is_one_command_in_the_order_of_a_sweep() {
        let reader = Reader { depth: 5, ..Reader::ONE_AT_A_TIME };
        // All five wait when the drive is asked first: 100, 104 and 108 KiB are one command, then 300 and, from the beginning again, 20.
        let together = plan(&[&[104], &[300], &[20], &[100], &[108]]);
        assert_eq!(taken(1, &together, &reader), (3000, 3, 20));
        let short = Reader { longest: 8192, ..reader };
        assert_eq!(taken(1, &together, &short), (4000, 4, 20));
    }

    #[test]
    fn a_plan_beyond_the_drive_is_refused() {
        let plan = plan(&[&[1 << 20]]);
        let told = take(&mut drive(1), 0, &plan, &Reader::ONE_AT_A_TIME).unwrap_err();
        assert!(matches!(told, AccessError::BeyondEnd { .. }), "{told}");
    }
}
