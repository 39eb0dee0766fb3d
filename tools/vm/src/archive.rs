//! Access to package archives with apt, without changing the packages of this machine: each archive
//! has its own package lists below `target/kernel/apt`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::architecture::{self, Architecture};
use crate::table::{Archive, Part};
use hoistway_workspace::programs;

/// The keys that sign Debian's archive; the package debian-archive-keyring has them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The package lists of an archive for an architecture, and for that of the machines that build.
#[derive(Debug)]
pub struct Lists {
    directory: PathBuf,
    architecture: Architecture,
}

impl Lists {
    /// Downloads the package lists of an archive.
    pub fn update(archive: Archive, architecture: Architecture, folder: &Path) -> Result<Lists> {
        let mirrors = Mirrors::of_this_machine()?;
        let name = match architecture {
            architecture::BUILD => archive.name().to_owned(),
            other => format!("{}-{}", archive.name(), other.debian()),
        };
        let directory = std::path::absolute(folder)?.join("apt").join(name);
        for part in ["lists/partial", "cache/archives/partial", "etc/preferences.d"] {
            fs::create_dir_all(directory.join(part)).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        fs::write(directory.join("etc/sources.list"), mirrors.sources(archive, &architectures(architecture)))?;
        fs::write(directory.join("status"), "")?;
        let lists = Lists { directory, architecture };
        let mut update = lists.apt("apt-get");
        programs::run(update.args(["update", "-qq", "-o", "APT::Update::Error-Mode=any"]))
            .with_context(|| format!("the package lists of {}", archive.name()))?;
        Ok(lists)
    }

    /// A program of apt with the directories of the archive.
    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let at = |part: &str| self.directory.join(part).display().to_string();
        for (option, value) in [
            ("Dir::State", at("")),
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("Dir::Etc", at("etc")),
            ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
            ("APT::Architecture", self.architecture.debian().to_owned()),
            ("APT::Architectures", architectures(self.architecture)),
            ("APT::Sandbox::User", "root".to_owned()),
            ("Acquire::Languages", "none".to_owned()),
            ("Acquire::Retries", "3".to_owned()),
        ] {
            command.arg("-o").arg(format!("{option}={value}"));
        }
        command
    }

    /// The names of the packages of kernels and headers.
    pub fn kernel_packages(&self) -> Result<Vec<String>> {
        let mut search = self.apt("apt-cache");
        search.args(["search", "--names-only", "^linux-(image|headers)-[0-9]"]);
        let printed = programs::output(&mut search)?;
        Ok(printed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
    }

    /// The packages of a kernel: the given ones, and those that they need of the same kernel.
    pub fn closure(&self, first: &[String], version: &str) -> Result<Vec<String>> {
        let mut found: BTreeSet<String> = BTreeSet::new();
        let mut queue: Vec<String> = first.to_vec();
        while let Some(name) = queue.pop() {
            let mut show = self.apt("apt-cache");
            let printed = programs::output(show.args(["show", "--no-all-versions"]).arg(&name))?;
            if printed.trim().is_empty() {
                bail!("the archive has no package {name}");
            }
            let needed = kernel_dependencies(&printed, version);
            found.insert(name);
            queue.extend(needed.into_iter().filter(|name| !found.contains(name)));
        }
        Ok(found.into_iter().collect())
    }

    /// The names of those of the given packages that the archive has.
    pub fn existing(&self, names: &[String]) -> Result<Vec<String>> {
        let mut existing = Vec::new();
        for name in names {
            let mut search = self.apt("apt-cache");
            let pattern = format!("^{}$", name.replace('+', "\\+").replace('.', "\\."));
            if !programs::output(search.args(["search", "--names-only", &pattern]))?.trim().is_empty() {
                existing.push(name.clone());
            }
        }
        Ok(existing)
    }

    /// The newest version of a package.
    pub fn version(&self, package: &str) -> Result<String> {
        let mut show = self.apt("apt-cache");
        let printed = programs::output(show.args(["show", "--no-all-versions", package]))?;
        let version = printed.lines().find_map(|line| line.strip_prefix("Version: ")).map(str::to_owned);
        version.with_context(|| format!("the archive has no package {package}"))
    }

    /// Downloads packages and extracts them into a directory. Packages with programs of the build
    /// are those for the machines that build.
    pub fn extract(&self, packages: &[String], into: &Path) -> Result<()> {
        let downloads = self.directory.join("downloads");
        let _ = fs::remove_dir_all(&downloads);
        self.download(packages, &downloads)?;
        for entry in fs::read_dir(&downloads)? {
            let package = entry?.path();
            unpack(&package, into)?;
            // A build root that is shared by several kernels gets them one after the other: no copy
            // of a package stays.
            fs::remove_file(&package)?;
        }
        Ok(())
    }

    /// Downloads packages into a directory.
    pub fn download(&self, packages: &[String], into: &Path) -> Result<()> {
        fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
        let mut download = self.apt("apt-get");
        let packages = packages.iter().map(|name| self.qualified(name));
        programs::run(download.args(["download", "-qq"]).args(packages).current_dir(into))
    }

    /// The name of a package, with its architecture if that is not the one of the lists.
    fn qualified(&self, name: &str) -> String {
        let runs_in_builds = name.starts_with("linux-kbuild-") && self.architecture != architecture::BUILD;
        if runs_in_builds { format!("{name}:{}", architecture::BUILD.debian()) } else { name.to_owned() }
    }
}

/// The architectures whose packages are listed, with commas.
fn architectures(architecture: Architecture) -> String {
    match architecture {
        architecture::BUILD => architecture.debian().to_owned(),
        other => format!("{},{}", other.debian(), architecture::BUILD.debian()),
    }
}

/// Extracts a package. Unlike `dpkg-deb -x`, a link of the directory to another one stays: `lib` is
/// a link to `usr/lib` in a build root.
pub fn unpack(package: &Path, into: &Path) -> Result<()> {
    fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
    let mut read = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).spawn()?;
    let files = read.stdout.take().context("the output of dpkg-deb")?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--keep-directory-symlink", "--directory"]).arg(into).stdin(files);
    let extracted = programs::run(&mut tar);
    let status = read.wait()?;
    extracted?;
    if status.success() { Ok(()) } else { bail!("dpkg-deb --fsys-tarfile {}: {status}", package.display()) }
}

