//! The course of a world: processes, power failures, deaths of the mount, and the end.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hoistway_config::mount::MountConfig;
use hoistway_mount::Backing;
use hoistway_mount::scheduled::simulated::{Host, enter};
use hoistway_mount::scheduled::{Remains, SimulatedGate};
use hoistway_reactor::simulated::Prng;

use super::file_system::{DIRECTORY, Image};
use super::kernel::DIRECTORY_KEY;
use super::machine::{Machine, Owner, set_machine};
use super::plan::MountPlan;
use super::process::{Process, Shared};
use crate::WorldReport;

/// The time after the last process within which everything must be on the disk, in ns: 600 s.
const DRAIN_NS: u64 = 600_000_000_000;
/// The longest time between two commits of the journal, in ns: 5 s.
const COMMIT_NS: u64 = 5_000_000_000;

/// The maximum number of rounds in which the remains of a mount are ended; one or two suffice so
/// far.
const CLOSE_ROUNDS_MAX: u32 = 100;

/// The end of a mount before the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// Everything that was not durable is lost.
    Power,
    /// The mount and its processes are killed; the kernel below is not.
    Mount,
}

/// Plays a world.
pub fn play(plan: &MountPlan, verbose: bool) -> WorldReport {
    let mut prng = Prng::new(plan.seed ^ 0x5eed);
    let machine = match Machine::new(plan, prng.split(), verbose) {
        Ok(machine) => Rc::new(machine),
        Err(error) => return WorldReport::unplayed(error.to_string()),
    };
    set_machine(Some(machine.clone()));
    let host: Rc<dyn Host> = machine.clone();
    let entered = enter(host);
    let mut world = World { machine: machine.clone(), plan, mount: None, prng, mounts: 0, answered: 0, checks: 0 };
    let outcome = world.play();
    world.end_mount(true);
    let (answered, crashes) = (world.answered, world.checks);
    drop(entered);
    set_machine(None);
    let (trace, problem) = (machine.trace.borrow(), machine.problem.borrow_mut().take());
    WorldReport {
        problem: problem.or(outcome.err()),
        hash: trace.hash(),
        events: trace.events(),
        answered,
        crashes,
        violations: 0,
        ended_ns: machine.now_ns.get(),
        log: trace.lines().to_vec(),
    }
}

struct World<'a> {
    machine: Rc<Machine>,
    plan: &'a MountPlan,
    mount: Option<Mount>,
    prng: Prng,
    /// Mounts so far.
    mounts: u32,
    answered: u64,
    /// Power failures, and checks of what one would leave.
    checks: u32,
}

/// A running mount.
struct Mount {
    gate: SimulatedGate,
    shared: Arc<Shared>,
}

