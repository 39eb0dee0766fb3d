//! `cargo xtask kernel fetch`: downloads images, modules and headers of the kernels of the table
//! into `target/kernel`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::architecture::{self, Architecture};
use crate::archive::{Lists, unpack};
use crate::build_root;
use crate::modules;
use crate::table::{self, Archive, Kernel};
use hoistway_workspace::programs;

/// A kernel that was downloaded.
#[derive(Debug)]
pub struct Fetched {
    /// The row of the table.
    pub kernel: &'static Kernel,
    /// The release, such as `6.12.117+deb12-amd64`.
    pub release: String,
    /// The directory of the kernel below `target/kernel/kernels`.
    pub directory: PathBuf,
}

/// The outcome of a download.
#[derive(Debug)]
pub enum Outcome {
    /// The kernel is present.
    Present(Fetched),
    /// The archive has no packages of the kernel; the reason.
    Missing(String),
}

impl Fetched {
    /// Returns the kernel if it was downloaded before.
    pub fn existing(kernel: &'static Kernel, folder: &Path) -> Option<Fetched> {
        let directory = folder.join("kernels").join(kernel.name);
        let release = fs::read_to_string(directory.join("release")).ok()?.trim().to_owned();
        let fetched = Fetched { kernel, release, directory: std::path::absolute(directory).ok()? };
        // A build root that was made again has no headers.
        let outdated = kernel.archive.build_root_compiler().is_some() && !build_root::is_complete(folder);
        // A kernel that is built keeps all its modules.
        let outdated = outdated || (kernel.options.is_none() && !fetched.has_wanted_modules());
        let has_headers = kernel.archive == Archive::Files || fetched.headers(folder).is_dir();
        (!outdated && has_headers).then_some(fetched)
    }

    /// The root of the extracted packages of the image.
    pub fn root(&self) -> PathBuf {
        self.directory.join("root")
    }

    /// The root of the extracted packages of the headers.
    pub fn headers_root(&self, folder: &Path) -> PathBuf {
        match self.kernel.archive.build_root_compiler() {
            Some(_) => build_root::directory(folder),
            None => self.root(),
        }
    }

    /// The directory of the headers; the build directory of a kernel that was built.
    pub(crate) fn headers(&self, folder: &Path) -> PathBuf {
        self.headers_root(folder).join("usr/src").join(format!("linux-headers-{}", self.release))
    }

    /// Returns true if the image and the modules are extracted.
    fn has_image(&self) -> bool {
        let stamped = fs::read_to_string(self.directory.join("release"));
        let is_present = stamped.is_ok_and(|release| release.trim() == self.release) && self.has_wanted_modules();
        is_present && self.image().is_ok() && self.modules().is_ok()
    }

    /// Returns true if the modules that are kept are those that boots want.
    fn has_wanted_modules(&self) -> bool {
        fs::read_to_string(self.directory.join("modules")).is_ok_and(|kept| kept == modules::wanted())
    }

    /// The image of the kernel.
    pub fn image(&self) -> Result<PathBuf> {
        let root = self.root();
        let places = [
            root.join(format!("boot/vmlinuz-{}", self.release)),
            root.join(format!("usr/lib/modules/{}/vmlinuz", self.release)),
            root.join(format!("lib/modules/{}/vmlinuz", self.release)),
        ];
        let found = places.into_iter().find(|path| path.is_file());
        found.with_context(|| format!("no image of {} in {}", self.release, root.display()))
    }

    /// Removes the modules that boots do not want, and marks the extracted kernel as complete.
    fn finish(&self) -> Result<()> {
        modules::prune(&self.root(), &self.release)?;
        self.image()?;
        fs::write(self.directory.join("modules"), modules::wanted()).context("cannot write the list of modules")?;
        fs::write(self.directory.join("release"), format!("{}\n", self.release)).context("cannot write the release")
    }

    /// The directory of the modules.
    pub fn modules(&self) -> Result<PathBuf> {
        modules::directory(&self.root(), &self.release)
    }
}

