//! The campaigns of the short and of the full test.

use super::build;
use hoistway_guest::plan::{Campaign, CostLoad, Device, Fault, Plan, Step, Subject};

/// The elevators that the module under test registers.
pub const REGISTERED: [&str; 8] =
    ["cfq", "anticipatory", "fiops", "cfq-bw", "cfq-wf2q", "bfq-v0", "cfq-v3", "paternoster"];
/// The elevators of the kernel that campaigns switch to besides.
pub const OWN: [&str; 4] = ["none", "mq-deadline", "bfq", "kyber"];

/// All elevators, by the library's names, which the parameter `elevators` of the module takes.
pub const ALL: [&str; 18] = [
    "noop",
    "deadline",
    "anticipatory",
    "linus",
    "sfq",
    "cfq-v1",
    "cfq-v2",
    "cfq-v3",
    "cfq-tree",
    "cfq",
    "cfq-bw",
    "cfq-wf2q",
    "bfq-v0",
    "bfq",
    "fiops",
    "mq-deadline",
    "kyber",
    "paternoster",
];

/// The name under which the module registers an elevator: with a prefix if the kernel uses the name
/// itself.
pub fn registered_name(elevator: &str) -> String {
    let is_taken = ["noop", "deadline", "mq-deadline", "bfq", "kyber"].contains(&elevator);
    if is_taken { format!("h-{elevator}") } else { elevator.to_owned() }
}

/// The module under test with all elevators.
pub fn all() -> Subject {
    Subject {
        name: build::MODULE.to_owned(),
        parameters: format!("elevators={}", ALL.join(",")),
        elevators: ALL.iter().map(|name| registered_name(name)).collect(),
    }
}

/// The module under test with the elevators that it registers by default.
pub fn registered() -> Subject {
    Subject {
        name: build::MODULE.to_owned(),
        parameters: String::new(),
        elevators: REGISTERED.map(str::to_owned).to_vec(),
    }
}

/// The plan of some campaigns after the insertion of the module, each with its name.
pub fn of_campaigns(choice: &Choice, limit_seconds: u64, campaigns: impl Iterator<Item = (String, Campaign)>) -> Plan {
    let mut steps = vec![step("insert", 60, Campaign::Insert)];
    steps.extend(campaigns.map(|(name, campaign)| step(&name, limit_seconds, campaign)));
    plan(choice, steps)
}

/// The plan of recorded runs: a half of them on the slow disk, the others on a disk with several
/// queues and on null_blk.
pub fn record(choice: &Choice, runs: u64) -> Plan {
    let quarter = runs / 4;
    let shares = [("vda", disk("vda"), runs - 2 * quarter), ("vdb", disk("vdb"), quarter), ("null_blk", NULL, quarter)];
    let mut steps = vec![step("insert", 60, Campaign::Insert)];
    for (name, device, runs) in shares {
        steps.push(step(&format!("record {name}"), 60 + runs * 6, Campaign::Record { device, runs }));
    }
    plan(choice, steps)
}

/// The loads of the measurement of costs, with their names in the table.
pub const COST_LOADS: [(&str, CostLoad); 3] = [
    ("1 at a time", CostLoad::Synchronous { threads: 1 }),
    ("batches of 32", CostLoad::Batches { depth: 32 }),
    ("32 threads", CostLoad::Synchronous { threads: 32 }),
];

/// The plan of the measurement of costs: a step for each load, of its name.
pub fn cost(choice: &Choice, requests: u64) -> Plan {
    let mut steps = vec![step("insert", 300, Campaign::Insert)];
    for (name, load) in COST_LOADS {
        // Requests queue if the device takes fewer than there are.
        let device = match load {
            CostLoad::Synchronous { threads: 1 } => Device::Null { queues: 1, depth: 64, completion_ns: 0 },
            CostLoad::Batches { .. } => Device::Null { queues: 1, depth: 64, completion_ns: 0 },
            CostLoad::Synchronous { .. } => Device::Null { queues: 1, depth: 4, completion_ns: 5_000 },
        };
        let campaign = Campaign::Cost { device, elevators: choice.elevators.clone(), requests, load };
        steps.push(step(name, 3600, campaign));
    }
    Plan { watchdog: false, ..plan(choice, steps) }
}

/// The choices from which a plan is made.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The module under test.
    pub subject: Option<Subject>,
    /// The elevators that devices are switched among.
    pub elevators: Vec<String>,
    pub full: bool,
    pub seed: u64,
}

