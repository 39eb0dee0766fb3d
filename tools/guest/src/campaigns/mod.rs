//! The campaigns: each drives a device in its own way and returns its figures, or what failed.

mod blktrace;
mod cgroup;
mod cost;
mod faults;
mod fio;
mod job;
mod leak;
mod locks;
mod planted;
mod player;
mod processes;
pub mod record;
mod refusals;
mod removal;
mod verify;
mod walk;

use crate::device::Device;
use crate::module::Modules;
use crate::plan::{self, Campaign, Plan};
use crate::prng::Prng;
use crate::protocol::Counts;
use crate::{Outcome, system};

/// Why a campaign has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A check failed.
    Failed(String),
    /// The kernel lacks what the campaign needs.
    Skipped(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Failed(message)
    }
}

/// The figures of a campaign that passed, or why there are none.
pub type Verdict = Result<Counts, Failure>;

/// The data that campaigns share.
#[derive(Clone, Debug)]
pub struct Context {
    /// The plan.
    pub plan: Plan,
    /// The modules in the initial RAM disk.
    pub modules: Modules,
    /// The random choices of the campaign.
    pub prng: Prng,
    /// The tunables and the number of requests that were set since the last switch of an elevator.
    pub settings: Vec<String>,
}

impl Context {
    /// Opens a device and selects an elevator.
    fn device(&self, device: &plan::Device, elevator: &str) -> Result<Device, Failure> {
        let opened = Device::open(device, &self.modules)?;
        let opened = opened.ok_or_else(|| Failure::Skipped(format!("the kernel has no driver for {device:?}")))?;
        opened.queue().select(elevator)?;
        Ok(opened)
    }

    /// Inserts the module under test; None in the plan is no error.
    fn insert_subject(&self) -> Outcome<()> {
        match &self.plan.subject {
            Some(subject) => self.modules.insert(&subject.name, &subject.parameters),
            None => Ok(()),
        }
    }
}

/// Runs a campaign.
pub fn run(campaign: &Campaign, context: &mut Context) -> Verdict {
    match campaign {
        Campaign::Insert => removal::insert(context),
        Campaign::Verify { device, elevator, seconds } => verify::verify(context, device, elevator, *seconds),
        Campaign::Switch { device, switches, pause_ms } => verify::switch(context, device, *switches, *pause_ms),
        Campaign::Processes { device, elevator, processes, operations, kill } => {
            let load = processes::Load { processes: *processes, operations: *operations, kill: *kill, stable: false };
            processes::run(context, device, elevator, load)
        }
        Campaign::Flushes { device, elevator, processes, operations } => {
            let load = processes::Load { processes: *processes, operations: *operations, kill: false, stable: true };
            processes::run(context, device, elevator, load)
        }
        Campaign::Memory { device, elevator, seconds, limit_mib } => {
            cgroup::memory(context, device, elevator, *seconds, *limit_mib)
        }
        Campaign::Groups { device, elevator, seconds } => cgroup::groups(context, device, elevator, *seconds),
        Campaign::Faults { elevator, seconds, hosts } => faults::faults(context, elevator, *seconds, *hosts),
        Campaign::Unplug { rounds } => faults::unplug(context, *rounds),
        Campaign::LockStat { device, elevators, seconds } => locks::run(context, device, elevators, *seconds),
        Campaign::Fio { device, elevator, seconds } => fio::run(context, device, elevator, *seconds),
        Campaign::Refusals => refusals::run(context),
        Campaign::Blktrace { device } => blktrace::run(context, device),
        Campaign::Remove { device, race_seconds } => removal::remove(context, device, *race_seconds),
        Campaign::Leak { device, cycles } => leak::run(context, device, *cycles, None),
        Campaign::Cost { device, elevators, requests, load } => cost::run(context, device, elevators, *requests, *load),
        Campaign::Player(setup) => player::run(context, setup),
        Campaign::Job(setup) => job::run(context, setup),
        Campaign::Record { device, runs } => record::record(context, device, *runs),
        Campaign::Planted { fault } => planted::run(context, *fault),
    }
}

/// Adds the figures of one part of a campaign to those of all.
fn add(total: &mut Counts, part: Counts) {
    for (name, figure) in part {
        let sum = total.entry(name.clone()).or_default();
        *sum = if name.starts_with("longest") { figure.max(*sum) } else { *sum + figure };
    }
}

/// Fails if a request took longer than any elevator may delay it.
fn require_progress(counts: &Counts, most_ms: u64) -> Outcome<()> {
    match counts.get("longest_ms") {
        Some(longest) if *longest > most_ms => Err(format!("a request took {longest} ms; {most_ms} ms is the most")),
        _ => Ok(()),
    }
}

/// The release of the kernel.
pub fn release() -> String {
    system::read("/proc/sys/kernel/osrelease").unwrap_or_default()
}
