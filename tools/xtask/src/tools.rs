//! The programs that the checks start, cargo among them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result};
use hoistway_clib::Workspace;
pub use hoistway_vm::programs::{find, install, install_command, is_root, output, require_all, run};

use crate::repository;

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

/// Finds a subcommand of cargo, on the path or where cargo installs programs.
pub fn find_cargo_tool(program: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let installed = home.map(|home| home.join("bin").join(program)).filter(|path| path.is_file());
    find(program).or(installed)
}

/// The cargo that runs this program, started in the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::repository::root());
    command
}

/// Returns the directory that cargo builds the workspace into.
pub fn target_directory() -> Result<PathBuf> {
    target_directory_of(&crate::repository::root().join("Cargo.toml"))
}

/// Returns the workspace for the crate that builds the C library.
pub fn workspace() -> Result<Workspace> {
    Ok(Workspace { root: repository::root().to_owned(), target_directory: target_directory()? })
}

/// Returns the directory that cargo builds the workspace of a manifest into.
pub fn target_directory_of(manifest: &Path) -> Result<PathBuf> {
    let options = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path"];
    let printed = output(cargo().args(options).arg(manifest))?;
    let metadata: serde_json::Value = serde_json::from_str(&printed).context("the output of cargo metadata")?;
    let directory = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(directory.context("cargo metadata names no target_directory")?))
}

/// Builds programs and examples of the workspace, selected by options of `cargo build`, and returns
/// their directory, which has the examples in `examples/`.
///
/// The crates below them are those of the build of the tests. Cargo selects features for the set of
/// packages and targets that it builds: for one package, or for programs without an example, it
/// would compile many crates again. Therefore an example is always among the targets.
pub fn built(targets: &[&str]) -> Result<PathBuf> {
    run(cargo().args(["build", "--quiet", "--workspace", "--example", "worlds"]).args(targets))?;
    Ok(target_directory()?.join("debug"))
}

/// Builds the program in the configuration that the tests use, and returns its path.
pub fn hoistway() -> Result<PathBuf> {
    Ok(built(&["--bin", "hoistway"])?.join("hoistway"))
}