/// A device that is fast and has several queues.
pub const NULL: Device = Device::Null { queues: 2, depth: 8, completion_ns: 50_000 };
/// The modules that are inserted at boot.
pub const BOOT: [&str; 6] = ["virtio_pci", "virtio_blk", "configfs", "mq_deadline", "bfq", "kyber_iosched"];

/// The plan of a test.
pub fn test(choice: &Choice) -> Plan {
    let steps = if choice.full { full(choice) } else { short(choice) };
    plan(choice, steps)
}

/// The plan with one planted fault, which the host must find.
pub fn planted(choice: &Choice, fault: Fault, watchdog: bool) -> Plan {
    let mut steps = vec![step("insert", 30, Campaign::Insert)];
    let limit = if matches!(fault, Fault::Leak) { 90 } else { 10 };
    steps.push(step("planted", if matches!(fault, Fault::Hang) { 5 } else { limit }, Campaign::Planted { fault }));
    Plan { watchdog, ..plan(choice, steps) }
}

fn plan(choice: &Choice, steps: Vec<Step>) -> Plan {
    Plan {
        boot: BOOT.iter().filter(|name| !is_subject(choice, name)).map(|name| (*name).to_owned()).collect(),
        subject: choice.subject.clone(),
        elevators: choice.elevators.clone(),
        steps,
        seed: choice.seed,
        watchdog: true,
        ..Plan::default()
    }
}

fn is_subject(choice: &Choice, name: &str) -> bool {
    choice.subject.as_ref().is_some_and(|subject| subject.name == name)
}

fn step(name: &str, limit_seconds: u64, campaign: Campaign) -> Step {
    Step { name: name.to_owned(), limit_seconds, campaign }
}

fn disk(name: &str) -> Device {
    Device::Disk(name.to_owned())
}

/// The elevators that are tested one at a time, in turn.
fn tested(choice: &Choice) -> Vec<String> {
    match &choice.subject {
        Some(subject) if !subject.elevators.is_empty() => subject.elevators.clone(),
        _ => choice.elevators.clone(),
    }
}

/// Campaigns of about two minutes in all. The seed chooses which elevator each of them has.
fn short(choice: &Choice) -> Vec<Step> {
    let elevators = tested(choice);
    let mut next = choice.seed as usize;
    let mut elevator = || {
        next += 1;
        elevators.get(next % elevators.len().max(1)).cloned().unwrap_or_default()
    };
    let scsi = Device::Scsi { queues: 2, depth: 16 };
    let switch = |device, switches| Campaign::Switch { device, switches, pause_ms: 100 };
    vec![
        step("insert", 60, Campaign::Insert),
        step("switch vda", 90, switch(disk("vda"), 40)),
        step("switch vdb", 90, switch(disk("vdb"), 25)),
        step("switch null_blk", 90, switch(NULL, 25)),
        step("switch scsi", 90, switch(scsi, 12)),
        step("switch loop", 90, switch(Device::Loop, 8)),
        own("verify null_blk", elevator(), |elevator| Campaign::Verify { device: NULL, elevator, seconds: 4 }),
        own("faults", elevator(), |elevator| Campaign::Faults { elevator, seconds: 1, hosts: false }),
        step("unplug", 90, Campaign::Unplug { rounds: 2 }),
        own("processes", elevator(), |elevator| processes(disk("vdb"), elevator, 128, 6, false)),
        own("killed processes", elevator(), |elevator| processes(NULL, elevator, 60, 40, true)),
        own("flushes", elevator(), |elevator| flushes(disk("vda"), elevator, 24, 12)),
        own("memory", elevator(), |elevator| memory(disk("vdb"), elevator, 4)),
        own("groups", elevator(), |elevator| Campaign::Groups { device: disk("vdb"), elevator, seconds: 4 }),
        step("record vda", 90, Campaign::Record { device: disk("vda"), runs: tested(choice).len() as u64 }),
        step("blktrace", 90, Campaign::Blktrace { device: disk("vda") }),
        step("bad input", 90, Campaign::Refusals),
        step("remove", 90, Campaign::Remove { device: disk("vdb"), race_seconds: 3 }),
        step("leak", 120, Campaign::Leak { device: disk("vdb"), cycles: 3 }),
    ]
}

/// A campaign with one elevator, which is part of its name.
fn own(name: &str, elevator: String, campaign: impl FnOnce(String) -> Campaign) -> Step {
    step(&format!("{name} {elevator}"), 90, campaign(elevator))
}

