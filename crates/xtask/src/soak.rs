//! `cargo xtask soak`: the server under clients that check what they get back, for as long as one likes.
//!
//! Four parts: fio writes and verifies while the elevator is switched again and again; a file system is made on an export through
//! nbdfuse and a loop device, filled, checked and compared; qemu's and libnbd's tools copy in and out; a drive in real time is asked for requests one at a
//! time and many at once, and how late its completions were is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::server::{self, Server};
use crate::tools;

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

/// How late 99 % of an emulated drive's completions may be.
const LATENESS_P99_NS_MAX: u64 = 200_000;

pub const USAGE: &str =
    "cargo xtask soak [--minutes N] [--only verify|filesystem|tools|lateness]... [--hoistway PROGRAM]";

/// Runs the parts; the longer ones for `--minutes` each.
pub fn run(arguments: &[&str]) -> Result<()> {
    let (mut minutes, mut only, mut hoistway) = (10.0, Vec::new(), None);
    let mut words = arguments.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().with_context(|| format!("{word} needs a value\n{USAGE}"));
        match word {
            "--minutes" => minutes = value()?.parse::<f64>().context("--minutes takes a number")?,
            "--only" => only.push(value()?),
            "--hoistway" => hoistway = Some(PathBuf::from(value()?)),
            other => bail!("{other:?} is no option\n{USAGE}"),
        }
    }
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(program, _)| tools::find(program).is_none()).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        tools::install(&missing)?;
    }
    let hoistway = hoistway.map_or_else(server::build, Ok)?;
    let place = Place::new(hoistway)?;
    let duration = Duration::from_secs_f64(minutes * 60.0);
    let parts: [Part<'_>; 4] = [
        ("tools", &|| tools_agree(&place)),
        ("filesystem", &|| file_system(&place)),
        ("verify", &|| verify(&place, duration)),
        ("lateness", &|| lateness(&place, duration)),
    ];
    if let Some(unknown) = only.iter().find(|only| parts.iter().all(|(name, _)| name != *only)) {
        bail!("--only takes verify, filesystem, tools or lateness, not {unknown:?}");
    }
    let wanted = parts.into_iter().filter(|(name, _)| only.is_empty() || only.contains(name));
    let outcome = run_all(wanted);
    fs::remove_dir_all(&place.directory)?;
    outcome
}

/// A part: its name and what it does.
type Part<'a> = (&'a str, &'a dyn Fn() -> Result<()>);

