//! What can be said of devices while nobody has said what they are to do.

use anyhow::Result;
use hoistway_advise::facts::{self, Standing};
use hoistway_advise::{Use, scheduler_name};
use hoistway_machine::{BlockDevice, Kind, Queue, devices, queues_below, why_no_choice};

use super::subject::{self, Subject, line};
use super::usage;
use crate::cli::AdviseArgs;
use crate::failure::Exit;
use crate::output::Out;

/// One device, or all.
pub fn run(args: &AdviseArgs, subject: Option<Subject>, out: &mut Out) -> Result<Exit> {
    let option = match () {
        () if args.tune => Some("--tune"),
        () if args.apply => Some("--apply"),
        () if args.report.is_some() => Some("--report"),
        () if args.objective.is_some() => Some("--objective"),
        () if args.all => Some("--all"),
        () if args.drive.is_some() => Some("--drive"),
        () => None,
    };
    if let Some(option) = option {
        return Err(usage(format!(
            "{option} needs a workload: say what the device is to do with --for, --job or --trace"
        )));
    }
    let root = subject::root(args);
    let all = devices(&root)?;
    let mut shown: Vec<&BlockDevice> = match &subject {
        Some(subject) => vec![&subject.device],
        None => all
            .iter()
            .filter(|device| device.is_present() && !matches!(device.kind, Kind::Partition | Kind::Rom))
            .collect(),
    };
    // Drives before what is made of them.
    shown.sort_by_key(|device| device.kind.is_stacked() || device.kind.is_memory());
    let entries: Vec<Entry> = shown.iter().map(|device| Entry::new(&root, &all, device)).collect();
    if args.json {
        out.json(&serde_json::json!({ "schema": 1, "devices": entries }))?;
        return Ok(Exit::Success);
    }
    if entries.is_empty() {
        out.line("This machine has no block device.")?;
    }
    print(&entries, subject.is_some(), out)?;
    let name = shown
        .iter()
        .find(|device| device.queue.as_ref().is_some_and(Queue::has_choice))
        .map_or("DEVICE", |device| &device.name);
    let uses = Use::ALL.map(Use::name).join(", ");
    out.paragraph(0, &format!("Which scheduler is best hangs on what a device is to do. Say it: `hoistway advise {name} --for USE` ({uses}), `--job FILE.fio`, or best of all `--trace FILE` with what `hoistway trace record {name} -o FILE` has recorded of it."))?;
    Ok(Exit::Success)
}

/// Prints them: of those of which the same is to be said that was said before, only so much; and files as devices without a scheduler, of which a machine
/// may have dozens, in one sentence.
fn print(entries: &[Entry], is_named: bool, out: &mut Out) -> Result<()> {
    let is_quiet = |entry: &&Entry| !is_named && entry.is_loop && entry.scheduler.as_deref() == Some("none");
    let (quiet, told): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_quiet);
    for (place, entry) in told.iter().enumerate() {
        let before = told[..place].iter().find(|before| before.says_the_same(entry));
        match before.filter(|_| !is_named) {
            Some(before) => {
                out.heading(&entry.line)?;
                out.paragraph(2, &format!("as {}", before.name))?;
                out.line("")?;
            }
            None => entry.print(out)?,
        }
    }
    if !quiet.is_empty() {
        let names: Vec<&str> = quiet.iter().map(|entry| entry.name.as_str()).collect();
        out.paragraph(
            0,
            &format!(
                "{}: files as devices, without a scheduler: the queues of the drives that the files lie on are those that count.",
                names.join(", ")
            ),
        )?;
        out.line("")?;
    }
    Ok(())
}

/// What there is to say of a device.
#[derive(serde::Serialize)]
struct Entry {
    name: String,
    line: String,
    #[serde(skip)]
    is_loop: bool,
    scheduler: Option<String>,
    schedulers: Vec<String>,
    /// What differs from the scheduler's defaults.
    tunables: Vec<(String, i64)>,
    model: Option<String>,
    standing: Option<Standing>,
    said: Vec<String>,
    warnings: Vec<facts::Warning>,
}

impl Entry {
    fn new(root: &hoistway_machine::Root, all: &[BlockDevice], device: &BlockDevice) -> Entry {
        let queue = device.queue.clone().unwrap_or_default();
        let now = facts::now(device, &queue);
        let has_choice = queue.has_choice();
        let model = facts::model_under(root, all, device).filter(|_| has_choice);
        let mut said = Vec::new();
        match (has_choice, &model) {
            (true, Some(model)) => said.push(format!("simulated as {}: {}", model.profile, model.why)),
            (true, None) => said.push("no drive stands behind it: there is nothing to simulate".into()),
            (false, _) => said.push(no_choice(root, all, device)),
        }
        if let Some(unknown) = &now.unknown_scheduler {
            said.push(format!(
                "{unknown} is not known here: what is simulated in its place is {}",
                scheduler_name(now.choice.kind)
            ));
        }
        Entry {
            name: device.name.clone(),
            line: line(device),
            is_loop: device.kind == Kind::Loop,
            scheduler: queue.scheduler.clone(),
            schedulers: queue.schedulers.clone(),
            tunables: now.choice.tunables.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            model: model.as_ref().map(|model| model.profile.to_owned()),
            standing: model.as_ref().map(|model| model.standing),
            said,
            warnings: facts::warnings(root, all, device),
        }
    }

    /// Whether what is said of two devices differs in their names alone.
    fn says_the_same(&self, other: &Entry) -> bool {
        let texts = |entry: &Entry| {
            let warnings = entry.warnings.iter().map(|warning| &warning.text);
            let all = std::iter::once(&entry.line).chain(&entry.said).chain(warnings);
            all.map(|text| text.replace(&entry.name, "it")).collect::<Vec<_>>()
        };
        (&self.scheduler, &self.schedulers, &self.tunables) == (&other.scheduler, &other.schedulers, &other.tunables)
            && texts(self) == texts(other)
    }

    fn print(&self, out: &mut Out) -> Result<()> {
        out.heading(&self.line)?;
        let tunables: Vec<String> = self.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let tunables = if tunables.is_empty() { String::new() } else { format!(" with {}", tunables.join(" ")) };
        if let Some(scheduler) = &self.scheduler {
            let others: Vec<&str> =
                self.schedulers.iter().filter(|name| *name != scheduler).map(String::as_str).collect();
            let others = if others.is_empty() { String::new() } else { format!("; it could be {}", others.join(", ")) };
            out.paragraph(2, &format!("{scheduler} is set{tunables}{others}"))?;
        }
        self.said.iter().try_for_each(|said| out.paragraph(2, said))?;
        // What lies below was said of volumes already.
        let warnings = self.warnings.iter().filter(|warning| !(self.schedulers.len() < 2 && warning.about == "layers"));
        for warning in warnings {
            out.paragraph(2, &format!("- {}", warning.text))?;
        }
        out.line("")?;
        Ok(())
    }
}

/// Why there is nothing to choose.
fn no_choice(root: &hoistway_machine::Root, all: &[BlockDevice], device: &BlockDevice) -> String {
    if device.kind.is_memory() {
        return "memory: there is no arm, and nothing to schedule".into();
    }
    let below: Vec<&str> = queues_below(root, all, device)
        .into_iter()
        .filter(|below| below.name != device.name)
        .map(|below| below.name.as_str())
        .collect();
    match below.as_slice() {
        [] => format!("no scheduler to choose: {}", why_no_choice(root, device)),
        [below] => format!("no scheduler of its own: the queue that counts is that of {below}"),
        below => format!("no scheduler of its own: the queues that count are those of {}", below.join(", ")),
    }
}
