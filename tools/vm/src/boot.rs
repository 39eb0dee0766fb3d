//! Boots a kernel in QEMU and collects the events of the guest.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hoistway_guest::plan::{self, ModuleFile, Plan};
use hoistway_guest::protocol::Event;
use hoistway_guest::transfer;

use crate::fetch::Fetched;
use crate::initramfs::Archive;
use crate::judge::{self, Exit, Record};
use crate::modules::{self, Modules};
use hoistway_workspace::programs;

/// The options of every kernel beyond those of its architecture.
const OPTIONS: &str = "panic=-1 printk.devkmsg=on loglevel=5 log_buf_len=4M \
                       rcupdate.rcu_cpu_stall_timeout=60 watchdog_thresh=30";
/// The time without an event until the guest has read its plan.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// The time that a campaign may take beyond its own limit, in which the guest reports the hang.
const GRACE: Duration = Duration::from_secs(40);
/// The MiB of translated code that QEMU keeps. A write to a page of memory searches the list of all
/// translations of that page: with the default of 1 GiB, each insertion of a module adds some to
/// the pages of the one before, until clearing a few of those pages stops a processor for a minute.
const TRANSLATIONS_MIB: u32 = 64;
/// The bytes of the disk for files from the guest; only those that are written take room.
const TRANSFER_BYTES: u64 = 4 << 30;
/// The bytes of a disk.
const DISK_BYTES: u64 = 64 << 20;

/// A disk of the machine beside those of every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The serial number, by which the guest finds it.
    pub serial: &'static str,
    /// Where its data are.
    pub backing: Backing,
}

/// Where the data of a disk are, and how the disk is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file, behind a virtio disk with limits.
    File {
        /// The path.
        path: PathBuf,
        /// The requests that the disk takes at a time, at least 4.
        depth: u32,
        /// The limit of its throughput in bytes a second.
        bytes_per_second: u64,
        /// The limit of its requests a second.
        requests_per_second: u64,
    },
    /// An export of an NBD server, behind a rotating SCSI disk.
    Nbd {
        /// The path of the server's socket.
        socket: PathBuf,
        /// True if the disk reports a write cache. Without one, each write of the guest is a write
        /// with FUA for the server.
        write_cache: bool,
    },
}

impl Disk {
    fn arguments(&self) -> Vec<String> {
        let serial = self.serial;
        match &self.backing {
            Backing::File { path, depth, bytes_per_second, requests_per_second } => {
                let limits =
                    format!("throttling.bps-total={bytes_per_second},throttling.iops-total={requests_per_second}");
                let drive = format!("file={},if=none,id={serial},format=raw,cache=unsafe,{limits}", path.display());
                let device = format!("virtio-blk-pci,drive={serial},serial={serial},queue-size={depth},num-queues=1");
                vec!["-drive".to_owned(), drive, "-device".to_owned(), device]
            }
            Backing::Nbd { socket, write_cache } => {
                let drive = format!("file=nbd:unix:{},if=none,id={serial},format=raw,cache=none", socket.display());
                // One queue, as the controllers of rotating disks have. The guest lowers the depth
                // of the disk to what a campaign wants.
                let bus = format!("virtio-scsi-pci,id=bus-{serial},cmd_per_lun=128,num_queues=1");
                let write_cache = if *write_cache { "on" } else { "off" };
                let device = format!(
                    "scsi-hd,drive={serial},serial={serial},bus=bus-{serial}.0,rotation_rate=7200,write-cache={write_cache}"
                );
                vec!["-drive".to_owned(), drive, "-device".to_owned(), bus, "-device".to_owned(), device]
            }
        }
    }
}

