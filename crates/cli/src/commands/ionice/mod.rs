//! `hoistway ionice`: shows, sets and explains I/O priorities; the options are those of util-linux.

mod render;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, bail};
use hoistway_machine::priority::{self, LEVELS, NORMAL_LEVEL};
use hoistway_machine::{Class, Priority, PriorityExplainer, PriorityReport, PriorityTarget, devices};

use super::devices::{find_device, root};
use crate::cli::IoniceArgs;
use crate::failure::{self, Exit};
use crate::names::did_you_mean;
use crate::output::Out;

/// The exit codes of shells for a command that does not exist, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Shows or sets priorities, runs a command with a priority, or explains the effect of one.
pub fn run(args: &IoniceArgs, out: &mut Out) -> Result<Exit> {
    let args = &match args.clone().with_options_behind() {
        Ok(args) => args,
        Err(error) => {
            // Standard error is closed: there is no other place for the message.
            let _ = error.print();
            return Ok(Exit::Failed);
        }
    };
    let wanted = wanted(args)?;
    let targets = targets(args)?;
    if args.explain {
        return explain(args, wanted, &targets, out);
    }
    match (&targets[..], &args.rest[..]) {
        ([], []) if wanted.is_some() => {
            bail!("a class or a level is for a command to run, or for processes (-p, -P, -u): see --help")
        }
        ([], []) => out.line(priority::get(PriorityTarget::Process(0))?)?,
        ([], command) => return run_command(args, wanted.unwrap_or(NORMAL), command, out),
        (targets, _) => show_or_set(args, wanted, targets, out)?,
    }
    Ok(Exit::Success)
}

/// The priority of a command without options.
const NORMAL: Priority = Priority { class: Class::BestEffort, level: NORMAL_LEVEL, hint: 0 };

/// The requested priority, if any.
fn wanted(args: &IoniceArgs) -> Result<Option<Priority>> {
    if args.class.is_none() && args.level.is_none() {
        return Ok(None);
    }
    let class = match args.class.as_deref() {
        None => Class::BestEffort,
        Some(text) => Class::from_text(text).ok_or_else(|| {
            let nearest = did_you_mean(text, Class::ALL.iter().map(|class| class.name()));
            anyhow::anyhow!(
                "there is no class `{text}`{nearest}; there are none, realtime, best-effort and idle, or 0 to 3"
            )
        })?,
    };
    let level = match args.level.as_deref() {
        None => NORMAL_LEVEL,
        Some(text) => match text.parse::<u8>() {
            Ok(level) if level < LEVELS => level,
            _ => bail!("`{text}` is no level: expected 0 (best) to 7"),
        },
    };
    if args.level.is_some() && !class.has_levels() {
        failure::print_message(&format!("warning: the class {} has no levels; {level} is ignored", class.name()));
    }
    Ok(Some(Priority::new(class, level)))
}

/// The processes named by the options; empty if a command is to be run.
fn targets(args: &IoniceArgs) -> Result<Vec<PriorityTarget>> {
    type TargetOption<'a> = (&'a Option<String>, &'static str, fn(u32) -> PriorityTarget);
    let options: [TargetOption<'_>; 3] = [
        (&args.pid, "process", PriorityTarget::Process),
        (&args.pgid, "process group", PriorityTarget::Group),
        (&args.uid, "user", PriorityTarget::User),
    ];
    let given: Vec<_> =
        options.into_iter().filter_map(|(first, what, target)| Some((first.as_deref()?, what, target))).collect();
    let (first, what, target) = match given[..] {
        // --explain takes process ids with and without -p.
        [] if args.explain => (None, "process", PriorityTarget::Process as fn(u32) -> PriorityTarget),
        [] => return Ok(Vec::new()),
        [(first, what, target)] => (Some(OsStr::new(first)), what, target),
        _ => bail!("only one of -p, -P and -u can be given"),
    };
    let numbers = first.into_iter().chain(args.rest.iter().map(OsString::as_os_str));
    let read = |text: &OsStr| match text.to_str().and_then(|text| text.parse::<u32>().ok()) {
        Some(number) if number <= i32::MAX as u32 => Ok(target(number)),
        _ if what == "user" => {
            bail!("`{}` is no user id: `id -u NAME` prints one", text.display())
        }
        _ => bail!("`{}` is no number of a {what}", text.display()),
    };
    numbers.map(read).collect()
}

/// Prints or sets the priorities of processes. Ends at the first failure unless failures are
/// ignored.
fn show_or_set(args: &IoniceArgs, wanted: Option<Priority>, targets: &[PriorityTarget], out: &mut Out) -> Result<()> {
    for target in targets {
        match wanted {
            None => out.line(priority::get(*target)?)?,
            Some(priority) => match priority::set(*target, priority) {
                Err(_) if args.ignore => {}
                done => done?,
            },
        }
    }
    Ok(())
}

/// Replaces this process by the command. Returns only if the command cannot be run.
fn run_command(args: &IoniceArgs, priority: Priority, command: &[OsString], out: &mut Out) -> Result<Exit> {
    match priority::set(PriorityTarget::Process(0), priority) {
        Err(_) if args.ignore => {}
        done => done?,
    }
    out.flush()?;
    let Some((name, arguments)) = command.split_first() else { return Ok(Exit::Success) };
    let error = Command::new(name).args(arguments).exec();
    failure::print_message(&format!("error: `{}` cannot be run: {error}", name.display()));
    Ok(Exit::Code(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }))
}

/// Explains the priorities of processes, or a priority without a process on a device.
fn explain(args: &IoniceArgs, wanted: Option<Priority>, targets: &[PriorityTarget], out: &mut Out) -> Result<Exit> {
    let root = root(&args.root)?;
    let all = devices(&root)?;
    let named = args.device.as_deref().map(|text| find_device(&root, text)).transpose()?;
    let pids: Result<Vec<u32>> = targets
        .iter()
        .map(|target| match target {
            PriorityTarget::Process(pid) => Ok(*pid),
            other => bail!("{other}: --explain takes processes, by their numbers"),
        })
        .collect();
    let explainer = PriorityExplainer { root: &root, devices: &all, only_on: named.as_ref() };
    let explained = match &pids?[..] {
        [] if named.is_some() => vec![explainer.without_process(wanted)],
        // This process has the priority of the shell that started it.
        [] => vec![explainer.of_process(std::process::id(), wanted)?],
        pids => pids.iter().map(|pid| explainer.of_process(*pid, wanted)).collect::<Result<_, _>>()?,
    };
    let report = PriorityReport { schema: 1, explained };
    if args.json {
        out.json(&report)?
    } else {
        render::print(&report, out)?
    }
    Ok(Exit::Success)
}
