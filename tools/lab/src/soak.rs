//! `cargo xtask soak`: the server under clients that verify their reads.
//!
//! There are four parts. fio writes and verifies while the elevator is switched repeatedly. A
//! file system is created on an export through nbdfuse and a loop device, filled, checked and
//! compared. The tools of qemu and libnbd copy in and out. A drive in real time gets requests one
//! at a time and many at once, and the lateness of its completions is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use hoistway_workspace::{cargo, programs, repository};

use hoistway_workspace::server::{self, Server};

const PACKAGES: [(&str, &str); 8] = [
    ("fio", "fio"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdfuse", "nbdfuse"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("mkfs.ext4", "e2fsprogs"),
    ("losetup", "mount"),
];

/// The largest delay of 99 % of the completions of an emulated drive.
const LATENESS_P99_NS_MAX: u64 = 200_000;

/// Options of `cargo xtask soak`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Minutes of each of the longer parts
    #[arg(long, default_value_t = 10.0, value_name = "N")]
    minutes: f64,
    /// Run only this part; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// The program to run, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Install missing programs (as root on Debian)
    #[arg(long)]
    install: bool,
}

/// The parts, in order.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Tools,
    Filesystem,
    Verify,
    Lateness,
}

/// Runs the selected parts, also after a failed one. Fails at the end and names all failed parts.
pub fn run(options: &Options) -> Result<()> {
    programs::require_all(&PACKAGES, options.install)?;
    let hoistway = options.hoistway.clone().map_or_else(cargo::packaged, Ok)?;
    let setup = Setup::new(hoistway)?;
    let duration = Duration::from_secs_f64(options.minutes * 60.0);
    let mut failed = Vec::new();
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        let name = format!("{part:?}").to_lowercase();
        println!("== {name}");
        let result = match part {
            Part::Tools => tools_agree(&setup),
            Part::Filesystem => file_system(&setup),
            Part::Verify => verify(&setup, duration),
            Part::Lateness => lateness(&setup, duration),
        };
        if let Err(error) = result {
            eprintln!("error: {name}: {error:#}");
            failed.push(name);
        }
    }
    fs::remove_dir_all(&setup.directory)?;
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// The directory of a run and the program.
struct Setup {
    directory: PathBuf,
    hoistway: PathBuf,
}

