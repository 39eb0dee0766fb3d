//! Kernels that this machine builds from Debian's package of sources, with options that find errors
//! or measure locks.
//!
//! The sources are in `sources` below the folder. Each kernel has the directory of a downloaded one
//! (`fetch.rs`), with the build directory where the headers are otherwise.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::archive::Lists;
use crate::fetch::Fetched;
use crate::table::Kernel;
use hoistway_workspace::programs;

/// The options of all kernels that are built.
const BASE: &str = include_str!("../configs/base.config");
/// The programs of a build, each with its Debian package.
const PROGRAMS: &[(&str, &str)] = &[
    ("make", "make"),
    ("gcc-12", "gcc-12"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl-base"),
    ("pahole", "pahole"),
    ("lz4", "lz4"),
    ("xz", "xz-utils"),
    ("depmod", "kmod"),
];
/// A header that objtool needs, with its Debian package.
const HEADER: (&str, &str) = ("/usr/include/libelf.h", "libelf-dev");
/// The processes of a build at the same time.
const PROCESSES: &str = "-j2";

/// The outcome for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was built in this number of seconds.
    Built(u64),
    /// It was built before from the same sources with the same options.
    Present,
}

/// The sources of a series.
#[derive(Debug)]
pub struct Sources {
    /// The top directory.
    directory: PathBuf,
    /// The version of the package.
    version: String,
}

impl Sources {
    /// Downloads the newest sources of a kernel's series unless some are present. With `update` it
    /// asks the archive for newer ones.
    pub fn require(kernel: &Kernel, folder: &Path, update: bool) -> Result<Sources> {
        let package = format!("linux-source-{}", kernel.series.trim_end_matches('.'));
        let parent = std::path::absolute(folder)?.join("sources");
        let (directory, stamp) = (parent.join(&package), parent.join(format!("{package}.version")));
        let present = fs::read_to_string(&stamp).ok().map(|version| version.trim().to_owned());
        if let Some(version) = present.clone().filter(|_| !update) {
            return Ok(Sources { directory, version });
        }
        let lists = Lists::update(kernel.archive, kernel.architecture, folder)?;
        let version = lists.version(&package)?;
        if present.as_ref() == Some(&version) {
            return Ok(Sources { directory, version });
        }
        println!("{package} {version}");
        let _ = fs::remove_file(&stamp);
        let _ = fs::remove_dir_all(&directory);
        let extracted = parent.join("package");
        let _ = fs::remove_dir_all(&extracted);
        lists.extract(std::slice::from_ref(&package), &extracted)?;
        let archive = extracted.join("usr/src").join(format!("{package}.tar.xz"));
        programs::run(Command::new("tar").arg("-C").arg(&parent).arg("-xf").arg(archive))?;
        fs::remove_dir_all(&extracted)?;
        if !directory.join("Kbuild").is_file() {
            bail!("the package {package} has no sources in {}", directory.display());
        }
        fs::write(&stamp, format!("{version}\n")).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(Sources { directory, version })
    }
}

/// Fails if programs or headers of a build are missing, or installs them.
pub fn require_programs() -> Result<()> {
    programs::require_all(PROGRAMS, true)?;
    if !Path::new(HEADER.0).is_file() {
        programs::install(&[HEADER.1])?;
    }
    Ok(())
}

/// Builds a kernel unless it was built from the same sources with the same options.
pub fn build(kernel: &'static Kernel, sources: &Sources, folder: &Path) -> Result<Outcome> {
    let options = wanted(kernel)?;
    let stamp = format!("{}\n{options}", sources.version);
    let directory = std::path::absolute(folder.join("kernels").join(kernel.name))?;
    let stamp_file = directory.join("stamp");
    let is_same = fs::read_to_string(&stamp_file).is_ok_and(|before| before == stamp);
    if is_same && Fetched::existing(kernel, folder).is_some() {
        return Ok(Outcome::Present);
    }
    let begun = Instant::now();
    for old in ["stamp", "release"] {
        let _ = fs::remove_file(directory.join(old));
    }
    let build = Build { kernel, source: &sources.directory, directory: &directory };
    build.configure(&options)?;
    build.make(&["bzImage", "modules"])?;
    let fetched = build.install()?;
    fetched.image()?;
    fetched.modules()?;
    fs::write(directory.join("release"), format!("{}\n", fetched.release))?;
    fs::write(&stamp_file, stamp).with_context(|| format!("cannot write {}", stamp_file.display()))?;
    Ok(Outcome::Built(begun.elapsed().as_secs()))
}

/// The options of a kernel as lines `CONFIG_NAME=VALUE`.
fn wanted(kernel: &Kernel) -> Result<String> {
    let own = kernel.options.with_context(|| format!("{} is a package, it is not built", kernel.name))?;
    let options = BASE.lines().chain(own.lines()).map(str::trim).filter(|line| line.starts_with("CONFIG_"));
    Ok(options.map(|line| format!("{line}\n")).collect())
}

