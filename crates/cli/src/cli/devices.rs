//! `hoistway devices` and `hoistway ionice`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// `hoistway devices`.
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Examples:
  hoistway devices                                    all, and what lies on what
  hoistway devices sda                                all of one, with tunables
  hoistway devices /srv/films                         what this directory lies on
  hoistway devices --json | jq '.devices[] | {name, scheduler: .queue.scheduler}'
  hoistway devices set sda scheduler=bfq slice_idle=0     now; tells the way back
  hoistway devices set sda scheduler=bfq --persist        now, and by a udev rule
  hoistway devices forget sda                             remove that rule
  hoistway devices reset sda                              tunables as shipped

docs/devices.md is the guide, with all fields of the JSON."
)]
pub struct DevicesArgs {
    /// What to do other than tell
    #[command(subcommand)]
    pub command: Option<DevicesCommand>,
    /// The device to tell everything of: sda, /dev/sda, a name of the device mapper, a number (8:0), or a file or directory on it
    #[arg(value_name = "DEVICE|PATH")]
    pub device: Option<String>,
    /// Also those where nothing is: loop devices without a file, drives without a disk
    #[arg(long, conflicts_with = "device")]
    pub all: bool,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
    /// Read this tree in place of /: a copy of another machine's sys, proc, run and etc
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, global = true)]
    pub root: PathBuf,
}

/// What `hoistway devices` does beside telling.
#[derive(Debug, Subcommand)]
pub enum DevicesCommand {
    /// Set the scheduler, its tunables and the queue of a device
    Set(SetArgs),
    /// Remove the rules of udev that `set --persist` wrote for a device
    Forget(ForgetArgs),
    /// Set all tunables of a device's scheduler to what it is shipped with
    Reset(ResetArgs),
}

/// `hoistway devices set`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway devices set sda scheduler=bfq slice_idle=0 read_ahead_kb=1024
  hoistway devices set sda scheduler=mq-deadline read_expire=200ms --dry-run
  hoistway devices set sda scheduler=bfq --persist
  hoistway devices set /srv/films nr_requests=512

A name is `scheduler`, a tunable of the scheduler that is set or shall be, or a setting of the queue (`hoistway devices DEVICE` has them all, with units and \
ranges). Everything is checked before anything is written; the scheduler is written first, each value is read back, and what the kernel made another of is \
told. If the kernel takes one value not, all are put back.

--persist writes a rule of udev into /etc/udev/rules.d that finds the device by its world-wide name or serial number, whatever the kernel calls it next time, \
and holds exactly what this command sets. An older rule of ours for the device is replaced.

