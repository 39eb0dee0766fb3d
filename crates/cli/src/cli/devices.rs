//! `hoistway devices` and `hoistway ionice`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use hoistway_units::printable::one_line;

use super::Cli;
use crate::exit_status;
use crate::failure::{Exit, print_message};

/// `hoistway devices`.
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Examples:
  hoistway devices                                    all devices as a tree
  hoistway devices sda                                one device, with all tunables
  hoistway devices /srv/films                         the device of this directory
  hoistway devices --json | jq '.devices[] | {name, scheduler: .queue.scheduler}'
  hoistway devices set sda scheduler=bfq slice_idle=0     set it now; print the command that restores the old values
  hoistway devices set sda scheduler=bfq --persist        set it now, and after each restart by a udev rule
  hoistway devices forget sda                             remove that rule
  hoistway devices reset sda                              reset the tunables to their defaults

docs/devices.md is the guide, and describes all fields of the JSON."
)]
pub struct DevicesArgs {
    /// The action; without one, devices are printed
    #[command(subcommand)]
    pub command: Option<DevicesCommand>,
    /// The device to describe: sda, /dev/sda, a name of the device mapper, a number (8:0), or a
    /// file or directory on it
    #[arg(value_name = "DEVICE|PATH")]
    pub device: Option<String>,
    /// Include devices without a medium: loop devices without a file, empty drives
    #[arg(long, conflicts_with = "device")]
    pub all: bool,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
    /// Read the sys, proc, run and etc in this directory, for example a copy of another machine's,
    /// instead of those in /
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, global = true)]
    pub root: PathBuf,
}

/// The actions of `hoistway devices`.
#[derive(Debug, Subcommand)]
pub enum DevicesCommand {
    /// Set the scheduler, its tunables and the queue of a device
    Set(SetArgs),
    /// Remove the udev rules that `set --persist` wrote for a device
    Forget(ForgetArgs),
    /// Reset all tunables of a device's scheduler to their defaults
    Reset(ResetArgs),
}

/// `hoistway devices set`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  hoistway devices set sda scheduler=bfq slice_idle=0 read_ahead_kb=1024
  hoistway devices set sda scheduler=mq-deadline read_expire=200ms --dry-run
  hoistway devices set sda scheduler=bfq --persist
  hoistway devices set /srv/films nr_requests=512

A name is `scheduler`, a tunable of the scheduler that is or will be set, or a setting of the queue (`hoistway devices DEVICE` lists them with units and \
ranges). The command checks everything before it writes anything. It writes the scheduler first, reads each value back, and reports values that the kernel \
changed. If the kernel refuses a value, the command restores all values.

--persist writes a udev rule to /etc/udev/rules.d. The rule finds the device by its world-wide name or serial number, because the kernel name may change, \
and contains exactly the settings of this command. It replaces an older rule of this program for the device.", "hoistway-devices-set"))]
pub struct SetArgs {
    /// The device, as for `hoistway devices`
    #[arg(value_name = "DEVICE|PATH")]
    pub device: String,
    /// The settings, as NAME=VALUE
    #[arg(value_name = "NAME=VALUE", required = true)]
    pub words: Vec<String>,
    /// Check and print the changes without writing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Also write a udev rule that sets the same values whenever the device appears [default:
    /// 64-hoistway-ID.rules in /etc/udev/rules.d]
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
    /// Print the rules without removing them
    #[arg(long)]
    pub dry_run: bool,
}

