//! `cargo xtask guest`: jobs of fio in guests whose disk is an emulated drive, beside their
//! simulation. `fidelity/` has the jobs, the figures and the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fidelity::agreement::Pair;
use crate::fidelity::figures::{self, Figure};
use crate::fidelity::matrix::{self, Drive, Job, Kernel, Set};
use crate::fidelity::overhead::{self, Overhead};
use crate::fidelity::repetition::Repetition;
use crate::fidelity::store::{Place, Run};
use crate::fidelity::{job, page, trees};
use anyhow::{Context, Result, bail};
use hoistway_guest::plan::{Campaign, JobPart, JobSetup, Plan, Step, TreeFiles, Walk};
use hoistway_guest::transfer;
use hoistway_kernel::{self as kernel, Session};
use hoistway_vm::architecture;
use hoistway_vm::boot::{Backing, Disk};
use hoistway_vm::fetch::{self, Fetched};
use hoistway_vm::table::{self, Archive};
use hoistway_workspace::{cargo, parts, programs};
use serde_json::Value;

use hoistway_workspace::server::Server;

/// The page with the tables.
const PAGE: &str = "docs/guest.md";
/// The serial number of the disk.
const SERIAL: &str = "emulated";
/// The time that a job may take, its files included.
const LIMIT_SECONDS: u64 = 240;
/// The machine around the simulated kernel: that of the guests. Requests of a virtio SCSI bus have
/// at most 254 pages. The disk has 4 GiB. Traces of guests show the first requests of processes
/// that start together 2 to 5 ms apart.
const HOST: &str = "max_sectors = 2032\npartition_mib = 4096\nspindle_tolerance_ppm = 0\nstart_spread_ns = 4000000\n";
/// The programs that jobs need in the guest, each with its path there and its package.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("fio", "usr/bin/fio", "fio"),
    ("mke2fs", "usr/sbin/mke2fs", "e2fsprogs"),
    ("dash", "bin/sh", "dash"),
    ("tar", "usr/bin/tar", "tar"),
    ("find", "usr/bin/find", "findutils"),
    ("xargs", "usr/bin/xargs", "findutils"),
    ("cat", "usr/bin/cat", "coreutils"),
];

/// Options of `cargo xtask guest`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// A kernel; may be repeated. The default is all of the comparison
    #[arg(long, value_name = "KERNEL")]
    kernel: Vec<String>,
    /// Compare jobs whose writes are synced, on a drive with and without its write cache, instead
    /// of jobs under schedulers
    #[arg(long)]
    syncs: bool,
    /// A drive of the comparison; may be repeated
    #[arg(long, value_name = "NAME")]
    drive: Vec<String>,
    /// Only jobs with this text in their names; may be repeated
    #[arg(long, value_name = "TEXT")]
    job: Vec<String>,
    /// Only these schedulers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    scheduler: Vec<String>,
    /// Run each job in guests so often, runs that are kept included; the default is once. Each
    /// run is compared with a simulation with its own seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    runs: u8,
    /// Run jobs in guests again whose figures are kept from an earlier run
    #[arg(long)]
    again: bool,
    /// Run nothing in guests: simulate again beside the figures that are kept
    #[arg(long, conflicts_with_all = ["again", "runs"])]
    simulate: bool,
    /// Record the requests that reach the drives in target/guest/KERNEL-DRIVE.blktrace
    #[arg(long)]
    record: bool,
    /// Take the kernel that no archive of Debian has from packages in a directory: linux-image and
    /// linux-modules of Ubuntu's 4.4, of the flavour generic
    #[arg(long, value_name = "DIR")]
    packages: Option<PathBuf>,
    /// The program that serves the drives and simulates; the default is built from the sources
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Write the tables to docs/guest.md
    #[arg(long)]
    write: bool,
}

impl Options {
    /// The comparison.
    fn set(&self) -> Set {
        if self.syncs { Set::Syncs } else { Set::Schedulers }
    }
}

