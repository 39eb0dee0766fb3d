//! Programs that the checks need, and how they come to a machine.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The Debian packages of the programs that tests use.
const PROGRAMS: &[(&str, &str)] = &[
    ("cc", "gcc"),
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
    ("mkfs.ext4", "e2fsprogs"),
];

/// Installs what is missing, on Debian and as root; elsewhere a missing program is an error that names it.
pub fn install_missing() -> Result<()> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| find(program).is_none()).collect();
    if missing.is_empty() {
        println!("all of {} are here", PROGRAMS.iter().map(|(program, _)| *program).collect::<Vec<_>>().join(", "));
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    install(&packages)?;
    let still: Vec<&str> =
        PROGRAMS.iter().map(|(program, _)| *program).filter(|program| find(program).is_none()).collect();
    if still.is_empty() { Ok(()) } else { bail!("still missing after their installation: {}", still.join(", ")) }
}

/// Installs Debian packages with apt-get.
pub fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if find("apt-get").is_none() || !is_root() {
        bail!("install these packages (as root on Debian this would be done by itself): {names}");
    }
    println!("installing {names}");
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}

/// Where a program lies on the path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
}

/// Runs a command; its failure is an error that shows it.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if status.success() { Ok(()) } else { bail!("{shown}: {status}") }
}

/// Runs a command and answers what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {shown}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        bail!("{shown}: {}", output.status)
    }
}

/// Cargo, as it runs this program, in the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::repository::root());
    command
}

/// The directory that cargo builds into.
pub fn target_directory() -> Result<PathBuf> {
    let printed = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&printed).context("what cargo metadata prints")?;
    let directory = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(directory.context("cargo metadata names no target_directory")?))
}

/// A command as a person would type it.
fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Whether this is root.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
