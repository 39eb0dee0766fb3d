//! `cargo xtask kernel package --try`: the package in minimal Debian systems. The first kernel is
//! there before the package, further ones come later. Two more kernels are made up of the first
//! one's headers: one that the module does not support, and one whose type information (BTF) has
//! an operation of elevators that the module does not know.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_vm::architecture;
use hoistway_vm::debian_root::{Changed, DebianRoot};
use hoistway_vm::fetch::{self, Fetched};
use hoistway_vm::table::{self, Archive, Kernel};
use hoistway_workspace::programs::last_lines;

use super::test;

/// The system for kernels of bookworm: what dkms, the package and the kernels' packages depend on.
const BOOKWORM: DebianRoot = DebianRoot {
    name: "dkms-bookworm",
    suite: "bookworm",
    variant: "apt",
    packages: "dkms,gcc,libc6-dev,make,binutils,zstd,lz4,xz-utils,kmod,initramfs-tools,linux-base,libelf1,\
               linux-compiler-gcc-12-x86,pahole",
};

/// The system for kernels of trixie and its backports.
const TRIXIE: DebianRoot = DebianRoot {
    name: "dkms-trixie",
    suite: "trixie",
    variant: "apt",
    packages: "dkms,gcc,libc6-dev,make,binutils,zstd,lz4,xz-utils,kmod,initramfs-tools,linux-base,libelf1t64,\
               libssl3t64,gcc-14-for-host,pahole",
};

/// The kernels that are tried if none is named.
const DEFAULT: [&str; 2] = ["6.1", "6.12"];
/// A release that dkms.conf excludes.
const EXCLUDED: &str = "5.10.0-test";
/// A release whose type information has another name of an operation.
const ALTERED: &str = "6.1.0-999-altered";
/// The operation, and its name there.
const OPERATION: (&[u8], &[u8]) = (b"\0allow_merge\0", b"\0allow_marge\0");

/// Installs the package, which has a file and a name, in a system for each archive, checks it and
/// boots the modules.
pub fn check(file: &Path, package: &str, names: &[String]) -> Result<()> {
    let names: Vec<&str> = if names.is_empty() { DEFAULT.to_vec() } else { names.iter().map(String::as_str).collect() };
    let kernels: Vec<&'static Kernel> = names.into_iter().map(table::find).collect::<Result<_>>()?;
    test::require_programs(architecture::BUILD, false, true)?;
    let folder = super::folder()?;
    for (archive, root) in [(Archive::Bookworm, BOOKWORM), (Archive::TrixieBackports, TRIXIE)] {
        let own: Vec<&'static Kernel> = kernels.iter().copied().filter(|kernel| kernel.archive == archive).collect();
        if own.is_empty() {
            continue;
        }
        let fetched = super::present(&own, &folder)?;
        println!("{}:", root.suite);
        let system = System::new(&root, &fetched, &folder, file, package)?;
        let modules = system.check()?;
        for (kernel, module) in fetched.iter().zip(modules) {
            println!("  boot of {} with {}", kernel.release, module.display());
            test::insert(kernel, &module)?;
        }
    }
    Ok(())
}

/// A system with the package beside it.
struct System<'a> {
    changed: Changed,
    /// The directory of changes and packages.
    directory: PathBuf,
    fetched: &'a [Fetched],
    /// The name of the package.
    package: &'a str,
}

