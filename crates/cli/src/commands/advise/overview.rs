//! `hoistway advise` without a workload: prints facts about devices.

use anyhow::Result;
use hoistway_advise::{DeviceOverview, Overview, Subject, Use};
use hoistway_machine::devices;

use super::print_json;
use super::request::{root, usage};
use crate::cli::AdviseArgs;
use crate::failure::Exit;
use crate::output::Out;

/// Prints one device or all.
pub fn run(args: &AdviseArgs, subject: Option<Subject>, out: &mut Out) -> Result<Exit> {
    refuse_workload_options(args)?;
    let root = root(args);
    let all = devices(&root)?;
    let overview = Overview::new(&root, &all, subject.as_ref().map(|subject| &subject.device));
    if args.json {
        print_json(&overview, out)?;
        return Ok(Exit::Success);
    }
    if overview.devices.is_empty() {
        out.line("This machine has no block device.")?;
    }
    print(&overview.devices, subject.is_some(), out)?;
    out.paragraph(0, &overview.module)?;
    let has_choice = |device: &&DeviceOverview| device.schedulers.iter().any(|name| name != "none");
    let name = overview.devices.iter().find(has_choice).map_or("DEVICE", |device| &device.name);
    let uses = Use::ALL.map(Use::name).join(", ");
    out.paragraph(0, &format!("Which scheduler is best depends on the workload. Name it: `hoistway advise {name} --for USE` ({uses}), `--job FILE.fio`, or best of all `--trace FILE` with a recording by `hoistway trace record {name} -o FILE`."))?;
    Ok(Exit::Success)
}

/// Refuses options that need a workload.
fn refuse_workload_options(args: &AdviseArgs) -> Result<()> {
    let option = match () {
        () if args.tune => "--tune",
        () if args.apply => "--apply",
        () if args.report.is_some() => "--report",
        () if args.objective.is_some() => "--objective",
        () if args.all => "--all",
        () if args.drive.is_some() => "--drive",
        () => return Ok(()),
    };
    Err(usage(format!("{option} needs a workload: name it with --for, --job or --trace")))
}

/// Prints devices. A device whose texts repeat those of an earlier one refers to it; loop devices
/// without a scheduler share one sentence, because a machine may have dozens.
fn print(devices: &[DeviceOverview], is_named: bool, out: &mut Out) -> Result<()> {
    let is_idle_loop =
        |device: &&DeviceOverview| !is_named && device.is_loop && device.scheduler.as_deref() == Some("none");
    let (idle, others): (Vec<&DeviceOverview>, Vec<&DeviceOverview>) = devices.iter().partition(is_idle_loop);
    for (index, device) in others.iter().enumerate() {
        let earlier = others[..index].iter().find(|earlier| earlier.reads_as(device));
        match earlier.filter(|_| !is_named) {
            Some(earlier) => {
                out.heading(&device.line)?;
                out.paragraph(2, &format!("as {}", earlier.name))?;
                out.line("")?;
            }
            None => print_device(device, out)?,
        }
    }
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|device| device.name.as_str()).collect();
        out.paragraph(
            0,
            &format!(
                "{}: loop devices without a scheduler: the queues of the drives that hold the files are those that count.",
                names.join(", ")
            ),
        )?;
        out.line("")?;
    }
    Ok(())
}

fn print_device(device: &DeviceOverview, out: &mut Out) -> Result<()> {
    out.heading(&device.line)?;
    let tunables: Vec<String> = device.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let tunables = if tunables.is_empty() { String::new() } else { format!(" with {}", tunables.join(" ")) };
    if let Some(scheduler) = &device.scheduler {
        let others: Vec<&str> =
            device.schedulers.iter().filter(|name| *name != scheduler).map(String::as_str).collect();
        let others = if others.is_empty() { String::new() } else { format!("; it could be {}", others.join(", ")) };
        out.paragraph(2, &format!("{scheduler} is set{tunables}{others}"))?;
    }
    device.said.iter().try_for_each(|said| out.paragraph(2, said))?;
    // The remarks name the queue below a volume already.
    let is_repeated = |about: &str| device.schedulers.len() < 2 && about == "layers";
    for warning in device.warnings.iter().filter(|warning| !is_repeated(warning.about)) {
        out.paragraph(2, &format!("- {}", warning.text))?;
    }
    out.line("")?;
    Ok(())
}