/// A thousand switches of every device, and every other campaign with every elevator.
fn full(choice: &Choice) -> Vec<Step> {
    let scsi = Device::Scsi { queues: 2, depth: 16 };
    let single = Device::Null { queues: 1, depth: 1, completion_ns: 200_000 };
    let mut steps = vec![step("insert", 60, Campaign::Insert)];
    for (name, device) in [
        ("vda", disk("vda")),
        ("vdb", disk("vdb")),
        ("null_blk", NULL),
        ("null_blk depth 1", single),
        ("scsi", scsi),
        ("loop", Device::Loop),
    ] {
        let switches = if matches!(device, Device::Loop) { 200 } else { 1000 };
        let campaign = Campaign::Switch { device, switches, pause_ms: 100 };
        steps.push(step(&format!("switch {name}"), 1200, campaign));
    }
    for elevator in tested(choice) {
        let own = |what: &str| format!("{what} {elevator}");
        let named = || elevator.clone();
        let (vda, vdb) = (disk("vda"), disk("vdb"));
        steps.extend([
            step(&own("verify vda"), 120, Campaign::Verify { device: vda.clone(), elevator: named(), seconds: 15 }),
            step(&own("verify null_blk"), 120, Campaign::Verify { device: NULL, elevator: named(), seconds: 10 }),
            step(&own("faults"), 300, Campaign::Faults { elevator: named(), seconds: 6, hosts: true }),
            step(&own("processes"), 600, processes(vdb.clone(), named(), 1024, 4, false)),
            step(&own("killed processes"), 300, processes(NULL, named(), 200, 60, true)),
            step(&own("flushes"), 300, flushes(vda.clone(), named(), 48, 20)),
            step(&own("memory"), 300, memory(vdb.clone(), named(), 12)),
            step(&own("groups"), 300, Campaign::Groups { device: vdb.clone(), elevator: named(), seconds: 12 }),
            step(&own("fio"), 180, Campaign::Fio { device: vdb, elevator: named(), seconds: 20 }),
        ]);
    }
    steps.push(step("blktrace", 90, Campaign::Blktrace { device: disk("vda") }));
    steps.push(step("bad input", 90, Campaign::Refusals));
    steps.push(step("unplug", 600, Campaign::Unplug { rounds: 30 }));
    steps.push(step("remove", 300, Campaign::Remove { device: disk("vdb"), race_seconds: 30 }));
    steps.push(step("leak", 900, Campaign::Leak { device: disk("vdb"), cycles: 60 }));
    steps
}

fn processes(device: Device, elevator: String, processes: u64, operations: u64, kill: bool) -> Campaign {
    Campaign::Processes { device, elevator, processes, operations, kill }
}

fn flushes(device: Device, elevator: String, processes: u64, operations: u64) -> Campaign {
    Campaign::Flushes { device, elevator, processes, operations }
}

fn memory(device: Device, elevator: String, seconds: u64) -> Campaign {
    Campaign::Memory { device, elevator, seconds, limit_mib: 24 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn choice(full: bool) -> Choice {
        let elevators: Vec<String> = REGISTERED.iter().map(|name| (*name).to_owned()).collect();
        let subject = Subject { name: "m".to_owned(), parameters: String::new(), elevators: elevators.clone() };
        Choice { subject: Some(subject), elevators, full, seed: 1 }
    }

    #[test]
    fn the_names_of_campaigns_differ() {
        for full in [false, true] {
            let plan = test(&choice(full));
            let names: BTreeSet<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names.len(), plan.steps.len());
        }
    }

    #[test]
    fn the_full_test_has_a_thousand_switches_and_every_elevator() {
        let plan = test(&choice(true));
        let thousand =
            plan.steps.iter().filter(|step| matches!(step.campaign, Campaign::Switch { switches: 1000, .. }));
        assert_eq!(thousand.count(), 5);
        for elevator in REGISTERED {
            assert!(plan.steps.iter().any(|step| step.name == format!("verify vda {elevator}")), "{elevator}");
        }
    }

    #[test]
    fn a_module_of_the_kernel_under_test_is_not_inserted_at_boot() {
        let subject = Subject { name: "bfq".to_owned(), ..Subject::default() };
        let plan = test(&Choice { subject: Some(subject), ..choice(false) });
        assert!(!plan.boot.contains(&"bfq".to_owned()) && plan.boot.contains(&"virtio_blk".to_owned()));
    }
}