/// Runs the jobs in guests and in the simulator, and compares them.
pub fn run(options: &Options) -> Result<()> {
    kernel::require_programs(architecture::BUILD, true, true)?;
    programs::require_all(&PROGRAMS.map(|(program, _, package)| (program, package)), true)?;
    let comparison = Comparison {
        hoistway: match &options.program {
            Some(program) => program.clone(),
            None => cargo::hoistway()?,
        },
        directory: cargo::target_directory()?.join("guest"),
        options,
    };
    fs::create_dir_all(&comparison.directory)?;
    if let Some(packages) = &options.packages {
        import(packages)?;
    }
    let mut pairs = Vec::new();
    let runs = usize::from(options.runs);
    for kernel in comparison.kernels()? {
        if !options.simulate && !comparison.run_guests(kernel, runs)? {
            println!("{}: SKIPPED: its packages are not here; --packages takes them from a directory", kernel.name);
            continue;
        }
        for drive in comparison.drives(kernel) {
            for job in comparison.jobs(drive) {
                let found = comparison.pairs(kernel, drive, job)?;
                found.iter().for_each(|pair| println!("{}", page::line(pair)));
                pairs.extend(found);
            }
        }
    }
    if pairs.is_empty() {
        bail!("no figures of guests are kept: run `cargo xtask guest`");
    }
    match options.set() {
        Set::Schedulers => {
            println!("\n{}\n\nOrders that are wrong:\n{}", page::summary(&pairs), page::wrong_orders(&pairs));
        }
        Set::Syncs => println!("\n{}", page::syncs(&pairs)),
    }
    if options.write { write(&pairs, options.set()) } else { Ok(()) }
}

/// Returns true if a name is in a list, or the list is empty.
fn selected(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|one| one == name)
}

struct Comparison<'a> {
    hoistway: PathBuf,
    /// The directory of the figures.
    directory: PathBuf,
    options: &'a Options,
}

