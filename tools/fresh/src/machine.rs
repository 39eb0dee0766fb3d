//! The system: made from a minimal Debian, with the active Rust toolchain of this machine and
//! without its additions.
//!
//! A command runs in namespaces of its own for mounts and processes. Whatever ends it or this
//! program ends all processes that it started, and then the kernel removes the mounts.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_vm::debian_root::{self, DebianRoot};
use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::programs;

use crate::registries;

/// The smallest Debian in which packages can be installed, with what Rust itself needs (a linker),
/// what makes a clone, and mount(8), which every installed Debian has.
const SYSTEM: DebianRoot = DebianRoot {
    name: "fresh-bookworm",
    suite: "bookworm",
    variant: "apt",
    packages: "ca-certificates,gcc,git,libc6-dev,mount",
};

/// The directory of the clone.
pub(crate) const CLONE: &str = "~/hoistway";
/// The directory in which sessions run.
pub(crate) const SESSIONS: &str = "~/sessions";
/// Directories of the repository that sessions use.
const OF_SESSIONS: [&str; 4] = ["examples", "testdata", "crates", "tools"];

/// The components of a toolchain as rustup installs it; others are additions.
const COMPONENTS: [&str; 6] = ["cargo", "clippy", "rust-docs", "rust-std", "rustc", "rustfmt"];
/// The programs of rustup that are links to it.
const PROXIES: [&str; 8] =
    ["cargo", "cargo-clippy", "cargo-fmt", "clippy-driver", "rustc", "rustdoc", "rustfmt", "rust-gdb"];

/// Mounts what programs expect, and changes the root directory. The root is a mount of its own, as
/// on every machine: without it no mount has its files.
const ENTER: &str = "mount --bind \"$1\" \"$1\" && mount --rbind /dev \"$1/dev\" && mount --rbind /sys \"$1/sys\" && \
                     mount -t proc proc \"$1/proc\" && mount -t tmpfs tmpfs \"$1/run\" && exec chroot \"$@\"";

/// A fresh machine.
#[derive(Debug)]
pub(crate) struct Machine {
    root: PathBuf,
    log: PathBuf,
}