Exit codes: 0 all is as asked, or told where the kernel rounded; 1 it was not done, and everything is as it was; 2 the command line is wrong.")]
pub struct SetArgs {
    /// The device, as for `hoistway devices`
    #[arg(value_name = "DEVICE|PATH")]
    pub device: String,
    /// What to set
    #[arg(value_name = "NAME=VALUE", required = true)]
    pub words: Vec<String>,
    /// Check, and say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also write a rule of udev, to set it whenever the device appears [default: 64-hoistway-ID.rules in /etc/udev/rules.d]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub persist: Option<Option<PathBuf>>,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `hoistway devices forget`.
#[derive(Args, Debug)]
pub struct ForgetArgs {
    /// The device, as for `hoistway devices`
    #[arg(value_name = "DEVICE|PATH")]
    pub device: String,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `hoistway devices reset`.
#[derive(Args, Debug)]
pub struct ResetArgs {
    /// The device, as for `hoistway devices`
    #[arg(value_name = "DEVICE|PATH")]
    pub device: String,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `hoistway ionice`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "hoistway ionice [-c CLASS] [-n LEVEL] [-t] COMMAND [ARG]...\n       \
                      hoistway ionice [-c CLASS] [-n LEVEL] [-t] -p PID... | -P PGID... | -u UID...\n       \
                      hoistway ionice [-c CLASS] [-n LEVEL] --explain [PID...] [--device DEVICE|PATH]",
    after_help = "\
Examples:
  hoistway ionice                                  the priority of this shell
  hoistway ionice -p 812 901                       of these processes
  hoistway ionice -c idle tar cf /backup/x.tar x   run a command that takes what is left over
  hoistway ionice -c best-effort -n 0 -p 812       the best of the normal ones, for one that runs
  hoistway ionice --explain 812                    what the schedulers of its devices make of it
  hoistway ionice -c 3 --explain --device sda      what sda's would make of the class idle

Without a class and a level, a command runs as best-effort 4, and of processes the priority is printed. With a level alone the class is best-effort. The \
class realtime, and processes of others, need root.

A priority counts only where the device has a scheduler that heeds it, and mostly for reads and for writes that are waited for: what is written into memory is \
written to the device later, by the kernel's own threads. --explain says what becomes of it.

Exit codes: that of the command that was run, 127 if there is none of this name, 126 if it cannot be run; 0 all is well; 1 something is wrong or was not done."
)]
pub struct IoniceArgs {
    /// The class: none, realtime, best-effort, idle, or 0 to 3
    #[arg(short, long, value_name = "CLASS")]
    pub class: Option<String>,
    /// The level within realtime or best-effort: 0 (best) to 7
    #[arg(short = 'n', long = "classdata", value_name = "LEVEL", allow_hyphen_values = true)]
    pub level: Option<String>,
    /// Processes or threads that run, by number
    #[arg(short, long, value_name = "PID")]
    pub pid: Option<String>,
    /// All processes of groups that run, by number
    #[arg(short = 'P', long, value_name = "PGID")]
    pub pgid: Option<String>,
    /// All processes of users, by number
    #[arg(short, long, value_name = "UID")]
    pub uid: Option<String>,
    /// Run the command, and go on with the next, if a priority cannot be set
    #[arg(short = 't', long)]
    pub ignore: bool,
    /// Say what the schedulers of the kernel and of this program make of the priority
    #[arg(long)]
    pub explain: bool,
    /// The device to explain it for, in place of those that the process uses
    #[arg(long, value_name = "DEVICE|PATH", requires = "explain")]
    pub device: Option<String>,
    /// Print JSON instead
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// Read this tree in place of /, for --explain
    #[arg(long, value_name = "DIR", requires = "explain", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// The command to run and its arguments; behind -p, -P, -u or --explain: more numbers
    #[arg(value_name = "COMMAND|NUMBER", trailing_var_arg = true)]
    pub rest: Vec<OsString>,
}

/// What may stand behind the numbers of processes whose priorities are explained: the first number ends the options, as the first word of a command does.
#[derive(Debug, Parser)]
#[command(name = "hoistway ionice --explain", disable_help_flag = true)]
struct Behind {
    #[arg(short, long)]
    class: Option<String>,
    #[arg(short = 'n', long = "classdata", allow_hyphen_values = true)]
    level: Option<String>,
    #[arg(long)]
    device: Option<String>,
    #[arg(long)]
    json: bool,
    #[arg(long, hide = true)]
    root: Option<PathBuf>,
    numbers: Vec<OsString>,
}

impl IoniceArgs {
    /// Takes what of the options of `--explain` stands behind the numbers to the others.
    ///
    /// # Errors
    /// What clap has to say of one that it does not know.
    pub fn with_options_behind(self) -> Result<IoniceArgs, clap::Error> {
        if !self.explain {
            return Ok(self);
        }
        let name = OsString::from("hoistway ionice --explain");
        let behind = Behind::try_parse_from(std::iter::once(name).chain(self.rest.iter().cloned()))?;
        Ok(IoniceArgs {
            class: behind.class.or(self.class),
            level: behind.level.or(self.level),
            device: behind.device.or(self.device),
            json: behind.json || self.json,
            root: behind.root.unwrap_or(self.root),
            rest: behind.numbers,
            ..self
        })
    }
}

/// Tells what clap has to say of a command line that it does not take, or of one that asks for help, and answers the exit code: as everywhere 2 where it is
/// wrong, but of `ionice` 1, which scripts know it by.
pub fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    // When that cannot be written there is nobody left to tell.
    let _ = error.print();
    let is_ionice = arguments.get(1).is_some_and(|command| command == "ionice");
    match error.use_stderr() {
        true if is_ionice => ExitCode::FAILURE,
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    }
}
