//! `cargo xtask kernel test`: campaigns against elevators in booted kernels.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use hoistway_guest::plan::{Fault, Plan, Subject};
use hoistway_guest::protocol::{Counts, Event};
use hoistway_vm::architecture::{self, Architecture};
use hoistway_vm::boot::{Disk, Machine};
use hoistway_vm::fetch::Fetched;
use hoistway_vm::judge;
use hoistway_workspace::programs;

use super::plans::{self, Choice};
use super::{Selection, build, recordings};

/// The factor of the limits of times on kernels with sanitizers.
const PATIENCE: u64 = 4;

/// Options of `cargo xtask kernel test`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// The long campaigns: 1,000 switches of every device, every elevator, 1,024 processes, fio
    #[arg(long)]
    full: bool,
    /// Plant faults, each in a boot of its own, and check that every one is reported
    #[arg(long, conflicts_with = "full")]
    planted: bool,
    /// The module under test: `hoistway_iosched`, or a module of the kernel such as `bfq`
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Parameters of the module under test
    #[arg(long, value_name = "TEXT", default_value = "")]
    parameters: String,
    /// The elevators that the module registers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    registers: Vec<String>,
    /// The elevators that devices are switched among, those of the kernel included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    elevators: Vec<String>,
    /// Run only campaigns with this text in their names, and the insertion; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// The seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The memory of the virtual machine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 768)]
    memory: u32,
    /// Further options of the kernel, such as `slub_debug=FZP`
    #[arg(long, value_name = "TEXT", default_value = "")]
    boot_options: String,
}

impl Options {
    /// The options of the short test of the default kernel.
    pub fn short() -> Options {
        Options { seed: 1, memory: 768, ..Options::default() }
    }

    /// The module under test, with its elevators and those that campaigns use.
    fn choice(&self) -> Choice {
        let own = || if build::exists() { build::MODULE } else { "bfq" }.to_owned();
        let name = self.module.clone().unwrap_or_else(own);
        let registers = match (self.registers.as_slice(), name.as_str()) {
            ([], build::MODULE) => plans::REGISTERED.map(str::to_owned).to_vec(),
            // A module of the kernel has one elevator of its own name.
            ([], "kyber_iosched") => vec!["kyber".to_owned()],
            ([], name) => vec![name.to_owned()],
            (given, _) => given.to_vec(),
        };
        let mut elevators = self.elevators.clone();
        if elevators.is_empty() {
            elevators = registers.clone();
            elevators.extend(plans::OWN.map(str::to_owned).into_iter().filter(|own| !registers.contains(own)));
        }
        let subject = Subject { name, parameters: self.parameters.clone(), elevators: registers };
        Choice { subject: Some(subject), elevators, full: self.full, seed: self.seed }
    }
}

/// The data that boots share.
#[derive(Debug)]
pub struct Session {
    folder: PathBuf,
    memory_mib: u32,
    boot_options: String,
    /// The end of the names of the directories of logs.
    task: &'static str,
    /// True if the virtual clock counts instructions.
    counts_instructions: bool,
    disks: Vec<Disk>,
    /// Programs of this machine for the guest, each with its path there.
    programs: Vec<(&'static str, &'static str)>,
}

/// A boot that has ended.
#[derive(Debug)]
pub struct Boot {
    /// The failures; empty if all campaigns passed.
    pub failures: Vec<String>,
    /// The directory of the logs.
    pub directory: PathBuf,
    /// The disk with the files of the guest.
    pub transfer: PathBuf,
    /// The figures of the campaigns that passed, by name.
    pub counts: BTreeMap<String, Counts>,
}

