//! The Debian package `hoistway-iosched-dkms`: the sources of the kernel module, from which DKMS
//! builds it for each kernel of the user's machine. The same sources give the same bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{installation, sources};
use crate::repository;
use crate::tools;

/// Options of `cargo xtask kernel package`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The directory for the package; `target/kernel` by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Install the package in minimal Debian systems, check what DKMS makes of it there, remove it,
    /// and boot the kernels with the modules
    #[arg(long = "try")]
    tried: bool,
    /// A kernel of the table for `--try`; may be repeated; 6.1 and 6.12 by default
    #[arg(long, value_name = "KERNEL", requires = "tried")]
    kernel: Vec<String>,
}

const PACKAGE: &str = "hoistway-iosched-dkms";

/// Files of the repository and their names in the package's documentation.
const DOCUMENTATION: [(&str, &str); 6] = [
    ("docs/kernel.md", "kernel.md"),
    ("kernel/README.md", "README.md"),
    ("packaging/dkms/copyright", "copyright"),
    ("packaging/dkms/60-hoistway-iosched.rules", "examples/60-hoistway-iosched.rules"),
    ("packaging/dkms/modules-load.conf", "examples/modules-load.conf"),
    ("packaging/dkms/modprobe.conf", "examples/modprobe.conf"),
];

/// The hooks that run when the image or the headers of a kernel are installed.
const HOOKS: [&str; 2] = ["etc/kernel/postinst.d/hoistway-iosched", "etc/kernel/header_postinst.d/hoistway-iosched"];

/// Builds the package.
pub fn run(options: &Options) -> Result<()> {
    tools::require_all(&[("dpkg-deb", "dpkg"), ("md5sum", "coreutils"), ("gzip", "gzip")], false)?;
    let version = version()?;
    let out = match &options.out {
        Some(out) => out.clone(),
        None => tools::target_directory()?.join("kernel"),
    };
    let tree = out.join(PACKAGE);
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("{}", tree.display()))?;
    }
    source_tree(&tree.join(format!("usr/src/hoistway-iosched-{version}")))?;
    documentation(&tree.join("usr/share/doc").join(PACKAGE))?;
    for hook in HOOKS {
        template("kernel-hook", &version, "", &tree.join(hook), 0o755)?;
    }
    control(&tree, &version)?;
    let package = out.join(format!("{PACKAGE}_{version}_all.deb"));
    let built = Command::new("dpkg-deb")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .args([&tree, &package])
        .env("SOURCE_DATE_EPOCH", commit_time()?)
        .output()
        .context("dpkg-deb")?;
    if !built.status.success() {
        bail!("dpkg-deb: {}", String::from_utf8_lossy(&built.stderr).trim());
    }
    println!("{}", package.display());
    if options.tried { installation::check(&package, PACKAGE, &options.kernel) } else { Ok(()) }
}

/// The version of the module, from `kernel/VERSION`.
fn version() -> Result<String> {
    let path = repository::root().join("kernel/VERSION");
    Ok(fs::read_to_string(&path).context("kernel/VERSION")?.trim().to_owned())
}

/// The time of the last commit in seconds since 1970, which all files of the package get.
fn commit_time() -> Result<String> {
    let mut command = Command::new("git");
    Ok(tools::output(command.args(["log", "-1", "--format=%ct"]).current_dir(repository::root()))?.trim().to_owned())
}

/// Copies what a build needs.
fn source_tree(to: &Path) -> Result<()> {
    sources::copy(to)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&repository::root().join(name), &to.join(name), 0o644)?;
    }
    for entry in fs::read_dir(to).with_context(|| format!("{}", to.display()))? {
        let path = entry?.path();
        let mode = if path.ends_with("kernel-btf") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

fn documentation(to: &Path) -> Result<()> {
    for (from, name) in DOCUMENTATION {
        copy(&repository::root().join(from), &to.join(name), 0o644)?;
    }
    copy(&repository::root().join("CHANGELOG.md"), &to.join("changelog"), 0o644)?;
    tools::run(Command::new("gzip").args(["-9nf"]).arg(to.join("changelog")))
}

/// Writes the files of the directory `DEBIAN`.
fn control(tree: &Path, version: &str) -> Result<()> {
    let mut files = files_below(tree)?;
    files.sort();
    let sizes = files.iter().map(|file| Ok(fs::metadata(tree.join(file))?.len().div_ceil(1024)));
    let kib: u64 = sizes.sum::<Result<u64>>()?;
    let sums = tools::output(Command::new("md5sum").args(&files).current_dir(tree))?;
    let debian = tree.join("DEBIAN");
    template("control", version, &kib.to_string(), &debian.join("control"), 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        template(script, version, "", &debian.join(script), 0o755)?;
    }
    write(&debian.join("md5sums"), &sums, 0o644)?;
    let hooks = HOOKS.map(|hook| format!("/{hook}\n")).concat();
    write(&debian.join("conffiles"), &hooks, 0o644)
}

/// Writes a file of `packaging/dkms` with the version and the installed size filled in.
fn template(name: &str, version: &str, kib: &str, to: &Path, mode: u32) -> Result<()> {
    let from = Path::new("packaging/dkms").join(name);
    let text = fs::read_to_string(repository::root().join(&from)).with_context(|| format!("{}", from.display()))?;
    write(to, text.replace("@VERSION@", version).replace("@KIB@", kib), mode)
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("{}", from.display()))?;
    write(to, bytes, mode)
}

fn write(to: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    let parent = to.parent().unwrap_or(Path::new("."));
    let write = || {
        fs::create_dir_all(parent)?;
        fs::write(to, bytes)?;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    };
    write().with_context(|| format!("{}", to.display()))
}

/// The files below a directory, with their paths from it.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("{}", next.display()))? {
            let path = entry?.path();
            match path.is_dir() {
                true => open.push(path),
                false => files.push(path.strip_prefix(directory)?.to_owned()),
            }
        }
    }
    Ok(files)
}