impl Comparison<'_> {
    /// The selected kernels.
    fn kernels(&self) -> Result<Vec<&'static Kernel>> {
        let names = &self.options.kernel;
        if let Some(name) = names.iter().find(|name| matrix::KERNELS.iter().all(|known| known.name != **name)) {
            let known: Vec<&str> = matrix::KERNELS.iter().map(|kernel| kernel.name).collect();
            bail!("--kernel {name}: the comparison has {}", known.join(", "));
        }
        Ok(matrix::KERNELS.iter().filter(|kernel| selected(names, kernel.name)).collect())
    }

    fn drives(&self, kernel: &Kernel) -> impl Iterator<Item = &'static Drive> {
        let set = self.options.set();
        kernel.drives().filter(move |drive| drive.set == set).filter(|drive| selected(&self.options.drive, drive.name))
    }

    fn jobs(&self, drive: &Drive) -> Vec<&'static Job> {
        let wanted = &self.options.job;
        drive.jobs().filter(|job| wanted.is_empty() || wanted.iter().any(|text| job.name.contains(text))).collect()
    }

    fn schedulers(&self, kernel: &Kernel) -> Vec<&'static str> {
        kernel.schedulers.iter().copied().filter(|name| selected(&self.options.scheduler, name)).collect()
    }

    fn place(&self, kernel: &Kernel, drive: &Drive, job: &Job, scheduler: &str) -> Place {
        let [kernel, drive, job, scheduler] = [kernel.name, drive.name, job.name, scheduler].map(str::to_owned);
        Place { kernel, drive, job, scheduler }
    }

    /// What the figures of a guest depend on: the job and the model of the drive.
    fn inputs(&self, drive: &Drive, job: &Job) -> Result<String> {
        let profile = match drive.profile {
            Some(profile) => profile.to_owned(),
            None => programs::output(Command::new(&self.hoistway).args(["drives", drive.name, "--json"]))?,
        };
        let cache = if drive.write_cache { "" } else { ", no write cache" };
        Ok(format!("depth {}{cache}, {} MiB\n{}\n{profile}", drive.depth, matrix::MEMORY_MIB, job.text))
    }

    /// Runs the jobs of a kernel, but not those whose figures are kept: for each repetition the
    /// overhead of a request, and then the jobs in a boot for each drive. Returns false if the
    /// kernel is not there.
    fn run_guests(&self, kernel: &Kernel, runs: usize) -> Result<bool> {
        for number in 1..=runs {
            if !self.run_once(kernel, &matrix::DELAY, &[&matrix::OVERHEAD], number)? {
                return Ok(false);
            }
            for drive in self.drives(kernel) {
                self.run_once(kernel, drive, &self.jobs(drive), number)?;
            }
        }
        Ok(true)
    }

    /// Runs the jobs that have no figures for a run with this number.
    fn run_once(&self, kernel: &Kernel, drive: &Drive, jobs: &[&Job], number: usize) -> Result<bool> {
        let mut steps = Vec::new();
        let mut inputs = BTreeMap::new();
        for job in jobs {
            let text = self.inputs(drive, job)?;
            let trees = trees(kernel, job, number)?;
            for scheduler in self.schedulers(kernel) {
                let place = self.place(kernel, drive, job, scheduler);
                if self.options.again || place.runs(&self.directory, &text).len() < number {
                    let name = format!("{} {scheduler}", job.name);
                    inputs.insert(name.clone(), (place, text.clone()));
                    let campaign = Campaign::Job(setup(drive, job, scheduler, &trees));
                    steps.push(Step { name, limit_seconds: LIMIT_SECONDS, campaign });
                }
            }
        }
        if steps.is_empty() {
            return Ok(true);
        }
        let Some(fetched) = fetched(kernel)? else { return Ok(false) };
        println!("{}: {} on {}: {} jobs, run {number}", kernel.name, fetched.release, drive.name, steps.len());
        let plan = Plan { boot: kernel::boot_modules(), steps, ..Plan::default() };
        self.boot(&fetched, drive, plan, &inputs, number)?;
        Ok(true)
    }

    /// The value of `--drive`: the name of a built-in drive, or the file of a profile.
    fn profile(&self, drive: &Drive) -> Result<PathBuf> {
        let Some(text) = drive.profile else { return Ok(PathBuf::from(drive.name)) };
        let file = self.directory.join(format!("{}.toml", drive.name));
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Boots a kernel on a drive, runs the plan and keeps the figures as those of a run.
    fn boot(
        &self,
        fetched: &Fetched,
        drive: &Drive,
        plan: Plan,
        inputs: &BTreeMap<String, (Place, String)>,
        number: usize,
    ) -> Result<()> {
        let profile = self.profile(drive)?;
        let name = format!("{}-{}.blktrace", fetched.kernel.name, drive.name);
        let record = self.options.record.then(|| self.directory.join(name));
        let (server, socket) = Server::start_emulated(&self.hoistway, &profile, record.as_deref(), &self.directory)?;
        let disk = Disk { serial: SERIAL, backing: Backing::Nbd { socket, write_cache: drive.write_cache } };
        let session = Session::new("guest", matrix::MEMORY_MIB, "")?.with_disks(vec![disk]);
        let session = PROGRAMS.iter().fold(session, |session, (program, path, _)| session.with_program(program, path));
        let boot = session.boot(fetched, None, plan, true)?;
        server.stop()?;
        let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        transfer::receive(&boot.transfer, |name, bytes| {
            let Some((step, _)) = name.rsplit_once('/') else { return Ok(()) };
            let mut document: Value = serde_json::from_slice(bytes)?;
            let jobs = document["jobs"].as_array_mut().map(std::mem::take).unwrap_or_default();
            results.entry(step.to_owned()).or_default().extend(jobs);
            Ok(())
        })?;
        for (step, jobs) in results {
            let (Some((place, text)), Some(counts)) = (inputs.get(&step), boot.counts.get(&step)) else { continue };
            let figures = figures::of_fio(&serde_json::json!({ "jobs": jobs }), "");
            let available_mib = counts.get("available_mib").copied().unwrap_or(0);
            let run = Run { inputs: text.clone(), release: fetched.release.clone(), available_mib, figures };
            // A run that failed earlier leaves no gap.
            let number = number.min(place.runs(&self.directory, text).len() + 1);
            place.write(&self.directory, number, &run)?;
        }
        if boot.failures.is_empty() {
            return Ok(());
        }
        bail!("{}\nthe logs are in {}", boot.failures.join("\n"), boot.directory.display())
    }

    /// The overhead of a request in the guests of a kernel under a scheduler: that of a run, or of
    /// the last one before it.
    fn overhead(&self, kernel: &Kernel, scheduler: &str, number: usize) -> Result<Overhead> {
        let place = self.place(kernel, &matrix::DELAY, &matrix::OVERHEAD, scheduler);
        let runs = place.runs(&self.directory, &self.inputs(&matrix::DELAY, &matrix::OVERHEAD)?);
        let run = runs.get(number - 1).or(runs.last());
        run.and_then(|run| overhead::overhead(&run.figures))
            .with_context(|| format!("the overhead of {} is not measured: run `cargo xtask guest`", kernel.name))
    }

    /// The pairs of a job: the figures of guests that are kept, and those of simulations, one with
    /// the seed 1 beside the first run, and so on.
    fn pairs(&self, kernel: &Kernel, drive: &Drive, job: &Job) -> Result<Vec<Pair>> {
        let text = self.inputs(drive, job)?;
        let mut pairs = Vec::new();
        for scheduler in self.schedulers(kernel) {
            let place = self.place(kernel, drive, job, scheduler);
            let runs = place.runs(&self.directory, &text);
            if runs.is_empty() {
                continue;
            }
            let (mut real, mut simulated) = (Vec::new(), Vec::new());
            for (run, number) in runs.into_iter().zip(1..) {
                let settings = self.overhead(kernel, scheduler, number)?.settings();
                let cache = format!("page_cache_mib = {}", run.available_mib);
                let host = format!("{}{cache}\n{}{settings}", host(kernel), reported(drive));
                simulated.push(self.simulate(&host, drive, job, scheduler, number as u64)?);
                real.push(run.figures);
            }
            let [real, simulated] = [real, simulated].map(Repetition::new);
            pairs.push(Pair { place, real, simulated });
        }
        Ok(pairs)
    }

    /// Simulates a job under a scheduler on a host, given by the text of its file.
    fn simulate(&self, host: &str, drive: &Drive, job: &Job, scheduler: &str, seed: u64) -> Result<Vec<Figure>> {
        let [job_file, host_file] = ["job.fio", "host.toml"].map(|name| self.directory.join(name));
        fs::write(&job_file, job::simulated(job.text))?;
        fs::write(&host_file, host)?;
        let mut command = Command::new(&self.hoistway);
        command.arg("compare").arg(&job_file).arg("--host").arg(&host_file);
        command.arg("--drive").arg(self.profile(drive)?);
        command.args(["--elevators", scheduler, "--json"]).env("DISK", "/dev/emulated");
        command.arg("--seed").arg(seed.to_string());
        let document: Value = serde_json::from_str(&programs::output(&mut command)?)
            .with_context(|| format!("hoistway compare {} --json", job.name))?;
        Ok(figures::of_fio(&document, &format!("{scheduler}/")))
    }
}

