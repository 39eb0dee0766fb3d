//! Insertion and removal of the module under test.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Context, Failure, Verdict};
use crate::device::{Device, Queue};
use crate::load::{Load, Setup};
use crate::plan::{self, Subject};
use crate::prng::Prng;
use crate::protocol::Counts;
use crate::{Outcome, module, system};

fn subject(context: &Context) -> Result<Subject, Failure> {
    context.plan.subject.clone().ok_or_else(|| Failure::Skipped("the plan has no module under test".to_owned()))
}

/// The module under test, if it is hoistway's and inserted.
pub fn own_subject(context: &Context) -> Result<Subject, Failure> {
    let subject = subject(context)?;
    let parameter = format!("/sys/module/{}/parameters/contexts", subject.name);
    match system::read(parameter) {
        Ok(_) => Ok(subject),
        Err(_) => Err(Failure::Skipped(format!("{} has no parameter contexts", subject.name))),
    }
}

/// Inserts the module. Every device then offers its elevators, each of which can be selected.
pub fn insert(context: &mut Context) -> Verdict {
    let subject = subject(context)?;
    context.insert_subject()?;
    let device = context.device(&plan::Device::Disk("vda".to_owned()), "none")?;
    let offered = device.queue().elevators()?;
    let missing: Vec<&str> = subject
        .elevators
        .iter()
        .map(String::as_str)
        .filter(|name| !offered.iter().any(|known| known == name))
        .collect();
    if !missing.is_empty() {
        return Err(Failure::Failed(format!(
            "not registered: {}; there are {}",
            missing.join(", "),
            offered.join(", ")
        )));
    }
    for elevator in &context.plan.elevators {
        device.queue().select(elevator)?;
    }
    Ok(Counts::from([("elevators".to_owned(), subject.elevators.len() as u64)]))
}

/// Tries to remove the module while one of its elevators is in use under load, which must fail;
/// while elevators are switched; and when no device uses it, which must succeed. Inserts it again.
pub fn remove(context: &mut Context, device: &plan::Device, race_seconds: u64) -> Verdict {
    let subject = subject(context)?;
    let device = context.device(device, "none")?;
    let mut counts = Counts::new();
    let load = Load::start(Setup::new(&device.path(), context.prng.number()))?;
    for elevator in &subject.elevators {
        device.queue().select(elevator)?;
        match system::remove_module(&subject.name) {
            Ok(()) => return Err(Failure::Failed(format!("the module was removed while {elevator} was in use"))),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EWOULDBLOCK)) => {}
            Err(error) => return Err(Failure::Failed(format!("removal while {elevator} was in use: {error}"))),
        }
        *counts.entry("refused_in_use".to_owned()).or_default() += 1;
    }
    race(context, &subject, &device, race_seconds, &mut counts)?;
    device.queue().select("none")?;
    context.insert_subject()?;
    remove_unused(&subject)?;
    let left = device.queue().elevators()?;
    if let Some(name) = subject.elevators.iter().find(|name| left.contains(name)) {
        return Err(Failure::Failed(format!("{name} is still offered after the removal of the module")));
    }
    super::add(&mut counts, load.finish()?);
    context.insert_subject()?;
    Ok(counts)
}

/// Removes and inserts the module in a thread, while another one switches elevators: each operation
/// may fail as long as the other is in progress, and neither may harm the load.
fn race(context: &mut Context, subject: &Subject, device: &Device, seconds: u64, counts: &mut Counts) -> Outcome<()> {
    let stop = AtomicBool::new(false);
    let (removed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let (queue, elevators): (Queue, Vec<String>) = (device.queue(), context.plan.elevators.clone());
    let mut prng = Prng::new(context.prng.number());
    thread::scope(|scope| {
        let switcher = scope.spawn(|| {
            let mut switches = 0u64;
            while !stop.load(Ordering::SeqCst) {
                let elevator = prng.pick(&elevators).map_or("none", String::as_str);
                switches += u64::from(queue.select(elevator).is_ok());
                let _ = queue.select("none");
                thread::sleep(Duration::from_millis(prng.below(5)));
            }
            switches
        });
        let begun = Instant::now();
        let mut outcome = Ok(());
        while begun.elapsed() < Duration::from_secs(seconds) && outcome.is_ok() {
            if system::remove_module(&subject.name).is_ok() {
                removed.fetch_add(1, Ordering::SeqCst);
                outcome = context.insert_subject();
            } else {
                refused.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
            }
        }
        stop.store(true, Ordering::SeqCst);
        let switches = switcher.join().map_err(|_| "the switching thread panicked".to_owned())?;
        counts.insert("race_switches".to_owned(), switches);
        counts.insert("race_removals".to_owned(), removed.load(Ordering::SeqCst));
        counts.insert("race_refusals".to_owned(), refused.load(Ordering::SeqCst));
        outcome
    })
}

/// Removes the module when no device uses it. The kernel may free the last elevator a moment after
/// the switch.
pub fn remove_unused(subject: &Subject) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        match system::remove_module(&subject.name) {
            Ok(()) => break,
            Err(error) if begun.elapsed() > Duration::from_secs(5) => {
                return Err(format!("the module cannot be removed although no device uses it: {error}"));
            }
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
    if module::is_inserted(&subject.name) {
        return Err(format!("{} is still in /proc/modules after its removal", subject.name));
    }
    Ok(())
}