/// Downloads the newest packages of kernels, unless they are present. The outcomes are in the order
/// of the kernels.
pub fn fetch(kernels: &[&'static Kernel], folder: &Path) -> Result<Vec<Outcome>> {
    // None: the mirror may lack another architecture than its own.
    let mut lists: Vec<((Archive, Architecture), Option<Lists>)> = Vec::new();
    let mut outcomes = Vec::new();
    for kernel in kernels {
        let wanted = (kernel.archive, kernel.architecture);
        if !lists.iter().any(|(listed, _)| *listed == wanted) {
            let updated = match Lists::update(wanted.0, wanted.1, folder) {
                Err(error) if wanted.1 != architecture::BUILD => {
                    println!("{:<16} {error:#}", wanted.1.debian());
                    None
                }
                updated => Some(updated?),
            };
            lists.push((wanted, updated));
        }
        let outcome = match lists.iter().find(|(listed, _)| *listed == wanted) {
            Some((_, Some(lists))) => {
                fetch_one(kernel, lists, folder).with_context(|| format!("kernel {}", kernel.name))?
            }
            _ => Outcome::Missing(format!("there are no package lists for {}", kernel.architecture.debian())),
        };
        match &outcome {
            Outcome::Present(fetched) => println!("{:<16} {}", kernel.name, fetched.release),
            Outcome::Missing(reason) => println!("{:<16} SKIPPED: {reason}", kernel.name),
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Extracts the image and the modules of a kernel from packages in a directory. Packages of other
/// kernels are ignored.
///
/// # Errors
/// The directory cannot be read, or has no image of the kernel.
pub fn import(kernel: &'static Kernel, packages: &Path, folder: &Path) -> Result<Fetched> {
    let listed = fs::read_dir(packages).with_context(|| format!("cannot read {}", packages.display()))?;
    let mut files: Vec<PathBuf> = listed.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let series = format!("-{}", kernel.series);
    files.retain(|path| name(path).ends_with(".deb") && name(path).contains(&series));
    // `linux-image-4.15.0-142-generic_4.15.0-142.146_amd64.deb` has the release before the version.
    let release = files.iter().find_map(|path| {
        let name = name(path);
        let release = name.strip_prefix("linux-image-")?.trim_start_matches("unsigned-").split('_').next()?;
        release.ends_with(kernel.flavour).then(|| release.to_owned())
    });
    let release = release.with_context(|| {
        format!(
            "{} has no package linux-image-{}*-{}: download it and linux-modules of the same version",
            packages.display(),
            kernel.series,
            kernel.flavour
        )
    })?;
    let directory = std::path::absolute(folder.join("kernels").join(kernel.name))?;
    let fetched = Fetched { kernel, release, directory };
    let _ = fs::remove_dir_all(&fetched.directory);
    for package in files.iter().filter(|path| name(path).contains(&fetched.release)) {
        unpack(package, &fetched.root())?;
    }
    fetched.finish()?;
    Ok(fetched)
}

fn fetch_one(kernel: &'static Kernel, lists: &Lists, folder: &Path) -> Result<Outcome> {
    if kernel.options.is_some() {
        return Ok(match Fetched::existing(kernel, folder) {
            Some(fetched) => Outcome::Present(fetched),
            None => Outcome::Missing("`cargo xtask kernel debug-kernel` builds it".to_owned()),
        });
    }
    let names = lists.kernel_packages()?;
    let Some(version) = table::newest_version(kernel, &names) else {
        return Ok(match Fetched::existing(kernel, folder) {
            Some(fetched) => Outcome::Present(fetched),
            None => Outcome::Missing(missing(kernel, &names)),
        });
    };
    let release = format!("{version}-{}", kernel.flavour);
    if let Some(fetched) = Fetched::existing(kernel, folder).filter(|fetched| fetched.release == release) {
        return Ok(Outcome::Present(fetched));
    }
    let directory = std::path::absolute(folder.join("kernels").join(kernel.name))?;
    let fetched = Fetched { kernel, release: release.clone(), directory };
    if !fetched.has_image() {
        fetch_image(&fetched, lists, &version)?;
    }
    let headers = lists.closure(&[format!("linux-headers-{release}")], &version)?;
    // The headers of newer packages depend on the image, which belongs to the other root.
    let headers: Vec<String> = headers.into_iter().filter(|name| !name.starts_with("linux-image-")).collect();
    if kernel.archive.build_root_compiler().is_some() {
        build_root::require(folder)?;
    }
    lists.extract(&headers, &fetched.headers_root(folder))?;
    if kernel.archive.build_root_compiler().is_none() {
        include_relatively(&fetched.headers(folder))?;
    }
    Ok(Outcome::Present(fetched))
}

/// Downloads the image and the modules of a kernel.
fn fetch_image(fetched: &Fetched, lists: &Lists, version: &str) -> Result<()> {
    let Fetched { release, directory, .. } = fetched;
    let _ = fs::remove_dir_all(directory);
    let root = fetched.root();
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let mut image = lists.closure(&[format!("linux-image-{release}")], version)?;
    image.extend(lists.existing(&[format!("linux-modules-extra-{release}")])?);
    lists.extract(&image, &root)?;
    fetched.finish()
}

/// Downloads the packages of the images and headers of kernels of one archive into a directory of
/// each kernel's name.
pub fn download_packages(kernels: &[&Fetched], folder: &Path, into: &Path) -> Result<()> {
    let Some(first) = kernels.first() else { return Ok(()) };
    let lists = Lists::update(first.kernel.archive, first.kernel.architecture, folder)?;
    for Fetched { kernel, release, .. } in kernels {
        let version = release.strip_suffix(kernel.flavour).unwrap_or(release).trim_end_matches('-');
        let wanted = ["image", "headers"].map(|what| format!("linux-{what}-{release}"));
        let mut packages = lists.closure(&wanted, version)?;
        // Newer kernels need a newer one than that of their distribution.
        packages.push(format!("linux-base/{}", kernel.archive.name()));
        lists.download(&packages, &into.join(kernel.name))?;
    }
    Ok(())
}

/// A program of Debian bookworm without libraries that runs in the virtual machine: that of this
/// machine, or one of the package for the architecture, given with its path there.
pub fn program(architecture: Architecture, name: &str, package: &str, path: &str, folder: &Path) -> Result<PathBuf> {
    if architecture == architecture::BUILD {
        programs::require_all(&[(name, package)], true)?;
        return programs::find(name).with_context(|| format!("{name} is not on the path"));
    }
    let directory = std::path::absolute(folder)?.join("programs").join(architecture.debian());
    let program = directory.join(path);
    if !program.is_file() {
        Lists::update(Archive::Bookworm, architecture, folder)?.extract(&[package.to_owned()], &directory)?;
    }
    if program.is_file() { Ok(program) } else { bail!("the package {package} has no {path}") }
}

/// Why a kernel cannot be downloaded.
fn missing(kernel: &Kernel, names: &[String]) -> String {
    let begin = format!("linux-image-{}", kernel.series);
    let end = format!("-{}", kernel.flavour);
    let images = names.iter().filter(|name| name.starts_with(&begin) && name.ends_with(&end)).count();
    let series = kernel.series.trim_end_matches('.');
    match images {
        0 => format!("{} has no kernel {series}", kernel.archive.name()),
        _ => format!("{} has {images} images of {series} but no headers of them", kernel.archive.name()),
    }
}

/// Lets the Makefile of headers include the common one by a relative path, so that the headers work
/// outside `/usr/src`.
fn include_relatively(headers: &Path) -> Result<()> {
    let path = headers.join("Makefile");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let Some(relative) = relative_include(&text) else {
        bail!("{} is not one line that includes a Makefile of /usr/src: {text}", path.display());
    };
    fs::write(&path, relative).with_context(|| format!("cannot write {}", path.display()))
}

fn relative_include(text: &str) -> Option<String> {
    let common = text.trim().strip_prefix("include /usr/src/")?;
    (!common.contains('\n')).then(|| format!("include $(dir $(lastword $(MAKEFILE_LIST)))../{common}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_include_their_common_part_by_a_relative_path() {
        let text = "include /usr/src/linux-headers-6.12.1-common/Makefile\n";
        let expected = "include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-6.12.1-common/Makefile\n";
        assert_eq!(relative_include(text).as_deref(), Some(expected));
        assert_eq!(relative_include("all:\n\ttrue\n"), None);
    }

    #[test]
    fn the_reason_distinguishes_missing_headers_from_missing_kernels() {
        let kernel = table::find("7.2").expect("it is in the table");
        let names = ["linux-image-7.2.9+deb13-amd64".to_owned()];
        assert_eq!(missing(kernel, &names), "trixie-backports has 1 images of 7.2 but no headers of them");
        assert_eq!(missing(kernel, &[]), "trixie-backports has no kernel 7.2");
    }
}
