//! Programs of this machine: found on the path, installed from Debian's packages, and started.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program that is killed when the value is dropped.
#[derive(Debug)]
pub struct Background(pub Child);

impl Drop for Background {
    fn drop(&mut self) {
        // Fails if the program has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The programs that the checks start, each with its Debian package.
pub const PROGRAMS: &[(&str, &str)] = &[
    ("cc", "gcc"),
    ("mount", "mount"),
    ("xz", "xz-utils"),
    ("objdump", "binutils"),
    ("valgrind", "valgrind"),
    ("fio", "fio"),
    ("chromium", "chromium"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdkit", "nbdkit"),
    ("qemu-img", "qemu-utils"),
    ("blkparse", "blktrace"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("bsdtar", "libarchive-tools"),
    ("cpio", "cpio"),
    ("rsync", "rsync"),
    ("python3", "python3"),
    ("setfacl", "acl"),
    ("strace", "strace"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("mandoc", "mandoc"),
    ("groff", "groff-base"),
    ("mkfs.ext4", "e2fsprogs"),
    ("pg_ctlcluster", "postgresql"),
    ("sqlite3", "sqlite3"),
    ("stress-ng", "stress-ng"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("depmod", "kmod"),
    ("zstd", "zstd"),
    ("pahole", "pahole"),
    ("make", "make"),
    ("pkg-config", "pkgconf"),
    ("gcc-12", "gcc-12"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("mmdebstrap", "mmdebstrap"),
];

/// Returns the Debian package of a program of the table.
pub fn package_of(program: &str) -> Result<&'static str> {
    let row = PROGRAMS.iter().find(|(name, _)| *name == program);
    row.map(|(_, package)| *package).with_context(|| format!("the table of programs has no {program}"))
}

/// Fails if programs are missing and names the command that installs them, or installs them. Each
/// program is given with its Debian package.
pub fn require_all(programs: &[(&str, &str)], install: bool) -> Result<()> {
    let missing = |programs: &[(&str, &str)]| -> Vec<String> {
        let missing = programs.iter().filter(|(program, _)| find(program).is_none());
        let mut packages: Vec<String> = missing.map(|(_, package)| (*package).to_owned()).collect();
        packages.sort();
        packages.dedup();
        packages
    };
    let packages = missing(programs);
    if packages.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    if !install {
        bail!("programs are missing; on Debian, install them with\n  {}\nor pass --install", install_command(&names));
    }
    self::install(&names)?;
    let still = missing(programs);
    if still.is_empty() { Ok(()) } else { bail!("still missing after their installation: {}", still.join(", ")) }
}

/// Returns the command that a person types to install Debian packages.
pub fn install_command(packages: &[&str]) -> String {
    format!("apt-get install --no-install-recommends {}", packages.join(" "))
}

/// Installs Debian packages with apt-get.
pub fn install(packages: &[&str]) -> Result<()> {
    if find("apt-get").is_none() || !is_root() {
        bail!("only root on Debian can do this: {}", install_command(packages));
    }
    println!("installing {}", packages.join(" "));
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}

/// Finds a program on the path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
}

/// Runs a command. A failure is an error that shows the command.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if status.success() { Ok(()) } else { bail!("{shown}: {status}") }
}

/// Runs a command and returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {shown}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        bail!("{shown}: {}", output.status)
    }
}

/// Formats a command as a person types it.
fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Returns true if this process runs as root.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Returns the last lines of a text.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: &[(&str, &str)] = &[("no-such-program", "its-package"), ("sh", "dash")];

    #[test]
    fn a_missing_program_is_named_with_the_command_that_installs_it() {
        let error = require_all(MISSING, false).expect_err("one is missing").to_string();
        assert!(error.contains("apt-get install --no-install-recommends its-package\n"), "{error}");
    }

    #[test]
    fn nothing_is_installed_if_no_program_is_missing() {
        assert!(require_all(&[("sh", "no-such-package")], true).is_ok());
    }

    #[test]
    fn the_last_lines_of_a_short_text_are_all() {
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }
}
