//! Debian packages: trees of files with the templates of `packaging/debian/PACKAGE`, packed by
//! dpkg-deb. The same files give the same bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use crate::binaries::Machine;
use crate::clib::{self, Places};
use crate::program::{self, Pages};
use crate::source::{DEBIAN_VERSION, Packing, Source, VERSION};
use crate::{archive, module_sources, tree};

/// The scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Further files for dpkg.
const CONTROL_FILES: [&str; 3] = ["conffiles", "triggers", "shlibs"];

/// A package whose files are being put together.
struct Package<'a> {
    source: &'a Source,
    name: &'static str,
    architecture: &'a str,
    tree: PathBuf,
}

impl<'a> Package<'a> {
    /// Begins a package without files.
    fn new(source: &'a Source, name: &'static str, architecture: &'a str) -> Result<Package<'a>> {
        let tree = source.scratch(&format!("{name}-{architecture}"));
        tree::renew(&tree)?;
        Ok(Package { source, name, architecture, tree })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tree.join(path)
    }

    /// A template of the package with versions and architecture filled in; None if there is none.
    fn template(&self, name: &str) -> Result<Option<String>> {
        let place = format!("packaging/debian/{}/{name}", self.name);
        if !self.source.root().join(&place).exists() {
            return Ok(None);
        }
        let text = self.source.text(&place)?;
        let text = text.replace("@DEBIAN_VERSION@", DEBIAN_VERSION).replace("@VERSION@", VERSION);
        Ok(Some(text.replace("@ARCHITECTURE@", self.architecture)))
    }

    /// Writes a template into the tree, which must exist.
    fn fill_in(&self, name: &str, to: &Path, mode: u32) -> Result<()> {
        let text = self.template(name)?;
        let text = text.with_context(|| format!("packaging/debian/{}/{name} is missing", self.name))?;
        tree::write(to, text, mode)
    }

    /// Adds documentation and control files, and packs the package. Returns its file.
    fn pack(&self, to: &Path) -> Result<PathBuf> {
        let documentation = self.at("usr/share/doc").join(self.name);
        tree::write(&documentation.join("copyright"), self.copyright()?, 0o644)?;
        let changes = format!(
            "hoistway ({DEBIAN_VERSION}) unstable; urgency=medium\n\n  * Package of hoistway {VERSION}, commit\n    {}. changelog.gz has \
             its changes.\n\n -- hoistway contributors <hoistway@localhost>  {}\n",
            self.source.commit, self.source.date
        );
        tree::write(&documentation.join("changelog.Debian.gz"), archive::gzip(changes.as_bytes())?, 0o644)?;
        let changelog = archive::gzip(self.source.text("CHANGELOG.md")?.as_bytes())?;
        tree::write(&documentation.join("changelog.gz"), changelog, 0o644)?;
        if let Some(overrides) = self.template("lintian-overrides")? {
            tree::write(&self.at("usr/share/lintian/overrides").join(self.name), overrides, 0o644)?;
        }
        self.control()?;
        tree::open_directories(&self.tree)?;
        let file = to.join(format!("{}_{DEBIAN_VERSION}_{}.deb", self.name, self.architecture));
        let compression: &[&str] = match self.source.packing {
            Packing::Small => &["-Zxz"],
            Packing::Fast => &["-Zgzip", "-z1"],
        };
        let built = Command::new("dpkg-deb")
            .args(["--root-owner-group", "--threads-max=1"])
            .args(compression)
            .arg("--build")
            .args([&self.tree, &file])
            .env("SOURCE_DATE_EPOCH", self.source.time.to_string())
            .output()
            .context("dpkg-deb")?;
        if !built.status.success() {
            bail!("dpkg-deb: {}", String::from_utf8_lossy(&built.stderr).trim());
        }
        Ok(file)
    }

    /// The licences: those of the package, or those of the program.
    fn copyright(&self) -> Result<String> {
        let text = match self.template("copyright")? {
            Some(text) => text,
            None => self.source.text("packaging/debian/hoistway/copyright")?,
        };
        let line = |line: &str| if line.is_empty() { " .".to_owned() } else { format!(" {line}") };
        let licence: Vec<String> = self.source.text("LICENSE-MIT")?.lines().map(line).collect();
        Ok(text.replace("@MIT@", &licence.join("\n")))
    }

    /// Writes the directory `DEBIAN`.
    fn control(&self) -> Result<()> {
        let (mut files, mut kib) = (Vec::new(), 0);
        for file in tree::files_below(&self.tree)? {
            let data = fs::symlink_metadata(self.tree.join(&file))?;
            kib += data.len().div_ceil(1024);
            if !data.is_symlink() {
                files.push(file);
            }
        }
        let sums = programs::output(Command::new("md5sum").args(&files).current_dir(&self.tree))?;
        let debian = self.at("DEBIAN");
        let control = self.template("control")?.context("the template control is missing")?;
        tree::write(&debian.join("control"), control.replace("@KIB@", &kib.to_string()), 0o644)?;
        tree::write(&debian.join("md5sums"), sums, 0o644)?;
        for (names, mode) in [(SCRIPTS, 0o755), (CONTROL_FILES, 0o644)] {
            for name in names {
                if let Some(text) = self.template(name)? {
                    tree::write(&debian.join(name), text, mode)?;
                }
            }
        }
        Ok(())
    }
}

/// Writes the package of the program.
pub(crate) fn program(
    source: &Source,
    machine: Machine,
    file: &Path,
    pages: &Pages,
    licences: &str,
    to: &Path,
) -> Result<PathBuf> {
    let licences = archive::gzip(licences.as_bytes())?;
    let package = Package::new(source, "hoistway", machine.debian())?;
    program::install(source, file, pages, &package.tree)?;
    tree::write(&package.at("usr/share/doc/hoistway/licences-of-libraries.txt.gz"), licences, 0o644)?;
    package.pack(to)
}

/// Builds the C library and writes its two packages: the shared library, and what programs are
/// compiled with.
pub(crate) fn library(source: &Source, to: &Path) -> Result<Vec<PathBuf>> {
    let machine = Machine::native()?;
    let libraries = format!("lib/{}-linux-gnu", machine.name());
    let built = source.scratch("clib");
    tree::renew(&built)?;
    let places = Places { prefix: built.join("usr"), libraries: libraries.clone(), relocatable: false };
    clib::build(&source.workspace, &places)?;
    let runtime = Package::new(source, "libhoistway0", machine.debian())?;
    let development = Package::new(source, "libhoistway-dev", machine.debian())?;
    let shared = format!("usr/{libraries}/libhoistway.so.0");
    for file in tree::files_below(&built)? {
        let package = if file.to_string_lossy().starts_with(&shared) { &runtime } else { &development };
        let (from, place) = (built.join(&file), package.tree.join(&file));
        if from.is_symlink() {
            tree::link(&fs::read_link(&from)?.to_string_lossy(), &place)?;
        } else {
            tree::copy(&from, &place, 0o644)?;
        }
    }
    for library in tree::files_below(&runtime.at("usr/lib"))? {
        let library = runtime.at("usr/lib").join(library);
        if !library.is_symlink() {
            programs::run(Command::new("strip").args(["--strip-unneeded", "--remove-section=.comment"]).arg(library))?;
        }
    }
    let documentation = development.at("usr/share/doc/libhoistway-dev");
    tree::copy(&source.root().join("docs/c-library.md"), &documentation.join("c-library.md"), 0o644)?;
    // Minimal systems install nothing below usr/share/doc.
    let examples = development.at("usr/share/hoistway/examples/c");
    for name in LIBRARY_EXAMPLES {
        tree::copy(&source.root().join("examples/c").join(name), &examples.join(name), 0o644)?;
    }
    tree::link("../../hoistway/examples/c", &documentation.join("examples"))?;
    Ok(vec![runtime.pack(to)?, development.pack(to)?])
}

/// The files of `examples/c`, which programmers compile with the installed library.
const LIBRARY_EXAMPLES: [&str; 10] = [
    "Makefile",
    "README.md",
    "expected/cfq-v3.txt",
    "expected/deadline.txt",
    "expected/noop.txt",
    "io_scheduler.c",
    "io_scheduler.h",
    "replay.c",
    "requests.txt",
    "storage_engine.c",
];

/// Files of the repository and their names in the documentation of the kernel module.
const MODULE_DOCUMENTATION: [(&str, &str); 5] = [
    ("docs/kernel.md", "kernel.md"),
    ("kernel/README.md", "README.md"),
    ("packaging/debian/hoistway-dkms/60-hoistway-iosched.rules", "examples/60-hoistway-iosched.rules"),
    ("packaging/debian/hoistway-dkms/modules-load.conf", "examples/modules-load.conf"),
    ("packaging/debian/hoistway-dkms/modprobe.conf", "examples/modprobe.conf"),
];

/// The hooks that run when the image or the headers of a kernel are installed.
const HOOKS: [&str; 2] = ["etc/kernel/postinst.d/hoistway-iosched", "etc/kernel/header_postinst.d/hoistway-iosched"];

/// Writes the package of the kernel module: its sources, from which DKMS builds it for each kernel
/// of the user's machine.
pub fn kernel_module(source: &Source, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let package = Package::new(source, "hoistway-dkms", "all")?;
    let sources = package.at(&format!("usr/src/hoistway-iosched-{VERSION}"));
    module_sources::copy(source.root(), &sources)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree::copy(&source.root().join(name), &sources.join(name), 0o644)?;
    }
    for file in tree::files_below(&sources)? {
        let mode = if file.ends_with("kernel-btf") { 0o755 } else { 0o644 };
        fs::set_permissions(sources.join(file), fs::Permissions::from_mode(mode))?;
    }
    let documentation = package.at("usr/share/doc/hoistway-dkms");
    for (from, name) in MODULE_DOCUMENTATION {
        tree::copy(&source.root().join(from), &documentation.join(name), 0o644)?;
    }
    for hook in HOOKS {
        package.fill_in("kernel-hook", &package.at(hook), 0o755)?;
    }
    package.pack(to)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Runs a script of the package of the program on a root directory.
    fn run(script: &str, argument: &str, root: &Path) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/debian/hoistway");
        let mut shell = Command::new("sh");
        shell.arg(directory.join(script)).arg(argument).env("DPKG_ROOT", root);
        assert!(shell.status().expect("a shell").success(), "{script} {argument}");
    }

    #[test]
    fn a_purge_removes_the_links_of_enabled_units_and_no_others() {
        let root = tempfile::tempdir().expect("a directory");
        let units = root.path().join("etc/systemd/system");
        let links = [
            "sockets.target.wants/hoistway.socket",
            "multi-user.target.wants/hoistway.service",
            "multi-user.target.wants/hoistway-mount@srv-media.service",
            "multi-user.target.wants/other.service",
        ];
        for link in links {
            tree::link("/usr/lib/systemd/system/none", &units.join(link)).expect("a link");
        }
        symlink("none", units.join("hoistway.service")).expect("the administrator's unit");
        let left = |root: &Path| tree::files_below(root).expect("a directory").len();
        run("postrm", "upgrade", root.path());
        assert_eq!(left(&units), 5);
        run("postrm", "purge", root.path());
        let expected = ["hoistway.service", "multi-user.target.wants/other.service"].map(PathBuf::from);
        assert_eq!(tree::files_below(&units).expect("a directory"), expected);
        // Without any link the purge succeeds, too.
        run("postrm", "purge", &root.path().join("empty"));
    }
}
