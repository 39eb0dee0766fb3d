//! The systems in which the blocks of docs/install.md run. Each begins without anything of the
//! repository, beside the packages that a user has downloaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_vm::debian_root::{Changed, DebianRoot};
use hoistway_workspace::console::Block;
use hoistway_workspace::programs;

use crate::binaries::{self, Machine};
use crate::crates;
use crate::source::Source;
use crate::{program, tree};

use super::containers;
use super::old_interface;
use super::old_kernel::{self, OldKernel};

/// The smallest Debian in which packages can be installed.
const DEBIAN: DebianRoot =
    DebianRoot { name: "install-bookworm", suite: "bookworm", variant: "apt", packages: "ca-certificates" };

/// The next version of Debian, with its Python.
const NEXT_DEBIAN: DebianRoot =
    DebianRoot { name: "install-trixie", suite: "trixie", variant: "apt", packages: "ca-certificates,python3-venv" };
/// The systems whose blocks also run on the next version of Debian.
pub(super) const ON_NEXT_DEBIAN: [&str; 3] = ["debian", "debian-c", "python"];

/// The path of programs that users have, and not what developers add.
const USER_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
/// The crates that the project of docs/install.md adds.
const RUST_ROOTS: [&str; 3] = ["hoistway-drive", "hoistway-fio", "hoistway-sim"];

/// The longest duration of a block, in seconds.
const BLOCK_SECONDS: &str = "900";

/// A system.
#[derive(Debug)]
pub(super) enum System {
    /// A minimal Debian with the packages in the home directory of root.
    Debian(Changed),
    /// A directory of this machine with the packages in it.
    Directory(tempfile::TempDir),
    /// The same, with the configuration of containers.
    Containers(tempfile::TempDir, Option<PathBuf>),
    /// A directory, and beside it a home of cargo for which the packages of the published crates,
    /// and the crates that they need, take the place of crates.io.
    Rust(tempfile::TempDir),
    /// A root directory with the files of the tarball, `/proc` and `/dev`. There is no shell: the
    /// words of a command are the program and its arguments.
    Empty {
        /// The directory.
        root: tempfile::TempDir,
        /// The emulator of another architecture.
        emulator: Option<&'static str>,
    },
    /// A directory of this machine with the files of the tarball, whose programs have the system
    /// calls of Linux 4.18.
    OldInterface(tempfile::TempDir),
    /// A virtual machine with an old kernel and the files of the tarball.
    OldKernel(OldKernel),
}

impl System {
    /// Makes a system.
    pub(super) fn new(name: &str, source: &Source, packages: &Path, machine: Machine) -> Result<System> {
        match name {
            "debian" | "debian-c" => System::debian(name, &DEBIAN, source, packages),
            "tarball" | "python" => {
                let directory = tempfile::tempdir()?;
                copy_packages(packages, directory.path())?;
                Ok(System::Directory(directory))
            }
            "podman" => {
                let directory = tempfile::tempdir()?;
                copy_packages(packages, directory.path())?;
                let file = directory.path().join("containers.conf");
                let configuration = containers::configuration(packages)?;
                configuration.map(|text| fs::write(&file, text)).transpose()?;
                Ok(System::Containers(directory, configuration.map(|_| file)))
            }
            "rust" => {
                let directory = tempfile::tempdir()?;
                fs::create_dir_all(directory.path().join("work"))?;
                fill_cargo_home(source, &directory.path().join("cargo"))?;
                Ok(System::Rust(directory))
            }
            "empty" => {
                let root = tempfile::tempdir()?;
                unpack(packages, machine, root.path())?;
                for name in ["proc", "dev"] {
                    fs::create_dir_all(root.path().join(name))?;
                }
                let emulator = match machine == Machine::native()? {
                    true => None,
                    false => Some(emulator(root.path(), machine)?),
                };
                Ok(System::Empty { root, emulator })
            }
            "linux-4.18" => {
                let directory = tempfile::tempdir()?;
                unpack(packages, machine, directory.path())?;
                Ok(System::OldInterface(directory))
            }
            "old-kernel" => {
                let root = tempfile::tempdir()?;
                unpack(packages, machine, root.path())?;
                Ok(System::OldKernel(OldKernel::new(kernel_folder(source)?, root)?))
            }
            _ => bail!("there is no system of this name"),
        }
    }