impl<'a> System<'a> {
    /// Makes the system and downloads the packages of the kernels.
    fn new(
        root: &DebianRoot,
        fetched: &'a [Fetched],
        folder: &Path,
        file: &Path,
        package: &'a str,
    ) -> Result<System<'a>> {
        let directory = folder.join("dkms").join(root.suite);
        let changed = Changed::new(root, folder, &directory)?;
        let packages = changed.files().join("packages");
        fetch::download_packages(&fetched.iter().collect::<Vec<_>>(), folder, &packages)?;
        fs::create_dir_all(packages.join("own"))?;
        fs::copy(file, packages.join("own").join(file.file_name().context("the name of the package")?))?;
        Ok(System { changed, directory, fetched, package })
    }

    /// Installs and removes everything. Returns the copies of the modules that DKMS built.
    fn check(&self) -> Result<Vec<PathBuf>> {
        let (first, later) = self.fetched.split_first().context("no kernel")?;
        self.step("first kernel", || self.install(first.kernel.name))?;
        self.make_up_kernels(first)?;
        let before = self.files()?;
        let printed = self.step("package", || self.install("own"))?;
        self.judge_made_up(&printed)?;
        for kernel in later {
            self.step("later kernel", || self.install(kernel.kernel.name))?;
        }
        let modules = self.fetched.iter().map(|kernel| self.module(kernel)).collect::<Result<_>>()?;
        self.step("removal", || self.run(&["apt-get", "remove", "-qy", self.package]))?;
        let hook = "/etc/kernel/postinst.d/hoistway-iosched";
        let printed = self.step("hook after removal", || self.run(&[hook, &first.release]))?;
        if !printed.is_empty() {
            bail!("the hook of the removed package prints\n{printed}");
        }
        self.step("purge", || self.run(&["apt-get", "purge", "-qy", self.package]))?;
        self.judge_purge(&before)?;
        Ok(modules)
    }

    /// Runs a step and prints its name and its time.
    fn step(&self, name: &str, run: impl FnOnce() -> Result<String>) -> Result<String> {
        let begun = Instant::now();
        let printed = run().with_context(|| name.to_owned())?;
        println!("  {name:<20} ok  {:>6.1} s", begun.elapsed().as_secs_f64());
        Ok(printed)
    }

    /// Installs the packages of a directory.
    fn install(&self, name: &str) -> Result<String> {
        const INSTALL: &str = "apt-get install -qy -o Dpkg::Use-Pty=0 -o DPkg::Options::=--force-unsafe-io \
                               /packages/$1/*.deb";
        self.run(&["sh", "-c", INSTALL, "sh", name])
    }

    /// Runs a program in the system. Returns what it prints; a failure is an error.
    fn run(&self, words: &[&str]) -> Result<String> {
        let (program, arguments) = words.split_first().context("no program")?;
        let output = self.changed.command(program).args(arguments).output().context("cannot start unshare")?;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(text.into_owned());
        }
        bail!("{}: {}:\n{}", words.join(" "), output.status, last_lines(&text, 40))
    }

    /// Writes the two kernels that only have headers and an image.
    fn make_up_kernels(&self, first: &Fetched) -> Result<()> {
        let files = self.changed.files();
        let modules = files.join("usr/lib/modules");
        let image = first.image()?;
        let kernel_btf = super::source_directory().join("kernel-btf");
        let mut command = std::process::Command::new(kernel_btf);
        let btf = command.arg(&first.release).arg(&image).output().context("cannot start kernel-btf")?.stdout;
        let at = btf.windows(OPERATION.0.len()).position(|window| window == OPERATION.0);
        let mut altered = btf.clone();
        let at =
            at.with_context(|| format!("no operation allow_merge in the type information of {}", first.release))?;
        altered.splice(at..at + OPERATION.0.len(), OPERATION.1.iter().copied());
        for (release, image) in [(EXCLUDED, fs::read(&image)?), (ALTERED, altered)] {
            fs::create_dir_all(modules.join(release))?;
            symlink(format!("/usr/src/linux-headers-{}", first.release), modules.join(release).join("build"))?;
            fs::write(files.join("boot").join(format!("vmlinuz-{release}")), image)?;
        }
        Ok(())
    }

    /// Fails unless the installation skipped the one and explained the failure with the other.
    fn judge_made_up(&self, printed: &str) -> Result<()> {
        let expected = [
            format!("kernel {EXCLUDED}: skipped"),
            format!("kernel {ALTERED}: the module was not built"),
            "struct elevator_mq_ops has the operation allow_marge, which this version of hoistway does not know".into(),
        ];
        for text in expected {
            let line = printed.lines().find(|line| line.contains(&text));
            println!("    {}", line.with_context(|| format!("the installation does not print `{text}`:\n{printed}"))?);
        }
        let log = format!("/var/log/hoistway-iosched-{ALTERED}.log");
        self.run(&["grep", "-q", "allow_marge", &log])
            .with_context(|| format!("{log} does not explain the failure"))?;
        Ok(())
    }

    /// Copies the module that DKMS built for a kernel out of the system.
    fn module(&self, kernel: &Fetched) -> Result<PathBuf> {
        let release = &kernel.release;
        let status = self.run(&["dkms", "status", "-m", "hoistway-iosched", "-k", release])?;
        if !status.contains(": installed") {
            bail!("DKMS has not installed the module for {release}: {status}");
        }
        let found = self.run(&["find", &format!("/usr/lib/modules/{release}"), "-name", "hoistway_iosched.ko*"])?;
        let path = found.trim();
        if path.is_empty() || path.contains('\n') {
            bail!("there must be one module for {release}, not `{path}`");
        }
        let file = Path::new(path).file_name().context("the name of the module")?;
        let copy = self.directory.join("modules").join(kernel.kernel.name).join(file);
        fs::create_dir_all(copy.parent().context("the directory of the module")?)?;
        fs::copy(self.changed.files().join(path.trim_start_matches('/')), &copy).context(path.to_owned())?;
        println!("    {}", status.lines().find(|line| line.contains(": installed")).unwrap_or_default());
        Ok(copy)
    }

    /// The files in the directories that DKMS and the package use.
    fn files(&self) -> Result<String> {
        let directories = ["/usr/lib/modules", "/usr/src", "/var/lib/dkms", "/var/log", "/etc"];
        self.run(&[&["find"], directories.as_slice()].concat())
    }

    /// Fails if the purge left files of the package or of its module.
    fn judge_purge(&self, before: &str) -> Result<()> {
        let after = self.files()?;
        let left: Vec<&str> = after.lines().filter(|path| path.contains("hoistway")).collect();
        if !left.is_empty() {
            bail!("the purge of the package left\n{}", left.join("\n"));
        }
        // The made-up kernels have what they had.
        let of = |text: &str, release: &str| -> Vec<String> {
            text.lines().filter(|path| path.contains(release)).map(str::to_owned).collect()
        };
        for release in [EXCLUDED, ALTERED] {
            let (then, now) = (of(before, release), of(&after, release));
            if then != now {
                bail!("the files of {release} were\n{}\nand are\n{}", then.join("\n"), now.join("\n"));
            }
        }
        Ok(())
    }
}