/// `hoistway devices reset`.
#[derive(Args, Debug)]
pub struct ResetArgs {
    /// The device, as for `hoistway devices`
    #[arg(value_name = "DEVICE|PATH")]
    pub device: String,
    /// Print the changes without making them
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
    after_help = exit_status::appended("\
Examples:
  hoistway ionice                                  the priority of this shell
  hoistway ionice -p 812 901                       of these processes
  hoistway ionice -c idle tar cf /backup/x.tar x   run a command that uses only idle time of the disk
  hoistway ionice -c best-effort -n 0 -p 812       the highest normal priority, for a running process
  hoistway ionice --explain 812                    its effect under the schedulers of its devices
  hoistway ionice -c 3 --explain --device sda      the effect of the class idle on sda

Without a class and a level, `hoistway ionice COMMAND` runs the command as best-effort 4, and with processes the command prints their priorities. With a \
level alone the class is best-effort. The class realtime and processes of other users need root.

A priority has an effect only under a scheduler that uses it, and mostly for reads and synchronous writes, because kernel threads write buffered data to the \
device later. --explain prints the effect.", "hoistway-ionice")
)]
pub struct IoniceArgs {
    /// The class: none, realtime, best-effort, idle, or 0 to 3
    #[arg(short, long, value_name = "CLASS")]
    pub class: Option<String>,
    /// The level within realtime or best-effort: 0 (best) to 7
    #[arg(short = 'n', long = "classdata", value_name = "LEVEL", allow_hyphen_values = true)]
    pub level: Option<String>,
    /// Running processes or threads, by id
    #[arg(short, long, value_name = "PID")]
    pub pid: Option<String>,
    /// All processes of process groups, by id
    #[arg(short = 'P', long, value_name = "PGID")]
    pub pgid: Option<String>,
    /// All processes of users, by id
    #[arg(short, long, value_name = "UID")]
    pub uid: Option<String>,
    /// Continue if a priority cannot be set
    #[arg(short = 't', long)]
    pub ignore: bool,
    /// Print the effect of the priority under the schedulers of the kernel and of this program
    #[arg(long)]
    pub explain: bool,
    /// Explain the effect on this device, instead of those that the process uses
    #[arg(long, value_name = "DEVICE|PATH", requires = "explain")]
    pub device: Option<String>,
    /// Print JSON instead
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// Read this tree instead of /, for --explain
    #[arg(long, value_name = "DIR", requires = "explain", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// The command to run and its arguments; after -p, -P, -u or --explain: more ids
    #[arg(value_name = "COMMAND|NUMBER", trailing_var_arg = true)]
    pub rest: Vec<OsString>,
}

/// The options of `--explain` that may follow process ids: the first id ends the options, as the
/// first word of a command does.
#[derive(Debug, Parser)]
#[command(name = "hoistway ionice --explain", disable_help_flag = true)]
struct TrailingOptions {
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
    /// Merges options of `--explain` that follow process ids into the others.
    ///
    /// # Errors
    /// clap's error for an unknown option.
    pub fn with_options_behind(self) -> Result<IoniceArgs, clap::Error> {
        if !self.explain {
            return Ok(self);
        }
        let name = OsString::from("hoistway ionice --explain");
        let trailing = TrailingOptions::try_parse_from(std::iter::once(name).chain(self.rest.iter().cloned()))?;
        Ok(IoniceArgs {
            class: trailing.class.or(self.class),
            level: trailing.level.or(self.level),
            device: trailing.device.or(self.device),
            json: trailing.json || self.json,
            root: trailing.root.unwrap_or(self.root),
            rest: trailing.numbers,
            ..self
        })
    }
}

/// Prints clap's error or the help text, and returns the exit code: 2 for an invalid command line,
/// but 1 for `ionice`, as scripts expect.
pub fn refuse(error: &clap::Error, arguments: &[OsString]) -> Exit {
    print(error, arguments);
    let is_ionice = arguments.get(1).is_some_and(|command| command == "ionice");
    match error.use_stderr() {
        true if is_ionice => Exit::Failed,
        true => Exit::Usage,
        false => Exit::Success,
    }
}

/// Prints clap's message. Clap quotes arguments as they are, so a command line with unprintable
/// characters is parsed once more with escaped ones.
fn print(error: &clap::Error, arguments: &[OsString]) {
    let given = arguments.iter().map(|argument| argument.to_string_lossy());
    let escaped: Vec<String> = given.clone().map(|argument| one_line(argument).to_string()).collect();
    // A message that cannot be printed has no other place: standard error is closed.
    if given.eq(escaped.iter().map(String::as_str)) {
        let _ = error.print();
        return;
    }
    match Cli::try_parse_from(&escaped) {
        Err(error) => drop(error.print()),
        Ok(_) => print_message(&error.render().to_string()),
    }
}
