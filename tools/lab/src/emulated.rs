//! Emulated disks: an image behind the model of a drive in real time, presented as a file, a loop
//! device, and a file system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hoistway_workspace::programs;

use hoistway_workspace::server::Server;

/// The longest time until FUSE presents the file.
const PATIENCE: Duration = Duration::from_secs(20);

/// The parameters of an emulated disk.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The hoistway program.
    pub hoistway: &'a Path,
    /// The file with the contents of the disk.
    pub image: &'a Path,
    /// The directory of sockets and mounts.
    pub folder: &'a Path,
    /// The name or the file of a drive profile.
    pub drive: &'a str,
    /// The elevator of the disk.
    pub elevator: &'a str,
    /// Whether the file system is mounted read-only.
    pub read_only: bool,
    /// A number that differs from that of the previous disk, which may not be detached yet.
    pub number: u32,
}

/// A file system on an emulated disk.
#[derive(Debug)]
pub struct Disk {
    mounted: Mounted,
    fuse: Fuse,
    server: Server,
}

impl Disk {
    /// Starts the disk and mounts its file system, with cold caches.
    pub fn new(setup: &Setup<'_>) -> Result<Disk> {
        let socket = setup.folder.join(format!("nbd-{}.sock", setup.number));
        let mut serve = Command::new("chrt");
        serve.args(["--fifo", "10"]).arg(setup.hoistway).arg("serve").arg("--export");
        let mode = if setup.read_only { ",read-only" } else { "" };
        serve.arg(format!("={}{mode}", setup.image.display()));
        serve.args(["--drive", setup.drive, "--elevator", setup.elevator, "--socket"]).arg(&socket);
        let server = Server::start(&mut serve, &setup.folder.join("serve.log"))?;
        let fuse = Fuse::new(&setup.folder.join("fuse"), &socket, setup.read_only)?;
        let at = setup.folder.join("mnt");
        let mounted =
            if setup.read_only { Mounted::new(&fuse.file(), &at)? } else { Mounted::writable(&fuse.file(), &at)? };
        Ok(Disk { mounted, fuse, server })
    }

    /// The mounted file system.
    pub fn mounted(&self) -> &Mounted {
        &self.mounted
    }

    /// Unmounts the file system and stops the server, which must exit without an error.
    pub fn stop(self) -> Result<()> {
        let Disk { mounted, fuse, server } = self;
        drop(mounted);
        drop(fuse);
        server.stop().map(drop)
    }
}

/// A file system on a loop device that bypasses the page cache of the file system below. Dropping
/// it unmounts it.
#[derive(Debug)]
pub struct Mounted {
    pub at: PathBuf,
    /// The path of the device, such as /dev/loop0.
    pub device: String,
}

impl Mounted {
    /// Mounts `image`, a file in any file system, read-only and with cold caches.
    pub fn new(image: &Path, at: &Path) -> Result<Mounted> {
        Mounted::with(image, at, &["--read-only"], "ro,noatime")
    }

    /// Mounts `image` for reading and writing, with cold caches.
    pub fn writable(image: &Path, at: &Path) -> Result<Mounted> {
        Mounted::with(image, at, &[], "noatime")
    }

    fn with(image: &Path, at: &Path, attach: &[&str], options: &str) -> Result<Mounted> {
        fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--direct-io=on"]).args(attach).arg(image);
        let device = programs::output(&mut losetup)?.trim().to_owned();
        let mounted = Mounted { at: at.to_owned(), device };
        // What disks have; loop devices may have more.
        programs::run(Command::new("blockdev").args(["--setra", "256", &mounted.device]))?;
        programs::run(Command::new("mount").args(["-o", options, &mounted.device]).arg(at))?;
        Ok(mounted)
    }

    /// The number of reads since the device was created, and their bytes.
    pub fn reads(&self) -> Result<(u64, u64)> {
        let name = self.device.rsplit('/').next().unwrap_or_default();
        // The kernel's Documentation/block/stat.rst: reads, merged reads, sectors.
        let text = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
        let figures: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        ensure!(figures.len() > 2, "/sys/block/{name}/stat is `{}`", text.trim());
        Ok((figures[0], figures[2] * 512))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A file system that cannot be unmounted stays visible in `losetup`. The kernel lets go of
        // the files of an io_uring some time after the process has ended.
        unmount(&self.at);
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// An export presented as a file by nbdfuse.
#[derive(Debug)]
pub struct Fuse {
    at: PathBuf,
    child: Child,
}

impl Fuse {
    /// Presents the export behind a socket as a file, read-only if requested.
    pub fn new(at: &Path, socket: &Path, read_only: bool) -> Result<Fuse> {
        fs::create_dir_all(at)?;
        // One thread and one connection: several hand requests on in another order than they were
        // given, which a disk without a queue pays for with turns.
        let mut command = Command::new("chrt");
        command.args(["--fifo", "8", "nbdfuse", "-s", "-C", "1"]).args(read_only.then_some("-r"));
        command.arg(at.join("disk")).arg("--unix").arg(socket);
        let child = command.stdout(Stdio::null()).spawn().context("cannot start nbdfuse")?;
        let fuse = Fuse { at: at.to_owned(), child };
        let begun = Instant::now();
        while !fuse.file().exists() {
            if begun.elapsed() > PATIENCE {
                bail!("nbdfuse shows no file after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(fuse)
    }

    /// The path of the file.
    pub fn file(&self) -> PathBuf {
        self.at.join("disk")
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // nbdfuse ends when it is unmounted; a loop device may hold it for a moment.
        if !unmount(&self.at) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Unmounts as soon as no process uses the file system. Returns true if that was before the
/// timeout.
fn unmount(at: &Path) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let unmounted = Command::new("umount").arg(at).stderr(Stdio::null()).status();
        if unmounted.is_ok_and(|status| status.success()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}