impl Machine {
    /// Makes the machine below a directory, or takes the one that is there.
    pub(crate) fn new(workspace: &Workspace, directory: &Path, again: bool) -> Result<Machine> {
        let directory = std::path::absolute(directory)?;
        let machine = Machine { root: directory.join("root"), log: directory.join("log.txt") };
        if again {
            if !machine.at(CLONE).is_dir() {
                bail!("{} has no system that an earlier call kept", machine.root.display());
            }
            return Ok(machine);
        }
        machine.remove()?;
        File::create(&machine.log).with_context(|| format!("cannot write {}", machine.log.display()))?;
        let folder = workspace.target_directory.join("kernel");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        SYSTEM.require(&folder)?;
        let mut copy = Command::new("cp");
        programs::run(copy.args(["--archive", "--reflink=auto"]).arg(SYSTEM.directory(&folder)).arg(&machine.root))?;
        write(&machine.at("/etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
        machine.add_registries()?;
        machine.add_toolchain(workspace)?;
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--no-hardlinks"]).arg(workspace.root.canonicalize()?);
        programs::run(clone.arg(machine.at(CLONE)))?;
        Ok(machine)
    }

    /// The root directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path of the machine, seen from outside. `~` is the home directory of its user, root.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.replacen('~', "root", 1).trim_start_matches('/'))
    }

    /// Gives the machine the access to packages that this one has.
    fn add_registries(&self) -> Result<()> {
        let apt = self.at("/etc/apt");
        write(&apt.join("sources.list"), &debian_root::bookworm_sources()?)?;
        let acquire = programs::output(Command::new("apt-config").args(["dump", "Acquire"]))?;
        write(&apt.join("apt.conf.d/99acquire"), &acquire)?;
        for (from, to) in registries::files(&home()?, &cargo_home()?) {
            if from.is_file() {
                let to = self.root.join(to);
                fs::create_dir_all(to.parent().unwrap_or(&self.root))?;
                // The copy has the access rights of the file, which may hold a password.
                fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
            }
        }
        Ok(())
    }

    /// Copies rustup and the active toolchain without its documentation, and removes the targets
    /// and components that were added.
    fn add_toolchain(&self, workspace: &Workspace) -> Result<()> {
        let mut rustc = Command::new("rustc");
        let printed = programs::output(rustc.args(["--print", "sysroot"]).current_dir(&workspace.root))?;
        let toolchain = Path::new(printed.trim()).canonicalize()?;
        let name = toolchain.file_name().context("the toolchain has no name")?.to_string_lossy().into_owned();
        let rustup = programs::find("rustup").context("only a toolchain of rustup can be copied: rustup is missing")?;
        let programs_of_cargo = self.at("~/.cargo/bin");
        fs::create_dir_all(&programs_of_cargo)?;
        fs::copy(rustup.canonicalize()?, programs_of_cargo.join("rustup"))?;
        for proxy in PROXIES {
            symlink("rustup", programs_of_cargo.join(proxy))?;
        }
        let to = self.at("~/.rustup/toolchains").join(&name);
        fs::create_dir_all(&to)?;
        const COPY: &str = "tar -C \"$1\" --exclude=./share/doc -c . | tar -C \"$2\" -x";
        programs::run(Command::new("sh").args(["-c", COPY, "sh"]).arg(&toolchain).arg(&to))?;
        let settings = format!("version = \"12\"\nprofile = \"default\"\ndefault_toolchain = \"{name}\"\n");
        write(&self.at("~/.rustup/settings.toml"), &settings)?;
        self.remove_additions()
    }

    /// Removes what was added to the toolchain.
    fn remove_additions(&self) -> Result<()> {
        let listed = |what: &str| -> Result<String> {
            match self.run("/", &format!("rustup {what} list --installed"))? {
                (0, printed) => Ok(printed),
                (status, printed) => bail!("rustup {what} list exits with {status}:\n{printed}"),
            }
        };
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let targets = added_targets(&listed("target")?, &host);
        let components = added_components(&listed("component")?);
        let removals = targets.iter().map(|name| format!("rustup target remove {name}"));
        let removals = removals.chain(components.iter().map(|name| format!("rustup component remove {name}")));
        for command in removals {
            if let (status @ 1.., printed) = self.run("/", &command)? {
                bail!("{command} exits with {status}:\n{printed}");
            }
        }
        Ok(())
    }

    /// Runs a text of bash in a directory of the machine. The output goes to the terminal and to
    /// the log. Returns the exit status and the output.
    pub(crate) fn run(&self, directory: &str, text: &str) -> Result<(i32, String)> {
        let mut log = File::options().append(true).create(true).open(&self.log)?;
        writeln!(log, "== {directory}$ {text}")?;
        // The shell stays, so that it waits for processes whose parents have exited.
        let script = format!("exec 2>&1; PATH=$HOME/.cargo/bin:$PATH; cd {directory}; ( {text}\n); exit $?");
        let mut child = self.command(&script).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the command has no output")?;
        let mut printed = String::new();
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned() + "\n";
            print!("{line}");
            log.write_all(line.as_bytes())?;
            printed.push_str(&line);
        }
        let status = child.wait()?.code().unwrap_or(-1);
        writeln!(log, "== exits with {status}")?;
        Ok((status, printed))
    }