impl World<'_> {
    /// Plays the world to its end.
    fn play(&mut self) -> Result<(), String> {
        for failure in self.failures() {
            self.start_mount()?;
            let lasts_ns = self.prng.between(50, 3_000) * 1_000_000;
            self.run(Some(self.machine.now_ns.get() + lasts_ns))?;
            match failure {
                Failure::Power => self.fail_power()?,
                Failure::Mount => self.kill_mount()?,
            }
        }
        self.start_mount()?;
        self.run(None)?;
        self.check_end()
    }

    fn failures(&mut self) -> Vec<Failure> {
        let (mut power, mut deaths) = (self.plan.power_failures, self.plan.deaths);
        let mut failures = Vec::new();
        while power + deaths > 0 {
            let is_power = self.prng.between(1, power + deaths) <= power;
            failures.push(if is_power { Failure::Power } else { Failure::Mount });
            *(if is_power { &mut power } else { &mut deaths }) -= 1;
        }
        failures
    }

    fn start_mount(&mut self) -> Result<(), String> {
        let (machine, plan) = (&self.machine, self.plan);
        let mut directories = Vec::new();
        for device in 1..=plan.disks {
            let fd = machine.open((device, DIRECTORY_KEY)).ok_or("no descriptor")?;
            directories.push((device, Arc::new(Backing::new(fd, device, DIRECTORY))));
        }
        let config = MountConfig { mount: plan.terms.clone(), ..MountConfig::default() };
        let gate = SimulatedGate::new(&directories[0].1, &config).map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared {
            gate: gate.gate.clone(),
            directories,
            files: Mutex::default(),
            names: plan.names,
            alive: AtomicUsize::new(plan.processes as usize),
            answered: AtomicUsize::new(0),
            operations: plan.operations,
            kills_permille: plan.kills_permille,
            caches_above: !plan.writes_back(),
        });
        self.mounts += 1;
        for process in 1..=plan.processes as u32 {
            let (shared, prng) = (shared.clone(), self.prng.split());
            let tid = self.mounts * 1000 + process;
            machine.spawn(
                Owner::Mount,
                Box::new(move || {
                    Process::new(&shared, tid, prng).live();
                    shared.alive.fetch_sub(1, Ordering::Relaxed);
                }),
            );
        }
        self.mount = Some(Mount { gate, shared });
        Ok(())
    }

    /// Runs the mount until a time, or until all processes have ended and all data are written.
    fn run(&mut self, until_ns: Option<u64>) -> Result<(), String> {
        let machine = self.machine.clone();
        let (mut check_ns, mut commit_ns, mut ended_ns) = (0, machine.now_ns.get(), None);
        loop {
            machine.run();
            let Some(Mount { gate, shared }) = &mut self.mount else { return Ok(()) };
            let gate_ns = gate.turn();
            let thread_ns = machine.run();
            let now_ns = machine.now_ns.get();
            if let Some(problem) = machine.problem.borrow().clone() {
                return Err(problem);
            }
            let is_over = shared.alive.load(Ordering::Relaxed) == 0;
            let is_done = is_over && gate.dirty_bytes() == 0 && machine.is_idle();
            if is_done || until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
                return Ok(());
            }
            if is_over && now_ns > *ended_ns.get_or_insert(now_ns) + DRAIN_NS {
                return Err(format!("{} bytes are dirty long after the last process", gate.dirty_bytes()));
            }
            if now_ns >= commit_ns {
                commit_ns = now_ns + self.prng.between(COMMIT_NS / 10, COMMIT_NS);
                (1..=self.plan.disks).for_each(|device| machine.start_commit(device));
            }
            if now_ns >= check_ns {
                check_ns = now_ns + self.prng.magnitude(1_000_000_000);
                self.check_power_failure()?;
            }
            let next_ns = machine.run().into_iter().chain(thread_ns).chain(until_ns).chain([gate_ns]).min();
            machine.now_ns.set(next_ns.unwrap_or(now_ns).clamp(now_ns, now_ns + COMMIT_NS));
        }
    }

    /// Checks what a power failure now may leave. Returns it for each disk.
    fn check_power_failure(&mut self) -> Result<Vec<(u64, Image)>, String> {
        self.checks += 1;
        let systems = self.machine.file_systems.borrow();
        let mut images = Vec::new();
        for (device, system) in &*systems {
            let image = system.after_power_failure(&mut self.prng);
            self.machine.judge.borrow().check(*device, &image)?;
            images.push((*device, image));
        }
        Ok(images)
    }

    fn fail_power(&mut self) -> Result<(), String> {
        let images = self.check_power_failure()?;
        self.machine.note(&[11], format_args!("power failure"));
        self.end_mount(true);
        for (device, image) in &images {
            self.machine.with_system(*device, |system| system.recover(image));
            self.machine.judge.borrow_mut().restart(*device, image);
        }
        Ok(())
    }

    /// Kills the mount and its processes. Whatever they wrote is in the page cache below.
    fn kill_mount(&mut self) -> Result<(), String> {
        self.machine.note(&[12], format_args!("the mount is killed"));
        self.end_mount(false);
        let judge = &mut *self.machine.judge.borrow_mut();
        for (device, system) in &mut *self.machine.file_systems.borrow_mut() {
            for (key, inode) in &mut system.inodes {
                judge.check_cache((*device, *key), inode.live())?;
                inode.leave(0..usize::MAX);
                // The errors that only the mount had recorded are lost with it.
                judge.note_reported((*device, *key), inode.errors.len(), false);
            }
        }
        Ok(())
    }

    /// Ends the mount and its processes, or with `all` the kernel too.
    fn end_mount(&mut self, all: bool) {
        self.machine.kill(all);
        if let Some(mount) = self.mount.take() {
            self.answered += mount.shared.answered.load(Ordering::Relaxed) as u64;
            let remains = mount.gate.remains();
            self.machine.discard(mount);
            // The gate starts the waiting requests when it is closed, which a killed one does not.
            self.machine.kill(all);
            self.end_remains(&remains, all);
        }
        self.machine.killed.borrow_mut().clear();
        self.machine.written_back.borrow_mut().clear();
    }

    /// Ends the requests that jobs of a killed mount have submitted, and those that these submit,
    /// which would keep the gate and its queues in memory. What they do counts as never done.
    fn end_remains(&self, remains: &Remains, all: bool) {
        let problem = self.machine.problem.borrow().clone();
        let mut rounds = 0;
        while !remains.is_empty() && rounds < CLOSE_ROUNDS_MAX {
            self.machine.closing(|| remains.close());
            self.machine.kill(all);
            rounds += 1;
        }
        *self.machine.problem.borrow_mut() = problem;
    }

    /// Checks that the mount has written everything that it had to write.
    fn check_end(&self) -> Result<(), String> {
        let systems = self.machine.file_systems.borrow();
        for (device, system) in systems.iter().filter(|_| self.plan.writes_back()) {
            for (key, inode) in system.inodes.iter().filter(|(_, inode)| inode.links > 0) {
                if let Some(page) = inode.forgotten_page() {
                    return Err(format!("page {page} of file {device}:{key} is dirty after the drain"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Sabotage;
    use super::*;

    #[test]
    fn the_first_worlds_of_the_mount_have_no_violation() {
        // The last three are worlds in which the model itself was once wrong.
        for seed in (0..40).chain([10_417, 13_567, 76_527]) {
            assert_eq!(play(&MountPlan::new(seed), false).problem, None, "seed {seed}");
        }
    }

    #[test]
    fn worlds_of_the_mount_with_elevators_that_break_rules_have_no_violation() {
        let wrong = crate::register_wrong_elevators();
        for (seed, kind) in (0..24).zip(wrong.iter().cycle()) {
            let mut plan = MountPlan::new(seed);
            plan.terms.elevator = Some(*kind);
            assert_eq!(play(&plan, false).problem, None, "seed {seed}, {}", kind.info().name);
        }
    }

    #[test]
    fn a_seed_determines_its_world_of_the_mount() {
        for seed in [3, 40, 41] {
            let [one, two] = [true, false].map(|verbose| play(&MountPlan::new(seed), verbose));
            assert_eq!((one.hash, one.events), (two.hash, two.events), "seed {seed}");
        }
    }

    #[test]
    fn every_deliberate_fault_of_the_mount_is_found_within_100_worlds() {
        let is_found = |sabotage| {
            let plan = |seed| MountPlan { sabotage: Some(sabotage), ..MountPlan::new(seed) };
            (0..100).any(|seed| play(&plan(seed), false).problem.is_some())
        };
        let missed: Vec<String> = Sabotage::ALL
            .into_iter()
            .filter(|sabotage| !is_found(*sabotage))
            .map(|sabotage| sabotage.to_string())
            .collect();
        assert_eq!(missed, [""; 0]);
    }
}
