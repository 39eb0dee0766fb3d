//! `hoistway ionice`: I/O priorities, as util-linux's ionice has them, and what becomes of them.

mod effect;
mod explain;
mod tell;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, bail};
use hoistway_machine::priority::{self, LEVELS, NORMAL_LEVEL};
use hoistway_machine::{Class, Priority, Who};

use crate::cli::IoniceArgs;
use crate::failure::{self, Exit};
use crate::names::did_you_mean;
use crate::output::Out;

/// Runs a command so the shells say that there is none of its name, and that it cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Shows or sets priorities, runs a command with one, or explains what becomes of one.
pub fn run(args: &IoniceArgs, out: &mut Out) -> Result<Exit> {
    let args = &match args.clone().with_options_behind() {
        Ok(args) => args,
        Err(error) => {
            // When that cannot be written there is nobody left to tell.
            let _ = error.print();
            return Ok(Exit::Failed);
        }
    };
    let wanted = wanted(args)?;
    let whose = whose(args)?;
    if args.explain {
        return explain::run(args, wanted, &whose, out);
    }
    match (&whose[..], &args.rest[..]) {
        ([], []) if wanted.is_some() => {
            bail!("a class or a level is for a command to run, or for processes (-p, -P, -u): see --help")
        }
        ([], []) => out.line(priority::get(Who::Process(0))?)?,
        ([], command) => return run_command(args, wanted.unwrap_or(NORMAL), command, out),
        (whose, _) => of_processes(args, wanted, whose, out)?,
    }
    Ok(Exit::Success)
}

/// What a command gets that nothing was said for.
const NORMAL: Priority = Priority { class: Class::BestEffort, level: NORMAL_LEVEL, hint: 0 };

/// The priority that is asked for, if any is.
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
            _ => bail!("`{text}` is no level: it takes 0 (best) to 7"),
        },
    };
    if args.level.is_some() && !class.has_levels() {
        failure::tell(&format!("warning: the class {} has no levels; {level} is ignored", class.name()));
    }
    Ok(Some(Priority::new(class, level)))
}

/// Whose priorities are meant: none if a command is to be run.
fn whose(args: &IoniceArgs) -> Result<Vec<Who>> {
    type Sort<'a> = (&'a Option<String>, &'static str, fn(u32) -> Who);
    let sorts: [Sort<'_>; 3] = [
        (&args.pid, "process", Who::Process),
        (&args.pgid, "process group", Who::Group),
        (&args.uid, "user", Who::User),
    ];
    let given: Vec<_> =
        sorts.into_iter().filter_map(|(first, what, who)| Some((first.as_deref()?, what, who))).collect();
    let (first, what, who) = match given[..] {
        // Explained are processes, whether -p is written or not.
        [] if args.explain => (None, "process", Who::Process as fn(u32) -> Who),
        [] => return Ok(Vec::new()),
        [(first, what, who)] => (Some(OsStr::new(first)), what, who),
        _ => bail!("only one of -p, -P and -u can be given"),
    };
    let numbers = first.into_iter().chain(args.rest.iter().map(OsString::as_os_str));
    let read = |text: &OsStr| match text.to_str().and_then(|text| text.parse::<u32>().ok()) {
        Some(number) if number <= i32::MAX as u32 => Ok(who(number)),
        _ if what == "user" => {
            bail!("`{}` is no number of a user: it takes one as `id -u NAME` prints it", text.display())
        }
        _ => bail!("`{}` is no number of a {what}", text.display()),
    };
    numbers.map(read).collect()
}

/// Prints or sets the priorities of processes. It ends at the first that cannot be set, unless failures are to be ignored.
fn of_processes(args: &IoniceArgs, wanted: Option<Priority>, whose: &[Who], out: &mut Out) -> Result<()> {
    for who in whose {
        match wanted {
            None => out.line(priority::get(*who)?)?,
            Some(priority) => match priority::set(*who, priority) {
                Err(_) if args.ignore => {}
                done => done?,
            },
        }
    }
    Ok(())
}

/// Becomes the command; what is told after that is the command's.
fn run_command(args: &IoniceArgs, priority: Priority, command: &[OsString], out: &mut Out) -> Result<Exit> {
    match priority::set(Who::Process(0), priority) {
        Err(_) if args.ignore => {}
        done => done?,
    }
    out.flush()?;
    let Some((name, arguments)) = command.split_first() else { return Ok(Exit::Success) };
    let error = Command::new(name).args(arguments).exec();
    failure::tell(&format!("error: `{}` cannot be run: {error}", name.display()));
    Ok(Exit::Code(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }))
}
