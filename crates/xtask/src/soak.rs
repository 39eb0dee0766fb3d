//! `cargo xtask soak`: the server under clients that check what they get back, for as long as one likes.
//!
//! Four parts: fio writes and verifies while the elevator is switched again and again; a file system is made on an export through
//! nbdfuse and a loop device, filled, checked and compared; qemu's and libnbd's tools copy in and out; a drive in real time is asked for requests one at a
//! time and many at once, and how late its completions were is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tools::{self, cargo};

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
    let hoistway = match hoistway {
        Some(program) => program,
        None => {
            tools::run(cargo().args(["build", "--quiet", "--release", "-p", "hoistway-cli"]))?;
            tools::target_directory()?.join("release/hoistway")
        }
    };
    let place = Place::new(hoistway)?;
    let duration = Duration::from_secs_f64(minutes * 60.0);
    let parts: [(&str, &dyn Fn() -> Result<()>); 4] = [
        ("tools", &|| tools_agree(&place)),
        ("filesystem", &|| file_system(&place)),
        ("verify", &|| verify(&place, duration)),
        ("lateness", &|| lateness(&place, duration)),
    ];
    for (name, part) in parts {
        if only.is_empty() || only.contains(&name) {
            println!("== {name}");
            part().with_context(|| format!("soak: {name}"))?;
        }
    }
    fs::remove_dir_all(&place.directory)?;
    Ok(())
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
        let socket = self.file("nbd.sock");
        let log = fs::File::create(self.file("server.log"))?;
        let mut command = Command::new(&self.hoistway);
        command
            .arg("serve")
            .args(arguments)
            .arg("--socket")
            .arg(&socket)
            .arg("--control")
            .arg(self.file("control.sock"));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.spawn().context("cannot start the server")?;
        let began = Instant::now();
        while !socket.exists() {
            if child.try_wait()?.is_some() || began.elapsed() > Duration::from_secs(20) {
                bail!("the server did not start: {}", fs::read_to_string(self.file("server.log"))?);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Server { child })
    }

    /// The names of all elevators that the program has.
    fn elevators(&self) -> Result<Vec<String>> {
        let printed = tools::output(Command::new(&self.hoistway).args(["elevators", "--json"]))?;
        let document: serde_json::Value =
            serde_json::from_str(&printed).context("what hoistway elevators --json prints")?;
        let listed = document["elevators"].as_array().context("no list of elevators")?;
        listed.iter().map(|one| Ok(one["name"].as_str().context("an elevator without a name")?.to_owned())).collect()
    }

    fn ctl(&self, arguments: &[&str]) -> Result<String> {
        tools::output(
            Command::new(&self.hoistway).arg("ctl").args(arguments).arg("--control").arg(self.file("control.sock")),
        )
    }
}

/// A server; asked to leave at the end, and killed if something went wrong before.
struct Server {
    child: Child,
}

impl Server {
    /// Asks it to leave and waits: it must do so cleanly.
    fn leave(mut self) -> Result<()> {
        tools::run(Command::new("kill").arg(self.child.id().to_string()))?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { bail!("the server left with {status}") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    let elevators = place.elevators()?;
    let (over, switches) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcome = std::thread::scope(|scope| {
        let switching = scope.spawn(|| -> Result<()> {
            for elevator in elevators.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
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
    for (drive, depth) in [("sata-7200-2006", 1), ("cmr-8tb", 32)] {
        let server = place.serve(&[
            "--export".to_owned(),
            "=null:64G".to_owned(),
            "--drive".to_owned(),
            drive.to_owned(),
            "--elevator".to_owned(),
            "noop".to_owned(),
        ])?;
        let mut fio = Command::new("fio");
        fio.args([
            "--name=l",
            "--ioengine=nbd",
            "--rw=randread",
            "--bs=4k",
            "--size=64g",
            "--time_based",
            "--norandommap",
            "--thread",
        ]);
        fio.args(["--output-format=terse"])
            .arg(format!("--iodepth={depth}"))
            .arg(format!("--runtime={}", duration.as_secs().max(2)));
        fio.arg(format!("--uri={}", place.uri("")));
        tools::output(&mut fio)?;
        let device = first_device(place)?;
        println!("{drive}, {depth} at once, {} s:", duration.as_secs());
        let told = place.ctl(&["get", &format!("devices/{device}/lateness")])?;
        println!("{}", told.trim_end());
        let p99_ns: u64 = told
            .split_whitespace()
            .find_map(|word| word.strip_prefix("p99="))
            .and_then(|ns| ns.parse().ok())
            .with_context(|| format!("no p99 in {told:?}"))?;
        server.leave()?;
        if p99_ns > LATENESS_P99_NS_MAX {
            bail!(
                "{drive}, {depth} at once: 99 % came within {p99_ns} ns; {LATENESS_P99_NS_MAX} are allowed (on an idle machine)"
            );
        }
    }
    Ok(())
}