    /// Makes the next version of Debian for the blocks of a system.
    pub(super) fn next_debian(name: &str, source: &Source, packages: &Path) -> Result<System> {
        System::debian(name, &NEXT_DEBIAN, source, packages)
    }

    /// Makes a Debian with the packages in the home directory of root.
    fn debian(name: &str, root: &DebianRoot, source: &Source, packages: &Path) -> Result<System> {
        let folder = kernel_folder(source)?;
        let changed = Changed::new(root, &folder, &source.scratch(&format!("system-{name}")))?;
        copy_packages(packages, &changed.files().join("root"))?;
        // Packages come from the archive by the network of this machine.
        tree::copy(Path::new("/etc/resolv.conf"), &changed.files().join("etc/resolv.conf"), 0o644)?;
        Ok(System::Debian(changed))
    }

    /// The directory in which blocks begin.
    fn home(&self) -> PathBuf {
        match self {
            System::Debian(changed) => changed.files().join("root"),
            System::Directory(directory) | System::Containers(directory, _) | System::OldInterface(directory) => {
                directory.path().to_owned()
            }
            System::Rust(directory) => directory.path().join("work"),
            System::Empty { root, .. } => root.path().to_owned(),
            System::OldKernel(machine) => machine.root().to_owned(),
        }
    }

    /// Runs a block, after the files that it shows are written. Returns the status and the output
    /// of each command.
    pub(super) fn run(&self, block: &Block) -> Result<Vec<(i32, String)>> {
        block.append_files(&self.home()).context("a file that the block shows")?;
        let arguments =
            |script: String| ["--kill-after=5".to_owned(), BLOCK_SECONDS.into(), "bash".into(), "-c".into(), script];
        let output = match self {
            System::OldKernel(machine) => return Ok(block.results(&machine.run(&block.script())?)),
            System::Debian(changed) => {
                let script = format!("export HOME=/root NO_COLOR=1; cd /root\n{}", block.script());
                changed.command("timeout").args(arguments(script)).output()
            }
            System::Directory(_) => user_shell(&self.home()).args(arguments(block.script())).output(),
            System::Containers(_, configuration) => {
                let mut shell = user_shell(&self.home());
                shell.envs(configuration.as_ref().map(|file| ("CONTAINERS_CONF", file)));
                shell.args(arguments(block.script())).output()
            }
            System::OldInterface(_) => {
                Ok(old_interface::output(user_shell(&self.home()).args(arguments(block.script())))?)
            }
            System::Rust(directory) => {
                let mut shell = user_shell(&self.home());
                let programs = binaries::cargo_home().join("bin");
                shell.env("PATH", format!("{}:{USER_PATH}", programs.display()));
                shell.env("CARGO_HOME", directory.path().join("cargo")).env("CARGO_TERM_COLOR", "never");
                let of_rustup = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RUSTUP_"));
                shell.envs(of_rustup).env("RUSTUP_HOME", binaries::tool_home("RUSTUP_HOME", ".rustup"));
                shell.args(arguments(block.script())).output()
            }
            System::Empty { root, emulator } => {
                return block.steps.iter().map(|step| run_alone(root.path(), *emulator, &step.command)).collect();
            }
        };
        Ok(block.results(&String::from_utf8_lossy(&output.context("the system cannot start")?.stdout)))
    }
}

/// Returns why this machine cannot have a system, though its packages are right. With `install`
/// programs that the system needs are installed.
pub(super) fn obstacle(name: &str, source: &Source, packages: &Path, install: bool) -> Option<String> {
    match name {
        "podman" => containers::configuration(packages).err().map(|error| format!("{error:#}")),
        "linux-4.18" => no_mounts(install),
        "old-kernel" => old_kernel::obstacle(&kernel_folder(source).ok()?),
        _ => None,
    }
}

/// Returns why this machine cannot mount directories and copy to block servers.
fn no_mounts(install: bool) -> Option<String> {
    if !programs::is_root() || !Path::new("/dev/fuse").exists() {
        return Some("mounts need root and /dev/fuse".into());
    }
    programs::require_all(&[("nbdcopy", "libnbd-bin")], install).err().map(|error| format!("{error:#}"))
}