impl Setup {
    fn new(hoistway: PathBuf) -> Result<Setup> {
        let directory = std::env::temp_dir().join(format!("hoistway-soak-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        Ok(Setup { directory, hoistway })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Creates an empty file of this size.
    fn image(&self, name: &str, bytes: u64) -> Result<PathBuf> {
        let path = self.file(name);
        fs::File::create(&path)?.set_len(bytes)?;
        Ok(path)
    }

    fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.file("nbd.sock").display())
    }

    fn serve(&self, arguments: &[String]) -> Result<Server> {
        self.serve_by(Command::new(&self.hoistway), arguments)
    }

    /// Starts a server with real-time priority where that is allowed. Returns whether it was.
    fn serve_first(&self, arguments: &[String]) -> Result<(Server, bool)> {
        let mut first = Command::new("chrt");
        first.args(["-f", "10"]);
        let allowed = first.arg("true").status().is_ok_and(|status| status.success());
        let mut command = Command::new(&self.hoistway);
        if allowed {
            command = Command::new("chrt");
            command.args(["-f", "10"]).arg(&self.hoistway);
        }
        Ok((self.serve_by(command, arguments)?, allowed))
    }

    fn serve_by(&self, mut command: Command, arguments: &[String]) -> Result<Server> {
        let socket = self.file("nbd.sock");
        command
            .arg("serve")
            .args(arguments)
            .arg("--socket")
            .arg(&socket)
            .arg("--control")
            .arg(self.file("control.sock"));
        Server::start(&mut command, &self.file("server.log"))
    }

    fn ctl(&self, arguments: &[&str]) -> Result<String> {
        programs::output(
            Command::new(&self.hoistway).arg("ctl").args(arguments).arg("--control").arg(self.file("control.sock")),
        )
    }
}

/// fio writes, reads back and checks four exports of one device, with the elevator switched twenty
/// times a second.
fn verify(setup: &Setup, duration: Duration) -> Result<()> {
    let image = setup.image("verify.img", 2 << 30)?;
    let mut arguments = Vec::new();
    for index in 0..4u64 {
        let text = format!("part{index}={},offset={},size=256M", image.display(), index * (512 << 20));
        arguments.extend(["--export".to_owned(), text]);
    }
    let server = setup.serve(&arguments)?;
    let job = setup.file("verify.fio");
    let seconds = duration.as_secs().max(5);
    let mut text = format!(
        "[global]\nioengine=nbd\nsize=256m\nverify=crc32c\nverify_fatal=1\nverify_backlog=256\nverify_state_save=0\ntime_based\nruntime={seconds}\nthread\n"
    );
    for (index, what) in [
        "rw=randrw\nbs=4k\niodepth=16",
        "rw=randwrite\nbs=64k\niodepth=8",
        "rw=write\nbs=256k\niodepth=4",
        "rw=randrw\nbsrange=4k-128k\nbs_unaligned=0\niodepth=32",
    ]
    .iter()
    .enumerate()
    {
        text += &format!("[part{index}]\nuri={}\n{what}\n", setup.uri(&format!("part{index}")));
    }
    fs::write(&job, text)?;
    let device = first_device(setup)?;
    let elevators = server::elevators(&setup.hoistway)?;
    let (over, switches) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcome = std::thread::scope(|scope| {
        let switching = scope.spawn(|| -> Result<()> {
            for elevator in elevators.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                // A switch ends when what the old elevator dispatched is done; another one before
                // that is refused.
                while setup.ctl(&["get", &format!("devices/{device}/switching")])?.trim() != "0" {
                    std::thread::sleep(Duration::from_millis(10));
                }
                setup.ctl(&["set", &format!("devices/{device}/queue/scheduler"), elevator])?;
                switches.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        });
        let fio = programs::output(
            Command::new("fio")
                .arg("--output-format=terse")
                .arg(&job)
                .current_dir(&setup.directory)
                .stdin(Stdio::null()),
        );
        over.store(true, Ordering::Relaxed);
        let switched = switching.join().map_err(|_| anyhow::anyhow!("the switching thread failed"))?;
        fio.and(switched)
    });
    outcome?;
    server.stop()?;
    println!("{seconds} s of writes verified, {} switches of the elevator", switches.load(Ordering::Relaxed));
    Ok(())
}

fn first_device(setup: &Setup) -> Result<String> {
    let listed = setup.ctl(&["ls", "devices"])?;
    let name = listed.split_whitespace().next().context("the server has no device")?;
    Ok(name.trim_end_matches('/').to_owned())
}

/// ext4 on an export, through nbdfuse and a loop device: created, filled, checked, compared.
fn file_system(setup: &Setup) -> Result<()> {
    if !Path::new("/dev/fuse").exists() {
        println!("skipped: there is no /dev/fuse");
        return Ok(());
    }
    let image = setup.image("ext4.img", 1 << 30)?;
    let server = setup.serve(&["--export".to_owned(), format!("={}", image.display())])?;
    let (folder, mounted) = (setup.file("fuse"), setup.file("mounted"));
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(&mounted)?;
    let disk = folder.join("disk");
    let mut fuse =
        Command::new("nbdfuse").arg(&disk).arg("--unix").arg(setup.file("nbd.sock")).spawn().context("nbdfuse")?;
    let outcome = wait_for(&disk).and_then(|()| on_loop(&disk, &mounted));
    let unmounted = programs::run(Command::new("fusermount3").arg("-u").arg(&folder))
        .or_else(|_| programs::run(Command::new("umount").arg(&folder)));
    let _ = fuse.wait();
    outcome?;
    unmounted?;
    server.stop()?;
    println!("ext4 made, filled, unmounted, clean by fsck, equal to its source");
    Ok(())
}

fn wait_for(path: &Path) -> Result<()> {
    let began = Instant::now();
    while !path.exists() {
        if began.elapsed() > Duration::from_secs(10) {
            bail!("{} did not come", path.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn on_loop(disk: &Path, mounted: &Path) -> Result<()> {
    let device = programs::output(Command::new("losetup").args(["--show", "-f"]).arg(disk))?.trim().to_owned();
    let source = repository::root().join("crates");
    let outcome = (|| {
        programs::run(Command::new("mkfs.ext4").args(["-q", "-F", &device]))?;
        programs::run(Command::new("mount").arg(&device).arg(mounted))?;
        let copied = programs::run(Command::new("cp").arg("-a").arg(&source).arg(mounted));
        programs::run(Command::new("umount").arg(mounted))?;
        copied?;
        programs::run(Command::new("e2fsck").args(["-f", "-n", &device]).stdout(Stdio::null()))?;
        programs::run(Command::new("mount").args(["-o", "ro"]).arg(&device).arg(mounted))?;
        let compared = programs::run(Command::new("diff").arg("-r").arg(&source).arg(mounted.join("crates")));
        programs::run(Command::new("umount").arg(mounted))?;
        compared
    })();
    programs::run(Command::new("losetup").args(["-d", &device]))?;
    outcome
}

/// qemu's and libnbd's tools: information, copies in and out, patterns, zeroes, discards.
fn tools_agree(setup: &Setup) -> Result<()> {
    let source = setup.file("source.img");
    let pattern: Vec<u8> = (0..(24u32 << 20)).map(|at| (at % 253) as u8).collect();
    fs::write(&source, &pattern)?;
    // Sparse at the end, so that holes are copied too.
    fs::OpenOptions::new().write(true).open(&source)?.set_len(64 << 20)?;
    let target = setup.image("target.img", 64 << 20)?;
    let server = setup.serve(&[
        "--export".to_owned(),
        format!("file={}", target.display()),
        "--export".to_owned(),
        "memory=mem:64M".to_owned(),
    ])?;
    for export in ["file", "memory"] {
        let uri = setup.uri(export);
        let back = setup.file("back.img");
        programs::output(Command::new("nbdinfo").arg("--json").arg(&uri))?;
        programs::run(Command::new("nbdcopy").arg(&source).arg(&uri))?;
        programs::run(Command::new("nbdcopy").arg(&uri).arg(&back))?;
        programs::run(Command::new("cmp").arg(&source).arg(&back))?;
        programs::output(Command::new("nbdinfo").arg("--map").arg(&uri))?;
        programs::output(Command::new("qemu-img").args(["compare", "-f", "raw", "-F", "raw"]).arg(&source).arg(&uri))?;
        programs::output(
            Command::new("qemu-img").args(["convert", "-f", "raw", "-O", "raw", "-n"]).arg(&source).arg(&uri),
        )?;
        programs::output(
            Command::new("qemu-img")
                .args(["bench", "-f", "raw", "-w", "-c", "2000", "-d", "32", "-s", "4096"])
                .arg(&uri),
        )?;
        let mut qemu_io = Command::new("qemu-io");
        qemu_io.args(["-f", "raw"]);
        for command in [
            "write -P 0xa5 1M 3M",
            "read -P 0xa5 1M 3M",
            "write -z 2M 64k",
            "read -P 0 2M 64k",
            "discard 3M 512k",
            "write -f -P 0x5a 4097 511",
            "read -P 0x5a 4097 511",
            "flush",
        ] {
            qemu_io.args(["-c", command]);
        }
        let printed = programs::output(qemu_io.arg(&uri))?;
        if printed.contains("failed") || printed.contains("error") {
            bail!("qemu-io on {export}: {printed}");
        }
        fs::remove_file(&back)?;
    }
    server.stop()?;
    println!("nbdinfo, nbdcopy, qemu-img (compare, convert, bench) and qemu-io agree with a file and with memory");
    Ok(())
}

/// Measures the delay of the server's completions against those of the model, for a disk in real
/// time at queue depths 1 and 32.
fn lateness(setup: &Setup, duration: Duration) -> Result<()> {
    // As many commands as it takes at once, so that the same model is under both.
    const DRIVE: &str = "cmr-8tb";
    let mut late = Vec::new();
    for depth in [1, 32] {
        let arguments = ["--export", "=null:64G", "--drive", DRIVE, "--elevator", "noop"];
        let (server, is_first) = setup.serve_first(&arguments.map(str::to_owned))?;
        let mut fio = Command::new("fio");
        fio.args(["--name=l", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--size=64g", "--time_based"]);
        fio.args(["--norandommap", "--thread", "--output-format=terse"]);
        fio.arg(format!("--iodepth={depth}")).arg(format!("--runtime={}", duration.as_secs().max(2)));
        fio.arg(format!("--uri={}", setup.uri("")));
        programs::output(&mut fio)?;
        let device = first_device(setup)?;
        let printed = setup.ctl(&["get", &format!("devices/{device}/lateness")])?;
        let p99_ns = p99_of(&printed).with_context(|| format!("no p99 in {printed:?}"))?;
        let class = if is_first { "first of all processes (chrt -f 10)" } else { "as any other process" };
        println!("{DRIVE}, {depth} at once, {} s, {class}:", duration.as_secs());
        histogram_in(&server.stop()?).for_each(|line| println!("  {line}"));
        if p99_ns > LATENESS_P99_NS_MAX {
            late.push(format!("{depth} at once: 99 % came within {p99_ns} ns"));
        }
    }
    if !late.is_empty() {
        bail!("{}; {LATENESS_P99_NS_MAX} ns are allowed", late.join(", "));
    }
    Ok(())
}

/// The figure after `p99=`.
fn p99_of(printed: &str) -> Option<u64> {
    printed.split_whitespace().find_map(|word| word.strip_prefix("p99="))?.parse().ok()
}

/// The lines in which an exiting server reports the delay of its completions.
fn histogram_in(log: &str) -> impl Iterator<Item = &str> {
    log.lines()
        .filter(|line| line.contains(" completions came late ") || line.contains(" us ") && line.contains(" to "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_and_the_histogram_are_found() {
        assert_eq!(p99_of("count=10 p50=20000 p99=90000 max=150000\n"), Some(90_000));
        let log = "INFO ready\ncmr-8tb: 7 completions came late by 4.0 us (p50), ...\n        0 to         1 us            7\n";
        assert_eq!(histogram_in(log).count(), 2);
    }
}
