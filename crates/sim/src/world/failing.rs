//! Failed I/O: media errors, lost pages, hung drives.

use hoistway_fio::Job;

use super::devices::{DriveId, MAIN};
use super::process::Stage;
use super::state::{Token, World};
use super::task::ProcessId;
use crate::error::{Defect, SimError};
use crate::record::Observer;

impl<S: Observer> World<S> {
    /// Handles an event of the drive and completes the bios of a finished request.
    pub(super) fn drive_event(&mut self, drive: DriveId) -> Result<(), Defect> {
        let mut tokens = std::mem::take(&mut self.scratch.tokens);
        let now_ns = self.now_ns;
        let completed = self.devices[drive].drive_event(now_ns, &mut tokens)?;
        if completed.is_some() {
            self.watchdog.idle_events = 0;
        }
        let failed = completed == Some(true);
        self.failures.requests += u64::from(failed);
        for token in tokens.drain(..) {
            self.complete_bio(Token::decode(token), failed)?;
        }
        self.scratch.tokens = tokens;
        Ok(())
    }

    /// Fails the pages of a read bio. A process that waits for a page of a longer bio retries that
    /// page alone; a process that waits for a page that was read alone gets an error.
    pub(super) fn read_failed(&mut self, file: u32, first: u64, pages: u64) {
        self.cache.fail_read(file, first, pages);
        for (id, page) in &self.waiting.pages[file as usize] {
            if pages == 1 && *page == first {
                self.processes[*id].fail(self.now_ns);
            }
        }
    }

    /// Fails the pages of a write bio: they are clean and lost, and the next sync of the file
    /// reports the error.
    pub(super) fn write_failed(&mut self, file: u32, pages: u64) {
        self.failures.pages_lost += pages;
        self.files_with_errors.insert(file);
    }

    /// Fails a process if writes of a file that it syncs have failed since the last sync.
    pub(super) fn report_failed_writes(&mut self, id: ProcessId) {
        for open in self.synced_files(id) {
            let process = &mut self.processes[id];
            if process.files.get(open).is_some_and(|open| self.files_with_errors.remove(&open.file)) {
                process.fail(self.now_ns);
            }
        }
    }

    /// The error for a simulation without progress: the drive hangs, or the simulator has a defect.
    pub(super) fn stuck(&self) -> SimError {
        let (elevator, seed, now_ns) = (self.elevator.info().name.to_owned(), self.seed, self.now_ns);
        // A process that has not started waits for others: a started process is named first.
        let unfinished = || self.processes.iter().filter(|process| process.stage != Stage::Done);
        let waiting = unfinished().find(|process| process.stage.has_begun()).or_else(|| unfinished().next());
        let waits = waiting.map_or(String::new(), |process| {
            let for_what = match process.in_flight {
                0 => process.stage.waits_for().to_owned(),
                1 => "waits for a direct request in flight".to_owned(),
                in_flight => format!("waits for {in_flight} direct requests in flight"),
            };
            let Job { file, line, name, .. } = &*process.job;
            format!("process {} of job `{name}` ({file}:{line}) {for_what}", process.plan.pid)
        });
        match self.devices.iter().find_map(|device| Some((device.unanswered()?, device.meter.answered_ns))) {
            Some((commands, answered_ns)) => {
                SimError::DriveHangs { elevator, seed, now_ns, answered_ns, commands, state: waits }
            }
            None => {
                let state = format!("{waits}; {}", self.devices[MAIN].describe_requests());
                SimError::Stuck { elevator, seed, now_ns, unfinished: self.unfinished.all, state }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hoistway_core::{Kind, NoSink};
    use hoistway_drive::Profile;

    use super::super::WorldRequest;
    use super::super::event_loop::IDLE_EVENTS_MAX;
    use super::super::state::World;
    use crate::config::HostConfig;
    use crate::error::SimError;

    const JOBS: &str = "[near]\nrw=read\nbs=64k\nsize=64m\ndirect=1\n[far]\nrw=read\nbs=64k\nsize=64m\ndirect=1\n";

    /// Builds a world with two readers under cfq-v3 and passes it to `check`.
    fn in_world<T>(look: impl FnOnce(World<NoSink>) -> T) -> T {
        let jobs = hoistway_fio::parse(JOBS, "two.fio", &|_| None, &|_, _| Err(std::io::Error::other("no file")));
        let request = WorldRequest {
            jobs: &jobs.expect("a job file"),
            profile: &Profile::builtin("sata-7200-2006").expect("built in"),
            host: &HostConfig::default(),
            elevator: Kind::CfqV3,
            settings: &[],
            seed: 7,
            scripts: &[],
            record: false,
        };
        look(World::new(&request).expect("a world"))
    }

    #[test]
    fn a_world_without_events_is_stuck_and_names_the_waiting_process() {
        // No process has been started.
        let error = in_world(|mut world| world.step().expect_err("nothing can happen"));
        let SimError::Stuck { unfinished, .. } = &error else { panic!("{error}") };
        assert_eq!(*unfinished, 2);
        assert_eq!(
            error.to_string(),
            "defect: the simulation under cfq-v3 with seed 7 makes no progress at 0 ns with 2 unfinished processes: process 1001 of \
             job `near` (two.fio:1) waits for its start; no request waits in the elevator, 0 are in the drive; please report it \
             with the job file"
        );
    }

    #[test]
    fn a_request_in_the_elevator_is_reported_there() {
        let error = in_world(|mut world| {
            world.start_processes();
            world.run_ready().expect("no defect");
            // Until one reader has the disk and the other waits for its slice.
            for _ in 0..200 {
                world.step().expect("a step");
            }
            world.stuck()
        });
        let message = error.to_string();
        assert!(
            message.contains(
                "process 1001 of job `near` (two.fio:1) waits for a processor; requests wait in the elevator"
            ),
            "{message}"
        );
    }

    #[test]
    fn events_without_progress_end_in_an_error() {
        let error = in_world(|mut world| {
            world.start_processes();
            world.run_ready().expect("no defect");
            world.step().expect("a process starts");
            world.watchdog.idle_events = IDLE_EVENTS_MAX;
            // Only flusher ticks are left, with nothing to flush.
            world.events = crate::events::Events::default();
            world.flush_tick();
            loop {
                if let Err(error) = world.step() {
                    return error;
                }
            }
        });
        assert!(matches!(error, SimError::Stuck { .. }), "{error}");
    }
}