/// A build.
#[derive(Debug)]
struct Build<'a> {
    kernel: &'static Kernel,
    source: &'a Path,
    directory: &'a Path,
}

impl Build<'_> {
    /// The build directory.
    fn output(&self) -> PathBuf {
        self.directory.join("build")
    }

    /// Runs make. What it prints goes to `build.log`.
    fn make(&self, arguments: &[&str]) -> Result<()> {
        let path = self.directory.join("build.log");
        let log = File::options().create(true).append(true).open(&path);
        let log = log.with_context(|| format!("cannot write {}", path.display()))?;
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(self.source).arg(format!("O={}", self.output().display()));
        make.args(["CC=gcc-12", "HOSTCC=gcc-12", PROCESSES]).args(arguments);
        make.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        programs::run(&mut make).with_context(|| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            format!("the log is {}:\n{}", path.display(), programs::last_lines(&text, 20))
        })
    }

    /// Writes the configuration, and fails if it lacks one of the options.
    fn configure(&self, options: &str) -> Result<()> {
        let (output, fragment) = (self.output(), self.directory.join("options"));
        fs::create_dir_all(&output).with_context(|| format!("cannot make {}", output.display()))?;
        let _ = fs::remove_file(self.directory.join("build.log"));
        fs::write(&fragment, options).with_context(|| format!("cannot write {}", fragment.display()))?;
        self.make(&[&format!("KCONFIG_ALLCONFIG={}", fragment.display()), "allnoconfig"])?;
        let made = fs::read_to_string(output.join(".config")).context("make allnoconfig wrote no configuration")?;
        let lost = lost(options, &made);
        if !lost.is_empty() {
            bail!("the configuration of {} does not have: {}", self.kernel.name, lost.join(", "));
        }
        Ok(())
    }

    /// Puts image, modules and build directory where those of a downloaded kernel are.
    fn install(&self) -> Result<Fetched> {
        let (output, root) = (self.output(), self.directory.join("root"));
        let _ = fs::remove_dir_all(&root);
        let release = fs::read_to_string(output.join("include/config/kernel.release"))?.trim().to_owned();
        let kernel = self.kernel;
        let fetched = Fetched { kernel, release: release.clone(), directory: self.directory.to_owned() };
        fs::create_dir_all(root.join("boot"))?;
        fs::create_dir_all(root.join("usr/src"))?;
        self.make(&[&format!("INSTALL_MOD_PATH={}", root.display()), "INSTALL_MOD_STRIP=1", "modules_install"])?;
        fs::copy(output.join("arch/x86/boot/bzImage"), root.join(format!("boot/vmlinuz-{release}")))
            .context("the build made no image")?;
        let headers = root.join(format!("usr/src/linux-headers-{release}"));
        std::os::unix::fs::symlink("../../../build", &headers)
            .with_context(|| format!("cannot make the link {}", headers.display()))?;
        Ok(fetched)
    }
}

/// The wanted options that a configuration does not have with the wanted value.
fn lost<'a>(wanted: &'a str, made: &str) -> Vec<&'a str> {
    let has = |line: &str| match line.strip_suffix("=n") {
        Some(name) => !made.lines().any(|made| made.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))),
        None => made.lines().any(|made| made == line),
    };
    wanted.lines().filter(|line| !has(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn options_that_a_configuration_lacks_are_found() {
        let wanted = "CONFIG_KASAN=y\nCONFIG_BITS=17\nCONFIG_IBT=n\nCONFIG_LOOP=m\n";
        assert_eq!(lost(wanted, "CONFIG_KASAN=y\nCONFIG_BITS=17\nCONFIG_LOOP=m\nCONFIG_IBT_X=y\n"), [""; 0]);
        let made = "CONFIG_KASAN=m\nCONFIG_BITS=170\nCONFIG_IBT=y\n# CONFIG_LOOP is not set\n";
        assert_eq!(lost(wanted, made), ["CONFIG_KASAN=y", "CONFIG_BITS=17", "CONFIG_IBT=n", "CONFIG_LOOP=m"]);
    }

    #[test]
    fn the_release_of_a_built_kernel_ends_with_its_flavour() {
        for kernel in table::DEBUG_KERNELS {
            let options = wanted(kernel).expect("it is built");
            assert!(options.contains(&format!("\nCONFIG_LOCALVERSION=\"-{}\"\n", kernel.flavour)), "{}", kernel.name);
        }
        assert!(wanted(table::find("6.12").expect("it is in the table")).is_err());
    }

    #[test]
    fn no_option_is_wanted_twice() {
        for kernel in table::DEBUG_KERNELS {
            let options = wanted(kernel).expect("it is built");
            let mut names: Vec<&str> =
                options.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", kernel.name);
        }
    }
}