/// Returns a kernel that was downloaded or imported before, or downloads it. None if no archive has
/// its packages.
fn fetched(wanted: &Kernel) -> Result<Option<Fetched>> {
    let (row, folder) = (table::find(wanted.name)?, kernel::folder()?);
    match Fetched::existing(row, &folder) {
        Some(fetched) => Ok(Some(fetched)),
        None if row.archive == Archive::Files => Ok(None),
        None => Ok(kernel::present(&[row], &folder)?.pop()),
    }
}

/// Takes the kernels that no archive has from packages in a directory.
fn import(packages: &Path) -> Result<()> {
    for row in table::OLD_KERNELS {
        let fetched = fetch::import(row, packages, &kernel::folder()?)?;
        println!("{}: {}", row.name, fetched.release);
    }
    Ok(())
}

/// The text of a host file for the guests of a kernel.
fn host(kernel: &Kernel) -> String {
    format!("kernel = \"{}\"\nnr_requests = {}\n{HOST}", kernel.host, kernel.pool)
}

/// The lines of a host file for what the disk of the guest reports: its write cache, and no FUA.
fn reported(drive: &Drive) -> &'static str {
    match drive.write_cache {
        true => "write_cache = \"write-back\"\nfua = \"no\"\n",
        false => "write_cache = \"write-through\"\nfua = \"no\"\n",
    }
}