/// Tests kernels, also after one that failed. Fails at the end and names those that failed.
pub fn run(options: &Options) -> Result<()> {
    let kernels = options.selection.kernels()?;
    for kernel in &kernels {
        require_programs(kernel.architecture, options.full, true)?;
    }
    let session = Session::new("test", options.memory, &options.boot_options)?;
    let session = if options.full { session.with_program("fio", "usr/bin/fio") } else { session };
    let choice = options.choice();
    let mut failed = Vec::new();
    for fetched in super::present(&kernels, &session.folder)? {
        let name = fetched.kernel.name;
        println!("{name}: {}", fetched.release);
        let begun = Instant::now();
        let result = test(&session, options, &choice, &fetched);
        let seconds = begun.elapsed().as_secs_f64();
        match result {
            Ok(()) => println!("{name}: ok in {seconds:.0} s"),
            Err(error) => {
                println!("{name}: FAILED in {seconds:.0} s\n{error:#}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed on {}", failed.join(", ")) }
}

/// Boots a kernel with a module that was built elsewhere, and inserts it.
pub fn insert(fetched: &Fetched, module: &Path) -> Result<()> {
    let options = Options { only: vec!["insert".to_owned()], ..Options::short() };
    let session = Session::new("insert", options.memory, "")?;
    campaigns(&session, &options, &options.choice(), fetched, Some(module))
}

/// Fails if programs that boots need are missing, or installs them.
pub fn require_programs(architecture: Architecture, full: bool, install: bool) -> Result<()> {
    let mut programs =
        vec![architecture.emulator(), ("depmod", "kmod"), ("dpkg-deb", "dpkg"), ("zstd", "zstd"), ("apt-cache", "apt")];
    if full && architecture == architecture::BUILD {
        programs.push(("fio", "fio"));
    }
    programs::require_all(&programs, install)
}

/// Builds the module if it is the one of this repository, and runs the campaigns.
fn test(session: &Session, options: &Options, choice: &Choice, fetched: &Fetched) -> Result<()> {
    let ours = choice.subject.as_ref().is_some_and(|subject| subject.name == build::MODULE);
    let built = if ours { Some(build::build(fetched, &session.folder)?) } else { None };
    let subject = built.as_ref().map(|built| built.file.as_path());
    if options.planted {
        return planted(session, choice, fetched, subject);
    }
    campaigns(session, options, choice, fetched, subject)?;
    built.map_or(Ok(()), |built| built.require_no_warnings())
}

/// Boots a kernel and runs the selected campaigns.
fn campaigns(
    session: &Session,
    options: &Options,
    choice: &Choice,
    fetched: &Fetched,
    subject: Option<&Path>,
) -> Result<()> {
    let mut plan = plans::test(choice);
    let only = &options.only;
    if !only.is_empty() {
        let wanted = |name: &str| name == "insert" || only.iter().any(|text| name.contains(text.as_str()));
        plan.steps.retain(|step| wanted(&step.name));
    }
    let boot = session.boot(fetched, subject, plan, true)?;
    let to = boot.directory.join("recordings");
    if !boot.failures.is_empty() {
        recordings::extract(&boot.transfer, &to)?;
        bail!("{}\nthe logs are in {}", boot.failures.join("\n"), boot.directory.display());
    }
    if let Some(replayed) = recordings::replay(&boot.transfer, &to)? {
        println!("  {}", replayed.line());
    }
    Ok(())
}

impl Session {
    /// Creates a session. The task names the directories of logs.
    pub fn new(task: &'static str, memory_mib: u32, boot_options: &str) -> Result<Session> {
        let (folder, boot_options) = (super::folder()?, boot_options.to_owned());
        Ok(Session {
            folder,
            memory_mib,
            boot_options,
            task,
            counts_instructions: false,
            disks: Vec::new(),
            programs: Vec::new(),
        })
    }

    /// Adds disks to the machine.
    pub fn with_disks(self, disks: Vec<Disk>) -> Session {
        Session { disks, ..self }
    }

    /// Adds a program of this machine to the guest, with its path there.
    pub fn with_program(mut self, program: &'static str, path: &'static str) -> Session {
        self.programs.push((program, path));
        self
    }

    /// Lets the virtual clock count instructions.
    pub fn counting_instructions(self) -> Session {
        Session { counts_instructions: true, ..self }
    }

    /// The directory of everything that is downloaded and built.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a plan.
    pub fn boot(&self, fetched: &Fetched, subject: Option<&Path>, mut plan: Plan, shown: bool) -> Result<Boot> {
        let directory = self.folder.join("runs").join(format!("{}-{}", fetched.kernel.name, self.task));
        let architecture = fetched.kernel.architecture;
        let guest = super::guest(architecture)?;
        // Where this machine's programs do not run, the guest skips the campaigns that need them.
        let programs = if architecture == architecture::BUILD { self.programs.as_slice() } else { &[] };
        if fetched.kernel.options.is_some() {
            plan.set_patience(PATIENCE);
        }
        let machine = Machine {
            fetched,
            guest: &guest,
            subject,
            programs,
            memory_mib: self.memory_mib,
            counts_instructions: self.counts_instructions,
            disks: &self.disks,
            options: &self.boot_options,
            directory: directory.clone(),
        };
        machine.prepare(&mut plan)?;
        let progress = Progress { shown: shown && std::io::stdout().is_terminal() };
        let (record, exit) = machine.run(&plan, |event| {
            progress.clear();
            if let Some(line) = judge::line(event).filter(|_| shown) {
                println!("{line}");
            }
            if let Event::Begun { name } = event {
                progress.show(name);
            }
        })?;
        progress.clear();
        let races = record.foreign_races();
        if races > 0 {
            println!("  {races} data races of the kernel in which the module has no part: console.log has them");
        }
        let failures = judge::failures(&record, &exit);
        Ok(Boot { failures, directory, transfer: machine.transfer_disk(), counts: judge::counts(&record) })
    }
}

/// Plants each fault in a boot of its own. Fails if one is not reported.
fn planted(session: &Session, choice: &Choice, fetched: &Fetched, subject: Option<&Path>) -> Result<()> {
    let cases = [
        ("lost write", Fault::LostWrite, true, "lost write: sequence"),
        ("misplaced write", Fault::MisplacedWrite, true, "misplaced: the cell of address"),
        ("warning", Fault::Warning, true, "the kernel reports a warning"),
        ("hang, seen by the guest", Fault::Hang, true, "planted: hung: no end after 5 s; the console ends with"),
        ("hang, seen by the host", Fault::Hang, false, "planted: no event for 45 s; the console ends with"),
        ("crash", Fault::Crash, true, "planted: the machine stopped; the console ends with"),
        ("leak", Fault::Leak, true, "grew by"),
    ];
    let mut missed = Vec::new();
    for (name, fault, watchdog, expected) in cases {
        let plan = plans::planted(choice, fault, watchdog);
        let failures = session.boot(fetched, subject, plan, false)?.failures;
        let found = failures.iter().find(|failure| failure.contains(expected));
        match found {
            Some(failure) => {
                println!("  {name:<28} reported  {}", failure.lines().next().unwrap_or_default());
            }
            None => {
                println!("  {name:<28} MISSED    {}", failures.join("; "));
                missed.push(name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { bail!("planted faults were not reported: {}", missed.join(", ")) }
}

/// The name of the running campaign on a terminal.
struct Progress {
    shown: bool,
}

impl Progress {
    fn show(&self, name: &str) {
        if self.shown {
            print!("  {name} ...");
            let _ = std::io::stdout().flush();
        }
    }

    fn clear(&self) {
        if self.shown {
            print!("\r\x1b[K");
            let _ = std::io::stdout().flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elevators_default_to_those_of_the_module_and_of_the_kernel() {
        let options = Options { module: Some("hoistway_iosched".to_owned()), ..Options::short() };
        let choice = options.choice();
        assert!(choice.elevators.starts_with(&["cfq".to_owned(), "anticipatory".to_owned()]));
        assert!(choice.elevators.ends_with(&["bfq".to_owned(), "kyber".to_owned()]));
    }

    #[test]
    fn a_module_of_the_kernel_registers_an_elevator_of_its_name() {
        let options = Options { module: Some("bfq".to_owned()), ..Options::short() };
        let choice = options.choice();
        assert_eq!(choice.subject.map(|subject| subject.elevators), Some(vec!["bfq".to_owned()]));
        assert_eq!(choice.elevators, ["bfq", "none", "mq-deadline", "kyber"]);
    }
}