    /// A command that runs a script in the machine.
    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]);
        command.args(["sh", "-c", ENTER, "sh"]).arg(&self.root);
        command.args(["/usr/bin/env", "-i", "HOME=/root", "USER=root", "LANG=C.UTF-8"]);
        command.arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        // As in `.ci/run`: the commands of README.md and it use the same builds.
        command.arg("CARGO_INCREMENTAL=0");
        let carried = std::env::vars().filter(|(name, _)| registries::is_carried(name));
        command.args(carried.map(|(name, value)| format!("{name}={value}")));
        command.args(["/bin/bash", "-c", script]);
        command
    }

    /// The command that a person types to enter the machine.
    pub(crate) fn enter_command(&self) -> String {
        format!("unshare --mount --pid --fork sh -c '{ENTER}' sh {} bash --login", self.root.display())
    }

    /// Makes the directory of sessions unless it is there.
    pub(crate) fn make_session_directory(&self) -> Result<()> {
        let directory = self.at(SESSIONS);
        if directory.exists() {
            return Ok(());
        }
        fs::create_dir_all(&directory)?;
        for name in OF_SESSIONS {
            symlink(Path::new("../hoistway").join(name), directory.join(name))?;
        }
        Ok(())
    }

    /// Removes the machine if there is one.
    pub(crate) fn remove(&self) -> Result<()> {
        // Nothing of this machine is mounted there, unless a person has done that.
        let has_mounts = ["dev/null", "proc/self", "sys/kernel"].iter().any(|path| self.root.join(path).exists());
        if has_mounts && is_mount(&self.root)? {
            bail!("{} has mounts: unmount them first", self.root.display());
        }
        fs::remove_dir_all(&self.root).or_else(|error| if self.root.exists() { Err(error) } else { Ok(()) })?;
        Ok(())
    }
}

/// Returns true if something is mounted below a directory.
fn is_mount(directory: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(places.map(Path::new).any(|place| place.starts_with(directory)))
}

/// The targets of a list of rustup that are not those of the host.
fn added_targets(listed: &str, host: &str) -> Vec<String> {
    listed.lines().map(str::trim).filter(|name| !name.is_empty() && *name != host).map(str::to_owned).collect()
}

/// The components of a list of rustup that are no part of a plain toolchain.
fn added_components(listed: &str) -> Vec<String> {
    let is_plain = |name: &str| {
        COMPONENTS
            .iter()
            .any(|plain| name.strip_prefix(plain).is_some_and(|end| end.is_empty() || end.starts_with('-')))
    };
    listed.lines().map(str::trim).filter(|name| !name.is_empty() && !is_plain(name)).map(str::to_owned).collect()
}

fn home() -> Result<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set")
}

fn cargo_home() -> Result<PathBuf> {
    std::env::var_os("CARGO_HOME").map_or_else(|| Ok(home()?.join(".cargo")), |path| Ok(PathBuf::from(path)))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_components_beyond_a_plain_toolchain_are_additions() {
        let targets = "wasm32-unknown-unknown\nx86_64-unknown-linux-gnu\n";
        assert_eq!(added_targets(targets, "x86_64-unknown-linux-gnu"), ["wasm32-unknown-unknown"]);
        let components = "cargo-x86_64-unknown-linux-gnu\nclippy-x86_64-unknown-linux-gnu\nrust-docs-x86_64\n\
                          rust-src\nrust-std-wasm32-unknown-unknown\nrustc-x86_64\nrustc-dev-x86_64\nrustfmt\nmiri\n";
        assert_eq!(added_components(components), ["rust-src", "miri"]);
    }

    #[test]
    fn a_command_gets_an_environment_of_its_own() {
        let machine = Machine { root: "/fresh".into(), log: "/log".into() };
        let command = machine.command("true");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let of = |word: &str| words.iter().position(|other| other == word);
        assert!(of("--kill-child") < of("/fresh") && of("/fresh") < of("-i") && of("-i") < of("HOME=/root"));
        assert!(!words.iter().any(|word| word.starts_with("CARGO_MANIFEST_DIR=")), "{words:?}");
        assert_eq!(words.last().map(String::as_str), Some("true"));
    }

    #[test]
    fn a_machine_that_was_never_made_cannot_be_used_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let workspace = Workspace { root: "/".into(), target_directory: directory.path().to_owned() };
        let error = Machine::new(&workspace, directory.path(), true).expect_err("nothing was kept").to_string();
        assert!(error.ends_with("has no system that an earlier call kept"), "{error}");
        let machine = Machine { root: directory.path().join("root"), log: directory.path().join("log.txt") };
        fs::create_dir_all(machine.root.join("etc")).expect("a directory");
        machine.remove().expect("it can be removed");
        assert!(!machine.root.exists());
        machine.remove().expect("twice");
    }
}