/// Runs all parts, whatever becomes of the others, and fails at the end if one did.
fn run_all<'a>(parts: impl Iterator<Item = Part<'a>>) -> Result<()> {
    let mut failed = Vec::new();
    for (name, part) in parts {
        println!("== {name}");
        if let Err(error) = part() {
            eprintln!("error: {name}: {error:#}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Where a run's files lie.
struct Place {
    directory: PathBuf,
    hoistway: PathBuf,
}

impl Place {
    fn new(hoistway: PathBuf) -> Result<Place> {
        let directory = std::env::temp_dir().join(format!("hoistway-soak-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        Ok(Place { directory, hoistway })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// An empty file of this size.
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

    /// The same with the processor before all others, where that is allowed; answers whether it is.
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
        tools::output(
            Command::new(&self.hoistway).arg("ctl").args(arguments).arg("--control").arg(self.file("control.sock")),
        )
    }
}

/// fio writes, reads back and checks four exports of one device, with the elevator switched twenty times a second.
fn verify(place: &Place, duration: Duration) -> Result<()> {
    let image = place.image("verify.img", 2 << 30)?;
    let mut arguments = Vec::new();
    for index in 0..4u64 {
        let text = format!("part{index}={},offset={},size=256M", image.display(), index * (512 << 20));
        arguments.extend(["--export".to_owned(), text]);
    }
    let server = place.serve(&arguments)?;
    let job = place.file("verify.fio");
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
        text += &format!("[part{index}]\nuri={}\n{what}\n", place.uri(&format!("part{index}")));
    }
    fs::write(&job, text)?;
    let device = first_device(place)?;
    let elevators = server::elevators(&place.hoistway)?;
    let (over, switches) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcome = std::thread::scope(|scope| {
        let switching = scope.spawn(|| -> Result<()> {
            for elevator in elevators.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                // A switch ends when what the old elevator dispatched is done; another one before that is refused.
                while place.ctl(&["get", &format!("devices/{device}/switching")])?.trim() != "0" {
                    std::thread::sleep(Duration::from_millis(10));
                }
                place.ctl(&["set", &format!("devices/{device}/queue/scheduler"), elevator])?;
                switches.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        });
        let fio = tools::output(
            Command::new("fio")
                .arg("--output-format=terse")
                .arg(&job)
                .current_dir(&place.directory)
                .stdin(Stdio::null()),
        );
        over.store(true, Ordering::Relaxed);
        let switched = switching.join().map_err(|_| anyhow::anyhow!("the switching thread failed"))?;
        fio.and(switched)
    });
    outcome?;
    server.leave()?;
    println!("{seconds} s of writes verified, {} switches of the elevator", switches.load(Ordering::Relaxed));
    Ok(())
}

fn first_device(place: &Place) -> Result<String> {
    let listed = place.ctl(&["ls", "devices"])?;
    let name = listed.split_whitespace().next().context("the server has no device")?;
    Ok(name.trim_end_matches('/').to_owned())
}

/// ext4 on an export, through nbdfuse and a loop device: made, filled, checked, compared.
fn file_system(place: &Place) -> Result<()> {
    if !Path::new("/dev/fuse").exists() {
        println!("skipped: there is no /dev/fuse");
        return Ok(());
    }
    let image = place.image("ext4.img", 1 << 30)?;
    let server = place.serve(&["--export".to_owned(), format!("={}", image.display())])?;
    let (folder, mounted) = (place.file("fuse"), place.file("mounted"));
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(&mounted)?;
    let disk = folder.join("disk");
    let mut fuse =
        Command::new("nbdfuse").arg(&disk).arg("--unix").arg(place.file("nbd.sock")).spawn().context("nbdfuse")?;
    let outcome = wait_for(&disk).and_then(|()| on_loop(&disk, &mounted));
    let unmounted = tools::run(Command::new("fusermount3").arg("-u").arg(&folder))
        .or_else(|_| tools::run(Command::new("umount").arg(&folder)));
    let _ = fuse.wait();
    outcome?;
    unmounted?;
    server.leave()?;
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
    let device = tools::output(Command::new("losetup").args(["--show", "-f"]).arg(disk))?.trim().to_owned();
    let source = crate::repository::root().join("crates");
    let outcome = (|| {
        tools::run(Command::new("mkfs.ext4").args(["-q", "-F", &device]))?;
        tools::run(Command::new("mount").arg(&device).arg(mounted))?;
        let copied = tools::run(Command::new("cp").arg("-a").arg(&source).arg(mounted));
        tools::run(Command::new("umount").arg(mounted))?;
        copied?;
        tools::run(Command::new("e2fsck").args(["-f", "-n", &device]).stdout(Stdio::null()))?;
        tools::run(Command::new("mount").args(["-o", "ro"]).arg(&device).arg(mounted))?;
        let compared = tools::run(Command::new("diff").arg("-r").arg(&source).arg(mounted.join("crates")));
        tools::run(Command::new("umount").arg(mounted))?;
        compared
    })();
    tools::run(Command::new("losetup").args(["-d", &device]))?;
    outcome
}

/// qemu's and libnbd's tools: information, copies in and out, patterns, zeroes, discards.
fn tools_agree(place: &Place) -> Result<()> {
    let source = place.file("source.img");
    let pattern: Vec<u8> = (0..(24u32 << 20)).map(|at| (at % 253) as u8).collect();
    fs::write(&source, &pattern)?;
    // Sparse at the end, so that holes are copied too.
    fs::OpenOptions::new().write(true).open(&source)?.set_len(64 << 20)?;
    let target = place.image("target.img", 64 << 20)?;
    let server = place.serve(&[
        "--export".to_owned(),
        format!("file={}", target.display()),
        "--export".to_owned(),
        "memory=mem:64M".to_owned(),
    ])?;
    for export in ["file", "memory"] {
        let uri = place.uri(export);
        let back = place.file("back.img");
        tools::output(Command::new("nbdinfo").arg("--json").arg(&uri))?;
        tools::run(Command::new("nbdcopy").arg(&source).arg(&uri))?;
        tools::run(Command::new("nbdcopy").arg(&uri).arg(&back))?;
        tools::run(Command::new("cmp").arg(&source).arg(&back))?;
        tools::output(Command::new("nbdinfo").arg("--map").arg(&uri))?;
        tools::output(Command::new("qemu-img").args(["compare", "-f", "raw", "-F", "raw"]).arg(&source).arg(&uri))?;
        tools::output(
            Command::new("qemu-img").args(["convert", "-f", "raw", "-O", "raw", "-n"]).arg(&source).arg(&uri),
        )?;
        tools::output(
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
        let printed = tools::output(qemu_io.arg(&uri))?;
        if printed.contains("failed") || printed.contains("error") {
            bail!("qemu-io on {export}: {printed}");
        }
        fs::remove_file(&back)?;
    }
    server.leave()?;
    println!("nbdinfo, nbdcopy, qemu-img (compare, convert, bench) and qemu-io agree with a file and with memory");
    Ok(())
}

/// A disk in real time, one request at once and 32: how late the server's completions were against the model's.
fn lateness(place: &Place, duration: Duration) -> Result<()> {
    // As many commands as it takes at once, so that the same model is under both.
    const DRIVE: &str = "cmr-8tb";
    let mut late = Vec::new();
    for depth in [1, 32] {
        let arguments = ["--export", "=null:64G", "--drive", DRIVE, "--elevator", "noop"];
        let (server, is_first) = place.serve_first(&arguments.map(str::to_owned))?;
        let mut fio = Command::new("fio");
        fio.args(["--name=l", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--size=64g", "--time_based"]);
        fio.args(["--norandommap", "--thread", "--output-format=terse"]);
        fio.arg(format!("--iodepth={depth}")).arg(format!("--runtime={}", duration.as_secs().max(2)));
        fio.arg(format!("--uri={}", place.uri("")));
        tools::output(&mut fio)?;
        let device = first_device(place)?;
        let told = place.ctl(&["get", &format!("devices/{device}/lateness")])?;
        let p99_ns = p99_of(&told).with_context(|| format!("no p99 in {told:?}"))?;
        let class = if is_first { "first of all processes (chrt -f 10)" } else { "as any other process" };
        println!("{DRIVE}, {depth} at once, {} s, {class}:", duration.as_secs());
        histogram_in(&server.leave()?).for_each(|line| println!("  {line}"));
        if p99_ns > LATENESS_P99_NS_MAX {
            late.push(format!("{depth} at once: 99 % came within {p99_ns} ns"));
        }
    }
    if !late.is_empty() {
        bail!("{}; {LATENESS_P99_NS_MAX} ns are allowed", late.join(", "));
    }
    Ok(())
}

/// The figure behind `p99=`.
fn p99_of(told: &str) -> Option<u64> {
    told.split_whitespace().find_map(|word| word.strip_prefix("p99="))?.parse().ok()
}

/// The lines in which a server that leaves tells how late its completions were.
fn histogram_in(log: &str) -> impl Iterator<Item = &str> {
    log.lines()
        .filter(|line| line.contains(" completions came late ") || line.contains(" us ") && line.contains(" to "))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_part_that_fails_keeps_no_other_from_running() {
        let ran = RefCell::new(Vec::new());
        let part = |name: &'static str, works: bool| {
            let ran = &ran;
            move || {
                ran.borrow_mut().push(name);
                if works { Ok(()) } else { bail!("it does not") }
            }
        };
        let (first, second, third) = (part("first", false), part("second", true), part("third", false));
        let parts: [Part<'_>; 3] = [("first", &first), ("second", &second), ("third", &third)];
        let error = run_all(parts.into_iter()).expect_err("two fail");
        assert_eq!((error.to_string().as_str(), ran.borrow().len()), ("failed: first, third", 3));
    }

    #[test]
    fn the_p99_and_the_histogram_are_found() {
        assert_eq!(p99_of("count=10 p50=20000 p99=90000 max=150000\n"), Some(90_000));
        let log = "INFO ready\ncmr-8tb: 7 completions came late by 4.0 us (p50), ...\n        0 to         1 us            7\n";
        assert_eq!(histogram_in(log).count(), 2);
    }
}