/// A kernel with everything that a boot needs.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The kernel.
    pub fetched: &'a Fetched,
    /// The guest program.
    pub guest: &'a Path,
    /// The module under test, if it is not one of the kernel.
    pub subject: Option<&'a Path>,
    /// Programs that the initial RAM disk has: each by its name on the path or by its file, with
    /// its path there.
    pub programs: &'a [(&'a str, &'a str)],
    /// The memory of the machine in MiB.
    pub memory_mib: u32,
    /// True if the virtual clock counts instructions: 1 ns each. The machine has one processor
    /// then.
    pub counts_instructions: bool,
    /// Further disks.
    pub disks: &'a [Disk],
    /// Further options of the kernel.
    pub options: &'a str,
    /// The directory of images and logs.
    pub directory: PathBuf,
}

impl Machine<'_> {
    /// Adds the modules of the kernel and the one under test to a plan, and writes the initial RAM
    /// disk and the disks.
    pub fn prepare(&self, plan: &mut Plan) -> Result<()> {
        let _ = fs::remove_dir_all(&self.directory);
        fs::create_dir_all(&self.directory).with_context(|| format!("cannot make {}", self.directory.display()))?;
        let mut archive = Archive::new();
        let directory = self.fetched.modules()?;
        for (name, (path, needs)) in Modules::read(&directory)?.closure(modules::WANTED) {
            let at = format!("modules/{name}.ko");
            archive.file(&at, &modules::read_module(&directory.join(path))?);
            plan.modules.insert(name, ModuleFile { path: format!("/{at}"), needs });
        }
        if let (Some(file), Some(subject)) = (self.subject, &plan.subject) {
            let at = format!("modules/{}.ko", subject.name);
            archive.file(&at, &modules::read_module(file)?);
            plan.modules.insert(subject.name.clone(), ModuleFile { path: format!("/{at}"), needs: Vec::new() });
        }
        for (program, at) in self.programs {
            let path = programs::find(program).with_context(|| format!("{program} is not on the path"))?;
            archive.program(&path, at)?;
        }
        archive.file("init", &fs::read(self.guest).with_context(|| format!("cannot read {}", self.guest.display()))?);
        archive.file(plan::PATH.trim_start_matches('/'), &serde_json::to_vec(plan)?);
        fs::write(self.directory.join("initramfs"), archive.finish())?;
        let disks = [("vda", DISK_BYTES), ("vdb", DISK_BYTES), ("sda", DISK_BYTES), (transfer::SERIAL, TRANSFER_BYTES)];
        for (disk, bytes) in disks {
            File::create(self.directory.join(disk))?.set_len(bytes)?;
        }
        Ok(())
    }

    /// The command that starts the machine, without its serial ports.
    pub fn command(&self) -> Result<Command> {
        let architecture = self.fetched.kernel.architecture;
        let mut command = Command::new(architecture.emulator().0);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        command.args(architecture.machine());
        if self.counts_instructions {
            command.args(["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1"]);
        } else {
            command.args(["-accel", &format!("tcg,thread=multi,tb-size={TRANSLATIONS_MIB}"), "-smp", "2"]);
        }
        command.args(["-m", &self.memory_mib.to_string(), "-kernel"]).arg(self.fetched.image()?);
        command.arg("-initrd").arg(self.directory.join("initramfs"));
        command.args(["-append", &format!("{} {OPTIONS} {}", architecture.kernel_options(), self.options)]);
        // The first disk is slow enough for requests to queue; the second one has several queues.
        for (name, throttle, device) in [
            ("vda", ",throttling.iops-total=3000", "queue-size=32,num-queues=1"),
            ("vdb", "", "queue-size=64,num-queues=2"),
        ] {
            let file = self.directory.join(name);
            let drive = format!("file={},if=none,id={name},format=raw,cache=unsafe{throttle}", file.display());
            command.args(["-drive", &drive, "-device", &format!("virtio-blk-pci,drive={name},{device}")]);
        }
        // A SCSI disk for kernels without scsi_debug. Its module is inserted only there.
        let drive = format!("file={},if=none,id=sda,format=raw,cache=unsafe", self.directory.join("sda").display());
        command.args(["-device", "virtio-scsi-pci,num_queues=2,cmd_per_lun=16", "-drive", &drive]);
        command.args(["-device", "scsi-hd,drive=sda"]);
        command.args(self.disks.iter().flat_map(Disk::arguments));
        let file = self.transfer_disk();
        let drive = format!("file={},if=none,id=vdc,format=raw,cache=unsafe", file.display());
        command.args(["-drive", &drive, "-device", &format!("virtio-blk-pci,drive=vdc,serial={}", transfer::SERIAL)]);
        Ok(command)
    }

    /// The disk with the files that the guest hands to the host.
    pub fn transfer_disk(&self) -> PathBuf {
        self.directory.join(transfer::SERIAL)
    }

    /// Boots the machine, runs the plan and returns what happened. `each` sees every event.
    pub fn run(&self, plan: &Plan, mut each: impl FnMut(&Event)) -> Result<(Record, Exit)> {
        let console = self.directory.join("console.log");
        let mut command = self.command()?;
        command.args([
            "-chardev",
            &format!("file,id=console,path={}", console.display()),
            "-serial",
            "chardev:console",
        ]);
        command.args(["-chardev", "stdio,id=events,signal=off"]);
        command.args(self.fetched.kernel.architecture.event_port());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(self.directory.join("qemu.log"))?);
        let mut machine = Running(command.spawn().context("cannot start QEMU")?);
        let output = machine.0.stdout.take().context("the output of QEMU")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let subject = plan.subject.as_ref().map(|subject| subject.name.clone());
        let mut record = Record { subject, ..Record::default() };
        let exit = loop {
            let limit = limit(plan, &record.events);
            match receiver.recv_timeout(limit) {
                Ok(line) => {
                    let Some(event) = Event::parse(&line) else { continue };
                    if let Ok(event) = &event {
                        each(event);
                    }
                    record.events.push(event);
                }
                Err(RecvTimeoutError::Disconnected) => break Exit::PoweredOff,
                Err(RecvTimeoutError::Timeout) => {
                    break Exit::TimedOut(format!("no event for {} s", limit.as_secs()));
                }
            }
        };
        drop(machine);
        record.console = String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()).into_owned();
        self.write_events(&record)?;
        if record.events.is_empty() && record.console.is_empty() {
            let log = fs::read_to_string(self.directory.join("qemu.log")).unwrap_or_default();
            bail!("the virtual machine did not start: {}", log.trim());
        }
        Ok((record, exit))
    }

    /// Writes all events, and the dumps in a readable form.
    fn write_events(&self, record: &Record) -> Result<()> {
        let mut text = String::new();
        for event in &record.events {
            match event {
                Ok(Event::Dump { name, text: dump }) => text.push_str(&format!("dump of {name}:\n{dump}\n")),
                Ok(event) => text.push_str(&format!("{}\n", event.line())),
                Err(message) => text.push_str(&format!("{message}\n")),
            }
        }
        fs::write(self.directory.join("events.log"), text).context("cannot write events.log")
    }
}

/// The time in which the next event must come.
fn limit(plan: &Plan, events: &[Result<Event, String>]) -> Duration {
    let Some(name) = judge::running(events) else { return BOOT_LIMIT };
    let step = plan.steps.iter().find(|step| step.name == name);
    step.map_or(BOOT_LIMIT, |step| Duration::from_secs(step.limit_seconds) + GRACE)
}

/// A virtual machine, which ends with the value.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_guest::plan::{Campaign, Step};

    #[test]
    fn the_host_waits_for_a_campaign_beyond_its_limit_and_for_a_boot() {
        let step = Step { name: "a".to_owned(), limit_seconds: 30, campaign: Campaign::Insert };
        let plan = Plan { steps: vec![step], ..Plan::default() };
        assert_eq!(limit(&plan, &[]), BOOT_LIMIT);
        assert_eq!(limit(&plan, &[Ok(Event::Begun { name: "a".to_owned() })]), Duration::from_secs(30) + GRACE);
    }
}