/// The addresses from which this machine gets Debian's packages.
#[derive(Debug)]
pub struct Mirrors {
    main: String,
    security: String,
}

impl Mirrors {
    /// Reads the addresses from apt's configuration.
    pub fn of_this_machine() -> Result<Mirrors> {
        let mut targets = Command::new("apt-get");
        targets.args(["indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]);
        Mirrors::parse(&programs::output(&mut targets)?)
    }

    /// Parses lines of origin, label and address.
    fn parse(targets: &str) -> Result<Mirrors> {
        let find = |label: &str| {
            let prefix = format!("Debian|{label}|");
            targets.lines().find_map(|line| line.strip_prefix(prefix.as_str())).map(str::to_owned)
        };
        match (find("Debian"), find("Debian-Security")) {
            (Some(main), Some(security)) => Ok(Mirrors { main, security }),
            _ => bail!(
                "apt has no package lists of Debian with its security updates: add both to /etc/apt/sources.list.d, \
                 and run `apt-get update`"
            ),
        }
    }

    /// The address of the distributions.
    pub fn main(&self) -> &str {
        &self.main
    }

    /// The file `sources.list` of an archive, for architectures with commas between them.
    pub(crate) fn sources(&self, archive: Archive, architectures: &str) -> String {
        let line = |(part, suite): &(Part, &str)| {
            let address = match part {
                Part::Main => &self.main,
                Part::Security => &self.security,
            };
            format!("deb [arch={architectures} signed-by={KEYRING}] {address} {suite} main\n")
        };
        archive.suites().iter().map(line).collect()
    }
}

/// The packages in the dependencies of a package that belong to the same kernel: those named after
/// its version, and the programs of its build system.
fn kernel_dependencies(shown: &str, version: &str) -> Vec<String> {
    let lines = shown.lines().filter_map(|line| line.strip_prefix("Depends:"));
    let choices = lines.flat_map(|line| line.split(','));
    // The first of several alternatives.
    let names = choices.filter_map(|choice| choice.split('|').next()?.split_whitespace().next());
    let names = names.map(|name| name.split(':').next().unwrap_or(name));
    let version = version.split('-').next().unwrap_or(version).trim_end_matches(".0").to_owned();
    let belongs = |name: &&str| {
        name.starts_with("linux-") && !name.starts_with("linux-compiler-") && name.contains(version.as_str())
    };
    names.filter(belongs).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_those_of_apt() {
        let targets = "Other|Other|https://other.example/|\nDebian|Debian-Security|http://a.example/security/\n\
                       Debian|Debian|http://a.example/debian/\nDebian|Debian|http://b.example/debian/\n";
        let mirrors = Mirrors::parse(targets).expect("both parts");
        let sources = mirrors.sources(Archive::Bookworm, "arm64,amd64");
        assert!(sources.starts_with("deb [arch=arm64,amd64 signed-by="), "{sources}");
        assert!(sources.contains("] http://a.example/debian/ bookworm main\n"), "{sources}");
        assert!(sources.contains("] http://a.example/security/ bookworm-security main\n"), "{sources}");
        let error = Mirrors::parse("Debian|Debian|http://a.example/debian/\n").expect_err("no security updates");
        assert!(error.to_string().contains("security updates"), "{error}");
    }

    #[test]
    fn the_programs_of_a_build_are_those_for_the_machine_that_builds() {
        let lists = |architecture| Lists { directory: PathBuf::new(), architecture };
        let (x86, arm64) = (lists(Architecture::X86_64), lists(Architecture::Arm64));
        assert_eq!(arm64.qualified("linux-kbuild-6.12.1"), "linux-kbuild-6.12.1:amd64");
        assert_eq!(arm64.qualified("linux-headers-6.12.1-arm64"), "linux-headers-6.12.1-arm64");
        assert_eq!(x86.qualified("linux-kbuild-6.12.1"), "linux-kbuild-6.12.1");
        assert_eq!(architectures(arm64.architecture), "arm64,amd64");
        assert_eq!(architectures(x86.architecture), "amd64");
    }

    #[test]
    fn dependencies_on_packages_of_the_same_kernel_are_found() {
        let shown = "Package: linux-image-7.3.4+deb13-amd64\nDepends: dracut | initramfs-tools (>= 0.120), \
                     linux-base-7.3.4+deb13-amd64 (= 7.3.4-1), linux-modules-7.3.4+deb13-amd64 (= 7.3.4-1)\n";
        let found = kernel_dependencies(shown, "7.3.4+deb13");
        assert_eq!(found, ["linux-base-7.3.4+deb13-amd64", "linux-modules-7.3.4+deb13-amd64"]);
    }

    #[test]
    fn the_build_system_of_a_whole_series_belongs_to_the_kernel_and_the_compiler_does_not() {
        let shown = "Depends: linux-headers-6.1.0-56-common (= 6.1.192-2), linux-kbuild-6.1 (>= 6.1.192-2), \
                     linux-compiler-gcc-12-x86, linux-base (>= 4.3~)\n";
        let found = kernel_dependencies(shown, "6.1.0-56");
        assert_eq!(found, ["linux-headers-6.1.0-56-common", "linux-kbuild-6.1"]);
    }
}