/// The trees of a job in a run: those of the simulation beside it.
fn trees(kernel: &Kernel, job: &Job, number: usize) -> Result<Vec<TreeFiles>> {
    let listed = trees::listings(job, &host(kernel), number as u64)?;
    Ok(listed.into_iter().map(|tree| TreeFiles { directories: tree.directories, files: tree.files }).collect())
}

/// The parameters of a job in the guest.
fn setup(drive: &Drive, job: &Job, scheduler: &str, trees: &[TreeFiles]) -> JobSetup {
    let of_fio = job::parts(job.text).into_iter().map(|part| JobPart {
        group: part.group,
        job: part.text,
        ..JobPart::default()
    });
    let walk = |walk: job::Walk| {
        let (command, is_archive) = (walk.command().to_owned(), walk.is_archive());
        let walk = Walk { section: walk.section, tree: walk.tree, command, is_archive, seconds: walk.seconds };
        JobPart { walk: Some(walk), ..JobPart::default() }
    };
    let parts = of_fio.chain(job::walks(job.text).into_iter().map(walk)).enumerate();
    JobSetup {
        serial: SERIAL.to_owned(),
        depth: drive.depth,
        elevator: scheduler.to_owned(),
        on_files: job.on_files,
        trees: trees.to_vec(),
        parts: parts
            .map(|(number, part)| JobPart { results: format!("{} {scheduler}/{number}", job.name), ..part })
            .collect(),
    }
}

/// Writes the tables of a comparison.
fn write(pairs: &[Pair], set: Set) -> Result<()> {
    let mut jobs = String::new();
    for kernel in &matrix::KERNELS {
        for drive in kernel.drives().filter(|drive| drive.set == set) {
            let table = page::jobs(pairs, kernel.name, drive);
            if !table.is_empty() {
                jobs.push_str(&format!("### Linux {} on `{}`\n\n{table}", kernel.name, drive.name));
            }
        }
    }
    match set {
        Set::Schedulers => {
            let parts = [("agreement", page::summary(pairs)), ("orders", page::wrong_orders(pairs)), ("jobs", jobs)];
            parts::put(PAGE, &parts)
        }
        Set::Syncs => parts::put(PAGE, &[("syncs", format!("{}{jobs}", page::syncs(pairs)))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_with_groups_has_a_part_for_each() {
        let job = matrix::JOBS.iter().find(|job| job.name == "weighted-groups").expect("it is in the table");
        let setup = setup(&matrix::DRIVES[0], job, "bfq", &[]);
        let groups: Vec<Option<(String, u64)>> = setup.parts.iter().map(|part| part.group.clone()).collect();
        assert_eq!(groups, [Some(("light".to_owned(), 100)), Some(("heavy".to_owned(), 300))]);
        assert_eq!(setup.parts[1].results, "weighted-groups bfq/1");
    }
}