/// Makes the minimal Debian unless it is present. Needs root, mmdebstrap, and Debian's mirror.
pub(super) fn require_debian(source: &Source) -> Result<()> {
    programs::require_all(&[("mmdebstrap", "mmdebstrap")], false)?;
    DEBIAN.require(&kernel_folder(source)?)
}

/// The directory of all minimal Debian systems and kernels.
fn kernel_folder(source: &Source) -> Result<PathBuf> {
    let folder = source.workspace.target_directory.join("kernel");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// A command for a shell with a time limit in a directory, with the environment of a new user.
fn user_shell(directory: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.current_dir(directory).env_clear().env("PATH", USER_PATH).env("HOME", directory).env("NO_COLOR", "1");
    // How this machine reaches Python's packages, and how it runs containers.
    let is_of_machine = |name: &str| name.starts_with("PIP_") || name.starts_with("CONTAINERS_");
    command.envs(std::env::vars().filter(|(name, _)| is_of_machine(name)));
    command
}

/// Makes a home of cargo whose source of crates is a directory with the packages of the workspace.
fn fill_cargo_home(source: &Source, home: &Path) -> Result<()> {
    let workspace = crates::Crates::read(source.root())?;
    crates::package(&workspace)?;
    let crates = home.join("crates");
    crates::directory_source(&workspace, &RUST_ROOTS, &crates)?;
    let settings = format!(
        "[source.crates-io]\nreplace-with = \"packages\"\n\n[source.packages]\ndirectory = \"{}\"\n",
        crates.display()
    );
    tree::write(&home.join("config.toml"), settings, 0o644)
}

/// Copies the packages into a directory, which has a place for them in every system.
fn copy_packages(from: &Path, to: &Path) -> Result<()> {
    for file in tree::files_below(from)? {
        let place = to.join(&file);
        fs::create_dir_all(place.parent().unwrap_or(to))?;
        fs::hard_link(from.join(&file), &place).or_else(|_| fs::copy(from.join(&file), &place).map(drop))?;
    }
    Ok(())
}

/// Extracts the tarball into a root directory, with the libraries of a program that is not static.
fn unpack(packages: &Path, machine: Machine, root: &Path) -> Result<()> {
    let tarball = packages.join(format!("{}.tar.gz", program::tarball_name(machine)));
    let mut tar = Command::new("tar");
    programs::run(tar.args(["--strip-components=1", "-xzf"]).arg(&tarball).arg("-C").arg(root))?;
    // ldd fails for a static program.
    let libraries = Command::new("ldd").arg(root.join("hoistway")).output()?;
    if machine == Machine::native()? && libraries.status.success() {
        let printed = String::from_utf8_lossy(&libraries.stdout).into_owned();
        for library in printed.split_whitespace().filter(|word| word.starts_with('/')) {
            tree::copy(Path::new(library), &root.join(library.trim_start_matches('/')), 0o755)?;
        }
    }
    Ok(())
}

/// Puts the emulator of another architecture into a root directory and returns its path there.
fn emulator(root: &Path, machine: Machine) -> Result<&'static str> {
    let name = format!("qemu-{}-static", machine.name());
    programs::require_all(&[(&name, "qemu-user-static")], true)?;
    let found: PathBuf = programs::find(&name).context("the emulator")?;
    tree::copy(&found, &root.join("emulator"), 0o755)?;
    Ok("/emulator")
}

/// Runs a command in a root directory without a shell.
fn run_alone(root: &Path, emulator: Option<&str>, command: &str) -> Result<(i32, String)> {
    const ENTER: &str = "mount --bind /proc \"$1/proc\" && mount --bind /dev \"$1/dev\" && exec chroot \"$@\" 2>&1";
    let mut enter = Command::new("unshare");
    // Without root, a user namespace gives the right to change the root directory.
    if !programs::is_root() {
        enter.arg("--map-root-user");
    }
    enter.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(root).args(emulator);
    let output = enter.args(command.split_whitespace()).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    let output = output.env("NO_COLOR", "1").output().context("unshare cannot start")?;
    Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned()))
}
